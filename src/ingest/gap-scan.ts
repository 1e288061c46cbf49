/**
 * The scan of one gap in the coverage of a device, page by page, newest first: a part of a page scan (`page-scan.ts`).
 *
 * `page-request.ts` makes the requests, `judge-page.ts` determines the range that an answer covers, and
 * `rejected-answers.ts` decides about an answer that covers nothing. Every page is committed before the next request,
 * so an interruption costs at most the page in flight. A `RangeScan` is the state of one task, a `GapScan` the state of
 * the requests for one gap.
 */
import { type CoveredRange, type Edge, overlapsOf } from '../core/coverage.ts';
import { hull, type Interval } from '../core/intervals.ts';
import type { Reply, RequestLane } from '../core/ports.ts';
import type { Reading, TelemetryPage } from '../core/records.ts';
import type { GapReason, MissedOverlap } from '../core/state/telemetry.ts';
import { type EpochNs, formatExact, maxNs } from '../core/time.ts';
import { commitInTurns, isAnyStored, keepEmptied } from './commit.ts';
import type { SyncContext } from './context.ts';
import {
  controlFor,
  type EmptyAnswer,
  endsEmpty,
  judgeEmpty,
  noteServedReadings,
  type ServedReadings,
  signToExplain,
  windowToCheck,
} from './empty-ranges.ts';
import { type FetchParts, fetchPage, noteOpenEnd, noteServed, windowRules } from './fetch-page.ts';
import { emptyPart, type Judgement, judgePage } from './judge-page.ts';
import { nameGap } from './named-gaps.ts';
import { fromFirstPage, nextRequest, type PageRequest, requestFor } from './page-request.ts';
import {
  type Attempts,
  acceptedMissing,
  areEmptyAnswersIgnored,
  decideStep,
  missedAfter,
  missedSince,
  NO_ATTEMPTS,
  reappearedOverlaps,
  type Step,
  stillRequired,
  TRIES,
} from './rejected-answers.ts';
import { lateReadingsFrom } from './wanted-range.ts';
import { servedFrom, visibleFrom, type WindowRejection, windowLimits } from './window-limits.ts';

/** How many empty pages in a row may name a next one before the scan gives up. */
const MAX_EMPTY_PAGES = 10;

/** How long to wait before a request is repeated after an unusable answer, so that a lagging replica can catch up. */
const RETRY_MS = 1000;

/** After this many pages that cover nothing, a scan lets requests of other devices go before each of its own. */
const PAGES_AT_ONCE = 10;

/** The range of a device to close, the lane that pays for it, and when to stop early. */
export interface ScanTask {
  readonly deviceId: string;
  /** The range to close, below the coverage limit. */
  readonly range: Interval;
  /** The coverage limit: a gap that ends there is requested without `before`. */
  readonly limit: EpochNs;
  readonly lane: RequestLane;
  /** The end of the scan: the first page that covers a range, or when its gaps are closed or named. */
  readonly until: 'first coverage' | 'closed';
  /** Whether a page with free space also gets the stored readings below the range, so that they show a rate. */
  readonly needsRate?: boolean;
  /** Whether to stop now, so that more urgent work gets its turn. Stopping anywhere loses nothing. */
  readonly isPaused?: () => boolean;
  /** Resolves when a request could be sent at once and nothing else waits to send one. */
  readonly waitUntilTurn?: (signal: AbortSignal) => Promise<void>;
}

/** The results of the pages of a scan. */
export interface ScanResult {
  /** How many pages were answered and judged. */
  readonly pages: number;
  /** The readings of the last page, newest first, including those that were stored before. */
  readonly lastReadings: readonly Reading[];
  /** The number of readings with at least one new value. */
  readonly newReadings: number;
  /** Whether a page has covered a range that was not covered. */
  readonly extendsCoverage: boolean;
  /** Whether a page was accepted or had new readings. Any other page shows nothing about its device. */
  readonly isUnderstood: boolean;
}

/** The result if no page was requested. */
export const NOTHING_SCANNED: ScanResult = {
  pages: 0,
  lastReadings: [],
  newReadings: 0,
  extendsCoverage: false,
  isUnderstood: false,
};

