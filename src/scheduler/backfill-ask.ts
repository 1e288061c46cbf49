/**
 * What a backfill is asked for, and what of a device it then wants: the stretch, the holes in it, where `all` ends.
 *
 * Everything here is a function of what is held: so a backfill may be broken off anywhere and begun again, and goes on
 * where it was.
 */
import { type CoveredSpan, holesIn } from '../core/coverage.ts';
import { type Interval, type Intervals, subtract } from '../core/intervals.ts';
import { DAY_NS, type EpochNs, maxNs, minNs } from '../core/time.ts';
import type { OpenHistory, Reach } from './history-queue.ts';

/**
 * So long a stretch without a reading, below the oldest sign of a device, ends `all`: more than a year, so that a device
 * that rested for a season or a year is found again. No window proves more than itself, so some such rule there must be;
 * and where one window could reach over all of time, every hour that it claims would become a `coverage_hour` point.
 */
export const QUIET_ENDS_NS = 400n * DAY_NS;

/** What is known of how far back a device goes. */
export interface OldestSigns {
  readonly spans: readonly CoveredSpan[];
  /** `last_seen_at` and `location_updated_at`: it was there by then. */
  readonly seenAt: readonly (EpochNs | null)[];
  /** The end of what is asked for. */
  readonly to: EpochNs;
}

/** Where `all` begins of a device, as far as is known by now: it moves back with each older reading. */
export function beginningOfAll({ spans, seenAt, to }: OldestSigns): EpochNs {
  const oldest = oldestReading(spans);
  const signs = [to, oldest, ...seenAt].filter((at) => at !== null);
  return maxNs(signs.reduce(minNs) - QUIET_ENDS_NS, 0n);
}

/** The oldest reading that is held; `null` where none is. */
export function oldestReading(spans: readonly CoveredSpan[]): EpochNs | null {
  return spans.find(({ first }) => first !== null)?.first?.at ?? null;
}

/** Whether what is held of a stretch has readings in it, as far as the edges of what is held tell. */
export function hasReadings(spans: readonly CoveredSpan[], { from, to }: Interval): boolean {
  return spans.some(({ first, last }) => first !== null && last !== null && first.at < to && last.at >= from);
}

export interface WantedHoles {
  readonly spans: readonly CoveredSpan[];
  readonly wanted: Interval;
  /** Named gaps that are not worth another try yet. */
  readonly resting: Intervals;
  /** What others are at, and need not be asked for here. */
  readonly others: Intervals;
  /** Whether what lies above all that is held is left to others. */
  readonly leavesTop: boolean;
}

/** The holes that are worth a request now, ascending. */
export function holesToAsk({ spans, wanted, resting, others, leavesTop }: WantedHoles): Intervals {
  const top = spans.at(-1)?.to ?? wanted.from;
  const to = leavesTop ? minNs(wanted.to, maxNs(top, wanted.from)) : wanted.to;
  if (wanted.from >= to) return [];
  return subtract(subtract(holesIn({ from: wanted.from, to }, spans), resting), others);
}

const REACH_NS: Readonly<Record<Reach, bigint | null>> = { day: DAY_NS, week: 7n * DAY_NS, rest: null };

/** The newest of the holes, as far as it lies in a reach counted back from a time; `null` where none does. */
export function newestHole(holes: Intervals, reach: Reach, now: EpochNs): Interval | null {
  const hole = holes.at(-1);
  const back = REACH_NS[reach];
  if (hole === undefined) return null;
  const from = back === null ? hole.from : maxNs(hole.from, now - back);
  return from < hole.to ? { from, to: hole.to } : null;
}

export const NOTHING_OPEN: OpenHistory = { day: 0, week: 0, rest: 0 };
