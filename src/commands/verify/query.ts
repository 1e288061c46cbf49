/** Queries a destination for points: how much at once, with which retries, and their sums by day. */
import type { Interval } from '../../core/intervals.ts';
import { addPoint, emptySum, type GrowingSum, pointIdentity } from '../../core/lines/points.ts';
import type { Clock } from '../../core/ports.ts';
import type { ArchivedDay, PointSource, ReadProblem, TakePoint } from '../../core/state/verify.ts';
import { DAY_NS, dayStart, type EpochNs, SECOND_MS } from '../../core/time.ts';

/** How long is waited before each further try. */
const REST_MS: readonly number[] = [SECOND_MS, 3 * SECOND_MS, 10 * SECOND_MS];

/**
 * Queries a destination for a range. A temporary failure repeats the query from the beginning of the range.
 *
 * @param begin creates the collector of the points, once for each attempt.
 * @returns the collector, or the problem.
 */
export async function queryPatiently<T extends object>(
  { source, clock }: { readonly source: PointSource; readonly clock: Clock },
  of: { readonly device: string } & Interval,
  begin: () => { readonly gathered: T; readonly take: TakePoint },
  signal: AbortSignal,
): Promise<T | ReadProblem> {
  for (let nth = 0; ; nth += 1) {
    const { gathered, take } = begin();
    const problem = await source.points(of, take, signal);
    if (problem === null) return gathered;
    const restMs = REST_MS[nth];
    if (problem.kind === 'refused' || restMs === undefined) return problem;
    await clock.sleep(restMs, signal);
  }
}

/** Begins to collect the sum of each day. */
export function beginSums(): { gathered: Map<number, GrowingSum>; take: TakePoint } {
  const sums = new Map<number, GrowingSum>();
  return { gathered: sums, take: summing(sums) };
}

function summing(sums: Map<number, GrowingSum>): TakePoint {
  let [lastDay, last] = [Number.NaN, emptySum()];
  return (stamp, sensor, field) => {
    const day = Math.floor(Number(stamp.slice(0, -9)) / 86_400);
    if (day !== lastDay) {
      lastDay = day;
      last = sums.get(day) ?? emptySum();
      sums.set(day, last);
    }
    addPoint(last, pointIdentity(stamp, sensor, FLAGS[field] ?? field));
  };
}

/** Where there are numbers only, flags are such. */
const FLAGS: Readonly<Record<string, string>> = { 'flag=1': 'flag=true', 'flag=0': 'flag=false' };

/** How many points are requested at once: some seconds of work for a database. */
const BATCH_POINTS = 250_000;

/** Consecutive days, `[from, to)`, that are requested by one query. */
export function batchesOf(days: readonly ArchivedDay[], fromDay: number, toDay: number): [number, number][] {
  const batches: [number, number][] = [];
  let [start, points] = [fromDay, 0];
  for (const day of days) {
    if (points > 0 && points + day.points > BATCH_POINTS) {
      batches.push([start, day.day]);
      [start, points] = [day.day, 0];
    }
    points += day.points;
  }
  if (start < toDay) batches.push([start, toDay]);
  return batches;
}

/** How many points are compared by themselves at once. */
const RANGE_POINTS = 20_000;

/**
 * The ranges of a day that are compared point by point, one after the other.
 *
 * @param size about how many points the day has.
 */
export function rangesOf({ day, size }: { readonly day: number; readonly size: number }): Interval[] {
  const parts = BigInt(Math.min(1440, Math.ceil(Math.max(1, size) / RANGE_POINTS)));
  const from = dayStart(day);
  return Array.from({ length: Number(parts) }, (_, nth) => ({
    from: from + edge(BigInt(nth), parts),
    to: from + edge(BigInt(nth) + 1n, parts),
  }));
}

/** Whole milliseconds: a database that keeps those has nothing across an edge. */
function edge(nth: bigint, parts: bigint): EpochNs {
  const ns = (DAY_NS * nth) / parts;
  return ns - (ns % 1_000_000n);
}
