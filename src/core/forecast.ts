/**
 * What a sync would cost and reach: the answer of `--plan` and `--what-if`, before anything is spent (issue 4). Pure: from
 * the account, the list of devices and what is known of their rates.
 */
import { type DemandByLane, type DemandInput, demandOf, type Freshness, totalOf } from './demand.ts';
import { type Shortfall, shortfallOf } from './shortfall.ts';
import { DAY_MS, MINUTE_MS } from './time.ts';

/** A device as it is known before the first request for its telemetry. */
export interface ForecastDevice {
  /** Whether it reports: seen lately, and not paused. */
  readonly isReporting: boolean;
  /** From reading to reading, in ms, where it was measured. */
  readonly intervalMs: number | null;
}

/** Another workspace, allowance or schedule than the real one. What is left out stays as it is. */
export interface WhatIf {
  readonly devices?: number;
  readonly share?: number;
  readonly perMinute?: number;
  readonly perDay?: number;
  readonly freshnessMs?: number;
  readonly devicesMs?: number;
  readonly alertsMs?: number;
  readonly accountMs?: number;
  readonly sweepMs?: number;
}

export interface ForecastInput extends Omit<DemandInput, 'intervalsMs' | 'quietDevices'> {
  readonly devices: readonly ForecastDevice[];
  /** What is to be filled, in ms of each device; `null`: nothing. */
  readonly backfillMs: number | null;
  /** The widest window that one walk may span, in ms; `null`: any. */
  readonly windowMs: number | null;
}

export interface Forecast {
  readonly devices: { readonly all: number; readonly reporting: number; readonly measured: number };
  /** What was taken for the rate of those that were not measured. */
  readonly assumedIntervalMs: number;
  readonly requestsPerDay: DemandByLane & { readonly all: number };
  /** The part of the plan's figures that this comes to; `null` where a figure is not known. */
  readonly ofMinute: number | null;
  readonly ofDay: number | null;
  readonly freshness: Freshness;
  readonly readingsPerDay: { readonly made: number; readonly carried: number };
  readonly shortfall: Shortfall | null;
  readonly backfill: { readonly requests: number; readonly finishedInMs: number } | null;
}

/** What is taken for a rate where none was measured. */
export const ASSUMED_INTERVAL_MS = 5 * MINUTE_MS;
/** Readings that a page brings on a walk, the one that it goes on from left out, and requests that each walk takes more. */
const WALK_PAGE_PART = 0.98;
const WALK_EXTRA = 1;

/** Foretells what the sync comes to. */
export function forecastOf(input: ForecastInput): Forecast {
  const { devices, perMinute, perDay } = input;
  const reporting = devices.filter(({ isReporting }) => isReporting);
  const measured = reporting.flatMap(({ intervalMs }) => intervalMs ?? []);
  const assumedIntervalMs = middleOf(measured) ?? ASSUMED_INTERVAL_MS;
  const intervalsMs = reporting.map(({ intervalMs }) => intervalMs ?? assumedIntervalMs);
  const demandInput = { ...input, intervalsMs, quietDevices: devices.length - reporting.length };
  const demand = demandOf(demandInput);
  const all = totalOf(demand.planned);
  return {
    devices: { all: devices.length, reporting: reporting.length, measured: measured.length },
    assumedIntervalMs,
    requestsPerDay: { ...demand.planned, all },
    ofMinute: perMinute === null ? null : all / (DAY_MS / MINUTE_MS) / perMinute,
    ofDay: perDay === null ? null : all / perDay,
    freshness: demand.freshness,
    readingsPerDay: { made: demand.readingsMade, carried: demand.readingsCarried },
    shortfall: shortfallOf(demandInput),
    backfill: input.backfillMs === null ? null : backfillOf(demandInput, input.backfillMs, demand.leftForHistory),
  };
}

/** The same with something else: devices are more or fewer of the same mix. */
export function withChanges(input: ForecastInput, { devices, ...figures }: WhatIf): ForecastInput {
  const known = input.devices;
  if (devices === undefined) return { ...input, ...figures };
  const like: ForecastDevice[] = Array.from(
    { length: devices },
    (_, index) => known[Math.floor((index * known.length) / devices)] ?? { isReporting: true, intervalMs: null },
  );
  return { ...input, ...figures, devices: like };
}

/** What filling that much of each device takes. Devices that are quiet now may have reported then: a page of each walk. */
function backfillOf(
  { intervalsMs, quietDevices, pageSize, windowMs }: DemandInput & Pick<ForecastInput, 'windowMs'>,
  spanMs: number,
  perDay: number,
): Forecast['backfill'] {
  const walks = Math.max(1, Math.ceil(spanMs / (windowMs ?? Number.POSITIVE_INFINITY)));
  const pages = intervalsMs.reduce((sum, ms) => sum + Math.ceil(spanMs / ms / (pageSize * WALK_PAGE_PART)), 0);
  const requests = pages + (intervalsMs.length * (walks - 1) + quietDevices * walks) * WALK_EXTRA;
  return { requests, finishedInMs: (requests / perDay) * DAY_MS };
}

function middleOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? null;
}
