/**
 * The loop that follows the planner: at each moment at which the allowance has a request to give, the one that is worth
 * most is made.
 *
 * Promises: nothing is decided before it can be sent, so that what comes meanwhile counts; each decision comes back to
 * the planner by exactly one answer; one device's trouble rests that device, the service's is waited out; what only
 * somebody else can mend ends the loop.
 */
import { StateFullError } from '../core/archive-room.ts';
import { ApiFault } from '../core/faults.ts';
import type { Pulse } from '../core/heartbeats.ts';
import { HOUR_MS, SECOND_MS } from '../core/time.ts';
import { ANSWERED_LATELY_MS, type Trouble } from '../ingest/outage.ts';
import { NOTHING_SCANNED, type PageScanner, type ScanTask } from '../ingest/page-scan.ts';
import type { Rereading } from '../ingest/reread.ts';
import { type ErrandParts, errandFor, tailAnswer } from './errand.ts';
import {
  type Decision,
  type HistoryDecision,
  purposeOf,
  type Rest,
  type RoundDecision,
  type TailDecision,
} from './planner-types.ts';
import { nameUnreachable } from './telemetry.ts';

export interface DispatchParts extends ErrandParts {
  readonly scanner: PageScanner;
  readonly trouble: Trouble;
  /** Resolves when a request could go at once and nobody else waits for it. */
  readonly untilTurn: (signal: AbortSignal) => Promise<void>;
  readonly rereading: Rereading;
  /** Shows that this loop moves. */
  readonly pulse: Pulse;
  /** Reads a stream as a whole. @returns whether the key may read it. */
  readonly readRound: (kind: RoundDecision['kind'], signal: AbortSignal) => Promise<boolean>;
}

/** The longest rest at a stretch: clocks may jump meanwhile. */
const LONGEST_REST_MS = 15 * SECOND_MS;

/** How often it is looked whether there is room again. */
const ROOM_LOOK_MS = 5 * SECOND_MS;

/** How often a stream that is off is tried again: the key may have been given its scope. */
const OFF_REST_MS = HOUR_MS;

/** So many failures about devices in a row, with no answer about any between them, are the stream's. */
const FAILURES_IN_A_ROW = 3;

/** The parts at work. */
interface Running extends DispatchParts {
  /** Failures about devices since the last answer about one. */
  readonly failed: { inARow: number };
}

/** Follows the planner until the signal aborts. @throws what ends a session: see `endsSession`. */
export async function followPlan(given: DispatchParts, signal: AbortSignal): Promise<never> {
  const parts: Running = { ...given, failed: { inARow: 0 } };
  const { planning, context, trouble, pulse } = parts;
  const underWay = new Set<Promise<void>>();
  const failure: { cause: unknown; isSet: boolean } = { cause: null, isSet: false };
  const begin = (decision: Decision): void => {
    planning.planner().began(decision, planning.nowMs());
    const work = carryOut(parts, decision, signal)
      .catch((cause: unknown) => {
        if (!failure.isSet) Object.assign(failure, { cause, isSet: true });
      })
      .finally(() => {
        underWay.delete(work);
        planning.wakeUp.notify();
      });
    underWay.add(work);
  };
  try {
    for (;;) {
      if (failure.isSet) throw failure.cause;
      if (underWay.size >= context.settings.concurrency) {
        // No beat: as long as none of them comes to its end, only their requests show that something moves.
        await planning.wakeUp.wait(LONGEST_REST_MS, signal);
        continue;
      }
      pulse.beat(LONGEST_REST_MS);
      await untilRoom(parts, signal);
      await trouble.pass(signal, pulse.beat);
      await parts.untilTurn(signal);
      const next = planning.planner().next(planning.nowMs());
      planning.resting(next.kind === 'rest' ? next : null);
      if (next.kind !== 'rest') begin(next);
      else await rest(parts, next, signal);
    }
  } finally {
    await Promise.allSettled(underWay);
    pulse.rest();
  }
}

async function untilRoom({ context, pulse }: DispatchParts, signal: AbortSignal): Promise<void> {
  while (!context.room().ok) {
    pulse.beat(ROOM_LOOK_MS);
    await context.clock.sleep(ROOM_LOOK_MS, signal);
  }
}

async function rest({ planning, trouble }: DispatchParts, { untilMs }: Rest, signal: AbortSignal): Promise<void> {
  // The one that was to try has nothing to ask.
  trouble.done();
  const waitMs = Math.max(1, Math.min(LONGEST_REST_MS, Math.ceil(untilMs - planning.nowMs())));
  await planning.wakeUp.wait(waitMs, signal);
}

