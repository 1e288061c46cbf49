/**
 * Whether the program kept to its share of the quota: its requests in any minute, across restarts and kills.
 */
import { MINUTE_MS } from '../../src/core/time.ts';
import type { Stage } from './stage.ts';

/** @returns what is wrong. */
export function examineShare({ story, sentMs, simulator }: Stage): string[] {
  const limit = simulator.settings.plan.requestsPerMinute;
  const most = Math.max(1, Math.floor(limit * story.program.share));
  let first = 0;
  let worst = 0;
  for (const [index, atMs] of sentMs.entries()) {
    while ((sentMs[first] ?? atMs) <= atMs - MINUTE_MS) first += 1;
    worst = Math.max(worst, index - first + 1);
  }
  return worst > most ? [`${worst} requests in a minute, where ${most} are the share of ${limit}`] : [];
}
