/**
 * The judge: what the seed says against what a query of the database returns. It knows nothing of the program's archive,
 * coverage or status; of the program's rules it uses only the names of series, which have tests of their own.
 *
 * Its findings: *missing* (a reading of the span that has no point), *invented* (a point that no reading explains,
 * duplicates included), *misnamed* (a point under a name that its device did not have then).
 */
import { encodePoint, identityTag, type SeriesKey } from '../../src/core/lines/line-protocol.ts';
import type { Simulator } from '../../src/sim/simulator.ts';
import type { SimValue } from '../../src/sim/spec.ts';
import type { Influxd, Row } from './influxd.ts';

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
  /** Points that the seed says there are in the span: a test that expects many has to see many. */
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
 * Compares the telemetry of every device that the world ever had.
 *
 * @param span must be there in full; beyond it readings of the seed may be there, and nothing else.
 */
export async function judge(
  { influxd, database, simulator }: { influxd: Influxd; database: string; simulator: Simulator },
  span: Span,
  deviceIds: readonly string[],
): Promise<Verdict> {
  return judgeRows({ rows: await influxd.query(database, 'SELECT * FROM telemetry'), simulator }, span, deviceIds);
}

/** The same of rows that were queried before. */
export function judgeRows(
  { rows, simulator }: { readonly rows: readonly Row[]; readonly simulator: Simulator },
  span: Span,
  deviceIds: readonly string[],
): Verdict {
  const stored = groupBySeries(rows);
  const missing: string[] = [];
  const missingAt: Place[] = [];
  const invented: string[] = [];
  let expected = 0;
  for (const deviceId of deviceIds) {
    const seed = seedSeries(simulator, deviceId);
    for (const [sensor, instants] of seed) {
      const key = `${identityTag(deviceId)} ${sensor}`;
      const points = stored.get(key) ?? [];
      stored.delete(key);
      const found = compareSeries(instants, points, span);
      expected += found.expected;
      missing.push(...found.missing.map(({ at, value }) => `${key} ${at} ${value}`));
      missingAt.push(...found.missing.map(({ at }) => ({ deviceId, at })));
      invented.push(...found.invented.map((text) => `${key} ${text}`));
    }
  }
  for (const [key, points] of stored) invented.push(...points.map(({ at, value }) => `${key} ${at} ${value}`));
  return { missing, missingAt, invented, expected };
}

function groupBySeries(rows: readonly Row[]): Map<string, StoredPoint[]> {
  const series = new Map<string, StoredPoint[]>();
  for (const row of rows) {
    const key = `${String(row.device_id)} ${String(row.sensor)}`;
    const at = row.time;
    if (typeof at !== 'bigint') throw new Error(`a time that is no bigint: ${String(at)}`);
    const points = series.get(key) ?? [];
    for (const field of ['value', 'flag', 'text'] as const) {
      const value = row[field];
      if (value !== null && value !== undefined) points.push({ at, value: textOf(value) });
    }
    series.set(key, points);
  }
  return series;
}

/** All that the world has of a device: for each sensor its instants, and the different values of each. */
function seedSeries(simulator: Simulator, deviceId: string): Map<string, Map<bigint, Set<ValueText>>> {
  const series = new Map<string, Map<bigint, Set<ValueText>>>();
  const now = BigInt(Math.floor(simulator.worldNowMs())) * 1_000_000n;
  for (const reading of simulator.world.readings(deviceId, 0n, now + 1n)) {
    for (const [name, value] of (reading.values ?? []).flatMap(flatten)) {
      const sensor = identityTag(name);
      const instants = series.get(sensor) ?? new Map<bigint, Set<ValueText>>();
      const values = instants.get(reading.recordedAtNs) ?? new Set();
      instants.set(reading.recordedAtNs, values.add(value));
      series.set(sensor, instants);
    }
  }
  return series;
}

/** The values that can be points, under dotted names; nulls are absent, infinite numbers belong in quarantine. */
export function flatten([name, json]: SimValue): [string, ValueText][] {
  const visit = (key: string, value: unknown): [string, ValueText][] => {
    if (value === null) return [];
    if (typeof value === 'object')
      return Object.entries(value).flatMap(([inner, item]) => visit(`${key}.${inner}`, item));
    if (typeof value === 'number' && !Number.isFinite(value)) return [];
    return [[key, textOf(value as string | number | boolean)]];
  };
  return visit(name, JSON.parse(json));
}

/** Text fields go through the encoder's cleaning (control characters), numbers and flags stand for themselves. */
export function textOf(value: string | number | boolean | bigint): ValueText {
  if (typeof value !== 'string') return `${typeof value === 'bigint' ? 'number' : typeof value} ${Number(value)}`;
  const line = encodePoint('m' as SeriesKey, [['text', value]], 0n) ?? '';
  return `string ${line.slice('m text='.length, -' 0'.length)}`;
}

function compareSeries(
  instants: ReadonlyMap<bigint, ReadonlySet<ValueText>>,
  points: readonly StoredPoint[],
  span: Span,
): { missing: StoredPoint[]; invented: string[]; expected: number } {
  const left = new Map(points.map(({ at, value }) => [at, value]));
  if (left.size !== points.length) throw new Error('two values of one series at one time');
  const missing: StoredPoint[] = [];
  let expected = 0;
  for (const [at, values] of instants) {
    const wanted = new Set(values);
    if (span.fromNs <= at && at < span.toNs) expected += wanted.size;
    // The values of an instant stand on it and on the nanoseconds right behind it, in the order of first sight.
    for (let place = at; wanted.size > 0 && place < at + TIE_REACH; place += 1n) {
      const value = left.get(place);
      if (value === undefined || !wanted.delete(value)) break;
      left.delete(place);
    }
    if (span.fromNs <= at && at < span.toNs) missing.push(...[...wanted].map((value) => ({ at, value })));
  }
  return { missing, invented: [...left].map(([at, value]) => `${at} ${value}`), expected };
}
