/**
 * The sources of the answers of `init`: flags, files and the environment first, then a person on a terminal, or the
 * lines of a pipe. A secret is not echoed while it is typed. The answers about the database are tested together.
 */
import { resolve } from 'node:path';
import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts, Prompter } from '../../app/terminal.ts';
import type { InitCommand } from '../../cli/command.ts';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { DEFAULT_FILE } from '../../config/sources.ts';
import {
  baseUrl,
  GUESSABLE_KEY,
  GUESSABLE_SECRET,
  InvalidText,
  isShort,
  isVictoriaPort,
  keyText,
  type ParseAt,
  SHORT_TOKEN,
  secretText,
} from '../../config/values.ts';
import { type Advice, type ExitCode, UserError, withRemedy } from '../../core/faults.ts';
import { DESTINATION_NAMES, type DestinationKind } from '../../core/lines/dialect.ts';
import type { DestinationFacts, WriteAnswer } from '../../core/ports.ts';
import { isGuessable, Secret } from '../../core/secret.ts';
import { capitalized, duration, plainText, sentence } from '../../core/text.ts';
import { SECOND_MS } from '../../core/time.ts';
import { settingNames } from '../../influx/answers.ts';
import { dedupAdvice, missingAdvice } from '../../influx/facts.ts';
import { probeDestination, requestKind } from '../../influx/probe.ts';
import type { InitDatabase } from './workspace.ts';

/** The command line of one `--init`, with its dialogue and the secrets that were typed. */
export interface Init {
  readonly command: InitCommand;
  readonly ports: ProcessPorts;
  readonly prompter: Prompter;
  /** Shows a line to the person, without secrets. */
  readonly print: (text: string) => void;
  readonly secrets: Secret[];
}

/** A secret, and the file that contains it; `null` if that must be written. */
export interface FoundSecret {
  readonly text: string;
  readonly file: string | null;
}

/** Repeats the prompt until an answer works. Without a terminal the first failure ends it. */
export async function retryUntilValid<T>(
  { prompter, print }: Init,
  attempt: (isFirst: boolean) => Promise<T>,
): Promise<T> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await attempt(isFirst);
    } catch (error) {
      if (!(error instanceof UserError) || error.exitCode === 3 || !prompter.isTerminal) throw error;
      print(error.message);
    }
  }
}

const FLAGS_LISTED = 'tidemark help init lists the flags.';

/**
 * A value: from its flag at the first try, otherwise from the person.
 *
 * @throws UserError (exit 2) if it is not acceptable
 */
export async function obtainText<T>(
  { prompter }: Init,
  spec: {
    readonly flag: string;
    readonly given: string | null;
    readonly question: string;
    readonly fallback?: string | null;
    readonly parse: ParseAt<T>;
  },
): Promise<string> {
  const { flag, given, question, fallback, parse } = spec;
  let text = given;
  if (text === null && prompter.isTerminal) text = (await prompter.prompt(question)) || (fallback ?? '');
  text ??= fallback ?? null;
  if (text === null) throw new UserError(`${flag} is required without a terminal`, FLAGS_LISTED, 2, { joint: ':' });
  const value = parse(text, realClock.nowMs());
  if (value instanceof InvalidText) throw inputFault(given, flag, value);
  return text;
}

/** The error (exit 2) for a wrong answer. It names the flag if one gave the answer. */
export function inputFault(given: string | null, flag: string, { reason }: InvalidText): UserError {
  return new UserError(given === null ? `${capitalized(reason)}.` : `${flag}: ${reason}.`, null, 2);
}

/** An error whose remedy is a phrase, or empty. */
function withHint(what: string, hint: string, exitCode: ExitCode): UserError {
  if (hint === '') return new UserError(sentence(what), null, exitCode);
  return new UserError(what, `${hint}.`, exitCode, { joint: ';' });
}