/** Adds the results of two successive scans. */
export function addScans(first: ScanResult, second: ScanResult): ScanResult {
  return {
    pages: first.pages + second.pages,
    lastReadings: second.pages > 0 ? second.lastReadings : first.lastReadings,
    newReadings: first.newReadings + second.newReadings,
    extendsCoverage: first.extendsCoverage || second.extendsCoverage,
    isUnderstood: first.isUnderstood || second.isUnderstood,
  };
}

/** The parts that all page scans share. */
export interface Scanning extends FetchParts {
  readonly served: ServedReadings;
}

/** The scan of one task, with its result so far. */
export interface RangeScan extends Scanning {
  readonly task: ScanTask;
  /** The range below its pages that has to be read again. It is scanned too, wherever the range of the task ends. */
  reopened: Interval | null;
  result: ScanResult;
}

/** Whether to stop: the task has its range, more urgent work is due, or the archive was full at the last check. */
export function isStopped({ context, task, result }: RangeScan): boolean {
  if (task.until === 'first coverage' && result.extendsCoverage) return true;
  return task.isPaused?.() === true || !context.space().ok;
}

/** The scan of one gap: the facts at its beginning, and the rejected answers since. */
interface GapScan extends Scanning, Pick<PageRequest, 'gap' | 'near' | 'far'> {
  /** The scan that this scan is a part of. */
  readonly whole: RangeScan;
  /** The task with the coverage limit from its beginning. */
  readonly task: ScanTask;
  /** How far beyond the gap to look for late readings, if that costs nothing. */
  readonly lateFrom: EpochNs | null;
  attempts: Attempts;
  /** How many pages in a row had no reading but named a next page. */
  emptyPages: number;
  /** The oldest readings of chains of cursors that have ended with an empty page. */
  readonly emptyEnds: EpochNs[];
}

function beginGap(whole: RangeScan, task: ScanTask, gap: Interval): GapScan {
  const { context, windows, served } = whole;
  const { covered } = context.store.telemetry(task.deviceId);
  const missed = context.store.missedOverlaps(task.deviceId);
  const overlaps = overlapsOf(gap, covered);
  const near = stillRequired(overlaps.near, missed);
  const far = stillRequired(overlaps.far, missed);
  const oldest = servedFrom(windowRules(windows));
  const below = covered.find(({ to }) => to === gap.from);
  return {
    context,
    windows,
    served,
    whole,
    task,
    gap,
    near,
    far: far !== null && oldest !== null && far.at < oldest ? null : far,
    lateFrom: below === undefined ? null : lateReadingsFrom(context, { ...task, gap, below }),
    attempts: NO_ATTEMPTS,
    emptyPages: 0,
    emptyEnds: [],
  };
}

/** The next request; `null` if the gap was read to its end or has a name, `gone` if the device is gone. */
type Next = PageRequest | null | 'gone';

/** Requests the pages of one gap until its window was read to the end, the gap has a name, or the device is gone. */
export async function scanGap(
  whole: RangeScan,
  { task, gap }: { readonly task: ScanTask; readonly gap: Interval },
  signal: AbortSignal,
): Promise<'to its end' | 'gone'> {
  const scan = beginGap(whole, task, gap);
  let next: Next = requestBelow(scan, scan.gap.to, scan.near);
  for (let pages = 1; next !== null && next !== 'gone' && !isStopped(scan.whole); pages += 1) {
    if (pages > PAGES_AT_ONCE && !whole.result.extendsCoverage) await task.waitUntilTurn?.(signal);
    const answer = await fetchPage(scan, { request: next, lane: scan.task.lane }, signal);
    next =
      answer.kind === 'page' ? await handlePage(scan, next, answer.reply, signal) : handleRejection(scan, next, answer);
  }
  return next === 'gone' ? 'gone' : 'to its end';
}

/** The request for the rest of the gap below `to`, by the current window rules. */
function requestBelow({ windows, task, gap, far, lateFrom }: GapScan, to: EpochNs, near: Edge | null): PageRequest {
  const live = to === task.limit && near === null;
  const open = { deviceId: task.deviceId, gap: { from: gap.from, to }, near, far, live, lateFrom };
  return requestFor(open, windowLimits(windowRules(windows)));
}

