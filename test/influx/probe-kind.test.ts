/** Which kind of database answers: real ones, and proxies before them. */
import { createServer, type RequestListener } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { KindAnswer } from '../../src/core/ports.ts';
import { Secret } from '../../src/core/secret.ts';
import { createUnknownServer } from '../../src/influx/probe.ts';
import { type Influxd, influxdAvailable, startInfluxd } from '../support/influxd.ts';
import { sharedVictoria } from '../support/shared-bench.ts';
import { startV2Proxy } from '../support/v2-proxy.ts';
import { startVictoria, victoriaAvailable } from '../support/victoria.ts';

const TOKEN = 'user:kind-secret';
const never = new AbortController().signal;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function request(
  url: string,
  more: { name?: string; bucket?: string; token?: Secret | null } = {},
): Promise<KindAnswer> {
  const place = { url, org: '', bucket: 'b', token: null };
  return await createUnknownServer({ name: 'influx', timeoutMs: 5000, ...place, ...more }).request(never);
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}

/** A reverse proxy that removes the server's identifying headers. */
async function behindProxy(upstream: string): Promise<string> {
  return await serve((request, response) => {
    void (async () => {
      const { method = 'GET' } = request;
      const answer = await fetch(`${upstream}${request.url ?? ''}`, { method });
      const type = answer.headers.get('content-type');
      response.writeHead(answer.status, type === null ? {} : { 'content-type': type });
      response.end(answer.status === 204 ? undefined : await answer.text());
    })();
  });
}

const INFLUXDB = { kind: 'known', server: 'influxdb' };
/** Nothing names the server. */
const ASSUMED = { ...INFLUXDB, isAssumed: true };
const VICTORIA = { kind: 'known', server: 'victoriametrics' };

describe.runIf(influxdAvailable())('a real InfluxDB', () => {
  let influxd: Influxd;
  beforeAll(async () => {
    influxd = await startInfluxd({ databases: ['b'] });
  });
  afterAll(async () => {
    await influxd?.close();
  });

  test('is known by its own answers, also where it rejects the request', async () => {
    expect(await request(influxd.url)).toEqual(INFLUXDB);
  });

  test('counts as one behind a proxy that hides the server, and nothing is written', async () => {
    const proxy = await startV2Proxy({ upstream: influxd.url, token: TOKEN });
    closing.push(proxy.close);
    expect(await request(proxy.url, { token: new Secret(TOKEN) })).toEqual(ASSUMED);
    expect(proxy.writes.map(({ lines }) => lines)).toEqual([[]]);
    expect(await influxd.query('b', 'SHOW MEASUREMENTS')).toEqual([]);
  });

  test('that wants another token, or has no such bucket, blocks with the remedy', async () => {
    const proxy = await startV2Proxy({ upstream: influxd.url, token: TOKEN });
    closing.push(proxy.close);
    expect(await request(proxy.url)).toMatchObject({ kind: 'blocked', hint: expect.stringContaining('influx.token') });
    const named = await request(proxy.url, { token: new Secret(TOKEN), bucket: 'none', name: 'second' });
    expect(named).toMatchObject({ kind: 'blocked', hint: expect.stringMatching(/^destinations\.second\.bucket: /) });
  });
});

describe.runIf(victoriaAvailable())('a real VictoriaMetrics', () => {
  const victoria = sharedVictoria();

  test('is known by its own answers, and nothing is written', async () => {
    expect(await request(victoria.url)).toEqual(VICTORIA);
    expect(await victoria.exported()).toEqual([]);
  });

  test('is recognized behind a proxy that removes its headers', async () => {
    expect(await request(await behindProxy(victoria.url))).toEqual(VICTORIA);
  });

  test('that wants a user and a password is known before it lets anybody in, and is given them', async () => {
    await using locked = await startVictoria('-httpAuth.username=user', '-httpAuth.password=kind-secret');
    const token = new Secret(TOKEN);
    const server = createUnknownServer({
      name: 'influx',
      timeoutMs: 5000,
      url: locked.url,
      org: '',
      bucket: '',
      token,
    });
    expect(await server.request(never)).toEqual(VICTORIA);
    expect(await server.sinkFor('victoriametrics').write(['m value=1 1700000000000'], never)).toEqual({
      kind: 'accepted',
    });
    expect(await server.sinkFor('influxdb').write(['m value=1 1'], never)).toMatchObject({ kind: 'blocked' });
  });
});

describe('servers that are no database, or do not answer', () => {
  test('one that is down is probed again later', async () => {
    const url = await serve(() => undefined);
    await closing.pop()?.();
    expect(await request(url, { name: 'second' })).toEqual({
      kind: 'later',
      message: 'the database refuses the connection',
      hint: 'check that it is running and that destinations.second.url is right',
      waitMs: null,
    });
  });

  test.each<[string, number, Record<string, string>, string, string]>([
    ['one that is starting', 503, { 'retry-after': '7' }, '', 'later'],
    ['one that requests a wait', 429, {}, '{"error":"x"}', 'later'],
    ['a login page', 200, { 'content-type': 'text/html' }, '<title>Sign in</title>', 'blocked'],
    ['a redirect', 302, { location: 'https://elsewhere.test/' }, '', 'blocked'],
    ['a wrong path', 404, {}, '404 page not found', 'blocked'],
    ['a proxy that forbids it', 403, {}, 'no', 'blocked'],
  ])('%s shows nothing: it is %j that decides', async (_what, status, headers, body, kind) => {
    const url = await serve((_request, response) => response.writeHead(status, headers).end(body));
    expect((await request(url)).kind).toBe(kind);
  });

  test.each([400, 405, 422])(
    'a server that rejects an empty write (%i) is probed with its other endpoint',
    async (status) => {
      let asked = 0;
      const url = await serve((request, response) => {
        asked += 1;
        if (request.method === 'POST') response.writeHead(status).end('{"error":"no lines"}');
        else response.writeHead(404).end('not found');
      });
      expect(await request(url)).toEqual(ASSUMED);
      expect(asked).toBe(2);
    },
  );

  test('an abort is passed on', async () => {
    const url = await serve(() => undefined);
    const stop = new AbortController();
    setTimeout(() => stop.abort(new Error('stopping')), 50);
    const server = createUnknownServer({ name: 'influx', timeoutMs: 60_000, url, org: '', bucket: '', token: null });
    await expect(server.request(stop.signal)).rejects.toThrow('stopping');
  });
});
