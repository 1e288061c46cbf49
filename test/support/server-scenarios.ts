/**
 * Scenarios of the HTTP server, on loopback: clients that overload it, that have no access, or that have gone.
 * Turns and answers are counted, not milliseconds.
 */
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { realClock } from '../../src/app/real-clock.ts';
import type { Clock, Served } from '../../src/core/ports.ts';
import { Secret } from '../../src/core/secret.ts';
import type { StatusServerOptions } from '../../src/observe/server.ts';
import { answerMs, slow, type Target } from '../attacks/attackers.ts';
import { type BorderScenario, type Borders, unless } from './borders.ts';

const PAGE: Served = { status: 200, type: 'text/plain', body: 'a page of Cellar' };
const NOTHING = { reasons: [], codes: [], names: [] };

/** A server, and the sockets that a scenario has opened to it. */
interface Stage extends AsyncDisposable {
  readonly target: Target;
  readonly sockets: Socket[];
}

async function serve({ serveStatus }: Borders, options: Partial<StatusServerOptions> = {}): Promise<Stage> {
  const server = await serveStatus({
    listen: { host: '127.0.0.1', port: 0 },
    names: [],
    password: () => null,
    clock: realClock,
    status: () => ({}) as never,
    page: async () => await Promise.resolve(PAGE),
    health: () => ({ healthy: true, ...NOTHING }),
    ready: async () => ({ ready: true, ...NOTHING }),
    metrics: { text: async () => await Promise.resolve('tidemark_ready 1\n'), contentType: 'text/plain' },
    onError: () => undefined,
    ...options,
  });
  const sockets: Socket[] = [];
  return {
    target: { host: '127.0.0.1', port: Number(new URL(server.url).port), path: '/' },
    sockets,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await server.close();
    },
  };
}

/** The real clock, twenty times as fast: for what a server waits for. */
const FAST: Pick<Clock, 'monoMs' | 'sleep'> = {
  monoMs: () => realClock.monoMs() * 20,
  sleep: async (ms, signal) => await realClock.sleep(ms / 20, signal),
};

/**
 * A clock on which nothing that takes a second ever ends, so that no waiting client gives up. Timed work takes no time
 * on it: on a slow machine, a pause of a multiple of it would never end.
 */
const PATIENT: Pick<Clock, 'monoMs' | 'sleep'> = {
  monoMs: () => 0,
  sleep: async (ms, signal) =>
    ms < 1000
      ? await realClock.sleep(ms, signal)
      : await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
};

interface Client {
  readonly socket: Socket;
  /** The statuses of the answers so far. */
  readonly statuses: () => readonly string[];
}

/** A connection that collects all data. */
async function join({ target: { host, port }, sockets }: Stage, localAddress = '127.0.0.1'): Promise<Client> {
  const socket = connect({ host, port, localAddress });
  sockets.push(socket);
  let heard = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    heard += text;
  });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.on('connect', resolve));
  return { socket, statuses: () => [...heard.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status = '']) => status) };
}

async function joinMany(stage: Stage, count: number, localAddress?: string): Promise<Client[]> {
  return await Promise.all(Array.from({ length: count }, async () => await join(stage, localAddress)));
}

const requestOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** Has each client request a page of its own. */
function askEach(clients: readonly Client[], times = 1): void {
  for (const [index, { socket }] of clients.entries()) socket.write(requestOf(`/device?id=${index}`).repeat(times));
}

const statusesOf = (clients: readonly Client[]): string[] => clients.flatMap(({ statuses }) => statuses());

/**
 * Waits until it is so; gives up after a second and more without progress, as it never is so in some broken program.
 *
 * @param progress a number that grows on the way.
 */
async function until(isSo: () => boolean, progress: () => number = () => 0): Promise<void> {
  let reached = progress();
  for (let turn = 0; turn < 500 && !isSo(); turn += 1) {
    await realClock.sleep(2);
    if (progress() > reached) turn = 0;
    reached = progress();
  }
}

interface Got {
  readonly status: number | undefined;
  readonly body: string;
  readonly challenge: string | undefined;
}

/** Sends one request, on a connection of its own. */
export function ask({ port }: Pick<Target, 'port'>, path: string, headers: Record<string, string> = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (piece: string) => {
        body += piece;
      });
      answer.on('end', () =>
        resolve({ status: answer.statusCode, body, challenge: answer.headers['www-authenticate'] }),
      );
    });
    sent.on('error', reject).end();
  });
}

