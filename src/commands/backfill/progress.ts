/**
 * The progress of a backfill: the covered time and the gaps of each device, and an estimate of the requests and the
 * time that are left.
 */

import { coveredIntervals } from '../../core/coverage.ts';
import { CLOSED_BY_NONE, coverageOf, wantedOf } from '../../core/device-coverage.ts';
import type { FleetRates } from '../../core/fleet.ts';
import type { ProgressReport, StatusGap } from '../../core/status.ts';
import { counted, grouped } from '../../core/text.ts';
import { type EpochMs, type EpochNs, MINUTE_MS, msToNs, nsToMs, parseTimestamp, SECOND_MS } from '../../core/time.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { windowSpanNs } from '../../ingest/page-request.ts';
import { type Backfill, hasReadings, oldestReading } from '../../scheduler/backfill.ts';
import { backfillNeed } from '../../scheduler/estimate.ts';

/** A device as far as the backfill is. */
export interface BackfilledDevice {
  readonly deviceId: string;
  readonly name: string;
  readonly wholeMs: number;
  readonly openMs: number;
  readonly holes: readonly StatusGap[];
  /** Whether the covered part of the range contains readings. */
  readonly hasReadings: boolean;
  /** The oldest stored reading of the device, in any range. */
  readonly oldest: EpochNs | null;
}

export interface BackfillLook {
  readonly devices: readonly BackfilledDevice[];
  readonly wholeMs: number;
  readonly openMs: number;
  /** Reasons of holes that more work could close. */
  readonly openFor: ReadonlySet<string>;
}

/** Computes the coverage of every device of a backfill. */
export function lookAt({ store, settings }: SyncContext, backfill: Backfill): BackfillLook {
  const known = new Map(store.devices().map((device) => [device.record.deviceId, device]));
  const devices = backfill.deviceIds.flatMap((deviceId): BackfilledDevice[] => {
    const device = known.get(deviceId);
    if (device === undefined) return [];
    const { covered } = store.telemetry(deviceId);
    const wanted = wantedOf(device, backfill.wanted(deviceId));
    const isExcluded = settings.filter.excludes(device.record);
    const { holes } = coverageOf({ ...device, isExcluded }, { covered, gaps: store.gaps(deviceId) }, wanted);
    return [
      {
        deviceId,
        name: device.name,
        wholeMs: Math.max(0, nsToMs(wanted.to - wanted.from)),
        openMs: holes.reduce((sum, hole) => sum + gapMs(hole), 0),
        holes,
        hasReadings: hasReadings(covered, wanted),
        oldest: oldestReading(covered),
      },
    ];
  });
  const reasons = devices.flatMap(({ holes }) => holes.map(({ reason }) => reason));
  return {
    devices,
    wholeMs: devices.reduce((sum, { wholeMs }) => sum + wholeMs, 0),
    openMs: devices.reduce((sum, { openMs }) => sum + openMs, 0),
    openFor: new Set(reasons.filter((reason) => !CLOSED_BY_NONE.has(reason))),
  };
}

/** How long a gap is, in ms. */
export function gapMs({ from, to }: Pick<StatusGap, 'from' | 'to'>): number {
  return nsToMs((parseTimestamp(to) ?? 0n) - (parseTimestamp(from) ?? 0n));
}

/** How often the report rates are read, and how often the estimate is computed from them. */
const RATES_EVERY_MS = MINUTE_MS;
const ESTIMATE_EVERY_MS = 5 * SECOND_MS;

/** From this number of requests on, the estimate is corrected by the requests that were really needed. */
const TELLING_REQUESTS = 20;

const PAGE = 200;

/** Returns what all open devices wait for, if no estimate is possible; `null` otherwise. */
export function waitsFor({ devices }: BackfillLook): string | null {
  const open = devices.filter(({ holes }) => holes.some(({ reason }) => !CLOSED_BY_NONE.has(reason)));
  const isUnreachable = open.every(({ holes }) => holes.some(({ reason }) => reason === 'device unreachable'));
  if (open.length === 0 || !isUnreachable) return null;
  return `waits for ${counted(open.length, 'device')} that cannot be reached`;
}

export function etaOf(left: number | null, perMinute: number | null): NonNullable<ProgressReport['eta']> | null {
  // All estimated requests were sent: only delivery is left, or more requests than estimated.
  if (left === null || left <= 0 || perMinute === null || perMinute <= 0) return null;
  const rate = perMinute < 10 ? perMinute.toFixed(1) : String(Math.round(perMinute));
  const seconds = Math.round((left / perMinute) * 60);
  return { seconds, basis: `about ${grouped(left)} requests at ${rate} a minute` };
}

export interface EstimateParts {
  readonly context: SyncContext;
  /** How often the devices report, as far as is known. A look at all of them. */
  readonly rates: (nowMs: EpochMs) => FleetRates;
}

/**
 * Creates the estimate of how many requests a backfill still has to send.
 *
 * @returns a step to take with each look. It computes anew every few seconds, and returns `null` where the end is not
 *   known.
 */
export function createEstimator({ context, rates }: EstimateParts, backfill: Backfill): () => number | null {
  const { store, clock, serverClock } = context;
  let fleet: { readonly rates: FleetRates; readonly atMs: number } | null = null;
  let last: { readonly left: number; readonly requests: number; readonly atMs: number } | null = null;
  let first: { readonly left: number; readonly requests: number } | null = null;
  const reckon = (nowMs: number): number => {
    if (fleet === null || nowMs - fleet.atMs >= RATES_EVERY_MS)
      fleet = { rates: rates(serverClock.nowMs()), atMs: nowMs };
    const plan = store.account()?.plan;
    const devices = fleet.rates.devices
      .filter(({ deviceId }) => backfill.covers(deviceId))
      .map((device) => ({ ...device, held: coveredIntervals(store.telemetry(device.deviceId).covered) }));
    return backfillNeed({
      devices,
      span: { from: BigInt(backfill.args.from), to: backfill.to },
      now: msToNs(backfill.startedMs),
      pageSize: Math.max(1, Math.min(PAGE, plan?.maxDevicesPerPage ?? PAGE)),
      windowNs: windowSpanNs(plan?.historyMaxDays ?? null),
    }).requests;
  };
  return () => {
    if (backfill.args.from === 'all') return null;
    const nowMs = clock.monoMs();
    const { requests } = backfill.tally.counts();
    // While no request is sent, nothing changes: the wait for a day's quota would compute the same for hours.
    if (last !== null && (requests === last.requests || nowMs - last.atMs < ESTIMATE_EVERY_MS)) return last.left;
    const reckoned = reckon(nowMs);
    first ??= { left: reckoned, requests };
    const [made, thought] = [requests - first.requests, first.left - reckoned];
    const factor =
      made < TELLING_REQUESTS || thought < TELLING_REQUESTS ? 1 : Math.min(3, Math.max(0.5, made / thought));
    last = { left: Math.ceil(reckoned * factor), requests, atMs: nowMs };
    return last.left;
  };
}
