/**
 * Polling until something is found, work side by side, and turns: who may work at the same time, who waits, who makes
 * way.
 */
import { describe, expect, test } from 'vitest';
import {
  beginTimeSlice,
  closeAll,
  createTurns,
  createWakeUp,
  NEVER_ABORTED,
  pollUntil,
  runWorkGroup,
  type WorkGroup,
} from '../../src/core/async.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

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
        NEVER_ABORTED,
      );
    expect(await Promise.all([work('a', 'one'), work('a', 'two'), work('b', 'other')])).toEqual([
      'one',
      'two',
      'other',
    ]);
    expect(log).toEqual(['one 0', 'other 0', 'two 100']);
  });

  test('continue after one that failed, and without one that gave up waiting', async () => {
    const clock = createVirtualClock(0);
    const alone = createTurns();
    const stop = new AbortController();
    const failing = alone(
      'a',
      async () => await clock.sleep(50).then(() => Promise.reject(new Error('bad luck'))),
      NEVER_ABORTED,
    );
    const waiting = alone('a', async () => 'never', stop.signal);
    const last = alone('a', async () => clock.monoMs(), NEVER_ABORTED);
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
  test('rests for as long as a function returns after each look', async () => {
    const clock = createVirtualClock(0);
    const looks: number[] = [];
    const look = (): true | null => (looks.push(clock.monoMs()) === 4 ? true : null);
    await pollUntil(clock, look, { everyMs: () => looks.length * 10 }, NEVER_ABORTED);
    expect(looks).toEqual([0, 10, 30, 60]);
  });

  test('looks at once, then after each rest, until a look finds something', async () => {
    const clock = createVirtualClock(0);
    const looked: number[] = [];
    const look = (): string | null => {
      looked.push(clock.monoMs());
      return looked.length === 3 ? 'found' : null;
    };
    expect(await pollUntil(clock, look, { everyMs: 100 }, NEVER_ABORTED)).toBe('found');
    expect(looked).toEqual([0, 100, 200]);
  });

  test('rests twenty times as long as a look took', async () => {
    const clock = createVirtualClock(0);
    const times = [0, 50, 1050, 1100];
    const slow = { monoMs: () => times.shift() ?? 0, sleep: clock.sleep };
    let looks = 0;
    await pollUntil(slow, () => (++looks === 2 ? true : null), { everyMs: 100 }, NEVER_ABORTED);
    expect(clock.monoMs()).toBe(1000);
  });

  test('looks again when it is notified', async () => {
    const clock = createVirtualClock(0);
    const wakeUp = createWakeUp(clock);
    let isThere = false;
    const found = pollUntil(clock, () => (isThere ? clock.monoMs() : null), { everyMs: 1000, wakeUp }, NEVER_ABORTED);
    await clock.sleep(300);
    isThere = true;
    wakeUp.notify();
    expect(await found).toBe(300);
  });

  test('ends with the error of a check, and with the reason of an abort', async () => {
    const clock = createVirtualClock(0);
    const bad = (): null => {
      throw new Error('bad look');
    };
    await expect(pollUntil(clock, bad, { everyMs: 1 }, NEVER_ABORTED)).rejects.toThrow('bad look');
    const stop = new AbortController();
    const polled = expect(pollUntil(clock, () => null, { everyMs: 100 }, stop.signal)).rejects.toThrow('enough');
    await clock.sleep(250);
    stop.abort(new Error('enough'));
    await polled;
  });
});

