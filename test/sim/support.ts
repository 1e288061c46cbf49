/**
 * Shared parts of the simulator's tests: a clock of the machine, a small world, and one way to send requests in-process
 * and over HTTP.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../src/core/ports.ts';
import { DAY_MS, msToNs } from '../../src/core/time.ts';
import { serveSimulator } from '../../src/sim/server.ts';
import { DEFAULT_KEY } from '../../src/sim/settings.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import type { World } from '../../src/sim/world.ts';
import { createSimulator, type Simulator, type SimulatorOptions } from '../support/faulty-simulator.ts';
import { lowerNames, transportOf } from '../support/sim-transport.ts';
import { createWorld, type DeviceSpec, type WorldOptions } from '../support/trait-world.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

/** 2026-01-15T12:00:00Z */
export const ORIGIN_MS: number = Date.UTC(2026, 0, 15, 12);

export const realClock: Clock = {
  nowMs: () => Date.now(),
  monoMs: () => performance.now(),
  sleep: async (ms, signal) => {
    // Timers hold 24 days at most; nothing here waits longer in earnest.
    await delay(Math.min(ms, 2 ** 31 - 1), undefined, signal === undefined ? {} : { signal });
  },
};

/** A clock that a test moves by hand; sleeping moves it. */
export function createManualClock(startMs: number = ORIGIN_MS): Clock & { advance(ms: number): void } {
  let elapsedMs = 0;
  const advance = (ms: number): void => {
    elapsedMs += ms;
  };
  return {
    nowMs: () => startMs + elapsedMs,
    monoMs: () => elapsedMs,
    sleep: (ms) => Promise.resolve(advance(ms)),
    advance,
  };
}

/** The readings of a device that the API would serve now, oldest first. */
export function visibleReadings(simulator: Simulator, deviceId: string, fromNs: bigint, toNs: bigint): SimReading[] {
  return [...simulator.world.readings(deviceId, fromNs, toNs)].filter((each) => simulator.isVisible(deviceId, each));
}

export interface Asked {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a body holds is what these tests are about
  readonly json: any;
}

export interface AskOptions {
  readonly method?: string;
  /** The `Authorization` header; `null` leaves it out. */
  readonly authorization?: string | null;
}

export type Ask = (pathAndQuery: string, options?: AskOptions) => Promise<Asked>;

/** Sends a request without sockets. */
export function askInProcess(simulator: Simulator, timeoutMs?: number): Ask {
  const transport = transportOf(simulator, timeoutMs);
  return async (path, options = {}) => {
    const headers = requestHeaders(options);
    if (options.method === undefined) {
      const request = { method: 'GET' as const, url: `http://sim.test/external/v1${path}`, headers };
      const { status, headers: answered, body } = await transport(request, new AbortController().signal);
      return readAnswer(status, answered, Buffer.from(body).toString());
    }
    const { answer } = simulator.handle({ method: options.method, target: `/external/v1${path}`, headers });
    return readAnswer(answer.status, lowerNames(answer.headers), Buffer.from(answer.body).toString());
  };
}

/** Sends a request over HTTP. */
export function askOverHttp(baseUrl: string): Ask {
  return async (path, options = {}) => {
    const { method = 'GET' } = options;
    const response = await fetch(`${baseUrl}${path}`, { method, headers: requestHeaders(options) });
    return readAnswer(response.status, Object.fromEntries(response.headers), await response.text());
  };
}

function requestHeaders({ authorization = `Bearer ${DEFAULT_KEY}` }: AskOptions): Record<string, string> {
  return authorization === null ? {} : { authorization };
}

function readAnswer(status: number, headers: Record<string, string>, text: string): Asked {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status, headers, text, json };
}

/**
 * A simulated workspace of 30 days: a hub and two add-ons that report every five minutes, and alerts every six hours.
 */
export function smallWorld(options: Partial<WorldOptions> = {}): World {
  return createWorld({
    seed: 'small',
    originMs: ORIGIN_MS,
    devices: [
      { deviceId: 'hub', name: 'Hub', jitter: 0.5 },
      { deviceId: 'a1', name: 'Add-on 1', parentDeviceId: 'hub', jitter: 0.5 },
      { deviceId: 'a2', name: 'Add-on 2', parentDeviceId: 'hub', jitter: 0.5 },
    ],
    ...options,
  });
}

/** A path of every endpoint that exists in the small world. */
export const ENDPOINTS: readonly string[] = [
  '/devices',
  '/devices/hub',
  '/devices/hub/telemetry',
  '/alerts',
  '/alerts/1119',
  '/account',
];

/** Enough quota that no test uses it up by accident. */
export const AMPLE = { requestsPerMinute: 1_000_000, requestsPerDay: 1_000_000 };

/** A simulator of the small world, at its origin, on a clock that stands still. */
export function smallSimulator(options: Partial<SimulatorOptions> = {}): Simulator {
  return createSimulator({ world: smallWorld(), clock: createVirtualClock(ORIGIN_MS), ...options });
}

/** Runs the same check without sockets and over HTTP. */
export async function onBothWays(
  makeSimulator: () => Simulator,
  check: (ask: Ask, simulator: Simulator) => Promise<void>,
): Promise<void> {
  const near = makeSimulator();
  await check(askInProcess(near), near);
  const far = makeSimulator();
  const server = await serveSimulator(far);
  try {
    await check(askOverHttp(server.url), far);
  } finally {
    await server.close();
  }
}

/** All records of a listing, page after page, by the pages' own cursors. */
export async function walk(ask: Ask, path: string): Promise<{ records: unknown[]; pages: number }> {
  const records: unknown[] = [];
  let cursor = '';
  for (let pages = 1; ; pages += 1) {
    const { status, json, text } = await ask(`${path}${cursor}`);
    if (status !== 200) throw new Error(`${status} ${text}`);
    records.push(...json.data);
    if (!('next_cursor' in json)) return { records, pages };
    cursor = `${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(json.next_cursor)}`;
  }
}

/** A simulated workspace of a day with the one device `d`. */
export function worldOf(device: Omit<DeviceSpec, 'deviceId'>, options: Partial<WorldOptions> = {}): World {
  return createWorld({
    seed: 7,
    originMs: ORIGIN_MS,
    historyMs: DAY_MS,
    devices: [{ deviceId: 'd', ...device }],
    ...options,
  });
}

/** All readings of a device up to a moment. */
export function everything(world: World, id = 'd', untilMs = ORIGIN_MS): SimReading[] {
  return [...world.readings(id, 0n, msToNs(untilMs))];
}
