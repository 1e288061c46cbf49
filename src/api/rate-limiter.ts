/**
 * The rate limiter. Every request waits in it for its turn and is booked in the ledger before it is sent.
 *
 * Promises: no request is sent without a booking. The limits hold across restarts, because the bookings of the last day
 * are read from the ledger first. A wait that the server requests is stored in the ledger before anything else happens.
 * The higher lane goes first, and within a lane the request that came first. Waits are counted on the monotonic clock,
 * so a jump of the wall clock changes nothing.
 *
 * Until the server's time and the plan are known, only one request is under way at a time: the local clock may be
 * wrong, and with it the age of all earlier bookings. The first `Date` header makes the limiter read the ledger again.
 * Bookings from the future are then dated back, once: otherwise each start before that future time would count them as
 * made now.
 */

import { checkPauseMs } from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import type { ApiFaultKind } from '../core/faults.ts';
import { RequestsSpentError } from '../core/faults.ts';
import { type BookingTimes, type Clock, type Ledger, type Purpose, type Random, REQUEST_LANES } from '../core/ports.ts';
import { type PlanFigures, type QuotaWindowFigures, REPORTED_FROM_MS, type WaitReason } from '../core/quota.ts';
import type { ServerClock } from '../core/server-clock.ts';
import { DAY_MS, type EpochMs, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import {
  type AnswerFacts,
  blockUntil,
  createQuota,
  hasLimitMismatch,
  LONGEST_BLOCK_MS,
  nextTurn,
  noteAnswer,
  noteSent,
  type Quota,
  quotaFigures,
  setPlan,
} from './quota.ts';
import { createRequestQueue, LEAST_WAIT_MS, passQueue, type RequestQueue, runQueue } from './request-queue.ts';

/** The ledger, the plan and the share that a rate limiter observes. */
export interface RateLimiterOptions {
  readonly ledger: Ledger;
  /** Returns the known plan. Called for every request, so that a new plan counts at once. */
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
  /** Called at each check of the queue: see `RequestQueueOptions`. */
  readonly onCheck?: (sleepMs: number | null) => void;
  /** Called for every request, right after its booking. */
  readonly onBooked?: (purpose: Purpose) => void;
  /** Called when requests begin to wait for longer than even spacing explains; `untilMs` is in server time. */
  readonly onWait?: (untilMs: EpochMs, reason: WaitReason) => void;
  /** Called when the API begins to report a limit that differs from the plan's. */
  readonly onLimitMismatch?: () => void;
}

/** The outcome of a request that the limiter has let through. */
interface Answered extends Omit<AnswerFacts, 'sentMs' | 'nowMs'> {
  readonly requestId: number;
  readonly fault: ApiFaultKind | null;
}

/** The usage of the quota, for the status page and the planner. */
export interface RateLimiterFigures {
  readonly minute: QuotaWindowFigures;
  readonly day: QuotaWindowFigures;
  /** Until when the next request has to wait, in server time; `null` if it may be sent now. */
  readonly waitingUntilMs: EpochMs | null;
  /** The reason of the wait; `null` if a request may be sent now. */
  readonly waitingFor: WaitReason | null;
  /**
   * Whether at least the last three requests were rejected, each after the wait that the previous answer had requested.
   */
  readonly isRejectedRepeatedly: boolean;
}

/** Gives each request its turn within the share of the quota, and books it before it is sent. */
export interface RateLimiter {
  /**
   * Waits for a turn and books the request. Each id that it returns must be passed to `noteAnswered` later.
   *
   * @returns the id of the booking
   * @throws the signal's reason when that aborts first
   */
  acquire(purpose: Purpose, signal: AbortSignal): Promise<number>;
  /**
   * Resolves when a request could be sent at once and no other waits, so that the caller can decide only then what to
   * request. It books nothing.
   */
  waitUntilTurn(signal: AbortSignal): Promise<void>;
  /** Completes a booking and records the quota headers of the answer. */
  noteAnswered(answer: Answered): void;
  figures(): RateLimiterFigures;
}

/** The account is one request per hour, and all other requests depend on it. */
const ACCOUNT_PRIORITY = REQUEST_LANES.length;
/** The priority of `waitUntilTurn`: all waiting requests go first. */
const LAST_PRIORITY = -1;

/** The place in the queue of waiting requests: a higher number goes first. */
function priorityOf({ lane, stream }: Purpose): number {
  return stream === 'account' ? ACCOUNT_PRIORITY : REQUEST_LANES.length - 1 - REQUEST_LANES.indexOf(lane);
}

const DEFAULT_CONCURRENCY = 4;
const SLEEP_WITHOUT_PLAN_MS = 250;

/** The parts and the mutable state of a rate limiter. */
interface LimiterState {
  readonly options: RateLimiterOptions;
  readonly quota: Quota;
  readonly accounting: Accounting;
  /** When each request that is under way was sent, by the monotonic clock. */
  readonly underWay: Map<number, number>;
  hadMismatch: boolean;
  /** Whether the ledger has a wait that no request has followed yet. */
  isWaitKept: boolean;
}

/** Opens the rate limiter: reads the earlier bookings and the wait from the ledger. */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const state: LimiterState = {
    options,
    quota: createQuota(options),
    accounting: createAccounting(options),
    underWay: new Map(),
    hadMismatch: false,
    isWaitKept: false,
  };
  const queue = createRequestQueue(queueOptions(state));
  loadLedger(state);
  return {
    acquire: async (purpose, signal) => await acquire(state, queue, purpose, signal),
    waitUntilTurn: async (signal) => await passQueue(queue, () => {}, LAST_PRIORITY, signal),
    noteAnswered: (answer) => complete(state, queue, answer),
    figures: () => figuresOf(state),
  };
}

