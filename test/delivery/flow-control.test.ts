import { expect, test } from 'vitest';
import type { WriteAnswer } from '../../src/core/ports.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { type Blocked, IF_IT_LASTS, judge, RETRY_HINT } from '../../src/delivery/destination.ts';
import { blockAfter, createBatchSize, createDeliveryBackoff } from '../../src/delivery/flow-control.ts';

/** The block that follows from an answer. */
function judgedBlocked(answer: WriteAnswer): Blocked {
  const verdict = judge(answer);
  if (verdict.does !== 'keep') throw new Error(`not blocked: ${verdict.does}`);
  return verdict.blocked;
}

test('a batch is halved after one that was too large, and grows again after many that passed', () => {
  const size = createBatchSize(1000);
  size.noteSent({ lines: 1000, tooLarge: true, isWhole: false });
  size.noteSent({ lines: 500, tooLarge: true, isWhole: false });
  expect(size.lines()).toBe(250);
  const pass = (times: number, lines: number): void => {
    for (let nth = 0; nth < times; nth += 1) size.noteSent({ lines, tooLarge: false, isWhole: true });
  };
  pass(1000, 200);
  expect(size.lines(), 'smaller batches show nothing').toBe(250);
  pass(64, 250);
  expect(size.lines()).toBe(500);
  pass(64, 500);
  pass(1000, 1000);
  expect(size.lines(), 'never more than configured').toBe(1000);
});

test('the next attempt of a blocked delivery is known, and none of one that moves', () => {
  let nowMs = 5000;
  const clock = { monoMs: () => nowMs };
  const backoff = createDeliveryBackoff('influx', { random: () => 0, observe: () => {}, clock });
  const down = { message: 'connection refused', hint: RETRY_HINT, isAnswer: false, needsPerson: false, waitMs: null };
  expect(backoff.nextAttemptInMs()).toBeNull();
  const waitMs = backoff.noteBlocked(down, 1);
  expect(backoff.nextAttemptInMs()).toBe(waitMs);
  nowMs += waitMs - 100;
  expect(backoff.nextAttemptInMs()).toBe(100);
  // While it is made.
  nowMs += 30_000;
  expect(backoff.nextAttemptInMs()).toBe(0);
  expect(backoff.noteBlocked({ ...down, waitMs: MINUTE_MS }, 1)).toBeGreaterThanOrEqual(MINUTE_MS);
  expect(backoff.nextAttemptInMs()).toBeGreaterThanOrEqual(MINUTE_MS);
  backoff.noteMoved();
  expect(backoff.nextAttemptInMs()).toBeNull();
});

test('a delivery is blocked since the first attempt that failed, with the step that its message does not have', () => {
  let nowMs = 0;
  const backoff = createDeliveryBackoff('influx', {
    random: () => 0,
    observe: () => {},
    clock: { monoMs: () => nowMs },
  });
  expect(backoff.blockedForMs()).toBeNull();
  const down = judgedBlocked({ kind: 'later', message: 'HTTP 503', waitMs: null, status: 503 });
  backoff.noteBlocked(down, 1);
  nowMs += 70_000;
  backoff.noteBlocked(down, 1);
  nowMs += 5000;
  expect(backoff.blockedForMs()).toBe(75_000);
  expect([backoff.blockedReason(), backoff.isBlockedByAnswer()]).toEqual([`HTTP 503; ${IF_IT_LASTS}`, true]);
  const refused = { kind: 'later', message: 'refused', hint: 'check that it is running', waitMs: null } as const;
  backoff.noteBlocked(judgedBlocked(refused), 1);
  expect([backoff.blockedReason(), backoff.isBlockedByAnswer()]).toEqual(['refused; check that it is running', false]);
  backoff.noteMoved();
  nowMs += 1000;
  backoff.noteBlocked(down, 1);
  expect(backoff.blockedForMs(), 'another time').toBe(0);
});

test('a refusal for an unknown reason that has not changed for ten minutes needs a person', () => {
  const unknown = {
    message: 'HTTP 400: no',
    hint: RETRY_HINT,
    isAnswer: true,
    needsPerson: false,
    waitMs: null,
    unknown: { status: 400, message: 'no' },
  } as const;
  const { unknown: _, ...known } = unknown;
  const attempts: readonly (readonly [minute: number, why: Blocked])[] = [
    [0, unknown],
    // The words differ by the id of the request.
    [9, { ...unknown, message: 'HTTP 400: no (request 7)' }],
    [10, unknown],
    [10, { ...unknown, unknown: { status: 400, message: 'something else' } }],
    [21, known],
  ];
  const blocks: ReturnType<typeof blockAfter>[] = [];
  for (const [minute, why] of attempts)
    blocks.push(blockAfter(blocks.at(-1) ?? null, why, { nowMs: minute * MINUTE_MS, random: () => 0.5 }));
  expect(blocks.map(({ hint }) => hint === RETRY_HINT)).toEqual([true, true, false, true, true]);
  expect(blocks.map(({ needsPerson }) => needsPerson)).toEqual([false, false, true, false, false]);
  expect(blocks[0]?.hint).toBe(
    'delivery resumes by itself when the database accepts writes, and nothing is lost meanwhile; if this lasts, check the log and the disk of the database, and any proxy in between',
  );
  expect(blocks[2]?.hint).toMatch(/for ten minutes; check its log, and the address, the organization and the bucket/);
  expect(blocks.map(({ failures, sinceMs }) => [failures, sinceMs])).toEqual([1, 2, 3, 4, 5].map((nth) => [nth, 0]));
});
