/**
 * Delivery: carries the log to a destination, live points before history, batch after batch.
 *
 * Promise: a position moves only past lines that the destination has accepted, that are in quarantine with its words,
 * that it keeps no more (its lack-set) or that its kind cannot hold, and only after its answer. A destination that does
 * not answer is waited for; nothing is asked of the API meanwhile and nothing is lost.
 */

import { StateFullError } from '../core/archive-room.ts';
import { translate } from '../core/dialect.ts';
import { kindOf } from '../core/line-reader.ts';
import { identityTag } from '../core/line-text.ts';
import { type Lack, type LogBatch, type LogLane, positionAfter } from '../core/log-state.ts';
import type { Clock, Observe, Random } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import type { Store } from '../core/state.ts';
import { StaleStateError } from '../core/telemetry-state.ts';
import { MINUTE_MS, msToNs, SECOND_MS } from '../core/time.ts';
import { lacksBeyond, timeOf } from './beyond-retention.ts';
import { type DestinationOptions, openDestination, type Served } from './destination.ts';
import { createDoorbell } from './doorbell.ts';
import { type Hold, type RefusedLine, type Settlement, settleBatch } from './settle.ts';

export type { DestinationOptions } from './destination.ts';

export interface Deliverer {
  readonly name: string;
  /** Its number in the state. It can change once, when the destination says what it is. */
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

/** A batch's size in characters: some 5,000 lines, which InfluxDB advises; larger ones bring nothing but garbage. */
const BATCH_BYTES = 512 * 1024;

/** How long small pages are gathered, so that they leave in large batches. */
const LINGER_MS = 500;

/** How long a delivery rests without being rung for. */
const REST_MS = MINUTE_MS;

const BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };

const LANES: readonly LogLane[] = ['live', 'history'];

/** Opens the destination in the state and delivers to it. */
export function createDeliverer(
  { store, clock, random, observe }: { store: Store; clock: Clock; random: Random; observe: Observe },
  options: DestinationOptions,
): Deliverer {
  const { name } = options.sink;
  const destination = openDestination({ store, observe }, options);
  const bell = createDoorbell(clock);
  const witnesses = createWitnesses();
  const status = { delivered: 0, failures: 0, held: null as string | null };
  let maxLines = options.batchLines;

  /** Delivers one batch. @returns why the rest of it is kept, `null` where it moved, 'idle' where there was none. */
  const deliverOnce = async (signal: AbortSignal): Promise<Hold | null | 'idle'> => {
    const served = await destination.open(signal);
    if (!('sink' in served)) return served;
    const id = destination.id();
    for (const lane of LANES) {
      const from = store.position(id, lane);
      const batch = store.read(lane, from, { lines: maxLines, bytes: BATCH_BYTES });
      if (batch.lines.length === 0) continue;
      const startedMs = clock.monoMs();
      const settlement = await send(served, batch, signal);
      // What was too large once would be again: smaller batches spare the requests that find that out.
      if (settlement.tooLarge) maxLines = Math.max(1, Math.floor(batch.lines.length / 2));
      if (settlement.settled > 0) {
        const to = positionAfter(batch, from, settlement.settled);
        const { quarantined: refused, lacks } = sorted(settlement.refused);
        store.settle({ destinationId: id, lane, from, to, refused, lacks, atMs: clock.nowMs() });
        status.delivered += settlement.acceptedLines;
        tell({ settlement, refused, lacks }, clock.monoMs() - startedMs);
      }
      return settlement.hold;
    }
    return 'idle';
  };

  /** Settles a batch in the destination's own dialect. @returns it in terms of the lines of the log. */
  const send = async ({ kind, sink }: Served, { lines }: LogBatch, signal: AbortSignal): Promise<Settlement> => {
    const sent = translate(kind, lines, store.displacedTo);
    const ages = { newestAccepted: witnesses.newest, now: () => msToNs(clock.nowMs()) };
    const settlement = await settleBatch(sink, sent.lines, { witness: witnesses.find, ages }, signal);
    witnesses.remember(sent.lines, settlement);
    const unsent = lines.length - sent.lines.length;
    if (unsent === 0) return settlement;
    const refused = settlement.refused.map((each) => {
      const index = sent.origins[each.index] ?? 0;
      return { ...each, index, line: lines[index] ?? '' };
    });
    // Lines that are not for this destination are settled with those before them.
    return { ...settlement, refused, settled: sent.origins[settlement.settled] ?? lines.length };
  };

  const sorted = (refused: readonly RefusedLine[]): { quarantined: readonly RefusedLine[]; lacks: Lack[] } => {
    const beyond = refused.filter(({ retention }) => retention).map(({ line }) => line);
    const lacks = beyond.length === 0 ? [] : lacksBeyond(beyond, (tag) => deviceOf(store, tag));
    return { quarantined: refused.filter(({ retention }) => !retention), lacks };
  };

  const restAfter = ({ words, hint, waitMs: asked }: Hold): number => {
    status.failures += 1;
    status.held = words;
    const waitMs = backoffMs({ failures: status.failures, policy: BACKOFF, random, askedMs: asked ?? 0 });
    observe({ type: 'destination-held', destination: name, words, hint, waitMs });
    return waitMs;
  };

  const tell = ({ settlement, refused, lacks }: Outcome, durationMs: number): void => {
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
    ring: bell.ring,
    run: async (signal) => {
      while (!signal.aborted) {
        const outcome = await deliverOrHold(() => deliverOnce(signal));
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
    pendingLines: () => store.backlog(destination.id()).pendingLines,
    deliveredLines: () => status.delivered,
    held: () => status.held,
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

interface Outcome {
  readonly settlement: Settlement;
  readonly refused: readonly RefusedLine[];
  readonly lacks: readonly Lack[];
}

/** The device of a `device_id` tag: its id, unless that cannot stand in a line as it is. */
function deviceOf(store: Store, tag: string): string {
  // What was altered carries a mark at its end.
  if (!/~[0-9a-f]{8}$/.test(tag)) return tag;
  return store.devices().find(({ record }) => identityTag(record.deviceId) === tag)?.record.deviceId ?? tag;
}

/** Lines that the destination has accepted: controls for the next refusal. */
interface Witnesses {
  /** The latest one like `line`. */
  find(line: string): string | null;
  /** The newest one by time. */
  newest(): string | null;
  remember(lines: readonly string[], settlement: Settlement): void;
}

/** How many of the last lines of a batch are looked at for witnesses. */
const WITNESSES_FROM = 50;

function createWitnesses(): Witnesses {
  const byKind = new Map<string, string>();
  let newest: string | null = null;
  return {
    find: (line) => byKind.get(kindOf(line)) ?? null,
    newest: () => newest,
    remember: (lines, { settled, refused }) => {
      const isRefused = new Set(refused.map(({ index }) => index));
      for (let index = settled - 1; index >= 0 && index >= settled - WITNESSES_FROM; index -= 1) {
        const line = lines[index];
        if (line === undefined || isRefused.has(index)) continue;
        byKind.set(kindOf(line), line);
        if (newest === null || timeOf(line) > timeOf(newest)) newest = line;
      }
    },
  };
}
