/**
 * Delivers the log to a destination in batches: live points before history.
 *
 * Promise: a position moves past a line only after the destination has answered, and only if the destination has
 * accepted the line, the line is in quarantine with the destination's words, the line is older than the destination
 * keeps (missing points), or the kind of destination cannot store it. If a destination does not answer, its delivery
 * waits; it makes no request to the API and loses nothing.
 */

import { StateFullError } from '../core/archive-room.ts';
import { createWakeUp, repeat, type WakeUp } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import type { Clock, Random } from '../core/ports.ts';
import {
  blockedByAnswerFact,
  blockedFact,
  LOG_LANES,
  type LogBatch,
  type LogLane,
  type LogPosition,
  positionAfter,
} from '../core/state/log.ts';
import { createFactNote, type Store } from '../core/state/state.ts';
import { StaleStateError } from '../core/state/telemetry.ts';
import { type EpochNs, MINUTE_MS } from '../core/time.ts';
import {
  type Blocked,
  type Destination,
  type DestinationOptions,
  openDestination,
  type ServedDestination,
} from './destination.ts';
import {
  type BatchSize,
  type BlockFacts,
  type Concurrency,
  createBatchSize,
  createConcurrency,
  createDeliveryBackoff,
  type DeliveryBackoff,
} from './flow-control.ts';
import {
  type ControlLines,
  createControlLines,
  type PackedBatch,
  packBatch,
  type Sent,
  type SentKept,
  sendBatch,
  sendKept,
} from './send-batch.ts';

/** Advances the position of one destination. */
export interface Deliverer extends BlockFacts {
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
  /**
   * Sends lines of the log again, by the same rules, without recording anything.
   *
   * @returns the result per line, or why nothing can be sent
   */
  resend(lines: readonly string[], signal: AbortSignal): Promise<Sent | Blocked>;
}

/** Everything that the deliveries of a process share. */
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

/** How long to wait for more lines after a small page, so that lines are sent in large batches. */
const LINGER_MS = 500;

/** How long a delivery rests if nothing wakes it. */
const REST_MS = MINUTE_MS;

/** The delivery to one destination, with the batches that are under way or prepared. */
interface Delivery extends DelivererParts {
  readonly name: string;
  readonly destination: Destination;
  readonly controls: ControlLines;
  readonly batchSize: BatchSize;
  readonly concurrency: Concurrency;
  readonly backoff: DeliveryBackoff;
  readonly noteBlocked: (backoff: DeliveryBackoff) => void;
  readonly wakeUp: WakeUp;
  /** Batches that were sent and are not acknowledged yet, in the order of the log. */
  underWay: UnderWay[];
  /** The batch that was read and packed during a write. */
  prepared: NextBatch | null;
  delivered: number;
  /** How many lines of the last batch wait for another attempt. */
  withheld: number;
}

/** The place of a batch in the log. */
interface BatchSpan {
  readonly lane: LogLane;
  readonly from: LogPosition;
  readonly batch: Pick<LogBatch, 'segments' | 'count'>;
}

/** Lines of a lane that follow a position. */
interface NextBatch extends BatchSpan {
  readonly batch: LogBatch;
  readonly packed?: PackedBatch | undefined;
}

/** The result of a batch, and the time it took. */
interface Result {
  readonly sent: SentKept;
  readonly tookMs: number;
}

/** A batch that was sent. Only its request holds its text. */
interface UnderWay extends BatchSpan {
  readonly result: Promise<Result>;
  /** Resolves when its body is packed. */
  readonly packed: Promise<void>;
}

/** Opens the destination in the state and creates its delivery. */
export function createDeliverer(parts: DelivererParts, options: DestinationOptions): Deliverer {
  const { store, clock } = parts;
  const { name } = options.sink;
  const destination = openDestination(parts, options);
  const controls = createControlLines();
  const backoff = createDeliveryBackoff(name, parts);
  const wakeUp = createWakeUp(clock);
  const delivery: Delivery = {
    ...parts,
    name,
    destination,
    controls,
    batchSize: createBatchSize(options.batchLines),
    concurrency: createConcurrency(),
    underWay: [],
    prepared: null,
    backoff,
    noteBlocked: createBlockNote(store, destination.id),
    wakeUp,
    delivered: 0,
    withheld: 0,
  };
  return {
    name,
    get destinationId() {
      return destination.id();
    },
    notify: wakeUp.notify,
    run: async (signal) => await repeat(clock, (stop) => deliverAll(delivery, stop), signal),
    pendingLines: () => store.backlog(destination.id()).pendingLines,
    deliveredLines: () => delivery.delivered,
    blockedReason: backoff.blockedReason,
    isBlockedByAnswer: backoff.isBlockedByAnswer,
    nextAttemptInMs: backoff.nextAttemptInMs,
    blockedForMs: backoff.blockedForMs,
    resend: async (lines, signal) => {
      const served = await destination.open(signal);
      if (!('sink' in served)) return served;
      return await sendBatch(delivery, served, { lines }, signal);
    },
  };
}

