/**
 * How fast a delivery goes: the lines of a batch, the batches that are under way at once, and the wait for a
 * destination that accepts nothing.
 */
import type { Observe } from '../core/events.ts';
import type { Clock, Random, UnknownRefusal } from '../core/ports.ts';
import { backoffMs } from '../core/retry.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { type Blocked, IF_IT_LASTS, RETRY_HINT } from './destination.ts';

/** How many batches of the largest size that passes are accepted until a larger one is tried. */
const LARGER_AFTER = 64;

/** How many lines a batch may have: half as many after one that was too large, and more again after a while. */
export interface BatchSize {
  /** The most lines of the next batch. */
  lines(): number;
  /** Records that a batch was too large, or was resolved to its end. */
  sent(batch: { readonly lines: number; readonly tooLarge: boolean; readonly isWhole: boolean }): void;
}

/** @param most the configured size */
export function createBatchSize(most: number): BatchSize {
  let lines = most;
  let passed = 0;
  return {
    lines: () => lines,
    sent: ({ lines: sent, tooLarge, isWhole }) => {
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
  /** Records that a batch was accepted, and how long that took. */
  accepted(tookMs: number): void;
  /** One at a time again: nothing waits, or a batch was not accepted. */
  reset(): void;
}

/** With so many batches of 512 KiB, a database that answers after a second takes 50,000 points a second. */
const MOST_BATCHES = 24;

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
  return {
    batches: () => batches,
    accepted: (tookMs) => {
      if (tookMs >= TOO_SLOW_MS) batches = Math.ceil(batches / 2);
      else if (tookMs >= SLOW_MS) batches = Math.min(MOST_BATCHES, batches + 1);
    },
    reset: () => {
      batches = 1;
    },
  };
}

/**
 * Decides how long to wait for a destination that accepts nothing: longer each time. It reports when that begins and
 * ends.
 */
export interface Patience {
  /**
   * Records that lines are kept.
   *
   * @returns how long to wait before the next attempt, in ms
   */
  blocked(why: Blocked, lines: number): number;
  /** Records that lines were accepted, or that there is nothing to send. */
  moved(): void;
  /** Why the delivery is blocked, with what to do about it; `null` if it is not blocked. */
  blockedReason(): string | null;
  /** Whether that reason is an answer: it begins with the HTTP status of the database, or of a proxy in front of it. */
  isBlockedByAnswer(): boolean;
  /** How long until the next attempt of a blocked delivery, in ms: 0 while it is made; `null` if it is not blocked. */
  nextAttemptInMs(): number | null;
  /** For how long the delivery has been blocked, in ms; `null` if it is not. */
  blockedForMs(): number | null;
}

/** A refusal for an unknown reason that has not changed for so long does not end by itself. */
const UNKNOWN_LASTS_MS = 10 * MINUTE_MS;
const LASTING_HINT =
  'the database has rejected every write with this message for ten minutes; check its log, and the address, the organization and the bucket of this destination';

const BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };

/** @param destination its name */
export function createPatience(
  destination: string,
  {
    random,
    observe,
    clock,
  }: { readonly random: Random; readonly observe: Observe; readonly clock: Pick<Clock, 'monoMs'> },
): Patience {
  let failures = 0;
  let reason: string | null = null;
  let isAnswer = false;
  /** The refusal for an unknown reason, and since when it is the same. */
  let unknown: UnknownRefusal | undefined;
  let sinceMs = 0;
  let blockedMs = 0;
  let nextMs = 0;
  return {
    blockedReason: () => reason,
    isBlockedByAnswer: () => reason !== null && isAnswer,
    blockedForMs: () => (reason === null ? null : clock.monoMs() - blockedMs),
    nextAttemptInMs: () => (reason === null ? null : Math.max(0, nextMs - clock.monoMs())),
    blocked: (why, lines) => {
      const { message, waitMs: leastMs } = why;
      if (!isSame(unknown, why.unknown)) sinceMs = clock.monoMs();
      unknown = why.unknown;
      const isLasting = unknown !== undefined && clock.monoMs() - sinceMs >= UNKNOWN_LASTS_MS;
      const hint = isLasting ? LASTING_HINT : why.hint;
      failures += 1;
      if (reason === null) blockedMs = clock.monoMs();
      // The advice for every outage stands beside it where it is shown. The message of a failed connection has a step.
      const lasting = why.isAnswer ? IF_IT_LASTS : '';
      const step = hint === RETRY_HINT ? lasting : hint;
      isAnswer = why.isAnswer;
      reason = step === '' ? message : `${message}; ${step}`;
      const waitMs = backoffMs({ failures, policy: BACKOFF, random, leastMs: leastMs ?? 0 });
      nextMs = clock.monoMs() + waitMs;
      const needsPerson = isLasting || why.needsPerson;
      observe({ type: 'delivery-blocked', destination, lines, message, hint, needsPerson, waitMs });
      return waitMs;
    },
    moved: () => {
      if (reason !== null) observe({ type: 'delivery-resumed', destination });
      reason = null;
      unknown = undefined;
      failures = 0;
    },
  };
}

function isSame(a: UnknownRefusal | undefined, b: UnknownRefusal | undefined): boolean {
  return a?.status === b?.status && a?.message === b?.message;
}
