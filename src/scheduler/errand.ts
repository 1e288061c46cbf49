/**
 * An errand: what the planner has decided on about one device, carried out: one page of its newest end or its history.
 *
 * Each answer of the API is landed as by any other walk; what is new here is only where it stops: after the first page
 * that proved something, so that the next request is the most valuable one again.
 */
import type { Interval } from '../core/intervals.ts';
import { DAY_NS, maxNs, minNs, msToNs, nsToMs, SECOND_NS } from '../core/time.ts';
import type { SyncContext } from '../ingest/context.ts';
import { nameGap } from '../ingest/named-gaps.ts';
import type { ScanResult, ScanTask } from '../ingest/page-scan.ts';
import type { TailAnswer } from './device-outlook.ts';
import type { HistoryDecision, TailDecision } from './planner-types.ts';
import type { Planning, Viewed } from './planning.ts';

export interface ErrandParts {
  readonly context: SyncContext;
  readonly planning: Planning;
}

/** The page scan for a decision; `null` while nothing is known of the server's time, and of a device that has left. */
export function errandFor({ planning }: ErrandParts, decision: TailDecision | HistoryDecision): ScanTask | null {
  const { deviceId, lane } = decision;
  const now = planning.view(deviceId);
  if (now === null) return null;
  const range = decision.kind === 'tail' ? tailSpan(now, decision) : planning.historySpan(decision);
  if (range === null) return null;
  return {
    deviceId,
    lane,
    // What a backfill asks for has an end of its own, also where that is all that can be claimed.
    limit: lane === 'backfill' ? now.wanted.to + 1n : now.wanted.to,
    range,
    until: 'first proof',
  };
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
  { newReadings, lastReadings }: ScanResult,
  { deviceId, newestOnly }: TailDecision,
): TailAnswer {
  const instantsMs = lastReadings.map(({ recordedAt }) => nsToMs(recordedAt));
  const now = planning.view(deviceId);
  const hole = now?.view.hole ?? null;
  if (hole === null || !newestOnly) return { newReadings, instantsMs, hole };
  const to = now?.state.spans.at(-1)?.from ?? 0n;
  nameGap(context, { deviceId, from: msToNs(hole.fromMs), to, reason: 'beyond allowance' });
  return { newReadings, instantsMs, hole: null };
}
