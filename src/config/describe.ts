/**
 * The configuration as it may be shown to others: every key with where its value comes from, and the value unless it is a
 * secret, names devices, or cannot be used (then it may be anything).
 *
 * Promises: nothing is thrown, whatever is configured; what stood where a secret belongs, and what looks like one that
 * stands elsewhere, is not shown and is given back, so that it can be searched for in everything else.
 */
import type { ConfigInput } from './config.ts';
import { DEFAULT_FILE, destinationSections, proxiesOf, readConfigFile } from './load.ts';
import { fileForm, type Key, keyEntries, knownVariables } from './schema.ts';
import { type Given, readEnvironment } from './sources.ts';
import { Unfit } from './values.ts';

/** A key as it may be shown. */
interface DescribedKey {
  readonly key: string;
  readonly source: 'file' | 'environment' | 'default';
  /** `null` where there is none. */
  readonly value: string | null;
}

export interface DescribedConfig {
  /** `null` where there is none: the environment alone. */
  readonly file: string | null;
  readonly keys: readonly DescribedKey[];
  /** Variables for proxies that are set; their values may hold passwords. */
  readonly proxies: readonly string[];
  /** Texts that nobody may see. */
  readonly hidden: readonly string[];
}

/** Reads what is configured once more, for others to see. */
export function describeConfig(input: ConfigInput): DescribedConfig {
  const file = readConfigFile(input);
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
  for (const each of given.items ?? [text]) if (looksSecret(each)) parts.hidden.add(each);
  const count = key.parseItems !== undefined && path.startsWith('sync.') ? (given.items ?? text.split(',')).length : 0;
  if (count > 0) return [{ key: path, source, value: `(patterns: ${count}; not shown, as they name devices)` }];
  const isUsable = text !== '' && !(key.parse(text, parts.input.nowMs) instanceof Unfit);
  return [{ key: path, source, value: isUsable ? shownValue(path, text) : '(given, but cannot be used: not shown)' }];
}

function describeSecret(path: string, { given, hidden, input }: Parts): DescribedKey[] {
  const [own, byFile] = [given.get(path), given.get(fileForm(path))];
  const described: DescribedKey[] = [];
  if (own !== undefined) {
    hidden.add(own.text).add(own.text.trim());
    described.push({ key: path, source: own.source, value: '(given, not shown)' });
  }
  if (byFile !== undefined) {
    const text = contentOf(byFile.text.trim(), input.readFile);
    if (text !== null) hidden.add(text).add(text.trim());
    // What is no file may be the secret itself, put where its file's name belongs.
    else hidden.add(byFile.text.trim());
    const value = text === null ? '(given, but no file that can be read)' : '(given by a file, not shown)';
    described.push({ key: fileForm(path), source: byFile.source, value });
  }
  return described.length > 0 ? described : [{ key: path, source: 'default', value: null }];
}

function contentOf(path: string, readFile: ConfigInput['readFile']): string | null {
  try {
    return readFile(path);
  } catch {
    return null;
  }
}

function shownValue(path: string, text: string): string {
  if (looksSecret(text)) return '(given, not shown: it looks like a secret)';
  if (path === 'workspace.id') return '(given, not shown)';
  const url = path.endsWith('.url') ? URL.parse(text) : null;
  return url === null ? text : `${url.protocol}//${url.host}${url.pathname}`;
}

/** Long, without blanks, of letters and digits both, and neither an address nor a path: keys and tokens are like that. */
function looksSecret(text: string): boolean {
  if (text.length < 20 || !/^[\x21-\x7e]+$/.test(text) || /^(?:\.{0,2}\/|~|https?:\/\/)/.test(text)) return false;
  return /\d/.test(text) && /[a-zA-Z]/.test(text);
}
