/**
 * The way through one hole of one device: what is known on it, and the questions that it is asked by.
 */
import { anchorsOf, type CoveredSpan, type Edge } from '../core/coverage.ts';
import type { Interval } from '../core/intervals.ts';
import type { GapReason } from '../core/state/telemetry.ts';
import { DAY_MS, type EpochNs, formatExact, MINUTE_MS, maxNs } from '../core/time.ts';
import type { PullTask, SyncContext } from './context.ts';
import { stillWantedFrom } from './horizon.ts';
import { unlessGone } from './missed-overlap.ts';
import { type Ask, askFor } from './page-request.ts';
import type { WindowRules } from './window-limits.ts';

/** When a named gap is worth another try: soon where the answer was odd, daily where the plan hides it. */
const RETRY_MS: Readonly<Record<GapReason, number>> = {
  'page not understood': 5 * MINUTE_MS,
  'device unreachable': 5 * MINUTE_MS,
  'beyond plan': DAY_MS,
  'beyond allowance': DAY_MS,
  'device gone': DAY_MS,
};

/** The way through one hole, and how much odd behaviour it has met. */
export interface Walk {
  readonly context: SyncContext;
  readonly rules: WindowRules;
  readonly task: PullTask;
  readonly hole: Interval;
  readonly near: Edge | null;
  readonly far: Edge | null;
  /** How far back beyond the hole late readings are looked for, where that costs nothing. */
  readonly reachTo: EpochNs | null;
  odd: number;
  empties: number;
  anchorMisses: number;
  /** Whether answers without a reading are believed though they lack an anchor: it is taken as gone. */
  emptyBelieved: boolean;
  /** Pages in a row without a reading that named a next one. */
  hollow: number;
  gone: boolean;
}

export function beginWalk(about: Pick<Walk, 'context' | 'rules' | 'task' | 'hole'>): Walk {
  const { context, rules, task, hole } = about;
  const { spans } = context.store.telemetry(task.deviceId);
  const anchors = anchorsOf(hole, spans);
  const near = unlessGone(context, task.deviceId, anchors.near);
  const far = unlessGone(context, task.deviceId, anchors.far);
  const servedFrom = rules.servedFrom();
  const reachable = far !== null && servedFrom !== null && far.at < servedFrom ? null : far;
  const reachTo = reachOf(
    context,
    task.deviceId,
    spans.find(({ to }) => to === hole.from),
  );
  const begun = { odd: 0, empties: 0, anchorMisses: 0, emptyBelieved: false, hollow: 0, gone: false };
  return { ...about, near, far: reachable, reachTo, ...begun };
}

/**
 * Back through what is held below the hole, as far as it is wanted and not cleared away: what is asked again there
 * could not be told from what is new, and would be written again.
 */
function reachOf(context: SyncContext, deviceId: string, below: CoveredSpan | undefined): EpochNs | null {
  if (below === undefined) return null;
  const cleared = context.store.cleared(deviceId, below.from, below.to).at(-1)?.to ?? below.from;
  return maxNs(maxNs(below.from, cleared), stillWantedFrom(context));
}

/** The question for what is left of the hole below `to`, by the window rules as they stand. */
export function askBelow({ rules, task, hole, far, reachTo }: Walk, to: EpochNs, near: Edge | null): Ask {
  const live = to === task.limit && near === null;
  const left = { from: hole.from, to };
  return askFor({ deviceId: task.deviceId, hole: left, near, far, live, reachTo }, rules.limits());
}

/** The same question from its first page: a chain of cursors is begun anew. */
export function fromFirstPage(ask: Ask): Ask {
  return { ...ask, cursor: null, nearSeen: ask.near === null };
}

/** Gives a hole a name, under which it rests until it is worth another try. */
export function nameGap(
  { context, task }: Pick<Walk, 'context' | 'task'>,
  { from, to }: Interval,
  reason: GapReason,
): void {
  const retryAtMs = context.serverClock.nowMs() + RETRY_MS[reason];
  const { deviceId } = task;
  context.store.nameGap({ deviceId, fromNs: from, toNs: to, reason, retryAtMs });
  context.observe({ type: 'gap-named', deviceId, reason, from: formatExact(from), to: formatExact(to) });
}
