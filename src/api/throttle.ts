/**
 * The throttle: a state machine that slows requests down after the server's answers. It never speeds them up: the
 * limits of `quota.ts` always hold.
 *
 * It has three independent states. `quota.ts` turns the headers of an answer into events, and the status of an answer
 * is an event as well. The table shows the effect of each event (a dot: no change):
 *
 *   state                day-ample  day-scarce  day-silent  minute-scarce  ample   scarce    served  rejected new-plan
 *   day        free      ·          guarded     ·           ·              ·       ·         ·       ·        ·
 *              guarded   free       ·           free        ·              ·       ·         ·       ·        free
 *   pauses     single    ·          ·           ·           ·              ·       doubling  ·       ·        ·
 *              doubling  ·          ·           ·           ·              single  ·         ·       ·        single
 *   rejections none      ·          ·           ·           ·              ·       ·         ·       one      ·
 *              one       ·          ·           ·           ·              ·       ·         none    two      ·
 *              two       ·          ·           ·           ·              ·       ·         none    many     ·
 *              many      ·          ·           ·           ·              ·       ·         none    ·        ·
 *
 * `scarce` means that other clients have nearly used up a window, so that its rest is left to them: the `minute`, the
 * `day`, or, without either word, a window that cannot be named because the plan is unknown.
 *
 * - While the day is `guarded`, one request is sent every fifteen minutes, which is enough to notice the end. The day
 *   is free again when headers show it, or when they no longer report the day (`silent`), because they report the
 *   tighter window.
 * - `minute-scarce` pauses requests until the minute has filled up again. `scarce` pauses them for a minute, and while
 *   pauses are `doubling` each one is twice as long, up to fifteen minutes.
 * - Each rejection halves the rate, down to a tenth; the rate recovers by a twentieth of the full rate per minute while
 *   requests are `served`. A rejection with a long wait concerns the day and does not change the rate. From the third
 *   rejection in a row (`many`), the wait is doubled each time, up to fifteen minutes.
 */

import type { Random } from '../core/ports.ts';
import type { Turn } from '../core/quota.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** How often a request is sent while other clients have nearly used up the day. */
export const DAY_GUARD_EVERY_MS = 15 * MINUTE_MS;
const LONGEST_PAUSE_MS = 15 * MINUTE_MS;
/** A wait longer than this concerns the day. */
export const MINUTE_WAIT_MS = 2 * MINUTE_MS;
/** The lowest factor of the rate after rejections. */
const LEAST_FACTOR = 0.1;
const RECOVERY_PER_MINUTE = 0.05;

/** How the answers so far slow requests down. */
export interface ThrottleState {
  readonly day: { readonly is: 'free' | 'guarded' };
  /** `lastMs`: the length of the last pause for an unnamed window. */
  readonly pauses: { readonly is: 'single' } | { readonly is: 'doubling'; readonly lastMs: number };
  /** How many rejections came in a row. `doublings`: how often the wait is doubled. */
  readonly rejections: { readonly is: 'none' | 'one' | 'two' } | { readonly is: 'many'; readonly doublings: number };
  /** The end of the last pause. */
  readonly pausedUntilMs: number;
  /** The factor of the rate, 0.1 to 1, and the time of its last change. */
  readonly factor: number;
  readonly factorAtMs: number;
  /** The time of the last rejection. */
  readonly rejectedAtMs: number;
}

/** The events of answers and plans. Times are of the monotonic clock. */
export type ThrottleEvent =
  | { readonly kind: 'day-ample' | 'day-scarce' | 'day-silent' | 'ample' | 'new-plan' }
  /** `remaining`: how many requests the minute has left. */
  | { readonly kind: 'minute-scarce'; readonly nowMs: number; readonly remaining: number }
  | { readonly kind: 'scarce' | 'served'; readonly nowMs: number }
  /** `waitMs`: the wait that the answer requests. */
  | { readonly kind: 'rejected'; readonly nowMs: number; readonly waitMs: number };

