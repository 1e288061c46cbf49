/**
 * Sets of half-open intervals of nanoseconds. Coverage and gaps are such sets.
 *
 * Every function takes and returns sets in normal form: ascending, without empty intervals, and no two that touch.
 */
import { dayStart, type EpochNs, maxNs, minNs } from './time.ts';

/** The instants `t` with `from <= t < to`. */
export interface Interval {
  readonly from: EpochNs;
  readonly to: EpochNs;
}

/** A set of instants in normal form. */
export type Intervals = readonly Interval[];

/** Normalizes a list of intervals; empty and reversed ones are dropped. */
export function normalize(intervals: Iterable<Interval>): Intervals {
  const sorted = [...intervals].filter(({ from, to }) => from < to).sort((a, b) => (a.from < b.from ? -1 : 1));
  const merged: Interval[] = [];
  for (const next of sorted) {
    const last = merged.at(-1);
    if (last === undefined || next.from > last.to) merged.push(next);
    else merged[merged.length - 1] = { from: last.from, to: maxNs(last.to, next.to) };
  }
  return merged;
}

/** The shortest interval that contains both. */
export function hull(a: Interval | null, b: Interval): Interval {
  return a === null ? b : { from: minNs(a.from, b.from), to: maxNs(a.to, b.to) };
}

/** All instants that are in `a` or in `b`. */
export function union(a: Intervals, b: Intervals): Intervals {
  return normalize([...a, ...b]);
}

/** The instants of `a` that are not in `b`. */
export function subtract(a: Intervals, b: Intervals): Intervals {
  const left: Interval[] = [];
  for (const whole of a) {
    let from = whole.from;
    for (const cut of b) {
      if (cut.to <= from || cut.from >= whole.to) continue;
      if (cut.from > from) left.push({ from, to: cut.from });
      from = maxNs(from, cut.to);
    }
    if (from < whole.to) left.push({ from, to: whole.to });
  }
  return left;
}

/** The instants that are in both. */
export function intersect(a: Intervals, b: Intervals): Intervals {
  const both: Interval[] = [];
  for (const x of a) {
    for (const y of b) {
      const from = maxNs(x.from, y.from);
      const to = minNs(x.to, y.to);
      if (from < to) both.push({ from, to });
    }
  }
  return normalize(both);
}

/**
 * A whole day, UTC.
 *
 * @param day since 1970.
 */
export function wholeDay(day: number): Interval {
  return { from: dayStart(day), to: dayStart(day + 1) };
}

/** Whether `at` lies in the set. */
export function includes(set: Intervals, at: EpochNs): boolean {
  return set.some(({ from, to }) => from <= at && at < to);
}

/** The length of the set in nanoseconds. */
export function lengthNs(set: Intervals): bigint {
  return set.reduce((sum, { from, to }) => sum + (to - from), 0n);
}
