/**
 * Opens the deliveries of a sync. Each delivery waits until the workspace is confirmed, and sends a heartbeat whenever
 * it sleeps, writes or queries.
 *
 * Warns when a new state meets a database that already has points of the workspace: the names of renamed devices are
 * lost with the old state, so their points would be written a second time under new names. One cheap query before the
 * first write to each database checks this. It is made only if the state was empty when it was opened. Its failure
 * stops nothing (a token may allow only writing), and it delays the first write by a few seconds at most. After the
 * first accepted points no query is made any more, because the points are our own.
 */
import { LONGEST_TIMEOUT_MS } from '../config/schema.ts';
import { waitOrAbort } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import { beatingClock, type Heartbeats } from '../core/heartbeats.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Clock, Random, Sink } from '../core/ports.ts';
import type { ServerClock } from '../core/server-clock.ts';
import type { Store } from '../core/state/state.ts';
import { type EpochNs, SECOND_MS } from '../core/time.ts';
import { createDeliverer, type Deliverer } from '../delivery/deliver.ts';
import { type DestinationOptions, judge, wrapWrites } from '../delivery/destination.ts';
import type { InfluxSinkOptions } from '../influx/sink.ts';

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
 * it writes anything, including undelivered points of an earlier run, because the destination may be the other
 * workspace's database. An API that does not answer delays nothing.
 */
function deliverAfter(confirmation: WorkspaceConfirmation, deliverer: Deliverer): Deliverer {
  const run = async (signal: AbortSignal): Promise<void> => {
    await confirmation.wait(signal);
    await deliverer.run(signal);
  };
  return {
    ...deliverer,
    run,
    // The number becomes known together with the kind of the destination.
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

/** Creates a confirmation that is still missing. */
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
    wait: async (signal) => await waitOrAbort(opened.promise, signal),
  };
}

/** A write that was rejected because of its token is sent again. */
const TRIES = 2;

/** Returns the clock and the destination of a delivery with a heartbeat for every sleep and request. */
function watchedDelivery(
  heartbeats: Heartbeats,
  clock: Clock,
  to: DestinationOptions,
): { readonly clock: Clock; readonly to: DestinationOptions } {
  const pulse = heartbeats.openPulse(`delivery ${to.sink.name}`);
  const withinMs = TRIES * (to.timeoutMs ?? LONGEST_TIMEOUT_MS);
  const beating = async <T>(work: () => Promise<T>): Promise<T> => {
    const end = pulse.begin(withinMs);
    try {
      return await work();
    } finally {
      end();
    }
  };
  const watched = (sink: Sink): Sink => wrapWrites(sink, beating);
  const { kind, sink } = to;
  const served =
    typeof kind === 'object'
      ? {
          kind: {
            request: async (signal: AbortSignal) => await beating(() => kind.request(signal)),
            sinkFor: (known: Parameters<typeof kind.sinkFor>[0]) => watched(kind.sinkFor(known)),
          },
        }
      : {};
  return { clock: beatingClock(clock, pulse), to: { ...to, ...served, sink: watched(sink) } };
}

/** The longest delay of a first write. */
const QUERY_MS = 5 * SECOND_MS;

interface OldPointsParts {
  /** How to connect to each database. */
  readonly databases: readonly InfluxSinkOptions[];
  /** The workspace to search for; `null` if the state was not empty, so that there is nothing to search for. */
  readonly workspace: () => string | null;
  readonly observe: Observe;
}

/** Adds a check for old points before the first write of a destination. */
export function withOldPointCheck(to: DestinationOptions, parts: OldPointsParts): DestinationOptions {
  const { sink, kind } = to;
  if (typeof kind !== 'object') return { ...to, sink: checkingSink(sink, kind ?? 'influxdb', parts) };
  const sinkFor: typeof kind.sinkFor = (known) => checkingSink(kind.sinkFor(known), known, parts);
  return { ...to, kind: { request: kind.request, sinkFor } };
}

function checkingSink(sink: Sink, kind: DestinationKind, parts: OldPointsParts): Sink {
  let isDone = false;
  return wrapWrites(sink, async (write, signal) => {
    if (!isDone) isDone = await checkOldPoints(sink.name, kind, parts, signal);
    const answer = await write();
    if (judge(answer).does !== 'keep') isDone = true;
    return answer;
  });
}

/**
 * Queries a database for points of the workspace.
 *
 * @returns whether the query was answered, so that it is not repeated
 */
async function checkOldPoints(
  name: string,
  kind: DestinationKind,
  { databases, workspace, observe }: OldPointsParts,
  signal: AbortSignal,
): Promise<boolean> {
  const database = databases.find((each) => each.name === name);
  const tag = workspace();
  if (database === undefined || tag === null) return true;
  // Loaded only for this query, and not at each start.
  const { createPointSource } = await import('../influx/point-source.ts');
  const source = createPointSource({ ...database, timeoutMs: Math.min(QUERY_MS, database.timeoutMs) }, kind, tag);
  const found = await source.hasAny(signal);
  if (found === true) observe({ type: 'destination-older', destination: name });
  return typeof found === 'boolean' || found.kind === 'rejected';
}