/** The options by which the queue gets free places and the next turn from the limiter. */
function queueOptions(state: LimiterState): RequestQueue['options'] {
  const { options, quota, accounting, underWay } = state;
  const { plan, clock, serverClock, concurrency = DEFAULT_CONCURRENCY, onCheck } = options;
  return {
    clock,
    hasRoom: () => underWay.size < (plan() !== null && isTimeKnown(serverClock) ? concurrency : 1),
    beforeTurn: () => setPlan(quota, plan()),
    turn: () => nextTurn(quota),
    onCheck,
    // No event reports that the plan has become known, and the first requests should not wait for long.
    longestSleepMs: (waitedMs) =>
      plan() === null ? Math.min(checkPauseMs(waitedMs, SLEEP_WITHOUT_PLAN_MS), MINUTE_MS) : MINUTE_MS,
    onWait: (waitMs, reason) => {
      const untilMs = Math.ceil(accounting.nowMs() + waitMs);
      if (waitMs > REPORTED_FROM_MS) reportWait(options, untilMs, reason);
    },
  };
}

/** Loads the bookings, and the wait if it still applies, from the ledger. */
function loadLedger(state: LimiterState): void {
  state.accounting.adopt();
  const { sentMs, blockedUntilMs } = state.accounting.read();
  state.quota.log.load(sentMs);
  if (blockedUntilMs !== null) blockUntil(state.quota, blockedUntilMs);
  state.isWaitKept = blockedUntilMs !== null;
}

async function acquire(
  state: LimiterState,
  queue: RequestQueue,
  purpose: Purpose,
  signal: AbortSignal,
): Promise<number> {
  let requestId: number | null = null;
  const bookNow = (): number => {
    requestId = book(state, purpose);
    return requestId;
  };
  try {
    return await passQueue(queue, bookNow, priorityOf(purpose), signal);
  } catch (error) {
    // The signal aborted at the moment of the booking: the request will not be sent.
    if (requestId !== null) complete(state, queue, { ...NOT_SENT, requestId });
    throw error;
  }
}

/** Books a request that is sent now, which ends a stored wait. Returns the id of the booking. */
function book(state: LimiterState, purpose: Purpose): number {
  const { options, quota, accounting, underWay } = state;
  const { ledger, clock, onBooked } = options;
  const atMs = accounting.nowMs();
  if (state.isWaitKept) ledger.block(atMs, 0);
  state.isWaitKept = false;
  const requestId = ledger.book(atMs, purpose, accounting.localMs().latest);
  accounting.noteBooked(atMs);
  underWay.set(requestId, clock.monoMs());
  noteSent(quota, clock.monoMs());
  onBooked?.(purpose);
  return requestId;
}

