/**
 * `--once`: closes every gap from now − `sync.history` to the coverage limit at its start, reads the alerts to their
 * end, delivers, and exits. It is the scheduler, running alone until no work is left.
 *
 * Exit codes: 0 if everything is complete; 3 if it was interrupted or made no progress for ten minutes; 1 if running it
 * again will not help. Its archived readings stay in every case.
 */

import type { MaintenanceParts } from '../../archive/maintenance.ts';
import { runUnlessFull } from '../../core/archive-room.ts';
import { pollUntil, runUntilFirst } from '../../core/async.ts';
import { PENDING } from '../../core/device-coverage.ts';
import { UserError } from '../../core/faults.ts';
import { STALLED_AFTER_MS } from '../../core/retry.ts';
import { LOG_LANES } from '../../core/state/log.ts';
import { MINUTE_MS, rangeNs, SECOND_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext, WantedRange } from '../../ingest/context.ts';
import { wantedNow } from '../../ingest/wanted-range.ts';
import type { ApiState } from '../../scheduler/api-state.ts';
import { noteCoverage } from '../../scheduler/coverage-points.ts';
import { createWantedGoal, type Goal, isRecheckOver } from '../../scheduler/goal.ts';
import { NOTHING_OPEN, RECENCIES } from '../../scheduler/history-queue.ts';
import { endRests, type OneOff, type Planning, relistDevices, reopenDevice } from '../../scheduler/planning.ts';
import type { SessionParts } from '../../scheduler/session.ts';
import { WHOLE_STREAMS, type WholeStream } from '../../scheduler/streams.ts';
import {
  createProgressWatch,
  isWaiting,
  type Outcome,
  outcomeAfterDelivery,
  type ProgressWatch,
  REOPEN_EVERY_MS,
  runBesideDeliveries,
  runOneOffSession,
  type WaitingParts,
} from '../shared/alone.ts';
import { type DeviceGap, type OnceEnding, type OnceSummary, openGaps, summarize } from './result.ts';

interface OnceParts extends SessionParts, WaitingParts {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
  readonly maintenance: MaintenanceParts;
}

/** One run of `--once`, alone or as a job. */
export interface OnceRun {
  /** When it began, by the monotonic clock. Streams that were read since then count. */
  readonly beganMs: number;
  /** The wanted range; `null` until the server's time is known. */
  wantedRange: WantedRange | null;
  /** The gaps to close; `null` until they are known. */
  goal: Goal | null;
  /** Whether its goal is set. Before that the remaining work is unknown. */
  hasStarted: boolean;
}

/** The longest time between two checks of a run. */
const RUN_CHECK_MS = 5 * SECOND_MS;

/** How often the devices are listed again while some of them do not answer. */
const RELIST_EVERY_MS = MINUTE_MS;

/** How long to wait for another try if the service is out or has just returned. */
const LAST_TRY_MS = 2 * MINUTE_MS;

/** Creates a run that starts now. */
export function createOnceRun({ clock }: Pick<SyncContext, 'clock'>): OnceRun {
  return { beganMs: clock.monoMs(), wantedRange: null, goal: null, hasStarted: false };
}

/** Fixes the wanted range and the goal, once the account was read and the server's time is known. */
export function beginOnceRun(context: SyncContext, run: OnceRun): void {
  const wantedRange = wantedNow(context);
  const goal = wantedRange === null ? null : createWantedGoal(context, wantedRange);
  Object.assign(run, { wantedRange, goal, hasStarted: true });
}

/**
 * Closes the gaps of all devices once.
 *
 * @returns the summary; an abort of `signal` is an outcome, not an error.
 * @throws UserError if a person has to act (exit 77 for the key, 1 for the state).
 */
export async function runOnce(parts: OnceParts, signal: AbortSignal): Promise<OnceSummary> {
  const run = createOnceRun(parts.context);
  try {
    const outcome = await runBesideDeliveries(parts, async (both) => await workOff(parts, run, both), signal);
    return summarize(parts, describeEnding(parts, run, outcome));
  } catch (error) {
    if (!signal.aborted || error instanceof UserError) throw error;
    return summarize(parts, describeEnding(parts, run, 'interrupted'));
  }
}

/** Adds to an outcome the streams that the key may not read, and the wanted range. */
export function describeEnding(
  { apiState }: { readonly apiState: ApiState },
  run: OnceRun,
  outcome: Outcome,
): OnceEnding {
  const off = (['account', 'alerts', 'telemetry'] as const).filter(
    (stream) => apiState.streams[stream].missingScope !== null,
  );
  return { outcome, off, wantedRange: run.wantedRange };
}

