/**
 * `tidemark init`: asks for the address of the API, the key, the database and the history, tries each answer at once,
 * and writes the configuration and the files of the secrets.
 *
 * Every answer can be given by a flag, so it also runs without a terminal. Secrets come from a file, standard input or
 * the environment, never from the command line. Nothing is written before everything works.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { proxyVariable, reach } from '../../api/reach.ts';
import { realClock } from '../../app/real-clock.ts';
import { openTerminalOutput, type ProcessPorts } from '../../app/terminal.ts';
import { withQuestions } from '../../app/with-sync.ts';
import type { InitCommand } from '../../cli/command.ts';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { DEFAULT_FILE } from '../../config/sources.ts';
import { apiUrl, baseUrl, history, isShort, SHORT_TOKEN, Unfit } from '../../config/values.ts';
import { type Advice, ApiFault, refusalText, UserError } from '../../core/faults.ts';
import { DESTINATION_NAMES } from '../../core/lines/dialect.ts';
import type { DestinationFacts } from '../../core/ports.ts';
import { createScrub, type Secret } from '../../core/secret.ts';
import { capitalized, counted, duration, plainText } from '../../core/text.ts';
import { nsToMs, SECOND_MS } from '../../core/time.ts';
import { dedupAdvice, missingAdvice, probeDestination, requestKind, retentionAdvice } from '../../influx/probe.ts';
import { wantedFrom } from '../../ingest/wanted-range.ts';
import { STATE_FILE } from '../../store/open/database.ts';
import { fetchAccount } from '../shared/command.ts';
import {
  createPrompter,
  type FoundSecret,
  type Init,
  inOwnNames,
  inputFault,
  listenOf,
  requireNew,
  retryUntilValid,
  secretOf,
  textFor,
} from './prompt.ts';
import {
  configText,
  type InitDatabase,
  KEY_FILE,
  type NewWorkspace,
  TOKEN_FILE,
  WORKSPACE_FOLDERS,
  type WorkspaceFiles,
  workspaceFiles,
  writeFiles,
} from './write.ts';

/**
 * Asks for the settings, tries them and writes the configuration.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and what to do
 */
export async function runInitCommand(command: InitCommand, ports: ProcessPorts): Promise<number> {
  using prompter = createPrompter(ports.stdin, (text) => ports.stderr.write(text), ports.signal);
  const secrets: Secret[] = [];
  const scrub = createScrub(secrets);
  const init: Init = { command, ports, prompter, secrets, print: (text) => ports.stderr.write(`${scrub(text)}\n`) };
  if (command.workspace !== null) return await initWorkspace(init, command.workspace);
  const file = command.configFile ?? DEFAULT_FILE;
  const folder = resolve(dirname(file), 'secrets');
  const [keyPath, tokenPath] = [join(folder, KEY_FILE), join(folder, TOKEN_FILE)];
  await requireNew(init, [file]);
  const page = await listenOf(init);
  const api = await promptApi(init);
  const database = await promptDatabase(init, api);
  const wanted = await promptHistory(init, database);
  const keyFile = api.key.file ?? keyPath;
  const token = database?.token ?? null;
  const tokenFile = token === null ? null : (token.file ?? tokenPath);
  const written = [
    ...(api.key.file === null ? [{ path: keyPath, text: `${api.key.text}\n` }] : []),
    ...(token !== null && token.file === null ? [{ path: tokenPath, text: `${token.text}\n` }] : []),
    {
      path: file,
      text: configText({
        apiUrl: api.url,
        keyFile,
        database: database === null ? null : { ...database, tokenFile },
        history: wanted,
        listen: page,
        dataDir: command.dataDir === null ? null : resolve(command.dataDir),
      }),
    },
  ];
  const secretPaths = written.map(({ path }) => path).filter((path) => path !== file);
  await requireNew(init, secretPaths);
  writeFiles(written);
  const option = command.configFile === null ? '' : ` --config ${quoted(file)}`;
  ports.print(
    `${written.map(({ path }) => `Wrote ${path}\n`).join('')}\nCheck it:  ${commandLine(`--check${option}`)}\nStart it:  ${commandLine(option.trim())}\n`,
  );
  return 0;
}

