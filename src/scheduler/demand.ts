/**
 * Compares the requests that the schedules and the readings need with the requests that the quota allows. The result
 * is an estimate: the demand, the shortage, and the setting or plan that would remove it. Pure.
 *
 * If the quota cannot carry the schedules, all poll intervals grow evenly until it can. If it cannot carry the
 * readings either (a page has at most 200), the devices take turns: each gets its newest page, and the rest become
 * gaps. The planner does not use this estimate for its decisions; the bench compares the two.
 */

import { ASSUMED_INTERVAL_MS, percentile } from '../core/fleet.ts';
import { budgetOf } from '../core/quota.ts';
import type { Plan } from '../core/records.ts';
import { counted, duration, grouped, percent } from '../core/text.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../core/time.ts';
import type { Rates } from './device-queue.ts';
import type { PlannerSettings } from './planner-types.ts';
import {
  FULL_PAGE,
  findLeast,
  NARROW_RESERVES,
  type Reserves,
  staleLimitMs,
  UNFULL_PART,
  USUAL_RESERVES,
} from './reserves.ts';
import { listEveryMs, listPages, PRIOR_CHANGES_A_DAY } from './streams.ts';

/** The fleet, its schedules and its quota. */
export interface DemandInput
  extends Pick<
    PlannerSettings,
    'telemetryMs' | 'devicesMs' | 'alertsMs' | 'accountMs' | 'polls' | 'pageSize' | 'share'
  > {
  /** The requests of one poll of the alerts. */
  readonly alertRequests: number;
  /** The interval between readings, in ms, of each device that reports; measured or assumed. */
  readonly intervalsMs: readonly number[];
  /** The number of devices that do not report. */
  readonly quietDevices: number;
  /** The plan's figures; `null` if there is no such limit or it is not known. */
  readonly perMinute: number | null;
  readonly perDay: number | null;
  /** The daily use by other clients. */
  readonly othersPerDay: number;
}

/** Requests per day, by purpose. */
export interface DemandByLane {
  readonly live: number;
  readonly alerts: number;
  readonly inventory: number;
  readonly account: number;
  readonly idlePolls: number;
}

/**
 * The lag that the oldest reading of a device reaches before it is fetched: the median and the 95th percentile of the
 * devices, in ms.
 */
interface LagQuantiles {
  readonly medianMs: number;
  readonly p95Ms: number;
}

/** The requests per day that the schedules need, and those that the budget allows. */
export interface Demand {
  /** The requests that the schedules need. */
  readonly needed: DemandByLane;
  /** The same, slowed down to fit the budget. */
  readonly planned: DemandByLane;
  /** The requests per day that our share of the quota allows, and which limit of the plan determines it. */
  readonly budget: number;
  readonly boundBy: 'minute' | 'day' | null;
  readonly fits: boolean;
  /** The factor by which all poll intervals grow; 1 if the schedules fit. */
  readonly slowdown: number;
  readonly readingsFit: boolean;
  /** The readings that the devices make per day, and how many of them the budget can fetch. */
  readonly readingsMade: number;
  readonly readingsCovered: number;
  readonly lag: LagQuantiles;
  /** Requests per day for history and backfill: the rest of the budget, at least their reserves. */
  readonly leftForHistory: number;
}

/** The largest lag that the search for an affordable lag tries. */
const LONGEST_LAG_MS = 30 * DAY_MS;

/** Compares the demand with the budget. */
export function computeDemand(input: DemandInput): Demand {
  const { budget, boundBy } = usableBudget(input);
  const readingsMade = readingsADay(input);
  const needed = demandAt(input, 0, budget);
  const fits = totalRequests(needed) <= budget;
  const reserve = historyReserve(USUAL_RESERVES);
  const common = { needed, budget, boundBy, fits, readingsMade };
  if (pagesMade(input) > budget) return { ...common, ...inTurn(input, budget, readingsMade) };
  const lagMs = fits ? 0 : leastLagMs(input, budget);
  const planned = fits ? needed : demandAt(input, lagMs, budget);
  return {
    ...common,
    planned,
    slowdown: Math.max(1, lagMs / input.telemetryMs),
    readingsFit: true,
    readingsCovered: readingsMade,
    lag: lagQuantilesAt(input, lagMs),
    leftForHistory: Math.max(budget - totalRequests(planned), budget * reserve),
  };
}

function readingsADay({ intervalsMs }: DemandInput): number {
  return intervalsMs.reduce((sum, intervalMs) => sum + DAY_MS / intervalMs, 0);
}