async function workOff(parts: OnceParts, run: OnceRun, signal: AbortSignal): Promise<Outcome> {
  const { context } = parts;
  const works = [
    async (stop: AbortSignal) => await runOnceSession(parts, run, stop),
    async (stop: AbortSignal) => await waitUntilClosed(parts, run, stop),
  ];
  const outcome = await runUntilFirst(works, { signal, reason: 'finished' });
  saveCoverageNotes(context, run);
  return await outcomeAfterDelivery(parts, outcome, signal);
}

/** Sends the planner's requests. */
async function runOnceSession(parts: OnceParts, run: OnceRun, signal: AbortSignal): Promise<never> {
  const begin = (areListed: boolean): OneOff => {
    beginOnceRun(parts.context, run);
    return { lane: 'first-history', goal: run.goal, streams: areListed ? ['alerts'] : ['alerts', 'devices'] };
  };
  // The list is read again at the same time as the telemetry of the known devices.
  return await runOneOffSession(parts, { begin, mayGoUnlisted: true }, signal);
}

/** Writes the notes about the filter and the coverage. */
function saveCoverageNotes(context: SyncContext, { wantedRange }: OnceRun): void {
  if (wantedRange === null) return;
  context.filterNotes.noteTelemetryRead();
  runUnlessFull(() => noteCoverage(context, wantedRange), context.noteStateFull);
}

/** The input of {@link advanceRun}. */
export interface WatchParts extends WaitingParts {
  readonly context: SyncContext;
  readonly planning: Planning;
}

/** Waits until no gap is left, no gap can be closed, or there is no progress. */
async function waitUntilClosed(parts: WatchParts, run: OnceRun, signal: AbortSignal): Promise<Outcome> {
  const { context } = parts;
  const rate = { everyMs: RUN_CHECK_MS, wakeUp: parts.planning.rested };
  const state = createRunState(context);
  let completeAtMs: number | null = null;
  const step = (): Outcome | null => {
    const outcome = advanceRun(parts, run, state);
    if (outcome !== 'complete') return outcome;
    completeAtMs ??= context.clock.monoMs();
    const dueBeforeMs = run.wantedRange?.nowMs ?? 0;
    return isRecheckOver(context, { dueBeforeMs, sinceMs: completeAtMs }) ? outcome : null;
  };
  return await pollUntil(context.clock, step, rate, signal);
}

/** The state between two steps. All times are of the monotonic clock. */
interface RunState {
  readonly watch: ProgressWatch;
  /** The readings that the answered requests had returned. */
  yields: Yields;
  /** When resting gaps were last queued again. */
  reopenedMs: number;
  /** When the devices were last listed again. */
  relistedMs: number;
  /** When the service was last found to be out. */
  outMs: number;
}

/** The state of a run that begins now. */
export function createRunState({ clock, answeredAtMs }: SyncContext): RunState {
  const beganMs = clock.monoMs();
  return {
    watch: createProgressWatch(clock),
    yields: { answeredMs: answeredAtMs(), archived: -1, pending: -1n },
    reopenedMs: beganMs,
    relistedMs: beganMs,
    outMs: Number.NEGATIVE_INFINITY,
  };
}

/**
 * Does one step of a run: records its progress, and queues resting gaps again.
 *
 * @returns the outcome; `null` while the run continues.
 */
export function advanceRun(parts: WatchParts, run: OnceRun, state: RunState): Outcome | null {
  const { context, apiState } = parts;
  const nowMs = context.clock.monoMs();
  if (apiState.fault !== null) state.outMs = nowMs;
  const gaps = openGaps(context, run.wantedRange);
  const outcome = onceOutcome(parts, run, gaps);
  if (outcome !== null) return outcome;
  const open = gaps.reduce((sum, gap) => sum + rangeNs(gap), BigInt(unreadStreams(parts, run).length));
  const left = run.hasStarted ? open : Number.POSITIVE_INFINITY;
  const before = state.yields;
  state.yields = measureYields(context, gaps);
  const idleMs = state.watch.record({
    left,
    waits: isRunWaiting(parts, run, isFruitless(before, state.yields) ? [] : gaps),
  });
  if (hasStalled({ apiState, outMs: state.outMs }, idleMs, nowMs)) return 'stalled';
  if (nowMs - state.reopenedMs >= REOPEN_EVERY_MS) resume({ planning: parts.planning, state, run }, gaps, nowMs);
  return null;
}

/** When a request was last answered, the blocks archived until then, and the gaps without a name. */
interface Yields {
  readonly answeredMs: number;
  readonly archived: number;
  readonly pending: bigint;
}

