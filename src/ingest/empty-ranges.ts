/**
 * When an empty answer is accepted although there is evidence of readings. A page that ends before the last sign of
 * life of its device is an empty answer about the range above its newest reading.
 *
 * An empty answer shows that no reading came, not that none exists: a service whose storage fails, or a replica that is
 * behind, answers with empty pages as well. Where the device was seen at or after the beginning of the range, or a
 * reading of the range is archived, an empty answer is provisional: the range stays a gap, with the reason
 * `unverified`.
 *
 * | the device's empty range            | an empty answer next to it or in it                         |
 * | ----------------------------------- | ----------------------------------------------------------- |
 * | none, or a gap so far               | accepted with a control, or after half an hour; else a gap  |
 * | accepted, confirmed once or twice   | accepted; the range is requested again when that is due     |
 * | confirmed three times               | accepted, and not requested again                           |
 * | any, with an archived reading in it | accepted after half an hour; else a gap                     |
 *
 * A control is an accepted page with readings of another device within the same minutes; for a page that ends before a
 * sign of life, the control must be as new as that sign. It does not count against an archived reading, which shows
 * that the answer is false. Half an hour means at least three answers spread over that time. An accepted range is
 * requested again after an hour and after a day, in one request. A reading of the range or above it ends all this.
 *
 * An empty answer about history below the newest stored reading is accepted at once, unless a reading of its range is
 * archived. If the stored readings above and below are more than a window away, the answer could show none of them, so
 * there is no evidence for it either: each such window is requested once more after a day, and the windows at doubling
 * distances from the first one also after an hour. If that finds a reading, the windows next to it are requested at
 * once. The first ranges of a device that was apparently never seen are treated in the same way; other ranges of such a
 * device wait for its first reading.
 *
 * The rules are pure; `EmptyRange` and `EmptyWindow` are what the state remembers of a device.
 */
import type { Interval } from '../core/intervals.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { CONFIRMED_FOR_GOOD, type EmptyRange, type EmptyWindow } from '../core/state/telemetry.ts';
import { DAY_MS, type EpochMs, type EpochNs, HOUR_MS, MINUTE_MS, maxNs, minNs, SECOND_NS } from '../core/time.ts';

/** How long before or after an empty answer a page of another device counts as a control. */
const CONTROL_MS = 2 * MINUTE_MS;

/** The time over which empty answers must be spread to be accepted without a control. */
export const SPREAD_MS = 30 * MINUTE_MS;
const SPREAD_ANSWERS = 3;

/** An empty answer, and what is known about its range and its device. */
export interface EmptyAnswer {
  /** The range that the answer would cover. */
  readonly range: Interval;
  /** `last_seen_at` of the device as last listed; `null` if it has none. */
  readonly seenAt: EpochNs | null;
  /** The newest archived reading of the device; `null` without one. */
  readonly newestNs: EpochNs | null;
  /** Whether a reading in the range is archived, or was archived until its lines were cleared. */
  readonly isStored: boolean;
  /** The stored record of the device's empty range. */
  readonly known: EmptyRange | null;
  /** When readings of another device were served last; `null`: never. */
  readonly controlMs: EpochMs | null;
  /** By the server's clock. */
  readonly nowMs: EpochMs;
  /**
   * How long there have been such answers by the monotonic clock, in ms, because without `Date` the server's time jumps
   * with the local clock. Infinite if an earlier process received the first one.
   */
  readonly waitedMs: number;
}

/** Whether an empty answer is accepted, and the record to store. */
interface EmptyVerdict {
  readonly isAccepted: boolean;
  readonly next: EmptyRange | null;
}

/** Judges an empty answer that would cover its range if nothing contradicted it. */
export function judgeEmpty(answer: EmptyAnswer): EmptyVerdict {
  const { range, known, nowMs } = answer;
  if (!isContradicted(answer)) return { isAccepted: true, next: known };
  const confirmed = answer.isStored ? 0 : (known?.confirmed ?? 0);
  if (confirmed >= CONFIRMED_FOR_GOOD) return { isAccepted: true, next: known };
  const joined = joinEmpty(known, range, nowMs);
  if (confirmed > 0) return { isAccepted: true, next: joined };
  const isAccepted = (!answer.isStored && hasControl(answer)) || isSpread(joined, answer);
  return { isAccepted, next: isAccepted ? { ...joined, confirmed: 1, dueMs: nowMs + HOUR_MS } : joined };
}

/**
 * Whether there is evidence of readings in the range: an archived reading, or a sign of life that no archived reading
 * explains. For a device without any reading, every sign of life after the beginning of the range counts.
 */
function isContradicted({ range, seenAt, newestNs, isStored }: EmptyAnswer): boolean {
  if (isStored) return true;
  if (newestNs === null) return seenAt !== null && seenAt >= range.from;
  return seenAt !== null && seenAt >= range.from && seenAt < range.to && seenAt > newestNs + SECOND_NS;
}

function hasControl({ controlMs, nowMs }: EmptyAnswer): boolean {
  return controlMs !== null && Math.abs(nowMs - controlMs) <= CONTROL_MS;
}

function isSpread({ answers, sinceMs }: EmptyRange, { nowMs, waitedMs }: EmptyAnswer): boolean {
  return answers >= SPREAD_ANSWERS && Math.min(nowMs - sinceMs, waitedMs) >= SPREAD_MS;
}

