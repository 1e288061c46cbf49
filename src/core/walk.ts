/**
 * A walk through one hole in the coverage of one device: what to ask next, and what an answer proves (design 2.1).
 *
 * Pure: it is given answers and gives questions. It promises that a stretch counts as proven only where the served
 * readings leave no other reading of it possible: in order, inside the asked bounds, of the asked device, and showing
 * the readings that are already held at the edges of the hole.
 */
import type { CoveredSpan, Edge } from './coverage.ts';
import type { Interval } from './intervals.ts';
import { readingDigest } from './points.ts';
import type { Cursor, Reading, TelemetryPage } from './records.ts';
import { ceilToSecond, DAY_NS, type EpochNs, floorToSecond, HOUR_NS, maxNs, minNs, SECOND_NS } from './time.ts';

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
  const { from, far } = reachBack(question, reach, floor);
  return {
    deviceId,
    hole: { from, to: hole.to },
    after: maxNs(reach(far === null ? from : minNs(from, far.at)), 0n),
    before,
    near,
    far,
    cursor: null,
    nearSeen: near === null,
  };
}

function reachBack(
  { hole, far }: Question,
  reach: (from: EpochNs) => EpochNs,
  floor: EpochNs,
): { from: EpochNs; far: Edge | null } {
  if (reach(hole.from) < floor) return { from: minNs(ceilToSecond(floor) + SLACK_NS, hole.to - 1n), far: null };
  if (far !== null && reach(far.at) < floor) return { from: hole.from, far: null };
  return { from: hole.from, far };
}

/** What a page is worth. */
export interface Judgement {
  /** The stretch that is now held in full; `null` where nothing new is proven. */
  readonly proven: CoveredSpan | null;
  /** The readings worth keeping, as served. */
  readonly readings: readonly Reading[];
  /**
   * - `done`: the window was read to its end.
   * - `time`: go on below the oldest reading, with that reading as the anchor.
   * - `cursor`: go on by `next_cursor`: time cannot move on.
   * - `again`: the answer proves nothing (`reason`): ask the same once more.
   */
  readonly next: 'done' | 'time' | 'cursor' | 'again';
  readonly reason: string | null;
  /** For `again`: whether only the anchors are missing, so that the answer may be a restatement. */
  readonly anchorMissing: boolean;
  /** The oldest reading of the page: where the walk goes on. */
  readonly oldest: Edge | null;
  readonly nearSeen: boolean;
}

/** What is known beside the page itself. */
export interface JudgeContext {
  /**
   * Readings older than this may be hidden by the plan, as far as is known; `null` where that is excluded. An end of
   * the data below it proves nothing (`beyond plan`).
   */
  readonly visibleFromNs: EpochNs | null;
  /** Empty answers to this question so far, without an anchor. One alone proves nothing. */
  readonly emptyBefore: number;
  /** Whether a missing anchor is accepted: it was missing several times (a restatement). */
  readonly anchorWaived: boolean;
}

/** Judges a page against the question that it answers. */
export function judgePage(ask: Ask, page: TelemetryPage, context: JudgeContext): Judgement {
  const { readings } = page;
  if (page.deviceId !== null && page.deviceId !== ask.deviceId) {
    return distrust(ask, [], `it is of another device`);
  }
  const nearSeen = ask.nearSeen || ask.near === null || shows(readings, ask.near);
  const ended = page.nextCursor === null;
  const disorder = ended ? null : disorderIn(ask, page);
  if (disorder !== null) return distrust(ask, readings, disorder);
  const missing = context.anchorWaived ? null : missingAnchor({ ask, page, nearSeen });
  if (missing !== null) return { ...distrust(ask, readings, missing), anchorMissing: true };
  if (ended) return judgeEnd(ask, readings, { context, nearSeen });
  return judgeFullPage(ask, readings, nearSeen || context.anchorWaived);
}

function distrust(ask: Ask, readings: readonly Reading[], reason: string): Judgement {
  return {
    proven: null,
    readings,
    next: 'again',
    reason,
    anchorMissing: false,
    oldest: null,
    nearSeen: ask.nearSeen,
  };
}

function disorderIn(ask: Ask, { readings, nextCursor }: TelemetryPage): string | null {
  const low = ask.after - SLACK_NS;
  const high = ask.before === null ? null : ask.before + SLACK_NS;
  const below = ask.cursor === null ? null : (ask.below ?? null);
  if (nextCursor === ask.cursor && (readings.at(-1)?.recordedAt ?? below) === below) return 'its next page is itself';
  let previous: EpochNs | null = below;
  for (const { recordedAt } of readings) {
    if (previous !== null && recordedAt > previous) return 'its readings are not newest first';
    if (recordedAt < low || (high !== null && recordedAt > high)) return 'it has readings outside the asked window';
    previous = recordedAt;
  }
  return null;
}