/** Records the outcome of a request, in the quota and in the ledger, and lets the next request go. */
function complete(state: LimiterState, queue: RequestQueue, answer: Answered): void {
  const { options, quota, accounting, underWay } = state;
  const { ledger, clock } = options;
  const nowMs = clock.monoMs();
  const sentMs = underWay.get(answer.requestId) ?? nowMs;
  underWay.delete(answer.requestId);
  const blockedMs = noteAnswer(quota, { ...answer, sentMs, nowMs });
  try {
    // Before the answer is returned, and before another request is sent.
    if (blockedMs !== null) ledger.block(accounting.nowMs(), blockedMs - nowMs);
    state.isWaitKept ||= blockedMs !== null;
    const isMismatch = hasLimitMismatch(quota);
    if (isMismatch && !state.hadMismatch) reportMismatch(options, answer.limit ?? 0);
    state.hadMismatch = isMismatch;
    ledger.recordOutcome(answer.requestId, { status: answer.status, fault: answer.fault });
    if (accounting.isStale()) {
      loadLedger(state);
      ledger.dateBack(accounting.nowMs(), accounting.localMs().earliest);
    }
  } finally {
    // Even if the ledger fails, the free place is given to the next request.
    void runQueue(queue);
  }
}

function figuresOf({ options, quota, accounting }: LimiterState): RateLimiterFigures {
  const nowMs = options.clock.monoMs();
  const { minute, day, turn } = quotaFigures(quota, nowMs, options.plan());
  const waitMs = turn.atMs - nowMs;
  const windows = { minute, day, isRejectedRepeatedly: quota.terms.throttle.rejections.is === 'many' };
  if (waitMs < LEAST_WAIT_MS) return { ...windows, waitingUntilMs: null, waitingFor: null };
  return { ...windows, waitingUntilMs: Math.ceil(accounting.nowMs() + waitMs), waitingFor: turn.reason };
}

function reportWait({ onWait, observe, serverClock }: RateLimiterOptions, untilMs: EpochMs, reason: WaitReason): void {
  onWait?.(untilMs, reason);
  // Before the first answer, failures explain the low rate, and those are reported.
  if (reason !== 'rate' || isTimeKnown(serverClock)) observe({ type: 'quota-wait', untilMs, reason });
}

function reportMismatch({ onLimitMismatch, observe }: RateLimiterOptions, limit: number): void {
  onLimitMismatch?.();
  observe({ type: 'limit-mismatch', limit });
}

/** Whether the server's time is known, or it is known that the server sends none. */
function isTimeKnown(serverClock: ServerClock): boolean {
  return serverClock.isKnown() || serverClock.isDateAbsent();
}

const NOT_SENT = { status: null, fault: null, limit: null, remaining: null, waitMs: null };

/** A rate limiter that lets a fixed number of requests through, retries included. */
interface Limited {
  readonly limiter: RateLimiter;
  /** The number of requests that were let through so far. */
  spent(): number;
}

/**
 * Limits a rate limiter to a number of requests. After them `acquire` rejects with a `RequestsSpentError` and books
 * nothing.
 *
 * @param most how many requests may pass
 */
