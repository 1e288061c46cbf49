/**
 * A device of the simulated world: its properties at any moment, and its readings, which are computed on request.
 *
 * Report `index` happens at `startMs + index × intervalMs`, shifted by up to the jitter. So a division and a step or
 * two find the index for a time, and a page of last year costs as much as a page of today. Raw times ascend strictly;
 * truncated to the served precision they may be equal, and then `position` orders them.
 *
 * Its sensors measure a daily curve, a slow drift and noise, with the digits of a real sensor.
 */
import { DAY_MS, type EpochMs, type EpochNs, HOUR_MS, MINUTE_MS } from '../core/time.ts';
import {
  ceilToPrecision,
  createDateOf,
  type DateOf,
  formatInstant,
  formatToPrecision,
  type Instant,
  instantToNs,
  nsToInstant,
  type Precision,
  truncate,
} from './instants.ts';
import { mix, mixText, type Seed, unit, whole } from './random.ts';
import {
  type DeviceSpec,
  type Lifecycle,
  type MsRange,
  mergeRanges,
  type ReadingSpec,
  type SensorSpec,
  type SimDevice,
  type SimReading,
  type SimValue,
  valueAt,
} from './spec.ts';

/** A device whose description was completed with defaults. */
export interface WorldDevice {
  readonly spec: DeviceSpec;
  readonly series: Series;
  readonly intervalMs: number;
  /** Its sensors, without those that its traits add. */
  readonly sensors: readonly SensorSpec[];
  /** The level around which the daily curve of a sensor oscillates. */
  levelOf(sensor: SensorSpec): number;
  /**
   * The values of sensors, each from the newest reading that has the sensor at that moment; none if the last hours have
   * none.
   */
  valuesAt(sensors: ReadonlySet<string>, atMs: EpochMs): ReadonlyMap<string, number>;
  /** Whether the device is in the workspace at that moment. */
  isPresent(atMs: EpochMs): boolean;
  /** The device as the API lists it at that moment. */
  snapshot(atMs: EpochMs): SimDevice;
}

/** The properties of a world on which its devices depend. */
export interface DeviceContext {
  readonly seed: Seed;
  /** When the world begins. */
  readonly startMs: EpochMs;
  readonly precision: Precision;
}

/** Later than any reading: the end of 64-bit times. */
const END_OF_TIME_NS: EpochNs = 2n ** 63n;
const DEFAULT_INTERVAL_MS = 5 * MINUTE_MS;

/** Makes a device from its description. */
export function createDevice(spec: DeviceSpec, { seed, startMs, precision }: DeviceContext): WorldDevice {
  const own = mixText(seed, spec.deviceId);
  const appearsAtMs = spec.appearsAtMs ?? startMs;
  const { intervalMs = DEFAULT_INTERVAL_MS, vanishesAtMs, returnsAtMs = Infinity } = spec;
  const { report = (values) => [values] } = spec;
  const absence = vanishesAtMs === undefined ? [] : [{ fromMs: vanishesAtMs, toMs: returnsAtMs }];
  const sensors = spec.sensors ?? sensorsOf(whole(own, 2, 5));
  const measure = createMeasure(sensors, own);
  const series =
    spec.readings !== undefined
      ? listSeries(spec.readings, precision)
      : createSeries({
          seed: own,
          startMs: Math.max(startMs, appearsAtMs),
          intervalMs,
          jitter: spec.jitter ?? 0,
          quiet: mergeRanges([...(spec.silences ?? []), ...inactivity(spec), ...absence]),
          precision,
          date: createDateOf(),
          report: (index, atMs) => report(measure(index, atMs), index, own),
        });
  return {
    spec,
    series,
    intervalMs,
    sensors,
    levelOf: (sensor) => baseLevel(sensor, own),
    valuesAt: (wanted, atMs) => newestValues(series, wanted, atMs),
    isPresent: (atMs) => atMs >= appearsAtMs && !absence.some(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs),
    snapshot: (atMs) => snapshot({ spec, series, intervalMs, precision, startMs }, atMs),
  };
}

/** When the device is paused, shelved or retired. */
function inactivity({ lifecycle = [] }: DeviceSpec): MsRange[] {
  return lifecycle.flatMap(({ atMs, value }, at) =>
    value === 'active' ? [] : [{ fromMs: atMs, toMs: lifecycle[at + 1]?.atMs ?? Infinity }],
  );
}