/** Judges a page and commits it. */
async function handlePage(
  scan: GapScan,
  request: PageRequest,
  reply: Reply<TelemetryPage>,
  signal: AbortSignal,
): Promise<PageRequest | null> {
  const { context, windows, task } = scan;
  const { deviceId, lane } = task;
  const page = reply.value;
  noteServed(windows, page.readings);
  const visibleFromNs = visibleFrom(windowRules(windows));
  const { sign, isDoubted } = signFor(scan, request);
  const judged = judgePage(request, page, {
    visibleFromNs,
    emptyBefore: ignoresEmptyAnswers(context, deviceId) ? 0 : emptyBefore(scan, request),
    accepts: acceptedMissing(scan.attempts, page.readings),
    seenAt: isDoubted ? null : sign,
  });
  const { readings, reachedTo } = judged;
  noteShown(context, deviceId, readings);
  if (readings.length > 0) noteReadings(scan, readings, judged.next !== 'again');
  const empty = emptyPart(request, judged, sign);
  const isAccepted = empty === null || recordEmptyAnswer(scan, empty, readings);
  const accepted = isAccepted ? judged.covers : withoutTop(judged.covers, empty.from);
  const covers = extendGapAbove(scan, request, { covers: accepted, readings });
  keepEmptied(context, request, { covers, newest: readings[0] });
  const known = { deviceId, lane, reply, readings, covers, reachedTo, visibleFromNs };
  const { newReadings, reopened } = await commitInTurns(context, known);
  context.checkSpace();
  // More may lie there: the scan continues, wherever its range ends.
  if (reopened !== null) scan.whole.reopened = hull(scan.whole.reopened, reopened);
  scan.whole.result = addScans(scan.whole.result, {
    pages: 1,
    lastReadings: readings,
    newReadings,
    extendsCoverage: covers !== null && covers.from < covers.to,
    isUnderstood: (isAccepted && judged.next !== 'again') || newReadings > 0,
  });
  if (judged.next === 'again') return await handleRejected(scan, { request, judged, page }, signal);
  if (judged.reason === 'beyond_plan' && judged.covers !== null) {
    nameGap(context, { deviceId, from: request.gap.from, to: judged.covers.from, reason: 'beyond_plan' });
  }
  if (!isAccepted) return giveUp(scan, readings.length === 0 ? request.gap : empty, 'unverified');
  return advanceScan(scan, request, judged, page);
}

/** Continues after a page that covers a range or names a next page. Returns `null` at the end of the window. */
function advanceScan(scan: GapScan, request: PageRequest, judged: Judgement, page: TelemetryPage): PageRequest | null {
  const { windows, gap, far } = scan;
  const isEmptyPage = judged.next === 'cursor' && page.readings.length === 0;
  scan.attempts = NO_ATTEMPTS;
  if (page.hasFuture === true && request.before === null) {
    noteOpenEnd(windows);
    if (isEmptyPage) return requestBelow(scan, request.gap.to, request.near);
  }
  scan.emptyPages = isEmptyPage ? scan.emptyPages + 1 : 0;
  if (scan.emptyPages >= MAX_EMPTY_PAGES) return giveUp(scan, request.gap, 'page_rejected');
  return nextRequest(request, judged, { page, gap, far, limits: windowLimits(windowRules(windows)) });
}

/**
 * The sign of life that the answer has to explain, and whether it may leave that sign unexplained, as earlier answers
 * did.
 */
function signFor(
  { context, task, attempts }: GapScan,
  { gap }: PageRequest,
): { sign: EpochNs | null; isDoubted: boolean } {
  const { store, serverClock } = context;
  const isLastTry = attempts.rejected + 1 >= TRIES;
  const isTimeBySigns = gap.to === task.limit && !serverClock.isKnown();
  const sign = signToExplain(store.device(task.deviceId), { to: gap.to, isTimeBySigns, isLastTry });
  const known = store.emptyRange(task.deviceId);
  const isKnown = sign !== null && known !== null && known.from <= sign && sign < known.to;
  return { sign, isDoubted: isLastTry || isKnown };
}

/**
 * Below a gap that was given up no stored reading has to be shown. Such a page does not cover the instant of its newest
 * reading and later, because more readings may have that instant. That part is added to the gap above, whose pages have
 * to show the reading.
 */