export function limitRequests(limiter: RateLimiter, most: number): Limited {
  let spent = 0;
  return {
    spent: () => spent,
    limiter: {
      ...limiter,
      acquire: async (purpose, signal) => {
        if (spent >= most)
          throw new RequestsSpentError(`this command sends no further request: its limit of ${most} is reached`);
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
 * How far behind the server's clock the times in the ledger may be, because `Date` is truncated to the second and the
 * answer has travelled. Times that are read from the ledger count as this much later.
 */
const LEDGER_TOLERANCE_MS = 2 * SECOND_MS;

/** The booked requests, by the monotonic clock. */
interface Spent {
  /** When the requests of the last day were sent, ascending. */
  readonly sentMs: readonly number[];
  /** Until when the server has requested a wait; `null` if no such wait is left. */
  readonly blockedUntilMs: number | null;
}

/**
 * The requests that were sent and may still be sent, by the ledger and the plan. It converts between two clocks: the
 * ledger stores bookings in server time, and waits are counted on the monotonic clock.
 */
export interface Accounting {
  /**
   * Loads the ledger, at the start and when the server's time becomes known. Without that time, bookings from the
   * future count as made now, and the booking time continues from the newest one.
   */
  adopt(): void;
  /** Reads the bookings of the last day and the wait. */
  read(): Spent;
  /** Whether the server's time became known since the ledger was loaded. */
  isStale(): boolean;
  /** The time that a request is booked with: the server's, as well as it is known. */
  nowMs(): EpochMs;
  /**
   * The local clock's time, now and as continued from the start, because the clock may jump. A booking gets the later
   * one, and its age is counted up to the earlier one, so that no jump makes it older.
   */
  localMs(): { readonly earliest: EpochMs; readonly latest: EpochMs };
  /** Records that a request was booked just now. */
  noteBooked(atMs: EpochMs): void;
}

interface AccountingOptions {
  readonly ledger: Pick<Ledger, 'bookedSince' | 'dateAheadAsNow' | 'blockedUntilMs'>;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
}

/**
 * Creates the accounting over a ledger. The caller calls `adopt` first.
 *
 * Before the first `Date` only the local clock is known, and it may be behind (a machine without a battery) or ahead.
 * So the current time is never earlier than the newest booking, and the ledger is read again as soon as the server's
 * time is known.
 *
 * A booking from the future was made by a clock that was ahead, or the current clock is behind. Its age comes from the
 * local clock, which was read at the same time. If that is in the future too, the booking counts as made now. The
 * ledger records that, so that the booking expires after one quota window, however often the program starts in the
 * meantime.
 */
export function createAccounting({ ledger, clock, serverClock }: AccountingOptions): Accounting {
  let isTimeAdopted = false;
  let origin = { epochMs: 0, monoMs: clock.monoMs() };
  const localOffsetMs = clock.nowMs() - clock.monoMs();
  /** The bookings of this process from before the server's time was known. */
  let early: { readonly atMs: EpochMs; readonly monoMs: number }[] = [];

  const { isKnown } = serverClock;
  const nowMs = (): EpochMs => {
    if (isKnown()) return serverClock.nowMs();
    const carriedMs = origin.epochMs + Math.ceil(clock.monoMs() - origin.monoMs);
    // If the server sends no `Date`, only the local clock includes the time for which the host slept.
    return serverClock.isDateAbsent() ? Math.max(carriedMs, clock.nowMs()) : carriedMs;
  };

  const localMs = (): { earliest: EpochMs; latest: EpochMs } => {
    const [wallMs, carriedMs] = [clock.nowMs(), clock.monoMs() + localOffsetMs];
    return { earliest: Math.min(wallMs, carriedMs), latest: Math.max(wallMs, carriedMs) };
  };

  return {
    nowMs,
    localMs,
    isStale: () => isKnown() && !isTimeAdopted,
    adopt() {
      isTimeAdopted = isKnown();
      if (isTimeAdopted) return;
      ledger.dateAheadAsNow(localMs().earliest);
      const timeMs = serverClock.nowMs();
      const newest = ledger.bookedSince(timeMs - 1).at(-1);
      origin = { epochMs: newest === undefined ? timeMs : newest.atMs + 1, monoMs: clock.monoMs() };
    },
    read() {
      const monoMs = clock.monoMs();
      const timeMs = serverClock.nowMs();
      const { earliest } = localMs();
      const earlyAt = new Set(early.map(({ atMs }) => atMs));
      const booked = ledger.bookedSince(timeMs - DAY_MS - LEDGER_TOLERANCE_MS).filter(({ atMs }) => !earlyAt.has(atMs));
      const ageMs = (times: BookingTimes): number =>
        times.atMs <= timeMs ? timeMs - times.atMs : earliest - (times.localMs ?? earliest);
      const sentMs = booked.map((times) => monoMs - Math.max(0, ageMs(times) - LEDGER_TOLERANCE_MS));
      const now = nowMs();
      const blockedMs = Math.min(LONGEST_BLOCK_MS, Math.max(0, ledger.blockedUntilMs(now) + LEDGER_TOLERANCE_MS - now));
      return {
        sentMs: [...sentMs, ...early.map((own) => own.monoMs)].sort((a, b) => a - b),
        blockedUntilMs: blockedMs > 0 ? monoMs + blockedMs : null,
      };
    },
    noteBooked(atMs) {
      if (isKnown()) early = [];
      else early.push({ atMs, monoMs: clock.monoMs() });
    },
  };
}
