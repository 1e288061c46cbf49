import { describe, expect, test } from 'vitest';
import { createAllowance } from '../../src/api/allowance.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';

const PLAN = { perMinute: 60, perDay: 5000 };

function allowanceOf() {
  const allowance = createAllowance({ share: 0.8, random: () => 0.5 });
  allowance.setPlan(PLAN);
  return allowance;
}

function answer(nowMs: number, { limit, remaining }: { limit: number; remaining: number }) {
  return { sentMs: nowMs, nowMs, status: 200, limit, remaining, waitMs: null };
}

describe('headers that tell of the tighter window', () => {
  test('have ceased to tell of the day: it has recovered, and the pace does so too', () => {
    const allowance = allowanceOf();
    allowance.sent(0);
    allowance.answered(answer(0, { limit: 5000, remaining: 20 }));
    expect(allowance.turn(), 'others have nearly used it up').toMatchObject({ reason: 'day', atMs: 15 * MINUTE_MS });
    allowance.sent(15 * MINUTE_MS);
    allowance.answered(answer(15 * MINUTE_MS, { limit: 60, remaining: 55 }));
    expect(allowance.turn().atMs).toBeLessThanOrEqual(16 * MINUTE_MS);
  });

  test('that told of the day a moment ago may tell of it again', () => {
    const allowance = allowanceOf();
    allowance.sent(0);
    allowance.answered(answer(0, { limit: 5000, remaining: 20 }));
    allowance.answered(answer(1000, { limit: 60, remaining: 55 }));
    expect(allowance.turn()).toMatchObject({ reason: 'day', atMs: 15 * MINUTE_MS });
  });
});

describe('a refusal for the day', () => {
  const refusal = (nowMs: number, waitMs: number) => ({
    ...answer(nowMs, { limit: 60, remaining: 30 }),
    status: 429,
    waitMs,
  });

  test('tells what others have used where no header does: all that we have not', () => {
    const allowance = allowanceOf();
    for (let count = 0; count < 1000; count += 1) allowance.sent(count * 100);
    allowance.answered(refusal(HOUR_MS, 5 * HOUR_MS));
    expect(allowance.day(HOUR_MS).others).toBe(4000);
    expect(allowance.day(HOUR_MS + DAY_MS).spent).toBe(0);
  });

  test('one for the minute tells nothing of the day', () => {
    const allowance = allowanceOf();
    allowance.sent(0);
    allowance.answered(refusal(1000, 30_000));
    expect(allowance.day(1000).others).toBeNull();
  });
});
