/**
 * The pull: closes the holes in the coverage of one device, page by page.
 *
 * `core/walk.ts` says what to ask and what an answer proves; here it is asked, landed and asked again. Every page that
 * was understood is landed before the next request, so that stopping anywhere costs at most the page in flight.
 *
 * An answer that proves nothing is asked for again; three of them make a named gap, which is tried again later. Only
 * where an anchor was missing three times is it taken as gone: a restatement, told and gone on from.
 */
import { anchorsOf, type Edge, holesIn } from '../core/coverage.ts';
import { type Interval, normalize, subtract } from '../core/intervals.ts';
import type { TelemetryPage } from '../core/records.ts';
import type { GapReason } from '../core/state.ts';
import { DAY_MS, type EpochNs, formatExact, MINUTE_MS } from '../core/time.ts';
import { type Ask, askFor, type Judgement, judgePage, nextAsk } from '../core/walk.ts';
import type { PullTask, SyncContext } from './context.ts';
import { landPage } from './land.ts';
import { askPage, type PageAnswer } from './page.ts';
import { createWindowRules, type WindowRules } from './window-rules.ts';

/** How often an answer that proves nothing is asked for before the hole gets a name. */
const TRIES = 3;

/** How long to wait before an odd answer is asked for again: a replica that lags behind gets time to catch up. */
const AGAIN_MS = 1000;

/** When a named gap is worth another try: soon where the answer was odd, daily where the plan hides it. */
const RETRY_MS: Readonly<Record<GapReason, number>> = {
  'page not understood': 5 * MINUTE_MS,
  'device unreachable': 5 * MINUTE_MS,
  'beyond plan': DAY_MS,
  'device gone': DAY_MS,
};

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
    pull: async (task, signal) => {
      let last: Interval | null = null;
      for (let hole = nextHole(context, task); hole !== null; hole = nextHole(context, task)) {
        if (task.isPaused()) return;
        const walk = beginWalk({ context, rules, task, hole });
        // A walk that changed nothing would be walked for ever.
        if (last?.from === hole.from && last.to === hole.to) nameGap(walk, hole, 'page not understood');
        else await walkHole(walk, signal);
        if (walk.gone) return;
        last = hole;
      }
    },
    peek: async (deviceId, signal) => {
      const query = { deviceId, after: null, before: null, cursor: null };
      const reply = await context.api.telemetry(query, { lane: 'live', stream: 'telemetry', deviceId }, signal);
      if (reply.value.deviceId !== null && reply.value.deviceId !== deviceId) return false;
      const { readings } = reply.value;
      landPage(context, { deviceId, lane: 'live', reply, readings, proven: null });
      return readings.length > 0;
    },
  };
}

/** The newest hole of the task that no name keeps closed for now. */
function nextHole({ store, serverClock }: SyncContext, { deviceId, span }: PullTask): Interval | null {
  const open = holesIn(span, store.telemetry(deviceId).spans);
  if (open.length === 0) return null;
  const nowMs = serverClock.nowMs();
  const resting = store.gaps(deviceId).filter((gap) => gap.retryAtMs > nowMs);
  return subtract(open, normalize(resting.map(({ fromNs, toNs }) => ({ from: fromNs, to: toNs })))).at(-1) ?? null;
}

/** The way through one hole, and how much odd behaviour it has met. */
interface Walk {
  readonly context: SyncContext;
  readonly rules: WindowRules;
  readonly task: PullTask;
  readonly hole: Interval;
  readonly near: Edge | null;
  readonly far: Edge | null;
  odd: number;
  empties: number;
  anchorMisses: number;
  gone: boolean;
}

function beginWalk(about: Pick<Walk, 'context' | 'rules' | 'task' | 'hole'>): Walk {
  const { spans } = about.context.store.telemetry(about.task.deviceId);
  return { ...about, ...anchorsOf(about.hole, spans), odd: 0, empties: 0, anchorMisses: 0, gone: false };
}

