/**
 * Times are nanoseconds since 1970 in a bigint, computed from the digits that the server sent.
 *
 * `Date` would drop everything below a millisecond, so two readings a microsecond apart would become one point. Nothing
 * here reads a clock.
 */

/** Nanoseconds since 1970-01-01T00:00:00Z. */
export type EpochNs = bigint;

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number;

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export const HOUR_SECONDS = HOUR_MS / SECOND_MS;
export const DAY_SECONDS = DAY_MS / SECOND_MS;

/** The units of a duration as people and databases write it. */
export const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', SECOND_MS],
  ['m', MINUTE_MS],
  ['h', HOUR_MS],
  ['d', DAY_MS],
  ['w', 7 * DAY_MS],
  ['y', 365 * DAY_MS],
]);

export const MS_NS = 1_000_000n;
export const SECOND_NS = 1000n * MS_NS;
export const MINUTE_NS = 60n * SECOND_NS;
export const HOUR_NS = 3600n * SECOND_NS;
export const DAY_NS = 24n * HOUR_NS;

/** RFC 3339, with the two zone forms in use. Matching takes linear time, so no served text can make it slow. */
const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,40}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** The latest time that fits the 64 bits of SQLite and InfluxDB: 2262-04-11. */
const MAX_NS = 9_223_372_036_854_775_000n;

/** The same limit in milliseconds. */
export const MAX_MS: EpochMs = Number(MAX_NS / MS_NS);

/** Whether a parsed value is a time in nanoseconds since 1970, in decimal digits. */
export function isNsText(value: unknown): value is string {
  return typeof value === 'string' && /^-?\d{1,19}$/.test(value);
}

/** Whether a time fits the 64 bits of SQLite and InfluxDB: 1677 to 2262. */
export function isStorable(at: EpochNs): boolean {
  return at >= -MAX_NS && at <= MAX_NS;
}

/**
 * Reads an RFC 3339 timestamp to the nanosecond. Digits beyond the ninth are dropped; a leap second (`:60`) counts as
 * the last nanosecond of its minute, because no store can represent it.
 *
 * @returns the time, or `null` for anything that is not a real date and time from 1970 to 2262.
 */
export function parseTimestamp(text: string): EpochNs | null {
  const match = TIMESTAMP.exec(text);
  if (match === null) return null;
  const part = (index: number): number => Number(match[index]);
  const [year, month, day, hour, minute] = [part(1), part(2), part(3), part(4), part(5)];
  const leap = part(6) === 60;
  const second = leap ? 59 : part(6);
  if (hour > 23 || minute > 59 || second > 59 || !isDate(year, month, day)) return null;
  const fraction = leap ? '999999999' : (match[7] ?? '').slice(0, 9).padEnd(9, '0');
  const zone = zoneMinutes(match[8], part(9), part(10));
  if (zone === null) return null;
  const ms = Date.UTC(year, month - 1, day, hour, minute, second) - zone * MINUTE_MS;
  const ns = BigInt(ms) * MS_NS + BigInt(fraction);
  return ns < 0n || ns > MAX_NS ? null : ns;
}

