/**
 * The real clock and the real random numbers. Only here the program reads the time, sets a timer or draws at random.
 */
import { setTimeout as sleepFor, setImmediate as turn } from 'node:timers/promises';
import type { Clock, Random } from '../core/ports.ts';
import { DAY_MS, MAX_MS } from '../core/time.ts';

/** Node's timers are limited to 2^31 - 1 ms and fire at once beyond that, so a longer sleep is split. */
const LONGEST_TIMER_MS = 2_000_000_000;

export const realClock: Clock = {
  nowMs: () => Date.now(),
  monoMs: () => performance.now(),
  sleep: async (ms, signal) => {
    const options = signal === undefined ? {} : { signal };
    try {
      // A sleep of 0 ms still lets timers, signals and incoming data be handled.
      if (ms <= 0) await turn(undefined, options);
      for (let left = ms; left > 0; left -= LONGEST_TIMER_MS) {
        await sleepFor(Math.min(left, LONGEST_TIMER_MS), undefined, options);
      }
    } catch (error) {
      throw signal?.aborted === true ? signal.reason : error;
    }
  },
};

export const realRandom: Random = () => Math.random();

/** The latest time of a local clock: a year before the last that can be stored, as later times follow from it. */
const LATEST_MS = MAX_MS - 365 * DAY_MS;

/** The clock with times that can be stored, whatever the machine's clock shows. */
export function storableClock(clock: Clock): Clock {
  return { ...clock, nowMs: () => Math.min(clock.nowMs(), LATEST_MS) };
}