function extendGapAbove(
  { context, task }: GapScan,
  { near, cursor, gap }: PageRequest,
  { covers, readings: [newest] }: Pick<Judgement, 'covers' | 'readings'>,
): CoveredRange | null {
  const { store } = context;
  if (covers === null || newest === undefined || near !== null || cursor !== null) return covers;
  const above = store.gaps(task.deviceId).find(({ fromNs }) => fromNs === gap.to);
  const fromNs = maxNs(newest.recordedAt, covers.from);
  if (above === undefined || fromNs >= gap.to) return covers;
  store.nameGap({ ...above, fromNs });
  return withoutTop(covers, fromNs);
}

/** The part below an instant of the range that a page covers; `null` for none. */
function withoutTop(covers: CoveredRange | null, to: EpochNs): CoveredRange | null {
  return covers !== null && covers.from < to ? { ...covers, to } : null;
}

/** Records that a device has readings. An accepted page is a control for the others. */
function noteReadings({ context, task, served }: GapScan, readings: readonly Reading[], isAccepted: boolean): void {
  const { store, serverClock } = context;
  const { deviceId } = task;
  const newestNs = readings.map(({ recordedAt }) => recordedAt).reduce(maxNs, 0n);
  const known = store.emptyRange(deviceId);
  if (known !== null && endsEmpty(known, newestNs, store.newestNs(deviceId))) store.saveEmptyRange(deviceId, null);
  const nowMs = serverClock.nowMs();
  if (!isAccepted || !noteServedReadings(served, { deviceId, atMs: nowMs, newestNs })) return;
  for (const gap of store.gaps()) {
    const isWaiting = gap.reason === 'unverified' && gap.deviceId !== deviceId && gap.retryAtMs > nowMs;
    if (isWaiting) store.nameGap({ ...gap, retryAtMs: nowMs });
  }
}

/**
 * Records an answer that is empty in a range.
 *
 * @param newest the newest reading that the answer has below the range.
 * @returns whether it is accepted: no evidence is against it.
 */
function recordEmptyAnswer(scan: GapScan, range: Interval, [newest]: readonly Reading[]): boolean {
  const { context, task, served } = scan;
  const { store, serverClock, clock } = context;
  const { deviceId } = task;
  const known = store.emptyRange(deviceId);
  if (known === null) served.absentSince.set(deviceId, clock.monoMs());
  const seenAt = store.device(deviceId)?.record.lastSeenAt ?? null;
  const storedNs = store.newestNs(deviceId);
  const answer: EmptyAnswer = {
    range,
    seenAt,
    newestNs: newest === undefined ? storedNs : maxNs(storedNs ?? 0n, newest.recordedAt),
    isStored: isAnyStored(store, deviceId, range),
    known,
    controlMs: controlFor(served, deviceId, newest === undefined ? 0n : (seenAt ?? 0n)),
    nowMs: serverClock.nowMs(),
    waitedMs: waitedFor(scan),
  };
  const { isAccepted, next } = judgeEmpty(answer);
  if (next !== known) store.saveEmptyRange(deviceId, next);
  if (!isAccepted || newest !== undefined) return isAccepted;
  const before = { windows: store.emptyWindows(deviceId), covered: store.telemetry(deviceId).covered };
  const window = windowToCheck(answer, before);
  if (window !== null) store.saveEmptyWindow(deviceId, window);
  return isAccepted;
}

/** Follows the table of `rejected-answers.ts` for an answer that covers nothing. */
async function handleRejected(
  scan: GapScan,
  { request, judged, page }: { request: PageRequest; judged: Judgement; page: TelemetryPage },
  signal: AbortSignal,
): Promise<PageRequest | null> {
  const { context, task } = scan;
  const { deviceId } = task;
  const { overlapMissing } = judged;
  const isEmpty = page.readings.length === 0 && (page.deviceId === null || page.deviceId === deviceId);
  const known = context.store.missedOverlaps(deviceId);
  const nowMs = context.serverClock.nowMs();
  const waitedMs = waitedFor(scan);
  const missed = missedSince(known, { isEmpty, overlapMissing }, { nowMs, waitedMs });
  const { step, attempts } = decideStep(scan.attempts, { isEmpty, overlapMissing, missed });
  scan.attempts = attempts;
  if (step === 'same at once') return request;
  if (step === 'same later' && isEmpty && request.cursor !== null) return restartChain(scan, request);
  const reason = judged.reason ?? '';
  context.observe({ type: 'page-rejected', deviceId, reason, attempt: attempts.rejected });
  if (overlapMissing !== null) rememberMissed(scan, known, { at: overlapMissing.at, step });
  if (step === 'remember, give up' || step === 'give up') return giveUp(scan, request.gap, 'page_rejected');
  await context.clock.sleep(RETRY_MS, signal);
  if (judged.stopsShort && request.before === null) {
    noteOpenEnd(scan.windows);
    return requestBelow(scan, request.gap.to, request.near);
  }
  return step === 'same later' ? request : fromFirstPage(request);
}

