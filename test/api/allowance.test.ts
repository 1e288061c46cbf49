import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Allowance, createAllowance } from '../../src/api/allowance.ts';
import type { AnswerFacts } from '../../src/core/allowance-terms.ts';
import { createSendLog } from '../../src/core/send-log.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';

const PLAN = { perMinute: 60, perDay: 5000 };

function allowanceOf(plan: typeof PLAN | null = PLAN, share = 0.8): Allowance {
  const allowance = createAllowance({ share, random: () => 0 });
  allowance.setPlan(plan);
  return allowance;
}

/** An answer that tells nothing but what is given. */
function answer(nowMs: number, facts: Partial<AnswerFacts> = {}): AnswerFacts {
  return { sentMs: nowMs - 100, nowMs, status: 200, limit: null, remaining: null, waitMs: null, ...facts };
}

/** Sends as fast as it may, from a time on. @returns when. */
function sendAll(allowance: Allowance, count: number, fromMs = 0): number[] {
  const sent: number[] = [];
  let nowMs = fromMs;
  for (let i = 0; i < count; i += 1) {
    nowMs = Math.max(nowMs, allowance.turn().atMs);
    allowance.sent(nowMs);
    sent.push(nowMs);
  }
  return sent;
}

describe('the pace', () => {
  test('is even after a burst of three', () => {
    const gaps = sendAll(allowanceOf(), 8).map((atMs, i, all) => Math.round(atMs - (all[i - 1] ?? 0)));
    // 48 a minute, and what one may take longer to arrive than another.
    expect(gaps).toEqual([0, 0, 0, 1255, 1255, 1255, 1255, 1255]);
  });

  test('of the smallest plan is one request a minute, of the smallest share too', () => {
    for (const allowance of [allowanceOf({ perMinute: 1, perDay: 100 }), allowanceOf(PLAN, 0.001)]) {
      const [first = 0, second = 0] = sendAll(allowance, 2);
      expect(second - first).toBeGreaterThanOrEqual(MINUTE_MS);
    }
  });

  test('of a plan that grows counts at once', () => {
    const allowance = allowanceOf({ perMinute: 1, perDay: 1e6 });
    sendAll(allowance, 1);
    expect(allowance.turn().atMs).toBeGreaterThan(MINUTE_MS - 1);
    allowance.setPlan({ perMinute: 6000, perDay: 1e6 });
    expect(allowance.turn().atMs).toBeLessThan(20);
  });

  test('names what holds the next request back', () => {
    const allowance = allowanceOf({ perMinute: 60, perDay: 10 });
    sendAll(allowance, 3);
    expect(allowance.turn().reason).toBe('pace');
    sendAll(allowance, 5, 10_000);
    expect(allowance.turn().reason).toBe('day');
    allowance.blockUntil(2 * DAY_MS);
    expect(allowance.turn()).toEqual({ atMs: 2 * DAY_MS, reason: 'asked' });
  });
});

describe('whatever answers tell', () => {
  const facts = fc.record({
    restMs: fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 0, max: 3 * HOUR_MS })),
    status: fc.constantFrom(200, 200, 200, 404, 429, 500, null),
    limit: fc.option(fc.oneof(fc.constantFrom(12, 80), fc.nat(), fc.integer({ min: 1, max: 100 }))),
    remaining: fc.option(fc.oneof(fc.nat(), fc.nat(10))),
    waitMs: fc.option(fc.integer({ min: 1000, max: HOUR_MS })),
  });
  const answers = fc.array(facts, { maxLength: 150 });
  const shares = fc.double({ min: 0.05, max: 1, noNaN: true });
  const capOf = (limit: number, share: number): number => Math.max(1, Math.floor(limit * share));
  const most = (sent: readonly number[], windowMs: number): number =>
    Math.max(0, ...sent.map((atMs) => sent.filter((ms) => ms > atMs - windowMs && ms <= atMs).length));

  /** Sends as fast as it may, each request answered as told. */
  const replay = (
    allowance: Allowance,
    list: readonly (typeof answers extends fc.Arbitrary<(infer F)[]> ? F : never)[],
  ) => {
    const sent: number[] = [];
    let nowMs = 0;
    let askedUntilMs = 0;
    for (const { restMs, ...told } of list) {
      nowMs = Math.max(nowMs, allowance.turn().atMs);
      expect(nowMs).toBeGreaterThanOrEqual(askedUntilMs);
      allowance.sent(nowMs);
      sent.push(nowMs);
      nowMs += restMs;
      const untilMs = allowance.answered({ ...told, sentMs: nowMs - restMs, nowMs });
      const askedMs = told.waitMs ?? (told.status === 429 ? MINUTE_MS : 0);
      askedUntilMs = Math.max(askedUntilMs, nowMs + askedMs);
      if (untilMs !== null) expect(untilMs).toBeGreaterThanOrEqual(askedUntilMs);
    }
    return sent;
  };

  test('nothing goes faster than the ceilings, and no wait is shortened', () => {
    fc.assert(
      fc.property(shares, answers, (share, list) => {
        const sent = replay(allowanceOf({ perMinute: 12, perDay: 80 }, share), list);
        expect(most(sent, MINUTE_MS)).toBeLessThanOrEqual(capOf(12, share));
        expect(most(sent, DAY_MS)).toBeLessThanOrEqual(capOf(80, share));
      }),
    );
  });

  test('without a plan nothing goes faster than the share of 30 a minute', () => {
    fc.assert(
      fc.property(shares, answers, (share, list) => {
        expect(most(replay(allowanceOf(null, share), list), MINUTE_MS)).toBeLessThanOrEqual(capOf(30, share));
      }),
    );
  });
});

