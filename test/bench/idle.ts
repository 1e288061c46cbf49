/**
 * The resources of a daemon in the steady state: processor, private memory and bytes of the API, with a fleet that
 * reports once a minute and is in sync.
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
  ownBytesOf,
  type Part,
  sourceEnv,
  startLiveApi,
  startNullInflux,
} from './parts.ts';
import { type Measured, median } from './table.ts';
import type { Guard } from './undisturbed.ts';

/** The runs. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Finds the process that is measured, where another one starts it. */
  readonly findPid?: () => Promise<number>;
}

export interface Idle {
  /** User and system time of the daemon's process, per hour. */
  readonly cpuSPerHour: number;
  readonly cpuMsPerPoll: number;
  readonly bytesPerPoll: number;
  readonly pollsPerHour: number;
  /**
   * The private memory of this process (smaps) except Node's file, in bytes: the largest of the looks; RSS beside it.
   */
  readonly privateBytes: number;
  /** All of these looks, one after the other. */
  readonly privateLooks: readonly number[];
  /** The same while it started and synced for the first time. */
  readonly firstPrivateBytes: number;
  readonly rssBytes: number;
}

export interface IdleOptions {
  readonly program: string;
  readonly devices: number;
  /** How much history is synced first: six hours by default. */
  readonly historyMs?: number;
  /** How long the first sync and the warming up may take, and how long is measured. */
  readonly warmMs: number;
  readonly measuredMs: number;
  readonly nodeArgs?: readonly string[];
  /** Whether the warming up begins when the first sync is done, however long that takes. */
  readonly awaitsSync?: boolean;
  /** Runs the same elsewhere: in a container. */
  readonly contain?: (command: Command, dataDir: string) => Command;
}

const HISTORY_MS = 6 * HOUR_MS;

/** The log line of a daemon when all devices are complete for the first time. */
const SYNCED = '"initial-sync-done"';

/** How often the memory is looked at. */
const LOOK_MS = 10_000;
/** The same during a first sync, of which the end is waited for. */
const SYNC_LOOK_MS = 1000;

/**
 * Runs a daemon beside a live fleet.
 *
 * @throws Error if it ends before it is stopped
 */
