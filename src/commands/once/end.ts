/**
 * What `--once` says at its end, in the log: how it ended, and by name whatever is not in place.
 */

import { lackWords } from '../../core/holdings.ts';
import type { Logger } from '../../observe/log.ts';
import type { OnceSummary } from './once.ts';

/** How many gaps are told one by one. */
const GAPS_TOLD = 20;

/** Says it, what is wrong or missing after the sum. */
export function tellEnd(summary: OnceSummary, { say }: Pick<Logger, 'say'>): void {
  const { outcome, exit_code, devices, points_archived, gaps, streams_off, rejected_records } = summary;
  const quarantined = summary.destinations.reduce((sum, { quarantined }) => sum + quarantined, rejected_records);
  say({
    type: 'run-ended',
    outcome,
    exitCode: exit_code,
    isAllRead: streams_off.length === 0,
    devices,
    points: points_archived,
    gaps: gaps.length,
  });
  const lacks = (message: string): void => say({ type: 'run-lacks', message, isWanted: false });
  if (quarantined > 0) lacks(`${quarantined} records or points are in quarantine, with their reasons`);
  for (const { name, pending_points, held } of summary.destinations) {
    if (pending_points === 0) continue;
    lacks(`${pending_points} points wait in the archive for ${name}: ${held ?? 'not delivered yet'}; run it again`);
  }
  for (const destination of summary.destinations) {
    for (const lack of destination.lacks) lacks(lackWords(destination.name, lack));
  }
  if (streams_off.length > 0) lacks(`not read, for lack of a scope: ${streams_off.join(', ')}`);
  const leftOut = gaps.filter(({ reason }) => reason === 'excluded').length;
  if (leftOut > 0) {
    const message = `${leftOut} devices are left out by sync.include and sync.exclude`;
    say({ type: 'run-lacks', message, isWanted: true });
  }
  const missed = gaps.filter(({ reason }) => reason !== 'excluded');
  for (const { device_id, from, to, reason } of missed.slice(0, GAPS_TOLD)) {
    lacks(`not held: ${device_id} from ${from} to ${to}: ${reason}`);
  }
  if (missed.length > GAPS_TOLD) lacks(`and ${missed.length - GAPS_TOLD} more gaps; --json lists them all`);
}
