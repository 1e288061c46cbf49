/**
 * Named gaps: what is wanted and could not be had so far, with the reason and the time at which it is worth another try.
 */
import type { Interval } from '../core/intervals.ts';
import type { RequestLane } from '../core/ports.ts';
import type { Gap, GapReason } from '../core/state/telemetry.ts';
import { DAY_MS, type EpochNs, formatExact, HOUR_NS, MINUTE_MS } from '../core/time.ts';
import type { SyncContext } from './context.ts';

/** When a named gap is worth another try: soon where the answer was odd, daily where the plan hides it. */
const RETRY_MS: Readonly<Record<GapReason, number>> = {
  'page not understood': 5 * MINUTE_MS,
  'device unreachable': 5 * MINUTE_MS,
  'beyond plan': DAY_MS,
  'beyond allowance': DAY_MS,
  'device gone': DAY_MS,
};

/** Whether a name keeps its gap closed: what was given up for the newest pages is what a backfill is asked for. */
export function isResting({ retryAtMs, reason }: Gap, lane: RequestLane, nowMs: number): boolean {
  return retryAtMs > nowMs && (lane !== 'backfill' || reason !== 'beyond allowance');
}

/** What of a named gap is left alone for now. A plan that has grown, or an age that does not matter, opens what it hid. */
export function restOf({ fromNs, toNs, reason }: Gap, hiddenTo: EpochNs | null): Interval {
  if (reason !== 'beyond plan' || (hiddenTo !== null && toNs - hiddenTo < HOUR_NS)) return { from: fromNs, to: toNs };
  return { from: fromNs, to: hiddenTo ?? fromNs };
}

/** Gives a gap a name, under which it rests until it is worth another try. */
export function nameGap(
  { store, serverClock, observe }: SyncContext,
  { deviceId, from, to, reason }: Interval & { readonly deviceId: string; readonly reason: GapReason },
): void {
  const retryAtMs = serverClock.nowMs() + RETRY_MS[reason];
  store.nameGap({ deviceId, fromNs: from, toNs: to, reason, retryAtMs });
  observe({ type: 'gap-named', deviceId, reason, from: formatExact(from), to: formatExact(to) });
}
