/**
 * Decides when the next request may be sent.
 *
 * Promises: any rolling minute and any rolling day contain at most the configured share of the plan's requests. No
 * request is sent before a wait that the server requested is over. Headers slow requests down; they never speed them
 * up.
 *
 * Requests are spaced evenly, with a burst of three, so that it does not matter whether the server counts by fixed
 * windows, sliding windows or a token bucket. Rejected requests count here, so that it does not matter whether they
 * count at the server.
 *
 * The headers of answers show something about the two windows of the quota, the minute and the day: limits below the
 * plan's, the use by other clients, and whether they leave too little. Each answer reports one window and does not name
 * it. A limit equal to the plan's value for a window names that window. Any other limit is read so that it slows
 * requests down: below the value per minute it counts for the minute, between the two values for the day, and above
 * both it lowers nothing. The plan may also have grown: a limit between the two values is doubted until the account was
 * read again, because otherwise a larger plan would stop all requests for a day. If only the day's value is known, a
 * lower limit names the minute. If the plan is unknown (the key may not read the account), the limit counts for the
 * minute within bounds, and a low remainder belongs to an unnamed window.
 *
 * The state is a record; the functions below read or change it. All times are milliseconds of one monotonic clock that
 * the caller reads. This file does no input or output.
 */

import type { Random } from '../core/ports.ts';
import {
  ASSUMED_PER_MINUTE,
  budgetOf,
  createSendLog,
  type PlanFigures,
  type QuotaWindowFigures,
  type SendLog,
  type Turn,
} from '../core/quota.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import {
  DAY_GUARD_EVERY_MS,
  MINUTE_WAIT_MS,
  type ThrottleEvent,
  type ThrottleState,
  throttledTurn,
  transition,
  UNTHROTTLED,
  waitAfter,
} from './throttle.ts';

/** The usage of both windows, and when the next request may be sent. */
interface QuotaFigures {
  readonly minute: QuotaWindowFigures;
  readonly day: QuotaWindowFigures;
  /** When the next request may be sent; a past time means now. */
  readonly turn: Turn;
}

const BURST_REQUESTS = 3;
/** The highest limit per minute that is accepted without a plan. */
const MOST_WITHOUT_PLAN = 30;
/**
 * How much closer together requests may arrive than they were sent. This matters if the share leaves no unused burst:
 * the server counts a request at its arrival and this program at its departure, so a slightly older one may still count
 * there.
 */
const TRAVEL_MS = 2 * SECOND_MS;
/** How early a timer may fire, and how much the travel times of two requests usually differ. */
const EARLY_MS = 250;
/** The longest wait that a server can have requested, including jitter. A longer one comes from a wrong clock. */
export const LONGEST_BLOCK_MS = 25 * HOUR_MS + 10 * SECOND_MS;

interface QuotaOptions {
  /** The part of the plan's limits that may be used: above 0, at most 1. */
  readonly share: number;
  readonly random: Random;
  /** How often the account was read. Reading the same plan again confirms it. */
  readonly planReadings?: () => number;
}

/** The facts of one answer about the quota. Times are of the monotonic clock, in ms. */
export interface AnswerFacts {
  /** When the request was sent and when its answer came. */
  readonly sentMs: number;
  readonly nowMs: number;
  /** The HTTP status; `null` if no answer came. */
  readonly status: number | null;
  /** `X-RateLimit-Limit` and `-Remaining`. */
  readonly limit: number | null;
  readonly remaining: number | null;
  /** The wait that the answer requests; `null` for none. */
  readonly waitMs: number | null;
}

/** The facts from the headers so far. */
interface Windows {
  /** The limits below the plan's, by window; `seen` is the last limit of any window. */
  readonly limits: { readonly minute: number | null; readonly day: number | null; readonly seen: number | null };
  /** The use by other clients, from the last answer that showed it. */
  readonly others: { readonly minute: number | null; readonly day: number | null };
  /** When a header last reported the day. */
  readonly daySeenMs: number;
  /** The limits that differ from the plan's, and how often the account had been read when each was first seen. */
  readonly odd: ReadonlyMap<number, number>;
  /** The last limit, if it differs from the plan's. */
  readonly lastOdd: number | null;
}

