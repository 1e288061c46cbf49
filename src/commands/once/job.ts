/**
 * `--once` as a job of the daemon (`core/state/jobs.ts`); the daemon's planner does the work.
 *
 * The job requests the account, the devices and the alerts now. It sets the gaps up to the coverage limit at its start
 * as a goal, and waits until these gaps are closed and delivered.
 */
import { pollUntil } from '../../core/async.ts';
import { UserError } from '../../core/faults.ts';
import type { Stream } from '../../core/ports.ts';
import type { JobEnd } from '../../core/state/jobs.ts';
import type { ProgressReport, StatusReport } from '../../core/status.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import { countsFromNow } from '../../report/figures.ts';
import type { ApiState } from '../../scheduler/api-state.ts';
import { JOB_CHECK_MS, type JobWork } from '../../scheduler/jobs.ts';
import { hasStarted, requestStream, setGoal } from '../../scheduler/planning.ts';
import { type Outcome, outcomeAfterDelivery } from '../shared/alone.ts';
import { rejectionOf } from '../shared/command.ts';
import { type OnceSummary, onceProgress, summarize } from './result.ts';
import {
  advanceRun,
  beginOnceRun,
  createOnceRun,
  createRunState,
  describeEnding,
  type OnceRun,
  type WatchParts,
} from './run.ts';

interface OnceJobParts extends WatchParts {
  readonly deliverers: readonly Deliverer[];
  readonly report: () => StatusReport;
}

/** The worker for `runJobs`; one job at a time. */
export function createOnceWorker(parts: OnceJobParts): (args: unknown, signal: AbortSignal) => JobWork {
  const { deliverers, report } = parts;
  return (_args, signal) => {
    // The daemon counts since its start. A job reports the points that were delivered since the job's start.
    const before = deliverers.map((deliverer) => deliverer.deliveredLines());
    const ofThisJob = <T extends { readonly delivered_points: number | null }>(destination: T, index: number) => ({
      ...destination,
      delivered_points: (destination.delivered_points ?? 0) - (before[index] ?? 0),
    });
    const end = runOnceJob(parts, signal).then((summary): JobEnd => {
      const state = summary.outcome === 'interrupted' ? 'cancelled' : 'done';
      const reported = { ...summary, destinations: summary.destinations.map(ofThisJob) };
      return { state, exitCode: summary.exit_code, summary: reported, message: null };
    });
    const counts = countsFromNow(parts.context.store);
    const progress = (): ProgressReport => {
      const found = onceProgress(report(), counts());
      return { ...found, destinations: found.destinations.map(ofThisJob) };
    };
    return { end, progress };
  };
}

async function runOnceJob(parts: OnceJobParts, signal: AbortSignal): Promise<OnceSummary> {
  const run = createOnceRun(parts.context);
  try {
    const outcome = await watchRun(parts, run, signal);
    return summarize(parts, describeEnding(parts, run, await outcomeAfterDelivery(parts, outcome, signal)));
  } catch (error) {
    if (!signal.aborted || (error instanceof UserError && error === signal.reason)) throw error;
    return summarize(parts, describeEnding(parts, run, 'interrupted'));
  } finally {
    setGoal(parts.planning, 'first-history', null);
  }
}

/**
 * Watches the run until it has an outcome.
 *
 * @throws UserError if the API rejects the key.
 */
async function watchRun(parts: OnceJobParts, run: OnceRun, signal: AbortSignal): Promise<Outcome> {
  const { context, planning, apiState } = parts;
  const state = createRunState(context);
  let hasRequested = false;
  const step = (): Outcome | null => {
    if (apiState.rejection !== null) throw rejectionOf(apiState.rejection);
    if (!hasRequested && hasStarted(planning)) {
      hasRequested = true;
      requestStream(planning, 'account', isOff(apiState, 'account'));
    }
    const isAccountRead = apiState.streams.account.readAtMs >= run.beganMs;
    if (!run.hasStarted && hasStarted(planning) && isAccountRead) begin(parts, run);
    return advanceRun(parts, run, state);
  };
  return await pollUntil(context.clock, step, { everyMs: JOB_CHECK_MS }, signal);
}

/** Sets the goal and requests the streams, after checking that the workspace is the same. */
function begin({ context, planning, apiState }: OnceJobParts, run: OnceRun): void {
  beginOnceRun(context, run);
  if (run.goal !== null) setGoal(planning, 'first-history', run.goal);
  for (const stream of ['devices', 'alerts', 'telemetry'] as const)
    requestStream(planning, stream, isOff(apiState, stream));
}

function isOff({ streams }: ApiState, stream: Stream): boolean {
  return streams[stream].missingScope !== null;
}
