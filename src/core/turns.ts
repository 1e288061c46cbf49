/**
 * Turns: work that must not overlap, one after the other in the order of coming. Two listings of one thing under way at
 * the same time could be taken in the wrong way round: an alert would go back to what it was.
 */

/** Does `work` once nobody else is at work under the same name. Rejects with the signal's reason when that aborts first. */
export type Turns = <T>(name: string, work: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** Nobody is at work. */
export function createTurns(): Turns {
  const queues = new Map<string, Promise<void>>();
  return async (name, work, signal) => {
    const before = queues.get(name) ?? Promise.resolve();
    const own = Promise.withResolvers<void>();
    const queue = before.then(() => own.promise);
    queues.set(name, queue);
    try {
      await orAborted(before, signal);
      return await work();
    } finally {
      own.resolve();
      if (queues.get(name) === queue) queues.delete(name);
    }
  };
}

/** Waits for something that cannot be called off. Rejects with the signal's reason when that aborts first. */
export async function orAborted<T>(waitedFor: Promise<T>, signal: AbortSignal): Promise<T> {
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
