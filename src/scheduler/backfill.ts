/**
 * A running backfill: the range that it wants from each device, the request that is due next, its rate and its counts.
 *
 * Promise: it remembers only its counts and its rate, and computes what is left from the coverage each time. So it may
 * end at any moment, and the next backfill continues where it stopped. With `recheck` it also reads again the ranges
 * that were covered when it began; the state stores the remaining ones.
 */

import type { CoveredRange } from '../core/coverage.ts';
import { findDeviceIds } from '../core/device-names.ts';
import { UserError } from '../core/faults.ts';
import { type Interval, type Intervals, normalize, subtract, union } from '../core/intervals.ts';
import type { Clock } from '../core/ports.ts';
import { budgetOf, createSendLog } from '../core/quota.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { type BackfillArgs, QUIET_ENDS_DAYS } from '../core/state/job-args.ts';
import type { ArchiveTotals } from '../core/state/log.ts';
import type { Gap } from '../core/state/telemetry.ts';
import { DAY_MS, DAY_NS, type EpochMs, type EpochNs, MINUTE_MS, maxNs, minNs } from '../core/time.ts';
import type { CommittedPage, SyncContext, WantedRange } from '../ingest/context.ts';
import { limitFor } from '../ingest/coverage-rules.ts';
import { includedDevices } from '../ingest/filter.ts';
import { isResting } from '../ingest/named-gaps.ts';
import { beginRecheck, type Recheck } from '../ingest/recheck.ts';
import { wantedNow } from '../ingest/wanted-range.ts';
import { type Goal, type GoalGap, gapsToRequest, newestGap, openAtLeast } from './goal.ts';
import type { Recency } from './history-queue.ts';
import { noteIsolated } from './isolated-ranges.ts';

/** The input of {@link beginBackfill}. */
export interface BackfillSettings {
  readonly args: BackfillArgs;
  /** The wanted range at the start. Its limit is the end of the backfill, unless `args.to` is earlier. */
  readonly wantedRange: WantedRange;
  /** The backfill requests of the last day before the start, ascending, in server time. */
  readonly sentMs: readonly EpochMs[];
  /** The budgets of the minute and of the day, in requests. */
  readonly budgets: RateSettings['budgets'];
  /** Whether live work runs at the same time and gets some time to fetch the newest readings. */
  readonly isBeside: boolean;
}

/** A running backfill, which is a goal of the planning. */
export interface Backfill extends Goal {
  readonly args: BackfillArgs;
  readonly to: EpochNs;
  /** The coverage limit at its start. */
  readonly limit: EpochNs;
  readonly startedMs: EpochMs;
  readonly rate: BackfillRate;
  readonly tally: BackfillTally;
  /** The ids of its devices, in the order of the inventory. */
  readonly deviceIds: readonly string[];
  /** The wanted range of a device, as far as it is known now. */
  wanted(deviceId: string): Interval;
  /** Whether it leaves the newest readings to the polls of the daemon for now. */
  leavesNewest(): boolean;
  /** The covered ranges that it reads again; `null` if only gaps were requested. */
  readonly recheck: Recheck | null;
}

/** For this time after the start, live work fetches the newest readings, and the backfill does not request them. */
const LEFT_TO_LIVE_MS = 2 * MINUTE_MS;

/** The read-only facts of a running backfill. */
interface BackfillState {
  readonly context: SyncContext;
  readonly settings: BackfillSettings;
  /** The range of every device; with `--from all` only its end counts. */
  readonly range: Interval;
  readonly startedMs: EpochMs;
  readonly devices: ReadonlyMap<string, KnownDevice>;
  readonly recheck: Recheck | null;
}

/**
 * Begins a backfill.
 *
 * @throws UserError (exit 2) for an unknown or excluded device, and for an empty range.
 */
