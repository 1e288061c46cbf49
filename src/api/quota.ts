/**
 * When the next request may be sent, so that the workspace's quota is shared and no refusal is provoked.
 *
 * Promises: within any rolling minute and any rolling day no more requests than the share; nothing before a wait that
 * the server asked for is over; what the server says makes it slower than that, never faster. Even pacing with a burst
 * of three makes the kind of the server's windows (fixed, sliding, bucket) irrelevant; that a refused request counts
 * here as well makes it irrelevant whether it costs the server's quota.
 *
 * All times are milliseconds of one monotonic clock, given by the caller. There is no input or output here.
 */

import type { Random } from '../core/ports.ts';
import type { PlanFigures, Turn, WindowFigures } from '../core/quota.ts';
import { createSendLog } from '../core/quota.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { type ThrottleState, throttledTurn, transition, UNTHROTTLED, waitAfter } from './throttle.ts';
import { type AnswerFacts, isPlanDoubted, NOTHING_SAID, readHeaders, underNewPlan, type Windows } from './windows.ts';

interface QuotaFigures {
  readonly minute: WindowFigures;
  readonly day: WindowFigures;
  /** When the next request may go; a time that has passed means now. */
  readonly turn: Turn;
}

export interface Quota {
  /** Takes the plan as known now; `null` while it is not. */
  setPlan(plan: PlanFigures | null): void;
  /** Replaces what is known of earlier requests: their times, ascending. */
  load(sentMs: readonly number[]): void;
  /** Keeps a wait from before a restart. */
  blockUntil(untilMs: number): void;
  /** When the next request may go. */
  turn(): Turn;
  /** Counts a request. */
  sent(nowMs: number): void;
  /** Takes in what an answer says of the quota. @returns until when nothing may be sent, where it asked for a wait, else `null`. */
  answered(facts: AnswerFacts): number | null;
  /** Whether the answers speak of another plan than the one that is known: the account should be read. */
  isPlanDoubted(): boolean;
  /** How it stands, by the plan that was set last or by another one. Changes nothing. */
  figures(nowMs: number, plan?: PlanFigures | null): QuotaFigures;
}

const BURST = 3;
/** What is assumed where no limit is known, and the most that a header alone is believed. */
const UNKNOWN_PER_MINUTE = 10;
const UNKNOWN_PER_MINUTE_AT_MOST = 30;
/** Where the share leaves less room than a burst takes, what arrives closer together than it left would be too much. */
const TRAVEL_MS = 2 * SECOND_MS;
/** What whoever waits may be early by, and what one request takes longer to arrive than another as a rule. */
const EARLY_MS = 250;
/** The longest block that can have been asked for, jitter included: more than that is a clock that was wrong. */
export const LONGEST_BLOCK_MS = 25 * HOUR_MS + 10 * SECOND_MS;

interface QuotaOptions {
  /** The part of the plan's limits that may be used: above 0, at most 1. */
  readonly share: number;
  readonly random: Random;
  /** How often the account was read: a plan that is read again and is the same is no longer doubted. */
  readonly planReadings?: () => number;
}

/** The plan, and what answers have said under it. */
interface Terms {
  readonly plan: PlanFigures | null;
  readonly windows: Windows;
  readonly throttle: ThrottleState;
}

