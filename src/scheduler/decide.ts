/**
 * Decides which request is worth most now. `decide` holds the order of the decision; the functions below it are its
 * steps.
 *
 * It reads the state of the planner. It writes one thing: devices that are due move on in the device queue (`advance`)
 * and in the history queues (`admitHistories`).
 */

import type { Stream } from '../core/ports.ts';
import { type DayBudget, freeAtMs, requestRate, unlimitedDay } from './day-budget.ts';
import {
  advance,
  createDeviceQueue,
  type DeviceQueue,
  type LivePick,
  needsDeviceRate,
  nextIdleMs,
  nextReadyMs,
  pickIdle,
  pickLive,
  readyCount,
} from './device-queue.ts';
import { admitRested, createHistoryQueue, type HistoryQueue, nextHistoryMs, pickHistory } from './history-queue.ts';
import type {
  Decision,
  HistoryDecision,
  PlannerSettings,
  PollDecision,
  RereadDecision,
  Rest,
  StreamDecision,
} from './planner-types.ts';
import {
  type Commitment,
  type Credit,
  createCommitment,
  createCredit,
  dueLane,
  type ReservedLane,
  rulesInForce,
} from './reserves.ts';
import {
  type ChangeRate,
  changesPerMs,
  createChangeRate,
  dueMs,
  isFailing,
  listEveryMs,
  listPages,
  type PlannedStream,
  periodsBehind,
  UNREAD_STREAM,
  WHOLE_STREAMS,
  type WholeStream,
} from './streams.ts';

/** While devices are polled at up to this many times their target, a listing takes no request from them. */
const NORMAL_LAG_FACTOR = 2;
/** The largest part of all requests that listings may take before live work. */
const MOST_FOR_LISTS = 0.5;
const NEVER = Number.POSITIVE_INFINITY;

/** Everything that a decision depends on, except the time. `planner.ts` changes it after each event. */
export interface PlannerState {
  readonly settings: PlannerSettings;
  /** Records per page. */
  pageSize: number;
  readonly devices: DeviceQueue;
  readonly histories: Readonly<Record<HistoryDecision['lane'], HistoryQueue>>;
  readonly streams: Record<WholeStream, PlannedStream>;
  budget: DayBudget;
  readonly credit: Credit;
  readonly commitment: Commitment;
  readonly changes: ChangeRate;
  readonly reread: { isDue: boolean; isOwed: boolean; isUnderWay: boolean };
  telemetryOffMs: number;
  /** No backfill request is sent before this time. */
  backfillRestMs: number;
  /**
   * The stream that last failed together with the service. Another stream is tried next, so that one stream alone does
   * not decide about the outage.
   */
  postpone: Stream | null;
  /** Since when the listing fails; `null` while it does not. */
  listFailingFromMs: number | null;
  /** The lag at which devices were polled recently, in ms. */
  liveLagMs: number;
  livePolls: number;
  liveEmpty: number;
}

/** Creates the state of a planner without devices. */
export function createPlannerState(settings: PlannerSettings): PlannerState {
  const commitment = createCommitment();
  return {
    settings,
    pageSize: settings.pageSize,
    devices: createDeviceQueue(rulesInForce(commitment, settings)),
    histories: { 'first-history': createHistoryQueue(), backfill: createHistoryQueue() },
    streams: { account: UNREAD_STREAM, alerts: UNREAD_STREAM, devices: UNREAD_STREAM },
    budget: unlimitedDay(settings.share),
    credit: createCredit(),
    commitment,
    changes: createChangeRate(),
    reread: { isDue: false, isOwed: false, isUnderWay: false },
    telemetryOffMs: Number.NEGATIVE_INFINITY,
    backfillRestMs: Number.NEGATIVE_INFINITY,
    postpone: null,
    listFailingFromMs: null,
    liveLagMs: settings.telemetryMs,
    livePolls: 0,
    liveEmpty: 0,
  };
}

/** The order of decisions: the first one that applies is taken. */
export function decide(state: PlannerState, nowMs: number): Decision | Rest {
  admitHistories(state, nowMs);
  const daySpent = restOfDay(state, nowMs);
  if (daySpent !== null) return daySpent;
  const live = advanceAndPickLive(state, nowMs);
  return (
    // 1. A stream that a command or an event requests now.
    requestedStream(state, nowMs) ??
    // 2. A lane that its reserve owes a request.
    reservedRequest(state, nowMs) ??
    // 3. A listing, if it saves more than it costs.
    worthwhileListing(state, nowMs) ??
    // 4. Live work, alerts and the account, by their delay relative to their schedules: if the quota is too small, all
    //   of them are delayed evenly.
    mostOverdue(state, live, nowMs) ??
    // 5. If the day's budget allows: a scheduled listing, first history, backfill, idle polls, rereads.
    extraRequest(state, nowMs) ??
    // 6. Nothing is due.
    idleRest(state, nowMs)
  );
}