/** The command as it is typed here: a checkout runs the sources through npm, an installation the built program. */
function commandLine(flags: string): string {
  if (!import.meta.filename.endsWith('.ts')) return flags === '' ? 'tidemark' : `tidemark ${flags}`;
  return flags === '' ? 'npm start' : `npm start -- ${flags}`;
}

/** Writes what one more workspace needs in Compose, systemd or Kubernetes. */
async function initWorkspace(init: Init, { name, target }: NonNullable<InitCommand['workspace']>): Promise<number> {
  const { command, ports } = init;
  const folder = command.configFile ?? WORKSPACE_FOLDERS[target];
  const filesOf = (answers: Omit<NewWorkspace, 'name' | 'target' | 'folder'>): WorkspaceFiles =>
    workspaceFiles({ name, target, folder, ...answers });
  const none = { apiUrl: 'x', key: '', database: null, token: '', history: 'x', listen: null };
  await requireNew(
    init,
    filesOf(none).own.map(({ path }) => path),
  );
  const page = await listenOf(init);
  const api = await promptApi(init);
  // The database of compose.yaml is there; that of a cluster cannot be reached from everywhere.
  const database = target === 'compose' ? null : await promptDatabase(init, api, target === 'kubernetes');
  const files = filesOf({
    apiUrl: api.url,
    key: api.key.text,
    database,
    token: database?.token?.text ?? null,
    history: await promptHistory(init, database, target === 'kubernetes'),
    listen: page,
  });
  writeFiles([...files.own, ...files.shared]);
  const written = files.own.map(({ path }) => `Wrote ${path}\n`);
  const changed = files.shared.map(({ path }) => `Changed ${path}\n`);
  for (const advice of files.warnings ?? []) warn(init, advice);
  const next = `Database:  ${files.database}\nStart it:  ${files.start}\n${files.first}`;
  ports.print(`${[...written, ...changed].join('')}\n${next}`);
  return 0;
}

/** A path for a shell. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

/** The API as it was answered and tried. */
interface TriedApi {
  readonly url: string;
  readonly key: FoundSecret;
}

const CONNECT_WITHIN_MS = 10 * SECOND_MS;

/** In the place of the key before it is asked for; it is not sent. */
const UNKNOWN_KEY: FoundSecret = { text: 'not-asked-for-yet', file: null };

async function promptApi(init: Init): Promise<TriedApi> {
  const { command, print } = init;
  const url = await retryUntilValid(init, async (isFirst) => {
    const found = await textFor(init, {
      flag: '--api-url',
      given: isFirst ? command.apiUrl : null,
      question: 'Address of the API, ending in /external/v1: ',
      parse: apiUrl,
    });
    await requireReached(init, found);
    return found;
  });
  const key = await retryUntilValid(init, async (isFirst) => {
    const found = await secretOf(init, {
      flag: '--api-key-file',
      file: isFirst ? command.apiKeyFile : null,
      variable: isFirst ? 'TIDEMARK_API_KEY' : '',
      question: 'Workspace API key (not shown): ',
    });
    if (found.text === '')
      throw new UserError(
        'An API key is required: give --api-key-file FILE (- reads standard input) or set TIDEMARK_API_KEY.',
        2,
      );
    print(await tryKey(init, { url, key: found }));
    return found;
  });
  return { url, key };
}

/**
 * Tests the connection to the API before a key is asked for.
 *
 * @throws UserError (exit 1) if it cannot be reached
 */
