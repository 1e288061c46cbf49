/**
 * The last lines of the log, for the status page.
 *
 * They have the words and levels of the log, without repetitions and secrets. Lines of the level `debug` and of routine
 * events (the rounds of the sync) are left out, whatever level the log has.
 */

import type { Observe } from '../core/events.ts';
import type { RecentEvent } from '../core/page-facts.ts';
import type { Clock } from '../core/ports.ts';
import { plainText } from '../core/text.ts';
import { rowOf } from './event-table.ts';
import { type LineWriter, logEvents, MAX_MESSAGE_LENGTH } from './log.ts';
import { type Scrub, withoutQueries } from './scrub.ts';

/** How many are kept. */
export const MOST_RECENT = 100;

interface RecentEvents {
  readonly observe: Observe;
  /** The newest first. */
  latest(): readonly RecentEvent[];
}

/** Keeps nothing yet; listens from now on. */
export function createRecentEvents({
  clock,
  scrub,
}: {
  readonly clock: Pick<Clock, 'nowMs' | 'monoMs'>;
  readonly scrub: Scrub;
}): RecentEvents {
  const kept: RecentEvent[] = [];
  const clean = (text: string, maxLength?: number): string => plainText(withoutQueries(scrub(text)), maxLength);
  const line: LineWriter = (level, message, { event, ...fields }) => {
    // Routine lines, one a minute, would leave no room for the others.
    if (level === 'debug' || rowOf(event).isRoutine === true) return;
    const details = Object.entries(fields).filter(([, value]) => value !== null);
    kept.push({
      at: new Date(clock.nowMs()).toISOString(),
      level,
      event,
      message: clean(message, MAX_MESSAGE_LENGTH),
      details: details.map(([key, value]) => `${key} ${clean(String(value))}`).join(', '),
    });
    if (kept.length > MOST_RECENT) kept.shift();
  };
  return { observe: logEvents({ line }, clock), latest: () => kept.toReversed() };
}
