/**
 * The answer of `--plan`: what the schedules and a stretch of history cost, held against the allowance (issue 4).
 *
 * Pure: facts, settings and suppositions in, one object out. `--plan --json` serves its member names: they stay.
 */

import { DAY_MS, formatSeconds, MINUTE_MS, MS_NS, msToNs } from '../../core/time.ts';
import type { WhatIf } from '../../core/what-if.ts';
import { windowSpanNs } from '../../ingest/page-request.ts';
import { type Demand, type DemandByLane, type DemandInput, demandOf } from '../../scheduler/demand.ts';
import { aloneFinishMs, backfillNeed, finishMs, scaleNeed } from '../../scheduler/estimate.ts';
import { shortfallOf, shortfallText } from '../../scheduler/shortfall.ts';
import {
  type PlanFacts,
  type PlanPace,
  type PlanQuestion,
  type PlanSpan,
  type Premises,
  premisesOf,
} from './premises.ts';

/** What `--plan --json` prints. Points in time are RFC 3339 UTC, lengths seconds; `null`: not known, or never. */
export type CostPlan = ReturnType<typeof costPlan>;

/** Works the answer out. */
export function costPlan(question: PlanQuestion) {
  const { facts, whatIf, span, pace = NO_PACE } = question;
  const premises = premisesOf(question);
  const { input, assumptions } = premises;
  const demand = demandOf(input);
  const { readingsMade, readingsCarried, readingsFit, freshness } = demand;
  return {
    basis: {
      source: facts.source,
      as_of: formatSeconds(msToNs(facts.asOfMs)),
      requests_asked: facts.requestsAsked,
      assumptions,
    },
    what_if: whatIfWords(whatIf),
    workspace: {
      workspace_id: facts.account?.workspaceId ?? null,
      name: facts.account?.name ?? null,
      plan_name: facts.account?.plan.name ?? null,
    },
    devices: devicesOf(premises),
    readings_per_day: { made: Math.round(readingsMade), carried: Math.round(readingsCarried), fit: readingsFit },
    schedules: schedulesOf(premises),
    requests_per_day: {
      asked: lanesOf(demand.asked),
      planned: lanesOf(plannedOf(demand)),
      left_for_history: Math.round(demand.leftForHistory),
    },
    allowance: allowanceOf(demand, facts, premises),
    fits: demand.fits,
    stretch: round(demand.stretch, 2),
    warning: warningOf(input),
    freshness: { median_seconds: seconds(freshness.medianMs), p95_seconds: seconds(freshness.p95Ms) },
    backfill: backfillOf({ facts, span, premises, demand, pace }),
  };
}

const NO_PACE: PlanPace = { maxShare: null, finishByMs: null };

