/** A destination over HTTP, against servers on loopback: its request, a proxy, its answers, timeouts and aborts. */
import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSocketServer, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import type { Sink, WriteAnswer } from '../../src/core/ports.ts';
import { Secret } from '../../src/core/secret.ts';
import { createInfluxSink, type InfluxSinkOptions } from '../../src/influx/sink.ts';

const TOKEN = 'sekret-token-0123456789';
const LINES = ['telemetry,device_id=d1,sensor=t value=21.5 1700000000000000001'];
const never = new AbortController().signal;

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/**
 * A server that records its requests and answers as configured.
 *
 * @returns its URL and what it saw.
 */
async function serve(answer: (response: ServerResponse, request: IncomingMessage) => void) {
  const seen: Seen[] = [];
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body: Buffer.concat(chunks) });
      answer(response, request);
    });
  };
  const server = createServer(listener);
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}`, seen, server };
}

async function listen(
  server: ReturnType<typeof createSocketServer> | ReturnType<typeof createServer>,
): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function sinkAt(url: string, more: Partial<InfluxSinkOptions> = {}): Sink {
  return createInfluxSink({
    name: 'influx',
    url,
    token: new Secret(TOKEN),
    org: 'my org',
    bucket: 'b/rp&x',
    timeoutMs: 10_000,
    ...more,
  });
}

async function answerTo(status: number, body = '', headers: Record<string, string> = {}): Promise<WriteAnswer> {
  const { url } = await serve((response) => response.writeHead(status, headers).end(body));
  return await sinkAt(url).write(LINES, never);
}

describe('the request', () => {
  test('is one POST of the lines to the write path, with organisation, bucket, precision and token', async () => {
    const { url, seen } = await serve((response) => response.writeHead(204).end());
    expect(await sinkAt(`${url}/base/?x=1#y`).write([...LINES, 'telemetry value=2 2'], never)).toEqual({
      kind: 'accepted',
    });
    expect(seen).toHaveLength(1);
    const [{ method, url: path, headers, body }] = seen as [Seen];
    const target = new URL(path, url);
    expect([method, target.pathname]).toEqual(['POST', '/base/api/v2/write']);
    expect(Object.fromEntries(target.searchParams)).toEqual({ org: 'my org', bucket: 'b/rp&x', precision: 'ns' });
    expect(headers.authorization).toBe(`Token ${TOKEN}`);
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(body.toString()).toBe(`${LINES[0]}\ntelemetry value=2 2\n`);
  });

  test('is compressed when it is large, and unpacks to the same bytes', async () => {
    const { url, seen } = await serve((response) => response.writeHead(204).end());
    const lines = Array.from({ length: 5000 }, (_, n) => `telemetry,device_id=ünï🙂,sensor=s${n} value=${n} ${n}`);
    expect(await sinkAt(url).write(lines, never)).toEqual({ kind: 'accepted' });
    expect(seen[0]?.headers['content-encoding']).toBe('gzip');
    expect(seen[0]?.body.length).toBeLessThan(100_000);
    const body = seen[0]?.body ?? Buffer.of();
    expect(gunzipSync(body).toString()).toBe(`${lines.join('\n')}\n`);
    // One member, which counts all bytes in its last four: InfluxDB 3 reads only the first one.
    expect(body.readUInt32LE(body.length - 4)).toBe(gunzipSync(body).length);
  });

  test('sends a text that was packed before as one that it packs itself', async () => {
    const { url, seen } = await serve((response) => response.writeHead(204).end());
    const sink = sinkAt(url);
    const text = Buffer.from(
      Array.from({ length: 5000 }, (_, n) => `telemetry,sensor=s${n} value=${n} ${n}\n`).join(''),
    );
    for (const sent of [text, sink.pack?.(text) ?? text]) {
      expect(await sink.writeText?.(sent, never)).toEqual({ kind: 'accepted' });
    }
    expect(seen.map(({ headers }) => headers['content-encoding'])).toEqual(['gzip', 'gzip']);
    expect(seen[1]?.body).toEqual(seen[0]?.body);
  });

  test('accepts a URL that already names the API, and sends no token where there is none', async () => {
    const { url, seen } = await serve((response) => response.writeHead(204).end());
    for (const form of [`${url}/api/v2`, `${url}/api/v2/`, `${url}/api/v2/write`, `${url}/`, `${url}/write`]) {
      expect(await sinkAt(form, { token: null }).write(LINES, never)).toEqual({ kind: 'accepted' });
    }
    expect(seen.map(({ url: path }) => new URL(path, url).pathname)).toEqual(Array(5).fill('/api/v2/write'));
    expect(seen[0]?.headers.authorization).toBeUndefined();
  });

  test('goes over one connection that is kept alive', async () => {
    const { url, server } = await serve((response) => response.writeHead(204).end());
    let connections = 0;
    server.on('connection', () => {
      connections += 1;
    });
    const sink = sinkAt(url);
    for (let turn = 0; turn < 5; turn += 1) expect((await sink.write(LINES, never)).kind).toBe('accepted');
    expect(connections).toBe(1);
  });
});

