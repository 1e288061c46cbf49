/**
 * What the schedules and the readings ask for, held against what the allowance carries (issue 4, "When it cannot fit").
 *
 * Where the schedules do not fit, all are stretched by one factor until they do. Where not even the readings fit (a page
 * has at most 200 of them), every device keeps its newest page in turn and the rest are gaps. Estimates: the planner goes
 * by what is worth most at each moment, not by these figures.
 */
import { listPages } from './planner-listing.ts';
import { DAY_MS, MINUTE_MS } from './time.ts';

/** A workspace, its schedules and its allowance. */
export interface DemandInput {
  /** From reading to reading, in ms, of each device that reports; measured or assumed. */
  readonly intervalsMs: readonly number[];
  /** Devices that do not report. */
  readonly quietDevices: number;
  readonly freshnessMs: number;
  readonly devicesMs: number;
  readonly alertsMs: number;
  readonly accountMs: number;
  readonly sweepMs: number;
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

export interface Demand {
  /** What the schedules ask for, in requests a day. */
  readonly asked: DemandByLane;
  /** The same, stretched so that it fits. */
  readonly planned: DemandByLane;
  /** What the share of the allowance carries, in requests a day. */
  readonly budget: number;
  /** By which factor all schedules are stretched; 1 where they fit. */
  readonly stretch: number;
  readonly fits: boolean;
  readonly readingsMade: number;
  /** Readings that are carried, a day. */
  readonly readingsCarried: number;
  readonly readingsFit: boolean;
  /** How old the oldest reading of a device becomes before it is asked for: of the middle device, and of 19 in 20. */
  readonly freshness: { readonly medianMs: number; readonly p95Ms: number };
  /** Requests a day that are left to history and backfill, what their floors give them included. */
  readonly leftForHistory: number;
}

/** How full pages come, as they are asked for before they run over. */
const FULL_PAGE = 0.94;
/** What history gets in any case where all else is stretched. */
const HISTORY_FLOOR = 0.1;
/** The part of the requests that may go to pages that are not full yet where pages are what is short. */
const UNFULL_PART = 0.015;
const LONGEST_MS = 30 * DAY_MS;
const STEPS = 50;

/** Holds the demand against the allowance. */
export function demandOf(input: DemandInput): Demand {
  const budget = budgetOf(input);
  const asked = demandAt(input, 1);
  const readingsMade = input.intervalsMs.reduce((sum, intervalMs) => sum + DAY_MS / intervalMs, 0);
  const pages = readingsMade / (input.pageSize * FULL_PAGE);
  const readingsFit = pages <= budget;
  const fits = total(asked) <= budget;
  const stretch = fits ? 1 : stretchTo(input, budget);
  const planned = demandAt(input, stretch);
  return {
    asked,
    planned,
    budget,
    stretch,
    fits,
    readingsMade,
    readingsCarried: readingsFit ? readingsMade : Math.min(readingsMade, budget * input.pageSize),
    readingsFit,
    freshness: readingsFit ? freshnessAt(input, stretch) : freshnessInTurn(input, budget),
    leftForHistory: Math.max(budget - total(planned), fits ? 0 : budget * HISTORY_FLOOR),
  };
}

/**
 * How old a reading may become before its device is asked although its page is not full, where full pages are what is
 * short: as old as keeps the room that is wasted small.
 *
 * @param intervalsMs of the devices that report. @returns milliseconds, at most 30 days.
 */
export function staleLimitMs(
  intervalsMs: readonly number[],
  { pageSize, requestsPerMs }: { pageSize: number; requestsPerMs: number },
): number {
  const wasted = (staleMs: number): number => {
    let sum = 0;
    for (const intervalMs of intervalsMs) {
      const fillMs = pageSize * FULL_PAGE * intervalMs;
      if (fillMs > staleMs) sum += (1 - staleMs / fillMs) / staleMs;
    }
    return sum;
  };
  return bisect({ from: MINUTE_MS, to: LONGEST_MS }, (staleMs) => wasted(staleMs) <= UNFULL_PART * requestsPerMs);
}

/** The warning where the schedules do not fit; `null` where they do. */
export function demandWarning(demand: Demand, input: DemandInput): string | null {
  if (demand.fits) return null;
  const { asked, budget, freshness, readingsFit } = demand;
  const share = Math.round(input.share * 100);
  const head = `The schedules ask for ${round(total(asked))} requests a day, the allowance carries ${round(budget)} (${share} % of the plan, less what others use).`;
  const plan = `a plan of ${round(total(asked) / input.share)} requests a day would carry the schedules`;
  if (readingsFit) {
    return `${head} Everything is stretched evenly: readings are up to ${age(freshness.medianMs)} old instead of ${age(input.freshnessMs)} when they are fetched. A longer sync.telemetry would say the same, a larger api.share shortens it, ${plan}.`;
  }
  const needed = demand.readingsMade / (input.pageSize * FULL_PAGE * input.share);
  return `${head} Not even the readings fit: ${round(demand.readingsMade)} are made a day, ${round(demand.readingsCarried)} can be carried. Every device keeps its newest page in turn, about every ${age(freshness.medianMs)}; the rest are named gaps. sync.exclude leaves devices out, a larger api.share carries more, a plan of ${round(needed)} requests a day would carry all readings.`;
}

function budgetOf({ perMinute, perDay, share, othersPerDay }: DemandInput): number {
  const byMinute =
    perMinute === null ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(perMinute * share)) * (DAY_MS / MINUTE_MS);
  const byDay = perDay === null ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(perDay * share));
  const left = perDay === null ? Number.POSITIVE_INFINITY : Math.max(1, perDay - othersPerDay);
  return Math.min(byMinute, byDay, left);
}

