/**
 * The processes of a measurement: the API, the database that keeps nothing, and the compiled program between them.
 * Everything that is started here ends when it is disposed.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { FrontCounts } from './influx-front.ts';
import type { LiveCounts } from './live-api.ts';
import type { SinkCounts } from './null-influx.ts';
import type { OriginCounts } from './origin.ts';
import { oldestMs, type WorkspaceSize } from './workspace.ts';

/** A process that counts. */
export interface Part<Counts> extends Disposable {
  readonly url: string;
  counts(): Promise<Counts>;
}

/** Starts the API of a workspace. */
export async function startOrigin(size: WorkspaceSize): Promise<Part<OriginCounts>> {
  return await startPart<OriginCounts>('origin.ts', '/external/v1', [JSON.stringify(size)]);
}

/** Starts the API of one device with very large pages. */
export async function startFatApi(newestMs: number, sensors: number): Promise<Part<never>> {
  return await startPart<never>('fat-api.ts', '/external/v1', [String(newestMs), String(sensors)]);
}

/** Starts the API of a fleet that reports once a minute and has so much history, by the clock of this machine. */
export async function startLiveApi(devices: number, historyMs: number): Promise<Part<LiveCounts>> {
  return await startPart<LiveCounts>('live-api.ts', '/external/v1', [String(devices), String(historyMs)]);
}

/**
 * Starts what stands between the program and an InfluxDB 1.6.
 *
 * @param refusesForS for how many seconds it refuses the first write
 * @param directory where it keeps what it passes on
 */
export async function startInfluxFront(
  url: string,
  { refusesForS = 0, directory }: { readonly refusesForS?: number; readonly directory?: string | undefined } = {},
): Promise<Part<FrontCounts>> {
  const args = [url, String(refusesForS), ...(directory === undefined ? [] : [directory])];
  return await startPart<FrontCounts>('influx-front.ts', '', args);
}

/** Starts the database that keeps nothing. */
export async function startNullInflux(answersAfterMs = 0): Promise<Part<SinkCounts>> {
  return await startPart<SinkCounts>('null-influx.ts', '', [String(answersAfterMs)]);
}

async function startPart<Counts>(file: string, path: string, args: readonly string[]): Promise<Part<Counts>> {
  const child = fork(join(import.meta.dirname, file), args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [{ port }] = await once(child, 'message');
  return {
    url: `http://127.0.0.1:${port}${path}`,
    counts: async () => {
      const reported = once(child, 'message');
      child.send('counts');
      const [counts] = await reported;
      return counts;
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  };
}

/** The program, as `npm run build` makes it. */
export const PROGRAM = join(import.meta.dirname, '..', '..', 'dist', 'main.js');

/** The resources of a run of the program. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** From the start of the process to its end. */
  readonly wallMs: number;
  /** Of all its threads, user and system. */
  readonly cpuMs: number;
  /** Its peak memory (VmHWM), with the pages of files that it shares with other processes. */
  readonly peakBytes: number;
  /** The most that belonged to it alone, as a container is charged for it; sampled. */
  readonly peakPrivateBytes: number;
}

export interface ProgramOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Its file. */
  readonly program: string;
  readonly nodeArgs?: readonly string[];
  /** Receives its standard output, which is not kept then. */
  readonly onOutput?: (chunk: Buffer) => void;
}

/**
 * The environment of the program wherever we start it (`npm start`, the image, the unit file): glibc otherwise keeps a
 * pool of freed memory for each thread that compresses, and the larger what is freed is, the more of it.
 */
export const AS_SHIPPED = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

/** The settings of the program for its API and its state. */
export function sourceEnv(api: string, dataDir: string): Readonly<Record<string, string>> {
  return { TIDEMARK_API_URL: api, TIDEMARK_API_KEY: 'bench_key', TIDEMARK_DATA_DIR: dataDir };
}