/** The state before the first header. */
export const NO_HEADERS: Windows = {
  limits: { minute: null, day: null, seen: null },
  others: { minute: null, day: null },
  daySeenMs: Number.NEGATIVE_INFINITY,
  odd: new Map(),
  lastOdd: null,
};

/** The facts other than the headers from which the limits are derived. */
interface HeaderContext {
  readonly plan: PlanFigures | null;
  /** The part of the quota that may be used. */
  readonly share: number;
  /** How often the account was read. */
  readonly planReadings: number;
  /** How many of our own requests are younger than `windowMs`. */
  readonly spent: (nowMs: number, windowMs: number) => number;
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
  /** Until when the server has requested a pause. */
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

/** Sets the plan; `null` while it is unknown. If the new plan has other limits, earlier headers are void. */
export function setPlan(quota: Quota, plan: PlanFigures | null): void {
  quota.terms = underPlan(quota.terms, plan);
}

/** Blocks requests until a time. A longer existing block stays. */
export function blockUntil(quota: Quota, untilMs: number): void {
  quota.blockedUntilMs = Math.max(quota.blockedUntilMs, untilMs);
}

/** When the next request may be sent under the plan that was set last. Changes nothing. */
export function nextTurn(quota: Quota): Turn {
  return turnUnder(quota, quota.terms);
}

function turnUnder({ log, share, arrivalMs, lastSentMs, blockedUntilMs }: Quota, terms: Terms): Turn {
  const every = intervalMs(terms, share);
  const burst = terms.plan?.perMinute == null ? 1 : BURST_REQUESTS;
  const minute = budgetCeiling(minuteLimit(terms), share, MINUTE_MS);
  const day = budgetCeiling(dayLimit(terms), share, DAY_MS);
  return latest([
    // A shorter interval counts at once: the next request is sent at most one interval after the last one.
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
  // The first request after a pause is sent alone: the other waiting requests must not follow at once.
  const isProbe = lastSentMs < Math.max(blockedUntilMs, terms.throttle.pausedUntilMs);
  quota.arrivalMs = Math.max(quota.arrivalMs, nowMs) + intervalMs(terms, share) * (isProbe ? BURST_REQUESTS : 1);
  quota.lastSentMs = nowMs;
}

/**
 * Records the quota headers of an answer.
 *
 * @returns until when nothing may be sent, if the answer requested a wait; otherwise `null`
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

/** Whether the headers show a limit that differs from the known plan, so that the account should be read. */
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
      budget: budgetCeiling(ofMinute, share, MINUTE_MS).cap,
      spent: log.count(nowMs, MINUTE_MS),
      others: others.minute,
    },
    day: {
      limit: finiteOrNull(ofDay),
      budget: finiteOrNull(budgetCeiling(ofDay, share, DAY_MS).cap),
      spent: log.count(nowMs, DAY_MS),
      others: others.day,
    },
    turn: turnUnder(quota, terms),
  };
}

/** The terms under a plan. If that plan has other limits, earlier headers are void. */
function underPlan(terms: Terms, plan: PlanFigures | null): Terms {
  const { plan: before, windows, throttle } = terms;
  if (plan?.perMinute === before?.perMinute && plan?.perDay === before?.perDay) return terms;
  return { plan, windows: underNewPlan(windows), throttle: transition(throttle, { kind: 'new-plan' }) };
}

/**
 * Applies the status of an answer. Rejections of requests that were sent before the last rejection count as one with
 * it.
 */
