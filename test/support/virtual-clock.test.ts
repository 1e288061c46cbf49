/** The virtual clock: time moves only when everybody sleeps, and always the same way. */
import { expect, test } from 'vitest';
import { ORIGIN_MS } from '../sim/support.ts';
import { patient } from './patience.ts';
import { createVirtualClock, withWallOffset } from './virtual-clock.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a month of sleeping takes no real time, and both clocks have moved by it', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  const begunMs = performance.now();
  for (let day = 0; day < 30; day += 1) await clock.sleep(86_400_000);
  expect(clock.nowMs()).toBe(ORIGIN_MS + 30 * 86_400_000);
  expect(clock.monoMs()).toBe(30 * 86_400_000);
  expect(performance.now() - begunMs).toBeLessThan(patient(10_000));
});

test('sleepers wake in the order of their times, and at the same time in the order of falling asleep', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  const woken: string[] = [];
  const sleep = async (name: string, ms: number): Promise<void> => {
    await clock.sleep(ms);
    woken.push(`${name}@${clock.monoMs()}`);
  };
  await Promise.all([sleep('c', 20), sleep('a', 10), sleep('d', 20), sleep('b', 10), sleep('0', 0), sleep('-', -5)]);
  expect(woken).toEqual(['0@0', '-@0', 'a@10', 'b@10', 'c@20', 'd@20']);
});

test('a task that wakes finishes its work before the next one wakes, even over turns of the event loop', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  const steps: string[] = [];
  const work = async (name: string): Promise<void> => {
    await clock.sleep(10);
    for (let step = 0; step < 3; step += 1) {
      await Promise.resolve();
      await turn();
      steps.push(`${name}${step}`);
      await clock.sleep(0);
    }
  };
  await Promise.all([work('a'), work('b')]);
  const once = [...steps];
  steps.length = 0;
  const again = createVirtualClock(ORIGIN_MS);
  await again.sleep(1);
  expect(once.filter((step) => step.startsWith('a'))).toEqual(['a0', 'a1', 'a2']);
  expect(once).toHaveLength(6);
});

test('two runs of one program take the same steps', async () => {
  const run = async (): Promise<string[]> => {
    const clock = createVirtualClock(ORIGIN_MS);
    const seen: string[] = [];
    const loop = async (name: string, everyMs: number): Promise<void> => {
      while (clock.monoMs() < 1000) {
        await clock.sleep(everyMs);
        await turn();
        seen.push(`${name}@${clock.monoMs()}`);
      }
    };
    await Promise.all([loop('a', 10), loop('b', 15), loop('c', 30)]);
    return seen;
  };
  const first = await run();
  expect(first.length).toBeGreaterThan(190);
  expect(await run()).toEqual(first);
});

test('time stands still while work is under way that the event loop does not show', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  let settle: (value: string) => void = () => undefined;
  const work = clock.busy(
    new Promise<string>((resolve) => {
      settle = resolve;
    }),
  );
  let woken = false;
  const sleeping = clock.sleep(1000).then(() => {
    woken = true;
  });
  for (let turns = 0; turns < 50; turns += 1) await turn();
  expect([woken, clock.monoMs()]).toEqual([false, 0]);
  settle('done');
  expect(await work).toBe('done');
  await sleeping;
  expect(clock.monoMs()).toBe(1000);
});

test('time continues after work that failed', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  const sleeping = clock.sleep(5);
  await expect(clock.busy(Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  await sleeping;
  expect(clock.monoMs()).toBe(5);
});

test('an aborted sleep rejects with the reason of the signal, leaves no trace and moves no time', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  const reason = new Error('enough');
  await expect(clock.sleep(10, AbortSignal.abort(reason))).rejects.toBe(reason);
  const controller = new AbortController();
  const sleeping = [clock.sleep(10, controller.signal), clock.sleep(Infinity, controller.signal), clock.sleep(1)];
  expect(clock.sleepers()).toBe(2);
  controller.abort(reason);
  const results = await Promise.allSettled(sleeping);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  expect(results[0]).toMatchObject({ reason });
  expect([clock.monoMs(), clock.sleepers()]).toEqual([1, 0]);
});

test('who sleeps for ever does not keep the others from sleeping', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  let woken = false;
  void clock.sleep(Infinity).then(() => {
    woken = true;
  });
  await clock.sleep(100);
  expect([woken, clock.monoMs()]).toEqual([false, 100]);
});

test('many sleepers wake in order, whatever the order of falling asleep', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  const woken: number[] = [];
  const times = Array.from({ length: 300 }, (_, at) => (at * 7919) % 613);
  await Promise.all(times.map((ms) => clock.sleep(ms).then(() => woken.push(ms))));
  expect(woken).toEqual([...times].sort((a, b) => a - b));
});

test('a wall clock can be wrong by itself', async () => {
  const clock = createVirtualClock(ORIGIN_MS);
  let offsetMs = 0;
  const local = withWallOffset(clock, () => offsetMs);
  await local.sleep(10);
  offsetMs = -3_600_000;
  expect([local.nowMs(), local.monoMs(), clock.nowMs()]).toEqual([ORIGIN_MS + 10 - 3_600_000, 10, ORIGIN_MS + 10]);
});
