/**
 * Turns: who may work at the same time, who waits, and who makes way.
 */
import { describe, expect, test } from 'vitest';
import { createTurns } from '../../src/core/async.ts';
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
