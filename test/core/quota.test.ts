/** The log of sent requests, compared with a plain list, and the requests that a budget leaves. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSendLog, requestsLeft } from '../../src/core/quota.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';

describe('the log of sent requests', () => {
  test('counts and frees like a plain list would', () => {
    const windows = [MINUTE_MS, HOUR_MS, DAY_MS];
    const gaps = fc.array(fc.oneof(fc.nat(100), fc.nat(MINUTE_MS), fc.nat(2 * HOUR_MS)), { maxLength: 200 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 50 }), (list, cap) => {
        const log = createSendLog(DAY_MS);
        const all: number[] = [];
        let nowMs = 0;
        for (const gap of list) {
          nowMs += gap;
          log.add(nowMs);
          all.push(nowMs);
          for (const windowMs of windows) {
            const young = (atMs: number): number => all.filter((ms) => ms > atMs - windowMs).length;
            expect(log.count(nowMs, windowMs)).toBe(young(nowMs));
            const freeMs = log.freeAtMs(cap, windowMs);
            expect(young(Math.max(nowMs, freeMs))).toBeLessThan(cap);
            if (freeMs > nowMs) expect(young(freeMs - 1)).toBeGreaterThanOrEqual(cap);
          }
        }
      }),
    );
  });

  test('carries a day of a large plan', () => {
    const log = createSendLog(DAY_MS);
    let spent = 0;
    // Four days of 160,000 requests: were each addition to move the list, the test would run out of time.
    for (let i = 0; i < 640_000; i += 1) {
      log.add(i * 540);
      spent = log.count(i * 540, DAY_MS);
    }
    expect(spent).toBe(160_000);
    expect(log.freeAtMs(160_000, DAY_MS)).toBe(480_000 * 540 + DAY_MS);
  });
});

describe('the requests that are left', () => {
  test.each([
    ['of a window that no one else uses', { limit: 900, budget: 720, spent: 312, others: 0 }, 588, 408],
    ['where others use the plan up', { limit: 900, budget: 720, spent: 312, others: 500 }, 88, 88],
    ['where no answer has shown the others', { limit: 60, budget: 48, spent: 10, others: null }, 50, 38],
    ['after more than the budget', { limit: 60, budget: 48, spent: 50, others: null }, 10, 0],
    ['after more than the plan', { limit: 60, budget: 48, spent: 50, others: 40 }, 0, 0],
    ['without a known limit', { limit: null, budget: 10, spent: 4, others: null }, null, 6],
    ['without a known budget', { limit: 60, budget: null, spent: 4, others: null }, 56, null],
  ])('%s', (_what, window, ofPlan, ofBudget) => {
    expect(requestsLeft(window)).toEqual({ ofPlan, ofBudget });
  });
});
