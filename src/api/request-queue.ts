/**
 * Those who wait for their turn to send a request: one by one they go, when the time has come and while there is room,
 * the higher priority first, then the one that came first. Who has waited long goes before all others, so that a lower
 * lane gets little where the higher ones want everything, but never nothing for ever.
 *
 * p-queue keeps the order and takes out those who give up; the loop here decides when the next one goes. Who goes is
 * decided in that moment only, so a late arrival of a higher lane is not kept waiting by a lower one.
 */

import PQueue from 'p-queue';
import { createWakeUp } from '../core/async.ts';
import type { Clock } from '../core/ports.ts';
import type { Turn, WaitReason } from '../core/quota.ts';
import { MINUTE_MS } from '../core/time.ts';

/** Timers are no more exact than this; with a large plan, sleeping for less would only cost time. */
export const LEAST_WAIT_MS = 1;

interface RequestQueueOptions {
  readonly clock: Clock;
  /** Whether another one may go at all. */
  readonly hasRoom: () => boolean;
  /** When the next one may go, by the monotonic clock. */
  readonly turn: () => Turn;
  /** Long waits are slept in pieces of this: what is waited for may change, and timers end at 24.8 days. */
  readonly longestSleepMs: () => number;
  /** Called at each look while somebody waits, with the time to the next one at most; with `null` when nobody does. */
  readonly onLook?: ((restMs: number | null) => void) | undefined;
  /** Called once for each one that has to wait. */
  readonly onWait: (waitMs: number, reason: WaitReason) => void;
}

interface RequestQueue {
  /**
   * Waits for a turn and runs `go` in it, at once and as a whole.
   *
   * @returns what `go` returns. Rejects with what it throws, or with the signal's reason.
   */
  pass<T>(go: () => T, priority: number, signal: AbortSignal): Promise<T>;
  /** Looks again: there may be room now. */
  check(): void;
}

/** After so long a wait the priority no longer counts. */
const AGED_MS = MINUTE_MS;
/** Above every lane's priority. */
const AGED_PRIORITY = 1000;

interface Waiter {
  readonly id: string;
  readonly sinceMs: number;
  readonly signal: AbortSignal;
  isAged: boolean;
}

/** Nobody calls a rest off but those who wait. */
const NEVER = new AbortController().signal;

/** A queue in which nobody waits. */
export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  const { clock, hasRoom, turn, longestSleepMs, onLook, onWait } = options;
  // Paused but for the moment in which one goes.
  const queue = new PQueue({ autoStart: false });
  /** In the order in which they came. */
  const waiters = new Set<Waiter>();
  const wakeUp = createWakeUp(clock);
  let came = 0;
  let isRunning = false;
  let isWaitReported = false;

  const letOneGo = (): void => {
    isWaitReported = false;
    for (const waiter of agedOf(waiters, clock.monoMs())) {
      // Who has given up is no longer in the queue.
      if (!waiter.signal.aborted) queue.setPriority(waiter.id, AGED_PRIORITY);
      waiter.isAged = true;
    }
    queue.start();
    // The one that went has paused the queue already; this is for when all who waited turn out to have given up.
    queue.pause();
  };

  /** Lets those who wait go, until nobody does or there is no more room. */
  const run = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    while (queue.size > 0 && hasRoom()) {
      const { atMs, reason } = turn();
      const waitMs = atMs - clock.monoMs();
      if (waitMs < LEAST_WAIT_MS) {
        letOneGo();
        continue;
      }
      if (!isWaitReported) onWait(waitMs, reason);
      isWaitReported = true;
      const restMs = Math.min(waitMs, longestSleepMs());
      onLook?.(restMs);
      await wakeUp.wait(restMs, NEVER);
    }
    // In the same breath as the last look, so that no change falls in between.
    isRunning = false;
    onLook?.(null);
  };

  return {
    async pass(go, priority, signal) {
      came += 1;
      const waiter: Waiter = { id: String(came), sinceMs: clock.monoMs(), signal, isAged: false };
      const task = () => {
        queue.pause();
        waiters.delete(waiter);
        return go();
      };
      const passed = queue.add(task, { priority, signal, id: waiter.id });
      waiters.add(waiter);
      void run();
      try {
        return await passed;
      } finally {
        waiters.delete(waiter);
        if (isRunning && queue.size === 0) wakeUp.notify();
      }
    },
    check: () => void run(),
  };
}

/** Those who have waited so long that they go before all others, and do not yet. A set keeps the order of coming. */
function agedOf(waiters: ReadonlySet<Waiter>, nowMs: number): Waiter[] {
  return [...waiters].filter(({ sinceMs, isAged }) => !isAged && nowMs - sinceMs >= AGED_MS);
}
