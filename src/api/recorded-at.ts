/**
 * The times of readings, read fast: they are where the mass is, and neighbours on a page share their day.
 *
 * The same times as `parseTimestamp`, which reads whatever does not look like `2026-01-31T23:59:59.123Z` (with up to
 * nine digits of a fraction, or none).
 */
import { DAY_MS, type EpochMs, type EpochNs, MS_NS, nsToMs, parseTimestamp } from '../core/time.ts';

const DAY_LENGTH = 10;
/** Where the fraction's digits begin. */
const FRACTION_AT = 20;
const LONGEST = FRACTION_AT + 9 + 1;
/** From here to the end of 2261 no sum of a day and a time of day can leave the times that there are. */
const LAST_DAY_MS = 291 * 365 * DAY_MS;

const ZERO = 48;
const COLON = 58;
const DOT = 46;
const T = 84;
const Z = 90;

/** @returns what reads one time after the other, remembering the day of the one before. */
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
    // Whole milliseconds are exact in a number; what is below them is added apart.
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

/** Hours, minutes and seconds; `null` where they are none, or a leap second. */
function timeOfDayMs(text: string): number | null {
  const hour = twoDigits(text, 11);
  const minute = twoDigits(text, 14);
  const second = twoDigits(text, 17);
  if (!(hour < 24 && minute < 60 && second < 60)) return null;
  return ((hour * 60 + minute) * 60 + second) * 1000;
}

/** @returns the number; NaN where there is none. */
function twoDigits(text: string, at: number): number {
  return digitAt(text, at) * 10 + digitAt(text, at + 1);
}

/** The fraction in nanoseconds; `null` where it has something else than digits. */
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
