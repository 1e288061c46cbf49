/**
 * The queue of requests that wait for their turn. Requests leave one by one, when their time has come and while a place
 * is free: higher priority first, then first come, first served. A request that has waited for a minute goes before all
 * others, so that the lower lanes get some requests even while the higher ones could use all of them.
 *
 * p-queue keeps the order and removes requests whose signal aborts. The loop here decides when the next one leaves. It
 * picks the request only at that moment, so a late arrival of a higher lane does not wait behind a lower one.
 */

import PQueue from 'p-queue';
import { createWakeUp, NEVER_ABORTED, type WakeUp } from '../core/async.ts';
import type { Clock } from '../core/ports.ts';
import type { Turn, WaitReason } from '../core/quota.ts';
import { MINUTE_MS } from '../core/time.ts';

/** The shortest wait that is slept, in ms. Timers are not more exact than this. */
export const LEAST_WAIT_MS = 1;

interface RequestQueueOptions {
  readonly clock: Clock;
  /** Whether another request may be sent at all. */
  readonly hasRoom: () => boolean;
  /** Called before each call of `turn`, to update the data that `turn` reads. */
  readonly beforeTurn?: () => void;
  /** When the next request may be sent, by the monotonic clock. */
  readonly turn: () => Turn;
  /**
   * The longest single sleep after a wait of this length: the turn may change in the meantime, and timers end at 24.8
   * days.
   */
  readonly longestSleepMs: (waitedMs: number) => number;
  /** Called before each sleep with its length, and with `null` when the loop ends. */
  readonly onCheck?: ((sleepMs: number | null) => void) | undefined;
  /** Called once for each request that has to wait. */
  readonly onWait: (waitMs: number, reason: WaitReason) => void;
}

/** A request that waits until the rate limiter lets it through. */
interface Waiter {
  readonly id: string;
  readonly sinceMs: number;
  readonly signal: AbortSignal;
  isAged: boolean;
}

/** The queue and its loop. The functions below change it in place. */
export interface RequestQueue {
  readonly options: RequestQueueOptions;
  /** Paused, except at the moment in which one request leaves. */
  readonly order: PQueue;
  /** The waiting requests in the order of their arrival. */
  readonly waiters: Set<Waiter>;
  readonly wakeUp: WakeUp;
  arrivals: number;
  isRunning: boolean;
  isWaitReported: boolean;
}

/** A request that has waited for this long goes first, whatever its priority. */
const AGED_MS = MINUTE_MS;
/** The priority of a request that waits for `AGED_MS`: above every lane's. */
const AGED_PRIORITY = 1000;

/** Creates a queue in which no request waits. */
export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  return {
    options,
    order: new PQueue({ autoStart: false }),
    waiters: new Set(),
    wakeUp: createWakeUp(options.clock),
    arrivals: 0,
    isRunning: false,
    isWaitReported: false,
  };
}

/**
 * Waits for a turn and calls `go` in it, without a pause in between.
 *
 * @returns the result of `go`
 * @throws the error of `go`, or the signal's reason when that aborts first
 */
export async function passQueue<T>(
  queue: RequestQueue,
  go: () => T,
  priority: number,
  signal: AbortSignal,
): Promise<T> {
  const { order, waiters, options } = queue;
  queue.arrivals += 1;
  const waiter: Waiter = { id: String(queue.arrivals), sinceMs: options.clock.monoMs(), signal, isAged: false };
  const task = () => {
    order.pause();
    waiters.delete(waiter);
    return go();
  };
  const passed = order.add(task, { priority, signal, id: waiter.id });
  waiters.add(waiter);
  void runQueue(queue);
  try {
    return await passed;
  } finally {
    waiters.delete(waiter);
    if (queue.isRunning && order.size === 0) queue.wakeUp.notify();
  }
}

/**
 * Lets requests leave until none waits or no place is free. Does nothing if it is already running. Called again when a
 * place may be free.
 */
export async function runQueue(queue: RequestQueue): Promise<void> {
  if (queue.isRunning) return;
  const { order, wakeUp, options } = queue;
  const { clock, hasRoom, beforeTurn, turn, longestSleepMs, onCheck, onWait } = options;
  queue.isRunning = true;
  let sinceMs = clock.monoMs();
  while (order.size > 0 && hasRoom()) {
    beforeTurn?.();
    const { atMs, reason } = turn();
    const waitMs = atMs - clock.monoMs();
    if (waitMs < LEAST_WAIT_MS) {
      letOneGo(queue);
      sinceMs = clock.monoMs();
      continue;
    }
    if (!queue.isWaitReported) onWait(waitMs, reason);
    queue.isWaitReported = true;
    const sleepMs = Math.min(waitMs, longestSleepMs(clock.monoMs() - sinceMs));
    onCheck?.(sleepMs);
    // The sleeps of the loop end by wake-up, never by abort.
    await wakeUp.wait(sleepMs, NEVER_ABORTED);
  }
  // Synchronously after the last check of the loop, so that no change is missed in between.
  queue.isRunning = false;
  onCheck?.(null);
}

function letOneGo(queue: RequestQueue): void {
  const { order, waiters, options } = queue;
  queue.isWaitReported = false;
  for (const waiter of newlyAged(waiters, options.clock.monoMs())) {
    // An aborted request has left the queue already.
    if (!waiter.signal.aborted) order.setPriority(waiter.id, AGED_PRIORITY);
    waiter.isAged = true;
  }
  order.start();
  // A request that leaves has paused the queue itself. This covers the case that all of them are aborted.
  order.pause();
}

/** The requests that have become aged since the last call, in the order of their arrival. */
function newlyAged(waiters: ReadonlySet<Waiter>, nowMs: number): Waiter[] {
  return [...waiters].filter(({ sinceMs, isAged }) => !isAged && nowMs - sinceMs >= AGED_MS);
}
