/**
 * Estimates that need no request: the readings, requests and time that a range of history costs.
 *
 * The cost follows the page scan. The range is read breadth first in three parts (`history-queue.ts`), each part in
 * windows of the plan's width. Pages overlap by one reading and the slack. A window without readings takes two empty
 * answers.
 *
 * The API does not report when the readings of a device begin. That is known for devices whose range is covered; the
 * others are expected to begin in the same way.
 */
import { type CoveredRange, firstReadingOf } from '../core/coverage.ts';
import type { DeviceRate } from '../core/fleet.ts';
import { type Interval, type Intervals, lengthNs, subtract } from '../core/intervals.ts';
import {
  DAY_MS,
  DAY_NS,
  type EpochMs,
  type EpochNs,
  HOUR_NS,
  MINUTE_MS,
  MS_NS,
  maxNs,
  minNs,
  msToNs,
} from '../core/time.ts';
import { SLACK_NS } from '../ingest/page-request.ts';
import { budgetAfterRequest, deficitAt, fillRate, spareAt, unlimitedDay, withFigures } from './day-budget.ts';
import type { DaySupply } from './planner-types.ts';

/** The requests for an empty range. Its first answer has no overlap reading, so a second one confirms it. */
const EMPTY_REQUESTS = 2;
/** A gap above the covered ranges and younger than this belongs to live work, not to the history. */
const LIVE_NS = HOUR_NS;
/** How far back from the limit each recency (`history-queue.ts`) begins, in ns. The last recency has no beginning. */
const AGES_NS: readonly bigint[] = [DAY_NS, 7n * DAY_NS];

/** The part of a device's rate and coverage that an estimate needs. */
interface EstimatedDevice extends Pick<DeviceRate, 'intervalMs' | 'isQuiet' | 'lastSignMs' | 'covered'> {
  /** Its first reading, if the range has no older one (`findBeginning`). */
  readonly beginsNs?: EpochNs | null;
}

/** The input of {@link backfillNeed}. */
export interface BackfillInput {
  readonly devices: readonly EstimatedDevice[];
  readonly range: Interval;
  readonly now: EpochNs;
  /** The coverage limit. The page scan measures the parts of a range from it. */
  readonly limit: EpochNs;
  readonly pageSize: number;
  /** The widest window that the plan allows; `null`: any width. */
  readonly windowNs: bigint | null;
}

/** The missing part of a range of history, and what it costs. */
interface BackfillNeed {
  /** Devices with a gap in the range. */
  readonly devices: number;
  /** The missing fraction of the range, 0 to 1. */
  readonly openShare: number;
  readonly readings: number;
  readonly requests: number;
  /**
   * Whether nothing is known about where the readings of the devices begin. The cost is lower if devices are younger
   * than the range.
   */
  readonly assumesFullHistory: boolean;
}

/** Estimates the requests that close a range of history. */
export function backfillNeed(input: BackfillInput): BackfillNeed {
  const { devices, range, now } = input;
  let [open, openNs, readings, requests] = [0, 0n, 0, 0];
  const pieces = rangesByAge(input);
  const beginning = createBeginnings(input);
  for (const device of devices) {
    const missing = subtract([range], device.covered).filter(({ from }) => from === range.from || from < now - LIVE_NS);
    if (missing.length === 0) continue;
    open += 1;
    openNs += lengthNs(missing);
    const begins = beginning(device, missing);
    const filled = subtract(missing, [{ from: range.from, to: begins }]);
    // If a device begins above the missing range, only empty answers are left.
    if (filled.length === 0) requests += emptyRequests(begins - range.from, input);
    for (const piece of pieces) {
      for (const gap of clipToPiece(filled, piece)) {
        const expected = readingsIn(gap, device);
        readings += expected;
        requests += requestsFor({ readings: expected, gap, device }, input);
      }
    }
  }
  const whole = Number(range.to - range.from) * devices.length;
  const known = devices.filter(({ beginsNs }) => beginsNs != null).length;
  // One device alone shows nothing about the others.
  const assumesFullHistory = open > 0 && known < Math.min(2, devices.length);
  return { devices: open, openShare: whole === 0 ? 0 : Number(openNs) / whole, readings, requests, assumesFullHistory };
}

