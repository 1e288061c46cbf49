/**
 * The broken variants of the program that the safety scenarios must catch: each is the real source with a few lines
 * exchanged. A mutant counts as caught when it passes the run without faults and fails the scenarios named here.
 */
import type { ScenarioName } from '../support/scenarios.ts';

export interface Mutant<Name extends string = ScenarioName> {
  readonly name: string;
  /** At least one: a variant that nothing has to catch would prove nothing. */
  readonly caughtBy: readonly [Name, ...Name[]];
  /** Each `find` stands exactly once in its file. */
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
}

/**
 * The files that a variant edits, by their names, as it has them.
 *
 * @param read returns the text of a file.
 * @throws Error where a `find` does not stand exactly once: the source has changed, and the variant must.
 */
export function editedTexts(
  { name, edits }: Pick<Mutant, 'name' | 'edits'>,
  read: (file: string) => string,
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const text = texts.get(file) ?? read(file);
    if (text.split(find).length !== 2) throw new Error(`mutant "${name}": ${file} does not hold exactly once: ${find}`);
    texts.set(
      file,
      text.replace(find, () => replace),
    );
  }
  return texts;
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'coverage before rows',
    caughtBy: ['killedAtAnyEffect'],
    edits: [
      {
        file: 'store/store.ts',
        find: '  const commit = write((page: PageCommit) => {\n    writePage(telemetry, page);',
        replace: `  const commit = (page: PageCommit): RejectedRecord[] => {
    write(() => writePage(telemetry, { ...page, lines: [], sideLines: [] }))();
    write(() => archive.append({ ...page, lines: [...page.lines, ...page.sideLines] }))();
    return [];
  };
  const commitUnused = write((page: PageCommit) => {
    writePage(telemetry, page);`,
      },
    ],
  },
  {
    name: 'newest time as checkpoint',
    caughtBy: ['killedAtAnyEffect'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: 'const range = { from: maxNs(oldest.recordedAt + 1n, request.gap.from), to: request.gap.to };',
        replace: 'const range = { from: request.gap.from, to: request.gap.to };',
      },
    ],
  },
  {
    name: 'delivered before acknowledged',
    caughtBy: ['killedAtAnyEffect', 'brokenDeliveries'],
    edits: [
      {
        file: 'delivery/deliver.ts',
        find: '  const startedMs = clock.monoMs();',
        replace: `  const { store, destination } = delivery;
  const all = { lane, from, to: positionAfter(batch, from, batch.count) };
  store.acknowledge({ destinationId: destination.id(), ...all, rejected: [], missing: [], atMs: clock.nowMs() });
  const startedMs = clock.monoMs();`,
      },
      {
        file: 'delivery/deliver.ts',
        find: '    store.acknowledge({ destinationId, lane, from, to, rejected, missing, atMs: clock.nowMs() });',
        replace: '    void [destinationId, to];',
      },
    ],
  },
  {
    name: 'a position that moves past lines that are kept',
    caughtBy: ['brokenDeliveries'],
    edits: [
      {
        file: 'delivery/deliver.ts',
        find: 'if (resolution.resolved > 0) {',
        replace: 'if (resolution.resolved >= 0) {',
      },
      {
        file: 'delivery/deliver.ts',
        find: 'positionAfter(batch, from, resolution.resolved)',
        replace: 'positionAfter(batch, from, batch.count)',
      },
    ],
  },
  {
    name: 'a prepared batch sent although the position is elsewhere',
    caughtBy: ['brokenBesidePrepared'],
    edits: [
      {
        file: 'delivery/deliver.ts',
        find: '    delivery.prepared = null;\n    const waitMs',
        replace: '    const waitMs',
      },
      {
        file: 'delivery/deliver.ts',
        find: 'if (prepared !== null && isNext(prepared, { lane, from, lines })) return prepared;',
        replace: 'if (prepared?.lane === lane) return { ...prepared, from };',
      },
    ],
  },
  {
    name: 'a batch counted as delivered without an answer',
    caughtBy: ['brokenDeliveries'],
    edits: [
      {
        file: 'delivery/send-batch.ts',
        find: `  if (verdict.does === 'keep') return noneRejected({ accepted: 0, blocked: verdict.blocked, controls: [] });
  if (verdict.does !== 'accept')`,
        replace: "  if (verdict.does === 'bisect')",
      },
    ],
  },
  {
    name: 'readings skipped because their time is covered',
    caughtBy: ['lateReading'],
    edits: [
      {
        file: 'ingest/commit-rules.ts',
        find: '    const outcome = writeReading(writer, reading);',
        replace: `    if (state.covered.some(({ from, to }) => from <= reading.recordedAt && reading.recordedAt < to)) continue;
    const outcome = writeReading(writer, reading);`,
      },
    ],
  },
  {
    name: 'counts of hours delivered beside the readings that complete them',
    caughtBy: ['lateInTheirHour'],
    edits: [
      {
        file: 'store/device/telemetry.ts',
        find: "const side = { deviceId, lane: 'history',",
        replace: 'const side = { deviceId, lane,',
      },
    ],
  },
  {
    name: 'former counts of hours replayed',
    caughtBy: ['lateInTheirHour'],
    edits: [
      {
        file: 'store/archive/reader.ts',
        find: 'count < otherCount ? other : one;',
        replace: 'count < otherCount ? one : other;',
      },
    ],
  },
  {
    name: 'pages accepted without the overlap reading',
    caughtBy: ['falseEmpties', 'laggingReplica'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: "return missing.find(({ how }) => how === 'not reached') ?? missing[0] ?? null;",
        replace: 'return request.after >= 0n ? null : (missing[0] ?? null);',
      },
      {
        file: 'ingest/judge-page.ts',
        find: 'const nearSeen = request.nearSeen || !hasToBeShown(request.near, context) || containsEdge(readings, request.near);',
        replace: 'const nearSeen = true;',
      },
    ],
  },
  {
    name: 'stored readings that pages do not reach gone after three of them',
    caughtBy: ['endsAboveStored', 'beginsBelowStored'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: "return isPassed || times.includes(at) ? 'replaced' : 'not reached';",
        replace: "return isPassed || times.includes(at) || readings.length > 0 ? 'replaced' : 'not reached';",
      },
    ],
  },
  {
    name: 'no repeated request next to stored readings that count as gone',
    caughtBy: ['beginsBelowForAnHour'],
    edits: [
      {
        file: 'ingest/commit.ts',
        find: 'if (range !== null) store.saveEmptyWindow(deviceId, createEmptyWindow(range, serverClock.nowMs()));',
        replace: 'if (range !== null) void createEmptyWindow(range, serverClock.nowMs());',
      },
    ],
  },
  {
    name: 'pages that end their range accepted in any order',
    caughtBy: ['oldestFirst'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: 'const disorder = disorderIn(request, page);',
        replace: 'const disorder = ended ? null : disorderIn(request, page);',
      },
    ],
  },
  {
    name: 'pages that stop short of a sign of life accepted',
    caughtBy: ['behindTheList'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: 'if (newest === undefined || seenAt === null ||',
        replace: 'if (newest === undefined || seenAt !== null ||',
      },
    ],
  },
  {
    name: 'pages that stop short of a sign of life accepted after three of them',
    caughtBy: ['behindItsSign'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: '  if (newest === undefined) return covers;\n',
        replace: '  if (newest === undefined) return covers;\n  if (newest.recordedAt >= 0n) return null;\n',
      },
    ],
  },
  {
    name: 'pages that stop short of the sign of life that is the clock accepted',
    caughtBy: ['behindTheTime'],
    edits: [
      {
        file: 'ingest/empty-ranges.ts',
        find: 'return isTimeBySigns && !isLastTry ? lastSeenAt : null;',
        replace: 'return isTimeBySigns && isLastTry ? null : null;',
      },
    ],
  },
  {
    name: 'one empty answer is enough',
    caughtBy: ['firstAnswerEmpty'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: 'if (readings.length === 0 && context.emptyBefore === 0) {',
        replace: 'if (readings.length === 0 && context.emptyBefore < 0) {',
      },
    ],
  },
  {
    name: 'empty answers accepted within seconds',
    caughtBy: ['emptyForHours'],
    edits: [
      {
        file: 'ingest/rejected-answers.ts',
        find: 'EMPTY_PATIENCE_MS = DAY_MS',
        replace: 'EMPTY_PATIENCE_MS = 0 * DAY_MS',
      },
      {
        file: 'ingest/rejected-answers.ts',
        find: "'restart later', 'remember, give up'],",
        replace: "'restart later', 'accept the answers'],",
      },
    ],
  },
  {
    name: 'unverified empty ranges covered',
    caughtBy: ['emptyAboveHistory'],
    edits: [
      {
        file: 'ingest/coverage-rules.ts',
        find: 'if (readings.length === 0 ||',
        replace: 'if (readings.length >= 0 ||',
      },
    ],
  },
  {
    name: 'empty answers accepted although the device was seen',
    caughtBy: ['silentAtFirstContact'],
    edits: [
      {
        file: 'ingest/empty-ranges.ts',
        find: 'if (!isContradicted(answer)) return',
        replace: 'if (!isContradicted(answer) || true) return',
      },
    ],
  },
  {
    name: 'no repeated request for accepted empty answers',
    caughtBy: ['emptyBesideOthers'],
    edits: [
      {
        file: 'ingest/empty-ranges.ts',
        find: '{ ...joined, confirmed: 1, dueMs: nowMs + HOUR_MS }',
        replace: '{ ...joined, confirmed: 1, dueMs: null }',
      },
    ],
  },
  {
    name: 'empty ranges requested again only where quota is to spare',
    caughtBy: ['emptyUnderSmallQuota'],
    edits: [
      {
        file: 'scheduler/decide.ts',
        find: 'return (state.reread.isOwed ? rereadRequest(state, nowMs) : null) ?? idlePoll(state, nowMs);',
        replace: 'return idlePoll(state, nowMs);',
      },
    ],
  },
  {
    name: 'pages accepted up to a gap above them that was given up',
    caughtBy: ['belowGivenUp'],
    edits: [
      {
        file: 'ingest/gap-scan.ts',
        find: 'if (above === undefined || fromNs >= gap.to) return covers;',
        replace: 'if (above === undefined || fromNs >= 0n) return covers;',
      },
    ],
  },
  {
    name: 'no repeated request for empty windows that no stored reading supports',
    caughtBy: ['emptyBelowSilence'],
    edits: [
      {
        file: 'ingest/gap-scan.ts',
        find: 'if (window !== null) store.saveEmptyWindow(deviceId, window);',
        replace: 'if (window !== null) void window;',
      },
    ],
  },
  {
    name: 'empty windows that make each other due without an end',
    caughtBy: ['emptyNextToEach'],
    edits: [
      {
        file: 'ingest/reread.ts',
        find: '(window.dueMs === DUE_AT_ONCE && newReadings === 0)',
        replace: '(window.dueMs === DUE_AT_ONCE && newReadings < 0)',
      },
    ],
  },
  {
    name: 'late readings that are not followed down',
    caughtBy: ['returnsWithItsBuffer'],
    edits: [
      {
        file: 'ingest/coverage-rules.ts',
        find: 'if (!isLate || lateGapFrom === undefined) return null;',
        replace: 'if (!isLate || lateGapFrom !== null) return null;',
      },
      {
        file: 'ingest/coverage-rules.ts',
        find: 'return isChecked ? found : [];',
        replace: 'return isChecked ? [] : [];',
      },
    ],
  },
  {
    name: 'a silence that is not checked when it ends',
    caughtBy: ['silentWhileCovered'],
    edits: [
      {
        file: 'ingest/coverage-rules.ts',
        find: 'return isChecked ? found : [];',
        replace: 'return isChecked ? [] : [];',
      },
    ],
  },
  {
    name: 'a silence that is not checked when it ends below the wanted range',
    caughtBy: ['silentBelowWanted'],
    edits: [
      {
        file: 'ingest/coverage-rules.ts',
        find: 'if (covers.first !== null) return covers.first.at;',
        replace: 'return covers.first === null ? null : covers.first.at;',
      },
    ],
  },
  {
    name: 'empty answers accepted where others were not',
    caughtBy: ['emptyFurtherDown'],
    edits: [
      {
        file: 'ingest/rejected-answers.ts',
        find: 'missed.some(({ isGone, sinceMs }) => !isGone &&',
        replace: 'missed.some(({ isGone, sinceMs }) => isGone &&',
      },
      // Without the checks that would find what the empty answers hid: of a silence that ends, and of windows.
      {
        file: 'ingest/coverage-rules.ts',
        find: 'return isChecked ? found : [];',
        replace: 'return isChecked ? [] : [];',
      },
      {
        file: 'ingest/gap-scan.ts',
        find: 'if (window !== null) store.saveEmptyWindow(deviceId, window);',
        replace: 'if (window !== null) void window;',
      },
    ],
  },
  {
    name: 'two empty pages behind a cursor accepted',
    caughtBy: ['emptyBehindCursor'],
    edits: [
      {
        file: 'ingest/gap-scan.ts',
        find: 'return cursor === null || emptyEnds.includes(below ?? 0n) ? attempts.empties : 0;',
        replace: 'return attempts.empties;',
      },
      {
        // Readings archived on the way there are evidence against such an answer too.
        file: 'ingest/gap-scan.ts',
        find: 'isStored: isAnyStored(store, deviceId, range),',
        replace: 'isStored: false,',
      },
    ],
  },
  {
    name: 'no repeated request for the first empty ranges of a device without a last-seen time',
    caughtBy: ['emptyAndNeverSeen'],
    edits: [
      {
        file: 'ingest/empty-ranges.ts',
        find: 'newestNs === null ? seenAt === null && isFirst :',
        replace: 'newestNs === null ? seenAt !== null && isFirst :',
      },
    ],
  },
  {
    name: 'an age that a smaller plan rejected still rejected at the next start',
    caughtBy: ['rejectedForAWhile'],
    edits: [
      {
        file: 'ingest/page-scan.ts',
        find: '  forgetDoubtfulAge(context);\n',
        replace: '  void forgetDoubtfulAge;\n',
      },
    ],
  },
  {
    name: 'all history given up after a job that has stalled',
    caughtBy: ['allHistoryThroughAnOutage'],
    edits: [
      {
        file: 'commands/backfill/job.ts',
        find: "state === 'done' && exitCode === OUTCOME_EXIT_CODES.complete",
        replace: "state === 'done' && exitCode !== OUTCOME_EXIT_CODES.gaps_remain",
      },
    ],
  },
  {
    name: 'days that a rejection alone has named forgotten',
    caughtBy: ['daysOfARejection'],
    edits: [
      {
        file: 'ingest/fetch-page.ts',
        find: 'return isRecent(atMs, nowMs) ? days : null;',
        replace: 'return isRecent(atMs, nowMs) ? null : days;',
      },
    ],
  },
  {
    name: 'ranges without an end narrowed for a clock that is ahead',
    caughtBy: ['endsCountedAhead'],
    edits: [
      {
        file: 'ingest/window-limits.ts',
        find: 'if (days !== null && before === null && rejectedNs <= daysNs(days))',
        replace: 'if (days === null && before === null && rejectedNs <= daysNs(7))',
      },
    ],
  },
  {
    name: 'devices polled for good that are seen and never report',
    caughtBy: ['hubWithoutReadings'],
    edits: [
      {
        file: 'scheduler/planning.ts',
        find: 'isSilent: isSilentForGood(store.emptyRange(deviceId)),',
        replace: 'isSilent: isSilentForGood(null),',
      },
    ],
  },
  {
    name: 'signs of life without readings that keep the workspace incomplete',
    caughtBy: ['hubWithoutReadings'],
    edits: [
      {
        file: 'core/device-coverage.ts',
        find: 'return seenAt > knownTo && !neverReports ? []',
        replace: 'return seenAt > knownTo ? []',
      },
    ],
  },
  {
    name: 'devices without a sign of life that keep the workspace incomplete',
    caughtBy: ['hubNeverSeen'],
    edits: [
      {
        file: 'core/device-coverage.ts',
        find: 'return online !== false || newestNs !== null',
        replace: 'return true || newestNs !== null',
      },
    ],
  },
  {
    name: 'devices that report without a sign of life treated as empty',
    caughtBy: ['hubBeginsUnseen'],
    edits: [
      {
        file: 'core/device-coverage.ts',
        find: 'return online !== false || newestNs !== null',
        replace: 'return newestNs !== null',
      },
    ],
  },
  {
    name: 'devices without a last-seen time incomplete between their polls',
    caughtBy: ['unlistedStaysReady'],
    edits: [
      {
        file: 'app/hooks.ts',
        find: 'nextDeviceReadingMs(planned().planning.planner.devices, deviceId)',
        replace: 'nextDeviceReadingMs(planned().planning.planner.devices, deviceId) && null',
      },
    ],
  },
  {
    name: 'devices without a last-seen time not polled after a restart',
    caughtBy: ['unlistedStaysReady'],
    edits: [
      {
        file: 'scheduler/device-outlook.ts',
        find: 'if (isPolledForRate(facts, rules)) return facts.polledMs;',
        replace: '',
      },
    ],
  },
  {
    name: 'ranges without a due reading treated as empty after the last list',
    caughtBy: ['unlistedStalls'],
    edits: [
      {
        file: 'core/device-coverage.ts',
        find: 'to: minNs(dueNs, listedNs) }',
        replace: 'to: dueNs }',
      },
    ],
  },
  {
    name: 'devices that have stopped reporting unseen treated as empty',
    caughtBy: ['unlistedComesBack'],
    edits: [
      {
        file: 'scheduler/device-outlook.ts',
        find: 'isQuiet && emptiesInARow > 1',
        replace: 'isQuiet && emptiesInARow > 99',
      },
    ],
  },
  {
    name: 'device lists dated by a local clock that is ahead',
    caughtBy: ['listedByAClockAhead'],
    edits: [
      {
        file: 'ingest/devices.ts',
        find: 'if (serverClock.isKnown()) return answeredAtMs;',
        replace: 'if (serverClock.isKnown() || answeredAtMs > 0) return answeredAtMs;',
      },
    ],
  },
  {
    name: 'device lists dated by a local clock that is ahead of an unconfirmed Date',
    caughtBy: ['listedByAClockAhead'],
    edits: [
      {
        file: 'ingest/devices.ts',
        find: 'serverClock.passedMs() ?? serverClock.unconfirmed()?.dateMs ?? answeredAtMs',
        replace: 'serverClock.passedMs() ?? answeredAtMs',
      },
    ],
  },
  {
    name: 'lateness by a local clock that is behind',
    caughtBy: ['lateUnderAClockBehind'],
    edits: [
      {
        file: 'ingest/commit.ts',
        find: 'return newest === null ? answeredAtMs :',
        replace: 'return newest === null || newest.to > 0n ? answeredAtMs :',
      },
    ],
  },
  {
    name: 'what is shown again still missing',
    caughtBy: ['emptyOnceMore'],
    edits: [{ file: 'ingest/gap-scan.ts', find: '  noteShown(context, deviceId, readings);\n', replace: '' }],
  },
  {
    name: 'coverage up to the current time',
    caughtBy: ['lateInsideGracePeriod'],
    edits: [
      {
        file: 'ingest/wanted-range.ts',
        find: 'limit: coverageLimit(passedMs, settings.gracePeriodMs)',
        replace: 'limit: msToNs(passedMs)',
      },
    ],
  },
  {
    name: 'coverage by the time of the answer',
    caughtBy: ['slowAnswers'],
    edits: [
      {
        file: 'ingest/gap-scan.ts',
        find: '  const judged = judgePage(request, page, {',
        replace: `  const answeredNs = BigInt(Math.floor(context.serverClock.nowMs() - 1000 - context.settings.gracePeriodMs)) * 1_000_000n;
  const to = request.before === null && answeredNs > request.gap.to ? answeredNs : request.gap.to;
  const judged = judgePage({ ...request, gap: { ...request.gap, to } }, page, {`,
      },
    ],
  },
  {
    name: 'Date trusted when it jumps',
    caughtBy: ['dateJumps'],
    edits: [
      {
        file: 'core/server-clock.ts',
        find: '  if (hasWallJumpedToo(samples, next)) return { samples: [next], ahead: null, beforeFallMs: null };',
        replace: '  if (isAhead(samples, next)) return { samples: [next], ahead: null, beforeFallMs: null };',
      },
    ],
  },
  {
    name: 'a jump of Date to the local clock trusted against the times that the API serves',
    caughtBy: ['dateJumpsToLocalClock'],
    edits: [
      {
        file: 'core/server-clock.ts',
        find: 'return isOlder(olderMs, toleranceMs) && served.monoMs - olderMs > sinceMonoMs;',
        replace: 'return isOlder(olderMs, toleranceMs) && served.monoMs < sinceMonoMs;',
      },
    ],
  },
  {
    name: 'coverage kept when Date falls back',
    caughtBy: ['dateFallsBack'],
    edits: [
      {
        file: 'ingest/server-time.ts',
        find: '  if (newest === undefined || newest.to <= msToNs(presentMs)) return false;',
        replace: '  if (newest === undefined || newest.to > 0n) return false;',
      },
    ],
  },
  {
    name: 'first Date trusted without another clock',
    caughtBy: ['firstDateWrong'],
    edits: [
      {
        file: 'core/server-clock.ts',
        find: 'if (memory.samples.length === 0 && others !== null)',
        replace: 'if (memory.samples.length > 0 && others !== null)',
      },
    ],
  },
  {
    name: 'waits of a clock that was ahead kept',
    caughtBy: ['namedByAClockAhead'],
    edits: [
      {
        file: 'ingest/named-gaps.ts',
        find: 'return retryAtMs > nowMs && retryAtMs - nowMs <= RETRY_MS[reason] + CLOCK_SLACK_MS;',
        replace: 'return retryAtMs > nowMs && RETRY_MS[reason] + CLOCK_SLACK_MS > 0;',
      },
    ],
  },
  {
    name: 'gaps left out that a local clock ahead calls past',
    caughtBy: ['namedUnderALocalClockAhead'],
    edits: [
      {
        file: 'commands/once/result.ts',
        find: 'const isLeaving = stillWanted < coverable.limit;',
        replace: 'const isLeaving = stillWanted > 0n;',
      },
    ],
  },
  {
    name: 'a lock that counts when its file is gone',
    caughtBy: ['lockDeleted'],
    edits: [
      {
        file: 'store/open/lock.ts',
        find: 'if (now !== undefined && now.ino === own?.ino && now.dev === own.dev) return;',
        replace: 'if (now === undefined || now.ino === own?.ino) return;',
      },
    ],
  },
  {
    name: 'readings stored and delivered whatever their time is',
    caughtBy: ['farFuture'],
    edits: [
      {
        file: 'api/parse.ts',
        find: 'else if (reading.recordedAt > latestNs) {',
        replace: 'else if (latestNs < 0n) {',
      },
      { file: 'delivery/send-batch.ts', find: 'latestNs !== null && at > latestNs', replace: 'latestNs === 0n' },
    ],
  },
  {
    name: 'pages followed that are full of readings yet to come',
    caughtBy: ['farFuture'],
    edits: [
      { file: 'ingest/gap-scan.ts', find: 'page.hasFuture === true && ', replace: 'page.hasFuture === null && ' },
    ],
  },
  {
    name: 'coverage withdrawn only from the devices that are polled meanwhile',
    caughtBy: ['clockFallsForSeconds'],
    edits: [
      {
        file: 'ingest/server-time.ts',
        find: '      const isWithdrawn = withdrawAll(context, store.devices());',
        replace: '      const isWithdrawn = withdrawAll(context, []);',
      },
    ],
  },
  {
    name: 'cursor trusted with ties',
    caughtBy: ['cursorsThatSkip'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: "nearSeen && timeMovesOn(request, readings, oldest.recordedAt) ? 'time' : 'cursor'",
        replace:
          "nearSeen && request.after < 0n && timeMovesOn(request, readings, oldest.recordedAt) ? 'time' : 'cursor'",
      },
    ],
  },
  {
    name: 'chains of cursors without an end followed',
    caughtBy: ['cursorsInACircle'],
    edits: [
      {
        file: 'ingest/judge-page.ts',
        find: 'return isSamePlace || idlePagesWith(request, readings) > MAX_IDLE_PAGES;',
        replace: 'return isSamePlace;',
      },
    ],
  },
  {
    name: 'names of today used',
    caughtBy: ['renamed'],
    edits: [
      {
        file: 'core/device-names.ts',
        find: 'if (record.fromNs > at) break;',
        replace: 'if (record.fromNs > at) void at;',
      },
    ],
  },
  {
    name: '400 counted as proof against a line',
    caughtBy: ['fullDisk'],
    edits: [
      {
        file: 'delivery/resolve.ts',
        find: '  search.unconfirmed = [...search.unconfirmed, ...pending.map((index) => ({ index, refusal, kind: kindAt(index) }))];',
        replace: `  search.unconfirmed = [...search.unconfirmed, ...pending.map((index) => ({ index, refusal, kind: kindAt(index) }))];
  confirm(search, lineAt(search, range.from));`,
      },
    ],
  },
  {
    name: 'lines rejected by their kind while nothing is accepted',
    caughtBy: ['fullDisk'],
    edits: [
      {
        file: 'delivery/resolve.ts',
        find: 'if (refusal.conflict) {',
        replace: 'if (kind !== null) {',
      },
      {
        file: 'delivery/resolve.ts',
        find: "    if (verdict.does !== 'accept') continue;\n    const isAlike",
        replace: '    const isAlike',
      },
    ],
  },
  {
    name: 'all lines kept for a kind that is rejected',
    caughtBy: ['refusedAlerts'],
    edits: [
      {
        file: 'delivery/resolve.ts',
        find: 'if (refusal.conflict) {',
        replace: 'if (refusal.conflict && kind === null) {',
      },
    ],
  },
  {
    name: 'rests of an outage kept when it is over',
    caughtBy: ['shortOutage'],
    edits: [
      {
        file: 'scheduler/planning.ts',
        find: '    liftGaps(parts.context, deviceId, reason);\n    endRest(planner, deviceId);\n',
        replace: '    void [liftGaps, endRest, parts, planner, reason];\n',
      },
    ],
  },
  {
    name: 'Retry-After in milliseconds',
    caughtBy: ['quotaSpent'],
    edits: [
      {
        file: 'api/classify.ts',
        find: 'return clampWait(Math.ceil(waitMs / SECOND_MS) * SECOND_MS);',
        replace: 'return clampWait(Math.ceil(waitMs / SECOND_MS));',
      },
    ],
  },
  {
    name: 'a ledger in memory only',
    caughtBy: ['restartedWithinAMinute'],
    edits: [
      {
        file: 'store/ledger.ts',
        find: 'AND id NOT IN (SELECT value FROM json_each(:except)) ORDER BY at_ms`,\n    ),\n    clear:',
        replace: 'AND id < 0 AND id NOT IN (SELECT value FROM json_each(:except)) ORDER BY at_ms`,\n    ),\n    clear:',
      },
    ],
  },
  {
    name: 'the share ignored by the first request',
    caughtBy: ['restartedWithinAMinute'],
    edits: [
      {
        file: 'api/rate-limiter.ts',
        find: '    turn: () => nextTurn(quota),',
        replace: `    turn: () =>
      serverClock.skewMs() === null ? { atMs: clock.monoMs(), reason: 'rate' } : nextTurn(quota),`,
      },
    ],
  },
  {
    name: 'headers trusted upwards',
    caughtBy: ['generousHeaders'],
    edits: [
      {
        file: 'api/quota.ts',
        find: 'limits: { ...known.limits, seen: limit }',
        replace: 'limits: { ...known.limits, minute: limit, seen: limit }',
      },
      {
        file: 'api/quota.ts',
        find: '    if (minute) windows = readMinute(windows, sample, { ...context, events });',
        replace: '    void readMinute;',
      },
    ],
  },
  {
    name: 'a recheck that counts a page as read before it is committed',
    caughtBy: ['recheckAfterKills'],
    edits: [
      {
        file: 'ingest/recheck.ts',
        find: '      const page = await rereadPage(context, { deviceId, range }, signal);',
        replace: `      save(deviceId, requested.get(deviceId) ?? range, subtract(unread(deviceId), [range]));
      const page = await rereadPage(context, { deviceId, range }, signal);`,
      },
    ],
  },
  {
    name: 'a page that its first part covers',
    caughtBy: ['killedBetweenParts'],
    edits: [
      {
        file: 'ingest/commit.ts',
        find: 'commitJudged(context, { ...page, reply, readings, covers: null }).newReadings;',
        replace: 'commitJudged(context, { ...page, reply, readings }).newReadings;',
      },
    ],
  },
  {
    name: 'a page of many values committed at once',
    caughtBy: ['committedInParts'],
    edits: [
      {
        file: 'ingest/commit.ts',
        find: 'if (values >= VALUES_AT_ONCE) {',
        replace: 'if (values < 0 * VALUES_AT_ONCE) {',
      },
    ],
  },
  {
    name: 'a state made behind a link to nowhere',
    caughtBy: ['linkedToNowhere'],
    edits: [
      {
        file: 'store/open/database.ts',
        find: '    for (const name of [LOCK_FILE, STATE_FILE]) requireTarget(resolve(directory, name));\n',
        replace: '    void [requireTarget, resolve];\n',
      },
    ],
  },
];
