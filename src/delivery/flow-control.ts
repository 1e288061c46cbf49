/**
 * Controls the speed of a delivery: the lines per batch, the number of batches under way at once, and the wait for a
 * destination that accepts nothing.
 */
import type { Observe } from '../core/events.ts';
import type { Clock, Random, UnknownRejection } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import { durationInWords, withStep } from '../core/text.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { type Blocked, IF_IT_LASTS, RETRY_HINT } from './destination.ts';

/** After how many accepted batches of the current size a larger one is tried. */
const LARGER_AFTER = 64;

/** How many lines a batch may have: half as many after a batch that was too large, and more again after a while. */
export interface BatchSize {
  /** The most lines of the next batch. */
  lines(): number;
  /** Records that a batch was too large, or was completely resolved. */
  noteSent(batch: { readonly lines: number; readonly tooLarge: boolean; readonly isWhole: boolean }): void;
}

/**
 * Creates the batch size.
 *
 * @param most the configured size
 */
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
export interface Concurrency {
  batches(): number;
  /** Whether the last batch was accepted, so that the next one is prepared during a write. */
  isMoving(): boolean;
  /** Records that a batch was accepted, how long that took, and when. */
  noteAccepted(accepted: { readonly tookMs: number; readonly atMs: number }): void;
  /** Returns to one batch at a time: no batch is waiting, or one was not accepted. */
  reset(): void;
}

/** With this many batches of 512 KiB, a database that answers after one second takes 50,000 points per second. */
export const MOST_BATCHES = 16;

/** The numbers of batches that may be under way at once. */
const STEPS = [1, 4, MOST_BATCHES];

/** For a database that answers faster than this, one batch at a time is as fast. */
const SLOW_MS = 250;

/** An answer that takes this long shows that the database is fully loaded. */
const TOO_SLOW_MS = 5 * SECOND_MS;

/** More batches at once must take at most this part of the time per batch. */
const WORTH = 2 / 3;

/** After this many batches, another number of them is tried again. */
const AGAIN_AFTER = 1024;

/** The answers since the last decision. */
interface Round {
  /** How many answers to batches sent before the decision are left; they do not count. */
  before: number;
  answers: number;
  sumMs: number;
  /** When the round began; `null` until its first batch. */
  sinceMs: number | null;
}

/** The number of batches at once, and what is known about another number. */
interface Steps {
  step: number;
  /** Which number is tried next: a larger (1) or a smaller one (-1). */
  direction: 1 | -1;
  /** The time per batch with the number before this one; `null` unless this number is being tried. */
  triedFromMs: number | null;
  /** For how many batches nothing else is tried. */
  pausedFor: number;
}

const firstSteps = (): Steps => ({ step: 0, direction: 1, triedFromMs: null, pausedFor: 0 });

const emptyRound = (before: number, sinceMs: number | null): Round => ({ before, answers: 0, sumMs: 0, sinceMs });

/**
 * Starts with one batch. Some databases answer only after a flush to disk (InfluxDB 3 after about a second), however
 * little is written: more batches at once go faster. A database that is merely busy takes as long for each batch, and
 * more at once would only take memory. So 1, 4 or 16 batches are sent at once, and each number is tried for as many
 * answers as it has batches:
 *
 * | answers take (mean) | then                                                                                  |
 * | ------------------- | ------------------------------------------------------------------------------------- |
 * | less than 250 ms    | fewer at once                                                                         |
 * | 250 ms to 5 s       | more, as long as each batch takes at most 2/3 of the time; every 1,024 batches, again |
 * | more than 5 s       | fewer, for 1,024 batches                                                              |
 */
export function createConcurrency(): Concurrency {
  let isMoving = false;
  let steps = firstSteps();
  let round = emptyRound(0, null);
  const batches = (): number => STEPS[steps.step] ?? 1;
  return {
    batches,
    isMoving: () => isMoving,
    noteAccepted: ({ tookMs, atMs }) => {
      isMoving = true;
      steps.pausedFor = Math.max(0, steps.pausedFor - 1);
      if (round.before > 0) {
        round.before -= 1;
        round.sinceMs = atMs;
        return;
      }
      round.sinceMs ??= atMs - tookMs;
      round.answers += 1;
      round.sumMs += tookMs;
      const sent = batches();
      if (round.answers < sent) return;
      chooseStep(steps, { meanMs: round.sumMs / sent, costMs: (atMs - round.sinceMs) / sent });
      // Those that were sent with more at once than now.
      round = emptyRound(batches() < sent ? sent : 0, atMs);
    },
    reset: () => {
      isMoving = false;
      steps = firstSteps();
      round = emptyRound(0, null);
    },
  };
}

/**
 * Decides how many batches are sent at once from now on.
 *
 * @param costMs the time from one answer to the next, which is the time per batch
 */
