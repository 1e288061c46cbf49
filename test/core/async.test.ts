/**
 * Polling until something is found, work side by side, and turns: who may work at the same time, who waits, who makes way.
 */
import { describe, expect, test } from 'vitest';
import { createTurns, createWakeUp, createWorkGroup, pollUntil } from '../../src/core/async.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const NEVER = new AbortController().signal;

describe('turns', () => {
  test('go one after the other under one name, side by side under others', async () => {
    const clock = createVirtualClock(0);
    const alone = createTurns();
    const log: string[] = [];
    const work = (name: string, label: string) =>
      alone(
        name,
        async () => {
          log.push(`${label} ${clock.monoMs()}`);
          await clock.sleep(100);
          return label;
        },
        NEVER,
      );
    expect(await Promise.all([work('a', 'one'), work('a', 'two'), work('b', 'other')])).toEqual([
      'one',
      'two',
      'other',
    ]);
    expect(log).toEqual(['one 0', 'other 0', 'two 100']);
  });

  test('go on after one that failed, and without one that gave up waiting', async () => {
    const clock = createVirtualClock(0);
    const alone = createTurns();
    const stop = new AbortController();
    const failing = alone(
      'a',
      async () => await clock.sleep(50).then(() => Promise.reject(new Error('bad luck'))),
      NEVER,
    );
    const waiting = alone('a', async () => 'never', stop.signal);
    const last = alone('a', async () => clock.monoMs(), NEVER);
    const outcomes = Promise.allSettled([failing, waiting, last]);
    await clock.sleep(10);
    stop.abort(new Error('given up'));
    expect(await outcomes).toMatchObject([
      { status: 'rejected', reason: { message: 'bad luck' } },
      { status: 'rejected', reason: { message: 'given up' } },
      { status: 'fulfilled', value: 50 },
    ]);
  });
});

describe('polling', () => {
  test('looks at once, then after each rest, until a look finds something', async () => {
    const clock = createVirtualClock(0);
    const looked: number[] = [];
    const look = (): string | null => {
      looked.push(clock.monoMs());
      return looked.length === 3 ? 'found' : null;
    };
    expect(await pollUntil(clock, look, { everyMs: 100 }, NEVER)).toBe('found');
    expect(looked).toEqual([0, 100, 200]);
  });

  test('rests twenty times as long as a look took', async () => {
    const clock = createVirtualClock(0);
    const times = [0, 50, 1050, 1100];
    const slow = { monoMs: () => times.shift() ?? 0, sleep: clock.sleep };
    let looks = 0;
    await pollUntil(slow, () => (++looks === 2 ? true : null), { everyMs: 100 }, NEVER);
    expect(clock.monoMs()).toBe(1000);
  });

  test('looks again when it is notified', async () => {
    const clock = createVirtualClock(0);
    const wakeUp = createWakeUp(clock);
    let isThere = false;
    const found = pollUntil(clock, () => (isThere ? clock.monoMs() : null), { everyMs: 1000, wakeUp }, NEVER);
    await clock.sleep(300);
    isThere = true;
    wakeUp.notify();
    expect(await found).toBe(300);
  });

  test('ends with what a look throws, and with the reason of an abort', async () => {
    const clock = createVirtualClock(0);
    const bad = (): null => {
      throw new Error('bad look');
    };
    await expect(pollUntil(clock, bad, { everyMs: 1 }, NEVER)).rejects.toThrow('bad look');
    const stop = new AbortController();
    const polled = expect(pollUntil(clock, () => null, { everyMs: 100 }, stop.signal)).rejects.toThrow('enough');
    await clock.sleep(250);
    stop.abort(new Error('enough'));
    await polled;
  });
});

describe('a group of work', () => {
  test('wakes its loop at each end, and keeps the first failure for it', async () => {
    const clock = createVirtualClock(0);
    const wakeUp = createWakeUp(clock);
    const group = createWorkGroup<string>(wakeUp);
    const failing = async (ms: number, words: string): Promise<void> => {
      await clock.sleep(ms);
      throw new Error(words);
    };
    group.add('good', clock.sleep(10));
    group.add('first', failing(20, 'first'));
    group.add('second', failing(30, 'second'));
    await wakeUp.wait(1000, NEVER);
    expect([clock.monoMs(), ...group.underWay.keys()]).toEqual([10, 'first', 'second']);
    expect(group.throwFailure).not.toThrow();
    await wakeUp.wait(1000, NEVER);
    expect(group.throwFailure).toThrow('first');
    await group.ended();
    expect(group.underWay.size).toBe(0);
    expect(group.throwFailure).toThrow('first');
  });
});
