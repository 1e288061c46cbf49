/**
 * Flattens readings into one value per sensor, and computes the digests of readings and the sums of days.
 *
 * Pure. Nothing that a device reports is lost silently: a value that cannot be a point is returned as dropped, with the
 * reason. The state keeps the digests and sums, so their form does not change.
 */
import { hash64, hashHex } from '../hash.ts';
import type { JsonValue, Reading } from '../records.ts';
import type { FieldValue } from './line-protocol.ts';

/** One sensor value of one reading; numbers are `value`, booleans `flag`, strings `text`. */
export interface SensorValue {
  readonly sensor: string;
  readonly field: 'value' | 'flag' | 'text';
  readonly value: FieldValue;
}

/** Why a reported value became no point. `null` values are simply absent and not counted. */
export type DropReason =
  | 'not a finite number'
  | 'nested too deeply'
  | 'nested below a name that is too long'
  | 'too many values in one reading';

interface Flattened {
  readonly values: readonly SensorValue[];
  readonly dropped: ReadonlyMap<DropReason, number>;
}

/** The limits of nesting and width of a reading; whatever exceeds them is reported and dropped. */
const MAX_DEPTH = 8;
const MAX_VALUES = 2048;

/** The maximum length of a list's or an object's dotted name, because each of its items repeats the name. */
const MAX_HOLDER_NAME = 1024;

/**
 * Why the items of a list or object become no points and are not examined; `null` if they are.
 *
 * @param sensor its dotted name
 * @param depth how many lists and objects contain it
 */
export function obstacleWithin(sensor: string, depth: number): DropReason | null {
  if (depth >= MAX_DEPTH) return 'nested too deeply';
  return sensor.length > MAX_HOLDER_NAME ? 'nested below a name that is too long' : null;
}

/** Flattens the values of a reading; nested ones get dotted sensor names, list items their index. */
export function flattenReading(reading: Reading): Flattened {
  const flat: Flattening = { values: [], dropped: null };
  for (const [sensor, value] of reading.values) flatten(flat, sensor, value, 0);
  return { values: flat.values, dropped: flat.dropped ?? NOTHING_DROPPED };
}

interface Flattening {
  readonly values: SensorValue[];
  dropped: Map<DropReason, number> | null;
}

const NOTHING_DROPPED: Flattened['dropped'] = new Map();

function flatten(flat: Flattening, sensor: string, value: JsonValue, depth: number): void {
  if (value === null) return;
  if (typeof value !== 'object') {
    if (typeof value === 'number' && !Number.isFinite(value)) countDropped(flat, 'not a finite number');
    else if (flat.values.length >= MAX_VALUES) countDropped(flat, 'too many values in one reading');
    else flat.values.push({ sensor, field: fieldOf(value), value });
    return;
  }
  const obstacle = obstacleWithin(sensor, depth);
  if (obstacle !== null) countDropped(flat, obstacle);
  else for (const [key, inner] of Object.entries(value)) flatten(flat, `${sensor}.${key}`, inner, depth + 1);
}

function countDropped(flat: Flattening, reason: DropReason): void {
  flat.dropped ??= new Map();
  flat.dropped.set(reason, (flat.dropped.get(reason) ?? 0) + 1);
}

function fieldOf(value: boolean | number | string): SensorValue['field'] {
  if (typeof value === 'number') return 'value';
  return typeof value === 'boolean' ? 'flag' : 'text';
}

/**
 * The content of a reading as a short text, equal for equal values in any order of keys. Text and instant together
 * identify a stored reading in a page.
 */
export function readingDigest(reading: Reading): string {
  return hashHex(canonicalPairs(reading.values));
}

/**
 * The instant and the content of a reading as one number of 53 bits, for many readings whose texts would take too much
 * memory.
 */
export function readingHash({ recordedAt, values }: Reading): number {
  const { hi, lo } = hash64(`${recordedAt} ${canonicalPairs(values)}`);
  return hi * 2 ** 21 + (lo >>> 11);
}

function canonicalText(value: JsonValue): string {
  if (value === null || typeof value !== 'object')
    return typeof value === 'string' ? JSON.stringify(value) : `${value}`;
  if (Array.isArray(value)) return `[${value.map((item: JsonValue) => canonicalText(item)).join()}]`;
  return canonicalPairs(Object.entries(value));
}

function canonicalPairs(pairs: readonly (readonly [string, JsonValue])[]): string {
  const sorted = [...pairs].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${sorted.map(([key, value]) => `${JSON.stringify(key)}:${canonicalText(value)}`).join()}}`;
}

/**
 * The sum of some points: their number, and an order-independent hash of instant, sensor and value. It is stored
 * forever for each device and day, and computed again from the answers of a database (`--verify`).
 *
 * Each half of the hash is mod 2^32.
 */
export interface PointSum {
  readonly points: number;
  readonly hashHigh: number;
  readonly hashLow: number;
}

/** A sum that is added to in place. */
export type GrowingSum = { -readonly [K in keyof PointSum]: PointSum[K] };

const HALF = 2 ** 32;

/** Creates the sum of no points, to add points to it. */
export function emptySum(): GrowingSum {
  return { points: 0, hashHigh: 0, hashLow: 0 };
}

/**
 * A point as it counts in the sum of its day: the parts that a database returns.
 *
 * @param stamp its time in nanoseconds since 1970, in digits.
 * @param sensor as the tag value reads (not escaped).
 * @param field as written in a line: `value=1.5`.
 */
export function pointIdentity(stamp: string, sensor: string, field: string): string {
  return `${stamp}${identityOfSensor(sensor)}${field}`;
}

/** The part of a {@link pointIdentity} between its time and its field: the same for all points of a sensor. */
export function identityOfSensor(sensor: string): string {
  return ` ${sensor} `;
}

/** Adds a point by its {@link pointIdentity}, as one text or in parts. */
export function addPoint(sum: GrowingSum, ...identity: readonly string[]): void {
  const { hi, lo } = hash64(...identity);
  sum.points += 1;
  sum.hashHigh = (sum.hashHigh + hi) % HALF;
  sum.hashLow = (sum.hashLow + lo) % HALF;
}

/** Subtracts some points from a sum. */
export function lessSum(sum: PointSum, part: PointSum): PointSum {
  return {
    points: sum.points - part.points,
    hashHigh: (sum.hashHigh - part.hashHigh + HALF) % HALF,
    hashLow: (sum.hashLow - part.hashLow + HALF) % HALF,
  };
}

/** Whether two sums are of the same points, except by a chance of 1 in 2^64. */
export function isSameSum(a: PointSum, b: PointSum): boolean {
  return a.points === b.points && a.hashHigh === b.hashHigh && a.hashLow === b.hashLow;
}
