/**
 * The API of a fleet that reports now, as a process of its own: the simulated API by the clock of this machine, behind
 * a counter of the requests and of the bytes of the answers.
 *
 * Started by `parts.ts`; reports its port, and on request its counts.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { realClock } from '../../src/app/real-clock.ts';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { createSimulator, exchange } from '../../src/sim/simulator.ts';
import { createSeededWorld } from '../support/seeded-world.ts';

/** The requests for telemetry and their bytes; for all others only the number of requests. */
export interface LiveCounts {
  readonly polls: number;
  readonly pollBytes: number;
  readonly otherRequests: number;
}

const [, , devices = '30', historyMs = String(DAY_MS)] = process.argv;
const originMs = Date.now();
const simulator = createSimulator({
  clock: realClock,
  world: createSeededWorld({
    seed: 'live',
    originMs,
    historyMs: Number(historyMs),
    fleet: { devices: Number(devices), intervalsMs: [MINUTE_MS], sensors: [3, 3] },
  }),
  settings: { plan: { requestsPerMinute: 100_000, requestsPerDay: 100_000_000 }, key: { secret: 'bench_key' } },
});
const counts = { polls: 0, pollBytes: 0, otherRequests: 0 };

const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
  const { method = '', url = '', headers } = request;
  request.resume();
  const asked = { method, target: url, headers: { authorization: headers.authorization } };
  void exchange(simulator, asked, async () => {}).then(({ answer }) => {
    const isPacked = /\bgzip\b/.test(String(headers['accept-encoding'])) && answer.body.byteLength > 1000;
    const body = isPacked ? gzipSync(answer.body) : answer.body;
    if (url.includes('/telemetry')) {
      counts.polls += 1;
      counts.pollBytes += body.byteLength;
    } else counts.otherRequests += 1;
    response.writeHead(answer.status, {
      ...answer.headers,
      'Content-Length': String(body.byteLength),
      ...(isPacked ? { 'Content-Encoding': 'gzip' } : {}),
    });
    response.end(body);
  });
});

process.on('message', () => process.send?.(counts satisfies LiveCounts));
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