/** The names of settings for a person, because no key exists yet. */
export function ownNames({ prompter: { isTerminal } }: Init) {
  const own = (flag: string, typed: string): string => (isTerminal ? typed : flag);
  const token = own('--influx-token-file', 'the token');
  return {
    api: { url: own('--api-url', 'the address') },
    influx: {
      ...settingNames('influx'),
      url: own('--influx-url', 'the address'),
      org: own('--influx-org', 'the organization'),
      bucket: own('--influx-bucket', 'the bucket'),
      token,
      token_file: token,
      next: own('Correct it and run init again', 'The prompts for the database follow again'),
    },
  };
}

interface SecretSource {
  readonly flag: string;
  readonly file: string | null;
  readonly variable: string;
  readonly question: string;
  /** For a token: the address that it is sent to, and the API key, which must not be sent there. */
  readonly databaseUrl?: string;
  readonly apiKey?: string;
}

const OTHER_VALUE = 'Use another value: only the API may receive the API key.';

/** A secret: from its file or a line of standard input, from the environment, or typed. An empty text for none. */
export async function obtainSecret(init: Init, source: SecretSource): Promise<FoundSecret> {
  const { found, place } = await findSecret(init, source);
  if (found.text === '') return found;
  const isKey = source.apiKey === undefined;
  const checked = isKey ? keyText(found.text) : secretText(found.text, source.databaseUrl);
  if (checked instanceof InvalidText) {
    const { reason, remedy } = checked;
    const what = place === null ? `The secret ${reason}` : `${place}: the secret ${reason}`;
    throw withHint(what, remedy ?? '', 2);
  }
  init.secrets.push(new Secret(checked));
  if (checked === source.apiKey)
    throw new UserError(`${place === null ? 'The token' : `${place}: this`} is the API key`, OTHER_VALUE, 78);
  const accepted = { ...found, text: checked };
  if (!isGuessable(checked)) return accepted;
  const { what, remedy } = isKey ? GUESSABLE_KEY : GUESSABLE_SECRET;
  init.print(`Warning: ${place === null ? '' : `${place}: `}${what}. ${capitalized(remedy)}.`);
  if (place !== null) return accepted;
  const other = await obtainSecret(init, {
    ...source,
    question: 'Type another one (not shown), or press Enter to keep this one: ',
  });
  return other.text === '' ? accepted : other;
}

/** Returns the secret as it was given, and the flag or the variable that gave it; `null` for a typed one. */
async function findSecret(
  { ports, prompter }: Init,
  { flag, file, variable, question }: SecretSource,
): Promise<{ readonly found: FoundSecret; readonly place: string | null }> {
  if (file === '-') return { found: { text: await prompter.line(flag), file: null }, place: flag };
  const path = file ?? ports.environment[`${variable}_FILE`] ?? '';
  if (path !== '') {
    const place = file === null ? `${variable}_FILE` : flag;
    return { found: { text: readSecretFile(ports, place, path), file: resolve(path) }, place };
  }
  const own = ports.environment[variable] ?? '';
  if (own !== '') return { found: { text: own, file: null }, place: variable };
  const text = prompter.isTerminal ? await prompter.prompt(question, { isSecret: true }) : '';
  return { found: { text, file: null }, place: null };
}

function readSecretFile({ readFile }: ProcessPorts, place: string, path: string): string {
  try {
    return readFile(path);
  } catch (error) {
    // The path is not shown: it may be the secret itself, given by mistake.
    const fault = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : 'cannot be read';
    throw new UserError(`${place}: this file ${fault}`, 'Give the path of a file that holds the secret alone.', 2);
  }
}

/** The answers about the API: its address and the key. */
export interface TriedApi {
  readonly url: string;
  readonly key: FoundSecret;
}

/**
 * The configuration as it would be read, for the tests of the answers.
 *
 * @throws UserError (exit 78) with every mistake
 */
