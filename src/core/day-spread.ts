/**
 * How the day's budget is spread over the day, so that it is not burnt in its first hours, with a part in reserve for
 * live work (issue 4, "When it cannot fit"). The ceilings of `allowance.ts` stand beside it; this keeps from running into them.
 *
 * A bucket is filled evenly and holds a small part of the day, so a burst of work need not wait. Together they make no
 * more than the budget in any 24 hours. Others' use of the day is measured and left to them, with room to spare.
 */
import { DAY_MS, HOUR_MS } from './time.ts';

/** The day as the allowance tells of it; `null`: not known. */
export interface DayFigures {
  readonly limit: number | null;
  /** The share of it. */
  readonly budget: number | null;
  readonly spent: number;
  /** What others have used of the window that is under way. */
  readonly others: number | null;
}

export interface DaySpread {
  setFigures(figures: DayFigures, nowMs: number): void;
  sent(nowMs: number): void;
  /** When the next request may go. @param isLive what is not live leaves the reserve alone. */
  freeAtMs(isLive: boolean, nowMs: number): number;
  /** Requests per ms that the day carries; infinite where no limit is known. */
  perMs(): number;
}

/** The part of the day's budget that may go at once after a rest. */
const BURST = 0.03;
/** The part of the bucket that only live work may take. */
const RESERVE = 0.5;
/** What is left to others beyond what they were seen to use: below half of what the share leaves, answers brake. */
const GUARD = 0.6;
/** Others' use is taken for a day's rate once it was watched for so long. */
const WATCH_MS = HOUR_MS;

/** @param share the part of the limit that may be used. */
export function createDaySpread(share: number): DaySpread {
  let budget = Number.POSITIVE_INFINITY;
  let tokens: number | null = null;
  let filledMs = Number.NEGATIVE_INFINITY;
  const others = createOthers();

  const burst = (): number => Math.max(1, budget * BURST);
  const perMs = (): number => (budget * (1 - BURST)) / DAY_MS;
  const fill = (nowMs: number): number => {
    const gained = tokens === null ? burst() : tokens + Math.max(0, nowMs - filledMs) * perMs();
    tokens = Math.min(burst(), gained);
    filledMs = Math.max(filledMs, nowMs);
    return tokens;
  };

  return {
    setFigures(figures, nowMs) {
      if (figures.limit === null || figures.budget === null) {
        budget = Number.POSITIVE_INFINITY;
        return;
      }
      const theirs = others.note(figures.others, nowMs);
      const left = figures.limit * (1 - (1 - share) * GUARD) - theirs;
      const isFirst = !Number.isFinite(budget);
      budget = Math.max(1, Math.min(figures.budget, theirs > 0 ? left : figures.budget));
      // What was spent before counts: a restart gives nothing back.
      if (isFirst) tokens = Math.max(0, Math.min(burst(), budget * BURST - figures.spent));
      if (isFirst) filledMs = nowMs;
    },
    sent(nowMs) {
      if (Number.isFinite(budget)) tokens = fill(nowMs) - 1;
    },
    freeAtMs(isLive, nowMs) {
      if (!Number.isFinite(budget)) return nowMs;
      const missing = Math.min(burst(), isLive ? 1 : 1 + burst() * RESERVE) - fill(nowMs);
      return missing <= 0 ? nowMs : nowMs + Math.ceil(missing / perMs());
    },
    perMs: () => perMs(),
  };
}

/** What others use in a day: the most that they were seen to use in one, and meanwhile what their pace would come to. */
function createOthers() {
  const peaks = createPeaks();
  let sinceMs: number | null = null;
  return {
    note(used: number | null, nowMs: number): number {
      if (used === null) return 0;
      sinceMs ??= nowMs;
      const most = peaks.note(used, nowMs);
      const watchedMs = nowMs - sinceMs;
      if (watchedMs < WATCH_MS || watchedMs >= DAY_MS) return most;
      return (most * DAY_MS) / watchedMs;
    },
  };
}

/** The most of a day's figures. */
function createPeaks() {
  const peaks: { atMs: number; used: number }[] = [];
  return {
    note(used: number, nowMs: number): number {
      // Only what nothing later exceeds can ever be the most.
      while (peaks.length > 0 && (peaks.at(-1)?.used ?? 0) <= used) peaks.pop();
      peaks.push({ atMs: nowMs, used });
      while ((peaks[0]?.atMs ?? nowMs) < nowMs - DAY_MS) peaks.shift();
      return peaks[0]?.used ?? 0;
    },
  };
}
