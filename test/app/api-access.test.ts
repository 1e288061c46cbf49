/** The quota in the status, in the points and for a backfill, and requests as heartbeats of the program. */
import { describe, expect, test } from 'vitest';
import type { RateLimiter, RateLimiterFigures } from '../../src/api/rate-limiter.ts';
import { backfillQuota, quotaNow, quotaStatus, quotaUse, watchRequests } from '../../src/app/api-access.ts';
import type { Heartbeats, Pulse } from '../../src/core/heartbeats.ts';
import type { Ledger } from '../../src/core/ports.ts';
import type { ServerClock } from '../../src/core/server-clock.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';

const NOW_MS = 1_780_000_000_000;
const MINUTE = { limit: 100, budget: 80, spent: 30, others: 10 };
const DAY = { limit: 1000, budget: 800, spent: 790, others: null };

function limiterOf(changes: Partial<RateLimiterFigures> = {}): RateLimiter {
  const figures = { minute: MINUTE, day: DAY, waitingUntilMs: null, waitingFor: null, isRejectedRepeatedly: false };
  return { figures: () => ({ ...figures, ...changes }) } as unknown as RateLimiter;
}

describe('the waits that are shown', () => {
  const waitsOf = (limiter: RateLimiter, rest: Parameters<typeof quotaNow>[1]['rest']) => {
    const { waitingUntilMs, historyWaitsUntilMs } = quotaNow(limiter, { nowMs: NOW_MS, rest });
    return [waitingUntilMs, historyWaitsUntilMs];
  };
  const untilMs = NOW_MS + HOUR_MS;

  test.each([
    ['no wait', null, null, [null, null]],
    ['a wait of the rate limiter is one of all lanes', untilMs, null, [untilMs, untilMs]],
    ['the even spacing of requests is no wait', NOW_MS + SECOND_MS, null, [null, null]],
    ['the budget of the day delays all lanes', null, { reason: 'day', untilMs }, [untilMs, untilMs]],
    [
      'the spare part of the budget of the day delays history alone',
      null,
      { reason: 'spare', untilMs },
      [null, untilMs],
    ],
    [
      'the spare part of the budget delays history past the next poll',
      null,
      { reason: 'spare', untilMs: NOW_MS + 1, spareMs: untilMs },
      [null, untilMs],
    ],
    ['a device that is due later delays no lane', null, { reason: 'idle', untilMs }, [null, null]],
  ] as const)('%s', (_what, waitingUntilMs, rest, expected) => {
    expect(waitsOf(limiterOf({ waitingUntilMs }), rest as Parameters<typeof quotaNow>[1]['rest'])).toEqual(expected);
  });

  test('are texts in the status', () => {
    const figures = quotaNow(limiterOf({ waitingUntilMs: untilMs }), { nowMs: NOW_MS, rest: null });
    const at = new Date(untilMs).toISOString().replace('.000Z', 'Z');
    expect(quotaStatus(figures, 0.8)).toEqual({
      share: 0.8,
      minute: MINUTE,
      day: DAY,
      waiting_until: at,
      history_waiting_until: at,
    });
  });
});

test('points show what the plan leaves, the check what the budget leaves', () => {
  expect(quotaUse(limiterOf())).toEqual({
    spentMinute: 30,
    leftMinute: 60,
    budgetLeftMinute: 50,
    spentDay: 790,
    leftDay: 210,
    budgetLeftDay: 10,
  });
});

test('a backfill counts its own requests of the last day, and those of all lanes but history beside them', () => {
  const asked: unknown[] = [];
  const ledger = {
    sentSince: (sinceMs: number, ...lanes: string[]) => {
      asked.push([sinceMs - NOW_MS, ...lanes]);
      return [1, 2];
    },
  } as unknown as Ledger;
  const serverClock = { nowMs: () => NOW_MS } as unknown as ServerClock;
  const quota = backfillQuota(limiterOf(), ledger, serverClock);
  expect(quota.budgets()).toEqual({ perMinute: 80, perDay: 800 });
  expect([quota.sentMs(), quota.othersSince(NOW_MS - MINUTE_MS), quota.spentDay()]).toEqual([[1, 2], 2, 790]);
  const [own, others] = asked as string[][];
  expect(own).toEqual([-DAY_MS, 'backfill']);
  expect(others).toContain('live');
  expect(others).not.toContain('backfill');
  expect(others).not.toContain('first-history');
});

test('requests count as signs of life: for their timeout, and in the queue for as long as they wait', () => {
  const signs: unknown[] = [];
  const pulseOf = (name: string): Pulse =>
    ({
      beat: (ms: number) => void signs.push([name, 'beat', ms]),
      rest: () => void signs.push([name, 'rest']),
      sign: (ms?: number) => void signs.push([name, 'sign', ms]),
    }) as unknown as Pulse;
  const heartbeats = { openPulse: (name: string) => pulseOf(name) } as unknown as Heartbeats;
  const watched = watchRequests(heartbeats, pulseOf('loop'), 30_000);
  watched.onCheck(500);
  watched.onCheck(null);
  watched.onBooked();
  watched.onRetry(2000);
  watched.onDone();
  expect(signs).toEqual([
    ['rate limiter', 'beat', 500],
    ['loop', 'sign', 500],
    ['rate limiter', 'rest'],
    ['loop', 'sign', 30_000],
    ['loop', 'sign', 2000],
    ['loop', 'sign', undefined],
  ]);
});
