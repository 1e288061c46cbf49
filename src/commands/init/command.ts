/**
 * `tidemark init`: prompts for the address of the API, the key, the database and the history, tests each answer at
 * once, and writes the configuration and the files of the secrets.
 *
 * Every answer can be given by a flag, so it also runs without a terminal. Secrets come from a file, standard input or
 * the environment, never from the command line. Nothing is written before everything works, and no file is replaced
 * unless that was confirmed. The files of secrets, and the configuration, can only be read by their owner (0600, in a
 * directory with 0700).
 */
import { constants, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { CONNECT_WITHIN_MS, probeConnection, proxyVariable } from '../../api/reach.ts';
import { realClock } from '../../app/real-clock.ts';
import { createPrompter, openTerminalOutput, type ProcessPorts } from '../../app/terminal.ts';
import { withRequestsOnly } from '../../app/with-sync.ts';
import { type InitCommand, OF_INIT } from '../../cli/command.ts';
import { DEFAULT_FILE, sectionIn, settingsIn } from '../../config/sources.ts';
import { apiUrl, baseUrl, history, InvalidText, type ParseAt, listen as pageAddress } from '../../config/values.ts';
import { type Advice, ApiFault, codeOf, type RequestError, rejectionAdvice, UserError } from '../../core/faults.ts';
import { createScrub, type Secret } from '../../core/secret.ts';
import { capitalized, counted, plainText, sentence, shellText } from '../../core/text.ts';
import { nsToMs } from '../../core/time.ts';
import { retentionAdvice } from '../../influx/facts.ts';
import { wantedFrom } from '../../ingest/wanted-range.ts';
import { requireFree } from '../../observe/server.ts';
import { STATE_FILE } from '../../store/open/database.ts';
import { replaceFile } from '../../store/open/new-file.ts';
import { fetchAccount, planHistoryAdvice } from '../shared/command.ts';
import {
  type FoundSecret,
  type Init,
  inputFault,
  loadTriedConfig,
  obtainSecret,
  obtainText,
  offered,
  ownNames,
  printWarning,
  promptDatabase,
  retryUntilValid,
  type TriedApi,
  type TriedDatabase,
} from './answers.ts';
import {
  type InitDatabase,
  KEY_FILE,
  LISTEN,
  type NewFile,
  type NewWorkspace,
  namesIn,
  readOrEmpty,
  TOKEN_FILE,
  WORKSPACE_FOLDERS,
  type WorkspaceFiles,
  workspaceFiles,
} from './workspace.ts';

/**
 * Prompts for the settings, tests them and writes the configuration.
 *
 * @returns the exit code.
 * @throws UserError with the exit code and the remedy
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
  const page = await obtainListen(init);
  const api = await promptApi(init, settingIn([file], 'api.url', apiUrl));
  const answered = await promptDatabase(init, api, { before: settingIn([file], 'influx.url', baseUrl) });
  const kept = answered === 'kept' ? keptSection(init, file) : '';
  const database = answered === 'kept' ? null : answered;
  const before = settingIn([file], 'sync.history', history);
  const wanted = await promptHistory(init, { key: api.key, database }, { before });
  const token = database?.token ?? null;
  const tokenFile = token === null ? null : (token.file ?? tokenPath);
  const written = [
    ...(api.key.file === null ? [{ path: keyPath, text: `${api.key.text}\n` }] : []),
    ...(token !== null && token.file === null ? [{ path: tokenPath, text: `${token.text}\n` }] : []),
    {
      path: file,
      isYaml: true,
      text: configText({
        apiUrl: api.url,
        keyFile: api.key.file ?? keyPath,
        database: database === null ? null : { ...database, tokenFile },
        kept,
        history: wanted,
        listen: page,
        password: /^listen_password(?:_file)?:.*$/m.exec(readOrEmpty(file))?.[0] ?? null,
        dataDir: command.dataDir === null ? null : resolve(command.dataDir),
      }),
    },
  ];
  const secretPaths = written.flatMap(({ path, text }) => (path === file || readOrEmpty(path) === text ? [] : [path]));
  await requireNew(init, secretPaths);
  writeFiles(init, written);
  const option = command.configFile === null ? '' : ` --config ${shellText(file)}`;
  ports.print(
    `${written.map(({ path }) => `Wrote ${path}\n`).join('')}\nCheck it:  ${commandLine(`--check${option}`)}\nStart it:  ${commandLine(option.trim())}\n`,
  );
  return 0;
}

/** The section for the database in the file that is replaced, which stays; empty if there is none. */
function keptSection({ print, prompter: { isTerminal } }: Init, file: string): string {
  const section = sectionIn(readOrEmpty(file), 'influx');
  const remedy = isTerminal ? 'To remove it, run init again and answer none.' : 'To remove it, give --influx-url none.';
  if (section !== '') print(`The section influx of ${file} stays. ${remedy}`);
  return section;
}

/** A setting of the replaced files, offered as the answer; `null` if there is none that is valid. */
function settingIn(files: readonly string[], name: string, parse: ParseAt<unknown>): string | null {
  const [section = '', key = ''] = name.split('.');
  const variable = new RegExp(`^ *(?:- )?["']?TIDEMARK_${section}_${key}[=:] ?["']?([^\\s"']+)`, 'im');
  const line = new RegExp(`^ {2}${key}: ["']?([^\\s"']+)`, 'm');
  const texts = files.filter((file) => !isUnfilled(file)).map(readOrEmpty);
  const found = texts.map((text) => (variable.exec(text) ?? line.exec(sectionIn(text, section)))?.[1]);
  const first = found.find((text) => text !== undefined);
  return first === undefined || parse(first, realClock.nowMs()) instanceof InvalidText ? null : first;
}

/** The command to type here: a checkout runs the sources through npm, an installation the built program. */
function commandLine(flags: string): string {
  if (!import.meta.filename.endsWith('.ts')) return flags === '' ? 'tidemark' : `tidemark ${flags}`;
  return flags === '' ? 'npm start' : `npm start -- ${flags}`;
}

/** Writes the files for one more workspace in Compose, systemd or Kubernetes. */
async function initWorkspace(init: Init, { name, target }: NonNullable<InitCommand['workspace']>): Promise<number> {
  const { command, ports } = init;
  const folder = command.configFile ?? WORKSPACE_FOLDERS[target];
  const filesOf = (answers: Omit<NewWorkspace, 'name' | 'target' | 'folder'>): WorkspaceFiles =>
    workspaceFiles({ name, target, folder, ...answers });
  const none = { apiUrl: 'x', key: '', database: null, token: '', isTried: false, history: 'x', listen: null };
  const paths = filesOf({ ...none, keepsDatabase: false }).own.map(({ path }) => path);
  await requireNew(init, paths);
  const before = settingIn(paths, 'sync.history', history);
  const page = await obtainListen(init);
  const api = await promptApi(init, settingIn(paths, 'api.url', apiUrl));
  // Compose uses the database of compose.yaml. The database of a cluster cannot be reached from everywhere.
  const place = { isElsewhere: target === 'kubernetes', before: settingIn(paths, 'influx.url', baseUrl) };
  const answered = target === 'compose' ? null : await promptDatabase(init, api, place);
  const database = answered === 'kept' ? null : answered;
  const files = filesOf({
    apiUrl: api.url,
    key: api.key.text,
    database,
    keepsDatabase: answered === 'kept' && !isUnfilled(paths[0] ?? ''),
    token: database?.token?.text ?? null,
    isTried: database?.facts != null,
    history: await promptHistory(init, { key: api.key, database }, { before, isOfBase: target === 'kubernetes' }),
    listen: page,
  });
  writeFiles(init, [...files.own, ...files.shared]);
  const written = files.own.map(({ path }) => `Wrote ${path}\n`);
  const changed = files.shared.map(({ path }) => `Changed ${path}\n`);
  for (const advice of keyWarnings({ name, target, folder, key: api.key.text })) printWarning(init, advice);
  const next = `Database:  ${files.database}\n${firstText(files.first)}Start it:  ${files.start}\n`;
  ports.print(`${[...written, ...changed].join('')}\n${next}`);
  return 0;
}

/** The steps before the start, numbered if there are several. */
function firstText(steps: readonly string[]): string {
  const rows = steps.length === 1 ? steps : steps.map((step, index) => `${index + 1}. ${step}`);
  return rows.map((row, index) => `${index === 0 ? 'First:     ' : ' '.repeat(11)}${row}\n`).join('');
}

/** A placeholder for the key before the prompt; it is never sent. */
const UNKNOWN_KEY: FoundSecret = { text: 'not-asked-for-yet', file: null };

/** A key that the API has accepted, and `history_max_days` of its plan; `null` if there is none, or it is unknown. */
type AcceptedKey = FoundSecret & { readonly historyMaxDays: number | null };

type Tried = { readonly key: AcceptedKey; readonly database: TriedDatabase | null };

/** Prompts for the address and the key, and for the address again if a request with the key shows that it is wrong. */
async function promptApi(init: Init, before: string | null): Promise<TriedApi & { readonly key: AcceptedKey }> {
  return await retryUntilValid(init, async (isFirst) => {
    const url = await obtainText(init, {
      flag: '--api-url',
      given: isFirst ? init.command.apiUrl : null,
      question: `Address of the API, ending in /external/v1${offered(before)}: `,
      // Without a terminal, the flag is required.
      fallback: init.prompter.isTerminal ? before : null,
      parse: apiUrl,
    });
    await requireReached(init, url);
    const key = await promptKey(init, url);
    if (key instanceof UserError) throw key;
    return { url, key };
  });
}

/** Prompts for the key. Returns an error if the key may be right, but the API does not answer as expected. */
async function promptKey(init: Init, url: string): Promise<AcceptedKey | UserError> {
  return await retryUntilValid(init, async (isFirst) => {
    const found = await obtainSecret(init, {
      flag: '--api-key-file',
      file: isFirst ? init.command.apiKeyFile : null,
      variable: isFirst ? 'TIDEMARK_API_KEY' : '',
      question: 'Workspace API key (not shown): ',
    });
    if (found.text === '') {
      const how = init.prompter.isTerminal
        ? 'type or paste it here'
        : 'give --api-key-file FILE (- reads standard input) or set TIDEMARK_API_KEY';
      throw new UserError('An API key is required', `${how}.`, 2, { joint: ':' });
    }
    const historyMaxDays = await tryKey(init, { url, key: found });
    return historyMaxDays instanceof UserError ? historyMaxDays : { ...found, historyMaxDays };
  });
}

/**
 * Tests the connection to the API before it prompts for a key.
 *
 * @throws UserError (exit 1) if it cannot be reached
 */
async function requireReached(init: Init, url: string): Promise<void> {
  const { api, proxies } = loadTriedConfig(init, { url, key: UNKNOWN_KEY }, null);
  // Through a proxy, the request with the key is the test.
  if (proxyVariable(url, proxies) !== null) return;
  const options = { url, ca: api.ca, timeoutMs: CONNECT_WITHIN_MS };
  const { name, connection, tls } = await probeConnection(options, init.ports.signal);
  const failed = [name, connection, tls].find((step) => step?.ok === false);
  if (failed?.ok === false) throw apiError(init, 'The API cannot be reached', failed.why);
}

/** The error (exit 1) of a request to the API that failed. */
function apiError(init: Init, problem: string, error: RequestError): UserError {
  const what = `${problem}: ${error.what}`;
  const remedy = error.remedyText(ownNames(init).api);
  return remedy === null ? new UserError(sentence(what), null, 1) : new UserError(what, `${remedy}.`, 1);
}

/**
 * Requests the account, and prints the access that the key has.
 *
 * @returns `history_max_days` of the plan, or an error if the API does not answer as expected.
 * @throws UserError (exit 77) if the API rejects the key
 */
async function tryKey(init: Init, api: TriedApi): Promise<number | null | UserError> {
  const whole = loadTriedConfig(init, api, null);
  // Nothing is written before every answer works: without a state, a temporary one counts the requests.
  const hasState = init.command.workspace === null && existsSync(join(whole.dataDir, STATE_FILE));
  const temporary = hasState ? null : mkdtempSync(join(tmpdir(), 'tidemark-init-'));
  const config = { ...whole, dataDir: temporary ?? whole.dataDir };
  const log = { level: 'error', format: 'pretty' } as const;
  const terminal = openTerminalOutput({ ports: init.ports, log, level: null, secrets: init.secrets });
  try {
    const account = await withRequestsOnly({ config, terminal }, async ({ context }) => {
      return await fetchAccount(context, init.ports.signal);
    });
    const count = account?.devices == null ? '' : ` (${counted(account.devices, 'device')})`;
    init.print(
      account === null
        ? 'The key is valid, but does not have the scope account:read. Give the key that scope, or set workspace.id before the first start.'
        : `The key is valid for workspace ${plainText(account.name ?? account.workspaceId, 80)}${count}.`,
    );
    return account?.plan.historyMaxDays ?? null;
  } catch (error) {
    const fault = error instanceof ApiFault ? untriedKey(init, error) : error;
    if (fault instanceof UserError && fault.exitCode === 1) return fault;
    throw fault;
  } finally {
    if (temporary !== null) rmSync(temporary, { recursive: true, force: true });
  }
}

/** The error for a key that was not accepted (exit 77), or an account that could not be read (exit 1). */
function untriedKey(init: Init, fault: ApiFault): UserError {
  if (fault.kind !== 'unauthorized' && fault.kind !== 'no-api-access')
    return apiError(init, 'The request for the account failed', fault);
  const { isTerminal } = init.prompter;
  const { what, remedy } = rejectionAdvice(fault, isTerminal ? 'enter it here' : 'give its file by --api-key-file');
  const again = isTerminal ? ', then enter the key here' : ', then run init again';
  return new UserError(capitalized(what), `${remedy}${fault.kind === 'unauthorized' ? '' : again}.`, 77);
}

/** Prompts for the history. If `isOfBase` (a workspace of Kubernetes), an empty answer leaves it to the base. */
async function promptHistory(
  init: Init,
  { key, database }: Tried,
  { before, isOfBase = false }: { readonly before: string | null; readonly isOfBase?: boolean },
): Promise<string> {
  const fallback = before ?? (isOfBase ? '' : '30d');
  const text = await retryUntilValid(init, async (isFirst) => {
    return await obtainText(init, {
      flag: '--history',
      given: isFirst ? init.command.history : null,
      question: `History: how far back the first sync reads (30d, a date, or all) [${fallback || 'that of the Kustomize base'}]: `,
      fallback,
      parse: (answer, nowMs) => (isOfBase && answer === '' ? answer : history(answer, nowMs)),
    });
  });
  const nowMs = realClock.nowMs();
  const wanted = history(text, nowMs);
  if (wanted instanceof InvalidText) return text;
  printWarning(init, planHistoryAdvice(wanted, { maxDays: key.historyMaxDays, nowMs }));
  const wantedMs = nowMs - nsToMs(wantedFrom({ history: wanted }, nowMs));
  printWarning(init, database?.facts == null ? null : retentionAdvice(database.facts, wantedMs));
  return text;
}

/** The variables that config/tidemark.env.example sets, as install.sh writes it for a workspace. */
const EXAMPLE: readonly string[] = [
  'TIDEMARK_API_URL=https://api.example.com/external/v1',
  'TIDEMARK_API_KEY_FILE=/etc/tidemark/NAME/tidemark_api_key',
  'TIDEMARK_INFLUX_URL=http://influxdb:8086',
  'TIDEMARK_INFLUX_ORG=my-org',
  'TIDEMARK_INFLUX_BUCKET=telemetry',
  'TIDEMARK_INFLUX_TOKEN_FILE=/etc/tidemark/NAME/tidemark_influx_token',
];

/** Whether a file is empty, or has the unedited example of install.sh. */
function isUnfilled(path: string): boolean {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return false;
  }
  const lines = text
    .split('\n')
    .map((line) => line.trim().replace(/(?<=_FILE=\/etc\/tidemark\/)[^/]+/, 'NAME'))
    .filter((line) => line !== '' && !line.startsWith('#') && !LISTEN.test(line));
  return text.trim() === '' || lines.join('\n') === EXAMPLE.join('\n');
}

