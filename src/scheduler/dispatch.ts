/**
 * The dispatch loop: whenever the quota allows a request, it gets the most valuable task from the planner and carries
 * it out.
 *
 * Promises:
 * - A task is chosen at the moment at which it can be sent, so that everything known by then counts.
 * - Each decision returns to the planner as exactly one result, as long as the session lasts.
 * - After a failure that concerns one device, only that device rests. The loop waits until an outage of the service is
 *   over. A rejected key or plan ends the loop and aborts all tasks.
 *
 * A task about a device stops after the first page that extends the coverage, so that the next request is again the
 * most valuable one. `--once` alone has nothing more urgent: its tasks close a complete range of a device.
 */

import { runUnlessFull, StateFullError } from '../core/archive-room.ts';
import { pollUntil, runWorkGroup, type WorkGroup } from '../core/async.ts';
import { gapsIn } from '../core/coverage.ts';
import { ApiFault, endsSession, findMissingScope } from '../core/faults.ts';
import type { Pulse } from '../core/heartbeats.ts';
import type { Interval } from '../core/intervals.ts';
import { OFF_STREAM_REST_MS } from '../core/retry.ts';
import { DAY_NS, maxNs, minNs, msToNs, nsToMs, SECOND_MS, SECOND_NS } from '../core/time.ts';
import type { SyncContext } from '../ingest/context.ts';
import { NOTHING_SCANNED, type ScanResult, type ScanTask } from '../ingest/gap-scan.ts';
import { nameGap } from '../ingest/named-gaps.ts';
import { ANSWERED_LATELY_MS, type OutageWatch } from '../ingest/outage.ts';
import type { PageScanner } from '../ingest/page-scan.ts';
import type { Rereading } from '../ingest/reread.ts';
import { type ApiState, noteFailed, noteOff, noteRead, noteStreamFailed, noteWorked } from './api-state.ts';
import type { PollAnswer } from './device-outlook.ts';
import type { Viewed } from './device-view.ts';
import type { GoalGap } from './goal.ts';
import {
  noteBegan,
  noteDecisionFailed,
  noteHistoryCommitted,
  notePollCommitted,
  setReread,
  takeDecision,
  turnOff,
} from './planner.ts';
import {
  type Decision,
  type HistoryDecision,
  type PollDecision,
  purposeOf,
  type Rest,
  type StreamDecision,
} from './planner-types.ts';
import {
  advancePlanning,
  checkDemand,
  enterStream,
  nextGoalGap,
  ONE_OFF_REST_MS,
  openHistoryIn,
  type Planning,
  plannedMs,
  reopenDevice,
  setRest,
  viewDevice,
} from './planning.ts';

/** The parts that carry decisions out. */
export interface DispatchParts {
  readonly context: SyncContext;
  readonly planning: Planning;
  readonly apiState: ApiState;
  readonly scanner: PageScanner;
  readonly outage: OutageWatch;
  /** Resolves when a request could be sent at once and nothing else waits to send one. */
  readonly waitUntilTurn: (signal: AbortSignal) => Promise<void>;
  readonly rereading: Rereading;
  /** Called when no request is due for a second or longer. */
  readonly onRest: () => void;
  /** The heartbeat of this loop. */
  readonly pulse: Pulse;
  /**
   * Reads a complete stream.
   *
   * @returns whether the key may read it.
   */
  readonly readStream: (kind: StreamDecision['kind'], signal: AbortSignal) => Promise<boolean>;
}

/** The longest single rest: the clocks may jump during it. */
const LONGEST_REST_MS = 15 * SECOND_MS;

/** A rest from this length on is reported to `onRest`. */
const REPORTED_REST_MS = SECOND_MS;

/** How often to check whether the archive may grow again. */
const SPACE_CHECK_MS = 5 * SECOND_MS;

/** After this many failures about devices in a row, with no answer between them, the failure counts as the stream's. */
const FAILURES_IN_A_ROW = 3;

/** The parts of the loop, and its count of failures. */
interface Running extends DispatchParts {
  /** Failures about devices since the last answer about one. */
  readonly failed: { inARow: number };
}

/**
 * Follows the planner until the signal aborts or a task fails with an error that ends the session. Then it starts no
 * more tasks, aborts the running ones and waits for them.
 *
 * @throws the error that ends the session (see `endsSession`), of the task that failed first.
 */
