/**
 * Planning: connects the planner to the state. It starts the planner from the stored coverage, passes events on to it,
 * and starts it again when the server's time falls back.
 *
 * `Planning` is a record. Most functions either change it or return something. `advancePlanning` and `restartPlanner`
 * do both: they change it and return the server's time. All times are the server's.
 *
 * Promise: a planner with missing or wrong facts costs requests or lag, never a reading, because every request is for a
 * gap in the coverage.
 */

import { createWakeUp, type WakeUp } from '../core/async.ts';
import type { ApiFaultKind } from '../core/faults.ts';
import { normalize } from '../core/intervals.ts';
import { HISTORY_LANES, type Purpose } from '../core/ports.ts';
import { alertPollRequests, pageSizeOf } from '../core/records.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { type Gap, type GapReason, isSilentForGood } from '../core/state/telemetry.ts';
import { type EpochMs, MINUTE_MS, maxNs, nsToMs, SECOND_MS } from '../core/time.ts';
import { openAlertsOf } from '../ingest/alerts.ts';
import type { CommittedPage, SyncContext } from '../ingest/context.ts';
import { limitFor } from '../ingest/coverage-rules.ts';
import { freshestFirst, includedDevices } from '../ingest/filter.ts';
import { isAwaitingRetry, liftGaps } from '../ingest/named-gaps.ts';
import { createFailingDevices, type FailingDevices, SILENCE } from '../ingest/outage.ts';
import { wantedNow } from '../ingest/wanted-range.ts';
import type { DayFigures } from './day-budget.ts';
import { createPlannerState, type PlannerState } from './decide.ts';
import { createDemandWatch, type DemandWatch } from './demand-watch.ts';
import { noteDeviceStored, ratesOf, setUnlisted } from './device-queue.ts';
import { buildView, fromBefore, ownRanges, recencyRange, toPlannedDevice, type Viewed } from './device-view.ts';
import type { Goal, GoalGap } from './goal.ts';
import { NOTHING_OPEN, type OpenHistory, setOpenHistory } from './history-queue.ts';
import { createIsolatedRanges, type IsolatedRanges, ownWantedFrom } from './isolated-ranges.ts';
import {
  endRest,
  noteDeviceLeft,
  noteDevicesListed,
  noteRequestBooked,
  noteStreamRead,
  requestedStreams,
  requestNow,
  setDay,
  setPageSize,
  turnOff,
} from './planner.ts';
import type { HistoryDecision, PlannerSettings, Rest } from './planner-types.ts';
import { UNKNOWN_RATE } from './report-rate.ts';
import { measurePeriods, phaseOf, type WholeStream } from './streams.ts';

interface PlanningParts {
  readonly context: SyncContext;
  /** `api.share`. */
  readonly share: number;
  /** The current quota window of the day. */
  readonly day: () => DayFigures;
}

/** The queue in which a goal is worked off. */
type GoalLane = HistoryDecision['lane'];

/** The task of a planner without live work: one goal, and some streams once. */
export interface OneOff {
  readonly lane: GoalLane;
  /** The gaps to close; `null` if no telemetry is read. */
  readonly goal: Goal | null;
  /** The streams that are still to be read, each once. The account is read on its schedule anyway. */
  readonly streams: readonly WholeStream[];
}

/** The planner and everything that feeds it from the state: goals, coverage and demand. */
export interface Planning {
  readonly parts: PlanningParts;
  /** Notified when an event may change which request is most valuable. */
  readonly wakeUp: WakeUp;
  /** Notified when no request is due. */
  readonly rested: WakeUp;
  readonly demand: DemandWatch;
  readonly isolated: IsolatedRanges;
  readonly goals: Record<GoalLane, Goal | null>;
  /** The state of the current planner. It may be replaced, so callers do not store it. */
  planner: PlannerState;
  /** The ids of the devices that the planner polls. */
  polled: Set<string>;
  /** Set if the only work is a goal. */
  oneOff: OneOff | null;
  /** The latest time that was planned for; −∞ before the start. */
  lastMs: EpochMs;
  /** Whether coverage was withdrawn since the planner was last updated. */
  isWithdrawn: boolean;
  /** Until when nothing is polled, and why; `null` while something is polled. */
  rest: Rest | null;
  /** When the account was last read ahead of its schedule, by the monotonic clock. */
  rereadAtMs: number;
  readonly failingDevices: FailingDevices;
}

