/**
 * Generates a simulated workspace from a seed: pure, and the same in every process. Only the descriptions of the
 * devices are stored; a year of a thousand devices costs no memory.
 *
 * The world contains everything that ever happens; the simulator decides what the API serves at a moment.
 *
 * About one alert is opened per `everyMs`, of a device that measures a value beyond the threshold of a rule then. While
 * it is open, an alert fires again and again; it may be acknowledged, is resolved after minutes or days, and is
 * sometimes reopened.
 */
import { DAY_MS, type EpochMs, type EpochNs, HOUR_MS, MINUTE_MS } from '../core/time.ts';
import { createDevice, type DeviceContext, type ReadingRange, type WorldDevice } from './devices.ts';
import { formatToPrecision, type Precision } from './instants.ts';
import { chance, mix, mixText, pick, type Seed, seedOf, unit, whole } from './random.ts';
import {
  type AlertSpec,
  type AlertState,
  type Change,
  type DeviceSpec,
  type SensorSpec,
  type SimAlert,
  type SimDevice,
  type SimReading,
  valueAt,
} from './spec.ts';

/** The input of {@link createWorld}. */
export interface WorldOptions {
  readonly seed: number | string;
  /** The moment that counts as now when the world begins; time continues from there forever. */
  readonly originMs: EpochMs;
  /** How far back readings go; 30 days by default. */
  readonly historyMs?: number;
  readonly workspaceId?: string;
  readonly name?: string;
  /** Devices by description; none by default. */
  readonly devices?: readonly DeviceSpec[];
  /** Alerts from the seed, about one per `everyMs` (default 6 hours), or exactly these. */
  readonly alerts?: { readonly everyMs: number; readonly isRare?: boolean } | readonly AlertSpec[];
  /** The digits of all served times; default `ms`. */
  readonly precision?: Precision;
}

/** Everything that the API could serve, from a seed. */
export interface World {
  readonly seed: Seed;
  readonly workspaceId: string;
  readonly name: string;
  readonly precision: Precision;
  readonly originMs: EpochMs;
  /** When the world begins. */
  readonly startMs: EpochMs;
  /** Whether the workspace has this device at that moment. */
  has(deviceId: string, atMs: EpochMs): boolean;
  /** The ids of the devices that the workspace has at that moment, ascending. */
  deviceIds(atMs: EpochMs): string[];
  /** The given devices at that moment. */
  devices(atMs: EpochMs): SimDevice[];
  /** One device at a moment; `null` if the workspace does not have it then. */
  device(deviceId: string, atMs: EpochMs): SimDevice | null;
  /** All alerts at a moment, newest first. */
  alerts(atMs: EpochMs): SimAlert[];
  /** The alerts after one, newest first, computed one by one. */
  alertsBehind(atMs: EpochMs, behind: AlertPosition | null): Iterable<SimAlert>;
  /** How many alerts are not resolved at a moment. */
  unresolvedAlerts(atMs: EpochMs): number;
  /** Every reading that the device ever makes with `fromNs <= time < toNs`, oldest first. */
  readings(deviceId: string, fromNs: EpochNs, toNs: EpochNs): Iterable<SimReading>;
  /** The same, newest first, from any point at the same cost. */
  readingsDescending(deviceId: string, range: ReadingRange): Iterable<SimReading>;
}

/**
 * Creates a world.
 *
 * @throws RangeError if two devices have one id.
 */
export function createWorld(options: WorldOptions): World {
  const { historyMs = 30 * DAY_MS, precision = 'ms', alerts = { everyMs: 6 * HOUR_MS } } = options;
  const seed = seedOf(options.seed);
  const originMs = Math.floor(options.originMs);
  const startMs = originMs - Math.floor(historyMs);
  const devices = indexDevices(options.devices ?? [], (spec) =>
    createDevice(spec, { seed: mixText(seed, 'devices'), startMs, precision }),
  );
  const all = [...devices.values()];
  const alertList = isList(alerts)
    ? listedAlerts(alerts, precision)
    : seededAlerts({
        seed: mixText(seed, 'alerts'),
        startMs,
        everyMs: alerts.everyMs,
        isRare: alerts.isRare,
        precision,
        deviceAt: (chosen, atMs) => presentDevice(all, chosen, atMs),
      });
  const present = (atMs: EpochMs): WorldDevice[] => all.filter((device) => device.isPresent(atMs));
  return {
    seed,
    workspaceId: options.workspaceId ?? 'ws-simulated',
    name: options.name ?? 'Simulated workspace',
    precision,
    originMs,
    startMs,
    has: (deviceId, atMs) => devices.get(deviceId)?.isPresent(atMs) ?? false,
    deviceIds: (atMs) => present(atMs).map(({ spec }) => spec.deviceId),
    devices: (atMs) => present(atMs).map((device) => device.snapshot(atMs)),
    device(deviceId, atMs) {
      const device = devices.get(deviceId);
      return device?.isPresent(atMs) ? device.snapshot(atMs) : null;
    },
    alerts: (atMs) => [...alertList.behind(atMs, null)],
    alertsBehind: alertList.behind,
    unresolvedAlerts: alertList.unresolved,
    readings: (deviceId, fromNs, toNs) => devices.get(deviceId)?.series.ascending(fromNs, toNs) ?? [],
    readingsDescending: (deviceId, range) => devices.get(deviceId)?.series.descending(range) ?? [],
  };
}