/**
 * The first reading of a device after a given time: its oldest stored reading, if the range from that time, or a long
 * range before the reading, is covered. `null`: not known, or it has none.
 */
export function findBeginning(covered: readonly CoveredRange[], from: EpochNs): EpochNs | null {
  const lowest = covered.find(({ to }) => from < to);
  if (lowest === undefined) return null;
  if (lowest.from <= from) return covered.find(({ first }) => first !== null)?.first?.at ?? null;
  return firstReadingOf({ from: lowest.from, firstNs: lowest.first?.at ?? null });
}

/** A device begins within the range if its first reading is this many intervals above the lower end of the range. */
const LATE_INTERVALS = 3;

/**
 * Where the readings of a device are expected to begin within the range, according to the devices that were read as far
 * back or further: the product-limit estimator of survival. Time that no device was read back to counts as filled.
 *
 * @returns a function of a device and its missing ranges, ascending.
 */
function createBeginnings({ devices, range }: BackfillInput): (device: EstimatedDevice, missing: Intervals) => EpochNs {
  const ageMs = (at: EpochNs): number => Number((at - range.from) / MS_NS);
  const reached = devices.flatMap(({ beginsNs, covered }): number[] => {
    if (beginsNs != null) return [ageMs(beginsNs)];
    const [oldest] = subtract([range], covered);
    return oldest?.from === range.from ? [ageMs(oldest.to)] : [];
  });
  const begun = devices.flatMap(({ beginsNs, intervalMs }): number[] => {
    const above = beginsNs == null ? 0 : ageMs(beginsNs);
    return above > LATE_INTERVALS * intervalMs ? [above] : [];
  });
  const filled = filledBelow(begun, reached);
  return ({ beginsNs }, [oldest]) => {
    if (oldest === undefined || oldest.from !== range.from) return range.from;
    if (beginsNs != null) return minNs(maxNs(beginsNs, range.from), oldest.to);
    const left = msToNs(Math.max(1, Math.round(filled(ageMs(oldest.to)))));
    return maxNs(oldest.to - left, range.from);
  };
}

/**
 * The expected length of the history of a device below a height down to which it was read, in ms.
 *
 * @param begun the heights at which devices begin, in ms above the lower end of the range.
 * @param reached the heights down to which devices are known, including those that begin.
 */
function filledBelow(begun: readonly number[], reached: readonly number[]): (height: number) => number {
  const known = reached.toSorted((a, b) => a - b);
  // From the top down: the share of the devices that have even older readings.
  let [share, left] = [1, known.length];
  const steps = begun
    .toSorted((a, b) => b - a)
    .map((height) => {
      while ((known[left - 1] ?? 0) > height) left -= 1;
      // One device alone shows nothing about the others.
      if (left > 1 || share < 1) share *= 1 - 1 / left;
      left -= 1;
      return { height, share };
    })
    .toReversed();
  // From the bottom up: the filled length below each height.
  let [at, sum] = [0, 0];
  const sums = steps.map((step) => {
    sum += step.share * (step.height - at);
    at = step.height;
    return sum;
  });
  return (height) => {
    let [low, high] = [0, steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((steps[middle]?.height ?? 0) >= height) high = middle;
      else low = middle + 1;
    }
    const own = steps[low]?.share ?? 1;
    const below = steps[low - 1]?.height ?? 0;
    return own === 0 ? 0 : (sums[low - 1] ?? 0) / own + height - below;
  };
}

/**
 * The need for `scale` times the devices.
 *
 * @param anew the cost without any coverage, because additional devices have none.
 * @returns whole readings and requests.
 */
export function scaleNeed(need: BackfillNeed, scale: number, anew: () => BackfillNeed): BackfillNeed {
  const [own, more] = [Math.min(1, scale), Math.max(0, scale - 1)];
  const added = more > 0 ? anew() : need;
  return {
    devices: Math.round(need.devices * own + added.devices * more),
    openShare: (need.openShare * own + added.openShare * more) / (own + more),
    readings: Math.round(need.readings * own + added.readings * more),
    requests: Math.ceil(need.requests * own + added.requests * more),
    assumesFullHistory: need.assumesFullHistory,
  };
}

