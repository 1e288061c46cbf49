/**
 * What a daemon takes while all is well: processor, private memory and bytes of the API, with a fleet that reports once
 * a minute and is in sync.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AS_SHIPPED, startLiveApi, startNullInflux } from './parts.ts';

export interface Idle {
  /** User and system time of the daemon's process, per hour. */
  readonly cpuSPerHour: number;
  readonly cpuMsPerPoll: number;
  readonly bytesPerPoll: number;
  readonly pollsPerHour: number;
  /** What belongs to this process alone (smaps), in bytes: the largest of the looks, and RSS beside it. */
  readonly privateBytes: number;
  readonly rssBytes: number;
}

export interface IdleOptions {
  readonly program: string;
  readonly devices: number;
  /** How long the first sync and the warming up may take, and how long is measured. */
  readonly warmMs: number;
  readonly measuredMs: number;
  readonly nodeArgs?: readonly string[];
}

const HOUR_MS = 3_600_000;
const LOOKS = 10;

/**
 * Runs a daemon beside a live fleet.
 *
 * @throws Error where it ends before it is told to.
 */
export async function idle({ program, devices, warmMs, measuredMs, nodeArgs = [] }: IdleOptions): Promise<Idle> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using api = await startLiveApi(devices);
  using sink = await startNullInflux();
  const env = {
    ...AS_SHIPPED,
    TIDEMARK_API_URL: api.url,
    TIDEMARK_API_KEY: 'bench_key',
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_LISTEN: '127.0.0.1:0',
    TIDEMARK_SYNC_HISTORY: '6h',
    TIDEMARK_INFLUX_URL: sink.url,
    TIDEMARK_INFLUX_TOKEN: 'bench_token',
    TIDEMARK_INFLUX_ORG: 'bench',
    TIDEMARK_INFLUX_BUCKET: 'bench',
  };
  const child = spawn(process.execPath, [...nodeArgs, program], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-2000);
  });
  const ended = once(child, 'close');
  try {
    await sleep(warmMs);
    const before = { ...(await api.counts()), cpuMs: cpuMsOf(child.pid) };
    let privateBytes = 0;
    for (let look = 0; look < LOOKS; look += 1) {
      await sleep(measuredMs / LOOKS);
      if (child.exitCode !== null) throw new Error(`the daemon ended: ${log}`);
      privateBytes = Math.max(privateBytes, privateBytesOf(child.pid));
    }
    const after = await api.counts();
    const polls = after.polls - before.polls;
    const cpuMs = cpuMsOf(child.pid) - before.cpuMs;
    return {
      cpuSPerHour: ((cpuMs / 1000) * HOUR_MS) / measuredMs,
      cpuMsPerPoll: cpuMs / polls,
      bytesPerPoll: (after.pollBytes - before.pollBytes) / polls,
      pollsPerHour: (polls * HOUR_MS) / measuredMs,
      privateBytes,
      rssBytes: fieldOf(child.pid, 'Rss'),
    };
  } finally {
    child.kill('SIGTERM');
    await ended;
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The unit of `/proc/PID/stat` is 10 ms on every Linux that Node runs on. */
function cpuMsOf(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function privateBytesOf(pid: number | undefined): number {
  return fieldOf(pid, 'Private_Clean') + fieldOf(pid, 'Private_Dirty');
}

function fieldOf(pid: number | undefined, name: string): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(rollup)?.[1] ?? 0) * 1024;
}