/** Records the effects of a missing overlap reading. */
function rememberMissed(
  { context, task, served, attempts }: GapScan,
  known: readonly MissedOverlap[],
  { at, step }: { readonly at: EpochNs; readonly step: Step },
): void {
  const missed = missedAfter(known, { at, step }, context.serverClock.nowMs());
  if (missed !== null) context.store.saveMissedOverlap(task.deviceId, missed);
  if (step === 'remember, give up') served.absentSince.set(task.deviceId, context.clock.monoMs());
  if ((step === 'overlap is gone' || step === 'accept the answers') && attempts.withoutOverlap === TRIES) {
    context.observe({ type: 'restatement', deviceId: task.deviceId, at: formatExact(at) });
  }
}

/** How long this process has received contradicted answers about the device, in ms. */
function waitedFor({ context, task, served }: GapScan): number {
  return context.clock.monoMs() - (served.absentSince.get(task.deviceId) ?? Number.NEGATIVE_INFINITY);
}

/** How many earlier empty answers count: none behind a cursor, unless its chain has ended like that before. */
function emptyBefore({ attempts, emptyEnds }: GapScan, { cursor, below }: PageRequest): number {
  return cursor === null || emptyEnds.includes(below ?? 0n) ? attempts.empties : 0;
}

/**
 * Restarts the chain of cursors after two empty answers to a cursor without an overlap reading: the complete chain has
 * to end like that twice. Its other pages show that the service serves the readings in between.
 */
function restartChain(scan: GapScan, request: PageRequest): PageRequest | null {
  if (scan.emptyEnds.length >= TRIES) return giveUp(scan, request.gap, 'page_rejected');
  scan.emptyEnds.push(request.below ?? 0n);
  scan.attempts = NO_ATTEMPTS;
  return fromFirstPage(request);
}

/** Whether empty answers about a device cover nothing at present. */
function ignoresEmptyAnswers({ store, serverClock }: SyncContext, deviceId: string): boolean {
  return areEmptyAnswersIgnored(store.missedOverlaps(deviceId), serverClock.nowMs());
}

/** Records the readings of a page. A missed overlap reading that the page shows is no longer missing. */
function noteShown({ store }: SyncContext, deviceId: string, readings: readonly Reading[]): void {
  const shown = reappearedOverlaps(store.missedOverlaps(deviceId), readings);
  if (shown.length > 0) store.dropMissedOverlaps(deviceId, shown);
}

/** Decides the next request after a rejection. */
function handleRejection(scan: GapScan, request: PageRequest, answer: WindowRejection): Next {
  const { context, task } = scan;
  const { deviceId } = task;
  switch (answer.kind) {
    case 'changed':
      return requestBelow(scan, request.gap.to, request.near);
    case 'too-old':
      // The rest of the gap is computed again, as far back as requests may reach.
      return null;
    case 'odd': {
      const rejected = scan.attempts.rejected + 1;
      scan.attempts = { ...scan.attempts, rejected };
      context.observe({ type: 'page-rejected', deviceId, reason: answer.reason, attempt: rejected });
      return rejected < TRIES ? fromFirstPage(request) : giveUp(scan, request.gap, 'page_rejected');
    }
    case 'gone':
      context.store.markGone(deviceId, context.serverClock.nowMs());
      context.noteDeviceLeft(deviceId);
      context.observe({ type: 'device-gone', deviceId });
      return 'gone';
    case 'unreachable':
      return giveUp(scan, scan.gap, 'unreachable');
  }
}

/** Names a gap that is given up for now. */
function giveUp({ context, task }: GapScan, gap: Interval, reason: GapReason): null {
  nameGap(context, { deviceId: task.deviceId, ...gap, reason });
  return null;
}