export async function followPlan(given: DispatchParts, signal: AbortSignal): Promise<never> {
  const parts: Running = { ...given, failed: { inARow: 0 } };
  try {
    const loop = async (group: WorkGroup<Decision>): Promise<never> => await startTasks(parts, group);
    return await runWorkGroup(parts.planning.wakeUp, loop, signal);
  } finally {
    parts.pulse.rest();
  }
}

/** Starts one task after another, and runs as many at once as the settings allow. */
async function startTasks(parts: Running, { underWay, signal, start }: WorkGroup<Decision>): Promise<never> {
  const { planning, context, outage, pulse } = parts;
  for (;;) {
    if (underWay.size >= context.settings.concurrency) {
      // No heartbeat here: while the limit of tasks is reached, only their requests show that the loop is alive.
      await planning.wakeUp.wait(LONGEST_REST_MS, signal);
      continue;
    }
    pulse.beat(LONGEST_REST_MS);
    await waitForRoom(context, signal, pulse);
    await outage.waitUntilOver(signal, pulse.beat);
    await parts.waitUntilTurn(signal);
    signal.throwIfAborted();
    // This may replace the planner.
    const nowMs = advancePlanning(planning);
    const next = takeDecision(planning.planner, nowMs);
    setRest(planning, next.kind === 'rest' ? next : null);
    if (next.kind === 'rest') {
      await waitUntilDue(parts, next, signal);
      continue;
    }
    noteBegan(planning.planner, next, plannedMs(planning));
    start(next, async (stop) => await carryOut(parts, next, stop));
  }
}

/** Waits while the state is full. No data is requested that would be archived; delivery continues and frees space. */
export async function waitForRoom(
  { checkSpace, clock }: SyncContext,
  signal: AbortSignal,
  pulse?: Pulse,
): Promise<void> {
  const check = (): true | null => {
    if (checkSpace().ok) return true;
    pulse?.beat(SPACE_CHECK_MS);
    return null;
  };
  await pollUntil(clock, check, { everyMs: SPACE_CHECK_MS }, signal);
}

async function waitUntilDue(
  { planning, outage, onRest }: DispatchParts,
  { untilMs }: Rest,
  signal: AbortSignal,
): Promise<void> {
  // The task that was to test the API has nothing to request.
  outage.noteDone();
  const waitMs = Math.max(1, Math.min(LONGEST_REST_MS, Math.ceil(untilMs - plannedMs(planning))));
  if (waitMs >= REPORTED_REST_MS) onRest();
  await planning.wakeUp.wait(waitMs, signal);
}

/**
 * Carries out a decision and reports its result to the planner; an aborted decision has no result.
 *
 * @throws errors that end a session.
 */
async function carryOut(parts: Running, decision: Decision, signal: AbortSignal): Promise<void> {
  const { planning, apiState, outage } = parts;
  const { planner } = planning;
  const fail = (isOwn: boolean): void => noteDecisionFailed(planner, decision, isOwn, plannedMs(planning));
  try {
    if (decision.kind === 'poll') await runLiveTask(parts, decision, signal);
    else if (decision.kind === 'history') await requestHistory(parts, decision, signal);
    else if (decision.kind === 'reread')
      setReread(planner, await parts.rereading.next(signal), parts.rereading.isOwed());
    else await readWhole(parts, decision, signal);
    outage.noteDone();
    noteWorked(apiState, decision.lane);
    if (isTelemetry(decision)) parts.failed.inARow = 0;
    noteRead(apiState, purposeOf(decision).stream);
  } catch (error) {
    if (!signal.aborted) recordError(parts, { decision, error }, fail);
  }
}

interface Failed<E> {
  readonly decision: Decision;
  readonly error: E;
}

/**
 * Records the failure of a task.
 *
 * @throws errors that end a session.
 */
function recordError(parts: Running, failed: Failed<unknown>, fail: (isOwn: boolean) => void): void {
  const { context, planning, apiState } = parts;
  const { decision, error } = failed;
  const scope = isTelemetry(decision) ? findMissingScope(error, 'telemetry') : null;
  if (scope !== null) {
    noteOff(apiState, 'telemetry', scope);
    fail(false);
    turnOff(planning.planner, 'telemetry', plannedMs(planning) + OFF_STREAM_REST_MS);
    return;
  }
  const fault = surviveFault(context, error);
  if (fault === null) fail(false);
  else recordFault(parts, { decision, error: fault }, fail);
}

