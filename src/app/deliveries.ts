/**
 * Opens the deliveries of a sync. Each delivery waits until the workspace is confirmed, and sends a heartbeat whenever
 * it sleeps, writes or queries.
 */
import { orAborted } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import { beatingClock, type Heartbeats } from '../core/heartbeats.ts';
import type { Clock, Random, Sink } from '../core/ports.ts';
import type { ServerClock } from '../core/server-clock.ts';
import type { Store } from '../core/state/state.ts';
import { type EpochNs, MINUTE_MS } from '../core/time.ts';
import { createDeliverer, type Deliverer } from '../delivery/deliver.ts';
import type { DestinationOptions } from '../delivery/destination.ts';

interface DeliveryParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
  readonly heartbeats: Heartbeats;
  readonly confirmation: WorkspaceConfirmation;
  readonly serverClock: Pick<ServerClock, 'isKnown' | 'latestNs'>;
}

/** Opens one delivery per destination, in their order. */
export function openDeliveries(
  destinations: readonly DestinationOptions[],
  { store, clock, random, observe, heartbeats, confirmation, serverClock }: DeliveryParts,
): Deliverer[] {
  const latestNs = (): EpochNs | null => (serverClock.isKnown() ? serverClock.latestNs() : null);
  return destinations.map((each) => {
    const { to, clock: beating } = watchedDelivery(heartbeats, clock, each);
    return deliverAfter(confirmation, createDeliverer({ store, clock: beating, random, observe, latestNs }, to));
  });
}

/**
 * Delays a delivery until the workspace is confirmed. If the key belongs to another workspace, the program stops before
 * it writes anything, also what an earlier run has left to deliver: the destination may be the other workspace's
 * database. An API that does not answer delays nothing.
 */
function deliverAfter(confirmation: WorkspaceConfirmation, deliverer: Deliverer): Deliverer {
  const run = async (signal: AbortSignal): Promise<void> => {
    await confirmation.wait(signal);
    await deliverer.run(signal);
  };
  return {
    ...deliverer,
    run,
    // The number is known only after the destination was asked for its kind.
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

/** A write that is refused because of its token is sent once more. */
const TRIES = 2;

/** Returns the clock and the destination of a delivery such that every sleep and request sends a heartbeat. */
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
