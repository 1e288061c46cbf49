/**
 * Builds the URLs of requests. All values from the API (ids, cursors) are encoded, and the result is compared with the
 * base URL, so no value from a server can send the key elsewhere. There is one rule for device ids, so that every id
 * that a listing contains can also be requested.
 */
import { ApiFault, UserError } from '../core/faults.ts';
import type { TelemetryQuery } from '../core/ports.ts';
import type { Cursor } from '../core/records.ts';
import { formatSeconds } from '../core/time.ts';

/** The target of a request: a path below the base, and its parameters. */
export interface Target {
  /** Begins with `/`; parts from outside are encoded. */
  readonly path: string;
  readonly query: readonly (readonly [name: string, value: string])[];
}

/** The name of a request in events and faults: `GET` and the path. Parameters are left out because they are long. */
export function nameRequest(target: Target): string {
  return `GET ${target.path}`;
}

/** Whether the request continues an earlier page. */
export function hasCursor(target: Target): boolean {
  return target.query.some(([name]) => name === 'cursor');
}

export const ACCOUNT_TARGET: Target = { path: '/account', query: [] };

/** The request for one page of the device list; without a cursor, the first page. */
export function devicesTarget(limit: number, cursor: Cursor | null): Target {
  return { path: '/devices', query: [['limit', String(limit)], ...cursorPart(cursor, 'GET /devices')] };
}

/** The request for one page of the alerts; without a cursor, the first page. */
export function alertsTarget(limit: number, cursor: Cursor | null): Target {
  return { path: '/alerts', query: [['limit', String(limit)], ...cursorPart(cursor, 'GET /alerts')] };
}

/**
 * One alert.
 *
 * @throws ApiFault `invalid-request` if the id is not a whole number
 */
export function alertTarget(alertId: number): Target {
  if (!Number.isSafeInteger(alertId)) {
    const request = 'GET /alerts/(unusable id)';
    throw new ApiFault('invalid-request', `${request}: not sent, because the id is not a whole number`, { request });
  }
  return { path: `/alerts/${alertId}`, query: [] };
}

/**
 * A page of the telemetry of a device. The range is sent with a cursor as well: the document requires the same
 * parameters from page to page.
 *
 * @throws ApiFault `invalid-request` if the id is not allowed in a path
 */
export function telemetryTarget(limit: number, { deviceId, after, before, cursor }: TelemetryQuery): Target {
  const problem = deviceIdProblem(deviceId);
  if (problem !== null) {
    const request = 'GET /devices/(unusable id)/telemetry';
    throw new ApiFault('invalid-request', `${request}: not sent, because ${problem}`, { request });
  }
  return {
    path: `/devices/${encodeURIComponent(deviceId)}/telemetry`,
    query: [
      ['limit', String(limit)],
      ...(after === null ? [] : [['after', formatSeconds(after)] as const]),
      ...(before === null ? [] : [['before', formatSeconds(before)] as const]),
      ...cursorPart(cursor, `GET /devices/${encodeURIComponent(deviceId)}/telemetry`),
    ],
  };
}

/** The longest cursor that is sent back, in characters: no server takes a longer URL. */
const MAX_CURSOR_LENGTH = 65_536;

/** Whether a cursor is short enough to be sent back. */
export function isSendableCursor(cursor: Cursor): boolean {
  return cursor.length <= MAX_CURSOR_LENGTH;
}

/**
 * The parameter for a cursor.
 *
 * @throws ApiFault `bad-cursor` if it is too long to be sent
 */
function cursorPart(cursor: Cursor | null, request: string): (readonly [string, string])[] {
  if (cursor === null) return [];
  if (isSendableCursor(cursor)) return [['cursor', cursor]];
  throw new ApiFault('bad-cursor', `${request}: not sent, because the cursor has ${cursor.length} characters`, {
    request,
  });
}

/**
 * Checks the base URL and returns the function that turns a target into an absolute URL.
 *
 * @throws UserError if the base URL is not that of this API
 */
export function createUrls(baseUrl: string): (target: Target) => string {
  const base = readBase(baseUrl);
  return (target) => {
    const url = new URL(`${base.origin}${base.pathname}${target.path}`);
    for (const [name, value] of target.query) url.searchParams.append(name, value);
    if (url.origin !== base.origin || url.pathname !== `${base.pathname}${target.path}` || url.hash !== '') {
      const request = nameRequest(target);
      throw new ApiFault('invalid-request', `${request}: not sent, because its URL would not begin with api.url`, {
        request,
      });
    }
    return url.href;
  };
}

function readBase(baseUrl: string): { origin: string; pathname: string } {
  const url = URL.parse(baseUrl);
  const pathname = url?.pathname.replace(/\/$/, '') ?? '';
  // The URL is not quoted because it may contain a password.
  if (url === null || !/^https?:$/.test(url.protocol) || !pathname.endsWith('/external/v1')) {
    throw new UserError(
      'api.url: expected a URL that ends in /external/v1, such as https://host/external/v1',
      null,
      78,
    );
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new UserError('api.url: expected a URL without user name, password, ? and #', null, 78);
  }
  return { origin: url.origin, pathname };
}

/** The longest device id, in bytes of UTF-8. */
const MAX_ID_BYTES = 256;

/**
 * The problem of a device id; `null` if it is usable. An id is unusable only if it would change the path of a URL (`.`,
 * `..`), cannot be encoded (half a surrogate pair), or contains control characters.
 */
export function deviceIdProblem(id: unknown): string | null {
  if (typeof id !== 'string') return 'device_id is not a string';
  if (id === '') return 'device_id is empty';
  if (id === '.' || id === '..') return 'device_id is "." or "..", which would change the path of the URL';
  if (!id.isWellFormed()) return 'device_id is not valid Unicode';
  if (/\p{Cc}/u.test(id)) return 'device_id has control characters';
  if (new TextEncoder().encode(id).length > MAX_ID_BYTES) return `device_id is longer than ${MAX_ID_BYTES} bytes`;
  return null;
}
