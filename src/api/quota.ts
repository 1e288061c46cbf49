/**
 * Decides when the next request may be sent.
 *
 * Promises: any rolling minute and any rolling day contain at most the configured share of the plan's requests. No
 * request is sent before a wait that the server asked for is over. Headers slow requests down; they never speed them
 * up.
 *
 * Requests are spaced evenly, with a burst of three, so that it does not matter whether the server counts by fixed
 * windows, sliding windows or a token bucket. Refused requests count here, so that it does not matter whether they
 * count at the server.
 *
 * The state is a record; the functions below read or change it. All times are milliseconds of one monotonic clock that
 * the caller reads. This file does no input or output.
 */

import type { Random } from '../core/ports.ts';
import { createSendLog, type PlanFigures, type SendLog, type Turn, type WindowFigures } from '../core/quota.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { type ThrottleState, throttledTurn, transition, UNTHROTTLED, waitAfter } from './throttle.ts';
import { type AnswerFacts, hasMismatch, NO_HEADERS, readHeaders, underNewPlan, type Windows } from './windows.ts';

/** The usage of both windows, and when the next request may go. */
interface QuotaFigures {
  readonly minute: WindowFigures;
  readonly day: WindowFigures;
  /** When the next request may go; a time in the past means now. */
  readonly turn: Turn;
}

const BURST = 3;
/** The limit per minute while no limit is known, and the highest limit that is believed without a plan. */
const UNKNOWN_PER_MINUTE = 10;
const UNKNOWN_PER_MINUTE_AT_MOST = 30;
/** How much closer together requests may arrive than they were sent. It matters if the share leaves no unused burst. */
const TRAVEL_MS = 2 * SECOND_MS;
/** How early a timer may fire, and how much the travel times of two requests usually differ. */
const EARLY_MS = 250;
/**
 * The longest wait that a server can have asked for, jitter included. A longer one comes from a clock that was wrong.
 */
export const LONGEST_BLOCK_MS = 25 * HOUR_MS + 10 * SECOND_MS;

interface QuotaOptions {
  /** The part of the plan's limits that may be used: above 0, at most 1. */
  readonly share: number;
  readonly random: Random;
  /** How often the account was read. Reading the same plan again confirms it. */
  readonly planReadings?: () => number;
}

/** The plan, and what answers have shown since it is known. */
interface Terms {
  readonly plan: PlanFigures | null;
  readonly windows: Windows;
  readonly throttle: ThrottleState;
}

/** The state of the quota. The functions below change it in place. */
export interface Quota {
  readonly share: number;
  readonly random: Random;
  readonly planReadings: () => number;
  /** The requests of the last day. */
  readonly log: SendLog;
  terms: Terms;
  /** Until when the server has asked to send nothing. */
  blockedUntilMs: number;
  lastSentMs: number;
  /** The "theoretical arrival time" of the generic cell rate algorithm. */
  arrivalMs: number;
}

/** A quota without a plan and without requests. */
export function createQuota({ share, random, planReadings = () => 0 }: QuotaOptions): Quota {
  return {
    share,
    random,
    planReadings,
    log: createSendLog(DAY_MS + TRAVEL_MS),
    terms: { plan: null, windows: NO_HEADERS, throttle: UNTHROTTLED },
    blockedUntilMs: Number.NEGATIVE_INFINITY,
    lastSentMs: Number.NEGATIVE_INFINITY,
    arrivalMs: Number.NEGATIVE_INFINITY,
  };
}

/** Sets the plan; `null` while it is unknown. Under a plan with other limits, earlier headers are void. */
export function setPlan(quota: Quota, plan: PlanFigures | null): void {
  quota.terms = underPlan(quota.terms, plan);
}

/** Blocks requests until a time. A block that lasts longer already stays. */
export function blockUntil(quota: Quota, untilMs: number): void {
  quota.blockedUntilMs = Math.max(quota.blockedUntilMs, untilMs);
}

/** When the next request may go under the plan that was set last. Changes nothing. */
export function nextTurn(quota: Quota): Turn {
  return turnUnder(quota, quota.terms);
}

