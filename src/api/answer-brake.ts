/**
 * How the server's answers slow the requests down: lower limits than the plan's, an allowance that others have nearly
 * used up, refusals (design 2.3). It only ever brakes; the ceilings of `allowance.ts` stand whatever it says.
 *
 * Each answer tells of one window or the other. A limit that equals the plan's figure says which; one that equals
 * neither is read so that it brakes: below the figure per minute it is the minute's, between the two the day's, above
 * both it lowers nothing. It may as well be that the plan has grown: a limit that is new and between the two is doubted
 * until the account was read once more, or a plan that was widened would stop everything for a day. Where the plan is not known (the key may not read the account), the figure is taken for the
 * minute's within bounds, and a low remainder, whatever its window, is met with pauses that double until it recovers.
 */
import type { AnswerFacts, PlanFigures, Turn } from '../core/allowance-terms.ts';
import type { Random } from '../core/ports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** The slowest that refusals make the pace. */
const LEAST_FACTOR = 0.1;
const RECOVERY_PER_MINUTE = 0.05;
/** A longer wait than this speaks of the day's allowance: it says nothing of the pace. */
const MINUTE_WAIT_MS = 2 * MINUTE_MS;
/** The server counts a request when it arrives, we when it leaves: what is a little older may still count there. */
const TRAVEL_MS = 2 * SECOND_MS;
/** One request in so long while others have nearly used up the day: enough to notice when it is over. */
const DAY_GUARD_EVERY_MS = 15 * MINUTE_MS;
const LONGEST_PAUSE_MS = 15 * MINUTE_MS;
/** After so many refusals in a row the wait is doubled. */
const REFUSALS_IN_A_ROW = 3;

export interface AnswerBrake {
  setPlan(plan: PlanFigures | null): void;
  /** Takes an answer. @returns for how long nothing may be sent, in ms, where it asked for a wait; else `null`. */
  answered(facts: AnswerFacts): number | null;
  /** When what others use lets the next request go. */
  turn(lastSentMs: number): Turn;
  /** Until when the last pause lasts or lasted. */
  pauseUntilMs(): number;
  /** By what the pace is multiplied: 0.1 to 1. */
  factor(): number;
  /** Limits from headers: lower than the plan's, by window; `seen`, the last one of any window. */
  limits(): { readonly minute: number | null; readonly day: number | null; readonly seen: number | null };
  /** Whether an answer told of a limit that the plan as known does not have, and the account was not read since. */
  isPlanDoubted(): boolean;
  /** What others have used of each window, as of the last answer that told. */
  others(): { readonly minute: number | null; readonly day: number | null };
}

export interface BrakeOptions {
  readonly share: number;
  readonly random: Random;
  /** How many requests of our own are younger than that. */
  readonly spent: (nowMs: number, windowMs: number) => number;
  /** How often the account was read. */
  readonly planReadings: () => number;
}

interface Sample {
  readonly nowMs: number;
  readonly limit: number;
  readonly remaining: number;
}

/** A brake that nothing has touched yet. */
export function createAnswerBrake({ share, random, spent, planReadings }: BrakeOptions): AnswerBrake {
  let plan: PlanFigures | null = null;
  let limits: ReturnType<AnswerBrake['limits']> = { minute: null, day: null, seen: null };
  let others: ReturnType<AnswerBrake['others']> = { minute: null, day: null };
  let pauseUntilMs = Number.NEGATIVE_INFINITY;
  let pauseStepMs = 0;
  let dayIsLow = false;
  let dayToldMs = Number.NEGATIVE_INFINITY;
  const doubts = createDoubts(planReadings);
  const refusals = createRefusals(random);

  /** The remainder at which the others' half of what the share leaves is used up. */
  const guard = (limit: number): number => Math.ceil((limit * (1 - share)) / 2);

  const takeMinute = ({ nowMs, limit, remaining }: Sample): void => {
    const figure = plan?.perMinute ?? limit;
    limits = { ...limits, minute: limit < figure ? limit : null };
    const byOthers = Math.max(0, limit - remaining - spent(nowMs, MINUTE_MS + TRAVEL_MS));
    others = { ...others, minute: byOthers };
    // Headers that tell of the tighter window have ceased to tell of the day: it has recovered.
    if (nowMs - dayToldMs >= DAY_GUARD_EVERY_MS) dayIsLow = false;
    // What is low by our own use alone, our own ceilings take care of.
    if (byOthers === 0 || remaining > guard(Math.min(limit, figure))) return;
    // Answers may overtake each other: an earlier, worse one still counts.
    pauseUntilMs = Math.max(pauseUntilMs, nowMs + MINUTE_MS / (remaining + 1));
  };
  const takeDay = ({ nowMs, limit, remaining }: Sample): void => {
    const figure = plan?.perDay ?? Infinity;
    limits = { ...limits, day: limit < figure ? limit : null };
    const byOthers = Math.max(0, limit - remaining - spent(nowMs, DAY_MS + TRAVEL_MS));
    others = { ...others, day: byOthers };
    dayToldMs = nowMs;
    dayIsLow = byOthers > 0 && remaining <= guard(Math.min(limit, figure));
  };
  const takeUnknown = ({ nowMs, limit, remaining }: Sample): void => {
    const isLow = remaining <= Math.ceil(limit * (1 - share));
    pauseStepMs = isLow ? Math.min(LONGEST_PAUSE_MS, Math.max(MINUTE_MS, pauseStepMs * 2)) : 0;
    if (isLow) pauseUntilMs = Math.max(pauseUntilMs, nowMs + pauseStepMs);
  };

  const take = (sample: Sample): void => {
    const { limit } = sample;
    limits = { ...limits, seen: limit };
    const windows = windowsOf(limit, plan);
    const mayHaveGrown = doubts.isDoubted(limit, plan) && !windows.minute;
    if (windows.minute) takeMinute(sample);
    if (windows.day && !mayHaveGrown) takeDay(sample);
    if (!windows.minute && !windows.day) takeUnknown(sample);
  };

  return {
    setPlan(next) {
      plan = next;
      doubts.clear();
      limits = { minute: null, day: null, seen: limits.seen };
      dayIsLow = false;
      pauseStepMs = 0;
    },
    answered(facts) {
      const { limit, remaining, nowMs } = facts;
      if (limit !== null && limit > 0) take({ nowMs, limit, remaining: Math.min(remaining ?? limit, limit) });
      const isDaySpent = facts.status === 429 && (facts.waitMs ?? 0) > MINUTE_WAIT_MS;
      // Where no header tells of the day, its refusal does: what we have not used of it, others have.
      if (isDaySpent && plan?.perDay != null)
        others = { ...others, day: Math.max(others.day ?? 0, plan.perDay - spent(nowMs, DAY_MS + TRAVEL_MS)) };
      return refusals.answered(facts);
    },
    turn(lastSentMs) {
      const dayMs = dayIsLow ? lastSentMs + DAY_GUARD_EVERY_MS : Number.NEGATIVE_INFINITY;
      return dayMs > pauseUntilMs ? { atMs: dayMs, reason: 'day' } : { atMs: pauseUntilMs, reason: 'minute' };
    },
    pauseUntilMs: () => pauseUntilMs,
    factor: refusals.factor,
    limits: () => limits,
    isPlanDoubted: doubts.any,
    others: () => others,
  };
}

