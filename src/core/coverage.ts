/**
 * Coverage: the time ranges of a device that are stored in full, with the readings at their edges.
 *
 * Pages arrive newest first, so the newest time seen would be no checkpoint: an interruption between two pages would
 * lose the readings between them. The state keeps this set of ranges instead. The wanted range minus the set is left to
 * read, so gaps can be closed piece by piece and in any order.
 */
import { type Interval, type Intervals, normalize, subtract } from './intervals.ts';
import { DAY_NS, type EpochNs } from './time.ts';

/** A stored reading, identified by its instant and its content. */
export interface Edge {
  readonly at: EpochNs;
  /** `readingDigest` of the reading. */
  readonly digest: string;
}

/**
 * A covered range, half-open, with the readings at its ends.
 *
 * `first` is the oldest stored reading at or above `from`. A scan further back starts from it. It may lie one
 * nanosecond below `from` if a page ended in the middle of an instant. `last` is the newest stored reading below `to`.
 * Both are `null` if the range contains no reading. If the newest instant of a scan fills whole pages, the edges may be
 * the readings beside that instant.
 */
export interface CoveredRange extends Interval {
  readonly first: Edge | null;
  readonly last: Edge | null;
}

/** Longer than a weekend: a device without readings for this long did not exist yet. */
const NOT_THERE_NS = 3n * DAY_NS;

/**
 * The first reading of a device, if a covered range begins long before that reading.
 *
 * @param lowest the lowest known range of the device.
 */
export function firstReadingOf(lowest: { readonly from: EpochNs; readonly firstNs: EpochNs | null }): EpochNs | null {
  const { from, firstNs } = lowest;
  return firstNs !== null && firstNs - from >= NOT_THERE_NS ? firstNs : null;
}

/** The bare intervals of the ranges, in normal form. */
export function coveredIntervals(covered: readonly CoveredRange[]): Intervals {
  return normalize(covered.map(({ from, to }) => ({ from, to })));
}

/** Returns the parts of `wanted` that are not covered, ascending. */
export function gapsIn(wanted: Interval, covered: readonly CoveredRange[]): Intervals {
  return subtract(normalize([wanted]), coveredIntervals(covered));
}

/** Adds a covered range; ranges that touch or overlap become one. The result is ascending and disjoint. */
export function addRange(covered: readonly CoveredRange[], added: CoveredRange): readonly CoveredRange[] {
  if (added.from >= added.to) return covered;
  const apart = covered.filter((range) => range.to < added.from || range.from > added.to);
  const merged = covered.filter((range) => !apart.includes(range)).reduce(mergeRanges, added);
  return [...apart, merged].sort((a, b) => (a.from < b.from ? -1 : 1));
}

function mergeRanges(a: CoveredRange, b: CoveredRange): CoveredRange {
  return {
    from: a.from < b.from ? a.from : b.from,
    to: a.to > b.to ? a.to : b.to,
    first: pickEdge(a.first, b.first, (x, y) => x.at < y.at),
    last: pickEdge(a.last, b.last, (x, y) => x.at > y.at),
  };
}

function pickEdge(a: Edge | null, b: Edge | null, better: (x: Edge, y: Edge) => boolean): Edge | null {
  if (a === null || b === null) return a ?? b;
  return better(b, a) ? b : a;
}

/**
 * Returns the overlap readings that an answer for `gap` must contain.
 *
 * @returns `near`: the reading above the gap from which a page scan continues; `null` if no covered range follows the
 * gap. `far`: the next reading below the gap, however far below; a page that ends the window must reach it; `null` if
 * there is none.
 */
export function overlapsOf(gap: Interval, covered: readonly CoveredRange[]): { near: Edge | null; far: Edge | null } {
  return {
    near: covered.find((range) => range.from === gap.to)?.first ?? null,
    far: covered.findLast(({ to, last }) => to <= gap.from && last !== null)?.last ?? null,
  };
}
