/**
 * A goal: ranges of many devices that a command has requested, with a fixed end. A backfill is a goal (`backfill.ts`),
 * and so is the range that `--once` closes.
 *
 * The remaining work of a goal is computed from the coverage each time, so its work may end at any moment and start
 * again.
 */

import { gapsIn } from '../core/coverage.ts';
import { type Interval, type Intervals, normalize, subtract } from '../core/intervals.ts';
import type { Clock, RequestLane } from '../core/ports.ts';
import type { TelemetryState } from '../core/state/telemetry.ts';
import { DAY_NS, type EpochMs, type EpochNs, MINUTE_MS, maxNs } from '../core/time.ts';
import type { CommittedPage, SyncContext, WantedRange } from '../ingest/context.ts';
import { limitFor } from '../ingest/coverage-rules.ts';
import { createLearntWindows, windowRules } from '../ingest/fetch-page.ts';
import { isResting, restingRange } from '../ingest/named-gaps.ts';
import { coverableNow } from '../ingest/wanted-range.ts';
import { planEdge } from '../ingest/window-limits.ts';
import { openHistory, type ViewInput } from './device-view.ts';
import type { OpenHistory, Recency } from './history-queue.ts';

/** The next range to request from a device. */
export interface GoalGap {
  readonly range: Interval;
  /** The coverage limit of the device: a range that ends there is requested without an upper bound. */
  readonly limit: EpochNs;
  readonly lane: RequestLane;
  /**
   * Reads a page of a covered range again; without it the range is a gap.
   *
   * @returns whether its answers could be used.
   * @throws ApiFault
   */
  readonly readAgain?: (signal: AbortSignal) => Promise<boolean>;
}

/** Ranges that a command waits for. */
export interface Goal {
  covers(deviceId: string): boolean;
  /**
   * Returns the missing history of a device that can be requested now.
   *
   * @param others ranges that other work requests.
   */
  open(deviceId: string, others: Intervals): OpenHistory;
  /** Returns the next range to request; `null` if there is none now. */
  next(deviceId: string, recency: Recency, others: Intervals): GoalGap | null;
  /** Returns when its next request may be sent, in server time, if the goal limits its own rate. */
  freeAtMs(nowMs: EpochMs): EpochMs;
  /** Records that a request of its lane was booked. */
  noteSent(nowMs: EpochMs): void;
  /** Records that a page of its lane was committed. */
  noteCommitted(page: CommittedPage): void;
}

/** All wanted gaps up to the coverage limit, of every device that is present: the goal of `--once`. */
export function createWantedGoal(context: SyncContext, wantedRange: WantedRange): Goal {
  const { store, serverClock } = context;
  const windows = createLearntWindows(context);
  const limitNow = (state: TelemetryState): EpochNs => limitFor(coverableNow(context, wantedRange), state);
  const requestableGaps = (state: TelemetryState, others: Intervals): Intervals => {
    const { deviceId, covered } = state;
    const wanted = { from: wantedRange.wantedFrom, to: maxNs(limitNow(state), wantedRange.wantedFrom) };
    const nowMs = serverClock.nowMs();
    const resting = store.gaps(deviceId).filter((gap) => isResting(gap, 'first-history', nowMs));
    // A larger plan makes hidden ranges requestable.
    const hiddenTo = planEdge(windowRules(windows));
    const rests = normalize(resting.map((gap) => restingRange(gap, hiddenTo)));
    return gapsToRequest({ covered, wanted, resting: rests, others });
  };
  return {
    covers: () => true,
    open: (deviceId, others) => openAtLeast(requestableGaps(store.telemetry(deviceId), others), wantedRange.limit),
    next: (deviceId, recency, others) => {
      const state = store.telemetry(deviceId);
      const range = newestGap(requestableGaps(state, others), recency, wantedRange.limit);
      // A dashboard shows the last day first: it is archived and delivered before all other history.
      return range && { range, limit: limitNow(state), lane: recency === 'day' ? 'live' : 'first-history' };
    },
    freeAtMs: () => Number.NEGATIVE_INFINITY,
    noteSent: () => {},
    noteCommitted: () => {},
  };
}

/** The longest wait for empty ranges that must be requested again, when everything else is complete. */
const LONGEST_RECHECK_MS = 2 * MINUTE_MS;

/**
 * Whether the wait for empty ranges that were due for another request when the goal was set is over: none of them is
 * due any more, or everything else has been complete for two minutes.
 *
 * @param dueBeforeMs when the goal was set, in server time.
 * @param sinceMs since when everything else is complete, by the monotonic clock.
 */
export function isRecheckOver(
  {
    store,
    clock,
  }: { readonly store: Pick<SyncContext['store'], 'dueEmptyRanges'>; readonly clock: Pick<Clock, 'monoMs'> },
  { dueBeforeMs, sinceMs }: { readonly dueBeforeMs: EpochMs; readonly sinceMs: number },
): boolean {
  return store.dueEmptyRanges(dueBeforeMs).length === 0 || clock.monoMs() - sinceMs >= LONGEST_RECHECK_MS;
}

interface WantedGaps extends Pick<ViewInput, 'covered' | 'wanted' | 'resting'> {
  /** Ranges that other work requests. */
  readonly others: Intervals;
}

/** The gaps that can be requested now, ascending. */
export function gapsToRequest({ covered, wanted, resting, others }: WantedGaps): Intervals {
  if (wanted.from >= wanted.to) return [];
  return subtract(subtract(gapsIn(wanted, covered), resting), others);
}

/** How much is missing, by how far back it is. A range shorter than a millisecond counts as well. */
export function openAtLeast(missing: Intervals, now: EpochNs): OpenHistory {
  const open = openHistory(missing, now);
  return missing.length > 0 && open.day + open.week + open.rest === 0 ? { ...open, rest: 1 } : open;
}

const RECENCY_NS: Readonly<Record<Recency, bigint | null>> = { day: DAY_NS, week: 7n * DAY_NS, rest: null };

/** The newest gap, or the part of it with the requested recency; `null` if there is none. */
export function newestGap(gaps: Intervals, recency: Recency, now: EpochNs): Interval | null {
  const gap = gaps.at(-1);
  const back = RECENCY_NS[recency];
  if (gap === undefined) return null;
  const from = back === null ? gap.from : maxNs(gap.from, now - back);
  return from < gap.to ? { from, to: gap.to } : null;
}
