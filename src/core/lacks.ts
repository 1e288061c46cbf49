/**
 * What a destination lacks for good, in the words of the status report and of people. Pure.
 */
import type { LackReason, LackSum } from './log-state.ts';
import type { LackStatus } from './status.ts';
import { formatExact } from './time.ts';

/** The sums of a destination as the status report shows them. */
export function lackStatuses(sums: readonly LackSum[]): LackStatus[] {
  return sums.map(({ reason, points, devices, fromNs, toNs }) => ({
    reason,
    points,
    devices,
    from: formatExact(fromNs),
    to: formatExact(toNs),
  }));
}

const WHY: Readonly<Record<LackReason, string>> = {
  'beyond retention': 'beyond its retention',
  'set aside': 'it was set aside',
  cleared: 'the archive no longer kept them',
};

/** A sentence for people, without its end: how many points are not in the destination, and why. */
export function lackWords(destination: string, { reason, points, from, to }: LackStatus): string {
  return `${points.toLocaleString('en-GB')} points are not in ${destination}: ${WHY[reason]} (from ${from} to ${to})`;
}
