/**
 * Where the answers of `init` come from: flags, files and the environment first, then a person on a terminal, or the
 * lines of a pipe. What is typed for a secret is not echoed.
 */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { realClock } from '../../app/real-clock.ts';
import type { InputStream, ProcessPorts } from '../../app/terminal.ts';
import type { InitCommand } from '../../cli/command.ts';
import { GUESSABLE_SECRET, type ParseAt, listen as pageAddress, secretText, Unfit } from '../../config/values.ts';
import { UserError } from '../../core/faults.ts';
import { isGuessable, Secret } from '../../core/secret.ts';
import { capitalized, plainText } from '../../core/text.ts';
import { ListenError, requireFree } from '../../observe/server.ts';
import { LISTEN } from './write.ts';

interface Prompter extends Disposable {
  /** Whether a person can be asked. */
  readonly isTerminal: boolean;
  /**
   * Asks for a line.
   *
   * @returns it without the blanks around it
   * @throws UserError (exit 3) if the input ends, or the person breaks off
   */
  ask(question: string, options?: { readonly isSecret?: boolean }): Promise<string>;
  /**
   * The next line of a pipe, without a question.
   *
   * @throws UserError (exit 2) if there is none
   */
  line(what: string): Promise<string>;
}

const INTERRUPT = '\u0003';
const END = '\u0004';
const ERASE = new Set(['\u007f', '\b']);
const ENDS = new Set(['\r', '\n', INTERRUPT, END]);

/**
 * Opens it.
 *
 * @param write shows a question.
 * @param signal aborts every question
 */
export function createPrompter(
  input: InputStream | undefined,
  write: (text: string) => void,
  signal: AbortSignal,
): Prompter {
  const isTerminal = input?.isTTY === true;
  const reader = createLineReader(input, signal);
  return {
    isTerminal,
    ask: async (question, { isSecret = false } = {}) => {
      write(question);
      input?.setRawMode?.(isSecret);
      try {
        const line = await reader();
        if (line === null)
          throw new UserError('The input ended before every question was answered. Nothing was written.', 3);
        return line.trim();
      } finally {
        input?.setRawMode?.(false);
        if (isSecret) write('\n');
      }
    },
    line: async (what) => {
      const line = await reader();
      if (line === null || line.trim() === '')
        throw new UserError(`${what}: expected the secret as a line of standard input.`, 2);
      return line.trim();
    },
    [Symbol.dispose]: () => void input?.destroy(),
  };
}

/**
 * Reads line after line.
 *
 * @returns `null` at the end of the input, and when the person breaks off
 */
