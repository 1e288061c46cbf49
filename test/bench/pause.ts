/**
 * The effect of API answers of the largest allowed size on a daemon: the longest time in which it answers nothing
 * else, the processor time of its longest turn, which is the same on a busy machine, and its memory.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { answerMs } from '../attacks/attackers.ts';
import { ask, withDaemon } from './filled.ts';
import { startFatApi } from './parts.ts';
import type { Measured } from './table.ts';
import type { Turn } from './turns.ts';

const WANTED = { pauseMs: 200, memoryMb: 200 };
const NO_ANSWER_MS = 10_000;
const ASKED_EVERY_MS = 20;

/** 200 readings of so many sensors are just below the most values of an answer; of the others above it. */
const SENSORS = [145, 480] as const;

/** Within this the program writes down its turns. */
const WRITTEN_WITHIN_MS = 1000;

/**
 * Runs a daemon beside such an API, once for each size of its readings.
 *
 * @param seconds how long each is watched.
 */
export async function measurePause(program: string, newestMs: number, seconds: number): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const sensors of SENSORS) {
    using api = await startFatApi(newestMs, sensors);
    using turns = notedTurns();
    const env = { TIDEMARK_API_URL: api.url, TIDEMARK_SYNC_HISTORY: '1d', ...turns.env };
    const size = { devices: 1, readings: 1, intervalMs: 60_000, newestMs };
    const seen = await withDaemon(program, { size, env }, async (url) => {
      const beganMs = Date.now();
      const watched = await watch(url, seconds);
      await sleep(WRITTEN_WITHIN_MS);
      return { ...watched, turnMs: turns.longestSince(beganMs) };
    });
    const figure = { better: 'less' } as const;
    measured.push(
      {
        ...figure,
        figure: `longest pause, readings of ${sensors} sensors`,
        unit: 'ms',
        wanted: WANTED.pauseMs,
        values: [seen.pauseMs],
      },
      {
        ...figure,
        figure: `longest turn, readings of ${sensors} sensors`,
        unit: 'ms',
        wanted: WANTED.pauseMs,
        values: [seen.turnMs],
      },
      {
        ...figure,
        figure: `memory, readings of ${sensors} sensors`,
        unit: 'MB',
        wanted: WANTED.memoryMb,
        values: [seen.bytes / 1_000_000],
      },
    );
  }
  return measured;
}

/** The turns that a program notes down which gets this environment. */
function notedTurns(): Disposable & {
  readonly env: Readonly<Record<string, string>>;
  /** The processor time of the longest turn that ended since then, in ms. */
  longestSince(ms: number): number;
} {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-turns-'));
  const file = join(directory, 'turns.json');
  const preloaded = pathToFileURL(join(import.meta.dirname, 'turns.ts')).href;
  return {
    env: { NODE_OPTIONS: `--import=${preloaded}`, BENCH_TURNS: file },
    longestSince: (ms) => {
      const turns: readonly Turn[] = JSON.parse(readFileSync(file, 'utf8'));
      return Math.max(0, ...turns.filter(({ atMs }) => atMs >= ms).map(({ cpuMs }) => cpuMs));
    },
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/**
 * The memory of the process, in bytes.
 *
 * @throws Error if the metrics do not report the memory
 */
export function memoryOf(metrics: string): number {
  const bytes = Number(/^(?:tidemark_)?process_resident_memory_bytes ([\d.e+]+)$/m.exec(metrics)?.[1]);
  if (Number.isNaN(bytes)) throw new Error('/metrics does not tell the memory of the process');
  return bytes;
}

async function watch(url: string, seconds: number): Promise<{ readonly pauseMs: number; readonly bytes: number }> {
  const { hostname, port } = new URL(url);
  const target = { host: hostname, port: Number(port), path: '/' };
  const seen = { pauseMs: 0, bytes: 0 };
  const endMs = performance.now() + seconds * 1000;
  while (performance.now() < endMs) {
    seen.pauseMs = Math.max(seen.pauseMs, (await answerMs(target, '/healthz')) ?? NO_ANSWER_MS);
    const { text } = await ask(`${url}metrics`);
    seen.bytes = Math.max(seen.bytes, memoryOf(text));
    await sleep(ASKED_EVERY_MS);
  }
  return seen;
}
