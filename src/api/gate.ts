/**
 * A gate that lets those who wait through one by one, when their time has come and while there is room: the higher
 * priority first, then the one that came first.
 *
 * p-queue keeps the order and takes out those who give up; the loop here decides when the next one goes. Who goes is
 * decided in that moment only, so a late arrival of a higher lane is not kept waiting by a lower one.
 */
import PQueue from 'p-queue';
import type { Turn, WaitReason } from '../core/allowance-terms.ts';
import type { Clock } from '../core/ports.ts';

/** Timers are no more exact than this; with a large plan, sleeping for less would only cost time. */
export const LEAST_WAIT_MS = 1;

export interface GateOptions {
  readonly clock: Clock;
  /** Whether another one may be let through at all. */
  readonly hasRoom: () => boolean;
  /** When the next one may go, by the monotonic clock. */
  readonly turn: () => Turn;
  /** Long waits are slept in pieces of this: what is waited for may change, and timers end at 24.8 days. */
  readonly longestSleepMs: () => number;
  /** Told once for each one that has to wait. */
  readonly onWait: (waitMs: number, reason: WaitReason) => void;
}

export interface Gate {
  /**
   * Waits for a turn and runs `go` in it, at once and as a whole.
   *
   * @returns what `go` returns. Rejects with what it throws, or with the signal's reason.
   */
  pass<T>(go: () => T, priority: number, signal: AbortSignal): Promise<T>;
  /** Looks again: there may be room now. */
  check(): void;
}

/** A gate before which nobody waits. */
export function createGate({ clock, hasRoom, turn, longestSleepMs, onWait }: GateOptions): Gate {
  // Paused but for the moment in which one is let through.
  const waiting = new PQueue({ autoStart: false });
  let isRunning = false;
  let isWaitTold = false;
  let wakeUp = new AbortController();

  const letOneThrough = (): void => {
    isWaitTold = false;
    waiting.start();
    // Whoever went has paused the queue already; this is for when all who waited turn out to have given up.
    waiting.pause();
  };
  const rest = async (waitMs: number): Promise<void> => {
    wakeUp = new AbortController();
    // Rejects when woken, which is what it is for.
    await clock.sleep(Math.min(waitMs, longestSleepMs()), wakeUp.signal).catch(() => {});
  };
  const run = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    while (waiting.size > 0 && hasRoom()) {
      const { atMs, reason } = turn();
      const waitMs = atMs - clock.monoMs();
      if (waitMs < LEAST_WAIT_MS) {
        letOneThrough();
        continue;
      }
      if (!isWaitTold) onWait(waitMs, reason);
      isWaitTold = true;
      await rest(waitMs);
    }
    // In the same breath as the last look, so that no change falls in between.
    isRunning = false;
  };

  return {
    async pass(go, priority, signal) {
      const task = () => {
        waiting.pause();
        return go();
      };
      const passed = waiting.add(task, { priority, signal });
      void run();
      try {
        return await passed;
      } finally {
        if (waiting.size === 0) wakeUp.abort();
      }
    },
    check: () => void run(),
  };
}
