/**
 * Reads single keys out of what the sources gave: parses, applies defaults, opens the files of secrets and
 * certificates, and collects every mistake on the way.
 *
 * Promise: no mistake holds a secret. None of the words used repeats one, and as a net every text that stood where a
 * secret belongs is searched for in what is said.
 */

import { codeOf } from '../core/faults.ts';
import { SECRET_MARK, Secret } from '../core/secret.ts';
import { plainText } from '../core/text.ts';
import type { ActingKey, ConfigKeys, SecretPath, ValueOf, ValuePath } from './schema.ts';
import { fileForm } from './schema.ts';
import type { Given } from './sources.ts';
import { secretText, Unfit } from './values.ts';

/** One reading of the configuration, in progress. */
export interface Reading {
  readonly keys: ConfigKeys;
  readonly readFile: (path: string) => string;
  /** By path, the environment having won already. */
  readonly given: ReadonlyMap<string, Given>;
  /** What is wrong so far, a line each. */
  readonly mistakes: string[];
  /** Every secret read so far. */
  readonly secrets: Secret[];
  /** Every text that stood where a secret belongs, fit or not. */
  readonly hidden: string[];
}

/** A secret and the file that it came from. */
export interface SecretAndFile {
  readonly secret: Secret | null;
  readonly file: string | null;
}

/** Begins a reading; keys that are not in force are refused at once. */
export function beginReading(
  input: Pick<Reading, 'keys' | 'readFile' | 'given'> & { readonly mistakes: readonly string[] },
): Reading {
  const reading = { ...input, mistakes: [...input.mistakes], secrets: [], hidden: [] };
  for (const [path, key] of Object.entries(input.keys)) {
    const given = input.given.get(path);
    if (given === undefined || key.acts) continue;
    reading.mistakes.push(`${given.place}: is not in force in this version yet; remove it`);
  }
  return reading;
}

/** Whether a key was given, itself or as a file. */
export function isGiven({ given }: Reading, path: ValuePath | SecretPath): boolean {
  return given.has(path) || given.has(fileForm(path));
}

/** A key's value, else its default, else `null`. */
export function readValue<K extends ValuePath>({ keys, given, mistakes }: Reading, path: K): ValueOf<K> {
  const key: ActingKey<unknown> = keys[path];
  const own = given.get(path);
  if (own !== undefined) {
    const text = own.text.trim();
    const value =
      own.items !== undefined && key.parseItems !== undefined
        ? key.parseItems(own.items)
        : text === ''
          ? new Unfit('is empty: give a value, or remove it')
          : key.parse(text);
    // The schema ties a path to the type that its parser gives.
    if (!(value instanceof Unfit)) return value as ValueOf<K>;
    mistakes.push(`${own.place}: ${value.reason}`);
  }
  return (key.default === null ? null : key.parse(key.default)) as ValueOf<K>;
}

/** A secret that was given itself or as the path of a file, never both. */
export function readSecret(reading: Reading, path: SecretPath): SecretAndFile {
  const [own, byFile] = [reading.given.get(path), reading.given.get(fileForm(path))];
  if (own !== undefined) reading.hidden.push(own.text);
  if (own !== undefined && byFile !== undefined) {
    reading.mistakes.push(`${own.place} and ${byFile.place}: both are given; give one of them`);
    return { secret: null, file: null };
  }
  if (own !== undefined) return { secret: checkSecret(reading, own.text, `${own.place}: the secret`), file: null };
  if (byFile === undefined) return { secret: null, file: null };
  const file = byFile.text.trim();
  const text = openFile(reading, byFile.place, file);
  if (text === null) return { secret: null, file };
  reading.hidden.push(text);
  return { secret: checkSecret(reading, text, `${byFile.place}: the file${shownPath(file)}`), file };
}

function checkSecret(reading: Reading, text: string, what: string): Secret | null {
  const checked = secretText(text);
  if (checked instanceof Unfit) {
    reading.mistakes.push(`${what} ${checked.reason}`);
    return null;
  }
  const secret = new Secret(checked);
  reading.secrets.push(secret);
  return secret;
}

/** The PEM text behind a `ca_file` key. */
export function readCertificates(reading: Reading, path: 'api.ca_file' | 'influx.ca_file'): string | null {
  const file = readValue(reading, path);
  if (file === null) return null;
  const place = reading.given.get(path)?.place ?? path;
  const text = openFile(reading, place, file);
  if (text === null || text.includes('-----BEGIN CERTIFICATE-----')) return text;
  reading.mistakes.push(`${place}: the file${shownPath(file)} holds no certificates in PEM form`);
  return null;
}

function openFile(reading: Reading, place: string, path: string): string | null {
  if (path === '') {
    reading.mistakes.push(`${place}: is empty: give the path of a file, or remove it`);
    return null;
  }
  try {
    return reading.readFile(path);
  } catch (error) {
    reading.mistakes.push(`${place}: ${fileTrouble(error)}${shownPath(path)}`);
    return null;
  }
}

const TROUBLES: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file:'],
  ['ENOTDIR', 'there is no such file:'],
  ['ENAMETOOLONG', 'there is no such file:'],
  ['EISDIR', 'this is a directory, expected a file:'],
  ['EACCES', 'this program may not read the file:'],
  ['EPERM', 'this program may not read the file:'],
]);

/** Why a file could not be read, ready for its name. */
export function fileTrouble(error: unknown): string {
  const code = codeOf(error);
  return TROUBLES.get(code) ?? `the file cannot be read (${code}):`;
}

/**
 * A path to be named, unless it may be the secret itself, put where its file's path belongs: secrets may hold slashes,
 * but do not begin like a path.
 */
function shownPath(path: string): string {
  if (/^\.{0,2}\//.test(path) || path.length <= 12) return ` ${plainText(path, 100)}`;
  return ' (its name is not shown, as it looks like the secret itself; expected a path)';
}

/** All mistakes, each without any text that stood where a secret belongs. */
export function mistakesOf({ mistakes, hidden }: Reading): readonly string[] {
  const texts = hidden.flatMap((text) => [text, text.trim()]).filter((text) => text.length >= 4);
  return mistakes.map((mistake) => texts.reduce((clean, text) => clean.replaceAll(text, SECRET_MARK), mistake));
}
