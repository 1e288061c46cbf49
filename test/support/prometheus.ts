/**
 * A real Prometheus for a test, Debian's, on a free port of loopback in a temporary directory; and `promtool` and
 * `amtool`, which judge metrics, rules and the configuration of an Alertmanager.
 *
 * It promises to leave nothing behind, as `influxd.ts` does.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './ports.ts';

const PROMETHEUS = '/usr/bin/prometheus';
const PROMTOOL = '/usr/bin/promtool';
const AMTOOL = '/usr/bin/amtool';
const ALERTMANAGER = '/usr/bin/prometheus-alertmanager';

/** Kills the server and removes its files when its standard input ends, so also when the test process dies. */
const KEEPER = '"$@" </dev/null & child=$!; read -r word; kill -9 $child; wait $child; rm -rf "$DIR"';

/** Whether tests with a real Prometheus can run here; where it is missing: an error in CI, elsewhere a word about it. */
export function prometheusAvailable(): boolean {
  const missing = [PROMETHEUS, PROMTOOL, AMTOOL, ALERTMANAGER].filter((path) => !existsSync(path));
  if (missing.length === 0) return true;
  const advice = `${missing[0]} is missing: the tests with a real Prometheus need it (apt-get install prometheus prometheus-alertmanager)`;
  const { CI } = process.env;
  if (CI !== undefined && CI !== '') throw new Error(advice);
  process.stderr.write(`${advice}; they are left out\n`);
  return false;
}

interface ToolRun {
  readonly code: number | null;
  readonly said: string;
}

/**
 * Runs promtool.
 *
 * @returns its exit code and its output
 */
export const promtool = (args: readonly string[], input = '', cwd = process.cwd()): ToolRun =>
  runTool(PROMTOOL, args, input, cwd);

/**
 * Runs amtool, which judges the configuration of an Alertmanager.
 *
 * @returns as `promtool` does.
 */
export const amtool = (args: readonly string[]): ToolRun => runTool(AMTOOL, args, '', process.cwd());

function runTool(path: string, args: readonly string[], input: string, cwd: string): ToolRun {
  // For Go's collector and scheduler one processor is less work than several.
  const env = { ...process.env, GOMAXPROCS: '1' };
  const { status, stdout, stderr } = spawnSync(path, args, { input, cwd, env, encoding: 'utf8' });
  return { code: status, said: `${stdout}${stderr}` };
}

/** The alert in an Alertmanager. */
interface HeldAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly status: { readonly state: 'unprocessed' | 'active' | 'suppressed' };
}

interface Alertmanager extends AsyncDisposable {
  readonly url: string;
  alerts(): Promise<readonly HeldAlert[]>;
}

