/**
 * The coverage of a device after a page: the range that the page adds, the ranges that a late reading or a clock
 * withdraws, the empty ranges that are no longer trusted, and the hours that are complete.
 *
 * Pure. A late reading is a new one inside a covered range. It is delivered like any other. The state counts late
 * readings and stores the longest delay, and the grace period of the device grows to that. Coverage that came too early
 * is withdrawn: reading a range again is better than calling it complete when it is not.
 */
import { addRange, type CoveredRange, type Edge } from '../core/coverage.ts';
import { hull, type Interval, type Intervals, normalize, subtract, union } from '../core/intervals.ts';
import { readingDigest } from '../core/lines/points.ts';
import type { Reading } from '../core/records.ts';
import {
  gracePeriodOf,
  type LateFound,
  type LateRecord,
  type PageCommit,
  type TelemetryState,
} from '../core/state/telemetry.ts';
import {
  type EpochMs,
  type EpochNs,
  HOUR_MS,
  HOUR_NS,
  MINUTE_MS,
  maxNs,
  minNs,
  msToNs,
  nsToMs,
  SECOND_MS,
} from '../core/time.ts';
import type { WantedRange } from './context.ts';

/** `Date` is in whole seconds. A server that rounds it may send a `Date` up to a second ahead of its clock. */
export const CLOCK_RESOLUTION_MS = SECOND_MS;

/** The longest grace period that late readings lead to. The configured one may be longer. */
const MAX_GRACE_MS = HOUR_MS;

/** The coverage limit at a time of the server. */
export function coverageLimit(serverMs: EpochMs, gracePeriodMs: number): EpochNs {
  return maxNs(msToNs(serverMs - CLOCK_RESOLUTION_MS - gracePeriodMs), 0n);
}

/** Whether a reading with that time is late if it arrives now: its time is covered. */
export function isCovered(covered: readonly CoveredRange[], at: EpochNs): boolean {
  return covered.some(({ from, to }) => from <= at && at < to);
}

/**
 * Records late readings (at least one) that were seen at a time of the server.
 *
 * The grace period grows to the delay that would have included them, in whole minutes. A reading later than the maximum
 * changes nothing: no grace period would have included it, and a longer one makes every request longer.
 */
export function noteLate(before: LateRecord, late: readonly Reading[], seenAtMs: EpochMs): LateFound {
  const byMs = late.map(({ recordedAt }) => Math.max(0, seenAtMs - nsToMs(recordedAt)));
  const worstMs = Math.max(...byMs);
  const awaitable = byMs.filter((ms) => ms <= MAX_GRACE_MS).map((ms) => Math.ceil(ms / MINUTE_MS) * MINUTE_MS);
  const record = {
    readings: before.readings + late.length,
    worstMs: Math.max(before.worstMs, worstMs),
    gracePeriodMs: Math.max(before.gracePeriodMs, ...awaitable),
  };
  return { count: late.length, worstMs, record };
}

/**
 * The coverage without the part at or beyond `end`.
 *
 * @param stored stored readings; the newest of them before `end` becomes the new edge. If none fits, the edge is the
 * other edge of the range, which is stored as well.
 */
export function withdrawBeyond(
  covered: readonly CoveredRange[],
  end: EpochNs,
  stored: readonly Reading[],
): readonly CoveredRange[] {
  return covered
    .filter(({ from }) => from < end)
    .map((range) => {
      if (range.to <= end) return range;
      const last = edgeBefore(range, end, stored);
      return { ...range, to: end, first: range.first !== null && range.first.at < end ? range.first : last, last };
    });
}

function edgeBefore(range: CoveredRange, end: EpochNs, stored: readonly Reading[]): Edge | null {
  if (range.last !== null && range.last.at < end) return range.last;
  let newest: Reading | null = null;
  for (const reading of stored) {
    const { recordedAt } = reading;
    if (recordedAt < range.from || recordedAt >= end) continue;
    if (newest === null || recordedAt > newest.recordedAt) newest = reading;
  }
  if (newest !== null) return edgeOf(newest);
  return range.first !== null && range.first.at < end ? range.first : null;
}

/** The input for the coverage after a page. */
export interface CoverageInput {
  readonly state: Pick<TelemetryState, 'covered' | 'late'>;
  readonly covers: CoveredRange | null;
  /** The server's time of the answer. */
  readonly answeredAtMs: EpochMs;
  /**
   * The earliest time at which the answer can have come. It decides which readings are late; `answeredAtMs` if absent.
   */
  readonly seenAtMs?: EpochMs;
  readonly readings: readonly Reading[];
  /** The configured grace period, in milliseconds. */
  readonly gracePeriodMs: number;
  /**
   * Returns where to begin reading again in a covered range that ends at a late reading: the instant after the newest
   * stored reading in the range. Without one: the beginning of the range, or the end of cleared lines.
   */
  readonly lateGapFrom?: (range: Interval) => EpochNs;
  /** Whether empty answers have hidden the readings. Then readings in covered ranges do not count as late. */
  readonly wasHidden?: boolean;
  /** The device's silence before a gap, as its last page shows it; `null` for any other page. */
  readonly silence?: Silence | null;
}