/** The rest if no request may be sent, because the day's budget is spread over the day. */
function restOfDay({ budget }: PlannerState, nowMs: number): Rest | null {
  const freeMs = freeAtMs(budget, true, nowMs);
  return freeMs > nowMs ? { kind: 'rest', untilMs: freeMs, reason: 'day' } : null;
}

function advanceAndPickLive(state: PlannerState, nowMs: number): LivePick | null {
  if (isTelemetryOff(state, nowMs)) return null;
  advance(state.devices, nowMs);
  return pickLive(state.devices, nowMs);
}

function requestedStream(state: PlannerState, nowMs: number): Decision | null {
  const { streams } = state;
  const kind = WHOLE_STREAMS.find(
    (each) => streams[each].isRequested && !isFailing(streams[each]) && isDue(state, each, nowMs),
  );
  return kind === undefined ? null : streamDecision(kind);
}

function reservedRequest(state: PlannerState, nowMs: number): Decision | null {
  const lane = dueLane(state.credit, (each) => requestIn(state, each, nowMs) !== null);
  return lane === null ? null : requestIn(state, lane, nowMs);
}

/** A listing that saves more than it costs. */
function worthwhileListing(state: PlannerState, nowMs: number): Decision | null {
  return isBeyondReserve(state) && isDue(state, 'devices', nowMs) ? streamDecision('devices') : null;
}

/**
 * While full pages are short of quota, only the first listing, and one that was requested, may exceed its reserve. A
 * failing listing saves nothing.
 */
function isBeyondReserve({ commitment, streams: { devices } }: PlannerState): boolean {
  if (isFailing(devices)) return false;
  return !commitment.isOver || devices.readMs === Number.NEGATIVE_INFINITY || devices.isRequested;
}

/**
 * The stream that is furthest behind its schedule; `null` if none is. A failing listing counts while devices wait;
 * otherwise it uses the spare budget.
 */
function mostOverdue(state: PlannerState, live: LivePick | null, nowMs: number): Decision | null {
  const behindLive = live === null ? 0 : live.lagMs / state.settings.telemetryMs;
  const behind = (kind: WholeStream): number =>
    kind === state.postpone ? 0 : periodsBehind(state.streams[kind], scheduledMs(state, kind), nowMs);
  const account = behind('account');
  const alerts = behind('alerts');
  const listing = live !== null && isFailing(state.streams.devices) ? behind('devices') : 0;
  if (account > 0 && account >= Math.max(alerts, listing, behindLive)) return streamDecision('account');
  if (alerts > Math.max(listing, behindLive)) return streamDecision('alerts');
  if (listing > behindLive) return streamDecision('devices');
  return live && pollDecision(state, 'live', live);
}

/** Work below the live lane, if there is any: now, or when the day's budget allows it. */
function extraRequest(state: PlannerState, nowMs: number): Decision | Rest | null {
  const request = extraWork(state, nowMs);
  if (request === null) return null;
  const freeMs = freeAtMs(state.budget, false, nowMs);
  if (freeMs <= nowMs) return request;
  const untilMs = Math.max(nowMs + 1, Math.min(freeMs, nextDueMs(state, nowMs)));
  return { kind: 'rest', untilMs, reason: 'spare', spareMs: freeMs };
}

function extraWork(state: PlannerState, nowMs: number): Decision | null {
  // Within the unused budget a listing costs nothing, even if its value was computed from an old lag.
  const listing = state.commitment.isOver ? null : requestIn(state, 'devices', nowMs);
  return (
    listing ??
    requestIn(state, 'first-history', nowMs) ??
    requestIn(state, 'backfill', nowMs) ??
    requestIn(state, 'idle-poll', nowMs) ??
    rereadRequest(state, nowMs)
  );
}

function rereadRequest(state: PlannerState, nowMs: number): RereadDecision | null {
  const { isDue: isWanted, isUnderWay } = state.reread;
  return isWanted && !isUnderWay && !isTelemetryOff(state, nowMs) ? { kind: 'reread', lane: 'idle-poll' } : null;
}

function idleRest(state: PlannerState, nowMs: number): Rest {
  const spareMs = isTelemetryOff(state, nowMs) ? NEVER : nextSpareMs(state, nowMs);
  const listingMs = state.commitment.isOver ? NEVER : listingDueMs(state);
  const untilMs = Math.max(nowMs + 1, Math.min(nextDueMs(state, nowMs), spareMs, listingMs));
  return { kind: 'rest', untilMs, reason: 'idle' };
}

/** When an idle poll, a resting device, or a backfill with a rate of its own is due next. */
function nextSpareMs({ histories, devices, backfillRestMs }: PlannerState, nowMs: number): number {
  const restMs = Math.min(nextHistoryMs(histories['first-history']), nextHistoryMs(histories.backfill));
  const isBackfillResting = nowMs < backfillRestMs && pickHistory(histories.backfill) !== null;
  return Math.min(nextIdleMs(devices), restMs, isBackfillResting ? backfillRestMs : NEVER);
}

