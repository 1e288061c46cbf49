/**
 * The answer of `--plan`: the requests that the schedules and a range of history cost, compared with the quota.
 *
 * Pure: it takes facts, settings and assumptions and returns one object. `--plan --json` prints the object, so its
 * member names do not change.
 */

import { type DeviceFacts, type FleetRates, fleetRates, resizeFleet, type WhatIf } from '../../core/fleet.ts';
import type { PollSettings, Schedules } from '../../core/ports.ts';
import { ASSUMED_PER_MINUTE, budgetOf } from '../../core/quota.ts';
import { type Account, alertPollRequests, type OpenAlerts, pageSizeOf } from '../../core/records.ts';
import { QUIET_ENDS_DAYS } from '../../core/state/job-args.ts';
import { capitalized, counted } from '../../core/text.ts';
import { DAY_MS, type EpochMs, type EpochNs, formatSeconds, MINUTE_MS, MS_NS, msToNs } from '../../core/time.ts';
import { maxWidthNs } from '../../ingest/page-request.ts';
import {
  computeDemand,
  type Demand,
  type DemandByLane,
  type DemandInput,
  findShortfall,
  shortfallText,
} from '../../scheduler/demand.ts';
import { idlePollDueMs } from '../../scheduler/device-outlook.ts';
import {
  aloneFinishMs,
  type BesideSupply,
  backfillNeed,
  besideFinishMs,
  besideSupply,
  loadPerMs,
  measureDaySupply,
  scaleNeed,
} from '../../scheduler/estimate.ts';
import { NARROW_RESERVES, USUAL_RESERVES } from '../../scheduler/reserves.ts';
import { measurePeriods } from '../../scheduler/streams.ts';

/** A schedule that is due less often counts as this, because a day may have none of its requests. */
const LONGEST_PERIOD_MS = 30 * DAY_MS;

/** The facts about the workspace. */
export interface PlanFacts {
  /** Whether the facts were requested now, or read from the state of a running process. */
  readonly source: 'api' | 'state';
  /** When the devices were listed. */
  readonly asOfMs: EpochMs;
  readonly nowMs: EpochMs;
  /** How many requests the facts took. */
  readonly requestsSpent: number;
  /** `null` if the key may not read it. */
  readonly account: Account | null;
  /** The limits that headers have shown. */
  readonly seenPerMinute: number | null;
  readonly seenPerDay: number | null;
  /** The use of the day by other clients so far; `null` if unknown. */
  readonly othersPerDay: number | null;
  /** The unresolved alerts, as last listed. */
  readonly openAlerts: OpenAlerts;
  /** The program's own requests of the last 24 hours. */
  readonly spentDay: number;
  /** The times of these requests, if the state has them, ascending. */
  readonly sentMs: readonly EpochMs[];
  /** Those of the requests that a daemon sent for live work; empty if no daemon uses the state. */
  readonly liveSentMs: readonly EpochMs[];
  readonly devices: readonly DeviceFacts[];
}

/** The part of the configuration that the requests of a sync depend on. */
interface PlanSettings {
  readonly share: number;
  readonly schedules: Schedules;
  readonly polls: PollSettings;
  readonly gracePeriodMs: number;
}

/** The requested range of history. */
export interface PlanRange {
  readonly from: EpochNs;
  readonly to: EpochNs;
  /** The devices of the range; `null` for all. */
  readonly deviceIds: ReadonlySet<string> | null;
  /** Whether all devices were requested; then `from` is an example. */
  readonly isAll?: boolean;
  /** Whether covered ranges are to be read again. */
  readonly isRecheck?: boolean;
}

/** The requested rate of a backfill. */
interface PlanRate {
  readonly maxShare: number | null;
  readonly finishByMs: EpochMs | null;
}

interface PlanQuestion {
  readonly facts: PlanFacts;
  readonly settings: PlanSettings;
  readonly whatIf: WhatIf;
  readonly range: PlanRange;
  readonly rate?: PlanRate;
}

interface Limits {
  readonly perMinute: number;
  readonly perDay: number | null;
}