interface SnapshotInput extends Pick<WorldDevice, 'spec' | 'series' | 'intervalMs'> {
  readonly precision: Precision;
  readonly startMs: EpochMs;
}

function snapshot({ spec, series, intervalMs, precision }: SnapshotInput, atMs: EpochMs): SimDevice {
  const parentDeviceId = valueAt(spec.parentDeviceId ?? null, spec.moves ?? [], atMs);
  const lifecycleStatus = valueAt<Lifecycle>('active', spec.lifecycle ?? [], atMs);
  const seen = lastSeen(series, atMs);
  const online = lifecycleStatus === 'active' && seen !== null && atMs - seen.atMs <= 3 * intervalMs + MINUTE_MS;
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
    locationUpdatedAt: spec.location == null ? null : formatToPrecision(spec.location.updatedAtMs, precision),
    tags: spec.tags ?? [],
  };
}

function presenceOf(online: boolean, lifecycle: Lifecycle, seen: boolean): string {
  if (online) return 'reporting';
  if (lifecycle !== 'active') return lifecycle;
  return seen ? 'no_signal' : 'never_seen';
}

/** The newest reading received by then. The platform has it before the API serves it. */
function lastSeen(series: Series, atMs: EpochMs): { atMs: EpochMs; text: string } | null {
  const range = { fromNs: 0n, toNs: END_OF_TIME_NS, receivedByMs: atMs };
  for (const { visibleAtMs, recordedAt } of series.descending(range)) {
    if (visibleAtMs <= atMs) return { atMs: visibleAtMs, text: recordedAt };
  }
  return null;
}

const VALUE_WITHIN_MS = 6 * HOUR_MS;
/** A sensor may be in only every nth reading, so this many readings are searched. */
const READINGS_TRIED = 12;

function newestValues(series: Series, sensors: ReadonlySet<string>, atMs: EpochMs): ReadonlyMap<string, number> {
  const range = { fromNs: msBound(atMs - VALUE_WITHIN_MS), toNs: msBound(atMs), receivedByMs: atMs };
  const found = new Map<string, number>();
  let tried = 0;
  for (const { values } of series.descending(range)) {
    for (const [key, json] of values ?? []) if (sensors.has(key) && !found.has(key)) found.set(key, Number(json));
    tried += 1;
    if (tried === READINGS_TRIED || found.size === sensors.size) break;
  }
  for (const [key, value] of found) if (!Number.isFinite(value)) found.delete(key);
  return found;
}

/** A range of a series: half-open, and below a position if one is given. */
export interface ReadingRange {
  readonly fromNs: EpochNs;
  readonly toNs: EpochNs;
  readonly belowPosition?: number;
  /** Readings on the grid that are received later than this are not computed, because the caller does not need them. */
  readonly receivedByMs?: EpochMs;
}

/** All readings of a device, forever. */
interface Series {
  /** Oldest first. */
  ascending(fromNs: EpochNs, toNs: EpochNs): Iterable<SimReading>;
  /** Newest first. It can begin anywhere at the same small cost. */
  descending(range: ReadingRange): Iterable<SimReading>;
}

interface SeriesModel extends DeviceContext {
  readonly intervalMs: number;
  readonly jitter: number;
  /** The ranges in which the device reports nothing; ascending and disjoint. */
  readonly quiet: readonly MsRange[];
  readonly date: DateOf;
  /** The values of each reading in one report, which has at least one reading. */
  readonly report: (index: number, atMs: EpochMs) => readonly (readonly SimValue[] | null)[];
}

/** More readings than any report has. */
const REPORT_SIZE = 65_536;

/** The series of a device that reports on a grid. */
function createSeries(model: SeriesModel): Series {
  return {
    *ascending(fromNs, toNs) {
      const end = firstAtOrAfter(model, toNs);
      let index = firstAtOrAfter(model, fromNs);
      while (index < end) {
        const quiet = quietAt(model, index);
        if (quiet === null) yield* readingsOf(model, index);
        index = quiet === null ? index + 1 : firstAfter(model, quiet, end);
      }
    },
    *descending({ fromNs, toNs, belowPosition = Infinity, receivedByMs }) {
      const begin = firstAtOrAfter(model, fromNs);
      const received = receivedByMs === undefined ? Infinity : firstAtOrAfter(model, msBound(receivedByMs + 1), 'raw');
      let index = Math.min(
        firstAtOrAfter(model, toNs) - 1,
        received - 1,
        Math.floor((belowPosition - 1) / REPORT_SIZE),
      );
      while (index >= begin) {
        const quiet = quietAt(model, index);
        if (quiet === null) {
          yield* readingsOf(model, index)
            .filter(({ position }) => position < belowPosition)
            .reverse();
        }
        index = quiet === null ? index - 1 : lastBefore(model, quiet);
      }
    },
  };
}