/** The budget of a backfill that runs together with live work, in requests and ms; infinite if no limit is known. */
export interface BesideSupply extends DaySupply {
  /** The highest rate of all lanes together within a minute, in requests per ms. */
  readonly minutePerMs: number;
  /** The requests of the other lanes, per ms. */
  readonly othersPerMs: number;
}

/** The load of the other lanes is measured over this time. */
export const LOAD_OVER_MS = 10 * MINUTE_MS;

/**
 * The load of the other lanes, in requests per ms.
 *
 * @param sentSince how many of their requests were sent after a time
 * @returns `null` if no request was sent before the measured time: the load may not be known for long enough.
 */
export function loadPerMs(sentSince: (sinceMs: EpochMs) => number, nowMs: EpochMs): number | null {
  const lately = sentSince(nowMs - LOAD_OVER_MS);
  return sentSince(nowMs - 2 * LOAD_OVER_MS) > lately ? lately / LOAD_OVER_MS : null;
}

/**
 * The budget of history while the other lanes run. While the day has requests to spare, the requests that were sent
 * show how fast the API answers.
 *
 * @param minute the budget of a minute; `null` if it is unknown
 * @param seenPerMs the rate of the history requests that were sent, per ms; `null` for none
 */
export function besideSupply(
  day: DaySupply,
  { minute, seenPerMs, othersPerMs }: { minute: number | null; seenPerMs: number | null; othersPerMs: number },
): BesideSupply {
  const budgetPerMs = minute === null ? Number.POSITIVE_INFINITY : minute / MINUTE_MS;
  const isSeen = seenPerMs !== null && day.spare > 1;
  return { ...day, minutePerMs: isSeen ? Math.min(budgetPerMs, seenPerMs + othersPerMs) : budgetPerMs, othersPerMs };
}

/** The quota window of the day and the requests in it. */
interface SentDay {
  /** The share of the limit that Tidemark may use (`api.share`). */
  readonly share: number;
  /** In requests; `null`: no limit is known. */
  readonly limit: number | null;
  readonly budget: number | null;
  /** The daily use by other clients; `null` if unknown. */
  readonly others: number | null;
  /** The requests of the last day, in the server's time, ascending. */
  readonly sentMs: readonly EpochMs[];
}

/** The part of the day's budget for work below live polls, after the requests of the last day. */
export function measureDaySupply(
  { share, limit, budget, others, sentMs }: SentDay,
  nowMs: EpochMs,
): Omit<DaySupply, 'backfillReserve'> {
  let day = withFigures(unlimitedDay(share), { limit, budget, spent: 0, others }, nowMs - DAY_MS);
  for (const atMs of sentMs) day = budgetAfterRequest(day, atMs);
  return { spare: spareAt(day, nowMs), deficit: deficitAt(day, nowMs), fillPerMs: fillRate(day) };
}

/**
 * How long this many requests take together with live work. Until the day's token bucket has requests to spare, only
 * the reserve is sent; then as many as the minute allows while the bucket is not empty; then the rate at which the
 * bucket fills, or the reserve.
 *
 * @returns milliseconds; `null` if the rate is zero.
 */
export function besideFinishMs(requests: number, supply: BesideSupply): number | null {
  const { deficit, fillPerMs, backfillReserve, othersPerMs } = supply;
  const waitMs = deficit > 0 && fillPerMs > othersPerMs ? deficit / (fillPerMs - othersPerMs) : 0;
  const sent = othersPerMs * backfillReserve * waitMs;
  if (requests < sent) return (requests / sent) * waitMs;
  const restMs = filledFinishMs(requests - sent, supply);
  return restMs === null ? null : waitMs + restMs;
}

/** The same, from the time when the bucket has requests to spare. */
function filledFinishMs(requests: number, supply: BesideSupply): number | null {
  const { spare, fillPerMs, backfillReserve, minutePerMs, othersPerMs } = supply;
  if (requests <= 0) return 0;
  const fastPerMs = Math.max(minutePerMs - othersPerMs, minutePerMs * backfillReserve);
  if (!Number.isFinite(fastPerMs)) return 0;
  const drainPerMs = othersPerMs + fastPerMs - fillPerMs;
  const fastMs = drainPerMs > 0 ? spare / drainPerMs : Number.POSITIVE_INFINITY;
  if (requests <= fastPerMs * fastMs) return fastPerMs > 0 ? requests / fastPerMs : null;
  const slowPerMs = Math.max(fillPerMs - othersPerMs, fillPerMs * backfillReserve);
  return slowPerMs > 0 ? fastMs + (requests - fastPerMs * fastMs) / slowPerMs : null;
}

