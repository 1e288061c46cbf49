/**
 * `--once`: closes every hole from now less `sync.history` to what can be claimed at its start, delivers, and ends
 * (design 1.2).
 *
 * It ends with 0 when all is in place, with 3 when it was interrupted or nothing has moved for ten minutes, with 1
 * where running it again will not help. Everything that was reached stays, whatever the end.
 */
import { ApiFault, type ExitCode, UserError } from '../core/faults.ts';
import { holdingsOf, wantedOf } from '../core/holdings.ts';
import { lackStatuses } from '../core/lacks.ts';
import type { LackStatus, StatusGap } from '../core/status.ts';
import { MINUTE_MS, parseTimestamp, SECOND_MS } from '../core/time.ts';
import type { Horizon, SyncContext } from '../sync/context.ts';
import type { Deliverer } from '../sync/deliver.ts';
import { horizonNow, limitFor, stillWantedFrom } from '../sync/horizon.ts';
import { type HousekeepingParts, housekeepOnce, runHousekeeping } from '../sync/housekeeping.ts';
import { type PassResult, runPass } from '../sync/pass.ts';
import type { ProgressWatch } from '../sync/progress-watch.ts';
import type { Puller } from '../sync/pull.ts';

/** After so long without progress it ends. */
const STALLED_AFTER_MS = 10 * MINUTE_MS;

/** Rests between passes that left something open: the first, and the longest. */
const PASS_REST_MS = { first: 5 * SECOND_MS, most: MINUTE_MS };

/** How often delivery is looked after once everything is pulled. */
const DRAIN_LOOK_MS = 200;

export interface OnceParts {
  readonly context: SyncContext;
  readonly puller: Puller;
  readonly deliverers: readonly Deliverer[];
  readonly watch: ProgressWatch;
  readonly housekeeping: HousekeepingParts;
}

/** What `--once --json` prints. */
export interface OnceSummary {
  readonly outcome: 'complete' | 'stalled' | 'interrupted' | 'incomplete for good';
  readonly exit_code: ExitCode;
  readonly workspace_id: string | null;
  readonly devices: number;
  readonly points_archived: number;
  readonly gaps: readonly (StatusGap & { readonly device_id: string })[];
  readonly streams_off: readonly string[];
  readonly rejected_records: number;
  readonly destinations: readonly {
    readonly name: string;
    readonly delivered_points: number;
    readonly pending_points: number;
    readonly quarantined: number;
    /** What it will never have of what was archived, by reason. */
    readonly lacks: readonly LackStatus[];
    readonly held: string | null;
  }[];
}

/**
 * Runs it.
 *
 * @returns the summary; an abort of `signal` is an outcome, not an error.
 * @throws UserError where a person has to act (exit 77 for the key, 1 for the state).
 */
export async function runOnce(parts: OnceParts, signal: AbortSignal): Promise<OnceSummary> {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const deliveries = parts.deliverers.map((deliverer) => deliverer.run(both));
  // A state that cannot be written ends the deliveries: then there is nothing to wait for.
  for (const delivery of deliveries) delivery.catch((error: unknown) => stop.abort(error));
  const progress: Progress = { horizon: null, off: [] };
  try {
    return await pullAndDrain(parts, progress, both);
  } catch (error) {
    if (signal.aborted && !(error instanceof UserError))
      return summarize(parts, { ...progress, outcome: 'interrupted' });
    if (stop.signal.aborted && !(error instanceof UserError)) throw stop.signal.reason;
    throw error;
  } finally {
    stop.abort();
    await Promise.allSettled(deliveries);
  }
}

/** What the passes so far have fixed and found. */
interface Progress {
  horizon: Horizon | null;
  off: PassResult['off'];
}

interface Ending extends Readonly<Progress> {
  readonly outcome: OnceSummary['outcome'];
}

async function pullAndDrain(parts: OnceParts, progress: Progress, signal: AbortSignal): Promise<OnceSummary> {
  const stopHouse = new AbortController();
  // Beside the work, for a state that is full: what may go makes room for what is still to come.
  const house = runHousekeeping(parts.housekeeping, AbortSignal.any([signal, stopHouse.signal]));
  const worked = await Promise.race([workOff(parts, progress, signal), house.then(() => never(signal))]).finally(() => {
    stopHouse.abort();
    return house.catch(() => {});
  });
  await housekeepOnce(parts.housekeeping, signal);
  return summarize(parts, worked);
}

async function never(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  return await Promise.withResolvers<never>().promise;
}

async function workOff(parts: OnceParts, progress: Progress, signal: AbortSignal): Promise<Ending> {
  const ending = await pullAll(parts, progress, signal);
  const drained = await drain(parts, signal);
  const outcome = ending.outcome === 'complete' && !drained ? 'stalled' : ending.outcome;
  return { ...ending, outcome };
}

/** Passes until nothing is open, nothing can be mended, or nothing moves. */
async function pullAll(parts: OnceParts, progress: Progress, signal: AbortSignal): Promise<Ending> {
  const { context, watch } = parts;
  let restMs = PASS_REST_MS.first;
  for (;;) {
    const outcome = await passOnce(parts, { progress, restMs }, signal);
    if (outcome !== null) return { ...progress, outcome };
    if (watch.pullIdleMs() >= STALLED_AFTER_MS) return { ...progress, outcome: 'stalled' };
    await context.clock.sleep(restMs, signal);
    restMs = Math.min(restMs * 2, PASS_REST_MS.most);
  }
}

