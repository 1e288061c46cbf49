/**
 * Parsers for the values of configuration keys: each takes a text and returns a typed value or the reason why it is
 * wrong.
 *
 * Promises: the file and the environment are parsed in the same way. A reason states what was expected and never
 * repeats the value, which may be a secret in the wrong place. All functions are pure.
 */

import { DESTINATION_KINDS, type DestinationKind } from '../core/lines/dialect.ts';
import { DEFAULT_LISTEN, PAGE_PORT } from '../core/page-facts.ts';
import type { Schedule } from '../core/ports.ts';
import { isGuessable } from '../core/secret.ts';
import { DAY_MS, type EpochMs, type EpochNs, msToNs, parseTimestamp, UNIT_MS } from '../core/time.ts';
import { cronStepMistake, readCron } from './cron.ts';
import { type Listen, parseListen } from './listen.ts';

/** Why a text is not valid: a phrase that follows the key's name and a colon. */
export class InvalidText {
  readonly reason: string;
  /** The remedy as a phrase, if the reason does not state what was expected. */
  readonly remedy: string | undefined;

  constructor(reason: string, remedy?: string) {
    this.reason = reason;
    this.remedy = remedy;
  }
}

/** Parses a text that is not empty and has no blanks around it. */
type Parse<T> = (text: string) => T | InvalidText;

/** Parses a value that must lie in the past. */
export type ParseAt<T> = (text: string, nowMs: EpochMs) => T | InvalidText;

/** Parses the items of a list, which may be empty or have blanks around them. */
export type ParseItems<T> = (items: readonly string[]) => T | InvalidText;

/**
 * How far back to sync: a duration before the start of the sync, or a fixed time. With `isAll`, everything before that
 * is also read once.
 */
export type History =
  | { readonly kind: 'age'; readonly ageMs: number; readonly isAll?: true }
  | { readonly kind: 'since'; readonly since: EpochNs };

function expected(what: string): InvalidText {
  return new InvalidText(`expected ${what}`);
}

/** The units of a duration, the smallest first. */
const UNITS = new Map([...UNIT_MS].filter(([unit]) => /^[smhdw]$/.test(unit)));

/**
 * Parses a duration such as `90d` to milliseconds; `null` for anything else. It must be a whole number of s, m, h, d or
 * w.
 */
export function parseDurationMs(text: string): number | null {
  const match = /^(\d{1,9})([smhdw])$/.exec(text);
  const unitMs = UNITS.get(match?.[2] ?? '');
  return unitMs === undefined ? null : Number(match?.[1]) * unitMs;
}

/** Parses a date (00:00 UTC) or an RFC 3339 time; `null` for anything else. */
export function parseInstant(text: string): EpochNs | null {
  return parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);
}

/** A duration within bounds, in milliseconds. */
export function durationWithin({ minMs, maxMs }: { minMs: number; maxMs: number }): Parse<number> {
  return (text) => {
    const ms = parseDurationMs(text);
    if (ms !== null && ms >= minMs && ms <= maxMs) return ms;
    return expected(`a time with its unit (s, m, h, d or w), ${limitsText(minMs, maxMs, UNITS)}`);
  };
}

/** The words for bounds, each in the largest unit that divides it: `from 10m to 30d`. */
function limitsText(least: number, most: number, units: ReadonlyMap<string, number>): string {
  const sized = (value: number): string => {
    const [unit, size] = [...units].findLast(([, each]) => each <= value && value % each === 0) ??
      [...units][0] ?? ['', 1];
    return `${value / size}${unit}`;
  };
  return `from ${sized(least)} to ${sized(most)}`;
}

const SIZE_UNITS: ReadonlyMap<string, number> = new Map([
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
]);

/** A size within bounds, in bytes. */
export function sizeWithin({ minBytes, maxBytes }: { minBytes: number; maxBytes: number }): Parse<number> {
  return (text) => {
    const match = /^(\d{1,9})([KMG]iB)$/.exec(text);
    const bytes = Number(match?.[1]) * (SIZE_UNITS.get(match?.[2] ?? '') ?? Number.NaN);
    if (bytes >= minBytes && bytes <= maxBytes) return bytes;
    return expected(`a size with its unit (KiB, MiB or GiB), ${limitsText(minBytes, maxBytes, SIZE_UNITS)}`);
  };
}

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number): Parse<number> {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : expected(`a whole number from ${min} to ${max}`);
  };
}

