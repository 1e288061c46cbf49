/**
 * `--backfill` as a job of the daemon (`core/state/jobs.ts`). The daemon's planner sends its requests in a low lane,
 * so that live work loses nothing by it.
 */

import { runUnlessFull } from '../../core/archive-room.ts';
import { repeat } from '../../core/async.ts';
import { CLOSED_BY_NONE, LIVE_LAG_SECONDS } from '../../core/device-coverage.ts';
import { UserError } from '../../core/faults.ts';
import type { Clock } from '../../core/ports.ts';
import { STALLED_AFTER } from '../../core/retry.ts';
import { argumentsNotUnderstood, type BackfillArgs, isBackfillArgs } from '../../core/state/job-args.ts';
import type { Job, JobEnd, JobQueue } from '../../core/state/jobs.ts';
import type { Store } from '../../core/state/state.ts';
import type { ProgressReport } from '../../core/status.ts';
import { type EpochNs, HOUR_MS, minNs, msToNs, parseTimestamp, SECOND_MS } from '../../core/time.ts';
import type { SyncContext, WantedRange } from '../../ingest/context.ts';
import { wantedNow } from '../../ingest/wanted-range.ts';
import { type Backfill, beginBackfill } from '../../scheduler/backfill.ts';
import type { JobWorker } from '../../scheduler/jobs.ts';
import { hasStarted, setGoal } from '../../scheduler/planning.ts';
import { OUTCOME_EXIT_CODES, waitUntilListed } from '../shared/alone.ts';
import { backfillView } from './progress.ts';
import { type BackfillRun, type BackfillWorkParts, createBackfillRun, throwIfRejected } from './run.ts';

/** The worker for `runJobs`; one job at a time. */
export function createBackfillWorker(parts: BackfillWorkParts): JobWorker {
  return (args, signal, save) => {
    let run: BackfillRun | null = null;
    const noteBegun = (next: BackfillRun): void => {
      run = next;
    };
    const start = async (): Promise<JobEnd> => {
      if (!isBackfillArgs(args)) throw argumentsNotUnderstood();
      return await runBackfillJob(parts, { args, noteBegun, save }, signal);
    };
    const end = start().catch((error: unknown): JobEnd => {
      if (!signal.aborted || error instanceof UserError) throw error;
      const summary = run?.summary('interrupted') ?? null;
      return {
        state: 'cancelled',
        exitCode: 3,
        summary,
        message: summary === null ? 'cancelled before it started' : null,
      };
    });
    return { end, progress: () => run?.progress() ?? NOTHING_YET };
  };
}

const NOTHING_YET: ProgressReport = {
  totals: { devices: 0, devices_complete: 0, archived_readings: 0, requests: 0, covered_share: null },
  destinations: [],
  allowance: { waiting_until: null },
};

interface Started {
  readonly args: BackfillArgs;
  readonly noteBegun: (run: BackfillRun) => void;
  readonly save: (args: BackfillArgs) => void;
}

async function runBackfillJob(
  parts: BackfillWorkParts,
  { args, noteBegun, save }: Started,
  signal: AbortSignal,
): Promise<JobEnd> {
  const { context, planning } = parts;
  const wantedRange = await waitUntilStarted(parts, signal);
  const sentMs = parts.backfill.sentMs();
  const begin = (own: BackfillArgs): Backfill =>
    beginBackfill(context, { args: own, wantedRange, sentMs, budgets: parts.backfill.budgets, isBeside: true });
  const wanted = begin(args);
  const readTo = args.to === null && args.begunTo === undefined ? alreadyReadTo(context, wanted) : null;
  const backfill = readTo === null ? wanted : begin({ ...args, begunTo: String(readTo) });
  if (args.to === null && args.begunTo === undefined) save({ ...args, begunTo: String(backfill.to) });
  setGoal(planning, 'backfill', backfill);
  try {
    const run = createBackfillRun(parts, backfill, { isBeside: true });
    noteBegun(run);
    const summary = await run.toItsEnd(signal);
    const state = summary.outcome === 'interrupted' ? 'cancelled' : 'done';
    return { state, exitCode: summary.exit_code, summary, message: null };
  } finally {
    setGoal(planning, 'backfill', null);
  }
}

