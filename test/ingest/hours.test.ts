import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addSpan, type CoveredSpan } from '../../src/core/coverage.ts';
import type { Intervals } from '../../src/core/intervals.ts';
import { HOUR_NS } from '../../src/core/time.ts';
import { hourOf, hourStart, hoursToWrite } from '../../src/ingest/commit-rules.ts';
import { bare, between, instantsOf } from '../core/support/readings.ts';

/** A stretch told in quarters of an hour, moved by some nanoseconds. */
const quarters = (from: number, to: number, offset = 0n): CoveredSpan =>
  bare({ from: (BigInt(from) * HOUR_NS) / 4n + offset, to: (BigInt(to) * HOUR_NS) / 4n + offset });

test('an hour has its number and its beginning', () => {
  expect(hourOf(0n)).toBe(0);
  expect(hourOf(HOUR_NS - 1n)).toBe(0);
  expect(hourOf(491_244n * HOUR_NS)).toBe(491_244);
  expect(hourStart(491_244)).toBe(491_244n * HOUR_NS);
});

describe('the hours to write', () => {
  test('are those that lie whole inside what is held', () => {
    expect(hoursToWrite([quarters(2, 13)], []).hours).toEqual([1, 2]);
    expect(hoursToWrite([quarters(4, 12)], []).hours).toEqual([1, 2]);
  });

  test('a nanosecond that is missing at either end leaves its hour out', () => {
    expect(hoursToWrite([quarters(4, 12, 1n)], []).hours).toEqual([2]);
    expect(hoursToWrite([quarters(4, 12, -1n)], []).hours).toEqual([1]);
  });

  test('are none where only parts of hours are held, and then nothing is marked', () => {
    const written: Intervals = [between(7, 8)];
    const outcome = hoursToWrite([quarters(1, 4, 0n), quarters(5, 8, -1n)], written);
    expect(outcome.hours).toEqual([]);
    expect(outcome.written).toBe(written);
  });

  test('are not those that were written before', () => {
    const { hours, written } = hoursToWrite([quarters(0, 20)], [between(1, 3), between(90, 91)]);
    expect(hours).toEqual([0, 3, 4]);
    expect(written).toEqual([between(0, 5), between(90, 91)]);
  });

  test('come once each as coverage grows, and in the end all that are held are written', () => {
    const anySpans = fc.array(
      fc.tuple(fc.nat(40), fc.nat(40), fc.integer({ min: -1, max: 1 })).map(([a, b, offset]) => {
        return quarters(Math.min(a, b) + 4, Math.max(a, b) + 4, BigInt(offset));
      }),
      { maxLength: 10 },
    );
    fc.assert(
      fc.property(anySpans, (stretches) => {
        let spans: readonly CoveredSpan[] = [];
        let written: Intervals = [];
        const told: number[] = [];
        for (const stretch of stretches) {
          spans = addSpan(spans, stretch);
          const outcome = hoursToWrite(spans, written);
          told.push(...outcome.hours);
          written = outcome.written;
        }
        const whole = Array.from({ length: 12 }, (_, hour) => hour).filter((hour) =>
          spans.some(({ from, to }) => from <= hourStart(hour) && hourStart(hour + 1) <= to),
        );
        expect(told.toSorted((a, b) => a - b)).toEqual(whole);
        expect([...instantsOf(written)]).toEqual(whole);
      }),
    );
  });
});
