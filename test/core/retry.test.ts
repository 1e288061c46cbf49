/** Which faults of the API are retried, and how long the wait before a retry is. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApiFault } from '../../src/core/faults.ts';
import { backoffMs, isListedAgain, retryVerdict } from '../../src/core/retry.ts';

const policies = fc
  .record({ baseMs: fc.integer({ min: 1, max: 60_000 }), maxMs: fc.integer({ min: 1, max: 3_600_000 }) })
  .map(({ baseMs, maxMs }) => ({ baseMs, maxMs: Math.max(baseMs, maxMs) }));
const cases = fc.record({
  failures: fc.integer({ min: 0, max: 5000 }),
  policy: policies,
  roll: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  leastMs: fc.integer({ min: 0, max: 25 * 3_600_000 }),
});

describe('backoffMs', () => {
  test('is never shorter than the server requested', () => {
    fc.assert(
      fc.property(cases, ({ failures, policy, roll, leastMs }) => {
        expect(backoffMs({ failures, policy, random: () => roll, leastMs })).toBeGreaterThanOrEqual(leastMs);
      }),
    );
  });

  test('lies in the upper half of a ceiling that doubles, if the server requests no wait', () => {
    fc.assert(
      fc.property(cases, ({ failures, policy, roll }) => {
        const waitMs = backoffMs({ failures, policy, random: () => roll });
        const ceilingMs = Math.min(policy.maxMs, policy.baseMs * 2 ** Math.min(40, Math.max(0, failures - 1)));
        expect(waitMs).toBeGreaterThanOrEqual(ceilingMs / 2);
        expect(waitMs).toBeLessThanOrEqual(ceilingMs);
      }),
    );
  });

  test('doubles: 0.5 to 1 s, 1 to 2 s, 2 to 4 s, and stays at the most', () => {
    const policy = { baseMs: 1000, maxMs: 5000 };
    const range = (failures: number): number[] =>
      [0, 1].map((roll) => backoffMs({ failures, policy, random: () => roll }));
    expect([1, 2, 3, 4, 9].map(range)).toEqual([
      [500, 1000],
      [1000, 2000],
      [2000, 4000],
      [2500, 5000],
      [2500, 5000],
    ]);
  });

  test('adds its jitter to the wait that the server requested', () => {
    const policy = { baseMs: 1000, maxMs: 5000 };
    expect(backoffMs({ failures: 1, policy, random: () => 0.5, leastMs: 30_000 })).toBe(30_250);
  });
});

test('faults that can pass are retried, rejections for quota wait for it, and the rest stops', () => {
  expect(['unreachable', 'server-fault', 'malformed'].map((kind) => retryVerdict(kind as 'malformed'))).toEqual([
    'retry',
    'retry',
    'retry',
  ]);
  expect(retryVerdict('throttled')).toBe('wait');
  const stopping = ['unauthorized', 'scope-missing', 'no-api-access', 'not-found', 'bad-cursor'] as const;
  for (const kind of [...stopping, 'range-too-large', 'invalid-request'] as const)
    expect(retryVerdict(kind)).toBe('stop');
});

test('a listing is begun three times where its cursor is rejected, and not again after any other fault', () => {
  const fault = (kind: 'bad-cursor' | 'malformed') => new ApiFault(kind, '', { request: 'GET /devices' });
  expect([1, 2, 3].map((starts) => isListedAgain(fault('bad-cursor'), starts))).toEqual([true, true, false]);
  expect([fault('malformed'), new Error('bad-cursor')].map((error) => isListedAgain(error, 1))).toEqual([false, false]);
});
