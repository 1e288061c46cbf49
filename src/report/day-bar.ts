/**
 * What is held of the last days as one line of characters (`DayBar`), a character for each day (UTC). Pure.
 */
import { type Interval, type Intervals, intersect, lengthNs } from '../core/intervals.ts';
import type { DayBar } from '../core/page-facts.ts';
import { DAY_NS, maxNs, minNs } from '../core/time.ts';

/** What is known of a device and some days. */
export interface BarFacts {
  /** The first day (days since 1970), and how many. */
  readonly fromDay: number;
  readonly days: number;
  /** What is to be held: of a day only that part counts. */
  readonly wanted: Interval;
  readonly held: Intervals;
  /** The days of which a reading is held. */
  readonly withReadings: ReadonlySet<number>;
  /** Whether what is not held is not wanted either: so it is of a device that is left out. */
  readonly isLeftOut: boolean;
}

/** Draws it. */
export function dayBar({ fromDay, days, wanted, held, withReadings, isLeftOut }: BarFacts): DayBar {
  let bar = '';
  for (let day = fromDay; day < fromDay + days; day += 1) {
    const from = maxNs(BigInt(day) * DAY_NS, wanted.from);
    const to = minNs(BigInt(day + 1) * DAY_NS, wanted.to);
    if (from >= to) bar += ' ';
    else if (lengthNs(intersect(held, [{ from, to }])) === to - from) bar += withReadings.has(day) ? '#' : '-';
    else bar += isLeftOut ? ' ' : '.';
  }
  return bar;
}