/** The request of a lane below live work; `null` if it has none. */
export function requestIn(state: PlannerState, lane: ReservedLane, nowMs: number): Decision | null {
  switch (lane) {
    case 'account':
    case 'alerts':
      return isDue(state, lane, nowMs) ? streamDecision(lane) : null;
    case 'devices':
      return state.postpone !== 'devices' && listingDueMs(state) <= nowMs ? streamDecision(lane) : null;
    case 'idle-poll':
      return (state.reread.isOwed ? rereadRequest(state, nowMs) : null) ?? idlePoll(state, nowMs);
    case 'first-history':
      return historyRequest(state, lane, nowMs);
    case 'backfill':
      return nowMs < state.backfillRestMs ? null : historyRequest(state, lane, nowMs);
  }
}

function idlePoll(state: PlannerState, nowMs: number): PollDecision | null {
  const deviceId = isTelemetryOff(state, nowMs) ? null : pickIdle(state.devices, nowMs);
  return deviceId === null ? null : pollDecision(state, 'idle-poll', { deviceId, untilMs: null });
}

function historyRequest(state: PlannerState, lane: HistoryDecision['lane'], nowMs: number): HistoryDecision | null {
  const pick = isTelemetryOff(state, nowMs) ? null : pickHistory(state.histories[lane]);
  return pick === null ? null : { kind: 'history', lane, ...pick };
}

function pollDecision(
  { commitment, devices }: PlannerState,
  lane: PollDecision['lane'],
  { deviceId, untilMs }: Omit<LivePick, 'lagMs'>,
): PollDecision {
  const poll = { kind: 'poll', lane, deviceId, newestOnly: commitment.isOver, untilMs } as const;
  return needsDeviceRate(devices, deviceId) ? { ...poll, needsRate: true } : poll;
}

function streamDecision(kind: WholeStream): StreamDecision {
  return { kind, lane: kind === 'alerts' ? 'alerts' : 'inventory' };
}

function isTelemetryOff({ telemetryOffMs, postpone }: PlannerState, nowMs: number): boolean {
  return nowMs < telemetryOffMs || postpone === 'telemetry';
}

/**
 * When live work, or a stream, is due next. A listing that waits for its reserve does not count: it follows other
 * requests.
 */
function nextDueMs(state: PlannerState, nowMs: number): number {
  const telemetryMs = isTelemetryOff(state, nowMs) ? state.telemetryOffMs : nextReadyMs(state.devices);
  const kinds = WHOLE_STREAMS.filter((kind) => kind !== 'devices' || isBeyondReserve(state));
  return Math.min(telemetryMs, ...kinds.map((kind) => dueMs(state.streams[kind], everyMs(state, kind))));
}

function isDue(state: PlannerState, kind: WholeStream, nowMs: number): boolean {
  return kind !== state.postpone && dueMs(state.streams[kind], everyMs(state, kind)) <= nowMs;
}

/**
 * The interval between two readings of a stream, in ms. For the device list: the interval that is worth its requests.
 */
function everyMs(state: PlannerState, kind: WholeStream): number {
  return kind === 'devices' ? bestListEveryMs(state) : scheduledMs(state, kind);
}

/** The time from the last reading of a stream to its next scheduled time. */
function scheduledMs({ settings, streams }: PlannerState, kind: WholeStream): number {
  const { readMs } = streams[kind];
  if (settings.turnAfter === undefined || isFailing(streams[kind])) return settings[`${kind}Ms`];
  return Number.isFinite(readMs) ? Math.max(1, settings.turnAfter(kind, readMs) - readMs) : 1;
}

/** When the listing is due: by its schedule, or earlier if it saves more than it costs. */
function listingDueMs(state: PlannerState): number {
  return dueMs(state.streams.devices, Math.min(bestListEveryMs(state), scheduledMs(state, 'devices')));
}

/** The interval between device lists that needs the fewest requests in total, in ms. */
export function bestListEveryMs(state: PlannerState): number {
  const { settings, pageSize, budget } = state;
  const devices = state.devices.devices.size;
  const lagMs = expectedLagMs(state);
  return listEveryMs({
    devices,
    pageSize,
    lagMs: lagMs > NORMAL_LAG_FACTOR * settings.telemetryMs ? lagMs : 0,
    changesPerMs: changesPerMs(state.changes, devices),
    leastMs: Math.max(settings.telemetryMs, listPages(devices, pageSize) / (MOST_FOR_LISTS * requestRate(budget))),
  });
}

/**
 * The lag at which devices are requested. Before the first request it is estimated from the number of waiting devices.
 */
function expectedLagMs({ liveLagMs, devices, budget }: PlannerState): number {
  return Math.max(liveLagMs, readyCount(devices) / requestRate(budget));
}

/** Lets devices whose rest is over into the history queues. */
export function admitHistories(state: PlannerState, nowMs: number): void {
  for (const queue of queuesOf(state)) admitRested(queue, nowMs);
}

/** The history of the daemon itself and that of the backfills. */
export function queuesOf({ histories }: PlannerState): readonly HistoryQueue[] {
  return [histories['first-history'], histories.backfill];
}
