/**
 * Reads covered time again: a range for the commands that compare and repair; the readings of yesterday of each device,
 * because some came too late for any live request; and ranges and windows that only empty answers cover. `recheck.ts`
 * reads the ranges that a person requests.
 *
 * Each day one hour that is two days old is read as well. New readings there show that a device delivers readings more
 * than a day late. From then on its days are read again after that delay, up to a week.
 *
 * Such a read covers nothing and commits nothing itself, so its answers need not show any stored reading. The reread of
 * yesterday commits what is new, which counts as late. The planner gives it the requests that nothing else needs. It
 * may stop anywhere: commits stay, and the day stays due until it was read to its end.
 */
import { coveredIntervals } from '../core/coverage.ts';
import { type Interval, intersect } from '../core/intervals.ts';
import type { Reply, RequestLane } from '../core/ports.ts';
import type { Reading, TelemetryPage } from '../core/records.ts';
import type { Store } from '../core/state/state.ts';
import { type EmptyWindow, ForgottenError, type LateRecord, NEVER_LATE } from '../core/state/telemetry.ts';
import { DAY_MS, DAY_NS, type EpochMs, HOUR_MS, HOUR_NS, maxNs, msToNs } from '../core/time.ts';
import { commitJudged } from './commit.ts';
import type { SyncContext } from './context.ts';
import { confirmEmpty, confirmWindow, isCheckDue } from './empty-ranges.ts';
import { createLearntWindows, type FetchParts, fetchPage, windowRules } from './fetch-page.ts';
import { exclusionNow } from './filter.ts';
import { judgePage } from './judge-page.ts';
import { fromFirstPage, nextRequest, type PageRequest, requestFor } from './page-request.ts';
import { TRIES } from './rejected-answers.ts';
import { windowLimits } from './window-limits.ts';

/** The earliest time after midnight at which the previous day is read again, so that late readings have arrived. */
const AFTER_MIDNIGHT_MS = HOUR_MS;

/** The latest readings that rereads of days look for. */
const LONGEST_LATE_MS = 7 * DAY_MS;

/** The day (since 1970) that is read again now, once for each device; `null` in the first hour of a day. */
export function rereadableDay(nowMs: EpochMs): number | null {
  return nowMs % DAY_MS < AFTER_MIDNIGHT_MS ? null : Math.floor(nowMs / DAY_MS) - 1;
}

/**
 * The devices for which yesterday is due: they are not gone, have a covered part of it and were not reread since. A
 * device whose lines of yesterday are partly cleared is skipped, because new readings could not be distinguished. The
 * caller removes excluded devices.
 *
 * @param nowMs the server's time.
 */
export function rereadDue(
  store: Pick<Store, 'devices' | 'rereadDays' | 'telemetry' | 'cleared'>,
  nowMs: EpochMs,
): readonly string[] {
  const day = rereadableDay(nowMs);
  if (day === null) return [];
  const done = store.rereadDays();
  return store
    .devices()
    .filter(({ record, goneSinceMs }) => goneSinceMs === null && done.get(record.deviceId) !== day)
    .map(({ record }) => record.deviceId)
    .filter((deviceId) => {
      const covered = coveredIn(store, deviceId, rereadDayRange(day, NEVER_LATE));
      return covered !== null && store.cleared(deviceId, covered.from, covered.to).length === 0;
    });
}

/** The hour that shows whether readings come more than a day late: the last hour of the second day before a day. */
function probeOf(day: number): Interval {
  const to = BigInt(day - 1) * DAY_NS;
  return { from: to - HOUR_NS, to };
}

/**
 * The range to read again for a day: the day, and before it as much time as the readings of the device were late so
 * far.
 */
function rereadDayRange(day: number, { worstMs }: LateRecord): Interval {
  const lateMs = worstMs > AFTER_MIDNIGHT_MS ? Math.min(worstMs, LONGEST_LATE_MS) : 0;
  return { from: BigInt(day) * DAY_NS - msToNs(lateMs), to: BigInt(day + 1) * DAY_NS };
}

