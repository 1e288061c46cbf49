/**
 * `--once`: closes every gap from now less `sync.history` to what can be claimed at its start, reads the alerts to their
 * end, delivers, and ends. It is the scheduler running alone until nothing is left to do.
 *
 * It ends with 0 when all is in place, with 3 when it was interrupted or nothing has moved for ten minutes, with 1
 * where running it again will not help. Everything that was reached stays, whatever the end.
 */
import type { MaintenanceParts } from '../../archive/maintenance.ts';
import { StateFullError } from '../../core/archive-room.ts';
import { firstOf } from '../../core/async.ts';
import { ApiFault, UserError } from '../../core/faults.ts';
import { SECOND_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { Horizon, SyncContext } from '../../ingest/context.ts';
import { horizonNow } from '../../ingest/horizon.ts';
import { noteCoverage } from '../../scheduler/coverage-points.ts';
import { createWantedGoal } from '../../scheduler/goal.ts';
import { type Alone, type Planning, reopenDevice } from '../../scheduler/planning.ts';
import { createProgressWatch, isWaiting, STALLED_AFTER_MS, type WaitingParts } from '../../scheduler/progress.ts';
import { runAlone, type SessionParts } from '../../scheduler/session.ts';
import type { Standing } from '../../scheduler/standing.ts';
import { besideDeliveries, untilDelivered } from '../shared/alone.ts';
import { refusalOf } from '../shared/refusal.ts';
import {
  type DeviceGap,
  lengthOf,
  type OnceEnding,
  type OnceOutcome,
  type OnceSummary,
  openGaps,
  summarize,
} from './result.ts';

interface OnceParts extends SessionParts, WaitingParts {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
  readonly housekeeping: MaintenanceParts;
}

/** One run, whoever asks the API for it. */
export interface OnceRun {
  /** When it began, by the monotonic clock: what was read since counts. */
  readonly beganMs: number;
  /** What is wanted of it; `null` until that is known. */
  horizon: Horizon | null;
  /** Whether what it needs was asked for: before, nothing is known of what is left. */
  hasBegun: boolean;
}

/** How often a run is looked at at the latest, how long it is looked at at most, and how often what rested is taken up again. */
const LOOK_EVERY_MS = 5 * SECOND_MS;
const LOOK_PART = 0.05;
const REOPEN_EVERY_MS = 5 * SECOND_MS;

/** A run that begins now. */
export function createOnceRun({ clock }: Pick<SyncContext, 'clock'>): OnceRun {
  return { beganMs: clock.monoMs(), horizon: null, hasBegun: false };
}

/**
 * Runs it.
 *
 * @returns the summary; an abort of `signal` is an outcome, not an error.
 * @throws UserError where a person has to act (exit 77 for the key, 1 for the state).
 */
export async function runOnce(parts: OnceParts, signal: AbortSignal): Promise<OnceSummary> {
  const run = createOnceRun(parts.context);
  try {
    const outcome = await besideDeliveries(parts, async (both) => await workOff(parts, run, both), signal);
    return summarize(parts, endingOf(parts, run, outcome));
  } catch (error) {
    if (!signal.aborted || error instanceof UserError) throw error;
    return summarize(parts, endingOf(parts, run, 'interrupted'));
  }
}

/** How a run has ended. */
export function endingOf(
  { standing }: { readonly standing: Standing },
  run: OnceRun,
  outcome: OnceOutcome,
): OnceEnding {
  const off = (['account', 'alerts', 'telemetry'] as const).filter(
    (stream) => standing.streams[stream].lackedScope !== null,
  );
  return { outcome, off, horizon: run.horizon };
}

async function workOff(parts: OnceParts, run: OnceRun, signal: AbortSignal): Promise<OnceOutcome> {
  const { context } = parts;
  const works = [
    async (stop: AbortSignal) => await ask(parts, run, stop),
    async (stop: AbortSignal) => await untilClosed(parts, run, stop),
  ];
  const outcome = await firstOf(works, { signal, reason: 'everything is read' });
  keepNotes(context, run);
  const isDelivered = await untilDelivered(parts, signal);
  return outcome === 'complete' && !isDelivered ? 'stalled' : outcome;
}

/** Asks the API for what the planner decides on. @throws UserError where the key is refused. */
async function ask(parts: OnceParts, run: OnceRun, signal: AbortSignal): Promise<never> {
  const begin = (areListed: boolean): Alone => {
    const horizon = horizonNow(parts.context);
    Object.assign(run, { horizon, hasBegun: true });
    const goal = horizon === null ? null : createWantedGoal(parts.context, horizon);
    return { lane: 'first-history', goal, streams: areListed ? ['alerts'] : ['alerts', 'devices'] };
  };
  try {
    return await runAlone(parts, begin, signal);
  } catch (error) {
    throw error instanceof ApiFault ? refusalOf(error) : error;
  }
}

/** What is to be noted of what is held now. */
function keepNotes(context: SyncContext, { horizon }: OnceRun): void {
  if (horizon === null) return;
  context.filterNotes.telemetryRead();
  try {
    noteCoverage(context, horizon);
  } catch (error) {
    if (!(error instanceof StateFullError)) throw error;
    context.stateFull(error);
  }
}

export interface WatchParts extends WaitingParts {
  readonly context: SyncContext;
  readonly planning: Planning;
}

/** Waits until nothing is open, nothing that is left can be had, or nothing moves. */
async function untilClosed(parts: WatchParts, run: OnceRun, signal: AbortSignal): Promise<OnceOutcome> {
  const { clock } = parts.context;
  const step = createLook(parts, run);
  for (;;) {
    signal.throwIfAborted();
    const atMs = clock.monoMs();
    const outcome = step();
    if (outcome !== null) return outcome;
    const tookMs = clock.monoMs() - atMs;
    if (tookMs > 0) await clock.sleep(tookMs / LOOK_PART, signal);
    await parts.planning.rested.wait(LOOK_EVERY_MS, signal);
  }
}

/** A look at how far a run is. @returns what it has come to; `null` while it goes on. */
export function createLook(parts: WatchParts, run: OnceRun): () => OnceOutcome | null {
  const { context, planning } = parts;
  const { clock } = context;
  const watch = createProgressWatch(clock);
  let reopenedMs = clock.monoMs();
  return () => {
    const gaps = openGaps(context, run.horizon);
    const outcome = outcomeOf(parts, run, gaps);
    if (outcome !== null) return outcome;
    const open = gaps.reduce((sum, gap) => sum + lengthOf(gap), BigInt(unread(parts, run).length));
    const left = run.hasBegun ? open : Number.POSITIVE_INFINITY;
    if (watch.idleMs({ left, waits: waits(parts, run, gaps) }) >= STALLED_AFTER_MS) return 'stalled';
    if (clock.monoMs() - reopenedMs < REOPEN_EVERY_MS) return null;
    reopenedMs = clock.monoMs();
    // A name that kept a gap closed may have an end.
    for (const deviceId of new Set(gaps.map(({ device_id }) => device_id))) reopenDevice(planning, deviceId);
    planning.wakeUp.notify();
    return null;
  };
}

const WHOLE = ['account', 'devices', 'alerts'] as const;

/** The streams that were not read since it began. */
function unread({ standing }: WatchParts, { beganMs }: OnceRun): readonly (typeof WHOLE)[number][] {
  return WHOLE.filter((stream) => standing.streams[stream].readAtMs < beganMs);
}

function outcomeOf(parts: WatchParts, run: OnceRun, gaps: readonly DeviceGap[]): OnceOutcome | null {
  if (!run.hasBegun || unread(parts, run).length > 0) return null;
  const { readAtMs, lackedScope } = parts.standing.streams.telemetry;
  if (gaps.length === 0 || (lackedScope !== null && readAtMs >= run.beganMs)) return 'complete';
  return gaps.every(({ reason }) => reason === 'beyond plan') ? 'incomplete for good' : null;
}

function waits(parts: WatchParts, run: OnceRun, gaps: readonly DeviceGap[]): boolean {
  // A device that does not answer rests, and what was not asked of it yet with it.
  const mute = new Set(gaps.flatMap(({ device_id, reason }) => (reason === 'device unreachable' ? [device_id] : [])));
  const isHistory = gaps.some(({ device_id, reason }) => reason === 'not reached yet' && !mute.has(device_id));
  return (
    isWaiting(parts, { isQueued: isHistory, lanes: ['first-history'] }) ||
    isWaiting(parts, { isQueued: unread(parts, run).length > 0, lanes: ['inventory', 'alerts'] })
  );
}
