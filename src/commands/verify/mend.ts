/**
 * What `--verify --repair` needs of whoever holds the state: stretches that no archive keeps any more are fetched again
 * from the API and delivered, and what a destination lacks is brought up to date.
 *
 * Promises: every request goes through the gate and is booked; what is fetched lands like any other page and is delivered
 * from the log, so that stopping anywhere loses nothing; nothing that is held is counted twice.
 */

import { ApiFault } from '../../core/faults.ts';
import { isRepairArgs, missingChangeOf, type RepairArgs, type RepairSummary } from '../../core/state/job-args.ts';
import type { JobEnd } from '../../core/state/jobs.ts';
import { LOG_LANES } from '../../core/state/log.ts';
import { MINUTE_MS, SECOND_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import { commitPage } from '../../ingest/commit.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { readWindow } from '../../ingest/reread.ts';
import { endsSession } from '../../scheduler/dispatch.ts';
import type { JobWork } from '../../scheduler/jobs.ts';
import { refusalOf } from '../shared/refusal.ts';

export interface MendParts {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
}

/** The worker for `runJobs`. */
export function createMendWorker(parts: MendParts): (args: unknown, signal: AbortSignal) => JobWork {
  return (args, signal) => {
    const done = { windows: 0 };
    const all = isRepairArgs(args) ? args : null;
    const end = (
      all === null ? Promise.reject(new Error('not to be understood')) : mend(parts, all, done, signal)
    ).then(
      (summary): JobEnd => ({
        state: signal.aborted ? 'cancelled' : 'done',
        exitCode: summary.reason === null && summary.delivered ? 0 : 3,
        summary,
        message: null,
      }),
    );
    return { end, progress: () => ({ done: done.windows, total: all?.windows.length ?? 0 }) };
  };
}

/** Does it. @throws UserError where a person has to act (77). */
export async function mend(
  parts: MendParts,
  args: RepairArgs,
  done: { windows: number },
  signal: AbortSignal,
): Promise<RepairSummary> {
  const { context, deliverers } = parts;
  const counts = { requests: 0, read: 0 };
  let reason: string | null = null;
  try {
    reason = await fetchAgain(context, args, { counts, done }, signal);
    const delivered = args.windows.length === 0 || (await untilDelivered(parts, signal));
    const destination = deliverers.find(({ name }) => name === args.destination);
    if (destination !== undefined) context.store.amendMissing(destination.destinationId, missingChangeOf(args));
    return { ...counts, delivered, reason };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { ...counts, delivered: false, reason: 'stopped before it was finished' };
  }
}

/** Reads the windows again. @returns why not all of them; `null` where all. */
async function fetchAgain(
  context: SyncContext,
  { windows }: RepairArgs,
  { counts, done }: { counts: { requests: number; read: number }; done: { windows: number } },
  signal: AbortSignal,
): Promise<string | null> {
  for (const [deviceId, from, to] of windows) {
    const room = context.room();
    if (!room.ok) return 'the archive has no room for more';
    try {
      const isRead = await readWindow(
        context,
        {
          deviceId,
          window: { from: BigInt(from), to: BigInt(to) },
          take: (page) => {
            counts.requests += 1;
            commitPage(context, { deviceId, lane: 'sweep', proven: null, isAgain: true, ...page });
          },
        },
        signal,
      );
      if (isRead) counts.read += 1;
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      if (endsSession(error)) throw refusalOf(error);
      return error.message;
    }
    done.windows += 1;
  }
  return null;
}

/** How long nothing may move before delivery is not waited for any more. */
const STANDS_MS = 2 * MINUTE_MS;

/** Waits until every destination has what was archived so far. @returns whether that was reached. */
async function untilDelivered({ context, deliverers }: MendParts, signal: AbortSignal): Promise<boolean> {
  const { store, clock } = context;
  const ends = LOG_LANES.map((lane) => [lane, store.endOf(lane)] as const);
  const isPast = ({ destinationId, pendingLines }: Deliverer): boolean =>
    ends.every(([lane, end]) => store.position(destinationId, lane).block >= end.block) || pendingLines() === 0;
  for (const { notify } of deliverers) notify();
  let [last, movedMs] = ['', clock.monoMs()];
  for (;;) {
    const left = deliverers.filter((deliverer) => !isPast(deliverer));
    if (left.length === 0) return true;
    const places = JSON.stringify(
      left.map(({ destinationId }) => LOG_LANES.map((lane) => store.position(destinationId, lane))),
    );
    if (places !== last) [last, movedMs] = [places, clock.monoMs()];
    if (clock.monoMs() - movedMs >= STANDS_MS) return false;
    await clock.sleep(SECOND_MS / 5, signal);
  }
}