function withStatus(throttle: ThrottleState, facts: AnswerFacts): ThrottleState {
  const { status, sentMs, nowMs } = facts;
  if (status === null) return throttle;
  if (status !== 429) return transition(throttle, { kind: 'served', nowMs });
  if (sentMs <= throttle.rejectedAtMs) return throttle;
  return transition(throttle, { kind: 'rejected', nowMs, waitMs: requestedWait(facts) ?? 0 });
}

/** The wait that an answer requests, in ms; `null` for none. A 429 always requests one. */
function requestedWait({ status, waitMs }: AnswerFacts): number | null {
  return status === 429 ? (waitMs ?? MINUTE_MS) : waitMs;
}

function minuteLimit({ plan, windows }: Terms): number {
  const { minute, seen } = windows.limits;
  if (plan?.perMinute != null) return minute ?? plan.perMinute;
  return Math.min(minute ?? seen ?? ASSUMED_PER_MINUTE, MOST_WITHOUT_PLAN);
}

function dayLimit({ plan, windows }: Terms): number {
  return windows.limits.day ?? plan?.perDay ?? Infinity;
}

/** The time from one request to the next when requests are spaced evenly, in ms. */
function intervalMs(terms: Terms, share: number): number {
  const { cap, windowMs } = budgetCeiling(minuteLimit(terms), share, MINUTE_MS);
  return windowMs / (cap * terms.throttle.factor);
}

/** Our share of a limit (at least one request), and the window in which it is counted. */
function budgetCeiling(
  limit: number,
  share: number,
  windowMs: number,
): { readonly cap: number; readonly windowMs: number } {
  const cap = budgetOf(limit, share);
  return { cap, windowMs: windowMs + (limit - cap < BURST_REQUESTS ? TRAVEL_MS : EARLY_MS) };
}

function latest(turns: readonly Turn[]): Turn {
  return turns.reduce((last, turn) => (turn.atMs > last.atMs ? turn : last));
}

function finiteOrNull(figure: number): number | null {
  return Number.isFinite(figure) ? figure : null;
}

/** Drops the limits from headers, which have no meaning under another plan. */
function underNewPlan({ limits, others, daySeenMs }: Windows): Windows {
  return { ...NO_HEADERS, limits: { ...NO_HEADERS.limits, seen: limits.seen }, others, daySeenMs };
}

/** Whether the last answer had a limit that differs from the plan's, and the account was not read since. */
function hasMismatch({ odd, lastOdd }: Windows, planReadings: number): boolean {
  return lastOdd !== null && planReadings <= (odd.get(lastOdd) ?? -1);
}

/**
 * Reads the headers of an answer.
 *
 * @returns the new state, and the events for the throttle
 */
export function readHeaders(
  known: Windows,
  facts: AnswerFacts,
  context: HeaderContext,
): { readonly windows: Windows; readonly events: readonly ThrottleEvent[] } {
  const { limit, nowMs } = facts;
  const events: ThrottleEvent[] = [];
  let windows = known;
  if (limit !== null && limit > 0) {
    const sample = { nowMs, limit, remaining: Math.min(facts.remaining ?? limit, limit) };
    windows = noteLimit(windows, limit, context);
    const { minute, day } = matchedWindows(limit, context.plan);
    if (minute) windows = readMinute(windows, sample, { ...context, events });
    if (day && (minute || !hasMismatch(windows, context.planReadings))) {
      windows = readDay(windows, sample, { ...context, events });
    }
    if (!minute && !day) events.push(isLow(sample, context.share) ? { kind: 'scarce', nowMs } : { kind: 'ample' });
  }
  return { windows: readDayRejection(windows, facts, context), events };
}

/** The window that a limit belongs to; neither if the plan is unknown. */
function matchedWindows(limit: number, plan: PlanFigures | null): { minute: boolean; day: boolean } {
  if (plan === null) return { minute: false, day: false };
  if (plan.perMinute === null) return { minute: limit < (plan.perDay ?? 0), day: limit === plan.perDay };
  const minute = limit === plan.perMinute;
  const day = limit === plan.perDay;
  if (minute || day) return { minute, day };
  if (limit < plan.perMinute) return { minute: true, day: false };
  return { minute: plan.perDay !== null && limit > plan.perDay, day: true };
}