/** The number of full pages that a day's readings fill. */
function pagesMade(input: DemandInput): number {
  return readingsADay(input) / (input.pageSize * FULL_PAGE);
}

/** Requests per day for everything except history and backfill. */
export function totalRequests(demand: DemandByLane): number {
  return demand.live + demand.alerts + demand.inventory + demand.account + demand.idlePolls;
}

/** The usable requests per day: the smaller of both limits, and of the requests that others leave. */
export function usableBudget({
  perMinute,
  perDay,
  share,
  othersPerDay,
}: DemandInput): Pick<Demand, 'budget' | 'boundBy'> {
  const byMinute = perMinute === null ? Number.POSITIVE_INFINITY : budgetOf(perMinute, share) * (DAY_MS / MINUTE_MS);
  const byDay =
    perDay === null ? Number.POSITIVE_INFINITY : Math.min(budgetOf(perDay, share), Math.max(1, perDay - othersPerDay));
  const budget = Math.min(byMinute, byDay);
  if (!Number.isFinite(budget)) return { budget, boundBy: null };
  return { budget, boundBy: byMinute < byDay ? 'minute' : 'day' };
}

/**
 * The requests per day if readings may reach a given lag, in ms; 0: according to the schedules.
 *
 * A device is polled when its oldest unread reading reaches that lag, which is at the first reading after this many
 * intervals. It is never polled more often than by its schedule, and always when its page is full.
 */
function demandAt(input: DemandInput, lagMs: number, budget: number): DemandByLane {
  const { intervalsMs, quietDevices, telemetryMs, pageSize } = input;
  const slowdown = Math.max(1, lagMs / telemetryMs);
  const devices = intervalsMs.length + quietDevices;
  let live = 0;
  for (const intervalMs of intervalsMs) {
    const everyMs = Math.max(telemetryMs, intervalMs * (Math.floor(lagMs / intervalMs) + 1));
    live += DAY_MS / Math.min(everyMs, pageSize * FULL_PAGE * intervalMs);
  }
  const changesPerMs = (devices * PRIOR_CHANGES_A_DAY) / DAY_MS;
  const bestMs = listEveryMs({ devices, pageSize, lagMs, changesPerMs, leastMs: input.devicesMs });
  const listings = (everyMs: number): number => (DAY_MS / everyMs) * listPages(devices, pageSize);
  /** The slower rate, but at least the reserve of the lane. */
  const least = (needed: number, slowed: number, reserve: number): number =>
    Math.max(slowed, Math.min(needed, reserve * budget));
  const { alertsMs, alertRequests, accountMs, polls, devicesMs } = input;
  const alerts = (alertRequests * DAY_MS) / alertsMs;
  const idlePolls = (quietDevices * DAY_MS) / polls.idlePollMs;
  return {
    live,
    alerts: least(alerts, alerts / slowdown, USUAL_RESERVES.alerts),
    inventory: lagMs === 0 ? listings(devicesMs) : least(listings(devicesMs), listings(bestMs), USUAL_RESERVES.devices),
    account: least(DAY_MS / accountMs, DAY_MS / (accountMs * slowdown), USUAL_RESERVES.account),
    idlePolls: least(idlePolls, idlePolls / slowdown, USUAL_RESERVES['idle-poll']),
  };
}

/** The smallest lag at which the demand fits the budget. */
function leastLagMs(input: DemandInput, budget: number): number {
  return findLeast({ from: 1, to: LONGEST_LAG_MS }, (lagMs) => totalRequests(demandAt(input, lagMs, budget)) <= budget);
}

function lagQuantilesAt({ intervalsMs, telemetryMs, pageSize }: DemandInput, lagMs: number): LagQuantiles {
  // A page that fills earlier is requested earlier.
  const lags = intervalsMs.map((intervalMs) =>
    Math.min(Math.max(telemetryMs, lagMs), pageSize * FULL_PAGE * intervalMs),
  );
  return quantilesOf(lags);
}