/** The limits that the plan as known does not have, each doubted until the account was read after it was first seen. */
function createDoubts(planReadings: () => number) {
  const seenAt = new Map<number, number>();
  let last: number | null = null;
  const isOpen = (limit: number): boolean => planReadings() <= (seenAt.get(limit) ?? -1);
  return {
    isDoubted: (limit: number, plan: PlanFigures | null): boolean => {
      const isOdd = plan?.perMinute != null && limit !== plan.perMinute && limit !== plan.perDay;
      last = isOdd ? limit : null;
      if (isOdd && !seenAt.has(limit)) seenAt.set(limit, planReadings());
      return isOdd && isOpen(limit);
    },
    any: (): boolean => last !== null && isOpen(last),
    clear: (): void => {
      seenAt.clear();
      last = null;
    },
  };
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

/** Refusals (429) and other answers that ask for a wait: halve the pace, and let it recover. */
function createRefusals(random: Random) {
  let factor = 1;
  let recoveredMs = 0;
  let inARow = 0;
  let lastRefusalMs = Number.NEGATIVE_INFINITY;

  const recover = (nowMs: number): void => {
    factor = Math.min(1, factor + (RECOVERY_PER_MINUTE * Math.max(0, nowMs - recoveredMs)) / MINUTE_MS);
    recoveredMs = nowMs;
  };
  /** Requests that were under way at a refusal are refused with it: that is one refusal, not several. */
  const refuse = ({ nowMs, sentMs }: AnswerFacts, waitMs: number): void => {
    if (sentMs <= lastRefusalMs) return;
    lastRefusalMs = nowMs;
    recoveredMs = nowMs;
    inARow += 1;
    if (waitMs <= MINUTE_WAIT_MS) factor = Math.max(LEAST_FACTOR, factor / 2);
  };

  return {
    factor: (): number => factor,
    answered(facts: AnswerFacts): number | null {
      const { nowMs, status, waitMs } = facts;
      if (status !== null && status !== 429) {
        inARow = 0;
        recover(nowMs);
      }
      if (status === 429) refuse(facts, waitMs ?? MINUTE_MS);
      const askedMs = status === 429 ? (waitMs ?? MINUTE_MS) : waitMs;
      if (askedMs === null) return null;
      const doubledMs = askedMs * 2 ** Math.max(0, inARow - REFUSALS_IN_A_ROW + 1);
      const wholeMs = inARow < REFUSALS_IN_A_ROW ? askedMs : Math.max(askedMs, Math.min(doubledMs, LONGEST_PAUSE_MS));
      return wholeMs + addedMs(wholeMs);
    },
  };

  /** Jitter is only ever added, so that clients which were refused together do not come back together. */
  function addedMs(waitMs: number): number {
    return (0.1 + 0.9 * random()) * Math.min(5 * SECOND_MS, Math.max(SECOND_MS, waitMs / 10));
  }
}

/** The longest block that can have been asked for, jitter included: more than that is a clock that was wrong. */
export const LONGEST_BLOCK_MS = 25 * HOUR_MS + 10 * SECOND_MS;