function isList(alerts: NonNullable<WorldOptions['alerts']>): alerts is readonly AlertSpec[] {
  return Array.isArray(alerts);
}

function indexDevices(
  specs: readonly DeviceSpec[],
  create: (spec: DeviceSpec) => WorldDevice,
): Map<string, WorldDevice> {
  const sorted = [...specs].sort((a, b) => (a.deviceId < b.deviceId ? -1 : 1));
  const devices = new Map(sorted.map((spec) => [spec.deviceId, create(spec)]));
  if (devices.size !== specs.length) throw new RangeError('two devices of the world have the same device_id');
  return devices;
}

/** A random device that is in the workspace at that moment. It is drawn a few times, so that no list has to be made. */
function presentDevice(devices: readonly WorldDevice[], seed: Seed, atMs: EpochMs): AlertDevice | null {
  for (let attempt = 0; attempt < 16; attempt += 1) {
    const device = devices[Math.floor(unit(mix(seed, attempt)) * devices.length)];
    if (device?.isPresent(atMs)) return { ...device, deviceId: device.spec.deviceId };
  }
  return null;
}

/** The alert after which a listing continues. */
interface AlertPosition {
  readonly openedAtMs: EpochMs;
  readonly alertId: number;
}

/** The alerts of a workspace. */
interface Alerts {
  /** The alerts at a moment, newest first (by `openedAtMs`, then by id). */
  behind(atMs: EpochMs, behind: AlertPosition | null): Iterable<SimAlert>;
  /** How many alerts are not resolved at a moment. */
  unresolved(atMs: EpochMs): number;
}

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

/** A threshold at half of the daily curve above the sensor's usual level, with one digit fewer than its values. */
function dailyThreshold({ above }: Rule, { base, swing, decimals }: SensorSpec): number {
  const scale = 10 ** Math.max(0, decimals - 1);
  return Math.round((base + (above ? swing : -swing) / 2) * scale) / scale;
}

/** A threshold that the daily curve of the device exceeds on a few days, for an hour or two. */
function rareThreshold({ above }: Rule, { swing, noise, decimals }: SensorSpec, level: number): number {
  const scale = 10 ** decimals;
  return Math.round((level + (above ? 1 : -1) * (1.2 * swing + 0.3 * noise)) * scale) / scale;
}

/** A device that a rule can watch. */
type AlertDevice = Pick<WorldDevice, 'sensors' | 'levelOf' | 'valuesAt'> & { readonly deviceId: string };

interface AlertModel extends DeviceContext {
  readonly everyMs: number;
  /** Whether a device exceeds its thresholds only on a few days; otherwise it does every day. */
  readonly isRare?: boolean | undefined;
  /** A random device that a rule can watch at a moment; `null` if there is none. */
  readonly deviceAt: (seed: Seed, atMs: EpochMs) => AlertDevice | null;
}

/** Generates alerts from the seed. Ids ascend with time, so that any alert is found without computing the others. */
function seededAlerts(model: AlertModel): Alerts {
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
  /** The alerts from an index down to the first one, without those that `isWanted` excludes by index and time. */
  const downFrom = function* (first: number, atMs: EpochMs, isWanted: (index: number, openedMs: EpochMs) => boolean) {
    for (let index = first; index >= 0; index -= 1) {
      const opened = openedAtMs(index);
      if (opened > atMs || !isWanted(index, opened)) continue;
      const spec = describeOnce(index, opened);
      if (spec !== null) yield alertAt(spec, atMs, model.precision);
    }
  };
  const newest = (atMs: EpochMs): number => Math.floor((atMs - model.startMs) / model.everyMs);
  return {
    behind: (atMs, behind) =>
      downFrom(
        behind === null ? newest(atMs) : Math.min(newest(atMs), behind.alertId - FIRST_ID - 1),
        atMs,
        () => true,
      ),
    // An old alert is resolved in any case, so its device and values are not computed.
    unresolved: (atMs) => {
      const mayBeOpen = (index: number, openedMs: EpochMs): boolean =>
        atMs - openedMs <= LONGEST_LIFE_MS || staysOpen(mix(model.seed, index));
      return countUnresolved(downFrom(newest(atMs), atMs, mayBeOpen));
    },
  };
}