function missingAnchor(seen: { ask: Ask; page: TelemetryPage; nearSeen: boolean }): string | null {
  const { ask, page, nearSeen } = seen;
  const oldest = page.readings.at(-1)?.recordedAt ?? null;
  const ended = page.nextCursor === null;
  const past = (edge: Edge): boolean => ended || (oldest !== null && oldest < edge.at);
  if (ask.near !== null && !nearSeen && past(ask.near)) return 'it lacks the held reading that it goes on from';
  if (ask.far !== null && past(ask.far) && !shows(page.readings, ask.far)) {
    return 'it lacks the held reading at its far end';
  }
  return null;
}

function shows(readings: readonly Reading[], edge: Edge): boolean {
  return readings.some((reading) => reading.recordedAt === edge.at && readingDigest(reading) === edge.digest);
}

/**
 * A page without `next_cursor` proves the rest of the window, as far back as the plan surely shows readings: nothing
 * (an empty stretch at the end of the hole) where the plan may hide all of it.
 */
function judgeEnd(
  ask: Ask,
  readings: readonly Reading[],
  { context, nearSeen }: { context: JudgeContext; nearSeen: boolean },
): Judgement {
  if (readings.length === 0 && context.emptyBefore === 0) {
    return distrust(ask, readings, 'an empty answer needs a second one');
  }
  const oldestAt = readings.reduce<EpochNs | null>((low, { recordedAt }) => olderOf(low, recordedAt), null);
  const visible = context.visibleFromNs;
  const shown = visible === null ? ask.hole.from : maxNs(ask.hole.from, minNs(oldestAt ?? visible, visible));
  const from = minNs(shown, ask.hole.to);
  return {
    proven: spanOf({ from, to: ask.hole.to }, readings),
    readings,
    next: 'done',
    reason: from > ask.hole.from ? 'beyond plan' : null,
    anchorMissing: false,
    oldest: edgeOf(readings.at(-1)),
    nearSeen,
  };
}

function olderOf(a: EpochNs | null, b: EpochNs): EpochNs {
  return a === null || b < a ? b : a;
}

/** A page with more behind it proves the stretch above its oldest reading, that instant excluded. */
function judgeFullPage(ask: Ask, readings: readonly Reading[], nearSeen: boolean): Judgement {
  const oldest = readings.at(-1);
  if (oldest === undefined) {
    return { ...distrust(ask, readings, 'it is empty, yet names a next page'), next: 'cursor', nearSeen };
  }
  const closed = oldest.recordedAt < ask.hole.from && nearSeen;
  const span = { from: maxNs(oldest.recordedAt + 1n, ask.hole.from), to: ask.hole.to };
  return {
    proven: nearSeen && span.from < span.to ? spanOf(span, readings) : null,
    readings,
    next: closed ? 'done' : nearSeen && timeMovesOn(ask, readings, oldest.recordedAt) ? 'time' : 'cursor',
    reason: null,
    anchorMissing: false,
    oldest: edgeOf(oldest),
    nearSeen,
  };
}

/**
 * Whether asking by time from the oldest reading would bring mostly new ones. It would not where one instant, or the
 * slack around it, fills the page, and it would bring the same page for ever where this one ends at its anchor.
 */
function timeMovesOn(ask: Ask, readings: readonly Reading[], oldest: EpochNs): boolean {
  if (ask.near !== null && oldest >= ask.near.at) return false;
  const overlapTo = ceilToSecond(oldest) + SLACK_NS;
  const overlap = readings.filter(({ recordedAt }) => recordedAt <= overlapTo).length;
  return overlap * 2 <= readings.length;
}

function spanOf({ from, to }: Interval, readings: readonly Reading[]): CoveredSpan {
  const inside = readings.filter(({ recordedAt }) => recordedAt >= from - 1n && recordedAt < to);
  const newest = inside.reduce<Reading | undefined>((a, b) => (a && a.recordedAt >= b.recordedAt ? a : b), undefined);
  const oldest = inside.reduce<Reading | undefined>((a, b) => (a && a.recordedAt < b.recordedAt ? a : b), undefined);
  return { from, to, first: edgeOf(oldest), last: edgeOf(newest) };
}

function edgeOf(reading: Reading | undefined): Edge | null {
  return reading === undefined ? null : { at: reading.recordedAt, digest: readingDigest(reading) };
}

/**
 * The question after a page: by cursor, or by time below the oldest reading.
 *
 * @param walk the whole hole that is walked, of which `ask` may be a part, and the reading held below it.
 * @returns `null` where the window was read to its end or the answer proved nothing.
 */
export function nextAsk(
  ask: Ask,
  judged: Judgement,
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