/** So much history that the complete workspace is read. */
export function wholeHistory(size: WorkspaceSize): Readonly<Record<string, string>> {
  return { TIDEMARK_SYNC_HISTORY: new Date(oldestMs(size) - size.intervalMs).toISOString() };
}

/** The settings of the program for its database. */
export function databaseEnv(url: string): Readonly<Record<string, string>> {
  return {
    TIDEMARK_INFLUX_URL: url,
    TIDEMARK_INFLUX_TOKEN: 'bench_token',
    TIDEMARK_INFLUX_ORG: 'bench',
    TIDEMARK_INFLUX_BUCKET: 'bench',
  };
}

/** Runs the program to its end, without this process's environment. */
export async function runProgram(
  args: readonly string[],
  { env, program, nodeArgs = [], onOutput }: ProgramOptions,
): Promise<Ended> {
  const startedMs = performance.now();
  const child = spawn(process.execPath, [...nodeArgs, program, ...args], {
    env: { ...AS_SHIPPED, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const use = watchUse(child);
  const texts = { stdout: '', stderr: '' };
  if (onOutput !== undefined) child.stdout.on('data', onOutput);
  for (const name of onOutput === undefined ? (['stdout', 'stderr'] as const) : (['stderr'] as const)) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, ...texts, wallMs: performance.now() - startedMs, ...use.end() };
}

const CHECK_EVERY_MS = 50;
/** The unit of `/proc/PID/stat`: 100 a second on every Linux that Node runs on. */
const TICK_MS = 10;

/** Looking at all mappings takes the kernel longer: once in so many looks. */
const PRIVATE_EVERY = 4;

/** Looks at what a process uses until it ends. The peak only grows, so what is missed is its last moments. */
function watchUse(child: ChildProcess): { end(): Pick<Ended, 'cpuMs' | 'peakBytes' | 'peakPrivateBytes'> } {
  let cpuMs = 0;
  let peakBytes = 0;
  let peakPrivateBytes = 0;
  let looks = 0;
  const look = (): void => {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
      peakBytes = Math.max(peakBytes, Number(/^VmHWM:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024);
      if (looks % PRIVATE_EVERY === 0) peakPrivateBytes = Math.max(peakPrivateBytes, privateBytesOf(child.pid));
      looks += 1;
      // After the name, which may hold anything: the 12th and 13th field are the ticks of user and system.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      cpuMs = (Number(fields[11]) + Number(fields[12])) * TICK_MS;
    } catch {
      // It has ended, or this is no Linux.
    }
  };
  const timer = setInterval(look, CHECK_EVERY_MS);
  return {
    end: () => {
      clearInterval(timer);
      return { cpuMs, peakBytes, peakPrivateBytes };
    },
  };
}

/** The private memory of a process, in bytes. */
export function privateBytesOf(pid: number | undefined): number {
  return mappedBytes(pid, 'Private_Clean') + mappedBytes(pid, 'Private_Dirty');
}

/**
 * The same without the unchanged pages of Node's own file: the system has them once for all containers of an image, and
 * reclaims them where memory is short.
 */
export function ownBytesOf(pid: number | undefined): number {
  const file = readlinkSync(`/proc/${pid}/exe`);
  const mappings = readFileSync(`/proc/${pid}/smaps`, 'utf8').split(/^(?=[\da-f]+-[\da-f]+ )/m);
  const ofFile = mappings.filter((mapping) => mapping.slice(0, mapping.indexOf('\n')).endsWith(` ${file}`));
  // Changed pages are "Anonymous", whatever file they began as.
  const unchanged = ofFile.map(
    (mapping) => bytesIn(mapping, 'Private_Clean') + bytesIn(mapping, 'Private_Dirty') - bytesIn(mapping, 'Anonymous'),
  );
  return unchanged.reduce((left, bytes) => left - bytes, privateBytesOf(pid));
}

/** A sum over all mappings of a process, in bytes. */
export function mappedBytes(pid: number | undefined, name: string): number {
  return bytesIn(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'), name);
}

function bytesIn(smaps: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(smaps)?.[1] ?? 0) * 1024;
}