/** One pass. @returns how the pulling ends with it; `null` where another one may help. */
async function passOnce(
  parts: OnceParts,
  { progress, restMs }: { progress: Progress; restMs: number },
  signal: AbortSignal,
): Promise<'complete' | 'incomplete for good' | null> {
  const { context, puller } = parts;
  try {
    const onHorizon = (horizon: Horizon): void => {
      progress.horizon ??= horizon;
    };
    const plan = { puller, fixed: progress.horizon, historyMs: Number.POSITIVE_INFINITY, onHorizon };
    const { off, unread } = await runPass(context, plan, signal);
    progress.off = off;
    if (unread.length > 0) return null;
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (isRefusal(error)) throw refusalOf(error);
    context.observe({ type: 'pass-failed', message: error.message, waitMs: restMs });
    return null;
  }
  const open = openGaps(parts, progress.horizon);
  if (open.length === 0 || progress.off.includes('telemetry')) return 'complete';
  return open.every(({ reason }) => reason === 'beyond plan') ? 'incomplete for good' : null;
}

/** Holes that no work closes, by their reason: named in the summary, not waited for. */
const CLOSED_BY_NONE: readonly string[] = ['device gone', 'excluded'];

/** The holes that more work could close. */
function openGaps(parts: OnceParts, horizon: Horizon | null): OnceSummary['gaps'] {
  return allGaps(parts, horizon).filter(({ reason }) => !CLOSED_BY_NONE.includes(reason));
}

function allGaps({ context }: OnceParts, horizon: Horizon | null): OnceSummary['gaps'] {
  if (horizon === null) return [];
  const { store, settings } = context;
  const from = horizon.wantedFrom;
  // What the plan hides and has left the wanted span meanwhile is not missed.
  const stillWanted = stillWantedFrom(context);
  const isPast = ({ to, reason }: StatusGap): boolean =>
    reason === 'beyond plan' && (parseTimestamp(to) ?? stillWanted) <= stillWanted;
  return store.devices().flatMap((device) => {
    const { deviceId } = device.record;
    const state = store.telemetry(deviceId);
    const wanted = wantedOf(device, { from, to: limitFor(horizon, state) });
    const held = { spans: state.spans, gaps: store.gaps(deviceId) };
    const isExcluded = settings.filter.excludes(device.record);
    const holes = holdingsOf({ ...device, isExcluded }, held, wanted).holes.filter((hole) => !isPast(hole));
    return holes.map((hole) => ({ device_id: deviceId, ...hole }));
  });
}

function isRefusal({ kind }: ApiFault): boolean {
  return kind === 'unauthorized' || kind === 'no-api-access' || kind === 'scope-missing';
}

function refusalOf({ kind, facts }: ApiFault): UserError {
  if (kind === 'unauthorized') {
    return new UserError(
      'api.key: the API refuses the key: it is unknown, revoked or expired. Create one in the dashboard (Settings, then API) and give it as api.key.',
      77,
    );
  }
  if (kind === 'no-api-access') {
    return new UserError('The plan of this workspace has no access to the API. A plan that includes it is needed.', 77);
  }
  return new UserError(
    `api.key: the key lacks the scope ${facts.scope ?? 'devices:read'}, without which nothing can be synced. Create a key that has it.`,
    77,
  );
}

/** Waits until every destination has everything. @returns whether that was reached. */
async function drain({ context, deliverers, watch }: OnceParts, signal: AbortSignal): Promise<boolean> {
  for (const deliverer of deliverers) deliverer.ring();
  while (deliverers.some((deliverer) => deliverer.pendingLines() > 0)) {
    if (watch.idleMs() >= STALLED_AFTER_MS) return false;
    await context.clock.sleep(DRAIN_LOOK_MS, signal);
  }
  return true;
}

const EXIT_CODES: Readonly<Record<OnceSummary['outcome'], ExitCode>> = {
  complete: 0,
  stalled: 3,
  interrupted: 3,
  'incomplete for good': 1,
};

function summarize(parts: OnceParts, { outcome, horizon, off }: Ending): OnceSummary {
  const { store } = parts.context;
  const totals = store.totals();
  // Where no pass has come to its end, what is open counts from here.
  const gaps = allGaps(parts, horizon ?? horizonNow(parts.context));
  return {
    outcome,
    exit_code: EXIT_CODES[outcome],
    workspace_id: store.workspaceTag(),
    devices: store.devices().length,
    points_archived: totals.points,
    gaps,
    streams_off: off,
    rejected_records: totals.rejectedRecords,
    destinations: parts.deliverers.map((deliverer) => {
      const { pendingLines, quarantined } = store.backlog(deliverer.destinationId);
      return {
        name: deliverer.name,
        delivered_points: deliverer.deliveredLines(),
        pending_points: pendingLines,
        quarantined,
        lacks: lackStatuses(store.lackSums(deliverer.destinationId)),
        held: deliverer.held(),
      };
    }),
  };
}