/** The first report after a quiet range, or `end`. */
function firstAfter(model: SeriesModel, { toMs }: MsRange, end: number): number {
  return toMs === Infinity ? end : firstAtOrAfter(model, msBound(toMs), 'raw');
}

/** The last report before a quiet range; negative if there is none. */
function lastBefore(model: SeriesModel, { fromMs }: MsRange): number {
  return fromMs === -Infinity ? -1 : firstAtOrAfter(model, msBound(fromMs), 'raw') - 1;
}

function msBound(ms: EpochMs): EpochNs {
  return instantToNs({ ms: Math.ceil(ms), subNs: 0 });
}

/** The exact time of report `index`, before its digits are truncated. Strictly ascending with `index`. */
function rawInstant({ seed, startMs, intervalMs, jitter }: SeriesModel, index: number): Instant {
  const nominalMs = startMs + index * intervalMs;
  if (jitter === 0) return { ms: nominalMs, subNs: 0 };
  const here = mix(seed, index);
  const rangeMs = Math.min(Math.floor(jitter * intervalMs), intervalMs - 1);
  return {
    ms: nominalMs + Math.floor(unit(here) * rangeMs),
    subNs: Math.floor(unit(mix(here, 1)) * 1_000_000),
  };
}

/**
 * The first report that is served with a time not before `ns`.
 *
 * A truncated time is at or after `ns` exactly when the raw time is at or after the next instant of that precision.
 * `raw` compares raw times.
 */
function firstAtOrAfter(model: SeriesModel, ns: EpochNs, times: 'served' | 'raw' = 'served'): number {
  const bound = nsToInstant(times === 'raw' ? ns : ceilToPrecision(ns, model.precision));
  let index = Math.max(0, Math.floor((bound.ms - model.startMs) / model.intervalMs) - 1);
  for (;;) {
    const at = rawInstant(model, index);
    if (at.ms > bound.ms || (at.ms === bound.ms && at.subNs >= bound.subNs)) return index;
    index += 1;
  }
}

/** The quiet range that contains report `index`; `null` if there is none. */
function quietAt(model: SeriesModel, index: number): MsRange | null {
  if (model.quiet.length === 0) return null;
  const { ms } = rawInstant(model, index);
  for (const range of model.quiet) {
    if (ms < range.fromMs) return null;
    if (ms < range.toMs) return range;
  }
  return null;
}

function readingsOf(model: SeriesModel, index: number): SimReading[] {
  const raw = rawInstant(model, index);
  const served = truncate(raw, model.precision);
  const recordedAtNs = instantToNs(served);
  const recordedAt = formatInstant(served, model.precision, model.date);
  const visibleAtMs = raw.subNs === 0 ? raw.ms : raw.ms + 1;
  const first = index * REPORT_SIZE;
  return model
    .report(index, raw.ms)
    .map((values, sub) => ({ position: first + sub, recordedAtNs, recordedAt, visibleAtMs, values }));
}

/**
 * The series of a device from a list of readings, in the order of their times. Readings with equal times keep their
 * order in the list.
 */
function listSeries(specs: readonly ReadingSpec[], precision: Precision): Series {
  const readings = specs
    .map(({ recordedAtNs, values, visibleAtMs }) => {
      const served = truncate(nsToInstant(recordedAtNs), precision);
      return {
        recordedAtNs: instantToNs(served),
        recordedAt: formatInstant(served, precision),
        visibleAtMs: visibleAtMs ?? nsToInstant(recordedAtNs + 999_999n).ms,
        values,
      };
    })
    .sort((a, b) => (a.recordedAtNs < b.recordedAtNs ? -1 : Number(a.recordedAtNs > b.recordedAtNs)))
    .map((reading, position) => ({ position, ...reading }));
  const within = (fromNs: EpochNs, toNs: EpochNs): SimReading[] =>
    readings.filter((reading) => reading.recordedAtNs >= fromNs && reading.recordedAtNs < toNs);
  return {
    ascending: within,
    descending: ({ fromNs, toNs, belowPosition = Infinity }) =>
      within(fromNs, toNs)
        .filter(({ position }) => position < belowPosition)
        .reverse(),
  };
}

