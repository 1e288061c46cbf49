/**
 * Encodes observations as lines of InfluxDB's line protocol: the names in lines, and text from outside made safe for
 * them.
 *
 * Every line is valid on InfluxDB 1.8, 2 and 3 and on VictoriaMetrics. No server can be relied on to report an invalid
 * line: some answer 204 and drop it. The form of a line does not change within a major version: the same observation
 * always gives the same bytes, and two observations of one name belong to one series.
 *
 * Measurements, tag keys and field keys are fixed. Anything that a device reports becomes a value, never a name, so a
 * sensor called `time` is not lost, cannot make a database reject a line, and cannot collide with a tag. No tag key is
 * also a field key, because InfluxDB 3 rejects that.
 */

import { hash64 } from '../hash.ts';
import type { EpochNs } from '../time.ts';

/** A number is always written as a float, so that a field never changes its type. */
export type FieldValue = number | boolean | string;

/** A tag whose value is not escaped yet. */
export type Tag = readonly [TagKey, TagValue];

export type Field = readonly [FieldKey, FieldValue];

/** A point before it is written as a line. */
export interface Point {
  readonly measurement: Measurement;
  /**
   * In the order to be written (InfluxDB 3 keeps the first order it sees). Keys are unique; empty values are left out.
   */
  readonly tags: readonly Tag[];
  /** Keys are unique. Numbers that are not finite are left out: no server accepts them. */
  readonly fields: readonly Field[];
  readonly at: EpochNs;
}

/** Measurement and tags as written in a line: the identity of a series. */
export type SeriesKey = string & { readonly __brand: 'SeriesKey' };

/** Encodes a point. Returns the line without a line end; `null` if no field is left to write. */
export function encodeLine({ measurement, tags, fields, at }: Point): string | null {
  return encodePoint(encodeSeries(measurement, tags), fields, at);
}

/** The part of a line that all points of a series share: worth caching if many are written. */
export function encodeSeries(measurement: Measurement, tags: readonly Tag[]): SeriesKey {
  let series: string = measurement;
  for (const [key, value] of tags) {
    if (value !== '') series += `,${key}=${encodeTagValue(value)}`;
  }
  return series as SeriesKey;
}

/**
 * Encodes a point of a series that {@link encodeSeries} made. Returns the line; `null` if no field is left to write.
 */
export function encodePoint(series: SeriesKey, fields: readonly Field[], at: EpochNs): string | null {
  let written = '';
  for (const [key, value] of fields) {
    const text = encodeFieldValue(value);
    if (text !== null) written += `${written === '' ? ' ' : ','}${key}=${text}`;
  }
  return written === '' ? null : `${series}${written} ${at}`;
}

/**
 * A tag value as written in a line. All separators are escaped; a space at either end of a value survives (seen on
 * InfluxDB 1.6.7).
 */
export function encodeTagValue(value: TagValue): string {
  return /[,= ]/.test(value) ? value.replace(/[,= ]/g, '\\$&') : value;
}

/** Returns a field's value as written in a line; `null` for a number that no line can express. */
export function encodeFieldValue(value: FieldValue): string | null {
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (typeof value === 'string') return `"${fieldText(value).replace(/["\\]/g, '\\$&')}"`;
  // `String` gives the shortest digits that read back as the same double, and 0 for minus zero.
  return Number.isFinite(value) ? String(value) : null;
}

export const MEASUREMENTS = [
  'telemetry',
  'device',
  'alert',
  'alert_state',
  'workspace',
  'coverage',
  'coverage_hour',
] as const;

type Measurement = (typeof MEASUREMENTS)[number];

export const TAG_KEYS = ['device_id', 'sensor', 'device_name', 'model_id', 'alert_id', 'kind', 'workspace_id'] as const;

type TagKey = (typeof TAG_KEYS)[number];

export const FIELD_KEYS = [
  // telemetry, alert_state
  'value',
  'flag',
  'text',
  // device
  'label',
  'online',
  'presence',
  'lifecycle_status',
  'firmware_version',
  'is_addon',
  'parent_device_id',
  'latitude',
  'longitude',
  'location_updated_at',
  'last_seen_ms',
  'tags',
  // alert, alert_state
  'rule_name',
  'condition',
  'threshold',
  'status',
  'open',
  'fire_count',
  // workspace
  'name',
  'devices',
  'open_alerts',
  'plan_id',
  'plan_name',
  'max_api_keys',
  'external_requests_per_minute',
  'external_requests_per_day',
  'history_max_days',
  'max_devices_per_page',
  'requests_spent_minute',
  'requests_left_minute',
  'requests_spent_day',
  'requests_left_day',
  // coverage, coverage_hour
  'state',
  'lag_seconds',
  'gap_seconds',
  'active',
  'watermark_ms',
  'readings',
] as const;

