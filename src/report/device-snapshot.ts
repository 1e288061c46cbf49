/**
 * The snapshot of a device: its covered ranges, its gaps, its lag; and the sums over all devices. It scans
 * each device once, because there may be ten thousand of them.
 */

import { coveredShare, determineCoverage, emptyByListing, hasLag, wantedPart } from '../core/device-coverage.ts';
import { percentile } from '../core/fleet.ts';
import type { Interval } from '../core/intervals.ts';
import { RESTING } from '../core/records.ts';
import type { KnownDevice } from '../core/state/inventory.ts';
import { type CoverageNow, NOTHING_COVERED } from '../core/state/telemetry.ts';
import type { DeviceStatus, GapSum, LagStatus, StatusGap } from '../core/status.ts';
import { counted, duration, plainText } from '../core/text.ts';
import { type EpochMs, type EpochNs, formatExact, minNs, SECOND_MS } from '../core/time.ts';
import type { ReportContext, WantedRange } from '../ingest/context.ts';
import { limitFor, presentOf } from '../ingest/coverage-rules.ts';
import type { DeviceSummary } from './device-list.ts';

/** The settings and the time of a snapshot. */
export interface SnapshotView {
  readonly context: Omit<ReportContext, 'serverClock'>;
  readonly wantedRange: WantedRange;
  /** How long the newest gap of a device may be open. */
  readonly openSeconds: number;
}

/** A device as the report shows it. */
export interface DeviceSnapshot {
  readonly status: DeviceStatus;
  readonly isExcluded: boolean;
  readonly isGone: boolean;
  /** Its lifecycle status if no readings are expected in it, such as `paused`; otherwise `null`. */
  readonly resting: string | null;
  /** Whether the beginning of the wanted range has not been read yet. */
  readonly isInitial: boolean;
  /** Whether it is covered up to the present. A newest range that only waits for the next poll does not count. */
  readonly isCurrent: boolean;
  /** The covered share of the wanted range, 0 to 1. The newest range does not count while the device is not behind. */
  readonly share: number;
}

/** Takes the snapshot of one device. */
export function snapshotDevice(
  { context, wantedRange, openSeconds }: SnapshotView,
  device: KnownDevice,
  now: CoverageNow,
): DeviceSnapshot {
  const { covered, gaps } = now;
  const wanted = wantedPart(device, { from: wantedRange.wantedFrom, to: limitFor(wantedRange, now) });
  const isExcluded = context.settings.filter.excludes(device.record);
  const listedEmpty = emptyByListing(context, device, now);
  const coverage = determineCoverage({ ...device, isExcluded }, { covered, gaps, listedEmpty, openSeconds }, wanted);
  const { isInitial, isCurrent } = coverage;
  const { lifecycleStatus } = device.record;
  const resting = lifecycleStatus !== null && RESTING.has(lifecycleStatus) ? lifecycleStatus : null;
  return {
    isExcluded,
    isGone: device.goneSinceMs !== null,
    resting,
    isInitial,
    isCurrent,
    // The newest range is open all the time. While it is no longer than usual, it counts as lag and not as missing.
    share: coveredShare(covered, isCurrent ? { ...wanted, to: coverage.coveredTo } : wanted, listedEmpty),
    status: {
      device_id: device.record.deviceId,
      device_name: device.name,
      state: coverage.state,
      active: resting === null,
      newest_reading_at: now.newestNs === null ? null : formatExact(now.newestNs),
      lag_seconds: covered.length === 0 || !hasLag(coverage) ? null : coverage.lagSeconds,
      covered: upTo(presentOf(wantedRange), covered).map(
        ({ from, to }) => [formatExact(from), formatExact(to)] as const,
      ),
      gaps: coverage.gaps,
    },
  };
}

/** Takes the snapshots of all devices at once. Ten thousand devices take a fraction of a second. */
export function snapshotDevices<T>(
  view: SnapshotView,
  show: (device: KnownDevice, now: CoverageNow, snapshot: DeviceSnapshot) => T,
): readonly T[] {
  const { store } = view.context;
  const coverage = store.coverageOfAll();
  return store.devices().map((device) => {
    const now = coverage.get(device.record.deviceId) ?? NOTHING_COVERED;
    return show(device, now, snapshotDevice(view, device, now));
  });
}