function measureYields({ store, answeredAtMs }: SyncContext, gaps: readonly DeviceGap[]): Yields {
  const unnamed = gaps.filter(({ reason }) => reason === PENDING);
  return {
    answeredMs: answeredAtMs(),
    archived: LOG_LANES.reduce((sum, lane) => sum + store.endOf(lane).block, 0),
    pending: unnamed.reduce((sum, gap) => sum + rangeNs(gap), 0n),
  };
}

/**
 * Whether the requests answered in between had no effect: nothing was archived, and no gap was closed or named. Such
 * requests are neither progress nor waiting.
 */
function isFruitless(before: Yields, now: Yields): boolean {
  return now.answeredMs > before.answeredMs && now.archived === before.archived && now.pending === before.pending;
}

/**
 * Returns whether the run has stalled. After an outage it waits for another try, because the service may have returned.
 */
function hasStalled(
  { apiState, outMs }: { readonly apiState: ApiState; readonly outMs: number },
  idleMs: number,
  nowMs: number,
): boolean {
  const overMs = idleMs - STALLED_AFTER_MS;
  if (overMs < 0) return false;
  const hasTried = apiState.failedAtMs >= nowMs - overMs;
  return hasTried || nowMs - outMs >= LAST_TRY_MS || overMs >= LAST_TRY_MS;
}

/**
 * Queues resting gaps again. If no uncovered device answers, they are tried again in case the service was at fault, and
 * then the devices are listed.
 */
function resume(
  { planning, state, run }: { readonly planning: Planning; readonly state: RunState; readonly run: OnceRun },
  gaps: readonly DeviceGap[],
  nowMs: number,
): void {
  state.reopenedMs = nowMs;
  for (const deviceId of new Set(gaps.map(({ device_id }) => device_id))) reopenDevice(planning, deviceId);
  const unreachable = gaps.filter(({ reason }) => reason === 'unreachable');
  // Not while one of them is being polled, because the answer to the list would make its failure look like its own.
  const isUnreachable = unreachable.length > 0 && unreachable.every(({ device_id }) => isClosed(run, device_id));
  if (isUnreachable && planning.rest !== null) {
    const tried = planning.failingDevices.takeRetries();
    if (tried.length > 0) endRests(planning, tried, 'unreachable');
    else if (nowMs - state.relistedMs >= RELIST_EVERY_MS) {
      state.relistedMs = nowMs;
      relistDevices(planning);
    }
  }
  planning.wakeUp.notify();
}

/** The streams that were not read since the run began. */
function unreadStreams({ apiState }: WatchParts, { beganMs }: OnceRun): readonly WholeStream[] {
  return WHOLE_STREAMS.filter((stream) => apiState.streams[stream].readAtMs < beganMs);
}

function onceOutcome(parts: WatchParts, run: OnceRun, gaps: readonly DeviceGap[]): Outcome | null {
  if (!run.hasStarted || unreadStreams(parts, run).length > 0) return null;
  const { readAtMs, missingScope } = parts.apiState.streams.telemetry;
  // No range is wanted while the time is unknown.
  if (parts.context.serverClock.isLocalBehind()) return 'stalled';
  if (gaps.length === 0 || (missingScope !== null && readAtMs >= run.beganMs)) return 'complete';
  // Only time shows whether these answers are true.
  if (gaps.every(({ reason, device_id }) => reason === 'unverified' && isClosed(run, device_id))) return 'stalled';
  const isForGood = gaps.every(({ reason, device_id }) => reason === 'beyond_plan' && isClosed(run, device_id));
  return isForGood ? 'gaps_remain' : null;
}

/** Returns whether no gap of a device can be requested now. */
function isClosed({ goal }: OnceRun, deviceId: string): boolean {
  const open = goal?.open(deviceId, []) ?? NOTHING_OPEN;
  return RECENCIES.every((recency) => open[recency] === 0);
}

function isRunWaiting(parts: WatchParts, run: OnceRun, gaps: readonly DeviceGap[]): boolean {
  // A device that does not answer rests, and its other gaps rest with it.
  const unreachable = new Set(gaps.flatMap(({ device_id, reason }) => (reason === 'unreachable' ? [device_id] : [])));
  const isHistory = gaps.some(({ device_id, reason }) => reason === PENDING && !unreachable.has(device_id));
  return (
    isWaiting(parts, { isQueued: isHistory, lanes: ['first-history'] }) ||
    isWaiting(parts, { isQueued: unreadStreams(parts, run).length > 0, lanes: ['inventory', 'alerts'] })
  );
}