/** Delivers until no line is left or the delivery is blocked. Returns how long to rest, in ms. */
async function deliverAll(delivery: Delivery, signal: AbortSignal): Promise<number> {
  const { backoff, noteBlocked, wakeUp } = delivery;
  let outcome = await deliverOrBlock(delivery, signal);
  for (; outcome === 'moved'; outcome = await deliverOrBlock(delivery, signal)) {
    backoff.noteMoved();
    noteBlocked(backoff);
    signal.throwIfAborted();
  }
  if (outcome !== 'idle') {
    // The prepared batch would take memory for as long as the outage lasts.
    delivery.prepared = null;
    const waitMs = backoff.noteBlocked(outcome, delivery.withheld);
    noteBlocked(backoff);
    return waitMs;
  }
  backoff.noteMoved();
  noteBlocked(backoff);
  await wakeUp.wait(REST_MS, signal);
  return LINGER_MS;
}

/** Creates a function that stores why a delivery is blocked, for a `--status` without the daemon. */
function createBlockNote(store: Store, id: () => number): (backoff: DeliveryBackoff) => void {
  const noteReason = createFactNote(store, () => blockedFact(id()));
  const noteAnswer = createFactNote(store, () => blockedByAnswerFact(id()));
  return ({ blockedReason, isBlockedByAnswer }) => {
    noteReason(blockedReason());
    noteAnswer(isBlockedByAnswer() ? 'yes' : null);
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
    await dropUnderWay(delivery);
    // The destination was skipped in the meantime, which has moved its position.
    if (error instanceof StaleStateError) return 'moved';
    if (error instanceof StateFullError) {
      return { message: error.message, hint: '', isAnswer: false, needsPerson: false, waitMs: null };
    }
    throw error;
  }
}

/**
 * Sends the next batches, as many at once as the database's concurrency limit allows, and records the result of the
 * first one. Live lines are sent before history, and batches are acknowledged in the order of the log.
 */
async function deliverNext(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
  const { destination, underWay, concurrency } = delivery;
  delivery.withheld = 0;
  const served = await destination.open(signal);
  if (!('sink' in served)) return served;
  while (underWay.length < concurrency.batches() && sendNext(delivery, served, signal));
  const [first] = underWay;
  if (first === undefined) {
    concurrency.reset();
    return 'idle';
  }
  if (concurrency.isMoving()) {
    await letWrite(delivery);
    prepareNext(delivery, served);
  }
  const result = await first.result;
  // The next batch is sent before the position is recorded, so that the database does not wait for that.
  // After the number at once has become smaller, an answered batch is not replaced until as few are under way.
  const isWithin = underWay.length <= concurrency.batches();
  const isFollowed = isWithin && mayFollow(delivery, first, result.sent) && sendNext(delivery, served, signal);
  underWay.shift();
  if (isFollowed) await letWrite(delivery);
  const blocked = await record(delivery, first, result);
  return blocked ?? 'moved';
}

/**
 * Lets the last request be written to the network before work that keeps this thread busy. If other batches are under
 * way, the database has work, and this one is not waited for.
 */
async function letWrite({ clock, underWay }: Delivery): Promise<void> {
  const [one, another] = underWay;
  if (another === undefined) await one?.packed;
  await clock.sleep(0);
}

/** Whether the prepared batch may be sent before the acceptance of the previous one is recorded. */
function mayFollow({ store, destination, prepared }: Delivery, first: BatchSpan, sent: Sent): boolean {
  if (prepared === null || sent.resolution.tooLarge || !isAccepted(first, sent)) return false;
  const { block, line } = store.position(destination.id(), first.lane);
  return block === first.from.block && line === first.from.line;
}

/** Whether the destination has accepted all lines of a batch. */
function isAccepted({ batch }: BatchSpan, { resolution, rejected }: Sent): boolean {
  return resolution.resolved === batch.count && rejected.length === 0;
}

/** Sends the next batch. Returns whether there was one. */
function sendNext(delivery: Delivery, served: ServedDestination, signal: AbortSignal): boolean {
  const { clock, underWay, concurrency } = delivery;
  const next = nextBatch(delivery);
  delivery.prepared = null;
  if (next === null) return false;
  const { lane, from, batch } = next;
  // If several batches are under way at once, none of them keeps its text.
  const packed = next.packed ?? (concurrency.batches() > 1 ? packBatch(served, batch) : undefined);
  const startedMs = clock.monoMs();
  const result = sendKept(delivery, served, { batch, packed }, signal).then((sent) => ({
    sent,
    tookMs: clock.monoMs() - startedMs,
  }));
  // The result is awaited later, in the order of the batches, or dropped. This prevents an unhandled rejection.
  result.catch(() => {});
  const isPacked = Promise.allSettled([packed?.text.gzip]).then(() => {});
  underWay.push({ lane, from, batch: { segments: batch.segments, count: batch.count }, result, packed: isPacked });
  return true;
}