function turnUnder({ log, share, arrivalMs, lastSentMs, blockedUntilMs }: Quota, terms: Terms): Turn {
  const every = intervalMs(terms, share);
  const burst = terms.plan?.perMinute == null ? 1 : BURST;
  const minute = ceilingOf(minuteLimit(terms), share, MINUTE_MS);
  const day = ceilingOf(dayLimit(terms), share, DAY_MS);
  return latest([
    // A shorter interval counts at once: the next request goes at most one interval after the last one.
    { atMs: Math.min(arrivalMs - (burst - 1) * every, lastSentMs + every), reason: 'rate' },
    { atMs: log.freeAtMs(minute.cap, minute.windowMs), reason: 'minute' },
    { atMs: log.freeAtMs(day.cap, day.windowMs), reason: 'day' },
    throttledTurn(terms.throttle, lastSentMs),
    { atMs: blockedUntilMs, reason: 'retry_after' },
  ]);
}

/** Counts a request that is sent now. */
export function noteSent(quota: Quota, nowMs: number): void {
  const { log, terms, share, lastSentMs, blockedUntilMs } = quota;
  log.add(nowMs);
  // The first request after a pause goes alone: the others that have waited must not follow at once.
  const isProbe = lastSentMs < Math.max(blockedUntilMs, terms.throttle.pausedUntilMs);
  quota.arrivalMs = Math.max(quota.arrivalMs, nowMs) + intervalMs(terms, share) * (isProbe ? BURST : 1);
  quota.lastSentMs = nowMs;
}

/**
 * Records the quota headers of an answer.
 *
 * @returns until when nothing may be sent, if the answer asked for a wait; otherwise `null`
 */
export function noteAnswer(quota: Quota, facts: AnswerFacts): number | null {
  const { share, log, random, planReadings } = quota;
  const { plan, windows: known, throttle: before } = quota.terms;
  const context = { plan, share, planReadings: planReadings(), spent: log.count };
  const { windows, events } = readHeaders(known, facts, context);
  const throttle = withStatus(events.reduce(transition, before), facts);
  quota.terms = { plan, windows, throttle };
  const requestedMs = requestedWait(facts);
  if (requestedMs === null) return null;
  blockUntil(quota, facts.nowMs + waitAfter(throttle, requestedMs, random));
  return quota.blockedUntilMs;
}

/** Whether the headers show a limit that the known plan does not have, so that the account should be read. */
export function hasLimitMismatch({ terms, planReadings }: Quota): boolean {
  return hasMismatch(terms.windows, planReadings());
}

/** The usage of both windows under the given plan, by default the one that was set last. Changes nothing. */
export function quotaFigures(quota: Quota, nowMs: number, plan: PlanFigures | null = quota.terms.plan): QuotaFigures {
  const { share, log } = quota;
  const terms = underPlan(quota.terms, plan);
  const { limits, others } = terms.windows;
  const [ofMinute, ofDay] = [minuteLimit(terms), dayLimit(terms)];
  return {
    minute: {
      limit: terms.plan?.perMinute == null && limits.seen === null ? null : ofMinute,
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
    turn: turnUnder(quota, terms),
  };
}

/** The terms under a plan. Under a plan with other limits, earlier headers are void. */
function underPlan(terms: Terms, plan: PlanFigures | null): Terms {
  const { plan: before, windows, throttle } = terms;
  if (plan?.perMinute === before?.perMinute && plan?.perDay === before?.perDay) return terms;
  return { plan, windows: underNewPlan(windows), throttle: transition(throttle, { kind: 'new-plan' }) };
}

/**
 * Applies the status of an answer. Refusals of requests that were sent before the last refusal count as one with it.
 */
function withStatus(throttle: ThrottleState, facts: AnswerFacts): ThrottleState {
  const { status, sentMs, nowMs } = facts;
  if (status === null) return throttle;
  if (status !== 429) return transition(throttle, { kind: 'served', nowMs });
  if (sentMs <= throttle.refusedAtMs) return throttle;
  return transition(throttle, { kind: 'refused', nowMs, waitMs: requestedWait(facts) ?? 0 });
}

/** The wait that an answer asks for, in ms; `null` for none. A refusal always asks for one. */
function requestedWait({ status, waitMs }: AnswerFacts): number | null {
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

/** The time from one request to the next when requests are spaced evenly, in ms. */
function intervalMs(terms: Terms, share: number): number {
  const { cap, windowMs } = ceilingOf(minuteLimit(terms), share, MINUTE_MS);
  return windowMs / (cap * terms.throttle.factor);
}

/** Our share of a limit (at least one request), and the window in which it is counted. */
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
