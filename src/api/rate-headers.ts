/**
 * What an answer's headers tell of the allowance and of time (API document, "Limits"; design 2.6).
 *
 * The name of the wait header is not documented, so it is found by what it looks like. Whatever cannot be read is
 * treated as not told.
 */
import { DAY_MS, type EpochMs, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';

export type Headers = Readonly<Record<string, string>>;

/** What is waited where a refusal names no time. */
const DEFAULT_WAIT_MS = MINUTE_MS;
const MIN_WAIT_MS = SECOND_MS;
/** A day's allowance comes back within a day; the hour is for clocks and roundings. */
export const MAX_WAIT_MS = 25 * HOUR_MS;

/** Seconds, at most nine digits; a fraction is tolerated. */
const SECONDS = /^\d{1,9}(?:\.\d{1,9})?$/;
const EPOCH_SECONDS = /^\d{10}$/;
/** The three forms of RFC 9110 begin with the name of a day. */
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? [\w :-]{10,40}$/;

/** The `Date` of an answer; `null` where it is missing or unreadable. */
export function readDate(headers: Headers): EpochMs | null {
  return parseHttpDate(headers['date']);
}

/** `X-RateLimit-Limit` and `-Remaining` of one window or the other; `null` where not told. */
export function readRateLimit(headers: Headers): { limit: number | null; remaining: number | null } {
  return { limit: readCount(headers['x-ratelimit-limit']), remaining: readCount(headers['x-ratelimit-remaining']) };
}

function readCount(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,12}$/.test(text.trim()) ? Number(text) : null;
}

/**
 * How long `Retry-After` asks to wait, in milliseconds, from 1 s to 25 h; `null` where it is missing or unreadable.
 *
 * @param nowMs the server's time, for a wait that is told as a date.
 */
export function readRetryAfter(headers: Headers, nowMs: EpochMs): number | null {
  const text = headers['retry-after'];
  return text === undefined ? null : readWait(text.trim(), nowMs);
}

/**
 * How long a 429 asks to wait: `Retry-After` first, then the longest of what any header says whose name speaks of
 * retrying or of a reset, else a minute.
 *
 * @param nowMs the server's time, for a wait that is told as a date or as seconds since 1970.
 */
export function readThrottleWait(headers: Headers, nowMs: EpochMs): number {
  const asked = readRetryAfter(headers, nowMs);
  if (asked !== null) return asked;
  const waits = Object.entries(headers)
    .filter(([name]) => /retry|reset/i.test(name))
    .flatMap(([, text]) => readWait(text.trim(), nowMs) ?? []);
  return waits.length === 0 ? DEFAULT_WAIT_MS : Math.max(...waits);
}

function readWait(text: string, nowMs: EpochMs): number | null {
  if (SECONDS.test(text)) return clampWait(Math.ceil(Number(text)) * SECOND_MS);
  const untilMs = EPOCH_SECONDS.test(text) ? Number(text) * SECOND_MS : parseHttpDate(text);
  // A point in time is only believed near the server's own: anything else is some other number.
  if (untilMs === null || Math.abs(untilMs - nowMs) > 2 * DAY_MS) return null;
  return clampWait(untilMs - nowMs);
}

function clampWait(waitMs: number): number {
  return Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, waitMs));
}

function parseHttpDate(text: string | undefined): EpochMs | null {
  if (text === undefined || !HTTP_DATE.test(text.trim())) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) || ms < 0 ? null : ms;
}
