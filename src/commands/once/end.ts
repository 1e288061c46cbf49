/**
 * What `--once` says at its end, in the log: how it ended, and by name whatever is not in place.
 */

import { lackWords } from '../../core/lacks.ts';
import type { Logger } from '../../observe/log.ts';
import type { OnceSummary } from './once.ts';

/** How many gaps are told one by one. */
const GAPS_TOLD = 20;

const LACKS = { event: 'run-lacks' } as const;

/** Says it, what is wrong or missing after the sum. */
export function tellEnd(summary: OnceSummary, logger: Pick<Logger, 'info' | 'warn'>): void {
  const { outcome, exit_code, devices, points_archived, gaps, streams_off, rejected_records } = summary;
  const quarantined = summary.destinations.reduce((sum, { quarantined }) => sum + quarantined, rejected_records);
  const facts = {
    event: 'run-ended',
    devices,
    points: points_archived,
    gaps: gaps.length,
    exit_code,
    outcome,
  } as const;
  const all = streams_off.length === 0 ? 'all' : 'all that the key may read';
  if (exit_code === 0) logger.info(`${all} is in place`, facts);
  else logger.warn(`ended before it was complete: ${outcome}`, facts);
  if (quarantined > 0) logger.warn(`${quarantined} records or points are in quarantine, with their reasons`, LACKS);
  for (const { name, pending_points, held } of summary.destinations) {
    if (pending_points === 0) continue;
    logger.warn(
      `${pending_points} points wait in the archive for ${name}: ${held ?? 'not delivered yet'}; run it again`,
      LACKS,
    );
  }
  for (const { name, lacks } of summary.destinations) {
    for (const lack of lacks) logger.warn(lackWords(name, lack), LACKS);
  }
  if (streams_off.length > 0) logger.warn(`not read, for lack of a scope: ${streams_off.join(', ')}`, LACKS);
  const leftOut = gaps.filter(({ reason }) => reason === 'excluded').length;
  if (leftOut > 0) logger.info(`${leftOut} devices are left out by sync.include and sync.exclude`, LACKS);
  const missed = gaps.filter(({ reason }) => reason !== 'excluded');
  for (const { device_id, from, to, reason } of missed.slice(0, GAPS_TOLD)) {
    logger.warn(`not held: ${device_id} from ${from} to ${to}: ${reason}`, LACKS);
  }
  if (missed.length > GAPS_TOLD)
    logger.warn(`and ${missed.length - GAPS_TOLD} more gaps; --json lists them all`, LACKS);
}
