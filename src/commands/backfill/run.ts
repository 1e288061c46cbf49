/**
 * Runs a backfill to its end, alone or as a job: watches its progress, waits for delivery and makes the summary. Alone
 * it is the scheduler with the backfill as its only goal and with the full budget.
 *
 * It ends when no gap of the range can be closed any more and every destination has the points that were archived by
 * then. It also ends after ten minutes without progress; time spent waiting for quota or for a turn does not count.
 */

import type { MaintenanceParts } from '../../archive/maintenance.ts';
import { pollUntil, runUntilFirst } from '../../core/async.ts';
import { PENDING } from '../../core/device-coverage.ts';
import { scopeAdvice, UserError } from '../../core/faults.ts';
import { STALLED_AFTER, STALLED_AFTER_MS } from '../../core/retry.ts';
import type { BackfillArgs } from '../../core/state/job-args.ts';
import type { ProgressReport } from '../../core/status.ts';
import { MINUTE_MS, SECOND_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import { wantedNow } from '../../ingest/wanted-range.ts';
import type { ApiState } from '../../scheduler/api-state.ts';
import { type Backfill, beginBackfill } from '../../scheduler/backfill.ts';
import { type OneOff, type Planning, reopenDevice } from '../../scheduler/planning.ts';
import type { SessionParts } from '../../scheduler/session.ts';
import {
  createProgressWatch,
  isWaiting,
  type Outcome,
  outcomeAfterDelivery,
  REOPEN_EVERY_MS,
  runBesideDeliveries,
  runOneOffSession,
  type WaitingParts,
  waitUntilListed,
} from '../shared/alone.ts';
import { rejectionOf } from '../shared/command.ts';
import {
  type BackfillView,
  backfillEta,
  backfillView,
  createEstimate,
  dayWaitText,
  type EstimateParts,
  type EtaParts,
  updateEstimate,
  waitsFor,
} from './progress.ts';
import { type BackfillSummary, summarizeBackfill } from './result.ts';

/** The parts that a backfill needs, alone or in a daemon. */
export interface BackfillWorkParts extends EstimateParts, WaitingParts {
  readonly context: EstimateParts['context'];
  readonly deliverers: readonly Deliverer[];
  readonly planning: Planning;
  /** Until when all requests, and those of history and backfill, wait for quota, RFC 3339. */
  readonly quotaWaits: () => ProgressReport['allowance'];
  readonly backfill: EtaParts['backfill'] & { sentMs(): readonly number[] };
}

/** A running backfill. */
export interface BackfillRun {
  /** Runs the backfill to its end and returns the summary. Throws the abort reason of `signal`. */
  toItsEnd(signal: AbortSignal): Promise<BackfillSummary>;
  progress(): ProgressReport;
  summary(outcome: Outcome): BackfillSummary;
}

/** The result of the last progress check. `progress` shows it without another check. */
interface LastCheck {
  view: BackfillView;
  /** The estimated time left; `null` while unknown. */
  eta: NonNullable<ProgressReport['eta']> | null;
}

/** How often the progress is checked. */
const BACKFILL_CHECK_MS = 2 * SECOND_MS;

/** Creates the run of a backfill that has started. */
export function createBackfillRun(
  parts: BackfillWorkParts,
  backfill: Backfill,
  { isBeside }: { readonly isBeside: boolean },
): BackfillRun {
  const { context, deliverers } = parts;
  const deliveredBefore = deliverers.map((deliverer) => deliverer.deliveredLines());
  const lastCheck: LastCheck = { view: backfillView(context, backfill), eta: null };
  const summary = (outcome: Outcome): BackfillSummary =>
    summarizeBackfill({ context, deliverers, backfill, deliveredBefore }, outcome);
  return {
    summary,
    toItsEnd: async (signal) => {
      const outcome = await waitUntilClosed(parts, { backfill, lastCheck }, signal);
      const end = await outcomeAfterDelivery(parts, outcome, signal);
      if (end === 'complete' || end === 'gaps_remain') backfill.recheck?.end();
      return summary(end);
    },
    progress: () => {
      const { view, eta } = lastCheck;
      const { tally } = backfill;
      const waits = waitsFor(view, backfill.leavesNewest());
      const dayWaits = dayWaitText(backfill.rate.dayFreeAtMs(), context.serverClock.nowMs());
      const isWhole = backfill.args.from !== 'all' && view.wholeMs > 0;
      return {
        totals: {
          devices: view.devices.length,
          devices_complete: view.devices.filter(({ openMs, unread }) => openMs === 0 && unread.length === 0).length,
          archived_readings: tally.counts().readings,
          requests: tally.counts().requests,
          covered_share: isWhole ? 1 - view.leftMs / view.wholeMs : null,
        },
        destinations: deliverers.map((deliverer, index) => ({
          pending_points: deliverer.pendingLines(),
          // Beside it, the daemon delivers the points of its own polls as well.
          delivered_points: isBeside ? null : deliverer.deliveredLines() - (deliveredBefore[index] ?? 0),
        })),
        allowance: parts.quotaWaits(),
        eta: waits === null ? eta : null,
        waits: waits ?? dayWaits,
        requests_per_minute: tally.perMinute(MINUTE_MS),
      };
    },
  };
}

/** Waits until no gap can be closed any more. */
async function waitUntilClosed(
  parts: BackfillWorkParts,
  { backfill, lastCheck }: { readonly backfill: Backfill; readonly lastCheck: LastCheck },
  signal: AbortSignal,
): Promise<Outcome> {
  const { context, apiState } = parts;
  const { clock } = context;
  const watch = createProgressWatch(clock);
  const estimate = createEstimate(parts, backfill);
  const reopen = createReopening(parts);
  const step = (): Outcome | null => {
    const view = backfillView(context, backfill);
    lastCheck.view = view;
    const outcome = backfillOutcome(view, backfill);
    if (outcome !== null) return outcome;
    throwIfRejected(apiState);
    const waits = isWaiting(parts, { isQueued: view.openFor.has(PENDING), lanes: ['backfill'] });
    if (watch.record({ left: view.leftMs, waits }) >= STALLED_AFTER_MS) return 'stalled';
    updateEstimate(estimate);
    lastCheck.eta = backfillEta(parts, backfill, estimate.left);
    if (backfill.args.finishByMs !== null) backfill.rate.setLeft(estimate.left?.requests ?? 0);
    reopen(view);
    return null;
  };
  return await pollUntil(clock, step, { everyMs: BACKFILL_CHECK_MS }, signal);
}

/** Queues the gaps again every few seconds, because a gap that was resting may be due. */
function createReopening({ context: { clock }, planning }: BackfillWorkParts): (view: BackfillView) => void {
  let atMs = clock.monoMs();
  return ({ devices }) => {
    if (clock.monoMs() - atMs < REOPEN_EVERY_MS) return;
    for (const { deviceId, openMs, unread } of devices) {
      if (openMs > 0 || unread.length > 0) reopenDevice(planning, deviceId);
    }
    planning.wakeUp.notify();
    atMs = clock.monoMs();
  };
}

/** The outcome. A backfill of `all` does not count ranges that the plan hides. */
function backfillOutcome({ openFor }: BackfillView, { args }: Backfill): Outcome | null {
  const left = [...openFor];
  if (left.length === 0) return 'complete';
  if (left.some((reason) => reason !== 'beyond_plan')) return null;
  return args.from === 'all' ? 'complete' : 'gaps_remain';
}

/** Throws UserError (exit 77) if the key cannot be used. */
export function throwIfRejected({ rejection, streams }: ApiState): void {
  if (rejection !== null) throw rejectionOf(rejection);
  const { missingScope } = streams.telemetry;
  if (missingScope === null) return;
  const { what, remedy } = scopeAdvice(missingScope);
  throw new UserError(`api.key: ${what}`, `${remedy}.`, 77);
}

interface BackfillParts extends BackfillWorkParts, SessionParts {
  readonly context: EstimateParts['context'];
  readonly planning: Planning;
  readonly apiState: ApiState;
  readonly maintenance: MaintenanceParts;
  /** Called once the range to fill is known. */
  readonly onStarted?: (run: BackfillRun) => void;
}

/**
 * Runs the backfill alone.
 *
 * @returns the summary; an abort of `signal` is an outcome once the backfill has begun.
 * @throws UserError if a person has to act (2, 77, 1), or if it could not begin (3).
 */
export async function runBackfill(
  parts: BackfillParts,
  args: BackfillArgs,
  signal: AbortSignal,
): Promise<BackfillSummary> {
  const begun: Started = { run: null };
  const works = [
    async (stop: AbortSignal) => await runBackfillSession(parts, { args, begun }, stop),
    async (stop: AbortSignal) => await (await waitUntilStarted(parts, begun, stop)).toItsEnd(stop),
  ];
  const fill = async (both: AbortSignal): Promise<BackfillSummary> =>
    await runUntilFirst(works, { signal: both, reason: 'the backfill has ended' });
  try {
    return await runBesideDeliveries(parts, fill, signal);
  } catch (error) {
    if (!signal.aborted || error instanceof UserError) throw error;
    if (begun.run === null) throw new UserError('Stopped before the backfill started. Nothing was done.', null, 3);
    return begun.run.summary('interrupted');
  }
}

interface Started {
  run: BackfillRun | null;
}

/** Sends the planner's requests. */
async function runBackfillSession(
  parts: BackfillParts,
  { args, begun }: { args: BackfillArgs; begun: Started },
  signal: AbortSignal,
): Promise<never> {
  const { context } = parts;
  const begin = (): OneOff => {
    const wantedRange = wantedNow(context);
    if (wantedRange === null)
      throw new UserError(
        'The current time of the API is unknown (no Date header and no reading), so there is no range to read',
        'Run the command again when a device has reported.',
        3,
      );
    const { budgets, sentMs } = parts.backfill;
    const backfill = beginBackfill(context, { args, wantedRange, sentMs: sentMs(), budgets, isBeside: false });
    begun.run = createBackfillRun(parts, backfill, { isBeside: false });
    parts.onStarted?.(begun.run);
    return { lane: 'backfill', goal: backfill, streams: [] };
  };
  // The devices of a backfill are fixed at its start, so it waits for the list.
  return await runOneOffSession(parts, { begin, mayGoUnlisted: false }, signal);
}

async function waitUntilStarted(parts: BackfillParts, begun: Started, signal: AbortSignal): Promise<BackfillRun> {
  const failure = (): UserError => {
    const what = `Nothing could be read for ${STALLED_AFTER}: ${parts.apiState.fault ?? 'the archive is full'}`;
    return new UserError(what, 'Run the command again when the API answers.', 3);
  };
  return await waitUntilListed(parts, { findStart: () => begun.run, isUnread: () => true, failure }, signal);
}
