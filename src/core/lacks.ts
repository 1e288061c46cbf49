/**
 * What a destination lacks for good, in the words of the status report and of people. Pure.
 */
import type { MissingReason, MissingSum } from './state/log.ts';
import type { LackStatus } from './status.ts';
import { grouped } from './text.ts';
import { formatExact } from './time.ts';

/** The sums of a destination as the status report shows them. */
export function lackStatuses(sums: readonly MissingSum[]): LackStatus[] {
  return sums.map(({ reason, points, devices, fromNs, toNs }) => ({
    reason,
    points,
    devices,
    from: formatExact(fromNs),
    to: formatExact(toNs),
  }));
}

const WHY: Readonly<Record<MissingReason, string>> = {
  'beyond retention': 'beyond its retention',
  'set aside': 'it was set aside',
  cleared: 'the archive no longer kept them',
  dropped: 'it refused them, and they were given up',
};

/** The command that brings them there. */
const REMEDIES: Partial<Readonly<Record<MissingReason, (destination: string) => string>>> = {
  'beyond retention': (name) =>
    `once it keeps them for longer, --replay --destination ${name} sends what the archive has of them`,
  'set aside': (name) => `--verify --repair --destination ${name} brings them there`,
  cleared: (name) => `--verify --repair --destination ${name} fetches them again`,
};

/** A sentence for people, without its end: how many points are not in the destination, why, and what to do. */
export function lackWords(destination: string, { reason, points, from, to }: LackStatus): string {
  const remedy = REMEDIES[reason]?.(destination);
  const words = `${grouped(points)} points are not in ${destination}: ${WHY[reason]} (from ${from} to ${to})`;
  return remedy === undefined ? words : `${words}; ${remedy}`;
}
