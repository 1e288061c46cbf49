import { expect, test } from 'vitest';
import { createGate } from '../../src/api/gate.ts';
import { createVirtualClock } from '../../src/sim/virtual-clock.ts';

test('stays closed when all who waited gave up in the moment in which it opened', async () => {
  const clock = createVirtualClock(0);
  let hasRoom = false;
  let openAtMs = 0;
  const gate = createGate({
    clock,
    hasRoom: () => hasRoom,
    turn: () => ({ atMs: openAtMs, reason: 'pace' }),
    longestSleepMs: () => 60_000,
    onWait: () => {},
  });
  const gone = new AbortController();
  // Heard before the queue hears of it: the gate opens for one who has just gone.
  gone.signal.addEventListener('abort', () => {
    hasRoom = true;
    gate.check();
  });
  const gaveUp = gate.pass(() => 'passed', 0, gone.signal).catch(() => 'gave up');
  gone.abort();
  expect(await gaveUp).toBe('gave up');
  openAtMs = 5000;
  await gate.pass(() => 'passed', 0, new AbortController().signal);
  expect(clock.monoMs()).toBeGreaterThanOrEqual(5000);
});
