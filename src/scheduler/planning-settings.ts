/**
 * What the planner is set to by the configuration, the plan and the workspace; and the stretch of a device's own history
 * that a decision is about.
 */
import { hash64 } from '../core/hash.ts';
import type { Interval } from '../core/intervals.ts';
import { DAY_NS, type EpochMs, MINUTE_MS, maxNs, minNs, msToNs } from '../core/time.ts';
import { meanPeriodMs } from './estimate.ts';
import type { Reach } from './history-queue.ts';
import type { PlannerSettings } from './planner-types.ts';
import type { PlanningParts, Viewed } from './planning.ts';
import type { RoundKind } from './streams.ts';

/** Phases lie within this, so that containers which all go by the minute do not all ask at its first second. */
const PHASE_WITHIN_MS = MINUTE_MS;

export const USUAL_PAGE = 200;

const WEEK_NS = 7n * DAY_NS;

/** A stretch of history, below the newest end. */
export function reachSpan({ state, view, wanted }: Viewed, reach: Reach): Interval {
  const newest = state.spans.at(-1);
  const to = view.hole !== null ? msToNs(view.hole.fromMs) : (newest?.from ?? wanted.from);
  const back = reach === 'day' ? DAY_NS : WEEK_NS;
  const from = reach === 'rest' ? wanted.from : maxNs(wanted.to - back, wanted.from);
  return { from: minNs(from, to), to };
}

/** What is asked for, as it stands. */
export function settingsOf({ context, schedules, polls, share }: PlanningParts): PlannerSettings {
  const { store, serverClock } = context;
  const nowMs = serverClock.nowMs();
  const phaseMs = phaseOf(store.workspaceTag() ?? '');
  const turnAfter = (kind: RoundKind, lastMs: EpochMs): EpochMs =>
    (schedules[kind].next(lastMs - phaseMs) ?? Number.POSITIVE_INFINITY) + phaseMs;
  return {
    freshnessMs: meanPeriodMs(schedules.telemetry, nowMs),
    devicesMs: meanPeriodMs(schedules.devices, nowMs),
    alertsMs: meanPeriodMs(schedules.alerts, nowMs),
    accountMs: meanPeriodMs(schedules.account, nowMs),
    turnAfter,
    ...polls,
    pageSize: store.account()?.plan.maxDevicesPerPage ?? USUAL_PAGE,
    share,
  };
}

/** The phase of a workspace: always the same one, spread evenly over many workspaces. */
export function phaseOf(workspace: string): number {
  return hash64(workspace).lo % PHASE_WITHIN_MS;
}
