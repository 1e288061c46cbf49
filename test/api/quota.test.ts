/**
 * When the next request may be sent, by the plan, the share, headers and rejections. Pure functions, with arbitrary
 * answers.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type AnswerFacts,
  blockUntil,
  createQuota,
  hasLimitMismatch,
  NO_HEADERS,
  nextTurn,
  noteAnswer,
  noteSent,
  type Quota,
  quotaFigures,
  readHeaders,
  setPlan,
} from '../../src/api/quota.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';

const PLAN = { perMinute: 60, perDay: 5000 };

function quotaOf(plan: typeof PLAN | null = PLAN, share = 0.8): Quota {
  const quota = createQuota({ share, random: () => 0 });
  setPlan(quota, plan);
  return quota;
}

/** An answer with only the given headers. */
function answer(nowMs: number, facts: Partial<AnswerFacts> = {}): AnswerFacts {
  return { sentMs: nowMs - 100, nowMs, status: 200, limit: null, remaining: null, waitMs: null, ...facts };
}

/**
 * Sends as fast as it may, from a time on.
 *
 * @returns when.
 */
function sendAll(quota: Quota, count: number, fromMs = 0): number[] {
  const sent: number[] = [];
  let nowMs = fromMs;
  for (let i = 0; i < count; i += 1) {
    nowMs = Math.max(nowMs, nextTurn(quota).atMs);
    noteSent(quota, nowMs);
    sent.push(nowMs);
  }
  return sent;
}

describe('the pace', () => {
  test('is even after a burst of three', () => {
    const gaps = sendAll(quotaOf(), 8).map((atMs, i, all) => Math.round(atMs - (all[i - 1] ?? 0)));
    // 48 a minute, and what one may take longer to arrive than another.
    expect(gaps).toEqual([0, 0, 0, 1255, 1255, 1255, 1255, 1255]);
  });

  test('of the smallest plan is one request a minute, of the smallest share too', () => {
    for (const quota of [quotaOf({ perMinute: 1, perDay: 100 }), quotaOf(PLAN, 0.001)]) {
      const [first = 0, second = 0] = sendAll(quota, 2);
      expect(second - first).toBeGreaterThanOrEqual(MINUTE_MS);
    }
  });

  test('of a plan that grows counts at once', () => {
    const quota = quotaOf({ perMinute: 1, perDay: 1e6 });
    sendAll(quota, 1);
    expect(nextTurn(quota).atMs).toBeGreaterThan(MINUTE_MS - 1);
    setPlan(quota, { perMinute: 6000, perDay: 1e6 });
    expect(nextTurn(quota).atMs).toBeLessThan(20);
  });

  test('names the reason why the next request waits', () => {
    const quota = quotaOf({ perMinute: 60, perDay: 10 });
    sendAll(quota, 3);
    expect(nextTurn(quota).reason).toBe('rate');
    sendAll(quota, 5, 10_000);
    expect(nextTurn(quota).reason).toBe('day');
    blockUntil(quota, 2 * DAY_MS);
    expect(nextTurn(quota)).toEqual({ atMs: 2 * DAY_MS, reason: 'retry_after' });
  });
});

describe('after any sequence of answers', () => {
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

  /** Sends as fast as it may; each request gets the given answer. */
  const replay = (quota: Quota, list: readonly (typeof answers extends fc.Arbitrary<(infer F)[]> ? F : never)[]) => {
    const sent: number[] = [];
    let nowMs = 0;
    let askedUntilMs = 0;
    for (const { restMs, ...reported } of list) {
      nowMs = Math.max(nowMs, nextTurn(quota).atMs);
      expect(nowMs).toBeGreaterThanOrEqual(askedUntilMs);
      noteSent(quota, nowMs);
      sent.push(nowMs);
      nowMs += restMs;
      const untilMs = noteAnswer(quota, { ...reported, sentMs: nowMs - restMs, nowMs });
      const requestedMs = reported.waitMs ?? (reported.status === 429 ? MINUTE_MS : 0);
      askedUntilMs = Math.max(askedUntilMs, nowMs + requestedMs);
      if (untilMs !== null) expect(untilMs).toBeGreaterThanOrEqual(askedUntilMs);
    }
    return sent;
  };

  test('nothing goes faster than the ceilings, and no wait is shortened', () => {
    fc.assert(
      fc.property(shares, answers, (share, list) => {
        const sent = replay(quotaOf({ perMinute: 12, perDay: 80 }, share), list);
        expect(most(sent, MINUTE_MS)).toBeLessThanOrEqual(capOf(12, share));
        expect(most(sent, DAY_MS)).toBeLessThanOrEqual(capOf(80, share));
      }),
    );
  });

  test('without a plan nothing goes faster than the share of 30 a minute', () => {
    fc.assert(
      fc.property(shares, answers, (share, list) => {
        expect(most(replay(quotaOf(null, share), list), MINUTE_MS)).toBeLessThanOrEqual(capOf(30, share));
      }),
    );
  });
});

