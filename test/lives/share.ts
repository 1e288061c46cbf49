/**
 * Whether the program kept to its share of the quota: its requests in any minute, across restarts and kills. Where
 * headers have only the limit of a day, the limit of a minute is unknown before the account is read.
 */
import { MINUTE_MS } from '../../src/core/time.ts';
import type { Stage } from './stage.ts';

/** The requests of a minute whose limit is unknown. */
const UNKNOWN_PER_MINUTE = 6;

/** @returns what is wrong. */
export function examineShare({ story, sentMs, simulator, accountReadMs }: Stage): string[] {
  const { plan, quota } = simulator.settings;
  const limit = plan.requestsPerMinute;
  const share = Math.max(1, Math.floor(limit * story.program.share));
  const untoldToMs = quota.headers === 'day' ? (accountReadMs ?? Infinity) : -Infinity;
  let first = 0;
  let worst = 0;
  for (const [index, atMs] of sentMs.entries()) {
    while ((sentMs[first] ?? atMs) <= atMs - MINUTE_MS) first += 1;
    const most = (sentMs[first] ?? atMs) < untoldToMs ? Math.max(share, UNKNOWN_PER_MINUTE) : share;
    if (index - first + 1 > most) worst = Math.max(worst, index - first + 1);
  }
  return worst > 0 ? [`${worst} requests in a minute, where ${share} are the share of ${limit}`] : [];
}
