/**
 * Runs the stories of many seeds at once, in threads: a story waits only for the processor.
 */
import { Worker } from 'node:worker_threads';
import type { Sums } from './live.ts';

/** The work of a thread. */
export interface SeedOrder {
  readonly seed: number;
  readonly leftOut: ReadonlySet<string>;
}

/** The result of a seed's story; without sums where it has thrown. */
export interface SeedResult {
  readonly seed: number;
  readonly wrong: readonly string[];
  readonly sums: Sums | null;
  readonly tookMs: number;
}

/**
 * Runs each in one of so many threads.
 *
 * @param taken called with each result, in the order in which they end.
 */
export async function liveInThreads(
  orders: readonly SeedOrder[],
  threads: number,
  taken: (result: SeedResult) => void,
): Promise<void> {
  const left = [...orders];
  await Promise.all(Array.from({ length: Math.min(threads, orders.length) }, () => workThrough(left, taken)));
}

/** One thread, until nothing is left. */
async function workThrough(left: SeedOrder[], taken: (result: SeedResult) => void): Promise<void> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    resourceLimits: { maxYoungGenerationSizeMb: 64 },
  });
  try {
    for (let next = left.shift(); next !== undefined; next = left.shift()) taken(await liveIn(worker, next));
  } finally {
    await worker.terminate();
  }
}

/** @throws what has ended the thread. */
function liveIn(worker: Worker, order: SeedOrder): Promise<SeedResult> {
  const { promise, resolve, reject } = Promise.withResolvers<SeedResult>();
  worker.once('message', resolve);
  worker.once('error', reject);
  worker.postMessage(order);
  return promise.finally(() => {
    worker.off('message', resolve);
    worker.off('error', reject);
  });
}
