/**
 * An operator looks at Tidemark in four ways: health and status, metrics, log, page; and Prometheus judges the metrics.
 * Each problem, switched on and off beside a running daemon, shows in all of them within its time and clears by itself.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReadyCode } from '../../src/core/status.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { METRICS } from '../../src/observe/metrics-table.ts';
import type { Bench } from '../support/bench.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { patient } from '../support/patience.ts';
import { type Prometheus, prometheusAvailable, promtool, startPrometheus } from '../support/prometheus.ts';
import { KEY, openBench, openStage, type Stage, TOKEN, until } from './support.ts';

const RULES = 'tidemark-alerts.yml';

/** The rules with the times that an alert has to hold, and those that it looks back, made short. */
function impatientRules(): string {
  return (
    readFileSync(`config/prometheus/${RULES}`, 'utf8')
      .replace(/^(\s+for:) \w+$/gm, '$1 1s')
      .replace(/\[1h\]\) > 10$/gm, '[75s]) > 0')
      // Three polls and more without an answer.
      .replace(/ > 900$/gm, ' > 30')
  );
}

interface Place {
  readonly stage: Stage;
  readonly bench: Bench;
  readonly keyFile: string;
}

/** A problem: how it comes and goes, and how it shows. */
interface Problem {
  readonly name: string;
  readonly on: (place: Place) => void | Promise<void>;
  readonly off: (place: Place) => void | Promise<void>;
  /** The name of its event in the log, and of its end. */
  readonly events: readonly [begins: string, ends: string];
  /** Why it is not ready; `null` where it stays ready. */
  readonly code: ReadyCode | null;
  /** A line of the metrics that is there while it lasts, and only then. */
  readonly metric: RegExp;
  readonly alert: string;
  /** The sentence of the page. */
  readonly says: RegExp;
  /** Within how long it is reported, and over: what the documentation promises, with something for a slow machine. */
  readonly withinMs: readonly [reported: number, over: number];
}

const PROBLEMS: readonly Problem[] = [
  {
    name: 'an API that is down',
    on: ({ stage }) => {
      stage.simulator.faults = () => ({ kind: 'server-error', status: 503 });
    },
    off: ({ stage }) => {
      stage.simulator.faults = null;
    },
    events: ['api-outage', 'api-recovered'],
    code: 'api_unreachable',
    metric: /^tidemark_not_ready\{code="api_unreachable"\} 1$/m,
    // An alert for each stream would only repeat it.
    alert: 'TidemarkNothingSynced',
    says: /The API cannot be read: /,
    withinMs: [3 * MINUTE_MS, 2 * MINUTE_MS],
  },
  {
    name: 'a key that is revoked, and exchanged by its file',
    on: ({ stage }) => {
      stage.simulator.settings.key.secret = `${KEY}-next`;
    },
    off: ({ keyFile }) => writeFileSync(keyFile, `${KEY}-next\n`),
    events: ['key-refused', 'key-changed'],
    code: 'key_refused',
    metric: /^tidemark_not_ready\{code="key_refused"\} 1$/m,
    alert: 'TidemarkKeyRefused',
    says: /The API cannot be read: .*key/i,
    withinMs: [2 * MINUTE_MS, MINUTE_MS],
  },
  {
    name: 'a database that is down',
    on: async ({ bench }) => await bench.influxd.kill(),
    off: async ({ bench }) => await bench.influxd.restart(),
    events: ['delivery-blocked', 'delivery-resumed'],
    code: 'destination_blocked',
    metric: /^tidemark_destination_up\{destination="influx"\} 0$/m,
    alert: 'TidemarkDestinationDown',
    says: /Delivery to the database is blocked: /,
    withinMs: [2 * MINUTE_MS, 2 * MINUTE_MS],
  },
  {
    name: 'a disk that is full',
    on: async ({ stage }) => await fillDisk(join(stage.dataDir, '..', 'ballast')),
    off: ({ stage }) => rmSync(join(stage.dataDir, '..', 'ballast')),
    events: ['polling-stopped', 'polling-resumed'],
    code: 'state_full',
    metric: /^tidemark_polling_stopped 1$/m,
    alert: 'TidemarkPollingStopped',
    says: /Polling stopped: /,
    withinMs: [MINUTE_MS, MINUTE_MS],
  },
  {
    name: 'a quota that others have spent',
    on: ({ stage }) => {
      stage.simulator.settings.quota.foreign = { perMinute: 1_000_000_000, everyMs: 1000 };
    },
    off: ({ stage }) => {
      stage.simulator.settings.quota.foreign = { perMinute: 0, everyMs: 1000 };
    },
    events: ['quota-wait', 'stream-read'],
    code: null,
    metric: /^tidemark_quota_wait_until_timestamp_seconds [1-9]/m,
    alert: 'TidemarkThrottled',
    says: /Quota used up: requests resume at /,
    withinMs: [2 * MINUTE_MS, 3 * MINUTE_MS],
  },
];

