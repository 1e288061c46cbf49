/**
 * The real program as a real process, against the simulator over HTTP and a real InfluxDB behind its proxy.
 *
 * Everything listens on loopback at a free port; whatever was started is killed and removed when a stage is disposed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { realClock } from '../../src/app/real-clock.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import { type SimServer, serveSimulator } from '../../src/sim/server.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import type { World } from '../../src/sim/world.ts';
import { type Bench, startBench } from '../support/bench.ts';
import { programFile } from '../support/built-program.ts';
import { createSimulator, type Simulator } from '../support/faulty-simulator.ts';
import { judge, type Verdict } from '../support/judge.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';

export const ROOT = join(import.meta.dirname, '..', '..');
/** The program under test: the built one, or the source where none was built (`npm run soak`). */
export const MAIN = programFile();
/** The source of the program. */
export const SOURCE = join(ROOT, 'src', 'main.ts');

/** Distinctive, so that a search for them finds nothing by chance; with characters that every encoding changes. */
export const KEY = 'tmk_CANARYkey/7+9%Zz~4242';
export const TOKEN = 'CANARYtoken+/=%83==xyz';

/** A plan so wide that no pace slows a test. */
export const WIDE_PLAN = { requestsPerMinute: 1_000_000, requestsPerDay: 100_000_000, historyMaxDays: 31 };

/** Starts the database of a file's tests. */
export async function openBench(): Promise<Bench> {
  return await startBench(TOKEN);
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A run of the program. */
export interface Run {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout(): string;
  stderr(): string;
}

export interface RunOptions {
  /** `undefined` removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Before the program's own file: `--import`. */
  readonly nodeArgs?: readonly string[];
  readonly cwd?: string;
  /** Its file; the built one where none is named. */
  readonly program?: string;
  /** Runs it as another user; this one has to be root. */
  readonly uid?: number;
  /** It is killed after so long: sooner than its test is given up, so that nothing outlives a test that hangs. */
  readonly withinMs?: number;
}

/** Against what hangs: sooner than a test is given up, and long enough for a machine that others use as well. */
const WITHIN_MS = 800_000;

/** Starts the program with only the paths of its tools and of Node's compiled code from this process's environment. */
export function start(args: readonly string[], options: RunOptions = {}): Run {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn(process.execPath, [...(options.nodeArgs ?? []), options.program ?? MAIN, ...args], {
    cwd: options.cwd ?? tmpdir(),
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
    env: { PATH, NODE_COMPILE_CACHE, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.withinMs ?? WITHIN_MS,
    killSignal: 'SIGKILL',
  });
  const onExit = (): void => void child.kill('SIGKILL');
  process.once('exit', onExit);
  child.once('exit', () => process.off('exit', onExit));
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, ...texts }));
  });
  return { child, ended, stdout: () => texts.stdout, stderr: () => texts.stderr };
}

/** A workspace and a place for a state; the database is shared by the tests of a file. */
export interface Stage extends AsyncDisposable {
  readonly simulator: Simulator;
  readonly server: SimServer;
  readonly directory: string;
  readonly dataDir: string;
  readonly database: string;
  /** The program's environment: the API, the database and the state of this stage. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts the program on this stage; it does not outlive it. */
  start(args: readonly string[], options?: RunOptions): Run;
  /** The same, and waits for its end. */
  run(args: readonly string[], options?: RunOptions): Promise<Ended>;
  /** Compares the seed with the database, for a run that began at `startedMs`. */
  verdict(startedMs: number, fromMs?: number): Promise<Verdict>;
}

export interface StageOptions {
  /** Without one there is no destination. */
  readonly bench?: Bench;
  readonly devices?: readonly DeviceSpec[];
  /** In place of one of these devices. */
  readonly world?: World;
  /** An hour where none is given: with each thing that is hard, and little to compute. */
  readonly historyMs?: number;
  readonly settings?: SettingsOverrides;
  readonly workspaceId?: string;
}

const SETTLE_MS = 2 * MINUTE_MS;

