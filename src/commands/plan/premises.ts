/**
 * What `--plan` goes by: facts, settings and suppositions made into the figures that its answer is computed from, and in words
 * whatever of them is assumed. Pure.
 */

import { type DeviceFacts, type FleetRates, fleetRates } from '../../core/fleet-rates.ts';
import type { Stream } from '../../core/ports.ts';
import type { Account } from '../../core/records.ts';
import type { Schedules } from '../../core/schedule.ts';
import { DAY_MS, type EpochMs, type EpochNs } from '../../core/time.ts';
import { resizeFleet, type WhatIf } from '../../core/what-if.ts';
import type { DemandInput } from '../../scheduler/demand.ts';
import { meanPeriodMs } from '../../scheduler/schedule-period.ts';

/** What is taken for the minute's limit where neither the account nor a header tells it, as `allowance.ts` does. */
export const ASSUMED_PER_MINUTE = 10;
/** The most records of a page (API document, "Pagination"). */
const PAGE_SIZE = 200;
/** Schedules that are due more rarely count as this: nothing of a day is seen of them. */
const LONGEST_MS = 30 * DAY_MS;

/** What is known of the workspace. */
export interface PlanFacts {
  /** Asked for now, or read from the state beside the process that works with it. */
  readonly source: 'api' | 'state';
  /** When the devices were listed. */
  readonly asOfMs: EpochMs;
  readonly nowMs: EpochMs;
  /** What it took to find out. */
  readonly requestsAsked: number;
  /** `null` where the key may not read it. */
  readonly account: Account | null;
  /** What headers have told of the limits. */
  readonly seenPerMinute: number | null;
  readonly seenPerDay: number | null;
  /** What other clients have used of the day so far; `null`: nobody has told. */
  readonly othersPerDay: number | null;
  /** Own requests of the last 24 hours. */
  readonly spentDay: number;
  readonly devices: readonly DeviceFacts[];
}

/** What the configuration says. */
export interface PlanSettings {
  readonly share: number;
  readonly schedules: Schedules;
  readonly sweepMs: number;
}

/** The stretch of history that is asked about. */
export interface PlanSpan {
  readonly from: EpochNs;
  readonly to: EpochNs;
  /** `null`: of all devices. */
  readonly deviceIds: ReadonlySet<string> | null;
  /** Whether all there is was asked for: then `from` is what is told of for an example. */
  readonly isAll?: boolean;
}

/** The pace that a backfill is to keep. */
export interface PlanPace {
  readonly maxShare: number | null;
  readonly finishByMs: EpochMs | null;
}

export interface PlanQuestion {
  readonly facts: PlanFacts;
  readonly settings: PlanSettings;
  readonly whatIf: WhatIf;
  readonly span: PlanSpan;
  readonly pace?: PlanPace;
}

export interface Limits {
  readonly perMinute: number;
  readonly perDay: number | null;
}

export interface Premises {
  readonly schedules: Schedules;
  readonly limits: Limits;
  readonly fleet: FleetRates;
  readonly input: DemandInput;
  /** By how many times there are more devices than there are. */
  readonly scale: number;
  /** Sentences. */
  readonly assumptions: readonly string[];
}

/** Puts together what the answer is computed from. */
export function premisesOf({ facts, settings, whatIf, span }: PlanQuestion): Premises {
  const schedules: Schedules = { ...settings.schedules, ...whatIf.schedules };
  const { limits, assumptions } = limitsOf(facts, whatIf);
  const fleet = fleetRates(facts.devices, facts.nowMs);
  const reporting = fleet.devices.filter(({ isQuiet }) => !isQuiet);
  const { assumedMs } = fleet;
  const all = fleet.devices.length;
  const own = { intervalsMs: reporting.map(({ intervalMs }) => intervalMs), quiet: all - reporting.length };
  const mix = whatIf.devices === undefined ? own : resizeFleet(own, { devices: whatIf.devices, assumedMs });
  const everyMs = (stream: Stream): number => Math.min(meanPeriodMs(schedules[stream], facts.nowMs), LONGEST_MS);
  return {
    schedules,
    limits,
    fleet,
    input: {
      intervalsMs: mix.intervalsMs,
      quietDevices: mix.quiet,
      freshnessMs: everyMs('telemetry'),
      devicesMs: everyMs('devices'),
      alertsMs: everyMs('alerts'),
      accountMs: everyMs('account'),
      sweepMs: settings.sweepMs,
      pageSize: pageSizeOf(facts.account),
      ...limits,
      share: whatIf.share ?? settings.share,
      othersPerDay: facts.othersPerDay ?? 0,
    },
    // Devices that were named stay those.
    scale: whatIf.devices === undefined || span.deviceIds !== null || all === 0 ? 1 : whatIf.devices / all,
    assumptions: [...assumptions, ...rateAssumptions(reporting, assumedMs)],
  };
}

function pageSizeOf(account: Account | null): number {
  return Math.max(1, Math.min(PAGE_SIZE, Math.trunc(account?.plan.maxDevicesPerPage ?? PAGE_SIZE)));
}

function limitsOf(
  { account, seenPerMinute, seenPerDay }: PlanFacts,
  whatIf: WhatIf,
): { readonly limits: Limits; readonly assumptions: readonly string[] } {
  const told = account === null ? 'the account is not known (scope account:read)' : 'the account does not tell';
  const minute = whatIf.perMinute ?? account?.plan.requestsPerMinute ?? null;
  const perDay = whatIf.perDay ?? account?.plan.requestsPerDay ?? seenPerDay;
  const heard = seenPerMinute === null ? `${ASSUMED_PER_MINUTE} are taken` : `answers speak of ${seenPerMinute}`;
  return {
    limits: { perMinute: minute ?? seenPerMinute ?? ASSUMED_PER_MINUTE, perDay },
    assumptions: [
      ...(minute === null ? [`requests a minute: ${told}; ${heard}`] : []),
      ...(perDay === null ? [`requests a day: ${told}; no limit is taken but that of the minute`] : []),
    ],
  };
}

function rateAssumptions(reporting: readonly { readonly isMeasured: boolean }[], assumedMs: number): string[] {
  const assumed = reporting.filter(({ isMeasured }) => !isMeasured).length;
  if (assumed === 0) return [];
  const basis = assumed < reporting.length ? 'the median of those that are measured' : 'none is measured yet';
  return [`report rates: a reading every ${Math.round(assumedMs / 1000)} s of ${assumed} devices (${basis})`];
}
