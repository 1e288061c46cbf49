/**
 * An errand: what the planner has decided on about one device, carried out: one page of its newest end or its history.
 *
 * Each answer of the API is landed as by any other walk; what is new here is only where it stops: after the first page
 * that proved something, so that the next request is the most valuable one again.
 */
import type { Interval } from '../core/intervals.ts';
import { DAY_NS, maxNs, minNs, msToNs, nsToMs, SECOND_NS } from '../core/time.ts';
import type { PullTask, SyncContext, TakenPage } from '../ingest/context.ts';
import { nameGap } from '../ingest/walking.ts';
import type { TailAnswer } from './planner-notes.ts';
import type { HistoryDecision, TailDecision } from './planner-types.ts';
import type { Planning, Viewed } from './planning.ts';

export interface ErrandParts {
  readonly context: SyncContext;
  readonly planning: Planning;
}

/** A pull that stops after one page, and what it has brought. */
export interface Errand {
  readonly task: PullTask;
  readonly taken: TakenPage[];
}

/** The pull for a decision; `null` while nothing is known of the server's time, and of a device that has left. */
export function errandFor({ planning }: ErrandParts, decision: TailDecision | HistoryDecision): Errand | null {
  const { deviceId, lane } = decision;
  const now = planning.view(deviceId);
  if (now === null) return null;
  const span = decision.kind === 'tail' ? tailSpan(now, decision) : planning.historySpan(decision);
  if (span === null) return null;
  const taken: TakenPage[] = [];
  const task: PullTask = {
    deviceId,
    lane,
    // What a backfill asks for has an end of its own, also where that is all that can be claimed.
    limit: lane === 'backfill' ? now.wanted.to + 1n : now.wanted.to,
    span,
    isPaused: () => taken.some(({ isProven }) => isProven),
    took: (page) => void taken.push(page),
  };
  return { task, taken };
}

/** Whether an errand has told anything of its device: pages that nobody could believe, with nothing new, have not. */
export function hasTold(errand: Errand | null): errand is Errand {
  return errand?.taken.some(({ isUnderstood, newReadings }) => isUnderstood || newReadings > 0) ?? false;
}

/** The newest end of a device, or the hole that was left there. */
function tailSpan({ state, view, wanted }: Viewed, { untilMs }: TailDecision): Interval {
  const newest = state.spans.at(-1);
  const dayFrom = maxNs(wanted.to - DAY_NS, wanted.from);
  if (newest !== undefined && view.hole !== null) return { from: msToNs(view.hole.fromMs), to: newest.from };
  // Down to what is held, however long ago that was: one page tells of all that time where there was little.
  const from = newest === undefined ? dayFrom : maxNs(minNs(newest.to, dayFrom), wanted.from);
  const until = untilMs === null ? wanted.to : maxNs(msToNs(untilMs), from + SECOND_NS);
  return { from, to: minNs(wanted.to, until) };
}

/** What the newest end of a device turned out to be; what lies below it is given up where that was decided. */
export function tailAnswer(
  { context, planning }: ErrandParts,
  { task, taken }: Errand,
  { newestOnly }: TailDecision,
): TailAnswer {
  const newReadings = taken.reduce((sum, page) => sum + page.newReadings, 0);
  const instantsMs = (taken.at(-1)?.readings ?? []).map(({ recordedAt }) => nsToMs(recordedAt));
  const now = planning.view(task.deviceId);
  const hole = now?.view.hole ?? null;
  if (hole === null || !newestOnly) return { newReadings, instantsMs, hole };
  const to = now?.state.spans.at(-1)?.from ?? 0n;
  nameGap({ context, task }, { from: msToNs(hole.fromMs), to }, 'beyond allowance');
  return { newReadings, instantsMs, hole: null };
}
