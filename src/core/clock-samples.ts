/**
 * The offset between the server's clock and the monotonic clock, according to single answers, and the times that the
 * API has served. Pure. `server-clock.ts` has the rules that use both.
 */
import type { Clock } from './ports.ts';
import { type EpochMs, type EpochNs, MINUTE_MS, maxNs, nsToMs, SECOND_MS } from './time.ts';

const REMEMBERED_MS = 10 * MINUTE_MS;
const REMEMBERED_AT_LEAST = 3;
/** Answers within this time are merged into one sample, so that few samples are stored at any rate of requests. */
const MERGED_MS = 5 * SECOND_MS;
/** How far an answer may differ from the others without counting as a jump. */
export const JUMP_MS = 5 * SECOND_MS;
/** How far two clocks may drift apart: 0.5 ms a second, the highest rate at which clocks are slewed. */
const DRIFT = 1 / 2000;

/** The bounds of the offset (server time minus monotonic time), from one or several answers. */
export interface Sample {
  readonly lowestMs: number;
  readonly bestMs: number;
  readonly highestMs: number;
  readonly monoMs: number;
  /** Wall minus monotonic clock when the answer came. */
  readonly wallOffsetMs: number;
}

/** The server's time in an answer, and when the answer was sent and received by the monotonic clock. */
export interface ReceivedDate {
  /** The `Date` header; `null` if the answer has none. */
  readonly dateMs: EpochMs | null;
  /** When the request was sent, and when the head of its answer was received, by the monotonic clock. */
  readonly sentMonoMs: number;
  readonly receivedMonoMs: number;
}

/** The bounds from one answer. Its `Date` is truncated to the second. */
export function toSample(dateMs: EpochMs, { sentMonoMs, receivedMonoMs }: ReceivedDate, clock: Clock): Sample {
  const lowest = dateMs - receivedMonoMs;
  return {
    lowestMs: lowest,
    bestMs: lowest,
    highestMs: dateMs + SECOND_MS - sentMonoMs,
    monoMs: receivedMonoMs,
    wallOffsetMs: clock.nowMs() - clock.monoMs(),
  };
}

/** Whether an answer is further ahead than the remembered answers allow. */
export function isAhead(samples: readonly Sample[], next: Sample): boolean {
  return samples.length > 0 && next.lowestMs - highestMs(samples, next.monoMs) > JUMP_MS;
}

/** The samples after one more answer that agrees with them: rule 1. */
export function withSample(samples: readonly Sample[], next: Sample): readonly Sample[] {
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

/**
 * The samples that bound the offset. Drift widens the bounds of all samples alike, so these stay the same as time
 * passes.
 */
interface Bounding {
  readonly lowest: Sample;
  readonly best: Sample;
  readonly highest: Sample;
}

/** Cached for each list of samples: the time is read dozens of times between two answers. */
const boundingOf = new WeakMap<readonly Sample[], Bounding>();

function boundingSamples(samples: readonly Sample[]): Bounding | null {
  const known = boundingOf.get(samples);
  const [first] = samples;
  if (known !== undefined || first === undefined) return known ?? null;
  let [lowest, best, highest] = [first, first, first];
  for (const sample of samples) {
    if (sample.lowestMs + DRIFT * sample.monoMs < lowest.lowestMs + DRIFT * lowest.monoMs) lowest = sample;
    if (sample.bestMs > best.bestMs) best = sample;
    if (DRIFT * sample.monoMs - sample.highestMs < DRIFT * highest.monoMs - highest.highestMs) highest = sample;
  }
  const found = { lowest, best, highest };
  boundingOf.set(samples, found);
  return found;
}

/** The highest offset that the remembered answers allow now; -∞ without any. */
export function highestMs(samples: readonly Sample[], monoMs: number): number {
  const highest = boundingSamples(samples)?.highest;
  return highest === undefined ? Number.NEGATIVE_INFINITY : highest.highestMs + DRIFT * (monoMs - highest.monoMs);
}

/** The server's time by the lowest offset that the remembered answers allow now; ∞ without any. */
export function lowestMs(samples: readonly Sample[], monoMs: number): EpochMs {
  const lowest = boundingSamples(samples)?.lowest;
  if (lowest === undefined) return Number.POSITIVE_INFINITY;
  return Math.floor(monoMs + (lowest.lowestMs - DRIFT * (monoMs - lowest.monoMs)));
}

/**
 * The server's time by the highest lower bound. This bound is the closest: `Date` is truncated to the second, and time
 * has passed since it was written.
 */
export function estimateMs(samples: readonly Sample[], clock: Clock): EpochMs {
  const best = boundingSamples(samples)?.best;
  return best === undefined ? clock.nowMs() : Math.floor(clock.monoMs() + best.bestMs);
}

/** Whether two answers show the same clock. */
export function areAlike(a: Sample, b: Sample): boolean {
  return !isAhead([a], b) && !isAhead([b], a);
}

/**
 * The offset from before the answer, if the answer is further back than the clocks' errors explain; otherwise
 * `beforeMs`.
 */
export function fallenFromMs(samples: readonly Sample[], next: Sample, beforeMs: number | null): number | null {
  const bestMs = boundingSamples(samples)?.best.bestMs;
  if (bestMs === undefined) return beforeMs;
  if (bestMs - highestMs([next], next.monoMs) <= JUMP_MS) return beforeMs;
  return Math.max(bestMs, beforeMs ?? bestMs);
}

/** Whether the local wall clock has jumped as far ahead as the answer is. */
export function hasWallJumpedToo(samples: readonly Sample[], next: Sample): boolean {
  const aheadMs = next.lowestMs - highestMs(samples, next.monoMs);
  const aheadAtMostMs = next.highestMs - Math.min(...samples.map((sample) => sample.lowestMs));
  const wallMs = next.wallOffsetMs - (samples.at(-1)?.wallOffsetMs ?? next.wallOffsetMs);
  return wallMs >= aheadMs - JUMP_MS && wallMs <= aheadAtMostMs + JUMP_MS;
}

/** A time that the server's clock had passed at a moment of the monotonic clock. */
export interface PassedTime {
  readonly atMs: EpochMs;
  readonly monoMs: number;
}

/** The served time that is the latest of all, and the latest that counts as passed. */
export interface ServedTimes {
  readonly newest: PassedTime | null;
  readonly passed: PassedTime | null;
  /** Whether served times were rejected because they were too far ahead. */
  readonly areFuture: boolean;
}

/** The served times after more times were served. */
export function addServed(served: ServedTimes, times: readonly EpochNs[], clock: Clock): ServedTimes {
  if (times.length === 0) return served;
  const monoMs = clock.monoMs();
  const atMs = nsToMs(times.reduce(maxNs));
  const later = (known: PassedTime | null, next: PassedTime): PassedTime =>
    next.atMs > (passedByNow(known, clock) ?? Number.NEGATIVE_INFINITY) ? next : (known ?? next);
  // A time from the future is no evidence that it has passed: a device's or a server's clock may be wrong.
  const passed = later(served.passed, { atMs: Math.min(atMs, clock.nowMs()), monoMs });
  return { ...served, newest: later(served.newest, { atMs, monoMs }), passed };
}

/** The time that the server's clock has passed by now: the passed time plus the time since. */
export function passedByNow(passed: PassedTime | null, clock: Clock): EpochMs | null {
  return passed === null ? null : Math.floor(passed.atMs + (1 - DRIFT) * (clock.monoMs() - passed.monoMs));
}