function countUnresolved(alerts: Iterable<SimAlert>): number {
  let count = 0;
  for (const { status } of alerts) if (status !== 'resolved') count += 1;
  return count;
}

/** Longer than any resolved alert can be open, according to `alertLife`. */
const LONGEST_LIFE_MS = 60 * HOUR_MS;

/** Whether an alert is never resolved. */
function staysOpen(seed: Seed): boolean {
  return chance(mix(seed, 7), 0.02);
}

const FIRST_ID = 1000;

/** A rule and the device that it watches. */
interface Watch {
  readonly rule: Rule;
  readonly device: AlertDevice;
  readonly threshold: number;
}

/** How many devices are tried to find one whose value exceeds a threshold. */
const DEVICES_TRIED = 16;

/** A rule and a device that exceeds its threshold at a moment; `null` if none is found. */
function firingAt(model: AlertModel, seed: Seed, atMs: EpochMs): Watch | null {
  const drawThreshold = (rule: Rule, spec: SensorSpec, device: AlertDevice): number =>
    model.isRare === true ? rareThreshold(rule, spec, device.levelOf(spec)) : dailyThreshold(rule, spec);
  for (let attempt = 0; attempt < DEVICES_TRIED; attempt += 1) {
    const device = model.deviceAt(mix(seed, 64 + attempt), atMs);
    if (device === null) return null;
    const watches = RULES.flatMap((rule): Watch[] => {
      const spec = device.sensors.find(({ key }) => key === rule.sensor);
      return spec === undefined ? [] : [{ rule, device, threshold: drawThreshold(rule, spec, device) }];
    });
    const values = device.valuesAt(new Set(watches.map(({ rule }) => rule.sensor)), atMs);
    const firing = watches.filter((watch) => firedValue(watch, values) !== null);
    if (firing.length > 0) return pick(mix(seed, 1), firing);
  }
  return null;
}

/** The measured value if it exceeds the threshold; `null` otherwise, or if nothing is measured. */
function firedValue({ rule, threshold }: Watch, values: ReadonlyMap<string, number>): number | null {
  const value = values.get(rule.sensor);
  if (value === undefined) return null;
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

/** The states of an alert. It fires again only while the device measures a value beyond the threshold. */
function alertLife(watch: Watch, seed: Seed, openedAtMs: EpochMs): Change<AlertState>[] {
  const changes: Change<AlertState>[] = [];
  let state: AlertState = { status: 'open', fireCount: 0, value: watch.threshold };
  let atMs = openedAtMs;
  const change = (afterMs: number, next: Partial<AlertState>): void => {
    atMs += afterMs;
    state = { ...state, ...next };
    changes.push({ atMs, value: state });
  };
  const watched = new Set([watch.rule.sensor]);
  const fire = (afterMs: number): boolean => {
    const value = firedValue(watch, watch.device.valuesAt(watched, atMs + afterMs));
    if (value !== null) change(afterMs, { status: 'open', fireCount: state.fireCount + 1, value });
    return value !== null;
  };
  fire(0);
  for (let again = whole(mix(seed, 4), 0, 4); again > 0; again -= 1) {
    fire(whole(mix(seed, 32 + again), 2, 20) * MINUTE_MS);
  }
  if (chance(mix(seed, 5), 0.6)) change(whole(mix(seed, 6), 1, 240) * MINUTE_MS, { status: 'acknowledged' });
  if (staysOpen(seed)) return changes;
  change(whole(mix(seed, 8), 1, 30) * HOUR_MS, { status: 'resolved' });
  if (chance(mix(seed, 9), 0.05) && fire(whole(mix(seed, 10), 1, 12) * HOUR_MS)) {
    change(whole(mix(seed, 11), 1, 6) * HOUR_MS, { status: 'resolved' });
  }
  return changes;
}

/** The alerts of a list, in any order. */
function listedAlerts(specs: readonly AlertSpec[], precision: Precision): Alerts {
  const newestFirst = [...specs].sort((a, b) => b.openedAtMs - a.openedAtMs || b.alertId - a.alertId);
  const behind: Alerts['behind'] = (atMs, position) =>
    newestFirst
      .filter((spec) => spec.openedAtMs <= atMs && (position === null || isBehind(spec, position)))
      .map((spec) => alertAt(spec, atMs, precision));
  return { behind, unresolved: (atMs) => countUnresolved(behind(atMs, null)) };
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
    openedAt: formatToPrecision(openedAtMs, precision),
    ...valueAt<AlertState>({ status: 'open', fireCount: 1, value: threshold }, spec.changes ?? [], atMs),
  };
}