/** How far back the last page of a gap shows every reading, and which part of a silence before that is in doubt. */
export interface Silence {
  /** The page has every reading from here on. */
  readonly reachedTo: EpochNs;
  /** From here on the service surely shows readings. Older coverage stays as it is. */
  readonly visibleFrom: EpochNs;
  /** A silence that is shorter is not checked, in milliseconds. */
  readonly leastMs: number;
}

/**
 * The coverage and the record after a page with these late readings.
 *
 * If the late readings make the grace period grow, coverage that came too early is withdrawn, and a page that was
 * requested under the shorter grace period covers no more than the longer one allows. If the oldest reading of the page
 * is late, more may lie below it: the coverage between it and the next stored reading is withdrawn too, so the scan
 * continues until it meets stored readings. A silence that ends with this page is checked in the same way ({@link
 * silentRanges}).
 */
export function coverageAfter(
  input: CoverageInput,
  late: readonly Reading[],
): Pick<PageCommit, 'covered' | 'late' | 'reopened'> {
  const { state, covers, answeredAtMs, seenAtMs = answeredAtMs, readings } = input;
  const found = late.length === 0 || input.wasHidden === true ? null : noteLate(state.late, late, seenAtMs);
  const gracePeriodMs = gracePeriodOf(input.gracePeriodMs, found?.record ?? state.late);
  const silent = silentRanges(input);
  const before = silent.reduce((left, range) => withoutRange(left, range, null), state.covered);
  const added = covers === null ? before : addRange(before, covers);
  const lateGap = findLateGap(added, input, late);
  const covered = lateGap === null ? added : withoutRange(added, lateGap, oldestReading(readings));
  const reopened = [...silent, ...(lateGap === null ? [] : [lateGap])].reduce<Interval | null>(hull, null);
  const isLonger =
    gracePeriodMs > gracePeriodOf(input.gracePeriodMs, state.late) ||
    (covers !== null && gracePeriodMs > input.gracePeriodMs);
  return {
    covered: isLonger ? withdrawBeyond(covered, coverageLimit(answeredAtMs, gracePeriodMs), readings) : covered,
    ...(found === null ? {} : { late: found }),
    ...(reopened === null ? {} : { reopened }),
  };
}

/**
 * The covered ranges of a silence that ends with this page, if the page does not reach over them. A device that was cut
 * off and now sends its recorded readings has readings there that no answer could show before. Such a range is
 * requested once more: the readings of this page end the silence for good.
 *
 * A silence begins at the last stored reading; without one, at the beginning of the first empty answer. It may end
 * below the range that the page covers, in a range that is no longer wanted.
 */
function silentRanges({ state, covers, silence, readings }: CoverageInput): Interval[] {
  if (covers === null || !silence) return [];
  const before = state.covered.filter(({ to }) => to <= covers.from);
  const ends = endOfSilence(covers, before, readings);
  if (ends === null) return [];
  const { reachedTo, visibleFrom, leastMs } = silence;
  const found: Interval[] = [];
  let beganAt = ends;
  for (const range of before.toReversed()) {
    const last = range.last ?? range.first;
    beganAt = last === null ? range.from : last.at;
    const from = maxNs(last === null ? range.from : last.at + 1n, visibleFrom);
    const to = minNs(range.to, reachedTo);
    if (from < to) found.push({ from, to });
    if (last !== null) break;
  }
  const isChecked = ends - beganAt >= msToNs(leastMs);
  return isChecked ? found : [];
}

/** The oldest reading of a page above the ranges that were covered before; `null` if the page has none. */
function endOfSilence(
  covers: CoveredRange,
  before: readonly CoveredRange[],
  readings: readonly Reading[],
): EpochNs | null {
  if (covers.first !== null) return covers.first.at;
  const from = before.at(-1)?.to ?? covers.from;
  return oldestReading(readings.filter(({ recordedAt: at }) => from <= at && at < covers.from))?.recordedAt ?? null;
}

/**
 * The covered range below the oldest reading of a page, if that reading is late; `null` if nothing has to be read
 * again.
 */
function findLateGap(
  covered: readonly CoveredRange[],
  { readings, lateGapFrom }: CoverageInput,
  late: readonly Reading[],
): Interval | null {
  const to = oldestReading(readings)?.recordedAt;
  const isLate = to !== undefined && late.some(({ recordedAt }) => recordedAt === to);
  if (!isLate || lateGapFrom === undefined) return null;
  const range = covered.find((each) => each.from < to && to < each.to);
  if (range === undefined) return null;
  const from = lateGapFrom({ from: range.from, to });
  return from < to ? { from, to } : null;
}

/** The coverage without a range; `above` is the stored reading at its end, if there is one. */
function withoutRange(
  covered: readonly CoveredRange[],
  { from, to }: Interval,
  above: Reading | null,
): readonly CoveredRange[] {
  return covered.flatMap((range) => {
    if (range.to <= from || to <= range.from) return [range];
    const rest = to < range.to ? [{ ...range, from: to, first: edgeOf(above) }] : [];
    return from > range.from ? [{ ...range, to: from, last: lastBelow(range, from) }, ...rest] : rest;
  });
}