/** How many unexpected limits are remembered (the last ones): a hostile service may send any number of them. */
const MOST_ODD = 100;

/** Records a limit as the last one, and as an unexpected one if it differs from the plan's. */
function noteLimit(known: Windows, limit: number, { plan, planReadings }: HeaderContext): Windows {
  const isOdd = plan?.perMinute != null && limit !== plan.perMinute && limit !== plan.perDay;
  const odd =
    isOdd && !known.odd.has(limit)
      ? new Map([...known.odd, [limit, planReadings] as const].slice(-MOST_ODD))
      : known.odd;
  return { ...known, limits: { ...known.limits, seen: limit }, odd, lastOdd: isOdd ? limit : null };
}

interface Sample {
  readonly nowMs: number;
  readonly limit: number;
  readonly remaining: number;
}

interface HeaderReading extends HeaderContext {
  readonly events: ThrottleEvent[];
}

function readMinute(known: Windows, sample: Sample, reading: HeaderReading): Windows {
  const { nowMs, limit, remaining } = sample;
  const figure = reading.plan?.perMinute ?? limit;
  const others = usedByOthers(sample, MINUTE_MS, reading);
  if (nowMs - known.daySeenMs >= DAY_GUARD_EVERY_MS) reading.events.push({ kind: 'day-silent' });
  if (isScarce(others, remaining, guardRemainder(Math.min(limit, figure), reading.share))) {
    reading.events.push({ kind: 'minute-scarce', nowMs, remaining });
  }
  return {
    ...known,
    limits: { ...known.limits, minute: limit < figure ? limit : null },
    others: { ...known.others, minute: others },
  };
}

function readDay(known: Windows, sample: Sample, reading: HeaderReading): Windows {
  const { nowMs, limit, remaining } = sample;
  const figure = reading.plan?.perDay ?? Infinity;
  const others = usedByOthers(sample, DAY_MS, reading);
  const scarce = isScarce(others, remaining, guardRemainder(Math.min(limit, figure), reading.share));
  reading.events.push({ kind: scarce ? 'day-scarce' : 'day-ample' });
  return {
    ...known,
    limits: { ...known.limits, day: limit < figure ? limit : null },
    others: { ...known.others, day: others },
    daySeenMs: nowMs,
  };
}

function usedByOthers({ nowMs, limit, remaining }: Sample, windowMs: number, { spent }: HeaderContext): number {
  return Math.max(0, limit - remaining - spent(nowMs, windowMs + TRAVEL_MS));
}

/**
 * Whether other clients have nearly used up a window. A low remainder that comes only from our own use does not count,
 * because our own limits handle it.
 */
function isScarce(others: number, remaining: number, guard: number): boolean {
  return others > 0 && remaining <= guard;
}

/** The remainder at which other clients have used half of the part that our share leaves to them. */
function guardRemainder(limit: number, share: number): number {
  return Math.ceil((limit * (1 - share)) / 2);
}

/** The same for an unnamed window, whose part of our own use is unknown. */
function isLow({ limit, remaining }: Sample, share: number): boolean {
  return remaining <= Math.ceil(limit * (1 - share));
}

/** Reads the rejection of a request for the day's quota. If no header reports the day, this shows the use by others. */
function readDayRejection(known: Windows, { status, waitMs, nowMs }: AnswerFacts, context: HeaderContext): Windows {
  const perDay = context.plan?.perDay ?? null;
  if (status !== 429 || (waitMs ?? 0) <= MINUTE_WAIT_MS || perDay === null) return known;
  const unspent = perDay - context.spent(nowMs, DAY_MS + TRAVEL_MS);
  return { ...known, others: { ...known.others, day: Math.max(known.others.day ?? 0, unspent) } };
}
