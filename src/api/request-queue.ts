/**
 * Those who wait for their turn to send a request: one by one they go, when the time has come and while there is room,
 * the higher priority first, then the one that came first. Who has waited long goes before all others, so that a lower
 * lane gets little where the higher ones want everything, but never nothing for ever.
 *
 * Who goes is decided in that moment only, so a late arrival of a higher lane is not kept waiting by a lower one.
 */

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

interface Waiter {
  readonly priority: number;
  readonly sinceMs: number;
  readonly signal: AbortSignal;
  readonly go: () => void;
}

/** Nobody calls a rest off but those who wait. */
const NEVER = new AbortController().signal;

/** A queue in which nobody waits. */
export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  const { clock, hasRoom, turn, longestSleepMs, onLook, onWait } = options;
  /** In the order in which they came. */
  let waiters: Waiter[] = [];
  const wakeUp = createWakeUp(clock);
  let isRunning = false;
  let isWaitReported = false;

  const leave = (waiter: Waiter): void => {
    const at = waiters.indexOf(waiter);
    if (at >= 0) waiters.splice(at, 1);
  };

  const letOneGo = (): void => {
    isWaitReported = false;
    const next = nextOf(waiters, clock.monoMs());
    // All who waited have given up.
    if (next === undefined) waiters = [];
    else {
      leave(next);
      next.go();
    }
  };

  /** Lets those who wait go, until nobody does or there is no more room. */
  const run = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    while (waiters.length > 0 && hasRoom()) {
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
      signal.throwIfAborted();
      const passed = Promise.withResolvers<ReturnType<typeof go>>();
      const waiter: Waiter = {
        priority,
        sinceMs: clock.monoMs(),
        signal,
        go: () => {
          try {
            passed.resolve(go());
          } catch (error) {
            passed.reject(error);
          }
        },
      };
      const giveUp = (): void => {
        passed.reject(signal.reason);
        leave(waiter);
        if (isRunning && waiters.length === 0) wakeUp.notify();
      };
      signal.addEventListener('abort', giveUp, { once: true });
      waiters.push(waiter);
      void run();
      try {
        const result = await passed.promise;
        signal.throwIfAborted();
        return result;
      } finally {
        signal.removeEventListener('abort', giveUp);
      }
    },
    check: () => void run(),
  };
}

/** Who goes next. @param waiters in the order in which they came; some may have given up and not heard of it yet. */
function nextOf(waiters: readonly Waiter[], nowMs: number): Waiter | undefined {
  let first: Waiter | undefined;
  for (const waiter of waiters) {
    if (waiter.signal.aborted) continue;
    if (first === undefined && nowMs - waiter.sinceMs >= AGED_MS) return waiter;
    if (first === undefined || waiter.priority > first.priority) first = waiter;
  }
  return first;
}
