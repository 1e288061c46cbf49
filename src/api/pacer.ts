/**
 * The one gate that every request passes: it waits for its turn, is booked, and only then may be sent (design 2.3).
 *
 * Promises: no request without a booking; the ceilings hold across restarts, because what the ledger knows is loaded
 * first; a wait that the server asked for is kept in the ledger before anything else happens. Among those that wait the
 * higher lane goes first, and within a lane the one that came first. Waits count on the monotonic clock: a wall clock
 * that jumps changes nothing.
 *
 * Until the server's time and the plan are known, one request is under way at a time. The local clock may be wrong
 * then, and with it the age of everything that was booked before; with the first `Date` the ledger is read again.
 */

import type { PlanFigures, WindowFigures } from '../core/allowance-terms.ts';
import type { Observe } from '../core/events.ts';
import type { ApiFaultKind } from '../core/faults.ts';
import type { Clock, Ledger, Purpose, Random, RequestLane } from '../core/ports.ts';
import type { ServerClock } from '../core/server-clock.ts';
import { type EpochMs, MINUTE_MS } from '../core/time.ts';
import { createAllowance } from './allowance.ts';
import { createBooks } from './books.ts';
import { createGate, LEAST_WAIT_MS } from './gate.ts';

export interface PacerOptions {
  readonly ledger: Ledger;
  /** The plan as known now; asked again and again, so that a new plan counts at once. */
  readonly plan: () => PlanFigures | null;
  /** How often the account was read. */
  readonly planReadings?: () => number;
  /** The part of the allowance that may be used: above 0, at most 1. */
  readonly share: number;
  /** How many requests may be under way at once. */
  readonly concurrency?: number;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: Random;
  readonly observe: Observe;
  /** Told of each look at those who wait: see `GateOptions`. */
  readonly onLook?: (restMs: number | null) => void;
  /** Told of every request that is booked, in the same breath. */
  readonly onBooked?: (purpose: Purpose) => void;
}

/** What became of a request that was let through. */
export interface Answered {
  readonly requestId: number;
  /** `null` where no answer came. */
  readonly status: number | null;
  readonly fault: ApiFaultKind | null;
  /** `X-RateLimit-Limit` and `-Remaining`; `null` where not told. */
  readonly limit: number | null;
  readonly remaining: number | null;
  /** The wait that the answer asks for, in ms. */
  readonly waitMs: number | null;
}

/** The allowance as it stands: for the status page and for whoever plans. */
export interface PacerFigures {
  readonly minute: WindowFigures;
  readonly day: WindowFigures;
  /** Until when the next request has to wait, in server time; `null` where it may go now. */
  readonly waitingUntilMs: EpochMs | null;
}

export interface Pacer {
  /**
   * Waits for a turn and books the request. Each id that this gives has to come back through `answered`.
   *
   * @returns the id of the booking. Rejects with the signal's reason when that aborts first.
   */
  acquire(purpose: Purpose, signal: AbortSignal): Promise<number>;
  /** Resolves when a request could go at once and nobody waits: for whoever decides then what to ask. Books nothing. */
  untilTurn(signal: AbortSignal): Promise<void>;
  /** Settles a booking and takes what the answer tells of the allowance. */
  answered(answer: Answered): void;
  figures(): PacerFigures;
}

/** Higher first: the order of `RequestLane`. */
const PRIORITIES: Readonly<Record<RequestLane, number>> = {
  live: 5,
  alerts: 4,
  inventory: 3,
  'first-history': 2,
  backfill: 1,
  sweep: 0,
};

/** The account is one request an hour, and what all others go by. */
function priorityOf({ lane, stream }: Purpose): number {
  return stream === 'account' ? ACCOUNT_PRIORITY : PRIORITIES[lane];
}

const ACCOUNT_PRIORITY = 6;
/** Whoever has yet to decide lets all others go first. */
const LAST_PRIORITY = -1;

const DEFAULT_CONCURRENCY = 4;
const SLEEP_WITHOUT_PLAN_MS = 250;
/** Shorter waits are the pace, and not worth telling. */
const TOLD_FROM_MS = 3000;

/** Opens the gate: reads from the ledger what is spent and what is blocked. */
export function createPacer(options: PacerOptions): Pacer {
  const { ledger, clock, serverClock, concurrency = DEFAULT_CONCURRENCY } = options;
  const allowance = createAllowance(options);
  const books = createBooks(options);
  /** When the requests that are under way were sent, by the monotonic clock. */
  const underWay = new Map<number, number>();

  let wasDoubted = false;

  const load = (): void => {
    const { sentMs, blockedUntilMs } = books.read();
    allowance.load(sentMs);
    if (blockedUntilMs !== null) allowance.blockUntil(blockedUntilMs);
  };
  const gate = createGate({
    clock,
    hasRoom: () => {
      const isServerTimeSettled = serverClock.skewMs() !== null || serverClock.isDateAbsent();
      return underWay.size < (options.plan() !== null && isServerTimeSettled ? concurrency : 1);
    },
    turn: () => {
      allowance.setPlan(options.plan());
      return allowance.turn();
    },
    ...(options.onLook === undefined ? {} : { onLook: options.onLook }),
    // Nobody tells when a plan becomes known, and the first requests should not wait for long.
    longestSleepMs: () => (options.plan() === null ? SLEEP_WITHOUT_PLAN_MS : MINUTE_MS),
    onWait: (waitMs, reason) => {
      const untilMs = Math.ceil(books.nowMs() + waitMs);
      if (waitMs > TOLD_FROM_MS) options.observe({ type: 'allowance-wait', untilMs, reason });
    },
  });
  const answered = (answer: Answered): void => {
    const nowMs = clock.monoMs();
    const sentMs = underWay.get(answer.requestId) ?? nowMs;
    underWay.delete(answer.requestId);
    const blockedMs = allowance.answered({ ...answer, sentMs, nowMs });
    const isDoubted = allowance.isPlanDoubted();
    if (isDoubted && !wasDoubted) options.observe({ type: 'plan-doubted', limit: answer.limit ?? 0 });
    wasDoubted = isDoubted;
    try {
      if (blockedMs !== null) ledger.block(Math.ceil(books.nowMs() + blockedMs - nowMs));
      ledger.recordOutcome(answer.requestId, { status: answer.status, fault: answer.fault });
      if (books.isStale()) load();
    } finally {
      // Whatever becomes of the ledger, nobody waits for a place that is free.
      gate.check();
    }
  };

  load();
  return {
    async acquire(purpose, signal) {
      let requestId: number | null = null;
      const book = (): number => {
        requestId = books.book(purpose);
        underWay.set(requestId, clock.monoMs());
        allowance.sent(clock.monoMs());
        options.onBooked?.(purpose);
        return requestId;
      };
      try {
        return await gate.pass(book, priorityOf(purpose), signal);
      } catch (error) {
        // Aborted in the moment in which it was booked: it will not be sent.
        if (requestId !== null) answered({ ...NOTHING, requestId });
        throw error;
      }
    },
    untilTurn: async (signal) => await gate.pass(() => {}, LAST_PRIORITY, signal),
    answered,
    figures() {
      allowance.setPlan(options.plan());
      const nowMs = clock.monoMs();
      const waitMs = allowance.turn().atMs - nowMs;
      return {
        minute: allowance.minute(nowMs),
        day: allowance.day(nowMs),
        waitingUntilMs: waitMs < LEAST_WAIT_MS ? null : Math.ceil(books.nowMs() + waitMs),
      };
    },
  };
}

const NOTHING = { status: null, fault: null, limit: null, remaining: null, waitMs: null };