/**
 * The lines that follow the position and the batches under way, from the first lane that has any. Returns the prepared
 * batch if it is the next one; otherwise it reads one.
 */
function nextBatch({ store, destination, underWay, prepared, batchSize }: Delivery): NextBatch | null {
  const lines = batchSize.lines();
  for (const lane of LOG_LANES) {
    const last = underWay.findLast((each) => each.lane === lane);
    const from =
      last === undefined
        ? store.position(destination.id(), lane)
        : positionAfter(last.batch, last.from, last.batch.count);
    if (prepared !== null && isNext(prepared, { lane, from, lines })) return prepared;
    const batch = store.read(lane, from, { lines, bytes: BATCH_LENGTH });
    if (batch.count > 0) return { lane, from, batch };
  }
  return null;
}

/**
 * Whether a prepared batch is still the next one of this lane. Other work may have moved the position in the meantime.
 */
function isNext(
  { lane, from, batch }: NextBatch,
  next: { readonly lane: LogLane; readonly from: LogPosition; readonly lines: number },
): boolean {
  const isFollowing = from.block === next.from.block && from.line === next.from.line;
  return lane === next.lane && isFollowing && batch.count <= next.lines;
}

/** Whether a batch would have no more lines if it were read later. */
function isFull({ count, text }: LogBatch, lines: number): boolean {
  return count === lines || text.length >= BATCH_LENGTH / 2;
}

/**
 * Reads and packs the batch that follows those under way, so that it is ready when the first of them is acknowledged. A
 * batch that is not full yet is not prepared, so that it can grow.
 */
function prepareNext(delivery: Delivery, served: ServedDestination): void {
  const { store, destination, underWay, batchSize } = delivery;
  const sent = underWay.reduce((sum, { batch }) => sum + batch.count, 0);
  if (store.backlog(destination.id()).pendingLines - sent < batchSize.lines()) return;
  const next = nextBatch(delivery);
  if (next === null || next === delivery.prepared || !isFull(next.batch, batchSize.lines())) return;
  delivery.prepared = { ...next, packed: packBatch(served, next.batch) };
}

/**
 * Records the result of a batch. If the batch is not completely resolved, all batches sent after it count as unsent:
 * their lines are sent again, unchanged.
 *
 * @returns why the rest of the batch is blocked; `null` if the position has moved
 */
async function record(delivery: Delivery, next: BatchSpan, { sent, tookMs }: Result): Promise<Blocked | null> {
  const { store, clock, destination, concurrency } = delivery;
  const { lane, from, batch } = next;
  delivery.withheld = batch.count;
  const { resolution, rejected, missing } = sent;
  delivery.controls.remember(sent.controls);
  const { tooLarge, resolved } = resolution;
  const isWhole = resolved === batch.count;
  delivery.batchSize.noteSent({ lines: batch.count, tooLarge, isWhole });
  if (resolution.resolved > 0) {
    const to = positionAfter(batch, from, resolution.resolved);
    const destinationId = destination.id();
    store.acknowledge({ destinationId, lane, from, to, rejected, missing, atMs: clock.nowMs() });
    delivery.delivered += resolution.acceptedLines;
    report(delivery, sent, tookMs);
  }
  if (isAccepted(next, sent)) concurrency.noteAccepted({ tookMs, atMs: clock.monoMs() });
  else await dropUnderWay(delivery);
  delivery.withheld = batch.count - resolution.resolved;
  return resolution.blocked;
}

/**
 * Drops the batches that are under way, after they have ended. The position has not passed them, but lines of them that
 * were accepted may be the only controls for the batch before them.
 */
async function dropUnderWay(delivery: Delivery): Promise<void> {
  delivery.concurrency.reset();
  const ended = await Promise.allSettled(delivery.underWay.map(({ result }) => result));
  delivery.underWay = [];
  for (const each of ended) if (each.status === 'fulfilled') delivery.controls.remember(each.value.sent.controls);
}

function report({ name, observe }: Delivery, { resolution, rejected, missing }: Sent, durationMs: number): void {
  observe({ type: 'lines-delivered', destination: name, lines: resolution.acceptedLines, durationMs });
  if (rejected.length > 0) {
    const message = rejected[0]?.message ?? '';
    observe({ type: 'lines-quarantined', destination: name, lines: rejected.length, message });
  }
  if (missing.length > 0) {
    const lines = missing.reduce((sum, { points }) => sum + points, 0);
    observe({ type: 'lines-beyond-retention', destination: name, lines });
  }
}
