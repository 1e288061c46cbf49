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
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { LiveCounts } from './live-api.ts';
import {
  AS_SHIPPED,
  databaseEnv,
  mappedBytes,
  type Part,
  privateBytesOf,
  sourceEnv,
  startLiveApi,
  startNullInflux,
} from './parts.ts';
import type { Measured } from './table.ts';

export interface Idle {
  /** User and system time of the daemon's process, per hour. */
  readonly cpuSPerHour: number;
  readonly cpuMsPerPoll: number;
  readonly bytesPerPoll: number;
  readonly pollsPerHour: number;
  /** What belongs to this process alone (smaps), in bytes: the largest of the looks, and RSS beside it. */
  readonly privateBytes: number;
  /** The same while it started and synced for the first time. */
  readonly firstPrivateBytes: number;
  readonly rssBytes: number;
}

export interface IdleOptions {
  readonly program: string;
  readonly devices: number;
  /** How much history is synced first: six hours, unless it is said otherwise. */
  readonly historyMs?: number;
  /** How long the first sync and the warming up may take, and how long is measured. */
  readonly warmMs: number;
  readonly measuredMs: number;
  readonly nodeArgs?: readonly string[];
}

const HISTORY_MS = 6 * HOUR_MS;

/** How often the memory is looked at. */
const LOOK_MS = 10_000;

/**
 * Runs a daemon beside a live fleet.
 *
 * @throws Error where it ends before it is told to.
 */
export async function idle(options: IdleOptions): Promise<Idle> {
  const { program, devices, historyMs = HISTORY_MS, warmMs, measuredMs, nodeArgs = [] } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using api = await startLiveApi(devices, Math.max(historyMs, DAY_MS));
  using sink = await startNullInflux();
  const env = {
    ...AS_SHIPPED,
    ...sourceEnv(api.url, dataDir),
    ...databaseEnv(sink.url),
    TIDEMARK_LISTEN: '127.0.0.1:0',
    TIDEMARK_SYNC_HISTORY: `${historyMs / MINUTE_MS}m`,
  };
  const daemon = start([...nodeArgs, program], env);
  try {
    return await watch(daemon, api, { warmMs, measuredMs });
  } finally {
    await daemon.end();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/**
 * Runs the least that keeps the same fleet (`compared/idle-floor.ts`), without a first sync.
 *
 * @throws Error where it ends before it is told to.
 */
async function idleFloor({ devices, warmMs, measuredMs }: Omit<IdleOptions, 'program'>): Promise<Idle> {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using api = await startLiveApi(devices, DAY_MS);
  using sink = await startNullInflux();
  const program = join(import.meta.dirname, 'compared', 'idle-floor.ts');
  const floor = start([program, api.url, join(directory, 'kept.db'), sink.url], AS_SHIPPED);
  try {
    return await watch(floor, api, { warmMs, measuredMs });
  } finally {
    await floor.end();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A process that runs until it is ended. */
interface Running {
  readonly pid: number | undefined;
  /** @throws Error where the process has ended by itself. */
  check(): void;
  end(): Promise<void>;
}

function start(args: readonly string[], env: Readonly<Record<string, string>>): Running {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-2000);
  });
  const ended = once(child, 'close');
  return {
    pid: child.pid,
    check: () => {
      if (child.exitCode !== null) throw new Error(`the process ended: ${log}`);
    },
    end: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function watch(
  { pid, check }: Running,
  api: Part<LiveCounts>,
  { warmMs, measuredMs }: Pick<IdleOptions, 'warmMs' | 'measuredMs'>,
): Promise<Idle> {
  /** The most private memory within so long a time. */
  const most = async (lastsMs: number): Promise<number> => {
    let bytes = 0;
    for (let leftMs = lastsMs; leftMs > 0; leftMs -= LOOK_MS) {
      await sleep(Math.min(LOOK_MS, leftMs));
      check();
      bytes = Math.max(bytes, privateBytesOf(pid));
    }
    return bytes;
  };
  const firstPrivateBytes = await most(warmMs);
  const before = { ...(await api.counts()), cpuMs: cpuMsOf(pid) };
  const privateBytes = await most(measuredMs);
  const after = await api.counts();
  const polls = after.polls - before.polls;
  const cpuMs = cpuMsOf(pid) - before.cpuMs;
  return {
    cpuSPerHour: ((cpuMs / 1000) * HOUR_MS) / measuredMs,
    cpuMsPerPoll: cpuMs / polls,
    bytesPerPoll: (after.pollBytes - before.pollBytes) / polls,
    pollsPerHour: (polls * HOUR_MS) / measuredMs,
    privateBytes,
    firstPrivateBytes,
    rssBytes: mappedBytes(pid, 'Rss'),
  };
}

/** The unit of `/proc/PID/stat` is 10 ms on every Linux that Node runs on. */
function cpuMsOf(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Fleets, and the most that a daemon beside each may take while all is well. */
export const IDLE_FLEETS = [
  { devices: 30, cpuS: 15, privateMb: 42 },
  { devices: 500, cpuS: 150, privateMb: 48 },
  { devices: 2000, cpuS: 500, privateMb: 70 },
] as const;

/**
 * The processor time and the private memory of a daemon beside each fleet, one fleet after the other; and in the same
 * minutes what the least takes for it.
 */
export async function measureIdle(
  program: string,
  measuredMs: number,
  say: (text: string) => void,
): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const { devices, cpuS, privateMb } of IDLE_FLEETS) {
    const of = { devices, warmMs: Math.min(measuredMs, 2 * MINUTE_MS), measuredMs };
    const [one, least] = await Promise.all([idle({ ...of, program }), idleFloor(of)]);
    const mb = one.privateBytes / 1e6;
    const times = one.cpuSPerHour / least.cpuSPerHour;
    say(
      `idle, ${devices} devices: ${one.cpuSPerHour.toFixed(1)} s of processor time an hour, ${times.toFixed(2)} times the floor's ${least.cpuSPerHour.toFixed(1)} s; ${mb.toFixed(1)} MB private, the floor ${(least.privateBytes / 1e6).toFixed(1)} MB`,
    );
    const figure = { better: 'less' } as const;
    const name = `idle, ${devices} devices`;
    measured.push(
      { ...figure, figure: `${name}: CPU per hour`, unit: 's', wanted: cpuS, values: [one.cpuSPerHour] },
      { ...figure, figure: `${name}: private memory`, unit: 'MB', wanted: privateMb, values: [mb] },
    );
  }
  return measured;
}