/** The demand if pages are taken in turn: a device waits until its page is full, and then until its turn comes. */
function inTurn(
  input: DemandInput,
  budget: number,
  made: number,
): Omit<Demand, 'needed' | 'budget' | 'boundBy' | 'fits' | 'readingsMade'> {
  const { intervalsMs, pageSize, telemetryMs } = input;
  const { account, alerts, devices, 'idle-poll': idlePolls } = NARROW_RESERVES;
  const planned: DemandByLane = {
    live: budget * (1 - account - alerts - devices - idlePolls),
    account: budget * account,
    alerts: budget * alerts,
    inventory: budget * devices,
    idlePolls: budget * idlePolls,
  };
  const staleMs = staleLimitMs(intervalsMs, { pageSize, requestsPerMs: budget / DAY_MS });
  const waitMs = intervalsMs.map((intervalMs) => Math.min(pageSize * intervalMs, staleMs));
  const pagesIn = (turnMs: number): number => waitMs.reduce((sum, ms) => sum + DAY_MS / Math.max(ms, turnMs), 0);
  const turnMs = findLeast({ from: MINUTE_MS, to: LONGEST_LAG_MS }, (ms) => pagesIn(ms) <= planned.live);
  const lag = quantilesOf(waitMs.map((ms) => Math.max(ms, turnMs)));
  return {
    planned,
    slowdown: Math.max(1, lag.medianMs / telemetryMs),
    readingsFit: false,
    readingsCovered: Math.min(made, planned.live * pageSize * (1 - UNFULL_PART)),
    lag,
    leftForHistory: budget * historyReserve(NARROW_RESERVES),
  };
}

function historyReserve(reserves: Reserves): number {
  return reserves['first-history'] + reserves.backfill;
}

function quantilesOf(values: readonly number[]): LagQuantiles {
  const sorted = Float64Array.from(values).sort();
  return { medianMs: percentile(sorted, 0.5) ?? 0, p95Ms: percentile(sorted, 0.95) ?? 0 };
}

/** A key of the configuration, and an interval that its value can express (`roundUp`). */
interface LongerInterval {
  readonly key: IntervalKey;
  readonly ms: number;
}

/** How far the quota is too small. */
export interface Shortfall {
  /** Whether the schedules are slowed down, or not all readings can be fetched either. */
  readonly unmet: 'schedules' | 'readings';
  /** Requests per day: needed by the schedules, and allowed by the budget. */
  readonly needed: number;
  readonly available: number;
  readonly boundBy: 'minute' | 'day' | null;
  readonly share: number;
  readonly lagTargetMs: number;
  readonly lag: LagQuantiles;
  /** Devices whose report rate was not measured yet, and their assumed interval. */
  readonly assumed: { readonly devices: number; readonly intervalMs: number } | null;
  /** The readings that the devices make per day, and how many of them the budget can fetch. */
  readonly readingsMade: number;
  readonly readingsCovered: number;
  /** The changes that would each make the demand fit; `null` if that change alone cannot. */
  readonly remedies: {
    /** Longer intervals: one row per change. A row has several keys only if no single key is enough. */
    readonly intervals: readonly (readonly LongerInterval[])[];
    /** The value of `api.share` that would be enough. */
    readonly share: number | null;
    /** A plan of this many requests. */
    readonly perMinute: number;
    readonly perDay: number;
  };
}

/** Returns the shortfall; `null` if the demand fits. */
export function findShortfall(input: DemandInput, assumed: Shortfall['assumed'] = null): Shortfall | null {
  const demand = computeDemand(input);
  if (demand.fits) return null;
  const unmet = demand.readingsFit ? 'schedules' : 'readings';
  const needed =
    unmet === 'schedules' ? totalRequests(demand.needed) : demand.readingsMade / (input.pageSize * FULL_PAGE);
  return {
    unmet: unmet,
    needed: totalRequests(demand.needed),
    available: demand.budget,
    boundBy: demand.boundBy,
    share: input.share,
    lagTargetMs: input.telemetryMs,
    lag: demand.lag,
    assumed,
    readingsMade: demand.readingsMade,
    readingsCovered: demand.readingsCovered,
    remedies: {
      intervals: unmet === 'schedules' ? intervalsThatFit(input) : [],
      share: shareThatFits(input, unmet),
      // The share of a limit is a whole number of requests.
      perMinute: Math.ceil(Math.ceil(needed / (DAY_MS / MINUTE_MS)) / input.share),
      perDay: Math.max(Math.ceil(Math.ceil(needed) / input.share), Math.ceil(needed + input.othersPerDay)),
    },
  };
}

