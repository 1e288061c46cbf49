/**
 * Delivery: carries the log to a destination, live points before history, batch after batch.
 *
 * Promise: a position moves only past lines that the destination has accepted, that are in quarantine with its words,
 * that it keeps no more (its lack-set) or that its kind cannot hold, and only after its answer. A destination that does
 * not answer is waited for; nothing is asked of the API meanwhile and nothing is lost.
 */

import { StateFullError } from '../core/archive-room.ts';
import { createWakeUp } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import type { Clock, Random } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import { LOG_LANES, positionAfter } from '../core/state/log.ts';
import type { Store } from '../core/state/state.ts';
import { StaleStateError } from '../core/state/telemetry.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { createBatchSender, type Sent } from './batch-sender.ts';
import { type DestinationOptions, openDestination } from './destination.ts';
import type { Hold } from './settle.ts';

export type { DestinationOptions } from './destination.ts';

export interface Deliverer {
  readonly name: string;
  /** Its number in the state. It can change once, when the destination says what it is. */
  readonly destinationId: number;
  /** Says that there may be something new. */
  notify(): void;
  /** Delivers until told to stop; rejects only with what is not the destination's fault (the state). */
  run(signal: AbortSignal): Promise<void>;
  /** Lines not settled yet. */
  pendingLines(): number;
  deliveredLines(): number;
  /** Why nothing moves; `null` while it does. */
  held(): string | null;
  /**
   * Sends lines of the log once more, beside its course, by the same rules. @returns what became of them, or why nothing
   * can be sent; nothing is recorded of it.
   */
  resend(lines: readonly string[], signal: AbortSignal): Promise<Sent | Hold>;
}

/** A batch's size in characters: some 5,000 lines, which InfluxDB advises; larger ones bring nothing but garbage. */
const BATCH_BYTES = 512 * 1024;

/** How long small pages are gathered, so that they leave in large batches. */
const LINGER_MS = 500;

/** How long a delivery rests without being rung for. */
const REST_MS = MINUTE_MS;

const BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };

/** Opens the destination in the state and delivers to it. */
export function createDeliverer(
  { store, clock, random, observe }: { store: Store; clock: Clock; random: Random; observe: Observe },
  options: DestinationOptions,
): Deliverer {
  const { name } = options.sink;
  const destination = openDestination({ store, observe }, options);
  const wakeUp = createWakeUp(clock);
  const sender = createBatchSender({ store, clock });
  /** `kept`: lines of the last batch that wait for another try. */
  const status = { delivered: 0, failures: 0, kept: 0, held: null as string | null };
  let maxLines = options.batchLines;

  /** Delivers one batch. @returns why the rest of it is kept, `null` where it moved, 'idle' where there was none. */
  const deliverOnce = async (signal: AbortSignal): Promise<Hold | null | 'idle'> => {
    status.kept = 0;
    const served = await destination.open(signal);
    if (!('sink' in served)) return served;
    const id = destination.id();
    for (const lane of LOG_LANES) {
      const from = store.position(id, lane);
      const batch = store.read(lane, from, { lines: maxLines, bytes: BATCH_BYTES });
      if (batch.lines.length === 0) continue;
      const startedMs = clock.monoMs();
      status.kept = batch.lines.length;
      const { settlement, refused, lacks: missing } = await sender(served, batch.lines, signal);
      // What was too large once would be again: smaller batches spare the requests that find that out.
      if (settlement.tooLarge) maxLines = Math.max(1, Math.floor(batch.lines.length / 2));
      if (settlement.settled > 0) {
        const to = positionAfter(batch, from, settlement.settled);
        store.acknowledge({ destinationId: id, lane, from, to, refused, missing, atMs: clock.nowMs() });
        status.delivered += settlement.acceptedLines;
        tell({ settlement, refused, lacks: missing }, clock.monoMs() - startedMs);
      }
      status.kept = batch.lines.length - settlement.settled;
      return settlement.hold;
    }
    return 'idle';
  };

  const restAfter = ({ words, hint, waitMs: asked }: Hold): number => {
    status.failures += 1;
    status.held = words;
    const waitMs = backoffMs({ failures: status.failures, policy: BACKOFF, random, askedMs: asked ?? 0 });
    observe({ type: 'destination-held', destination: name, lines: status.kept, words, hint, waitMs });
    return waitMs;
  };

  const tell = ({ settlement, refused, lacks }: Sent, durationMs: number): void => {
    observe({ type: 'lines-delivered', destination: name, lines: settlement.acceptedLines, durationMs });
    if (refused.length > 0) {
      const words = refused[0]?.words ?? '';
      observe({ type: 'lines-quarantined', destination: name, lines: refused.length, words });
    }
    if (lacks.length > 0) {
      const lines = lacks.reduce((sum, { points }) => sum + points, 0);
      observe({ type: 'lines-beyond-retention', destination: name, lines });
    }
  };

  const released = (): void => {
    if (status.held !== null) observe({ type: 'destination-moving', destination: name });
    status.held = null;
    status.failures = 0;
  };

  return {
    name,
    get destinationId() {
      return destination.id();
    },
    notify: wakeUp.notify,
    run: async (signal) => {
      while (!signal.aborted) {
        const outcome = await deliverOrHold(() => deliverOnce(signal));
        if (outcome !== null && outcome !== 'idle') {
          await clock.sleep(restAfter(outcome), signal);
          continue;
        }
        released();
        if (outcome === null) continue;
        await wakeUp.wait(REST_MS, signal);
        await clock.sleep(LINGER_MS, signal);
      }
    },
    pendingLines: () => store.backlog(destination.id()).pendingLines,
    deliveredLines: () => status.delivered,
    held: () => status.held,
    resend: async (lines, signal) => {
      const served = await destination.open(signal);
      return 'sink' in served ? await sender(served, lines, signal) : served;
    },
  };
}

/** What the state says against recording a delivery: nothing is lost by it, the same lines are sent again. */
async function deliverOrHold(deliver: () => Promise<Hold | null | 'idle'>): Promise<Hold | null | 'idle'> {
  try {
    return await deliver();
  } catch (error) {
    // It was set aside meanwhile: the position has moved.
    if (error instanceof StaleStateError) return null;
    if (error instanceof StateFullError) return { words: error.message, hint: '', waitMs: null };
    throw error;
  }
}
