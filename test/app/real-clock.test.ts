/** The sleeps of the real clock: how they end, and that an ended one leaves nothing behind. */
import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { realClock } from '../../src/app/real-clock.ts';

const LONG_MS = 3_600_000;

test('a sleep ends at once with the reason of its signal', async () => {
  const stop = new AbortController();
  const reason = new Error('enough');
  const sleeping = realClock.sleep(LONG_MS, stop.signal);
  stop.abort(reason);
  await expect(sleeping).rejects.toBe(reason);
  await expect(realClock.sleep(LONG_MS, stop.signal)).rejects.toBe(reason);
  await expect(realClock.sleep(0, stop.signal)).rejects.toBe(reason);
});

test('an ended sleep listens no longer to its signal', async () => {
  const { signal } = new AbortController();
  for (const ms of [0, 1, 1]) await realClock.sleep(ms, signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a sleep lasts as long as requested, and one of zero lets timers run', async () => {
  const beganMs = realClock.monoMs();
  let hadTurn = false;
  setTimeout(() => {
    hadTurn = true;
  }, 1);
  await realClock.sleep(20);
  expect(realClock.monoMs() - beganMs).toBeGreaterThan(18);
  expect(hadTurn).toBe(true);
  let turns = 0;
  const timer = setTimeout(() => {
    turns = Number.POSITIVE_INFINITY;
  }, 1);
  for (; turns < 100_000; turns += 1) await realClock.sleep(0);
  clearTimeout(timer);
  expect(turns).toBe(Number.POSITIVE_INFINITY);
});
