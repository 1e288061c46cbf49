/**
 * The progress of a backfill: the covered time and the gaps of each device, and an estimate of the requests and the
 * time that are left.
 */

import { coveredIntervals } from '../../core/coverage.ts';
import {
  CLOSED_BY_NONE,
  determineCoverage,
  NEWEST_READ_WITHIN_MS,
  PENDING,
  wantedPart,
} from '../../core/device-coverage.ts';
import type { FleetRates } from '../../core/fleet.ts';
import { type Intervals, lengthNs, subtract } from '../../core/intervals.ts';
import { REPORTED_FROM_MS } from '../../core/quota.ts';
import { pageSizeOf } from '../../core/records.ts';
import type { ProgressReport, StatusGap } from '../../core/status.ts';
import { counted, LESS_IF_YOUNGER, rateText } from '../../core/text.ts';
import {
  type EpochMs,
  type EpochNs,
  formatMs,
  MINUTE_MS,
  msToNs,
  nsToMs,
  parseTimestamp,
  rangeNs,
  SECOND_MS,
} from '../../core/time.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { maxWidthNs } from '../../ingest/page-request.ts';
import { type Backfill, hasReadings, oldestReading } from '../../scheduler/backfill.ts';
import {
  aloneFinishMs,
  backfillNeed,
  besideFinishMs,
  besideSupply,
  findBeginning,
  LOAD_OVER_MS,
  loadPerMs,
} from '../../scheduler/estimate.ts';
import { plannerDaySupply } from '../../scheduler/planner.ts';
import type { Planning } from '../../scheduler/planning.ts';

/** The parts of a device's range that a backfill has covered and not covered; times in ms. */
export interface BackfilledDevice {
  readonly deviceId: string;
  readonly name: string;
  readonly wholeMs: number;
  readonly openMs: number;
  readonly gaps: readonly StatusGap[];
  /** Whether the whole uncovered part lies above the newest covered instant. */
  readonly isOpenAtTop: boolean;
  /** The ranges that have not been read again yet, ascending; empty without `--recheck`. */
  readonly unread: Intervals;
  /** Why they have not: `pending`, or the reason why the last request was unusable. */
  readonly unreadReason: string;
  /** Whether the covered part of the range contains readings. */
  readonly hasReadings: boolean;
  /** The oldest stored reading of the device, in any range. */
  readonly oldest: EpochNs | null;
}

/** The progress of a backfill, over all its devices. Durations are sums over the devices, in ms. */
export interface BackfillView {
  readonly devices: readonly BackfilledDevice[];
  readonly wholeMs: number;
  readonly openMs: number;
  /** The time that is left to read: the gaps, and the ranges to read again. */
  readonly leftMs: number;
  /** Reasons of gaps that further requests could close. */
  readonly openFor: ReadonlySet<string>;
}

/** Computes the coverage of every device of a backfill. */
export function backfillView({ store, settings }: SyncContext, backfill: Backfill): BackfillView {
  const known = new Map(store.devices().map((device) => [device.record.deviceId, device]));
  const devices = backfill.deviceIds.flatMap((deviceId): BackfilledDevice[] => {
    const device = known.get(deviceId);
    if (device === undefined) return [];
    const { covered } = store.telemetry(deviceId);
    const wanted = wantedPart(device, backfill.wanted(deviceId));
    const isExcluded = settings.filter.excludes(device.record);
    const { gaps } = determineCoverage({ ...device, isExcluded }, { covered, gaps: store.gaps(deviceId) }, wanted);
    const unread = device.goneSinceMs === null ? (backfill.recheck?.unread(deviceId) ?? []) : [];
    return [
      {
        deviceId,
        name: device.name,
        wholeMs: Math.max(0, nsToMs(wanted.to - wanted.from)),
        openMs: gaps.reduce((sum, gap) => sum + nsToMs(rangeNs(gap)), 0),
        gaps,
        isOpenAtTop:
          unread.length === 0 && gaps.every(({ from }) => (parseTimestamp(from) ?? 0n) >= (covered.at(-1)?.to ?? 0n)),
        unread,
        unreadReason: backfill.recheck?.failure(deviceId) ?? PENDING,
        hasReadings: hasReadings(covered, wanted),
        oldest: oldestReading(covered),
      },
    ];
  });
  const reasons = devices.flatMap(({ gaps, unread, unreadReason }) => [
    ...gaps.map(({ reason }) => reason),
    ...unread.map(() => unreadReason),
  ]);
  return {
    devices,
    wholeMs: devices.reduce((sum, { wholeMs }) => sum + wholeMs, 0),
    openMs: devices.reduce((sum, { openMs }) => sum + openMs, 0),
    leftMs: devices.reduce((sum, { openMs, unread }) => sum + openMs + nsToMs(lengthNs(unread)), 0),
    openFor: new Set(reasons.filter((reason) => !CLOSED_BY_NONE.has(reason))),
  };
}

