/**
 * Many workspaces on one machine: a process of the compiled program for each, as the image runs it, one VictoriaMetrics
 * that stores everything, and one Prometheus with all rules that scrapes every one. One workspace has a broken API from
 * the start; when all others are in sync, another one's breaks. The figures of docs/scaling.md.
 *
 *   npm run build && npx node test/bench/fleet/workspaces.ts --workspaces 300 [--devices 20] [--report 5] [--minutes 10]
 *
 * Prints the time until all are in sync, and the resources of the steady state for so many minutes: memory (private,
 * and in all), processor, requests, series and points, the time of each panel of "Sync health" and of "Fleet", and what
 * the broken ones cost. It starts no more processes, with a message, when less than 1.5 GB of memory is left. Needs
 * victoria-metrics and prometheus of Debian.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, cpSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { StatusReport } from '../../../src/core/status.ts';
import { MINUTE_MS, SECOND_MS } from '../../../src/core/time.ts';
import {
  asksInflux,
  type Board,
  readBoards,
  shownPanels,
  type Target,
  VICTORIA_FOLDER,
} from '../../grafana/support/boards.ts';
import { replacePromql } from '../../grafana/support/promql-text.ts';
import type { Chosen } from '../../grafana/support/replacement.ts';
import { AS_SHIPPED, PROGRAM } from '../parts.ts';
import type { ApiCounts, StartedApis } from './workspaces-api.ts';

const { values } = parseArgs({
  options: {
    workspaces: { type: 'string', default: '20' },
    devices: { type: 'string', default: '20' },
    report: { type: 'string', default: '5' },
    minutes: { type: 'string', default: '10' },
    most: { type: 'string', default: '60' },
  },
});
const wanted = Number(values.workspaces);
const MB = 1e6;
/** The memory that must stay free for the machine itself. */
const SPARE_BYTES = 1.5e9;
/** How many processes may be in their first seconds at once. */
const STARTING = 8;

/** The first port: below those that outgoing connections take, as the processes are started over minutes. */
const FIRST_PORT = 20_000;

/** How long a panel may take. */
const MOST_PANEL_MS = 2 * SECOND_MS;

interface Workspace {
  readonly nth: number;
  readonly child: ChildProcess;
  readonly page: string;
}