/** Carries a decision out and tells the planner what came of it. @throws what ends a session. */
async function carryOut(parts: Running, decision: Decision, signal: AbortSignal): Promise<void> {
  const { context, planning, trouble } = parts;
  const beganMs = context.clock.monoMs();
  const planner = planning.planner();
  const fail = (isOwn: boolean): void => planner.failed(decision, { isOwn }, planning.nowMs());
  try {
    if (decision.kind === 'tail') await askTail(parts, decision, signal);
    else if (decision.kind === 'history') await askHistory(parts, decision, signal);
    else if (decision.kind === 'reread') planner.setReread(await parts.rereading.next(signal));
    else await readWhole(parts, decision, signal);
    trouble.done();
    if (isTelemetry(decision)) parts.failed.inARow = 0;
    context.observe({ type: 'stream-read', stream: purposeOf(decision).stream });
  } catch (error) {
    if (!signal.aborted) takeError(parts, { decision, error, beganMs }, fail);
  }
}

interface Failed<E> {
  readonly decision: Decision;
  readonly error: E;
  /** When the errand began, by the monotonic clock. */
  readonly beganMs: number;
}

/** What an errand failed with. @throws what ends a session. */
function takeError(parts: Running, failed: Failed<unknown>, fail: (isOwn: boolean) => void): void {
  const { context, planning } = parts;
  const { decision, error } = failed;
  if (error instanceof StateFullError) {
    context.stateFull(error);
    fail(false);
    return;
  }
  if (!(error instanceof ApiFault)) throw error;
  if (error.kind === 'scope-missing' && isTelemetry(decision)) {
    context.observe({ type: 'stream-off', stream: 'telemetry', scope: error.facts.scope ?? 'telemetry:read' });
    fail(false);
    planning.planner().off('telemetry', planning.nowMs() + OFF_REST_MS);
    return;
  }
  if (endsSession(error)) throw error;
  takeFault(parts, { ...failed, error }, fail);
}

/** A fault of the service, or of one device or stream while others are answered. */
function takeFault(
  { context, trouble, planning, failed }: Running,
  { decision, error, beganMs }: Failed<ApiFault>,
  fail: (isOwn: boolean) => void,
): void {
  const { clock, answeredAtMs, observe } = context;
  const isAnswering = answeredAtMs() >= Math.min(beganMs, clock.monoMs() - ANSWERED_LATELY_MS);
  fail(isAnswering);
  if ('deviceId' in decision && isAnswering) {
    const task = errandFor({ context, planning }, decision);
    // Others were answered while this one was not: meanwhile the hole has this name.
    if (task !== null && answeredAtMs() >= beganMs) nameWhereThereIsRoom(context, task);
    failed.inARow += 1;
    if (failed.inARow >= FAILURES_IN_A_ROW)
      observe({ type: 'stream-failed', stream: 'telemetry', message: error.message });
    return;
  }
  observe({
    type: 'stream-failed',
    stream: purposeOf(decision).stream,
    message: error.message,
  });
  trouble.note(error);
}

/** Where the state is full a name is not worth the daemon: the device rests all the same. */
function nameWhereThereIsRoom(context: DispatchParts['context'], task: ScanTask): void {
  try {
    nameUnreachable(context, task);
  } catch (error) {
    if (!(error instanceof StateFullError)) throw error;
    context.stateFull(error);
  }
}

async function askTail(parts: DispatchParts, decision: TailDecision, signal: AbortSignal): Promise<void> {
  const { planning, scanner } = parts;
  const task = errandFor(parts, decision);
  const brought = task === null ? NOTHING_SCANNED : await scanner.scan(task, signal);
  const planner = planning.planner();
  // Nothing could be asked, or nothing was understood: it has a name now, and rests.
  if (!brought.isUnderstood) planner.failed(decision, { isOwn: true }, planning.nowMs());
  else planner.tailLanded(decision, tailAnswer(parts, brought, decision), planning.nowMs());
  planning.reopen(decision.deviceId);
}

async function askHistory(parts: DispatchParts, decision: HistoryDecision, signal: AbortSignal): Promise<void> {
  const { planning, scanner } = parts;
  const task = errandFor(parts, decision);
  const { pages } = task === null ? NOTHING_SCANNED : await scanner.scan(task, signal);
  const planner = planning.planner();
  // Nothing was left of it, or nothing was understood: what that is called now rests.
  if (pages === 0) planner.failed(decision, { isOwn: true }, planning.nowMs());
  else planner.historyLanded(decision, planning.openIn(decision.lane, decision.deviceId));
  planning.reopen(decision.deviceId);
}

async function readWhole(parts: DispatchParts, decision: RoundDecision, signal: AbortSignal): Promise<void> {
  const { planning } = parts;
  const mayRead = await parts.readRound(decision.kind, signal);
  const planner = planning.planner();
  if (!mayRead) planner.off(decision.kind, planning.nowMs() + OFF_REST_MS);
  else if (decision.kind === 'devices') planning.devicesRead();
  else planner.done(decision.kind, planning.nowMs());
  if (mayRead && decision.kind !== 'alerts') planning.weigh();
}

/** What somebody else has to mend: the key, its plan, the scope without which there is no device. */
export function endsSession({ kind }: ApiFault): boolean {
  return kind === 'unauthorized' || kind === 'no-api-access' || kind === 'scope-missing';
}

function isTelemetry(decision: Decision): boolean {
  return purposeOf(decision).stream === 'telemetry';
}
