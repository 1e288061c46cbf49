import { createServer as createTlsServer } from 'node:https';
import { connect, createServer as createTcpServer } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createHttpTransport, type HttpTransportOptions, MAX_ANSWER_BYTES } from '../../src/api/transport.ts';
import { TransportError } from '../../src/core/faults.ts';
import type { HttpAnswer } from '../../src/core/ports.ts';
import { TEST_CERTIFICATE, TEST_KEY } from './support/certificate.ts';
import { answer, head, listen, type OddServer, type Script, startOddServer } from './support/odd-server.ts';

const KEY = 'tm_canary_4711';
const NEVER = new AbortController().signal;

/** Asks once over a transport of its own. */
async function ask(url: string, options: Partial<HttpTransportOptions> = {}, signal = NEVER): Promise<HttpAnswer> {
  const { transport, close } = createHttpTransport({ timeoutMs: 5000, ...options });
  try {
    return await transport({ method: 'GET', url, headers: { authorization: `Bearer ${KEY}` } }, signal);
  } finally {
    await close();
  }
}

/** Asks an odd server once and gives the failure. */
async function failureOf(script: Script, options: Partial<HttpTransportOptions> = {}): Promise<TransportError> {
  await using server = await startOddServer(script);
  return await failure(ask(`${server.url}/external/v1/account`, options));
}

async function failure(asked: Promise<unknown>): Promise<TransportError> {
  const error = await asked.then(
    () => new Error('it was answered'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof TransportError)) throw error;
  expect(`${error.message} ${error.stack}`).not.toContain(KEY);
  return error;
}

const textOf = ({ body }: HttpAnswer): string => Buffer.from(body).toString();
const CHUNKED = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };

