import { expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { RETRY_HINT } from '../../src/delivery/destination.ts';
import { createPatience } from '../../src/delivery/send-batch.ts';

test('the next attempt of a blocked delivery is known, and none of one that moves', () => {
  let nowMs = 5000;
  const clock = { monoMs: () => nowMs };
  const patience = createPatience('influx', { random: () => 0, observe: () => {}, clock });
  const down = { message: 'connection refused', hint: RETRY_HINT, needsPerson: false, waitMs: null };
  expect(patience.nextAttemptInMs()).toBeNull();
  const waitMs = patience.blocked(down, 1);
  expect(patience.nextAttemptInMs()).toBe(waitMs);
  nowMs += waitMs - 100;
  expect(patience.nextAttemptInMs()).toBe(100);
  // While it is made.
  nowMs += 30_000;
  expect(patience.nextAttemptInMs()).toBe(0);
  expect(patience.blocked({ ...down, waitMs: MINUTE_MS }, 1)).toBeGreaterThanOrEqual(MINUTE_MS);
  expect(patience.nextAttemptInMs()).toBeGreaterThanOrEqual(MINUTE_MS);
  patience.moved();
  expect(patience.nextAttemptInMs()).toBeNull();
});

test('a refusal for an unknown reason that has not changed for ten minutes needs a person', () => {
  let nowMs = 0;
  const hints: string[] = [];
  const needing: boolean[] = [];
  const observe = (event: AppEvent): void => {
    if (event.type !== 'delivery-blocked') return;
    hints.push(event.hint);
    needing.push(event.needsPerson);
  };
  const patience = createPatience('influx', { random: () => 0.5, observe, clock: { monoMs: () => nowMs } });
  const unknown = {
    message: 'HTTP 400: no',
    hint: RETRY_HINT,
    needsPerson: false,
    waitMs: null,
    unknown: { status: 400, message: 'no' },
  } as const;
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  patience.blocked(unknown, 1);
  pass(9 * MINUTE_MS);
  // The words differ by the id of the request.
  patience.blocked({ ...unknown, message: 'HTTP 400: no (request 7)' }, 1);
  pass(MINUTE_MS);
  patience.blocked(unknown, 1);
  patience.blocked({ ...unknown, unknown: { status: 400, message: 'something else' } }, 1);
  pass(11 * MINUTE_MS);
  patience.blocked({ message: 'HTTP 400: something else', hint: RETRY_HINT, needsPerson: false, waitMs: null }, 1);
  expect(hints.map((hint) => hint === RETRY_HINT)).toEqual([true, true, false, true, true]);
  expect(needing).toEqual([false, false, true, false, false]);
  expect(hints[2]).toMatch(/for ten minutes; check its log, and the address, the organization and the bucket/);
});