export function beginBackfill(context: SyncContext, settings: BackfillSettings): Backfill {
  const { store, serverClock } = context;
  const { args, wantedRange, sentMs, budgets } = settings;
  const range = backfillRange(args, wantedRange.limit);
  const devices = new Map(chosenDevices(context, args.devices).map((device) => [device.record.deviceId, device]));
  // An end that only equals the moment of the start isolates no range.
  if (args.to !== null && range.to < wantedRange.limit) {
    noteIsolated(store, {
      ...range,
      devices: args.devices.length === 0 ? [] : [...devices.keys()],
      states: [...devices.keys()].map(store.telemetry),
    });
  }
  const startedMs = serverClock.nowMs();
  const facts = { context, settings, range, startedMs, devices, recheck: null };
  const state: BackfillState = args.recheck === true ? { ...facts, recheck: beginRecheckOfAll(facts) } : facts;
  const rate = createBackfillRate({ ...args, startedMs, sentMs, budgets });
  const tally = createBackfillTally(context.clock);
  return {
    args,
    to: range.to,
    limit: wantedRange.limit,
    startedMs,
    rate,
    tally,
    deviceIds: [...devices.keys()],
    covers: (deviceId) => devices.has(deviceId),
    wanted: (deviceId) => wantedByBackfill(state, deviceId),
    leavesNewest: () => leavesNewest(state),
    recheck: state.recheck,
    open: (deviceId, others) => {
      const unread = state.recheck?.unread(deviceId) ?? [];
      return openAtLeast(union(requestableGaps(state, deviceId, others), unread), wantedRange.limit);
    },
    next: (deviceId, recency, others) => {
      const gap = newestGap(requestableGaps(state, deviceId, others), recency, wantedRange.limit);
      if (gap === null) return rangeToReread(state, deviceId, recency);
      const limit = currentLimit(state, deviceId) ?? range.to;
      // A backfill has a fixed end, so it always sends an upper bound, even at the coverage limit.
      return { range: gap, limit: limit + 1n, lane: 'backfill' };
    },
    freeAtMs: rate.freeAtMs,
    noteSent: (nowMs) => {
      rate.noteSent(nowMs);
      tally.noteSent();
    },
    noteCommitted: tally.noteCommitted,
  };
}

/** Begins the recheck of the devices that are present. */
function beginRecheckOfAll(state: BackfillState): Recheck {
  const there = [...state.devices.values()].filter(({ goneSinceMs }) => goneSinceMs === null);
  return beginRecheck(
    state.context,
    new Map(there.map(({ record: { deviceId } }) => [deviceId, wantedByBackfill(state, deviceId)])),
  );
}

function rangeToReread(
  { recheck, settings, range }: BackfillState,
  deviceId: string,
  recency: Recency,
): GoalGap | null {
  if (recheck === null) return null;
  const again = newestGap(recheck.unread(deviceId), recency, settings.wantedRange.limit);
  if (again === null) return null;
  const readAgain = async (signal: AbortSignal): Promise<boolean> => await recheck.readPage(deviceId, again, signal);
  return { range: again, limit: range.to, lane: 'backfill', readAgain };
}

/**
 * Returns the range that the arguments of a backfill name, cut off at the coverage limit. Without an end, the end is
 * the limit at the first start, so that a job that continues after a restart has the same end.
 *
 * @throws UserError (exit 2) for an empty range.
 */
export function backfillRange(args: Pick<BackfillArgs, 'from' | 'to' | 'begunTo'>, limit: EpochNs): Interval {
  const end = args.to ?? args.begunTo ?? null;
  const to = end === null ? limit : minNs(BigInt(end), limit);
  const from = args.from === 'all' ? 0n : BigInt(args.from);
  if (from < to) return { from, to };
  throw new UserError('--from: expected a time before now minus sync.grace_period', null, 2);
}