export function loadTriedConfig(
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
          TIDEMARK_INFLUX_KIND: database.kind ?? 'auto',
        }),
  };
  const noFile = (): never => {
    throw Object.assign(new Error('the file does not exist'), { code: 'ENOENT' });
  };
  const readFile = (path: string): string => (path === DEFAULT_FILE ? noFile() : ports.readFile(path));
  return loadConfig({ file: null, environment, readFile, nowMs: realClock.nowMs() }).config;
}

/** The answers about the database, and the facts that it has reported. */
export interface TriedDatabase extends Omit<InitDatabase, 'tokenFile'> {
  readonly token: FoundSecret | null;
  /** The facts that it has reported about itself; `null` if it could not be reached. */
  readonly facts: DestinationFacts | null;
}

/**
 * Prompts for the database. With `isElsewhere` it may be reachable only from the machine of the daemon: then a missing
 * answer is reported as a warning, not as an error.
 *
 * @param before the address in the replaced file.
 * @returns `kept` if the database of that file stays with its token; without a terminal also if it has none.
 */
export async function promptDatabase(
  init: Init,
  api: TriedApi,
  { isElsewhere = false, before }: { readonly isElsewhere?: boolean; readonly before: string | null },
): Promise<TriedDatabase | null | 'kept'> {
  const { command, prompter } = init;
  const without = `(${before === null ? 'empty' : NO_DATABASE}: no database, only the archive)${offered(before)}`;
  const question = `Address of InfluxDB or VictoriaMetrics ${isElsewhere ? OF_BASE : without}: `;
  const stays = before === null && prompter.isTerminal ? null : 'kept';
  return await retryUntilValid(init, async (isFirst) => {
    const typed = createTyped(init, isFirst);
    const given = isFirst ? command.influxUrl : null;
    const url = await obtainText(init, { flag: '--influx-url', given, question, fallback: '', parse: urlOrNone });
    if (url === NO_DATABASE) return null;
    if (url === '') return isElsewhere ? await ofBase(init, api, isFirst) : stays;
    const answered = await obtainKind(init, api, { url, isElsewhere, isFirst });
    const isVictoria = answered === 'victoriametrics';
    const bucket = isVictoria ? '' : await typed(command.influxBucket, bucketQuestion(answered));
    const kind = kindToWrite(init, { url, bucket, answered });
    const org = kind === 'victoriametrics' ? '' : await typed(command.influxOrg, ORG_QUESTION);
    const database = { url, bucket, org, kind, token: await promptToken(init, isFirst, { url, api }) };
    return { ...database, facts: await tryDatabase(init, api, database, isElsewhere) };
  });
}

/** The kind that a flag or the database shows; `unreachable` if it does not answer, `null` if neither shows it. */
type ShownKind = DestinationKind | 'unreachable' | null;

/** Determines the kind. @throws UserError (exit 1) if the database cannot be reached, unless it is elsewhere */
async function obtainKind(
  init: Init,
  api: TriedApi,
  { url, isElsewhere, isFirst }: { readonly url: string; readonly isElsewhere: boolean; readonly isFirst: boolean },
): Promise<ShownKind> {
  const { command, prompter, print } = init;
  if (isFirst && command.influxKind !== null) return command.influxKind;
  // With a bucket the daemon detects the kind.
  if (!prompter.isTerminal && command.influxBucket !== null) return null;
  const shown = await detectKind(init, api, url);
  if (typeof shown === 'object' && shown !== null) {
    if (!isElsewhere) throw withHint(`The database cannot be reached: ${shown.message}`, shown.hint ?? '', 1);
    return 'unreachable';
  }
  if (shown === 'victoriametrics')
    print('The server answers like VictoriaMetrics, which needs neither a bucket nor an organization.');
  return shown;
}

/**
 * The kind that is written; `null` if the daemon detects it. On a terminal, an empty bucket means VictoriaMetrics, as
 * the prompt explains; elsewhere the database, its port or a flag has to show it.
 *
 * @throws UserError (exit 2) if nothing shows it
 */
