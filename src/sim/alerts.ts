/**
 * Generates the alerts of a simulated world: about one per `everyMs`. While it is open, an alert fires again and again;
 * it may be acknowledged, is resolved after minutes or days, and is sometimes reopened.
 */

import { type EpochMs, HOUR_MS, MINUTE_MS } from '../core/time.ts';
import type { DeviceContext } from './devices.ts';
import { formatMs, type Precision } from './instants.ts';
import { chance, mix, pick, type Seed, unit, whole } from './random.ts';
import { type AlertSpec, type AlertState, type Change, type SimAlert, valueAt } from './spec.ts';

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
  readonly threshold: number;
  readonly unit: string;
}

const RULES: readonly Rule[] = [
  { name: 'Too warm', kind: 'threshold', sensor: 'temperature', above: true, threshold: 8, unit: '°C' },
  { name: 'Too cold', kind: 'threshold', sensor: 'temperature', above: false, threshold: 2, unit: '°C' },
  { name: 'Damp', kind: 'threshold', sensor: 'humidity', above: true, threshold: 75, unit: '%' },
  { name: 'Battery low', kind: 'battery', sensor: 'battery_voltage', above: false, threshold: 2.4, unit: 'V' },
  { name: 'Stale air', kind: 'threshold', sensor: 'co2', above: true, threshold: 1200, unit: 'ppm' },
  { name: 'Weak signal', kind: 'signal', sensor: 'rssi', above: false, threshold: -105, unit: 'dBm' },
];

/** A device that a rule can watch. */
export interface AlertDevice {
  readonly deviceId: string;
  readonly sensors: readonly string[];
}

interface AlertModel extends DeviceContext {
  readonly everyMs: number;
  /** A device that a rule can watch at a moment, by chance; `null` where there is none. */
  readonly deviceAt: (seed: Seed, atMs: EpochMs) => AlertDevice | null;
}

/** Alerts by the seed. Ids ascend with time, so that any alert is found without looking at the others. */
export function seededAlerts(model: AlertModel): AlertList {
  const described = new Map<number, AlertSpec | null>();
  const specOf = (index: number, openedAtMs: EpochMs): AlertSpec | null => {
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
      const spec = specOf(index, opened);
      if (spec !== null) yield alertAt(spec, atMs, model.precision);
    }
  };
}

const FIRST_ID = 1000;

function describe(model: AlertModel, index: number, openedAtMs: EpochMs): AlertSpec | null {
  const seed = mix(model.seed, index);
  const device = model.deviceAt(mix(seed, 2), openedAtMs);
  if (device === null) return null;
  const fitting = RULES.filter(({ sensor }) => device.sensors.includes(sensor));
  const rule = pick(mix(seed, 1), fitting.length > 0 ? fitting : RULES);
  return {
    alertId: FIRST_ID + index,
    deviceId: device.deviceId,
    openedAtMs,
    ruleName: rule.name,
    kind: rule.kind,
    sensor: rule.sensor,
    condition: `${rule.sensor} ${rule.above ? 'above' : 'below'} ${rule.threshold} ${rule.unit}`,
    threshold: rule.threshold,
    changes: lifeOf(rule, seed, openedAtMs),
  };
}

function lifeOf(rule: Rule, seed: Seed, openedAtMs: EpochMs): Change<AlertState>[] {
  const changes: Change<AlertState>[] = [];
  let state: AlertState = { status: 'open', fireCount: 1, value: measured(rule, mix(seed, 3)) };
  let atMs = openedAtMs;
  const change = (afterMs: number, next: Partial<AlertState>): void => {
    atMs += afterMs;
    state = { ...state, ...next };
    changes.push({ atMs, value: state });
  };
  change(0, {});
  for (let fire = whole(mix(seed, 4), 0, 4); fire > 0; fire -= 1) {
    const at = mix(seed, 32 + fire);
    change(whole(at, 2, 20) * MINUTE_MS, { fireCount: state.fireCount + 1, value: measured(rule, at) });
  }
  if (chance(mix(seed, 5), 0.6)) change(whole(mix(seed, 6), 1, 240) * MINUTE_MS, { status: 'acknowledged' });
  if (chance(mix(seed, 7), 0.02)) return changes;
  change(whole(mix(seed, 8), 1, 30) * HOUR_MS, { status: 'resolved' });
  if (chance(mix(seed, 9), 0.05)) {
    change(whole(mix(seed, 10), 1, 12) * HOUR_MS, { status: 'open', fireCount: state.fireCount + 1 });
    change(whole(mix(seed, 11), 1, 6) * HOUR_MS, { status: 'resolved' });
  }
  return changes;
}

function measured(rule: Rule, seed: Seed): number {
  const over = (0.02 + unit(seed) * 0.3) * Math.max(1, Math.abs(rule.threshold));
  return Math.round((rule.threshold + (rule.above ? over : -over)) * 100) / 100;
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
