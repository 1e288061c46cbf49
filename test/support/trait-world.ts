/**
 * Simulated worlds whose devices may have traits: behaviour that is difficult for clients, with names, values and times
 * that break careless ones.
 */
import { chance, mix, mixText, type Seed, whole } from '../../src/sim/random.ts';
import type { DeviceSpec as PlainSpec, SimValue } from '../../src/sim/spec.ts';
import { createWorld as createPlainWorld, type WorldOptions as PlainOptions, type World } from '../../src/sim/world.ts';

/**
 * Behaviour of a device that is difficult for clients:
 * - `ties`: sometimes several readings at one instant, with equal, disjoint or conflicting values;
 * - `burst`: sometimes more readings at one instant than a page holds;
 * - `dense`: 25 readings a second;
 * - `hostile`: sensor names that break naive code;
 * - `oddValues`: values that are no ordinary numbers;
 * - `empty`: sometimes a reading without values.
 */
export type Trait = 'ties' | 'burst' | 'dense' | 'hostile' | 'oddValues' | 'empty';

/** A device from its first day to its last, with its traits. */
export interface DeviceSpec extends Omit<PlainSpec, 'report'> {
  readonly traits?: readonly Trait[];
  /** For the trait `burst`: every how many reports (300), and how many readings then (250). */
  readonly burst?: { readonly every: number; readonly size: number };
}

/** The input of {@link createWorld}. */
export interface WorldOptions extends Omit<PlainOptions, 'devices'> {
  /** Devices by description; none by default. */
  readonly devices?: readonly DeviceSpec[];
}

/** Makes a world. */
export function createWorld({ devices = [], ...options }: WorldOptions): World {
  return createPlainWorld({ ...options, devices: devices.map(plainSpec) });
}

const DENSE_INTERVAL_MS = 40;

function plainSpec({ traits = [], burst = { every: 300, size: 250 }, ...spec }: DeviceSpec): PlainSpec {
  if (traits.length === 0) return spec;
  return {
    ...(traits.includes('dense') ? { intervalMs: DENSE_INTERVAL_MS } : {}),
    ...spec,
    report: (values, index, seed) => applyTraits(values, index, { traits, seed, burst }),
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
function applyTraits(values: readonly SimValue[], index: number, options: TraitOptions): Values[] {
  const { traits, burst } = options;
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
