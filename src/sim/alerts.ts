/**
 * Generates the alerts of a simulated world: about one per `everyMs`, of a device that measures a value beyond the
 * threshold of a rule then. While it is open, an alert fires again and again; it may be acknowledged, is resolved after
 * minutes or days, and is sometimes reopened.
 */

import { type EpochMs, HOUR_MS, MINUTE_MS } from '../core/time.ts';
import type { DeviceContext, WorldDevice } from './devices.ts';
import { formatMs, type Precision } from './instants.ts';
import { chance, mix, pick, type Seed, unit, whole } from './random.ts';
import { type AlertSpec, type AlertState, type Change, type SensorSpec, type SimAlert, valueAt } from './spec.ts';

/** Where a listing continues: behind this alert. */
export interface AlertPosition {
  readonly openedAtMs: EpochMs;
  readonly alertId: number;
}

/** The alerts as of a moment, newest first (by `openedAtMs`, then by id). */
type AlertList = (atMs: EpochMs, behind: AlertPosition | null) => Iterable<SimAlert>;

interface Rule {
  readonly name: string;
  readonly kind: string;
  readonly sensor: string;
  readonly above: boolean;
  readonly unit: string;
}

const RULES: readonly Rule[] = [
  { name: 'Too warm', kind: 'threshold', sensor: 'temperature', above: true, unit: '°C' },
  { name: 'Too cold', kind: 'threshold', sensor: 'temperature', above: false, unit: '°C' },
  { name: 'Damp', kind: 'threshold', sensor: 'humidity', above: true, unit: '%' },
  { name: 'Battery low', kind: 'battery', sensor: 'battery_voltage', above: false, unit: 'V' },
  { name: 'Stale air', kind: 'threshold', sensor: 'co2', above: true, unit: 'ppm' },
  { name: 'Weak signal', kind: 'signal', sensor: 'rssi', above: false, unit: 'dBm' },
  { name: 'High load', kind: 'threshold', sensor: 'power', above: true, unit: 'W' },
];

/** Half of the daily curve beyond the usual level of the sensor, with a digit less than its values. */
function dailyThreshold({ above }: Rule, { base, swing, decimals }: SensorSpec): number {
  const scale = 10 ** Math.max(0, decimals - 1);
  return Math.round((base + (above ? swing : -swing) / 2) * scale) / scale;
}

/** The value that the daily curve of the device reaches on a few days, for an hour or two. */
function rareThreshold({ above }: Rule, { swing, noise, decimals }: SensorSpec, level: number): number {
  const scale = 10 ** decimals;
  return Math.round((level + (above ? 1 : -1) * (1.2 * swing + 0.3 * noise)) * scale) / scale;
}

/** A device that a rule can watch. */
export type AlertDevice = Pick<WorldDevice, 'sensors' | 'levelOf' | 'valueAt'> & { readonly deviceId: string };

interface AlertModel extends DeviceContext {
  readonly everyMs: number;
  /** Whether a device crosses its thresholds on a few days only; else it does every day. */
  readonly isRare?: boolean | undefined;
  /** A device that a rule can watch at a moment, by chance; `null` where there is none. */
  readonly deviceAt: (seed: Seed, atMs: EpochMs) => AlertDevice | null;
}

/** Alerts by the seed. Ids ascend with time, so that any alert is found without looking at the others. */
export function seededAlerts(model: AlertModel): AlertList {
  const described = new Map<number, AlertSpec | null>();
  const describeOnce = (index: number, openedAtMs: EpochMs): AlertSpec | null => {
    const known = described.get(index);
    if (known !== undefined) return known;
    const spec = describe(model, index, openedAtMs);
    described.set(index, spec);
    return spec;
  };
  const openedAtMs = (index: number): number =>
    Math.floor(model.startMs + (index + unit(mix(model.seed, index)) * 0.9) * model.everyMs);
  return function* (atMs, behind) {
    const newest = Math.floor((atMs - model.startMs) / model.everyMs);
    let index = behind === null ? newest : Math.min(newest, behind.alertId - FIRST_ID - 1);
    for (; index >= 0; index -= 1) {
      const opened = openedAtMs(index);
      if (opened > atMs) continue;
      const spec = describeOnce(index, opened);
      if (spec !== null) yield alertAt(spec, atMs, model.precision);
    }
  };
}

const FIRST_ID = 1000;

/** A rule with a device that it watches. */
interface Watch {
  readonly rule: Rule;
  readonly device: AlertDevice;
  readonly threshold: number;
}

/** So many devices are looked at for one that measures a value beyond a threshold. */
const DEVICES_TRIED = 16;

