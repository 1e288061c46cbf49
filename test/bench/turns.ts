/**
 * Loaded into a program before its own modules (`node --import`): notes the turns of its event loop that take long, in
 * the file that `BENCH_TURNS` names. Processor time of the main thread, so that other processes of the machine make no
 * turn longer.
 */
import { writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/** A turn that took long. */
export interface Turn {
  /** When it ended, by the local clock. */
  readonly atMs: number;
  readonly cpuMs: number;
}

const LONG_MS = 10;
const WRITTEN_EVERY_MS = 500;

const file = process.env['BENCH_TURNS'];
if (file !== undefined && isMainThread) {
  const turns: Turn[] = [];
  // The first turn is the start of the program.
  let lastMs = Number.POSITIVE_INFINITY;
  setInterval(() => {
    const nowMs = cpuMs();
    if (nowMs - lastMs > LONG_MS) turns.push({ atMs: Date.now(), cpuMs: nowMs - lastMs });
    lastMs = nowMs;
  }, 1).unref();
  setInterval(() => writeFileSync(file, JSON.stringify(turns)), WRITTEN_EVERY_MS).unref();
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
