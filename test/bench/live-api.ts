/**
 * The API of a fleet that reports now, as a process of its own: the simulated API by the clock of this machine, behind
 * a counter of what it is asked and of the bytes of its answers.
 *
 * Started by `parts.ts`; tells its port, and what it has counted when asked.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { realClock } from '../../src/app/real-clock.ts';
import { DAY_MS, MINUTE_MS } from '../../src/core/time.ts';
import { createSimulator, exchange } from '../../src/sim/simulator.ts';
import { createSeededWorld } from '../support/seeded-world.ts';

/** What was asked of telemetry and what went over the wire for it; of all else only the requests. */
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