/**
 * How long this many requests take with the full share: at the rate of the minute until the day's budget is spent, and
 * again each day.
 *
 * @param perMinute the budget of a minute, in requests.
 * @param perDay the budget of a day; `null`: not known.
 * @param spent how many requests of the last day's budget are spent.
 * @returns milliseconds.
 */
export function aloneFinishMs(
  requests: number,
  { perMinute, perDay, spent }: { perMinute: number; perDay: number | null; spent: number },
): number {
  if (requests === 0) return 0;
  const atMinuteRate = (count: number): number => (count / perMinute) * MINUTE_MS;
  if (perDay === null || perDay >= perMinute * (DAY_MS / MINUTE_MS)) return atMinuteRate(requests);
  const left = Math.max(0, perDay - spent);
  if (requests <= left) return atMinuteRate(requests);
  const days = Math.floor((requests - left - 1) / perDay) + 1;
  return days * DAY_MS + atMinuteRate(requests - left - (days - 1) * perDay);
}

/** Splits the range into the parts that are requested in turn, newest first. */
function rangesByAge({ range, now, limit }: BackfillInput): Interval[] {
  const pieces: Interval[] = [];
  let to = minNs(range.to, now);
  for (const edge of [...AGES_NS.map((ns) => maxNs(limit - ns, range.from)), range.from]) {
    if (to <= edge) continue;
    pieces.push({ from: edge, to });
    to = edge;
  }
  return pieces;
}

function clipToPiece(missing: Intervals, piece: Interval): Interval[] {
  return missing
    .map(({ from, to }) => ({ from: maxNs(from, piece.from), to: minNs(to, piece.to) }))
    .filter(({ from, to }) => from < to);
}

/** The readings of a device in a range. A quiet device has made none since its last sign of life. */
function readingsIn(
  { from, to }: Interval,
  { intervalMs, isQuiet, lastSignMs }: Pick<DeviceRate, 'intervalMs' | 'isQuiet' | 'lastSignMs'>,
): number {
  if (lastSignMs === null) return 0;
  const end = isQuiet ? minNs(to, msToNs(lastSignMs)) : to;
  return end <= from ? 0 : Number((end - from) / MS_NS) / intervalMs;
}

interface Part {
  readonly readings: number;
  readonly gap: Interval;
  readonly device: Pick<DeviceRate, 'intervalMs' | 'isQuiet' | 'lastSignMs'>;
}

/** The requests that cover an empty range of this length. */
function emptyRequests(ns: bigint, { windowNs }: Pick<BackfillInput, 'windowNs'>): number {
  return EMPTY_REQUESTS * (windowNs === null ? 1 : Math.max(1, Math.ceil(Number(ns) / Number(windowNs))));
}

/**
 * The requests for a part: full pages if windows are wide enough for them. A window with fewer readings is one page,
 * and an empty window takes two.
 */
function requestsFor({ readings, gap, device }: Part, { pageSize, windowNs }: BackfillInput): number {
  const windows = (from: EpochNs, to: EpochNs): number =>
    windowNs === null || to <= from ? 1 : Math.max(1, Math.ceil(Number(to - from) / Number(windowNs)));
  if (readings === 0) return emptyRequests(gap.to - gap.from, { windowNs });
  const { intervalMs, isQuiet, lastSignMs } = device;
  const overlap = 1 + Math.floor(Number(SLACK_NS / MS_NS) / intervalMs);
  // If the slack is most of a page, a cursor is used instead.
  const perPage = Math.max(1, pageSize - Math.min(overlap, Math.floor(pageSize / 2)));
  const end = isQuiet && lastSignMs !== null ? minNs(gap.to, msToNs(lastSignMs)) : gap.to;
  const silent =
    end < gap.to && windowNs !== null ? EMPTY_REQUESTS * Math.floor(Number(gap.to - end) / Number(windowNs)) : 0;
  return silent + Math.max(windows(gap.from, end), Math.ceil(readings / perPage));
}
