/**
 * Decodes lines that this program has written, for lookups in the archive and for exports.
 *
 * It relies on what `line-protocol.ts` guarantees: no backslash in a tag except as an escape, no line break, one space
 * before the fields and one before the time. Its work is linear in the length of the line.
 */

import type { EpochNs } from '../time.ts';
import type { FieldValue } from './line-protocol.ts';

/** Whether a line is a reading; the lines of the other measurements are facts about devices, alerts and the account. */
export function isTelemetryLine(line: string): boolean {
  return line.startsWith('telemetry,');
}

/** Whether a line counts the readings of an hour of a device. A later count of the same hour replaces it. */
export function isHourLine(line: string): boolean {
  return line.startsWith('coverage_hour,');
}

/** A parsed line. Order and text are the line's own. */
interface ReadLine {
  readonly measurement: string;
  /** Key and value, the value without its escapes. */
  readonly tags: readonly (readonly [string, string])[];
  /** The key, and the value as written in the line: `21.5`, `true`, `"text"`; see {@link readFieldValue}. */
  readonly fields: readonly (readonly [string, string])[];
  readonly at: EpochNs;
}

/**
 * Parses a line of ours.
 *
 * @throws Error where the text cannot be such a line.
 */
export function readLine(line: string): ReadLine {
  const seriesEnd = endOfSeries(line);
  const fieldsEnd = line.lastIndexOf(' ');
  const time = line.slice(fieldsEnd + 1);
  if (seriesEnd + 1 >= fieldsEnd || !/^-?\d+$/.test(time)) throw notOurs(line);
  const [measurement = '', ...tags] = splitUnescaped(line.slice(0, seriesEnd));
  return {
    measurement,
    tags: tags.map((tag) => readTag(tag, line)),
    fields: readFields(line, seriesEnd + 1, fieldsEnd),
    at: BigInt(time),
  };
}

/** The tags of a series as {@link seriesOf} gave it, the values without their escapes. */
export function readSeries(series: string): readonly (readonly [string, string])[] {
  return splitUnescaped(series)
    .slice(1)
    .map((tag) => readTag(tag, series));
}

/** The series of a line of ours: measurement and tags as written in it. */
export function seriesOf(line: string): string {
  return line.slice(0, endOfSeries(line));
}

/**
 * The measurement and field keys of a line of ours, as one text. A database accepts or rejects lines with the same text
 * together, because it stores the type of a field per measurement. Tags and time are not parsed, because this is called
 * for many lines of each batch.
 *
 * @throws Error where the text cannot be such a line.
 */
export function kindOf(line: string): string {
  const seriesEnd = endOfSeries(line);
  const comma = line.indexOf(',');
  const measurement = line.slice(0, comma === -1 || comma > seriesEnd ? seriesEnd : comma);
  const fields = readFields(line, seriesEnd + 1, line.lastIndexOf(' '));
  if (fields.length === 0) throw notOurs(line);
  return `${measurement} ${fields.map(([key]) => key).join(',')}`;
}

/** The value of a field as {@link readLine} gave it: number, boolean or text. */
export function readFieldValue(raw: string): FieldValue {
  if (raw.startsWith('"')) return raw.slice(1, -1).replace(/\\(["\\])/g, '$1');
  if (raw === 'true' || raw === 'false') return raw === 'true';
  return Number(raw);
}

/**
 * The first space that is not escaped. In a series every backslash is an escape, so looking back one step is enough.
 */
function endOfSeries(line: string): number {
  let end = line.indexOf(' ');
  while (end > 0 && line[end - 1] === '\\') end = line.indexOf(' ', end + 1);
  if (end < 1) throw notOurs(line);
  return end;
}

function splitUnescaped(series: string): string[] {
  if (!series.includes('\\,')) return series.split(',');
  const parts: string[] = [];
  let from = 0;
  for (let comma = series.indexOf(','); comma !== -1; comma = series.indexOf(',', comma + 1)) {
    if (series[comma - 1] === '\\') continue;
    parts.push(series.slice(from, comma));
    from = comma + 1;
  }
  parts.push(series.slice(from));
  return parts;
}

function readTag(tag: string, line: string): readonly [string, string] {
  // Keys are ours and hold no separator, so the first equals sign is the one between key and value.
  const equals = tag.indexOf('=');
  if (equals < 1) throw notOurs(line);
  const value = tag.slice(equals + 1);
  return [tag.slice(0, equals), value.includes('\\') ? value.replace(/\\([,= ])/g, '$1') : value];
}

function readFields(line: string, from: number, end: number): (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = [];
  let start = from;
  while (start < end) {
    const equals = line.indexOf('=', start);
    const valueEnd = endOfValue(line, equals + 1, end);
    if (equals <= start || equals >= end || valueEnd === equals + 1) throw notOurs(line);
    fields.push([line.slice(start, equals), line.slice(equals + 1, valueEnd)]);
    start = valueEnd + 1;
  }
  return fields;
}

/** The index after the value that begins at `from`: the comma behind it, or `end`. */
function endOfValue(line: string, from: number, end: number): number {
  let after = from;
  if (line[from] === '"') {
    after += 1;
    while (after < end && line[after] !== '"') after += line[after] === '\\' ? 2 : 1;
    after += 1;
    if (after > end || (after < end && line[after] !== ',')) throw notOurs(line);
    return after;
  }
  const comma = line.indexOf(',', from);
  return comma === -1 || comma > end ? end : comma;
}

function notOurs(line: string): Error {
  return new Error(`not a valid line of line protocol: ${JSON.stringify(line.slice(0, 200))}`);
}