/** The answer for every client where nothing is wrong. */
export const ordinaryClients: BorderScenario = async (borders) => {
  await using stage = await serve(borders);
  const paths = ['/', '/status.json', '/metrics', '/healthz', '/readyz', '/device?id=x'];
  const got = await Promise.all(paths.map(async (path) => (await ask(stage.target, path)).status));
  return unless('statuses', got, [200, 200, 200, 200, 200, 200]);
};

/**
 * A hundred requests at once on one connection, cut where nobody would. Rests are short, and no request waits in vain,
 * however slow the machine is.
 */
export const pipelinedBurst: BorderScenario = async (borders) => {
  const counts = { atWork: 0, most: 0 };
  await using stage = await serve(borders, {
    clock: { ...PATIENT, sleep: async (ms, signal) => await (ms < 1000 ? FAST : PATIENT).sleep(ms, signal) },
    page: async () => {
      counts.atWork += 1;
      counts.most = Math.max(counts.most, counts.atWork);
      // For longer than the pause between the beginnings of two pages.
      await realClock.sleep(5);
      counts.atWork -= 1;
      return PAGE;
    },
  });
  const { socket, statuses } = await join(stage);
  const burst = Array.from({ length: 100 }, (_, index) => requestOf(`/device?id=${index}`)).join('');
  for (let at = 0; at < burst.length; at += 777) socket.write(burst.slice(at, at + 777));
  await until(
    () => statuses().length === 100,
    () => statuses().length,
  );
  return [
    ...unless('at work at once', counts.most, 1),
    ...unless('answered', statuses().filter((status) => status === '200').length, 100),
  ];
};

/** Twenty clients that leave while eight of their pages are in the making. */
export const clientsThatLeave: BorderScenario = async (borders) => {
  const held = Promise.withResolvers<void>();
  let made = 0;
  await using stage = await serve(borders, {
    clock: PATIENT,
    page: async () => {
      made += 1;
      await held.promise;
      return PAGE;
    },
  });
  const clients = await joinMany(stage, 20);
  askEach(clients);
  await until(() => made >= 8);
  for (const { socket } of clients) socket.destroy();
  // The server has seen requests after they left if it has answered them after that.
  for (let count = 0; count < 3; count += 1) await ask(stage.target, '/healthz');
  const last = ask(stage.target, '/device?id=last');
  held.resolve();
  await last;
  return unless('pages made', made, 9);
};

/** The same of clients whose next requests wait unread: that they have gone shows when they are answered. */
export const burstsThatLeave: BorderScenario = async (borders) => {
  const held = Promise.withResolvers<void>();
  let made = 0;
  await using stage = await serve(borders, {
    page: async () => {
      made += 1;
      await held.promise;
      return PAGE;
    },
  });
  const clients = await joinMany(stage, 20);
  askEach(clients, 200);
  await until(() => made >= 8);
  for (const { socket } of clients) socket.destroy();
  await ask(stage.target, '/healthz');
  held.resolve();
  await realClock.sleep(100);
  return made <= 2 * clients.length ? [] : [`${made} pages made for ${clients.length} clients that have gone`];
};

/**
 * Ten pages are requested while none is finished, and health, metrics and a file of the page meanwhile. Nobody gives up waiting until eight
 * pages have begun, however slow the machine is, and from then on everybody does at once.
 */
export const ninthPage: BorderScenario = async (borders) => {
  const held = Promise.withResolvers<void>();
  const waited = Promise.withResolvers<void>();
  let begun = 0;
  await using stage = await serve(borders, {
    clock: {
      ...PATIENT,
      sleep: async (ms, signal) =>
        await Promise.race([PATIENT.sleep(ms, signal), ...(ms < 1000 ? [] : [waited.promise])]),
    },
    page: async (path) => {
      if (path.startsWith('/assets/')) return PAGE;
      begun += 1;
      await held.promise;
      return PAGE;
    },
  });
  const clients = await joinMany(stage, 10);
  askEach(clients);
  await until(
    () => begun >= 8,
    () => begun,
  );
  // Time for a ninth one to begin, if it may.
  await realClock.sleep(500);
  waited.resolve();
  const paths = ['/healthz', '/readyz', '/metrics', '/assets/page.css'];
  const meanwhile = await Promise.all(paths.map(async (path) => (await ask(stage.target, path)).status));
  await until(() => statusesOf(clients).length >= 2);
  const refused = statusesOf(clients);
  held.resolve();
  await until(() => statusesOf(clients).length >= 10);
  return [
    ...unless('health, metrics and files meanwhile', meanwhile, [200, 200, 200, 200]),
    ...unless('refused', refused, ['503', '503']),
    ...unless('begun', begun, 8),
    ...unless('answered', statusesOf(clients).filter((status) => status === '200').length, 8),
  ];
};

