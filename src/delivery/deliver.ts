/**
 * Delivery: carries the log to a destination, live points before history, batch after batch.
 *
 * Promise: a position moves only past lines that the destination has accepted, that are in quarantine with its words,
 * that it keeps no more (its missing points) or that its kind cannot hold, and only after its answer. A destination that
 * does not answer is waited for; nothing is asked of the API meanwhile and nothing is lost.
 */

import { StateFullError } from '../core/archive-room.ts';
import { createWakeUp, repeat } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import type { Clock, Random } from '../core/ports.ts';
import { LOG_LANES, type LogBatch, type LogLane, type LogPosition, positionAfter } from '../core/state/log.ts';
import type { Store } from '../core/state/state.ts';
import { StaleStateError } from '../core/state/telemetry.ts';
import { MINUTE_MS } from '../core/time.ts';
import {
  type Blocked,
  type Destination,
  type DestinationOptions,
  openDestination,
  type Served,
} from './destination.ts';
import { type ControlLines, createControlLines, createPatience, type Sent, sendBatch } from './send-batch.ts';

export interface Deliverer {
  readonly name: string;
  /** Its number in the state. It can change once, when the destination says what it is. */
  readonly destinationId: number;
  /** Says that there may be something new. */
  notify(): void;
  /** Delivers until the signal aborts; rejects with its reason, or with what is not the destination's fault (the state). */
  run(signal: AbortSignal): Promise<void>;
  /** Lines not acknowledged yet. */
  pendingLines(): number;
  deliveredLines(): number;
  /** Why nothing moves; `null` while it does. */
  held(): string | null;
  /**
   * Sends lines of the log once more, beside its course, by the same rules. @returns what became of them, or why nothing
   * can be sent; nothing is recorded of it.
   */
  resend(lines: readonly string[], signal: AbortSignal): Promise<Sent | Blocked>;
}

export interface DelivererParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

/** A batch's size in characters: some 5,000 lines, which InfluxDB advises; larger ones bring nothing but garbage. */
export const BATCH_LENGTH = 512 * 1024;

/** How long small pages are gathered, so that they leave in large batches. */
const LINGER_MS = 500;

/** How long a delivery rests without being woken up. */
const REST_MS = MINUTE_MS;

/** A delivery under way. */
interface Delivery extends DelivererParts {
  readonly name: string;
  readonly destination: Destination;
  readonly controls: ControlLines;
  /** Lines in one request at most. */
  maxLines: number;
  delivered: number;
  /** Lines of the last batch that wait for another try. */
  kept: number;
}

/** Opens the destination in the state and delivers to it. */
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
    maxLines: options.batchLines,
    delivered: 0,
    kept: 0,
  };
  const patience = createPatience(name, parts);
  const wakeUp = createWakeUp(clock);
  /** Delivers until nothing is left and there may be something new, or the rest is blocked. @returns how long to rest. */
  const deliverAll = async (signal: AbortSignal): Promise<number> => {
    let outcome = await deliverOrBlock(delivery, signal);
    for (; outcome === 'moved'; outcome = await deliverOrBlock(delivery, signal)) {
      patience.moved();
      signal.throwIfAborted();
    }
    if (outcome !== 'idle') return patience.blocked(outcome, delivery.kept);
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
    held: patience.held,
    resend: async (lines, signal) => {
      const served = await destination.open(signal);
      return 'sink' in served ? await sendBatch({ store, clock, controls }, served, lines, signal) : served;
    },
  };
}

/** What came of a try: why the rest of a batch is kept, that it moved, or that there was nothing to send. */
type Outcome = Blocked | 'moved' | 'idle';

/** What the state says against recording a delivery: nothing is lost by it, the same lines are sent again. */
async function deliverOrBlock(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
  try {
    return await deliverNext(delivery, signal);
  } catch (error) {
    // The destination was skipped meanwhile: the position has moved.
    if (error instanceof StaleStateError) return 'moved';
    if (error instanceof StateFullError) return { words: error.message, hint: '', waitMs: null };
    throw error;
  }
}

/** Delivers the next batch, of the first lane that has one. */
async function deliverNext(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
  const { store, destination } = delivery;
  delivery.kept = 0;
  const served = await destination.open(signal);
  if (!('sink' in served)) return served;
  const id = destination.id();
  for (const lane of LOG_LANES) {
    const from = store.position(id, lane);
    const batch = store.read(lane, from, { lines: delivery.maxLines, bytes: BATCH_LENGTH });
    if (batch.lines.length > 0) return (await deliver(delivery, { served, lane, from, batch }, signal)) ?? 'moved';
  }
  return 'idle';
}

/** Delivers a batch and records what became of it. @returns why the rest of it is kept, `null` where it moved. */
async function deliver(
  delivery: Delivery,
  { served, lane, from, batch }: { served: Served; lane: LogLane; from: LogPosition; batch: LogBatch },
  signal: AbortSignal,
): Promise<Blocked | null> {
  const { store, clock, destination } = delivery;
  const startedMs = clock.monoMs();
  delivery.kept = batch.lines.length;
  const sent = await sendBatch(delivery, served, batch.lines, signal);
  const { resolution, rejected, missing } = sent;
  // What was too large once would be again: smaller batches spare the requests that find that out.
  if (resolution.tooLarge) delivery.maxLines = Math.max(1, Math.floor(batch.lines.length / 2));
  if (resolution.resolved > 0) {
    const to = positionAfter(batch, from, resolution.resolved);
    const destinationId = destination.id();
    store.acknowledge({ destinationId, lane, from, to, refused: rejected, missing, atMs: clock.nowMs() });
    delivery.delivered += resolution.acceptedLines;
    report(delivery, sent, clock.monoMs() - startedMs);
  }
  delivery.kept = batch.lines.length - resolution.resolved;
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