/** A quota of which nothing is known and nothing is spent. */
export function createQuota({ share, random, planReadings = () => 0 }: QuotaOptions): Quota {
  const log = createSendLog(DAY_MS + TRAVEL_MS);
  let terms: Terms = { plan: null, windows: NOTHING_SAID, throttle: UNTHROTTLED };
  let blockedUntilMs = Number.NEGATIVE_INFINITY;
  let lastSentMs = Number.NEGATIVE_INFINITY;
  /** The "theoretical arrival time" of the generic cell rate algorithm. */
  let arrivalMs = Number.NEGATIVE_INFINITY;

  const turnBy = (by: Terms): Turn => {
    const every = intervalMs(by, share);
    const burst = by.plan?.perMinute == null ? 1 : BURST;
    const minute = ceilingOf(minuteLimit(by), share, MINUTE_MS);
    const day = ceilingOf(dayLimit(by), share, DAY_MS);
    return latest([
      // A pace that has become faster counts at once: never later than one interval after the last request.
      { atMs: Math.min(arrivalMs - (burst - 1) * every, lastSentMs + every), reason: 'pace' },
      { atMs: log.freeAtMs(minute.cap, minute.windowMs), reason: 'minute' },
      { atMs: log.freeAtMs(day.cap, day.windowMs), reason: 'day' },
      throttledTurn(by.throttle, lastSentMs),
      { atMs: blockedUntilMs, reason: 'asked' },
    ]);
  };

  return {
    setPlan(plan) {
      terms = underPlan(terms, plan);
    },
    load: (sentMs) => log.load(sentMs),
    blockUntil(untilMs) {
      blockedUntilMs = Math.max(blockedUntilMs, untilMs);
    },
    turn: () => turnBy(terms),
    sent(nowMs) {
      log.add(nowMs);
      // The first one after a pause goes alone: whoever waited meanwhile must not all follow at once.
      const isProbe = lastSentMs < Math.max(blockedUntilMs, terms.throttle.pausedUntilMs);
      arrivalMs = Math.max(arrivalMs, nowMs) + intervalMs(terms, share) * (isProbe ? BURST : 1);
      lastSentMs = nowMs;
    },
    answered(facts) {
      const { plan } = terms;
      const context = { plan, share, planReadings: planReadings(), spent: log.count };
      const { windows, events } = readHeaders(terms.windows, facts, context);
      const throttle = withStatus(events.reduce(transition, terms.throttle), facts);
      terms = { plan, windows, throttle };
      const askedMs = askedWait(facts);
      if (askedMs === null) return null;
      blockedUntilMs = Math.max(blockedUntilMs, facts.nowMs + waitAfter(throttle, askedMs, random));
      return blockedUntilMs;
    },
    isPlanDoubted: () => isPlanDoubted(terms.windows, planReadings()),
    figures(nowMs, plan = terms.plan) {
      const by = underPlan(terms, plan);
      const { limits, others } = by.windows;
      const [ofMinute, ofDay] = [minuteLimit(by), dayLimit(by)];
      return {
        minute: {
          limit: by.plan?.perMinute == null && limits.seen === null ? null : ofMinute,
          budget: ceilingOf(ofMinute, share, MINUTE_MS).cap,
          spent: log.count(nowMs, MINUTE_MS),
          others: others.minute,
        },
        day: {
          limit: finite(ofDay),
          budget: finite(ceilingOf(ofDay, share, DAY_MS).cap),
          spent: log.count(nowMs, DAY_MS),
          others: others.day,
        },
        turn: turnBy(by),
      };
    },
  };
}

/** The same under a plan: what was said under another one is void. */
function underPlan(terms: Terms, plan: PlanFigures | null): Terms {
  const { plan: before, windows, throttle } = terms;
  if (plan?.perMinute === before?.perMinute && plan?.perDay === before?.perDay) return terms;
  return { plan, windows: underNewPlan(windows), throttle: transition(throttle, { kind: 'new-plan' }) };
}

/** What the status of an answer means. Requests that were under way at a refusal are refused with it: that is one. */
function withStatus(throttle: ThrottleState, facts: AnswerFacts): ThrottleState {
  const { status, sentMs, nowMs } = facts;
  if (status === null) return throttle;
  if (status !== 429) return transition(throttle, { kind: 'served', nowMs });
  if (sentMs <= throttle.refusedAtMs) return throttle;
  return transition(throttle, { kind: 'refused', nowMs, waitMs: askedWait(facts) ?? 0 });
}

/** The wait that an answer asks for: a refusal always asks for one. */
function askedWait({ status, waitMs }: AnswerFacts): number | null {
  return status === 429 ? (waitMs ?? MINUTE_MS) : waitMs;
}

function minuteLimit({ plan, windows }: Terms): number {
  const { minute, seen } = windows.limits;
  if (plan?.perMinute != null) return minute ?? plan.perMinute;
  return Math.min(minute ?? seen ?? UNKNOWN_PER_MINUTE, UNKNOWN_PER_MINUTE_AT_MOST);
}

function dayLimit({ plan, windows }: Terms): number {
  return windows.limits.day ?? plan?.perDay ?? Infinity;
}

/** The even pace: the time from one request to the next. */
function intervalMs(terms: Terms, share: number): number {
  const { cap, windowMs } = ceilingOf(minuteLimit(terms), share, MINUTE_MS);
  return windowMs / (cap * terms.throttle.factor);
}

/** The share of a limit, at least one request, and the window over which it is counted. */
function ceilingOf(
  limit: number,
  share: number,
  windowMs: number,
): { readonly cap: number; readonly windowMs: number } {
  const cap = Math.max(1, Math.floor(limit * share));
  return { cap, windowMs: windowMs + (limit - cap < BURST ? TRAVEL_MS : EARLY_MS) };
}

function latest(turns: readonly Turn[]): Turn {
  return turns.reduce((last, turn) => (turn.atMs > last.atMs ? turn : last));
}

function finite(figure: number): number | null {
  return Number.isFinite(figure) ? figure : null;
}