/** How often the report rates are read, and how often the estimate is computed from them. */
const RATES_EVERY_MS = MINUTE_MS;
const ESTIMATE_EVERY_MS = 5 * SECOND_MS;

/**
 * Returns what all uncovered devices wait for, if no estimate is possible; otherwise `null`.
 *
 * @param leavesNewest whether the newest readings are left to the daemon's polls for now.
 */
export function waitsFor({ devices }: BackfillView, leavesNewest: boolean): string | null {
  const open = devices.filter(({ gaps }) => gaps.some(({ reason }) => !CLOSED_BY_NONE.has(reason)));
  if (leavesNewest && open.length > 0 && open.every(({ isOpenAtTop }) => isOpenAtTop)) {
    return `waiting for the next poll of ${counted(open.length, 'device')}, usually within ${NEWEST_READ_WITHIN_MS / MINUTE_MS} minutes`;
  }
  const isUnreachable = open.every(({ gaps }) => gaps.some(({ reason }) => reason === 'unreachable'));
  if (open.length === 0 || !isUnreachable) return null;
  return `waiting for ${counted(open.length, 'unreachable device')}`;
}

/**
 * Returns what a backfill waits for when its part of the day's budget is used up; `null` if it may send.
 *
 * @param untilMs when it may send again.
 */
export function dayWaitText(untilMs: EpochMs, nowMs: EpochMs): string | null {
  if (untilMs - nowMs < REPORTED_FROM_MS) return null;
  return `waiting for its part of the day's budget (--max-share) until ${formatMs(untilMs).slice(0, 19)}Z`;
}

/** The estimated number of requests that a backfill still has to send. */
interface EstimatedLeft {
  readonly requests: number;
  /** Whether it assumes that every device has readings down to the beginning of the range. */
  readonly assumesFullHistory: boolean;
}

/** The budget, the load and the planner from which the remaining time is estimated. */
export interface EtaParts {
  readonly context: Pick<SyncContext, 'serverClock'>;
  readonly planning: Pick<Planning, 'planner' | 'oneOff'>;
  readonly backfill: {
    /** The budgets of the minute and the day, in requests; `null`: not known. */
    budgets(): { readonly perMinute: number | null; readonly perDay: number | null };
    /** How many requests of the other lanes, except first history, were sent since a time. */
    othersSince(sinceMs: EpochMs): number;
    /** How many requests of all lanes were sent in the last day. */
    spentDay(): number;
  };
}

/**
 * How long the remaining requests will take, by the budget that the planner will give them if load and quota stay the
 * same.
 *
 * @param estimated `null`: not known.
 * @returns `null` if there is nothing left to send, or no budget is known.
 */
export function backfillEta(
  parts: EtaParts,
  backfill: Backfill,
  estimated: EstimatedLeft | null,
): NonNullable<ProgressReport['eta']> | null {
  // All estimated requests were sent: only delivery is left, or more requests than estimated.
  const left = estimated?.requests ?? 0;
  if (estimated === null || left <= 0) return null;
  const nowMs = parts.context.serverClock.nowMs();
  const suppliedMs = parts.planning.oneOff === null ? besideMs(parts, backfill, left) : aloneMs(parts, backfill, left);
  if (suppliedMs === null) return null;
  const ms = Math.max(suppliedMs, backfill.rate.lastsMs(left, nowMs));
  const perMinute = ms <= 0 ? left : (left * MINUTE_MS) / ms;
  const less = estimated.assumesFullHistory ? `, ${LESS_IF_YOUNGER}` : '';
  return {
    seconds: Math.round(ms / SECOND_MS),
    basis: `about ${counted(left, 'request')} to go at ${rateText(perMinute)} a minute${less}`,
    hasRate: true,
  };
}

function besideMs(parts: EtaParts, { startedMs, tally }: Backfill, left: number): number | null {
  const nowMs = parts.context.serverClock.nowMs();
  const { othersSince, budgets } = parts.backfill;
  // If the daemon has only just started, the load since the beginning of the backfill counts.
  const sinceMs = Math.max(startedMs, nowMs - LOAD_OVER_MS);
  const othersPerMs = loadPerMs(othersSince, nowMs) ?? othersSince(sinceMs) / Math.max(MINUTE_MS, nowMs - sinceMs);
  const seen = tally.perMinute();
  const supply = besideSupply(plannerDaySupply(parts.planning.planner, nowMs), {
    minute: budgets().perMinute,
    seenPerMs: seen === null ? null : seen / MINUTE_MS,
    othersPerMs,
  });
  return Number.isFinite(supply.minutePerMs) ? besideFinishMs(left, supply) : null;
}

