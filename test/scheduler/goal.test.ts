/** Which range of a goal is requested next, and how long rechecks are waited for. */
import { expect, test } from 'vitest';
import { DAY_NS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { gapsToRequest, isRecheckOver, newestGap } from '../../src/scheduler/goal.ts';

test('the gaps are wanted, not covered, not resting and not requested by other work', () => {
  const covered = [{ from: 20n, to: 30n, first: null, last: null }];
  const wanted = { from: 0n, to: 100n };
  const resting = [{ from: 40n, to: 50n }];
  const others = [{ from: 90n, to: 200n }];
  expect(gapsToRequest({ covered, wanted, resting, others })).toEqual([
    { from: 0n, to: 20n },
    { from: 30n, to: 40n },
    { from: 50n, to: 90n },
  ]);
  expect(gapsToRequest({ covered, wanted: { from: 100n, to: 100n }, resting, others })).toEqual([]);
});

test('the newest gap comes first, as far as it lies in the reach', () => {
  const now = 100n * DAY_NS;
  const gaps = [
    { from: 0n, to: DAY_NS },
    { from: 90n * DAY_NS, to: now },
  ];
  expect(newestGap(gaps, 'day', now)).toEqual({ from: 99n * DAY_NS, to: now });
  expect(newestGap(gaps, 'week', now)).toEqual({ from: 93n * DAY_NS, to: now });
  expect(newestGap(gaps, 'rest', now)).toEqual({ from: 90n * DAY_NS, to: now });
  expect(newestGap(gaps.slice(0, 1), 'day', now)).toBeNull();
  expect(newestGap([], 'rest', now)).toBeNull();
});

test('empty ranges that were due are waited for until they were requested again, for two minutes at most', () => {
  const now = { ms: 5 * MINUTE_MS };
  /** When the range of each device is due, in server time. */
  const due = new Map([
    ['a', 90],
    ['later', 200],
  ]);
  const store = { dueEmptyRanges: (atMs: number) => [...due].flatMap(([id, dueMs]) => (dueMs <= atMs ? [id] : [])) };
  const rechecked = (sinceMs: number) =>
    isRecheckOver({ store, clock: { monoMs: () => now.ms } }, { dueBeforeMs: 100, sinceMs });
  const firstMs = now.ms;
  expect(rechecked(firstMs)).toBe(false);
  now.ms += 2 * MINUTE_MS - SECOND_MS;
  expect(rechecked(firstMs), 'still in its time').toBe(false);
  const secondMs = now.ms;
  expect(rechecked(secondMs)).toBe(false);
  now.ms += SECOND_MS;
  expect([rechecked(firstMs), rechecked(secondMs)], 'each has its own time').toEqual([true, false]);
  due.delete('a');
  expect(rechecked(secondMs), 'a range that became due later is not waited for').toBe(true);
});
