/**
 * Commits a judged page: the archive and the coverage change in one transaction. The range that a page leaves empty
 * next to a stored reading is recorded, so that it is requested again.
 */
import { type CoveredRange, overlapsOf } from '../core/coverage.ts';
import type { Interval } from '../core/intervals.ts';
import { MAX_OFFSET_NS } from '../core/lines/offsets.ts';
import type { Reply, RequestLane } from '../core/ports.ts';
import type { Reading, RejectedRecord, TelemetryPage } from '../core/records.ts';
import type { Store } from '../core/state/state.ts';
import { gracePeriodOf, type PageCommit, StaleStateError } from '../core/state/telemetry.ts';
import { type EpochMs, type EpochNs, HOUR_NS, maxNs, nsToMs } from '../core/time.ts';
import { type CommitInput, composeCommit, extentOf, instantsIn, withoutStored } from './commit-rules.ts';
import type { SyncContext } from './context.ts';
import { isCovered, type Silence, withoutUnverified } from './coverage-rules.ts';
import { createEmptyWindow } from './empty-ranges.ts';
import type { PageRequest } from './page-request.ts';
import { emptiedRange } from './rejected-answers.ts';
import { withdrawCoverage } from './server-time.ts';

/** How often a commit is computed again because the state has changed in the meantime. */
const ATTEMPTS = 5;

/** A page as `judge-page.ts` judged it: its readings, and the range that it covers. */
interface JudgedPage {
  readonly deviceId: string;
  readonly lane: RequestLane;
  readonly reply: Reply<TelemetryPage>;
  readonly readings: readonly Reading[];
  readonly covers: CoveredRange | null;
  /** Whether values in cleared ranges are written again, including the readings at the edges of covered ranges. */
  readonly isRefetched?: boolean;
  /** Whether new readings in covered ranges do not count as late. */
  readonly isRecheck?: boolean;
  /** Whether empty answers have hidden its readings. Then readings in covered ranges do not count as late. */
  readonly wasHidden?: boolean;
  /**
   * Present for the last page of a gap: how far back it has every reading, and from when on readings are surely shown.
   */
  readonly reachedTo?: EpochNs | null;
  readonly visibleFromNs?: EpochNs | null;
}

/** The changes that a commit has made. */
interface Committed {
  /** The number of readings with at least one new value. */
  readonly newReadings: number;
  /** The range below the page whose coverage was withdrawn; `null` without one. */
  readonly reopened: Interval | null;
}

/** Commits a judged page. A page that covers nothing and has no new readings changes nothing. */
export function commitJudged(context: SyncContext, page: JudgedPage): Committed {
  const { readings, reply, covers, deviceId } = page;
  if (readings.length === 0 && reply.value.rejected.length === 0 && covers === null) {
    return { newReadings: 0, reopened: null };
  }
  context.filterNotes.noteSensorsRead(readings);
  const { commit, rejected } = commitCurrent(context, page);
  const { newReadings, lines, late, reopened = null } = commit;
  const { observe, settings } = context;
  if (late !== undefined) {
    const { count, worstMs, record } = late;
    observe({
      type: 'readings-late',
      deviceId,
      count,
      worstMs,
      gracePeriodMs: gracePeriodOf(settings.gracePeriodMs, record),
    });
  }
  observe({
    type: 'page-committed',
    deviceId,
    lane: page.lane,
    served: readings.length,
    readings: newReadings,
    newPoints: lines.length,
  });
  context.noteCommitted({ lane: page.lane, newReadings, newPoints: lines.length });
  context.noteArchived();
  reportRejected(context, deviceId, rejected);
  // The clock may have fallen back since the page was requested.
  withdrawCoverage(context, deviceId);
  return { newReadings, reopened };
}

/** How many values are committed at a time. The commit of a larger page would hold up all other work. */
const VALUES_AT_ONCE = 5000;

/**
 * Commits a page. A page with many values is committed in parts, with turns for other work in between. Only the last
 * part covers a range. The earlier parts contain readings whose times are not covered, so none of them is late. The
 * oldest reading is in the last part, which decides whether more readings may lie below it.
 */
export async function commitInTurns(context: SyncContext, page: JudgedPage): Promise<Committed> {
  const { covered } = context.store.telemetry(page.deviceId);
  const parts = splitPage(page.readings, covered);
  const reply = { ...page.reply, value: { ...page.reply.value, rejected: [] } };
  let newReadings = 0;
  for (const readings of parts.slice(0, -1)) {
    newReadings += commitJudged(context, { ...page, reply, readings, covers: null }).newReadings;
    await context.clock.sleep(0);
  }
  const last = commitJudged(context, { ...page, readings: parts.at(-1) ?? [] });
  return { ...last, newReadings: newReadings + last.newReadings };
}

/**
 * The parts of a page, newest first, each in the order of the page. Readings with covered times are in the last part.
 */
function splitPage(readings: readonly Reading[], covered: readonly CoveredRange[]): readonly (readonly Reading[])[] {
  const parts: Reading[][] = [[]];
  const known: Reading[] = [];
  let values = 0;
  for (const reading of readings) {
    if (isCovered(covered, reading.recordedAt)) {
      known.push(reading);
      continue;
    }
    if (values >= VALUES_AT_ONCE) {
      parts.push([]);
      values = 0;
    }
    parts.at(-1)?.push(reading);
    values += countValues(reading.values);
  }
  if (parts.length === 1) return [readings];
  const last = new Set([...(parts.pop() ?? []), ...known]);
  return [...parts, readings.filter((reading) => last.has(reading))];
}

function countValues(value: unknown): number {
  if (value === null || typeof value !== 'object') return 1;
  // Most values are lists of pairs. No further list is made of those.
  const items: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let sum = 0;
  for (const item of items) sum += countValues(item);
  return sum;
}