/** A rule and a device of which it fires at a moment; `null` where none is found. */
function firingAt(model: AlertModel, seed: Seed, atMs: EpochMs): Watch | null {
  const drawThreshold = (rule: Rule, spec: SensorSpec, device: AlertDevice): number =>
    model.isRare === true ? rareThreshold(rule, spec, device.levelOf(spec)) : dailyThreshold(rule, spec);
  for (let attempt = 0; attempt < DEVICES_TRIED; attempt += 1) {
    const device = model.deviceAt(mix(seed, 64 + attempt), atMs);
    if (device === null) return null;
    const firing = RULES.flatMap((rule): Watch[] => {
      const spec = device.sensors.find(({ key }) => key === rule.sensor);
      return spec === undefined ? [] : [{ rule, device, threshold: drawThreshold(rule, spec, device) }];
    }).filter((watch) => firedValue(watch, atMs) !== null);
    if (firing.length > 0) return pick(mix(seed, 1), firing);
  }
  return null;
}

/** The measured value beyond the threshold; `null` while it measures nothing, or a value within it. */
function firedValue({ rule, device, threshold }: Watch, atMs: EpochMs): number | null {
  const value = device.valueAt(rule.sensor, atMs);
  if (value === null) return null;
  return (rule.above ? value > threshold : value < threshold) ? value : null;
}

function describe(model: AlertModel, index: number, openedAtMs: EpochMs): AlertSpec | null {
  const seed = mix(model.seed, index);
  const watch = firingAt(model, seed, openedAtMs);
  if (watch === null) return null;
  const { rule, device, threshold } = watch;
  return {
    alertId: FIRST_ID + index,
    deviceId: device.deviceId,
    openedAtMs,
    ruleName: rule.name,
    kind: rule.kind,
    sensor: rule.sensor,
    condition: `${rule.sensor} ${rule.above ? 'above' : 'below'} ${threshold} ${rule.unit}`,
    threshold,
    changes: alertLife(watch, seed, openedAtMs),
  };
}

/** It fires again only while the device measures a value beyond the threshold. */
function alertLife(watch: Watch, seed: Seed, openedAtMs: EpochMs): Change<AlertState>[] {
  const changes: Change<AlertState>[] = [];
  let state: AlertState = { status: 'open', fireCount: 0, value: watch.threshold };
  let atMs = openedAtMs;
  const change = (afterMs: number, next: Partial<AlertState>): void => {
    atMs += afterMs;
    state = { ...state, ...next };
    changes.push({ atMs, value: state });
  };
  const fire = (afterMs: number): boolean => {
    const value = firedValue(watch, atMs + afterMs);
    if (value !== null) change(afterMs, { status: 'open', fireCount: state.fireCount + 1, value });
    return value !== null;
  };
  fire(0);
  for (let again = whole(mix(seed, 4), 0, 4); again > 0; again -= 1) {
    fire(whole(mix(seed, 32 + again), 2, 20) * MINUTE_MS);
  }
  if (chance(mix(seed, 5), 0.6)) change(whole(mix(seed, 6), 1, 240) * MINUTE_MS, { status: 'acknowledged' });
  if (chance(mix(seed, 7), 0.02)) return changes;
  change(whole(mix(seed, 8), 1, 30) * HOUR_MS, { status: 'resolved' });
  if (chance(mix(seed, 9), 0.05) && fire(whole(mix(seed, 10), 1, 12) * HOUR_MS)) {
    change(whole(mix(seed, 11), 1, 6) * HOUR_MS, { status: 'resolved' });
  }
  return changes;
}

/** Alerts that were written down, in any order. */
export function listedAlerts(specs: readonly AlertSpec[], precision: Precision): AlertList {
  const newestFirst = [...specs].sort((a, b) => b.openedAtMs - a.openedAtMs || b.alertId - a.alertId);
  return (atMs, behind) =>
    newestFirst
      .filter((spec) => spec.openedAtMs <= atMs && (behind === null || isBehind(spec, behind)))
      .map((spec) => alertAt(spec, atMs, precision));
}

function isBehind(spec: AlertPosition, { openedAtMs, alertId }: AlertPosition): boolean {
  return spec.openedAtMs < openedAtMs || (spec.openedAtMs === openedAtMs && spec.alertId < alertId);
}

function alertAt(spec: AlertSpec, atMs: EpochMs, precision: Precision): SimAlert {
  const { alertId, deviceId, openedAtMs, sensor = 'temperature', threshold = 0 } = spec;
  return {
    alertId,
    deviceId,
    ruleName: spec.ruleName ?? `Rule ${alertId}`,
    kind: spec.kind ?? 'threshold',
    sensor,
    condition: spec.condition ?? `${sensor} above ${threshold}`,
    threshold,
    openedAtMs,
    openedAt: formatMs(openedAtMs, precision),
    ...valueAt<AlertState>({ status: 'open', fireCount: 1, value: threshold }, spec.changes ?? [], atMs),
  };
}