/**
 * Fills the free space of a small disk. Another process does it: this one would keep the connections of the other tests
 * waiting, and on a busy machine longer than the daemon waits for a request.
 */
async function fillDisk(path: string): Promise<void> {
  // It fails when the disk is full.
  await promisify(execFile)('/bin/sh', ['-c', 'exec cat /dev/zero > "$1"', 'sh', path]).catch(() => {});
}

/** A disk of its own below the stage's directory, where one may be mounted. */
function mountSmallDisk(at: string): boolean {
  mkdirSync(at, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512m', 'tmpfs', at], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const canMount = (() => {
  const at = `/tmp/tidemark-mount-${process.pid}`;
  const can = mountSmallDisk(at);
  if (can) execFileSync('umount', [at]);
  rmSync(at, { recursive: true });
  return can;
})();

describe.runIf(prometheusAvailable() && influxdAvailable())('seen from outside', () => {
  /** For the problem that stops the database, and for all others. */
  const benches: Bench[] = [];
  beforeAll(async () => {
    for (const _ of ['down', 'shared']) benches.push(await openBench());
  });
  afterAll(async () => {
    for (const bench of benches) await bench[Symbol.asyncDispose]();
  });

  const tried = PROBLEMS.filter(({ code }) => code !== 'state_full' || canMount);
  test.concurrent.each(tried.map((problem) => [problem.name, problem] as const))(
    '%s shows in all four ways and clears by itself',
    async (_, problem) => {
      const bench = benches[problem.code === 'destination_blocked' ? 0 : 1];
      if (bench === undefined) throw new Error('no bench');
      await using stage = await openStage({ bench });
      using disk = problem.code === 'state_full' ? diskOf(stage) : null;
      const keyFile = join(stage.directory, 'key');
      writeFileSync(keyFile, KEY);
      const run = stage.start([], {
        env: {
          TIDEMARK_API_KEY: undefined,
          TIDEMARK_API_KEY_FILE: keyFile,
          TIDEMARK_LISTEN: '127.0.0.1:0',
          TIDEMARK_LOG_FORMAT: 'json',
          TIDEMARK_LOG_LEVEL: 'debug',
          TIDEMARK_SYNC_TELEMETRY: '*/5 * * * * *',
          TIDEMARK_METRICS_PER_DEVICE: 'true',
          ...(disk === null ? {} : { TIDEMARK_DATA_DIR: disk.dataDir }),
        },
      });
      const address = (): string => /"status_page":"http:\/\/([^/"]+)/.exec(run.stderr())?.[1] ?? '';
      await until('the page is served', () => address() !== '');
      await using prometheus = await startPrometheus({
        target: address(),
        rules: { [RULES]: impatientRules() },
        every: { scrape_interval: '3s', evaluation_interval: '3s' },
      });
      // A connection each: one that is kept may be closed just as it is used again.
      const get = async (path: string): Promise<string> =>
        await (await fetch(`http://${address()}${path}`, { headers: { connection: 'close' } })).text();
      const codes = async (): Promise<readonly string[]> => JSON.parse(await get('/readyz')).codes;
      const fires = async (): Promise<boolean> =>
        (await prometheus.alerts()).some(
          ({ state, labels }) => state === 'firing' && labels['alertname'] === problem.alert,
        );
      const logged = (event: string, from: number): boolean => run.stderr().slice(from).includes(`"event":"${event}"`);
      // The cheapest view comes first: as long as it shows the state, the others are not waited for.
      const ways: readonly Way[] = [
        ['metrics', async () => problem.metric.test(await get('/metrics'))],
        ['summary', async () => problem.says.test(JSON.parse(await get('/status.json')).summary)],
        // The list of events goes on to have the message.
        [
          'headline',
          async () => problem.says.test(/<section id="standing".*?<\/section>/s.exec(await get('/'))?.[0] ?? ''),
        ],
        ['alert', fires],
      ];
      const silent = async (): Promise<string | undefined> =>
        problem.code === null || (await codes()).includes(problem.code) ? await firstWith(false, ways) : '/readyz';
      const loud = async (): Promise<string | undefined> =>
        (await codes()).length === 0 ? await firstWith(true, ways) : '/readyz';
      await nothing('still says that something is wrong before it is', loud, 4 * MINUTE_MS);

      const place: Place = {
        bench,
        keyFile,
        stage: disk === null ? stage : { ...stage, dataDir: disk.dataDir },
      };
      let from = run.stderr().length;
      await problem.on(place);
      const [reported, over] = problem.withinMs;
      await nothing(`does not show ${problem.name}`, silent, patientEnough(reported));
      expect(logged(problem.events[0], from), 'the log tells it').toBe(true);
      expect(JSON.parse(await get('/healthz')), 'no restart mends it').toMatchObject({ healthy: true });
      expect(await sampleOf(prometheus, 'tidemark_healthy')).toBe(1);

      from = run.stderr().length;
      await problem.off(place);
      await nothing(`still shows ${problem.name}`, loud, patientEnough(over));
      expect(logged(problem.events[1], from), 'the log tells its end').toBe(true);
      await expectTrueMetrics(prometheus, await get('/metrics'), problem.code === 'destination_blocked', stage);
      run.child.kill('SIGTERM');
      expect((await run.ended).code).toBe(0);
    },
  );
});