/** Describes the shortage in one line. */
export function shortfallText(shortfall: Shortfall): string {
  const { needed, available, lag, lagTargetMs, readingsMade, readingsCovered, share } = shortfall;
  const head = `the schedules need ${grouped(Math.round(needed))} requests a day${assumedText(shortfall.assumed)}, but the budget is ${grouped(Math.round(available))} (${percent(share)} of the quota, minus the requests of other clients)`;
  const result =
    shortfall.unmet === 'schedules'
      ? `the lag of the median device is about ${duration(lag.medianMs / 1000)} (p95: ${duration(lag.p95Ms / 1000)}), and its target is ${duration(lagTargetMs / 1000)}`
      : `the quota is too small for all readings: of ${grouped(Math.round(readingsMade))} a day, ${grouped(Math.round(readingsCovered))} can be read; Tidemark reads the newest page of each device about every ${duration(lag.medianMs / 1000)}, and the rest become gaps (over_quota)`;
  return `${head}: ${result}. ${remedyText(shortfall)}`;
}

/** The assumption of an estimate, as a part of its sentence; empty if every rate was measured. */
export function assumedText(assumed: Shortfall['assumed']): string {
  if (assumed === null) return '';
  const { devices, intervalMs } = assumed;
  return ` if ${counted(devices, 'device')} ${devices === 1 ? 'has' : 'have'} a reading every ${duration(intervalMs / 1000)}`;
}

function remedyText({ unmet, share, remedies }: Shortfall): string {
  const ways: string[] = [];
  for (const change of remedies.intervals) ways.push(change.map(settingText).join(' together with '));
  if (remedies.share !== null && remedies.share > share) ways.push(`an api.share of ${remedies.share.toFixed(2)}`);
  ways.push(
    `a plan of ${grouped(Math.round(remedies.perDay))} requests a day and ${grouped(Math.round(remedies.perMinute))} a minute`,
  );
  if (unmet === 'readings') ways.push('fewer devices (sync.exclude)');
  return `${ways.length === 1 ? 'This is enough' : 'Any of these is enough'}: ${ways.join('; ')}.`;
}

/** A setting as it is written in the configuration, with its interval in words. */
function settingText({ key, ms }: LongerInterval): string {
  return `${key}: ${key === 'sync.idle_poll' ? `${ms / MINUTE_MS}m` : `'${cronOf(ms)}'`} (every ${duration(ms / 1000)})`;
}

/** The intervals that a cron expression can repeat evenly: they divide an hour or a day. In ms. */
const CRON_STEPS = [
  ...[1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 4, 6, 8, 12, 24].map((hours) => hours * HOUR_MS),
];

/** The cron expression of one of the `CRON_STEPS`. */
function cronOf(ms: number): string {
  if (ms >= DAY_MS) return '0 0 * * *';
  const [minutes, hours] = [ms / MINUTE_MS, ms / HOUR_MS];
  if (ms < HOUR_MS) return `${minutes === 1 ? '*' : `*/${minutes}`} * * * *`;
  return `0 ${hours === 1 ? '*' : `*/${hours}`} * * *`;
}

/** The next interval that the value of a key can express: whole minutes, or for a schedule an even cron expression. */
function roundUp(key: IntervalKey, ms: number): number {
  if (key === 'sync.idle_poll') return Math.ceil(ms / MINUTE_MS) * MINUTE_MS;
  return CRON_STEPS.find((step) => step >= ms) ?? DAY_MS;
}

/** The intervals that can be longer, with the keys of the configuration. */
const INTERVALS = {
  'sync.telemetry': { ms: ({ telemetryMs }) => telemetryMs, set: (telemetryMs) => ({ telemetryMs }) },
  'sync.alerts': { ms: ({ alertsMs }) => alertsMs, set: (alertsMs) => ({ alertsMs }) },
  'sync.devices': { ms: ({ devicesMs }) => devicesMs, set: (devicesMs) => ({ devicesMs }) },
  'sync.idle_poll': {
    ms: ({ polls }) => polls.idlePollMs,
    set: (idlePollMs, { polls }) => ({ polls: { ...polls, idlePollMs } }),
  },
} satisfies Record<
  string,
  { ms: (input: DemandInput) => number; set: (ms: number, input: DemandInput) => Partial<DemandInput> }
>;

type IntervalKey = keyof typeof INTERVALS;

/**
 * `sync.telemetry` if a longer interval there is enough, otherwise any other key that alone is enough, otherwise the
 * first three keys by one factor.
 */
