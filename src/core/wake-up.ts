/**
 * A doorbell: lets a loop rest until there is something to do, or a while has passed, without asking again and again.
 */
import type { Clock } from './ports.ts';

export interface Doorbell {
  /** Wakes whoever waits; rung while nobody does, the next wait ends at once. */
  ring(): void;
  /** Resolves when the bell rings or after `maxMs`; rejects with the signal's reason when that aborts. */
  wait(maxMs: number, signal: AbortSignal): Promise<void>;
}

/** Made once: an error with its stack costs more than all else of a ring. */
const AWAKE = new Error('awake');

export function createDoorbell(clock: Clock): Doorbell {
  let rung = false;
  let wake = (): void => {};
  return {
    ring: () => {
      rung = true;
      wake();
    },
    wait: async (maxMs, signal) => {
      signal.throwIfAborted();
      // Not `AbortSignal.any`: joined signals stay registered with a signal that lives as long as the process.
      const nap = new AbortController();
      const onAbort = (): void => nap.abort(AWAKE);
      signal.addEventListener('abort', onAbort, { once: true });
      wake = onAbort;
      try {
        if (!rung) await clock.sleep(maxMs, nap.signal);
      } catch (error) {
        if (!nap.signal.aborted) throw error;
      } finally {
        signal.removeEventListener('abort', onAbort);
        wake = () => {};
        rung = false;
      }
      signal.throwIfAborted();
    },
  };
}