/** The longest wait between two attempts of a one-off, which ends after ten minutes without progress. */
export const ONE_OFF_REST_MS = MINUTE_MS;

/** Time may fall back by up to this much without effect: clocks agree only to a few seconds. */
const FELL_BACK_MS = 10 * SECOND_MS;

/** After rejections that a plan change may explain, the account is read ahead of its schedule at most this often. */
const REJECTION_EVERY_MS = 10 * MINUTE_MS;

/** For an unknown limit in the headers it is read sooner, because only the account shows which limit applies. */
const LIMIT_EVERY_MS = MINUTE_MS;

/** Creates the planning over a state. `beginPlanning` or `beginOneOff` starts it. */
export function createPlanning(parts: PlanningParts): Planning {
  const { context } = parts;
  const settings = plannerSettings(parts);
  return {
    parts,
    wakeUp: createWakeUp(context.clock),
    rested: createWakeUp(context.clock),
    demand: createDemandWatch(context, settings.telemetryMs),
    isolated: createIsolatedRanges(context.store),
    goals: { 'first-history': null, backfill: null },
    planner: createPlannerState(settings),
    polled: new Set(),
    oneOff: null,
    lastMs: Number.NEGATIVE_INFINITY,
    isWithdrawn: false,
    rest: null,
    rereadAtMs: Number.NEGATIVE_INFINITY,
    failingDevices: createFailingDevices(context.clock),
  };
}

/** Begins from the state, after the account and the devices, or only the account, were read. */
export function beginPlanning(planning: Planning, { areListed }: { readonly areListed: boolean }): void {
  const nowMs = restartPlanner(planning, null);
  setDay(planning.planner, planning.parts.day(), nowMs);
  noteStreamRead(planning.planner, 'account', nowMs);
  enterDevices(planning, areListed);
  if (areListed) return;
  setUnlisted(planning.planner.devices, true);
  requestNow(planning.planner, 'devices');
}

/** Begins with one goal, the streams that it names, and the account, which has just been read. */
export function beginOneOff(planning: Planning, oneOff: OneOff): void {
  const nowMs = restartPlanner(planning, oneOff);
  planning.goals[oneOff.lane] = oneOff.goal;
  noteStreamRead(planning.planner, 'account', nowMs);
  for (const kind of ['alerts', 'devices'] as const) {
    if (!oneOff.streams.includes(kind)) turnOff(planning.planner, kind, Number.POSITIVE_INFINITY);
  }
  enterGoal(planning);
}

function restartPlanner(planning: Planning, oneOff: OneOff | null): EpochMs {
  const { parts } = planning;
  const settings = plannerSettings(parts);
  planning.planner = createPlannerState(oneOff === null ? settings : { ...settings, longestRestMs: ONE_OFF_REST_MS });
  planning.polled = new Set();
  planning.oneOff = oneOff;
  planning.isWithdrawn = false;
  planning.lastMs = parts.context.serverClock.nowMs();
  return planning.lastMs;
}

/** Returns whether planning has started, so that a dispatch loop follows it. */
export function hasStarted({ lastMs }: Planning): boolean {
  return Number.isFinite(lastMs);
}

/** The present in the planner's time, which does not fall back. */
export function plannedMs({ parts, lastMs }: Planning): EpochMs {
  return Math.max(lastMs, parts.context.serverClock.nowMs());
}

/**
 * Moves the planner to the present. Called before each decision. If time has fallen back or coverage was withdrawn, the
 * planner starts again.
 */