describe('a proxy', () => {
  test('of the environment carries the writes, unless NO_PROXY excludes the host', async () => {
    const database = await serve((response) => response.writeHead(204).end());
    const proxy = await serve((response) => response.writeHead(204).end());
    for (const name of ['HTTP_PROXY', 'http_proxy']) {
      const through = sinkAt('http://database.test:8086', { proxies: { [name]: proxy.url } });
      expect(await through.write(LINES, never)).toEqual({ kind: 'accepted' });
      expect(proxy.seen.pop()?.url).toMatch(/^http:\/\/database\.test:8086\/api\/v2\/write\?/);
    }
    const past = sinkAt(database.url, { proxies: { HTTP_PROXY: proxy.url, NO_PROXY: '127.0.0.1' } });
    expect(await past.write(LINES, never)).toEqual({ kind: 'accepted' });
    expect([database.seen.length, proxy.seen.length]).toEqual([1, 0]);
  });

  test('that opens no way, or is none, is reported without its password', async () => {
    const closed = await serve((response) => response.writeHead(403).end());
    const { port } = new URL(closed.url);
    const through = (address: string) => sinkAt('https://database.test:8086', { proxies: { HTTPS_PROXY: address } });
    const answer = await through(`http://me:pass-word@127.0.0.1:${port}`).write(LINES, never);
    expect(answer).toMatchObject({ kind: 'later', hint: expect.stringContaining('NO_PROXY') });
    expect(JSON.stringify(answer)).not.toContain('pass-word');
    expect(() => through('http://me:pass-word@')).toThrow(/^HTTPS_PROXY or HTTP_PROXY: not a URL\. /);
  });
});