/** Where a problem shows, and whether it does. */
type Way = readonly [name: string, shows: () => Promise<boolean>];

/** Queries one after the other, until one has this answer. */
async function firstWith(answer: boolean, ways: readonly Way[]): Promise<string | undefined> {
  for (const [name, shows] of ways) if ((await shows()) === answer) return name;
  return;
}

/**
 * Waits until nothing is left.
 *
 * @throws Error with what was left last
 */
async function nothing(problem: string, left: () => Promise<string | undefined>, withinMs: number): Promise<void> {
  let last: string | undefined;
  const isOver = async (): Promise<boolean> => {
    last = await left();
    return last === undefined;
  };
  await until(problem, isOver, withinMs).catch((error: Error) => {
    throw last === undefined ? error : new Error(`${last} ${problem}`, { cause: error });
  });
}

/** On a machine that is busy; three of them pass before `start` would kill the program. */
const patientEnough = (quietMs: number): number => Math.min(patient(quietMs), 4 * MINUTE_MS);

/** The metrics match the events, in the format of Prometheus, and all documented ones are there. */
async function expectTrueMetrics(
  prometheus: Prometheus,
  text: string,
  wasDatabaseDown: boolean,
  { simulator }: Stage,
): Promise<void> {
  expect(await sampleOf(prometheus, 'count(tidemark_device_gap_seconds)')).toBe(3);
  expect(await sampleOf(prometheus, 'sum(tidemark_devices)')).toBe(3);
  if (wasDatabaseDown) expect(await sampleOf(prometheus, 'tidemark_points_retried_total')).toBeGreaterThan(0);
  expect(promtool(['check', 'metrics'], text)).toEqual({ code: 0, said: '' });
  const served = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name));
  expect(Object.keys(METRICS).filter((name) => !served.has(name))).toEqual([]);
  for (const secret of [KEY, TOKEN]) expect(text).not.toContain(secret);
  // Compared with the simulator's own count.
  const requests = [...text.matchAll(/^tidemark_api_requests_total\{.*\} (\d+)$/gm)];
  const sum = requests.reduce((total, [, count]) => total + Number(count), 0);
  expect(Math.abs(sum - simulator.log.total)).toBeLessThan(5);
}

async function sampleOf(prometheus: Prometheus, promql: string): Promise<number | undefined> {
  return [...(await prometheus.query(promql)).values()][0];
}

function diskOf(stage: Stage): Disposable & { readonly dataDir: string } {
  const at = join(stage.directory, 'disk');
  mountSmallDisk(at);
  return {
    dataDir: join(at, 'state'),
    [Symbol.dispose]: () => void execFileSync('umount', ['-l', at]),
  };
}
