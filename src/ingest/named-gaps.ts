/**
 * Named gaps: ranges that are wanted and could not be read so far, each with its reason and the time of its next try.
 * The rules, which are pure, and the two functions that write them.
 */
import { runUnlessFull } from '../core/archive-room.ts';
import type { Interval } from '../core/intervals.ts';
import type { RequestLane } from '../core/ports.ts';
import type { Gap, GapReason } from '../core/state/telemetry.ts';
import { DAY_MS, type EpochMs, type EpochNs, formatExact, HOUR_NS, MINUTE_MS } from '../core/time.ts';
import type { SyncContext } from './context.ts';

/** How long a named gap rests: minutes if the answer was unusable, a day if the plan hides it. */
const RETRY_MS: Readonly<Record<GapReason, number>> = {
  page_rejected: 5 * MINUTE_MS,
  unverified: MINUTE_MS,
  unreachable: 5 * MINUTE_MS,
  beyond_plan: DAY_MS,
  over_quota: DAY_MS,
  device_gone: DAY_MS,
};

/** How far ahead the clock may have been that dated a gap. */
const CLOCK_SLACK_MS = MINUTE_MS;

/**
 * Whether the time of the next try is in the future. If that is further away than the gap's reason allows, a clock that
 * was ahead has dated the gap, and it is tried now.
 */
export function isAwaitingRetry({ retryAtMs, reason }: Pick<Gap, 'retryAtMs' | 'reason'>, nowMs: EpochMs): boolean {
  return retryAtMs > nowMs && retryAtMs - nowMs <= RETRY_MS[reason] + CLOCK_SLACK_MS;
}

/** Whether a gap rests now. A backfill requests the gaps that were given up in favour of newer pages. */
export function isResting(gap: Gap, lane: RequestLane, nowMs: EpochMs): boolean {
  return isAwaitingRetry(gap, nowMs) && (lane !== 'backfill' || gap.reason !== 'over_quota');
}

/**
 * Returns the part of a named gap that is not requested at present. A larger plan, or an age limit that does not apply,
 * makes the gap requestable.
 */
export function restingRange({ fromNs, toNs, reason }: Gap, hiddenTo: EpochNs | null): Interval {
  if (reason !== 'beyond_plan' || (hiddenTo !== null && toNs - hiddenTo < HOUR_NS)) return { from: fromNs, to: toNs };
  return { from: fromNs, to: hiddenTo ?? fromNs };
}

/**
 * Names a gap.
 *
 * @param longestMs the longest rest of the gap; by its reason if absent
 * @returns the named gap, with the time of its next request.
 */
export function namedGap(
  { deviceId, from, to, reason }: Interval & { readonly deviceId: string; readonly reason: GapReason },
  nowMs: EpochMs,
  longestMs = Number.POSITIVE_INFINITY,
): Gap {
  return { deviceId, fromNs: from, toNs: to, reason, retryAtMs: nowMs + Math.min(RETRY_MS[reason], longestMs) };
}

/** Ends the rest of a device's gaps that have this reason, so that they are requested now. */
export function liftGaps(context: SyncContext, deviceId: string, reason: GapReason): void {
  const { store, serverClock, noteStateFull } = context;
  const nowMs = serverClock.nowMs();
  runUnlessFull(() => {
    for (const gap of store.gaps(deviceId)) {
      if (gap.reason === reason && gap.retryAtMs > nowMs) store.nameGap({ ...gap, retryAtMs: nowMs });
    }
  }, noteStateFull);
}

/**
 * Names a gap. It rests until its next try.
 *
 * @param longestMs the longest rest
 */
export function nameGap(
  { store, serverClock, observe }: Pick<SyncContext, 'store' | 'serverClock' | 'observe'>,
  gap: Interval & { readonly deviceId: string; readonly reason: GapReason },
  longestMs?: number,
): void {
  const { deviceId, from, to, reason } = gap;
  store.nameGap(namedGap(gap, serverClock.nowMs(), longestMs));
  observe({ type: 'gap-recorded', deviceId, reason, from: formatExact(from), to: formatExact(to) });
}
