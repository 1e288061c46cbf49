/**
 * Which identifiers the program takes from the API and sends back in a path. One rule for both, so that whatever is
 * accepted in a listing can also be asked for.
 */
import { Buffer } from 'node:buffer';

/** The longest device id, in bytes of UTF-8. */
const MAX_ID_BYTES = 256;

/**
 * What is wrong with a device id; `null` where it can be used. Anything goes but what would change the path of a URL
 * (`.`, `..`), cannot be encoded (half a surrogate pair), or has no business in a name (control characters).
 */
export function deviceIdProblem(id: unknown): string | null {
  if (typeof id !== 'string') return 'device_id is no string';
  if (id === '') return 'device_id is empty';
  if (id === '.' || id === '..') return 'device_id would change the path of a request';
  if (!id.isWellFormed()) return 'device_id is no valid Unicode';
  if (/\p{Cc}/u.test(id)) return 'device_id has control characters';
  if (Buffer.byteLength(id) > MAX_ID_BYTES) return `device_id is longer than ${MAX_ID_BYTES} bytes`;
  return null;
}