/** A fraction above 0 and up to 1. */
export const share: Parse<number> = (text) => {
  const value = /^\d{0,3}(\.\d{1,12})?$/.test(text) ? Number(text) : Number.NaN;
  return value > 0 && value <= 1 ? value : expected('a number above 0 and up to 1, such as 0.8');
};

/** Accepts exactly one of these words. */
export function choice<T extends string>(...choices: readonly T[]): Parse<T> {
  return (text) => choices.find((word) => word === text) ?? expected(`one of ${choices.join(', ')}`);
}

/** A single line of up to 1,000 characters, without control characters. */
export const line: Parse<string> = (text) =>
  /\p{Cc}/u.test(text) || text.length > 1000
    ? new InvalidText('expected one line of text without control characters')
    : text;

/**
 * The address of a server, without its trailing slash. A reason never repeats it, because it may contain a password.
 */
export const baseUrl: Parse<string> = (text) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:\/\//i.test(text)) {
    return new InvalidText('expected an address that begins with https:// or http://');
  }
  if (url.username !== '' || url.password !== '') {
    return new InvalidText('expected an address without a user name or password in it');
  }
  if (/[?#]/.test(text)) return new InvalidText('expected an address without ? or #');
  return url.href.replace(/\/+$/, '');
};

/** The base URL of the API, which ends in `/external/v1` (docs/api.md). */
export const apiUrl: Parse<string> = (text) => {
  const url = baseUrl(text);
  if (url instanceof InvalidText || url.endsWith('/external/v1')) return url;
  return new InvalidText('expected the base address of the API, ending in /external/v1');
};

/** With `all`: the part of the history that is read first and stays wanted. */
export const ALL_LIVE_PART_MS = 30 * DAY_MS;

/** The value of `sync.history`, which must begin in the past. */
export const history: ParseAt<History> = (text, nowMs) => {
  if (text === 'all') return { kind: 'age', ageMs: ALL_LIVE_PART_MS, isAll: true };
  const ageMs = parseDurationMs(text);
  if (ageMs !== null && ageMs > 0 && ageMs <= nowMs) return { kind: 'age', ageMs };
  const since = parseInstant(text);
  if (since === null)
    return expected('an age such as 30d (m, h, d or w), a date such as 2026-01-31, an RFC 3339 time, or all');
  return since < msToNs(nowMs) ? { kind: 'since', since } : expected('a time in the past');
};

export const influxKind: Parse<'auto' | DestinationKind> = choice('auto', ...DESTINATION_KINDS);

/** `host:port`, IPv6 in brackets. */
export const listen: Parse<Listen> = (text) =>
  parseListen(text) ?? expected(`host:port, such as ${DEFAULT_LISTEN} or [::1]:${PAGE_PORT}, the port from 0 to 65535`);

/** The shortest secret. A shorter one could not be searched for in the logs. */
const MIN_SECRET_LENGTH = 4;

/** Whether an address leads to this machine. */
export function isLoopback(url: string): boolean {
  return URL.canParse(url) && LOOPBACK.test(new URL(url).hostname);
}

/** Whether an address has a port of VictoriaMetrics: of a single node, or of the vminsert of a cluster. */
export function isVictoriaPort(url: string): boolean {
  return URL.canParse(url) && ['8428', '8480'].includes(new URL(url).port);
}

const LOOPBACK = /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Whether a secret is too short to be searched for in every text. */
export function isShort(secret: string): boolean {
  return secret.length < MIN_SECRET_LENGTH;
}

/** The warning about a token that is only acceptable for a database on this machine, as phrases. */
export const SHORT_TOKEN = {
  what: 'the token is shorter than 4 characters, so Tidemark cannot mask it everywhere',
  remedy: 'use a longer one if other machines can reach the database',
} as const;

/** The warning about a secret that is a plain word, as phrases. */
export const GUESSABLE_SECRET = {
  what: 'this secret, or the password behind the colon in it, is an ordinary word, so Tidemark cannot mask it everywhere in its log',
  remedy: 'use a long random one',
} as const;

/** The same about an API key, which the vendor makes. */
export const GUESSABLE_KEY = {
  what: 'this key is an ordinary word, so Tidemark cannot mask it everywhere in its log',
  remedy: 'check that it is the complete key',
} as const;

/** The warnings about a valid secret. */
export function warningsOf(
  secret: string,
  isKey: boolean,
): readonly { readonly what: string; readonly remedy: string }[] {
  const guessable = isKey ? GUESSABLE_KEY : GUESSABLE_SECRET;
  return [...(isShort(secret) ? [SHORT_TOKEN] : []), ...(isGuessable(secret) ? [guessable] : [])];
}

/**
 * Checks a key or token, without one trailing newline.
 *
 * @param databaseUrl for a token: the address that it is sent to. For this machine the token may be short, for tests
 * and for the first steps
 * @returns the secret, or why it is not valid; the reason repeats no part of it
 */
export function secretText(given: string, databaseUrl: string | null = null): string | InvalidText {
  const text = given.replace(/\r?\n$/, '');
  if (text === '') return new InvalidText('is empty');
  if (/\p{Cc}/u.test(text)) {
    return new InvalidText('has line breaks or other control characters in it', 'write only the secret, on one line');
  }
  if (!/^[ -~]+$/.test(text)) return new InvalidText('contains characters that no HTTP header can carry');
  // An HTTP header loses blanks at its ends.
  if (text !== text.trim()) return new InvalidText('begins or ends with a space');
  if (text.length > 4096) return new InvalidText('is longer than 4096 characters: that is not a key or token');
  if (!isShort(text) || (databaseUrl !== null && isLoopback(databaseUrl))) return text;
  const reason = `is shorter than ${MIN_SECRET_LENGTH} characters`;
  const remedy = 'use a longer token; only a database on this machine may have such a short one';
  return databaseUrl === null ? new InvalidText(reason) : new InvalidText(reason, remedy);
}

/** Checks an API key: a secret without any space. It is often copied with the `Bearer` before it. */
export function keyText(given: string): string | InvalidText {
  const checked = secretText(given.replaceAll(' ', ''));
  if (checked instanceof InvalidText || !given.includes(' ')) return checked;
  return new InvalidText('has a space in it', 'write only the key, without "Bearer"');
}

/** A list written as one text, with commas between its items. */
export function separated<T>(parseItems: ParseItems<T>): Parse<T> {
  return (text) => parseItems(text.split(','));
}

/** No user writes a filter with more or longer patterns. */
const MAX_PATTERNS = 1000;
const MAX_PATTERN_LENGTH = 200;

/** The patterns of the filter, with `*` and `?`. A reason names a wrong pattern by its number. */
export const patterns: ParseItems<readonly string[]> = (items) => {
  if (items.length > MAX_PATTERNS) return expected(`at most ${MAX_PATTERNS} patterns`);
  const trimmed = items.map((item) => item.trim());
  const wrong = trimmed.findIndex((item) => item === '' || item.length > MAX_PATTERN_LENGTH || /\p{Cc}/u.test(item));
  if (wrong === -1) return trimmed;
  const what = trimmed[wrong] === '' ? 'is empty' : `is not a single line of at most ${MAX_PATTERN_LENGTH} characters`;
  return new InvalidText(`pattern ${wrong + 1} ${what}; expected patterns such as hub-* or Cold store`);
};

/** The most names of `listen_names`. */
const MAX_NAMES = 100;

/** The value of `listen_names`: host names without a port. */
export const hostNames: ParseItems<readonly string[]> = (items) => {
  const names = items.map((item) => item.trim());
  const isFit = names.every((name) => name.length <= 253 && /^[a-z\d_-]+(?:\.[a-z\d_-]+)*$/i.test(name));
  return isFit && names.length <= MAX_NAMES ? names : expected('host names without a port, such as page.example.com');
};

/** `true` or `false`, in lower case. */
export const flag: Parse<boolean> = (text) =>
  text === 'true' || text === 'false' ? text === 'true' : expected('true or false');

/** A cron expression; its times are in UTC. */
export const cron: Parse<Schedule> = (text) => {
  const step = cronStepMistake(text);
  if (step !== null) return new InvalidText(step);
  const read = readCron(text);
  return 'mistake' in read ? new InvalidText(read.mistake) : read;
};