/** The covered ranges up to the API's present. Coverage beyond it comes from a clock that was ahead. */
function upTo(presentNs: EpochNs, covered: readonly Interval[]): readonly Interval[] {
  if ((covered.at(-1)?.to ?? 0n) <= presentNs) return covered;
  return covered.filter(({ from }) => from < presentNs).map(({ from, to }) => ({ from, to: minNs(to, presentNs) }));
}

/** The summary of a snapshot, which is stored for each of many devices. */
export function toSummary(
  { record, name }: KnownDevice,
  covered: CoverageNow,
  { status, share, isCurrent }: DeviceSnapshot,
): DeviceSummary {
  return {
    deviceId: record.deviceId,
    name,
    modelId: record.modelId,
    parentId: record.parentDeviceId,
    state: status.state,
    active: status.active,
    lagSeconds: status.lag_seconds,
    isCurrent,
    share,
    newestNs: covered.newestNs,
  };
}

/** A silent device by name, with the time of its newest reading; `null` if it has none. */
interface SilentDevice {
  readonly name: string;
  readonly newestAt: string | null;
}

/** Complete devices in the list that report nothing. */
interface SilentSums {
  /** The active ones. Only these count as silent. */
  readonly devices: number;
  /** The first of them: one more than the number that is ever named. */
  readonly first: readonly SilentDevice[];
  /** Devices that are out of service, by their lifecycle status. */
  readonly resting: Readonly<Record<string, number>>;
}

/** How many silent devices are named. */
const MOST_NAMED = 3;

/** The totals of all devices, as the status report shows them. */
export interface DeviceSums {
  /** Devices that are not excluded. */
  readonly devices: number;
  readonly excluded: number;
  readonly complete: number;
  readonly silent: SilentSums;
  readonly coveredShare: number | null;
  readonly gaps: readonly GapSum[];
  /** Devices with a gap that can be requested, and the length of these gaps. */
  readonly open: { readonly devices: number; readonly seconds: number };
  /** Devices whose wanted range has not been read down to its beginning yet. */
  readonly initial: number;
  readonly lag: Pick<LagStatus, 'behind_devices' | 'median_seconds' | 'p95_seconds' | 'max_seconds'>;
}

/**
 * Returns the sums of snapshots.
 *
 * @param behindAfterSeconds how long the newest gap of a device may be open.
 */
export function sumUp(snapshots: readonly DeviceSnapshot[], behindAfterSeconds: number): DeviceSums {
  const tally = createDeviceTally(behindAfterSeconds);
  for (const snapshot of snapshots) countDevice(tally, snapshot);
  return sumsOf(tally);
}

/** Counts that grow device by device. */
export type DeviceTally = ReturnType<typeof createDeviceTally>;

/**
 * Creates a tally that counts no device yet.
 *
 * @param behindAfterSeconds how long the newest gap of a device may be open.
 */
export function createDeviceTally(behindAfterSeconds: number) {
  return {
    behindAfterSeconds,
    all: 0,
    polled: 0,
    complete: 0,
    silent: 0,
    behind: 0,
    share: 0,
    openDevices: 0,
    openSeconds: 0,
    initial: 0,
    unknownLags: 0,
    lags: [] as number[],
    gaps: new Map<string, GrowingSum>(),
    firstSilent: [] as SilentDevice[],
    resting: {} as Record<string, number>,
  };
}

/** Adds one device. */
export function countDevice(tally: DeviceTally, snapshot: DeviceSnapshot): void {
  const { status, isExcluded, isGone, isCurrent, share } = snapshot;
  tally.all += 1;
  addGaps(tally.gaps, status.gaps);
  if (isExcluded) return;
  tally.polled += 1;
  tally.share += share;
  if (isCurrent && status.gaps.length === 0) tally.complete += 1;
  if (!isGone) countListed(tally, snapshot);
}

function countListed(tally: DeviceTally, snapshot: DeviceSnapshot): void {
  const { status, isInitial, isCurrent } = snapshot;
  const { lag_seconds, state, gaps } = status;
  if (state === 'silent') countSilent(tally, snapshot);
  if (isInitial) tally.initial += 1;
  if (lag_seconds === null) tally.unknownLags += 1;
  else tally.lags.push(lag_seconds);
  if (!isCurrent) tally.behind += 1;
  if (gaps.length > 0) tally.openDevices += 1;
  tally.openSeconds += secondsOf(gaps);
}