async function requireReached(init: Init, url: string): Promise<void> {
  const { api, proxies } = configOf(init, { url, key: UNKNOWN_KEY }, null);
  // Through a proxy, the request with the key is the test.
  if (proxyVariable(url, proxies) !== null) return;
  const { name, connection, tls } = await reach({ url, ca: api.ca, timeoutMs: CONNECT_WITHIN_MS }, init.ports.signal);
  const failed = [name, connection, tls].find((step) => step?.ok === false);
  if (failed?.ok === false)
    throw new UserError(`The API cannot be reached: ${inOwnNames(init, failed.why.message)}.`, 1);
}

/**
 * The configuration as it would be read, for the tries.
 *
 * @throws UserError (exit 78) with every mistake
 */
function configOf(
  { command, ports }: Init,
  { url, key }: TriedApi,
  database: Omit<TriedDatabase, 'facts'> | null,
): Config {
  const others = Object.entries(ports.environment).filter(
    ([name]) => !name.startsWith('TIDEMARK_') || name.endsWith('_CA_FILE'),
  );
  const environment = {
    ...Object.fromEntries(others),
    TIDEMARK_API_URL: url,
    TIDEMARK_API_KEY: key.text,
    ...(command.dataDir === null ? {} : { TIDEMARK_DATA_DIR: command.dataDir }),
    ...(database === null
      ? {}
      : {
          TIDEMARK_INFLUX_URL: database.url,
          TIDEMARK_INFLUX_TOKEN: database.token?.text ?? '',
          TIDEMARK_INFLUX_ORG: database.org,
          TIDEMARK_INFLUX_BUCKET: database.bucket,
          TIDEMARK_INFLUX_KIND: database.bucket === '' ? 'victoriametrics' : 'auto',
        }),
  };
  const noFile = (): never => {
    throw Object.assign(new Error('the file does not exist'), { code: 'ENOENT' });
  };
  const readFile = (path: string): string => (path === DEFAULT_FILE ? noFile() : ports.readFile(path));
  return loadConfig({ file: null, environment, readFile, nowMs: realClock.nowMs() }).config;
}

/**
 * Requests the account.
 *
 * @returns the access that the key has.
 * @throws UserError (exit 77) if the key is refused
 */
async function tryKey(init: Init, api: TriedApi): Promise<string> {
  const whole = configOf(init, api, null);
  // Nothing is written before every answer works: without a state of this workspace, a temporary one counts the
  // requests.
  const hasState = init.command.workspace === null && existsSync(join(whole.dataDir, STATE_FILE));
  const temporary = hasState ? null : mkdtempSync(join(tmpdir(), 'tidemark-init-'));
  const config = { ...whole, dataDir: temporary ?? whole.dataDir };
  const log = { level: 'error', format: 'pretty' } as const;
  const terminal = openTerminalOutput({ ports: init.ports, log, level: null, secrets: init.secrets });
  try {
    const account = await withQuestions({ config, terminal }, async ({ context }) => {
      const { signal } = init.ports;
      return await fetchAccount(context, signal);
    });
    if (account === null) return 'The key is valid, but does not have the scope account:read.';
    const { workspaceId, name, devices } = account;
    const count = devices === null ? '' : ` (${counted(devices, 'device')})`;
    return `The key is valid for workspace ${plainText(name ?? workspaceId, 80)}${count}.`;
  } catch (error) {
    throw error instanceof ApiFault ? untriedKey(init, error) : error;
  } finally {
    if (temporary !== null) rmSync(temporary, { recursive: true, force: true });
  }
}

/** The error of a key that was not accepted (exit 77), or of an account that could not be read (exit 1). */
function untriedKey(init: Init, fault: ApiFault): UserError {
  if (fault.kind !== 'unauthorized' && fault.kind !== 'no-api-access') {
    return new UserError(`The request for the account failed: ${inOwnNames(init, fault.message)}.`, 1);
  }
  const useKey = init.prompter.isTerminal ? 'enter it here' : 'give its file by --api-key-file';
  return new UserError(`${capitalized(refusalText(fault, useKey))}.`, 77);
}

