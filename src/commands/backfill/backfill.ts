/**
 * `--backfill` alone: reads the account and the devices, fills the stretch with the whole share, delivers, and ends.
 *
 * The requests are decided by the daemon's own planner and carried out by its own loop (`scheduler/dispatch.ts`), with nothing
 * in the planner but the backfill and the account.
 */

import type { MaintenanceParts } from '../../archive/maintenance.ts';
import { ApiFault, UserError } from '../../core/faults.ts';
import { NO_PULSE } from '../../core/heartbeats.ts';
import type { BackfillArgs } from '../../core/state/job-args.ts';
import { SECOND_MS } from '../../core/time.ts';
import { syncAccount } from '../../ingest/account.ts';
import type { Horizon } from '../../ingest/context.ts';
import { syncDevices } from '../../ingest/devices.ts';
import { horizonNow, learnTime } from '../../ingest/horizon.ts';
import { beginBackfill } from '../../scheduler/backfill.ts';
import { type DispatchParts, endsSession, followPlan } from '../../scheduler/dispatch.ts';
import { besideDeliveries } from '../once/once.ts';
import { refusalOf, STALLED_AFTER_MS } from '../shared/refusal.ts';
import type { BackfillJobParts } from './job.ts';
import { createBackfillNotes } from './notes.ts';
import type { BackfillSummary } from './summary.ts';
import { type BackfillRun, createBackfillRun } from './work.ts';

export interface BackfillParts
  extends BackfillJobParts,
    Pick<DispatchParts, 'context' | 'planning' | 'scanner' | 'trouble' | 'untilTurn'> {
  readonly housekeeping: MaintenanceParts;
  /** Called once it is known what is to be filled. */
  readonly onBegun?: (run: BackfillRun) => void;
}

const AGAIN_MS = 5 * SECOND_MS;

/**
 * Runs it.
 *
 * @returns the summary; an abort of `signal` is an outcome once it has begun.
 * @throws UserError where a person has to act (2, 77, 1), and where it could not begin (3).
 */
export async function runBackfill(
  parts: BackfillParts,
  args: BackfillArgs,
  signal: AbortSignal,
): Promise<BackfillSummary> {
  let run: BackfillRun | null = null;
  const onBegun = (begun: BackfillRun): void => {
    run = begun;
    parts.onBegun?.(begun);
  };
  try {
    return await besideDeliveries(parts, async (both) => await fill({ ...parts, onBegun }, args, both), signal);
  } catch (error) {
    if (!signal.aborted || error instanceof UserError) throw error;
    const begun = run as BackfillRun | null;
    if (begun === null) throw new UserError('Stopped before it had begun. Nothing was done.', 3);
    return begun.summary('interrupted');
  }
}

async function fill(parts: BackfillParts, args: BackfillArgs, signal: AbortSignal): Promise<BackfillSummary> {
  const { context, planning } = parts;
  const notes = createBackfillNotes(context.clock);
  parts.listen(notes.observe);
  const horizon = await begin(parts, signal);
  const { budgets } = parts.backfill;
  const backfill = beginBackfill(context, {
    args,
    horizon,
    sentMs: parts.backfill.sentMs(),
    budgets,
    isBeside: false,
  });
  const run = createBackfillRun({ ...parts, notes }, backfill);
  parts.onBegun?.(run);
  planning.beginAlone(backfill);
  return await untilFirst(run.toItsEnd, (stop) => askOn(parts, stop), signal);
}

/** Works until it has its end; what asks the API meanwhile is stopped then. */
async function untilFirst<T>(
  work: (signal: AbortSignal) => Promise<T>,
  beside: (signal: AbortSignal) => Promise<never>,
  signal: AbortSignal,
): Promise<T> {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const loops = [work(both), beside(both)] as const;
  try {
    return await Promise.race(loops);
  } finally {
    stop.abort(new Error('the backfill has ended'));
    await Promise.allSettled(loops);
  }
}

/** Asks for what the planner decides on. @throws UserError where the key is refused. */
async function askOn(parts: BackfillParts, signal: AbortSignal): Promise<never> {
  const readRound = async (): Promise<boolean> => await syncAccount(parts.context, signal);
  try {
    return await followPlan({ ...parts, rereading: NOTHING_TO_REREAD, readRound, pulse: NO_PULSE }, signal);
  } catch (error) {
    throw error instanceof ApiFault ? refusalOf(error) : error;
  }
}

const NOTHING_TO_REREAD: DispatchParts['rereading'] = { look: () => false, next: async () => false };

/** Reads the account and the devices, and learns the time, again and again until that has come to its end. */
async function begin({ context, scanner, trouble }: BackfillParts, signal: AbortSignal): Promise<Horizon> {
  const { clock, observe } = context;
  const beganMs = clock.monoMs();
  let hasFailed = false;
  for (;;) {
    await trouble.pass(signal);
    const words = await tryToBegin(async () => {
      await syncAccount(context, signal);
      await syncDevices(context, signal);
      await learnTime(context, scanner, signal);
    }, trouble.note);
    if (words === null && hasFailed) observe({ type: 'pass-back' });
    hasFailed = words !== null;
    const horizon = words === null ? horizonNow(context) : null;
    if (horizon !== null) return horizon;
    if (words === null)
      throw new UserError('No device has a reading yet, and the API tells no time: there is nothing to fill.', 3);
    if (clock.monoMs() - beganMs >= STALLED_AFTER_MS) {
      throw new UserError(`Nothing could be read for ten minutes: ${words}. Run it again when the API answers.`, 3);
    }
    observe({ type: 'pass-failed', message: words, waitMs: AGAIN_MS });
    await clock.sleep(AGAIN_MS, signal);
  }
}

/** @returns the words of a failure that may pass; `null` where it went well. @throws UserError where the key is refused. */
async function tryToBegin(work: () => Promise<void>, failed: (fault: ApiFault) => void): Promise<string | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (endsSession(error)) throw refusalOf(error);
    failed(error);
    return error.message;
  }
}