describe('a limit in the headers', () => {
  const limitsAfter = (...limits: number[]): (number | null)[] => {
    let readings = 0;
    const quota = createQuota({ share: 0.8, random: () => 0, planReadings: () => readings });
    setPlan(quota, PLAN);
    for (const limit of limits) {
      noteAnswer(quota, answer(0, { limit, remaining: limit }));
      // The account is read and has the same limit as before, so the header is about that limit.
      readings += 1;
      noteAnswer(quota, answer(0, { limit, remaining: limit }));
    }
    return [quotaFigures(quota, 0).minute.limit, quotaFigures(quota, 0).day.limit];
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
    const quota = createQuota({ share: 0.8, random: () => 0, planReadings: () => readings });
    setPlan(quota, PLAN);
    sendAll(quota, 400);
    const nowMs = 10 * MINUTE_MS;
    noteAnswer(quota, answer(nowMs, { limit: 300, remaining: 300 }));
    expect(hasLimitMismatch(quota)).toBe(true);
    expect(nextTurn(quota).atMs, 'nothing stops for a day').toBeLessThanOrEqual(nowMs);
    readings += 1;
    expect(hasLimitMismatch(quota)).toBe(false);
    noteAnswer(quota, answer(nowMs, { limit: 300, remaining: 300 }));
    expect(quotaFigures(quota, nowMs).day.limit).toBe(300);
    expect(nextTurn(quota)).toMatchObject({ reason: 'day' });
    setPlan(quota, { perMinute: 300, perDay: 50_000 });
    expect(nextTurn(quota).atMs).toBeLessThanOrEqual(nowMs);
  });

  test('below the plan’s per minute lowers the minute at once, and is doubted too', () => {
    const quota = quotaOf();
    noteAnswer(quota, answer(0, { limit: 30, remaining: 30 }));
    expect([quotaFigures(quota, 0).minute.limit, hasLimitMismatch(quota)]).toEqual([30, true]);
    noteAnswer(quota, answer(0, { limit: 60, remaining: 60 }));
    expect(hasLimitMismatch(quota), 'it is the plan’s again').toBe(false);
  });

  test('is forgotten with the plan that it corrected', () => {
    const quota = quotaOf();
    noteAnswer(quota, answer(0, { limit: 30, remaining: 30 }));
    setPlan(quota, { perMinute: 40, perDay: 5000 });
    expect(quotaFigures(quota, 0).minute.limit).toBe(40);
  });

  test('stands in for the plan where that is not known, but not for more than 30 a minute', () => {
    const budgets = [null, 5, 20, 5000].map((limit) => {
      const quota = quotaOf(null);
      if (limit !== null) noteAnswer(quota, answer(0, { limit, remaining: limit }));
      return quotaFigures(quota, 0).minute.budget;
    });
    expect(budgets).toEqual([8, 4, 16, 24]);
  });
});