/**
 * The end of a backfill that the daemon's polls have completed except for its last minutes: a backfill without its own
 * end ends there, and waits for no poll.
 *
 * @returns `null` if anything else is missing.
 */
function alreadyReadTo(context: SyncContext, backfill: Backfill): EpochNs | null {
  const { args, to, recheck } = backfill;
  if (recheck !== null) return null;
  const tops = backfillView(context, backfill).devices.flatMap(({ deviceId, gaps }) => {
    const open = gaps.flatMap(({ from, reason }) => (CLOSED_BY_NONE.has(reason) ? [] : (parseTimestamp(from) ?? 0n)));
    if (open.length === 0) return [];
    const top = context.store.telemetry(deviceId).covered.at(-1)?.to ?? 0n;
    return open.every((from) => from >= top) ? [top] : [0n];
  });
  const readTo = tops.reduce(minNs, to);
  const isRecent = to - readTo <= msToNs(LIVE_LAG_SECONDS * SECOND_MS);
  return isRecent && readTo > (args.from === 'all' ? 0n : BigInt(args.from)) ? readTo : null;
}

/** Waits until the daemon has read the account and the devices. */
async function waitUntilStarted(parts: BackfillWorkParts, signal: AbortSignal): Promise<WantedRange> {
  const { context, planning, apiState } = parts;
  const findStart = (): WantedRange | null => {
    throwIfRejected(apiState);
    return hasStarted(planning) ? wantedNow(context) : null;
  };
  const what = `The daemon has not been able to read the account and the device list for ${STALLED_AFTER}`;
  const failure = (): UserError => new UserError(what, 'Run --check for the reason.', 3);
  return await waitUntilListed(parts, { findStart, isUnread: () => !hasStarted(planning), failure }, signal);
}

/** The name of the requester in the log and in `--status`. */
const REQUESTED_BY = 'sync.history';

/** A new key, because earlier versions set `all_history_done` even after a job that had stalled. */
const ALL_HISTORY_READ = 'all_history_read';

/** How long after an interruption it is requested again. */
const RESUBMIT_MS = HOUR_MS;

/**
 * `sync.history: all`: the daemon fills everything that the API still has, once per state. It submits the job of
 * `--backfill --from all` to itself, and submits it again each hour until that job has been completed once. A restart,
 * a rejected key, a job that stalled in an outage or a cancelled job only delays it.
 */
interface AllHistoryParts extends Pick<SyncContext, 'noteStateFull'> {
  readonly queue: Pick<JobQueue, 'submit' | 'open'>;
  readonly store: Pick<Store, 'fact' | 'saveFact'>;
  readonly clock: Clock;
}

interface AllHistory {
  /** Records the end of a job. Once the job for all history is complete, it is not requested again. */
  readonly noteEnded: (job: Pick<Job, 'requestedBy'>, end: Pick<JobEnd, 'state' | 'exitCode'>) => void;
  /**
   * Repeats the request until all history is stored.
   *
   * @throws the signal's reason when that aborts.
   */
  readonly run: (signal: AbortSignal) => Promise<never>;
}

/** Creates the loop, and the function that records the end of its job. */
export function createAllHistory({ queue, store, clock, noteStateFull }: AllHistoryParts): AllHistory {
  const args = { from: 'all', to: null, devices: [], maxShare: null, finishByMs: null };
  const submit = (): void =>
    void queue.submit({ kind: 'backfill', args, requestedBy: REQUESTED_BY, requestedMs: clock.nowMs() });
  return {
    noteEnded: ({ requestedBy }, { state, exitCode }) => {
      const isComplete = state === 'done' && exitCode === OUTCOME_EXIT_CODES.complete;
      if (requestedBy === REQUESTED_BY && isComplete) store.saveFact(ALL_HISTORY_READ, 'yes');
    },
    run: async (signal) => {
      const submitWhereDue = (): number => {
        const isDue =
          store.fact(ALL_HISTORY_READ) === null &&
          !queue.open().some(({ requestedBy }) => requestedBy === REQUESTED_BY);
        if (isDue) runUnlessFull(submit, noteStateFull);
        return RESUBMIT_MS;
      };
      return await repeat(clock, submitWhereDue, signal);
    },
  };
}
