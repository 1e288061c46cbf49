/**
 * The descriptions of a simulated world: devices and alerts, and their properties at a moment.
 *
 * A description is a few lines however long the history is; everything else follows from it and the seed.
 */
import type { EpochMs, EpochNs } from '../core/time.ts';
import type { Seed } from './random.ts';

/** Something that becomes `value` at `atMs`. */
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

/** A sensor: a daily curve with noise, `decimals` digits behind the point, within `min` and `max`. */
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

/** A reading that a test writes down itself. */
export interface ReadingSpec {
  readonly recordedAtNs: EpochNs;
  readonly values: readonly SimValue[] | null;
  /** When the API begins to serve it; its own time where this is left out. */
  readonly visibleAtMs?: EpochMs;
}

/** Where a device is, in degrees. */
export interface LocationSpec {
  readonly latitude: number;
  readonly longitude: number;
  readonly updatedAtMs: EpochMs;
}

/** A device from its first day to its last. Only the id is needed; a field that is left out gets a plain default. */
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
  /** When it joins the workspace; the beginning of the world where left out. */
  readonly appearsAtMs?: EpochMs;
  /** When it leaves the workspace: not listed, 404, no more readings. */
  readonly vanishesAtMs?: EpochMs;
  /** When it comes back, with its history. */
  readonly returnsAtMs?: EpochMs;
  readonly intervalMs?: number;
  /** Spread of the report times, as a part of the interval, 0 to 1. With 0 they lie exactly on the grid. */
  readonly jitter?: number;
  readonly silences?: readonly MsRange[];
  readonly sensors?: readonly SensorSpec[];
  /** The values of the readings of one report, made of what the sensors measured; at least one reading. */
  readonly report?: (values: readonly SimValue[], index: number, seed: Seed) => readonly (readonly SimValue[] | null)[];
  /** Exactly these readings, in any order, in place of computed ones. */
  readonly readings?: readonly ReadingSpec[];
  readonly location?: LocationSpec | null;
  readonly tags?: readonly string[];
}

/** A device at a moment, by the API document's fields. */
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
  /** Total order within the device; ascending with time, and exact where times are equal. */
  readonly position: number;
  readonly recordedAtNs: EpochNs;
  /** `recordedAtNs` with the digits that are served. */
  readonly recordedAt: string;
  /** When it can be served at the earliest; a reading never is before it was received. */
  readonly visibleAtMs: EpochMs;
  /** In the order served; `null` is served as `"values":null`. */
  readonly values: readonly SimValue[] | null;
}

type AlertStatus = 'open' | 'acknowledged' | 'resolved';

/** The members of an alert that change. */
export interface AlertState {
  readonly status: AlertStatus;
  readonly fireCount: number;
  readonly value: number;
}

/** An alert that a test writes down itself. */
export interface AlertSpec {
  readonly alertId: number;
  readonly deviceId: string;
  readonly openedAtMs: EpochMs;
  readonly ruleName?: string;
  readonly kind?: string;
  readonly sensor?: string;
  readonly condition?: string;
  readonly threshold?: number;
  /** Open, fired once, at the threshold, until the first change. */
  readonly changes?: readonly Change<AlertState>[];
}

/** An alert at a moment, by the API document's fields. */
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

/** The value of something at `atMs`: `first` until the earliest change. `changes` ascend. */
export function valueAt<T>(first: T, changes: readonly Change<T>[], atMs: EpochMs): T {
  let value = first;
  for (const change of changes) {
    if (change.atMs > atMs) break;
    value = change.value;
  }
  return value;
}

/** Spans in ascending order, overlapping ones merged, empty ones dropped. */
export function mergeRanges(ranges: readonly MsRange[]): MsRange[] {
  const merged: MsRange[] = [];
  for (const range of ranges.filter(({ fromMs, toMs }) => fromMs < toMs).sort((a, b) => a.fromMs - b.fromMs)) {
    const last = merged.at(-1);
    if (last === undefined || range.fromMs > last.toMs) merged.push(range);
    else merged[merged.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, range.toMs) };
  }
  return merged;
}
