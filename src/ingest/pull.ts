/**
 * The pull: closes the holes in the coverage of one device, page by page.
 *
 * `ingest/page-request.ts` says what to ask and `ingest/judge-page.ts` what an answer proves; here it is asked, landed and asked
 * again (for odd answers see `odd-answers.ts`). Every page that was understood is landed before the next request, so
 * that stopping anywhere costs at most the page in flight.
 */
import { holesIn } from '../core/coverage.ts';
import { ApiFault } from '../core/faults.ts';
import { type Interval, normalize, subtract } from '../core/intervals.ts';
import { settleOf } from '../core/late.ts';
import type { Reply, RequestLane } from '../core/ports.ts';
import type { TelemetryPage } from '../core/records.ts';
import { ForgottenError, type Gap } from '../core/state/telemetry.ts';
import { ceilToSecond, type EpochNs, HOUR_NS, maxNs, minNs, msToNs } from '../core/time.ts';
import { landPage, withdrawClaims } from './commit.ts';
import type { PullTask, SyncContext } from './context.ts';
import { judgePage } from './judge-page.ts';
import { isEmptyInDoubt, noteShown } from './missed-overlap.ts';
import { askAgain, TRIES, takeRefusal } from './odd-answers.ts';
import { askPage, type PageAnswer } from './page.ts';
import { type Ask, nextAsk, SLACK_NS } from './page-request.ts';
import { askBelow, beginWalk, nameGap, type Walk } from './walking.ts';
import { createWindowRules, type WindowRules } from './window-limits.ts';

/** How many empty pages in a row may name a next one before that leads nowhere. */
const MAX_HOLLOW = 10;

export interface Puller {
  /**
   * Closes the holes of a device in a stretch, newest first. Returns when they are closed or named, or it is paused.
   *
   * @throws ApiFault where more than one answer about this device is in the way (unreachable, key, plan, scope, fault).
   */
  pull(task: PullTask, signal: AbortSignal): Promise<void>;
  /** Takes in the newest page of a device and claims nothing. @returns whether it had readings. */
  peek(deviceId: string, signal: AbortSignal): Promise<boolean>;
}

/** A puller over the ports of a sync. */
export function createPuller(context: SyncContext): Puller {
  const rules = createWindowRules(context);
  return {
    pull: async (wholeTask, signal) => {
      withdrawClaims(context, wholeTask.deviceId);
      const settledMs = settleNow(context, wholeTask.deviceId);
      let last: Interval | null = null;
      for (;;) {
        const task = settleLonger(context, wholeTask, settledMs);
        const hole = nextHole(context, rules, task);
        if (hole === null || isStopped(context, task)) return;
        const walk = beginWalk({ context, rules, task, hole });
        if (!(await unlessForgotten(walkUnless(walk, last, signal))) || walk.gone) return;
        last = hole;
      }
    },
    peek: async (deviceId, signal) => {
      const reply = await askNewest(context, rules, deviceId, signal);
      if (reply.value.deviceId !== null && reply.value.deviceId !== deviceId) return false;
      const { readings } = reply.value;
      const land = async (): Promise<void> =>
        void landPage(context, { deviceId, lane: 'live', reply, readings, proven: null });
      return (await unlessForgotten(land())) && readings.length > 0;
    },
  };
}

/** Walks a hole, but gives it a name where it is the last one still: a walk that changed nothing would be for ever. */
async function walkUnless(walk: Walk, last: Interval | null, signal: AbortSignal): Promise<void> {
  const { hole } = walk;
  if (last?.from === hole.from && last.to === hole.to) nameGap(walk, hole, 'page not understood');
  else await walkHole(walk, signal);
}

/** @returns whether it was done: not where the device was forgotten meanwhile, of which nothing may come back. */
async function unlessForgotten(work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (error instanceof ForgottenError) return false;
    throw error;
  }
}

/** Whether to stop where it is: something more urgent has its turn, or there is no room for another page. */
function isStopped({ room }: SyncContext, { isPaused }: PullTask): boolean {
  return isPaused() || !room().ok;
}

/** How long the readings of a device are waited for, in milliseconds. */
function settleNow({ store, settings }: SyncContext, deviceId: string): number {
  return settleOf(settings.settleMs, store.telemetry(deviceId).late);
}

/** The task, with its claims lowered by what the settle has grown since it began: late readings have come meanwhile. */
function settleLonger(context: SyncContext, task: PullTask, settledMs: number): PullTask {
  const grownMs = settleNow(context, task.deviceId) - settledMs;
  if (grownMs <= 0) return task;
  const limit = maxNs(task.limit - msToNs(grownMs), 0n);
  return { ...task, limit, span: { from: task.span.from, to: minNs(task.span.to, limit) } };
}

