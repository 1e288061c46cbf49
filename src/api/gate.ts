/**
 * A gate that lets those who wait through one by one, when their time has come and while there is room: the higher
 * priority first, then the one that came first. Who has waited long goes before all others, so that a lower lane gets
 * little where the higher ones want everything, but never nothing for ever (design 2.4).
 *
 * p-queue keeps the order and takes out those who give up; the loop here decides when the next one goes. Who goes is
 * decided in that moment only, so a late arrival of a higher lane is not kept waiting by a lower one.
 */
import PQueue from 'p-queue';
import type { Turn, WaitReason } from '../core/allowance-terms.ts';
import type { Clock } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';

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
  /** Told of each look while somebody waits, and when the next one is at the latest; of `null` when nobody does. */
  readonly onLook?: (restMs: number | null) => void;
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

/** After so long a wait the lane no longer counts. */
const AGED_MS = MINUTE_MS;
const AGED_PRIORITY = 1000;

/** Somebody who waits. */
interface Waiter {
  readonly id: string;
  readonly sinceMs: number;
  readonly signal: AbortSignal;
  aged: boolean;
}

/** Made once: an error with its stack costs more than all else of a wake. */
const AWAKE = new Error('awake');

/** A gate before which nobody waits. */
export function createGate({ clock, hasRoom, turn, longestSleepMs, onLook, onWait }: GateOptions): Gate {
  // Paused but for the moment in which one is let through.
  const waiting = new PQueue({ autoStart: false });
  let isRunning = false;
  let isWaitTold = false;
  let wakeUp = new AbortController();

  const waiters = new Set<Waiter>();
  let came = 0;

  const letOneThrough = (): void => {
    isWaitTold = false;
    // A set keeps the order in which they came.
    for (const waiter of waiters) {
      if (clock.monoMs() - waiter.sinceMs < AGED_MS) break;
      // Who has given up is no longer in the queue.
      if (!waiter.aged && !waiter.signal.aborted) waiting.setPriority(waiter.id, AGED_PRIORITY);
      waiter.aged = true;
    }
    waiting.start();
    // Whoever went has paused the queue already; this is for when all who waited turn out to have given up.
    waiting.pause();
  };
  const rest = async (waitMs: number): Promise<void> => {
    wakeUp = new AbortController();
    const restMs = Math.min(waitMs, longestSleepMs());
    onLook?.(restMs);
    // Rejects when woken, which is what it is for.
    await clock.sleep(restMs, wakeUp.signal).catch(() => {});
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
    onLook?.(null);
  };

  return {
    async pass(go, priority, signal) {
      came += 1;
      const waiter: Waiter = { id: String(came), sinceMs: clock.monoMs(), signal, aged: false };
      const task = () => {
        waiting.pause();
        waiters.delete(waiter);
        return go();
      };
      const passed = waiting.add(task, { priority, signal, id: waiter.id });
      waiters.add(waiter);
      void run();
      try {
        return await passed;
      } finally {
        waiters.delete(waiter);
        if (waiting.size === 0) wakeUp.abort(AWAKE);
      }
    },
    check: () => void run(),
  };
}
