/**
 * When the next request may be sent, so that the allowance is shared and no refusal is provoked (design 2.3).
 *
 * Promises: within any rolling minute and any rolling day no more requests than the share; nothing before a wait that
 * the server asked for is over; what the server tells makes it slower than that, never faster. Even pacing with a burst
 * of three makes the kind of the server's windows (fixed, sliding, bucket) irrelevant; that a refused request counts
 * here as well makes it irrelevant whether it costs the server's allowance.
 *
 * All times are milliseconds of one monotonic clock, given by the caller. There is no input or output here.
 */
import type { AnswerFacts, PlanFigures, Turn, WindowFigures } from '../core/allowance-terms.ts';
import type { Random } from '../core/ports.ts';
import { createSendLog } from '../core/send-log.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { createAnswerBrake } from './answer-brake.ts';

export interface Allowance {
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
  /** Takes what an answer tells. @returns until when nothing may be sent, where it asked for a wait, else `null`. */
  answered(facts: AnswerFacts): number | null;
  /** Whether the answers speak of another plan than the one that is known: the account should be read. */
  isPlanDoubted(): boolean;
  minute(nowMs: number): WindowFigures;
  day(nowMs: number): WindowFigures;
}

const BURST = 3;
/** What is assumed where nobody has told a limit, and the most that a header alone is believed. */
const UNKNOWN_PER_MINUTE = 10;
const UNKNOWN_PER_MINUTE_AT_MOST = 30;
/** Where the share leaves less room than a burst takes, what arrives closer together than it left would be too much. */
const TRAVEL_MS = 2 * SECOND_MS;
/** What whoever waits may be early by, and what one request takes longer to arrive than another as a rule. */
const EARLY_MS = 250;

export interface AllowanceOptions {
  /** The part of the plan's limits that may be used: above 0, at most 1. */
  readonly share: number;
  readonly random: Random;
  /** How often the account was read: a plan that is read again and is the same is no longer doubted. */
  readonly planReadings?: () => number;
}

interface Ceiling {
  readonly cap: number;
  readonly windowMs: number;
}

/** An allowance of which nothing is known and nothing is spent. */
export function createAllowance({ share, random, planReadings = () => 0 }: AllowanceOptions): Allowance {
  const log = createSendLog(DAY_MS + TRAVEL_MS);
  const spent = (nowMs: number, windowMs: number): number => log.count(nowMs, windowMs);
  const brake = createAnswerBrake({ share, random, spent, planReadings });
  let plan: PlanFigures | null = null;
  let blockedUntilMs = Number.NEGATIVE_INFINITY;
  let lastSentMs = Number.NEGATIVE_INFINITY;
  /** The "theoretical arrival time" of the generic cell rate algorithm. */
  let arrivalMs = Number.NEGATIVE_INFINITY;

  const minuteLimit = (): number => {
    const { minute, seen } = brake.limits();
    if (plan?.perMinute != null) return minute ?? plan.perMinute;
    return Math.min(minute ?? seen ?? UNKNOWN_PER_MINUTE, UNKNOWN_PER_MINUTE_AT_MOST);
  };
  const dayLimit = (): number => brake.limits().day ?? plan?.perDay ?? Infinity;
  const minuteCeiling = (): Ceiling => ceilingOf(minuteLimit(), share, MINUTE_MS);
  const dayCeiling = (): Ceiling => ceilingOf(dayLimit(), share, DAY_MS);
  const intervalMs = (): number => {
    const { cap, windowMs } = minuteCeiling();
    return windowMs / (cap * brake.factor());
  };

  return {
    setPlan(next) {
      if (next?.perMinute === plan?.perMinute && next?.perDay === plan?.perDay) return;
      plan = next;
      brake.setPlan(next);
    },
    load: (sentMs) => log.load(sentMs),
    blockUntil(untilMs) {
      blockedUntilMs = Math.max(blockedUntilMs, untilMs);
    },
    turn() {
      const every = intervalMs();
      const burst = plan?.perMinute == null ? 1 : BURST;
      // A pace that has become faster counts at once: never later than one interval after the last request.
      const paceMs = Math.min(arrivalMs - (burst - 1) * every, lastSentMs + every);
      const minute = minuteCeiling();
      const day = dayCeiling();
      return latest([
        { atMs: paceMs, reason: 'pace' },
        { atMs: log.freeAtMs(minute.cap, minute.windowMs), reason: 'minute' },
        { atMs: log.freeAtMs(day.cap, day.windowMs), reason: 'day' },
        brake.turn(lastSentMs),
        { atMs: blockedUntilMs, reason: 'asked' },
      ]);
    },
    sent(nowMs) {
      log.add(nowMs);
      // The first one after a pause goes alone: whoever waited meanwhile must not all follow at once.
      const isProbe = lastSentMs < Math.max(blockedUntilMs, brake.pauseUntilMs());
      arrivalMs = Math.max(arrivalMs, nowMs) + intervalMs() * (isProbe ? BURST : 1);
      lastSentMs = nowMs;
    },
    answered(facts) {
      const waitMs = brake.answered(facts);
      if (waitMs === null) return null;
      blockedUntilMs = Math.max(blockedUntilMs, facts.nowMs + waitMs);
      return blockedUntilMs;
    },
    isPlanDoubted: brake.isPlanDoubted,
    minute: (nowMs) => ({
      limit: plan?.perMinute == null && brake.limits().seen === null ? null : minuteLimit(),
      budget: minuteCeiling().cap,
      spent: log.count(nowMs, MINUTE_MS),
      others: brake.others().minute,
    }),
    day: (nowMs) => ({
      limit: finite(dayLimit()),
      budget: finite(dayCeiling().cap),
      spent: log.count(nowMs, DAY_MS),
      others: brake.others().day,
    }),
  };
}

/** The share of a limit, at least one request, and the window over which it is counted. */
function ceilingOf(limit: number, share: number, windowMs: number): Ceiling {
  const cap = Math.max(1, Math.floor(limit * share));
  return { cap, windowMs: windowMs + (limit - cap < BURST ? TRAVEL_MS : EARLY_MS) };
}

function latest(turns: readonly Turn[]): Turn {
  return turns.reduce((last, turn) => (turn.atMs > last.atMs ? turn : last));
}

function finite(figure: number): number | null {
  return Number.isFinite(figure) ? figure : null;
}
