/**
 * Makes text that people typed or a server sent safe to show, and finds the known word that was probably meant.
 *
 * Text from outside reaches a terminal, a log or a page only through `plainText`.
 */
import { HOUR_MS, MINUTE_MS } from './time.ts';

/** Line breaks, tabs and their Unicode kin: shown as one space. */
const BREAKS = /[\t\n\v\f\r\u0085\u2028\u2029]+/gu;

/** All other control characters, and those that change the direction of text or have no width: dropped. */
const HIDDEN = /[\p{Cc}\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;

/**
 * A single line that only shows the text: no control, escape or direction characters, no lone surrogates.
 *
 * @param maxLength how many characters are kept; a text that was cut ends in `…`.
 */
export function plainText(text: string, maxLength = 200): string {
  // Only the part that can be kept is checked, so that a megabyte costs nothing.
  const head = text.slice(0, maxLength * 4 + 4);
  const points = [...head.toWellFormed().replace(BREAKS, ' ').replace(HIDDEN, '')];
  const cut = points.length > maxLength || head.length < text.length;
  return cut ? `${points.slice(0, maxLength - 1).join('')}…` : points.join('');
}

/** The answer of a server in a message: its status and its message, which may quote the request. */
export function serverAnswerText(status: number, words: string): string {
  return `HTTP ${status}${words === '' ? '' : `: ${words}`}`;
}

/** Changes the part of a text that {@link serverAnswerText} has written, which ends at the end of the text. */
export function changeServerAnswer(text: string, change: (answer: string) => string): string {
  return text.replace(/\bHTTP \d{3}: [\s\S]*$/, change);
}

/** A problem followed by the next step, which may be empty. */
export function withStep(problem: string, step: string): string {
  return step === '' ? problem : `${problem}; ${step}`;
}

/** Limits a text to this many characters; one that was cut ends in `…`. For text that is escaped elsewhere. */
export function shortened(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const points = [...text.slice(0, maxLength * 2 + 2)];
  return points.length > maxLength ? `${points.slice(0, maxLength - 1).join('')}…` : points.join('');
}

/**
 * Compares two values, including infinities, whose difference is not a number. Texts are compared by code units, so
 * that the order is the same everywhere, whatever the language.
 */
export function compare<T extends bigint | number | string>(a: T, b: T): number {
  return a < b ? -1 : Number(a > b);
}

/**
 * Replaces the words with digits, such as the id of a request, so that texts that differ only in them are equal.
 *
 * @param leastLength the length of the shortest word that is replaced.
 */
export function withoutIds(text: string, leastLength = 1): string {
  return text.replace(/[\w.-]*\d[\w.-]*/g, (word) => (word.length < leastLength ? word : '#'));
}

/** The text with a full stop, unless it already ends a sentence. */
export function sentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`;
}

/** The text with a capital first letter. */
export function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/**
 * Finds the word that was probably meant by a misspelt one.
 *
 * @param most the largest edit distance
 * @returns the known word with the smallest edit distance, or `null` if none is close enough.
 */
export function nearest(word: string, known: Iterable<string>, most = Math.floor(word.length / 3) + 1): string | null {
  let best: string | null = null;
  let bestDistance = most + 1;
  if (word.length > 100) return null;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance >= bestDistance || distance >= candidate.length) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** The Levenshtein distance: how many letters have to be inserted, deleted or replaced. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 0; i < a.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const change = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1);
      next.push(Math.min(change, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/**
 * A number with separators between its thousands, and at most three decimals. Node's own formatter takes 10 ms to load
 * its tables.
 */
export function grouped(value: number): string {
  return String(Number(value.toFixed(3))).replace(/\B(?<!\.\d*)(?=(?:\d{3})+(?!\d))/g, ',');
}

/** The text for a database. If there is only one, it has the name of its section, whatever kind of database it is. */
export function databaseText(name: string, count: number): string {
  return count === 1 && name === 'influx' ? 'the database' : name;
}

/** A path for a shell, in quotes if it needs them. */
export function shellText(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

/** Host and port as in a URL: an IPv6 address has brackets. */
export function addressText(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** A number and its noun, in the singular or the plural. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** A rate as a number: small ones with one decimal, `0.3`, `9.5`, `1,200`. */
export function rateText(rate: number): string {
  return rate > 0 && rate < 10 ? rate.toFixed(1) : grouped(Math.round(rate));
}

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** A number of bytes in the units of the configuration: `512 bytes`, `1.5 KiB`, `412 MiB`, `2 GiB`. */
export function byteSize(bytes: number): string {
  const step = Math.min(Math.max(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 0), BYTE_UNITS.length - 1);
  const value = bytes / 1024 ** step;
  return `${step === 0 || value >= 100 ? Math.round(value) : Math.round(value * 10) / 10} ${BYTE_UNITS[step]}`;
}

/**
 * A share as a percentage, rounded down so that it shows 100 % only for all of it: `0 %`, `37.5 %`, `99.9
 * %`.
 *
 * @param share 0 to 1
 * @param digits how many decimals to show at most
 */
export function percent(share: number, digits: 0 | 1 = 1): string {
  const steps = digits === 0 ? 100 : 1000;
  // The small addend makes up for shares such as 0.57, which binary fractions represent a little too low.
  const done = Math.floor(share * steps + 1e-9);
  return `${(share < 1 ? Math.min(done, steps - 1) : done) / (steps / 100)} %`;
}

/** Added to an ETA that assumes the full history of each device. */
export const LESS_IF_YOUNGER = 'less if devices are younger than the range';

/** The ETA as a part of a sentence; empty if there is none. */
export function etaText(eta: {
  readonly eta_seconds: number | null;
  readonly eta_assumes_full_history: boolean;
}): string {
  if (eta.eta_seconds === null) return '';
  const less = eta.eta_assumes_full_history ? ` (${LESS_IF_YOUNGER})` : '';
  return `, ETA ${duration(eta.eta_seconds, 'up')}${less}`;
}

/** The ETA for a progress report; `null` if there is none. */
export function progressEta(
  seconds: number | null,
  assumesFullHistory: boolean,
): { readonly seconds: number; readonly basis: string } | null {
  return seconds === null ? null : { seconds, basis: assumesFullHistory ? LESS_IF_YOUNGER : '' };
}

/**
 * A duration in its largest unit that is precise enough: `0.4 s`, `45 s`, `12 min`, `3.5 h`, `30 days`.
 *
 * @param rounding `up`: for a wait, so that the text is never shorter than the wait.
 */
export function duration(seconds: number, rounding: 'nearest' | 'up' = 'nearest'): string {
  const round = rounding === 'up' ? Math.ceil : Math.round;
  const tenths = (value: number): number => round(value * 10) / 10;
  const whole = rounding === 'nearest' && seconds < 10 ? tenths(seconds) : round(seconds);
  if (whole < 120) return `${whole} s`;
  const minutes = round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = tenths(seconds / 3600);
  return hours < 48 ? `${hours} h` : `${grouped(tenths(seconds / 86_400))} days`;
}

const NUMBER_WORDS = ['two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve'];

/** A round duration in the words of a sentence: `a minute`, `ten minutes`, `half an hour`, `an hour`. */
export function durationInWords(ms: number): string {
  if (ms === HOUR_MS / 2) return 'half an hour';
  const [count, one] = ms < HOUR_MS ? [ms / MINUTE_MS, 'minute'] : [ms / HOUR_MS, 'hour'];
  return count === 1 ? `${one === 'hour' ? 'an' : 'a'} ${one}` : `${NUMBER_WORDS[count - 2] ?? grouped(count)} ${one}s`;
}
