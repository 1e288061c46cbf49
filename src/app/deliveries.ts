/**
 * The deliveries of a sync: each is held back until it is sure whose points they are, and shows that it moves where it sleeps,
 * writes and asks.
 */
import { orAborted } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import { beatingClock, type Heartbeats } from '../core/heartbeats.ts';
import type { Clock, Random, Sink } from '../core/ports.ts';
import type { Store } from '../core/state/state.ts';
import { MINUTE_MS } from '../core/time.ts';
import { createDeliverer, type Deliverer } from '../delivery/deliver.ts';
import type { DestinationOptions } from '../delivery/destination.ts';

interface DeliveryParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
  readonly heartbeats: Heartbeats;
  readonly confirmation: WorkspaceConfirmation;
}

/** One delivery for each destination, in their order. */
export function openDeliveries(
  destinations: readonly DestinationOptions[],
  { store, clock, random, observe, heartbeats, confirmation }: DeliveryParts,
): Deliverer[] {
  return destinations.map((each) => {
    const { to, clock: beating } = watchedDelivery(heartbeats, clock, each);
    return deliverAfter(confirmation, createDeliverer({ store, clock: beating, random, observe }, to));
  });
}

/**
 * Another workspace behind the key stops the program before anything is written, also what an earlier run
 * has left to be delivered: it may be on its way to the other workspace's database. An API that does not answer holds
 * nothing up.
 */
function deliverAfter(confirmation: WorkspaceConfirmation, deliverer: Deliverer): Deliverer {
  const run = async (signal: AbortSignal): Promise<void> => {
    await confirmation.wait(signal);
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

interface WorkspaceConfirmation {
  /** Ends all waits without a confirmation, now and later. */
  skip(): void;
  /** Records that the key belongs to the right workspace, and ends all waits. */
  confirm(): void;
  /** How often the workspace was confirmed: each time the account was read. */
  timesConfirmed(): number;
  /** Waits for `confirm` or `skip`. Rejects with the signal's reason when that aborts first. */
  wait(signal: AbortSignal): Promise<void>;
}

/** A workspace that is not confirmed yet. */
export function createWorkspaceConfirmation(): WorkspaceConfirmation {
  const opened = Promise.withResolvers<void>();
  let timesConfirmed = 0;
  return {
    skip: opened.resolve,
    confirm: () => {
      timesConfirmed += 1;
      opened.resolve();
    },
    timesConfirmed: () => timesConfirmed,
    wait: async (signal) => await orAborted(opened.promise, signal),
  };
}

/** The longest that `influx.timeout` allows. */
const LONGEST_TIMEOUT_MS = 10 * MINUTE_MS;

/** A write that is refused for its token is sent once more. */
const TRIES = 2;

/** The clock and the destination of a delivery, whose every sleep and request is a beat of it. */
function watchedDelivery(
  heartbeats: Heartbeats,
  clock: Clock,
  to: DestinationOptions,
): { readonly clock: Clock; readonly to: DestinationOptions } {
  const pulse = heartbeats.pulse(`delivery ${to.sink.name}`);
  const withinMs = TRIES * (to.timeoutMs ?? LONGEST_TIMEOUT_MS);
  const beating = async <T>(work: () => Promise<T>): Promise<T> => {
    pulse.beat(withinMs);
    try {
      return await work();
    } finally {
      pulse.beat();
    }
  };
  const watched = (sink: Sink): Sink => ({
    name: sink.name,
    write: async (lines, signal) => await beating(() => sink.write(lines, signal)),
  });
  const { kind, sink } = to;
  const served =
    typeof kind === 'object'
      ? {
          kind: {
            ask: async (signal: AbortSignal) => await beating(() => kind.ask(signal)),
            sinkFor: (known: Parameters<typeof kind.sinkFor>[0]) => watched(kind.sinkFor(known)),
          },
        }
      : {};
  return { clock: beatingClock(clock, pulse), to: { ...to, ...served, sink: watched(sink) } };
}
