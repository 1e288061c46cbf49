/**
 * Reads the times of readings fast: they are most of the data. The reader remembers the day, because neighbours on a
 * page share it. It accepts the same times as `parseTimestamp`, and calls it for any form other than
 * `2026-01-31T23:59:59.123Z` (with up to nine digits of a fraction, or none).
 */
import { DAY_MS, type EpochMs, type EpochNs, MS_NS, nsToMs, parseTimestamp } from '../core/time.ts';

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

/** Creates a reader for the times of a page; `null` for a text that is no time. */
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

/** @returns the number; NaN if there is none */
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
