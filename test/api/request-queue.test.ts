/**
 * The queue of requests that wait for their turn: order, starvation of low lanes, and callers that give up. In virtual
 * time.
 */
import { expect, test } from 'vitest';
import { createRequestQueue, passQueue, runQueue } from '../../src/api/request-queue.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

test('lets no request go early when all waiting callers gave up at the moment in which it had room', async () => {
  const clock = createVirtualClock(0);
  let hasRoom = false;
  let openAtMs = 0;
  const queue = createRequestQueue({
    clock,
    hasRoom: () => hasRoom,
    turn: () => ({ atMs: openAtMs, reason: 'rate' }),
    longestSleepMs: () => 60_000,
    onWait: () => {},
  });
  const gone = new AbortController();
  // The caller gets the abort before the queue does: the queue has room for a request that has just ended.
  gone.signal.addEventListener('abort', () => {
    hasRoom = true;
    void runQueue(queue);
  });
  const gaveUp = passQueue(queue, () => 'passed', 0, gone.signal).catch(() => 'gave up');
  gone.abort();
  expect(await gaveUp).toBe('gave up');
  openAtMs = 5000;
  await passQueue(queue, () => 'passed', 0, new AbortController().signal);
  expect(clock.monoMs()).toBeGreaterThanOrEqual(5000);
});

test('lets a low lane through now and then, however many of a higher one come', async () => {
  const clock = createVirtualClock(0);
  let nextMs = 0;
  const queue = createRequestQueue({
    clock,
    hasRoom: () => true,
    turn: () => ({ atMs: nextMs, reason: 'rate' }),
    longestSleepMs: () => 60_000,
    onWait: () => {},
  });
  const stop = new AbortController();
  const passed: { who: string; atMs: number }[] = [];
  const keepComing = async (who: string, priority: number): Promise<void> => {
    for (;;) {
      await passQueue(
        queue,
        () => {
          passed.push({ who, atMs: clock.monoMs() });
          nextMs = clock.monoMs() + 1000;
        },
        priority,
        stop.signal,
      );
    }
  };
  const all = [keepComing('high', 5), keepComing('high', 5), keepComing('low', 0)];
  await clock.sleep(600_000);
  stop.abort();
  await Promise.allSettled(all);
  const low = passed.filter(({ who }) => who === 'low').map(({ atMs }) => atMs);
  expect(passed.length).toBeGreaterThan(590);
  expect(low.length, 'once a minute, and no more').toBeGreaterThanOrEqual(9);
  expect(low.length).toBeLessThanOrEqual(11);
  for (const [index, atMs] of low.entries()) expect(atMs - (low[index - 1] ?? 0)).toBeLessThanOrEqual(63_000);
});

test('continues when a caller that has waited long gives up', async () => {
  const clock = createVirtualClock(0);
  let openAtMs = 100_000;
  const queue = createRequestQueue({
    clock,
    hasRoom: () => true,
    turn: () => ({ atMs: openAtMs, reason: 'day' }),
    longestSleepMs: () => 60_000,
    onWait: () => {},
  });
  const gone = new AbortController();
  const gaveUp = passQueue(queue, () => 'passed', 0, gone.signal).catch(() => 'gave up');
  const stayed = passQueue(queue, () => 'passed', 5, new AbortController().signal);
  await clock.sleep(99_999);
  gone.abort();
  openAtMs = 0;
  void runQueue(queue);
  expect(await Promise.all([gaveUp, stayed])).toEqual(['gave up', 'passed']);
});

test('reports how long it has waited, so that a long wait is checked rarely', async () => {
  const clock = createVirtualClock(0);
  const waited: number[] = [];
  const queue = createRequestQueue({
    clock,
    hasRoom: () => true,
    turn: () => ({ atMs: 3_600_000, reason: 'rate' }),
    longestSleepMs: (waitedMs) => {
      waited.push(waitedMs);
      return Math.max(250, waitedMs / 20);
    },
    onWait: () => {},
  });
  await passQueue(queue, () => 'passed', 0, new AbortController().signal);
  expect(waited.slice(0, 3)).toEqual([0, 250, 500]);
  expect(waited.length).toBeLessThan(200);
});
