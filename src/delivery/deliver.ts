/**
 * Delivers the log to a destination in batches: live points before history.
 *
 * Promise: a position moves past a line only after the destination has answered, and only if the destination has
 * accepted the line, the line is in quarantine with the destination's words, the line is older than the destination
 * keeps (missing points), or the kind of destination cannot store it. If a destination does not answer, its delivery
 * waits; it makes no request to the API and loses nothing.
 */

import { StateFullError } from '../core/archive-room.ts';
import { createWakeUp, repeat } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import type { Clock, Random } from '../core/ports.ts';
import { LOG_LANES, type LogBatch, type LogLane, type LogPosition, positionAfter } from '../core/state/log.ts';
import type { Store } from '../core/state/state.ts';
import { StaleStateError } from '../core/state/telemetry.ts';
import { type EpochNs, MINUTE_MS } from '../core/time.ts';
import {
  type Blocked,
  type Destination,
  type DestinationOptions,
  openDestination,
  type Served,
} from './destination.ts';
import {
  type BatchSize,
  type ControlLines,
  createBatchSize,
  createControlLines,
  createPatience,
  type Sent,
  sendBatch,
  sendKept,
} from './send-batch.ts';

export interface Deliverer {
  readonly name: string;
  /** The number of the destination in the state. It changes at most once, when the destination reports its kind. */
  readonly destinationId: number;
  /** Wakes the delivery because there may be new lines. */
  notify(): void;
  /**
   * Delivers until the signal aborts.
   *
   * @throws the signal's reason, or an error of the state; never an error of the destination
   */
  run(signal: AbortSignal): Promise<void>;
  /** How many lines are not acknowledged yet. */
  pendingLines(): number;
  deliveredLines(): number;
  /** Why the delivery is blocked; `null` if it is not. */
  blockedReason(): string | null;
  /** How long until the next attempt of a blocked delivery, in ms: 0 while it is made; `null` if it is not blocked. */
  nextAttemptInMs(): number | null;
  /**
   * Sends lines of the log again, by the same rules, without recording anything.
   *
   * @returns the result per line, or why nothing can be sent
   */
  resend(lines: readonly string[], signal: AbortSignal): Promise<Sent | Blocked>;
}

export interface DelivererParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
  /** The latest time that a point may have; see `sendBatch`. */
  readonly latestNs?: (() => EpochNs | null) | undefined;
}

/** The size of a batch in characters: about 5,000 lines, as InfluxDB advises. Larger batches are not faster. */
export const BATCH_LENGTH = 512 * 1024;

/** How long to wait for more lines after a small page, so that lines leave in large batches. */
const LINGER_MS = 500;

/** How long a delivery rests if nothing wakes it. */
const REST_MS = MINUTE_MS;

/** The state of a delivery. */
interface Delivery extends DelivererParts {
  readonly name: string;
  readonly destination: Destination;
  readonly controls: ControlLines;
  readonly batchSize: BatchSize;
  delivered: number;
  /** How many lines of the last batch wait for another attempt. */
  withheld: number;
}

