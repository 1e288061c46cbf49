/**
 * What a window of a device holds against what the API serves of it now. Pure.
 */
import { type DeviceFilter, keptReading } from '../../core/filter.ts';
import { encodeFieldValue } from '../../core/lines/line-protocol.ts';
import { readLine } from '../../core/lines/line-reader.ts';
import { identityTag } from '../../core/lines/line-text.ts';
import { addPoint, emptySum, isSameSum, type PointSum, pointIdentity } from '../../core/lines/point-sum.ts';
import { flattenReading } from '../../core/lines/points.ts';
import type { Reading } from '../../core/records.ts';
import type { Tie } from '../../core/state/telemetry.ts';
import type { EpochNs } from '../../core/time.ts';

/** Values by instant, sensor and value. */
export type ValueSet = Set<string>;

/** The values of a reading, those of sensors that are left out not. */
export function addReading(values: ValueSet, reading: Reading, filter: Pick<DeviceFilter, 'keepsSensor'>): void {
  for (const { sensor, field, value } of flattenReading(keptReading(filter, reading)).values) {
    const text = encodeFieldValue(value);
    if (text !== null) values.add(keyOf(reading.recordedAt, identityTag(sensor), `${field}=${text}`));
  }
}

/** The values of archived lines, each at the instant at which it was recorded. */
export function valuesOf(
  lines: readonly string[],
  { ties, filter }: { readonly ties: readonly Tie[]; readonly filter: Pick<DeviceFilter, 'keepsSensor'> },
): { readonly values: ValueSet; readonly at: (key: string) => EpochNs } {
  const recorded = new Map(ties.map((tie) => [`${tie.writtenNs} ${tie.sensor} ${tie.field}`, tie.recordedNs]));
  const values: ValueSet = new Set();
  for (const line of lines) {
    if (!line.startsWith('telemetry,')) continue;
    const { tags, fields, at } = readLine(line);
    const sensor = tags.find(([name]) => name === 'sensor')?.[1] ?? '';
    const [name = '', raw = ''] = fields[0] ?? [];
    const field = `${name}=${raw}`;
    if (filter.keepsSensor(sensor)) values.add(keyOf(recorded.get(`${at} ${sensor} ${field}`) ?? at, sensor, field));
  }
  return { values, at: (key) => BigInt(key.slice(0, key.indexOf(' '))) };
}

const keyOf = (at: EpochNs, sensor: string, field: string): string => pointIdentity(`${at}`, sensor, field);

export interface Compared {
  /** Served and not held. */
  readonly missing: number;
  /** Held and not served. */
  readonly gone: number;
}

/** Compares value by value. */
export function compareValues(served: ValueSet, held: ValueSet): Compared {
  const lacking = (from: ValueSet, of: ValueSet): number => [...of].filter((key) => !from.has(key)).length;
  return { missing: lacking(held, served), gone: lacking(served, held) };
}

/** Compares a whole day of which nothing but its sum is kept: how many differ is told at least. */
export function compareSum(served: ValueSet, kept: PointSum, ties: readonly Tie[]): Compared {
  const written = new Map(ties.map((tie) => [keyOf(tie.recordedNs, tie.sensor, tie.field), tie.writtenNs]));
  const sum = emptySum();
  for (const key of served) {
    const at = written.get(key);
    addPoint(sum, at === undefined ? key : `${at}${key.slice(key.indexOf(' '))}`);
  }
  if (isSameSum(sum, kept)) return { missing: 0, gone: 0 };
  const more = sum.points - kept.points;
  return more === 0 ? { missing: 1, gone: 1 } : { missing: Math.max(0, more), gone: Math.max(0, -more) };
}
