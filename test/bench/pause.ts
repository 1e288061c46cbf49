/**
 * What answers of the API that are as large as they may be do to a daemon: the longest time in which it answers nothing
 * else, and its memory.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { answerMs } from '../attacks/attackers.ts';
import { ask, withDaemon } from './filled.ts';
import { startFatApi } from './parts.ts';
import type { Measured } from './table.ts';

const WANTED = { pauseMs: 200, memoryMb: 200 };
const NO_ANSWER_MS = 10_000;
const ASKED_EVERY_MS = 20;

/** 200 readings of so many sensors are just below the most values of an answer; of the others above it. */
const SENSORS = [145, 480] as const;

/**
 * Runs a daemon beside such an API, once for each size of its readings.
 *
 * @param seconds how long each is watched.
 */
export async function measurePause(program: string, newestMs: number, seconds: number): Promise<Measured[]> {
  const measured: Measured[] = [];
  for (const sensors of SENSORS) {
    using api = await startFatApi(newestMs, sensors);
    const env = { TIDEMARK_API_URL: api.url, TIDEMARK_SYNC_HISTORY: '1d' };
    const size = { devices: 1, readings: 1, intervalMs: 60_000, newestMs };
    const seen = await withDaemon(program, { size, env }, async (url) => await watch(url, seconds));
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
        figure: `memory, readings of ${sensors} sensors`,
        unit: 'MB',
        wanted: WANTED.memoryMb,
        values: [seen.bytes / 1_000_000],
      },
    );
  }
  return measured;
}

/**
 * The memory of the process, in bytes.
 *
 * @throws Error where the metrics do not tell the memory
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
