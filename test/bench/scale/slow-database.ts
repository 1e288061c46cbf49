/**
 * How many points a second reach a database that acknowledges each write only after a second, as InfluxDB 3 Core does:
 * the program's own state, delivery and connection, with everything in the log when it begins.
 *
 *   node test/bench/scale/slow-database.ts [--points 1000000] [--answer-ms 1000]
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { realClock } from '../../../src/app/real-clock.ts';
import { Secret } from '../../../src/core/secret.ts';
import { createDeliverer } from '../../../src/delivery/deliver.ts';
import { createInfluxSink } from '../../../src/influx/sink.ts';
import { scratchStore } from '../../store/support.ts';

const { values } = parseArgs({
  options: { points: { type: 'string', default: '1000000' }, 'answer-ms': { type: 'string', default: '1000' } },
});
const points = Number(values.points);
const answerMs = Number(values['answer-ms']);

let [underWay, most, writes] = [0, 0, 0];
const server = createServer((request, response) => {
  underWay += 1;
  most = Math.max(most, underWay);
  writes += 1;
  request.resume();
  request.on('end', () => {
    void sleep(answerMs).then(() => {
      underWay -= 1;
      response.writeHead(204).end();
    });
  });
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
using state = scratchStore();
const startNs = BigInt(Date.now() - 86_400_000) * 1_000_000n;
for (let from = 0; from < points; from += 1000) {
  const lines = Array.from({ length: Math.min(1000, points - from) }, (_, index) => {
    const nth = from + index;
    const tags = `device_id=hub-${nth % 50},device_name=Cold\\ room\\ ${nth % 50},sensor=temperature,workspace_id=ws_bench`;
    return `telemetry,${tags} value=${(nth % 1000) / 10} ${startNs + BigInt(nth) * 1_000_000n}`;
  });
  state.store.append(lines, 'history');
}
const { port } = server.address() as AddressInfo;
const sink = createInfluxSink({
  name: 'influx',
  url: `http://127.0.0.1:${port}`,
  token: new Secret('bench'),
  org: '',
  bucket: 'bench',
  timeoutMs: 30_000,
});
const parts = { store: state.store, clock: realClock, random: Math.random, observe: () => {} };
const deliverer = createDeliverer(parts, { sink, identity: 'bench', batchLines: 5000 });
const stop = new AbortController();
const beganMs = performance.now();
const running = deliverer.run(stop.signal).catch(() => {});
const marks: { atMs: number; delivered: number }[] = [];
while (deliverer.deliveredLines() < points) {
  await sleep(500);
  marks.push({ atMs: performance.now() - beganMs, delivered: deliverer.deliveredLines() });
}
const tookS = (performance.now() - beganMs) / 1000;
// Once the maximum of concurrent batches is under way: the second half.
const half = marks.find(({ delivered }) => delivered >= points / 2) ?? { atMs: 0, delivered: 0 };
const steady = (points - half.delivered) / (tookS - half.atMs / 1000);
stop.abort();
await running;
server.close();
server.closeAllConnections();
process.stdout.write(
  `${points} points in ${tookS.toFixed(1)} s, ${Math.round(points / tookS)} a second in all and ${Math.round(steady)} in the second half; ${writes} writes, ${most} at once; at most ${Math.round(process.resourceUsage().maxRSS / 1000)} MB\n`,
);