export function advancePlanning(planning: Planning): EpochMs {
  const { parts, lastMs, oneOff } = planning;
  const { serverClock, store } = parts.context;
  if (planning.isWithdrawn || serverClock.nowMs() < lastMs - FELL_BACK_MS) {
    const requested = requestedStreams(planning.planner);
    if (oneOff === null) beginPlanning(planning, { areListed: true });
    else beginOneOff(planning, oneOff);
    // A job may be waiting for these streams.
    for (const kind of requested) requestStream(planning, kind, oneOff !== null);
  }
  planning.lastMs = plannedMs(planning);
  const { planner, goals } = planning;
  setPageSize(planner, pageSizeOf(store.account()?.plan));
  if (planning.oneOff === null) setDay(planner, parts.day(), planning.lastMs);
  if (goals.backfill !== null) planner.backfillRestMs = goals.backfill.freeAtMs(planning.lastMs);
  return planning.lastMs;
}

/** Records that coverage of devices was withdrawn: the planner starts again. */
export function noteWithdrawn(planning: Planning): void {
  planning.isWithdrawn = true;
  planning.wakeUp.notify();
}

/** Records that the planner has nothing to request until a time; `null`: it has something. */
export function setRest(planning: Planning, rest: Rest | null): void {
  planning.rest = rest;
  if (rest !== null) planning.rested.notify();
}

/**
 * Records that a stream was read to its end, or that the key does not have its scope.
 *
 * @param offMs until when it is off in that case.
 */
export function enterStream(planning: Planning, kind: WholeStream, offMs: EpochMs | null): void {
  const { planner, oneOff } = planning;
  if (offMs !== null) turnOff(planner, kind, offMs);
  else if (kind === 'devices' && oneOff === null) enterDevices(planning);
  else if (kind !== 'devices') noteStreamRead(planner, kind, plannedMs(planning));
  if (oneOff === null || kind === 'account') return;
  // A stream that is read once is finished, even if it could not be read.
  turnOff(planner, kind, Number.POSITIVE_INFINITY);
  planning.oneOff = { ...oneOff, streams: oneOff.streams.filter((each) => each !== kind) };
  if (kind === 'devices') enterGoal(planning);
}

/**
 * Requests a reading of a stream now.
 *
 * @param isOff whether the stream is off: the key may have the scope by now.
 */
export function requestStream(planning: Planning, kind: WholeStream | 'telemetry', isOff: boolean): void {
  if (isOff) turnOff(planning.planner, kind, plannedMs(planning));
  if (kind !== 'telemetry') requestNow(planning.planner, kind);
  planning.wakeUp.notify();
}

/** Requests a new device list, which shows whether devices that do not answer are gone. */
export function relistDevices(planning: Planning): void {
  requestStream(planning, 'devices', planning.oneOff !== null);
}

/** The devices that are listed and not excluded. */
function devicesThere({ parts }: Planning): readonly KnownDevice[] {
  return includedDevices(parts.context).filter(({ goneSinceMs }) => goneSinceMs === null);
}

/**
 * Records the device list that is in the state now.
 *
 * @param isFresh whether it was just read.
 */
function enterDevices(planning: Planning, isFresh = true): void {
  const { parts, planner } = planning;
  const { serverClock, store } = parts.context;
  const there = devicesThere(planning);
  const ids = new Set(there.map(({ record }) => record.deviceId));
  for (const deviceId of [...planning.polled].filter((known) => !ids.has(known))) removeDevice(planning, deviceId);
  for (const deviceId of [...ids].filter((listed) => !planning.polled.has(listed))) enterDevice(planning, deviceId);
  // A gap whose reason has ended can be requested again.
  const named = new Set(store.gaps().map(({ deviceId }) => deviceId));
  for (const deviceId of [...named].filter((each) => ids.has(each))) reopenDevice(planning, deviceId);
  const now = { nowMs: serverClock.nowMs(), polls: parts.context.settings.polls };
  const listed = there.map((device) => (isFresh ? toPlannedDevice(device) : fromBefore(device, now)));
  noteDevicesListed(planner, listed, now.nowMs);
  planning.wakeUp.notify();
}

/** Records the listed devices of the goal, those with the newest signs of life first. */
function enterGoal(planning: Planning): void {
  const { oneOff, polled } = planning;
  for (const { record } of freshestFirst(devicesThere(planning))) {
    if (oneOff?.goal?.covers(record.deviceId) !== true || polled.has(record.deviceId)) continue;
    polled.add(record.deviceId);
    reopenDevice(planning, record.deviceId);
  }
}