describe('a group of work', () => {
  /** Runs a group over pieces that fail after some time, or sleep until they are stopped. */
  function live(pieces: Readonly<Record<string, number | null>>, signal = NEVER_ABORTED) {
    const clock = createVirtualClock(0);
    const wakeUp = createWakeUp(clock);
    const log: string[] = [];
    const loop = async ({ underWay, signal: stop, start }: WorkGroup<string>): Promise<never> => {
      for (const [name, failsAtMs] of Object.entries(pieces)) {
        start(name, async (piece) => {
          await clock.sleep(failsAtMs ?? 1000, piece).catch(() => log.push(`${name} stops ${clock.monoMs()}`));
          if (failsAtMs !== null && !piece.aborted) throw new Error(name);
        });
      }
      for (;;) {
        await wakeUp.wait(600, stop);
        log.push(`${[...underWay.keys()].join(' ')} ${clock.monoMs()}`);
      }
    };
    const end = runWorkGroup(wakeUp, loop, signal).catch((error: Error) => `${error.message} ${clock.monoMs()}`);
    return { clock, log, end };
  }

  test('wakes its loop at the end of each piece', async () => {
    const stop = new AbortController();
    const { clock, log, end } = live({ one: null, two: null }, stop.signal);
    await clock.sleep(1100);
    stop.abort(new Error('enough'));
    expect(await end).toBe('enough 1100');
    expect(log).toEqual(['one two 600', 'two 1000', ' 1000']);
  });

  test('ends with the failure that came first, once all other pieces have ended', async () => {
    const { log, end } = live({ long: null, late: 500, early: 20 });
    expect(await end).toBe('early 20');
    expect(log).toEqual(['long stops 20', 'late stops 20']);
  });

  test('ends with the reason of the outer signal, and leaves no listener there', async () => {
    const stop = new AbortController();
    const listeners = new Set<unknown>();
    const { signal } = stop;
    const add = signal.addEventListener.bind(signal);
    signal.addEventListener = (type: string, listener: () => void, options?: object) => {
      listeners.add(listener);
      add(type, listener, options);
    };
    signal.removeEventListener = (_type: string, listener: unknown) => void listeners.delete(listener);
    const { clock, log, end } = live({ long: null }, signal);
    await clock.sleep(10);
    stop.abort(new Error('outer'));
    expect(await end).toBe('outer 10');
    expect(log).toEqual(['long stops 10']);
    expect(listeners).toEqual(new Set());
  });

  test('aborts its pieces when the loop itself fails', async () => {
    const clock = createVirtualClock(0);
    const log: unknown[] = [];
    const loop = async ({ start }: WorkGroup<string>): Promise<never> => {
      start('long', async (piece) => await clock.sleep(1000, piece).catch((error) => void log.push(error.message)));
      await clock.sleep(5);
      throw new Error('bad loop');
    };
    await expect(runWorkGroup(createWakeUp(clock), loop, NEVER_ABORTED)).rejects.toThrow('bad loop');
    expect([log, clock.monoMs()]).toEqual([['bad loop'], 5]);
  });
});

describe('closing parts', () => {
  test('closes all in order, also past those that fail, and throws their errors', async () => {
    const closed: string[] = [];
    const close = (name: string, error?: Error) => async (): Promise<void> => {
      await Promise.resolve();
      closed.push(name);
      if (error !== undefined) throw error;
    };
    await closeAll(close('a'), close('b'));
    const [first, second] = [new Error('first'), new Error('second')];
    await expect(closeAll(close('c', first), close('d'))).rejects.toBe(first);
    const failing = closeAll(close('e', first), close('f', second), close('g'));
    await expect(failing).rejects.toMatchObject({ message: 'first; second', errors: [first, second] });
    expect(closed).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
  });
});

test('a time slice is over after its time, and the next one begins after the pause', async () => {
  const clock = createVirtualClock(0);
  const slice = beginTimeSlice(clock, { workMs: 10, pauseMs: 3 });
  const after = async (ms: number): Promise<boolean> => {
    await clock.sleep(ms);
    return slice.isOver();
  };
  expect([await after(9), await after(1)]).toEqual([false, true]);
  await slice.pause();
  expect([clock.monoMs(), await after(9), await after(1)]).toEqual([13, false, true]);
  await expect(slice.pause(AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped');
});
