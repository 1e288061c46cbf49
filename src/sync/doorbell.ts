/**
 * A doorbell: lets a loop rest until there is something to do, or a while has passed, without asking again and again.
 */
import type { Clock } from '../core/ports.ts';

export interface Doorbell {
  /** Wakes whoever waits; rung while nobody does, the next wait ends at once. */
  ring(): void;
  /** Resolves when the bell rings or after `maxMs`; rejects with the signal's reason when that aborts. */
  wait(maxMs: number, signal: AbortSignal): Promise<void>;
}

export function createDoorbell(clock: Clock): Doorbell {
  let rung = false;
  let wake: (() => void) | null = null;
  return {
    ring: () => {
      rung = true;
      wake?.();
    },
    wait: async (maxMs, signal) => {
      signal.throwIfAborted();
      if (!rung) {
        const asleep = new AbortController();
        const bell = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const both = AbortSignal.any([signal, asleep.signal]);
        const nap = clock.sleep(maxMs, both).catch((error: unknown) => {
          if (!asleep.signal.aborted) throw error;
        });
        await Promise.race([bell, nap]).finally(() => asleep.abort());
        wake = null;
      }
      rung = false;
    },
  };
}
