/**
 * The client of the API: retries, waits, page sizes, bookings and aborts. The transport is a script, in virtual time.
 */
import { describe, expect, test } from 'vitest';
import { createHttpTransport } from '../../src/api/transport.ts';
import { ApiFault, TransportError } from '../../src/core/faults.ts';
import type { TelemetryQuery } from '../../src/core/ports.ts';
import type { Cursor } from '../../src/core/records.ts';
import { createClientWorld, faultOf, KEY, PURPOSE, SIGNAL, type Step } from './support/client-world.ts';
import { answer, startOddServer } from './support/odd-server.ts';
import { START_MS } from './support/paced-world.ts';

const QUERY: TelemetryQuery = { deviceId: 'd', after: null, before: null, cursor: null };
const RESET = new TransportError('reset', 'the connection was closed');
const telemetry = (world: ReturnType<typeof createClientWorld>, query: Partial<TelemetryQuery> = {}) =>
  world.api.telemetry({ ...QUERY, ...query }, PURPOSE, SIGNAL);

describe('an answer', () => {
  test('brings its value, the server’s time and the booking', async () => {
    const world = createClientWorld([{ body: { data: [{ device_id: 'd' }], next_cursor: 'n' } }]);
    const reply = await world.api.devices(null, PURPOSE, SIGNAL);
    expect(reply.value).toMatchObject({ devices: [{ deviceId: 'd' }], nextCursor: 'n' });
    expect(reply.requestId).toBe(1);
    expect(Math.abs(reply.answeredAtMs - START_MS)).toBeLessThan(1100);
    expect(world.ledger.bookings).toMatchObject([{ purpose: PURPOSE, outcome: { status: 200, fault: null } }]);
    expect(world.events).toEqual([
      {
        type: 'request-done',
        request: 'GET /devices',
        stream: 'telemetry',
        lane: 'live',
        status: 200,
        durationMs: 40,
        fault: null,
        bytes: { wire: 46, decoded: 46 },
      },
    ]);
  });

  test('sets the server’s clock, unless a gateway gave it', async () => {
    const world = createClientWorld([{ status: 502, text: '<html>' }, {}], { retries: 0 });
    await faultOf(telemetry(world));
    expect(world.serverClock.skewMs()).toBeNull();
    await telemetry(world);
    expect(world.serverClock.skewMs()).not.toBeNull();
  });

  test('without a Date leaves the newest reading as evidence of the server’s time', async () => {
    const body = { data: [{ recorded_at: '2026-11-21T11:59:00Z' }, { recorded_at: '2026-11-21T11:58:00Z' }] };
    const world = createClientWorld([{ body, headers: { date: '' } }]);
    await telemetry(world);
    expect(world.serverClock.highestPassedMs()).toBe(Date.UTC(2026, 10, 21, 11, 59));
  });
});

describe('a fault that may pass', () => {
  const passing: readonly (readonly [string, Step | Error])[] = [
    ['unreachable', RESET],
    ['server-fault', { status: 500, text: '' }],
    ['malformed', { text: '{"data":' }],
    ['malformed', { body: { data: 7 } }],
  ];

  test.each(passing)(
    '%s: is tried again after 0.75, 1.5, 3, 6 s, each try booked, and then thrown',
    async (kind, step) => {
      const world = createClientWorld([step]);
      expect((await faultOf(telemetry(world))).kind).toBe(kind);
      const sentMs = world.requests.map(({ atMs }) => atMs);
      expect(sentMs.slice(1).map((atMs, i) => atMs - (sentMs[i] ?? 0) - 40)).toEqual([750, 1500, 3000, 6000]);
      expect(world.ledger.bookings.map(({ outcome }) => outcome?.fault)).toEqual([kind, kind, kind, kind, kind]);
      const retried = world.events.filter(({ type }) => type === 'request-retried');
      expect(retried.map((event) => event.type === 'request-retried' && event.attempt)).toEqual([1, 2, 3, 4]);
    },
  );

  test('is forgotten when the next try is answered', async () => {
    const world = createClientWorld([RESET, { status: 503, text: '' }, { body: { data: [] } }]);
    const reply = await telemetry(world);
    expect([reply.requestId, world.requests.length]).toEqual([3, 3]);
  });

  test('is not retried before the wait of a 503 is over, and no other request is sent', async () => {
    const world = createClientWorld([{ status: 503, text: '', headers: { 'retry-after': '90' } }, {}]);
    const retried = telemetry(world);
    await world.clock.sleep(1000);
    const other = telemetry(world);
    await Promise.all([retried, other]);
    for (const { atMs } of world.requests.slice(1)) expect(atMs).toBeGreaterThanOrEqual(90_040);
  });

  test('ends with the abort when that comes during the wait', async () => {
    const world = createClientWorld([RESET]);
    const stop = new AbortController();
    const asked = world.api.telemetry(QUERY, PURPOSE, stop.signal);
    await world.clock.sleep(500);
    stop.abort(new Error('stopping'));
    await expect(asked).rejects.toThrow('stopping');
    expect(world.requests.length).toBe(1);
  });
});

