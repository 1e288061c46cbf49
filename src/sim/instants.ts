/**
 * Represents times of the simulated world as milliseconds and the nanoseconds within one. Two plain numbers are faster
 * than a bigint, which would dominate the cost of a search.
 */
import { DAY_MS, type EpochMs, type EpochNs, MS_NS, SECOND_NS } from '../core/time.ts';

/** How many digits of a time are served. */
export type Precision = 's' | 'ms' | 'us' | 'ns';

/** The instant `ms` plus `subNs` nanoseconds; `subNs` is a whole number from 0 to 999,999. */
export interface Instant {
  readonly ms: EpochMs;
  readonly subNs: number;
}

const STEP_NS: Record<Precision, bigint> = { s: SECOND_NS, ms: MS_NS, us: 1000n, ns: 1n };

/** The instant as the API stores it: digits beyond the precision are truncated. */
export function truncate({ ms, subNs }: Instant, precision: Precision): Instant {
  switch (precision) {
    case 's':
      return { ms: ms - (((ms % 1000) + 1000) % 1000), subNs: 0 };
    case 'ms':
      return { ms, subNs: 0 };
    case 'us':
      return { ms, subNs: subNs - (subNs % 1000) };
    case 'ns':
      return { ms, subNs };
  }
}

/** Returns the date of a day that begins at `dayMs`: `2026-01-15`. */
export type DateOf = (dayMs: EpochMs) => string;

const dateOf: DateOf = (dayMs) => new Date(dayMs).toISOString().slice(0, -14);

/**
 * Caches the last date: most readings of a page have the same day, and the date would dominate the cost of a reading.
 */
export function createDateOf(): DateOf {
  let last = { ms: Number.NaN, date: '' };
  return (dayMs) => {
    if (last.ms !== dayMs) last = { ms: dayMs, date: dateOf(dayMs) };
    return last.date;
  };
}

/** RFC 3339 UTC with exactly the digits of the precision; `instant` is already truncated to it. */
export function formatInstant({ ms, subNs }: Instant, precision: Precision, date: DateOf = dateOf): string {
  const inDayMs = ((ms % DAY_MS) + DAY_MS) % DAY_MS;
  const seconds = Math.floor(inDayMs / 1000);
  const minutes = Math.floor(seconds / 60);
  const whole = `${date(ms - inDayMs)}T${digits(minutes / 60, 100)}:${digits(minutes % 60, 100)}:${digits(seconds % 60, 100)}`;
  switch (precision) {
    case 's':
      return `${whole}Z`;
    case 'ms':
      return `${whole}.${digits(inDayMs % 1000, 1000)}Z`;
    case 'us':
      return `${whole}.${digits(inDayMs % 1000, 1000)}${digits(subNs / 1000, 1000)}Z`;
    case 'ns':
      return `${whole}.${digits(inDayMs % 1000, 1000)}${digits(subNs, 1_000_000)}Z`;
  }
}

/** The whole part of a number, with leading zeros: as many digits as `base` has zeros. */
function digits(value: number, base: number): string {
  return String(base + Math.floor(value)).slice(1);
}

/** Converts an instant to ns since 1970. */
export function instantToNs({ ms, subNs }: Instant): EpochNs {
  return BigInt(ms) * MS_NS + BigInt(subNs);
}

/** The instant of a time in ns since 1970. */
export function nsToInstant(ns: EpochNs): Instant {
  const sub = ((ns % MS_NS) + MS_NS) % MS_NS;
  return { ms: Number((ns - sub) / MS_NS), subNs: Number(sub) };
}

/** The first instant of the precision's grid that is not before `ns`. */
export function ceilToPrecision(ns: EpochNs, precision: Precision): EpochNs {
  const step = STEP_NS[precision];
  const over = ((ns % step) + step) % step;
  return over === 0n ? ns : ns - over + step;
}

/** A time in milliseconds as the API would serve it. */
export function formatToPrecision(ms: EpochMs, precision: Precision): string {
  return formatInstant(truncate({ ms: Math.floor(ms), subNs: 0 }, precision), precision);
}
