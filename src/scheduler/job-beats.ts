/**
 * Who is still there of those that follow a job: whose count has moved lately, by our own clock, which does not jump.
 */

import type { Clock } from '../core/ports.ts';
import type { Job } from '../core/state/jobs.ts';
import { SECOND_MS } from '../core/time.ts';

/** Whoever has not counted on for so long has vanished: several times as long as a follower takes (`commands/shared/do-or-follow.ts`). */
export const VANISHED_AFTER_MS = 30 * SECOND_MS;

export interface Beats {
  /** Takes in the open jobs as they stand. */
  note(open: readonly Job[]): void;
  /** Whether its follower was there when it was looked at: what an earlier daemon has left may be long forgotten. */
  isAlive(job: Job): boolean;
  hasVanished(job: Job): boolean;
}

interface Seen {
  readonly beat: number;
  readonly atMs: number;
  readonly isAlive: boolean;
}

/** @param left what was there before: each of these has to count on first. */
export function createBeats(clock: Clock, left: readonly Job[]): Beats {
  const atMs = clock.monoMs();
  let seen = new Map<number, Seen>(left.map(({ id, askerBeat }) => [id, { beat: askerBeat, atMs, isAlive: false }]));
  return {
    note: (open) => {
      const nowMs = clock.monoMs();
      seen = new Map(
        open.map(({ id, askerBeat }) => {
          const before = seen.get(id);
          if (before?.beat === askerBeat) return [id, before];
          return [id, { beat: askerBeat, atMs: nowMs, isAlive: true }];
        }),
      );
    },
    isAlive: ({ id }) => seen.get(id)?.isAlive === true,
    hasVanished: ({ id }) => clock.monoMs() - (seen.get(id)?.atMs ?? clock.monoMs()) >= VANISHED_AFTER_MS,
  };
}
