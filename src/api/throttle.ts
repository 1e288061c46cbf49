/**
 * How the server's answers slow the requests down, as a state machine. It only ever slows them down: the ceilings of
 * `quota.ts` hold whatever it says.
 *
 * Three states stand side by side; `windows.ts` turns the headers of an answer into the events that change them, the
 * status of an answer is an event as well. What each event leads to (a dot: it changes nothing):
 *
 *   state              day-ample  day-scarce  day-silent  minute-scarce  ample   scarce    served  refused  new-plan
 *   day      free      ·          guarded     ·           ·              ·       ·         ·       ·        ·
 *            guarded   free       ·           free        ·              ·       ·         ·       ·        free
 *   pauses   single    ·          ·           ·           ·              ·       doubling  ·       ·        ·
 *            doubling  ·          ·           ·           ·              single  ·         ·       ·        single
 *   refusals none      ·          ·           ·           ·              ·       ·         ·       one      ·
 *            one       ·          ·           ·           ·              ·       ·         none    two      ·
 *            two       ·          ·           ·           ·              ·       ·         none    many     ·
 *            many      ·          ·           ·           ·              ·       ·         none    ·        ·
 *
 * `scarce` means that other clients have nearly used a window up, so that a remainder is left to them: of the `minute`,
 * of the `day`, or, without either word, of a window that cannot be named because the plan is not known.
 *
 * - While the day is `guarded`, one request is sent in fifteen minutes: enough to notice when it is over. It is free
 *   again when headers show that, or have stopped to speak of the day (`silent`): they speak of the tighter window.
 * - `minute-scarce` pauses for the time in which the minute fills up again. `scarce` pauses for a minute, and for twice
 *   as long each time that it comes while pauses are `doubling`, up to fifteen minutes.
 * - Each refusal halves the pace, down to a tenth; it recovers by a twentieth of the full pace a minute while requests
 *   are `served`. A refusal that asks for a long wait speaks of the day and says nothing of the pace. From the third
 *   refusal in a row on (`many`) the wait that is asked for is doubled each time, up to fifteen minutes.
 */

import type { Random } from '../core/ports.ts';
import type { Turn } from '../core/quota.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** One request in so long while others have nearly used up the day. */
export const DAY_GUARD_EVERY_MS = 15 * MINUTE_MS;
const LONGEST_PAUSE_MS = 15 * MINUTE_MS;
/** A longer wait than this speaks of the day. */
export const MINUTE_WAIT_MS = 2 * MINUTE_MS;
/** The slowest that refusals make the pace. */
const LEAST_FACTOR = 0.1;
const RECOVERY_PER_MINUTE = 0.05;

export interface ThrottleState {
  readonly day: { readonly is: 'free' | 'guarded' };
  /** `lastMs`: how long the last pause of an unnamed window was. */
  readonly pauses: { readonly is: 'single' } | { readonly is: 'doubling'; readonly lastMs: number };
  /** Refusals in a row. `doublings`: how often the wait is doubled. */
  readonly refusals: { readonly is: 'none' | 'one' | 'two' } | { readonly is: 'many'; readonly doublings: number };
  /** Until when the last pause lasts or lasted. */
  readonly pausedUntilMs: number;
  /** By what the pace is multiplied, 0.1 to 1, and as of when. */
  readonly factor: number;
  readonly factorAtMs: number;
  /** When the last refusal came. */
  readonly refusedAtMs: number;
}

/** What an answer (or a new plan) means; times by the monotonic clock. */
export type ThrottleEvent =
  | { readonly kind: 'day-ample' | 'day-scarce' | 'day-silent' | 'ample' | 'new-plan' }
  /** `remaining`: what is left of the minute. */
  | { readonly kind: 'minute-scarce'; readonly nowMs: number; readonly remaining: number }
  | { readonly kind: 'scarce' | 'served'; readonly nowMs: number }
  /** `waitMs`: the wait that it asks for. */
  | { readonly kind: 'refused'; readonly nowMs: number; readonly waitMs: number };

/** Nothing has been answered yet. */
export const UNTHROTTLED: ThrottleState = {
  day: { is: 'free' },
  pauses: { is: 'single' },
  refusals: { is: 'none' },
  pausedUntilMs: Number.NEGATIVE_INFINITY,
  factor: 1,
  factorAtMs: 0,
  refusedAtMs: Number.NEGATIVE_INFINITY,
};

/** The table above. Pure. */
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
      return recovered({ ...state, refusals: { is: 'none' } }, event.nowMs);
    case 'refused':
      return refused(state, event);
    case 'new-plan':
      return { ...state, day: { is: 'free' }, pauses: { is: 'single' } };
  }
}

/** Answers may overtake each other: an earlier, worse one still counts. */
function pausedUntil(state: ThrottleState, untilMs: number): ThrottleState {
  return { ...state, pausedUntilMs: Math.max(state.pausedUntilMs, untilMs) };
}

function recovered(state: ThrottleState, nowMs: number): ThrottleState {
  const minutes = Math.max(0, nowMs - state.factorAtMs) / MINUTE_MS;
  return { ...state, factor: Math.min(1, state.factor + RECOVERY_PER_MINUTE * minutes), factorAtMs: nowMs };
}

function refused(state: ThrottleState, { nowMs, waitMs }: { nowMs: number; waitMs: number }): ThrottleState {
  return {
    ...state,
    refusals: oneMore(state.refusals),
    factor: waitMs <= MINUTE_WAIT_MS ? Math.max(LEAST_FACTOR, state.factor / 2) : state.factor,
    factorAtMs: nowMs,
    refusedAtMs: nowMs,
  };
}

function oneMore(refusals: ThrottleState['refusals']): ThrottleState['refusals'] {
  switch (refusals.is) {
    case 'none':
      return { is: 'one' };
    case 'one':
      return { is: 'two' };
    case 'two':
      return { is: 'many', doublings: 1 };
    case 'many':
      return { is: 'many', doublings: refusals.doublings + 1 };
  }
}

/** When the next request may go. @param lastSentMs when the last one was sent. */
export function throttledTurn({ day, pausedUntilMs }: ThrottleState, lastSentMs: number): Turn {
  const guardMs = day.is === 'guarded' ? lastSentMs + DAY_GUARD_EVERY_MS : Number.NEGATIVE_INFINITY;
  return guardMs > pausedUntilMs ? { atMs: guardMs, reason: 'day' } : { atMs: pausedUntilMs, reason: 'minute' };
}

/** How long nothing may be sent, in ms, after an answer that asked for a wait: never less than it asked for. */
export function waitAfter({ refusals }: ThrottleState, askedMs: number, random: Random): number {
  const doublings = refusals.is === 'many' ? refusals.doublings : 0;
  const waitMs = Math.max(askedMs, Math.min(askedMs * 2 ** doublings, LONGEST_PAUSE_MS));
  // Jitter is only ever added, so that clients which were refused together do not come back together.
  return waitMs + (0.1 + 0.9 * random()) * Math.min(5 * SECOND_MS, Math.max(SECOND_MS, waitMs / 10));
}