/**
 * Classifies the error of a request or of its commit.
 *
 * @returns the fault that a session survives; `null` if the state was full, which is recorded.
 * @throws every error that ends a session.
 */
export function surviveFault({ noteStateFull }: Pick<SyncContext, 'noteStateFull'>, error: unknown): ApiFault | null {
  if (error instanceof StateFullError) {
    noteStateFull(error);
    return null;
  }
  if (!(error instanceof ApiFault) || endsSession(error)) throw error;
  return error;
}

/**
 * Records a fault: of the service, or of one device or stream while others are answered. If others were answered
 * recently, but not since the request began to fail, it may be either. Then the device rests until another request is
 * answered.
 */
function recordFault(parts: Running, { decision, error }: Failed<ApiFault>, fail: (isOwn: boolean) => void): void {
  const { context, outage, planning, apiState, failed } = parts;
  const { clock, answeredAtMs } = context;
  const failingSinceMs = clock.monoMs() - (error.facts.retriedMs ?? 0);
  const isOwn = answeredAtMs() >= failingSinceMs;
  const isAnswering = isOwn || answeredAtMs() >= clock.monoMs() - ANSWERED_LATELY_MS;
  fail(isAnswering);
  noteFailed(apiState, { lane: decision.lane, fault: error, isService: !isAnswering });
  const { message } = error;
  if (!('deviceId' in decision) || !isAnswering) {
    noteStreamFailed(apiState, purposeOf(decision).stream, message);
    outage.note(error);
    return;
  }
  if (!isOwn) planning.failingDevices.add(decision.deviceId);
  // Other requests were answered and this one was not: the gap gets this reason until the device answers.
  if (isOwn || isOneOffRun(planning)) nameUnreachable(parts, decision);
  failed.inARow += 1;
  if (failed.inARow >= FAILURES_IN_A_ROW) noteStreamFailed(apiState, 'telemetry', message);
}

/**
 * Whether `--once` runs alone: then all its devices wait for their turn from its start on, and nothing is more urgent.
 */
function isOneOffRun({ oneOff }: Planning): boolean {
  return oneOff?.lane === 'first-history';
}

/** Records the gaps of a device that did not answer while others did, if the state may grow. */
function nameUnreachable({ context, planning }: DispatchParts, decision: PollDecision | HistoryDecision): void {
  const { deviceId } = decision;
  const range = currentRange(planning, decision);
  if (range === null) return;
  // A one-off ends after ten minutes without progress, and retries several times before that.
  const longestMs = isOneOffRun(planning) ? 2 * ONE_OFF_REST_MS : undefined;
  runUnlessFull(() => {
    const gaps = gapsIn(range, context.store.telemetry(deviceId).covered);
    for (const gap of gaps) nameGap(context, { deviceId, ...gap, reason: 'unreachable' }, longestMs);
  }, context.noteStateFull);
}

async function runLiveTask(parts: DispatchParts, decision: PollDecision, signal: AbortSignal): Promise<void> {
  const { planning, scanner, waitUntilTurn } = parts;
  const task = liveScanTask(planning, decision);
  const result = task === null ? NOTHING_SCANNED : await scanner.scan({ ...task, waitUntilTurn }, signal);
  const { planner } = planning;
  // No request was possible, or no answer was understood: the gap has a reason now, and rests.
  if (!result.isUnderstood) noteDecisionFailed(planner, decision, true, plannedMs(planning));
  else {
    const isGivenUp = giveUpLiveGap(parts, decision);
    notePollCommitted(planner, decision, pollAnswer(planning, result, { ...decision, isGivenUp }), plannedMs(planning));
  }
  reopenDevice(planning, decision.deviceId);
}

async function requestHistory(parts: DispatchParts, decision: HistoryDecision, signal: AbortSignal): Promise<void> {
  const { planning } = parts;
  const { lane, deviceId } = decision;
  const isUnderstood = await readGap(parts, decision, signal);
  const { planner } = planning;
  // No request was left, or no page was understood: the recorded gap rests.
  if (!isUnderstood) noteDecisionFailed(planner, decision, true, plannedMs(planning));
  else noteHistoryCommitted(planner, decision, openHistoryIn(planning, lane, deviceId));
  reopenDevice(planning, deviceId);
}

