/**
 * The API of the bench, as a process of its own: the six endpoints for one workspace, unthrottled, as cheap as can be,
 * so that what is measured is the program. Counts the requests.
 *
 * Started by `parts.ts` with the size of the workspace as its argument; reports its port, and on request its counts.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  countWithin,
  deviceIdOf,
  deviceOf,
  nameOf,
  readingTexts,
  WORKSPACE_ID,
  type WorkspaceSize,
} from './workspace.ts';

/** The requests. A window is the range that requests of one device with one `after` read page by page. */
export interface OriginCounts {
  readonly requests: number;
  readonly telemetryRequests: number;
  readonly windows: readonly WindowCount[];
  /** Answers of which more than half of a page had been served before: what was fetched again. */
  readonly pagesAgain: number;
  /** The most of them that were served to one run before: a run begins with a request for the account. */
  readonly pagesAgainOfRun: number;
  /** When the first request came, in milliseconds since 1970. */
  readonly firstAtMs: number | null;
}

/** The windows of one extent, over all devices. */
export interface WindowCount {
  /** Readings in each of them. */
  readonly readings: number;
  readonly windows: number;
  readonly requests: number;
  /** The most requests that one of them took. */
  readonly most: number;
}

interface Window {
  readonly device: number;
  readonly fromMs: number;
  toMs: number;
  requests: number;
}

const size: WorkspaceSize = JSON.parse(process.argv[2] ?? '{}');
const windows = new Map<string, Window>();
/** Of each device, by how many intervals before the newest one: the run that the reading was served to last, or 0. */
const served = new Map<number, Uint8Array>();
let requests = 0;
let telemetryRequests = 0;
let pagesAgain = 0;
let run = 1;
/** How many pages of each run were served again. */
const againOfRun = new Map<number, number>();
let firstAtMs: number | null = null;

const PLAN = {
  plan_id: 'bench',
  name: 'Bench',
  max_api_keys: 5,
  external_requests_per_minute: 50_000_000,
  external_requests_per_day: 10_000_000_000,
  history_max_days: null,
  max_devices_per_page: 200,
};

const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
  firstAtMs ??= performance.timeOrigin + performance.now();
  requests += 1;
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://bench');
  respond(response, pathname.replace('/external/v1', ''), searchParams);
});

function respond(response: ServerResponse, path: string, query: URLSearchParams): void {
  const text = bodyOf(path, query);
  if (text === null) {
    response.writeHead(404, { 'Content-Type': 'application/json' });
    response.end('{"error":{"code":"not_found","message":"No such resource."}}');
  } else send(response, text);
}

function bodyOf(path: string, query: URLSearchParams): string | null {
  const limit = Number(query.get('limit') ?? 50);
  const deviceId = /^\/devices\/([^/]+)\/telemetry$/.exec(path)?.[1];
  if (deviceId !== undefined) return telemetry(decodeURIComponent(deviceId), query, limit);
  if (path === '/devices') return devices(query, limit);
  if (path === '/alerts') return '{"data":[]}';
  const usage = { devices: size.devices, open_alerts: 0 };
  const account = { workspace_id: WORKSPACE_ID, name: 'Bench', plan: PLAN, usage };
  if (path !== '/account') return null;
  run += 1;
  return JSON.stringify(account);
}

function send(response: ServerResponse, text: string): void {
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': String(text.length),
    'X-RateLimit-Limit': String(PLAN.external_requests_per_minute),
    'X-RateLimit-Remaining': String(PLAN.external_requests_per_minute - 1),
  });
  // Nothing here is outside of ASCII.
  response.end(text, 'latin1');
}

function devices(query: URLSearchParams, limit: number): string {
  const from = Number(query.get('cursor') ?? 0);
  const to = Math.min(from + limit, size.devices);
  const data = Array.from({ length: to - from }, (_, index) => {
    const deviceId = deviceIdOf(from + index);
    return {
      device_id: deviceId,
      name: nameOf(deviceId),
      model_id: 'bench-1',
      lifecycle_status: 'active',
      online: true,
      last_seen_at: new Date(size.newestMs).toISOString(),
    };
  });
  return JSON.stringify({ data, ...(to < size.devices ? { next_cursor: String(to) } : {}) });
}

/** The window is carried in the cursor: its beginning, and the time that the page ended above. */
function telemetry(deviceId: string, query: URLSearchParams, limit: number): string {
  const device = deviceOf(deviceId);
  const [cursorFrom, cursorTo] = (query.get('cursor') ?? '').split('.');
  const fromMs = cursorTo === undefined ? boundOf(query.get('after'), 0) : Number(cursorFrom);
  const toMs = cursorTo === undefined ? boundOf(query.get('before'), size.newestMs) : Number(cursorTo);
  count(device, fromMs, toMs);
  const texts = readingTexts(size, device, { fromMs, toMs, limit });
  const left = countWithin(size, fromMs, toMs) - texts.length;
  const newestMs = Math.floor(Math.min(toMs, size.newestMs) / size.intervalMs) * size.intervalMs;
  const back = (size.newestMs - newestMs) / size.intervalMs;
  const { before, lastRun } = markServed(device, back, texts.length);
  if (before > limit / 2) {
    pagesAgain += 1;
    againOfRun.set(lastRun, (againOfRun.get(lastRun) ?? 0) + 1);
  }
  const next = left > 0 ? `,"next_cursor":"${fromMs}.${newestMs - texts.length * size.intervalMs}"` : '';
  return `{"device_id":"${deviceId}","data":[${texts.join()}]${next}}`;
}

/** Marks readings as served. @returns how many of them were before, and to which run last */
function markServed(
  device: number,
  back: number,
  count: number,
): { readonly before: number; readonly lastRun: number } {
  const marks = served.get(device) ?? new Uint8Array(size.readings);
  served.set(device, marks);
  const runs = marks.subarray(back, back + count).filter((each) => each > 0);
  marks.fill(run, back, back + count);
  return { before: runs.length, lastRun: Math.max(0, ...runs) };
}

function boundOf(text: string | null, otherwise: number): number {
  return text === null ? otherwise : Date.parse(text);
}

function count(device: number, fromMs: number, toMs: number): void {
  telemetryRequests += 1;
  const key = `${device} ${fromMs}`;
  const window = windows.get(key);
  if (window === undefined) windows.set(key, { device, fromMs, toMs, requests: 1 });
  else {
    window.requests += 1;
    window.toMs = Math.max(window.toMs, toMs);
  }
}

function countsNow(): OriginCounts {
  const byReadings = new Map<number, { readings: number; windows: number; requests: number; most: number }>();
  for (const window of windows.values()) {
    const readings = countWithin(size, window.fromMs, window.toMs);
    const sum = byReadings.get(readings) ?? { readings, windows: 0, requests: 0, most: 0 };
    sum.windows += 1;
    sum.requests += window.requests;
    sum.most = Math.max(sum.most, window.requests);
    byReadings.set(readings, sum);
  }
  const pagesAgainOfRun = Math.max(0, ...againOfRun.values());
  return { requests, telemetryRequests, windows: [...byReadings.values()], pagesAgain, pagesAgainOfRun, firstAtMs };
}

process.on('message', () => process.send?.(countsNow()));
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
