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

test('the sums by lane are of sent requests, never of advance bookings', () => {
  using state = scratchStore();
  const book = (lane: Purpose['lane'], atMs: number): number => state.ledger.book(atMs, { lane, stream: 'telemetry' });
  const wrong: unknown[] = [];
  let ahead = 0;
  for (let sent = 1; sent <= 200; sent += 1) {
    const nowMs = 10_000 + sent * 20;
    book(sent % 10 === 0 ? 'live' : 'first-history', nowMs);
    ahead = Math.max(ahead, state.rows('SELECT id FROM request').length - sent);
    const { live, history } = Object.fromEntries(
      state.facts.spending(nowMs).map(({ lane, day }) => [lane === 'first-history' ? 'history' : lane, day]),
    );
    const { requests } = state.store.totals();
    const right = { live: Math.floor(sent / 10), history: sent - Math.floor(sent / 10), requests: sent };
    const shown = { live, history, requests };
    if (JSON.stringify(shown) !== JSON.stringify(right)) wrong.push({ nowMs, shown, right });
  }
  expect(ahead, 'some were booked in advance').toBeGreaterThan(0);
  expect(wrong.slice(0, 3)).toEqual([]);
});
