/**
 * The planner at work against the bench's service, through the real pace.
 */

import { quotaFigures } from '../../../src/api/quota.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { createPlannerState, type PlannerState } from '../../../src/scheduler/decide.ts';
import { noteDeviceStored } from '../../../src/scheduler/device-queue.ts';
import {
  figuresOf,
  noteBegan,
  noteDecisionFailed,
  noteDevicesListed,
  notePollCommitted,
  noteRequestBooked,
  noteStreamRead,
  setDay,
  takeDecision,
} from '../../../src/scheduler/planner.ts';
import {
  type Decision,
  type PlannerFigures,
  type PlannerSettings,
  purposeOf,
  type Rest,
} from '../../../src/scheduler/planner-types.ts';
import { learnFromPage, UNKNOWN_RATE } from '../../../src/scheduler/report-rate.ts';
import { POLLS } from '../../support/defaults.ts';
import type { Device } from './fleet.ts';
import { createRate, SHARE } from './rate.ts';
import { type RunResult, resultOf } from './result.ts';
import type { Service, ServicePlan } from './service.ts';
import { countAnew, storedFrom, takePage } from './stored-readings.ts';
import { createTiming, type Timing } from './timing.ts';

export const PAGE = 200;

export interface RunOptions {
  readonly fleet: readonly Device[];
  readonly service: Service;
  readonly plan: ServicePlan;
  /** Earlier requests are not counted. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly seed: number;
}

export interface PlannerRun extends RunResult {
  readonly figures: PlannerFigures;
  /** When a request went or, where nothing was due, might have gone: the paced instants at which the oracle sends. */
  readonly instantsMs: Float64Array;
  readonly byLane: Readonly<Record<string, number>>;
  readonly livePolls: number;
  readonly liveEmpty: number;
  /** Of each decision, and of all calls to the planner for it. */
  readonly deciding: Timing;
  readonly telling: Timing;
  readonly stepsPerDecision: number;
  /** How long no request was due although quota was left. */
  readonly idleMs: number;
}

export const SETTINGS: PlannerSettings = {
  telemetryMs: MINUTE_MS,
  devicesMs: 5 * MINUTE_MS,
  alertsMs: 2 * MINUTE_MS,
  accountMs: HOUR_MS,
  polls: POLLS,
  pageSize: PAGE,
  gracePeriodMs: 0,
  share: SHARE,
};