function isDate(year: number, month: number, day: number): boolean {
  // `Date.UTC` would read years below 100 as years of the last century.
  if (year < 100 || month < 1 || month > 12 || day < 1) return false;
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

function zoneMinutes(sign: string | undefined, hours: number, minutes: number): number | null {
  if (sign === undefined) return 0;
  if (hours > 23 || minutes > 59) return null;
  return (sign === '-' ? -1 : 1) * (hours * 60 + minutes);
}

const DAY_LENGTH = 10;
/** The position of the fraction's first digit. */
const FRACTION_AT = 20;
const LONGEST = FRACTION_AT + 9 + 1;
/** Up to this day (the end of 2261) every time of day is within the range of timestamps. */
const LAST_DAY_MS = 291 * 365 * DAY_MS;

const ZERO = 48;
const COLON = 58;
const DOT = 46;
const T = 84;
const Z = 90;

/**
 * Creates a fast reader for the times of readings, which are most of the data; `null` for a text that is no time. It
 * remembers the day, because neighbours on a page share it. It accepts the same times as `parseTimestamp`, and calls it
 * for any form other than `2026-01-31T23:59:59.123Z` (with up to nine digits of a fraction, or none).
 */
export function createTimeReader(): (text: string) => EpochNs | null {
  let day = '';
  let dayMs: EpochMs = 0;
  return (text) => {
    if (!hasUsualShape(text)) return parseTimestamp(text);
    if (day === '' || !text.startsWith(day)) {
      const found = text.slice(0, DAY_LENGTH);
      const at = parseTimestamp(`${found}T00:00:00Z`);
      if (at === null || nsToMs(at) > LAST_DAY_MS) return parseTimestamp(text);
      day = found;
      dayMs = nsToMs(at);
    }
    const timeMs = timeOfDayMs(text);
    const fraction = fractionNs(text);
    if (timeMs === null || fraction === null) return parseTimestamp(text);
    // A number holds whole milliseconds exactly; the rest is added separately.
    return BigInt(dayMs + timeMs) * MS_NS + (fraction === 0 ? 0n : BigInt(fraction));
  };
}

function hasUsualShape(text: string): boolean {
  const { length } = text;
  return (
    length >= FRACTION_AT &&
    length <= LONGEST &&
    text.charCodeAt(length - 1) === Z &&
    text.charCodeAt(DAY_LENGTH) === T &&
    text.charCodeAt(13) === COLON &&
    text.charCodeAt(16) === COLON &&
    (length === FRACTION_AT || (length > FRACTION_AT + 1 && text.charCodeAt(19) === DOT))
  );
}

/** Hours, minutes and seconds in ms; `null` if they are invalid or a leap second. */
function timeOfDayMs(text: string): number | null {
  const hour = twoDigits(text, 11);
  const minute = twoDigits(text, 14);
  const second = twoDigits(text, 17);
  if (!(hour < 24 && minute < 60 && second < 60)) return null;
  return ((hour * 60 + minute) * 60 + second) * 1000;
}

/** Returns the number; NaN if there is none. */
function twoDigits(text: string, at: number): number {
  return digitAt(text, at) * 10 + digitAt(text, at + 1);
}

/** The fraction in nanoseconds; `null` if it contains anything but digits. */
function fractionNs(text: string): number | null {
  let ns = 0;
  for (let at = FRACTION_AT; at < FRACTION_AT + 9; at += 1) {
    ns = ns * 10 + (at < text.length - 1 ? digitAt(text, at) : 0);
  }
  return Number.isNaN(ns) ? null : ns;
}

function digitAt(text: string, at: number): number {
  const digit = text.charCodeAt(at) - ZERO;
  return digit >= 0 && digit <= 9 ? digit : Number.NaN;
}

/**
 * Whether a time is later than that of the point before it. A point more than a day ahead comes from a wrong clock and
 * does not count.
 */
export function isLater(atMs: EpochMs, beforeMs: EpochMs): boolean {
  return atMs > beforeMs || beforeMs - atMs > DAY_MS;
}

/** The index of the first of ascending times that is later than `atMs`, from index `low` on. */
export function firstAfter(times: readonly EpochMs[], atMs: EpochMs, low = 0): number {
  let from = low;
  let to = times.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((times[middle] ?? 0) <= atMs) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Milliseconds to nanoseconds; a fraction of a millisecond is dropped. */
export function msToNs(ms: EpochMs): EpochNs {
  return BigInt(Math.floor(ms)) * MS_NS;
}

/** Nanoseconds to milliseconds, rounded down. */
export function nsToMs(ns: EpochNs): EpochMs {
  return Number(ns / MS_NS);
}

/** The last whole second not after `ns`. */
export function floorToSecond(ns: EpochNs): EpochNs {
  return ns - (((ns % SECOND_NS) + SECOND_NS) % SECOND_NS);
}

/** The first whole second not before `ns`. */
export function ceilToSecond(ns: EpochNs): EpochNs {
  const floor = floorToSecond(ns);
  return floor === ns ? ns : floor + SECOND_NS;
}

/** RFC 3339 UTC in whole seconds: the form in which `after` and `before` are sent. */
export function formatSeconds(ns: EpochNs): string {
  return `${formatMs(nsToMs(floorToSecond(ns))).slice(0, 19)}Z`;
}

/**
 * RFC 3339 UTC to the millisecond: the time of log lines.
 *
 * @throws RangeError for a time outside the calendar.
 */
export function formatMs(ms: EpochMs): string {
  return new Date(ms).toISOString();
}

/** RFC 3339 UTC with as many digits as the time needs: for people and `/status.json`. */
export function formatExact(ns: EpochNs): string {
  const digits = (ns - floorToSecond(ns)).toString().padStart(9, '0').replace(/0+$/, '');
  const whole = formatSeconds(ns);
  return digits === '' ? whole : `${whole.slice(0, -1)}.${digits}Z`;
}

/** The time in milliseconds as RFC 3339 UTC, or `null` for none: for `/status.json`. */
export function timeText(ms: EpochMs): string;
export function timeText(ms: EpochMs | null): string | null;
export function timeText(ms: EpochMs | null): string | null {
  return ms === null ? null : formatExact(msToNs(ms));
}

/** The length of a range whose ends are RFC 3339. */
export function rangeNs({ from, to }: { readonly from: string; readonly to: string }): bigint {
  return (parseTimestamp(to) ?? 0n) - (parseTimestamp(from) ?? 0n);
}

/**
 * The first instant of a day, UTC.
 *
 * @param day since 1970.
 */
export function dayStart(day: number): EpochNs {
  return BigInt(day) * DAY_NS;
}

/** Returns the earlier of two instants: `Math.min` takes no bigint. */
export function minNs(a: EpochNs, b: EpochNs): EpochNs {
  return a < b ? a : b;
}

/** Returns the later of two instants: `Math.max` takes no bigint. */
export function maxNs(a: EpochNs, b: EpochNs): EpochNs {
  return a > b ? a : b;
}

/** All three date forms of RFC 9110 begin with the name of a day. */
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? [\w :-]{10,40}$/;

/** Parses a date of HTTP, such as `Date` or a `Retry-After`; `null` for anything else, and for a time before 1970. */
export function parseHttpDate(text: string | undefined): EpochMs | null {
  if (text === undefined || !HTTP_DATE.test(text.trim())) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) || ms < 0 ? null : ms;
}

/** Parses a wait of HTTP, such as a `Retry-After` in seconds, with or without a fraction, to ms; `null` for others. */
export function parseHttpWait(text: string): number | null {
  return /^\d{1,9}(?:\.\d{1,9})?$/.test(text) ? Number(text) * SECOND_MS : null;
}
