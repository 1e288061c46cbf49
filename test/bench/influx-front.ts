/**
 * The part of version 2 that an InfluxDB 1.6 does not have, as a process of its own: passes `/api/v2/write` on as it
 * came, and counts the connections and the time from the first write to the last answer. Keeps the bodies in a
 * directory where one is given.
 *
 * Started by `parts.ts` with the address of the database; reports its port, and on request its counts. `wait:14` in place
 * of an address stands for a database that takes 14 ms for each write and no processor time. With a number of seconds it
 * refuses the first write for that long and does not count it, as a database does that comes back from an outage.
 */
import { writeFileSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from './table.ts';

/** The figures of a series of times; each is 0 without any. */
export interface Spread {
  readonly median: number;
  readonly mean: number;
  readonly p95: number;
}

/** The traffic so far. */
export interface FrontCounts {
  readonly writes: number;
  /** Those that the database did not take. */
  readonly failed: number;
  /** How many were under way at once, at the most. */
  readonly most: number;
  /** From the first write to the last answer. */
  readonly tookMs: number;
  /** The times from a whole body to its answer, and from an answer to the next whole body, in ms. */
  readonly answer: Spread;
  readonly rest: Spread;
  /** The processor time of the front itself, from the first write on. */
  readonly frontCpuMs: number;
}

const [, , upstream = '', refusesForS = '0', directory] = process.argv;
/** How the name of a packed body ends. */
const PACKED = '.gz';
const agent = new Agent({ keepAlive: true });
let isRefusing = Number(refusesForS) > 0;
const counts = { writes: 0, failed: 0, underWay: 0, most: 0, firstMs: 0, lastMs: 0 };
const answersMs: number[] = [];
const restsMs: number[] = [];
let cpu = process.cpuUsage();

const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
  if (request.method === 'POST' && isRefusing) {
    isRefusing = false;
    request.resume();
    response.writeHead(503, { 'Retry-After': refusesForS }).end();
    return;
  }
  if (request.method === 'POST') {
    pass(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
    return;
  }
  response.writeHead(204, { 'X-Influxdb-Version': 'v2.7.0', 'X-Influxdb-Build': 'OSS' }).end();
});

async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (counts.writes === 0) {
    counts.firstMs = performance.now();
    cpu = process.cpuUsage();
  }
  counts.writes += 1;
  const number = counts.writes;
  counts.underWay += 1;
  counts.most = Math.max(counts.most, counts.underWay);
  const body = await buffer(request);
  const bodyMs = performance.now();
  if (number > 1) restsMs.push(bodyMs - counts.lastMs);
  const isPacked = request.headers['content-encoding'] === 'gzip';
  if (directory !== undefined) {
    writeFileSync(join(directory, `${String(number).padStart(6, '0')}${isPacked ? PACKED : ''}`), body);
  }
  const status = upstream.startsWith('wait:')
    ? await sleep(Number(upstream.slice('wait:'.length)), 204)
    : await statusOf(request, body, isPacked);
  if (status !== 204) counts.failed += 1;
  counts.underWay -= 1;
  counts.lastMs = performance.now();
  answersMs.push(counts.lastMs - bodyMs);
  response.writeHead(status).end();
}

/** Passes a body on to the database. */
async function statusOf(request: IncomingMessage, body: Buffer, isPacked: boolean): Promise<number> {
  const bucket = new URL(request.url ?? '', 'http://front').searchParams.get('bucket') ?? '';
  const target = `${upstream}/write?${new URLSearchParams({ db: bucket, precision: 'n' })}`;
  const headers = { 'content-length': body.length, ...(isPacked ? { 'content-encoding': 'gzip' } : {}) };
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  openRequest(target, { method: 'POST', agent, headers }, resolve).on('error', reject).end(body);
  const answer = await promise;
  await buffer(answer);
  return answer.statusCode ?? 500;
}

function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) return { median: 0, mean: 0, p95: 0 };
  const sorted = values.toSorted((a, b) => a - b);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { median: median(values), mean, p95: sorted[Math.floor(sorted.length * 0.95)] ?? 0 };
}

process.on('message', () => {
  const { writes, failed, most, firstMs, lastMs } = counts;
  const used = process.cpuUsage(cpu);
  process.send?.({
    writes,
    failed,
    most,
    tookMs: lastMs - firstMs,
    answer: spreadOf(answersMs),
    rest: spreadOf(restsMs),
    frontCpuMs: (used.user + used.system) / 1000,
  } satisfies FrontCounts);
});
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
