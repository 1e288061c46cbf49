/**
 * Tells once that the first fill is through: nobody is to watch a progress bar for hours to learn that.
 */
import type { Observe } from '../core/events.ts';
import type { Clock } from '../core/ports.ts';
import type { ReadyReport, StatusReport } from '../core/status.ts';
import { SECOND_MS } from '../core/time.ts';

/** How often it is looked; none once it is told. A look at every device takes no more than this part of the time. */
const LOOK_EVERY_MS = 10 * SECOND_MS;
const LOOK_PART = 0.02;

export interface FirstFillParts {
  readonly report: () => StatusReport;
  readonly ready: () => ReadyReport;
  readonly observe: Observe;
  readonly clock: Pick<Clock, 'monoMs'>;
  /** Where people find the status page. */
  readonly statusPage: string;
}

/** @returns a function that looks now and then, and tells when everything that can be had is held for the first time. */
export function createFirstFill({ report, ready, observe, clock, statusPage }: FirstFillParts): () => void {
  let dueMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock.monoMs();
    if (nowMs < dueMs) return;
    dueMs = nowMs + LOOK_EVERY_MS;
    if (!ready().ready) return;
    const { devices, totals, destinations } = report();
    dueMs = Math.max(dueMs, nowMs + (clock.monoMs() - nowMs) / LOOK_PART);
    const kept = devices.filter(({ state }) => state !== 'excluded');
    if (kept.length === 0 || !kept.every(isFilled)) return;
    dueMs = Number.POSITIVE_INFINITY;
    observe({
      type: 'first-fill-done',
      devices: kept.length,
      withGaps: kept.filter(({ gaps }) => gaps.some(({ reason }) => reason !== UNREACHED)).length,
      points: totals.archived_points,
      pending: destinations.reduce((sum, { pending_points }) => sum + pending_points, 0),
      statusPage,
    });
  };
}

const UNREACHED = 'not reached yet';

/** The stretch since the last look is open all the time; any other that is open without a name is still to be read. */
function isFilled({ gaps, lag_seconds }: StatusReport['devices'][number]): boolean {
  if (lag_seconds === null) return gaps.length > 0 && gaps.every(({ reason }) => reason !== UNREACHED);
  return gaps.filter(({ reason }) => reason === UNREACHED).length <= (lag_seconds > 0 ? 1 : 0);
}
