/**
 * Landing: a judged page goes into the archive and moves the coverage, in one transaction.
 */
import type { CoveredSpan } from '../core/coverage.ts';
import { composeLanding, extentOf } from '../core/landing.ts';
import { TIE_REACH_NS } from '../core/placing.ts';
import type { Reply, RequestLane } from '../core/ports.ts';
import type { Reading, TelemetryPage } from '../core/records.ts';
import { StaleStateError } from '../core/telemetry-state.ts';
import { maxNs } from '../core/time.ts';
import type { SyncContext } from './context.ts';

/** How often a landing is computed anew because the state has moved meanwhile. */
const ATTEMPTS = 5;

export interface JudgedPage {
  readonly deviceId: string;
  readonly lane: RequestLane;
  readonly reply: Reply<TelemetryPage>;
  readonly readings: readonly Reading[];
  readonly proven: CoveredSpan | null;
}

/** Lands what a page is worth; a page that is worth nothing changes nothing. */
export function landPage(context: SyncContext, page: JudgedPage): void {
  const { readings, reply, proven, deviceId } = page;
  const { rejected } = reply.value;
  if (readings.length === 0 && rejected.length === 0 && proven === null) return;
  const { newReadings, lines } = landOnce(context, page, 1);
  const { observe } = context;
  observe({
    type: 'page-landed',
    deviceId,
    lane: page.lane,
    readings: newReadings,
    newPoints: lines,
    proven: proven !== null && proven.from < proven.to,
  });
  if (rejected.length > 0) {
    observe({
      type: 'records-rejected',
      stream: 'telemetry',
      count: rejected.length,
      reason: rejected[0]?.reason ?? '',
    });
  }
}

function landOnce(context: SyncContext, page: JudgedPage, attempt: number): { newReadings: number; lines: number } {
  const { store } = context;
  const { deviceId, readings, reply, proven } = page;
  const workspaceId = store.workspaceTag();
  if (workspaceId === null) throw new Error('telemetry was read before the workspace was pinned');
  const extent = extentOf(readings);
  const landing = composeLanding({
    state: store.telemetry(deviceId),
    workspaceId,
    lane: page.lane === 'live' ? 'live' : 'history',
    requestId: reply.requestId,
    answeredAtMs: reply.answeredAtMs,
    readings,
    rejected: reply.value.rejected,
    held:
      extent === null
        ? { lines: [], ties: [] }
        : store.held(deviceId, maxNs(extent.from - TIE_REACH_NS, 0n), extent.to + TIE_REACH_NS),
    proven,
  });
  try {
    store.land(landing);
  } catch (error) {
    if (!(error instanceof StaleStateError) || attempt >= ATTEMPTS) throw error;
    return landOnce(context, page, attempt + 1);
  }
  return { newReadings: landing.newReadings, lines: landing.lines.length };
}
