import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { createDayBudget, type DayFigures } from '../../src/scheduler/day-budget.ts';

const FIGURES: DayFigures = { limit: 5000, budget: 4000, spent: 0, others: null };

/**
 * Sends whenever it may.
 *
 * @returns the times.
 */
function sendAll(spread: ReturnType<typeof createDayBudget>, fromMs: number, untilMs: number, isLive = true): number[] {
  const sent: number[] = [];
  for (let nowMs = fromMs; nowMs < untilMs; ) {
    const freeMs = spread.freeAtMs(isLive, nowMs);
    if (freeMs > nowMs) {
      nowMs = freeMs;
      continue;
    }
    spread.sent(nowMs);
    sent.push(nowMs);
    nowMs += 1000;
  }
  return sent;
}

describe("the day's budget", () => {
  test('does not change by being asked when a request may go', () => {
    const spread = createDayBudget(0.8);
    spread.setFigures(FIGURES, 0);
    sendAll(spread, 0, HOUR_MS);
    const freeMs = spread.freeAtMs(false, HOUR_MS);
    expect(freeMs).toBeGreaterThan(HOUR_MS);
    spread.freeAtMs(true, DAY_MS);
    expect(spread.freeAtMs(false, HOUR_MS)).toBe(freeMs);
  });

  test('gathers at the rate of its time: a larger budget counts from when it is known', () => {
    const spread = createDayBudget(0.8);
    spread.setFigures(FIGURES, 0);
    for (let count = 0; count < 120; count += 1) spread.sent(0);
    // Half an hour brings 81 requests by the old budget. By the new one it would be 8,000, more than the reserve.
    spread.setFigures({ ...FIGURES, limit: 500_000, budget: 400_000 }, HOUR_MS / 2);
    expect(spread.spare(HOUR_MS / 2)).toBe(0);
  });

  test('is used all but wholly, evenly, and never exceeded in any 24 hours', () => {
    const spread = createDayBudget(0.8);
    spread.setFigures(FIGURES, 0);
    const sent = sendAll(spread, 0, 3 * DAY_MS);
    expect(sent.length).toBeGreaterThan(0.95 * 3 * 4000);
    for (let first = 0; first < sent.length; first += 1) {
      expect((sent[first + 4000] ?? Infinity) - (sent[first] ?? 0)).toBeGreaterThanOrEqual(DAY_MS);
    }
    const hours = Array.from({ length: 70 }, (_, hour) => sent.filter((at) => Math.floor(at / HOUR_MS) === hour + 1));
    for (const hour of hours) expect(Math.abs(hour.length - 4000 / 24)).toBeLessThan(7);
    expect(hours[0]?.length, 'the first hours burn nothing').toBeLessThan(170);
  });

  test('is never exceeded whatever the rests between', () => {
    const rests = fc.array(fc.integer({ min: 0, max: 10 * HOUR_MS }), { minLength: 5, maxLength: 30 });
    fc.assert(
      fc.property(rests, fc.integer({ min: 1, max: 400 }), (pauses, budget) => {
        const spread = createDayBudget(0.8);
        spread.setFigures({ limit: budget / 0.8, budget, spent: 0, others: null }, 0);
        const sent: number[] = [];
        let nowMs = 0;
        for (const pauseMs of pauses) {
          sent.push(...sendAll(spread, nowMs, nowMs + 30 * MINUTE_MS));
          nowMs += 30 * MINUTE_MS + pauseMs;
        }
        for (let first = 0; first + budget < sent.length; first += 1) {
          expect((sent[first + budget] ?? 0) - (sent[first] ?? 0)).toBeGreaterThanOrEqual(DAY_MS - 1);
        }
      }),
      { numRuns: 50 },
    );
  });

  test('keeps a reserve for live work', () => {
    const spread = createDayBudget(0.8);
    spread.setFigures(FIGURES, 0);
    const spare = sendAll(spread, 0, 1, false);
    expect(spare).toHaveLength(1);
    for (let count = 1; spread.freeAtMs(false, 0) === 0; count += 1) {
      expect(count).toBeLessThan(100);
      spread.sent(0);
    }
    expect(spread.freeAtMs(true, 0), 'live work goes on').toBe(0);
  });

  test('a restart gives nothing back: what was spent before counts', () => {
    const spread = createDayBudget(0.8);
    spread.setFigures({ ...FIGURES, spent: 2000 }, 0);
    expect(spread.freeAtMs(true, 0)).toBeGreaterThan(0);
  });

  test('is not spread where no limit is known', () => {
    const spread = createDayBudget(0.8);
    expect(spread.perMs()).toBe(Infinity);
    spread.setFigures({ limit: null, budget: null, spent: 9, others: null }, 0);
    expect(sendAll(spread, 0, HOUR_MS)).toHaveLength(3600);
  });

  test('others are yielded to, as much as they were seen to use, for two days', () => {
    const spread = createDayBudget(0.8);
    spread.setFigures(FIGURES, 0);
    const alone = spread.perMs();
    spread.setFigures({ ...FIGURES, others: 1500 }, HOUR_MS);
    const beside = spread.perMs();
    expect(beside * DAY_MS).toBeLessThan(5000 - 1500 - 500);
    expect(beside * DAY_MS).toBeGreaterThan(0.9 * (5000 - 1500 - 600));
    for (let day = 0; day < 10; day += 1) spread.setFigures({ ...FIGURES, others: 1500 }, HOUR_MS + day * HOUR_MS);
    expect(spread.perMs(), 'a figure that stands still is no news').toBe(beside);
    spread.setFigures({ ...FIGURES, others: 200 }, 10 * HOUR_MS);
    expect(spread.perMs(), 'they have their habits').toBe(beside);
    spread.setFigures({ ...FIGURES, others: 210 }, 3 * DAY_MS);
    expect(spread.perMs()).toBe(alone);
  });

  test('a plan that grows or shrinks is followed at once', () => {
    const spread = createDayBudget(0.8);
    spread.setFigures(FIGURES, 0);
    const before = spread.perMs();
    spread.setFigures({ ...FIGURES, limit: 10_000, budget: 8000 }, 1);
    expect(spread.perMs()).toBeCloseTo(2 * before);
    spread.setFigures({ ...FIGURES, limit: 500, budget: 400 }, 2);
    expect(spread.perMs()).toBeCloseTo(before / 10);
  });

  test('what a minute carries counts where it is less', () => {
    const spread = createDayBudget(0.8);
    spread.setFigures({ ...FIGURES, minuteBudget: 1 }, 0);
    expect(spread.perMs()).toBe(1 / MINUTE_MS);
    spread.setFigures({ limit: null, budget: null, spent: 0, others: null, minuteBudget: 48 }, 1);
    expect(spread.perMs()).toBe(48 / MINUTE_MS);
  });
});
