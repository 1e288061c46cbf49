/**
 * When a destination is set aside (design 2.2): it has settled nothing for longer than `archive.keep` while another one
 * moves, so that one dead database does not stop the rest. Pure.
 */
import type { Standing } from '../core/state/archive.ts';
import { type EpochMs, HOUR_MS } from '../core/time.ts';

/**
 * The longest time between two looks that counts: while this program does not run nobody tries to deliver, and a clock
 * that jumps is no time that passes.
 */
const MOST_AT_ONCE_MS = HOUR_MS;

/** Who has stood for less than this moves. */
const MOVING_MS = HOUR_MS;

/** Looks at a destination again. @param before `null` at the first look: nothing is known of it yet. */
export function lookAgain(
  before: Standing | null,
  {
    place,
    pendingLines,
    nowMs,
    held = null,
  }: { place: string; pendingLines: number; nowMs: EpochMs; held?: string | null },
): Standing {
  // Whoever was never seen to move does not count as moving.
  if (before === null) {
    return { place, stoodMs: pendingLines === 0 ? 0 : MOVING_MS, seenMs: nowMs, asideTo: null, held };
  }
  if (before.place !== place) return { place, stoodMs: 0, seenMs: nowMs, asideTo: null, held };
  const passed = Math.min(Math.max(nowMs - before.seenMs, 0), MOST_AT_ONCE_MS);
  return { ...before, stoodMs: pendingLines === 0 ? 0 : before.stoodMs + passed, seenMs: nowMs, held };
}

/** Which destinations are to be set aside now. */
export function dueAside(standings: ReadonlyMap<number, Standing>, keepMs: number): number[] {
  const stands = ({ asideTo, stoodMs }: Standing): boolean => asideTo === null && stoodMs > keepMs;
  const anyMoves = [...standings.values()].some(({ asideTo, stoodMs }) => asideTo === null && stoodMs < MOVING_MS);
  return anyMoves ? [...standings].filter(([, standing]) => stands(standing)).map(([id]) => id) : [];
}
