/**
 * Holds the deliveries back until it is sure whose points they are.
 */
import type { Deliverer } from '../delivery/deliver.ts';

/**
 * Another workspace behind the key stops the program before anything is written, also what an earlier run
 * has left to be delivered: it may be on its way to the other workspace's database. An API that does not answer holds
 * nothing up.
 */
export function deliverBehind(gate: WorkspaceGate, deliverer: Deliverer): Deliverer {
  const run = async (signal: AbortSignal): Promise<void> => {
    await gate.pass(signal);
    await deliverer.run(signal);
  };
  return {
    ...deliverer,
    run,
    // Known only once the destination was asked what it is.
    get destinationId() {
      return deliverer.destinationId;
    },
  };
}

interface WorkspaceGate {
  /** Lets pass whoever waits, and from now on everybody. */
  open(): void;
  /** Rejects with the signal's reason when that aborts first. */
  pass(signal: AbortSignal): Promise<void>;
}

/** A closed gate. */
export function createWorkspaceGate(): WorkspaceGate {
  const opened = Promise.withResolvers<void>();
  return {
    open: opened.resolve,
    pass: async (signal) => {
      signal.throwIfAborted();
      const aborted = Promise.withResolvers<never>();
      const onAbort = (): void => aborted.reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      await Promise.race([opened.promise, aborted.promise]).finally(() => signal.removeEventListener('abort', onAbort));
    },
  };
}