describe('the answer', () => {
  test.each([
    [200, 'blocked'],
    [201, 'blocked'],
    [202, 'blocked'],
    [204, 'accepted'],
    [301, 'blocked'],
    [304, 'blocked'],
    [400, 'later'],
    [401, 'blocked'],
    [403, 'blocked'],
    [404, 'blocked'],
    [408, 'later'],
    [413, 'too-large'],
    [418, 'blocked'],
    [422, 'later'],
    [425, 'later'],
    [429, 'later'],
    [431, 'blocked'],
    [500, 'later'],
    [502, 'later'],
    [503, 'later'],
    [504, 'later'],
  ])('%i is %s, after one request', async (status, kind) => {
    const { url, seen } = await serve((response) => response.writeHead(status).end());
    expect((await sinkAt(url).write(LINES, never)).kind).toBe(kind);
    expect(seen).toHaveLength(1);
  });

  test('an InfluxDB error about the data is accepted as such, compressed or not', async () => {
    const body = '{"error":"partial write: points beyond retention policy dropped=1"}';
    const message = 'HTTP 400: partial write: points beyond retention policy dropped=1';
    expect(await answerTo(400, body, { 'content-type': 'application/json' })).toEqual({
      kind: 'rejected',
      message,
      retention: true,
      dropped: 1,
    });
    expect(await answerTo(400, body, { 'content-type': 'text/plain' })).toEqual({
      kind: 'rejected',
      message,
      retention: true,
      dropped: 1,
    });
    const { url } = await serve((response) =>
      response.writeHead(400, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(gzipSync(body)),
    );
    expect(await sinkAt(url).write(LINES, never)).toEqual({ kind: 'rejected', message, retention: true, dropped: 1 });
  });

  test('"hinted handoff queue not empty" and a body that pretends success change nothing', async () => {
    expect(
      (await answerTo(500, '{"error":"hinted handoff queue not empty"}', { 'content-type': 'application/json' })).kind,
    ).toBe('later');
    expect((await answerTo(200, '{"status":"ok"}', { 'content-type': 'application/json' })).kind).toBe('blocked');
    expect((await answerTo(200, '{broken', { 'content-type': 'application/json' })).kind).toBe('blocked');
  });

  test('Retry-After is seconds', async () => {
    expect(await answerTo(503, '', { 'retry-after': '30' })).toMatchObject({ kind: 'later', waitMs: 30_000 });
  });

  test('a redirect is not followed, so the token goes nowhere else', async () => {
    const other = await serve((response) => response.writeHead(204).end());
    const { url } = await serve((response) => response.writeHead(307, { location: other.url }).end());
    expect((await sinkAt(url).write(LINES, never)).kind).toBe('blocked');
    expect(other.seen).toHaveLength(0);
  });

  test('a huge error is read to a bound only, and is understood by its beginning', async () => {
    let taken = 0;
    const { url } = await serve((response, { socket }) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.write(`{"error":"partial write: unable to parse '`);
      const chunk = 'x'.repeat(64 * 1024);
      const pump = (): void => {
        while (taken < 2000 && !socket.destroyed && response.write(chunk)) taken += 1;
        if (!socket.destroyed && taken < 2000) response.once('drain', pump);
      };
      pump();
    });
    const answer = await sinkAt(url).write(LINES, never);
    expect(answer.kind).toBe('rejected');
    expect(taken).toBeLessThan(2000);
  });

  test('headers without end are no answer', async () => {
    const { url } = await serve((response) => response.writeHead(204, { 'x-more': 'x'.repeat(300_000) }).end());
    expect((await sinkAt(url).write(LINES, never)).kind).toBe('later');
  });
});

