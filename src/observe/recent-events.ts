/**
 * What happened last, for the status page: the ear that keeps the last lines of the log.
 *
 * Its lines are the log's own, as loud, without what repeats itself, without a secret; those of the level `debug` are not
 * among them, whatever level the log has.
 */
import type { RecentEvent } from '../core/page-facts.ts';
import type { Clock, Observe } from '../core/ports.ts';
import { plainText } from '../core/text.ts';
import { type LogFields, logEvents, MAX_MESSAGE_LENGTH } from './log.ts';
import type { Scrub } from './scrub.ts';

/** How many are kept. */
export const MOST_RECENT = 100;

export interface RecentEvents {
  readonly observe: Observe;
  /** The newest first. */
  latest(): readonly RecentEvent[];
}

/** An ear that has heard nothing yet. */
export function createRecentEvents({
  clock,
  scrub,
}: {
  readonly clock: Pick<Clock, 'nowMs' | 'monoMs'>;
  readonly scrub: Scrub;
}): RecentEvents {
  const kept: RecentEvent[] = [];
  const clean = (text: string, maxLength?: number): string => plainText(scrub(text), maxLength);
  const keep =
    (level: RecentEvent['level']) =>
    (message: string, { event, ...fields }: LogFields = {}): void => {
      const details = Object.entries(fields).filter(([, value]) => value !== null);
      kept.push({
        at: new Date(clock.nowMs()).toISOString(),
        level,
        event: String(event),
        message: clean(message, MAX_MESSAGE_LENGTH),
        details: details.map(([key, value]) => `${key} ${clean(String(value))}`).join(', '),
      });
      if (kept.length > MOST_RECENT) kept.shift();
    };
  const lines = { error: keep('error'), warn: keep('warn'), info: keep('info'), debug: () => {} };
  return { observe: logEvents(lines, clock), latest: () => kept.toReversed() };
}