/**
 * Prompts whether existing files may be replaced.
 *
 * @throws UserError (exit 1) if they may not
 */
async function requireNew({ command, prompter }: Init, paths: readonly string[]): Promise<void> {
  const existing = paths.filter((path) => existsSync(path) && !isUnfilled(path));
  if (existing.length === 0 || command.overwrite) return;
  const found = `Already there: ${existing.map((path) => plainText(path, 200)).join(', ')}`;
  if (!prompter.isTerminal)
    throw new UserError(`${found}. Nothing was written`, '--overwrite replaces existing files.', 1, { joint: ';' });
  const answer = await prompter.prompt(`${found}. Replace? [y/N] `);
  if (!/^y(?:es)?$/i.test(answer))
    throw new UserError(
      'Nothing was written',
      'To keep the existing files, give --config in another directory; in the same one, the secrets are replaced too.',
      1,
    );
}

/**
 * The address of the page, if a flag gives one.
 *
 * @throws UserError (exit 2) if it is invalid, (exit 1) if it cannot be opened
 */
async function obtainListen(init: Init): Promise<string | null> {
  const { listen: given, overwrite } = init.command;
  if (given === null) return null;
  const address = pageAddress(given);
  if (address instanceof InvalidText) throw inputFault(given, '--listen', address);
  // If files are replaced, the daemon that uses them may be running.
  if (!overwrite) await requireFree(address, { short: '--listen', inAdvice: '--listen' });
  return given;
}