function kindToWrite(
  { command, prompter, print }: Init,
  { url, bucket, answered: shown }: { readonly url: string; readonly bucket: string; readonly answered: ShownKind },
): DestinationKind | null {
  if (bucket !== '') return command.influxKind === 'influxdb' ? 'influxdb' : null;
  if (shown === 'influxdb') throw new UserError('InfluxDB requires a bucket (--influx-bucket).', null, 2);
  if (shown === 'victoriametrics' || prompter.isTerminal) return 'victoriametrics';
  if (shown === 'unreachable' && isVictoriaPort(url)) {
    print(
      `The database does not answer. Its port (${new URL(url).port}) is that of VictoriaMetrics, so init sets influx.kind to victoriametrics; for InfluxDB, give --influx-bucket.`,
    );
    return 'victoriametrics';
  }
  const what = shown === 'unreachable' ? 'does not answer' : 'does not answer like VictoriaMetrics';
  throw new UserError(
    `The kind of the database is unknown: it ${what}`,
    'Give --influx-bucket NAME for InfluxDB (1.8 or later), or --influx-kind victoriametrics.',
    2,
  );
}

/** Returns an answer: from the command line at the first attempt, otherwise from the terminal; empty for none. */
function createTyped({ prompter }: Init, isFirst: boolean) {
  return async (given: string | null, question: string): Promise<string> =>
    (isFirst ? given : null) ?? (prompter.isTerminal ? await prompter.prompt(question) : '');
}

const bucketQuestion = (shown: ShownKind): string =>
  `Bucket, or database/retention-policy${shown === 'influxdb' ? '' : ' (empty for VictoriaMetrics)'}: `;

const ORG_QUESTION = 'Organization (only for InfluxDB 2, which requires it): ';
const OF_BASE = '(empty: that of the Kustomize base; none: only the archive)';

/** The answer after Enter, in brackets; empty for `null`. */
export const offered = (before: string | null): string => (before === null ? '' : ` [${plainText(before, 200)}]`);

/** The value of `--influx-url` for no database. */
const NO_DATABASE = 'none';

const urlOrNone = (text: string) => (text === '' || text === NO_DATABASE ? text : baseUrl(text));

/** The database of the base, with the bucket, the organization and the token of this workspace, if they are given. */
async function ofBase(init: Init, api: TriedApi, isFirst: boolean): Promise<TriedDatabase> {
  const { influxBucket, influxOrg } = init.command;
  const token = await promptToken(init, isFirst, { url: '', api });
  return { url: '', bucket: influxBucket ?? '', org: influxOrg ?? '', kind: null, token, facts: null };
}

async function promptToken(
  init: Init,
  isFirst: boolean,
  { url, api }: { readonly url: string; readonly api: TriedApi },
): Promise<FoundSecret | null> {
  const found = await obtainSecret(init, {
    flag: '--influx-token-file',
    file: isFirst ? init.command.influxTokenFile : null,
    variable: isFirst ? 'TIDEMARK_INFLUX_TOKEN' : '',
    question: 'Token, or user:password (not shown; empty: none): ',
    databaseUrl: url,
    apiKey: api.key.text,
  });
  if (found.text === '') return null;
  const { what, remedy } = SHORT_TOKEN;
  printWarning(init, isShort(found.text) ? { what, remedy: `${capitalized(remedy)}.` } : null);
  return found;
}

/** Detects the kind of a database, without a token. @throws UserError (exit 1) if it is too old */
async function detectKind(
  init: Init,
  api: TriedApi,
  url: string,
): Promise<DestinationKind | null | { readonly message: string; readonly hint?: string }> {
  // The bucket is not known yet; the kind does not depend on it.
  const { influx, proxies } = loadTriedConfig(init, api, { url, bucket: 'unknown', org: '', kind: null, token: null });
  if (influx === null) return null;
  const options = { ...influx, name: 'influx', settings: ownNames(init).influx, ca: influx.ca ?? undefined, proxies };
  const answer = await requestKind(options, init.ports.signal);
  if (answer.kind === 'blocked') throw notAccepted(answer);
  if (answer.kind === 'later') return answer.status === undefined ? answer : null;
  return answer.isAssumed === true ? null : answer.server;
}

