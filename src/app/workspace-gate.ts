/**
 * Holds the deliveries back until it is sure whose points they are.
 */
import { orAborted } from '../core/async.ts';
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
  /** Takes in that the workspace behind the key was found to be the right one, and opens. */
  known(): void;
  /** How often that was found: each time the account was read. */
  timesKnown(): number;
  /** Rejects with the signal's reason when that aborts first. */
  pass(signal: AbortSignal): Promise<void>;
}

/** A closed gate. */
export function createWorkspaceGate(): WorkspaceGate {
  const opened = Promise.withResolvers<void>();
  let timesKnown = 0;
  return {
    open: opened.resolve,
    known: () => {
      timesKnown += 1;
      opened.resolve();
    },
    timesKnown: () => timesKnown,
    pass: async (signal) => await orAborted(opened.promise, signal),
  };
}
