/**
/**
 * The allowance in the words of those who look at it: the rate limiter's figures for the status, for the metrics and for points.
 */
import type { RateLimiter, RateLimiterFigures } from '../api/rate-limiter.ts';
import type { AllowanceUse } from '../core/lines/fact-lines.ts';
import type { Store } from '../core/state/state.ts';
import type { AllowanceStatus } from '../core/status.ts';
import { formatExact, msToNs } from '../core/time.ts';
import type { Rest } from '../scheduler/planner-types.ts';

/** What the rate limiter goes by; `null` while the plan is not known. */
export function planFigures(store: Store): { perMinute: number | null; perDay: number | null } | null {
  const plan = store.account()?.plan;
  return plan === undefined ? null : { perMinute: plan.requestsPerMinute, perDay: plan.requestsPerDay };
}

/** Shorter waits are the even pace, and no waiting that anybody needs to know of. */
const WAIT_TOLD_MS = 3000;

/** The windows and the wait, as they are shown. */
type AllowanceFigures = Omit<RateLimiterFigures, 'waitingFor'>;

/** Both windows, and until when the program waits, where that is worth telling. */
export function allowanceNow(
  limiter: RateLimiter,
  { nowMs, rest }: { nowMs: number; rest: Rest | null },
): AllowanceFigures {
  const { minute, day, waitingUntilMs: pacedUntilMs } = limiter.figures();
  // The day's budget is spread over the day.
  const untilMs = pacedUntilMs ?? (rest?.reason === 'day' ? rest.untilMs : null);
  return { minute, day, waitingUntilMs: untilMs !== null && untilMs - nowMs >= WAIT_TOLD_MS ? untilMs : null };
}

/** The allowance as the status shows it. @param share `api.share`. */
export function allowanceStatus(
  { minute, day, waitingUntilMs }: AllowanceFigures,
  share: number,
): Omit<AllowanceStatus, 'lanes'> {
  return { share, minute, day, waiting_until: waitingUntilMs === null ? null : formatExact(msToNs(waitingUntilMs)) };
}

/** The allowance as points tell of it. */
export function allowanceUse(limiter: RateLimiter): AllowanceUse {
  const { minute, day } = limiter.figures();
  const left = ({ limit, spent, others }: typeof minute): number | null =>
    limit === null ? null : Math.max(0, limit - spent - (others ?? 0));
  return { spentMinute: minute.spent, leftMinute: left(minute), spentDay: day.spent, leftDay: left(day) };
}
