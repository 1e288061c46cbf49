/**
 * The coverage of a range as one line of characters: in cells of equal length (`CoverageBar`), or one character per UTC
 * day (`DayBar`). Pure.
 */
import type { DayReadings } from '../core/fleet.ts';
import { type Interval, type Intervals, intersect, lengthNs } from '../core/intervals.ts';
import type { DayBar } from '../core/page-facts.ts';
import { DAY_NS, maxNs, minNs, SECOND_NS } from '../core/time.ts';

const BAR_CELLS = 60;

/** The least that a cell is long. */
const LEAST_CELL_NS = 60n * SECOND_NS;

/**
 * Computes a bar. A cell is covered if nothing in it is missing. It counts as empty if it is covered and none of its
 * days has a reading: readings are counted by days, not by hours.
 */
export function coverageBar(
  range: Interval,
  { covered, days }: { covered: Intervals; days: readonly DayReadings[] },
): { readonly cells: string; readonly cellNs: bigint } {
  const length = range.to - range.from;
  if (length <= 0n) return { cells: '', cellNs: LEAST_CELL_NS };
  const even = (length + BigInt(BAR_CELLS) - 1n) / BigInt(BAR_CELLS);
  const cellNs = even > LEAST_CELL_NS ? even : LEAST_CELL_NS;
  const withReadings = new Set(days.filter(({ readings }) => readings > 0).map(({ day }) => day));
  let cells = '';
  for (let from = range.from; from < range.to; from += cellNs) {
    const to = from + cellNs < range.to ? from + cellNs : range.to;
    const isCovered = lengthNs(intersect(covered, [{ from, to }])) === to - from;
    cells += isCovered ? (touchesAny({ from, to }, withReadings) ? '#' : '-') : '.';
  }
  return { cells, cellNs };
}

function touchesAny({ from, to }: Interval, days: ReadonlySet<number>): boolean {
  for (let day = Number(from / DAY_NS); day <= Number((to - 1n) / DAY_NS); day += 1) if (days.has(day)) return true;
  return false;
}

/** The facts about a device and some days. */
export interface BarFacts {
  /** The first day (days since 1970), and how many. */
  readonly fromDay: number;
  readonly days: number;
  /** The wanted range: of a day only this part counts. */
  readonly wanted: Interval;
  readonly covered: Intervals;
  /** The days with a reading. */
  readonly withReadings: ReadonlySet<number>;
  /** Whether uncovered time is not wanted, as for an excluded device. */
  readonly isLeftOut: boolean;
}

/** Draws the bar of single days, for the device list. */
export function dayBar({ fromDay, days, wanted, covered, withReadings, isLeftOut }: BarFacts): DayBar {
  let bar = '';
  for (let day = fromDay; day < fromDay + days; day += 1) {
    const from = maxNs(BigInt(day) * DAY_NS, wanted.from);
    const to = minNs(BigInt(day + 1) * DAY_NS, wanted.to);
    if (from >= to) bar += ' ';
    else if (lengthNs(intersect(covered, [{ from, to }])) === to - from) bar += withReadings.has(day) ? '#' : '-';
    else bar += isLeftOut ? ' ' : '.';
  }
  return bar;
}
