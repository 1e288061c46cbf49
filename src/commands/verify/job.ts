/**
 * The jobs of `--verify`, which request readings from the API or write to the state. Without a daemon the command
 * itself does the same (`request.ts`).
 *
 * The job `repair` fetches ranges again that the archive no longer keeps, delivers them, and updates the missing points
 * of a destination. The job `sample` reads ranges again and compares them.
 *
 * Promises: every request goes through the rate limiter and is counted. Fetched pages are committed like any other page
 * and delivered from the log, so that stopping at any moment loses nothing. No stored reading is counted twice.
 */
import { ApiFault, endsSession, UserError } from '../../core/faults.ts';
import {
  argumentsNotUnderstood,
  isRepairArgs,
  isSampleArgs,
  missingChangeOf,
  type RepairArgs,
  type RepairSummary,
} from '../../core/state/job-args.ts';
import { endWith, type JobEnd } from '../../core/state/jobs.ts';
import type { VerifyState } from '../../core/state/verify.ts';
import { MINUTE_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import { commitJudged } from '../../ingest/commit.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { rereadRange } from '../../ingest/reread.ts';
import type { JobWorker } from '../../scheduler/jobs.ts';
import { openVerifyState } from '../../store/views/verify.ts';
import { waitUntilDelivered } from '../shared/alone.ts';
import { rejectionOf } from '../shared/command.ts';
import { sampleOutcome, verifyExit } from './result.ts';
import { compareSample } from './sample.ts';

/**
 * Opens the state for a comparison.
 *
 * @throws UserError if nothing is stored yet
 */
export function openState(dataDir: string): VerifyState {
  const state = openVerifyState(dataDir);
  if (state === null)
    throw new UserError('No reading is stored yet', 'start the daemon or run --once first.', 1, { joint: ':' });
  return state;
}

interface RepairParts {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
}

/** The worker for `runJobs` that fetches again. */
export function createRepairWorker(parts: RepairParts): JobWorker {
  return (args, signal) => {
    const done = { ranges: 0 };
    const work = async (): Promise<JobEnd> => {
      if (!isRepairArgs(args)) throw argumentsNotUnderstood();
      const summary = await repairState(parts, { args, done }, signal);
      return endWith(summary, summary.reason === null && summary.delivered ? 0 : 3, signal.aborted);
    };
    return {
      end: work(),
      progress: () => ({ done: done.ranges, total: isRepairArgs(args) ? args.windows.length : 0 }),
    };
  };
}

/** The worker for `runJobs` that reads samples. */
export function createSampleWorker({ context }: Pick<RepairParts, 'context'>, dataDir: string): JobWorker {
  return (args, signal) => {
    const done = { ranges: 0 };
    const work = async (): Promise<JobEnd> => {
      if (!isSampleArgs(args)) throw argumentsNotUnderstood();
      const state = openState(dataDir);
      try {
        const summary = await compareSample({ context, state }, args, done, signal);
        return endWith(summary, verifyExit([sampleOutcome(summary)]), signal.aborted);
      } finally {
        state.close();
      }
    };
    return { end: work(), progress: () => ({ done: done.ranges, total: isSampleArgs(args) ? args.windows : 0 }) };
  };
}

/** The repair to do, and its progress, which grows. */
interface RepairOrder {
  readonly args: RepairArgs;
  readonly done: { ranges: number };
}

/**
 * Fetches ranges again, delivers their points and records the missing ones.
 *
 * @throws UserError if a person has to act (77).
 */
export async function repairState(
  parts: RepairParts,
  { args, done }: RepairOrder,
  signal: AbortSignal,
): Promise<RepairSummary> {
  const { context, deliverers } = parts;
  const counts = { requests: 0, read: 0 };
  let reason: string | null = null;
  try {
    reason = await readAgain(context, { args, done, counts }, signal);
    const delivered = args.windows.length === 0 || (await waitUntilDelivered(parts, signal, REPAIR_STALLED_AFTER_MS));
    const destination = deliverers.find(({ name }) => name === args.destination);
    if (destination !== undefined) context.store.amendMissing(destination.destinationId, missingChangeOf(args));
    return { ...counts, delivered, reason };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { ...counts, delivered: false, reason: 'interrupted' };
  }
}

/**
 * Reads the ranges again.
 *
 * @returns why some could not be read; `null` if all were.
 */
async function readAgain(
  context: SyncContext,
  { args: { windows: ranges }, done, counts }: RepairOrder & { readonly counts: { requests: number; read: number } },
  signal: AbortSignal,
): Promise<string | null> {
  for (const [deviceId, from, to] of ranges) {
    const space = context.checkSpace();
    if (!space.ok) return 'the archive is full';
    try {
      const isRead = await rereadRange(
        context,
        {
          deviceId,
          range: { from: BigInt(from), to: BigInt(to) },
          take: (page) => {
            counts.requests += 1;
            commitJudged(context, { deviceId, lane: 'idle-poll', covers: null, isRefetched: true, ...page });
          },
        },
        signal,
      );
      if (isRead) counts.read += 1;
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      if (endsSession(error)) throw rejectionOf(error);
      return error.message;
    }
    done.ranges += 1;
  }
  return null;
}

/** After this time without progress, the wait for delivery ends. */
const REPAIR_STALLED_AFTER_MS = 2 * MINUTE_MS;
