/**
 * Members of records, read one by one at the border: what is null, absent or of an odd type is `null`.
 *
 * By hand, and not by a schema library: no member is ever a reason to refuse a record (what identifies one is checked
 * apart), so a schema would be all exceptions, and loading one costs a fifth of the time to the first request.
 */
import { type EpochNs, parseTimestamp } from '../core/time.ts';
import { member } from './envelope.ts';

/** A text, the empty one included. */
export function textIn(holder: object, name: string): string | null {
  const value = member(holder, name);
  return typeof value === 'string' ? value : null;
}

export function flagIn(holder: object, name: string): boolean | null {
  const value = member(holder, name);
  return typeof value === 'boolean' ? value : null;
}

/** A finite number: JSON can hold larger ones than a double, which come out infinite. */
export function numberIn(holder: object, name: string): number | null {
  const value = member(holder, name);
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** A whole number that a double holds exactly. */
export function wholeIn(holder: object, name: string): number | null {
  const value = member(holder, name);
  return Number.isSafeInteger(value) ? Number(value) : null;
}

/** A whole number, 0 or more. */
export function countIn(holder: object, name: string): number | null {
  const value = wholeIn(holder, name);
  return value !== null && value >= 0 ? value : null;
}

/** A whole number above 0: a limit of 0 would be none that anybody could work with. */
export function figureIn(holder: object, name: string): number | null {
  const value = wholeIn(holder, name);
  return value !== null && value > 0 ? value : null;
}

/** A timestamp; one that is none is `null` as well. */
export function timeIn(holder: object, name: string): EpochNs | null {
  const value = textIn(holder, name);
  return value === null ? null : parseTimestamp(value);
}

/** The texts of a list; what is none is left out, and what is no list is an empty one. */
export function textsIn(holder: object, name: string): readonly string[] {
  const value = member(holder, name);
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
