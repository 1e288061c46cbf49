/**
 * Describes the configuration such that it may be shown to others: each key with its source, and its value unless that
 * is a secret, names devices, or is unusable (it may be anything then).
 *
 * Promises: it never throws, whatever is configured. A value of a secret key, or one elsewhere that looks like a
 * secret, is not shown but returned as hidden, so that it can be removed from all other output.
 */
import type { ConfigInput } from './config.ts';
import { proxiesOf } from './load.ts';
import { fileForm, type Key, keyEntries, knownNames, knownVariables } from './schema.ts';
import { DEFAULT_FILE, destinationSections, type Given, readConfigFile, readEnvironment } from './sources.ts';
import { InvalidText } from './values.ts';

/** The public description of a key. */
interface DescribedKey {
  readonly key: string;
  readonly source: 'file' | 'environment' | 'default';
  /** `null` for a key without a value. */
  readonly value: string | null;
}

/** A configuration as `--check` shows it: without secrets. */
export interface DescribedConfig {
  /** `null` if there is no file and the environment alone is used. */
  readonly file: string | null;
  readonly keys: readonly DescribedKey[];
  /** The names of the proxy variables that are set; their values may contain passwords. */
  readonly proxies: readonly string[];
  /** Texts that must not be shown. */
  readonly hidden: readonly string[];
}

/** Reads the configuration again and describes it. */
export function describeConfig(input: ConfigInput): DescribedConfig {
  const file = readConfigFile(input, knownNames());
  const given = new Map([...file.given, ...readEnvironment(input.environment, knownVariables()).given]);
  const hidden = new Set<string>();
  const described: DescribedKey[] = [];
  const parts = { given, hidden, input };
  for (const [path, key] of keyEntries()) described.push(...describeKey(path, key, parts));
  for (const section of destinationSections(given)) {
    for (const [path, key] of keyEntries().filter(([path]) => path.startsWith('influx.'))) {
      const own = `${section}${path.slice('influx'.length)}`;
      if (given.has(own) || given.has(fileForm(own))) described.push(...describeKey(own, key, parts));
    }
  }
  const hasFile = input.file !== null || file.given.size > 0 || file.mistakes.length > 0;
  const proxies = Object.keys(proxiesOf(input.environment));
  return { file: hasFile ? (input.file ?? DEFAULT_FILE) : null, keys: described, proxies, hidden: [...hidden] };
}

interface Parts {
  readonly given: ReadonlyMap<string, Given>;
  readonly hidden: Set<string>;
  readonly input: ConfigInput;
}

function describeKey(path: string, key: Key, parts: Parts): DescribedKey[] {
  if (key.kind === 'sections') return [];
  if (key.kind === 'secret') return describeSecret(path, parts);
  const given = parts.given.get(path);
  if (given === undefined) return [{ key: path, source: 'default', value: key.default }];
  const text = given.text.trim();
  const { source } = given;
  for (const each of given.items ?? [text]) if (isSecretLike(each)) parts.hidden.add(each);
  const count = key.parseItems !== undefined && path.startsWith('sync.') ? (given.items ?? text.split(',')).length : 0;
  if (count > 0) return [{ key: path, source, value: `(patterns: ${count}; not shown, as they name devices)` }];
  const isUsable = text !== '' && !(key.parse(text, parts.input.nowMs) instanceof InvalidText);
  return [{ key: path, source, value: isUsable ? shownValue(path, text) : '(set, but invalid: not shown)' }];
}

function describeSecret(path: string, { given, hidden, input }: Parts): DescribedKey[] {
  const [own, byFile] = [given.get(path), given.get(fileForm(path))];
  const described: DescribedKey[] = [];
  if (own !== undefined) {
    hidden.add(own.text).add(own.text.trim());
    described.push({ key: path, source: own.source, value: '(set, not shown)' });
  }
  if (byFile !== undefined) {
    const text = readContent(byFile.text.trim(), input.readFile);
    if (text !== null) hidden.add(text).add(text.trim());
    // A path to no file may be the secret itself, given in the place of its file's name.
    else hidden.add(byFile.text.trim());
    const value = text === null ? '(set, but the file cannot be read)' : '(read from a file, not shown)';
    described.push({ key: fileForm(path), source: byFile.source, value });
  }
  return described.length > 0 ? described : [{ key: path, source: 'default', value: null }];
}

function readContent(path: string, readFile: ConfigInput['readFile']): string | null {
  try {
    return readFile(path);
  } catch {
    return null;
  }
}

function shownValue(path: string, text: string): string {
  if (isSecretLike(text)) return '(set, not shown: it looks like a secret)';
  if (path === 'workspace.id') return '(set, not shown)';
  const url = path.endsWith('.url') ? URL.parse(text) : null;
  return url === null ? text : `${url.protocol}//${url.host}${url.pathname}`;
}

/**
 * Whether a text looks like a key or token: long, without blanks, with letters and digits, and neither an address nor a
 * path.
 */
function isSecretLike(text: string): boolean {
  if (text.length < 20 || !/^[\x21-\x7e]+$/.test(text) || /^(?:\.{0,2}\/|~|https?:\/\/)/.test(text)) return false;
  return /\d/.test(text) && /[a-zA-Z]/.test(text);
}