/** Reports rejected records once, although the API serves them again whenever their time is read again. */
function reportRejected({ observe }: SyncContext, deviceId: string, records: readonly RejectedRecord[]): void {
  const whole = records.filter(({ droppedValues }) => droppedValues === undefined);
  const [unread] = whole;
  if (unread !== undefined) {
    observe({ type: 'records-rejected', stream: 'telemetry', count: whole.length, reason: unread.reason });
  }
  const byReason = new Map<string, number>();
  for (const { reason, droppedValues = 0 } of records) {
    if (droppedValues > 0) byReason.set(reason, (byReason.get(reason) ?? 0) + droppedValues);
  }
  for (const [reason, count] of byReason) observe({ type: 'values-dropped', deviceId, count, reason });
}

/**
 * Commits a page according to the current state.
 *
 * @returns the commit, and the records that it rejected for the first time.
 */
function commitCurrent(
  context: SyncContext,
  page: JudgedPage,
): { commit: PageCommit; rejected: readonly RejectedRecord[] } {
  for (let attempt = 1; ; attempt += 1) {
    const commit = composeFrom(context, page);
    try {
      return { commit, rejected: context.store.commitPage(commit) };
    } catch (error) {
      if (!(error instanceof StaleStateError) || attempt >= ATTEMPTS) throw error;
    }
  }
}

function composeFrom(context: SyncContext, page: JudgedPage): PageCommit {
  const { store, settings, filterNotes } = context;
  const { deviceId, reply, covers, readings } = page;
  const workspaceId = store.workspaceTag();
  if (workspaceId === null) throw new Error('telemetry was read before the workspace was known');
  const state = withoutUnverified(store.telemetry(deviceId), page, () => store.newestNs(deviceId) !== null);
  const filter = filterNotes.touchesSensors ? settings.filter : undefined;
  // A sensor that is written again may be missing in an edge, because an edge is identified by its complete reading.
  const isWhole = filter !== undefined || page.isRefetched === true;
  const fresh = isWhole ? readings : withoutStored(readings, state);
  return composeCommit({
    state,
    workspaceId,
    lane: page.lane === 'live' ? 'live' : 'history',
    requestId: reply.requestId,
    answeredAtMs: reply.answeredAtMs,
    seenAtMs: seenAt(context, reply),
    readings,
    fresh,
    isRecheck: page.isRecheck === true,
    wasHidden: page.wasHidden === true,
    rejected: reply.value.rejected,
    stored: storedAround(store, deviceId, fresh),
    covers,
    gracePeriodMs: settings.gracePeriodMs,
    filter,
    storedAt: ({ from, to }) => store.stored(deviceId, from, to),
    lateGapFrom: (range) => afterStoredBelow(store, deviceId, range),
    silence: silenceUnder(page, settings.polls.idlePollMs),
  });
}

/**
 * When an answer came, for the lateness of its readings. While no `Date` counts, this time comes from the local clock,
 * which may be behind; then the answer counts as no earlier than its newest reading.
 */
function seenAt(
  { serverClock }: { readonly serverClock: Pick<SyncContext['serverClock'], 'isKnown'> },
  { answeredAtMs, value: { readings } }: Reply<TelemetryPage>,
): EpochMs {
  const newest = serverClock.isKnown() ? null : extentOf(readings);
  return newest === null ? answeredAtMs : Math.max(answeredAtMs, nsToMs(newest.to));
}

function silenceUnder({ reachedTo = null, visibleFromNs }: JudgedPage, leastMs: number): Silence | null {
  return reachedTo === null ? null : { reachedTo, visibleFrom: visibleFromNs ?? 0n, leastMs };
}

/**
 * The instant after the newest stored reading in a range. Without one: the beginning of the range, or the end of
 * cleared lines.
 */
function afterStoredBelow(store: Pick<Store, 'stored' | 'cleared'>, deviceId: string, { from, to }: Interval): EpochNs {
  const lowest = maxNs(from, store.cleared(deviceId, from, to).at(-1)?.to ?? from);
  for (let length = HOUR_NS; ; length *= 4n) {
    const range = { from: maxNs(lowest, to - length), to };
    const newest = instantsIn(store.stored(deviceId, range.from, to).lines, range).reduce(maxNs, -1n);
    if (newest >= 0n) return newest + 1n;
    if (range.from === lowest) return lowest;
  }
}

/** Whether a reading in a range is stored, or was stored until its lines were cleared. */
export function isAnyStored(store: Pick<Store, 'stored' | 'cleared'>, deviceId: string, range: Interval): boolean {
  return afterStoredBelow(store, deviceId, range) > range.from;
}

/**
 * Records the range that a page leaves empty next to a stored reading that counts as gone, so that it is requested
 * again.
 */
export function keepEmptied(
  { store, serverClock }: Pick<SyncContext, 'store' | 'serverClock'>,
  { deviceId, gap }: Pick<PageRequest, 'deviceId' | 'gap'>,
  page: Parameters<typeof emptiedRange>[0],
): void {
  const { near, far } = overlapsOf(gap, store.telemetry(deviceId).covered);
  const range = emptiedRange(page, [near, far], store.missedOverlaps(deviceId));
  if (range !== null) store.saveEmptyWindow(deviceId, createEmptyWindow(range, serverClock.nowMs()));
}

/** The stored lines of a device around the readings of a page. */
export function storedAround(
  store: Pick<Store, 'stored'>,
  deviceId: string,
  readings: readonly Reading[],
): CommitInput['stored'] {
  const extent = extentOf(readings);
  if (extent === null) return { lines: [], offsets: [] };
  return store.stored(deviceId, maxNs(extent.from - MAX_OFFSET_NS, 0n), extent.to + MAX_OFFSET_NS);
}
