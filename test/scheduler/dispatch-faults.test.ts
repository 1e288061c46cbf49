/**
 * The effect of a fault of a request about a device: a gap that is named where other requests were answered, and
 * a rest without a name where the service may have been at fault.
 */
import { describe, expect, test } from 'vitest';
import { gapsIn } from '../../src/core/coverage.ts';
import { ApiFault } from '../../src/core/faults.ts';
import { DAY_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import type { ScanTask } from '../../src/ingest/gap-scan.ts';
import { wantedNow } from '../../src/ingest/wanted-range.ts';
import { type DispatchParts, followPlan } from '../../src/scheduler/dispatch.ts';
import { createWantedGoal } from '../../src/scheduler/goal.ts';
import { beginOneOff, beginPlanning, removeDevice } from '../../src/scheduler/planning.ts';
import { pageCommit, scratchStore } from '../store/support.ts';
import { createSessionWorld, listBefore, mute, START_MS } from './session-world.ts';

const FAULT = new ApiFault('server-fault', 'odd', { request: 'GET /x', retriedMs: 5 * SECOND_MS });
/** The newest instant that can be covered at the start. */
const LIMIT_NS = msToNs(START_MS - 2 * MINUTE_MS - SECOND_MS);
const DAY_NS = msToNs(DAY_MS);

/**
 * A simulated workspace with one device, whose first request does something and then fails; then the loop is stopped.
 */
function createWorld(state: ReturnType<typeof scratchStore>) {
  listBefore(state, [mute('a')]);
  const world = createSessionWorld(state);
  world.hear();
  const { parts, clock, planning } = world;
  const tasks: ScanTask[] = [];
  const run = async (request: () => Promise<void> | void): Promise<void> => {
    const stop = new AbortController();
    const scan = async (task: ScanTask): Promise<never> => {
      tasks.push(task);
      void clock.sleep(1).then(() => stop.abort(new Error('stopped')));
      await request();
      throw FAULT;
    };
    const readStream = async (): Promise<boolean> => await Promise.resolve(true);
    const loop = followPlan({ ...parts, scanner: { scan }, readStream } as unknown as DispatchParts, stop.signal);
    await expect(loop).rejects.toThrow('stopped');
  };
  return { ...world, planning, tasks, run, answered: () => parts.outage.noteAnswered(null) };
}

const named = (state: ReturnType<typeof scratchStore>) =>
  state.store.gaps('a').map(({ reason, fromNs, toNs }) => ({ reason, from: fromNs, to: toNs }));

describe('a fault about a device while other requests are answered', () => {
  test('names the range of a poll', async () => {
    using state = scratchStore();
    const { planning, run, answered } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    await run(answered);
    expect(named(state)).toEqual([{ reason: 'unreachable', from: LIMIT_NS - DAY_NS, to: LIMIT_NS }]);
  });

  test('names the rest of the range: a page of it may have been committed', async () => {
    using state = scratchStore();
    const { planning, run, answered } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    const half = { from: LIMIT_NS - DAY_NS / 2n, to: LIMIT_NS, first: null, last: null };
    await run(() => {
      answered();
      state.store.commitPage(
        pageCommit({ deviceId: 'a', revision: state.store.telemetry('a').revision, covered: [half] }),
      );
    });
    const range = { from: LIMIT_NS - DAY_NS, to: LIMIT_NS };
    expect(named(state)).toEqual(gapsIn(range, [half]).map((gap) => ({ reason: 'unreachable', ...gap })));
  });

  test('names no range of a device that has left meanwhile', async () => {
    using state = scratchStore();
    const { planning, run, answered } = createWorld(state);
    beginPlanning(planning, { areListed: true });
    await run(() => {
      answered();
      removeDevice(planning, 'a');
    });
    expect(named(state)).toEqual([]);
  });
});

describe('a fault about a device that may be the service’s', () => {
  test('names nothing', async () => {
    using state = scratchStore();
    const { clock, planning, run, answered } = createWorld(state);
    answered();
    await clock.sleep(10 * SECOND_MS);
    beginPlanning(planning, { areListed: true });
    await run(() => {});
    expect(named(state)).toEqual([]);
    expect(planning.failingDevices.noteAnswered(null)).toEqual(['a']);
  });

  test('still names the range in a run that ends, for two of its waits at most', async () => {
    using state = scratchStore();
    const { clock, planning, context, run, answered, tasks } = createWorld(state);
    answered();
    await clock.sleep(10 * SECOND_MS);
    const wantedRange = wantedNow(context);
    if (wantedRange === null) throw new Error('the time is known');
    const goal = createWantedGoal(context, wantedRange);
    beginOneOff(planning, { lane: 'first-history', goal, streams: [] });
    await run(() => {});
    expect(named(state)).toEqual([{ reason: 'unreachable', ...tasks[0]?.range }]);
    const [gap] = state.store.gaps('a');
    expect((gap?.retryAtMs ?? 0) - context.serverClock.nowMs()).toBeLessThanOrEqual(2 * MINUTE_MS);
  });
});
