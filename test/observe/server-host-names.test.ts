/** The host names that the HTTP server answers, and its password. Requests go to a real server on loopback. */
import { afterEach, describe, expect, test } from 'vitest';
import { realClock } from '../../src/app/real-clock.ts';
import { Secret } from '../../src/core/secret.ts';
import { isServedName, type StatusServer, type StatusServerOptions, serveStatus } from '../../src/observe/server.ts';
import { ask } from '../support/server-scenarios.ts';

describe('a request', () => {
  test.each([
    'evil.example:9464',
    'EVIL.example.:9464',
    'evil.example',
    '127.0.0.1.nip.io:9464',
    'local.evil.example:9464',
    'box.example.com.evil.example',
    'localhost.localdomain:9464',
    'user@127.0.0.1:9464',
    '127.0.0.1:9464/x.',
    'a.b:c:d',
    '[evil.example]:9464',
  ])('is not answered by %s: a site may have that name lead here', (host) => {
    expect(isServedName(host, ['box.example.com'])).toBe(false);
  });

  test.each([
    ['an address', '127.0.0.1:9464'],
    ['an address of version 6', '[::1]:9464'],
    ['another address, through a tunnel', '192.168.1.7'],
    ['the usual name', 'localhost:9464'],
    ['a name below it', 'tidemark.localhost:9464'],
    ['the name of a machine', 'raspberry:9464'],
    ['its name in a network without DNS', 'raspberry.local:9464'],
    ['a name of a private network', 'tidemark.home.internal'],
    ['a service of a cluster', 'tidemark.monitoring.svc.cluster.local:9464'],
    ['a name that is configured', 'Box.Example.com.:9464'],
    ['nothing', undefined],
  ])('is answered by %s', (_, host) => {
    expect(isServedName(host, ['box.EXAMPLE.com'])).toBe(true);
  });
});

const open: StatusServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

const NOTHING = { reasons: [], codes: [], names: [] };

async function serve(options: Partial<StatusServerOptions>): Promise<{ readonly port: number }> {
  const server = await serveStatus({
    listen: { host: '127.0.0.1', port: 0 },
    names: [],
    password: () => null,
    clock: realClock,
    status: () => ({}) as never,
    page: async () => await Promise.resolve({ status: 200, type: 'text/html', body: '<p>Cellar' }),
    health: () => ({ healthy: true, ...NOTHING }),
    ready: async () => ({ ready: true, ...NOTHING }),
    metrics: { text: async () => await Promise.resolve(''), contentType: 'text/plain' },
    onError: () => undefined,
    ...options,
  });
  open.push(server);
  return { port: Number(new URL(server.url).port) };
}

describe('a server with a password', () => {
  const basic = (pair: string): Record<string, string> => ({
    Authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
  });

  test('answers the probe of an orchestrator with the status alone, and with reasons to clients with the password', async () => {
    const why = { reasons: ['destination Cellar: 401'], codes: ['destination_blocked'], names: ['Cellar'] } as const;
    const url = await serve({ password: () => new Secret('pass:wörd'), ready: async () => ({ ready: false, ...why }) });
    expect(await ask(url, '/readyz', {})).toMatchObject({ status: 503, body: '{"ready":false}\n' });
    expect(JSON.parse((await ask(url, '/readyz', basic('x:pass:wörd'))).body)).toEqual({ ready: false, ...why });
    const well = await serve({ password: () => new Secret('pass:wörd') });
    expect(await ask(well, '/readyz', {})).toMatchObject({ status: 200 });
  });

  test.each([
    basic('anybody:pass'),
    basic('pass:wörd:'),
    basic('pass:wörd'),
    basic(''),
    { Authorization: 'Basic' },
    { Authorization: 'Bearer pass:wörd'.normalize('NFD').replace(/[^ -~]/g, '') },
  ])('turns away %o', async (headers) => {
    const url = await serve({ password: () => new Secret('pass:wörd') });
    const { status, body } = await ask(url, '/', headers);
    expect([status, body]).toEqual([
      401,
      expect.stringContaining('A password is required: the one in listen_password_file, with any user name.'),
    ]);
    expect((await ask(url, '/', basic('anybody:pass:wörd'))).status).toBe(200);
  });
});
