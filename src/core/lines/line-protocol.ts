/**
 * The encoder: observations to lines of InfluxDB's line protocol.
 *
 * Every line is valid by construction on InfluxDB 1.8, 2 and 3 and on VictoriaMetrics, because no server can be relied
 * on to say so: some answer 204 to lines that they throw away. The form of a line is frozen within a major version
 * (design 1.4): the same observation gives the same bytes, whenever it is written.
 */

import type { EpochNs } from '../time.ts';
import type { FieldKey, Measurement, TagKey } from './line-names.ts';
import { fieldText, type TagValue } from './line-text.ts';

/** A number is always written as a float, so that a field never changes its type. */
export type FieldValue = number | boolean | string;

export type Tag = readonly [TagKey, TagValue];

export type Field = readonly [FieldKey, FieldValue];

export interface Point {
  readonly measurement: Measurement;
  /** In the order to be written (InfluxDB 3 keeps the first order it sees). Keys are unique; empty values are left out. */
  readonly tags: readonly Tag[];
  /** Keys are unique. Numbers that are not finite are left out: no server takes them. */
  readonly fields: readonly Field[];
  readonly at: EpochNs;
}

/** Measurement and tags as they stand in a line: what identifies a series. */
export type SeriesKey = string & { readonly __brand: 'SeriesKey' };

/** @returns the line, without a line end; `null` where no field is left to write. */
export function encodeLine({ measurement, tags, fields, at }: Point): string | null {
  return encodePoint(encodeSeries(measurement, tags), fields, at);
}

/** The part of a line that all points of a series share: worth keeping where many are written. */
export function encodeSeries(measurement: Measurement, tags: readonly Tag[]): SeriesKey {
  let series: string = measurement;
  for (const [key, value] of tags) {
    if (value !== '') series += `,${key}=${encodeTagValue(value)}`;
  }
  return series as SeriesKey;
}

/** @returns the line of a series that {@link encodeSeries} made; `null` where no field is left to write. */
export function encodePoint(series: SeriesKey, fields: readonly Field[], at: EpochNs): string | null {
  let written = '';
  for (const [key, value] of fields) {
    const text = encodeFieldValue(value);
    if (text !== null) written += `${written === '' ? ' ' : ','}${key}=${text}`;
  }
  return written === '' ? null : `${series}${written} ${at}`;
}

/**
 * A tag value as it stands in a line. Separators are escaped wherever they stand; a space at either end of a value
 * survives (seen on InfluxDB 1.6.7).
 */
export function encodeTagValue(value: TagValue): string {
  return /[,= ]/.test(value) ? value.replace(/[,= ]/g, '\\$&') : value;
}

/** @returns a field's value as it stands in a line; `null` for a number that no line can hold. */
export function encodeFieldValue(value: FieldValue): string | null {
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (typeof value === 'string') return `"${fieldText(value).replace(/["\\]/g, '\\$&')}"`;
  // `String` gives the shortest digits that read back as the same double, and 0 for minus zero.
  return Number.isFinite(value) ? String(value) : null;
}
