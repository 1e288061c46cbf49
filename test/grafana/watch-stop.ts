/**
 * `node test/grafana/watch-stop.ts`: one story in real time, with the parts of compose.yaml as they are configured
 * there. A daemon syncs the demo's workspace from the simulator into a real InfluxDB, beside a real Prometheus with all
 * rules and an Alertmanager; then the daemon is killed, and each view that shows it is printed with the time since. It
 * runs for some 25 minutes, needs `influxd`, `prometheus` and `prometheus-alertmanager`, and exits 1 where a view is
 * not red after 20 minutes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { realClock } from '../../src/app/real-clock.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { createDemoWorld } from '../../src/sim/demo-world.ts';
import { openBench, openStage, ROOT, until } from '../process/support.ts';
import { startAlertmanager, startPrometheus } from '../support/prometheus.ts';
import { reader } from './support/story.ts';

// Grafana's library warns of a column that is only there once the daemon has stopped.
console.warn = () => {};

const WITHIN_MS = 20 * MINUTE_MS;
const CONFIG = join(ROOT, 'config', 'prometheus');
const { global: every, rule_files } = parse(readFileSync(join(CONFIG, 'prometheus.yml'), 'utf8')) as {
  readonly global: { readonly scrape_interval: string; readonly evaluation_interval: string };
  readonly rule_files: readonly string[];
};

await using bench = await openBench();
await using stage = await openStage({
  bench,
  historyMs: DAY_MS,
  settings: { plan: { name: 'Demo', requestsPerMinute: 900, requestsPerDay: 200_000 } },
});
stage.simulator.world = createDemoWorld(realClock.nowMs());
const run = stage.start([], { env: { TIDEMARK_LISTEN: '127.0.0.1:0' }, withinMs: 60 * MINUTE_MS });
const address = (): string => /"status_page":"http:\/\/([^/"]+)/.exec(run.stderr())?.[1] ?? '';
await until('the page is served', () => address() !== '');
const target = address();
await using alertmanager = await startAlertmanager(join(CONFIG, 'alertmanager.yml'));
await using prometheus = await startPrometheus({
  target,
  every: { scrape_interval: every.scrape_interval, evaluation_interval: every.evaluation_interval },
  rules: Object.fromEntries(rule_files.map((name) => [name, readFileSync(join(CONFIG, name), 'utf8')])),
  notifies: new URL(alertmanager.url).host,
});

const place = { url: bench.influxd.url, database: stage.database };
const isRed = async (uid: string, title: string): Promise<boolean> => {
  const shown = await reader({ place, toMs: Date.now() }).numbers(uid, title);
  return shown.length > 0 && shown.every((text) => text.endsWith(', red'));
};
const isIn = async (state: 'pending' | 'firing', name: string): Promise<boolean> =>
  (await prometheus.alerts()).some((each) => each.state === state && each.labels['alertname'] === name);
const isNotified = async (name: string): Promise<boolean> =>
  (await alertmanager.alerts()).some(({ status, labels }) => status.state === 'active' && labels['alertname'] === name);
const isGone = async (path: string): Promise<boolean> => {
  const answer = await fetch(`http://${target}${path}`).catch(() => null);
  return answer?.status !== 200;
};

const VIEWS: readonly (readonly [name: string, isBad: () => Promise<boolean>])[] = [
  ['page: does not answer', async () => await isGone('/')],
  ['/readyz: does not answer', async () => await isGone('/readyz')],
  ['/metrics: does not answer', async () => await isGone('/metrics')],
  ['Prometheus: up is 0', async () => (await prometheus.query('up{job="tidemark"} == 0')).size > 0],
  ['rule TidemarkDown is pending', async () => await isIn('pending', 'TidemarkDown')],
  ['rule TidemarkDown fires', async () => await isIn('firing', 'TidemarkDown')],
  ['Alertmanager: TidemarkDown notifies', async () => await isNotified('TidemarkDown')],
  ...(['start', 'fleet'] as const).flatMap((uid) =>
    ['Devices by state', 'Late', 'Lag'].map(
      (title) => [`dashboard ${uid}: ${title} is red`, async () => await isRed(uid, title)] as const,
    ),
  ),
  ['dashboard workspace: Lag is red', async () => await isRed('workspace', 'Lag')],
];

await until('it is ready', async () => !(await isGone('/readyz')), 10 * MINUTE_MS);
await until(
  'no view is red',
  async () => !(await Promise.all(VIEWS.map(([, isBad]) => isBad()))).includes(true),
  10 * MINUTE_MS,
);
process.stdout.write('The daemon is in sync, no view is red. It is killed now.\n');
run.child.kill('SIGKILL');
const killedMs = realClock.monoMs();
const waiting = new Map(VIEWS);
while (waiting.size > 0 && realClock.monoMs() - killedMs < WITHIN_MS) {
  for (const [name, isBad] of waiting) {
    if (!(await isBad())) continue;
    waiting.delete(name);
    const seconds = Math.round((realClock.monoMs() - killedMs) / SECOND_MS);
    process.stdout.write(
      `${String(Math.floor(seconds / 60)).padStart(2)} min ${String(seconds % 60).padStart(2)} s  ${name}\n`,
    );
  }
  await sleep(5 * SECOND_MS);
}
for (const name of waiting.keys()) process.stdout.write(`not within 20 min: ${name}\n`);
process.exitCode = waiting.size === 0 ? 0 : 1;