interface PlanInput {
  readonly schedules: Schedules;
  readonly limits: Limits;
  readonly fleet: FleetRates;
  readonly input: DemandInput;
  /** The assumed number of devices divided by the real one. */
  readonly scale: number;
  /** Whole sentences about figures that were assumed. */
  readonly assumptions: readonly string[];
}

/** Collects the input of the computation. */
function buildPlanInput({ facts, settings, whatIf, range }: PlanQuestion): PlanInput {
  const schedules: Schedules = { ...settings.schedules, ...whatIf.schedules };
  const { limits, assumptions } = assumedLimits(facts, whatIf);
  const fleet = fleetRates(facts.devices, facts.nowMs);
  const reporting = fleet.devices.filter(({ isQuiet }) => !isQuiet);
  const { assumedMs } = fleet;
  const all = fleet.devices.length;
  const own = { intervalsMs: reporting.map(({ intervalMs }) => intervalMs), quiet: all - reporting.length };
  const pageSize = pageSizeOf(facts.account?.plan);
  const mix = whatIf.devices === undefined ? own : resizeFleet(own, { devices: whatIf.devices, assumedMs });
  return {
    schedules,
    limits,
    fleet,
    input: {
      intervalsMs: mix.intervalsMs,
      quietDevices: mix.quiet,
      ...measurePeriods(schedules, facts.nowMs, LONGEST_PERIOD_MS),
      polls: settings.polls,
      pageSize,
      alertRequests: alertPollRequests(facts.openAlerts, pageSize),
      ...limits,
      share: whatIf.share ?? settings.share,
      othersPerDay: facts.othersPerDay ?? 0,
    },
    // Devices that were named are not scaled.
    scale: whatIf.devices === undefined || range.deviceIds !== null || all === 0 ? 1 : whatIf.devices / all,
    assumptions: [...assumptions, ...rateAssumptions(reporting, assumedMs), ...alertAssumptions(facts)],
  };
}

function assumedLimits(
  { account, seenPerMinute, seenPerDay }: PlanFacts,
  whatIf: WhatIf,
): { readonly limits: Limits; readonly assumptions: readonly string[] } {
  const unknownBecause =
    account === null ? 'the account is unknown (scope account:read)' : 'the account does not contain this limit';
  const minute = whatIf.perMinute ?? account?.plan.requestsPerMinute ?? null;
  const perDay = whatIf.perDay ?? account?.plan.requestsPerDay ?? seenPerDay;
  const heard =
    seenPerMinute === null ? `${ASSUMED_PER_MINUTE} a minute assumed` : `the response headers contain ${seenPerMinute}`;
  return {
    limits: { perMinute: minute ?? seenPerMinute ?? ASSUMED_PER_MINUTE, perDay },
    assumptions: [
      ...(minute === null ? [`requests a minute: ${unknownBecause}; ${heard}`] : []),
      ...(perDay === null ? [`requests a day: ${unknownBecause}; no limit per day is assumed`] : []),
    ],
  };
}

/** Before the alerts were read, only the account shows that there are open ones. */
function alertAssumptions({ account, openAlerts }: PlanFacts): string[] {
  const open = account?.openAlerts ?? 0;
  if (open === 0 || openAlerts.sinceOldest > 0) return [];
  return [
    `an alert poll takes one request: Tidemark has not read the ${counted(open, 'open alert')} of the account yet, and each page after the first takes one more`,
  ];
}

function rateAssumptions(reporting: readonly { readonly isMeasured: boolean }[], assumedMs: number): string[] {
  const assumed = reporting.filter(({ isMeasured }) => !isMeasured).length;
  if (assumed === 0) return [];
  const basis = assumed < reporting.length ? 'the median of the measured rates' : 'no rate is measured yet';
  return [
    `report rates: a reading every ${Math.round(assumedMs / 1000)} s for ${counted(assumed, 'device')} (${basis})`,
  ];
}

/** The JSON of `--plan --json`. Times are RFC 3339 UTC, durations seconds; `null`: unknown, or never. */
export type CostPlan = ReturnType<typeof costPlan>;

