/**
 * The real clock and the real random numbers. All rules and loops take these as arguments. Apart from this file, only
 * the start of the process, the HTTP clients and the simulated API read the time, set a timer or draw at random.
 */
import type { Clock, Random } from '../core/ports.ts';
import { DAY_MS, MAX_MS } from '../core/time.ts';

/** Node's timers are limited to 2^31 - 1 ms and fire at once beyond that, so a longer sleep is split. */
const LONGEST_TIMER_MS = 2_000_000_000;

/** The machine's clock and timers. In tests, the clock of virtual time replaces it. */
export const realClock: Clock = {
  nowMs: () => Date.now(),
  monoMs: () => performance.now(),
  sleep: async (ms, signal) => {
    let left = ms;
    do {
      await sleepOnce(Math.min(left, LONGEST_TIMER_MS), signal);
      left -= LONGEST_TIMER_MS;
    } while (left > 0);
  },
};

/**
 * Waits once. The sleep of `node:timers/promises` creates an error with a stack whenever it is aborted, which every
 * wake-up does, and listens through several promises: the rests of an idle daemon would cost as much as its work.
 */
async function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    clearTimeout(timer);
    reject(signal?.reason);
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  // A rest of 0 ms still lets timers, signals and incoming data be handled.
  if (ms <= 0) setImmediate(resolve);
  else timer = setTimeout(resolve, ms);
  try {
    await promise;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** The random numbers of this machine. */
export const realRandom: Random = () => Math.random();

/**
 * The latest time of a local clock: a year before the last time that can be stored, because later times are derived
 * from it.
 */
const LATEST_MS = MAX_MS - 365 * DAY_MS;

/** A clock whose times can always be stored, whatever the machine's clock shows. */
export function storableClock(clock: Clock): Clock {
  return { ...clock, nowMs: () => Math.min(clock.nowMs(), LATEST_MS) };
}
