/**
 * Judges which time range a page of telemetry covers.
 *
 * Pure. A range counts as covered only if the page leaves no room for another reading: it is in order, within the
 * requested bounds, about the requested device, and shows the stored readings at the edges of the gap.
 *
 * One case cannot be detected. If one instant has more readings than a page holds, only a cursor can reach them, and a
 * cursor that skips some of them leaves no trace. (Checking that would mean reading the instant in full for each of its
 * pages, with another page size. No service was seen to skip.) If it happens, the reread of the day fetches the skipped
 * readings.
 */
import type { CoveredRange, Edge } from '../core/coverage.ts';
import type { Interval } from '../core/intervals.ts';
import { readingDigest } from '../core/lines/points.ts';
import type { Cursor, Reading, TelemetryPage } from '../core/records.ts';
import { ceilToSecond, type EpochNs, maxNs, minNs, SECOND_NS } from '../core/time.ts';
import { idlePagesWith, type PageRequest, type Progress, SLACK_NS } from './page-request.ts';
import type { AcceptedMissing, MissingOverlap } from './rejected-answers.ts';

/**
 * How many pages in a row of a chain of cursors may have only readings that the chain has shown before, and name a next
 * one. A device may have pages of equal readings; an endless chain has nothing else.
 */
const MAX_IDLE_PAGES = 20;

/** The range that a page covers, and how the scan continues. */
export interface Judgement extends Progress {
  /** The range that is now covered; `null` if the page covers nothing. */
  readonly covers: CoveredRange | null;
  /** The readings worth storing, as served. */
  readonly readings: readonly Reading[];
  /** Why the page covers nothing, or less than the full range; `null` if it is as expected. */
  readonly reason: string | null;
  /**
   * For the last page of a gap, if the page covers the gap to its end: the time from which it has every reading;
   * otherwise `null`.
   */
  readonly reachedTo: EpochNs | null;
  /** For `again`: how an overlap reading is missing, if that is the only problem; otherwise `null`. */
  readonly overlapMissing: MissingOverlap | null;
  /** For `again`: whether the page ends before a sign of life in the gap, or before the newest stored reading. */
  readonly stopsShort: boolean;
}

/** The facts that the judgement needs besides the page. */
export interface JudgeContext {
  /**
   * The plan may hide readings older than this, as far as is known; `null` if it does not. An end of the data below it
   * covers nothing (`beyond_plan`).
   */
  readonly visibleFromNs: EpochNs | null;
  /** The number of empty answers to this request so far, without an overlap reading. A single one covers nothing. */
  readonly emptyBefore: number;
  /** The missing overlap readings that are accepted: they were missing several times, or for a long time. */
  readonly accepts: AcceptedMissing;
  /**
   * A sign of life of the device (`last_seen_at`) that the newest page must explain by a reading at that time or later,
   * or by one above the gap; `null` if there is none, or if several answers have left it unexplained (`emptyPart`).
   */
  readonly seenAt: EpochNs | null;
}

/** Judges a page against the request that it answers. */
export function judgePage(request: PageRequest, page: TelemetryPage, context: JudgeContext): Judgement {
  const { readings } = page;
  if (page.deviceId !== null && page.deviceId !== request.deviceId) {
    return rejectPage(request, [], `it contains readings of another device`);
  }
  const nearSeen = request.nearSeen || !hasToBeShown(request.near, context) || containsEdge(readings, request.near);
  const ended = page.nextCursor === null;
  const disorder = disorderIn(request, page);
  if (disorder !== null) return rejectPage(request, readings, disorder);
  if (endsBeforeSign(request, readings, context.seenAt)) {
    const reason = 'it has no reading at the time when the device was last seen';
    return { ...rejectPage(request, readings, reason), stopsShort: (context.seenAt ?? 0n) < request.gap.to };
  }
  const far = hasToBeShown(request.far, context) ? request.far : null;
  const missing = missingOverlap({ request, far, page, nearSeen });
  if (missing !== null && context.accepts !== 'any' && context.accepts !== missing.how) {
    const stopsShort = far !== null && (readings[0]?.recordedAt ?? 0n) < far.at;
    const end = missing.at === far?.at ? 'older' : 'newer';
    const reason = `it does not contain the overlap reading at its ${end} end`;
    return { ...rejectPage(request, readings, reason), overlapMissing: missing, stopsShort };
  }
  if (ended) return judgeEnd(request, readings, { context, nearSeen });
  return judgeFullPage(request, readings, nearSeen || context.accepts !== 'none');
}