/** The question for what is left of the hole below `to`, by the window rules as they stand. */
function askBelow({ rules, task, hole, far }: Walk, to: EpochNs, near: Edge | null): Ask {
  const live = to === task.limit && near === null;
  const left = { from: hole.from, to };
  return askFor({ deviceId: task.deviceId, hole: left, near, far, live }, rules.limits());
}

/** The same question from its first page: a chain of cursors is begun anew. */
function fromFirstPage(ask: Ask): Ask {
  return { ...ask, cursor: null, nearSeen: ask.near === null };
}

/** Walks one hole until its window was read to the end, it has a name, or the device is gone. */
async function walkHole(walk: Walk, signal: AbortSignal): Promise<void> {
  let ask: Ask | null = askBelow(walk, walk.hole.to, walk.near);
  while (ask !== null && !walk.task.isPaused()) {
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
    emptyBefore: walk.empties,
    anchorWaived: walk.anchorMisses >= TRIES,
  });
  const { readings, proven } = judged;
  landPage(context, { deviceId: task.deviceId, lane: task.lane, reply: answer.reply, readings, proven });
  if (judged.next === 'again') return await askAgain(walk, { ask, judged, page }, signal);
  if (judged.reason === 'beyond plan' && proven !== null) {
    nameGap(walk, { from: ask.hole.from, to: proven.from }, 'beyond plan');
  }
  Object.assign(walk, { odd: 0, empties: 0, anchorMisses: 0 });
  return nextAsk(ask, judged, { page, hole: walk.hole, far: walk.far, limits: rules.limits() });
}

/** What to do about an answer that proved nothing: the same question, the walk from its start, or a name for the hole. */
async function askAgain(
  walk: Walk,
  { ask, judged, page }: { ask: Ask; judged: Judgement; page: TelemetryPage },
  signal: AbortSignal,
): Promise<Ask | null> {
  const { context, task } = walk;
  const isEmpty = page.readings.length === 0 && (page.deviceId === null || page.deviceId === task.deviceId);
  if (isEmpty) walk.empties += 1;
  if (isEmpty && !judged.anchorMissing && walk.empties === 1) return ask;
  walk.odd += 1;
  const reason = judged.reason ?? '';
  context.observe({ type: 'page-distrusted', deviceId: task.deviceId, reason, attempt: walk.odd });
  if (judged.anchorMissing) {
    walk.anchorMisses += 1;
    if (walk.anchorMisses === TRIES) {
      const at = formatExact((ask.near ?? ask.far)?.at ?? ask.hole.to);
      context.observe({ type: 'restatement', deviceId: task.deviceId, at });
    }
  } else if (walk.odd >= TRIES) {
    nameGap(walk, ask.hole, 'page not understood');
    return null;
  }
  await context.clock.sleep(AGAIN_MS, signal);
  return judged.anchorMissing ? fromFirstPage(ask) : ask;
}

function takeRefusal(walk: Walk, ask: Ask, answer: Exclude<PageAnswer, { kind: 'page' }>): Ask | null {
  const { context, task } = walk;
  const { deviceId } = task;
  if (answer.kind === 'changed') return askBelow(walk, ask.hole.to, ask.near);
  if (answer.kind === 'odd') {
    walk.odd += 1;
    context.observe({ type: 'page-distrusted', deviceId, reason: answer.reason, attempt: walk.odd });
    if (walk.odd < TRIES) return fromFirstPage(ask);
    nameGap(walk, ask.hole, 'page not understood');
  } else if (answer.kind === 'gone') {
    walk.gone = true;
    context.store.markGone(deviceId, context.serverClock.nowMs());
    context.observe({ type: 'device-gone', deviceId });
  } else {
    nameGap(walk, walk.hole, 'device unreachable');
  }
  return null;
}

function nameGap({ context, task }: Walk, { from, to }: Interval, reason: GapReason): void {
  const retryAtMs = context.serverClock.nowMs() + RETRY_MS[reason];
  const { deviceId } = task;
  context.store.nameGap({ deviceId, fromNs: from, toNs: to, reason, retryAtMs });
  context.observe({ type: 'gap-named', deviceId, reason, from: formatExact(from), to: formatExact(to) });
}