function countSilent(
  tally: DeviceTally,
  { resting, status: { device_name, newest_reading_at } }: DeviceSnapshot,
): void {
  if (resting !== null) {
    tally.resting[resting] = (tally.resting[resting] ?? 0) + 1;
    return;
  }
  tally.silent += 1;
  if (tally.firstSilent.length <= MOST_NAMED) {
    tally.firstSilent.push({ name: device_name, newestAt: newest_reading_at });
  }
}

/** The totals of the devices so far. */
export function sumsOf(tally: DeviceTally): DeviceSums {
  const { all, polled, complete, silent, firstSilent: first, resting, share, behindAfterSeconds } = tally;
  return {
    devices: polled,
    excluded: all - polled,
    complete,
    silent: { devices: silent, first, resting },
    coveredShare: polled === 0 ? null : share / polled,
    gaps: inOrder(tally.gaps),
    open: { devices: tally.openDevices, seconds: Math.round(tally.openSeconds) },
    initial: tally.initial,
    lag: { behind_devices: tally.behind, ...lagFigures(tally.lags, tally.unknownLags, behindAfterSeconds) },
  };
}

/**
 * The figures of the lags. While most devices have no lag yet, the lags of the others do not represent the fleet and
 * are left out. A maximum that is too high is still shown.
 */
function lagFigures(lags: readonly number[], unknown: number, behindAfterSeconds: number) {
  const sorted = Float64Array.from(lags).sort();
  const isMostUnknown = unknown > lags.length;
  const worst = sorted.at(-1) ?? null;
  return {
    median_seconds: isMostUnknown ? null : percentile(sorted, 0.5),
    p95_seconds: isMostUnknown ? null : percentile(sorted, 0.95),
    max_seconds: isMostUnknown && (worst ?? 0) <= behindAfterSeconds ? null : worst,
  };
}

interface GrowingSum {
  devices: number;
  seconds: number;
  from: string;
  to: string;
}

/** Adds the gaps of one device to the sums of their reasons. The device counts once for each reason. */
function addGaps(sums: Map<string, GrowingSum>, gaps: readonly StatusGap[]): void {
  const seen = new Set<string>();
  for (const gap of gaps) {
    const { reason, from, to } = gap;
    const sum = sums.get(reason) ?? { devices: 0, seconds: 0, from, to };
    if (!seen.has(reason)) sum.devices += 1;
    seen.add(reason);
    sum.seconds += secondsOf([gap]);
    if (Date.parse(from) < Date.parse(sum.from)) sum.from = from;
    if (Date.parse(to) > Date.parse(sum.to)) sum.to = to;
    sums.set(reason, sum);
  }
}

/** Returns the sums with the most missing time first. */
function inOrder(sums: ReadonlyMap<string, GrowingSum>): GapSum[] {
  return [...sums]
    .map(([reason, { devices, seconds, from, to }]) => ({ reason, devices, seconds: Math.round(seconds), from, to }))
    .sort((a, b) => b.seconds - a.seconds);
}

/**
 * How many devices are silent, and if they are few, their names and for how long; and how many are out of service,
 * which means that no readings are expected from them. One sentence for each, with a space before it; empty if there
 * are none.
 */
export function silentDevicesText({ devices, first, resting }: SilentSums, nowMs: EpochMs): string {
  const longText = ({ name, newestAt }: SilentDevice): string => {
    const long = newestAt === null ? null : Math.max(0, nowMs - Date.parse(newestAt)) / SECOND_MS;
    return `${plainText(name, 40)}${long === null ? ' (no reading in the sync range)' : ` for ${duration(long)}`}`;
  };
  const named = first.length > MOST_NAMED ? '' : `: ${first.map(longText).join(', ')}`;
  const silent = devices === 0 ? '' : ` ${counted(devices, 'device')} ${devices === 1 ? 'is' : 'are'} silent${named}.`;
  const out = Object.values(resting).reduce((sum, count) => sum + count, 0);
  const statuses = Object.keys(resting).toSorted().join(' or ');
  return out === 0
    ? silent
    : `${silent} ${counted(out, 'device')} ${out === 1 ? 'is' : 'are'} out of service (${statuses}).`;
}

/** The length of these gaps together, in seconds. */
export function secondsOf(gaps: readonly StatusGap[]): number {
  return gaps.reduce((sum, { from, to }) => sum + (Date.parse(to) - Date.parse(from)) / 1000, 0);
}
