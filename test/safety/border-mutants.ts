/**
 * The broken variants that the scenarios of the borders must catch: the real source with a few lines exchanged, as in
 * `mutants.ts`. A mutant counts as caught when it passes where nothing is wrong and fails the scenarios named here.
 */
import type { BorderName } from './border-scenarios.ts';
import type { Mutant } from './mutants.ts';

export const BORDER_MUTANTS: readonly Mutant<BorderName>[] = [
  {
    name: 'several requests of a connection at work',
    caughtBy: ['pipelinedBurst'],
    edits: [
      {
        file: 'observe/connections.ts',
        find: '    this.#isAtWork = true;\n',
        replace: '    this.#isAtWork = false;\n',
      },
    ],
  },
  {
    name: 'pages made for clients that have gone',
    caughtBy: ['clientsThatLeave'],
    edits: [
      {
        file: 'observe/answers.ts',
        find: 'const isGone = next.isGone();',
        replace: 'const isGone = next.isGone() && false;',
      },
    ],
  },
  {
    name: 'clients that leave not noticed',
    caughtBy: ['clientsThatLeave'],
    edits: [
      {
        file: 'observe/connections.ts',
        find: 'if (this.#pending !== null) this.#socket.pause();',
        replace: 'if (this.#pending !== null || this.#isAtWork) this.#socket.pause();',
      },
    ],
  },
  {
    name: 'any number of pages in the making',
    caughtBy: ['ninthPage'],
    edits: [{ file: 'observe/answers.ts', find: ' || state.underWay >= MAX_PARALLEL', replace: '' }],
  },
  {
    name: 'metrics without places of their own',
    caughtBy: ['ninthPage'],
    edits: [
      {
        file: 'observe/server.ts',
        find: "=== '/metrics' ? makeMetrics : makePage",
        replace: "=== '/metrics' ? makePage : makePage",
      },
      {
        file: 'observe/server.ts',
        find: 'const { options, makePage, makeMetrics } = serving;',
        replace: 'const { options, makePage } = serving;',
      },
    ],
  },
  {
    name: 'health that waits for a place',
    caughtBy: ['ninthPage', 'healthBeforePages'],
    edits: [
      {
        file: 'observe/server.ts',
        find: 'const unqueued = await (findRejection(request, options) ?? healthAt(url, options));',
        replace: 'const unqueued = await findRejection(request, options);',
      },
      {
        file: 'observe/server.ts',
        find: 'async () => await answerTo(url, options)',
        replace: 'async () => healthAt(url, options) ?? (await answerTo(url, options))',
      },
    ],
  },
  {
    name: 'pages begun without a turn for others',
    caughtBy: ['healthBeforePages'],
    edits: [{ file: 'observe/answers.ts', find: 'if (state.isResting || ', replace: 'if (' }],
  },
  {
    name: 'the overview made for each client',
    caughtBy: ['overviewForMany'],
    edits: [
      {
        file: 'observe/answers.ts',
        find: 'return known === undefined || clock.monoMs() >= known.untilMs ? null',
        replace: 'return known === undefined || clock.monoMs() <= known.untilMs ? null',
      },
    ],
  },
  {
    name: 'pages made for each query without a meaning',
    caughtBy: ['queriesWithoutMeaning'],
    edits: [
      {
        file: 'observe/server.ts',
        find: 'given.has(name)) === false',
        replace: "given.has(name)) === false && query === ''",
      },
    ],
  },
  {
    name: 'any number of responses that are not read',
    caughtBy: ['unreadPages'],
    edits: [
      { file: 'observe/connections.ts', find: 'bytes + unread.length > limit', replace: 'unread.length > limit' },
    ],
  },
  {
    name: 'connections dropped by their age alone',
    caughtBy: ['slowClients'],
    edits: [
      {
        file: 'observe/connections.ts',
        find: 'PHASE_ORDER[a.phase] - PHASE_ORDER[b.phase] || a.since - b.since',
        replace: '0 * PHASE_ORDER[a.phase] || a.since - b.since',
      },
    ],
  },
  {
    name: 'an address that may take all connections',
    caughtBy: ['greedyAddress'],
    edits: [{ file: 'observe/connections.ts', find: '> MAX_PER_CLIENT', replace: '> MAX_PER_CLIENT * 0' }],
  },
  {
    name: 'pages for any host name',
    caughtBy: ['foreignNames'],
    edits: [
      {
        file: 'observe/server.ts',
        find: 'if (!BY_ANY_NAME.has(url) && !isServedName(',
        replace: 'if (BY_ANY_NAME.has(url) && !isServedName(',
      },
    ],
  },
  {
    name: 'health and metrics by known names alone',
    caughtBy: ['foreignNames'],
    edits: [
      { file: 'observe/server.ts', find: 'if (!BY_ANY_NAME.has(url) && !isServedName(', replace: 'if (!isServedName(' },
    ],
  },
  {
    name: 'metrics without the password',
    caughtBy: ['passwords'],
    edits: [
      {
        file: 'observe/server.ts',
        find: "url === '/healthz' ? null : options.password()",
        replace: 'BY_ANY_NAME.has(url) ? null : options.password()',
      },
    ],
  },
  {
    name: 'health behind the password',
    caughtBy: ['passwords'],
    edits: [
      {
        file: 'observe/server.ts',
        find: "url === '/healthz' ? null : options.password()",
        replace: 'options.password()',
      },
    ],
  },
  {
    name: 'answers of any size',
    caughtBy: ['endlessAnswer'],
    edits: [{ file: 'api/transport.ts', find: 'if (bytes > MAX_ANSWER_BYTES) throw tooLarge();', replace: '' }],
  },
  {
    name: 'packed answers of any size',
    caughtBy: ['endlessAnswer'],
    edits: [
      {
        file: 'api/transport.ts',
        find: '{ maxOutputLength: MAX_ANSWER_BYTES, ',
        replace: '{ maxOutputLength: MAX_ANSWER_BYTES * 64, ',
      },
    ],
  },
  {
    name: 'packed rejections of a database of any size',
    caughtBy: ['packedRefusal'],
    edits: [
      {
        file: 'influx/connection.ts',
        find: '{ maxOutputLength: MAX_BODY_BYTES }',
        replace: '{ maxOutputLength: MAX_BODY_BYTES * 1024 }',
      },
    ],
  },
  {
    name: 'answers of any number of values',
    caughtBy: ['countlessValues'],
    edits: [
      {
        file: 'api/classify.ts',
        find: 'countValues(answer.body) > MAX_VALUES',
        replace: 'countValues(answer.body) > MAX_VALUES + 1',
      },
    ],
  },
  {
    name: 'errors of any number of values',
    caughtBy: ['countlessValues'],
    edits: [
      {
        file: 'api/classify.ts',
        find: 'hasTooMany ? undefined : parseBody',
        replace: 'hasTooMany === null ? undefined : parseBody',
      },
    ],
  },
  {
    name: 'pages parsed in one turn',
    caughtBy: ['fullPage'],
    edits: [
      { file: 'api/parse.ts', find: 'if (values < VALUES_A_TURN) continue;', replace: 'if (values >= 0) continue;' },
    ],
  },
  {
    name: 'lists of alerts without an end',
    caughtBy: ['endlessAlertList'],
    edits: [{ file: 'ingest/alerts.ts', find: ' || seen.size > MAX_LISTED', replace: '' }],
  },
  {
    name: 'devices of alerts left out remembered without a bound',
    caughtBy: ['endlessAlertList'],
    edits: [
      { file: 'ingest/alerts.ts', find: 'text.length <= MAX_LEFT_OUT', replace: 'text.length <= MAX_LEFT_OUT * 9' },
    ],
  },
  {
    name: 'device lists without an end',
    caughtBy: ['endlessDeviceList'],
    edits: [{ file: 'ingest/devices.ts', find: 'if (listed > most)', replace: 'if (listed > most * 1000)' }],
  },
  {
    name: 'device lists of any size',
    caughtBy: ['endlessDeviceList'],
    edits: [
      {
        file: 'ingest/devices.ts',
        find: 'if (characters > LISTED_MOST.characters) throw',
        replace: 'if (characters < 0) throw',
      },
    ],
  },
  {
    name: 'a Date that cannot be stored',
    caughtBy: ['dateOfYear9999'],
    edits: [{ file: 'api/classify.ts', find: ' && dateMs < MAX_MS ? dateMs', replace: ' ? dateMs' }],
  },
  {
    name: 'times read that cannot be stored',
    caughtBy: ['timesToCome'],
    edits: [
      {
        file: 'core/time.ts',
        find: 'return ns < 0n || ns > MAX_NS ? null : ns;',
        replace: 'return ns < 0n ? null : ns;',
      },
    ],
  },
  {
    name: 'devices seen at any time',
    caughtBy: ['timesToCome'],
    edits: [{ file: 'api/parse.ts', find: 'device.lastSeenAt > limit.latestNs', replace: 'limit.latestNs < 0n' }],
  },
  {
    name: 'alerts of any time',
    caughtBy: ['timesToCome'],
    edits: [{ file: 'api/parse.ts', find: 'else if (alert.openedAt > latestNs)', replace: 'else if (latestNs < 0n)' }],
  },
  {
    name: 'facts of a Date that nothing confirms',
    caughtBy: ['factsOfAnUnconfirmedDate'],
    edits: [
      {
        file: 'ingest/account.ts',
        find: 'if (!isLater(about.atMs, lastMs) || serverClock.unconfirmed() !== null)',
        replace: 'if (!isLater(about.atMs, lastMs) || serverClock.unconfirmed() === undefined)',
      },
    ],
  },
  {
    name: 'kept points of the future sent',
    caughtBy: ['pointsOfOtherTimes'],
    edits: [{ file: 'delivery/send-batch.ts', find: 'latestNs !== null && at > latestNs', replace: 'latestNs === 0n' }],
  },
  {
    name: 'kept points sent that no database can store',
    caughtBy: ['pointsOfOtherTimes'],
    edits: [
      { file: 'delivery/send-batch.ts', find: 'if (!isStorable(at)) {', replace: 'if (at < 0n) {' },
      { file: 'delivery/send-batch.ts', find: 'latestNs !== null && at > latestNs', replace: 'latestNs === 0n' },
    ],
  },
  {
    name: 'batches sent undivided whatever their times',
    caughtBy: ['pointsOfOtherTimes'],
    edits: [
      {
        file: 'delivery/send-batch.ts',
        find: 'if (extent === null) return true;',
        replace: 'if (extent !== undefined) return true;',
      },
    ],
  },
  {
    name: 'a state that is gone treated as a new one',
    caughtBy: ['stateThatIsGone'],
    edits: [
      {
        file: 'store/open/database.ts',
        find: 'if ((bytes ?? 0) > 0 || !isLeft()) return;',
        replace: 'if ((bytes ?? 0) >= 0 || !isLeft()) return;',
      },
    ],
  },
  {
    name: 'garbage in place of the lock reported as a damaged state',
    caughtBy: ['garbageBesideAState'],
    edits: [
      {
        file: 'store/open/lock.ts',
        find: 'if (isBusy(error)) throw new StateInUseError(file);\n    throw isGarbage(error) ? noLockFile(file) : error;',
        replace: 'if (isBusy(error)) throw new StateInUseError(file);\n    throw error;',
      },
    ],
  },
  {
    name: 'a stray journal reported as a foreign database',
    caughtBy: ['garbageBesideAState'],
    edits: [
      {
        file: 'store/open/database.ts',
        find: 'throw isRollback(error) ? strayJournal(path) : error;',
        replace: 'throw error;',
      },
    ],
  },
  {
    name: 'small writes without a look at the lock',
    caughtBy: ['writesWithoutTheLock'],
    edits: [
      {
        file: 'store/transactions.ts',
        find: '(db.inTransaction ? run(...values) : alone(...values))',
        replace: '(db.open ? run(...values) : alone(...values))',
      },
    ],
  },
  {
    name: 'a lock beside each link to a state',
    caughtBy: ['linkedState'],
    edits: [
      {
        file: 'store/open/database.ts',
        find: 'lstatSync(path).isSymbolicLink() ? realpathSync(path) : path',
        replace: 'lstatSync(path).isFIFO() ? realpathSync(path) : path',
      },
    ],
  },
  {
    name: 'the part of a running backup to the same file removed',
    caughtBy: ['secondBackup'],
    edits: [
      {
        file: 'store/open/new-file.ts',
        find: ' && !isInUse(part)',
        replace: '',
      },
    ],
  },
  {
    name: 'parts of killed backups kept',
    caughtBy: ['killedBackups'],
    edits: [
      {
        file: 'store/views/backup.ts',
        find: '  await atTarget(options, () => removeOldParts(file, options.nowMs, isBeingWritten));\n',
        replace: '',
      },
    ],
  },
  {
    name: 'parts of running backups removed',
    caughtBy: ['killedBackups'],
    edits: [
      {
        file: 'store/open/new-file.ts',
        find: 'nowMs - changedMs > STILL_WRITTEN_MS',
        replace: 'nowMs - changedMs >= 0 * STILL_WRITTEN_MS',
      },
    ],
  },
];
