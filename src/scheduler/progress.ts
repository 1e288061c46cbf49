/**
 * Measures whether the work of a one-off or a job makes progress. Such work ends after a while without progress.
 *
 * Progress means that less is left to do. A request that brings nothing is no progress. Time spent waiting for a turn
 * or for quota does not count.
 */
import type { Clock, RequestLane } from '../core/ports.ts';
import { SECOND_MS } from '../core/time.ts';
import type { SyncContext } from '../ingest/context.ts';
import type { ApiState } from './api-state.ts';

/** How often the gaps of such work are queued again: a gap that was resting may be due. */
export const REOPEN_EVERY_MS = 5 * SECOND_MS;

/** How the work stands at a look at it. */
interface WorkView {
  /** What is left, in any unit. */
  readonly left: number | bigint;
  /** Whether it waits for what it cannot hasten. */
  readonly waits: boolean;
}

export interface ProgressWatch {
  /**
   * Takes in the state of the work.
   *
   * @returns for how long the work has made no progress, in ms.
   */
  idleMs(look: WorkView): number;
}

/** A watch over work that begins now. */
export function createProgressWatch(clock: Pick<Clock, 'monoMs'>): ProgressWatch {
  let least: number | bigint = Number.POSITIVE_INFINITY;
  let idleMs = 0;
  let atMs = clock.monoMs();
  return {
    idleMs: ({ left, waits }) => {
      const nowMs = clock.monoMs();
      if (left < least) {
        least = left;
        idleMs = 0;
      } else if (!waits) idleMs += nowMs - atMs;
      atMs = nowMs;
      return idleMs;
    },
  };
}

export interface WaitingParts {
  readonly context: Pick<SyncContext, 'room'>;
  readonly apiState: ApiState;
  /** Whether the quota allows no request now. Waiting for the even pace does not count. */
  readonly waitsForQuota: () => boolean;
  /** Whether requests are refused for the quota again and again, although every wait was kept. */
  readonly isRefusedAgain: () => boolean;
}

/**
 * Whether work waits for quota, or has requests queued in lanes that do not fail and have quota. A service that refuses
 * again after each wait that it asked for does not count as waiting.
 */
export function isWaiting(
  { context, apiState, waitsForQuota, isRefusedAgain }: WaitingParts,
  { isQueued, lanes }: { readonly isQueued: boolean; readonly lanes: readonly RequestLane[] },
): boolean {
  if (isRefusedAgain()) return false;
  if (waitsForQuota()) return true;
  return isQueued && apiState.fault === null && !lanes.some((lane) => apiState.failing.has(lane)) && context.room().ok;
}