function chooseStep(steps: Steps, { meanMs, costMs }: { readonly meanMs: number; readonly costMs: number }): void {
  const { triedFromMs, direction } = steps;
  steps.triedFromMs = null;
  if (meanMs < SLOW_MS || meanMs >= TOO_SLOW_MS) {
    const isFast = meanMs < SLOW_MS;
    steps.step = Math.max(0, steps.step - 1);
    steps.direction = isFast ? 1 : -1;
    steps.pausedFor = isFast ? 0 : AGAIN_AFTER;
  } else if (triedFromMs === null) {
    if (steps.pausedFor === 0) tryNext(steps, costMs);
  } else if (!isBetter(direction, { triedFromMs, costMs })) {
    steps.step -= direction;
    steps.pausedFor = AGAIN_AFTER;
    steps.direction = reverse(direction);
  } else if (STEPS[steps.step + direction] === undefined) {
    steps.pausedFor = AGAIN_AFTER;
  } else {
    tryNext(steps, costMs);
  }
}

function isBetter(
  direction: Steps['direction'],
  { triedFromMs, costMs }: { readonly triedFromMs: number; readonly costMs: number },
): boolean {
  return direction === 1 ? costMs <= WORTH * triedFromMs : WORTH * costMs <= triedFromMs;
}

/** Tries the next number in the direction, or in the other one from an end. */
function tryNext(steps: Steps, costMs: number): void {
  if (STEPS[steps.step + steps.direction] === undefined) steps.direction = reverse(steps.direction);
  steps.step += steps.direction;
  steps.triedFromMs = costMs;
}

function reverse(direction: Steps['direction']): Steps['direction'] {
  return direction === 1 ? -1 : 1;
}

/** Whether a delivery is blocked, and since when. */
export interface BlockFacts {
  /** Why the delivery is blocked, with the remedy; `null` if it is not blocked. */
  blockedReason(): string | null;
  /**
   * Whether that reason is an answer: then it begins with the HTTP status of the database, or of a proxy in front of
   * it.
   */
  isBlockedByAnswer(): boolean;
  /**
   * How long until the next attempt of a blocked delivery, in ms: 0 during the attempt; `null` if it is not blocked.
   */
  nextAttemptInMs(): number | null;
  /** For how long the delivery has been blocked, in ms; `null` if it is not. */
  blockedForMs(): number | null;
}

/**
 * Decides how long to wait for a destination that accepts nothing: longer after each attempt. It emits an event when
 * the delivery becomes blocked and when it resumes.
 */
export interface DeliveryBackoff extends BlockFacts {
  /**
   * Records that lines are kept.
   *
   * @returns how long to wait before the next attempt, in ms
   */
  noteBlocked(why: Blocked, lines: number): number;
  /** Records that lines were accepted, or that there is nothing to send. */
  noteMoved(): void;
}

/** A rejection for an unknown reason that has not changed for this long will not end without a person. */
const UNKNOWN_LASTS_MS = 10 * MINUTE_MS;
const LASTING_HINT = `the database has rejected every write with this message for ${durationInWords(UNKNOWN_LASTS_MS)}; check its log, and the address, the organization and the bucket of this destination`;

const BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };

/** A blocked delivery after its last attempt. Times are of the monotonic clock. */
interface Block {
  readonly reason: string;
  readonly isAnswer: boolean;
  readonly hint: string;
  readonly needsPerson: boolean;
  /** How many attempts in a row have failed. */
  readonly failures: number;
  /** When the first of these attempts failed. */
  readonly sinceMs: number;
  /** When the last attempt failed, and how long to wait after it. */
  readonly atMs: number;
  readonly waitMs: number;
  /** The rejection for an unknown reason, and since when it has been the same. */
  readonly unknown: UnknownRejection | undefined;
  readonly unknownSinceMs: number;
}

/** The block after another failed attempt; `before` is `null` if no earlier attempt failed. */
export function blockAfter(
  before: Block | null,
  why: Blocked,
  { nowMs, random }: { readonly nowMs: number; readonly random: Random },
): Block {
  const { message, isAnswer, unknown } = why;
  const unknownSinceMs = before !== null && isSame(before.unknown, unknown) ? before.unknownSinceMs : nowMs;
  const isLasting = unknown !== undefined && nowMs - unknownSinceMs >= UNKNOWN_LASTS_MS;
  const hint = isLasting ? LASTING_HINT : why.hint;
  // The surfaces already show the advice for every outage next to the message, and the message of a failed connection
  // contains its step.
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

function isSame(a: UnknownRejection | undefined, b: UnknownRejection | undefined): boolean {
  return a?.status === b?.status && a?.message === b?.message;
}

/**
 * Creates the wait without a block.
 *
 * @param destination the name of the destination, for its events.
 */
export function createDeliveryBackoff(
  destination: string,
  {
    random,
    observe,
    clock,
  }: { readonly random: Random; readonly observe: Observe; readonly clock: Pick<Clock, 'monoMs'> },
): DeliveryBackoff {
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