/** Computes the JSON of `--plan --json`: demand, quota, lag, and the cost of a range of history. */
export function costPlan(question: PlanQuestion) {
  const { facts, whatIf, range, rate = NO_RATE } = question;
  const planInput = buildPlanInput(question);
  const { input, assumptions } = planInput;
  const demand = computeDemand(input);
  const { readingsMade, readingsCovered, readingsFit, lag } = demand;
  return {
    basis: {
      source: facts.source,
      as_of: formatSeconds(msToNs(facts.asOfMs)),
      requests_spent: facts.requestsSpent,
      assumptions,
    },
    what_if: whatIfText(whatIf),
    workspace: {
      workspace_id: facts.account?.workspaceId ?? null,
      name: facts.account?.name ?? null,
      plan_name: facts.account?.plan.name ?? null,
    },
    devices: deviceCounts(planInput),
    readings_per_day: { made: Math.round(readingsMade), covered: Math.round(readingsCovered), fit: readingsFit },
    schedules: schedulesOf(planInput),
    requests_per_day: {
      needed: lanesOf(demand.needed),
      planned: lanesOf(plannedOf(demand)),
      left_for_history: Math.round(demand.leftForHistory),
    },
    allowance: plannedQuota(demand, facts, planInput),
    fits: demand.fits,
    slowdown: roundTo(demand.slowdown, 2),
    warning: warningOf(input),
    freshness: { median_seconds: seconds(lag.medianMs), p95_seconds: seconds(lag.p95Ms) },
    backfill: backfillPlan({ facts, range, planInput, demand, rate, gracePeriodMs: question.settings.gracePeriodMs }),
  };
}

const NO_RATE: PlanRate = { maxShare: null, finishByMs: null };

function warningOf(input: DemandInput): string | null {
  const shortfall = findShortfall(input);
  return shortfall === null ? null : capitalized(shortfallText(shortfall));
}

function whatIfText({ share, schedules = {}, devices, perMinute, perDay }: WhatIf): Record<string, string | number> {
  return {
    ...(share === undefined ? {} : { 'api.share': share }),
    ...Object.fromEntries(Object.entries(schedules).map(([stream, { text }]) => [`sync.${stream}`, text])),
    ...(devices === undefined ? {} : { devices }),
    ...(perMinute === undefined ? {} : { requests_per_minute: perMinute }),
    ...(perDay === undefined ? {} : { requests_per_day: perDay }),
  };
}

function deviceCounts({ input, fleet }: PlanInput) {
  const reporting = fleet.devices.filter(({ isQuiet }) => !isQuiet);
  return {
    total: input.intervalsMs.length + input.quietDevices,
    reporting: input.intervalsMs.length,
    quiet: input.quietDevices,
    left_out: fleet.leftOut,
    rates_measured: reporting.filter(({ isMeasured }) => isMeasured).length,
    rates_assumed: reporting.filter(({ isMeasured }) => !isMeasured).length,
    assumed_interval_seconds: seconds(fleet.assumedMs),
  };
}

function schedulesOf({ schedules: { telemetry, devices, alerts, account }, input }: PlanInput) {
  return {
    telemetry: { cron: telemetry.text, mean_seconds: seconds(input.telemetryMs) },
    devices: { cron: devices.text, mean_seconds: seconds(input.devicesMs) },
    alerts: { cron: alerts.text, mean_seconds: seconds(input.alertsMs) },
    account: { cron: account.text, mean_seconds: seconds(input.accountMs) },
    idle_poll: { mean_seconds: seconds(idlePollDueMs(0, input.polls)) },
  };
}

/**
 * The requests of each lane. If devices take turns, live work gets at most the requests that history leaves of the
 * budget.
 */
function plannedOf({ planned, budget, leftForHistory }: Demand): DemandByLane {
  const others = planned.alerts + planned.inventory + planned.account + planned.idlePolls;
  return { ...planned, live: Math.min(planned.live, Math.max(0, budget - leftForHistory - others)) };
}

