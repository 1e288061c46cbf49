/**
 * The load that one container carries: the compiled daemon over a simulated fleet that keeps to its plan, in real time,
 * with delivery into a database that keeps nothing. The figures of docs/scaling.md.
 *
 *   npm run build && node test/bench/fleet/run.ts --devices 10000 --requests 600 --minutes 60
 *
 * Prints a line every few minutes and one at the end. Exits 1 where the peak is above `--most-mb`.
 */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { StatusReport } from '../../../src/core/status.ts';
import { MINUTE_MS } from '../../../src/core/time.ts';
import { AS_SHIPPED, databaseEnv, PROGRAM, startNullInflux } from '../parts.ts';

/** The description of the fleet. */
export interface FleetPlan {
  readonly devices: number;
  /** Each device reports once in so many minutes. */
  readonly reportMinutes: number;
  readonly requestsPerMinute: number;
}

const { values } = parseArgs({
  options: {
    devices: { type: 'string', default: '10000' },
    requests: { type: 'string', default: '600' },
    report: { type: 'string', default: '15' },
    minutes: { type: 'string', default: '60' },
    every: { type: 'string', default: '5' },
    'most-mb': { type: 'string' },
  },
});
const plan: FleetPlan = {
  devices: Number(values.devices),
  reportMinutes: Number(values.report),
  requestsPerMinute: Number(values.requests),
};
const MB = 1e6;

const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-fleet-'));
const origin = fork(join(import.meta.dirname, 'origin.ts'), [JSON.stringify(plan)]);
const [{ url, key }] = await once(origin, 'message');
using sink = await startNullInflux();
const child = spawn(process.execPath, [PROGRAM], {
  env: {
    ...AS_SHIPPED,
    TIDEMARK_API_URL: url,
    TIDEMARK_API_KEY: key,
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_LISTEN: '127.0.0.1:0',
    TIDEMARK_LOG_FORMAT: 'json',
    TIDEMARK_SYNC_HISTORY: '1d',
    ...databaseEnv(sink.url),
  },
  stdio: ['ignore', 'ignore', 'pipe'],
});
try {
  const peakMb = await follow(await servedAt());
  if (values['most-mb'] !== undefined && peakMb > Number(values['most-mb'])) process.exitCode = 1;
} finally {
  child.kill('SIGTERM');
  await once(child, 'close');
  origin.kill();
  rmSync(dataDir, { recursive: true, force: true });
}

/** A line of the table. */
function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The address of the status page, from the log. */
async function servedAt(): Promise<string> {
  let log = '';
  const served = Promise.withResolvers<string>();
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-20_000);
    const page = /"status_page":"([^"]+)"/.exec(log)?.[1];
    if (page !== undefined) served.resolve(page);
  });
  child.once('close', () => served.reject(new Error(log)));
  return await served.promise;
}

/**
 * Looks at it now and then.
 *
 * @returns its peak, in MB.
 */
async function follow(page: string): Promise<number> {
  const beganMs = performance.now();
  const lasts = Number(values.minutes) * MINUTE_MS;
  let before = { cpuMs: 0, atMs: beganMs };
  say('| minutes | memory MB | peak MB | processor | requests | readings | held | median age | worst age | state MB |');
  for (let turn = 1; ; turn += 1) {
    await sleep(Math.min(turn * Number(values.every) * MINUTE_MS, lasts) - (performance.now() - beganMs));
    const use = useOf(child.pid ?? 0);
    const nowMs = performance.now();
    const status = (await (await fetch(`${page}status.json`)).json()) as StatusReport;
    const { totals, freshness, archive } = status;
    const cells = [
      ((nowMs - beganMs) / MINUTE_MS).toFixed(0),
      (use.rssBytes / MB).toFixed(0),
      (use.peakBytes / MB).toFixed(0),
      `${(((use.cpuMs - before.cpuMs) / (nowMs - before.atMs)) * 100).toFixed(1)} %`,
      totals.requests,
      totals.archived_readings,
      `${totals.devices_complete}/${totals.devices}`,
      `${freshness.median_seconds} s`,
      `${freshness.max_seconds} s`,
      (archive.state_bytes / MB).toFixed(1),
    ];
    say(`| ${cells.join(' | ')} |`);
    before = { cpuMs: use.cpuMs, atMs: nowMs };
    if (nowMs - beganMs >= lasts - 1000) return use.peakBytes / MB;
  }
}

/** The resources of the process, from Linux. */
function useOf(pid: number): { rssBytes: number; peakBytes: number; cpuMs: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const kb = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024;
  return { rssBytes: kb('VmRSS'), peakBytes: kb('VmHWM'), cpuMs: (Number(fields[11]) + Number(fields[12])) * 10 };
}
