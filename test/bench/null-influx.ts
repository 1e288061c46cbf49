/**
 * A database that keeps nothing, as a process of its own: unpacks what it is sent, counts the lines, sums their
 * checksums and answers as InfluxDB does.
 *
 * Started by `parts.ts` with the time after which it answers a write, in ms; reports its port, and on request the
 * received lines.
 */
import { Buffer } from 'node:buffer';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32, gunzipSync } from 'node:zlib';
import type { LineSum } from './workspace.ts';

/** The received data: lines of telemetry, all others, and the number of requests. */
export interface SinkCounts {
  readonly telemetry: LineSum;
  readonly otherLines: number;
  readonly requests: number;
}

const ANSWERS_AFTER_MS = Number(process.argv[2] ?? 0);

const NEWLINE = 10;
const TELEMETRY = Buffer.from('telemetry,');

const counts = { lines: 0, sum: 0, otherLines: 0, requests: 0 };

const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
  if (request.method === 'GET' || request.method === 'HEAD') {
    const version = { 'X-Influxdb-Version': 'v2.7.0', 'X-Influxdb-Build': 'OSS' };
    response.writeHead(request.url?.startsWith('/ping') === true ? 204 : 200, version).end();
    return;
  }
  take(request, response).catch((error: unknown) => {
    response.writeHead(500).end(String(error));
  });
});

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const sent = Buffer.concat(chunks);
  count(request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent);
  counts.requests += 1;
  if (ANSWERS_AFTER_MS > 0) await sleep(ANSWERS_AFTER_MS);
  response.writeHead(204).end();
}

function count(text: Buffer): void {
  let from = 0;
  while (from < text.length) {
    const end = text.indexOf(NEWLINE, from);
    const to = end === -1 ? text.length : end;
    const line = text.subarray(from, to);
    if (TELEMETRY.equals(line.subarray(0, TELEMETRY.length))) {
      counts.lines += 1;
      counts.sum = (counts.sum + crc32(line)) >>> 0;
    } else if (to > from) counts.otherLines += 1;
    from = to + 1;
  }
}

function countsNow(): SinkCounts {
  const { lines, sum, otherLines, requests } = counts;
  return { telemetry: { lines, sum }, otherLines, requests };
}

process.on('message', () => process.send?.(countsNow()));
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
