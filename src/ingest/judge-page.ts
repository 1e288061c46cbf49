/**
 * What a page of telemetry proves (design 2.1).
 *
 * Pure. It promises that a stretch counts as proven only where the served readings leave no other reading of it
 * possible: in order, inside the asked bounds, of the asked device, and showing the readings that are already held at
 * the edges of the hole.
 *
 * One thing cannot be seen: where more readings of one instant are served than a page holds, they can only be had by
 * cursor, and a cursor that skips some of them there leaves no trace. (Asked again by time and with another page size,
 * the instant would have to be read in full for each of its pages: too dear for what no service was seen to do.) What
 * was skipped like that comes when the day is read again, if the cursor is right then.
 */
import type { CoveredSpan, Edge } from '../core/coverage.ts';
import type { Interval } from '../core/intervals.ts';
import { readingDigest } from '../core/lines/points.ts';
import type { Reading, TelemetryPage } from '../core/records.ts';
import { ceilToSecond, type EpochNs, maxNs, minNs } from '../core/time.ts';
import { type Ask, type Progress, SLACK_NS } from './page-request.ts';

/** What a page is worth. */
export interface Judgement extends Progress {
  /** The stretch that is now held in full; `null` where nothing new is proven. */
  readonly proven: CoveredSpan | null;
  /** The readings worth keeping, as served. */
  readonly readings: readonly Reading[];
  /** Why it proves nothing, or less than the whole window; `null` where it is as it should be. */
  readonly reason: string | null;
  /** For `again`: whether only the anchors are missing, so that the answer may be a restatement. */
  readonly anchorMissing: boolean;
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
  const nearSeen = ask.nearSeen || !hasToBeShown(ask.near, context) || shows(readings, ask.near);
  const ended = page.nextCursor === null;
  const disorder = ended ? null : disorderIn(ask, page);
  if (disorder !== null) return distrust(ask, readings, disorder);
  const far = hasToBeShown(ask.far, context) ? ask.far : null;
  const missing = context.anchorWaived ? null : missingAnchor({ ask, far, page, nearSeen });
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

/** Whether an anchor counts: one that the plan may hide by now shows nothing by being missing. */
function hasToBeShown(edge: Edge | null, { visibleFromNs }: JudgeContext): edge is Edge {
  return edge !== null && (visibleFromNs === null || edge.at >= visibleFromNs);
}

interface AnchorsSought {
  readonly ask: Ask;
  readonly far: Edge | null;
  readonly page: TelemetryPage;
  readonly nearSeen: boolean;
}

function missingAnchor(seen: AnchorsSought): string | null {
  const { ask, far, page, nearSeen } = seen;
  const oldest = page.readings.at(-1)?.recordedAt ?? null;
  const ended = page.nextCursor === null;
  const past = (edge: Edge): boolean => ended || (oldest !== null && oldest < edge.at);
  if (ask.near !== null && !nearSeen && past(ask.near)) return 'it lacks the held reading that it goes on from';
  if (far !== null && past(far) && !shows(page.readings, far)) {
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