export async function idle(options: IdleOptions): Promise<Idle> {
  const { program, devices, historyMs = HISTORY_MS, nodeArgs = [], contain = (command) => command } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using api = await startLiveApi(devices, Math.max(historyMs, DAY_MS));
  using sink = await startNullInflux();
  const env = {
    ...AS_SHIPPED,
    ...sourceEnv(api.url, dataDir),
    ...databaseEnv(sink.url),
    TIDEMARK_LISTEN: '127.0.0.1:0',
    TIDEMARK_LOG_FORMAT: 'json',
    TIDEMARK_SYNC_HISTORY: `${historyMs / MINUTE_MS}m`,
  };
  const daemon = start(contain({ file: process.execPath, args: [...nodeArgs, program], env }, dataDir));
  try {
    return await watch(daemon, api, options);
  } finally {
    await daemon.end();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/**
 * Runs the least that keeps the same fleet (`compared/idle-floor.ts`), without a first sync.
 *
 * @throws Error if it ends before it is stopped
 */
export async function idleFloor({ devices, warmMs, measuredMs }: Omit<IdleOptions, 'program'>): Promise<Idle> {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using api = await startLiveApi(devices, DAY_MS);
  using sink = await startNullInflux();
  const program = join(import.meta.dirname, 'compared', 'idle-floor.ts');
  const args = [program, api.url, join(directory, 'kept.db'), sink.url];
  const floor = start({ file: process.execPath, args, env: AS_SHIPPED });
  try {
    return await watch(floor, api, { warmMs, measuredMs });
  } finally {
    await floor.end();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A process that runs until it is ended. */
interface Running {
  /** The process that is measured. */
  pid(): Promise<number | undefined>;
  /** @throws Error where the process has ended by itself. */
  check(): void;
  /** Whether it has written this. */
  hasLogged(text: string): boolean;
  end(): Promise<void>;
}

/** The part of a log that is kept for searches, which is more than is written between two searches. */
const LOG_CHARACTERS = 100_000;

function start({ file, args, findPid, ...options }: Command): Running {
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-LOG_CHARACTERS);
  });
  const ended = once(child, 'close');
  return {
    pid: async () => (findPid === undefined ? child.pid : await findPid()),
    check: () => {
      const ending = child.exitCode ?? child.signalCode;
      if (ending !== null) throw new Error(`the process ended with ${ending}: ${log.slice(-2000)}`);
    },
    hasLogged: (text) => log.includes(text),
    end: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function watch(
  running: Running,
  api: Part<LiveCounts>,
  { warmMs, measuredMs, awaitsSync = false }: Pick<IdleOptions, 'warmMs' | 'measuredMs' | 'awaitsSync'>,
): Promise<Idle> {
  const pid = await running.pid();
  /** The private memory, looked at until a time. */
  const look = async (isOver: () => boolean, everyMs: number): Promise<number[]> => {
    const looks: number[] = [];
    while (!isOver()) {
      await sleep(everyMs);
      running.check();
      looks.push(ownBytesOf(pid));
    }
    return looks;
  };
  const lookFor = async (lastsMs: number): Promise<number[]> => {
    const endMs = performance.now() + lastsMs;
    return await look(() => performance.now() >= endMs, Math.min(LOOK_MS, lastsMs));
  };
  const first = awaitsSync ? await look(() => running.hasLogged(SYNCED), SYNC_LOOK_MS) : [];
  first.push(...(await lookFor(warmMs)));
  const before = { ...(await api.counts()), cpuMs: cpuMsOf(pid), ms: performance.now() };
  const privateLooks = await lookFor(measuredMs);
  const after = await api.counts();
  const polls = after.polls - before.polls;
  const cpuMs = cpuMsOf(pid) - before.cpuMs;
  const perHour = HOUR_MS / (performance.now() - before.ms);
  return {
    cpuSPerHour: (cpuMs / 1000) * perHour,
    cpuMsPerPoll: cpuMs / polls,
    bytesPerPoll: (after.pollBytes - before.pollBytes) / polls,
    pollsPerHour: polls * perHour,
    privateBytes: Math.max(...privateLooks),
    privateLooks,
    firstPrivateBytes: Math.max(...first),
    rssBytes: mappedBytes(pid, 'Rss'),
  };
}

/** User and system time of a process, in ms: the unit of `/proc/PID/stat` is 10 ms on every Linux that Node runs on. */
export function cpuMsOf(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Fleets, and the most that a daemon beside each may take while all is well. */
const IDLE_FLEETS = [
  { devices: 30, cpuS: 15, privateMb: 42 },
  { devices: 500, cpuS: 150, privateMb: 48 },
  { devices: 2000, cpuS: 500, privateMb: 70 },
] as const;

/** Its memory alone is limited. More history would take an hour to be read first. */
const LARGEST_FLEET = { devices: 10_000, historyMs: 10 * MINUTE_MS, privateMb: 140 };

/**
 * The processor time and the private memory of a daemon beside each fleet, one fleet after the other; and in the same
 * minutes those of the minimal program.
 */
export async function measureIdle(
  program: string,
  {
    measuredMs,
    say,
    guard,
  }: { readonly measuredMs: number; readonly say: (text: string) => void; readonly guard: Guard },
): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const { devices, cpuS, privateMb } of IDLE_FLEETS) {
    const of = { devices, warmMs: Math.min(measuredMs, 2 * MINUTE_MS), measuredMs };
    const both = async () => await Promise.all([idle({ ...of, program }), idleFloor(of)]);
    const [one, least] = await guard(`idle, ${devices} devices`, both);
    requirePolls(one, devices);
    const times = one.cpuSPerHour / least.cpuSPerHour;
    say(
      `idle, ${devices} devices: ${one.cpuSPerHour.toFixed(1)} s of processor time an hour, ${times.toFixed(2)} times the floor's ${least.cpuSPerHour.toFixed(1)} s; ${(one.privateBytes / 1e6).toFixed(1)} MB private, the floor ${(least.privateBytes / 1e6).toFixed(1)} MB`,
    );
    const name = `idle, ${devices} devices`;
    const cpu = { figure: `${name}: CPU per hour`, unit: 's', better: 'less', wanted: cpuS } as const;
    measured.push({ ...cpu, values: [one.cpuSPerHour] }, ...memoryFigures(name, one, privateMb));
  }
  return [...measured, ...(await measureLargest(program, measuredMs, say))];
}

/**
 * Each device reports once a minute, so that each is polled as often.
 *
 * @throws Error where a daemon polls less, which would cost less.
 */
export function requirePolls({ pollsPerHour }: Pick<Idle, 'pollsPerHour'>, devices: number): void {
  const due = devices * (HOUR_MS / MINUTE_MS);
  if (pollsPerHour < 0.95 * due) throw new Error(`${pollsPerHour.toFixed(0)} polls an hour, where ${due} are due`);
}

async function measureLargest(program: string, measuredMs: number, say: (text: string) => void): Promise<Measured[]> {
  const { privateMb, ...fleet } = LARGEST_FLEET;
  const one = await idle({ ...fleet, program, awaitsSync: true, warmMs: 0, measuredMs });
  const name = `idle, ${fleet.devices} devices`;
  say(`${name}: ${one.cpuSPerHour.toFixed(0)} s of processor time and ${one.pollsPerHour.toFixed(0)} polls an hour`);
  return memoryFigures(name, one, privateMb);
}

/** The private memory of an idle daemon: the largest of the looks, and the middle one. */
export function memoryFigures(
  name: string,
  { privateLooks }: Pick<Idle, 'privateLooks'>,
  wantedMb: number,
): Measured[] {
  const figure = { unit: 'MB', wanted: wantedMb, better: 'less' } as const;
  return [
    { ...figure, figure: `${name}: most private memory`, values: [Math.max(...privateLooks) / 1e6] },
    { ...figure, figure: `${name}: median private memory`, values: [median(privateLooks) / 1e6] },
  ];
}