/** The database as it was answered. */
interface TriedDatabase extends Omit<InitDatabase, 'tokenFile'> {
  readonly token: FoundSecret | null;
  /** The facts that it has shown of itself; `null` where it could not be reached. */
  readonly facts: DestinationFacts | null;
}

/**
 * @param isElsewhere the database may be reachable only from where the daemon will run: a missing answer is reported,
 * not refused
 */
async function promptDatabase(init: Init, api: TriedApi, isElsewhere = false): Promise<TriedDatabase | null> {
  const { command, prompter } = init;
  return await retryUntilValid(init, async (isFirst) => {
    const typed = createTyped(init, isFirst);
    const url = await typed(command.influxUrl, `Address of InfluxDB or VictoriaMetrics ${withoutText(isElsewhere)}: `);
    if (url === NO_DATABASE) return null;
    if (url === '') return isElsewhere ? await ofBase(init, isFirst) : null;
    requireBaseUrl(init, url, isFirst);
    const isVictoria = prompter.isTerminal && (await answersAsVictoria(init, api, { url, isElsewhere }));
    if (isVictoria) init.print('VictoriaMetrics answers: it needs neither a bucket nor an organization.');
    const bucket = isVictoria
      ? ''
      : await typed(command.influxBucket, 'Bucket, or database/retention-policy (empty for VictoriaMetrics): ');
    const org = isVictoria
      ? ''
      : await typed(command.influxOrg, 'Organization (only for InfluxDB 2, which requires it): ');
    const database = { url, bucket, org, token: await promptToken(init, isFirst, url) };
    const facts = await tryDatabase(init, api, database).catch((error: unknown) => {
      if (!isElsewhere || !(error instanceof UserError) || error.exitCode !== 1) throw error;
      init.print(
        `${error.message} This machine cannot reach the database; the daemon may reach it from where it runs.`,
      );
      return null;
    });
    return { ...database, facts };
  });
}

/** Gives an answer of the command line at the first attempt, else one of the terminal; empty for none. */
function createTyped({ prompter }: Init, isFirst: boolean) {
  return async (given: string | null, question: string): Promise<string> =>
    (isFirst ? given : null) ?? (prompter.isTerminal ? await prompter.ask(question) : '');
}

function withoutText(isElsewhere: boolean): string {
  return isElsewhere ? '(empty: that of the base; none: only the archive)' : '(empty: no database, only the archive)';
}

/** The value of `--influx-url` for no database. */
const NO_DATABASE = 'none';

/** The database of the base, with the bucket, the organization and the token of this workspace, if they are given. */
async function ofBase(init: Init, isFirst: boolean): Promise<TriedDatabase> {
  const { influxBucket, influxOrg } = init.command;
  const token = await promptToken(init, isFirst, '');
  return { url: '', bucket: influxBucket ?? '', org: influxOrg ?? '', token, facts: null };
}

async function promptToken(init: Init, isFirst: boolean, databaseUrl: string): Promise<FoundSecret | null> {
  const found = await secretOf(init, {
    flag: '--influx-token-file',
    file: isFirst ? init.command.influxTokenFile : null,
    variable: isFirst ? 'TIDEMARK_INFLUX_TOKEN' : '',
    question: 'Token, or user:password (not shown; empty: none): ',
    databaseUrl,
  });
  if (found.text === '') return null;
  if (isShort(found.text)) warn(init, { what: SHORT_TOKEN.what, remedy: `${capitalized(SHORT_TOKEN.remedy)}.` });
  return found;
}

/** @throws UserError (exit 2) if the address of the database is none */
function requireBaseUrl({ command }: Init, url: string, isFirst: boolean): void {
  const fitting = baseUrl(url);
  if (!(fitting instanceof Unfit)) return;
  throw new UserError(inputFault(isFirst ? command.influxUrl : null, '--influx-url', fitting), 2);
}

/**
 * Asks a database for its kind, without a token.
 *
 * @throws UserError (exit 1) if it cannot be reached, unless it is elsewhere
 */
