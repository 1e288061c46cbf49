/** The facts for reports that are read from the state: own requests by what they were for. */
import { expect, test } from 'vitest';
import type { Purpose } from '../../src/core/ports.ts';
import { scratchStore } from './support.ts';

test('the sums by lane agree with all requests, also of those that came since they were counted', () => {
  using state = scratchStore();
  const book = (lane: Purpose['lane'], atMs: number): number => state.ledger.book(atMs, { lane, stream: 'telemetry' });
  const sums = (nowMs: number): Record<string, number> =>
    Object.fromEntries(
      state.facts
        .spending(nowMs)
        .filter(({ day }) => day > 0)
        .map(({ lane, minute, day }) => [lane, minute * 100 + day]),
    );
  expect(sums(1000)).toEqual({});
  book('live', 1000);
  book('backfill', 1100);
  expect(sums(1200), 'within the time for which the sums are kept').toEqual({ live: 101, backfill: 101 });
  expect(sums(3500), 'counted anew').toEqual({ live: 101, backfill: 101 });
  book('live', 3600);
  expect(sums(3700)).toEqual({ live: 202, backfill: 101 });
  expect(sums(63_000), 'a minute later').toEqual({ live: 102, backfill: 1 });
});