function rejectPage(request: PageRequest, readings: readonly Reading[], reason: string): Judgement {
  return {
    covers: null,
    readings,
    next: 'again',
    reason,
    reachedTo: null,
    overlapMissing: null,
    stopsShort: false,
    oldest: null,
    nearSeen: request.nearSeen,
  };
}

function disorderIn(request: PageRequest, { readings, nextCursor }: TelemetryPage): string | null {
  const low = request.after - SLACK_NS;
  const high = request.before === null ? null : request.before + SLACK_NS;
  const below = request.cursor === null ? null : (request.below ?? null);
  if (nextCursor !== null && leadsBack(request, readings, nextCursor))
    return 'its next_cursor leads to pages that were served before';
  let previous: EpochNs | null = below;
  for (const { recordedAt } of readings) {
    if (previous !== null && recordedAt > previous) return 'its readings are not newest first';
    if (recordedAt < low || (high !== null && recordedAt > high)) return 'it has readings outside the requested range';
    previous = recordedAt;
  }
  return null;
}

/** Whether a chain of cursors continues without new readings: with the same cursor, or for many pages. */
function leadsBack(request: PageRequest, readings: readonly Reading[], nextCursor: Cursor): boolean {
  const isSamePlace = nextCursor === request.cursor && (readings.at(-1)?.recordedAt ?? request.below) === request.below;
  return isSamePlace || idlePagesWith(request, readings) > MAX_IDLE_PAGES;
}

/**
 * Whether the newest page of a gap ends before a sign of life, and before the end of the gap. A replica that is behind
 * serves such pages.
 */
function endsBeforeSign(request: PageRequest, [newest]: readonly Reading[], seenAt: EpochNs | null): boolean {
  if (newest === undefined || seenAt === null || request.near !== null || request.cursor !== null) return false;
  const { from, to } = request.gap;
  return from <= seenAt && newest.recordedAt < to && newest.recordedAt + SECOND_NS < seenAt;
}

/**
 * The part of the covered range for which the page is an empty answer: all of it if the page has no reading; if the
 * page ends before a sign of life in the gap, the part above its newest reading. `empty-ranges.ts` decides whether the
 * part is accepted.
 */
export function emptyPart(
  request: PageRequest,
  { covers, readings, next }: Judgement,
  seenAt: EpochNs | null,
): Interval | null {
  const [newest] = readings;
  if (covers === null || next === 'again') return null;
  if (newest === undefined) return covers;
  if (seenAt === null || seenAt >= request.gap.to || !endsBeforeSign(request, readings, seenAt)) return null;
  return { from: maxNs(newest.recordedAt + 1n, covers.from), to: covers.to };
}

/** Whether a missing overlap reading counts. It does not if the plan may hide it by now. */
function hasToBeShown(edge: Edge | null, { visibleFromNs }: JudgeContext): edge is Edge {
  return edge !== null && (visibleFromNs === null || edge.at >= visibleFromNs);
}

interface OverlapsSought {
  readonly request: PageRequest;
  readonly far: Edge | null;
  readonly page: TelemetryPage;
  readonly nearSeen: boolean;
}

/**
 * The overlap reading that is missing in a page. If both are, one that the page does not reach comes before one that it
 * has replaced.
 */
function missingOverlap({ request, far, page, nearSeen }: OverlapsSought): MissingOverlap | null {
  const oldest = page.readings.at(-1)?.recordedAt ?? null;
  const past = (edge: Edge): boolean => page.nextCursor === null || (oldest !== null && oldest < edge.at);
  const isNearMissing = request.near !== null && !nearSeen && past(request.near);
  const isFarMissing = far !== null && past(far) && !containsEdge(page.readings, far);
  const edges = [isNearMissing ? request.near : null, isFarMissing ? far : null].filter((edge) => edge !== null);
  const missing = edges.map(({ at }): MissingOverlap => ({ at, how: howMissing(request, page, at) }));
  return missing.find(({ how }) => how === 'not reached') ?? missing[0] ?? null;
}

