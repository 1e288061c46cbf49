/**
 * Failures of the transport, against servers on loopback that refuse, cut or damage their answers, or send too much.
 */
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  createHttpTransport,
  type HttpTransportOptions,
  MAX_ANSWER_BYTES,
  toTransportError,
} from '../../src/api/transport.ts';
import type { TransportError } from '../../src/core/faults.ts';
import type { HttpAnswer } from '../../src/core/ports.ts';
import { TEST_CERTIFICATE, TEST_KEY } from './support/certificate.ts';
import {
  answer,
  ask,
  failure,
  head,
  listen,
  NEVER,
  type Script,
  startOddServer,
  textOf,
} from './support/odd-server.ts';

/** Sends one request to an odd server and returns the failure. */
async function failureOf(script: Script, options: Partial<HttpTransportOptions> = {}): Promise<TransportError> {
  await using server = await startOddServer(script);
  return await failure(ask(`${server.url}/external/v1/account`, options));
}

const CHUNKED = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };

describe('no complete answer', () => {
  test('a refused connection is a fault of its own kind', async () => {
    const server = createTcpServer();
    const port = await listen(server);
    await new Promise((resolve) => server.close(resolve));
    expect((await failure(ask(`http://127.0.0.1:${port}/`))).failure).toBe('refused');
  });

  test('a name that does not exist', async () => {
    const error = await failure(ask('http://no-such-host.invalid/'));
    expect([error.failure, error.message]).toEqual(['name', expect.stringContaining(' no-such-host.invalid ')]);
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

  test('a certificate of an unknown authority, unless that authority is configured', async () => {
    const server = createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, (_request, response) =>
      response.end('{}'),
    );
    const port = await listen(server);
    const url = `https://127.0.0.1:${port}/`;
    expect(await failure(ask(url))).toMatchObject({
      failure: 'tls',
      message: expect.stringContaining('is self-signed'),
    });
    expect(textOf(await ask(url, { ca: TEST_CERTIFICATE }))).toBe('{}');
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /self-signed.*api\.ca_file/],
    ['SELF_SIGNED_CERT_IN_CHAIN', /unknown authority.*api\.ca_file/],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', /unknown authority.*api\.ca_file/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', /does not match the host .*\. Correct api\.url$/],
    ['CERT_HAS_EXPIRED', /has expired.*\. Check the clock/],
    ['CERT_NOT_YET_VALID', /not valid yet.*\. Check the clock/],
    ['EPROTO', /does not speak TLS/],
  ])('%s is reported by its kind, with what to do', (code, words) => {
    const error = toTransportError(
      Object.assign(new Error('fetch failed'), { cause: Object.assign(new Error(''), { code }) }),
    );
    expect([error.failure, error.what.endsWith(` (${code})`)]).toEqual(['tls', true]);
    expect(error.message).toMatch(words);
  });

  test.each([
    ['ENOTFOUND', 'name', /was not found \(ENOTFOUND\)\. Check api\.url and the name servers of this machine/],
    ['EAI_AGAIN', 'name', /could not be resolved \(EAI_AGAIN\)\. Check the name servers of this machine/],
    ['EHOSTUNREACH', 'refused', /no route to the server \(EHOSTUNREACH\)\. Check the network of this machine/],
  ])('%s names the place to look at', (code, kind, words) => {
    const cause = Object.assign(new Error(''), { code });
    const error = toTransportError(Object.assign(new Error('fetch failed'), { cause }));
    expect([error.failure, error.message]).toEqual([kind, expect.stringMatching(words)]);
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
    const { transport, close } = createHttpTransport({ timeoutMs: 60_000 });
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

  test('a compression that was not requested, and one that is damaged', async () => {
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
  test('is not read when its declared length is too large', async () => {
    const { failure: kind } = await failureOf((socket) => socket.write(head(200, { 'content-length': '9000000000' })));
    expect(kind).toBe('too-large');
  });

  test('is cut off when it declares no length', async () => {
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
