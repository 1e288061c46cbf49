/** `--check`, the status page: its address, and who can read it. */
import { createServer } from 'node:http';
import { Server } from 'node:net';
import { expect, test, vi } from 'vitest';
import { checkPage } from '../../../src/commands/check/page.ts';
import type { Config } from '../../../src/config/config.ts';
import { Secret } from '../../../src/core/secret.ts';
import { freePort } from '../../support/ports.ts';

const config = (host: string, port: number, password: string | null = null) =>
  ({ listen: { host, port }, statusPage: { password: password === null ? null : new Secret(password) } }) as Config;

async function serving<T>(body: string, work: (port: number) => Promise<T>, status = 200): Promise<T> {
  const server = createServer((_request, response) => void response.writeHead(status).end(body));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  try {
    const address = server.address();
    return await work(typeof address === 'object' && address !== null ? address.port : 0);
  } finally {
    server.close();
  }
}

test('an address that is free, and one that another program uses', async () => {
  const [free] = await checkPage(config('127.0.0.1', 0), false);
  expect(free).toMatchObject({ name: 'listen', status: 'ok' });
  const [port, used] = await serving('x', async (taken) => [taken, await checkPage(config('127.0.0.1', taken), false)]);
  expect(used[0]).toMatchObject({
    status: 'fail',
    message: expect.stringMatching(/is in use by another program or another Tidemark$/),
    remedy: expect.stringMatching(
      /^Set listen \(TIDEMARK_LISTEN\) to another port; with port 0 .* Or stop that program\. If it is a Tidemark daemon, do not stop it/,
    ),
  });
  expect((await checkPage(config('127.0.0.1', port), false))[0], 'that program is stopped').toMatchObject({
    status: 'ok',
  });
  const [another, any] = await serving('x', async () => [
    await checkPage(config('127.0.0.1', await freePort()), false),
    await checkPage(config('127.0.0.1', 0), false),
  ]);
  expect([another[0]?.status, any[0]?.status], 'another port, and 0').toEqual(['ok', 'ok']);
  const [elsewhere] = await checkPage(config('203.0.113.9', 9464), false);
  expect(elsewhere).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('is not an address of this machine'),
    remedy: expect.stringMatching(/^Use 127\.0\.0\.1 or 0\.0\.0\.0/),
  });
  for (const host of ['127.0.0.1', '0.0.0.0', 'localhost']) {
    expect((await checkPage(config(host, 0), false))[0]).toMatchObject({ status: 'ok' });
  }
});

test('beside a daemon: whether the daemon answers there', async () => {
  const own = await serving('{"healthy":true}', async (port) => await checkPage(config('127.0.0.1', port), true));
  expect(own[0]).toMatchObject({
    status: 'ok',
    message: expect.stringContaining('a Tidemark daemon answers and runs; --status shows whether it syncs'),
  });
  const read = async (port: number) => await checkPage(config('127.0.0.1', port), true);
  expect((await serving('{"healthy":false}', read, 503))[0]).toMatchObject({
    status: 'warn',
    message: expect.stringMatching(/: a Tidemark daemon answers, but is not healthy \(HTTP 503\)/),
    remedy: expect.stringContaining('run --health'),
  });
  const other = await serving('hello', async (port) => await checkPage(config('127.0.0.1', port), true));
  expect(other[0]).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('another program answers there'),
    remedy: 'Set listen (TIDEMARK_LISTEN) to another port and restart the daemon.',
  });
  // Restarted with another port, the daemon answers there.
  const moved = await serving('hello', async () =>
    serving('{"healthy":true}', async (port) => await checkPage(config('127.0.0.1', port), true)),
  );
  expect(moved[0]).toMatchObject({ status: 'ok', message: expect.stringContaining('a Tidemark daemon answers') });
  const [nobody] = await checkPage(config('127.0.0.1', 1), true);
  expect(nobody).toMatchObject({ status: 'skip' });
});

test('no check advises to stop a daemon of Tidemark on the port', async () => {
  const health = '{"healthy":true}';
  // Another user than the daemon's: whether it runs is unknown.
  const own = await serving(health, async (port) => await checkPage(config('127.0.0.1', port), null));
  expect(own[0]).toMatchObject({ status: 'ok', message: expect.stringContaining('a Tidemark daemon answers') });
  const other = await serving(health, async (port) => await checkPage(config('127.0.0.1', port), false));
  expect(other[0]).toMatchObject({
    status: 'fail',
    message: expect.stringContaining('a Tidemark daemon with another data_dir answers there'),
    remedy: 'Set listen (TIDEMARK_LISTEN) to another port.',
  });
  const elsewhere = await serving(health, async () => await checkPage(config('127.0.0.1', await freePort()), false));
  expect(elsewhere[0]).toMatchObject({ status: 'ok', message: expect.stringMatching(/: free for the daemon$/) });
  const unknown = await serving('hello', async (port) => await checkPage(config('127.0.0.1', port), null));
  expect(unknown[0]).toMatchObject({
    status: 'fail',
    remedy: expect.stringContaining('If it is a Tidemark daemon, do not stop it'),
  });
});

test('who can read it', async () => {
  const readers = async (...of: Parameters<typeof config>) =>
    (await checkPage(config(...of), false)).find(({ name }) => name === 'readers')?.message;
  expect(await readers('127.0.0.1', 0)).toBe('everybody on this machine, without a password');
  expect(await readers('0.0.0.0', 0, 'canary-4711')).toBe('everybody who can reach this port, with the password');
  expect(await readers('::1', 0)).toMatch(/on this machine/);
});

test.each([
  [
    80,
    'EACCES',
    /may not be used by this user/,
    'Use a port above 1023: set listen (TIDEMARK_LISTEN) to another port.',
  ],
  [
    1234,
    'EAFNOSUPPORT',
    /cannot be listened on \(EAFNOSUPPORT\)/,
    'Check the address, or set listen (TIDEMARK_LISTEN) to another.',
  ],
])('a port %i that the system refuses (%s): another address', async (port, code, words, remedy) => {
  // Few machines refuse one to the user of the tests.
  const refused = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server) {
    queueMicrotask(() => this.emit('error', Object.assign(new Error(code), { code })));
    return this;
  });
  try {
    const [line] = await checkPage(config('127.0.0.1', port), false);
    expect(line).toMatchObject({ status: 'fail', message: expect.stringMatching(words), remedy });
  } finally {
    refused.mockRestore();
  }
  expect((await checkPage(config('127.0.0.1', await freePort()), false))[0]).toMatchObject({ status: 'ok' });
});
