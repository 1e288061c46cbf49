/**
 * The hours of a device that are held in full: what `coverage_hour` tells (design 1.4), so that a dashboard can tell
 * "no data" from "not synced". Each is written once, when it is held; claims end before what can still change.
 */
import type { CoveredSpan } from '../core/coverage.ts';
import { type Intervals, normalize, subtract, union } from '../core/intervals.ts';
import { type EpochNs, HOUR_NS } from '../core/time.ts';

/** The hour of a time, counted from 1970. */
export function hourOf(at: EpochNs): number {
  return Number(at / HOUR_NS);
}

/** When an hour begins. */
export function hourStart(hour: number): EpochNs {
  return BigInt(hour) * HOUR_NS;
}

/** The hours that lie whole inside the spans and are not written yet, and the set of written ones with them. */
export function hoursToWrite(
  spans: readonly CoveredSpan[],
  written: Intervals,
): { hours: readonly number[]; written: Intervals } {
  const whole = normalize(spans.map(({ from, to }) => ({ from: (from + HOUR_NS - 1n) / HOUR_NS, to: to / HOUR_NS })));
  const fresh = subtract(whole, written);
  const hours = fresh.flatMap(({ from, to }) =>
    Array.from({ length: Number(to - from) }, (_, index) => Number(from) + index),
  );
  return { hours, written: hours.length === 0 ? written : union(written, whole) };
}
