/**
 * Clients that want too much of the server, against a real one on loopback: what it does for them, and that its health is
 * answered meanwhile. Turns and requests are counted, not milliseconds.
 */
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { realClock } from '../../src/app/real-clock.ts';
import type { Served } from '../../src/core/ports.ts';
import { type StatusServer, type StatusServerOptions, serveStatus } from '../../src/observe/server.ts';
import { answerMs, slow, type Target } from '../attacks/attackers.ts';

const PAGE: Served = { status: 200, type: 'text/plain', body: 'a page' };
const NOTHING = { reasons: [], codes: [], names: [] };

const open: StatusServer[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function serve(options: Partial<StatusServerOptions>): Promise<Target> {
  const server = await serveStatus({
    listen: { host: '127.0.0.1', port: 0 },
    names: [],
    password: null,
    clock: realClock,
    status: () => ({}) as never,
    page: async () => await Promise.resolve(PAGE),
    health: () => ({ healthy: true, ...NOTHING }),
    ready: () => ({ ready: true, ...NOTHING }),
    metrics: { text: async () => await Promise.resolve('tidemark_ready 1\n'), contentType: 'text/plain' },
    onError: () => undefined,
    ...options,
  });
  open.push(server);
  return { host: '127.0.0.1', port: Number(new URL(server.url).port), path: '/' };
}

interface Client {
  readonly socket: Socket;
  /** The statuses of the answers so far. */
  readonly statuses: () => readonly string[];
}

/** A connection that takes in whatever comes. */
async function client({ host, port }: Target): Promise<Client> {
  const socket = connect({ host, port });
  sockets.push(socket);
  let heard = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    heard += text;
  });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.on('connect', resolve));
  return { socket, statuses: () => [...heard.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status) };
}

const requestOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await realClock.sleep(2);
}

describe('a burst of pipelined requests', () => {
  test('is answered whole, one request at a time', async () => {
    const counts = { atWork: 0, most: 0 };
    const target = await serve({
      page: async () => {
        counts.atWork += 1;
        counts.most = Math.max(counts.most, counts.atWork);
        await realClock.sleep(1);
        counts.atWork -= 1;
        return PAGE;
      },
    });
    const { socket, statuses } = await client(target);
    const burst = Array.from({ length: 100 }, (_, index) => requestOf(`/device?id=${index}`)).join('');
    // Cut where nobody would: heads do not end where pieces do.
    for (let at = 0; at < burst.length; at += 777) socket.write(burst.slice(at, at + 777));
    await until(() => statuses().length === 100);
    expect([counts.most, new Set(statuses())]).toEqual([1, new Set(['200'])]);
  });

  test('of a client that has gone is not worked through', async () => {
    let made = 0;
    const held = Promise.withResolvers<void>();
    const target = await serve({
      page: async () => {
        made += 1;
        await held.promise;
        return PAGE;
      },
    });
    const clients = await Promise.all(Array.from({ length: 20 }, async () => await client(target)));
    for (const [index, { socket }] of clients.entries()) socket.write(requestOf(`/device?id=${index}`).repeat(200));
    await until(() => made === 8);
    for (const { socket } of clients) socket.destroy();
    await realClock.sleep(50);
    held.resolve();
    await realClock.sleep(200);
    // What is pipelined is not read, so that a client has gone shows when it is written to: once for each connection.
    expect(made).toBeLessThanOrEqual(2 * clients.length);
  });
});

describe('while pages are being made', () => {
  test('health and metrics are answered, and a ninth page is refused', async () => {
    const held = Promise.withResolvers<void>();
    let begun = 0;
    const target = await serve({
      page: async () => {
        begun += 1;
        await held.promise;
        return PAGE;
      },
    });
    const clients = await Promise.all(Array.from({ length: 10 }, async () => await client(target)));
    for (const [index, { socket }] of clients.entries()) socket.write(requestOf(`/device?id=${index}`));
    await until(() => begun === 8);
    for (const path of ['/healthz', '/readyz', '/metrics']) expect(await answerMs(target, path)).not.toBeNull();
    const all = (): readonly string[] => clients.flatMap(({ statuses }) => statuses());
    await until(() => all().length === 2);
    expect(all()).toEqual(['503', '503']);
    held.resolve();
    await until(() => all().length === 10);
    expect([all().filter((status) => status === '200').length, begun]).toEqual([8, 8]);
  });

  test('health is answered before any further page is begun', async () => {
    const order: string[] = [];
    const waiting: { health: Client | null } = { health: null };
    const target = await serve({
      page: async () => {
        order.push('page');
        if (order.length === 1) waiting.health?.socket.write(requestOf('/healthz'));
        return await Promise.resolve(PAGE);
      },
      health: () => {
        order.push('health');
        return { healthy: true, ...NOTHING };
      },
    });
    waiting.health = await client(target);
    const clients = await Promise.all(Array.from({ length: 20 }, async () => await client(target)));
    for (const [index, { socket }] of clients.entries()) socket.write(requestOf(`/device?id=${index}`));
    await until(() => order.length === 21);
    expect(order.indexOf('health')).toBe(1);
  });

  test('the overview is made once for everybody', async () => {
    let made = 0;
    const target = await serve({
      page: async () => {
        made += 1;
        return await Promise.resolve(PAGE);
      },
      clock: { monoMs: () => 0, sleep: realClock.sleep },
    });
    const taken = await Promise.all(Array.from({ length: 60 }, async () => await answerMs(target, '/')));
    expect([taken.includes(null), made]).toEqual([false, 1]);
  });
});

test('however many sockets send nothing whole, health is answered', async () => {
  const target = await serve({});
  await using _attack = slow(target);
  await realClock.sleep(100);
  for (let count = 0; count < 12; count += 1) {
    expect(await answerMs(target, '/healthz')).not.toBeNull();
    await realClock.sleep(100);
  }
});
