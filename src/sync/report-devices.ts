/**
 * The part of the report that looks at every device: what is held of each, and the sums over all of them. One look at a
 * device tells all: there may be ten thousand of them.
 */
import type { ListedLook } from '../core/device-list.ts';
import type { DeviceFilter } from '../core/filter.ts';
import { coveredShare, holdingsOf, toldEmpty, wantedOf } from '../core/holdings.ts';
import type { KnownDevice } from '../core/inventory-state.ts';
import type { Store } from '../core/state.ts';
import type { DeviceStatus, FreshnessStatus, GapSum } from '../core/status.ts';
import { type HeldNow, NOTHING_HELD } from '../core/telemetry-state.ts';
import { formatExact } from '../core/time.ts';
import type { Horizon } from './context.ts';
import { limitFor } from './horizon.ts';

/** What devices are looked at by. */
export interface DeviceView {
  readonly filter: DeviceFilter;
  readonly horizon: Horizon;
  /** For how long the newest stretch of a device may be open. */
  readonly openSeconds: number;
}

/** A device as the report tells of it. */
export interface DeviceLook {
  readonly status: DeviceStatus;
  readonly isExcluded: boolean;
  readonly isGone: boolean;
  /** The part of what is wanted that is held, 0 to 1. */
  readonly share: number;
}

/** Looks at one device. */
export function lookAtDevice(
  { filter, horizon, openSeconds }: DeviceView,
  device: KnownDevice,
  held: HeldNow,
): DeviceLook {
  const { spans, gaps } = held;
  const wanted = wantedOf(device, { from: horizon.wantedFrom, to: limitFor(horizon, held) });
  const isExcluded = filter.excludes(device.record);
  const told = toldEmpty(device, held);
  const holdings = holdingsOf({ ...device, isExcluded }, { spans, gaps, told, openSeconds }, wanted);
  return {
    isExcluded,
    isGone: device.goneSinceMs !== null,
    share: coveredShare(spans, wanted, told),
    status: {
      device_id: device.record.deviceId,
      device_name: device.name,
      state: holdings.state,
      lag_seconds: spans.length === 0 ? null : holdings.lagSeconds,
      covered: spans.map(({ from, to }) => [formatExact(from), formatExact(to)] as const),
      gaps: holdings.holes,
    },
  };
}

/** Looks at all devices, without a rest: where there are ten thousand of them that takes a part of a second. */
export function listAtOnce(view: DeviceView, store: Pick<Store, 'devices' | 'heldOfAll'>): readonly ListedLook[] {
  const held = store.heldOfAll();
  return store.devices().map((device) => {
    const of = held.get(device.record.deviceId) ?? NOTHING_HELD;
    return toListedLook(device, of, lookAtDevice(view, device, of));
  });
}

/** What is kept of a look where many are kept. */
export function toListedLook({ record, name }: KnownDevice, held: HeldNow, { status, share }: DeviceLook): ListedLook {
  return {
    deviceId: record.deviceId,
    name,
    modelId: record.modelId,
    parentId: record.parentDeviceId,
    state: status.state,
    lagSeconds: status.lag_seconds,
    share,
    newestNs: held.newestNs,
  };
}

/** The sums over all devices. */
export interface DeviceSums {
  /** Devices that are not excluded. */
  readonly devices: number;
  readonly excluded: number;
  readonly complete: number;
  readonly coveredShare: number | null;
  readonly gaps: readonly GapSum[];
  /** Devices of which something is open that can be asked for, and for how long in all. */
  readonly open: { readonly devices: number; readonly seconds: number };
  readonly lag: Pick<FreshnessStatus, 'behind_devices' | 'median_seconds' | 'p95_seconds' | 'worst_seconds'>;
}

/** Adds the looks up. @param behindAfterSeconds for how long the newest stretch of a device may be open. */
export function sumUp(looks: readonly DeviceLook[], behindAfterSeconds: number): DeviceSums {
  const kept = looks.filter(({ isExcluded }) => !isExcluded);
  const there = kept.filter(({ isGone }) => !isGone);
  const lags = there.flatMap(({ status: { lag_seconds } }) => lag_seconds ?? []).sort((a, b) => a - b);
  const at = (part: number): number | null => lags[Math.min(lags.length - 1, Math.floor(lags.length * part))] ?? null;
  const isBehind = ({ lag_seconds }: DeviceStatus): boolean => lag_seconds === null || lag_seconds > behindAfterSeconds;
  const gaps = looks.flatMap(({ status }) =>
    worthTelling(status, behindAfterSeconds).map((gap) => ({ ...gap, device_id: status.device_id })),
  );
  const openIds = new Set(there.map(({ status }) => status.device_id));
  const open = gaps.filter(({ device_id }) => openIds.has(device_id));
  return {
    devices: kept.length,
    excluded: looks.length - kept.length,
    complete: kept.filter(({ status }) => isDone(status, behindAfterSeconds)).length,
    coveredShare: kept.length === 0 ? null : kept.reduce((sum, { share }) => sum + share, 0) / kept.length,
    gaps: sumsOfGaps(gaps),
    open: {
      devices: new Set(open.map(({ device_id }) => device_id)).size,
      seconds: Math.round(open.reduce((sum, gap) => sum + secondsOf(gap), 0)),
    },
    lag: {
      behind_devices: there.filter(({ status }) => isBehind(status)).length,
      median_seconds: at(0.5),
      p95_seconds: at(0.95),
      worst_seconds: lags.at(-1) ?? null,
    },
  };
}

/** The gaps without the newest end of a device that is not behind: that is open all the time. */
export function worthTelling({ gaps, lag_seconds }: DeviceStatus, behindAfterSeconds: number): DeviceStatus['gaps'] {
  const isLive = lag_seconds !== null && lag_seconds > 0 && lag_seconds <= behindAfterSeconds;
  return isLive ? gaps.slice(0, -1) : gaps;
}

/** Whether all that is wanted is held, but for the newest stretch. */
export function isDone({ lag_seconds, gaps }: DeviceStatus, mostSeconds: number): boolean {
  return lag_seconds !== null && lag_seconds <= mostSeconds && gaps.length <= (lag_seconds > 0 ? 1 : 0);
}

interface OwnedGap {
  readonly device_id: string;
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

function sumsOfGaps(gaps: readonly OwnedGap[]): GapSum[] {
  const sums = new Map<string, { devices: Set<string>; seconds: number; from: string; to: string }>();
  for (const gap of gaps) {
    const sum = sums.get(gap.reason) ?? { devices: new Set(), seconds: 0, from: gap.from, to: gap.to };
    sum.devices.add(gap.device_id);
    sum.seconds += secondsOf(gap);
    if (Date.parse(gap.from) < Date.parse(sum.from)) sum.from = gap.from;
    if (Date.parse(gap.to) > Date.parse(sum.to)) sum.to = gap.to;
    sums.set(gap.reason, sum);
  }
  return [...sums]
    .map(([reason, { devices, seconds, from, to }]) => ({
      reason,
      devices: devices.size,
      seconds: Math.round(seconds),
      from,
      to,
    }))
    .sort((a, b) => b.seconds - a.seconds);
}

function secondsOf({ from, to }: Pick<OwnedGap, 'from' | 'to'>): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}