/** Health is requested while the first of twenty pages is made, by clients that have all sent requests before. */
export const healthBeforePages: BorderScenario = async (borders) => {
  const order: string[] = [];
  const waiting: { health: Client | null } = { health: null };
  // The rests of all connections end at once, so that their pages are due in one turn.
  const rested = Promise.withResolvers<void>();
  const sleep = async (ms: number, signal?: AbortSignal): Promise<void> =>
    ms > 0 && ms < 1000 ? await rested.promise : await PATIENT.sleep(ms, signal);
  await using stage = await serve(borders, {
    clock: { monoMs: realClock.monoMs, sleep },
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
  waiting.health = await join(stage);
  const clients = await joinMany(stage, 20);
  for (const { socket } of clients) socket.write(requestOf('/readyz'));
  await until(() => statusesOf(clients).length === 20);
  askEach(clients);
  await realClock.sleep(5);
  rested.resolve();
  await until(() => order.length === 21);
  return [...unless('answers made', order.length, 21), ...unless('the place of health', order.indexOf('health'), 1)];
};

/** Sixty clients request the overview within a second. */
export const overviewForMany: BorderScenario = async (borders) => {
  let made = 0;
  await using stage = await serve(borders, {
    page: async () => {
      made += 1;
      return await Promise.resolve(PAGE);
    },
    clock: { monoMs: () => 0, sleep: realClock.sleep },
  });
  const got = await Promise.all(Array.from({ length: 60 }, async () => (await ask(stage.target, '/')).status));
  return [...unless('answered', got.filter((status) => status === 200).length, 60), ...unless('made', made, 1)];
};

/** The same with something behind the path, which has no meaning there. */
export const queriesWithoutMeaning: BorderScenario = async (borders) => {
  const made: Record<string, number> = {};
  const note = (path: string): void => {
    made[path] = (made[path] ?? 0) + 1;
  };
  await using stage = await serve(borders, {
    page: async (path) => {
      note(path);
      return await Promise.resolve(PAGE);
    },
    metrics: {
      contentType: 'text/plain',
      text: async () => {
        note('/metrics');
        return await Promise.resolve('up 1');
      },
    },
    clock: { monoMs: () => 0, sleep: realClock.sleep },
  });
  const paths = ['/', '/alerts', '/device', '/devices.json', '/events', '/metrics'];
  const got: unknown[] = [];
  for (const path of paths)
    for (const query of ['', '?', '?a=1', '?a=2', '?x', '?Search=a&page[]=2'])
      got.push((await ask(stage.target, `${path}${query}`)).status);
  return [
    ...unless('answered', new Set(got).size === 1 && got[0] === 200, true),
    ...unless('made', made, Object.fromEntries(paths.map((path) => [path, 1]))),
  ];
};

/** Five clients request a page of 12 MiB of their own each, and read none of it for a while. */
export const unreadPages: BorderScenario = async (borders) => {
  const body = 'x'.repeat(12 * 1024 * 1024);
  await using stage = await serve(borders, {
    clock: FAST,
    page: async () => await Promise.resolve({ ...PAGE, body }),
  });
  const clients = await joinMany(stage, 5);
  for (const [index, { socket }] of clients.entries()) {
    let hasBegun = false;
    socket.once('data', () => {
      socket.pause();
      hasBegun = true;
    });
    socket.write(requestOf(`/device?id=${index}`));
    await until(() => hasBegun);
  }
  for (const { socket } of clients) socket.resume();
  const dropped = (): number => clients.filter(({ socket }) => socket.destroyed).length;
  await until(() => dropped() >= 3);
  return unless('dropped', dropped(), 3);
};

/** Sixty clients that have their answers, and then sixty that never finish a request: twenty too many. */
export const slowClients: BorderScenario = async (borders) => {
  await using stage = await serve(borders, { clock: FAST });
  const served = await joinMany(stage, 60);
  for (const { socket } of served) socket.write(requestOf('/healthz'));
  await until(() => statusesOf(served).length === 60);
  const unfinished = await joinMany(stage, 60);
  for (const { socket } of unfinished) socket.write('GET / HTTP/1.1\r\nX-Slow: ');
  const closedOf = (clients: readonly Client[]): number => clients.filter(({ socket }) => socket.destroyed).length;
  await until(() => closedOf(unfinished) + closedOf(served) >= 20);
  return [...unless('slow ones dropped', closedOf(unfinished), 20), ...unless('others dropped', closedOf(served), 0)];
};

/** An address opens 110 connections after another one has three, which are slower. */
export const greedyAddress: BorderScenario = async (borders) => {
  await using stage = await serve(borders, { clock: FAST });
  const few = await joinMany(stage, 3, '127.0.0.2');
  for (const { socket } of few) socket.write('GET / HTTP/1.1\r\nX-Slow: ');
  const greedy = await joinMany(stage, 110, '127.0.0.1');
  const openOf = (clients: readonly Client[]): number => clients.filter(({ socket }) => !socket.destroyed).length;
  await until(() => openOf(few) + openOf(greedy) <= 100);
  return [...unless('connections left to the other address', openOf(few), 3), ...unless('in all', openOf(greedy), 97)];
};

/** With any number of sockets with incomplete requests, health is answered. */
export const slowSockets: BorderScenario = async (borders) => {
  await using stage = await serve(borders);
  await using _attack = slow(stage.target);
  const waits: (number | null)[] = [];
  for (let count = 0; count < 12; count += 1) {
    await realClock.sleep(100);
    waits.push(await answerMs(stage.target, '/healthz'));
  }
  return unless('checks without an answer', waits.filter((ms) => ms === null).length, 0);
};

/** A site has its name lead here; monitoring requests health and metrics by any name. */
export const foreignNames: BorderScenario = async (borders) => {
  const found: string[] = [];
  for (const host of ['127.0.0.1', '0.0.0.0']) {
    await using stage = await serve(borders, { listen: { host, port: 0 }, names: ['page.example.com'] });
    const { target } = stage;
    const headers = { Host: `evil.example:${target.port}` };
    for (const path of ['/', '/device?id=x', '/status.json', '/readyz', '/nothing', '/metrics?x']) {
      const { status, body } = await ask(target, path, headers);
      found.push(...unless(`${path} of another name`, [status, body.includes('listen_names')], [421, true]));
    }
    for (const path of ['/healthz', '/metrics']) {
      found.push(...unless(`${path} of another name`, (await ask(target, path, headers)).status, 200));
    }
    for (const Host of ['page.example.com', 'localhost'])
      found.push(...unless(`/ of ${Host}`, (await ask(target, '/', { Host })).status, 200));
  }
  return found;
};

/** A server with a password: requests with it, without it and with others. */
export const passwords: BorderScenario = async (borders) => {
  await using stage = await serve(borders, { password: () => new Secret('pass:wörd') });
  const { target } = stage;
  const basic = (pair: string) => ({ Authorization: `Basic ${Buffer.from(pair).toString('base64')}` });
  const found: string[] = [];
  for (const path of ['/', '/status.json', '/device?id=x', '/metrics', '/nothing']) {
    const { status, challenge, body } = await ask(target, path);
    const refused = [status, challenge, body.includes('Cellar')];
    found.push(...unless(`${path} without it`, refused, [401, 'Basic realm="Tidemark", charset="UTF-8"', false]));
    found.push(...unless(`${path} with it`, (await ask(target, path, basic('anybody:pass:wörd'))).status, 200));
  }
  for (const pair of ['anybody:pass', 'pass:wörd:', 'pass:wörd', ''])
    found.push(...unless(`/ with ${pair}`, (await ask(target, '/', basic(pair))).status, 401));
  found.push(...unless('/healthz', (await ask(target, '/healthz')).status, 200));
  found.push(...unless('/readyz', (await ask(target, '/readyz')).body, '{"ready":true}\n'));
  return found;
};
