/**
 * `--once` as a job of the daemon (`core/state/jobs.ts`): the same passes, with the daemon's scanner, gate and deliveries.
 *
 * What counts as progress is the job's own: the daemon lands and delivers all the time. Something has come of it where
 * the holes that the job is to close have shrunk, where a destination has moved towards the place that the job waits
 * for, and while the allowance is waited for.
 */

import type { AppEvent } from '../../core/events.ts';
import type { JobEnd } from '../../core/state/jobs.ts';
import type { LogPosition } from '../../core/state/log.ts';
import { LOG_LANES } from '../../core/state/log.ts';
import type { ProgressReport, StatusReport } from '../../core/status.ts';
import { parseTimestamp, SECOND_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { Trouble } from '../../ingest/outage.ts';
import type { PageScanner } from '../../ingest/page-scan.ts';
import type { JobWork } from '../../scheduler/jobs.ts';
import { createProgressWatch, type ProgressWatch } from '../../scheduler/progress-watch.ts';
import { STALLED_AFTER_MS } from '../shared/refusal.ts';
import { openGaps, type Progress, type PullParts, pullAll } from './pull.ts';
import { type OnceSummary, summarize } from './summary.ts';

export interface OnceJobParts {
  readonly context: SyncContext;
  readonly scanner: PageScanner;
  readonly deliverers: readonly Deliverer[];
  readonly trouble: Trouble;
  /** Lets somebody hear of every event. */
  readonly listen: (listener: (event: AppEvent) => void) => void;
  readonly report: () => StatusReport;
}

/** How often delivery is looked after once everything is pulled. */
const DRAIN_LOOK_MS = SECOND_MS;

/** The worker for `runJobs`; one job at a time. */
export function createOnceWorker(parts: OnceJobParts): (args: unknown, signal: AbortSignal) => JobWork {
  const { context, deliverers, report } = parts;
  let watch: ProgressWatch | null = null;
  parts.listen((event) => {
    if (event.type === 'allowance-wait') watch?.observe(event);
  });
  return (_args, signal) => {
    watch = createProgressWatch(context.clock, context.serverClock.nowMs);
    // Counts of the daemon's whole life would tell nobody what this job has brought.
    const before = deliverers.map((deliverer) => deliverer.deliveredLines());
    const ofThisJob = <T extends { readonly delivered_points: number | null }>(destination: T, index: number) => ({
      ...destination,
      delivered_points: (destination.delivered_points ?? 0) - (before[index] ?? 0),
    });
    const end = work(parts, watch, signal).then((summary): JobEnd => {
      const state = summary.outcome === 'interrupted' ? 'cancelled' : 'done';
      const told = { ...summary, destinations: summary.destinations.map(ofThisJob) };
      return { state, exitCode: summary.exit_code, summary: told, message: null };
    });
    const progress = (): ProgressReport => {
      const { totals, destinations, allowance } = report();
      return { totals, destinations: destinations.map(ofThisJob), allowance };
    };
    return { end, progress };
  };
}

async function work(parts: OnceJobParts, watch: ProgressWatch, signal: AbortSignal): Promise<OnceSummary> {
  const progress: Progress = { horizon: null, off: [] };
  try {
    const ending = await pullAll(pullPartsOf(parts, { watch, progress }), progress, signal);
    const drained = await drain(parts, watch, signal);
    const outcome = ending.outcome === 'complete' && !drained ? 'stalled' : ending.outcome;
    return summarize(parts, { ...ending, outcome });
  } catch (error) {
    if (!signal.aborted) throw error;
    return summarize(parts, { ...progress, outcome: 'interrupted' });
  }
}

function pullPartsOf(
  { context, scanner, trouble }: OnceJobParts,
  { watch, progress }: { watch: ProgressWatch; progress: Progress },
): PullParts {
  let leastOpenNs: bigint | null = null;
  return {
    context,
    scanner,
    pullIdleMs: () => {
      const openNs = lengthOf(openGaps(context, progress.horizon));
      if (leastOpenNs === null || openNs < leastOpenNs) {
        if (leastOpenNs !== null) watch.observe(MOVED);
        leastOpenNs = openNs;
      }
      return watch.pullIdleMs();
    },
    others: {
      mayTry: async (signal) => await inTime(context, trouble.pass, signal),
      failed: trouble.note,
      answered: trouble.done,
    },
  };
}

/** What the watch takes for progress. */
const MOVED: AppEvent = {
  type: 'page-landed',
  deviceId: '',
  lane: 'live',
  served: 0,
  readings: 0,
  newPoints: 0,
  proven: true,
};

function lengthOf(gaps: readonly { readonly from: string; readonly to: string }[]): bigint {
  return gaps.reduce((sum, { from, to }) => sum + (parseTimestamp(to) ?? 0n) - (parseTimestamp(from) ?? 0n), 0n);
}

/** Waits for our turn, but no longer than nothing may move. @returns whether it came. */
async function inTime(
  { clock }: SyncContext,
  turn: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<boolean> {
  const late = new AbortController();
  const onAbort = (): void => late.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const alarm = new AbortController();
  const ringing = clock.sleep(STALLED_AFTER_MS, alarm.signal).then(
    () => late.abort(),
    () => {},
  );
  try {
    await turn(late.signal);
    return true;
  } catch (error) {
    if (!late.signal.aborted || signal.aborted) throw error;
    return false;
  } finally {
    signal.removeEventListener('abort', onAbort);
    alarm.abort();
    await ringing;
  }
}

/** Waits until every destination has what was archived so far. @returns whether that was reached. */
export async function drain(
  { context, deliverers }: Pick<OnceJobParts, 'context' | 'deliverers'>,
  watch: ProgressWatch,
  signal: AbortSignal,
): Promise<boolean> {
  const { store, clock } = context;
  const ends = LOG_LANES.map((lane) => [lane, store.endOf(lane)] as const);
  const placesOf = ({ destinationId }: Deliverer): LogPosition[] =>
    LOG_LANES.map((lane) => store.position(destinationId, lane));
  const hasAll = (deliverer: Deliverer): boolean =>
    ends.every(([lane, end]) => store.position(deliverer.destinationId, lane).block >= end.block) ||
    deliverer.pendingLines() === 0;
  for (const deliverer of deliverers) deliverer.notify();
  let last = '';
  for (;;) {
    const left = deliverers.filter((deliverer) => !hasAll(deliverer));
    if (left.length === 0) return true;
    const places = JSON.stringify(left.map(placesOf));
    if (places !== last) watch.observe(MOVED);
    last = places;
    if (watch.idleMs() >= STALLED_AFTER_MS) return false;
    await clock.sleep(DRAIN_LOOK_MS, signal);
  }
}
