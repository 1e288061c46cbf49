/**
 * Runs the deliveries and the maintenance during a command that archives without a daemon (`--once`, `--backfill`,
 * `--verify --repair`), and waits at its end until every destination has the archived points.
 *
 * Such a command ends with an outcome and its exit code, at the latest after some time without progress. Progress means
 * that less work is left; a request that returns nothing is no progress. Time spent waiting for a turn or for quota
 * does not count.
 */
import { type MaintenanceParts, maintainOnce, runMaintenance } from '../../archive/maintenance.ts';
import { pollUntil, runUntilFirst } from '../../core/async.ts';
import { missingStatuses } from '../../core/device-coverage.ts';
import { ApiFault, type ExitCode, type UserError } from '../../core/faults.ts';
import type { Clock, RequestLane } from '../../core/ports.ts';
import { STALLED_AFTER_MS } from '../../core/retry.ts';
import { LOG_LANES } from '../../core/state/log.ts';
import type { DestinationStatus } from '../../core/status.ts';
import { SECOND_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { ApiState } from '../../scheduler/api-state.ts';
import { runOneOff } from '../../scheduler/session.ts';
import { rejectionOf } from './command.ts';

const DELIVERY_CHECK_MS = SECOND_MS / 5;

/** Converts a position in the log to a number: a block has fewer lines than this. */
const LINES_A_BLOCK = 1_000_000;

/**
 * Runs work that archives and waits for delivery, together with the deliveries and the maintenance.
 *
 * @returns the result of the work, even if that is its reaction to an abort of `signal`.
 * @throws errors of the work; those of the deliveries or the maintenance if the state cannot be written.
 */
export async function runBesideDeliveries<T>(
  { deliverers, maintenance }: { readonly deliverers: readonly Deliverer[]; readonly maintenance: MaintenanceParts },
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const working = Promise.withResolvers<T>();
  const loops = [
    ...deliverers.map(({ run }) => run),
    // In a full state the maintenance frees space for new points.
    async (stop: AbortSignal) => await runMaintenance(maintenance, stop),
  ];
  const works = [
    async (stop: AbortSignal): Promise<T> => {
      working.resolve(work(stop));
      return await working.promise;
    },
    ...loops.map((loop) => async (stop: AbortSignal): Promise<T> => {
      await loop(stop).catch((error: unknown) => {
        if (!stop.aborted) throw error;
      });
      // If a loop was stopped, the work still gives the result.
      return await working.promise;
    }),
  ];
  const worked = await runUntilFirst(works, { signal, reason: 'finished' });
  await maintainOnce(maintenance, signal);
  return worked;
}

/**
 * Runs the session of a one-off, which sends the planner's requests.
 *
 * @throws UserError if the API rejects the key.
 */
export async function runOneOffSession(...[parts, start, signal]: Parameters<typeof runOneOff>): Promise<never> {
  try {
    return await runOneOff(parts, start, signal);
  } catch (error) {
    throw error instanceof ApiFault ? rejectionOf(error) : error;
  }
}

/**
 * Waits until every destination has the points that are archived now.
 *
 * @param stalledAfterMs the longest time without progress.
 * @returns whether every destination has them.
 */
export async function waitUntilDelivered(
  { context, deliverers }: { readonly context: SyncContext; readonly deliverers: readonly Deliverer[] },
  signal: AbortSignal,
  stalledAfterMs = STALLED_AFTER_MS,
): Promise<boolean> {
  const { store, clock } = context;
  const ends = LOG_LANES.map((lane) => [lane, store.endOf(lane)] as const);
  const hasAll = (deliverer: Deliverer): boolean =>
    ends.every(([lane, end]) => store.position(deliverer.destinationId, lane).block >= end.block) ||
    deliverer.pendingLines() === 0;
  const positionOf = ({ destinationId }: Deliverer): number =>
    LOG_LANES.map((lane) => store.position(destinationId, lane)).reduce(
      (sum, { block, line }) => sum + block * LINES_A_BLOCK + line,
      0,
    );
  const watch = createProgressWatch(clock);
  for (const { notify } of deliverers) notify();
  const step = (): boolean | null => {
    if (deliverers.every(hasAll)) return true;
    const left = -deliverers.reduce((sum, deliverer) => sum + positionOf(deliverer), 0);
    return watch.record({ left, waits: false }) >= stalledAfterMs ? false : null;
  };
  return await pollUntil(clock, step, { everyMs: DELIVERY_CHECK_MS }, signal);
}

/** How work that archives has ended. */
export type Outcome = 'complete' | 'stalled' | 'interrupted' | 'gaps_remain';

export const OUTCOME_EXIT_CODES: Readonly<Record<Outcome, ExitCode>> = {
  complete: 0,
  stalled: 3,
  interrupted: 3,
  gaps_remain: 1,
};

/** Whether a value, possibly of another version, is an outcome. */
export function isOutcome(value: unknown): value is Outcome {
  return typeof value === 'string' && Object.hasOwn(OUTCOME_EXIT_CODES, value);
}

/** Waits for the delivery of the archived points. If that fails, the work has stalled, whatever it has read. */
export async function outcomeAfterDelivery(
  parts: Parameters<typeof waitUntilDelivered>[0],
  outcome: Outcome,
  signal: AbortSignal,
): Promise<Outcome> {
  const isDelivered = await waitUntilDelivered(parts, signal);
  return isDelivered ? outcome : 'stalled';
}

/**
 * The state of each destination at the end of such work. If the outcome is complete, each has every point that was
 * archived by then (`outcomeAfterDelivery`): pending points come from later polls of a daemon and are not part of the
 * work.
 *
 * @param deliveredBefore how many points each destination had acknowledged before the work began
 */
export function destinationStatuses(
  store: SyncContext['store'],
  deliverers: readonly Deliverer[],
  deliveredBefore: readonly number[],
  outcome: Outcome,
): DestinationStatus[] {
  const isDelivered = outcome === 'complete' || outcome === 'gaps_remain';
  return deliverers.map((deliverer, index) => {
    const { pendingLines, quarantined } = store.backlog(deliverer.destinationId);
    return {
      name: deliverer.name,
      delivered_points: deliverer.deliveredLines() - (deliveredBefore[index] ?? 0),
      pending_points: isDelivered ? 0 : pendingLines,
      quarantined,
      missing: missingStatuses(store.missingSums(deliverer.destinationId)),
      blocked_reason: deliverer.blockedReason(),
    };
  });
}

/** How often the gaps of such work are queued again, because a gap that was resting may be due. */
export const REOPEN_EVERY_MS = 5 * SECOND_MS;

/** The state of the work at a check. */
interface WorkView {
  /** The remaining work, in any unit. */
  readonly left: number | bigint;
  /** Whether the work waits for something that it cannot speed up. */
  readonly waits: boolean;
}

/** Measures how long work has made no progress. */
export interface ProgressWatch {
  /**
   * Records the state of the work.
   *
   * @returns how long the work has made no progress, in ms.
   */
  record(view: WorkView): number;
}

/** A watch over work that begins now. */
export function createProgressWatch(clock: Pick<Clock, 'monoMs'>): ProgressWatch {
  let least: number | bigint = Number.POSITIVE_INFINITY;
  let idleMs = 0;
  let atMs = clock.monoMs();
  return {
    record: ({ left, waits }) => {
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

/** The facts that distinguish waiting work from stalled work. */
export interface WaitingParts {
  readonly context: Pick<SyncContext, 'space'>;
  readonly apiState: ApiState;
  /** Whether the quota allows no request now. Waiting only for even spacing does not count. */
  readonly waitsForQuota: () => boolean;
  /** Whether requests are rejected for the quota repeatedly, although every wait was observed. */
  readonly isRejectedRepeatedly: () => boolean;
}

/**
 * Whether work waits for quota, or has requests queued in lanes that work and have quota. If the service rejects
 * requests again after each wait that it requested, that does not count as waiting.
 */
export function isWaiting(
  { context, apiState, waitsForQuota, isRejectedRepeatedly }: WaitingParts,
  { isQueued, lanes }: { readonly isQueued: boolean; readonly lanes: readonly RequestLane[] },
): boolean {
  if (isRejectedRepeatedly()) return false;
  if (waitsForQuota()) return true;
  return isQueued && apiState.fault === null && !lanes.some((lane) => apiState.failing.has(lane)) && context.space().ok;
}

/** The checks by which work waits for the account and the device list before it starts. */
interface StartCheck<T> {
  /** Returns the data that the work starts with; `null` while it is not known. */
  readonly findStart: () => T | null;
  /** Whether the account or the device list is still to be read. */
  readonly isUnread: () => boolean;
  /** The error after ten minutes (not counting the wait for quota) without the account or the device list. */
  readonly failure: () => UserError;
}

/**
 * Waits until the account and the devices were read.
 *
 * @throws UserError (exit 3) if they could not be read for ten minutes; errors of the check.
 */
export async function waitUntilListed<T>(
  parts: WaitingParts & { readonly context: Pick<SyncContext, 'clock'> },
  { findStart, isUnread, failure }: StartCheck<T>,
  signal: AbortSignal,
): Promise<T> {
  const { clock } = parts.context;
  const watch = createProgressWatch(clock);
  const step = (): T | null => {
    const found = findStart();
    if (found !== null) return found;
    const waits = isWaiting(parts, { isQueued: isUnread(), lanes: ['inventory'] });
    if (watch.record({ left: Number.POSITIVE_INFINITY, waits }) >= STALLED_AFTER_MS) {
      throw failure();
    }
    return null;
  };
  return await pollUntil(clock, step, { everyMs: SECOND_MS }, signal);
}