/** The covered part of a range in which no lines are cleared, as one range; `null` without any. */
function readableIn(store: Pick<Store, 'telemetry' | 'cleared'>, deviceId: string, range: Interval): Interval | null {
  const covered = coveredIn(store, deviceId, range);
  if (covered === null) return null;
  const { to } = covered;
  const from = maxNs(covered.from, store.cleared(deviceId, covered.from, to).at(-1)?.to ?? covered.from);
  return from < to ? { from, to } : null;
}

/** The part of a range from its first to its last covered instant; `null` if no instant is covered. */
function coveredIn(store: Pick<Store, 'telemetry'>, deviceId: string, whole: Interval): Interval | null {
  const covered = intersect(coveredIntervals(store.telemetry(deviceId).covered), [whole]);
  const [first, last] = [covered[0], covered.at(-1)];
  return first === undefined || last === undefined ? null : { from: first.from, to: last.to };
}

/**
 * Reads the covered range of a day of a device again.
 *
 * @returns whether it was read to its end; otherwise (rejected answers, a device that is gone) it stays due.
 * @throws ApiFault if the fault is not about this device.
 */
export async function rereadDay(
  context: SyncContext,
  { deviceId, day }: { readonly deviceId: string; readonly day: number },
  signal: AbortSignal,
): Promise<boolean> {
  const { store } = context;
  const read = async (whole: Interval): Promise<boolean> => {
    const range = readableIn(store, deviceId, whole);
    return range === null || (await commitRange(context, { deviceId, range }, signal)).isWhole;
  };
  if (!(await read(probeOf(day)))) return false;
  if (!(await read(rereadDayRange(day, store.telemetry(deviceId).late)))) return false;
  store.saveReread(deviceId, day);
  return true;
}

/** A range to read again, and the facts about it. */
interface Reread extends Pick<RereadScan, 'deviceId' | 'range'> {
  /** Whether it counted as empty. Then its readings are not late, and one more empty answer is enough. */
  readonly wasEmpty?: boolean;
}

/**
 * Reads a range and commits its new readings.
 *
 * @returns whether it was read to its end, the number of readings in it, and how many readings were new.
 */
async function commitRange(
  context: SyncContext,
  { deviceId, range, wasEmpty = false }: Reread,
  signal: AbortSignal,
): Promise<{ readonly isWhole: boolean; readonly served: number; readonly newReadings: number }> {
  let served = 0;
  let newReadings = 0;
  const take = (page: RangePage): void => {
    served += page.readings.filter(({ recordedAt }) => range.from <= recordedAt && recordedAt < range.to).length;
    const known = { deviceId, lane: REREAD_LANE, covers: null, wasHidden: wasEmpty } as const;
    newReadings += commitJudged(context, { ...known, ...page }).newReadings;
  };
  const isWhole = await rereadRange(context, { deviceId, range, take, empties: wasEmpty ? 1 : 0 }, signal);
  return { isWhole, served, newReadings };
}

/**
 * Requests a range again that only empty answers cover: the device's empty range if it is due, otherwise its newest
 * empty window that is due.
 *
 * @returns whether more of them are due, and the answers can be used.
 * @throws ApiFault
 */
async function recheckEmpty(context: SyncContext, deviceId: string, signal: AbortSignal): Promise<boolean> {
  const { store, serverClock } = context;
  const nextWindow = (): EmptyWindow | undefined =>
    store.emptyWindows(deviceId).find(({ dueMs }) => isCheckDue(dueMs, serverClock.nowMs()));
  const known = store.emptyRange(deviceId);
  if (known === null || !isCheckDue(known.dueMs, serverClock.nowMs())) {
    const window = nextWindow();
    return (
      window !== undefined && (await recheckWindow(context, { deviceId, window }, signal)) && nextWindow() !== undefined
    );
  }
  const { isWhole, served } = await commitRange(context, { deviceId, range: known }, signal);
  if (served > 0) store.saveEmptyRange(deviceId, null);
  else if (isWhole) store.saveEmptyRange(deviceId, confirmEmpty(known, serverClock.nowMs()));
  return isWhole && nextWindow() !== undefined;
}

/** The due time of a window because a window next to it has readings. */
const DUE_AT_ONCE = 0;

