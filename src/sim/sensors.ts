/**
 * The values that simulated devices measure: a daily curve, a slow drift and noise, with the digits of a real sensor.
 * Their traits add names, values and times that break careless clients.
 */
import { DAY_MS, type EpochMs } from '../core/time.ts';
import { chance, mix, mixText, type Seed, unit, whole } from './random.ts';
import type { SensorSpec, SimValue, Trait } from './spec.ts';

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

/** A sensor with its key and curve; it is in every reading unless `every` is given. */
export function sensor(
  key: string,
  curve: Omit<SensorSpec, 'key' | 'every'> & { readonly every?: number },
): SensorSpec {
  return { every: 1, ...curve, key };
}

/** The first `count` sensors of the catalogue; beyond its end numbered ones (`temperature_2`). */
export function sensorsOf(count: number): SensorSpec[] {
  return Array.from({ length: count }, (_, at) => {
    const known =
      CATALOGUE[at % CATALOGUE.length] ??
      sensor('value', { base: 0, swing: 1, noise: 0, decimals: 1, min: -1, max: 1 });
    const round = Math.floor(at / CATALOGUE.length) + 1;
    return round === 1 ? known : { ...known, key: `${known.key}_${round}` };
  });
}

/** The level around which a sensor of a device goes up and down, by the seed of the device. */
export function levelOf({ key, base, swing }: SensorSpec, seed: Seed): number {
  return base + (unit(mix(mixText(seed, key), 1)) - 0.5) * swing;
}

/** The values of the sensors of one device. */
type Measure = (index: number, atMs: EpochMs) => SimValue[];

/** Prepares the sensors of a device: each has a phase and a level of its own, by the seed. */
export function createMeasure(sensors: readonly SensorSpec[], seed: Seed): Measure {
  const prepared = sensors.map((spec) => {
    const own = mixText(seed, spec.key);
    return {
      spec,
      own,
      level: levelOf(spec, seed),
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

/** The values of one reading. */
type Values = readonly SimValue[] | null;

/** Sensor names that are legal JSON keys and nothing else. */
export const HOSTILE_KEYS: readonly string[] = [
  '__proto__',
  'constructor',
  'toString',
  'time',
  '_field',
  '_measurement',
  'device_id',
  'sensor',
  '0',
  '',
  ' ',
  'a,b',
  'a=b',
  'a b',
  'back\\slash',
  'trailing\\',
  'trailing\\\\',
  'quo"te',
  "apos'trophe",
  'line\nbreak',
  'carriage\rreturn',
  'tab\there',
  'nul\u0000byte',
  '#hash',
  'dotted.name',
  'nested[0]',
  'température',
  'e\u0301',
  '🌡️',
  'lone\ud800surrogate',
  '\u202ertl',
];

/** As long as a tag value of InfluxDB may be, and a byte more. */
export const LONG_KEY: string = 'k'.repeat(65_536);

/** Values that are no ordinary numbers, as JSON text. */
export const ODD_VALUES: readonly SimValue[] = [
  ['odd_true', 'true'],
  ['odd_false', 'false'],
  ['odd_null', 'null'],
  ['odd_text', '"off"'],
  ['odd_number_text', '"21.5"'],
  ['odd_empty_text', '""'],
  ['odd_lines', '"a\\nb\\\\c\\"d"'],
  ['odd_surrogate', '"\\ud83d"'],
  ['odd_object', '{"min":1.5,"max":2,"deep":{"x":true,"__proto__":7}}'],
  ['odd_array', '[1,2.5,[3],{"y":"z"},null]'],
  ['odd_empty_object', '{}'],
  ['odd_empty_array', '[]'],
  ['odd_huge_integer', '9007199254740993123'],
  ['odd_tiny', '1e-300'],
  ['odd_subnormal', '5e-324'],
  ['odd_minus_zero', '-0'],
  ['odd_overflow', '1e400'],
  ['odd_minus_overflow', '-1e400'],
  ['odd_large', '1.7976931348623157e308'],
  ['odd_exponent', '1.0E+2'],
  ['odd_many_digits', '0.1000000000000000055511151231257827'],
];

/** The properties that make a device hard to read. */
interface TraitOptions {
  readonly traits: readonly Trait[];
  readonly seed: Seed;
  readonly burst: { readonly every: number; readonly size: number };
}

/** The readings of report `index`, given what its sensors measured; at least one. */
export function applyTraits(values: readonly SimValue[], index: number, options: TraitOptions): Values[] {
  const { traits, burst } = options;
  if (traits.length === 0) return [values];
  const seed = mix(mixText(options.seed, 'traits'), index);
  const all = [...values];
  if (traits.includes('hostile')) all.push(...hostileValues(index, seed));
  if (traits.includes('oddValues')) all.push(...oddValues(index));
  if (traits.includes('burst') && index % burst.every === burst.every - 1) return burstOf(all, burst.size);
  if (traits.includes('empty') && index % 4 === 1) return [index % 8 === 1 ? [] : null];
  if (traits.includes('ties') && chance(mix(seed, 1), 0.2)) return tied(all, index, seed);
  return [all];
}

/** A few of the names at a time, all of them in turn; the long one in one of fifty reports. */
function hostileValues(index: number, seed: Seed): SimValue[] {
  const keys = [0, 1, 2, 3].map((step) => HOSTILE_KEYS[(index * 4 + step) % HOSTILE_KEYS.length] ?? '');
  if (index % 50 === 25) keys.push(LONG_KEY);
  return keys.map((key, at) => [key, String(whole(mix(seed, at + 8), -500, 500) / 10)]);
}

function oddValues(index: number): SimValue[] {
  return [0, 1, 2].flatMap((step) => {
    const value = ODD_VALUES[(index * 3 + step) % ODD_VALUES.length];
    return value === undefined ? [] : [value];
  });
}

/** Readings at one instant that differ in one value, and some that do not differ. */
function burstOf(values: readonly SimValue[], size: number): Values[] {
  return Array.from({ length: size }, (_, at) => [...values, ['burst_rank', String(at - (at % 10 === 9 ? 1 : 0))]]);
}

/** Two to four readings at one instant: equal ones, ones of different sensors, ones that contradict each other. */
function tied(values: readonly SimValue[], index: number, seed: Seed): Values[] {
  const count = whole(mix(seed, 2), 2, 4);
  const each = <T>(of: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => of(at));
  switch (whole(mix(seed, 3), 0, 2)) {
    case 0:
      return each(() => values);
    case 1:
      return each((at) => [...values.filter((_, which) => which % count === at), [`tie_${at}`, String(index)]]);
    default:
      return each((at) => values.map(([key, json]) => (at === 0 ? [key, json] : [key, contradict(json, at)])));
  }
}

function contradict(json: string, by: number): string {
  const other = Math.round((Number(json) + by) * 1000) / 1000;
  return Number.isFinite(other) ? String(other) : json;
}
