/**
 * Landing: a judged page goes into the archive and moves the coverage, in one transaction.
 */
import type { CoveredSpan } from '../core/coverage.ts';
import { claimsEnd, composeWithdrawal, settleOf } from '../core/late.ts';
import { TIE_REACH_NS } from '../core/lines/offsets.ts';
import type { Reply, RequestLane } from '../core/ports.ts';
import type { Reading, RejectedRecord, TelemetryPage } from '../core/records.ts';
import { type PageCommit, StaleStateError, type TelemetryState } from '../core/state/telemetry.ts';
import { formatExact, maxNs, minNs, msToNs, nsToMs } from '../core/time.ts';
import { composeLanding, extentOf, upholdClaims, withoutEdges } from './commit-rules.ts';
import type { SyncContext } from './context.ts';

/** How often a landing is computed anew because the state has moved meanwhile. */
const ATTEMPTS = 5;

export interface JudgedPage {
  readonly deviceId: string;
  readonly lane: RequestLane;
  readonly reply: Reply<TelemetryPage>;
  readonly readings: readonly Reading[];
  readonly proven: CoveredSpan | null;
  /** Whether what lies in cleared stretches is to be written again, the readings at the edges of what is held too. */
  readonly isAgain?: boolean;
}

/** Lands what a page is worth; a page that is worth nothing changes nothing. @returns how many readings were new. */
export function commitPage(context: SyncContext, page: JudgedPage): number {
  const { readings, reply, proven, deviceId } = page;
  if (readings.length === 0 && reply.value.rejected.length === 0 && proven === null) return 0;
  const { newReadings, lines, late, setAside } = landOnce(context, page, 1);
  const { observe, settings } = context;
  if (late !== undefined) {
    const { count, worstMs, record } = late;
    observe({ type: 'readings-late', deviceId, count, worstMs, settleMs: settleOf(settings.settleMs, record) });
  }
  observe({
    type: 'page-landed',
    deviceId,
    lane: page.lane,
    served: readings.length,
    readings: newReadings,
    newPoints: lines,
    proven: proven !== null && proven.from < proven.to,
  });
  tellSetAside(context, deviceId, setAside);
  return newReadings;
}

/** What was set aside is told once: the same records come again whenever their time is read again. */
function tellSetAside({ observe }: SyncContext, deviceId: string, records: readonly RejectedRecord[]): void {
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

interface Landed {
  readonly newReadings: number;
  readonly lines: number;
  readonly late: PageCommit['late'];
  /** What was set aside for the first time. */
  readonly setAside: readonly RejectedRecord[];
}

function landOnce(context: SyncContext, page: JudgedPage, attempt: number): Landed {
  const { store } = context;
  const { settleMs } = context.settings;
  const { deviceId, reply, proven } = page;
  const workspaceId = store.workspaceTag();
  if (workspaceId === null) throw new Error('telemetry was read before the workspace was pinned');
  const state = stillClaimed(context, page);
  const filter = context.filterNotes.touchesSensors ? context.settings.filter : undefined;
  // A sensor that is written again may be missing of an edge, which is known by the whole of its reading.
  const isWhole = filter !== undefined || page.isAgain === true;
  const fresh = isWhole ? page.readings : withoutEdges(page.readings, state.spans);
  const extent = extentOf(fresh);
  const landing = composeLanding({
    state,
    workspaceId,
    lane: page.lane === 'live' ? 'live' : 'history',
    requestId: reply.requestId,
    answeredAtMs: reply.answeredAtMs,
    readings: page.readings,
    fresh,
    rejected: reply.value.rejected,
    held:
      extent === null
        ? { lines: [], ties: [] }
        : store.held(deviceId, maxNs(extent.from - TIE_REACH_NS, 0n), extent.to + TIE_REACH_NS),
    proven,
    settleMs,
    ...(filter === undefined ? {} : { filter }),
  });
  let setAside: Landed['setAside'];
  try {
    setAside = store.commitPage(landing);
  } catch (error) {
    if (!(error instanceof StaleStateError) || attempt >= ATTEMPTS) throw error;
    return landOnce(context, page, attempt + 1);
  }
  return { newReadings: landing.newReadings, lines: landing.lines.length, late: landing.late, setAside };
}

/** What is held of the device of a page, without what was called empty while nothing was. */
function stillClaimed({ store }: SyncContext, page: JudgedPage): TelemetryState {
  const { deviceId } = page;
  return upholdClaims(store.telemetry(deviceId), page, () => store.newestNs(deviceId) !== null);
}

/**
 * Takes back what is claimed beyond the server's present: its clock was ahead when that was claimed, and has fallen
 * back, so that readings of those times are still to come. It is read again from the newest reading on that was seen
 * then (less the settle): how far the true time was when the rest was claimed nobody knows.
 */
export function withdrawClaims({ store, serverClock, settings, observe }: SyncContext, deviceId: string): void {
  const presentMs = serverClock.presentAtMostMs();
  const passedMs = serverClock.passedMs();
  if (presentMs === null || passedMs === null) return;
  const state = store.telemetry(deviceId);
  const newest = state.spans.at(-1);
  if (newest === undefined || newest.to <= msToNs(presentMs)) return;
  const { to } = newest;
  const settleMs = settleOf(settings.settleMs, state.late);
  const seenTo = newest.last === null ? newest.from : claimsEnd(nsToMs(newest.last.at), settleMs);
  const from = minNs(seenTo, claimsEnd(passedMs, settleMs));
  store.commitPage(composeWithdrawal(state, from, serverClock.nowMs()));
  observe({ type: 'claims-withdrawn', deviceId, from: formatExact(from), to: formatExact(to) });
}
