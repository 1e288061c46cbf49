/**
 * `sync.history: all`: beyond what the daemon keeps up with by itself, everything that the API still has, once in the life
 * of a state, as the very job that `--backfill --from all` is.
 *
 * Promise: it is asked for until it has come to its end once; a restart, a refused key or a job that was cancelled puts it
 * off and does not lose it.
 */
import type { AppEvent } from '../core/events.ts';
import type { Clock } from '../core/ports.ts';
import type { JobQueue } from '../core/state/jobs.ts';
import type { Store } from '../core/state/state.ts';
import { HOUR_MS } from '../core/time.ts';

/** Who asks, by the name that the log and `--status` tell. */
const ASKED_BY = 'sync.history';

const DONE = 'all_history_done';

/** How long after it was broken off it is asked for again. */
const AGAIN_MS = HOUR_MS;

export interface AllHistoryParts {
  readonly queue: Pick<JobQueue, 'ask' | 'open'>;
  readonly store: Pick<Store, 'fact' | 'keepFact'>;
  readonly clock: Clock;
}

export interface AllHistory {
  /** Hears of the end of the job. */
  readonly observe: (event: AppEvent) => void;
  /** Asks, and again, until all is there. @throws the signal's reason when that aborts. */
  readonly run: (signal: AbortSignal) => Promise<never>;
}

/** Prepares it. */
export function createAllHistory({ queue, store, clock }: AllHistoryParts): AllHistory {
  // An end is told when the job is not open any more.
  let own: number | null = null;
  return {
    observe: (event) => {
      if (event.type === 'job-started' && event.askedBy === ASKED_BY) own = event.job;
      if (event.type === 'job-ended' && event.job === own && event.state === 'done') store.keepFact(DONE, 'yes');
    },
    run: async (signal) => {
      for (;;) {
        const isDue = store.fact(DONE) === null && !queue.open().some(({ askedBy }) => askedBy === ASKED_BY);
        if (isDue) {
          const args = { from: 'all', to: null, devices: [], maxShare: null, finishByMs: null };
          queue.ask({ kind: 'backfill', args, askedBy: ASKED_BY, askedMs: clock.nowMs() });
        }
        await clock.sleep(AGAIN_MS, signal);
      }
    },
  };
}
