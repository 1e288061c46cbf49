/**
 * The ways in which work waits: a loop, a race of loops, a wake-up, turns, time slices, and several pieces of work at
 * once.
 *
 * Promise: nothing here stays registered with a signal after it has ended. `AbortSignal.any` does, for as long as the
 * longest-lived of its signals, so it is not used with a signal that lives as long as the process.
 */
import type { Clock } from './ports.ts';

export const NEVER_ABORTED: AbortSignal = new AbortController().signal;

/**
 * Closes parts one after the other, even if one of them fails.
 *
 * @throws the error, after all were tried; an AggregateError with the messages of all errors if there are several.
 */
export async function closeAll(...closes: readonly (() => void | Promise<void>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const close of closes) {
    try {
      await close();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1) throw new AggregateError(errors, errors.map(messageOf).join('; '));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A signal that is aborted by itself or along with another one. */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Ends the link. The caller calls this when the work is over, however it ended. */
  release(): void;
}

/** Links a new signal to others: it aborts, with the same reason, when one of them does. */
export function linkAbort(...others: readonly AbortSignal[]): LinkedAbort {
  const own = new AbortController();
  const links = others.map((other) => ({ other, onAbort: (): void => own.abort(other.reason) }));
  for (const { other, onAbort } of links) {
    if (other.aborted) onAbort();
    else other.addEventListener('abort', onAbort, { once: true });
  }
  return {
    signal: own.signal,
    abort: (reason) => own.abort(reason),
    release: () => {
      for (const { other, onAbort } of links) other.removeEventListener('abort', onAbort);
    },
  };
}

/**
 * Runs functions side by side until the first of them ends; then stops the others and waits for them.
 *
 * @param reason the abort reason for the others if the first has returned; if it threw, they are aborted with its
 * error.
 * @returns the result of the first.
 * @throws the error of the first.
 */
export async function runUntilFirst<T>(
  works: readonly ((signal: AbortSignal) => Promise<T>)[],
  { signal, reason }: { readonly signal: AbortSignal; readonly reason: string },
): Promise<T> {
  const link = linkAbort(signal);
  const running = works.map((work) => work(link.signal));
  try {
    return await Promise.race(running);
  } catch (error) {
    link.abort(error);
    throw error;
  } finally {
    link.release();
    link.abort(new Error(reason));
    await Promise.allSettled(running);
  }
}

/** Repeats a step until the signal aborts or a step throws. Each step returns the pause after it, in ms. */
export async function repeat(
  clock: Pick<Clock, 'sleep'>,
  step: (signal: AbortSignal) => number | Promise<number>,
  signal: AbortSignal,
): Promise<never> {
  for (;;) await clock.sleep(await step(signal), signal);
}

/** The pause between checks of a wait: the checks notice the end of the wait late by at most a twentieth of it. */
export function checkPauseMs(waitedMs: number, leastMs: number): number {
  return Math.max(leastMs, waitedMs * 0.05);
}

/** The pauses between the checks of `pollUntil`. */
interface PollRate {
  /** The pause between two checks, in ms; a function returns it after each check. */
  readonly everyMs: number | (() => number);
  /** Ends a pause early when it is notified. */
  readonly wakeUp?: WakeUp;
}

/** The fraction of the time that checks may take: after a long check the pause is longer. */
const CHECK_TIME_SHARE = 0.05;

/**
 * Checks repeatedly until a check returns a result. The checks take at most a twentieth of the time.
 *
 * @param check returns its result; `null` while there is none.
 * @returns the result of the last check.
 * @throws errors of a check; the signal's reason when that aborts first.
 */
export async function pollUntil<T>(
  clock: Pick<Clock, 'monoMs' | 'sleep'>,
  check: () => T | null,
  { everyMs, wakeUp }: PollRate,
  signal: AbortSignal,
): Promise<T> {
  for (;;) {
    const beganMs = clock.monoMs();
    const found = check();
    if (found !== null) return found;
    const restMs = restAfter(clock.monoMs() - beganMs);
    const nextMs = typeof everyMs === 'number' ? everyMs : everyMs();
    if (wakeUp === undefined) await clock.sleep(Math.max(nextMs, restMs), signal);
    else {
      if (restMs > 0) await clock.sleep(restMs, signal);
      await wakeUp.wait(nextMs, signal);
    }
  }
}

/** How long to pause after a check of this length, in ms. */
export function restAfter(tookMs: number): number {
  return tookMs / CHECK_TIME_SHARE;
}

/** A part of long work that blocks the process: signals, timers and requests have to wait until it pauses. */
interface TimeSlice {
  /** Whether the work should pause now. */
  isOver(): boolean;
  /** Gives other work a turn; then the next slice begins. Rejects with the signal's reason when that aborts. */
  pause(signal?: AbortSignal): Promise<void>;
}

/** Begins the first time slice of a piece of work. Each slice may take `workMs`, each pause takes `pauseMs`. */
export function beginTimeSlice(
  { monoMs, sleep }: Pick<Clock, 'monoMs' | 'sleep'>,
  { workMs, pauseMs }: { readonly workMs: number; readonly pauseMs: number },
): TimeSlice {
  let beganMs = monoMs();
  return {
    isOver: () => monoMs() - beganMs >= workMs,
    pause: async (signal) => {
      await sleep(pauseMs, signal);
      beganMs = monoMs();
    },
  };
}

/** Pieces of work that run side by side, each under its own name, started by a loop. */
export interface WorkGroup<K> {
  /** The names of the running tasks. */
  readonly underWay: ReadonlyMap<K, unknown>;
  /**
   * Aborts when a piece of work or the loop fails, or when the outer signal aborts. The loop waits with this signal
   * too.
   */
  readonly signal: AbortSignal;
  /** Starts a piece of work with the signal of the group. Its end wakes the loop. */
  start(name: K, work: (signal: AbortSignal) => Promise<void>): void;
}

/**
 * Runs a loop that starts pieces of work, until the loop or a piece fails; then stops the others and waits for them.
 *
 * @param wakeUp notified at the end of each piece.
 * @throws the first failure; the outer signal's reason if that signal aborts first.
 */
export async function runWorkGroup<K>(
  { notify }: Pick<WakeUp, 'notify'>,
  loop: (group: WorkGroup<K>) => Promise<never>,
  outer: AbortSignal,
): Promise<never> {
  const underWay = new Map<K, Promise<void>>();
  const link = linkAbort(outer);
  const { signal, abort } = link;
  const start = (name: K, work: (signal: AbortSignal) => Promise<void>): void => {
    const ended = work(signal)
      .catch(abort)
      .finally(() => {
        underWay.delete(name);
        notify();
      });
    underWay.set(name, ended);
  };
  try {
    return await loop({ underWay, signal, start });
  } catch (error) {
    abort(error);
    throw signal.reason;
  } finally {
    link.release();
    await Promise.allSettled(underWay.values());
  }
}

/** Lets a loop wait until there is something to do or a time limit has passed, without polling. */
export interface WakeUp {
  /** Wakes the waiting loop. If no loop waits, the next wait ends at once. */
  notify(): void;
  /** Resolves when it is notified or after `maxMs`; rejects with the signal's reason when that aborts. */
  wait(maxMs: number, signal: AbortSignal): Promise<void>;
}

/** Created once: an error with its stack costs more than everything else in a wake-up. */
const AWAKE = new Error('awake');

/** Creates a wake-up that has not been notified yet. */
export function createWakeUp(clock: Clock): WakeUp {
  let isNotified = false;
  let wake = (): void => {};
  return {
    notify: () => {
      isNotified = true;
      wake();
    },
    wait: async (maxMs, signal) => {
      signal.throwIfAborted();
      const abortSleep = linkAbort(signal);
      wake = () => abortSleep.abort(AWAKE);
      try {
        if (!isNotified) await clock.sleep(maxMs, abortSleep.signal);
      } catch (error) {
        if (!abortSleep.signal.aborted) throw error;
      } finally {
        abortSleep.release();
        wake = () => {};
        isNotified = false;
      }
      signal.throwIfAborted();
    },
  };
}

/** Waits for something that cannot be cancelled. Rejects with the signal's reason when that aborts first. */
export async function waitOrAbort<T>(waitedFor: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([waitedFor, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * Calls `work` when no other call with the same name is running. Rejects with the signal's reason when that aborts
 * first.
 */
export type Turns = <T>(name: string, work: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** Creates turns with nothing running. */
export function createTurns(): Turns {
  const queues = new Map<string, Promise<void>>();
  return async (name, work, signal) => {
    const before = queues.get(name) ?? Promise.resolve();
    const own = Promise.withResolvers<void>();
    const queue = before.then(() => own.promise);
    queues.set(name, queue);
    try {
      await waitOrAbort(before, signal);
      return await work();
    } finally {
      own.resolve();
      if (queues.get(name) === queue) queues.delete(name);
    }
  };
}