/** Starts a real Alertmanager with a configuration, and waits until it answers. */
export async function startAlertmanager(config: string): Promise<Alertmanager> {
  const dir = mkdtempSync(join(tmpdir(), 'tidemark-alertmanager-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const stop = await startServer(dir, url, [
    ALERTMANAGER,
    `--config.file=${config}`,
    `--storage.path=${dir}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
  ]);
  return {
    url,
    alerts: async () => (await (await fetch(`${url}/api/v2/alerts`)).json()) as HeldAlert[],
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * Sends alerts to a real Alertmanager, and queries which of them it inhibits.
 *
 * @param alerts labels, the name among them
 * @returns the names of those that notify somebody, and of those that are inhibited
 */
export async function inhibitedAlerts(
  config: string,
  alerts: readonly Readonly<Record<string, string>>[],
): Promise<{ readonly active: readonly string[]; readonly heldBack: readonly string[] }> {
  await using alertmanager = await startAlertmanager(config);
  const body = JSON.stringify(alerts.map((labels) => ({ labels })));
  const headers = { 'Content-Type': 'application/json' };
  await fetch(`${alertmanager.url}/api/v2/alerts`, { method: 'POST', headers, body });
  for (;;) {
    const seen = await alertmanager.alerts();
    const named = (state: string): string[] =>
      seen.filter(({ status }) => status.state === state).map(({ labels }) => labels['alertname'] ?? '');
    if (seen.length === alerts.length && named('unprocessed').length === 0)
      return { active: named('active').sort(), heldBack: named('suppressed').sort() };
    await sleep(50);
  }
}

/**
 * Starts a server, and waits until it answers.
 *
 * @returns a function that kills it and removes its directory.
 */
async function startServer(dir: string, url: string, command: readonly string[]): Promise<() => Promise<void>> {
  const child = spawn('/bin/sh', ['-c', KEEPER, 'sh', ...command], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...process.env, DIR: dir },
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const stop = async (): Promise<void> => {
    child.stdin?.end('end\n');
    await ended;
    rmSync(dir, { recursive: true, force: true });
  };
  await answering(`${url}/-/ready`, child).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return stop;
}

/** Waits until a server answers. */
async function answering(url: string, child: { readonly exitCode: number | null }): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await fetch(url).catch(() => null);
    if (answer?.status === 200) return;
    if (child.exitCode !== null || attempt > 15_000) throw new Error(`${url}: no answer`);
    await sleep(20);
  }
}

/** An alert that is pending or fires. */
export interface SeenAlert {
  readonly state: 'pending' | 'firing';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A scraped target. */
interface Target {
  readonly health: 'up' | 'down' | 'unknown';
  readonly lastError: string;
}

export interface Prometheus extends AsyncDisposable {
  readonly url: string;
  /** Writes a file beside its configuration. */
  write(name: string, text: string): void;
  targets(): Promise<readonly Target[]>;
  /** The values of an instant query, by their labels as JSON. */
  query(promql: string): Promise<ReadonlyMap<string, number>>;
  alerts(): Promise<readonly SeenAlert[]>;
}

export interface PrometheusOptions {
  /** The scraped target, as `host:port`, or the scrape jobs of a configuration. */
  readonly target: string | readonly object[];
  /** Rule files, by their names. */
  readonly rules: Readonly<Record<string, string>>;
  /** Other files beside its configuration, by their names. */
  readonly files?: Readonly<Record<string, string>>;
  /** How often it scrapes and judges: every second by default. */
  readonly every?: { readonly scrape_interval: string; readonly evaluation_interval: string };
  /** The Alertmanager that it notifies, as `host:port`. */
  readonly notifies?: string;
}

/** Starts one, and waits until it answers. */
export async function startPrometheus({
  target,
  rules,
  files = {},
  every,
  notifies,
}: PrometheusOptions): Promise<Prometheus> {
  const dir = mkdtempSync(join(tmpdir(), 'tidemark-prometheus-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const write = (name: string, text: string): void => {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), text);
  };
  for (const [name, text] of Object.entries({ ...rules, ...files })) write(name, text);
  write(
    'prometheus.yml',
    // JSON is YAML.
    JSON.stringify({
      global: every ?? { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: Object.keys(rules),
      ...(notifies === undefined
        ? {}
        : { alerting: { alertmanagers: [{ static_configs: [{ targets: [notifies] }] }] } }),
      scrape_configs:
        typeof target === 'string' ? [{ job_name: 'tidemark', static_configs: [{ targets: [target] }] }] : target,
    }),
  );
  const command = [
    PROMETHEUS,
    `--config.file=${join(dir, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=error',
  ];
  const stop = await startServer(dir, url, command);
  const ask = async <T>(path: string): Promise<T> => {
    const { data } = (await (await fetch(`${url}/api/v1/${path}`)).json()) as { data: T };
    return data;
  };
  return {
    url,
    write,
    targets: async () => (await ask<{ activeTargets: Target[] }>('targets')).activeTargets,
    query: async (promql) => {
      const { result } = await ask<{ result: { metric: object; value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(promql)}`,
      );
      return new Map(result.map(({ metric, value }) => [JSON.stringify(metric), Number(value[1])]));
    },
    alerts: async () => (await ask<{ alerts: SeenAlert[] }>('alerts')).alerts,
    [Symbol.asyncDispose]: stop,
  };
}