function createLineReader(input: InputStream | undefined, signal: AbortSignal): () => Promise<string | null> {
  const decoder = new StringDecoder('utf8');
  let text = '';
  let hasEnded = input === undefined;
  let wake = (): void => {};
  const end = (): void => {
    hasEnded = true;
    wake();
  };
  input?.on('data', (chunk: Buffer | string) => {
    text += typeof chunk === 'string' ? chunk : decoder.write(chunk);
    wake();
  });
  input?.on('end', end);
  input?.on('error', end);
  signal.addEventListener('abort', end, { once: true });
  return async () => {
    for (;;) {
      const taken = takeLine(text, hasEnded);
      if (taken !== null) {
        text = taken.rest;
        return signal.aborted ? null : taken.line;
      }
      if (hasEnded || text.length > MAX_LINE) return null;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
}

/**
 * Takes the first line of the typed text.
 *
 * @returns `null` if there is no whole line yet; a line of `null` if the person breaks off
 */
function takeLine(text: string, hasEnded: boolean): { readonly line: string | null; readonly rest: string } | null {
  const end = text.split('').findIndex((letter) => ENDS.has(letter));
  if (end === -1) return hasEnded && text !== '' ? { line: erased(text), rest: '' } : null;
  if (text[end] === INTERRUPT || text[end] === END) return { line: null, rest: '' };
  const rest = text.slice(text.startsWith('\r\n', end) ? end + 2 : end + 1);
  return { line: erased(text.slice(0, end)), rest };
}

/** Without the letters that were taken back. */
function erased(typed: string): string {
  let line = '';
  for (const letter of typed) line = ERASE.has(letter) ? line.slice(0, -1) : line + letter;
  return line;
}

/** No one types more. */
const MAX_LINE = 10_000;

/** The parts of one run. */
export interface Init {
  readonly command: InitCommand;
  readonly ports: ProcessPorts;
  readonly prompter: Prompter;
  /** Shows a line to the person, without secrets. */
  readonly print: (text: string) => void;
  readonly secrets: Secret[];
}

/** A secret, and the file that it is in; `null` if that has to be written. */
export interface FoundSecret {
  readonly text: string;
  readonly file: string | null;
}

/** Asks until an answer works. Without a terminal the first failure ends it. */
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

/**
 * A value from its flag at the first try, else from the person.
 *
 * @throws UserError (exit 2) if it does not fit
 */
export async function textFor<T>(
  { prompter }: Init,
  asked: {
    readonly flag: string;
    readonly given: string | null;
    readonly question: string;
    readonly fallback?: string;
    readonly parse: ParseAt<T>;
  },
): Promise<string> {
  const { flag, given, question, fallback, parse } = asked;
  let text = given;
  if (text === null && prompter.isTerminal) text = (await prompter.ask(question)) || (fallback ?? '');
  text ??= fallback ?? null;
  if (text === null) throw new UserError(`${flag} is required without a terminal.`, 2);
  const value = parse(text, realClock.nowMs());
  if (value instanceof Unfit) throw new UserError(inputFault(given, flag, value), 2);
  return text;
}

/** The fault of an answer: by its flag, where it was given by one. */
export function inputFault(given: string | null, flag: string, { reason }: Unfit): string {
  return given === null ? `${capitalized(reason)}.` : `${flag}: ${reason}.`;
}

/** The keys of a configuration, by the names that a person uses here: no key exists yet. */
const NAMES: readonly (readonly [RegExp, flag: string, typed: string])[] = [
  [/\bapi\.url\b/g, '--api-url', 'the address'],
  [/\binflux\.url\b/g, '--influx-url', 'the address'],
  [/\binflux\.org\b/g, '--influx-org', 'the organization'],
  [/\binflux\.bucket\b/g, '--influx-bucket', 'the bucket'],
  [/\blisten \(TIDEMARK_LISTEN\)/g, '--listen', '--listen'],
  [/\binflux\.token(?:_file)?\b/g, '--influx-token-file', 'the token'],
];

export function inOwnNames({ prompter }: Init, text: string): string {
  return NAMES.reduce((left, [key, flag, typed]) => left.replaceAll(key, prompter.isTerminal ? typed : flag), text);
}

/** The files that are there already and have something to lose. */
function existingFiles(paths: readonly string[]): string[] {
  return paths.filter((path) => existsSync(path) && !isUnfilled(path));
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

/** Whether a file is empty, or holds the example of install.sh, which nobody has filled in. */
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
 * Asks whether files that are there may be replaced.
 *
 * @throws UserError (exit 1) if they may not
 */
export async function requireNew({ command, prompter }: Init, paths: readonly string[]): Promise<void> {
  const found = existingFiles(paths);
  if (found.length === 0 || command.overwrite) return;
  const names = found.map((path) => plainText(path, 200)).join(', ');
  if (!prompter.isTerminal) {
    throw new UserError(`Already there: ${names}. Nothing was written; --overwrite replaces existing files.`, 1);
  }
  const answer = await prompter.ask(`Already there: ${names}. Replace? [y/N] `);
  if (!/^y(?:es)?$/i.test(answer)) throw new UserError('Nothing was written.', 1);
}

/**
 * The address of the page, if a flag gives one.
 *
 * @throws UserError (exit 2) if it is none, (exit 1) if it cannot be listened at
 */
export async function listenOf(init: Init): Promise<string | null> {
  const { listen: given, overwrite } = init.command;
  if (given === null) return null;
  const address = pageAddress(given);
  if (address instanceof Unfit) throw new UserError(inputFault(given, '--listen', address), 2);
  try {
    // Where files are replaced, the daemon that has them may be running.
    if (!overwrite) await requireFree(address);
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    throw new UserError(`--listen: ${error.problem.what}. ${inOwnNames(init, error.problem.remedy)}`, 1);
  }
  return given;
}

interface SecretSource {
  readonly flag: string;
  readonly file: string | null;
  readonly variable: string;
  readonly question: string;
  /** Of a token: the address that it is sent to. */
  readonly databaseUrl?: string;
}

/** A secret: from its file or a line of standard input, from the environment, or typed. An empty text for none. */
export async function secretOf(init: Init, source: SecretSource): Promise<FoundSecret> {
  const { found, place } = await findSecret(init, source);
  if (found.text === '') return found;
  const checked = secretText(found.text, source.databaseUrl);
  if (checked instanceof Unfit) {
    const { reason, remedy } = checked;
    const text = `the secret ${reason}${remedy === undefined ? '' : `; ${remedy}`}.`;
    throw new UserError(place === null ? capitalized(text) : `${place}: ${text}`, 2);
  }
  init.secrets.push(new Secret(checked));
  const accepted = { ...found, text: checked };
  if (!isGuessable(checked)) return accepted;
  init.print(`Warning: ${GUESSABLE_SECRET.what}. ${capitalized(GUESSABLE_SECRET.remedy)}.`);
  if (place !== null) return accepted;
  const other = await secretOf(init, { ...source, question: 'Another one (not shown; empty: keep this one): ' });
  return other.text === '' ? accepted : other;
}

/** @returns the secret as it was given, and the flag or the variable that gave it; `null` for one that was typed */
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
  const text = prompter.isTerminal ? await prompter.ask(question, { isSecret: true }) : '';
  return { found: { text, file: null }, place: null };
}

function readSecretFile({ readFile }: ProcessPorts, place: string, path: string): string {
  try {
    return readFile(path);
  } catch {
    throw new UserError(`${place}: the file cannot be read. Give the path of a file that holds the secret alone.`, 2);
  }
}
