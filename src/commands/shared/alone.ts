/**
 * What `--once` and a lone `--backfill` share: they run the deliveries and the maintenance beside their work, and
 * wait at the end until every destination has what was archived.
 */
import { type MaintenanceParts, maintainOnce, runMaintenance } from '../../archive/maintenance.ts';
import { linkAbort, pollUntil } from '../../core/async.ts';
import { UserError } from '../../core/faults.ts';
import { STALLED_AFTER_MS } from '../../core/retry.ts';
import { LOG_LANES } from '../../core/state/log.ts';
import { SECOND_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { createProgressWatch } from '../../scheduler/progress.ts';

/** How often the deliveries are checked. */
const DELIVERY_CHECK_MS = SECOND_MS / 5;

/** A position in the log as a number: lines of a block are fewer than this. */
const LINES_A_BLOCK = 1_000_000;

/**
 * Does work that archives and waits for delivery, with the deliveries and the maintenance beside it.
 *
 * @throws what the work throws; what ended the deliveries, where the state cannot be written.
 */
export async function besideDeliveries<T>(
  { deliverers, maintenance }: { readonly deliverers: readonly Deliverer[]; readonly maintenance: MaintenanceParts },
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const link = linkAbort(signal);
  const deliveries = deliverers.map((deliverer) => deliverer.run(link.signal));
  // A state that cannot be written ends the deliveries: then there is nothing to wait for.
  for (const delivery of deliveries) delivery.catch(link.abort);
  try {
    return await besideMaintenance(maintenance, work, link.signal);
  } catch (error) {
    if (!signal.aborted && link.signal.aborted && !(error instanceof UserError)) throw link.signal.reason;
    throw error;
  } finally {
    link.release();
    link.abort(new Error('the work is done'));
    await Promise.allSettled(deliveries);
  }
}

async function besideMaintenance<T>(
  maintenance: MaintenanceParts,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const link = linkAbort(signal);
  // Maintenance runs beside the work: in a full state it makes room for new points.
  const running = runMaintenance(maintenance, link.signal);
  const worked = await Promise.race([work(signal), running.then(() => never(signal))]).finally(() => {
    link.release();
    link.abort(new Error('the work is done'));
    return running.catch(() => {});
  });
  await maintainOnce(maintenance, signal);
  return worked;
}

async function never(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  return await Promise.withResolvers<never>().promise;
}

/**
 * Waits until every destination has what was archived by now.
 *
 * @param stalledAfterMs how long nothing may move.
 * @returns whether that was reached.
 */
export async function untilDelivered(
  { context, deliverers }: { readonly context: SyncContext; readonly deliverers: readonly Deliverer[] },
  signal: AbortSignal,
  stalledAfterMs = STALLED_AFTER_MS,
): Promise<boolean> {
  const { store, clock } = context;
  const ends = LOG_LANES.map((lane) => [lane, store.endOf(lane)] as const);
  const hasAll = (deliverer: Deliverer): boolean =>
    ends.every(([lane, end]) => store.position(deliverer.destinationId, lane).block >= end.block) ||
    deliverer.pendingLines() === 0;
  const placeOf = ({ destinationId }: Deliverer): number =>
    LOG_LANES.map((lane) => store.position(destinationId, lane)).reduce(
      (sum, { block, line }) => sum + block * LINES_A_BLOCK + line,
      0,
    );
  const watch = createProgressWatch(clock);
  for (const { notify } of deliverers) notify();
  const step = (): boolean | null => {
    if (deliverers.every(hasAll)) return true;
    const left = -deliverers.reduce((sum, deliverer) => sum + placeOf(deliverer), 0);
    return watch.idleMs({ left, waits: false }) >= stalledAfterMs ? false : null;
  };
  return await pollUntil(clock, step, { everyMs: DELIVERY_CHECK_MS }, signal);
}