/** Sensible sensors; the first ones are the commonest. */
export const CATALOGUE: readonly SensorSpec[] = [
  sensor('temperature', { base: 19, swing: 4, noise: 0.4, decimals: 2, min: -40, max: 85 }),
  sensor('humidity', { base: 48, swing: 9, noise: 2, decimals: 1, min: 0, max: 100 }),
  sensor('battery_voltage', { base: 2.95, swing: 0.02, noise: 0.01, decimals: 3, min: 1.8, max: 3.6, every: 6 }),
  sensor('rssi', { base: -71, swing: 4, noise: 9, decimals: 0, min: -120, max: -20 }),
  sensor('co2', { base: 640, swing: 210, noise: 40, decimals: 0, min: 380, max: 5000 }),
  sensor('pressure', { base: 1013.2, swing: 3, noise: 0.3, decimals: 1, min: 870, max: 1085 }),
  sensor('illuminance', { base: 260, swing: 300, noise: 20, decimals: 0, min: 0, max: 100_000 }),
  sensor('pm2_5', { base: 8, swing: 4, noise: 2, decimals: 1, min: 0, max: 1000 }),
  sensor('noise_level', { base: 44, swing: 8, noise: 5, decimals: 1, min: 20, max: 130 }),
  sensor('door_open', { base: 0.1, swing: 0.3, noise: 0.9, decimals: 0, min: 0, max: 1 }),
  sensor('flow_rate', { base: 1.7, swing: 1.4, noise: 0.2, decimals: 2, min: 0, max: 40 }),
  sensor('power', { base: 310, swing: 220, noise: 60, decimals: 1, min: 0, max: 3680 }),
];

/** Creates a sensor. It is in every reading unless `every` is given. */
export function sensor(
  key: string,
  curve: Omit<SensorSpec, 'key' | 'every'> & { readonly every?: number },
): SensorSpec {
  return { every: 1, ...curve, key };
}

/** The first `count` sensors of the catalogue, followed by numbered ones (`temperature_2`). */
export function sensorsOf(count: number): SensorSpec[] {
  return Array.from({ length: count }, (_, at) => {
    const known =
      CATALOGUE[at % CATALOGUE.length] ??
      sensor('value', { base: 0, swing: 1, noise: 0, decimals: 1, min: -1, max: 1 });
    const round = Math.floor(at / CATALOGUE.length) + 1;
    return round === 1 ? known : { ...known, key: `${known.key}_${round}` };
  });
}

/** The level around which the daily curve of a device's sensor oscillates, from the seed of the device. */
function baseLevel({ key, base, swing }: SensorSpec, seed: Seed): number {
  return base + (unit(mix(mixText(seed, key), 1)) - 0.5) * swing;
}

/** The values of the sensors of one device. */
type Measure = (index: number, atMs: EpochMs) => SimValue[];

/** Prepares the sensors of a device. Each has its own phase and level, from the seed. */
function createMeasure(sensors: readonly SensorSpec[], seed: Seed): Measure {
  const prepared = sensors.map((spec) => {
    const own = mixText(seed, spec.key);
    return {
      spec,
      own,
      level: baseLevel(spec, seed),
      phase: unit(mix(own, 2)) * 0.2,
      driftDays: whole(mix(own, 3), 5, 30),
      scale: 10 ** spec.decimals,
      turn: whole(mix(own, 4), 0, spec.every - 1),
    };
  });
  return (index, atMs) => {
    const day = atMs / DAY_MS;
    const values: SimValue[] = [];
    for (const { spec, own, level, phase, driftDays, scale, turn } of prepared) {
      if (spec.every > 1 && index % spec.every !== turn) continue;
      const daily = Math.sin(2 * Math.PI * (day - 0.375 + phase)) * spec.swing;
      const drift = Math.sin((2 * Math.PI * day) / driftDays) * spec.swing * 0.3;
      const noise = (unit(mix(own, index + 16)) - 0.5) * spec.noise;
      const value = Math.min(spec.max, Math.max(spec.min, level + daily + drift + noise));
      values.push([spec.key, String(Math.round(value * scale) / scale)]);
    }
    return values;
  };
}