/**
 * Requests an empty window again. If its readings show that readings below them are missing, that range becomes a gap
 * again, and the windows next to it, which were called empty at the same time, are due at once. A window that was due
 * for that reason itself must have new readings for this: otherwise two windows with readings would make each other due
 * forever.
 *
 * @returns whether its answers could be used.
 * @throws ApiFault
 */
async function recheckWindow(
  context: SyncContext,
  { deviceId, window }: { readonly deviceId: string; readonly window: EmptyWindow },
  signal: AbortSignal,
): Promise<boolean> {
  const { store, serverClock } = context;
  const drop = (): void => store.dropEmptyWindow(deviceId, window.from);
  if (coveredIn(store, deviceId, window) === null) {
    drop();
    return true;
  }
  const { isWhole, served, newReadings } = await commitRange(
    context,
    { deviceId, range: window, wasEmpty: true },
    signal,
  );
  if (!isWhole) return false;
  const next = confirmWindow(window, serverClock.nowMs());
  if (next === null) drop();
  else store.saveEmptyWindow(deviceId, next);
  if (served === 0 || (window.dueMs === DUE_AT_ONCE && newReadings === 0)) return true;
  for (const each of store.emptyWindows(deviceId)) {
    const isNext = each.to === window.from || each.from === window.to;
    if (isNext) store.saveEmptyWindow(deviceId, { ...each, dueMs: DUE_AT_ONCE });
  }
  return true;
}

/** Reads yesterday of each device again, and the ranges that only empty answers cover. */
export interface Rereading {
  /**
   * Determines again which devices are due, by the state of each.
   *
   * @param withDays whether to include the devices for which yesterday is due, which checks every device.
   */
  refresh(withDays: boolean): void;
  /** Whether any device is due, by the last refresh. */
  isDue(): boolean;
  /** Whether a range is due that only empty answers cover. It has to be read again even if the quota is short. */
  isOwed(): boolean;
  /**
   * Reads the range of the next device that is due.
   *
   * @returns whether there is another.
   * @throws ApiFault
   */
  next(signal: AbortSignal): Promise<boolean>;
}

/** The rereading of a daemon. Nothing is due before the first refresh. */
export function createRereading(context: SyncContext): Rereading {
  const { store, serverClock } = context;
  const empties = createEmptyChecks(context);
  let due: string[] = [];
  return {
    refresh: (withDays) => {
      empties.refresh(withDays);
      if (!withDays) return;
      const isExcluded = exclusionNow(context);
      due = rereadDue(store, serverClock.nowMs()).filter((deviceId) => !isExcluded(deviceId));
    },
    isDue: () => empties.isDue() || due.length > 0,
    isOwed: empties.isOwed,
    next: async (signal) => {
      if (empties.isDue()) {
        await empties.next(signal);
        return empties.isDue() || due.length > 0;
      }
      const deviceId = due.shift();
      const day = rereadableDay(serverClock.nowMs());
      if (deviceId !== undefined && day !== null) await rereadDay(context, { deviceId, day }, signal);
      return due.length > 0;
    },
  };
}

/** The part of the rereading that a one-off does too: the ranges and windows that only empty answers cover. */
export function createEmptyChecks(context: SyncContext): Rereading {
  const { store, serverClock } = context;
  let due: string[] = [];
  return {
    refresh: () => {
      const isExcluded = exclusionNow(context);
      due = store.dueEmptyRanges(serverClock.nowMs()).filter((deviceId) => !isExcluded(deviceId));
    },
    isDue: () => due.length > 0,
    isOwed: () => due.length > 0,
    next: async (signal) => {
      const deviceId = due.shift();
      if (deviceId !== undefined && (await recheckEmpty(context, deviceId, signal))) due.push(deviceId);
      return due.length > 0;
    },
  };
}

/** The lane of rereads that wait until nothing else is due. */
const REREAD_LANE = 'idle-poll';

/** A page of a range: the readings, newest first. Some may lie a little beyond the range, and some may be repeated. */
export interface RangePage {
  readonly reply: Reply<TelemetryPage>;
  readonly readings: readonly Reading[];
}