/** The newest page of a device: without bounds, and where that is refused, by as wide a window as there may be. */
async function askNewest(
  context: SyncContext,
  rules: WindowRules,
  deviceId: string,
  signal: AbortSignal,
): Promise<Reply<TelemetryPage>> {
  const purpose = { lane: 'live', stream: 'telemetry', deviceId } as const;
  try {
    return await context.api.telemetry({ deviceId, after: null, before: null, cursor: null }, purpose, signal);
  } catch (error) {
    if (!(error instanceof ApiFault) || error.kind !== 'invalid-request') throw error;
    const { spanNs, nowNs } = rules.limits();
    const before = ceilToSecond(nowNs) + SLACK_NS;
    const after = spanNs === null ? 0n : maxNs(before - spanNs, 0n);
    return await context.api.telemetry({ deviceId, after, before, cursor: null }, purpose, signal);
  }
}

/** The newest hole of the task that no name keeps closed for now, as far back as the service lets anybody ask. */
function nextHole(context: SyncContext, rules: WindowRules, task: PullTask): Interval | null {
  const { store, serverClock } = context;
  const { deviceId, span } = task;
  const open = holesIn(span, store.telemetry(deviceId).spans);
  if (open.length === 0) return null;
  const nowMs = serverClock.nowMs();
  const hiddenTo = rules.visibleFrom([]);
  const resting = store.gaps(deviceId).filter((gap) => isResting(gap, task.lane, nowMs));
  const hole = subtract(open, normalize(resting.map((gap) => restOf(gap, hiddenTo)))).at(-1);
  const servedFrom = rules.servedFrom();
  if (hole === undefined || servedFrom === null || hole.from >= servedFrom) return hole ?? null;
  nameGap({ context, task }, { from: hole.from, to: minNs(servedFrom, hole.to) }, 'beyond plan');
  return hole.to <= servedFrom ? null : { from: servedFrom, to: hole.to };
}

/** Whether a name keeps its hole closed: what was given up for the newest pages is what a backfill is asked for. */
export function isResting({ retryAtMs, reason }: Gap, lane: RequestLane, nowMs: number): boolean {
  return retryAtMs > nowMs && (lane !== 'backfill' || reason !== 'beyond allowance');
}

/** What of a named gap is left alone for now. A plan that has grown, or an age that does not matter, opens what it hid. */
function restOf({ fromNs, toNs, reason }: Gap, hiddenTo: EpochNs | null): Interval {
  if (reason !== 'beyond plan' || (hiddenTo !== null && toNs - hiddenTo < HOUR_NS)) return { from: fromNs, to: toNs };
  return { from: fromNs, to: hiddenTo ?? fromNs };
}

/** Walks one hole until its window was read to the end, it has a name, or the device is gone. */
async function walkHole(walk: Walk, signal: AbortSignal): Promise<void> {
  let ask: Ask | null = askBelow(walk, walk.hole.to, walk.near);
  while (ask !== null && !isStopped(walk.context, walk.task)) {
    const answer: PageAnswer = await askPage(walk, ask, signal);
    ask = answer.kind === 'page' ? await takePage(walk, { ask, answer }, signal) : takeRefusal(walk, ask, answer);
  }
}

async function takePage(
  walk: Walk,
  { ask, answer }: { ask: Ask; answer: Extract<PageAnswer, { kind: 'page' }> },
  signal: AbortSignal,
): Promise<Ask | null> {
  const { context, rules, task } = walk;
  const page = answer.reply.value;
  const judged = judgePage(ask, page, {
    visibleFromNs: rules.visibleFrom(page.readings),
    emptyBefore: isEmptyInDoubt(context, task.deviceId) ? 0 : walk.empties,
    // That others lack a reading does not make an empty answer one to believe.
    anchorWaived: walk.anchorMisses >= TRIES && (page.readings.length > 0 || walk.emptyBelieved),
  });
  const { readings, proven } = judged;
  noteShown(context, task.deviceId, readings);
  const newReadings = landPage(context, {
    deviceId: task.deviceId,
    lane: task.lane,
    reply: answer.reply,
    readings,
    proven,
  });
  const isProven = proven !== null && proven.from < proven.to;
  task.took?.({ readings, newReadings, isProven, isUnderstood: judged.next !== 'again' });
  if (judged.next === 'again') return await askAgain(walk, { ask, judged, page }, signal);
  if (judged.reason === 'beyond plan' && proven !== null) {
    nameGap(walk, { from: ask.hole.from, to: proven.from }, 'beyond plan');
  }
  const hollow = judged.next === 'cursor' && readings.length === 0 ? walk.hollow + 1 : 0;
  Object.assign(walk, { odd: 0, empties: 0, anchorMisses: 0, emptyBelieved: false, hollow });
  if (hollow >= MAX_HOLLOW) {
    nameGap(walk, ask.hole, 'page not understood');
    return null;
  }
  return nextAsk(ask, judged, { page, hole: walk.hole, far: walk.far, limits: rules.limits() });
}
