/**
 * The planner over the state: begun from what is held, told what comes and goes, and begun anew where time falls back.
 *
 * All its times are the server's. Promise: what the planner has forgotten or got wrong costs requests or freshness, never
 * a reading: what is asked for is always a hole in the coverage.
 */

import { createWakeUp, type WakeUp } from '../core/async.ts';
import type { AppEvent } from '../core/events.ts';
import { type Interval, type Intervals, normalize } from '../core/intervals.ts';
import type { Purpose, Schedules } from '../core/ports.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import type { Gap, TelemetryState } from '../core/state/telemetry.ts';
import { type EpochMs, maxNs, minNs, nsToMs, SECOND_MS } from '../core/time.ts';
import type { SyncContext } from '../ingest/context.ts';
import { keptDevices } from '../ingest/filter.ts';
import { horizonNow, limitFor } from '../ingest/horizon.ts';
import { goesOnFrom } from './apart.ts';
import type { Backfill } from './backfill.ts';
import type { DayFigures } from './day-budget.ts';
import { createDemandWatch } from './demand.ts';
import type { PollSettings } from './device-outlook.ts';
import type { ListedTail } from './device-queue.ts';
import { type DeviceView, viewOf } from './device-view.ts';
import { NOTHING_OPEN, type OpenHistory } from './history-queue.ts';
import { createPlanDoubts } from './plan-doubts.ts';
import { createPlanner } from './planner.ts';
import type { HistoryDecision, Planner, PlannerFigures, Rest } from './planner-types.ts';
import { reachSpan, settingsOf, USUAL_PAGE } from './planning-settings.ts';
import { UNKNOWN_RATE } from './report-rate.ts';

export interface PlanningParts {
  readonly context: SyncContext;
  readonly schedules: Schedules;
  readonly polls: PollSettings;
  /** `api.share`. */
  readonly share: number;
  /** The day's window of the allowance as it stands. */
  readonly day: () => DayFigures;
}

/** The planner, and what it is told from outside of a decision. */
export interface Planning {
  /** The present, in the planner's time. Where it has fallen back, the planner begins anew. */
  nowMs(): EpochMs;
  /** The planner as it is now: not to be kept. */
  planner(): Planner;
  /** Begins from the state, when the account and the devices have just been read, or the account alone. */
  begin(options?: { readonly areListed: boolean }): void;
  /** Takes in the list of devices as the state has it now. */
  devicesRead(): void;
  /**
   * What is held of a device and what is open; `null` while nothing is known of the server's time, and of a device that
   * is not to be asked: what has left while it was asked must not come back by what is open of it.
   */
  view(deviceId: string): Viewed | null;
  /** What of a stretch of history is to be asked next; `null` where there is nothing, or the device is not to be asked. */
  historySpan(decision: Pick<HistoryDecision, 'lane' | 'deviceId' | 'reach'>): Interval | null;
  /** What is open of a device in a lane. */
  openIn(lane: HistoryDecision['lane'], deviceId: string): OpenHistory;
  /** Takes in what is open of a device now. */
  reopen(deviceId: string): void;
  /** Sets what is filled in the lowest lane; `null`: nothing any more. */
  setBackfill(backfill: Backfill | null): void;
  /** Whether it has begun, so that there is somebody who follows it. */
  hasBegun(): boolean;
  /** Begins with a backfill and nothing beside it but the account, which has just been read. */
  beginAlone(backfill: Backfill): void;
  /** Takes in a request that was booked, whoever made it. */
  booked(purpose: Purpose): void;
  /** Takes an event in: devices that are gone, refusals that may tell of a plan that has changed. */
  observe(event: AppEvent): void;
  /** Rings when something was told that may change what is worth asking next. */
  readonly wakeUp: WakeUp;
  /** Until when nothing is asked, and why; `null` while something is. */
  rest(): Rest | null;
  resting(rest: Rest | null): void;
  figures(): PlannerFigures;
  /** Looks whether the allowance carries what is asked for, and tells where that has changed. */
  weigh(): void;
  /** How old readings become as a matter of course where the allowance is short, in ms; 0 where it is not. */
  staleMs(): number;
}

/** A device as it is now. */
export interface Viewed {
  readonly view: DeviceView;
  readonly state: TelemetryState;
  /** What is wanted and can be claimed now. */
  readonly wanted: Interval;
}

/** Times within this may fall back: clocks are known to a few seconds. */
const FELL_BACK_MS = 10 * SECOND_MS;

