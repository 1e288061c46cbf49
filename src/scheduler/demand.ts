/**
 * What the schedules and the readings ask for, held against what the allowance carries (issue 4, "When it cannot fit").
 *
 * Where the schedules do not fit, everything is stretched evenly until it does. Where not even the readings fit (a page
 * has at most 200 of them), every device keeps its newest page in turn and the rest are gaps. Estimates: the planner goes
 * by what is worth most at each moment, not by these figures; the bench holds both side by side.
 */

import { DAY_MS, MINUTE_MS } from '../core/time.ts';
import { FULL_PAGE, leastOf, staleLimitMs, UNFULL_PART } from './page-fill.ts';
import { listEveryMs, listPages, PRIOR_SURPRISES_A_DAY } from './planner-listing.ts';
import { type Floors, NARROW_FLOORS, USUAL_FLOORS } from './reserves.ts';

/** A workspace, its schedules and its allowance. */
export interface DemandInput {
  /** From reading to reading, in ms, of each device that reports; measured or assumed. */
  readonly intervalsMs: readonly number[];
  /** Devices that do not report. */
  readonly quietDevices: number;
  /** The distance of two turns of `sync.telemetry`, `.devices`, `.alerts`, `.account`, and `sync.sweep`, in ms. */
  readonly freshnessMs: number;
  readonly devicesMs: number;
  readonly alertsMs: number;
  readonly accountMs: number;
  readonly sweepMs: number;
  /** Records to a page. */
  readonly pageSize: number;
  /** The plan's figures; `null` where there is no such limit or it is not known. */
  readonly perMinute: number | null;
  readonly perDay: number | null;
  readonly share: number;
  /** What others were seen to use in a day. */
  readonly othersPerDay: number;
}

/** Requests a day, by what they are for. */
export interface DemandByLane {
  readonly live: number;
  readonly alerts: number;
  readonly inventory: number;
  readonly account: number;
  readonly sweep: number;
}

/** How old the oldest reading of a device becomes before it is fetched: of the middle device, and of 19 in 20. In ms. */
export interface Freshness {
  readonly medianMs: number;
  readonly p95Ms: number;
}

export interface Demand {
  /** What the schedules ask for. */
  readonly asked: DemandByLane;
  /** The same, stretched so that it fits. */
  readonly planned: DemandByLane;
  /** What the share of the allowance carries, in requests a day, and which of the plan's figures says so. */
  readonly budget: number;
  readonly boundBy: 'minute' | 'day' | null;
  readonly fits: boolean;
  /** By how much all schedules are stretched; 1 where they fit. */
  readonly stretch: number;
  readonly readingsFit: boolean;
  /** Readings a day. */
  readonly readingsMade: number;
  readonly readingsCarried: number;
  readonly freshness: Freshness;
  /** Requests a day for history and backfill: what is left, at least their floors. */
  readonly leftForHistory: number;
}

const LONGEST_MS = 30 * DAY_MS;

/** Holds the demand against the allowance. */
export function demandOf(input: DemandInput): Demand {
  const { budget, boundBy } = budgetOf(input);
  const readingsMade = input.intervalsMs.reduce((sum, intervalMs) => sum + DAY_MS / intervalMs, 0);
  const asked = demandAt(input, 0, budget);
  const fits = totalOf(asked) <= budget;
  const floors = historyFloors(USUAL_FLOORS);
  const common = { asked, budget, boundBy, fits, readingsMade };
  if (readingsMade / (input.pageSize * FULL_PAGE) > budget)
    return { ...common, ...inTurn(input, budget, readingsMade) };
  const ageMs = fits ? 0 : leastAgeMs(input, budget);
  const planned = fits ? asked : demandAt(input, ageMs, budget);
  return {
    ...common,
    planned,
    stretch: Math.max(1, ageMs / input.freshnessMs),
    readingsFit: true,
    readingsCarried: readingsMade,
    freshness: freshnessAt(input, ageMs),
    leftForHistory: Math.max(budget - totalOf(planned), budget * floors),
  };
}

/** The sum over all lanes. */
export function totalOf(demand: DemandByLane): number {
  return demand.live + demand.alerts + demand.inventory + demand.account + demand.sweep;
}

/** What the share carries: the lesser of both figures, and of what others leave. */
export function budgetOf({ perMinute, perDay, share, othersPerDay }: DemandInput): Pick<Demand, 'budget' | 'boundBy'> {
  const shareOf = (limit: number): number => Math.max(1, Math.floor(limit * share));
  const byMinute = perMinute === null ? Number.POSITIVE_INFINITY : shareOf(perMinute) * (DAY_MS / MINUTE_MS);
  const byDay =
    perDay === null ? Number.POSITIVE_INFINITY : Math.min(shareOf(perDay), Math.max(1, perDay - othersPerDay));
  const budget = Math.min(byMinute, byDay);
  if (!Number.isFinite(budget)) return { budget, boundBy: null };
  return { budget, boundBy: byMinute < byDay ? 'minute' : 'day' };
}

