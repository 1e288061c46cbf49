/**
 * Reads from the headers of answers what they show about the two windows of the quota, the minute and the day: limits
 * below the plan's, the use by other clients, and whether they leave too little.
 *
 * Each answer reports one window and does not name it. A limit equal to the plan's value for a window names that
 * window. Any other limit is read so that it slows requests down: below the value per minute it counts for the minute,
 * between the two values for the day, and above both it lowers nothing. The plan may also have grown: a limit between
 * the two values is doubted until the account was read again, because otherwise a larger plan would stop all requests
 * for a day. If only the day's value is known, a lower limit names the minute. If the plan is unknown (the key may not
 * read the account), the limit counts for the minute within bounds, and a low remainder belongs to an unnamed window.
 *
 * All functions are pure.
 */
import type { PlanFigures } from '../core/quota.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { DAY_GUARD_EVERY_MS, MINUTE_WAIT_MS, type ThrottleEvent } from './throttle.ts';

/** What one answer shows about the quota. Times are of the monotonic clock, in ms. */
export interface AnswerFacts {
  /** When the request was sent and when its answer came. */
  readonly sentMs: number;
  readonly nowMs: number;
  /** The HTTP status; `null` if no answer came. */
  readonly status: number | null;
  /** `X-RateLimit-Limit` and `-Remaining`. */
  readonly limit: number | null;
  readonly remaining: number | null;
  /** The wait that the answer asks for; `null` for none. */
  readonly waitMs: number | null;
}

/** The knowledge from the headers so far. */
export interface Windows {
  /** The limits below the plan's, by window; `seen` is the last limit of any window. */
  readonly limits: { readonly minute: number | null; readonly day: number | null; readonly seen: number | null };
  /** The use by other clients, by the last answer that showed it. */
  readonly others: { readonly minute: number | null; readonly day: number | null };
  /** When a header last reported the day. */
  readonly daySeenMs: number;
  /** The limits that the plan does not have, and how often the account had been read when each was first seen. */
  readonly odd: ReadonlyMap<number, number>;
  /** The last limit, if the plan does not have it. */
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

/** The context in which headers are read. */
interface HeaderContext {
  readonly plan: PlanFigures | null;
  /** The part of the quota that may be used. */
  readonly share: number;
  /** How often the account was read. */
  readonly planReadings: number;
  /** How many of our own requests are younger than `windowMs`. */
  readonly spent: (nowMs: number, windowMs: number) => number;
}

/**
 * The server counts a request at its arrival and this program at its departure, so a slightly older one may still count
 * there.
 */
const TRAVEL_MS = 2 * SECOND_MS;

/** Forgets the limits in headers, which mean nothing under another plan. */
export function underNewPlan({ limits, others, daySeenMs }: Windows): Windows {
  return { ...NO_HEADERS, limits: { ...NO_HEADERS.limits, seen: limits.seen }, others, daySeenMs };
}

/** Whether the last answer had a limit that the plan does not have, and the account was not read since. */
export function hasMismatch({ odd, lastOdd }: Windows, planReadings: number): boolean {
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
    const { minute, day } = windowsOf(limit, context.plan);
    if (minute) windows = readMinute(windows, sample, { ...context, events });
    if (day && (minute || !hasMismatch(windows, context.planReadings))) {
      windows = readDay(windows, sample, { ...context, events });
    }
    if (!minute && !day) events.push(isLow(sample, context.share) ? { kind: 'scarce', nowMs } : { kind: 'ample' });
  }
  return { windows: readDayRefusal(windows, facts, context), events };
}

/** Which window a limit belongs to; neither if the plan is unknown. */
function windowsOf(limit: number, plan: PlanFigures | null): { minute: boolean; day: boolean } {
  if (plan === null) return { minute: false, day: false };
  if (plan.perMinute === null) return { minute: limit < (plan.perDay ?? 0), day: limit === plan.perDay };
  const minute = limit === plan.perMinute;
  const day = limit === plan.perDay;
  if (minute || day) return { minute, day };
  if (limit < plan.perMinute) return { minute: true, day: false };
  return { minute: plan.perDay !== null && limit > plan.perDay, day: true };
}

/** How many odd limits are remembered, the last ones: a hostile service may send any number of them. */
const MOST_ODD = 100;

/** Records a limit as the last one, and as an odd one if the plan does not have it. */
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

interface Reading extends HeaderContext {
  readonly events: ThrottleEvent[];
}

function readMinute(known: Windows, sample: Sample, reading: Reading): Windows {
  const { nowMs, limit, remaining } = sample;
  const figure = reading.plan?.perMinute ?? limit;
  const others = usedByOthers(sample, MINUTE_MS, reading);
  if (nowMs - known.daySeenMs >= DAY_GUARD_EVERY_MS) reading.events.push({ kind: 'day-silent' });
  if (isScarce(others, remaining, guardOf(Math.min(limit, figure), reading.share))) {
    reading.events.push({ kind: 'minute-scarce', nowMs, remaining });
  }
  return {
    ...known,
    limits: { ...known.limits, minute: limit < figure ? limit : null },
    others: { ...known.others, minute: others },
  };
}

function readDay(known: Windows, sample: Sample, reading: Reading): Windows {
  const { nowMs, limit, remaining } = sample;
  const figure = reading.plan?.perDay ?? Infinity;
  const others = usedByOthers(sample, DAY_MS, reading);
  const scarce = isScarce(others, remaining, guardOf(Math.min(limit, figure), reading.share));
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

/** A low remainder that comes from our own use alone is covered by our own limits. */
function isScarce(others: number, remaining: number, guard: number): boolean {
  return others > 0 && remaining <= guard;
}

/** The remainder at which others have used half of what our share leaves them. */
function guardOf(limit: number, share: number): number {
  return Math.ceil((limit * (1 - share)) / 2);
}

/** For an unnamed window, of which our own use is unknown. */
function isLow({ limit, remaining }: Sample, share: number): boolean {
  return remaining <= Math.ceil(limit * (1 - share));
}

/** If no header reports the day, its refusal does: others have used what we have not. */
function readDayRefusal(known: Windows, { status, waitMs, nowMs }: AnswerFacts, context: HeaderContext): Windows {
  const perDay = context.plan?.perDay ?? null;
  if (status !== 429 || (waitMs ?? 0) <= MINUTE_WAIT_MS || perDay === null) return known;
  const unspent = perDay - context.spent(nowMs, DAY_MS + TRAVEL_MS);
  return { ...known, others: { ...known.others, day: Math.max(known.others.day ?? 0, unspent) } };
}
