/**
 * How often a device reports, learned from its readings and its signs of life. The estimate is two numbers per
 * device.
 *
 * The median interval of a full page sets the rate at once. A single interval moves it only a little, so jitter, gaps
 * and silence do not distort it; a rate that has really changed is followed within about twenty readings. A wrong
 * rate costs requests or freshness. It never affects the coverage.
 */

/** The usual interval between a device's readings, learnt from its pages. */
export interface ReportRate {
  /** The usual time from one reading to the next, in ms; `null` if it is not known yet. */
  readonly intervalMs: number | null;
  /** The mean deviation of single intervals from that, in ms. */
  readonly deviationMs: number;
}

/** The rate before the first page. */
export const UNKNOWN_RATE: ReportRate = { intervalMs: null, deviationMs: 0 };

/**
 * Intervals longer than the usual one by this factor are silence, not a rate; shorter ones by this factor are
 * repetitions.
 */
const OUTLIER = 4;
/** This many intervals count as much as all earlier ones. */
const MEMORY_GAPS = 4;
/** How many deviations of lateness still count as chance. */
const CHANCE_DEVIATIONS = 4;
/** A device whose next reading is certain within this many intervals reports regularly. */
const REGULAR = 1.5;
/** Served times may be truncated to seconds, on one side and not on the other. */
export const RESOLUTION_MS = 1000;
/** The factor by which a request that came too early lowers the estimated rate. */
const SLOWER = 1.5;

/**
 * Returns the rate after a page.
 *
 * @param instantsMs the instants of its readings, in order, newest or oldest first, without others between them.
 */
export function learnFromPage(before: ReportRate, instantsMs: readonly number[]): ReportRate {
  const gaps: number[] = [];
  for (let at = 1; at < instantsMs.length; at += 1) {
    const gap = Math.abs((instantsMs[at] ?? 0) - (instantsMs[at - 1] ?? 0));
    if (gap > 0) gaps.push(gap);
  }
  if (gaps.length === 0) return before;
  const middle = upperMedianOf(gaps);
  const deviation = meanDeviation(gaps, middle);
  if (before.intervalMs === null) return { intervalMs: middle, deviationMs: deviation };
  const weight = gaps.length / (gaps.length + MEMORY_GAPS);
  const known = before.intervalMs;
  // A few intervals may be chance: they change the rate by at most the factor of an outlier.
  const sample = gaps.length > MEMORY_GAPS ? middle : clamp(middle, known / OUTLIER, known * OUTLIER);
  const own = Math.max(deviation, Math.abs(sample - known) * (1 - weight));
  return {
    intervalMs: known + (sample - known) * weight,
    deviationMs: before.deviationMs + (own - before.deviationMs) * weight,
  };
}

/**
 * Returns the rate after two successive `last_seen_at` of a device. Any number of readings may lie between them, so the
 * rate is at least one reading in that time.
 */
export function learnFromSeen(before: ReportRate, gapMs: number): ReportRate {
  if (gapMs <= 0) return before;
  if (before.intervalMs === null) return { intervalMs: gapMs, deviationMs: gapMs / 2 };
  const readings = Math.max(1, Math.round(gapMs / before.intervalMs));
  // Over many intervals, rounding counts more than the measured time.
  return readings > OUTLIER ? before : learnFromPage(before, [0, gapMs / readings]);
}

/** Returns the rate after a reading was expected and had not come. */
export function learnFromEmpty(before: ReportRate): ReportRate {
  return before.intervalMs === null ? before : { ...before, intervalMs: before.intervalMs * SLOWER };
}

/**
 * How long after a reading the next one is almost certain, in ms; infinite if no rate is known. For an even rate that
 * is shortly after the interval; for readings at random times, after four intervals.
 */
export function certainWithinMs({ intervalMs, deviationMs }: ReportRate): number {
  return intervalMs === null ? Number.POSITIVE_INFINITY : intervalMs + CHANCE_DEVIATIONS * deviationMs + RESOLUTION_MS;
}

/** Whether the next reading is almost certain within half an interval after it is due. */
export function isRegular(rate: ReportRate): boolean {
  return rate.intervalMs !== null && certainWithinMs(rate) <= REGULAR * rate.intervalMs + RESOLUTION_MS;
}

/** The mean distance from the middle. Long intervals are silence and count only as outliers. */
function meanDeviation(gaps: readonly number[], middle: number): number {
  let sum = 0;
  for (const gap of gaps) sum += Math.min(Math.abs(gap - middle), (OUTLIER - 1) * middle);
  return sum / gaps.length;
}

/** The larger of the two middle values: a poll that comes before the next reading wastes a request. */
function upperMedianOf(numbers: readonly number[]): number {
  return Float64Array.from(numbers).sort()[numbers.length >> 1] ?? 0;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