/**
 * Requests a day where readings are left to grow so old, in ms; 0: as the schedules say.
 *
 * A device is asked when its oldest reading has that age, so at the first reading after so many intervals; never more
 * often than its schedule says, and when its page is full in any case.
 */
function demandAt(input: DemandInput, ageMs: number, budget: number): DemandByLane {
  const { intervalsMs, quietDevices, freshnessMs, pageSize } = input;
  const stretch = Math.max(1, ageMs / freshnessMs);
  const devices = intervalsMs.length + quietDevices;
  let live = 0;
  for (const intervalMs of intervalsMs) {
    const everyMs = Math.max(freshnessMs, intervalMs * (Math.floor(ageMs / intervalMs) + 1));
    live += DAY_MS / Math.min(everyMs, pageSize * FULL_PAGE * intervalMs);
  }
  const surprisesPerMs = (devices * PRIOR_SURPRISES_A_DAY) / DAY_MS;
  const bestMs = listEveryMs({ devices, pageSize, ageMs, surprisesPerMs, leastMs: input.devicesMs });
  const listings = (everyMs: number): number => (DAY_MS / everyMs) * listPages(devices, pageSize);
  /** Stretched, but for its floor. */
  const least = (asked: number, stretched: number, floor: number): number =>
    Math.max(stretched, Math.min(asked, floor * budget));
  const { alertsMs, accountMs, sweepMs, devicesMs } = input;
  const sweeps = (quietDevices * DAY_MS) / sweepMs;
  return {
    live,
    alerts: least(DAY_MS / alertsMs, DAY_MS / (alertsMs * stretch), USUAL_FLOORS.alerts),
    inventory: ageMs === 0 ? listings(devicesMs) : least(listings(devicesMs), listings(bestMs), USUAL_FLOORS.devices),
    account: least(DAY_MS / accountMs, DAY_MS / (accountMs * stretch), USUAL_FLOORS.account),
    sweep: least(sweeps, sweeps / stretch, USUAL_FLOORS.sweep),
  };
}

/** The least age at which all fits. */
function leastAgeMs(input: DemandInput, budget: number): number {
  return leastOf({ from: 1, to: LONGEST_MS }, (ageMs) => totalOf(demandAt(input, ageMs, budget)) <= budget);
}

function freshnessAt({ intervalsMs, freshnessMs, pageSize }: DemandInput, ageMs: number): Freshness {
  // A page that fills earlier is asked for earlier.
  const ages = intervalsMs.map((intervalMs) =>
    Math.min(Math.max(freshnessMs, ageMs), pageSize * FULL_PAGE * intervalMs),
  );
  return quantilesOf(ages);
}

/** Where pages are taken in turn: a device waits until its page is full, and then until its turn has come. */
function inTurn(
  input: DemandInput,
  budget: number,
  made: number,
): Omit<Demand, 'asked' | 'budget' | 'boundBy' | 'fits' | 'readingsMade'> {
  const { intervalsMs, pageSize, freshnessMs } = input;
  const { account, alerts, devices, sweep } = NARROW_FLOORS;
  const planned: DemandByLane = {
    live: budget * (1 - account - alerts - devices - sweep),
    account: budget * account,
    alerts: budget * alerts,
    inventory: budget * devices,
    sweep: budget * sweep,
  };
  const staleMs = staleLimitMs(intervalsMs, { pageSize, requestsPerMs: budget / DAY_MS });
  const waitMs = intervalsMs.map((intervalMs) => Math.min(pageSize * intervalMs, staleMs));
  const pagesIn = (turnMs: number): number => waitMs.reduce((sum, ms) => sum + DAY_MS / Math.max(ms, turnMs), 0);
  const turnMs = leastOf({ from: MINUTE_MS, to: LONGEST_MS }, (ms) => pagesIn(ms) <= planned.live);
  const freshness = quantilesOf(waitMs.map((ms) => Math.max(ms, turnMs)));
  return {
    planned,
    stretch: Math.max(1, freshness.medianMs / freshnessMs),
    readingsFit: false,
    readingsCarried: Math.min(made, planned.live * pageSize * (1 - UNFULL_PART)),
    freshness,
    leftForHistory: budget * historyFloors(NARROW_FLOORS),
  };
}

function historyFloors(floors: Floors): number {
  return floors['first-history'] + floors.backfill;
}

function quantilesOf(values: readonly number[]): Freshness {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { medianMs: at(0.5), p95Ms: at(0.95) };
}