describe('no answer', () => {
  test('a connection that is cut before, or in the midst of, an answer means later', async () => {
    const before = await serve((_response, { socket }) => socket.destroy());
    expect(await sinkAt(before.url).write(LINES, never)).toMatchObject({ kind: 'later', waitMs: null });
    const amidst = await serve((response, { socket }) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.write('{"code":', () => socket.destroy());
    });
    expect((await sinkAt(amidst.url).write(LINES, never)).kind).toBe('later');
  });

  test('a refused connection and an unknown host mean later, and include a remedy', async () => {
    const { url, server } = await serve(() => {});
    await new Promise((resolve) => server.close(resolve));
    expect(await sinkAt(url).write(LINES, never)).toMatchObject({
      kind: 'later',
      hint: expect.stringContaining('influx.url'),
    });
    expect((await sinkAt('http://nowhere.invalid:8086').write(LINES, never)).kind).toBe('later');
  });

  test('an answer that is no HTTP, and TLS where there is none, mean later', async () => {
    const server = createSocketServer((socket: Socket) => {
      socket.on('error', () => {});
      socket.end('SSH-2.0-OpenSSH\r\n');
    });
    closing.push(() => server.close());
    const port = await listen(server);
    expect((await sinkAt(`http://127.0.0.1:${port}`).write(LINES, never)).kind).toBe('later');
    expect((await sinkAt(`https://127.0.0.1:${port}`).write(LINES, never)).kind).toBe('later');
  });

  test('the deadline ends a request that hangs, and one whose answer never ends', async () => {
    const hanging = await serve(() => {});
    expect(await sinkAt(hanging.url, { timeoutMs: 50 }).write(LINES, never)).toEqual({
      kind: 'later',
      message: 'no answer within influx.timeout',
      waitMs: null,
    });
    const trickling = await serve((response) => {
      response.writeHead(500);
      const timer = setInterval(() => response.write('x'), 5);
      closing.push(() => clearInterval(timer));
    });
    expect((await sinkAt(trickling.url, { timeoutMs: 100 }).write(LINES, never)).kind).toBe('later');
  });

  test("the caller's signal rejects with its reason and ends the request", async () => {
    const controller = new AbortController();
    const { url, server } = await serve(() => controller.abort(new Error('stopping')));
    const patient = sinkAt(url, { timeoutMs: 600_000 });
    await expect(patient.write(LINES, controller.signal)).rejects.toThrow('stopping');
    await expect
      .poll(async () => await new Promise((resolve) => server.getConnections((_error, count) => resolve(count))))
      .toBe(0);
    await expect(sinkAt(url).write(LINES, AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
  });

  test('a server that hung up on an idle connection costs one "later" at most', async () => {
    const { url, server } = await serve((response) => response.writeHead(204).end());
    const sink = sinkAt(url);
    await sink.write(LINES, never);
    server.closeIdleConnections();
    const next = await sink.write(LINES, never);
    expect(['accepted', 'later']).toContain(next.kind);
    expect((await sink.write(LINES, never)).kind).toBe('accepted');
  });
});

describe('the token', () => {
  test('appears in no answer, though the server shows it in every form of error', async () => {
    const page = `Authorization: Token ${TOKEN}`;
    for (const status of [200, 302, 400, 401, 403, 404, 413, 500]) {
      for (const body of [
        page,
        `<html><title>${page}</title>`,
        JSON.stringify({ code: page, message: `partial write ${page}` }),
      ]) {
        expect(JSON.stringify(await answerTo(status, body)), `${status}`).not.toContain(TOKEN);
      }
    }
  });

  test('nor does the password of user:password alone', async () => {
    const { url } = await serve((response) => response.writeHead(401).end('wrong password hunter22 for user joe'));
    const answer = await sinkAt(url, { token: new Secret('joe:hunter22') }).write(LINES, never);
    expect(answer).toMatchObject({ message: 'HTTP 401: wrong password [secret] for user joe' });
  });

  test('is read again while it is rejected, and only then; the next request carries the new one', async () => {
    const NEXT = 'the-next-token-987654';
    const { url, seen } = await serve((response, { headers }) =>
      headers.authorization === `Token ${NEXT}`
        ? response.writeHead(204).end()
        : response.writeHead(401).end(`no: ${NEXT}`),
    );
    let inFile: Secret | null = new Secret(TOKEN);
    let looks = 0;
    const renewToken = (): Secret | null => {
      looks += 1;
      return inFile;
    };
    const sink = sinkAt(url, { renewToken });
    expect((await sink.write(LINES, never)).kind).toBe('blocked');
    expect(looks).toBe(0);
    for (inFile of [new Secret(TOKEN), null, new Secret('line\nbreak')]) {
      expect((await sink.write(LINES, never)).kind).toBe('blocked');
    }
    expect(looks).toBe(3);
    expect(new Set(seen.map(({ headers }) => headers.authorization))).toEqual(new Set([`Token ${TOKEN}`]));
    inFile = new Secret(NEXT);
    expect(await sink.write(LINES, never)).toEqual({ kind: 'accepted' });
    expect(await sink.write(LINES, never)).toEqual({ kind: 'accepted' });
    expect(looks).toBe(4);
  });

  test('appears in no answer, be it the one before or the one after', async () => {
    const NEXT = 'the-next-token-987654';
    const { url } = await serve((response) => response.writeHead(403).end(`${TOKEN} and ${NEXT} may not write`));
    const sink = sinkAt(url, { renewToken: () => new Secret(NEXT) });
    await sink.write(LINES, never);
    expect(await sink.write(LINES, never)).toMatchObject({ message: 'HTTP 403: [secret] and [secret] may not write' });
  });

  test('one that no header can carry is refused at once, without being shown', () => {
    for (const token of ['line\nbreak', 'ünï']) {
      expect(() => sinkAt('http://127.0.0.1:1', { token: new Secret(token) })).toThrow(
        /^influx\.token: (?!.*(?:break|ünï))/,
      );
    }
  });
});

test('connections that idle do not keep a program running', async () => {
  const { url } = await serve((response) => response.writeHead(204).end());
  const from = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);
  const program = `
    const { createInfluxSink } = await import(${from('../../src/influx/sink.ts')});
    const sink = createInfluxSink({ name: 'n', url: '${url}', token: null, org: '', bucket: 'b', timeoutMs: 600_000 });
    console.log(JSON.stringify(await sink.write(['m v=1 1'], new AbortController().signal)));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    timeout: 30_000,
  });
  expect(JSON.parse(stdout)).toEqual({ kind: 'accepted' });
});
