/**
 * When a destination is skipped: it has acknowledged nothing for longer than `archive.keep` while another one moves, so
 * that one dead database does not stop the rest. Pure.
 */
import type { Standing } from '../core/state/archive.ts';
import { type EpochMs, HOUR_MS } from '../core/time.ts';

/**
 * The longest time between two looks that counts: while this program does not run nobody tries to deliver, and a clock
 * that jumps is no time that passes.
 */
const MOST_AT_ONCE_MS = HOUR_MS;

/** A destination that has stood still for less than this moves. */
const MOVING_MS = HOUR_MS;

/** Where a destination is now. */
interface Position {
  /** Text that changes with every line that it acknowledges. */
  readonly place: string;
  readonly pendingLines: number;
  readonly nowMs: EpochMs;
  /** Why nothing moves to it; nobody knows of a reason where this is left out. */
  readonly held?: string | null;
}

/** For how long a destination has stood still by now. @param before `null` at the first look: nothing is known of it. */
export function standingAt(before: Standing | null, { place, pendingLines, nowMs, held = null }: Position): Standing {
  // A destination that was never seen to move does not count as moving.
  if (before === null) {
    return { place, stoodMs: pendingLines === 0 ? 0 : MOVING_MS, seenMs: nowMs, asideTo: null, held };
  }
  if (before.place !== place) return { place, stoodMs: 0, seenMs: nowMs, asideTo: null, held };
  const passed = Math.min(Math.max(nowMs - before.seenMs, 0), MOST_AT_ONCE_MS);
  return { ...before, stoodMs: pendingLines === 0 ? 0 : before.stoodMs + passed, seenMs: nowMs, held };
}

/** Which destinations are to be skipped from now on. */
export function dueToSkip(standings: ReadonlyMap<number, Standing>, keepMs: number): number[] {
  const isStuck = ({ asideTo, stoodMs }: Standing): boolean => asideTo === null && stoodMs > keepMs;
  const anyMoves = [...standings.values()].some(({ asideTo, stoodMs }) => asideTo === null && stoodMs < MOVING_MS);
  return anyMoves ? [...standings].filter(([, standing]) => isStuck(standing)).map(([id]) => id) : [];
}