function intervalsThatFit(input: DemandInput): LongerInterval[][] {
  const telemetry = intervalsThatFitTogether(input, ['sync.telemetry']);
  if (telemetry !== null) return [telemetry];
  const others = (['sync.alerts', 'sync.devices', 'sync.idle_poll'] as const).flatMap((key) => {
    const alone = intervalsThatFitTogether(input, [key]);
    return alone === null ? [] : [alone];
  });
  if (others.length > 0) return others;
  const together = intervalsThatFitTogether(input, ['sync.telemetry', 'sync.alerts', 'sync.devices']);
  return together === null ? [] : [together];
}

/** The shortest intervals of these keys at which nothing is slowed down. All of them grow by one factor. */
function intervalsThatFitTogether(input: DemandInput, keys: readonly IntervalKey[]): LongerInterval[] | null {
  const wholeAt = (factor: number): LongerInterval[] =>
    keys.map((key) => ({ key, ms: roundUp(key, INTERVALS[key].ms(input) * factor) }));
  const fits = (factor: number): boolean => fitsBudget(withIntervals(input, wholeAt(factor)), 'schedules');
  const longest = Math.max(...keys.map((key) => INTERVALS[key].ms(input)));
  // No interval is longer than a day.
  if (longest >= DAY_MS) return null;
  const factor = findLeast({ from: 1, to: DAY_MS / longest }, fits);
  return fits(factor) ? wholeAt(factor) : null;
}

/** The fleet with other intervals. */
export function withIntervals(input: DemandInput, intervals: readonly LongerInterval[]): DemandInput {
  let changed = input;
  for (const { key, ms } of intervals) changed = { ...changed, ...INTERVALS[key].set(ms, changed) };
  return changed;
}

function shareThatFits(input: DemandInput, unmet: Shortfall['unmet']): number | null {
  const isEnough = (share: number): boolean => fitsBudget({ ...input, share }, unmet);
  const share = findLeast({ from: input.share, to: 1 }, isEnough);
  const upwards = Math.min(1, Math.ceil(share * 100) / 100);
  return isEnough(upwards) ? upwards : null;
}

/** Whether the share is enough for the schedules as they are, or for all readings in full pages. */
function fitsBudget(input: DemandInput, unmet: Shortfall['unmet']): boolean {
  const { budget } = usableBudget(input);
  return unmet === 'schedules' ? totalRequests(demandAt(input, 0, budget)) <= budget : pagesMade(input) <= budget;
}

/** The schedules in force, the report rates of the devices, and the daily use by other clients. */
export interface SchedulerDemand {
  readonly settings: PlannerSettings;
  /** Returns how fast the devices report. Checks every device. */
  readonly rates: () => Rates;
  /** The mean interval that was measured last, in ms, for devices without a known rate; `null`: none was measured. */
  readonly lastIntervalMs: number | null;
  /** The requests of one poll of the alerts. */
  readonly alertRequests: number;
  /** The daily use by other clients, in requests. */
  readonly othersPerDay: number;
}

/** Returns the shortfall of a plan; `null` if the demand fits, or nothing is known about the plan. */
export function shortfallNow(
  { settings, rates, lastIntervalMs, alertRequests, othersPerDay }: SchedulerDemand,
  plan: Plan,
): Shortfall | null {
  const { knownMs, unknown, quiet } = rates();
  if (knownMs.length + unknown === 0) return null;
  const intervalMs = percentile(Float64Array.from(knownMs).sort(), 0.5) ?? lastIntervalMs ?? ASSUMED_INTERVAL_MS;
  const { telemetryMs, devicesMs, alertsMs, accountMs, polls, pageSize, share } = settings;
  const input = {
    intervalsMs: [...knownMs, ...Array.from({ length: unknown }, () => intervalMs)],
    quietDevices: quiet,
    ...{ telemetryMs, devicesMs, alertsMs, accountMs, polls, pageSize, share },
    ...{ perMinute: plan.requestsPerMinute, perDay: plan.requestsPerDay, alertRequests, othersPerDay },
  };
  return findShortfall(input, unknown === 0 ? null : { devices: unknown, intervalMs });
}

/**
 * The common interval at which the same number of devices would need the same number of polls.
 *
 * @returns in ms; `null` while the rates of fewer than half of the devices are known.
 */
export function meanIntervalMs({ knownMs, unknown }: Rates, telemetryMs: number): number | null {
  if (knownMs.length === 0 || knownMs.length < unknown) return null;
  const pollsPerMs = knownMs.reduce((sum, intervalMs) => sum + 1 / Math.max(telemetryMs, intervalMs), 0);
  return knownMs.length / pollsPerMs;
}
