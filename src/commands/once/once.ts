/**
 * `--once`: closes every hole from now less `sync.history` to what can be claimed at its start, delivers, and ends.
 *
 * It ends with 0 when all is in place, with 3 when it was interrupted or nothing has moved for ten minutes, with 1
 * where running it again will not help. Everything that was reached stays, whatever the end.
 */

import { type MaintenanceParts, maintainOnce, runMaintenance } from '../../archive/maintenance.ts';
import { UserError } from '../../core/faults.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { PageScanner } from '../../ingest/page-scan.ts';
import type { ProgressWatch } from '../../scheduler/progress-watch.ts';
import { STALLED_AFTER_MS } from '../shared/refusal.ts';
import { type Ending, type Progress, pullAll } from './pull.ts';
import { type OnceSummary, summarize } from './summary.ts';

export type { OnceSummary } from './summary.ts';

/** How often delivery is looked after once everything is pulled. */
const DRAIN_LOOK_MS = 200;

export interface OnceParts {
  readonly context: SyncContext;
  readonly scanner: PageScanner;
  readonly deliverers: readonly Deliverer[];
  readonly watch: ProgressWatch;
  readonly housekeeping: MaintenanceParts;
}

/**
 * Runs it.
 *
 * @returns the summary; an abort of `signal` is an outcome, not an error.
 * @throws UserError where a person has to act (exit 77 for the key, 1 for the state).
 */
export async function runOnce(parts: OnceParts, signal: AbortSignal): Promise<OnceSummary> {
  const progress: Progress = { horizon: null, off: [] };
  try {
    const worked = await besideDeliveries(parts, (both) => workOff(parts, progress, both), signal);
    return summarize(parts, worked);
  } catch (error) {
    if (signal.aborted && !(error instanceof UserError))
      return summarize(parts, { ...progress, outcome: 'interrupted' });
    throw error;
  }
}

/**
 * Does work that archives and waits for delivery, with the deliveries and the housekeeping beside it.
 *
 * @throws what the work throws; what ended the deliveries, where the state cannot be written.
 */
export async function besideDeliveries<T>(
  { deliverers, housekeeping }: Pick<OnceParts, 'deliverers' | 'housekeeping'>,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const deliveries = deliverers.map((deliverer) => deliverer.run(both));
  // A state that cannot be written ends the deliveries: then there is nothing to wait for.
  for (const delivery of deliveries) delivery.catch((error: unknown) => stop.abort(error));
  try {
    return await besideHouse(housekeeping, work, both);
  } catch (error) {
    if (!signal.aborted && stop.signal.aborted && !(error instanceof UserError)) throw stop.signal.reason;
    throw error;
  } finally {
    stop.abort();
    await Promise.allSettled(deliveries);
  }
}

async function besideHouse<T>(
  housekeeping: MaintenanceParts,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const stopHouse = new AbortController();
  // Beside the work, for a state that is full: what may go makes room for what is still to come.
  const house = runMaintenance(housekeeping, AbortSignal.any([signal, stopHouse.signal]));
  const worked = await Promise.race([work(signal), house.then(() => never(signal))]).finally(() => {
    stopHouse.abort();
    return house.catch(() => {});
  });
  await maintainOnce(housekeeping, signal);
  return worked;
}

async function never(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  return await Promise.withResolvers<never>().promise;
}

async function workOff(parts: OnceParts, progress: Progress, signal: AbortSignal): Promise<Ending> {
  const ending = await pullAll({ ...parts, pullIdleMs: parts.watch.pullIdleMs }, progress, signal);
  const drained = await drain(parts, signal);
  const outcome = ending.outcome === 'complete' && !drained ? 'stalled' : ending.outcome;
  return { ...ending, outcome };
}

/** Waits until every destination has everything. @returns whether that was reached. */
async function drain({ context, deliverers, watch }: OnceParts, signal: AbortSignal): Promise<boolean> {
  for (const deliverer of deliverers) deliverer.notify();
  while (deliverers.some((deliverer) => deliverer.pendingLines() > 0)) {
    if (watch.idleMs() >= STALLED_AFTER_MS) return false;
    await context.clock.sleep(DRAIN_LOOK_MS, signal);
  }
  return true;
}
