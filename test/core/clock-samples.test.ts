/** The bounds that answers set for the offset of the server's clock, and the times that the API has served. */
import { describe, expect, test } from 'vitest';
import {
  addServed,
  areAlike,
  estimateMs,
  fallenFromMs,
  hasWallJumpedToo,
  highestMs,
  isAhead,
  JUMP_MS,
  lowestMs,
  passedByNow,
  type Sample,
  toSample,
  withSample,
} from '../../src/core/clock-samples.ts';
import type { Clock } from '../../src/core/ports.ts';
import { MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';

const T0 = Date.UTC(2026, 10, 21, 12);

/** A clock that stands still: the wall clock `aheadMs` ahead of T0 at the monotonic time 0. */
function clockAt(monoMs: number, aheadMs = 0): Clock {
  return {
    nowMs: () => T0 + monoMs + aheadMs,
    monoMs: () => monoMs,
    sleep: () => Promise.reject(new Error('no sleep')),
  };
}

/** The sample of an answer that takes 100 ms, of a server whose clock is `offsetMs` ahead of T0 at the monotonic time 0. */
function sampleAt(monoMs: number, offsetMs = 0): Sample {
  const dateMs = Math.floor((T0 + monoMs + offsetMs - 50) / 1000) * 1000;
  return toSample(dateMs, { dateMs, sentMonoMs: monoMs - 100, receivedMonoMs: monoMs }, clockAt(monoMs));
}

describe('a sample', () => {
  test('bounds the offset by the second of the Date and the time of the request', () => {
    const sample = sampleAt(10_000);
    expect(sample).toEqual({
      lowestMs: T0 - 1000,
      bestMs: T0 - 1000,
      highestMs: T0 + 100,
      monoMs: 10_000,
      wallOffsetMs: T0,
    });
  });

  test('is ahead of the others only beyond a jump; the first one never is', () => {
    const known = [sampleAt(10_000)];
    const highest = highestMs(known, 10_000);
    const next = (lowest: number): Sample => ({ ...sampleAt(10_000), lowestMs: lowest });
    expect(isAhead(known, next(highest + JUMP_MS))).toBe(false);
    expect(isAhead(known, next(highest + JUMP_MS + 1))).toBe(true);
    expect(isAhead([], sampleAt(10_000, MINUTE_MS))).toBe(false);
  });

  test('is like another that shows the same clock, in either order', () => {
    expect(areAlike(sampleAt(10_000), sampleAt(20_000))).toBe(true);
    expect(areAlike(sampleAt(10_000), sampleAt(20_000, MINUTE_MS))).toBe(false);
    expect(areAlike(sampleAt(10_000, MINUTE_MS), sampleAt(20_000))).toBe(false);
  });
});

describe('the kept samples', () => {
  const rememberAll = (timesMs: readonly number[]): readonly Sample[] =>
    timesMs.reduce<readonly Sample[]>((samples, monoMs) => withSample(samples, sampleAt(monoMs)), []);

  test('is ten minutes, and three answers however old they are', () => {
    const times = (samples: readonly Sample[]) => samples.map(({ monoMs }) => monoMs / MINUTE_MS);
    expect(times(rememberAll([1, 2, 3, 4, 12].map((minute) => minute * MINUTE_MS)))).toEqual([2, 3, 4, 12]);
    expect(times(rememberAll([1, 2, 3, 100].map((minute) => minute * MINUTE_MS)))).toEqual([2, 3, 100]);
  });

  test('does not grow with the rate of the requests, and loses no bound', () => {
    const timesMs = Array.from({ length: 500 }, (_, nth) => 10_000 + nth * 110);
    const samples = rememberAll(timesMs);
    expect(samples.length).toBeLessThan(16);
    expect(Math.max(...samples.map(({ bestMs }) => bestMs))).toBe(
      Math.max(...timesMs.map((monoMs) => sampleAt(monoMs).bestMs)),
    );
  });

  test('bounds the time: the estimate lies between, and drift widens the bounds', () => {
    const samples = rememberAll([10_300, 20_600, 30_900]);
    const laterMs = 30_900 + 10 * MINUTE_MS;
    const time = estimateMs(samples, clockAt(30_900));
    expect(time).toBeLessThanOrEqual(T0 + 30_900);
    expect(time).toBeGreaterThan(T0 + 30_900 - SECOND_MS);
    expect(lowestMs(samples, 30_900)).toBeLessThanOrEqual(time);
    expect(30_900 + highestMs(samples, 30_900)).toBeGreaterThanOrEqual(T0 + 30_900);
    expect(highestMs(samples, laterMs) - highestMs(samples, 30_900)).toBeCloseTo(300);
    expect(lowestMs(samples, laterMs) - lowestMs(samples, 30_900)).toBeCloseTo(10 * MINUTE_MS - 300, -1);
  });

  test('without an answer nothing is bounded, and the local clock holds', () => {
    const clock = clockAt(5000, MINUTE_MS);
    expect([lowestMs([], 5000), highestMs([], 5000), estimateMs([], clock)]).toEqual([
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      clock.nowMs(),
    ]);
  });
});

describe('a jump', () => {
  const known = [sampleAt(10_000), sampleAt(20_000)];

  test('back is one only beyond the errors of the clocks; the highest offset of several stays', () => {
    expect(fallenFromMs(known, sampleAt(30_000, -2000), null)).toBeNull();
    expect(fallenFromMs(known, sampleAt(30_000, -MINUTE_MS), null)).toBe(T0 - 1000);
    expect(fallenFromMs(known, sampleAt(30_000, -MINUTE_MS), T0 + 5)).toBe(T0 + 5);
    expect(fallenFromMs([], sampleAt(30_000, -MINUTE_MS), 7)).toBe(7);
  });

  test('of the local wall clock explains one of the server only if it is as large', () => {
    const jumped = (serverMs: number, wallMs: number): Sample => ({
      ...sampleAt(30_000, serverMs),
      wallOffsetMs: T0 + wallMs,
    });
    expect(hasWallJumpedToo(known, jumped(MINUTE_MS, MINUTE_MS))).toBe(true);
    expect(hasWallJumpedToo(known, jumped(MINUTE_MS, 0))).toBe(false);
    expect(hasWallJumpedToo(known, jumped(MINUTE_MS, 2 * MINUTE_MS))).toBe(false);
  });
});

describe('served times', () => {
  const NONE = { newest: null, passed: null, areFuture: false };

  test('the newest of an answer counts; one from the future has passed only as far as the local clock', () => {
    const clock = clockAt(10_000);
    const times = [T0, T0 + MINUTE_MS, T0 - MINUTE_MS].map(msToNs);
    expect(addServed(NONE, times, clock)).toEqual({
      newest: { atMs: T0 + MINUTE_MS, monoMs: 10_000 },
      passed: { atMs: T0 + 10_000, monoMs: 10_000 },
      areFuture: false,
    });
    expect(addServed(NONE, [], clock)).toBe(NONE);
  });

  test('move on with the monotonic clock, a little slower than it, and an older one changes nothing', () => {
    const first = addServed(NONE, [msToNs(T0)], clockAt(10_000));
    expect(passedByNow(first.passed, clockAt(10_000 + 10 * MINUTE_MS))).toBe(T0 + 10 * MINUTE_MS - 300);
    expect(passedByNow(null, clockAt(0))).toBeNull();
    expect(addServed(first, [msToNs(T0 + 1000)], clockAt(20_000))).toEqual(first);
    expect(addServed(first, [msToNs(T0 + 10_500)], clockAt(20_500)).newest).toEqual({
      atMs: T0 + 10_500,
      monoMs: 20_500,
    });
  });
});
