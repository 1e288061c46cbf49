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

/** The samples that bound the offset. Drift widens the bounds of all of them alike, so time changes nothing about it. */
interface Bounding {
  readonly lowest: Sample;
  readonly best: Sample;
  readonly highest: Sample;
}

/** Kept for each list of samples: the time is asked for dozens of times between two answers. */
const boundingOf = new WeakMap<readonly Sample[], Bounding>();

function bounding(samples: readonly Sample[]): Bounding | null {
  const known = boundingOf.get(samples);
  const [first] = samples;
  if (known !== undefined || first === undefined) return known ?? null;
  const leastBy = (of: (sample: Sample) => number): Sample =>
    samples.reduce((least, sample) => (of(sample) < of(least) ? sample : least), first);
  const found = {
    lowest: leastBy(({ lowestMs, monoMs }) => lowestMs + DRIFT * monoMs),
    best: leastBy(({ bestMs }) => -bestMs),
    highest: leastBy(({ highestMs, monoMs }) => DRIFT * monoMs - highestMs),
  };
  boundingOf.set(samples, found);
  return found;
}

/** The highest offset that the remembered answers allow now; -∞ without any. */
export function highestMs(samples: readonly Sample[], monoMs: number): number {
  const highest = bounding(samples)?.highest;
  return highest === undefined ? Number.NEGATIVE_INFINITY : highest.highestMs + DRIFT * (monoMs - highest.monoMs);
}

/** The server's time by the lowest offset that the remembered answers allow now; ∞ without any. */
export function lowestMs(samples: readonly Sample[], monoMs: number): EpochMs {
  const lowest = bounding(samples)?.lowest;
  if (lowest === undefined) return Number.POSITIVE_INFINITY;
  return Math.floor(monoMs + (lowest.lowestMs - DRIFT * (monoMs - lowest.monoMs)));
}

/**
 * The server's time by the highest lower bound. It is the closest one: `Date` is truncated to the second, and time has
 * passed since it was written.
 */
export function estimateMs(samples: readonly Sample[], clock: Clock): EpochMs {
  const best = bounding(samples)?.best;
  return best === undefined ? clock.nowMs() : Math.floor(clock.monoMs() + best.bestMs);
}
