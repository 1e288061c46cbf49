/**
 * How fast a delivery goes: the lines of a batch, the batches that are under way at once, and the wait for a
 * destination that accepts nothing.
 */
import type { Observe } from '../core/events.ts';
import type { Clock, Random, UnknownRefusal } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import { withStep } from '../core/text.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { type Blocked, IF_IT_LASTS, RETRY_HINT } from './destination.ts';

/** How many batches of the largest size that passes are accepted until a larger one is tried. */
const LARGER_AFTER = 64;

/** How many lines a batch may have: half as many after one that was too large, and more again after a while. */
export interface BatchSize {
  /** The most lines of the next batch. */
  lines(): number;
  /** Records that a batch was too large, or was resolved to its end. */
  noteSent(batch: { readonly lines: number; readonly tooLarge: boolean; readonly isWhole: boolean }): void;
}

/** @param most the configured size */
export function createBatchSize(most: number): BatchSize {
  let lines = most;
  let passed = 0;
  return {
    lines: () => lines,
    noteSent: ({ lines: sent, tooLarge, isWhole }) => {
      if (tooLarge) {
        lines = Math.max(1, Math.floor(sent / 2));
        passed = 0;
      } else if (isWhole && sent >= lines && lines < most) passed += 1;
      if (passed < LARGER_AFTER) return;
      lines = Math.min(most, 2 * lines);
      passed = 0;
    },
  };
}

/** How many batches may be under way at once. */
export interface Width {
  batches(): number;
  /** Whether the last batch was accepted, so that the next one is prepared during a write. */
  isMoving(): boolean;
  /** Records that a batch was accepted, and how long that took. */
  noteAccepted(tookMs: number): void;
  /** One at a time again: nothing waits, or a batch was not accepted. */
  reset(): void;
}

/** With so many batches of 512 KiB, a database that answers after a second takes 50,000 points a second. */
export const MOST_BATCHES = 16;

/** A database that answers sooner loses nothing by one batch at a time. */
const SLOW_MS = 250;

/** An answer that takes so long shows a database that has enough to do. */
const TOO_SLOW_MS = 5 * SECOND_MS;

/**
 * Begins with one batch. Some databases answer only when their log is on disk (InfluxDB 3 after about a second),
 * however little is written: each slow answer lets one more be sent beside it.
 */
export function createWidth(): Width {
  let batches = 1;
  let isMoving = false;
  return {
    batches: () => batches,
    isMoving: () => isMoving,
    noteAccepted: (tookMs) => {
      isMoving = true;
      if (tookMs >= TOO_SLOW_MS) batches = Math.ceil(batches / 2);
      else if (tookMs >= SLOW_MS) batches = Math.min(MOST_BATCHES, batches + 1);
    },
    reset: () => {
      batches = 1;
      isMoving = false;
    },
  };
}

/** Whether a delivery is blocked, and since when. */
export interface BlockFacts {
  /** Why the delivery is blocked, with what to do about it; `null` if it is not blocked. */
  blockedReason(): string | null;
  /** Whether that reason is an answer: it begins with the HTTP status of the database, or of a proxy in front of it. */
  isBlockedByAnswer(): boolean;
  /** How long until the next attempt of a blocked delivery, in ms: 0 while it is made; `null` if it is not blocked. */
  nextAttemptInMs(): number | null;
  /** For how long the delivery has been blocked, in ms; `null` if it is not. */
  blockedForMs(): number | null;
}

/**
 * Decides how long to wait for a destination that accepts nothing: longer each time. It reports when that begins and
 * ends.
 */
export interface Patience extends BlockFacts {
  /**
   * Records that lines are kept.
   *
   * @returns how long to wait before the next attempt, in ms
   */
  noteBlocked(why: Blocked, lines: number): number;
  /** Records that lines were accepted, or that there is nothing to send. */
  noteMoved(): void;
}

/** A refusal for an unknown reason that has not changed for so long does not end by itself. */
const UNKNOWN_LASTS_MS = 10 * MINUTE_MS;
const LASTING_HINT =
  'the database has rejected every write with this message for ten minutes; check its log, and the address, the organization and the bucket of this destination';

const BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };

/** A delivery that is blocked, as its last attempt has left it. Times are of the monotonic clock. */
interface Block {
  readonly reason: string;
  readonly isAnswer: boolean;
  readonly hint: string;
  readonly needsPerson: boolean;
  /** The attempts in a row that have failed. */
  readonly failures: number;
  /** When the first of them failed. */
  readonly sinceMs: number;
  /** When the last of them failed, and how long to wait after it. */
  readonly atMs: number;
  readonly waitMs: number;
  /** The refusal for an unknown reason, and since when it is the same. */
  readonly unknown: UnknownRefusal | undefined;
  readonly unknownSinceMs: number;
}

/** The block after one more attempt that failed; `before` is `null` if none failed before it. */
export function blockAfter(
  before: Block | null,
  why: Blocked,
  { nowMs, random }: { readonly nowMs: number; readonly random: Random },
): Block {
  const { message, isAnswer, unknown } = why;
  const unknownSinceMs = before !== null && isSame(before.unknown, unknown) ? before.unknownSinceMs : nowMs;
  const isLasting = unknown !== undefined && nowMs - unknownSinceMs >= UNKNOWN_LASTS_MS;
  const hint = isLasting ? LASTING_HINT : why.hint;
  // The advice for every outage stands beside it where it is shown. The message of a failed connection has a step.
  const lasting = isAnswer ? IF_IT_LASTS : '';
  const step = hint === RETRY_HINT ? lasting : hint;
  const failures = (before?.failures ?? 0) + 1;
  return {
    reason: withStep(message, step),
    isAnswer,
    hint,
    needsPerson: isLasting || why.needsPerson,
    failures,
    sinceMs: before?.sinceMs ?? nowMs,
    atMs: nowMs,
    waitMs: backoffMs({ failures, policy: BACKOFF, random, leastMs: why.waitMs ?? 0 }),
    unknown,
    unknownSinceMs,
  };
}

function isSame(a: UnknownRefusal | undefined, b: UnknownRefusal | undefined): boolean {
  return a?.status === b?.status && a?.message === b?.message;
}

/** @param destination the name of the destination, for its events. */
export function createPatience(
  destination: string,
  {
    random,
    observe,
    clock,
  }: { readonly random: Random; readonly observe: Observe; readonly clock: Pick<Clock, 'monoMs'> },
): Patience {
  let block: Block | null = null;
  return {
    blockedReason: () => block?.reason ?? null,
    isBlockedByAnswer: () => block?.isAnswer ?? false,
    blockedForMs: () => (block === null ? null : clock.monoMs() - block.sinceMs),
    nextAttemptInMs: () => (block === null ? null : Math.max(0, block.atMs + block.waitMs - clock.monoMs())),
    noteBlocked: (why, lines) => {
      block = blockAfter(block, why, { nowMs: clock.monoMs(), random });
      const { hint, needsPerson, waitMs } = block;
      observe({ type: 'delivery-blocked', destination, lines, message: why.message, hint, needsPerson, waitMs });
      return waitMs;
    },
    noteMoved: () => {
      if (block !== null) observe({ type: 'delivery-resumed', destination });
      block = null;
    },
  };
}
