/**
 * How far a backfill is: what is covered and what is open of each device and why, what its requests brought, an estimate of
 * how many are left, and how long that will take.
 */

import { coveredIntervals } from '../../core/coverage.ts';
import type { AppEvent } from '../../core/events.ts';
import type { FleetRates } from '../../core/fleet.ts';
import { CLOSED_BY_NONE, holdingsOf, wantedOf } from '../../core/holdings.ts';
import type { Clock } from '../../core/ports.ts';
import type { ArchiveTotals } from '../../core/state/log.ts';
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
  /** Whether what is held of the stretch has readings in it. */
  readonly hasReadings: boolean;
  /** The oldest reading that is held at all. */
  readonly oldest: EpochNs | null;
}

export interface BackfillLook {
  readonly devices: readonly BackfilledDevice[];
  readonly wholeMs: number;
  readonly openMs: number;
  /** Reasons of holes that more work could close. */
  readonly openFor: ReadonlySet<string>;
}

/** Looks at every device of it. */
export function lookAt({ store, settings }: SyncContext, backfill: Backfill): BackfillLook {
  const known = new Map(store.devices().map((device) => [device.record.deviceId, device]));
  const devices = backfill.deviceIds.flatMap((deviceId): BackfilledDevice[] => {
    const device = known.get(deviceId);
    if (device === undefined) return [];
    const { spans } = store.telemetry(deviceId);
    const wanted = wantedOf(device, backfill.wanted(deviceId));
    const isExcluded = settings.filter.excludes(device.record);
    const { holes } = holdingsOf({ ...device, isExcluded }, { spans, gaps: store.gaps(deviceId) }, wanted);
    return [
      {
        deviceId,
        name: device.name,
        wholeMs: Math.max(0, nsToMs(wanted.to - wanted.from)),
        openMs: holes.reduce((sum, hole) => sum + gapMs(hole), 0),
        holes,
        hasReadings: hasReadings(spans, wanted),
        oldest: oldestReading(spans),
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

export type BackfillCounts = Pick<ArchiveTotals, 'requests' | 'readings' | 'points'>;

/** Counts what the requests of backfills bring. */
export interface BackfillNotes {
  observe(event: AppEvent): void;
  /** Begins to count anew. */
  begin(): void;
  counts(): BackfillCounts;
  /** Requests a minute lately; `null` while too few were made to tell. */
  perMinute(): number | null;
}

/** What the rate goes by. */
const RATE_OVER_MS = 5 * MINUTE_MS;
const LEAST_REQUESTS = 3;
const RECENT_AT_MOST = 1000;

/** How often the rates are looked at, and what is left is reckoned with them. */
const RATES_EVERY_MS = MINUTE_MS;
const ESTIMATE_EVERY_MS = 5 * SECOND_MS;

/** What was asked is held against what was thought from so many requests on. */
const TELLING_REQUESTS = 20;

const PAGE = 200;

/** Nothing was counted yet. */
export function createBackfillNotes(clock: Clock): BackfillNotes {
  let counts = { requests: 0, readings: 0, points: 0 };
  let recent: number[] = [];
  let beganMs = clock.monoMs();
  return {
    observe: (event) => {
      if (event.type === 'request-done' && event.lane === 'backfill') {
        const nowMs = clock.monoMs();
        counts = { ...counts, requests: counts.requests + 1 };
        recent = [...recent.filter((atMs) => nowMs - atMs < RATE_OVER_MS), nowMs].slice(-RECENT_AT_MOST);
      }
      if (event.type === 'page-landed' && event.lane === 'backfill') {
        const { readings, points } = counts;
        counts = { ...counts, readings: readings + event.readings, points: points + event.newPoints };
      }
    },
    begin: () => {
      counts = { requests: 0, readings: 0, points: 0 };
      recent = [];
      beganMs = clock.monoMs();
    },
    counts: () => counts,
    perMinute: () => {
      const nowMs = clock.monoMs();
      const made = recent.filter((atMs) => nowMs - atMs < RATE_OVER_MS);
      const first = made[0];
      if (first === undefined || made.length < LEAST_REQUESTS) return null;
      const isAll = made.length < RECENT_AT_MOST;
      const overMs = Math.max(1, isAll ? Math.min(nowMs - beganMs, RATE_OVER_MS) : nowMs - first);
      return (made.length * MINUTE_MS) / overMs;
    },
  };
}

/** What all that is left waits for, where no estimate can tell how long that will be. */
export function waitsFor({ devices }: BackfillLook): string | null {
  const open = devices.filter(({ holes }) => holes.some(({ reason }) => !CLOSED_BY_NONE.has(reason)));
  const isMute = open.every(({ holes }) => holes.some(({ reason }) => reason === 'device unreachable'));
  if (open.length === 0 || !isMute) return null;
  return `waits for ${counted(open.length, 'device')} that cannot be reached`;
}

export function etaOf(left: number | null, perMinute: number | null): NonNullable<ProgressReport['eta']> | null {
  // What was thought is asked: what is left now is a matter of delivery, or of what nobody could think of.
  if (left === null || left <= 0 || perMinute === null || perMinute <= 0) return null;
  const rate = perMinute < 10 ? perMinute.toFixed(1) : String(Math.round(perMinute));
  const seconds = Math.round((left / perMinute) * 60);
  return { seconds, basis: `about ${grouped(left)} requests at ${rate} a minute` };
}

export interface EstimateParts {
  readonly context: SyncContext;
  readonly notes: BackfillNotes;
  /** How often the devices report, as far as is known. A look at all of them. */
  readonly rates: (nowMs: EpochMs) => FleetRates;
}

/** How many requests are left, as well as that can be reckoned; `null` where the end is not known. */
export function createEstimate({ context, notes, rates }: EstimateParts, backfill: Backfill): () => number | null {
  const { store, clock, serverClock } = context;
  let fleet: { readonly rates: FleetRates; readonly atMs: number } | null = null;
  let last: { readonly left: number; readonly atMs: number } | null = null;
  let first: { readonly left: number; readonly requests: number } | null = null;
  const reckon = (nowMs: number): number => {
    if (fleet === null || nowMs - fleet.atMs >= RATES_EVERY_MS)
      fleet = { rates: rates(serverClock.nowMs()), atMs: nowMs };
    const plan = store.account()?.plan;
    const devices = fleet.rates.devices
      .filter(({ deviceId }) => backfill.covers(deviceId))
      .map((device) => ({ ...device, held: coveredIntervals(store.telemetry(device.deviceId).spans) }));
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
    if (last !== null && nowMs - last.atMs < ESTIMATE_EVERY_MS) return last.left;
    const { requests } = notes.counts();
    const reckoned = reckon(nowMs);
    first ??= { left: reckoned, requests };
    const [made, thought] = [requests - first.requests, first.left - reckoned];
    const factor =
      made < TELLING_REQUESTS || thought < TELLING_REQUESTS ? 1 : Math.min(3, Math.max(0.5, made / thought));
    last = { left: Math.ceil(reckoned * factor), atMs: nowMs };
    return last.left;
  };
}
