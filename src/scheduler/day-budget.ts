/**
 * Spreads the day's budget over the day and reserves a part of it for live work. The rate limiter enforces the limits
 * of the plan; this file keeps the program from reaching them early in the day.
 *
 * A token bucket is filled evenly and holds a small part of the day's budget, so that a burst does not have to wait.
 * The bucket and its filling together stay within the budget of any 24 hours. The requests of other clients are
 * measured and subtracted.
 */
import type { WindowFigures } from '../core/quota.ts';
import { DAY_MS, MINUTE_MS } from '../core/time.ts';

/** The day's window of the quota; `null` if unknown. */
export interface DayFigures extends WindowFigures {
  /** The share of the minute's window, where that is known. */
  readonly minuteBudget?: number | null;
}

export interface DayBudget {
  setFigures(figures: DayFigures, nowMs: number): void;
  sent(nowMs: number): void;
  /**
   * When the next request may go.
   *
   * @param isLive only live requests may use the reserve.
   */
  freeAtMs(isLive: boolean, nowMs: number): number;
  /** How many requests below the live lane may be sent at once; infinite if no limit is known. */
  spare(nowMs: number): number;
  /** Requests per ms by which the bucket fills; infinite where no limit is known. */
  fillPerMs(): number;
  /** Requests per ms within both the day's and the minute's budget; infinite if no limit is known. */
  perMs(): number;
}

/** The part of the day's budget that may go at once after a rest. */
const BURST = 0.03;
/** The part of the bucket that only live work may take. */
const RESERVE = 0.5;
/**
 * The part of the share's rest that is left to other clients beyond their known use: below half of it, the throttle
 * slows requests down.
 */
const GUARD = 0.6;
/** For how long the highest daily use by other clients counts. */
const REMEMBERED_MS = 2 * DAY_MS;

/** @param share the part of the limit that may be used. */
export function createDayBudget(share: number): DayBudget {
  let budget = Number.POSITIVE_INFINITY;
  let tokens: number | null = null;
  let filledMs = Number.NEGATIVE_INFINITY;
  const others = createOthers();

  const burst = (): number => Math.max(1, budget * BURST);
  const perMs = (): number => (budget * (1 - BURST)) / DAY_MS;
  let minutePerMs = Number.POSITIVE_INFINITY;
  const tokensAt = (nowMs: number): number =>
    Math.min(burst(), tokens === null ? burst() : tokens + Math.max(0, nowMs - filledMs) * perMs());
  const fill = (nowMs: number): number => {
    tokens = tokensAt(nowMs);
    filledMs = Math.max(filledMs, nowMs);
    return tokens;
  };

  return {
    setFigures(figures, nowMs) {
      // The tokens so far were earned at the previous rate.
      if (Number.isFinite(budget)) fill(nowMs);
      minutePerMs = (figures.minuteBudget ?? Number.POSITIVE_INFINITY) / MINUTE_MS;
      if (figures.limit === null || figures.budget === null) {
        budget = Number.POSITIVE_INFINITY;
        return;
      }
      const theirs = others.note(figures.others, nowMs);
      const left = figures.limit * (1 - (1 - share) * GUARD) - theirs;
      const isFirst = !Number.isFinite(budget);
      budget = Math.max(1, Math.min(figures.budget, theirs > 0 ? left : figures.budget));
      // Earlier requests of the day count: a restart adds no budget.
      if (isFirst) tokens = Math.max(0, Math.min(burst(), budget * BURST - figures.spent));
      if (isFirst) filledMs = nowMs;
    },
    sent(nowMs) {
      if (Number.isFinite(budget)) tokens = fill(nowMs) - 1;
    },
    freeAtMs(isLive, nowMs) {
      if (!Number.isFinite(budget)) return nowMs;
      const missing = Math.min(burst(), isLive ? 1 : 1 + burst() * RESERVE) - tokensAt(nowMs);
      return missing <= 0 ? nowMs : nowMs + Math.ceil(missing / perMs());
    },
    spare: (nowMs) => (Number.isFinite(budget) ? Math.max(0, tokensAt(nowMs) - burst() * RESERVE) : budget),
    fillPerMs: perMs,
    perMs: () => Math.min(perMs(), minutePerMs),
  };
}

/**
 * Estimates the use by other clients in a day: the highest use of a recent day.
 *
 * A fixed window shows a whole day's use only at its end, and headers that report the tighter window show the day only
 * when it is nearly used up. So the figures are kept for longer than a day.
 */
function createOthers() {
  /** Ascending in time, descending in use: only what nothing later exceeds can ever be the most. */
  const peaks: { atMs: number; used: number }[] = [];
  let last: number | null = null;
  return {
    note(used: number | null, nowMs: number): number {
      // An unchanged figure shows nothing new: the answers may no longer report the day.
      if (used !== null && used !== last) {
        while (peaks.length > 0 && (peaks.at(-1)?.used ?? 0) <= used) peaks.pop();
        peaks.push({ atMs: nowMs, used });
        last = used;
      }
      while (peaks.length > 1 && (peaks[0]?.atMs ?? nowMs) < nowMs - REMEMBERED_MS) peaks.shift();
      return peaks[0]?.used ?? 0;
    },
  };
}