/** Runs it. All is stored when it begins. */
export function runPlanner({ fleet, service, plan, fromMs, untilMs, seed }: RunOptions): PlannerRun {
  const rate = createRate(service, plan, seed);
  const planner = createPlannerState(SETTINGS);
  const allStored = new Map(fleet.map((device) => [device.deviceId, storedFrom(device, 0, device.newestAt(0))]));
  for (const device of fleet) tellHeld(planner, device);
  const figuresAt = (nowMs: number) => ({
    ...quotaFigures(rate.quota, nowMs).day,
    minuteBudget: quotaFigures(rate.quota, nowMs).minute.budget,
  });
  setDay(planner, figuresAt(0), 0);
  const instants: number[] = [];
  const deciding = createTiming();
  const telling = createTiming();
  const idleEveryMs = Math.max(MINUTE_MS / (plan.perMinute * SHARE), DAY_MS / (plan.perDay * SHARE));
  let counts = { requests: 0, pages: 0, refused: 0 };
  let byLane: Record<string, number> = {};
  let before = figuresOf(planner);
  let isCounting = false;
  /** A listing that is under way, and how many devices it has so far. */
  let listing = null as { readonly decision: Decision; readonly listed: number } | null;
  let idleMs = 0;

  const listPage = (decision: Decision, nowMs: number): void => {
    const listed = (listing?.listed ?? 0) + PAGE;
    listing = listed < fleet.length ? { decision, listed } : null;
    if (listing !== null) return;
    const all = fleet.map(({ deviceId, seenAt }) => ({ deviceId, seenMs: seenAt(nowMs), isActive: true }));
    telling.time(() => noteDevicesListed(planner, all, nowMs));
  };
  const answer = (decision: Decision, nowMs: number): void => {
    if (decision.kind === 'poll') {
      const stored = allStored.get(decision.deviceId);
      if (stored === undefined) throw new Error(`${decision.deviceId} is no device`);
      counts.pages += 1;
      const page = takePage(stored, nowMs, { pageSize: PAGE, givesUp: decision.newestOnly, untilMs: decision.untilMs });
      telling.time(() => notePollCommitted(planner, decision, page, nowMs));
    } else if (decision.kind === 'devices') {
      listPage(decision, nowMs);
    } else if (decision.kind !== 'history' && decision.kind !== 'reread') noteStreamRead(planner, decision.kind, nowMs);
  };
  const send = (decision: Decision, nowMs: number): void => {
    if (listing === null) telling.time(() => noteBegan(planner, decision, nowMs));
    telling.time(() => noteRequestBooked(planner, purposeOf(decision), nowMs));
    const { status } = rate.send(nowMs);
    instants.push(nowMs);
    counts.requests += 1;
    byLane[decision.lane] = (byLane[decision.lane] ?? 0) + 1;
    telling.time(() => setDay(planner, figuresAt(nowMs), nowMs));
    if (status === 200) answer(decision, nowMs);
    else {
      counts.refused += 1;
      listing = null;
      noteDecisionFailed(planner, decision, false, nowMs);
    }
    telling.next();
  };

  const startCounting = (nowMs: number): void => {
    if (isCounting || nowMs < fromMs) return;
    for (const stored of allStored.values()) countAnew(stored, nowMs);
    counts = { requests: 0, pages: 0, refused: 0 };
    byLane = {};
    before = figuresOf(planner);
    isCounting = true;
  };
  const rest = ({ untilMs: restMs, reason }: Rest, nowMs: number): number => {
    const onMs = Math.min(untilMs, Math.max(nowMs + 1, Math.ceil(restMs)));
    if (reason !== 'idle') return onMs;
    idleMs += Math.max(0, onMs - Math.max(nowMs, fromMs));
    // The oracle may use what the planner leaves.
    const lastMs = Math.max(nowMs, (instants.at(-1) ?? 0) + idleEveryMs);
    for (let atMs = lastMs; atMs < onMs; atMs += idleEveryMs) instants.push(atMs);
    return onMs;
  };

  for (let nowMs = 0; ; ) {
    nowMs = rate.freeAtMs(nowMs);
    if (nowMs >= untilMs) break;
    startCounting(nowMs);
    const decision = listing?.decision ?? deciding.time(() => takeDecision(planner, nowMs));
    deciding.next();
    if (decision.kind === 'rest') nowMs = rest(decision, nowMs);
    else send(decision, nowMs);
  }
  const figures = figuresOf(planner);
  return {
    ...resultOf([...allStored.values()], counts, { fromMs, untilMs }),
    figures,
    instantsMs: Float64Array.from(instants),
    byLane,
    livePolls: figures.livePolls - before.livePolls,
    liveEmpty: figures.liveEmpty - before.liveEmpty,
    deciding: deciding.end(),
    telling: telling.end(),
    idleMs,
    stepsPerDecision: stepsIn(planner) / Math.max(1, deciding.end().count),
  };
}

/** Reports the stored data of a device: its newest reading, as of now, and the rate of the last ones. */
export function tellHeld(planner: PlannerState, device: Device): void {
  const newest = device.newestAt(0);
  const instants = Array.from({ length: 20 }, (_, back) => device.timeOf(newest - back));
  noteDeviceStored(planner.devices, device.deviceId, {
    newestMs: instants[0] ?? null,
    polledMs: 0,
    rate: learnFromPage(UNKNOWN_RATE, instants),
  });
}

/** Steps in the heaps of a planner so far: what is measured instead of time. */
function stepsIn({ devices, histories }: PlannerState): number {
  const heaps = [devices, ...Object.values(histories)].flatMap((queue) => Object.values(queue.heaps));
  return heaps.reduce((sum, { steps }) => sum + steps, 0);
}
