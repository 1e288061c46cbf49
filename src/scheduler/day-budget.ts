/**
 * Spreads the day's budget over the day and reserves a part of it for live work. The rate limiter enforces the limits
 * of the plan; this file keeps the program from reaching them early in the day.
 *
 * A token bucket is filled evenly and holds a small part of the day's budget, so that a burst does not have to wait.
 * The bucket and its filling together stay within the budget of any 24 hours. The requests of other clients are
 * measured and subtracted.
 */
import type { QuotaWindowFigures } from '../core/quota.ts';
import { DAY_MS, MINUTE_MS } from '../core/time.ts';

/** The quota window of the day; `null` if unknown. */
export interface DayFigures extends QuotaWindowFigures {
  /** The share of the quota window of the minute, if that is known. */
  readonly minuteBudget?: number | null;
}

/** The part of the day's budget that may be sent at once after a pause. */
const BURST_FRACTION = 0.03;
/** The part of the bucket that only live work may take. */
const LIVE_RESERVE_FRACTION = 0.5;
/**
 * The fraction of the quota outside our share that is left to other clients beyond their known use. Below half of it,
 * the throttle slows requests down.
 */
const GUARD = 0.6;
/** For how long the highest daily use by other clients counts. */
const REMEMBERED_MS = 2 * DAY_MS;

/** The daily use by other clients, as answers have shown it. */
interface Others {
  /**
   * Ascending in time, descending in use: a peak that a later one exceeds is dropped, because it can never be the
   * highest again.
   */
  readonly peaks: readonly { readonly atMs: number; readonly used: number }[];
  readonly last: number | null;
}

/** The budget of a day, and the state of its token bucket. */
export interface DayBudget {
  /** The part of the limit that may be used. */
  readonly share: number;
  /** Requests per day; infinite while no limit is known. */
  readonly perDay: number;
  /** Requests per ms within the minute's budget; infinite while no limit is known. */
  readonly minutePerMs: number;
  /** The tokens in the bucket at `filledMs`. They have no meaning without a limit. */
  readonly tokens: number;
  readonly filledMs: number;
  readonly others: Others;
}

/** The budget before any limit is known. */
export function unlimitedDay(share: number): DayBudget {
  return {
    share,
    perDay: Number.POSITIVE_INFINITY,
    minutePerMs: Number.POSITIVE_INFINITY,
    tokens: 0,
    filledMs: Number.NEGATIVE_INFINITY,
    others: { peaks: [], last: null },
  };
}

/** Returns the day's budget after the limits or the use by others have changed; earned tokens stay. */
export function withFigures(day: DayBudget, figures: DayFigures, nowMs: number): DayBudget {
  const { share } = day;
  const isFirst = !isLimited(day);
  // The tokens so far were earned at the previous rate.
  const filled = isFirst ? day : fill(day, nowMs);
  const minutePerMs = (figures.minuteBudget ?? Number.POSITIVE_INFINITY) / MINUTE_MS;
  if (figures.limit === null || figures.budget === null)
    return { ...filled, minutePerMs, perDay: Number.POSITIVE_INFINITY };
  const others = noteOthers(day.others, figures.others, nowMs);
  const theirs = others.peaks[0]?.used ?? 0;
  const left = figures.limit * (1 - (1 - share) * GUARD) - theirs;
  const perDay = Math.max(1, Math.min(figures.budget, theirs > 0 ? left : figures.budget));
  if (!isFirst) return { ...filled, minutePerMs, perDay, others };
  // Earlier requests of the day count, so that a restart adds no budget.
  const tokens = Math.max(0, Math.min(burstOf(perDay), perDay * BURST_FRACTION - figures.spent));
  return { share, perDay, minutePerMs, tokens, filledMs: nowMs, others };
}

/** The budget after a request was sent. */
export function budgetAfterRequest(day: DayBudget, nowMs: number): DayBudget {
  if (!isLimited(day)) return day;
  const filled = fill(day, nowMs);
  return { ...filled, tokens: filled.tokens - 1 };
}

/**
 * When the next request may be sent.
 *
 * @param isLive only live requests may use the reserve.
 */
export function freeAtMs(day: DayBudget, isLive: boolean, nowMs: number): number {
  if (!isLimited(day)) return nowMs;
  const burst = burstOf(day.perDay);
  const missing = Math.min(burst, isLive ? 1 : 1 + burst * LIVE_RESERVE_FRACTION) - tokensAt(day, nowMs);
  return missing <= 0 ? nowMs : nowMs + Math.ceil(missing / fillRate(day));
}

/** How many requests below the live lane may be sent at once; infinite if no limit is known. */
export function spareAt(day: DayBudget, nowMs: number): number {
  return isLimited(day) ? Math.max(0, tokensAt(day, nowMs) - burstOf(day.perDay) * LIVE_RESERVE_FRACTION) : day.perDay;
}

/** How many requests are missing from the bucket before one below the live lane may be sent; 0 if no limit is known. */
export function deficitAt(day: DayBudget, nowMs: number): number {
  return isLimited(day) ? Math.max(0, burstOf(day.perDay) * LIVE_RESERVE_FRACTION - tokensAt(day, nowMs)) : 0;
}

/** Requests per ms by which the bucket fills; infinite if no limit is known. */
export function fillRate({ perDay }: DayBudget): number {
  return (perDay * (1 - BURST_FRACTION)) / DAY_MS;
}

/** Requests per ms within both the day's and the minute's budget; infinite if no limit is known. */
export function requestRate(day: DayBudget): number {
  return Math.min(fillRate(day), day.minutePerMs);
}

function isLimited({ perDay }: DayBudget): boolean {
  return Number.isFinite(perDay);
}

/** How many tokens the bucket holds. */
function burstOf(perDay: number): number {
  return Math.max(1, perDay * BURST_FRACTION);
}

function tokensAt(day: DayBudget, nowMs: number): number {
  return Math.min(burstOf(day.perDay), day.tokens + Math.max(0, nowMs - day.filledMs) * fillRate(day));
}

function fill(day: DayBudget, nowMs: number): DayBudget {
  return { ...day, tokens: tokensAt(day, nowMs), filledMs: Math.max(day.filledMs, nowMs) };
}

/**
 * Estimates the use by other clients in a day: the highest use of a recent day.
 *
 * A fixed window shows the use of a whole day only at its end, and headers that report the tighter window show the day
 * only when it is nearly used up. So the figures are kept for longer than a day.
 */
function noteOthers({ peaks, last }: Others, used: number | null, nowMs: number): Others {
  // An unchanged figure shows nothing new: the answers may no longer report the day.
  const isNew = used !== null && used !== last;
  const grown = isNew ? [...peaks.filter((peak) => peak.used > used), { atMs: nowMs, used }] : peaks;
  const kept = grown.filter(({ atMs }, index) => index === grown.length - 1 || atMs >= nowMs - REMEMBERED_MS);
  return { peaks: kept, last: isNew ? used : last };
}