/** Life cycles in which no readings are expected. */
const ASLEEP: ReadonlySet<string> = new Set(['paused', 'shelved', 'retired']);

/** A planner over a state. It knows nothing before `begin`. */
export function createPlanning(parts: PlanningParts): Planning {
  const { context } = parts;
  const { store, serverClock, clock } = context;
  const wakeUp = createWakeUp(clock);
  let planner = createPlanner(settingsOf(parts));
  let asked = new Set<string>();
  let lastMs = Number.NEGATIVE_INFINITY;
  let rest: Rest | null = null;
  let backfill: Backfill | null = null;
  let isAlone = false;

  const demand = createDemandWatch(context, {
    asked: () => settingsOf(parts),
    rates: () => planner.rates(),
    othersPerDay: () => parts.day().others ?? 0,
  });

  const view = (deviceId: string): Viewed | null => {
    const horizon = horizonNow(context);
    if (horizon === null || !asked.has(deviceId)) return null;
    const state = store.telemetry(deviceId);
    const nowMs = serverClock.nowMs();
    const gaps = store.gaps(deviceId);
    const stretches = (isOf: (gap: Gap) => boolean) =>
      normalize(gaps.filter(isOf).map(({ fromNs, toNs }) => ({ from: fromNs, to: toNs })));
    const resting = stretches(({ retryAtMs }) => retryAtMs > nowMs);
    const named = stretches(({ retryAtMs }) => retryAtMs <= nowMs);
    const from = goesOnFrom(store, state, horizon.wantedFrom);
    const wanted = { from, to: maxNs(limitFor(horizon, state), from) };
    return { state, wanted, view: viewOf({ spans: state.spans, wanted, resting, named }) };
  };
  /** What the daemon is at by itself; above what is held it may wait for a sign of life, or a sweep. */
  const ownOf = (deviceId: string): Intervals => {
    const now = isAlone ? null : view(deviceId);
    if (now === null) return [];
    const { from, to } = now.wanted;
    return normalize([{ from, to: minNs(now.state.spans.at(-1)?.to ?? from, to) }]);
  };
  const openIn: Planning['openIn'] = (lane, deviceId) => {
    if (!asked.has(deviceId)) return NOTHING_OPEN;
    if (lane === 'backfill') return backfill?.open(deviceId, ownOf(deviceId)) ?? NOTHING_OPEN;
    return isAlone ? NOTHING_OPEN : (view(deviceId)?.view.open ?? NOTHING_OPEN);
  };
  const openBackfill = (deviceId: string): void => {
    if (backfill !== null && asked.has(deviceId)) planner.open('backfill', deviceId, openIn('backfill', deviceId));
  };
  const reopen = (deviceId: string): void => {
    if (!isAlone && view(deviceId) !== null) planner.open('first-history', deviceId, openIn('first-history', deviceId));
    openBackfill(deviceId);
  };
  const takeIn = (deviceId: string): void => {
    asked.add(deviceId);
    const now = view(deviceId);
    if (now === null) return;
    const { newestMs, coveredToMs, hole, open } = now.view;
    const newestNs = store.newestNs(deviceId);
    planner.held(deviceId, {
      hole,
      newestMs: newestNs === null ? newestMs : Math.max(newestMs ?? 0, nsToMs(newestNs)),
      // It was asked when the end of what is held was the settle ago.
      askedMs: coveredToMs === null ? null : coveredToMs + context.settings.settleMs,
      rate: UNKNOWN_RATE,
    });
    planner.open('first-history', deviceId, open);
    openBackfill(deviceId);
  };
  const leave = (deviceId: string): void => {
    asked.delete(deviceId);
    planner.left(deviceId);
  };
  const devicesRead = (isFresh = true): void => {
    const there = keptDevices(context).filter(({ goneSinceMs }) => goneSinceMs === null);
    const ids = new Set(there.map(({ record }) => record.deviceId));
    for (const deviceId of [...asked].filter((known) => !ids.has(known))) leave(deviceId);
    for (const deviceId of [...ids].filter((listed) => !asked.has(listed))) takeIn(deviceId);
    // A name that kept a hole closed has an end.
    const named = new Set(store.gaps().map(({ deviceId }) => deviceId));
    for (const deviceId of [...named].filter((each) => ids.has(each))) reopen(deviceId);
    const now = { nowMs: serverClock.nowMs(), sweepMs: parts.polls.sweepMs };
    const listed = there.map((device) => (isFresh ? toListed(device) : fromBefore(device, now)));
    planner.listed(listed, { isLast: true }, now.nowMs);
    wakeUp.notify();
  };
  const begin = ({ areListed } = { areListed: true }): void => {
    planner = createPlanner(settingsOf(parts));
    asked = new Set();
    isAlone = false;
    const nowMs = serverClock.nowMs();
    lastMs = nowMs;
    planner.setDay(parts.day(), nowMs);
    planner.done('account', nowMs);
    devicesRead(areListed);
    if (!areListed) planner.hasten('devices');
  };
  const beginAlone = (whole: Backfill): void => {
    planner = createPlanner(settingsOf(parts));
    const nowMs = serverClock.nowMs();
    lastMs = nowMs;
    isAlone = true;
    backfill = whole;
    planner.done('account', nowMs);
    for (const stream of ['alerts', 'devices'] as const) planner.off(stream, Number.POSITIVE_INFINITY);
    const isThere = new Set(
      keptDevices(context)
        .filter(({ goneSinceMs }) => goneSinceMs === null)
        .map(({ record }) => record.deviceId),
    );
    asked = new Set(whole.deviceIds.filter((deviceId) => isThere.has(deviceId)));
    for (const deviceId of asked) openBackfill(deviceId);
  };
  const doubts = createPlanDoubts(clock, () => {
    planner.hasten('account');
    wakeUp.notify();
  });

  return {
    wakeUp,
    nowMs: () => {
      const nowMs = serverClock.nowMs();
      if (nowMs < lastMs - FELL_BACK_MS) isAlone && backfill !== null ? beginAlone(backfill) : begin();
      lastMs = Math.max(lastMs, nowMs);
      planner.setPageSize(store.account()?.plan.maxDevicesPerPage ?? USUAL_PAGE);
      if (!isAlone) planner.setDay(parts.day(), lastMs);
      if (backfill !== null) planner.restBackfill(backfill.pace.freeAtMs(lastMs));
      return lastMs;
    },
    planner: () => planner,
    begin,
    devicesRead: () => devicesRead(),
    view,
    historySpan: ({ lane, deviceId, reach }) => {
      if (lane === 'backfill') return backfill?.next(deviceId, reach, ownOf(deviceId)) ?? null;
      const now = view(deviceId);
      return now === null ? null : reachSpan(now, reach);
    },
    openIn,
    reopen,
    setBackfill: (next) => {
      for (const deviceId of backfill?.deviceIds ?? []) planner.open('backfill', deviceId, NOTHING_OPEN);
      planner.restBackfill(Number.NEGATIVE_INFINITY);
      backfill = next;
      for (const deviceId of next?.deviceIds ?? []) openBackfill(deviceId);
      wakeUp.notify();
    },
    beginAlone,
    hasBegun: () => Number.isFinite(lastMs),
    booked: (purpose) => {
      const nowMs = Math.max(lastMs, serverClock.nowMs());
      if (purpose.lane === 'backfill') backfill?.pace.sent(nowMs);
      planner.booked(purpose, nowMs);
    },
    observe: (event) => {
      if (event.type === 'device-gone' || event.type === 'device-forgotten') leave(event.deviceId);
      doubts(event);
    },
    rest: () => rest,
    resting: (next) => {
      rest = next;
    },
    figures: () => planner.figures(),
    weigh: demand.look,
    staleMs: demand.staleMs,
  };
}

/**
 * A device as an earlier listing told of it, which says nothing of the time since: what had spoken within a sweep before
 * that listing is taken to speak still, so that it is asked, and its rate tells from then on.
 */
function fromBefore(device: KnownDevice, { nowMs, sweepMs }: { nowMs: EpochMs; sweepMs: number }): ListedTail {
  const told = toListed(device);
  const isSpeaking = told.seenMs === null || device.lastListedMs - told.seenMs < sweepMs;
  return { ...told, seenMs: isSpeaking ? nowMs : told.seenMs };
}

function toListed({ record }: KnownDevice): ListedTail {
  const { deviceId, lastSeenAt, lifecycleStatus } = record;
  return {
    deviceId,
    seenMs: lastSeenAt === null ? null : nsToMs(lastSeenAt),
    isActive: lifecycleStatus === null || !ASLEEP.has(lifecycleStatus),
  };
}
