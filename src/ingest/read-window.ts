/**
 * A window of a device, read to its end whatever is held of it: for looking again at what was seen before.
 *
 * It claims nothing, so that its answers need no anchors, and it lands nothing itself.
 */
import type { Interval } from '../core/intervals.ts';
import type { Reply } from '../core/ports.ts';
import type { Reading, TelemetryPage } from '../core/records.ts';
import { ForgottenError } from '../core/state/telemetry.ts';
import type { PullTask, SyncContext } from './context.ts';
import { judgePage } from './judge-page.ts';
import { TRIES } from './odd-answers.ts';
import { askPage } from './page.ts';
import { type Ask, askFor, nextAsk } from './walk.ts';
import { fromFirstPage } from './walking.ts';
import { createWindowRules, type WindowRules } from './window-rules.ts';

/** A page of it: what is worth keeping, newest first, maybe a little beyond the window, maybe once more. */
export interface WindowPage {
  readonly reply: Reply<TelemetryPage>;
  readonly readings: readonly Reading[];
}

interface WindowReading {
  readonly context: SyncContext;
  readonly rules: WindowRules;
  readonly task: PullTask;
  /** What is read. */
  readonly hole: Interval;
  readonly take: (page: WindowPage) => void;
  odd: number;
  empties: number;
}

/**
 * Reads a window, in the lane of what can wait.
 *
 * @returns whether it was read to its end; not where answers are odd, or the device is gone or was forgotten meanwhile.
 * @throws ApiFault where the fault is not about this device.
 */
export async function readWindow(
  context: SyncContext,
  { deviceId, window, take }: { deviceId: string; window: Interval; take: WindowReading['take'] },
  signal: AbortSignal,
): Promise<boolean> {
  const task: PullTask = { deviceId, span: window, limit: window.to, lane: 'sweep', isPaused: () => signal.aborted };
  const rules = createWindowRules(context);
  const reading: WindowReading = { context, rules, task, hole: window, take, odd: 0, empties: 0 };
  let ask: Ask | null | 'given up' = askBelow(reading, window.to);
  while (ask !== null) {
    ask = await step(reading, ask, signal).catch(givenUpWhereForgotten);
    if (ask === 'given up') return false;
  }
  return true;
}

/** The question for what is left below `to`. Nothing is claimed by its answers, so that they need no anchors. */
function askBelow({ task, hole, rules }: WindowReading, to: bigint): Ask | null {
  if (to <= hole.from) return null;
  const { deviceId } = task;
  return askFor({ deviceId, hole: { from: hole.from, to }, near: null, far: null, live: false }, rules.limits());
}

/** Asks for one page and hands it on. @returns the next question; `null` at the end of the window. */
async function step(reading: WindowReading, ask: Ask, signal: AbortSignal): Promise<Ask | null | 'given up'> {
  const { rules, hole } = reading;
  signal.throwIfAborted();
  const answer = await askPage(reading, ask, signal);
  if (answer.kind === 'changed') return askBelow(reading, ask.hole.to);
  if (answer.kind === 'too-old') return null;
  if (answer.kind !== 'page') return answer.kind === 'odd' ? again(reading, fromFirstPage(ask)) : 'given up';
  const page = answer.reply.value;
  const known = { visibleFromNs: null, emptyBefore: reading.empties, anchorWaived: true };
  const judged = judgePage(ask, page, known);
  const { readings } = judged;
  reading.take({ reply: answer.reply, readings });
  if (readings.length === 0) reading.empties += 1;
  if (judged.next === 'again') return again(reading, ask);
  const isHollow = judged.next === 'cursor' && readings.length === 0;
  if (isHollow && reading.empties >= TRIES) return 'given up';
  if (!isHollow) Object.assign(reading, { odd: 0, empties: 0 });
  const next = nextAsk(ask, judged, { page, hole, far: null, limits: rules.limits() });
  // A window of the plan may be narrower.
  return next ?? askBelow(reading, ask.hole.from);
}

/** Of a device that was forgotten while a page of it was under way, nothing is taken any more. */
function givenUpWhereForgotten(error: unknown): 'given up' {
  if (error instanceof ForgottenError) return 'given up';
  throw error;
}

function again(reading: WindowReading, ask: Ask): Ask | 'given up' {
  reading.odd += 1;
  return reading.odd >= TRIES ? 'given up' : ask;
}
