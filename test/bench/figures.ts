/**
 * The figures of speed and memory, each one run of the real program; the result is checked before the time counts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MINUTE_MS } from '../../src/core/time.ts';
import type { OriginCounts, WindowCount } from './origin.ts';
import {
  databaseEnv,
  type Ended,
  PROGRAM,
  runProgram,
  sourceEnv,
  startNullInflux,
  startOrigin,
  wholeHistory,
} from './parts.ts';
import { expectedLines, type LineSum, SENSORS, type WorkspaceSize } from './workspace.ts';

/** One backfill, as it was measured. */
export interface Backfill {
  readonly readings: number;
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakBytes: number;
  readonly peakPrivateBytes: number;
  readonly counts: OriginCounts;
}

export interface BackfillOptions {
  readonly size: WorkspaceSize;
  /** Whether a destination accepts the lines meanwhile. */
  readonly delivers: boolean;
  /** How long the destination takes to answer a write, in ms; at once by default. */
  readonly answersAfterMs?: number;
  /** The program's file. */
  readonly program?: string;
  /** For `node` itself, as `--cpu-prof`. */
  readonly nodeArgs?: readonly string[];
}

/** The whole minute that is so old by now that everything up to it can be covered, with room for long benches before it. */
export function newestMsOf(nowMs: number): number {
  return Math.floor(nowMs / MINUTE_MS) * MINUTE_MS - 10 * MINUTE_MS;
}

/**
 * Runs `--once` over a workspace into an empty state.
 *
 * @throws Error where the program did not end in order, or not with what the workspace holds: then no figure counts.
 */
export async function backfill(options: BackfillOptions): Promise<Backfill> {
  const { size, delivers, answersAfterMs } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'tidemark-bench-'));
  using origin = await startOrigin(size);
  const sink = delivers ? await startNullInflux(answersAfterMs) : null;
  try {
    const env = {
      ...sourceEnv(origin.url, dataDir),
      ...wholeHistory(size),
      ...(sink === null ? {} : databaseEnv(sink.url)),
    };
    const { program = PROGRAM, nodeArgs } = options;
    const ended = await runProgram(['--once', '--json'], { env, program, ...(nodeArgs ? { nodeArgs } : {}) });
    checkEnd(ended, size);
    if (sink !== null) checkLines((await sink.counts()).telemetry, expectedOf(size));
    const { wallMs, cpuMs, peakBytes, peakPrivateBytes } = ended;
    const readings = size.devices * size.readings;
    return { readings, wallMs, cpuMs, peakBytes, peakPrivateBytes, counts: await origin.counts() };
  } finally {
    sink?.[Symbol.dispose]();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function checkEnd({ code, stdout, stderr }: Ended, size: WorkspaceSize): void {
  const last = stderr.trimEnd().split('\n').slice(-5).join('\n');
  if (code !== 0) throw new Error(`the program ended with ${code}:\n${last}`);
  const summary: { points_archived: number; gaps: unknown[] } = JSON.parse(stdout);
  const points = size.devices * size.readings * SENSORS.length;
  if (summary.points_archived !== points || summary.gaps.length > 0) {
    throw new Error(`${summary.points_archived} points archived of ${points}, ${summary.gaps.length} gaps:\n${last}`);
  }
}

/** @throws Error where a line is missing, there twice or another one. */
export function checkLines(sent: LineSum, expected: LineSum): void {
  if (sent.lines === expected.lines && sent.sum === expected.sum) return;
  throw new Error(
    `the database was sent ${sent.lines} lines with the sum ${sent.sum}, not ${expected.lines} with ${expected.sum}`,
  );
}

/** Counting takes seconds where there are millions: once for each size. */
const expectations = new Map<string, LineSum>();

function expectedOf(size: WorkspaceSize): LineSum {
  const key = JSON.stringify(size);
  const known = expectations.get(key) ?? expectedLines(size);
  expectations.set(key, known);
  return known;
}

/** Requests for telemetry. */
export interface RequestUse {
  readonly requests: number;
  /** The most that a window took of ceil(readings / 196) + 2. */
  readonly worst: number;
}

const PAGE = 200;

/** The fewest requests that a workspace can be read with: each page repeats one reading of the page before it. */
export function fewestRequests({ devices, readings }: Pick<WorkspaceSize, 'devices' | 'readings'>): number {
  return devices * Math.max(1, Math.ceil((readings - 1) / (PAGE - 1)));
}

export function requestUse(windows: readonly WindowCount[]): RequestUse {
  return {
    requests: windows.reduce((sum, { requests }) => sum + requests, 0),
    worst: Math.max(...windows.map(({ readings, most }) => most / (Math.ceil(readings / 196) + 2))),
  };
}

/** Milliseconds from the start of the program's process to its first request, with a state or without. */
export async function firstRequestMs(program: string, dataDir: string): Promise<number> {
  const arrived = Promise.withResolvers<number>();
  const server = createServer((request, response) => {
    arrived.resolve(performance.now());
    // The key is rejected, so the program ends by itself.
    request.resume();
    response
      .writeHead(401, { 'Content-Type': 'application/json' })
      .end('{"error":{"code":"unauthorized","message":"no"}}');
  });
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  try {
    const { port } = server.address() as AddressInfo;
    const env = sourceEnv(`http://127.0.0.1:${port}/external/v1`, dataDir);
    const startedMs = performance.now();
    const ended = runProgram(['--once'], { env, program });
    const first = await Promise.race([arrived.promise, ended.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
    await ended;
    return first - startedMs;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