function joinEmpty(known: EmptyRange | null, { from, to }: Interval, nowMs: EpochMs): EmptyRange {
  if (known === null) return { from, to, sinceMs: nowMs, answers: 1, confirmed: 0, dueMs: null };
  const whole = { from: minNs(known.from, from), to: maxNs(known.to, to) };
  // An answer from the future was dated by a clock that was ahead.
  return { ...known, ...whole, sinceMs: Math.min(known.sinceMs, nowMs), answers: known.answers + 1 };
}

/** The record after an accepted range was requested again and was empty again. */
export function confirmEmpty(known: EmptyRange, nowMs: EpochMs): EmptyRange {
  const confirmed = known.confirmed + 1;
  const dueMs = confirmed >= CONFIRMED_FOR_GOOD ? null : nowMs + DAY_MS - HOUR_MS;
  return { ...known, answers: known.answers + 1, confirmed, dueMs };
}

/** After this time a window has been requested for the last time: less than the day after which no check is due. */
const LAST_CHECK_MS = DAY_MS - HOUR_MS;

/**
 * The window to request again after an accepted answer without a reading.
 *
 * @param before the windows of the device that already wait for that, and its covered ranges.
 * @returns `null` if no newer reading is stored, because the next reading will cause a check of the silence before it,
 * or if stored readings contradict the answer. A device without a last-seen time may never have a next reading.
 */
export function windowToCheck(
  { range, seenAt, newestNs, isStored, nowMs }: Omit<EmptyAnswer, 'known' | 'controlMs' | 'waitedMs'>,
  before: { readonly windows: readonly EmptyWindow[]; readonly covered: readonly Interval[] },
): EmptyWindow | null {
  const isFirst = !before.covered.some(({ to }) => to <= range.from);
  const isUnsupported = newestNs === null ? seenAt === null && isFirst : newestNs >= range.to;
  if (isStored || !isUnsupported || range.from >= range.to) return null;
  // The first, the second, the fourth, the eighth window, and so on.
  const { length } = before.windows;
  const isProbe = (length & (length + 1)) === 0;
  return { ...range, sinceMs: nowMs, dueMs: nowMs + (isProbe ? HOUR_MS : LAST_CHECK_MS) };
}

/** Creates a range that is requested again after an hour and after a day. */
export function createEmptyWindow(range: Interval, nowMs: EpochMs): EmptyWindow {
  return { ...range, sinceMs: nowMs, dueMs: nowMs + HOUR_MS };
}

/** The window after it was requested again; `null` once a day has passed. */
export function confirmWindow(window: EmptyWindow, nowMs: EpochMs): EmptyWindow | null {
  const sinceMs = Math.min(window.sinceMs, nowMs);
  const dueMs = sinceMs + LAST_CHECK_MS;
  return nowMs >= dueMs ? null : { ...window, sinceMs, dueMs };
}

/**
 * Whether a check that is due at this time is to be requested now. A time more than a day away was recorded by a clock
 * that was ahead.
 */
export function isCheckDue(dueMs: EpochMs | null, nowMs: EpochMs): boolean {
  return dueMs !== null && (dueMs <= nowMs || dueMs > nowMs + DAY_MS);
}

/** A page with readings of one device, as evidence that the API serves readings. */
interface ServedPage {
  readonly deviceId: string;
  /** When it was served, in the server's time. */
  readonly atMs: EpochMs;
  readonly newestNs: EpochNs;
}

/** The pages with readings that were served last. */
export interface ServedReadings {
  last: ServedPage | null;
  /** The last page of a device other than that of `last`. */
  before: ServedPage | null;
  /** When this process received the first contradicted answer about each device, by the monotonic clock. */
  readonly absentSince: Map<string, number>;
}

/** Creates an empty record of served readings. */
export function nothingServed(): ServedReadings {
  return { last: null, before: null, absentSince: new Map() };
}

/**
 * Records that readings of a device were served.
 *
 * @returns whether this is a control for another device that had none until now.
 */
export function noteServedReadings(served: ServedReadings, page: ServedPage): boolean {
  const { last } = served;
  const { deviceId, atMs } = page;
  const isFirst =
    last === null || atMs - last.atMs > CONTROL_MS || (served.before === null && last.deviceId !== deviceId);
  if (last !== null && last.deviceId !== deviceId) served.before = last;
  served.last = page;
  return isFirst;
}

/**
 * When readings of another device were last served; `null`: never, or they are older than `since`. A replica that is
 * behind serves old readings of every device.
 */
export function controlFor({ last, before }: ServedReadings, deviceId: string, since: EpochNs = 0n): EpochMs | null {
  const other = last?.deviceId === deviceId ? before : last;
  return other === null || other.newestNs < since ? null : other.atMs;
}

/**
 * The sign of life that a reading on the newest page of a device has to explain: the last one in the gap. While signs
 * of life are the only evidence of the time (no `Date`), the newest sign always lies above the gap, however old it is.
 * Then it is that one, until the last try.
 *
 * @returns its time; `null` without one.
 */
export function signToExplain(
  device: Pick<KnownDevice, 'record'> | null,
  {
    to,
    isTimeBySigns,
    isLastTry,
  }: { readonly to: EpochNs; readonly isTimeBySigns: boolean; readonly isLastTry: boolean },
): EpochNs | null {
  const lastSeenAt = device?.record.lastSeenAt ?? null;
  if (lastSeenAt === null || lastSeenAt < to) return lastSeenAt;
  return isTimeBySigns && !isLastTry ? lastSeenAt : null;
}

/**
 * Whether a page with readings ends the record of empty answers: it has a reading in the range or above it, or the
 * first reading.
 */
export function endsEmpty({ from }: EmptyRange, newestServed: EpochNs, newestNs: EpochNs | null): boolean {
  return newestNs === null || newestServed >= from;
}