function edgeOf(reading: Reading | null): Edge | null {
  return reading === null ? null : { at: reading.recordedAt, digest: readingDigest(reading) };
}

/** The oldest reading. If several have one instant, the last served, which is the older one. */
function oldestReading(readings: readonly Reading[]): Reading | null {
  return readings.reduce<Reading | null>(
    (oldest, reading) => (oldest === null || reading.recordedAt <= oldest.recordedAt ? reading : oldest),
    null,
  );
}

/** The last edge of a covered range below an instant, otherwise its first edge; `null` if neither is below. */
function lastBelow({ first, last }: CoveredRange, end: EpochNs): Edge | null {
  return [last, first].find((edge) => edge !== null && edge.at < end) ?? null;
}

/**
 * A commit without readings that withdraws the coverage at or beyond `end`. The hours above the newest stored reading
 * are written again once they are over, because no database has their points if the clock was more than a day ahead.
 */
export function composeWithdrawal(
  state: TelemetryState,
  { end, newestNs }: { readonly end: EpochNs; readonly newestNs: EpochNs | null },
  atMs: EpochMs,
): PageCommit {
  const { deviceId, revision, hourReadings, hoursWritten } = state;
  const unwritten = { from: BigInt(hourOf(maxNs(end, newestNs ?? 0n))) + 1n, to: BigInt(Number.MAX_SAFE_INTEGER) };
  return {
    deviceId,
    revision,
    lane: 'live',
    requestId: 0,
    lines: [],
    sideLines: [],
    firstNs: null,
    lastNs: null,
    newReadings: 0,
    offsets: [],
    daySums: [],
    covered: withdrawBeyond(state.covered, end, []),
    hourReadings,
    hoursWritten: subtract(hoursWritten, [unwritten]),
    lastPage: [],
    rejected: [],
    atMs,
  };
}

/** The hour of a time, counted from 1970: the unit of `coverage_hour`. */
export function hourOf(at: EpochNs): number {
  return Number(at / HOUR_NS);
}

/** Returns the beginning of an hour, which is counted from 1970, in ns since 1970. */
export function hourStart(hour: number): EpochNs {
  return BigInt(hour) * HOUR_NS;
}

/**
 * The hours that lie completely inside the covered ranges and are not written yet, and the set of written hours
 * including them.
 */
export function hoursToWrite(
  covered: readonly CoveredRange[],
  written: Intervals,
): { hours: readonly number[]; written: Intervals } {
  const whole = normalize(covered.map(({ from, to }) => ({ from: (from + HOUR_NS - 1n) / HOUR_NS, to: to / HOUR_NS })));
  const fresh = subtract(whole, written);
  const hours = fresh.flatMap(({ from, to }) =>
    Array.from({ length: Number(to - from) }, (_, index) => Number(from) + index),
  );
  return { hours, written: hours.length === 0 ? written : union(written, whole) };
}

type CoverageState = Pick<TelemetryState, 'covered' | 'hoursWritten'>;

/**
 * The coverage that is left when a page comes, without unverified empty ranges: ranges that empty answers covered while
 * no reading of the device was stored. No stored reading could contradict such answers, so a service that sends empty
 * answers for hours would leave everything before them missing for good. Once a device shows a reading, those ranges
 * are requested again, wherever the reading lies: the page that shows it may be a page of history, which shows nothing
 * about newer readings. From then on the answers have to contain a known reading.
 *
 * @param hasLines whether telemetry of the device was ever archived. If not, its hours are written again. If so, no
 * coverage is withdrawn before a page covers a range with a reading: a reading that is too young to be covered comes
 * with every page.
 */
export function withoutUnverified<State extends CoverageState>(
  state: State,
  { readings, covers }: { readonly readings: readonly Reading[]; readonly covers: CoveredRange | null },
  hasLines: () => boolean,
): State {
  if (readings.length === 0 || state.covered.length === 0 || state.covered.some(isVerified)) return state;
  if (!hasLines()) return { ...state, covered: [], hoursWritten: [] };
  return covers !== null && isVerified(covers) ? { ...state, covered: [] } : state;
}

function isVerified({ first, last }: CoveredRange): boolean {
  return first !== null || last !== null;
}

/** The time that the server's clock has certainly passed: the coverage limit plus its distance from the present. */
export function presentOf({ limit, gracePeriodMs }: Pick<WantedRange, 'limit' | 'gracePeriodMs'>): EpochNs {
  return limit + msToNs(gracePeriodMs + CLOCK_RESOLUTION_MS);
}

/**
 * The coverage limit of one device: the common limit, lowered by the time that late readings have added to the device's
 * grace period. Wherever the limit of a device counts, it is this one.
 */
export function limitFor(
  { limit, gracePeriodMs }: Pick<WantedRange, 'limit' | 'gracePeriodMs'>,
  { late }: Pick<TelemetryState, 'late'>,
): EpochNs {
  return maxNs(limit - msToNs(gracePeriodOf(gracePeriodMs, late) - gracePeriodMs), 0n);
}