/** A little history, with what is hard about it. */
const DEVICES: readonly DeviceSpec[] = [
  { deviceId: 'walk', intervalMs: 20_000, jitter: 0.5, sensors: sensorsOf(1) },
  { deviceId: 'tied', intervalMs: MINUTE_MS, traits: ['ties'], sensors: sensorsOf(2) },
  {
    ...{ deviceId: 'burst', intervalMs: 5 * MINUTE_MS, sensors: sensorsOf(1) },
    ...{ traits: ['burst'], burst: { every: 12, size: 230 } },
  },
];

let stages = 0;

/** Sets a stage up. */
export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const { bench, historyMs = HOUR_MS } = options;
  const originMs = Date.now();
  const { workspaceId } = options;
  const simulator = createSimulator({
    world:
      options.world ??
      createWorld({
        seed: 5,
        originMs,
        historyMs: 2 * historyMs,
        devices: options.devices ?? DEVICES,
        ...(workspaceId === undefined ? {} : { workspaceId }),
      }),
    clock: realClock,
    settings: {
      ...options.settings,
      plan: { ...WIDE_PLAN, ...options.settings?.plan },
      key: { secret: KEY, ...options.settings?.key },
    },
  });
  const server = await serveSimulator(simulator);
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-process-'));
  stages += 1;
  const database = `process${process.pid}_${stages}`;
  if (bench !== undefined) await bench.influxd.query('', `CREATE DATABASE ${database}`);
  const dataDir = join(directory, 'state');
  const env = {
    TIDEMARK_API_URL: server.url,
    TIDEMARK_API_KEY: KEY,
    TIDEMARK_API_SHARE: '1',
    TIDEMARK_DATA_DIR: dataDir,
    TIDEMARK_SYNC_HISTORY: `${Math.round(historyMs / 1000)}s`,
    ...(bench === undefined
      ? {}
      : {
          TIDEMARK_INFLUX_URL: bench.proxy.url,
          TIDEMARK_INFLUX_TOKEN: TOKEN,
          TIDEMARK_INFLUX_BUCKET: database,
          TIDEMARK_INFLUX_BATCH_LINES: '1000',
        }),
  };
  const children: ChildProcess[] = [];
  const begin = (args: readonly string[], more: RunOptions = {}): Run => {
    const run = start(args, { cwd: directory, ...more, env: { ...env, ...more.env } });
    children.push(run.child);
    return run;
  };
  return {
    simulator,
    server,
    directory,
    dataDir,
    database,
    env,
    start: begin,
    run: async (args, more) => await begin(args, more).ended,
    verdict: async (startedMs, fromMs = firstAskedMs(simulator, startedMs) - historyMs + 5000) => {
      if (bench === undefined) throw new Error('a stage without a database');
      const span = {
        fromNs: BigInt(fromMs) * 1_000_000n,
        toNs: BigInt(startedMs - SETTLE_MS - 2500) * 1_000_000n,
      };
      const ids = simulator.world.deviceIds(Date.now());
      return await judge({ influxd: bench.influxd, database, simulator }, span, ids);
    },
    [Symbol.asyncDispose]: async () => {
      for (const child of children) child.kill('SIGKILL');
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * When each device had been polled once since a time. The history that is wanted begins so long before it, and not
 * before the start of the process: on a busy machine a container needs ten seconds until its first request.
 */
function firstAskedMs({ log }: Simulator, startedMs: number): number {
  const firsts = new Map<string, number>();
  for (const { path, atMs } of log.requests) {
    if (atMs >= startedMs && path.endsWith('/telemetry') && !firsts.has(path)) firsts.set(path, atMs);
  }
  return Math.max(startedMs, ...firsts.values());
}

/**
 * Waits until something holds.
 *
 * @throws Error where it does not within the time.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 10 * MINUTE_MS,
): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    const held = holds();
    if (await held) return;
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    // Slow conditions are checked less often, above all those that need another process: a check costs time as well.
    const pauseMs = typeof held === 'boolean' ? Math.min(500, waitedMs / 50) : Math.min(1000, waitedMs / 8);
    await sleep(20 + pauseMs);
  }
}
