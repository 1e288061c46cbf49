/**
 * Delivery: carries the log to a destination, live points before history, batch after batch.
 *
 * Promise: a position moves only past lines that the destination has accepted or that are in quarantine with its
 * words, and only after its answer. A destination that does not answer is waited for; nothing is asked of the API
 * meanwhile and nothing is lost.
 */

import { kindOf } from '../core/line-reader.ts';
import { type LogLane, positionAfter } from '../core/log-state.ts';
import type { Clock, Observe, Random, Sink } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import type { Store } from '../core/state.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { createDoorbell } from './doorbell.ts';
import { type Hold, type Settlement, settleBatch } from './settle.ts';

/** How a destination is known, and how it is served. */
export interface DestinationOptions {
  readonly sink: Sink;
  /** Kind, URL, organisation and bucket: change one and it is another destination. */
  readonly identity: string;
  readonly batchLines: number;
}

export interface Deliverer {
  readonly name: string;
  readonly destinationId: number;
  /** Says that there may be something new. */
  ring(): void;
  /** Delivers until told to stop; rejects only with what is not the destination's fault (the state). */
  run(signal: AbortSignal): Promise<void>;
  /** Lines not settled yet. */
  pendingLines(): number;
  deliveredLines(): number;
  /** Why nothing moves; `null` while it does. */
  held(): string | null;
}

/** A batch's size in characters: inside every server's limit, and cheap to search for a bad line. */
const BATCH_BYTES = 1024 * 1024;

/** How long small pages are gathered, so that they leave in large batches. */
const LINGER_MS = 500;

/** How long a delivery rests without being rung for. */
const REST_MS = MINUTE_MS;

const BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };

const LANES: readonly LogLane[] = ['live', 'history'];

/** Opens the destination in the state and delivers to it. */
export function createDeliverer(
  { store, clock, random, observe }: { store: Store; clock: Clock; random: Random; observe: Observe },
  { sink, identity, batchLines }: DestinationOptions,
): Deliverer {
  const { id, created } = store.destination(sink.name, identity);
  if (created) observe({ type: 'destination-new', destination: sink.name });
  const bell = createDoorbell(clock);
  const witnesses = new Map<string, string>();
  const status = { delivered: 0, failures: 0, held: null as string | null };
  let maxLines = batchLines;

  /** Delivers one batch. @returns why the rest of it is kept, `null` where it moved, 'idle' where there was none. */
  const deliverOnce = async (signal: AbortSignal): Promise<Hold | null | 'idle'> => {
    for (const lane of LANES) {
      const from = store.position(id, lane);
      const batch = store.read(lane, from, { lines: maxLines, bytes: BATCH_BYTES });
      if (batch.lines.length === 0) continue;
      const startedMs = clock.monoMs();
      const witness = (line: string): string | null => witnesses.get(kindOf(line)) ?? null;
      const settlement = await settleBatch(sink, batch.lines, { witness }, signal);
      rememberWitnesses(witnesses, batch.lines, settlement);
      // What was too large once would be again: smaller batches spare the requests that find that out.
      if (settlement.tooLarge) maxLines = Math.max(1, Math.floor(batch.lines.length / 2));
      if (settlement.settled > 0) {
        const to = positionAfter(batch, from, settlement.settled);
        store.settle({ destinationId: id, lane, from, to, refused: settlement.refused, atMs: clock.nowMs() });
        status.delivered += settlement.acceptedLines;
        tell(settlement, clock.monoMs() - startedMs);
      }
      return settlement.hold;
    }
    return 'idle';
  };

  const restAfter = ({ words, hint, waitMs: asked }: Hold): number => {
    status.failures += 1;
    status.held = words;
    const waitMs = backoffMs({ failures: status.failures, policy: BACKOFF, random, askedMs: asked ?? 0 });
    observe({ type: 'destination-held', destination: sink.name, words, hint, waitMs });
    return waitMs;
  };

  const tell = ({ acceptedLines, refused }: Settlement, durationMs: number): void => {
    observe({ type: 'lines-delivered', destination: sink.name, lines: acceptedLines, durationMs });
    if (refused.length === 0) return;
    const words = refused[0]?.words ?? '';
    observe({ type: 'lines-quarantined', destination: sink.name, lines: refused.length, words });
  };

  const released = (): void => {
    if (status.held !== null) observe({ type: 'destination-moving', destination: sink.name });
    status.held = null;
    status.failures = 0;
  };

  return {
    name: sink.name,
    destinationId: id,
    ring: bell.ring,
    run: async (signal) => {
      while (!signal.aborted) {
        const outcome = await deliverOnce(signal);
        if (outcome !== null && outcome !== 'idle') {
          await clock.sleep(restAfter(outcome), signal);
          continue;
        }
        released();
        if (outcome === null) continue;
        await bell.wait(REST_MS, signal);
        await clock.sleep(LINGER_MS, signal);
      }
    },
    pendingLines: () => store.backlog(id).pendingLines,
    deliveredLines: () => status.delivered,
    held: () => status.held,
  };
}

/** Keeps, for each kind of line, the latest one that was accepted: a control for the next refusal. */
function rememberWitnesses(witnesses: Map<string, string>, lines: readonly string[], settlement: Settlement): void {
  const refused = new Set(settlement.refused.map(({ index }) => index));
  for (let index = settlement.settled - 1; index >= 0 && index >= settlement.settled - WITNESSES_FROM; index -= 1) {
    const line = lines[index];
    if (line !== undefined && !refused.has(index)) witnesses.set(kindOf(line), line);
  }
}

/** How many of the last lines of a batch are looked at for witnesses. */
const WITNESSES_FROM = 50;
