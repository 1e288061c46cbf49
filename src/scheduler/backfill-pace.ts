/**
 * The pace of a backfill that is to take only a part of the share, or to come to its end by a time and no sooner.
 *
 * It only ever slows: the ceilings of `allowance.ts` and the order of the planner stand beside it. All times are
 * milliseconds of one clock, given by the caller.
 */
import { createSendLog } from '../core/send-log.ts';
import { DAY_MS, type EpochMs, MINUTE_MS } from '../core/time.ts';

export interface PaceSettings {
  /** The part of the share, above 0 and up to 1; `null`: no such bound. */
  readonly maxShare: number | null;
  readonly finishByMs: EpochMs | null;
  readonly startedMs: EpochMs;
  /** Its requests of the last day from before, ascending: a restart gives nothing back. */
  readonly sentMs: readonly EpochMs[];
  /** The share of the minute's and the day's limit, in requests; `null`: not known. Asked again and again. */
  readonly budgets: () => { readonly perMinute: number | null; readonly perDay: number | null };
}

export interface BackfillPace {
  /** When the next request may go; a time that has passed means now. */
  freeAtMs(nowMs: EpochMs): EpochMs;
  sent(nowMs: EpochMs): void;
  /** Takes in how many requests are still to be made, as well as that is known. */
  setLeft(requests: number): void;
  /** Whether it was met with a time that cannot be kept any more. */
  isLate(nowMs: EpochMs): boolean;
}

/** The part of the time that is kept for what turns out to be more than was thought, and for delivery. */
const RESERVE = 0.04;

/** A pace at its beginning. */
export function createBackfillPace(settings: PaceSettings): BackfillPace {
  const { maxShare, finishByMs, startedMs, budgets } = settings;
  const log = createSendLog(DAY_MS);
  log.load(settings.sentMs);
  /** How many intervals are owed for what was sent, as of a time. */
  let owed = { count: 0, atMs: startedMs };
  let left: number | null = null;

  const untilMs = finishByMs === null ? null : finishByMs - (finishByMs - startedMs) * RESERVE;
  const everyMs = (nowMs: EpochMs): number => {
    const perMinute = budgets().perMinute;
    const ofShare = maxShare === null || perMinute === null ? 0 : MINUTE_MS / (perMinute * maxShare);
    if (untilMs === null || left === null) return ofShare;
    return Math.max(ofShare, (untilMs - nowMs) / Math.max(1, left));
  };
  const dayFreeMs = (): EpochMs => {
    const perDay = budgets().perDay;
    if (maxShare === null || perDay === null) return Number.NEGATIVE_INFINITY;
    return log.freeAtMs(Math.max(1, Math.floor(perDay * maxShare)), DAY_MS);
  };
  const owedAt = (nowMs: EpochMs): number => {
    const every = everyMs(nowMs);
    return every <= 0 ? 0 : Math.max(0, owed.count - Math.max(0, nowMs - owed.atMs) / every);
  };
  return {
    freeAtMs: (nowMs) => Math.max(nowMs + owedAt(nowMs) * everyMs(nowMs), dayFreeMs()),
    sent: (nowMs) => {
      log.add(nowMs);
      owed = { count: owedAt(nowMs) + 1, atMs: nowMs };
      if (left !== null) left = Math.max(0, left - 1);
    },
    setLeft: (requests) => {
      left = requests;
    },
    isLate: (nowMs) => finishByMs !== null && nowMs > finishByMs,
  };
}