async function answersAsVictoria(
  init: Init,
  api: TriedApi,
  { url, isElsewhere }: { readonly url: string; readonly isElsewhere: boolean },
): Promise<boolean> {
  // The bucket is not known yet; the kind does not depend on it.
  const { influx, proxies } = configOf(init, api, { url, bucket: 'unknown', org: '', token: null });
  if (influx === null) return false;
  const options = { ...influx, name: 'influx', ca: influx.ca ?? undefined, proxies };
  const answer = await requestKind(options, init.ports.signal);
  if (answer.kind === 'later' && answer.status === undefined && !isElsewhere) {
    throw new UserError(`The database cannot be reached: ${inOwnNames(init, answer.message)}.`, 1);
  }
  return answer.kind === 'known' && answer.server === 'victoriametrics';
}

/**
 * Sends a write without points.
 *
 * @throws UserError if the database would not accept points
 */
async function tryDatabase(
  init: Init,
  api: TriedApi,
  database: Omit<TriedDatabase, 'facts'>,
): Promise<DestinationFacts | null> {
  const { influx, proxies } = configOf(init, api, database);
  if (influx === null) return null;
  const options = { ...influx, name: 'influx', ca: influx.ca ?? undefined, proxies, point: null };
  const facts = await probeDestination(options, init.ports.signal);
  const { kind, version, write } = facts;
  // InfluxDB 3 and some proxies do not answer an empty write.
  const isUnclear = write.kind === 'later' && (write.status === 400 || write.status === 422);
  if (write.kind !== 'accepted' && !isUnclear) {
    const hint = write.kind === 'blocked' ? ` ${capitalized(inOwnNames(init, write.hint))}.` : '';
    const message = inOwnNames(init, plainText(write.message, 300));
    throw new UserError(`The database does not accept points: ${message}.${hint}`, 1);
  }
  const shownVersion = kind === 'victoriametrics' || version === null ? '' : ` ${version}`;
  const name = `${DESTINATION_NAMES[kind ?? 'influxdb']}${shownVersion}`;
  if (facts.isMissing) {
    const { what, remedy } = missingAdvice(database.bucket, 'influx.bucket');
    warn(init, { what, remedy: inOwnNames(init, remedy) });
    return facts;
  }
  init.print(
    isUnclear ? `${name} answers; the first write will show whether it accepts points.` : `${name} accepts points.`,
  );
  if (kind === 'victoriametrics') showVictoria(init, facts);
  return facts;
}

/** Shows what a VictoriaMetrics does with points unless it is started with other flags. */
function showVictoria(init: Init, { dedupMs, retentionMs }: DestinationFacts): void {
  warn(init, dedupAdvice(dedupMs));
  if (retentionMs !== null && Number.isFinite(retentionMs)) {
    init.print(`It keeps points for ${duration(retentionMs / SECOND_MS)} (-retentionPeriod).`);
  }
}

function warn({ print }: Init, advice: Advice | null): void {
  if (advice !== null) print(`Warning: ${advice.what}. ${advice.remedy}`);
}

/** @param isOfBase whether a workspace of Kubernetes is written: no answer (`''`) leaves the history to the base. */
async function promptHistory(init: Init, database: TriedDatabase | null, isOfBase = false): Promise<string> {
  const text = await retryUntilValid(init, async (isFirst) => {
    return await textFor(init, {
      flag: '--history',
      given: isFirst ? init.command.history : null,
      question: `History: how far back the first sync reads (30d, a date, or all) [${isOfBase ? 'that of the base' : '30d'}]: `,
      fallback: isOfBase ? '' : '30d',
      parse: (answer, nowMs) => (isOfBase && answer === '' ? answer : history(answer, nowMs)),
    });
  });
  const nowMs = realClock.nowMs();
  const wanted = history(text, nowMs);
  if (!(wanted instanceof Unfit) && database?.facts != null) {
    warn(init, retentionAdvice(database.facts, nowMs - nsToMs(wantedFrom({ history: wanted }, nowMs))));
  }
  return text;
}
