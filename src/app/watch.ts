/**
 * Signs of life of a running sync, taken where its loops touch the world: a delivery where it sleeps, writes and asks, the
 * requests where they are booked, answered and waited for.
 */
import { beatingClock, type Heartbeats, type Pulse } from '../core/heartbeats.ts';
import type { Clock, Sink } from '../core/ports.ts';
import { MINUTE_MS } from '../core/time.ts';
import type { DestinationOptions } from '../delivery/destination.ts';

/** The longest that `api.timeout` and `influx.timeout` allow. */
const LONGEST_TIMEOUT_MS = 10 * MINUTE_MS;

/** A write that is refused for its token is sent once more. */
const TRIES = 2;

/** The clock and the destination of a delivery, whose every sleep and request is a beat of it. */
export function watchedDelivery(
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

/** The requests to the API, as their gate, their bookings and their answers show them. */
interface WatchedRequests {
  readonly onLook: (restMs: number | null) => void;
  readonly onBooked: () => void;
  readonly onDone: () => void;
  readonly onRetry: (waitMs: number) => void;
}

/** @param pulse of the loop that makes the requests. @param timeoutMs how long one may take. */
export function watchRequests(heartbeats: Heartbeats, pulse: Pulse, timeoutMs = LONGEST_TIMEOUT_MS): WatchedRequests {
  const gate = heartbeats.pulse('allowance gate');
  return {
    onLook: (restMs) => {
      if (restMs === null) return gate.rest();
      gate.beat(restMs);
      pulse.sign(restMs);
    },
    onBooked: () => pulse.sign(timeoutMs),
    onDone: () => pulse.sign(),
    onRetry: (waitMs) => pulse.sign(waitMs),
  };
}