function warningOf(input: DemandInput): string | null {
  const shortfall = shortfallOf(input);
  return shortfall === null ? null : sentence(shortfallText(shortfall));
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function whatIfWords({ share, schedules = {}, devices, perMinute, perDay }: WhatIf): Record<string, string | number> {
  return {
    ...(share === undefined ? {} : { 'api.share': share }),
    ...Object.fromEntries(Object.entries(schedules).map(([stream, { text }]) => [`sync.${stream}`, text])),
    ...(devices === undefined ? {} : { devices }),
    ...(perMinute === undefined ? {} : { requests_per_minute: perMinute }),
    ...(perDay === undefined ? {} : { requests_per_day: perDay }),
  };
}

function devicesOf({ input, fleet }: Premises) {
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

function schedulesOf({ schedules: { telemetry, devices, alerts, account }, input }: Premises) {
  return {
    telemetry: { cron: telemetry.text, mean_seconds: seconds(input.freshnessMs) },
    devices: { cron: devices.text, mean_seconds: seconds(input.devicesMs) },
    alerts: { cron: alerts.text, mean_seconds: seconds(input.alertsMs) },
    account: { cron: account.text, mean_seconds: seconds(input.accountMs) },
    sweep: { mean_seconds: seconds(input.sweepMs) },
  };
}

/** What the lanes get: where pages are taken in turn, no more than the budget leaves beside the part of history. */
function plannedOf({ planned, budget, leftForHistory }: Demand): DemandByLane {
  const others = planned.alerts + planned.inventory + planned.account + planned.sweep;
  return { ...planned, live: Math.min(planned.live, Math.max(0, budget - leftForHistory - others)) };
}

function lanesOf({ live, alerts, inventory, account, sweep }: DemandByLane) {
  return {
    live: Math.round(live),
    alerts: Math.round(alerts),
    device_list: Math.round(inventory),
    account: Math.round(account),
    sweeps: Math.round(sweep),
    total: Math.round(live + alerts + inventory + account + sweep),
  };
}

function allowanceOf(demand: Demand, facts: PlanFacts, { input: { share }, limits }: Premises) {
  const planned = lanesOf(plannedOf(demand)).total;
  const aMinute = (planned * MINUTE_MS) / DAY_MS;
  const budgetOf = (limit: number): number => Math.max(1, Math.floor(limit * share));
  const day = limits.perDay === null ? null : budgetOf(limits.perDay);
  return {
    share,
    carried_per_day: Math.round(demand.budget),
    minute: {
      limit: limits.perMinute,
      budget: budgetOf(limits.perMinute),
      planned: round(aMinute, 2),
      used_share: round(aMinute / budgetOf(limits.perMinute), 4),
    },
    day: {
      limit: limits.perDay,
      budget: day,
      planned,
      used_share: day === null ? null : round(planned / day, 4),
      spent_last_24h: facts.spentDay,
      used_by_others: facts.othersPerDay,
    },
  };
}

function backfillOf({
  facts,
  span,
  premises: { fleet, input, scale, limits },
  demand,
  pace,
}: {
  readonly pace: PlanPace;
  readonly facts: PlanFacts;
  readonly span: PlanSpan;
  readonly premises: Premises;
  readonly demand: Demand;
}) {
  const { deviceIds, from, to } = span;
  const now = msToNs(facts.nowMs);
  const maxDays = facts.account?.plan.historyMaxDays ?? null;
  const devices = fleet.devices.filter(({ deviceId }) => deviceIds === null || deviceIds.has(deviceId));
  const stretch = { span, now, pageSize: input.pageSize, windowNs: windowSpanNs(maxDays) };
  const need = scaleNeed(backfillNeed({ ...stretch, devices }), scale, () =>
    backfillNeed({ ...stretch, devices: devices.map((device) => ({ ...device, held: [] })) }),
  );
  const { requests } = need;
  const { nowMs } = facts;
  const aloneMs = aloneFinishMs(requests, budgetsOf(limits, input.share, facts.spentDay));
  const isOld = maxDays !== null && Number((now - from) / MS_NS) > maxDays * DAY_MS;
  return {
    from: formatSeconds(from),
    to: formatSeconds(to),
    devices: Math.round(devices.length * scale),
    devices_open: need.devices,
    open_share: round(need.openShare, 4),
    readings: need.readings,
    requests,
    beside_daemon: timeOf({ requests, perDay: demand.leftForHistory, nowMs }),
    alone: { ...toldTime(aloneMs, nowMs), requests_per_day: Math.round(demand.budget) },
    pace: pacedOf(pace, { requests, demand, nowMs, aloneMs, budgets: budgetsOf(limits, input.share, 0) }),
    note: noteOf(span.isAll === true, isOld ? maxDays : null),
  };
}

function noteOf(isAll: boolean, hiddenDays: number | null): string | null {
  const all =
    'How far back the history goes shows when it is asked for: these are the figures of the last 365 days. Of each device the search ends after 400 days in a row without a reading.';
  const old = `The plan speaks of ${hiddenDays} days of history: whether older readings are served shows when they are asked for.`;
  if (isAll) return hiddenDays === null ? all : `${all} ${old}`;
  return hiddenDays === null ? null : old;
}

/** The share of the limits, and what of the day's is spent. */
function budgetsOf({ perMinute, perDay }: Premises['limits'], share: number, spent: number) {
  const part = (limit: number): number => Math.max(1, Math.floor(limit * share));
  return { perMinute: part(perMinute), perDay: perDay === null ? null : part(perDay), spent };
}

interface Paced {
  readonly requests: number;
  readonly demand: Demand;
  readonly nowMs: number;
  /** With the whole share. */
  readonly aloneMs: number | null;
  readonly budgets: ReturnType<typeof budgetsOf>;
}

/** What a pace comes to; `null` where none was asked for. */
function pacedOf({ maxShare, finishByMs }: PlanPace, { requests, demand, nowMs, aloneMs, budgets }: Paced) {
  if (maxShare === null && finishByMs === null) return null;
  const besideMs = finishMs(requests, demand.leftForHistory);
  const slowest = (ms: number | null, paceMs: number | null) =>
    ms === null || paceMs === null ? null : Math.max(ms, paceMs);
  const aheadMs = finishByMs === null ? null : Math.max(1, finishByMs - nowMs);
  const perDay = aheadMs === null ? demand.budget * (maxShare ?? 1) : (requests * DAY_MS) / aheadMs;
  const ofShare = maxShare ?? 1;
  const part = {
    perMinute: budgets.perMinute * ofShare,
    perDay: budgets.perDay === null ? null : Math.max(1, Math.floor(budgets.perDay * ofShare)),
    spent: 0,
  };
  const paceMs = aheadMs ?? aloneFinishMs(requests, part);
  const inTime = (ms: number | null): boolean | null => (aheadMs === null ? null : ms !== null && ms <= aheadMs);
  return {
    max_share: maxShare,
    finish_by: finishByMs === null ? null : formatSeconds(msToNs(finishByMs)),
    requests_per_day: Math.round(perDay),
    share_of_budget: demand.budget > 0 ? round(perDay / demand.budget, 4) : null,
    beside_daemon: { ...toldTime(slowest(besideMs, paceMs), nowMs), in_time: inTime(besideMs) },
    alone: { ...toldTime(slowest(aloneMs, paceMs), nowMs), in_time: inTime(aloneMs) },
  };
}

function timeOf({ requests, perDay, nowMs }: { requests: number; perDay: number; nowMs: number }) {
  return { requests_per_day: Math.round(perDay), ...toldTime(finishMs(requests, perDay), nowMs) };
}

function toldTime(ms: number | null, nowMs: number) {
  const isTold = ms !== null && ms < LONGEST_TOLD_MS;
  return {
    seconds: isTold ? seconds(ms) : null,
    until: isTold ? formatSeconds(msToNs(nowMs + ms)) : null,
  };
}

/** What takes longer is as good as never. */
const LONGEST_TOLD_MS = 100 * 365 * DAY_MS;

function seconds(ms: number): number {
  return round(ms / 1000, ms < MINUTE_MS ? 1 : 0);
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