const place = mkdtempSync(join(tmpdir(), 'tidemark-workspaces-'));
const children: ChildProcess[] = [];
try {
  await measure();
} finally {
  for (const child of children.reverse()) child.kill('SIGKILL');
  await Promise.all(children.map(async (child) => child.exitCode ?? child.signalCode ?? (await once(child, 'close'))));
  rmSync(place, { recursive: true, force: true });
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function measure(): Promise<void> {
  const api = fork(join(import.meta.dirname, 'workspaces-api.ts'), [String(wanted), values.devices, values.report]);
  children.push(api);
  const [{ url, keys }]: [StartedApis] = (await once(api, 'message')) as [StartedApis];
  const ports = Array.from({ length: wanted }, (_, nth) => FIRST_PORT + nth);
  api.send({ breaks: 0 });
  const database = startVictoria(FIRST_PORT + wanted);
  const prometheus = startPrometheus(FIRST_PORT + wanted + 1, ports);
  await sleep(3 * SECOND_MS);
  const freeBytes = availableBytes();
  const beganMs = performance.now();
  const all: Workspace[] = [];
  for (let nth = 0; nth < wanted; nth += 1) {
    if (availableBytes() < SPARE_BYTES) {
      say(`stopped at ${nth} workspaces: ${(availableBytes() / MB).toFixed(0)} MB of memory are left`);
      break;
    }
    all.push(start({ nth, url: `${url}/${nth}/external/v1`, key: keys[nth] ?? '', port: FIRST_PORT + nth, database }));
    if (nth % STARTING === STARTING - 1) for (const each of all.slice(-STARTING)) await served(each);
  }
  say(`${all.length} workspaces of ${values.devices} devices started in ${minutesSince(beganMs)}`);
  const well = all.filter(({ nth }) => nth !== 0);
  const isSynced = await allInSync(well, beganMs);
  say(
    `in sync: ${isSynced ? `all but the broken one after ${minutesSince(beganMs)}` : `not all within ${values.most} min`}`,
  );
  say(`processor until then: ${(sumOf(all, cpuMsOf) / SECOND_MS).toFixed(0)} s of all daemons`);

  const lasts = Number(values.minutes) * MINUTE_MS;
  const before = { cpu: all.map(cpuMsOf), asked: await counts(api), points: await pointsIn(database) };
  await sleep(lasts);
  const asked = await counts(api);
  const cpu = all.map((each, index) => ((cpuMsOf(each) - (before.cpu[index] ?? 0)) / lasts) * 100);
  const requests = all.map(({ nth }) => ((asked[nth] ?? 0) - (before.asked[nth] ?? 0)) / Number(values.minutes));
  report(all, { cpu, requests });
  const { series, points } = { series: await seriesIn(database), points: await pointsIn(database) };
  say(
    `database: ${series} series, ${points} points, ${Math.round((points - before.points) / Number(values.minutes))} points a minute`,
  );
  say(
    `memory of the machine that they take: ${((freeBytes - availableBytes()) / MB).toFixed(0)} MB, with database, Prometheus and page cache`,
  );
  await targetsAndAlerts(prometheus);
  await panels(
    prometheus,
    readBoards().filter((board) => !asksInflux(board)),
  );
  await panels(
    database,
    readBoards(VICTORIA_FOLDER).filter(({ uid }) => uid.includes('fleet')),
  );
  await breakOne(all, { api, lasts });
}

/** A table of all workspaces that are well, and of the broken one. */
function report(
  all: readonly Workspace[],
  { cpu, requests }: { cpu: readonly number[]; requests: readonly number[] },
): void {
  const memory = all.map(memoryOf);
  const row = (name: string, figures: readonly number[], digits: number, hasSum = true): void => {
    const own = figures.slice(1).toSorted((a, b) => a - b);
    const at = (share: number): string => (own[Math.floor(share * (own.length - 1))] ?? 0).toFixed(digits);
    const sum = hasSum ? figures.reduce((total, each) => total + each, 0).toFixed(digits) : '';
    say(`| ${name} | ${sum} | ${at(0.5)} | ${at(1)} | ${(figures[0] ?? 0).toFixed(digits)} |`);
  };
  say('| | all | median | largest | broken from the start |');
  say('| --- | --- | --- | --- | --- |');
  row(
    'private memory, MB',
    memory.map(({ privateBytes }) => privateBytes / MB),
    0,
  );
  row(
    'proportional memory, MB',
    memory.map(({ sharedOutBytes }) => sharedOutBytes / MB),
    0,
  );
  row(
    'resident memory, MB',
    memory.map(({ rssBytes }) => rssBytes / MB),
    0,
    false,
  );
  row('processor, % of a core', cpu, 2);
  row('requests a minute', requests, 1);
}

/** Breaks the API of one more workspace, and looks at what the others make of it. */
async function breakOne(
  all: readonly Workspace[],
  { api, lasts }: { api: ChildProcess; lasts: number },
): Promise<void> {
  const victim = all.at(-1);
  if (victim === undefined || all.length < 3) return;
  const others = all.filter((each) => each !== victim && each.nth !== 0);
  const looks = async (): Promise<{ cpu: number; asked: readonly number[]; lag: number }> => {
    const lags = await Promise.all(others.map(async (each) => (await statusOf(each))?.freshness.max_seconds ?? 0));
    return { cpu: sumOf(others, cpuMsOf), asked: await counts(api), lag: Math.max(...lags) };
  };
  const before = await looks();
  const brokenFrom = { cpu: cpuMsOf(victim), asked: before.asked[victim.nth] ?? 0 };
  api.send({ breaks: victim.nth });
  await sleep(lasts);
  const after = await looks();
  const perMinute = ((after.asked[victim.nth] ?? 0) - brokenFrom.asked) / Number(values.minutes);
  const cpu = ((cpuMsOf(victim) - brokenFrom.cpu) / lasts) * 100;
  say(
    `one breaks: ${cpu.toFixed(2)} % of a core, ${perMinute.toFixed(1)} requests a minute; readyz ${await codeOf(victim)}`,
  );
  const share = ((after.cpu - before.cpu) / lasts / others.length) * 100;
  say(
    `the others meanwhile: ${share.toFixed(2)} % of a core each, worst lag ${before.lag} s before and ${after.lag} s after`,
  );
}

async function codeOf({ page }: Workspace): Promise<number> {
  return (await fetch(`${page}/readyz`)).status;
}

interface Starting {
  readonly nth: number;
  readonly url: string;
  readonly key: string;
  readonly port: number;
  readonly database: string;
}

function start({ nth, url, key, port, database }: Starting): Workspace {
  const data = join(place, `data-${nth}`);
  mkdirSync(data);
  const log = openSync(logOf(nth), 'w');
  const child = spawn(process.execPath, [PROGRAM], {
    env: {
      ...AS_SHIPPED,
      NODE_ENV: 'production',
      SQLITE_TMPDIR: data,
      TIDEMARK_API_URL: url,
      TIDEMARK_API_KEY: key,
      TIDEMARK_DATA_DIR: data,
      TIDEMARK_LISTEN: `127.0.0.1:${port}`,
      TIDEMARK_SYNC_HISTORY: '1d',
      TIDEMARK_INFLUX_URL: database,
      TIDEMARK_INFLUX_KIND: 'victoriametrics',
    },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  children.push(child);
  return { nth, child, page: `http://127.0.0.1:${port}` };
}

function logOf(nth: number): string {
  return join(place, `log-${nth}`);
}

function startVictoria(port: number): string {
  const flags = [
    `-httpListenAddr=127.0.0.1:${port}`,
    `-storageDataPath=${join(place, 'victoria')}`,
    '-retentionPeriod=100y',
    '-dedup.minScrapeInterval=1ms',
    '-loggerLevel=ERROR',
  ];
  children.push(spawn('/usr/bin/victoria-metrics', flags, { stdio: 'ignore' }));
  return `http://127.0.0.1:${port}`;
}

/** The configuration of the project with other targets. */
function startPrometheus(port: number, targets: readonly number[]): string {
  const folder = join(place, 'prometheus');
  cpSync(join(import.meta.dirname, '..', '..', '..', 'config', 'prometheus'), folder, { recursive: true });
  const file = join(folder, 'prometheus.yml');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/alerting:\n(?: {2}.*\n)+/, ''));
  const workspaces = join(folder, 'workspaces');
  rmSync(workspaces, { recursive: true });
  mkdirSync(workspaces);
  const entries = targets.map((each) => `- {targets: ['127.0.0.1:${each}'], labels: {workspace: w${each}}}\n`);
  writeFileSync(join(workspaces, 'all.yaml'), entries.join(''));
  const flags = [`--config.file=${file}`, `--storage.tsdb.path=${join(place, 'tsdb')}`, '--log.level=error'];
  const where = `--web.listen-address=127.0.0.1:${port}`;
  children.push(spawn('/usr/bin/prometheus', [...flags, where], { stdio: 'ignore' }));
  return `http://127.0.0.1:${port}`;
}

/** Waits until a daemon answers. */
async function served(workspace: Workspace | undefined): Promise<void> {
  while (workspace !== undefined && (await statusOf(workspace)) === null) await sleep(200);
}

async function statusOf({ page, child, nth }: Workspace): Promise<StatusReport | null> {
  if (child.exitCode !== null) {
    const last = readFileSync(logOf(nth), 'utf8').trim().split('\n').at(-1);
    throw new Error(`the daemon of workspace ${nth} ended with ${child.exitCode}: ${last}`);
  }
  try {
    return (await (await fetch(`${page}/status.json`)).json()) as StatusReport;
  } catch {
    return null;
  }
}

/** Waits until all devices of all are complete and delivered. @returns whether they came to it in time. */
async function allInSync(all: readonly Workspace[], beganMs: number): Promise<boolean> {
  const left = new Set(all);
  while (performance.now() - beganMs < Number(values.most) * MINUTE_MS) {
    for (const each of left) {
      const status = await statusOf(each);
      if (status === null) continue;
      const { devices, devices_complete: complete } = status.totals;
      const pending = status.destinations.reduce((sum, { pending_points: points }) => sum + points, 0);
      if (devices > 0 && complete === devices && pending < 100) left.delete(each);
    }
    if (left.size === 0) return true;
    say(
      `${minutesSince(beganMs)}: ${all.length - left.size} of ${all.length} in sync, ${(availableBytes() / MB).toFixed(0)} MB left`,
    );
    await sleep(10 * SECOND_MS);
  }
  return false;
}

/** The time of a server for all queries of a panel, in ms. */
async function panelMs(
  server: string,
  targets: readonly Target[],
  choices: ReadonlyMap<string, Chosen>,
): Promise<number> {
  const toMs = Date.now();
  const range = { fromMs: toMs - 60 * MINUTE_MS, toMs };
  const began = performance.now();
  for (const { expr = '', instant } of targets) {
    const query = replacePromql(expr, { choices, range, stepMs: 15_000, plain: new Set() });
    const [path, at] =
      instant === true
        ? ['query', { time: `${toMs / 1000}` }]
        : ['query_range', { start: `${range.fromMs / 1000}`, end: `${toMs / 1000}`, step: '15' }];
    const answer = await fetch(`${server}/api/v1/${path}`, {
      method: 'POST',
      body: new URLSearchParams({ query, ...at }),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${expr}: ${text.slice(0, 300)}`);
  }
  return performance.now() - began;
}

/** The first view of a dashboard: all of everything, and of a choice of its own the first one. */
function firstChoices({ templating }: Board): ReadonlyMap<string, Chosen> {
  return new Map(
    templating.list.map(({ name, type, allValue = '.*', current }): [string, Chosen] => [
      name,
      type === 'custom' ? { value: String(current?.value), options: [] } : { value: '$__all', options: [], allValue },
    ]),
  );
}

/** Every panel of the dashboards, as Grafana queries a server for it, three times: the median, slowest first. */
async function panels(server: string, boards: readonly Board[]): Promise<void> {
  for (const board of boards) {
    const choices = firstChoices(board);
    const timed: (readonly [ms: number, title: string])[] = [];
    for (const { title, targets = [] } of shownPanels(board)) {
      const took: number[] = [];
      for (let look = 0; look < 3; look += 1) took.push(await panelMs(server, targets, choices));
      timed.push([took.toSorted((a, b) => a - b)[1] ?? 0, title]);
    }
    const slow = timed.filter(([ms]) => ms > MOST_PANEL_MS).length;
    say(`"${board.title}": ${timed.length} panels, ${slow} of them slower than ${MOST_PANEL_MS / SECOND_MS} s`);
    for (const [ms, title] of timed.toSorted(([a], [b]) => b - a)) say(`${ms.toFixed(0).padStart(6)} ms  ${title}`);
  }
}

/** How many targets a Prometheus reaches, and the alerts that it has. */
async function targetsAndAlerts(prometheus: string): Promise<void> {
  const up = new URLSearchParams({ query: 'count(up == 1)' });
  const { data } = (await (await fetch(`${prometheus}/api/v1/query?${up}`)).json()) as Answered;
  say(`targets up: ${data.result[0]?.value[1] ?? 0}`);
  const firing = new URLSearchParams({ query: 'count by (alertname, alertstate) (ALERTS)' });
  const alerts = (await (await fetch(`${prometheus}/api/v1/query?${firing}`)).json()) as Answered;
  for (const { metric, value } of alerts.data.result)
    say(`alert ${metric['alertname']} ${metric['alertstate']}: ${value[1]}`);
}

interface Answered {
  readonly data: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly value: readonly [number, string];
    }[];
  };
}

async function counts(api: ChildProcess): Promise<readonly number[]> {
  const reported = once(api, 'message') as Promise<[ApiCounts]>;
  api.send('counts');
  return (await reported)[0].requests;
}

async function seriesIn(database: string): Promise<number> {
  const { data } = (await (await fetch(`${database}/api/v1/status/tsdb`)).json()) as { data: { totalSeries: number } };
  return data.totalSeries;
}

async function pointsIn(database: string): Promise<number> {
  const text = await (await fetch(`${database}/metrics`)).text();
  return [...text.matchAll(/^vm_rows_inserted_total\{[^}]*\} (\S+)$/gm)].reduce(
    (sum, [, rows]) => sum + Number(rows),
    0,
  );
}

function sumOf(all: readonly Workspace[], figure: (of: Workspace) => number): number {
  return all.reduce((sum, each) => sum + figure(each), 0);
}

/** The unit of `/proc/PID/stat` is 10 ms on every Linux that Node runs on. */
function cpuMsOf({ child }: Workspace): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** The memory of a process alone, its share of shared memory, and all that it has mapped. */
function memoryOf({ child }: Workspace): { privateBytes: number; sharedOutBytes: number; rssBytes: number } {
  const text = readFileSync(`/proc/${child.pid}/smaps_rollup`, 'utf8');
  const bytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024;
  return {
    privateBytes: bytes('Private_Clean') + bytes('Private_Dirty'),
    sharedOutBytes: bytes('Pss'),
    rssBytes: bytes('Rss'),
  };
}

function availableBytes(): number {
  return Number(/^MemAvailable:\s*(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0) * 1024;
}

function minutesSince(beganMs: number): string {
  return `${((performance.now() - beganMs) / MINUTE_MS).toFixed(1)} min`;
}