/** Reads a gap of a goal. Returns whether a page was understood. */
async function readGap(
  { planning, scanner, waitUntilTurn }: DispatchParts,
  decision: HistoryDecision,
  signal: AbortSignal,
): Promise<boolean> {
  const gap = nextGoalGap(planning, decision);
  if (gap?.readAgain !== undefined) return await gap.readAgain(signal);
  const task = gap && historyScanTask(planning, decision, gap);
  return task !== null && (await scanner.scan({ ...task, waitUntilTurn }, signal)).pages > 0;
}

/**
 * The page scan for history. `--once` alone closes the complete range; a backfill keeps its interval between two
 * requests.
 */
function historyScanTask(planning: Planning, { deviceId }: HistoryDecision, { range, limit, lane }: GoalGap): ScanTask {
  return { deviceId, range, limit, lane, until: isOneOffRun(planning) ? 'closed' : 'first coverage' };
}

/** The page scan for a poll; `null` while the server's time is unknown, or if the device has left. */
function liveScanTask(planning: Planning, decision: PollDecision): ScanTask | null {
  const { deviceId, lane, needsRate = false } = decision;
  const now = viewDevice(planning, deviceId);
  return (
    now && { deviceId, lane, needsRate, limit: now.wanted.to, range: pollRange(now, decision), until: 'first coverage' }
  );
}

/** The range of a decision as it is now: a scan may have committed pages of it. `null` if the device has left. */
function currentRange(planning: Planning, decision: PollDecision | HistoryDecision): Interval | null {
  if (decision.kind === 'history') return nextGoalGap(planning, decision)?.range ?? null;
  const now = viewDevice(planning, decision.deviceId);
  return now && pollRange(now, decision);
}

/** The newest end of a device, or the gap that was left there. */
function pollRange({ state, view, wanted }: Viewed, { untilMs }: PollDecision): Interval {
  const newest = state.covered.at(-1);
  const dayFrom = maxNs(wanted.to - DAY_NS, wanted.from);
  if (newest !== undefined && view.liveGap !== null) return { from: msToNs(view.liveGap.fromMs), to: newest.from };
  // Reads down to the covered range, however old that is: one page covers a long time if the device reported little.
  const from = newest === undefined ? dayFrom : maxNs(minNs(newest.to, dayFrom), wanted.from);
  const until = untilMs === null ? wanted.to : maxNs(msToNs(untilMs), from + SECOND_NS);
  return { from, to: minNs(wanted.to, until) };
}

/** Records the gap below the newest end of a device as over the quota, if the decision was to leave one. */
function giveUpLiveGap({ context, planning }: DispatchParts, { deviceId, newestOnly }: PollDecision): boolean {
  const now = newestOnly ? viewDevice(planning, deviceId) : null;
  const liveGap = now?.view.liveGap ?? null;
  if (now === null || liveGap === null) return false;
  const to = now.state.covered.at(-1)?.from ?? 0n;
  nameGap(context, { deviceId, from: msToNs(liveGap.fromMs), to, reason: 'over_quota' });
  return true;
}

/**
 * The result of a poll of the newest end of a device. If the gap below the page was given up, the result has no gap.
 */
function pollAnswer(
  planning: Planning,
  { newReadings, lastReadings }: ScanResult,
  { deviceId, isGivenUp }: { readonly deviceId: string; readonly isGivenUp: boolean },
): PollAnswer {
  const instantsMs = lastReadings.map(({ recordedAt }) => nsToMs(recordedAt));
  const liveGap = isGivenUp ? null : (viewDevice(planning, deviceId)?.view.liveGap ?? null);
  return { newReadings, instantsMs, liveGap };
}

async function readWhole(parts: DispatchParts, { kind }: StreamDecision, signal: AbortSignal): Promise<void> {
  const { planning } = parts;
  const mayRead = await parts.readStream(kind, signal);
  enterStream(planning, kind, mayRead ? null : plannedMs(planning) + OFF_STREAM_REST_MS);
  if (mayRead && kind !== 'alerts' && planning.oneOff === null) checkDemand(planning);
}

function isTelemetry(decision: Decision): boolean {
  return purposeOf(decision).stream === 'telemetry';
}
