import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSendLog } from '../../src/core/quota.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';

describe('the log of what was sent', () => {
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
