/**
 * The APIs of many workspaces in one process, each under its own address with its own simulated workspace, plan and
 * key.
 *
 * Started by `workspaces.ts` with their number; reports the addresses and the keys, and accepts commands to break or
 * repair one: a broken API answers every request with 500.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { realClock } from '../../../src/app/real-clock.ts';
import { DAY_MS, MINUTE_MS } from '../../../src/core/time.ts';
import { BASE_PATH, createSimulator, exchange, type Simulator } from '../../../src/sim/simulator.ts';
import { createSeededWorld } from '../../support/seeded-world.ts';

/** The report at the start. */
export interface StartedApis {
  readonly url: string;
  /** The key of each workspace; its address is `url/N/external/v1`. */
  readonly keys: readonly string[];
}

/** The reply to a query: requests since the start, by workspace. */
export interface ApiCounts {
  readonly requests: readonly number[];
}

const [, , count = '1', devices = '20', reportMinutes = '5'] = process.argv;
const originMs = Date.now();
const simulators: Simulator[] = Array.from({ length: Number(count) }, (_, nth) =>
  createSimulator({
    clock: realClock,
    world: createSeededWorld({
      seed: `workspace-${nth}`,
      workspaceId: `ws_${String(nth).padStart(3, '0')}`,
      originMs,
      historyMs: 2 * DAY_MS,
      fleet: {
        devices: Number(devices),
        intervalsMs: [Number(reportMinutes) * MINUTE_MS],
        sensors: [3, 3],
        silentShare: 0.02,
      },
    }),
    settings: {
      key: { secret: `tmk_workspace_${nth}` },
      plan: { requestsPerMinute: 600, requestsPerDay: 864_000, historyMaxDays: 31 },
    },
  }),
);
const requests = simulators.map(() => 0);
const broken = new Set<number>();

const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
  const { method = '', url = '', headers } = request;
  request.resume();
  const nth = Number(/^\/(\d+)\//.exec(url)?.[1]);
  const simulator = simulators[nth];
  requests[nth] = (requests[nth] ?? 0) + 1;
  if (simulator === undefined || broken.has(nth)) {
    response.writeHead(500).end();
    return;
  }
  const target = url.slice(url.indexOf(BASE_PATH));
  const asked = { method, target, headers: { authorization: headers.authorization } };
  void exchange(simulator, asked, async () => {}).then(({ answer }) => {
    const isPacked = /\bgzip\b/.test(String(headers['accept-encoding'])) && answer.body.byteLength > 1000;
    const body = isPacked ? gzipSync(answer.body, { level: 1 }) : answer.body;
    response.writeHead(answer.status, {
      ...answer.headers,
      'Content-Length': String(body.byteLength),
      ...(isPacked ? { 'Content-Encoding': 'gzip' } : {}),
    });
    response.end(body);
  });
});

process.on('message', (order: { readonly breaks: number } | 'counts') => {
  if (order === 'counts') process.send?.({ requests } satisfies ApiCounts);
  else broken.add(order.breaks);
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  const keys = simulators.map((_, nth) => `tmk_workspace_${nth}`);
  process.send?.({ url: `http://127.0.0.1:${port}`, keys } satisfies StartedApis);
});
