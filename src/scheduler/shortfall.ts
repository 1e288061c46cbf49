/**
 * What is to be said where the demand does not fit the allowance: what is asked for, what is carried, what freshness
 * results, and which setting or plan would change that (issue 4, "When it cannot fit"). Data first, then the one sentence
 * of it that the log and the status page show.
 */

import { grouped } from '../core/text.ts';
import { DAY_MS, MINUTE_MS } from '../core/time.ts';
import { type Demand, type DemandInput, demandOf, type Freshness, totalOf } from './demand.ts';
import { FULL_PAGE, leastOf } from './page-fill.ts';

export interface Shortfall {
  /** Whether the schedules are stretched, or not even the readings are carried. */
  readonly of: 'schedules' | 'readings';
  /** Requests a day. */
  readonly asked: number;
  readonly carried: number;
  readonly boundBy: 'minute' | 'day' | null;
  readonly share: number;
  readonly freshnessAskedMs: number;
  readonly freshness: Freshness;
  /** Readings a day. */
  readonly readingsMade: number;
  readonly readingsCarried: number;
  /** What would make it fit, each by itself; `null` where it alone cannot. */
  readonly remedies: {
    /** `sync.telemetry` no more often than this. */
    readonly telemetryMs: number | null;
    /** `api.share`. */
    readonly share: number | null;
    /** A plan of so many requests. */
    readonly perMinute: number;
    readonly perDay: number;
  };
}

/** @returns `null` where all fits. */
export function shortfallOf(input: DemandInput): Shortfall | null {
  const demand = demandOf(input);
  if (demand.fits) return null;
  const of = demand.readingsFit ? 'schedules' : 'readings';
  const needed = of === 'schedules' ? totalOf(demand.asked) : demand.readingsMade / (input.pageSize * FULL_PAGE);
  return {
    of,
    asked: totalOf(demand.asked),
    carried: demand.budget,
    boundBy: demand.boundBy,
    share: input.share,
    freshnessAskedMs: input.freshnessMs,
    freshness: demand.freshness,
    readingsMade: demand.readingsMade,
    readingsCarried: demand.readingsCarried,
    remedies: {
      telemetryMs: of === 'schedules' ? telemetryThatFits(input) : null,
      share: shareThatFits(input, of),
      // The share of a figure is whole requests.
      perMinute: Math.ceil(Math.ceil(needed / (DAY_MS / MINUTE_MS)) / input.share),
      perDay: Math.max(Math.ceil(Math.ceil(needed) / input.share), Math.ceil(needed + input.othersPerDay)),
    },
  };
}

/** Says it in one line. */
export function shortfallText(shortfall: Shortfall): string {
  const { asked, carried, freshness, freshnessAskedMs, readingsMade, readingsCarried, share } = shortfall;
  const head = `the schedules ask for ${grouped(Math.round(asked))} requests a day, the allowance carries ${grouped(Math.round(carried))} (${percent(share)} of the plan's, less what others use)`;
  const result =
    shortfall.of === 'schedules'
      ? `readings are about ${ageText(freshness.medianMs)} old when they are fetched, where ${ageText(freshnessAskedMs)} is asked for (19 of 20 devices: ${ageText(freshness.p95Ms)})`
      : `not even the readings fit: ${grouped(Math.round(readingsMade))} are made a day, ${grouped(Math.round(readingsCarried))} are carried; every device keeps its newest page in turn, about every ${ageText(freshness.medianMs)}, and the rest are named gaps`;
  return `${head}: ${result}. ${remedyText(shortfall)}`;
}

function remedyText({ of, share, remedies }: Shortfall): string {
  const ways: string[] = [];
  if (remedies.telemetryMs !== null) ways.push(`a sync.telemetry of every ${ageText(remedies.telemetryMs)}`);
  if (remedies.share !== null && remedies.share > share) ways.push(`an api.share of ${remedies.share.toFixed(2)}`);
  ways.push(
    `a plan of ${grouped(Math.round(remedies.perDay))} requests a day and ${grouped(Math.round(remedies.perMinute))} a minute`,
  );
  if (of === 'readings') ways.push('fewer devices (sync.exclude)');
  return `To fit, any one of: ${ways.join('; ')}.`;
}

/** The least distance of two turns at which nothing is stretched, in whole minutes. */
function telemetryThatFits(input: DemandInput): number | null {
  const fits = (freshnessMs: number): boolean => demandOf({ ...input, freshnessMs }).fits;
  const ms = leastOf({ from: input.freshnessMs, to: DAY_MS }, fits);
  const wholeMs = Math.ceil(ms / MINUTE_MS) * MINUTE_MS;
  return fits(wholeMs) ? wholeMs : null;
}

function shareThatFits(input: DemandInput, of: Shortfall['of']): number | null {
  const isEnough = (demand: Demand): boolean => (of === 'schedules' ? demand.fits : demand.readingsFit);
  const share = leastOf({ from: input.share, to: 1 }, (part) => isEnough(demandOf({ ...input, share: part })));
  const upwards = Math.min(1, Math.ceil(share * 100) / 100);
  return isEnough(demandOf({ ...input, share: upwards })) ? upwards : null;
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

/** A time as people say it: `90 s`, `12 min`, `3.5 h`, `2.1 days`. */
export function ageText(ms: number): string {
  const minutes = ms / MINUTE_MS;
  if (minutes < 2) return `${Math.round(ms / 1000)} s`;
  if (minutes < 120) return `${Math.round(minutes)} min`;
  return minutes < 48 * 60 ? `${(minutes / 60).toFixed(1)} h` : `${(minutes / 1440).toFixed(1)} days`;
}