/** Requests a day where all schedules are stretched by a factor. Pages that fill are asked for all the same. */
function demandAt(input: DemandInput, stretch: number): DemandByLane {
  const { intervalsMs, freshnessMs, pageSize } = input;
  const every = (periodMs: number): number => DAY_MS / (periodMs * stretch);
  let live = 0;
  for (const intervalMs of intervalsMs) {
    live += DAY_MS / Math.min(freshnessMs * stretch + intervalMs, pageSize * FULL_PAGE * intervalMs);
  }
  return {
    live,
    alerts: every(input.alertsMs),
    inventory: every(input.devicesMs) * listPages(intervalsMs.length + input.quietDevices),
    account: every(input.accountMs),
    sweep: input.quietDevices * every(input.sweepMs),
  };
}

function total(demand: DemandByLane): number {
  return Object.values(demand).reduce((sum, requests) => sum + requests, 0);
}

/** The least factor at which all fits; where nothing makes it fit, the largest. */
function stretchTo(input: DemandInput, budget: number): number {
  return bisect(
    { from: 1, to: LONGEST_MS / input.freshnessMs },
    (stretch) => total(demandAt(input, stretch)) <= budget,
  );
}

function freshnessAt({ intervalsMs, freshnessMs, pageSize }: DemandInput, stretch: number): Demand['freshness'] {
  // A page that fills earlier is asked for earlier.
  const ages = intervalsMs.map((intervalMs) =>
    Math.min(freshnessMs * stretch, (pageSize * FULL_PAGE - 1) * intervalMs),
  );
  return quantiles(ages);
}

/** Where pages are taken in turn: a device waits until its page is full and then until its turn has come. */
function freshnessInTurn({ intervalsMs, pageSize }: DemandInput, budget: number): Demand['freshness'] {
  const fillMs = intervalsMs.map((intervalMs) => pageSize * FULL_PAGE * intervalMs);
  const pages = (turnMs: number): number => fillMs.reduce((sum, ms) => sum + DAY_MS / Math.max(ms, turnMs), 0);
  const turnMs = bisect({ from: MINUTE_MS, to: LONGEST_MS }, (ms) => pages(ms) <= budget);
  const staleMs = staleLimitMs(intervalsMs, { pageSize, requestsPerMs: budget / DAY_MS });
  return quantiles(fillMs.map((ms) => Math.max(turnMs, Math.min(ms, staleMs))));
}

function quantiles(values: readonly number[]): Demand['freshness'] {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { medianMs: at(0.5), p95Ms: at(0.95) };
}

/** The least value at which a condition holds that holds for all greater ones; the greatest where it never does. */
function bisect(range: { from: number; to: number }, holds: (value: number) => boolean): number {
  let { from, to } = range;
  if (holds(from)) return from;
  for (let step = 0; step < STEPS; step += 1) {
    const middle = Math.sqrt(from * to);
    if (holds(middle)) to = middle;
    else from = middle;
  }
  return to;
}

function round(figure: number): string {
  return Math.round(figure).toLocaleString('en-US');
}

/** A time as people say it. */
function age(ms: number): string {
  const minutes = ms / MINUTE_MS;
  if (minutes < 1.5) return `${Math.round(ms / 1000)} s`;
  if (minutes < 90) return `${Math.round(minutes)} min`;
  return minutes < 48 * 60 ? `${(minutes / 60).toFixed(1)} h` : `${(minutes / 1440).toFixed(1)} days`;
}
