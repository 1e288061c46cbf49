/**
 * The names in an InfluxQL query: measurements, and the tags and fields that it uses of each.
 */
import { FIELD_KEYS, MEASUREMENTS, TAG_KEYS } from '../../../src/core/lines/line-protocol.ts';

const WORDS = new Set(
  `select from where and or group by order limit as time desc asc fill none previous linear null show tag values with key
   sum count last first min max mean percentile spread stddev top bottom distinct median difference
   moving_average round`.split(/\s+/),
);

/** A query without its strings and regular expressions, and the words in it. */
function wordsOf(query: string): string[] {
  const bare = query
    .replace(/'(?:[^'\\]|\\.)*'/g, ' ')
    .replace(/[=!]~ \/(?:[^/\\]|\\.)*\//g, ' ')
    .replace(/\$\{\w+[^}]*\}(?:ms)?|\$\w+/g, ' ');
  return [...bare.matchAll(/"([^"]+)"|\b([a-z_]\w*)\b/gi)].map(([, quoted, word]) => quoted ?? word ?? '');
}

/** The measurements that a query reads. */
export function measurementsOf(query: string): string[] {
  return [...query.matchAll(/\bFROM "?([a-z_]\w*)"?/g)].map(([, name]) => name ?? '');
}

/** The names that a query makes itself, by `AS`. */
function madeBy(query: string): Set<string> {
  return new Set([...query.matchAll(/ AS (?:"([^"]+)"|(\w+))/g)].map(([, quoted, word]) => quoted ?? word ?? ''));
}

/** Tags and fields that a query names, each once. */
export function keysOf(query: string): string[] {
  const made = madeBy(query);
  const measured = new Set(measurementsOf(query));
  const keys = wordsOf(query).filter(
    (word) => !WORDS.has(word.toLowerCase()) && !measured.has(word) && !made.has(word) && !/^\d/.test(word),
  );
  // A name that is both made and taken: `last(online) AS online`.
  const taken = [...query.matchAll(/\("?(\w+)"?[,)]/g)].map(([, key]) => key ?? '').filter((key) => !WORDS.has(key));
  return [...new Set([...keys, ...taken.filter((key) => ALL_KEYS.has(key))])];
}

export const ALL_KEYS: ReadonlySet<string> = new Set([...FIELD_KEYS, ...TAG_KEYS]);
export const ALL_MEASUREMENTS: ReadonlySet<string> = new Set(MEASUREMENTS);