describe('an answer that is too large to be read', () => {
  const tooLarge = new TransportError('too-large', 'more than 2 MiB');
  const limits = (world: ReturnType<typeof createClientWorld>): (string | null)[] =>
    world.requests.map(({ url }) => new URL(url).searchParams.get('limit'));

  test('is not requested again; smaller pages of this list are, now and later', async () => {
    const many = { data: Array.from({ length: 300 }, () => [...Array<number>(400)].fill(1)) };
    const world = createClientWorld([tooLarge, { body: many }, { body: { data: [] } }, {}, {}]);
    await telemetry(world);
    await telemetry(world);
    await telemetry(world, { deviceId: 'another' });
    expect(limits(world)).toEqual(['200', '50', '13', '13', '200']);
  });

  test('is a malformed one where not even a single record can be read, or within a chain of cursors', async () => {
    const world = createClientWorld([tooLarge]);
    expect(await faultOf(telemetry(world))).toMatchObject({ kind: 'malformed', facts: { isTooLarge: true } });
    expect(limits(world)).toEqual(['200', '50', '13', '4', '1']);
    const chained = createClientWorld([tooLarge]);
    await faultOf(telemetry(chained, { cursor: 'c' as Cursor }));
    expect(limits(chained)).toEqual(['200']);
  });
});

describe('a rejection for the quota', () => {
  const rejected: Step = { status: 429, text: '{}', headers: { 'retry-after': '120' } };

  test('is waited for by all requests, and the retry is another booking', async () => {
    const world = createClientWorld([rejected, {}]);
    const first = telemetry(world);
    await world.clock.sleep(100);
    await Promise.all([first, telemetry(world)]);
    expect(world.requests.map(({ atMs }) => atMs >= 120_040)).toEqual([false, true, true]);
    expect(world.ledger.bookings.map(({ outcome }) => outcome?.status)).toEqual([429, 200, 200]);
  });

  test('however long, the wait is in the ledger before it begins', async () => {
    const world = createClientWorld([{ ...rejected, headers: { 'retry-after': '86400' } }, {}]);
    const asked = telemetry(world);
    await world.clock.sleep(100);
    expect(world.ledger.blockedUntilMs(START_MS)).toBeGreaterThan(START_MS + 86_400_000);
    await asked;
    expect(world.requests[1]?.atMs).toBeGreaterThan(86_400_000);
  });

  test('that continues is thrown in the end', async () => {
    const world = createClientWorld([rejected], { retries: 2 });
    expect(await faultOf(telemetry(world))).toMatchObject({ kind: 'throttled', facts: { waitMs: 120_000 } });
    expect(world.requests.length).toBe(3);
  });
});

test.each([401, 403, 404, 405])('a %i is thrown at once', async (status) => {
  const world = createClientWorld([{ status, body: { error: { code: 'x' } } }]);
  await faultOf(telemetry(world));
  expect([world.requests.length, world.ledger.bookings[0]?.outcome?.status]).toEqual([1, status]);
});

test('a 400 is thrown after tries with smaller pages, as the limit may be at fault; the next one after one try', async () => {
  const world = createClientWorld([{ status: 400, body: { error: { code: 'invalid_request' } } }]);
  await faultOf(telemetry(world));
  await faultOf(telemetry(world));
  const limits = world.requests.map(({ url }) => Number(new URL(url).searchParams.get('limit')));
  expect(limits).toEqual([200, 50, 25, 12, 6, 3, 1, 200, 50]);
  expect(world.ledger.bookings.map(({ outcome }) => outcome?.status)).toEqual(limits.map(() => 400));
});