function enterDevice(planning: Planning, deviceId: string): void {
  const { parts, planner, polled } = planning;
  polled.add(deviceId);
  const now = viewDevice(planning, deviceId);
  if (now === null) return;
  const { newestMs, coveredToMs, liveGap } = now.view;
  const { store } = parts.context;
  const newestNs = store.newestNs(deviceId);
  noteDeviceStored(planner.devices, deviceId, {
    liveGap,
    newestMs: newestNs === null ? newestMs : Math.max(newestMs ?? 0, nsToMs(newestNs)),
    // The covered range ends the grace period before the device was last polled.
    polledMs: coveredToMs === null ? null : coveredToMs + parts.context.settings.gracePeriodMs,
    rate: UNKNOWN_RATE,
    isSilent: isSilentForGood(store.emptyRange(deviceId)),
  });
  reopenDevice(planning, deviceId);
}

/** Removes a device that is gone or was removed: it is no longer polled. */
export function removeDevice(planning: Planning, deviceId: string): void {
  planning.polled.delete(deviceId);
  noteDeviceLeft(planning.planner, deviceId);
}

/**
 * Returns the coverage of a device and its gaps. `null` while the server's time is unknown, and for a device that is
 * not polled: a device that left during a request must not return because of its gaps.
 */
export function viewDevice({ parts, polled, isolated }: Planning, deviceId: string): Viewed | null {
  const { context } = parts;
  const { store, serverClock } = context;
  const wantedRange = wantedNow(context);
  if (wantedRange === null || !polled.has(deviceId)) return null;
  const state = store.telemetry(deviceId);
  const nowMs = serverClock.nowMs();
  const gaps = store.gaps(deviceId);
  const rangesOf = (isOf: (gap: Gap) => boolean) =>
    normalize(gaps.filter(isOf).map(({ fromNs, toNs }) => ({ from: fromNs, to: toNs })));
  const resting = rangesOf((gap) => isAwaitingRetry(gap, nowMs));
  const named = rangesOf((gap) => !isAwaitingRetry(gap, nowMs));
  const from = ownWantedFrom(isolated(), state, wantedRange.wantedFrom);
  const wanted = { from, to: maxNs(limitFor(wantedRange, state), from) };
  return { state, wanted, view: buildView({ covered: state.covered, wanted, resting, named }) };
}

/** Returns the missing history of a device in a lane: its own, and the part that the lane's goal wants. */
export function openHistoryIn(planning: Planning, lane: GoalLane, deviceId: string): OpenHistory {
  if (!planning.polled.has(deviceId)) return NOTHING_OPEN;
  const now = planning.oneOff === null ? viewDevice(planning, deviceId) : null;
  const own = lane === 'first-history' && now !== null ? now.view.open : NOTHING_OPEN;
  const wanted = planning.goals[lane]?.open(deviceId, ownRanges(now)) ?? NOTHING_OPEN;
  return { day: own.day + wanted.day, week: own.week + wanted.week, rest: own.rest + wanted.rest };
}

/** Returns the next range of a device's history; `null` if there is none, or the device is not polled. */
export function nextGoalGap(
  planning: Planning,
  { lane, deviceId, recency }: Pick<HistoryDecision, 'lane' | 'deviceId' | 'recency'>,
): GoalGap | null {
  const now = viewDevice(planning, deviceId);
  if (now === null) return null;
  const own = planning.oneOff === null ? now : null;
  const piece = planning.goals[lane]?.next(deviceId, recency, ownRanges(own)) ?? null;
  if (piece !== null || lane === 'backfill' || own === null) return piece;
  return { range: recencyRange(own, recency), limit: own.wanted.to, lane };
}

/** Updates the planner with the missing history of a device. */
export function reopenDevice(planning: Planning, deviceId: string): void {
  const { planner, polled, oneOff, goals } = planning;
  if (!polled.has(deviceId)) return;
  const isOwn = oneOff === null && viewDevice(planning, deviceId) !== null;
  for (const lane of HISTORY_LANES) {
    if (goals[lane] === null && !(isOwn && lane === 'first-history')) continue;
    setOpenHistory(planner.histories[lane], deviceId, openHistoryIn(planning, lane, deviceId));
  }
}