export type FieldKey = (typeof FIELD_KEYS)[number];

/** Text that is a valid tag value once its separators are escaped; empty means "no such tag". */
export type TagValue = string & { readonly __brand: 'TagValue' };

/** Longest tag value in bytes of UTF-8: six of them, escaped, stay far inside the 65 535 bytes of a series key. */
const MAX_TAG_BYTES = 1024;

/** Longest string field in bytes of UTF-8: inside the 64 KB of InfluxDB 2 and VictoriaMetrics' limit for a line. */
const MAX_TEXT_BYTES = 16 * 1024;

/** C0, DEL, C1 and the two line separators of Unicode: some servers end a line at some of them. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const CONTROLS = new RegExp(CONTROL.source, 'gu');

const NOT_IN_TAGS = new RegExp(`${CONTROL.source}|\\\\`, 'u');

/**
 * The suffix that {@link identityTag} appends. A name that happens to end like this is treated as altered, to stay
 * unique.
 */
const MARK = /~[0-9a-f]{8}$/;
const MARK_LENGTH = 9;

/** Whether a tag ends like one that {@link identityTag} altered. */
export function isAltered(tag: string): boolean {
  return MARK.test(tag);
}

/**
 * A tag value that identifies a series (device id, sensor): different names never become one series.
 *
 * A name that had to be altered (a control character or backslash in it, too long, empty) carries `~` and eight
 * hexadecimal digits of a hash of the original; so does one that ends like that by itself.
 */
export function identityTag(value: string): TagValue {
  const clean = cleanTag(value);
  if (clean === value && value !== '' && !isAltered(value) && fitsBytes(value, MAX_TAG_BYTES)) return value as TagValue;
  return (cutToBytes(clean, MAX_TAG_BYTES - MARK_LENGTH) + mark(value)) as TagValue;
}

/**
 * A tag value that only describes (device name, model): cleaned and shortened, without a suffix; may come out empty.
 */
export function descriptiveTag(value: string): TagValue {
  return cutToBytes(cleanTag(value), MAX_TAG_BYTES) as TagValue;
}

/**
 * Text for a string field: control characters become spaces; beyond {@link MAX_TEXT_BYTES} it is cut and carries a
 * hash of the original, so that two long texts stay different.
 */
function fieldText(value: string): string {
  const clean = replaceControls(value.toWellFormed());
  if (fitsBytes(clean, MAX_TEXT_BYTES)) return clean;
  return cutToBytes(clean, MAX_TEXT_BYTES - MARK_LENGTH) + mark(value);
}

/**
 * Backslashes become slashes everywhere, not only at the end: servers disagree on `\\` (two characters in InfluxDB 1
 * and 2, one in 3), and a backslash before a separator hides it. Only a new name is safe on all of them.
 */
function cleanTag(value: string): string {
  const wellFormed = value.toWellFormed();
  if (!NOT_IN_TAGS.test(wellFormed)) return wellFormed;
  return replaceControls(wellFormed).replaceAll('\\', '/');
}

function replaceControls(text: string): string {
  return CONTROL.test(text) ? text.replace(CONTROLS, ' ') : text;
}

function mark(original: string): string {
  return `~${hash64(original).hi.toString(16).padStart(8, '0')}`;
}

function fitsBytes(text: string, maxBytes: number): boolean {
  // A UTF-16 code unit takes at most three bytes of UTF-8: most texts need no counting.
  return text.length * 3 <= maxBytes || cutToBytes(text, maxBytes) === text;
}

/** The longest beginning of well-formed `text` that has at most `maxBytes` bytes of UTF-8 and splits no code point. */
function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  let bytes = 0;
  let index = 0;
  while (index < text.length) {
    const codePoint = text.codePointAt(index) ?? 0;
    bytes += utf8Bytes(codePoint);
    if (bytes > maxBytes) return text.slice(0, index);
    index += codePoint > 0xffff ? 2 : 1;
  }
  return text;
}

function utf8Bytes(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}