/** The contents of the configuration file. Each secret is in a file of its own. */
interface InitConfig {
  readonly apiUrl: string;
  readonly keyFile: string;
  readonly database: InitDatabase | null;
  /** The section `influx` that stays if there is no `database`; otherwise empty. */
  readonly kept: string;
  readonly history: string;
  /** `null` leaves the key out, so that the default applies. */
  readonly listen: string | null;
  /** The line for the password of the page in the file that is replaced. */
  readonly password: string | null;
  /** `null` leaves the key out, so that the default applies. */
  readonly dataDir: string | null;
}

/** The text of the configuration file, as YAML. */
function configText({ apiUrl, keyFile, database, kept, history, listen, password, dataDir }: InitConfig): string {
  const line = (key: string, value: string | null, indent = '  '): string =>
    value === null || value === '' ? '' : `${indent}${key}: ${JSON.stringify(value)}\n`;
  const api = `api:\n${line('url', apiUrl)}${line('key_file', keyFile)}`;
  const influx =
    database === null
      ? kept
      : `influx:\n${line('url', database.url)}${line('token_file', database.tokenFile)}${line('org', database.org)}${line('bucket', database.bucket)}${line('kind', database.kind)}`;
  const page = `${line('listen', listen, '')}${password === null ? '' : `${password}\n`}`;
  return `# Written by tidemark init. docs/configuration.md describes every key.\n${api}${influx}sync:\n${line('history', history)}${page}${line('data_dir', dataDir, '')}`;
}

