/**
 * What all lists of the API have in common: an object with `data` and, only when there is another page, `next_cursor`;
 * and records that lack what identifies them, which are set aside so that the rest of the page stands.
 */
import { ApiFault } from '../core/faults.ts';
import type { Cursor, RejectedRecord } from '../core/records.ts';

/** More than this in a page cannot be an answer to a limit of at most 200. */
export const MAX_PAGE_ITEMS = 1000;
const MAX_CURSOR_LENGTH = 4096;
const MAX_RECORD_LENGTH = 2000;

/** How deep a value may be nested; deeper ones could exhaust the stack of whatever walks them. */
const MAX_DEPTH = 32;

export interface Envelope {
  /** The page as an object, for the members of its own. */
  readonly page: object;
  readonly data: readonly unknown[];
  readonly nextCursor: Cursor | null;
}

/** A fault about a body that is not what the document promises. */
export function malformed(request: string, words: string): ApiFault {
  return new ApiFault('malformed', `${request}: ${words}`, { request, status: 200 });
}

/** A JSON object: neither null nor a list. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An own member of a parsed object, whatever it is called; `undefined` where there is none. */
export function member(holder: object, name: string): unknown {
  return Object.hasOwn(holder, name) ? (holder as Readonly<Record<string, unknown>>)[name] : undefined;
}

/**
 * Opens the envelope of a list.
 *
 * A `next_cursor` of `null` is read as absent. An empty one is not: the document says that the last page has no such
 * member, "not an empty string", so what an empty one means is unknown, and taking it for the end could claim a span
 * that was not served. Such a page is malformed: asked again, and never a proof of anything.
 *
 * @throws ApiFault `malformed` where it is no list.
 */
export function openEnvelope(body: unknown, request: string): Envelope {
  if (!isObject(body)) throw malformed(request, 'the answer is no JSON object');
  const data = member(body, 'data');
  if (!Array.isArray(data)) throw malformed(request, 'the answer has no list "data"');
  if (data.length > MAX_PAGE_ITEMS) throw malformed(request, `the page has ${data.length} records`);
  return { page: body, data, nextCursor: readCursor(member(body, 'next_cursor'), request) };
}

function readCursor(cursor: unknown, request: string): Cursor | null {
  if (cursor === undefined || cursor === null) return null;
  if (typeof cursor !== 'string') throw malformed(request, '"next_cursor" is no string');
  if (cursor === '') throw malformed(request, '"next_cursor" is empty');
  if (cursor.length > MAX_CURSOR_LENGTH || !cursor.isWellFormed()) {
    throw malformed(request, '"next_cursor" cannot be sent back');
  }
  return cursor as Cursor;
}

/** Sets a record aside: why, and its JSON, shortened. */
export function rejectRecord(reason: string, record: unknown): RejectedRecord {
  return { reason, record: shortJson(record) };
}

function shortJson(record: unknown): string {
  if (isTooDeep(record)) return '(nested too deeply to be shown)';
  const json = JSON.stringify(record) ?? 'null';
  return json.length <= MAX_RECORD_LENGTH ? json : `${json.slice(0, MAX_RECORD_LENGTH).toWellFormed()}…`;
}

/** Whether a parsed value is nested deeper than anything here should have to walk. Does not recurse itself. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return false;
}
