/**
 * The rate limiter that every request passes: it waits for its turn, is booked, and only then may be sent.
 *
 * Promises: no request without a booking; the ceilings hold across restarts, because what the ledger knows is loaded
 * first; a wait that the server asked for is kept in the ledger before anything else happens. Among those that wait the
 * higher lane goes first, and within a lane the one that came first. Waits count on the monotonic clock: a wall clock
 * that jumps changes nothing.
 *
 * Until the server's time and the plan are known, one request is under way at a time. The local clock may be wrong
 * then, and with it the age of everything that was booked before; with the first `Date` the ledger is read again.
 */

import type { Observe } from '../core/events.ts';
import type { ApiFaultKind } from '../core/faults.ts';
import { RequestsSpentError } from '../core/faults.ts';
import type { Clock, Ledger, Purpose, Random, RequestLane } from '../core/ports.ts';
import type { PlanFigures, WaitReason, WindowFigures } from '../core/quota.ts';
import type { ServerClock } from '../core/server-clock.ts';
import { DAY_MS, type EpochMs, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { createQuota, LONGEST_BLOCK_MS } from './quota.ts';
import { createRequestQueue, LEAST_WAIT_MS } from './request-queue.ts';
import type { AnswerFacts } from './windows.ts';

export interface RateLimiterOptions {
  readonly ledger: Ledger;
  /** The plan as known now; asked again and again, so that a new plan counts at once. */
  readonly plan: () => PlanFigures | null;
  /** How often the account was read. */
  readonly planReadings?: () => number;
  /** The part of the quota that may be used: above 0, at most 1. */
  readonly share: number;
  /** How many requests may be under way at once. */
  readonly concurrency?: number;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: Random;
  readonly observe: Observe;
  /** Called at each look at those who wait: see `RequestQueueOptions`. */
  readonly onLook?: (restMs: number | null) => void;
  /** Called for every request that is booked, at once. */
  readonly onBooked?: (purpose: Purpose) => void;
  /** Called where requests begin to wait for longer than the pace makes them; `untilMs` in server time. */
  readonly onWait?: (untilMs: EpochMs, reason: WaitReason) => void;
  /** Called where the API begins to speak of a limit that the plan does not have. */
  readonly onPlanDoubted?: () => void;
}

/** What became of a request that was let through. */
interface Answered extends Omit<AnswerFacts, 'sentMs' | 'nowMs'> {
  readonly requestId: number;
  readonly fault: ApiFaultKind | null;
}

/** The quota as it stands: for the status page and for whoever plans. */
export interface RateLimiterFigures {
  readonly minute: WindowFigures;
  readonly day: WindowFigures;
  /** Until when the next request has to wait, in server time; `null` where it may go now. */
  readonly waitingUntilMs: EpochMs | null;
  /** What it has to wait for; `null` where it may go now. */
  readonly waitingFor: WaitReason | null;
}

export interface RateLimiter {
  /**
   * Waits for a turn and books the request. Each id that this gives has to come back through `answered`.
   *
   * @returns the id of the booking. Rejects with the signal's reason when that aborts first.
   */
  acquire(purpose: Purpose, signal: AbortSignal): Promise<number>;
  /** Resolves when a request could go at once and nobody waits: for whoever decides then what to ask. Books nothing. */
  untilTurn(signal: AbortSignal): Promise<void>;
  /** Completes a booking and takes in what the answer says of the quota. */
  answered(answer: Answered): void;
  figures(): RateLimiterFigures;
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
/** Shorter waits are the pace, and not worth reporting. */
const REPORTED_FROM_MS = 3000;

/** Opens the rate limiter: reads from the ledger what is spent and what is blocked. */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { ledger, clock, serverClock, concurrency = DEFAULT_CONCURRENCY } = options;
  const quota = createQuota(options);
  const accounting = createAccounting(options);
  /** When the requests that are under way were sent, by the monotonic clock. */
  const underWay = new Map<number, number>();
  let wasDoubted = false;

  const load = (): void => {
    const { sentMs, blockedUntilMs } = accounting.read();
    quota.load(sentMs);
    if (blockedUntilMs !== null) quota.blockUntil(blockedUntilMs);
  };
  const queue = createRequestQueue({
    clock,
    hasRoom: () => underWay.size < (options.plan() !== null && isTimeKnown(serverClock) ? concurrency : 1),
    turn: () => {
      quota.setPlan(options.plan());
      return quota.turn();
    },
    onLook: options.onLook,
    // There is no event for a plan that becomes known, and the first requests should not wait for long.
    longestSleepMs: () => (options.plan() === null ? SLEEP_WITHOUT_PLAN_MS : MINUTE_MS),
    onWait: (waitMs, reason) => {
      const untilMs = Math.ceil(accounting.nowMs() + waitMs);
      if (waitMs > REPORTED_FROM_MS) reportWait(options, untilMs, reason);
    },
  });
  const book = (purpose: Purpose): number => {
    const atMs = accounting.nowMs();
    const requestId = ledger.book(atMs, purpose);
    accounting.booked(atMs);
    underWay.set(requestId, clock.monoMs());
    quota.sent(clock.monoMs());
    options.onBooked?.(purpose);
    return requestId;
  };
  const answered = (answer: Answered): void => {
    const nowMs = clock.monoMs();
    const sentMs = underWay.get(answer.requestId) ?? nowMs;
    underWay.delete(answer.requestId);
    const blockedMs = quota.answered({ ...answer, sentMs, nowMs });
    const isDoubted = quota.isPlanDoubted();
    if (isDoubted && !wasDoubted) reportDoubt(options, answer.limit ?? 0);
    wasDoubted = isDoubted;
    try {
      if (blockedMs !== null) ledger.block(Math.ceil(accounting.nowMs() + blockedMs - nowMs));
      ledger.recordOutcome(answer.requestId, { status: answer.status, fault: answer.fault });
      if (accounting.isStale()) load();
    } finally {
      // Whatever becomes of the ledger, nobody waits for a place that is free.
      queue.check();
    }
  };

  load();
  return {
    async acquire(purpose, signal) {
      let requestId: number | null = null;
      const go = (): number => {
        requestId = book(purpose);
        return requestId;
      };
      try {
        return await queue.pass(go, priorityOf(purpose), signal);
      } catch (error) {
        // Aborted in the moment in which it was booked: it will not be sent.
        if (requestId !== null) answered({ ...NOTHING, requestId });
        throw error;
      }
    },
    untilTurn: async (signal) => await queue.pass(() => {}, LAST_PRIORITY, signal),
    answered,
    figures() {
      const nowMs = clock.monoMs();
      const { minute, day, turn } = quota.figures(nowMs, options.plan());
      const waitMs = turn.atMs - nowMs;
      if (waitMs < LEAST_WAIT_MS) return { minute, day, waitingUntilMs: null, waitingFor: null };
      return { minute, day, waitingUntilMs: Math.ceil(accounting.nowMs() + waitMs), waitingFor: turn.reason };
    },
  };
}

function reportWait({ onWait, observe }: RateLimiterOptions, untilMs: EpochMs, reason: WaitReason): void {
  onWait?.(untilMs, reason);
  observe({ type: 'allowance-wait', untilMs, reason });
}

function reportDoubt({ onPlanDoubted, observe }: RateLimiterOptions, limit: number): void {
  onPlanDoubted?.();
  observe({ type: 'plan-doubted', limit });
}

/** Whether the server's time is known, or the server is known to send none. */
function isTimeKnown(serverClock: ServerClock): boolean {
  return serverClock.skewMs() !== null || serverClock.isDateAbsent();
}

const NOTHING = { status: null, fault: null, limit: null, remaining: null, waitMs: null };

/** A rate limiter that lets a certain number of requests through and no more, whoever tries again what for. */
interface Limited {
  readonly limiter: RateLimiter;
  /** How many were let through. */
  spent(): number;
}

/** @param most how many requests may pass; then `acquire` rejects with a `RequestsSpentError`, and books nothing. */
export function limitedTo(limiter: RateLimiter, most: number): Limited {
  let spent = 0;
  return {
    spent: () => spent,
    limiter: {
      ...limiter,
      acquire: async (purpose, signal) => {
        if (spent >= most) throw new RequestsSpentError(`all ${most} requests are sent`);
        spent += 1;
        try {
          return await limiter.acquire(purpose, signal);
        } catch (error) {
          spent -= 1;
          throw error;
        }
      },
    },
  };
}

/**
 * How far behind the server's clock a booking or a block may have been made: `Date` is cut to the second and has
 * travelled. Times from the ledger are taken to be later by this.
 */
const GRAIN_MS = 2 * SECOND_MS;

/** What the ledger knows, by the monotonic clock. */
interface Spent {
  /** When the requests of the last day were sent, ascending. */
  readonly sentMs: readonly number[];
  /** `null` where no wait that was asked for goes on. */
  readonly blockedUntilMs: number | null;
}

interface Accounting {
  /** Reads what is spent. */
  read(): Spent;
  /** Whether the server's time became known since the ledger was read. */
  isStale(): boolean;
  /** The time to book at. */
  nowMs(): EpochMs;
  /** Takes in that a request was booked, just now. */
  booked(atMs: EpochMs): void;
}

interface AccountingOptions {
  readonly ledger: Pick<Ledger, 'sentSince' | 'blockedUntilMs'>;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
}

/**
 * The ledger by two clocks: bookings are kept in the server's time, waits are counted on the monotonic clock, and this
 * is where the one becomes the other.
 *
 * Before the first `Date` the local clock is all there is, and it may be wrong: behind (a machine without a battery),
 * or ahead. So it is never taken to be earlier than the newest booking, and as soon as the server's time is known the
 * ledger is read again.
 */
function createAccounting({ ledger, clock, serverClock }: AccountingOptions): Accounting {
  let isRead = false;
  let anchor = { epochMs: 0, monoMs: clock.monoMs() };
  /** Own bookings from before the server's time was known. */
  let early: { readonly atMs: EpochMs; readonly monoMs: number }[] = [];

  const isKnown = (): boolean => serverClock.skewMs() !== null;
  const nowMs = (): EpochMs => {
    if (isKnown()) return serverClock.nowMs();
    const carriedMs = anchor.epochMs + Math.ceil(clock.monoMs() - anchor.monoMs);
    // Where there will be no server's time, the local clock knows of the time that the host slept through.
    return serverClock.isDateAbsent() ? Math.max(carriedMs, clock.nowMs()) : carriedMs;
  };

  return {
    nowMs,
    isStale: () => isKnown() && !isRead,
    read() {
      const monoMs = clock.monoMs();
      const earlyAt = new Set(early.map(({ atMs }) => atMs));
      const booked = ledger.sentSince(serverClock.nowMs() - DAY_MS - GRAIN_MS).filter((atMs) => !earlyAt.has(atMs));
      isRead = isKnown();
      if (!isRead) anchor = { epochMs: Math.max(serverClock.nowMs(), (booked.at(-1) ?? 0) + 1), monoMs };
      const now = nowMs();
      // A booking from the future is one of a clock that was wrong: it counts as new.
      const sentMs = booked.map((atMs) => monoMs - Math.max(0, now - atMs - GRAIN_MS));
      const blockedMs = Math.min(LONGEST_BLOCK_MS, Math.max(0, ledger.blockedUntilMs() + GRAIN_MS - now));
      return {
        sentMs: [...sentMs, ...early.map((own) => own.monoMs)].sort((a, b) => a - b),
        blockedUntilMs: blockedMs > 0 ? monoMs + blockedMs : null,
      };
    },
    booked(atMs) {
      if (isKnown()) early = [];
      else early.push({ atMs, monoMs: clock.monoMs() });
    },
  };
}
