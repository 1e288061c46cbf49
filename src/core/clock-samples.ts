/**
 * The offset between the server's clock and the monotonic clock, by what single answers allow. Pure. The rules that
 * follow from it are in `server-clock.ts`.
 */
import type { Clock } from './ports.ts';
import { type EpochMs, MINUTE_MS, SECOND_MS } from './time.ts';

const REMEMBERED_MS = 10 * MINUTE_MS;
const REMEMBERED_AT_LEAST = 3;
/** Answers within this time are remembered as one, so that the memory stays small at any rate of requests. */
const MERGED_MS = 5 * SECOND_MS;
/** How far an answer may lie beside the others without being a jump. */
export const JUMP_MS = 5 * SECOND_MS;
/** How far two clocks may drift apart: 0.5 ms a second, the highest rate at which clocks are slewed. */
export const DRIFT = 1 / 2000;

/** Bounds of the offset, server's minus monotonic time, by one or several answers. */
export interface Sample {
  readonly lowestMs: number;
  readonly bestMs: number;
  readonly highestMs: number;
  readonly monoMs: number;
  /** Wall minus monotonic clock when the answer came. */
  readonly wallOffsetMs: number;
}

/** Whether an answer is further ahead than the remembered answers allow. */
export function isAhead(samples: readonly Sample[], next: Sample): boolean {
  return samples.length > 0 && next.lowestMs - highestMs(samples, next.monoMs) > JUMP_MS;
}

/** The samples after one more answer that fits them: rule 1. */
export function remember(samples: readonly Sample[], next: Sample): readonly Sample[] {
  const last = samples.at(-1);
  if (last === undefined) return [next];
  const kept = samples.filter(
    ({ monoMs }, index) => next.monoMs - monoMs <= REMEMBERED_MS || samples.length - index < REMEMBERED_AT_LEAST,
  );
  const before = kept.at(-2);
  // Merge only while the last three answers stay remembered as three.
  if (before === undefined || kept.length <= REMEMBERED_AT_LEAST || next.monoMs - before.monoMs > MERGED_MS) {
    return [...kept, next];
  }
  return [...kept.slice(0, -1), merge(last, next)];
}

function merge(a: Sample, b: Sample): Sample {
  return {
    lowestMs: Math.min(a.lowestMs, b.lowestMs),
    bestMs: Math.max(a.bestMs, b.bestMs),
    highestMs: Math.max(a.highestMs, b.highestMs),
    monoMs: b.monoMs,
    wallOffsetMs: b.wallOffsetMs,
  };
}

/** The highest offset that the remembered answers allow now. */
export function highestMs(samples: readonly Sample[], monoMs: number): number {
  return Math.max(...samples.map((sample) => sample.highestMs + DRIFT * (monoMs - sample.monoMs)));
}

/** The server's time by the lowest offset that the remembered answers allow now. */
export function lowestMs(samples: readonly Sample[], monoMs: number): EpochMs {
  const offsets = samples.map((sample) => sample.lowestMs - DRIFT * (monoMs - sample.monoMs));
  return Math.floor(monoMs + Math.min(...offsets));
}

/**
 * The server's time by the highest lower bound. It is the closest one: `Date` is truncated to the second, and time has
 * passed since it was written.
 */
export function estimateMs(samples: readonly Sample[], clock: Clock): EpochMs {
  if (samples.length === 0) return clock.nowMs();
  return Math.floor(clock.monoMs() + Math.max(...samples.map(({ bestMs }) => bestMs)));
}