describe('a low remainder', () => {
  test('that others have caused pauses, the longer the less is left', () => {
    const pauseMs = [6, 3, 0].map((remaining) => {
      const quota = quotaOf();
      noteSent(quota, 0);
      noteAnswer(quota, answer(1000, { limit: 60, remaining }));
      return Math.round(nextTurn(quota).atMs) - 1000;
    });
    expect(pauseMs).toEqual([8571, 15_000, 60_000]);
  });

  test('that we have caused ourselves does not pause', () => {
    const quota = quotaOf({ perMinute: 60, perDay: 1e6 }, 1);
    const [last = 0] = sendAll(quota, 58).slice(-1);
    noteAnswer(quota, answer(last + 100, { limit: 60, remaining: 2 }));
    expect(nextTurn(quota).reason).not.toBe('retry_after');
    expect(nextTurn(quota).atMs - last).toBeLessThan(5000);
  });

  test('is that of the minute where only the day is known: a small share continues beside others', () => {
    const quota = createQuota({ share: 0.2, random: () => 0 });
    setPlan(quota, { perMinute: null, perDay: 100_000 });
    noteSent(quota, 0);
    noteAnswer(quota, answer(1000, { limit: 20, remaining: 14 }));
    expect(nextTurn(quota).reason, 'only the even pace holds it back').toBe('rate');
    noteAnswer(quota, answer(1000, { limit: 20, remaining: 1 }));
    expect(nextTurn(quota)).toEqual({ atMs: 1000 + MINUTE_MS / 2, reason: 'minute' });
  });

  test('is not made up for by a later answer that overtook it', () => {
    const quota = quotaOf();
    noteAnswer(quota, answer(1000, { limit: 60, remaining: 0 }));
    noteAnswer(quota, answer(1001, { limit: 60, remaining: 6 }));
    expect(nextTurn(quota).atMs).toBe(61_000);
  });

  test('of the day leaves one request in a quarter of an hour, until it is over', () => {
    const quota = quotaOf();
    sendAll(quota, 1);
    noteAnswer(quota, answer(1000, { limit: 5000, remaining: 400 }));
    expect(nextTurn(quota)).toEqual({ atMs: 15 * MINUTE_MS, reason: 'day' });
    noteAnswer(quota, answer(2000, { limit: 5000, remaining: 4000 }));
    expect(nextTurn(quota).atMs).toBeLessThan(2000);
  });
});

describe('headers about the tighter window', () => {
  test('a day that no header names any more has recovered, and so does the rate', () => {
    const quota = quotaOf();
    noteSent(quota, 0);
    noteAnswer(quota, answer(0, { sentMs: 0, limit: 5000, remaining: 20 }));
    expect(nextTurn(quota), 'others have nearly used it up').toMatchObject({ reason: 'day', atMs: 15 * MINUTE_MS });
    noteSent(quota, 15 * MINUTE_MS);
    noteAnswer(quota, answer(15 * MINUTE_MS, { limit: 60, remaining: 55 }));
    expect(nextTurn(quota).atMs).toBeLessThanOrEqual(16 * MINUTE_MS);
  });

  test('that were about the day a moment ago may be about it again', () => {
    const quota = quotaOf();
    noteSent(quota, 0);
    noteAnswer(quota, answer(0, { sentMs: 0, limit: 5000, remaining: 20 }));
    noteAnswer(quota, answer(1000, { limit: 60, remaining: 55 }));
    expect(nextTurn(quota)).toMatchObject({ reason: 'day', atMs: 15 * MINUTE_MS });
  });
});

describe('a rejection for the day', () => {
  const rejection = (nowMs: number, waitMs: number) => answer(nowMs, { limit: 60, remaining: 30, status: 429, waitMs });

  test('show what others have used where no header does: all that we have not', () => {
    const quota = quotaOf();
    for (let count = 0; count < 1000; count += 1) noteSent(quota, count * 100);
    noteAnswer(quota, rejection(HOUR_MS, 5 * HOUR_MS));
    expect(quotaFigures(quota, HOUR_MS).day.others).toBe(4000);
    expect(quotaFigures(quota, HOUR_MS + DAY_MS).day.spent).toBe(0);
  });

  test('one for the minute shows nothing about the day', () => {
    const quota = quotaOf();
    noteSent(quota, 0);
    noteAnswer(quota, rejection(1000, 30_000));
    expect(quotaFigures(quota, 1000).day.others).toBeNull();
  });
});

test('limits that the plan does not have are remembered by the hundred, however many a service sends', () => {
  const context = { plan: PLAN, share: 0.8, planReadings: 1, spent: () => 0 };
  let windows = NO_HEADERS;
  for (let limit = 6000; limit < 7000; limit += 1) {
    windows = readHeaders(windows, answer(limit, { limit, remaining: 1 }), context).windows;
  }
  expect([windows.odd.size, windows.odd.has(6999)]).toEqual([100, true]);
});
