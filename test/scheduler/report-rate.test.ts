/** How often a device reports, learned from its readings and signs of life. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  certainWithinMs,
  learnFromEmpty,
  learnFromPage,
  learnFromSeen,
  type ReportRate,
  UNKNOWN_RATE,
} from '../../src/scheduler/report-rate.ts';

/** Instants, newest first, so far apart. */
function instants(intervalMs: number, count: number, newestMs = 1_000_000_000): number[] {
  return Array.from({ length: count }, (_, back) => newestMs - back * intervalMs);
}

const MINUTELY: ReportRate = { intervalMs: MINUTE_MS, deviationMs: 0 };

describe('how often a device reports', () => {
  test('one page determines it, in either order, with a silence in it', () => {
    const page = [...instants(MINUTE_MS, 100), ...instants(MINUTE_MS, 100, 1_000_000_000 - 9 * HOUR_MS)];
    for (const times of [page, page.toReversed()])
      expect(learnFromPage(UNKNOWN_RATE, times).intervalMs).toBe(MINUTE_MS);
    expect(learnFromPage(UNKNOWN_RATE, [5]), 'one reading tells nothing').toEqual(UNKNOWN_RATE);
    expect(learnFromPage(UNKNOWN_RATE, [5, 5, 5]), 'nor do equal instants').toEqual(UNKNOWN_RATE);
    expect(learnFromPage(MINUTELY, []), 'nor does an empty page').toEqual(MINUTELY);
  });

  test('a single long interval barely changes it', () => {
    const after = learnFromPage(MINUTELY, [0, 12 * HOUR_MS]);
    expect(after.intervalMs).toBeLessThan(2 * MINUTE_MS);
    const shorter = learnFromPage(MINUTELY, [0, 1]);
    expect(shorter.intervalMs).toBeGreaterThan(MINUTE_MS / 2);
  });

  test('a rate that has changed is followed within twenty readings, one by one or in a page', () => {
    for (const intervalMs of [10 * SECOND_MS, 10 * MINUTE_MS]) {
      let rate = MINUTELY;
      for (let reading = 0; reading < 20; reading += 1) rate = learnFromPage(rate, [0, intervalMs]);
      expect(rate.intervalMs).toBeGreaterThan(intervalMs * 0.8);
      expect(rate.intervalMs).toBeLessThan(intervalMs * 1.25);
      const paged = learnFromPage(MINUTELY, instants(intervalMs, 21));
      expect(Math.abs((paged.intervalMs ?? 0) - intervalMs)).toBeLessThan(0.3 * Math.max(intervalMs, MINUTE_MS));
    }
  });

  test('is always within the observed values, and never negative', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 10 * HOUR_MS }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(fc.array(gaps, { minLength: 1, maxLength: 8 }), (pages) => {
        let rate = UNKNOWN_RATE;
        for (const page of pages) {
          let at = 0;
          rate = learnFromPage(rate, [at, ...page.map((gap) => (at += gap))]);
        }
        const seen = pages.flat().filter((gap) => gap > 0);
        if (rate.intervalMs === null) {
          expect(seen).toEqual([]);
          return;
        }
        expect(rate.intervalMs).toBeGreaterThanOrEqual(Math.min(...seen));
        expect(rate.intervalMs).toBeLessThanOrEqual(Math.max(...seen));
        expect(rate.deviationMs).toBeGreaterThanOrEqual(0);
        expect(certainWithinMs(rate)).toBeGreaterThan(rate.intervalMs);
      }),
    );
  });

  test('signs of life show at least one reading between them', () => {
    expect(learnFromSeen(UNKNOWN_RATE, 5 * MINUTE_MS).intervalMs).toBe(5 * MINUTE_MS);
    expect(learnFromSeen(MINUTELY, 0)).toEqual(MINUTELY);
    expect(learnFromSeen(MINUTELY, -HOUR_MS), 'a sign that was set back').toEqual(MINUTELY);
    expect(learnFromSeen(MINUTELY, 3 * MINUTE_MS).intervalMs, 'three minutes are three readings').toBeCloseTo(
      MINUTE_MS,
    );
    expect(learnFromSeen(MINUTELY, 20 * MINUTE_MS), 'over many the rounding says more').toEqual(MINUTELY);
  });

  test('a reading that was expected and had not come makes it slower', () => {
    expect(learnFromEmpty(MINUTELY).intervalMs).toBe(1.5 * MINUTE_MS);
    expect(learnFromEmpty(UNKNOWN_RATE)).toEqual(UNKNOWN_RATE);
  });

  test('an even rate is sure at once, an uneven one later, an unknown one never', () => {
    expect(certainWithinMs(MINUTELY)).toBe(MINUTE_MS + SECOND_MS);
    const uneven = learnFromPage(
      UNKNOWN_RATE,
      [0, 30, 90, 150, 270, 300].map((s) => s * SECOND_MS),
    );
    expect(certainWithinMs(uneven)).toBeGreaterThan(2 * MINUTE_MS);
    expect(certainWithinMs(UNKNOWN_RATE)).toBe(Infinity);
  });
});