/** Opens the destination in the state and creates its delivery. */
export function createDeliverer(parts: DelivererParts, options: DestinationOptions): Deliverer {
  const { store, clock } = parts;
  const { name } = options.sink;
  const destination = openDestination(parts, options);
  const controls = createControlLines();
  const delivery: Delivery = {
    ...parts,
    name,
    destination,
    controls,
    batchSize: createBatchSize(options.batchLines),
    delivered: 0,
    withheld: 0,
  };
  const patience = createPatience(name, parts);
  const wakeUp = createWakeUp(clock);
  /**
   * Delivers until no line is left or the delivery is blocked.
   *
   * @returns how long to rest, in ms
   */
  const deliverAll = async (signal: AbortSignal): Promise<number> => {
    let outcome = await deliverOrBlock(delivery, signal);
    for (; outcome === 'moved'; outcome = await deliverOrBlock(delivery, signal)) {
      patience.moved();
      signal.throwIfAborted();
    }
    if (outcome !== 'idle') return patience.blocked(outcome, delivery.withheld);
    patience.moved();
    await wakeUp.wait(REST_MS, signal);
    return LINGER_MS;
  };
  return {
    name,
    get destinationId() {
      return destination.id();
    },
    notify: wakeUp.notify,
    run: async (signal) => await repeat(clock, deliverAll, signal),
    pendingLines: () => store.backlog(destination.id()).pendingLines,
    deliveredLines: () => delivery.delivered,
    blockedReason: patience.blockedReason,
    nextAttemptInMs: patience.nextAttemptInMs,
    resend: async (lines, signal) => {
      const served = await destination.open(signal);
      return 'sink' in served ? await sendBatch(delivery, served, lines, signal) : served;
    },
  };
}

/**
 * The result of an attempt: why the rest of a batch is blocked, that the position has moved, or that there was nothing
 * to send.
 */
type Outcome = Blocked | 'moved' | 'idle';

/**
 * Delivers the next batch. If the state cannot record the result, the delivery is blocked and sends the same lines
 * again.
 */
async function deliverOrBlock(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
  try {
    return await deliverNext(delivery, signal);
  } catch (error) {
    // The destination was skipped meanwhile, which has moved its position.
    if (error instanceof StaleStateError) return 'moved';
    if (error instanceof StateFullError) return { words: error.message, hint: '', needsPerson: false, waitMs: null };
    throw error;
  }
}

/** Delivers the next batch of the first lane that has one. */
async function deliverNext(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
  const { store, destination } = delivery;
  delivery.withheld = 0;
  const served = await destination.open(signal);
  if (!('sink' in served)) return served;
  const id = destination.id();
  for (const lane of LOG_LANES) {
    const from = store.position(id, lane);
    const batch = store.read(lane, from, { lines: delivery.batchSize.lines(), bytes: BATCH_LENGTH });
    if (batch.count > 0) return (await deliver(delivery, { served, lane, from, batch }, signal)) ?? 'moved';
  }
  return 'idle';
}

/**
 * Delivers a batch and records the result.
 *
 * @returns why the rest of the batch is blocked; `null` if the position has moved
 */
async function deliver(
  delivery: Delivery,
  { served, lane, from, batch }: { served: Served; lane: LogLane; from: LogPosition; batch: LogBatch },
  signal: AbortSignal,
): Promise<Blocked | null> {
  const { store, clock, destination } = delivery;
  const startedMs = clock.monoMs();
  delivery.withheld = batch.count;
  const sent = await sendKept(delivery, served, batch, signal);
  const { resolution, rejected, missing } = sent;
  const { tooLarge, resolved } = resolution;
  delivery.batchSize.sent({ lines: batch.count, tooLarge, isWhole: resolved === batch.count });
  if (resolution.resolved > 0) {
    const to = positionAfter(batch, from, resolution.resolved);
    const destinationId = destination.id();
    store.acknowledge({ destinationId, lane, from, to, refused: rejected, missing, atMs: clock.nowMs() });
    delivery.delivered += resolution.acceptedLines;
    report(delivery, sent, clock.monoMs() - startedMs);
  }
  delivery.withheld = batch.count - resolution.resolved;
  return resolution.blocked;
}

function report({ name, observe }: Delivery, { resolution, rejected, missing }: Sent, durationMs: number): void {
  observe({ type: 'lines-delivered', destination: name, lines: resolution.acceptedLines, durationMs });
  if (rejected.length > 0) {
    const words = rejected[0]?.words ?? '';
    observe({ type: 'lines-quarantined', destination: name, lines: rejected.length, words });
  }
  if (missing.length > 0) {
    const lines = missing.reduce((sum, { points }) => sum + points, 0);
    observe({ type: 'lines-beyond-retention', destination: name, lines });
  }
}