function lanesOf({ live, alerts, inventory, account, idlePolls }: DemandByLane) {
  return {
    live: Math.round(live),
    alerts: Math.round(alerts),
    device_list: Math.round(inventory),
    account: Math.round(account),
    idle_polls: Math.round(idlePolls),
    total: Math.round(live + alerts + inventory + account + idlePolls),
  };
}

function plannedQuota(demand: Demand, facts: PlanFacts, { input: { share }, limits }: PlanInput) {
  const planned = lanesOf(plannedOf(demand)).total;
  const aMinute = (planned * MINUTE_MS) / DAY_MS;
  const minuteBudget = budgetOf(limits.perMinute, share);
  const day = limits.perDay === null ? null : budgetOf(limits.perDay, share);
  return {
    share,
    budget_per_day: Math.round(demand.budget),
    minute: {
      limit: limits.perMinute,
      budget: minuteBudget,
      planned: roundTo(aMinute, 2),
      used_share: roundTo(aMinute / minuteBudget, 4),
    },
    day: {
      limit: limits.perDay,
      budget: day,
      planned,
      used_share: day === null ? null : roundTo(planned / day, 4),
      spent_last_24h: facts.spentDay,
      used_by_others: facts.othersPerDay,
    },
  };
}

function backfillPlan({
  facts,
  range,
  planInput: { fleet, input, scale, limits },
  demand,
  rate,
  gracePeriodMs,
}: {
  readonly gracePeriodMs: number;
  readonly rate: PlanRate;
  readonly facts: PlanFacts;
  readonly range: PlanRange;
  readonly planInput: PlanInput;
  readonly demand: Demand;
}) {
  const { deviceIds, from, to } = range;
  const now = msToNs(facts.nowMs);
  const maxDays = facts.account?.plan.historyMaxDays ?? null;
  const devices = fleet.devices.filter(({ deviceId }) => deviceIds === null || deviceIds.has(deviceId));
  const limit = now - msToNs(gracePeriodMs);
  const estimated = { range, now, limit, pageSize: input.pageSize, windowNs: maxWidthNs(maxDays) };
  const uncovered = devices.map((device) => ({ ...device, covered: [] }));
  const toRead = range.isRecheck === true ? uncovered : devices;
  const need = scaleNeed(backfillNeed({ ...estimated, devices: toRead }), scale, () =>
    backfillNeed({ ...estimated, devices: uncovered }),
  );
  const { requests } = need;
  const { nowMs } = facts;
  const aloneMs = aloneFinishMs(requests, budgetsAt(limits, input.share, facts.spentDay));
  const besideMs = besideFinishMs(requests, planSupply(facts, demand, { input, limits }));
  const isOld = maxDays !== null && Number((now - from) / MS_NS) > maxDays * DAY_MS;
  return {
    from: formatSeconds(from),
    to: formatSeconds(to),
    devices: Math.round(devices.length * scale),
    devices_with_gaps: need.devices,
    gap_share: roundTo(need.openShare, 4),
    readings: need.readings,
    requests,
    beside_daemon: {
      requests_per_day: Math.round(demand.leftForHistory),
      ...timeLeft(besideMs, nowMs),
    },
    alone: { ...timeLeft(aloneMs, nowMs), requests_per_day: Math.round(demand.budget) },
    rate: rateEffect(rate, { requests, demand, nowMs, aloneMs, besideMs, budgets: budgetsAt(limits, input.share, 0) }),
    note: backfillNote(need.assumesFullHistory, range.isAll === true, isOld ? maxDays : null),
  };
}

/** The history that a plan for `--from all` assumes, in days. */
export const ALL_ASSUMED_DAYS = 365;

function backfillNote(assumesFullHistory: boolean, isAll: boolean, hiddenDays: number | null): string | null {
  const all = `The age of the oldest reading is not known yet: these figures assume ${ALL_ASSUMED_DAYS} days of history. The backfill of a device ends after ${QUIET_ENDS_DAYS} days in a row without a reading.`;
  const old = `The plan limits the range of a request to ${hiddenDays} days (history_max_days); whether the API also hides older readings is not known.`;
  const full = 'These figures assume that every device has readings down to the beginning of the range.';
  const notes = [isAll && all, hiddenDays !== null && old, assumesFullHistory && !isAll && full];
  return notes.filter((note) => note !== false).join(' ') || null;
}

