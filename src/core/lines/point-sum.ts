/**
 * The sum of some points: how many, and an order-independent hash of instant, sensor and value. Kept of each device and
 * day for ever, and made again of what a database returns (`--verify`). Frozen: it stands in the state.
 */
import { hash64 } from '../hash.ts';

/** Points in sum; each half of the hash mod 2^32. */
export interface PointSum {
  readonly points: number;
  readonly hashHigh: number;
  readonly hashLow: number;
}

export type GrowingSum = { -readonly [K in keyof PointSum]: PointSum[K] };

const HALF = 2 ** 32;

/** The sum of nothing, to be added to. */
export function emptySum(): GrowingSum {
  return { points: 0, hashHigh: 0, hashLow: 0 };
}

/**
 * A point as it counts in the sum of its day: what a database gives back, nothing more.
 *
 * @param stamp its time in nanoseconds since 1970, in digits. @param sensor as the tag value reads (not escaped).
 * @param field as it stands in a line: `value=1.5`.
 */
export function pointIdentity(stamp: string, sensor: string, field: string): string {
  return `${stamp} ${sensor} ${field}`;
}

/** Adds a point by its {@link pointIdentity}. */
export function addPoint(sum: GrowingSum, identity: string): void {
  const { hi, lo } = hash64(identity);
  sum.points += 1;
  sum.hashHigh = (sum.hashHigh + hi) % HALF;
  sum.hashLow = (sum.hashLow + lo) % HALF;
}

/** What is left of a sum without some of its points. */
export function lessSum(sum: PointSum, part: PointSum): PointSum {
  return {
    points: sum.points - part.points,
    hashHigh: (sum.hashHigh - part.hashHigh + HALF) % HALF,
    hashLow: (sum.hashLow - part.hashLow + HALF) % HALF,
  };
}

/** Whether two sums are of the same points, but for chance in 2^64. */
export function isSameSum(a: PointSum, b: PointSum): boolean {
  return a.points === b.points && a.hashHigh === b.hashHigh && a.hashLow === b.hashLow;
}
