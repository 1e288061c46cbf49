/**
 * A real Prometheus for a test, Debian's, on a free port of loopback in a temporary directory; and `promtool` and
 * `amtool`, which judge metrics, rules and the configuration of an Alertmanager.
 *
 * It promises to leave nothing behind, as `influxd.ts` does.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
 * @returns its exit code and everything that it said.
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
  const { status, stdout, stderr } = spawnSync(path, args, { input, cwd, encoding: 'utf8' });
  return { code: status, said: `${stdout}${stderr}` };
}

/**
 * Starts a real Alertmanager with a configuration, tells it of alerts, and asks which of them it holds back.
 *
 * @param alerts labels, the name among them
 * @returns the names of those that notify somebody, and of those that are held back
 */
export async function inhibitedAlerts(
  config: string,
  alerts: readonly Readonly<Record<string, string>>[],
): Promise<{ readonly active: readonly string[]; readonly heldBack: readonly string[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'tidemark-alertmanager-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const command = [
    ALERTMANAGER,
    `--config.file=${config}`,
    `--storage.path=${dir}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
  ];
  const child = spawn('/bin/sh', ['-c', KEEPER, 'sh', ...command], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...process.env, DIR: dir },
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  try {
    await answering(`${url}/-/ready`, child);
    const body = JSON.stringify(alerts.map((labels) => ({ labels })));
    await fetch(`${url}/api/v2/alerts`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
    for (;;) {
      const seen = (await (await fetch(`${url}/api/v2/alerts`)).json()) as {
        labels: { alertname: string };
        status: { state: string };
      }[];
      const named = (state: string): string[] =>
        seen.filter(({ status }) => status.state === state).map(({ labels }) => labels.alertname);
      if (seen.length === alerts.length && named('unprocessed').length === 0)
        return { active: named('active').sort(), heldBack: named('suppressed').sort() };
      await sleep(50);
    }
  } finally {
    child.stdin?.end('end\n');
    await ended;
    rmSync(dir, { recursive: true, force: true });
  }
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

export interface Prometheus extends AsyncDisposable {
  readonly url: string;
  /** The values of an instant query, by their labels as JSON. */
  query(promql: string): Promise<ReadonlyMap<string, number>>;
  alerts(): Promise<readonly SeenAlert[]>;
}

export interface PrometheusOptions {
  /** What is scraped every second, as `host:port`. */
  readonly target: string;
  /** Rule files, by their names. */
  readonly rules: Readonly<Record<string, string>>;
}

/** Starts one that scrapes and judges every second, and waits until it answers. */
export async function startPrometheus({ target, rules }: PrometheusOptions): Promise<Prometheus> {
  const dir = mkdtempSync(join(tmpdir(), 'tidemark-prometheus-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  for (const [name, text] of Object.entries(rules)) writeFileSync(join(dir, name), text);
  writeFileSync(
    join(dir, 'prometheus.yml'),
    `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ${JSON.stringify(Object.keys(rules))}
scrape_configs:
  - job_name: tidemark
    static_configs: [{targets: ['${target}']}]
`,
  );
  const command = [
    PROMETHEUS,
    `--config.file=${join(dir, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=error',
  ];
  const child = spawn('/bin/sh', ['-c', KEEPER, 'sh', ...command], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...process.env, DIR: dir },
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const ask = async <T>(path: string): Promise<T> => {
    const { data } = (await (await fetch(`${url}/api/v1/${path}`)).json()) as { data: T };
    return data;
  };
  await answering(`${url}/-/ready`, child);
  return {
    url,
    query: async (promql) => {
      const { result } = await ask<{ result: { metric: object; value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(promql)}`,
      );
      return new Map(result.map(({ metric, value }) => [JSON.stringify(metric), Number(value[1])]));
    },
    alerts: async () => (await ask<{ alerts: SeenAlert[] }>('alerts')).alerts,
    [Symbol.asyncDispose]: async () => {
      child.stdin?.end('end\n');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
