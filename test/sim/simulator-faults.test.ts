/** Each fault has its documented effect: in-process as a `TransportError` or an answer, and on a socket. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { TransportError } from '../../src/core/faults.ts';
import { serveSimulator } from '../../src/sim/server.ts';
import { DEFAULT_KEY } from '../../src/sim/settings.ts';
import { always, anyOf, atRate, betweenTimes, onPath, onRequest } from '../support/faults.ts';
import type { Fault, FaultPlan, Simulator } from '../support/faulty-simulator.ts';
import { transportOf } from '../support/sim-transport.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';
import {
  askInProcess,
  createManualClock,
  ORIGIN_MS,
  onBothWays,
  realClock,
  smallSimulator,
  smallWorld,
} from './support.ts';

const PATH = '/devices/a1/telemetry?limit=100';
const faulty = (fault: Fault) => () => smallSimulator({ faults: always(fault) });

test('server-error gives JSON with code and limits, any status and a wait; it costs quota', async () => {
  await onBothWays(faulty({ kind: 'server-error' }), async (ask, simulator) => {
    const { status, json, headers } = await ask(PATH);
    expect([status, json.error.code, headers['x-ratelimit-remaining']]).toEqual([500, 'internal_error', '119']);
    simulator.faults = always({ kind: 'server-error', status: 503, waitSeconds: 7 });
    expect(await ask(PATH)).toMatchObject({
      status: 503,
      headers: { 'retry-after': '7', 'x-ratelimit-remaining': '118' },
    });
  });
});

test('html: a page of something in front of the service, without limits, and it costs nothing', async () => {
  await onBothWays(faulty({ kind: 'html' }), async (ask, simulator) => {
    const { status, headers, text } = await ask(PATH);
    expect([status, headers['content-type'], text.startsWith('<html>')]).toEqual([502, 'text/html', true]);
    expect(headers).not.toHaveProperty('x-ratelimit-limit');
    expect(simulator.quota().minute.left).toBe(120);
  });
});

test('truncated, malformed, empty: 200 with a Content-Length that is true and a body that is no JSON', async () => {
  await onBothWays(smallSimulator, async (ask, simulator) => {
    const whole = (await ask(PATH)).text;
    const snapshot = async (fault: Fault): Promise<string> => {
      simulator.faults = always(fault);
      const { status, json, text } = await ask(PATH);
      expect([status, json]).toEqual([200, undefined]);
      return text;
    };
    const truncated = await snapshot({ kind: 'truncated' });
    expect(truncated.length).toBe(Math.floor(whole.length / 2));
    expect(whole.startsWith(truncated)).toBe(true);
    expect(await snapshot({ kind: 'truncated', keep: 1 })).toHaveLength(whole.length - 1);
    expect((await snapshot({ kind: 'malformed' })).length).toBeGreaterThan(whole.length);
    expect(await snapshot({ kind: 'malformed', body: '[1,' })).toBe('[1,');
    expect(await snapshot({ kind: 'empty' })).toBe('');
  });
});

test('mangle: a page may lie about its device, its order, its readings and its end', async () => {
  const change: Fault = {
    kind: 'mangle',
    change: (page) => ({ ...page, deviceId: 'a2', records: [...page.records].reverse().slice(1), nextCursor: null }),
  };
  await onBothWays(smallSimulator, async (ask, simulator) => {
    const honest = (await ask(PATH)).json;
    simulator.faults = always(change);
    const { json } = await ask(PATH);
    expect(json).toEqual({ device_id: 'a2', data: honest.data.reverse().slice(1) });
  });
});

test('a refusal stays a refusal, whatever fault was planned for the answer', async () => {
  await onBothWays(faulty({ kind: 'truncated' }), async (ask) => {
    expect((await ask('/none')).json.error.code).toBe('not_found');
  });
});

test('in-process, resets and silence become a TransportError of their kind, on the clock of the simulation', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  const simulator = smallSimulator({ clock });
  const ask = askInProcess(simulator, 20_000);
  for (const when of ['before-headers', 'after-headers', 'in-body'] as const) {
    simulator.faults = always({ kind: 'reset', when });
    await expect(ask(PATH)).rejects.toMatchObject({ failure: 'reset' });
  }
  expect(clock.monoMs()).toBe(0);
  simulator.faults = always({ kind: 'hang' });
  await expect(ask(PATH)).rejects.toBeInstanceOf(TransportError);
  expect(clock.monoMs()).toBe(20_000);
  simulator.faults = always({ kind: 'slow', delayMs: 25_000 });
  await expect(ask(PATH)).rejects.toMatchObject({ failure: 'timeout' });
  expect(clock.monoMs()).toBe(40_000);
  simulator.faults = always({ kind: 'slow', delayMs: 15_000, part: 'body' });
  expect((await ask(PATH)).status).toBe(200);
  expect(clock.monoMs()).toBe(55_000);
  expect(simulator.log.requests.map(({ status }) => status)).toEqual([null, 200, 200, null, 200, 200]);
});

test('in-process, a request can be called off while it waits', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  const simulator = smallSimulator({ clock, faults: always({ kind: 'hang' }) });
  const controller = new AbortController();
  const request = { method: 'GET', url: `http://sim.test/external/v1${PATH}`, headers: {} } as const;
  const asked = transportOf(simulator)(request, controller.signal);
  const reason = new Error('stop');
  void clock.sleep(5000).then(() => controller.abort(reason));
  await expect(asked).rejects.toBe(reason);
  expect(clock.monoMs()).toBe(5000);
});

test('slow: the answer is as of its arrival, and its date is that of its departure', async () => {
  const clock = createManualClock();
  const simulator = smallSimulator({ clock, faults: always({ kind: 'slow', delayMs: 10_000 }), world: everySecond() });
  const { json, headers } = await askInProcess(simulator)('/devices/d/telemetry?limit=1');
  expect(json.data[0].recorded_at).toBe('2026-01-15T12:00:00Z');
  expect(headers).toMatchObject({ date: 'Thu, 15 Jan 2026 12:00:10 GMT' });
});

test('latency: half of it passes before the request is handled, half after', async () => {
  const clock = createManualClock();
  const settings = { time: { latencyMs: { min: 4000, max: 4000 } } };
  const { json, headers } = await askInProcess(smallSimulator({ clock, settings, world: everySecond() }))(
    '/devices/d/telemetry',
  );
  expect(json.data[0].recorded_at).toBe('2026-01-15T12:00:02Z');
  expect(headers).toMatchObject({ date: 'Thu, 15 Jan 2026 12:00:02 GMT' });
  expect(clock.monoMs()).toBe(4000);
});

function everySecond() {
  return smallWorld({ devices: [{ deviceId: 'd', intervalMs: 1000 }], precision: 's', historyMs: 60_000 });
}

/** The bytes that a client gets on a bare socket, and how the connection ends. */
async function bare(simulator: Simulator, path: string): Promise<{ bytes: string; end: string }> {
  const server = await serveSimulator(simulator);
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  let bytes = '';
  let failure = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    bytes += chunk;
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    failure = error.code ?? '';
  });
  socket.write(
    `GET /external/v1${path} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\nAuthorization: Bearer ${DEFAULT_KEY}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once('close', resolve));
  await server.close();
  return { bytes, end: failure === '' ? 'closed' : failure };
}

test('on a socket, a reset is a reset: before the headers, after them, or in the body', async () => {
  const whole = await bare(smallSimulator({ clock: realClock }), PATH);
  expect(whole.end).toBe('closed');
  const head = whole.bytes.indexOf('\r\n\r\n') + 4;
  const length = Number(/content-length: (\d+)/i.exec(whole.bytes)?.[1]);
  expect(whole.bytes.length - head).toBe(length);
  const got = async (when: 'before-headers' | 'after-headers' | 'in-body') => {
    const { bytes, end } = await bare(
      smallSimulator({ clock: realClock, faults: always({ kind: 'reset', when }) }),
      PATH,
    );
    expect(end).toBe('ECONNRESET');
    return bytes.length;
  };
  expect(await got('before-headers')).toBe(0);
  expect(await got('after-headers')).toBe(head);
  expect(await got('in-body')).toBe(head + Math.floor(length / 2));
});

test('on a socket, slow waits with the headers or with the body, and hang never answers', async () => {
  const simulator = smallSimulator({ clock: realClock, faults: always({ kind: 'slow', delayMs: 300, part: 'body' }) });
  const server = await serveSimulator(simulator);
  const headers = { authorization: `Bearer ${DEFAULT_KEY}` };
  const begunMs = performance.now();
  const response = await fetch(`${server.url}/account`, { headers });
  expect(response.status).toBe(200);
  expect(await response.json()).toHaveProperty('plan');
  expect(performance.now() - begunMs).toBeGreaterThanOrEqual(299);
  simulator.faults = always({ kind: 'hang' });
  const hanging = fetch(`${server.url}/account`, { headers, signal: AbortSignal.timeout(200) });
  await expect(hanging).rejects.toMatchObject({ name: 'TimeoutError' });
  const open = fetch(`${server.url}/account`, { headers }).then(
    () => 'answered',
    () => 'cut',
  );
  while (simulator.log.total < 3) await realClock.sleep(5);
  await server.close();
  expect(await open).toBe('cut');
});

test('on a socket, the connection is kept for the next request', async () => {
  const server = await serveSimulator(smallSimulator({ clock: realClock }));
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  const head = `GET /external/v1/account HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer ${DEFAULT_KEY}\r\n\r\n`;
  for (let turn = 0; turn < 3; turn += 1) {
    socket.write(head);
    const [bytes] = await once(socket, 'data');
    expect(String(bytes)).toMatch(/^HTTP\/1\.1 200 OK/);
  }
  socket.destroy();
  await server.close();
});

test('a plan of faults names the nth request, a seeded rate, a range of time or a path', () => {
  const hang: Fault = { kind: 'hang' };
  const empty: Fault = { kind: 'empty' };
  const decide = (plan: FaultPlan, number: number, path = '/devices', atMs = 0) =>
    plan(number, { method: 'GET', path, query: new URLSearchParams(), atMs })?.kind ?? null;
  const numbers = Array.from({ length: 2000 }, (_, at) => at + 1);
  expect(numbers.slice(0, 5).map((number) => decide(onRequest([2, 4], hang), number))).toEqual([
    null,
    'hang',
    null,
    'hang',
    null,
  ]);
  const rate = numbers.map((number) => decide(atRate(0.25, [hang, empty], 7), number));
  expect(rate).toEqual(numbers.map((number) => decide(atRate(0.25, [hang, empty], 7), number)));
  expect(rate.filter((kind) => kind !== null).length / 2000).toBeCloseTo(0.25, 1);
  expect(new Set(rate)).toEqual(new Set([null, 'hang', 'empty']));
  expect([9, 10, 19, 20].map((atMs) => decide(betweenTimes(10, 20, hang), 1, '/', atMs))).toEqual([
    null,
    'hang',
    'hang',
    null,
  ]);
  const telemetry = onPath(/\/telemetry$/, always(hang));
  expect([decide(telemetry, 1, '/devices/x/telemetry'), decide(telemetry, 1)]).toEqual(['hang', null]);
  expect([decide(anyOf(telemetry, onRequest(1, empty)), 1), decide(anyOf(telemetry), 1)]).toEqual(['empty', null]);
});
