/**
 * How responses of the HTTP server are scheduled, so that they leave time for the sync. Clock and work are simulated.
 */
import { describe, expect, test } from 'vitest';
import { realClock } from '../../src/app/real-clock.ts';
import type { Served } from '../../src/core/ports.ts';
import { type Answer, createAnswerMaker, MAX_PARALLEL } from '../../src/observe/answers.ts';

/** A clock that a test moves, and whose sleepers it wakes. */
function handClock() {
  let nowMs = 0;
  const asleep: { readonly atMs: number; readonly wake: () => void }[] = [];
  return {
    monoMs: () => nowMs,
    sleep: (ms: number, signal?: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        asleep.push({ atMs: nowMs + ms, wake: resolve });
        signal?.addEventListener('abort', () => reject(signal.reason));
      }),
    /** Passes so much time, as if somebody had worked. */
    work: (ms: number): void => {
      nowMs += ms;
    },
    /** Passes so much time, waking who sleeps until then. */
    pass: async (ms: number): Promise<void> => {
      await settled();
      nowMs += ms;
      for (;;) {
        const due = asleep.findIndex(({ atMs }) => atMs <= nowMs);
        if (due < 0) return;
        asleep.splice(due, 1)[0]?.wake();
        await settled();
      }
    },
  };
}

async function settled(): Promise<void> {
  await realClock.sleep(0);
}

const PAGE: Served = { status: 200, type: 'text/plain', body: 'a page' };
const here = (key: string | null) => ({ key, isGone: () => false });
const textOf = async (answer: Promise<Answer | null>): Promise<string | null> =>
  (await answer)?.body.toString() ?? null;

describe('answers that are the same for all clients', () => {
  test('is made once a second at most, for any number of clients', async () => {
    const clock = handClock();
    const make = createAnswerMaker(clock);
    let made = 0;
    const page = async (): Promise<Served> => {
      made += 1;
      return await Promise.resolve({ ...PAGE, body: `page ${made}` });
    };
    const asked = Array.from({ length: 100 }, () => textOf(make(here('/'), page)));
    await clock.pass(10);
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['page 1']));
    await clock.pass(989);
    expect([await textOf(make(here('/'), page)), made]).toEqual(['page 1', 1]);
    await clock.pass(2);
    expect([await textOf(make(here('/'), page)), made]).toEqual(['page 2', 2]);
  });

  test('that takes long is made as often as a tenth of the time allows', async () => {
    const clock = handClock();
    const make = createAnswerMaker(clock);
    let made = 0;
    const page = async (): Promise<Served> => {
      made += 1;
      clock.work(400);
      return await Promise.resolve(PAGE);
    };
    for (let second = 0; second < 20; second += 1) {
      const answer = textOf(make(here('/'), page));
      await clock.pass(1000);
      expect(await answer).toBe('a page');
    }
    // Every fourth second of 20, as each takes 0.4 s.
    expect(made).toBe(5);
  });

  test('is made again where it failed', async () => {
    const clock = handClock();
    const make = createAnswerMaker(clock);
    await expect(make(here('/'), () => Promise.reject(new Error('no state')))).rejects.toThrow('no state');
    await clock.pass(10);
    expect(await textOf(make(here('/'), async () => await Promise.resolve(PAGE)))).toBe('a page');
  });
});

describe('answers that are made for each client', () => {
  test('has eight places; a client that waits longer than a second for one is rejected', async () => {
    const clock = handClock();
    const make = createAnswerMaker(clock);
    const ends: (() => void)[] = [];
    const page = (): Promise<Served> => new Promise((resolve) => ends.push(() => resolve(PAGE)));
    const asked = Array.from({ length: MAX_PARALLEL + 2 }, () => textOf(make(here(null), page)));
    for (let count = 0; count < 2 * MAX_PARALLEL; count += 1) await clock.pass(1);
    expect(ends).toHaveLength(8);
    ends[0]?.();
    await settled();
    for (let count = 0; count < 3; count += 1) await clock.pass(1);
    expect(ends, 'a place that is free is taken').toHaveLength(9);
    await clock.pass(1000);
    expect(await asked.at(-1)).toBeNull();
    for (const end of ends) end();
    expect(await Promise.all(asked.slice(0, -1))).toEqual(Array.from({ length: 9 }, () => 'a page'));
  });

  test('is not begun before others had a turn, and three times what the last one took', async () => {
    const clock = handClock();
    const make = createAnswerMaker(clock);
    let begun = 0;
    const page = async (): Promise<Served> => {
      begun += 1;
      clock.work(20);
      return await Promise.resolve(PAGE);
    };
    const asked = [0, 1, 2].map(() => textOf(make(here(null), page)));
    await settled();
    expect(begun).toBe(1);
    await clock.pass(59);
    expect(begun).toBe(1);
    await clock.pass(1);
    expect(begun).toBe(2);
    await clock.pass(60);
    expect(await Promise.all(asked)).toEqual(['a page', 'a page', 'a page']);
  });

  test('is not begun for a client that has gone', async () => {
    const clock = handClock();
    const make = createAnswerMaker(clock);
    let begun = 0;
    const page = async (): Promise<Served> => {
      begun += 1;
      return await Promise.resolve(PAGE);
    };
    let isGone = false;
    const first = textOf(make(here(null), page));
    const others = Array.from({ length: 50 }, () => textOf(make({ key: null, isGone: () => isGone }, page)));
    isGone = true;
    await clock.pass(10);
    expect([begun, await first, new Set(await Promise.all(others))]).toEqual([1, 'a page', new Set([null])]);
  });
});