describe('a limit in the headers', () => {
  const limitsAfter = (...limits: number[]): (number | null)[] => {
    let readings = 0;
    const allowance = createAllowance({ share: 0.8, random: () => 0, planReadings: () => readings });
    allowance.setPlan(PLAN);
    for (const limit of limits) {
      allowance.answered(answer(0, { limit, remaining: limit }));
      // The account is read, and says the same as before: the header means it.
      readings += 1;
      allowance.answered(answer(0, { limit, remaining: limit }));
    }
    return [allowance.minute(0).limit, allowance.day(0).limit];
  };

  test.each([
    ['the plan’s per minute changes nothing', [60], [60, 5000]],
    ['the plan’s per day changes nothing', [5000], [60, 5000]],
    ['below the plan’s per minute lowers the minute', [30], [30, 5000]],
    ['between the two lowers the day', [1000], [60, 1000]],
    ['above both raises nothing', [100_000], [60, 5000]],
    ['of zero is no limit', [0], [60, 5000]],
    ['that is the plan’s again takes the lower one back', [30, 1000, 60, 5000], [60, 5000]],
    ['speaks of one window and leaves the other', [30, 5000], [30, 5000]],
  ])('%s', (_what, limits, expected) => {
    expect(limitsAfter(...limits)).toEqual(expected);
  });

  test('between the two may be that of a plan that has grown: it is doubted until the account was read', () => {
    let readings = 0;
    const allowance = createAllowance({ share: 0.8, random: () => 0, planReadings: () => readings });
    allowance.setPlan(PLAN);
    sendAll(allowance, 400);
    const nowMs = 600_000;
    allowance.answered(answer(nowMs, { limit: 300, remaining: 300 }));
    expect(allowance.isPlanDoubted()).toBe(true);
    expect(allowance.turn().atMs, 'nothing stops for a day').toBeLessThanOrEqual(nowMs);
    readings += 1;
    expect(allowance.isPlanDoubted()).toBe(false);
    allowance.answered(answer(nowMs, { limit: 300, remaining: 300 }));
    expect(allowance.day(nowMs).limit).toBe(300);
    expect(allowance.turn()).toMatchObject({ reason: 'day' });
    allowance.setPlan({ perMinute: 300, perDay: 50_000 });
    expect(allowance.turn().atMs).toBeLessThanOrEqual(nowMs);
  });

  test('below the plan’s per minute lowers the minute at once, and is doubted too', () => {
    const allowance = allowanceOf();
    allowance.answered(answer(0, { limit: 30, remaining: 30 }));
    expect([allowance.minute(0).limit, allowance.isPlanDoubted()]).toEqual([30, true]);
    allowance.answered(answer(0, { limit: 60, remaining: 60 }));
    expect(allowance.isPlanDoubted(), 'it is the plan’s again').toBe(false);
  });

  test('is forgotten with the plan that it corrected', () => {
    const allowance = allowanceOf();
    allowance.answered(answer(0, { limit: 30, remaining: 30 }));
    allowance.setPlan({ perMinute: 40, perDay: 5000 });
    expect(allowance.minute(0).limit).toBe(40);
  });

  test('stands in for the plan where that is not known, but not for more than 30 a minute', () => {
    const budgets = [null, 5, 20, 5000].map((limit) => {
      const allowance = allowanceOf(null);
      if (limit !== null) allowance.answered(answer(0, { limit, remaining: limit }));
      return allowance.minute(0).budget;
    });
    expect(budgets).toEqual([8, 4, 16, 24]);
  });
});

describe('a low remainder', () => {
  test('that others have caused pauses, the longer the less is left', () => {
    const pauseMs = [6, 3, 0].map((remaining) => {
      const allowance = allowanceOf();
      allowance.sent(0);
      allowance.answered(answer(1000, { limit: 60, remaining }));
      return Math.round(allowance.turn().atMs) - 1000;
    });
    expect(pauseMs).toEqual([8571, 15_000, 60_000]);
  });

  test('that we have caused ourselves does not', () => {
    const allowance = allowanceOf({ perMinute: 60, perDay: 1e6 }, 1);
    const [last = 0] = sendAll(allowance, 58).slice(-1);
    allowance.answered(answer(last + 100, { limit: 60, remaining: 2 }));
    expect(allowance.turn().reason).not.toBe('asked');
    expect(allowance.turn().atMs - last).toBeLessThan(5000);
  });

  test('is not made up for by a later answer that overtook it', () => {
    const allowance = allowanceOf();
    allowance.answered(answer(1000, { limit: 60, remaining: 0 }));
    allowance.answered(answer(1001, { limit: 60, remaining: 6 }));
    expect(allowance.turn().atMs).toBe(61_000);
  });

  test('of the day leaves one request in a quarter of an hour, until it is over', () => {
    const allowance = allowanceOf();
    sendAll(allowance, 1);
    allowance.answered(answer(1000, { limit: 5000, remaining: 400 }));
    expect(allowance.turn()).toEqual({ atMs: 15 * MINUTE_MS, reason: 'day' });
    allowance.answered(answer(2000, { limit: 5000, remaining: 4000 }));
    expect(allowance.turn().atMs).toBeLessThan(2000);
  });
});

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