/**
 * Sends a write without points, with the token.
 *
 * @returns `null` for a database elsewhere that does not answer this machine
 * @throws UserError if the database would not accept points
 */
async function tryDatabase(
  init: Init,
  api: TriedApi,
  database: Omit<TriedDatabase, 'facts'>,
  isElsewhere: boolean,
): Promise<DestinationFacts | null> {
  const { influx, proxies } = loadTriedConfig(init, api, database);
  if (influx === null) return null;
  const settings = ownNames(init).influx;
  const options = { ...influx, name: 'influx', settings, ca: influx.ca ?? undefined, proxies, point: null };
  const facts = await probeDestination(options, init.ports.signal);
  const { write } = facts;
  // InfluxDB 3 and some proxies do not answer an empty write.
  const isUnclear = write.kind === 'later' && (write.status === 400 || write.status === 422);
  if (write.kind !== 'accepted' && !isUnclear) {
    const error = notAccepted(write);
    if (!isElsewhere || write.kind !== 'later') throw error;
    init.print(`${error.message} This machine cannot reach the database; the daemon may reach it from where it runs.`);
    return null;
  }
  requireKind(facts, database.kind);
  showDatabase(init, database.bucket, facts, isUnclear);
  return facts;
}

function notAccepted(write: Exclude<WriteAnswer, { kind: 'accepted' }>): UserError {
  const what = `The database does not accept points: ${plainText(write.message, 300)}`;
  if (write.kind === 'blocked') return new UserError(what, `${capitalized(write.hint)}.`, 1);
  return withHint(what, (write.kind === 'later' && write.hint) || '', 1);
}

/** Checks the kind. @throws UserError (exit 1) if the database reports another kind than the one to write */
function requireKind({ kind: own }: DestinationFacts, kind: DestinationKind | null): void {
  if (kind === null || own === null || own === kind) return;
  const remedy =
    own === 'influxdb' ? 'Give a bucket (--influx-bucket).' : 'Give neither --influx-kind nor --influx-bucket.';
  throw new UserError(`The database is ${DESTINATION_NAMES[own]}, not ${DESTINATION_NAMES[kind]}`, remedy, 1);
}

/** Shows the name of a database, and whether it accepts points. */
function showDatabase(init: Init, bucket: string, facts: DestinationFacts, isUnclear: boolean): void {
  const { kind, version } = facts;
  const shownVersion = kind === 'victoriametrics' || version === null ? '' : ` ${version}`;
  const name = `${DESTINATION_NAMES[kind ?? 'influxdb']}${shownVersion}`;
  if (facts.isMissing) {
    printWarning(init, missingAdvice(bucket, ownNames(init).influx.bucket));
    return;
  }
  init.print(
    isUnclear ? `${name} answers; the first write will show whether it accepts points.` : `${name} accepts points.`,
  );
  if (kind === 'victoriametrics') showVictoria(init, facts);
}

/** Shows how a VictoriaMetrics treats points unless it is started with other flags. */
function showVictoria(init: Init, { dedupMs, retentionMs }: DestinationFacts): void {
  printWarning(init, dedupAdvice(dedupMs));
  if (retentionMs !== null && Number.isFinite(retentionMs)) {
    init.print(`It keeps points for ${duration(retentionMs / SECOND_MS)} (-retentionPeriod).`);
  }
}

/** Prints advice as a warning; nothing for `null`. */
export function printWarning({ print }: Init, advice: Advice | null): void {
  if (advice !== null) print(`Warning: ${withRemedy(advice.what, advice.remedy)}`);
}
