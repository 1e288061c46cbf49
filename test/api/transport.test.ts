/**
 * The HTTP transport against servers on loopback: complete answers, redirects, kept connections, aborts and proxies.
 */
import { getEventListeners } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createHttpTransport } from '../../src/api/transport.ts';
import {
  answer,
  ask,
  failure,
  head,
  KEY,
  NEVER,
  type OddServer,
  type Script,
  startOddServer,
  textOf,
} from './support/odd-server.ts';

describe('an answer', () => {
  test('is returned completely: status, headers by lower-case name, body', async () => {
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
  ] as const)('packed with %s is unpacked, whatever its size', async (encoding, pack) => {
    // Nothing, a poll, a full page, and more than is unpacked into one piece.
    const texts = [0, 10, 2000, 15_000].map((words) => Array.from({ length: words }, (_, word) => word * word).join());
    for (const text of texts) {
      const packed = pack(text);
      await using server = await startOddServer(answer(packed, { headers: { 'content-encoding': encoding } }));
      const unpacked = await ask(server.url);
      expect(textOf(unpacked)).toBe(text);
      expect(unpacked.wireBytes).toBe(packed.length);
    }
  });

  test('compressed with gzip uses no more memory than it has bytes, and a few', async () => {
    const text = '0123456789'.repeat(4000);
    await using server = await startOddServer(answer(gzipSync(text), { headers: { 'content-encoding': 'gzip' } }));
    expect((await ask(server.url)).body.buffer.byteLength).toBe(text.length + 1);
  });

  test('comes over a connection that is kept open', async () => {
    await using server = await startOddServer(answer('{}'));
    const { transport, close } = createHttpTransport({ timeoutMs: 60_000 });
    for (let i = 0; i < 5; i += 1) await transport({ method: 'GET', url: server.url, headers: {} }, NEVER);
    await close();
    expect(server.heads.length).toBe(5);
    // The second one is opened when a request comes before the first connection is open or has failed.
    expect(server.connections()).toBeLessThanOrEqual(2);
  });

  test('comes over no more connections than allowed', async () => {
    await using server = await startOddServer((socket, text) => setTimeout(() => answer('{}')(socket, text), 20));
    const { transport, close } = createHttpTransport({ timeoutMs: 60_000, connections: 2 });
    await Promise.all([1, 2, 3, 4, 5, 6].map(() => transport({ method: 'GET', url: server.url, headers: {} }, NEVER)));
    await close();
    expect([server.heads.length, server.connections()]).toEqual([6, 2]);
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

  test('leaves nothing behind on a signal with a long lifetime', async () => {
    const { signal } = new AbortController();
    await using server = await startOddServer(answer('{}'));
    await ask(server.url, {}, signal);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('a proxy', () => {
  afterEach(() => vi.unstubAllEnvs());

  /** A proxy that accepts one user, and the targets of its tunnels. */
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

  test('that is no URL is reported without quoting it', () => {
    vi.stubEnv('HTTPS_PROXY', 'http://user:s3cret-word@:99999999');
    expect(() => createHttpTransport({ timeoutMs: 1000 })).toThrow(/HTTPS_PROXY or HTTP_PROXY: not a URL/);
    expect(() => createHttpTransport({ timeoutMs: 1000 })).not.toThrow(/s3cret-word/);
  });
});
