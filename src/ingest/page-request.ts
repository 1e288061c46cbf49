/**
 * A walk through one hole in the coverage of one device: what to ask, and what to ask next (design 2.1).
 *
 * Pure: it is given answers, as `judge-page.ts` judges them, and gives questions.
 */
import type { Edge } from '../core/coverage.ts';
import type { Interval } from '../core/intervals.ts';
import type { Cursor, TelemetryPage } from '../core/records.ts';
import { ceilToSecond, DAY_NS, type EpochNs, floorToSecond, HOUR_NS, maxNs, minNs, SECOND_NS } from '../core/time.ts';

/**
 * How much wider than needed every bound is asked: bounds may be exclusive, truncated to seconds, or both, on a service
 * that keeps its times more precisely than it tells them.
 */
export const SLACK_NS = 2n * SECOND_NS;

/** A question to the API, and what its answer is held against. */
export interface Ask {
  readonly deviceId: string;
  /** What a complete answer would prove. */
  readonly hole: Interval;
  readonly after: EpochNs;
  /** `null` for a live request, which takes everything newer as well. */
  readonly before: EpochNs | null;
  readonly near: Edge | null;
  readonly far: Edge | null;
  /** Set where time cannot move on: the next page of the same question. */
  readonly cursor: Cursor | null;
  /** Whether an earlier page of the same question has shown `near`. */
  readonly nearSeen: boolean;
  /** With a cursor: the oldest time of the page before, above which nothing may come any more. */
  readonly below?: EpochNs | null;
}

/** How far an answer has brought the scan: what the next question goes on from. */
export interface Progress {
  /**
   * - `done`: the window was read to its end.
   * - `time`: go on below the oldest reading, with that reading as the anchor.
   * - `cursor`: go on by `next_cursor`: time cannot move on.
   * - `again`: the answer proves nothing (`reason`): ask the same once more.
   */
  readonly next: 'done' | 'time' | 'cursor' | 'again';
  /** The oldest reading of the page: where the walk goes on. */
  readonly oldest: Edge | null;
  /** Whether this page or an earlier one of the same question has shown the near anchor. */
  readonly nearSeen: boolean;
}

/** What the plan allows of a window. */
export interface WindowLimits {
  /** The widest span that a request may have; `null`: any. */
  readonly spanNs: bigint | null;
  /** The server's time now, as well as it is known. */
  readonly nowNs: EpochNs;
  /** Whether the service refuses `after` alone, so that a live request names the present as its end. */
  readonly bothBounds: boolean;
}

export interface Question {
  readonly deviceId: string;
  readonly hole: Interval;
  readonly near: Edge | null;
  readonly far: Edge | null;
  /** Whether the hole ends where claims end, so that nothing held lies above it. */
  readonly live: boolean;
  /** How far back beyond the hole it is worth looking, for readings that came late: what is held and wanted. */
  readonly reachTo?: EpochNs | null;
}

/**
 * The window that the plan's figure allows: an hour less, so that rounding and slack stay inside it. A figure of no
 * days is read as one hour: some window must be possible.
 */
export function windowSpanNs(historyMaxDays: number | null): bigint | null {
  if (historyMaxDays === null) return null;
  return maxNs(BigInt(Math.floor(historyMaxDays)) * DAY_NS - HOUR_NS, HOUR_NS);
}

/**
 * Turns a hole into a request: its newest part that one window can span, with the bounds moved outwards over the
 * anchors. An anchor that the window cannot reach is given up rather than the hole; so is the present, of a live one.
 */
export function askFor(question: Question, limits: WindowLimits): Ask {
  const { deviceId, hole } = question;
  const { spanNs } = limits;
  const tooFar = (top: EpochNs): boolean => spanNs !== null && top - hole.to > spanNs / 2n;
  const live = question.live && !tooFar(limits.nowNs);
  const near = live || question.near === null || tooFar(question.near.at) ? null : question.near;
  const top = live ? maxNs(limits.nowNs, hole.to) : near === null ? hole.to : maxNs(near.at, hole.to);
  const end = ceilToSecond(top) + SLACK_NS;
  const before = live && !limits.bothBounds ? null : end;
  const floor = spanNs === null ? 0n : end - spanNs;
  const reach = (from: EpochNs): EpochNs => floorToSecond(from) - SLACK_NS;
  const { from, far } = withinWindow(question, reach, floor);
  const needed = reach(far === null ? from : minNs(from, far.at));
  const free = live && far !== null ? reachBack(question, { needed, end, spanNs }) : needed;
  return {
    deviceId,
    hole: { from, to: hole.to },
    after: maxNs(free, 0n),
    before,
    near,
    far,
    cursor: null,
    nearSeen: near === null,
  };
}

function withinWindow(
  { hole, far }: Question,
  reach: (from: EpochNs) => EpochNs,
  floor: EpochNs,
): { from: EpochNs; far: Edge | null } {
  if (reach(hole.from) < floor) return { from: minNs(ceilToSecond(floor) + SLACK_NS, hole.to - 1n), far: null };
  if (far !== null && reach(far.at) < floor) return { from: hole.from, far: null };
  return { from: hole.from, far };
}

/**
 * Where a live request begins that takes its page's room for readings that came late.
 *
 * It costs nothing: the newest readings fill the page whatever lies further back, and a full page that reaches below
 * the hole, where the far anchor is, ends the walk as the end of the window would. Without that anchor a page could be
 * filled by the hole alone, to the last reading, and name a next one: so then there is no reaching back. Half of the
 * window is enough, so that a server whose clock is ahead of what is known does not find it too wide.
 */
function reachBack(
  { reachTo = null }: Question,
  { needed, end, spanNs }: { needed: EpochNs; end: EpochNs; spanNs: bigint | null },
): EpochNs {
  if (reachTo === null) return needed;
  const widest = spanNs === null ? 0n : ceilToSecond(end - spanNs / 2n);
  return minNs(needed, maxNs(floorToSecond(reachTo), widest));
}

/**
 * The question after a page: by cursor, or by time below the oldest reading.
 *
 * @param walk the whole hole that is walked, of which `ask` may be a part, and the reading held below it.
 * @returns `null` where the window was read to its end or the answer proved nothing.
 */
export function nextAsk(
  ask: Ask,
  judged: Progress,
  walk: { page: TelemetryPage; hole: Interval; far: Edge | null; limits: WindowLimits },
): Ask | null {
  if (judged.next === 'cursor') {
    const below = judged.oldest?.at ?? ask.below ?? null;
    return { ...ask, cursor: walk.page.nextCursor, nearSeen: judged.nearSeen, below };
  }
  if (judged.next !== 'time' || judged.oldest === null) return null;
  const to = minNs(ask.hole.to, judged.oldest.at + 1n);
  if (to <= walk.hole.from) return null;
  const hole = { from: walk.hole.from, to };
  return askFor({ deviceId: ask.deviceId, hole, near: judged.oldest, far: walk.far, live: false }, walk.limits);
}
