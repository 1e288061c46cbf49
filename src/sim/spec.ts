/**
 * The descriptions of a simulated world: devices and alerts, and their properties at a moment.
 *
 * A description is a few lines for any length of history. Everything else follows from it and the seed.
 */
import type { EpochMs, EpochNs } from '../core/time.ts';
import type { Seed } from './random.ts';

/** A property that becomes `value` at `atMs`. */
export interface Change<T> {
  readonly atMs: EpochMs;
  readonly value: T;
}

/** The moments `fromMs <= t < toMs`; `Infinity` means forever. */
export interface MsRange {
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
}

export type Lifecycle = 'active' | 'paused' | 'shelved' | 'retired';

/** A sensor: a daily curve with noise, `decimals` digits after the point, within `min` and `max`. */
export interface SensorSpec {
  readonly key: string;
  readonly base: number;
  /** The height of the daily curve, in the unit of the sensor. */
  readonly swing: number;
  /** The width of the noise, in the unit of the sensor. */
  readonly noise: number;
  readonly decimals: number;
  readonly min: number;
  readonly max: number;
  /** The sensor is in every nth reading. */
  readonly every: number;
}

/** A sensor key and its value as JSON text: some values, such as `1e400`, are no JavaScript number. */
export type SimValue = readonly [key: string, json: string];

/** A reading that a test defines itself. */
export interface ReadingSpec {
  readonly recordedAtNs: EpochNs;
  readonly values: readonly SimValue[] | null;
  /** When the API begins to serve the reading; the reading's own time if absent. */
  readonly visibleAtMs?: EpochMs;
}

/** Where a device is, in degrees. */
export interface LocationSpec {
  readonly latitude: number;
  readonly longitude: number;
  readonly updatedAtMs: EpochMs;
}

/** A device from its first day to its last. Only the id is required; every other field has a plain default. */
export interface DeviceSpec {
  readonly deviceId: string;
  readonly name?: string;
  readonly renames?: readonly Change<string>[];
  readonly modelId?: string;
  readonly firmwareVersion?: string;
  readonly firmwareChanges?: readonly Change<string>[];
  /** The hub of an add-on; `null` for a hub. */
  readonly parentDeviceId?: string | null;
  readonly moves?: readonly Change<string | null>[];
  /** Active until the first change. A device reports only while it is active. */
  readonly lifecycle?: readonly Change<Lifecycle>[];
  /** When it joins the workspace; the beginning of the world if absent. */
  readonly appearsAtMs?: EpochMs;
  /** When it leaves the workspace: not listed, 404, no more readings. */
  readonly vanishesAtMs?: EpochMs;
  /** When it returns, with its history. */
  readonly returnsAtMs?: EpochMs;
  readonly intervalMs?: number;
  /** The spread of the report times, as a part of the interval, 0 to 1. With 0 they lie exactly on the grid. */
  readonly jitter?: number;
  readonly silences?: readonly MsRange[];
  readonly sensors?: readonly SensorSpec[];
  /** Returns the values of the readings in one report, from the values of the sensors; at least one reading. */
  readonly report?: (values: readonly SimValue[], index: number, seed: Seed) => readonly (readonly SimValue[] | null)[];
  /** Exactly these readings, in any order, instead of computed ones. */
  readonly readings?: readonly ReadingSpec[];
  readonly location?: LocationSpec | null;
  readonly tags?: readonly string[];
}

/** A device at a moment, with the fields of the API document. */
export interface SimDevice {
  readonly deviceId: string;
  readonly name: string;
  readonly modelId: string;
  readonly firmwareVersion: string;
  readonly isAddon: boolean;
  readonly parentDeviceId: string | null;
  readonly lifecycleStatus: Lifecycle;
  readonly online: boolean;
  readonly presence: string;
  readonly lastSeenAt: string | null;
  readonly latitude: number | null;
  readonly longitude: number | null;
  readonly locationUpdatedAt: string | null;
  readonly tags: readonly string[];
}

/** One telemetry reading, as it is served forever. */
export interface SimReading {
  /** Total order within the device: ascending with time, and unambiguous for equal times. */
  readonly position: number;
  readonly recordedAtNs: EpochNs;
  /** `recordedAtNs` with the digits that are served. */
  readonly recordedAt: string;
  /** The earliest time at which it can be served: never before it was received. */
  readonly visibleAtMs: EpochMs;
  /** The values in the order served; `null` is served as `"values":null`. */
  readonly values: readonly SimValue[] | null;
}

type AlertStatus = 'open' | 'acknowledged' | 'resolved';

/** The members of an alert that change. */
export interface AlertState {
  readonly status: AlertStatus;
  readonly fireCount: number;
  readonly value: number;
}

/** An alert that a test defines itself. */
export interface AlertSpec {
  readonly alertId: number;
  readonly deviceId: string;
  readonly openedAtMs: EpochMs;
  readonly ruleName?: string;
  readonly kind?: string;
  readonly sensor?: string;
  readonly condition?: string;
  readonly threshold?: number;
  /** Before the first change: open, fired once, at the threshold. */
  readonly changes?: readonly Change<AlertState>[];
}

/** An alert at a moment, with the fields of the API document. */
export interface SimAlert extends AlertState {
  readonly alertId: number;
  readonly deviceId: string;
  readonly ruleName: string;
  readonly kind: string;
  readonly sensor: string;
  readonly condition: string;
  readonly threshold: number;
  readonly openedAtMs: EpochMs;
  readonly openedAt: string;
}

/** The value of a property at `atMs`: `first` before the earliest change. `changes` must be ascending. */
export function valueAt<T>(first: T, changes: readonly Change<T>[], atMs: EpochMs): T {
  let value = first;
  for (const change of changes) {
    if (change.atMs > atMs) break;
    value = change.value;
  }
  return value;
}

/** Ranges in ascending order. Overlapping ones are merged, empty ones removed. */
export function mergeRanges(ranges: readonly MsRange[]): MsRange[] {
  const merged: MsRange[] = [];
  for (const range of ranges.filter(({ fromMs, toMs }) => fromMs < toMs).sort((a, b) => a.fromMs - b.fromMs)) {
    const last = merged.at(-1);
    if (last === undefined || range.fromMs > last.toMs) merged.push(range);
    else merged[merged.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, range.toMs) };
  }
  return merged;
}
