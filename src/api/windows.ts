/**
 * What the headers of the answers say of the two windows of the quota, the minute and the day: lower limits than the
 * plan's, what other clients have used, and whether they leave too little.
 *
 * Each answer speaks of one window and does not say which. A limit that equals the plan's figure says so; one that
 * equals neither is read so that it slows down: below the figure per minute it is the minute's, between the two the
 * day's, above both it lowers nothing. It may as well be that the plan has grown: a limit between the two that the plan
 * does not have is doubted until the account was read once more, or a plan that was widened would stop everything for a
 * day. Where the plan is not known (the key may not read the account), the limit is taken for the minute's within
 * bounds, and a low remainder is one of an unnamed window.
 *
 * Pure: what is known goes in and comes out.
 */
import type { PlanFigures } from '../core/quota.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { DAY_GUARD_EVERY_MS, MINUTE_WAIT_MS, type ThrottleEvent } from './throttle.ts';

/** What one answer says of the quota; times by the monotonic clock, in ms. */
export interface AnswerFacts {
  /** When its request was sent and when it came. */
  readonly sentMs: number;
  readonly nowMs: number;
  /** `null` where no answer came. */
  readonly status: number | null;
  /** `X-RateLimit-Limit` and `-Remaining`. */
  readonly limit: number | null;
  readonly remaining: number | null;
  /** The wait that the answer asks for. */
  readonly waitMs: number | null;
}

/** What the headers have said so far. */
export interface Windows {
  /** Limits below the plan's, by window; `seen`: the last one of any window. */
  readonly limits: { readonly minute: number | null; readonly day: number | null; readonly seen: number | null };
  /** What other clients have used of each window, as of the last answer that showed it. */
  readonly others: { readonly minute: number | null; readonly day: number | null };
  /** When a header spoke of the day last. */
  readonly daySeenMs: number;
  /** The limits that the plan does not have, each with how often the account had been read when it was seen first. */
  readonly odd: ReadonlyMap<number, number>;
  /** The last limit, where the plan does not have it. */
  readonly lastOdd: number | null;
}

/** No header has said anything yet. */
export const NOTHING_SAID: Windows = {
  limits: { minute: null, day: null, seen: null },
  others: { minute: null, day: null },
  daySeenMs: Number.NEGATIVE_INFINITY,
  odd: new Map(),
  lastOdd: null,
};

/** What headers are read by. */
interface HeaderContext {
  readonly plan: PlanFigures | null;
  /** The part of the quota that may be used. */
  readonly share: number;
  /** How often the account was read. */
  readonly planReadings: number;
  /** How many requests of our own are younger than that. */
  readonly spent: (nowMs: number, windowMs: number) => number;
}

/** The server counts a request when it arrives, we when it leaves: what is a little older may still count there. */
const TRAVEL_MS = 2 * SECOND_MS;

/** What headers said of limits means nothing under another plan. */
export function underNewPlan({ limits, others, daySeenMs }: Windows): Windows {
  return { ...NOTHING_SAID, limits: { ...NOTHING_SAID.limits, seen: limits.seen }, others, daySeenMs };
}

/** Whether the last answer had a limit that the plan does not have, and the account was not read since. */
export function isPlanDoubted({ odd, lastOdd }: Windows, planReadings: number): boolean {
  return lastOdd !== null && planReadings <= (odd.get(lastOdd) ?? -1);
}

/** Takes in what the headers of an answer say. @returns what is known now, and the events that it means. */
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
    if (day && (minute || !isPlanDoubted(windows, context.planReadings))) {
      windows = readDay(windows, sample, { ...context, events });
    }
    if (!minute && !day) events.push(isLow(sample, context.share) ? { kind: 'scarce', nowMs } : { kind: 'ample' });
  }
  return { windows: readDayRefusal(windows, facts, context), events };
}

/** Which window a limit speaks of; neither where the plan is not known. */
function windowsOf(limit: number, plan: PlanFigures | null): { minute: boolean; day: boolean } {
  if (plan === null || plan.perMinute === null) return { minute: false, day: limit === plan?.perDay };
  const minute = limit === plan.perMinute;
  const day = limit === plan.perDay;
  if (minute || day) return { minute, day };
  if (limit < plan.perMinute) return { minute: true, day: false };
  return { minute: plan.perDay !== null && limit > plan.perDay, day: true };
}

/** Keeps a limit as the last one, and as an odd one where the plan does not have it. */
function noteLimit(known: Windows, limit: number, { plan, planReadings }: HeaderContext): Windows {
  const isOdd = plan?.perMinute != null && limit !== plan.perMinute && limit !== plan.perDay;
  const odd = isOdd && !known.odd.has(limit) ? new Map([...known.odd, [limit, planReadings]]) : known.odd;
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

/** What is low by our own use alone, our own ceilings take care of. */
function isScarce(others: number, remaining: number, guard: number): boolean {
  return others > 0 && remaining <= guard;
}

/** The remainder at which the others' half of what the share leaves is used up. */
function guardOf(limit: number, share: number): number {
  return Math.ceil((limit * (1 - share)) / 2);
}

/** Of a window that cannot be named: nobody knows how much of it is our own use. */
function isLow({ limit, remaining }: Sample, share: number): boolean {
  return remaining <= Math.ceil(limit * (1 - share));
}

/** Where no header speaks of the day, its refusal does: what we have not used of it, others have. */
function readDayRefusal(known: Windows, { status, waitMs, nowMs }: AnswerFacts, context: HeaderContext): Windows {
  const perDay = context.plan?.perDay ?? null;
  if (status !== 429 || (waitMs ?? 0) <= MINUTE_WAIT_MS || perDay === null) return known;
  const unspent = perDay - context.spent(nowMs, DAY_MS + TRAVEL_MS);
  return { ...known, others: { ...known.others, day: Math.max(known.others.day ?? 0, unspent) } };
}