/** The scan of a range that is read again page by page; `take` gets each page. */
export interface RereadScan extends FetchParts {
  readonly deviceId: string;
  readonly range: Interval;
  readonly take: (page: RangePage) => void;
  readonly lane: RequestLane;
  /** How many unusable answers and answers without a reading came since the last usable one. */
  odd: number;
  empties: number;
}

/**
 * Reads a range in the lowest lane.
 *
 * @returns whether it was read to its end; not if answers are rejected, or the device is gone or was removed in the
 * meantime.
 * @throws ApiFault if the fault is not about this device.
 */
export async function rereadRange(
  context: SyncContext,
  task: Pick<RereadScan, 'deviceId' | 'range' | 'take'> & Partial<Pick<RereadScan, 'empties'>>,
  signal: AbortSignal,
): Promise<boolean> {
  const scan = beginReread(context, { ...task, lane: REREAD_LANE });
  return (await readDown(scan, () => false, signal)) === null;
}

/** Creates the scan of a range; it sends no request yet. */
export function beginReread(
  context: SyncContext,
  task: Pick<RereadScan, 'deviceId' | 'range' | 'take' | 'lane'> & Partial<Pick<RereadScan, 'empties'>>,
): RereadScan {
  return { context, windows: createLearntWindows(context), odd: 0, empties: 0, ...task };
}

/**
 * Reads a range from its end down, until it is read or may stop.
 *
 * @returns the next request if it was stopped; `null` if the range was read.
 */
export async function readDown(
  scan: RereadScan,
  mayStop: (next: PageRequest) => boolean,
  signal: AbortSignal,
): Promise<Next> {
  let next: Next = requestBelow(scan, scan.range.to);
  try {
    while (next !== null && next !== 'given up' && !mayStop(next)) next = await rereadPage(scan, next, signal);
    return next;
  } catch (error) {
    // If the device was removed, its page in flight is dropped.
    if (error instanceof ForgottenError) return 'given up';
    throw error;
  }
}

/** The next request; `null` at the end of the range. */
type Next = PageRequest | null | 'given up';

/** The request for the rest below `to`. Its answers cover nothing, so they need no overlap readings. */
function requestBelow({ deviceId, range, windows }: RereadScan, to: bigint): PageRequest | null {
  if (to <= range.from) return null;
  const gap = { from: range.from, to };
  return requestFor({ deviceId, gap, near: null, far: null, live: false }, windowLimits(windowRules(windows)));
}

/** Requests one page and passes it on. */
async function rereadPage(scan: RereadScan, request: PageRequest, signal: AbortSignal): Promise<Next> {
  const { windows, range } = scan;
  signal.throwIfAborted();
  const answer = await fetchPage(scan, { request, lane: scan.lane }, signal);
  if (answer.kind === 'changed') return requestBelow(scan, request.gap.to);
  if (answer.kind === 'too-old') return null;
  if (answer.kind !== 'page') return answer.kind === 'odd' ? retryOrGiveUp(scan, fromFirstPage(request)) : 'given up';
  const page = answer.reply.value;
  const judged = judgePage(request, page, {
    visibleFromNs: null,
    emptyBefore: scan.empties,
    accepts: 'any',
    seenAt: null,
  });
  const { readings } = judged;
  scan.take({ reply: answer.reply, readings });
  if (readings.length === 0) scan.empties += 1;
  if (judged.next === 'again') return retryOrGiveUp(scan, request);
  const isEmptyPage = judged.next === 'cursor' && readings.length === 0;
  if (isEmptyPage && scan.empties >= TRIES) return 'given up';
  if (!isEmptyPage) {
    scan.odd = 0;
    scan.empties = 0;
  }
  const next = nextRequest(request, judged, {
    page,
    gap: range,
    far: null,
    limits: windowLimits(windowRules(windows)),
  });
  // The window of the plan may be narrower.
  return next ?? requestBelow(scan, request.gap.from);
}

/** Counts an unusable answer. The request is sent again until there are `TRIES` such answers. */
function retryOrGiveUp(scan: RereadScan, request: PageRequest): Next {
  scan.odd += 1;
  return scan.odd >= TRIES ? 'given up' : request;
}