/**
 * The time without live work: the backfill uses the full budget of the minute, if the API answers fast enough, until
 * the day's budget is spent.
 */
function aloneMs({ backfill: { budgets, spentDay } }: EtaParts, { tally }: Backfill, left: number): number | null {
  const { perMinute, perDay } = budgets();
  const rate = Math.min(perMinute ?? Number.POSITIVE_INFINITY, tally.perMinute() ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(rate) ? aloneFinishMs(left, { perMinute: rate, perDay, spent: spentDay() }) : null;
}

/** The input of an estimate. */
export interface EstimateParts {
  readonly context: SyncContext;
  /** How often the devices report, as far as is known. Checks all devices. */
  readonly rates: (nowMs: EpochMs) => FleetRates;
}

/**
 * The estimated number of requests that a backfill still has to send, with corrections from the requests sent so far.
 */
interface Estimate {
  readonly parts: EstimateParts;
  readonly backfill: Backfill;
  /** The newest result; `null` while the end is unknown. */
  left: EstimatedLeft | null;
  /** The computation of `left`, before it was corrected by the requests sent. */
  last: { readonly estimated: number; readonly requests: number; readonly atMs: number } | null;
  /** The report rates, and when they were read. */
  fleet: { readonly rates: FleetRates; readonly atMs: number } | null;
  /** The number of devices for which the beginning of their readings is known. */
  begun: number;
  /** The requests sent so far, and the number that the estimate had expected for the gaps they closed. */
  readonly soFar: { made: number; expected: number };
}

/** Creates the estimate of a backfill. The first call of {@link updateEstimate} computes it. */
export function createEstimate(parts: EstimateParts, backfill: Backfill): Estimate {
  return { parts, backfill, left: null, last: null, fleet: null, begun: 0, soFar: { made: 0, expected: 0 } };
}

/** Computes the estimate again, every few seconds while requests are sent. */
export function updateEstimate(estimate: Estimate): void {
  const { parts, backfill, last, soFar } = estimate;
  if (backfill.args.from === 'all') return;
  const nowMs = parts.context.clock.monoMs();
  const { requests } = backfill.tally.counts();
  // While no request is sent, nothing changes: a wait for the quota of a day would repeat the estimate for hours.
  if (last !== null && (requests === last.requests || nowMs - last.atMs < ESTIMATE_EVERY_MS)) return;
  const [rated, begunBefore] = [estimate.fleet, estimate.begun];
  const { requests: estimated, assumesFullHistory } = computeNeed(estimate, nowMs);
  // If report rates have changed, or other devices were found to begin later, this is a new estimate: its difference to
  // the last one does not show the requests between them.
  if (last !== null && estimate.fleet === rated && estimate.begun === begunBefore) {
    soFar.made += requests - last.requests;
    soFar.expected += last.estimated - estimated;
  }
  // The requests sent correct the rest of the estimate, with more weight the further the backfill is: the first pages
  // are not typical.
  const usual = (estimated + soFar.expected) / 2;
  const factor = Math.min(3, Math.max(0.5, (soFar.made + usual) / Math.max(1, soFar.expected + usual)));
  estimate.left = { requests: Math.ceil(estimated * factor), assumesFullHistory };
  estimate.last = { estimated, requests, atMs: nowMs };
}

/** Computes the remaining requests by the report rates, which are read again once a minute. */
function computeNeed(estimate: Estimate, nowMs: number): EstimatedLeft {
  const { backfill } = estimate;
  const { context, rates } = estimate.parts;
  const { store, serverClock } = context;
  if (estimate.fleet === null || nowMs - estimate.fleet.atMs >= RATES_EVERY_MS)
    estimate.fleet = { rates: rates(serverClock.nowMs()), atMs: nowMs };
  const plan = store.account()?.plan;
  const devices = estimate.fleet.rates.devices
    .filter(({ deviceId }) => backfill.covers(deviceId))
    .map((device) => {
      const { deviceId } = device;
      const unread = backfill.recheck?.unread(deviceId) ?? [];
      const { covered } = store.telemetry(deviceId);
      const beginsNs = findBeginning(covered, BigInt(backfill.args.from));
      return { ...device, beginsNs, covered: subtract(coveredIntervals(covered), unread) };
    });
  estimate.begun = devices.filter(({ beginsNs }) => beginsNs !== null).length;
  return backfillNeed({
    devices,
    range: { from: BigInt(backfill.args.from), to: backfill.to },
    now: msToNs(backfill.startedMs),
    limit: backfill.limit,
    pageSize: pageSizeOf(plan),
    windowNs: maxWidthNs(plan?.historyMaxDays ?? null),
  });
}