/** The share of the limits, and the part of the day's budget that is spent. */
function budgetsAt({ perMinute, perDay }: PlanInput['limits'], share: number, spent: number) {
  return { perMinute: budgetOf(perMinute, share), perDay: perDay === null ? null : budgetOf(perDay, share), spent };
}

/** The budget of a backfill during live work from now on: the day's token bucket after the requests of the last day. */
function planSupply(
  { nowMs, sentMs, liveSentMs, othersPerDay }: PlanFacts,
  demand: Demand,
  { input: { share }, limits }: Pick<PlanInput, 'input' | 'limits'>,
): BesideSupply {
  const { perMinute, perDay } = budgetsAt(limits, share, 0);
  const day = measureDaySupply({ share, limit: limits.perDay, budget: perDay, others: othersPerDay, sentMs }, nowMs);
  const backfillReserve = (demand.readingsFit ? USUAL_RESERVES : NARROW_RESERVES).backfill;
  // Without a daemon that has run for long enough, the planned requests count as live work.
  const measured = loadPerMs((sinceMs) => liveSentMs.filter((atMs) => atMs > sinceMs).length, nowMs);
  const othersPerMs = measured || lanesOf(plannedOf(demand)).total / DAY_MS;
  return besideSupply({ ...day, backfillReserve }, { minute: perMinute, seenPerMs: null, othersPerMs });
}

interface RateInput {
  readonly requests: number;
  readonly demand: Demand;
  readonly nowMs: number;
  /** The time with the full share, in ms; `null` if unknown. */
  readonly aloneMs: number | null;
  /** The time together with live work, in ms; `null` if unknown. */
  readonly besideMs: number | null;
  readonly budgets: ReturnType<typeof budgetsAt>;
}

/** The effect of a rate; `null` if none was requested. */
function rateEffect(
  { maxShare, finishByMs }: PlanRate,
  { requests, demand, nowMs, aloneMs, besideMs, budgets }: RateInput,
) {
  if (maxShare === null && finishByMs === null) return null;
  const slowest = (ms: number | null, rateMs: number | null) =>
    ms === null || rateMs === null ? null : Math.max(ms, rateMs);
  const aheadMs = finishByMs === null ? null : Math.max(1, finishByMs - nowMs);
  const perDay = aheadMs === null ? demand.budget * (maxShare ?? 1) : (requests * DAY_MS) / aheadMs;
  const ofShare = maxShare ?? 1;
  const part = {
    perMinute: budgets.perMinute * ofShare,
    perDay: budgets.perDay === null ? null : budgetOf(budgets.perDay, ofShare),
    spent: 0,
  };
  const rateMs = aheadMs ?? aloneFinishMs(requests, part);
  const inTime = (ms: number | null): boolean | null => (aheadMs === null ? null : ms !== null && ms <= aheadMs);
  return {
    max_share: maxShare,
    finish_by: finishByMs === null ? null : formatSeconds(msToNs(finishByMs)),
    requests_per_day: Math.round(perDay),
    share_of_budget: demand.budget > 0 ? roundTo(perDay / demand.budget, 4) : null,
    beside_daemon: { ...timeLeft(slowest(besideMs, rateMs), nowMs), in_time: inTime(besideMs) },
    alone: { ...timeLeft(slowest(aloneMs, rateMs), nowMs), in_time: inTime(aloneMs) },
  };
}

function timeLeft(ms: number | null, nowMs: number) {
  const isKnown = ms !== null && ms < LONGEST_REPORTED_MS;
  return {
    seconds: isKnown ? seconds(ms) : null,
    until: isKnown ? formatSeconds(msToNs(nowMs + ms)) : null,
  };
}

/** A longer time counts as never. */
const LONGEST_REPORTED_MS = 100 * 365 * DAY_MS;

function seconds(ms: number): number {
  return roundTo(ms / 1000, ms < MINUTE_MS ? 1 : 0);
}

function roundTo(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