describe('an answer', () => {
  test('is handed back whole: status, headers by lower-case name, body', async () => {
    const headers = { 'X-RateLimit-Limit': '60', 'X-Odd': 'a', __proto__odd: 'x' };
    await using server = await startOddServer(answer('{"a":1}', { status: 418, headers }));
    const got = await ask(`${server.url}/x?limit=2&after=a%3Ab`);
    expect([got.status, textOf(got), got.headers['x-ratelimit-limit'], got.headers['x-odd']]).toEqual([
      418,
      '{"a":1}',
      '60',
      'a',
    ]);
    expect(server.heads[0]).toMatch(/^GET \/x\?limit=2&after=a%3Ab HTTP\/1.1\r\n/);
    expect(server.heads[0]).toContain(`authorization: Bearer ${KEY}`);
  });

  test('that redirects is not followed', async () => {
    await using elsewhere = await startOddServer(answer('{}'));
    for (const status of [301, 302, 303, 307, 308]) {
      const redirect = answer('', { status, headers: { location: `${elsewhere.url}/stolen` } });
      await using server = await startOddServer(redirect);
      expect((await ask(server.url)).status).toBe(status);
    }
    expect(elsewhere.heads).toEqual([]);
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const)('packed with %s is unpacked', async (encoding, pack) => {
    await using server = await startOddServer(
      answer(pack('{"packed":true}'), { headers: { 'content-encoding': encoding } }),
    );
    expect(textOf(await ask(server.url))).toBe('{"packed":true}');
  });

  test('comes over a connection that is kept open', async () => {
    await using server = await startOddServer(answer('{}'));
    const { transport, close } = createHttpTransport({ timeoutMs: 5000 });
    for (let i = 0; i < 5; i += 1) await transport({ method: 'GET', url: server.url, headers: {} }, NEVER);
    await close();
    expect(server.heads.length).toBe(5);
    // The second one is opened when a request comes before the first connection has settled.
    expect(server.connections()).toBeLessThanOrEqual(2);
  });

  test('comes over no more connections than allowed', async () => {
    await using server = await startOddServer((socket, text) => setTimeout(() => answer('{}')(socket, text), 20));
    const { transport, close } = createHttpTransport({ timeoutMs: 5000, connections: 2 });
    await Promise.all([1, 2, 3, 4, 5, 6].map(() => transport({ method: 'GET', url: server.url, headers: {} }, NEVER)));
    await close();
    expect([server.heads.length, server.connections()]).toEqual([6, 2]);
  });
});

describe('no whole answer', () => {
  test('a refused connection', async () => {
    const server = createTcpServer();
    const port = await listen(server);
    await new Promise((resolve) => server.close(resolve));
    expect((await failure(ask(`http://127.0.0.1:${port}/`))).failure).toBe('refused');
  });

  test('a name that does not exist', async () => {
    expect((await failure(ask('http://no-such-host.invalid/'))).failure).toBe('name');
  });

  test('no TLS where TLS is expected', async () => {
    const server = createTcpServer((socket) =>
      socket
        .on('error', () => {})
        .resume()
        .end('HTTP/1.1 400 Bad\r\n\r\n'),
    );
    const port = await listen(server);
    expect((await failure(ask(`https://127.0.0.1:${port}/`))).failure).toBe('tls');
    await new Promise((resolve) => server.close(resolve));
  });

  test('a certificate that nobody vouches for, unless its authority is given', async () => {
    const server = createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, (_request, response) =>
      response.end('{}'),
    );
    const port = await listen(server);
    const url = `https://127.0.0.1:${port}/`;
    expect((await failure(ask(url))).failure).toBe('tls');
    expect(textOf(await ask(url, { ca: TEST_CERTIFICATE }))).toBe('{}');
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test.each<[string, Script]>([
    ['before the headers', (socket) => socket.destroy()],
    ['by a reset', (socket) => socket.resetAndDestroy()],
    ['within the headers', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-')],
    ['after the headers', (socket) => socket.end(head(200, { 'content-length': '10' }))],
    ['within a body of known length', (socket) => socket.end(`${head(200, { 'content-length': '10' })}{"a"`)],
    ['within a chunked body', (socket) => socket.end(`${head(200, CHUNKED)}5\r\n{"a":\r\n`)],
    [
      'by a reset within the body',
      (socket) =>
        socket.write(`${head(200, { 'content-length': '10' })}{"a"`, () =>
          setTimeout(() => socket.resetAndDestroy(), 20),
        ),
    ],
  ])('a connection that is cut %s', async (_where, script) => {
    expect((await failureOf(script)).failure).toBe('reset');
  });

  test('a kept connection that the server closes at the next request', async () => {
    await using server = await startOddServer(answer('{}'), (socket) => socket.destroy(), answer('{"again":true}'));
    const { transport, close } = createHttpTransport({ timeoutMs: 5000 });
    const once = (): Promise<HttpAnswer> => transport({ method: 'GET', url: server.url, headers: {} }, NEVER);
    await once();
    expect((await failure(once())).failure).toBe('reset');
    expect(textOf(await once())).toBe('{"again":true}');
    await close();
  });

  test.each<[string, Script]>([
    ['never answers', () => {}],
    ['stops after the headers', (socket) => socket.write(head(200, { 'content-length': '10' }))],
    [
      'trickles, byte by byte, without an end',
      (socket) => {
        socket.write(head(200, { 'content-length': '1000000' }));
        const drip = setInterval(() => socket.write(' '), 20);
        socket.on('close', () => clearInterval(drip));
      },
    ],
  ])('a server that %s', async (_what, script) => {
    expect((await failureOf(script, { timeoutMs: 300 })).failure).toBe('timeout');
  });

  test('something that is no HTTP', async () => {
    const error = await failureOf((socket) => socket.end('220 mail.example ESMTP ready\r\n'));
    expect([error.failure, error.message]).toEqual(['other', expect.stringContaining('not HTTP')]);
  });

  test('a packing that was not asked for, and one that is damaged', async () => {
    for (const [encoding, body] of [
      ['zstd', 'x'],
      ['gzip', 'no gzip'],
      ['gzip', gzipSync('{"a":1}').subarray(0, 15)],
    ] as const) {
      expect((await failureOf(answer(body, { headers: { 'content-encoding': encoding } }))).failure).toBe('other');
    }
  });
});

describe('an answer beyond every measure', () => {
  test('is not read when its length says so', async () => {
    const { failure: kind } = await failureOf((socket) => socket.write(head(200, { 'content-length': '9000000000' })));
    expect(kind).toBe('too-large');
  });

  test('is cut off when it says nothing of its length', async () => {
    let written = 0;
    const flood: Script = (socket) => {
      socket.write(head(200, { 'content-type': 'application/json', connection: 'close' }));
      const more = (): void => {
        while (!socket.destroyed && socket.write(Buffer.alloc(65_536, 32))) written += 65_536;
      };
      socket.on('drain', more);
      more();
    };
    expect((await failureOf(flood)).failure).toBe('too-large');
    expect(written).toBeLessThan(64 * 1024 * 1024);
  });

  test('is not unpacked: a few kilobytes that would fill the memory', async () => {
    for (const [encoding, pack] of [
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
      ['deflate', deflateSync],
    ] as const) {
      const bomb = pack(Buffer.alloc(MAX_ANSWER_BYTES + 1));
      const { failure: kind } = await failureOf(answer(bomb, { headers: { 'content-encoding': encoding } }));
      expect([bomb.length < 50_000, kind]).toEqual([true, 'too-large']);
    }
  });

  test('is read to its end when it is just within it', async () => {
    await using server = await startOddServer(answer(Buffer.alloc(MAX_ANSWER_BYTES, 32)));
    expect((await ask(server.url)).body.length).toBe(MAX_ANSWER_BYTES);
  });

  test('has headers without end', async () => {
    const { failure: kind } = await failureOf(answer('{}', { headers: { 'x-long': 'x'.repeat(20_000) } }));
    expect(kind).toBe('too-large');
  });
});

describe('an abort', () => {
  test('rejects with its reason, before, while waiting and within the body', async () => {
    const reason = new Error('stopping');
    await using server = await startOddServer((socket) => socket.write(head(200, { 'content-length': '10' })));
    await expect(ask(server.url, {}, AbortSignal.abort(reason))).rejects.toBe(reason);
    const later = new AbortController();
    setTimeout(() => later.abort(reason), 50);
    await expect(ask(server.url, {}, later.signal)).rejects.toBe(reason);
  });

  test('leaves nothing behind on a signal that lives long', async () => {
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, 'addEventListener');
    const removed = vi.spyOn(signal, 'removeEventListener');
    await using server = await startOddServer(answer('{}'));
    await ask(server.url, {}, signal);
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);
  });
});

describe('a proxy', () => {
  afterEach(() => vi.unstubAllEnvs());

  /** A proxy that knows one user, and where its tunnels lead. */
  const startProxy = async (script: Script): Promise<OddServer> => await startOddServer(script);

  test('from the environment carries the requests, unless NO_PROXY names the host', async () => {
    await using server = await startOddServer(answer('{"direct":true}'));
    await using proxy = await startProxy(answer('{"proxied":true}'));
    vi.stubEnv('HTTP_PROXY', proxy.url);
    vi.stubEnv('http_proxy', undefined);
    expect(textOf(await ask('http://api.invalid/external/v1/account'))).toBe('{"proxied":true}');
    expect(proxy.heads[0]).toMatch(/^GET http:\/\/api.invalid\/external\/v1\/account /);
    vi.stubEnv('NO_PROXY', '127.0.0.1');
    vi.stubEnv('no_proxy', undefined);
    expect(textOf(await ask(server.url))).toBe('{"direct":true}');
  });

  test('opens a tunnel for https, and the key does not pass it in the open', async () => {
    const tunnel: Script = (socket, text) => {
      const port = /^CONNECT 127\.0\.0\.1:(\d+) /.exec(text)?.[1];
      const onwards = connect(Number(port), '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
      onwards.on('error', () => socket.destroy());
      onwards.pipe(socket);
      socket.pipe(onwards);
    };
    await using server = await startOddServer(answer('{}'));
    await using proxy = await startProxy(tunnel);
    vi.stubEnv('HTTPS_PROXY', proxy.url);
    vi.stubEnv('https_proxy', undefined);
    await failure(ask(server.url.replace('http:', 'https:'), { timeoutMs: 300 }));
    expect(proxy.heads[0]).toMatch(/^CONNECT /);
    expect(proxy.heads.join()).not.toContain(KEY);
  });

  test('never shows its password in an error', async () => {
    const refusals: readonly Script[] = [
      answer('', { status: 407 }),
      answer('', { status: 502 }),
      (socket) => socket.destroy(),
    ];
    for (const scheme of ['http', 'https']) {
      for (const refusal of refusals) {
        await using proxy = await startProxy(refusal);
        vi.stubEnv('HTTP_PROXY', proxy.url.replace('http://', 'http://user:s3cret-word@'));
        vi.stubEnv('HTTPS_PROXY', proxy.url.replace('http://', 'http://user:s3cret-word@'));
        const asked = ask(`${scheme}://api.invalid/`, { timeoutMs: 2000 });
        const said = await asked.then(
          () => '',
          (error: Error) => `${error.message} ${error.stack} ${JSON.stringify(error)}`,
        );
        expect(said).not.toContain('s3cret-word');
      }
    }
  });

  test('that is no URL is told without quoting it', () => {
    vi.stubEnv('HTTPS_PROXY', 'http://user:s3cret-word@:99999999');
    expect(() => createHttpTransport({ timeoutMs: 1000 })).toThrow(/HTTPS_PROXY or HTTP_PROXY: not a URL/);
    expect(() => createHttpTransport({ timeoutMs: 1000 })).not.toThrow(/s3cret-word/);
  });
});