test('an abort leaves no request under way: the booking is resolved and the place is free', async () => {
  const world = createClientWorld([{}]);
  const stop = new AbortController();
  const asked = world.api.telemetry(QUERY, PURPOSE, stop.signal);
  await world.clock.sleep(10);
  stop.abort(new Error('stopping'));
  await expect(asked).rejects.toThrow('stopping');
  expect(world.ledger.bookings).toMatchObject([{ outcome: { status: null, fault: null } }]);
  for (let i = 0; i < 5; i += 1) await telemetry(world);
  expect(world.requests.length).toBe(6);
});

test('a request that is aborted with the fault of another one has none of its own', async () => {
  const world = createClientWorld([{}]);
  const stop = new AbortController();
  const asked = world.api.telemetry(QUERY, PURPOSE, stop.signal);
  await world.clock.sleep(10);
  const fault = new ApiFault('unauthorized', 'rejected', { request: 'GET /alerts' });
  stop.abort(fault);
  await expect(asked).rejects.toBe(fault);
  expect(world.ledger.bookings).toMatchObject([{ outcome: { status: null, fault: null } }]);
});

test('an error of this program is neither hidden nor retried, and its booking is resolved', async () => {
  const world = createClientWorld([new TypeError('a mistake')]);
  await expect(telemetry(world)).rejects.toThrow(TypeError);
  expect([world.requests.length, world.ledger.bookings[0]?.outcome]).toEqual([1, { status: null, fault: null }]);
});

test('the key is in nothing that is reported or thrown, even if the server repeats it', async () => {
  const echo = { error: { code: KEY, message: `no such key: ${KEY}`, required_scope: KEY } };
  const steps: readonly (Step | Error)[] = [
    ...[400, 401, 403, 404, 429, 500, 302].map((status) => ({ status, body: echo, headers: { location: KEY } })),
    { text: KEY },
    { body: { data: KEY } },
    RESET,
  ];
  for (const step of steps) {
    const world = createClientWorld([step], { retries: 1 });
    const fault = await faultOf(world.api.devices('c' as Cursor, PURPOSE, SIGNAL));
    const reported = JSON.stringify([
      fault.message,
      fault.stack,
      fault.facts,
      fault.cause,
      world.events,
      world.ledger.bookings,
    ]);
    expect(reported).not.toContain(KEY);
  }
});

test('a wait that the API requests is in the ledger before any caller gets the answer', async () => {
  const headers = { 'retry-after': '30', 'x-ratelimit-limit': '777', 'x-ratelimit-remaining': '0' };
  const world = createClientWorld([{ status: 429, headers, body: {} }, {}]);
  const keptMs: number[] = [];
  world.events.push = (): number =>
    world.ledger.bookings.length > 1 ? 0 : keptMs.push(world.ledger.blockedUntilMs(START_MS));
  await telemetry(world);
  expect(keptMs.length).toBeGreaterThan(1);
  expect(Math.min(...keptMs)).toBeGreaterThanOrEqual(START_MS + 30_000);
});

describe('over real sockets', () => {
  const page = '{"device_id":"d","data":[{"recorded_at":"2026-11-21T11:59:00Z","values":{"t":1}}]}';

  test('a page arrives through cuts, stumps, pages of a gateway and faults of the service', async () => {
    await using server = await startOddServer(
      (socket) => socket.destroy(),
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{"data":['),
      answer('<html>Bad gateway', { status: 502, headers: { 'content-type': 'text/html' } }),
      answer('{"error":{"code":"internal"}}', { status: 500 }),
      answer(page),
    );
    const { transport, close } = createHttpTransport({ timeoutMs: 60_000 });
    const world = createClientWorld([], {
      transport: (request, signal) => world.clock.busy(transport(request, signal)),
      baseUrl: `${server.url}/external/v1`,
    });
    const { value } = await telemetry(world);
    expect(value.readings.map(({ values }) => values)).toEqual([[['t', 1]]]);
    expect(world.ledger.bookings.map(({ outcome }) => outcome?.fault)).toEqual([
      'unreachable',
      'unreachable',
      'server-fault',
      'server-fault',
      null,
    ]);
    await close();
  });
});