/**
 * Writes all files, and prints which settings of replaced files the new ones do not have.
 *
 * @throws UserError (exit 1) if one cannot be written; it names the file
 */
function writeFiles(init: Init, files: readonly NewFile[]): void {
  for (const file of files) {
    try {
      printWarning(init, keepReplaced(file));
      replaceFile(file);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error;
      const what = `${file.path}: this file cannot be written (${codeOf(error)})`;
      throw new UserError(what, 'Give another path with --config.', 1);
    }
  }
}

/** Keeps a copy of a file that has other settings than those of `init`, unless the new text has them too. */
function keepReplaced({ path, text, isYaml = false }: NewFile): Advice | null {
  if (!isYaml) return null;
  const kept = settingsIn(text);
  const lost = [...settingsIn(readOrEmpty(path))].filter((name) => !kept.has(name) && !OF_INIT.test(name));
  if (lost.length === 0) return null;
  rmSync(`${path}.before`, { force: true });
  copyFileSync(path, `${path}.before`, constants.COPYFILE_EXCL);
  return {
    what: `${path} no longer has these settings: ${plainText(lost.join(', '), 1000)}`,
    remedy: `Copy those that you need from ${path}.before, which is the earlier file.`,
  };
}

/** The warnings about other workspaces with the same key, if their files can be read. */
function keyWarnings(own: Pick<NewWorkspace, 'name' | 'target' | 'folder' | 'key'>): Advice[] {
  const { name, target, folder, key } = own;
  const keys = target === 'compose' ? join(folder, 'secrets') : folder;
  // The key of the first workspace of Compose is next to the folders of the others.
  const others = target === 'compose' ? [{ other: 'home', path: join(keys, KEY_FILE) }] : [];
  for (const other of namesIn(keys)) if (other !== name) others.push({ other, path: join(keys, other, KEY_FILE) });
  return others
    .filter(({ path }) => readOrEmpty(path).trim() === key)
    .map(({ other, path }) => ({
      what: `the workspace "${other}" has the same API key (${path})`,
      remedy:
        'Two daemons would sync the same devices and share one quota. Give each one the key of its own workspace.',
    }));
}