/** The state before the first answer. */
export const UNTHROTTLED: ThrottleState = {
  day: { is: 'free' },
  pauses: { is: 'single' },
  rejections: { is: 'none' },
  pausedUntilMs: Number.NEGATIVE_INFINITY,
  factor: 1,
  factorAtMs: 0,
  rejectedAtMs: Number.NEGATIVE_INFINITY,
};

/** Returns the state after an event, as in the table in the header. Pure. */
export function transition(state: ThrottleState, event: ThrottleEvent): ThrottleState {
  switch (event.kind) {
    case 'day-ample':
    case 'day-silent':
      return { ...state, day: { is: 'free' } };
    case 'day-scarce':
      return { ...state, day: { is: 'guarded' } };
    case 'minute-scarce':
      return pausedUntil(state, event.nowMs + MINUTE_MS / (event.remaining + 1));
    case 'ample':
      return { ...state, pauses: { is: 'single' } };
    case 'scarce': {
      const { pauses } = state;
      const pauseMs = pauses.is === 'single' ? MINUTE_MS : Math.min(LONGEST_PAUSE_MS, pauses.lastMs * 2);
      return pausedUntil({ ...state, pauses: { is: 'doubling', lastMs: pauseMs } }, event.nowMs + pauseMs);
    }
    case 'served':
      return withRecovery({ ...state, rejections: { is: 'none' } }, event.nowMs);
    case 'rejected':
      return withRejection(state, event);
    case 'new-plan':
      return { ...state, day: { is: 'free' }, pauses: { is: 'single' } };
  }
}

/** Answers may arrive out of order, so an earlier, longer pause still counts. */
function pausedUntil(state: ThrottleState, untilMs: number): ThrottleState {
  return { ...state, pausedUntilMs: Math.max(state.pausedUntilMs, untilMs) };
}

function withRecovery(state: ThrottleState, nowMs: number): ThrottleState {
  const minutes = Math.max(0, nowMs - state.factorAtMs) / MINUTE_MS;
  return { ...state, factor: Math.min(1, state.factor + RECOVERY_PER_MINUTE * minutes), factorAtMs: nowMs };
}

function withRejection(state: ThrottleState, { nowMs, waitMs }: { nowMs: number; waitMs: number }): ThrottleState {
  return {
    ...state,
    rejections: oneMore(state.rejections),
    factor: waitMs <= MINUTE_WAIT_MS ? Math.max(LEAST_FACTOR, state.factor / 2) : state.factor,
    factorAtMs: nowMs,
    rejectedAtMs: nowMs,
  };
}

function oneMore(rejections: ThrottleState['rejections']): ThrottleState['rejections'] {
  switch (rejections.is) {
    case 'none':
      return { is: 'one' };
    case 'one':
      return { is: 'two' };
    case 'two':
      return { is: 'many', doublings: 1 };
    case 'many':
      return { is: 'many', doublings: rejections.doublings + 1 };
  }
}

/**
 * When the next request may be sent.
 *
 * @param lastSentMs when the last request was sent
 */
export function throttledTurn({ day, pausedUntilMs }: ThrottleState, lastSentMs: number): Turn {
  const guardMs = day.is === 'guarded' ? lastSentMs + DAY_GUARD_EVERY_MS : Number.NEGATIVE_INFINITY;
  return guardMs > pausedUntilMs ? { atMs: guardMs, reason: 'day' } : { atMs: pausedUntilMs, reason: 'minute' };
}

/** How long nothing may be sent after an answer that requested a wait, in ms: never less than the answer requested. */
export function waitAfter({ rejections }: ThrottleState, requestedMs: number, random: Random): number {
  const doublings = rejections.is === 'many' ? rejections.doublings : 0;
  const waitMs = Math.max(requestedMs, Math.min(requestedMs * 2 ** doublings, LONGEST_PAUSE_MS));
  // Jitter is only added, so that clients that were rejected together do not return together.
  return waitMs + (0.1 + 0.9 * random()) * Math.min(5 * SECOND_MS, Math.max(SECOND_MS, waitMs / 10));
}