/** Returns the range that a backfill wants of a device. */
function wantedByBackfill({ context: { store }, settings, range, devices }: BackfillState, deviceId: string): Interval {
  const { to } = range;
  if (settings.args.from !== 'all') return range;
  const record = devices.get(deviceId)?.record;
  const seenAt = [record?.lastSeenAt ?? null, record?.locationUpdatedAt ?? null];
  return { from: minNs(beginningOfAll({ covered: store.telemetry(deviceId).covered, seenAt, to }), to), to };
}

/** Returns the current coverage limit of a device; `null` while the server's time is unknown. */
function currentLimit({ context }: BackfillState, deviceId: string): EpochNs | null {
  const now = wantedNow(context);
  return now && limitFor(now, context.store.telemetry(deviceId));
}

function leavesNewest({ context, settings, startedMs }: BackfillState): boolean {
  return settings.isBeside && context.serverClock.nowMs() - startedMs < LEFT_TO_LIVE_MS;
}

/** Returns the gaps of a device that a backfill can request now. */
function requestableGaps(state: BackfillState, deviceId: string, others: Intervals): Intervals {
  const { context, devices } = state;
  if (!devices.has(deviceId)) return [];
  const nowMs = context.serverClock.nowMs();
  return backfillGaps({
    covered: context.store.telemetry(deviceId).covered,
    named: context.store.gaps(deviceId),
    wanted: wantedByBackfill(state, deviceId),
    limit: currentLimit(state, deviceId),
    isTopLeft: leavesNewest(state),
    others,
    nowMs,
  });
}

/** The facts about one device that decide which gaps a backfill can request. */
export interface BackfillGapFacts {
  readonly covered: readonly CoveredRange[];
  /** Its recorded gaps, with their reasons. */
  readonly named: readonly Gap[];
  readonly wanted: Interval;
  /** The current coverage limit; `null` while the server's time is unknown. */
  readonly limit: EpochNs | null;
  /** Whether the range above the newest covered instant is left to live work. */
  readonly isTopLeft: boolean;
  /** The ranges that other goals request. */
  readonly others: Intervals;
  readonly nowMs: EpochMs;
}

/** Returns the gaps that a backfill can request now. */
export function backfillGaps(facts: BackfillGapFacts): Intervals {
  const { covered, named, wanted, limit, isTopLeft, others, nowMs } = facts;
  const top = isTopLeft ? (covered.at(-1)?.to ?? wanted.from) : wanted.to;
  // No other work requests the gaps that were given up in favour of newer pages.
  const givenUp = normalize(named.filter(({ reason }) => reason === 'over_quota').map(gapRange));
  return gapsToRequest({
    covered,
    // The grace period may have grown since the start.
    wanted: { from: wanted.from, to: [wanted.to, top, limit ?? wanted.to].reduce(minNs) },
    resting: normalize(named.filter((gap) => isResting(gap, 'backfill', nowMs)).map(gapRange)),
    others: givenUp.length === 0 ? others : subtract(others, givenUp),
  });
}

function gapRange({ fromNs, toNs }: Gap): Interval {
  return { from: fromNs, to: toNs };
}

/**
 * Returns the devices that are named by id or name; without names, all included devices that the API lists.
 *
 * @throws UserError (exit 2)
 */
function chosenDevices(context: SyncContext, wanted: readonly string[]): readonly KnownDevice[] {
  const included = includedDevices(context);
  if (wanted.length === 0) return included;
  const byId = new Map(included.map((device) => [device.record.deviceId, device]));
  const listed = context.store.devices().filter(({ record, goneSinceMs }) => {
    return goneSinceMs === null || !byId.has(record.deviceId);
  });
  const ids = findDeviceIds(
    listed.map(({ record: { deviceId }, name }) => ({ deviceId, name })),
    wanted,
    UNLISTED,
  );
  return ids.map((deviceId, index) => {
    const device = byId.get(deviceId);
    if (device === undefined) throw leftOutDevice(index, ids.length);
    return device;
  });
}

/** The reason for a device that the API does not list. */
export const UNLISTED = 'the workspace has no device with that id or name';