/** Sets the goal of a lane; `null` removes it. */
export function setGoal(planning: Planning, lane: GoalLane, goal: Goal | null): void {
  const { planner, polled, goals } = planning;
  const before = goals[lane];
  goals[lane] = goal;
  if (lane === 'backfill') planner.backfillRestMs = Number.NEGATIVE_INFINITY;
  for (const deviceId of polled) {
    if (before?.covers(deviceId) !== true && goal?.covers(deviceId) !== true) continue;
    setOpenHistory(planner.histories[lane], deviceId, openHistoryIn(planning, lane, deviceId));
  }
  planning.wakeUp.notify();
}

/** Records that any part of the program booked a request. */
export function noteBooked(planning: Planning, purpose: Purpose): void {
  const nowMs = plannedMs(planning);
  if (purpose.lane === 'backfill') planning.goals.backfill?.noteSent(nowMs);
  noteRequestBooked(planning.planner, purpose, nowMs);
}

/** Records that a page was committed, whichever part of the program requested it. */
export function noteCommitted({ goals }: Planning, page: CommittedPage): void {
  if (page.lane === 'backfill') goals.backfill?.noteCommitted(page);
}

/**
 * Records the fault of any request; `null` if there was none. A range that is too large may mean that the plan has
 * changed.
 */
export function noteDone(planning: Planning, fault: ApiFaultKind | null, { deviceId }: Purpose): void {
  if (fault === 'range-too-large') rereadAccount(planning, REJECTION_EVERY_MS);
  if (fault === null || !SILENCE.has(fault))
    endRests(planning, planning.failingDevices.noteAnswered(deviceId ?? null), 'unreachable');
}

/** Ends the rest of devices after failures, and of their gaps with that reason. */
export function endRests(planning: Planning, deviceIds: readonly string[], reason: GapReason): void {
  const { parts, planner, wakeUp } = planning;
  for (const deviceId of deviceIds) {
    liftGaps(parts.context, deviceId, reason);
    endRest(planner, deviceId);
    reopenDevice(planning, deviceId);
  }
  if (deviceIds.length > 0) wakeUp.notify();
}

/** Records that the account shows another plan. Rejections under the old plan no longer count against devices. */
export function notePlanChanged(planning: Planning): void {
  const reason = 'page_rejected';
  const rejected = planning.parts.context.store.gaps().filter((gap) => gap.reason === reason);
  endRests(planning, [...new Set(rejected.map(({ deviceId }) => deviceId))], reason);
}

/** Records that an answer has reported a limit that differs from the plan. */
export function noteLimitMismatch(planning: Planning): void {
  rereadAccount(planning, LIMIT_EVERY_MS);
}

/** Requests the account ahead of its schedule, but at most every `everyMs`. */
function rereadAccount(planning: Planning, everyMs: number): void {
  const nowMs = planning.parts.context.clock.monoMs();
  if (nowMs - planning.rereadAtMs < everyMs) return;
  planning.rereadAtMs = nowMs;
  requestStream(planning, 'account', false);
}

/** Compares the demand with the quota and reports a change. */
export function checkDemand({ parts, planner: { devices }, demand }: Planning): void {
  const settings = plannerSettings(parts);
  const alertRequests = alertPollRequests(openAlertsOf(parts.context.store), settings.pageSize);
  demand.check({ settings, rates: () => ratesOf(devices), alertRequests, othersPerDay: parts.day().others ?? 0 });
}

/** Returns the planner's settings as they are now. */
function plannerSettings({ context, share }: PlanningParts): PlannerSettings {
  const { store, serverClock, settings } = context;
  const { schedules, polls } = settings;
  const phaseMs = phaseOf(store.workspaceTag() ?? '');
  const turnAfter = (kind: WholeStream, lastMs: EpochMs): EpochMs =>
    (schedules[kind].next(lastMs - phaseMs) ?? Number.POSITIVE_INFINITY) + phaseMs;
  return {
    ...measurePeriods(schedules, serverClock.nowMs()),
    turnAfter,
    polls,
    pageSize: pageSizeOf(store.account()?.plan),
    gracePeriodMs: settings.gracePeriodMs,
    share,
  };
}