/** Behind a cursor, the oldest reading of the earlier pages counts as well. */
function howMissing({ below = null }: PageRequest, { readings }: TelemetryPage, at: EpochNs): MissingOverlap['how'] {
  const times = [...(below === null ? [] : [below]), ...readings.map(({ recordedAt }) => recordedAt)];
  const isPassed = times.some((time) => time > at) && times.some((time) => time < at);
  return isPassed || times.includes(at) ? 'replaced' : 'not reached';
}

function containsEdge(readings: readonly Reading[], edge: Edge): boolean {
  return readings.some((reading) => reading.recordedAt === edge.at && readingDigest(reading) === edge.digest);
}

/**
 * A page without `next_cursor` covers the rest of the range, as far back as the plan surely shows readings. It covers
 * nothing (an empty range at the end of the gap) if the plan may hide all of it.
 */
function judgeEnd(
  request: PageRequest,
  readings: readonly Reading[],
  { context, nearSeen }: { context: JudgeContext; nearSeen: boolean },
): Judgement {
  if (readings.length === 0 && context.emptyBefore === 0) {
    return rejectPage(request, readings, 'an empty response must be confirmed by a second one');
  }
  const oldestAt = readings.at(-1)?.recordedAt ?? null;
  const visible = context.visibleFromNs;
  const shown = visible === null ? request.gap.from : maxNs(request.gap.from, minNs(oldestAt ?? visible, visible));
  const from = minNs(shown, request.gap.to);
  // Bounds may be rounded. From the time of one of its readings on, the page has all readings.
  const endsAt = request.after + 2n * SLACK_NS;
  return {
    covers: rangeWithEdges({ from, to: request.gap.to }, readings),
    readings,
    next: 'done',
    reason: from > request.gap.from ? 'beyond_plan' : null,
    reachedTo: from > request.gap.from ? null : minNs(endsAt, oldestAt ?? endsAt),
    overlapMissing: null,
    stopsShort: false,
    oldest: edgeOf(readings.at(-1)),
    nearSeen,
  };
}

/** A page that names a next one covers the range above its oldest reading, without that instant. */
function judgeFullPage(request: PageRequest, readings: readonly Reading[], nearSeen: boolean): Judgement {
  const oldest = readings.at(-1);
  if (oldest === undefined) {
    return { ...rejectPage(request, readings, 'it is empty but has a next_cursor'), next: 'cursor', nearSeen };
  }
  const closed = oldest.recordedAt < request.gap.from && nearSeen;
  const range = { from: maxNs(oldest.recordedAt + 1n, request.gap.from), to: request.gap.to };
  return {
    covers: nearSeen && range.from < range.to ? rangeWithEdges(range, readings) : null,
    readings,
    next: closed ? 'done' : nearSeen && timeMovesOn(request, readings, oldest.recordedAt) ? 'time' : 'cursor',
    reason: null,
    reachedTo: closed ? oldest.recordedAt : null,
    overlapMissing: null,
    stopsShort: false,
    oldest: edgeOf(oldest),
    nearSeen,
  };
}

/**
 * Whether requesting by time from the oldest reading would return mostly new readings. It would not if one instant, or
 * the slack around it, fills the page. It would return the same page forever if this one ends at its overlap reading.
 */
function timeMovesOn(request: PageRequest, readings: readonly Reading[], oldest: EpochNs): boolean {
  if (request.near !== null && oldest >= request.near.at) return false;
  const overlapTo = ceilToSecond(oldest) + SLACK_NS;
  const overlap = readings.filter(({ recordedAt }) => recordedAt <= overlapTo).length;
  return overlap * 2 <= readings.length;
}

function rangeWithEdges({ from, to }: Interval, readings: readonly Reading[]): CoveredRange {
  const inside = readings.filter(({ recordedAt }) => from - 1n <= recordedAt && recordedAt < to);
  return { from, to, first: edgeOf(inside.at(-1)), last: edgeOf(inside[0]) };
}

function edgeOf(reading: Reading | undefined): Edge | null {
  return reading === undefined ? null : { at: reading.recordedAt, digest: readingDigest(reading) };
}
