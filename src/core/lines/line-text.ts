/**
 * Text from outside, made fit for a line: what every server that takes line protocol reads as the same text.
 *
 * Pure, and frozen within a major version: two observations of one name must always give one series.
 */
import { hash64 } from '../hash.ts';

/** Text that may stand as a tag value once its separators are escaped; empty means "no such tag". */
export type TagValue = string & { readonly __brand: 'TagValue' };

/** Longest tag value in bytes of UTF-8: six of them, escaped, stay far inside the 65 535 bytes of a series key. */
export const MAX_TAG_BYTES = 1024;

/** Longest string field in bytes of UTF-8: inside the 64 KB of InfluxDB 2 and VictoriaMetrics' limit for a line. */
export const MAX_TEXT_BYTES = 16 * 1024;

/** C0, DEL, C1 and the two line separators of Unicode: some servers end a line at some of them. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const CONTROLS = new RegExp(CONTROL.source, 'gu');

const UNFIT_FOR_TAG = new RegExp(`${CONTROL.source}|\\\\`, 'u');

/** What {@link identityTag} appends. A name that happens to end like this is treated as altered, to stay unique. */
const MARK = /~[0-9a-f]{8}$/;
const MARK_LENGTH = 9;

/**
 * A tag value that identifies a series (device id, sensor): different names never become one series.
 *
 * A name that had to be altered (a control character or backslash in it, too long, empty) carries `~` and eight
 * hexadecimal digits of a hash of the original; so does one that ends like that by itself.
 */
export function identityTag(value: string): TagValue {
  const clean = cleanTag(value);
  if (clean === value && value !== '' && !MARK.test(value) && fits(value, MAX_TAG_BYTES)) return value as TagValue;
  return (cutToBytes(clean, MAX_TAG_BYTES - MARK_LENGTH) + mark(value)) as TagValue;
}

/** A tag value that only describes (device name, model): cleaned and shortened, without a suffix; may come out empty. */
export function descriptiveTag(value: string): TagValue {
  return cutToBytes(cleanTag(value), MAX_TAG_BYTES) as TagValue;
}

/**
 * Text for a string field: control characters become spaces; beyond {@link MAX_TEXT_BYTES} it is cut and carries a
 * hash of the original, so that two long texts stay different.
 */
export function fieldText(value: string): string {
  const clean = replaceControls(value.toWellFormed());
  if (fits(clean, MAX_TEXT_BYTES)) return clean;
  return cutToBytes(clean, MAX_TEXT_BYTES - MARK_LENGTH) + mark(value);
}

/**
 * Backslashes become slashes everywhere, not only at the end: servers disagree on `\\` (two characters in InfluxDB
 * 1 and 2, one in 3), and a backslash before a separator hides it. Nothing but a fresh name is safe on all of them.
 */
function cleanTag(value: string): string {
  const wellFormed = value.toWellFormed();
  if (!UNFIT_FOR_TAG.test(wellFormed)) return wellFormed;
  return replaceControls(wellFormed).replaceAll('\\', '/');
}

function replaceControls(text: string): string {
  return CONTROL.test(text) ? text.replace(CONTROLS, ' ') : text;
}

function mark(original: string): string {
  return `~${hash64(original).hi.toString(16).padStart(8, '0')}`;
}

function fits(text: string, maxBytes: number): boolean {
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
