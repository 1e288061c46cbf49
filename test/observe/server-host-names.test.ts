import { request } from 'node:http';
import { hostname } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { isForeignHost, type StatusServer, serveStatus } from '../../src/observe/server.ts';

const OWN = { address: '127.0.0.1', port: 9464, names: ['127.0.0.1', 'box.example.com'] };

describe('who listens on this machine alone', () => {
  test.each(['evil.example:9464', 'EVIL.example.:9464', '127.0.0.1.nip.io:9464', 'local.evil.example:9464'])(
    'is not asked by %s: a site may have that name lead here',
    (host) => {
      expect(isForeignHost(host, OWN)).toBe(true);
      for (const address of ['127.0.1.1', '::1', '::ffff:127.0.0.1'])
        expect(isForeignHost(host, { ...OWN, address })).toBe(true);
    },
  );

  test.each([
    ['its address', '127.0.0.1:9464'],
    ['its address of version 6', '[::1]:9464'],
    ['another address, through a tunnel', '192.168.1.7:9464'],
    ['the usual name', 'localhost:9464'],
    ['an old usual name', 'localhost.localdomain:9464'],
    ['a name below it', 'tidemark.localhost:9464'],
    ['the name of a machine', 'raspberry:9464'],
    ['its name in a network without DNS', 'raspberry.local:9464'],
    ['a name that is its own', 'Box.example.com:9464'],
    ['the name that a proxy with a port of its own passes on', 'tidemark.example.com'],
    ['the same, with the port of the proxy', 'tidemark.example.com:8443'],
    ['nothing', undefined],
    ['what is no name', 'a:b:c'],
  ])('is asked by %s', (_, host) => {
    expect(isForeignHost(host, OWN)).toBe(false);
  });

  test('with the port of HTTP itself no port stands behind the name', () => {
    expect(isForeignHost('evil.example', { ...OWN, port: 80 })).toBe(true);
  });

  test.each(['0.0.0.0', '::', '10.0.0.4'])('who listens on %s answers to any name', (address) => {
    expect(isForeignHost('tidemark.monitoring.svc:9464', { ...OWN, address })).toBe(false);
  });
});

const open: StatusServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

/** Asks a server that listens on `host`, by a name. */
async function askBy(name: string, paths: readonly string[], host = '127.0.0.1'): Promise<readonly (number | null)[]> {
  const nothing = { reasons: [], codes: [] };
  const server = await serveStatus({
    listen: { host, port: 0 },
    status: () => ({}) as never,
    page: async () => await Promise.resolve({ status: 200, type: 'text/html', body: '<p>Cellar' }),
    health: () => ({ healthy: true, ...nothing }),
    ready: () => ({ ready: true, ...nothing }),
    metrics: { text: async () => await Promise.resolve(''), contentType: 'text/plain' },
    onError: () => undefined,
  });
  open.push(server);
  const { port } = new URL(server.url);
  const ask = (path: string): Promise<number | null> =>
    new Promise((resolve, reject) => {
      const headers = { Host: `${name}:${port}` };
      request({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? null);
      })
        .on('error', reject)
        .end();
    });
  return await Promise.all(paths.map(ask));
}

describe('a server', () => {
  const PAGES = ['/', '/device?id=x', '/status.json', '/nothing', '/metrics?x'];

  test('on loopback shows nothing to a site that has its name lead here, and lets machines ask', async () => {
    expect(await askBy('evil.example', PAGES)).toEqual(PAGES.map(() => 421));
    expect(await askBy('evil.example', ['/healthz', '/readyz', '/metrics'])).toEqual([200, 200, 200]);
  });

  test('on loopback is there by its address and by the names of this machine', async () => {
    for (const name of ['127.0.0.1', 'localhost', hostname()]) expect(await askBy(name, ['/'])).toEqual([200]);
  });

  test('that is reached from elsewhere is there by the name of a service', async () => {
    expect(await askBy('tidemark.example.com', ['/', '/status.json'], '0.0.0.0')).toEqual([200, 200]);
  });
});
