/**
 * The judge: compares the seed with a query of the database. It does not use the program's archive, coverage or status;
 * of the program's rules it uses only the names of series, which have tests of their own.
 *
 * Its findings: *missing* (a reading of the span that has no point), *invented* (a point that no reading explains,
 * duplicates included), *misnamed* (a point under a name that its device did not have then).
 */
import { encodePoint, identityTag, type SeriesKey } from '../../src/core/lines/line-protocol.ts';
import type { SimValue } from '../../src/sim/spec.ts';
import type { World } from '../../src/sim/world.ts';
import type { Simulator } from './faulty-simulator.ts';
import type { Cell, Influxd, Series } from './influxd.ts';

export interface Span {
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** Where something is missing. */
export interface Place {
  readonly deviceId: string;
  readonly at: bigint;
}

export interface Verdict {
  readonly missing: readonly string[];
  /** The places of `missing`, in its order. */
  readonly missingAt: readonly Place[];
  readonly invented: readonly string[];
  /** The number of points of the seed in the range: a test that expects many has to see many. */
  readonly expected: number;
}

/** A value in a form that is equal for equal values, whichever way they came. */
export type ValueText = string;

interface StoredPoint {
  readonly at: bigint;
  readonly value: ValueText;
}

/** How far beyond an instant values that contradict each other there may be written. */
export const TIE_REACH = 1000n;

/**
 * Compares the telemetry of every device that the workspace ever had.
 *
 * @param span must be there in full; beyond it readings of the seed may be there, and nothing else.
 */
export async function judge(
  { influxd, database, simulator }: { influxd: Influxd; database: string; simulator: Simulator },
  span: Span,
  deviceIds: readonly string[],
): Promise<Verdict> {
  const series = await influxd.series(
    database,
    `SELECT ${FIELDS.join(', ')} FROM telemetry GROUP BY device_id, sensor`,
  );
  return judgeSeries({ stored: groupBySeries(series), simulator }, span, deviceIds);
}

/**
 * The same of series.
 *
 * @param stored by the tags of device and sensor with a space between them; points of the seed are removed from it.
 */
export function judgeSeries(
  { stored, simulator }: { readonly stored: Map<string, StoredSeries>; readonly simulator: Simulator },
  span: Span,
  deviceIds: readonly string[],
): Verdict {
  const missing: string[] = [];
  const missingAt: Place[] = [];
  const invented: string[] = [];
  let expected = 0;
  const endNs = BigInt(Math.floor(simulator.worldNowMs())) * 1_000_000n + 1n;
  for (const deviceId of deviceIds) {
    const seed = seedSeries(simulator.world, deviceId, endNs);
    for (const [sensor, instants] of seed) {
      const key = `${identityTag(deviceId)} ${sensor}`;
      const points = stored.get(key) ?? new Map<bigint, ValueText>();
      stored.delete(key);
      const found = compareSeries(instants, points, { ...span, endNs });
      expected += found.expected;
      missing.push(...found.missing.map(({ at, value }) => `${key} ${at} ${value}`));
      missingAt.push(...found.missing.map(({ at }) => ({ deviceId, at })));
      invented.push(...found.invented.map((text) => `${key} ${text}`));
    }
  }
  for (const [key, points] of stored) invented.push(...[...points].map(([at, value]) => `${key} ${at} ${value}`));
  return { missing, missingAt, invented, expected };
}

/** The values of a series by their instants. */
export type StoredSeries = Map<bigint, ValueText>;

const FIELDS = ['value', 'flag', 'text'] as const;

/** The values among the fields of a point of telemetry. */
export function textsOf(fields: { get(name: string): string | number | boolean | undefined }): ValueText[] {
  const texts: ValueText[] = [];
  for (const name of FIELDS) {
    const value = fields.get(name);
    if (value !== undefined) texts.push(textOf(value));
  }
  return texts;
}

function groupBySeries(answered: readonly Series[]): Map<string, StoredSeries> {
  const series = new Map<string, StoredSeries>();
  for (const { tags = {}, values } of answered) {
    const points: StoredSeries = new Map();
    series.set(`${tags['device_id']} ${tags['sensor']}`, points);
    for (const [time, ...fields] of values) addRow(points, time, fields);
  }
  return series;
}

function addRow(points: StoredSeries, time: Cell | undefined, fields: readonly Cell[]): void {
  if (typeof time !== 'string') throw new Error(`a time that is no text: ${String(time)}`);
  const at = BigInt(time);
  for (const value of fields) {
    if (value === null) continue;
    if (points.has(at)) throw new Error('two values of one series at one time');
    points.set(at, textOf(value));
  }
}

/** The readings of a simulated sensor: for each instant its value, or the different ones. */
type SeedSeries = Map<bigint, ValueText | Set<ValueText>>;

/** The known readings of a device so far, up to an instant. */
interface SeedDevice {
  toNs: bigint;
  readonly series: Map<string, SeedSeries>;
}

/** A simulated workspace never changes, so the cache of one verdict serves the next. */
const seeds = new WeakMap<World, Map<string, SeedDevice>>();

/**
 * The simulated readings of a device up to an instant, and perhaps more: for each sensor its instants and their values.
 */
function seedSeries(world: World, deviceId: string, toNs: bigint): ReadonlyMap<string, SeedSeries> {
  const devices = seeds.get(world) ?? new Map<string, SeedDevice>();
  seeds.set(world, devices);
  const seed = devices.get(deviceId) ?? { toNs: 0n, series: new Map<string, SeedSeries>() };
  devices.set(deviceId, seed);
  if (seed.toNs >= toNs) return seed.series;
  for (const { recordedAtNs, values } of world.readings(deviceId, seed.toNs, toNs)) {
    for (const [name, value] of (values ?? []).flatMap(flatten))
      addSeed(seed.series, identityTag(name), recordedAtNs, value);
  }
  seed.toNs = toNs;
  return seed.series;
}

function addSeed(series: Map<string, SeedSeries>, sensor: string, at: bigint, value: ValueText): void {
  const instants = series.get(sensor) ?? new Map<bigint, ValueText | Set<ValueText>>();
  series.set(sensor, instants);
  const known = instants.get(at);
  if (known === undefined) instants.set(at, value);
  else if (typeof known === 'object') known.add(value);
  else if (known !== value) instants.set(at, new Set([known, value]));
}

/** The values that can be points, under dotted names; nulls are absent, infinite numbers belong in quarantine. */
export function flatten([name, json]: SimValue): [string, ValueText][] {
  const read: unknown = JSON.parse(json);
  if (typeof read === 'number' && Number.isFinite(read)) return [[name, textOf(read)]];
  const visit = (key: string, value: unknown): [string, ValueText][] => {
    if (value === null) return [];
    if (typeof value === 'object')
      return Object.entries(value).flatMap(([inner, item]) => visit(`${key}.${inner}`, item));
    if (typeof value === 'number' && !Number.isFinite(value)) return [];
    return [[key, textOf(value as string | number | boolean)]];
  };
  return visit(name, read);
}

/** Text fields go through the encoder's cleaning (control characters), numbers and flags stand for themselves. */
export function textOf(value: string | number | boolean | bigint): ValueText {
  if (typeof value !== 'string') return `${typeof value === 'bigint' ? 'number' : typeof value} ${Number(value)}`;
  const line = encodePoint('m' as SeriesKey, [['text', value]], 0n) ?? '';
  return `string ${line.slice('m text='.length, -' 0'.length)}`;
}

/**
 * @param left the points of the database; what remains of them is invented.
 * @param endNs from here on nothing has happened yet.
 */
function compareSeries(
  instants: SeedSeries,
  left: StoredSeries,
  { fromNs, toNs, endNs }: Span & { readonly endNs: bigint },
): { missing: StoredPoint[]; invented: string[]; expected: number } {
  const missing: StoredPoint[] = [];
  let expected = 0;
  for (const [at, values] of instants) {
    if (at >= endNs) continue;
    const lacking = typeof values === 'string' ? takeOne(left, at, values) : takeSeveral(left, at, values);
    if (at < fromNs || at >= toNs) continue;
    expected += typeof values === 'string' ? 1 : values.size;
    for (const value of lacking) missing.push({ at, value });
  }
  return { missing, invented: [...left].map(([at, value]) => `${at} ${value}`), expected };
}

const NOTHING: readonly ValueText[] = [];

/** @returns the value, where it does not stand on its instant. */
function takeOne(left: StoredSeries, at: bigint, value: ValueText): Iterable<ValueText> {
  if (left.get(at) !== value) return [value];
  left.delete(at);
  return NOTHING;
}

/**
 * The values of an instant stand on it and on the nanoseconds right behind it, in the order of first sight.
 *
 * @returns those that do not.
 */
function takeSeveral(left: StoredSeries, at: bigint, values: ReadonlySet<ValueText>): Iterable<ValueText> {
  const wanted = new Set(values);
  for (let place = at; wanted.size > 0 && place < at + TIE_REACH; place += 1n) {
    const value = left.get(place);
    if (value === undefined || !wanted.delete(value)) break;
    left.delete(place);
  }
  return wanted;
}

/** A verdict in words: what is wrong; an empty list where nothing is, and there were more than `least` points. */
export function complaints({ missing, invented, expected }: Verdict, least: number): string[] {
  const few = expected <= least ? [`the judge expected only ${expected} points`] : [];
  const some = (label: string, list: readonly string[]): string[] =>
    list.length === 0 ? [] : [`${list.length} ${label}, such as ${list.slice(0, 3).join(' | ')}`];
  return [...few, ...some('missing', missing), ...some('invented', invented)];
}