/** The error for a device that the configuration excludes: number `index` of `count`. */
export function leftOutDevice(index: number, count: number): UserError {
  const flag = count === 1 ? '--device' : `--device number ${index + 1}`;
  return new UserError(
    `${flag}: this device is excluded by sync.include or sync.exclude, so none of its readings are read.`,
    null,
    2,
  );
}

/** Signs of how far back the readings of a device go. */
interface OldestSigns {
  readonly covered: readonly CoveredRange[];
  /** `last_seen_at` and `location_updated_at`: the device existed by then. */
  readonly seenAt: readonly (EpochNs | null)[];
  /** The end of the backfilled range. */
  readonly to: EpochNs;
}

/** Returns where `--from all` begins for a device. Each older reading that is found moves it back. */
function beginningOfAll({ covered, seenAt, to }: OldestSigns): EpochNs {
  const oldest = oldestReading(covered);
  const signs = [to, oldest, ...seenAt].filter((at) => at !== null);
  return maxNs(signs.reduce(minNs) - BigInt(QUIET_ENDS_DAYS) * DAY_NS, 0n);
}

/** Returns the time of the oldest stored reading; `null` if there is none. */
export function oldestReading(covered: readonly CoveredRange[]): EpochNs | null {
  return covered.find(({ first }) => first !== null)?.first?.at ?? null;
}

/** Returns whether the covered part of a range contains readings, judged by the edges of the covered intervals. */
export function hasReadings(covered: readonly CoveredRange[], { from, to }: Interval): boolean {
  return covered.some(({ first, last }) => first !== null && last !== null && first.at < to && last.at >= from);
}

interface RateSettings {
  /** The fraction of the budget that it may spend, above 0 and up to 1; `null`: no such limit. */
  readonly maxShare: number | null;
  readonly finishByMs: EpochMs | null;
  readonly startedMs: EpochMs;
  /** The backfill requests of the last day before the start, ascending: a restart gives no budget back. */
  readonly sentMs: readonly EpochMs[];
  /** Returns the current budget of the minute and of the day, in requests; `null`: unknown. */
  readonly budgets: () => { readonly perMinute: number | null; readonly perDay: number | null };
}

interface BackfillRate {
  /** When the next request may be sent; a past time means now. */
  freeAtMs(nowMs: EpochMs): EpochMs;
  noteSent(nowMs: EpochMs): void;
  /** Sets the estimated number of requests that are left. */
  setLeft(requests: number): void;
  /** Until when its part of the day's budget is used up; a past time means that it is not. */
  dayFreeAtMs(): EpochMs;
  /** The shortest time that this many requests take at this rate, in ms. */
  lastsMs(requests: number, nowMs: EpochMs): number;
  /** Whether the time to finish by has passed. */
  isLate(nowMs: EpochMs): boolean;
}

/** The fraction of the time that is kept in reserve, for delivery and for more readings than estimated. */
const TIME_RESERVE_FRACTION = 0.04;

