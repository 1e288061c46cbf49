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
import { ApiFault } from '../core/faults.ts';
import { type Interval, normalize, subtract } from '../core/intervals.ts';
import type { Reply } from '../core/ports.ts';
import type { TelemetryPage } from '../core/records.ts';
import type { Gap, GapReason } from '../core/telemetry-state.ts';
import { ceilToSecond, DAY_MS, type EpochNs, formatExact, HOUR_NS, MINUTE_MS, maxNs, minNs } from '../core/time.ts';
import { type Ask, askFor, type Judgement, judgePage, nextAsk, SLACK_NS } from '../core/walk.ts';
import type { PullTask, SyncContext } from './context.ts';
import { landPage } from './land.ts';
import { askPage, type PageAnswer } from './page.ts';
import { createWindowRules, type WindowRules } from './window-rules.ts';

/** How often an answer that proves nothing is asked for before the hole gets a name. */
const TRIES = 3;

/** How many empty pages in a row may name a next one before that leads nowhere. */
const MAX_HOLLOW = 10;

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
      for (let hole = nextHole(context, rules, task); hole !== null; hole = nextHole(context, rules, task)) {
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
      const reply = await askNewest(context, rules, deviceId, signal);
      if (reply.value.deviceId !== null && reply.value.deviceId !== deviceId) return false;
      const { readings } = reply.value;
      landPage(context, { deviceId, lane: 'live', reply, readings, proven: null });
      return readings.length > 0;
    },
  };
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
  const resting = store.gaps(deviceId).filter((gap) => gap.retryAtMs > nowMs);
  const hole = subtract(open, normalize(resting.map((gap) => restOf(gap, hiddenTo)))).at(-1);
  const servedFrom = rules.servedFrom();
  if (hole === undefined || servedFrom === null || hole.from >= servedFrom) return hole ?? null;
  nameGap({ context, task }, { from: hole.from, to: minNs(servedFrom, hole.to) }, 'beyond plan');
  return hole.to <= servedFrom ? null : { from: servedFrom, to: hole.to };
}

/** What of a named gap is left alone for now. A plan that has grown, or an age that does not matter, opens what it hid. */
function restOf({ fromNs, toNs, reason }: Gap, hiddenTo: EpochNs | null): Interval {
  if (reason !== 'beyond plan' || (hiddenTo !== null && toNs - hiddenTo < HOUR_NS)) return { from: fromNs, to: toNs };
  return { from: fromNs, to: hiddenTo ?? fromNs };
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
  /** Pages in a row without a reading that named a next one. */
  hollow: number;
  gone: boolean;
}

function beginWalk(about: Pick<Walk, 'context' | 'rules' | 'task' | 'hole'>): Walk {
  const { spans } = about.context.store.telemetry(about.task.deviceId);
  const { near, far } = anchorsOf(about.hole, spans);
  const servedFrom = about.rules.servedFrom();
  const reachable = far !== null && servedFrom !== null && far.at < servedFrom ? null : far;
  return { ...about, near, far: reachable, odd: 0, empties: 0, anchorMisses: 0, hollow: 0, gone: false };
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
  const hollow = judged.next === 'cursor' && readings.length === 0 ? walk.hollow + 1 : 0;
  Object.assign(walk, { odd: 0, empties: 0, anchorMisses: 0, hollow });
  if (hollow >= MAX_HOLLOW) {
    nameGap(walk, ask.hole, 'page not understood');
    return null;
  }
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
  // The walk ends; what is left of the hole is looked for anew, as far back as may be asked.
  if (answer.kind === 'too-old') return null;
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

function nameGap({ context, task }: Pick<Walk, 'context' | 'task'>, { from, to }: Interval, reason: GapReason): void {
  const retryAtMs = context.serverClock.nowMs() + RETRY_MS[reason];
  const { deviceId } = task;
  context.store.nameGap({ deviceId, fromNs: from, toNs: to, reason, retryAtMs });
  context.observe({ type: 'gap-named', deviceId, reason, from: formatExact(from), to: formatExact(to) });
}
