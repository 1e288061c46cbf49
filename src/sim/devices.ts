/**
 * A device of the world: what its description says of it at any moment, and its series of readings.
 */
import type { EpochMs, EpochNs } from '../core/time.ts';
import { formatMs, type Precision } from './instants.ts';
import { mixText, type Seed, whole } from './random.ts';
import { createMeasure, sensorsOf } from './sensors.ts';
import { createSeries, listSeries, type Series } from './series.ts';
import { type DeviceSpec, type Lifecycle, type MsSpan, mergeSpans, type SimDevice, valueAt } from './spec.ts';
import { applyTraits } from './traits.ts';

/** A device with everything that is left out of its description filled in. */
export interface WorldDevice {
  readonly spec: DeviceSpec;
  readonly series: Series;
  readonly intervalMs: number;
  /** The keys of its sensors, without what its traits add. */
  readonly sensors: readonly string[];
  /** Whether the workspace has it at that moment. */
  isPresent(atMs: EpochMs): boolean;
  /** Its fields at that moment. */
  look(atMs: EpochMs): SimDevice;
}

export interface DeviceContext {
  readonly seed: Seed;
  /** The beginning of the world. */
  readonly startMs: EpochMs;
  readonly precision: Precision;
}

/** Later than any reading: where times of 64 bits end. */
const END_OF_TIME_NS: EpochNs = 2n ** 63n;
const DENSE_INTERVAL_MS = 40;
const DEFAULT_INTERVAL_MS = 300_000;

/** Makes a device from its description. */
export function createDevice(spec: DeviceSpec, { seed, startMs, precision }: DeviceContext): WorldDevice {
  const own = mixText(seed, spec.deviceId);
  const traits = spec.traits ?? [];
  const appearsAtMs = spec.appearsAtMs ?? startMs;
  const intervalMs = spec.intervalMs ?? (traits.includes('dense') ? DENSE_INTERVAL_MS : DEFAULT_INTERVAL_MS);
  const absence = absenceOf(spec);
  const sensors = spec.sensors ?? sensorsOf(whole(own, 2, 5));
  const measure = createMeasure(sensors, own);
  const burst = spec.burst ?? { every: 300, size: 250 };
  const series =
    spec.readings !== undefined
      ? listSeries(spec.readings, precision)
      : createSeries({
          seed: own,
          startMs: Math.max(startMs, appearsAtMs),
          intervalMs,
          jitter: spec.jitter ?? 0,
          quiet: mergeSpans([...(spec.silences ?? []), ...inactivity(spec), ...absence]),
          precision,
          report: (index, atMs) => applyTraits(measure(index, atMs), index, { traits, seed: own, burst }),
        });
  return {
    spec,
    series,
    intervalMs,
    sensors: sensors.map(({ key }) => key),
    isPresent: (atMs) => atMs >= appearsAtMs && !absence.some(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs),
    look: (atMs) => look({ spec, series, intervalMs, precision, startMs }, atMs),
  };
}

function absenceOf({ vanishesAtMs, returnsAtMs }: DeviceSpec): MsSpan[] {
  return vanishesAtMs === undefined ? [] : [{ fromMs: vanishesAtMs, toMs: returnsAtMs ?? Infinity }];
}

/** When the device is paused, shelved or retired. */
function inactivity({ lifecycle = [] }: DeviceSpec): MsSpan[] {
  return lifecycle.flatMap(({ atMs, value }, at) =>
    value === 'active' ? [] : [{ fromMs: atMs, toMs: lifecycle[at + 1]?.atMs ?? Infinity }],
  );
}

interface Looks extends Pick<WorldDevice, 'spec' | 'series' | 'intervalMs'> {
  readonly precision: Precision;
  readonly startMs: EpochMs;
}

function look({ spec, series, intervalMs, precision }: Looks, atMs: EpochMs): SimDevice {
  const parentDeviceId = valueAt(spec.parentDeviceId ?? null, spec.moves ?? [], atMs);
  const lifecycleStatus = valueAt<Lifecycle>('active', spec.lifecycle ?? [], atMs);
  const seen = lastSeen(series, atMs);
  const online = lifecycleStatus === 'active' && seen !== null && atMs - seen.atMs <= 3 * intervalMs + 60_000;
  return {
    deviceId: spec.deviceId,
    name: valueAt(spec.name ?? spec.deviceId, spec.renames ?? [], atMs),
    modelId: spec.modelId ?? (parentDeviceId === null ? 'hub-2' : 'sense-1'),
    firmwareVersion: valueAt(spec.firmwareVersion ?? '1.0.0', spec.firmwareChanges ?? [], atMs),
    isAddon: parentDeviceId !== null,
    parentDeviceId,
    lifecycleStatus,
    online,
    presence: presenceOf(online, lifecycleStatus, seen !== null),
    lastSeenAt: seen?.text ?? null,
    latitude: spec.location?.latitude ?? null,
    longitude: spec.location?.longitude ?? null,
    locationUpdatedAt: spec.location == null ? null : formatMs(spec.location.updatedAtMs, precision),
    tags: spec.tags ?? [],
  };
}

function presenceOf(online: boolean, lifecycle: Lifecycle, seen: boolean): string {
  if (online) return 'reporting';
  if (lifecycle !== 'active') return lifecycle;
  return seen ? 'no_signal' : 'never_seen';
}

/** The newest reading that was received by then, as the platform knows it before the API serves it. */
function lastSeen(series: Series, atMs: EpochMs): { atMs: EpochMs; text: string } | null {
  const stretch = { fromNs: 0n, toNs: END_OF_TIME_NS, receivedByMs: atMs };
  for (const { visibleAtMs, recordedAt } of series.descending(stretch)) {
    if (visibleAtMs <= atMs) return { atMs: visibleAtMs, text: recordedAt };
  }
  return null;
}