/** Creates the rate of a backfill that has sent nothing yet. */
export function createBackfillRate(settings: RateSettings): BackfillRate {
  const { maxShare, finishByMs, startedMs, budgets } = settings;
  const log = createSendLog(DAY_MS);
  log.load(settings.sentMs);
  /** How many intervals must still pass for the requests that were sent, at a given time. */
  let excess = { count: 0, atMs: startedMs };
  let left: number | null = null;

  const untilMs = finishByMs === null ? null : finishByMs - (finishByMs - startedMs) * TIME_RESERVE_FRACTION;
  const everyMs = (nowMs: EpochMs): number => {
    const perMinute = budgets().perMinute;
    const ofShare = maxShare === null || perMinute === null ? 0 : MINUTE_MS / (perMinute * maxShare);
    if (untilMs === null || left === null) return ofShare;
    return Math.max(ofShare, (untilMs - nowMs) / Math.max(1, left));
  };
  const dayFreeMs = (): EpochMs => {
    const perDay = budgets().perDay;
    if (maxShare === null || perDay === null) return Number.NEGATIVE_INFINITY;
    return log.freeAtMs(budgetOf(perDay, maxShare), DAY_MS);
  };
  /** How long this many requests take by their part of each 24 hours. */
  const dayLastsMs = (requests: number, part: number, nowMs: EpochMs): number => {
    const days = Math.max(0, Math.ceil(requests / part) - 1);
    return days * DAY_MS + Math.max(0, log.freeAtMs(part - (requests - days * part) + 1, DAY_MS) - nowMs);
  };
  const excessAt = (nowMs: EpochMs): number => {
    const every = everyMs(nowMs);
    return every <= 0 ? 0 : Math.max(0, excess.count - Math.max(0, nowMs - excess.atMs) / every);
  };
  return {
    dayFreeAtMs: dayFreeMs,
    freeAtMs: (nowMs) => Math.max(nowMs + excessAt(nowMs) * everyMs(nowMs), dayFreeMs()),
    noteSent: (nowMs) => {
      log.add(nowMs);
      excess = { count: excessAt(nowMs) + 1, atMs: nowMs };
      if (left !== null) left = Math.max(0, left - 1);
    },
    setLeft: (requests) => {
      left = requests;
    },
    lastsMs: (requests, nowMs) => {
      const { perMinute, perDay } = budgets();
      const untilEndMs = untilMs === null ? 0 : Math.max(0, untilMs - nowMs);
      if (maxShare === null || perMinute === null) return untilEndMs;
      const dayMs = perDay === null ? 0 : dayLastsMs(requests, budgetOf(perDay, maxShare), nowMs);
      return Math.max(untilEndMs, (requests * MINUTE_MS) / (perMinute * maxShare), dayMs);
    },
    isLate: (nowMs) => finishByMs !== null && nowMs > finishByMs,
  };
}

type BackfillCounts = Pick<ArchiveTotals, 'requests' | 'readings' | 'points'>;

/** Counts the requests of a backfill, and the readings and points that they added. */
interface BackfillTally {
  noteSent(): void;
  noteCommitted(page: CommittedPage): void;
  counts(): BackfillCounts;
  /** Requests per minute over the last `overMs`, by default 5 minutes; `null` while there are too few to measure. */
  perMinute(overMs?: number): number | null;
}

/** The rate is measured over this time, over at most this many requests. */
const RATE_OVER_MS = 5 * MINUTE_MS;
const LEAST_REQUESTS = 3;
const RECENT_AT_MOST = 1000;

/** Creates a tally that starts at zero. */
export function createBackfillTally({ monoMs }: Pick<Clock, 'monoMs'>): BackfillTally {
  const beganMs = monoMs();
  let counts = { requests: 0, readings: 0, points: 0 };
  let recent: readonly number[] = [];
  const lately = (nowMs: number, overMs = RATE_OVER_MS): readonly number[] =>
    recent.filter((atMs) => nowMs - atMs < overMs);
  return {
    noteSent: () => {
      const nowMs = monoMs();
      counts = { ...counts, requests: counts.requests + 1 };
      recent = [...lately(nowMs), nowMs].slice(-RECENT_AT_MOST);
    },
    noteCommitted: ({ newReadings, newPoints }) => {
      const { requests, readings, points } = counts;
      counts = { requests, readings: readings + newReadings, points: points + newPoints };
    },
    counts: () => counts,
    perMinute: (periodMs = RATE_OVER_MS) => {
      const nowMs = monoMs();
      const sent = lately(nowMs, periodMs);
      const first = sent[0];
      if (first === undefined || sent.length < LEAST_REQUESTS) return null;
      const isAll = sent.length < RECENT_AT_MOST;
      const overMs = Math.max(1, isAll ? Math.min(nowMs - beganMs, periodMs) : nowMs - first);
      return (sent.length * MINUTE_MS) / overMs;
    },
  };
}
