/**
 * The batch size, the number of batches at once, and the waits of a blocked delivery. Databases are simulated by their
 * times.
 */
import { describe, expect, test } from 'vitest';
import type { WriteAnswer } from '../../src/core/ports.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { type Blocked, IF_IT_LASTS, judge, RETRY_HINT } from '../../src/delivery/destination.ts';
import {
  blockAfter,
  createBatchSize,
  createConcurrency,
  createDeliveryBackoff,
  MOST_BATCHES,
} from '../../src/delivery/flow-control.ts';

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

describe('batches at once', () => {
  /** When a database answers a batch that arrives at a time, in ms. */
  type Database = (sentMs: number) => number;

  /** Answers at the next flush. */
  const flushing =
    (everyMs: number): Database =>
    (sentMs) =>
      (Math.floor(sentMs / everyMs) + 1) * everyMs;

  /** Works on one batch after the other. */
  function busy(takesMs: (sentMs: number) => number): Database {
    let freeMs = 0;
    return (sentMs) => {
      freeMs = Math.max(freeMs, sentMs) + takesMs(sentMs);
      return freeMs;
    };
  }

  /** A sender with a clock: a batch follows another one after a millisecond at the earliest. */
  function createSender() {
    const concurrency = createConcurrency();
    let nowMs = 0;
    /** Sends batches. Returns how long that took, and how many were under way at each answer. */
    const send = (database: Database, batches: number): { readonly tookMs: number; readonly widths: number[] } => {
      const underWay: { readonly sentMs: number; readonly answerMs: number }[] = [];
      const widths: number[] = [];
      const startMs = nowMs;
      for (let sent = 0; widths.length < batches; ) {
        for (; sent < batches && underWay.length < concurrency.batches(); sent += 1) {
          nowMs += 1;
          underWay.push({ sentMs: nowMs, answerMs: database(nowMs) });
        }
        widths.push(underWay.length);
        const first = underWay.shift();
        if (first === undefined) throw new Error('nothing is under way');
        nowMs = Math.max(nowMs, first.answerMs);
        concurrency.noteAccepted({ tookMs: nowMs - first.sentMs, atMs: nowMs });
      }
      return { tookMs: nowMs - startMs, widths };
    };
    return { concurrency, send };
  }

  test('are 16 after two rounds of a database that answers after a flush, and 1 after a pause', () => {
    const { concurrency, send } = createSender();
    const { tookMs, widths } = send(flushing(1000), 165);
    expect(widths.indexOf(MOST_BATCHES)).toBe(5);
    expect(tookMs).toBe(12_000);
    concurrency.reset();
    expect(concurrency.batches()).toBe(1);
  });

  test('stay 16 there, but for a try with four once in a while', () => {
    const { send } = createSender();
    const { tookMs, widths } = send(flushing(1000), 4000);
    expect(tookMs / 1000).toBeLessThanOrEqual((1.05 * 4000) / MOST_BATCHES);
    expect(Math.min(...widths.slice(100, -MOST_BATCHES))).toBe(4);
  });

  test('are one for a database that is busy with each, but for a try with four once in a while', () => {
    const { send } = createSender();
    const { tookMs, widths } = send(
      busy(() => 400),
      3000,
    );
    expect(Math.max(...widths)).toBe(4);
    expect(widths.filter((width) => width > 1).length).toBeLessThanOrEqual(24);
    expect(tookMs).toBeLessThanOrEqual(3000 * 401);
  });

  test('are one again after a database was slow for a while, although with 16 it would stay slow', () => {
    const { concurrency, send } = createSender();
    send(flushing(1000), 100);
    expect(concurrency.batches()).toBe(MOST_BATCHES);
    // A batch of 30 ms is answered after 480 ms as long as 16 are under way.
    const { widths } = send(
      busy(() => 30),
      1500,
    );
    expect(widths.slice(0, 100).every((width) => width === MOST_BATCHES)).toBe(true);
    expect(widths.slice(1200).every((width) => width === 1)).toBe(true);
  });

  test('are one again after a single slow answer', () => {
    const { send } = createSender();
    let nth = 0;
    const database = busy(() => {
      nth += 1;
      return nth === 20 ? 2000 : 20;
    });
    const { widths } = send(database, 60);
    expect(Math.max(...widths)).toBe(4);
    expect(widths.slice(30).every((width) => width === 1)).toBe(true);
  });

  test('become fewer while answers take more than five seconds, and are not more soon', () => {
    const { concurrency, send } = createSender();
    send(flushing(1000), 100);
    send(flushing(12_000), 60);
    expect(concurrency.batches()).toBe(1);
    send(flushing(1000), 900);
    expect(concurrency.batches()).toBe(1);
    send(flushing(1000), 200);
    expect(concurrency.batches()).toBe(MOST_BATCHES);
  });
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
