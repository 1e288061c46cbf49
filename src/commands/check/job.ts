/**
 * The part of `--check` that a daemon does (`core/state/jobs.ts`): it asks the API with its own key, gate and state.
 */
import type { JobEnd } from '../../core/state/jobs.ts';
import type { JobWork } from '../../scheduler/jobs.ts';
import { type CheckApiParts, createApiCheck } from './api.ts';

const CANCELLED: JobEnd = { state: 'cancelled', exitCode: 1, summary: null, message: 'it was cancelled' };

/** The worker for `runJobs`: its summary is the findings at the API. */
export function createCheckWorker(parts: CheckApiParts): (args: unknown, signal: AbortSignal) => JobWork {
  const check = createApiCheck(parts);
  return (_args, signal) => {
    let asking: string | null = null;
    const onAsk = (scope: string): void => {
      asking = scope;
    };
    const end = check(onAsk, signal).then(
      (summary): JobEnd => ({ state: 'done', exitCode: 0, summary, message: null }),
      (error: unknown): JobEnd => {
        if (signal.aborted) return CANCELLED;
        throw error;
      },
    );
    return { end, progress: () => ({ asking }) };
  };
}
