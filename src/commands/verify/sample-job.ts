/**
 * `--verify --sample` as a job of the daemon.
 */

import { isSampleArgs } from '../../core/state/job-args.ts';
import type { JobEnd } from '../../core/state/jobs.ts';
import type { VerifyState } from '../../core/state/verify.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { JobWork } from '../../scheduler/jobs.ts';
import { sample } from './sample.ts';

/** The worker for `runJobs`. @param openState a look at the state, closed when the job has ended. */
export function createSampleWorker(
  context: SyncContext,
  openState: () => VerifyState | null,
): (args: unknown, signal: AbortSignal) => JobWork {
  return (args, signal) => {
    const done = { windows: 0 };
    const work = async (): Promise<JobEnd> => {
      const state = openState();
      if (state === null || !isSampleArgs(args)) throw new Error('the job is not to be understood');
      try {
        const summary = await sample({ context, state }, args, done, signal);
        const exitCode = summary.reason === null ? 0 : 3;
        return { state: signal.aborted ? 'cancelled' : 'done', exitCode, summary, message: null };
      } finally {
        state.close();
      }
    };
    return { end: work(), progress: () => ({ done: done.windows, total: isSampleArgs(args) ? args.windows : 0 }) };
  };
}
