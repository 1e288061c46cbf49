/** The queue of missing history: breadth first, in turns, and right for arbitrary sequences of changes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  admitRested,
  createHistoryQueue,
  type HistoryPick,
  type HistoryQueue,
  NOTHING_OPEN,
  nextHistoryMs,
  type OpenHistory,
  pauseHistory,
  pickHistory,
  RECENCIES,
  type Recency,
  releaseHistory,
  removeHistory,
  setOpenHistory,
} from '../../src/scheduler/history-queue.ts';
import { figuresOf } from '../../src/scheduler/planner.ts';
import { createWorld, evenDevice } from './planner-world.ts';

function pickAt(queue: HistoryQueue, nowMs: number): HistoryPick | null {
  admitRested(queue, nowMs);
  return pickHistory(queue);
}

describe('history', () => {
  test('is breadth first: the last day of every device, then the week, then the rest', () => {
    const ids = Array.from({ length: 50 }, (_, index) => `d${index}`);
    const world = createWorld(ids.map((id) => evenDevice(id, { intervalMs: MINUTE_MS, untilMs: -30 * DAY_MS })));
    for (const id of ids) {
      world.storeUpTo(id, 0);
      // Those that make more take more pages.
      world.open('first-history', id, {
        day: (1 + (Number(id.slice(1)) % 3)) * DAY_MS,
        week: 6 * DAY_MS,
        rest: 4 * DAY_MS,
      });
    }
    const made = world.run({ fromMs: 0, untilMs: 1000 * SECOND_MS });
    const history = made.flatMap(({ decision }) => (decision.kind === 'history' ? [decision] : []));
    const order = history.map(({ recency }) => RECENCIES.indexOf(recency));
    expect(order, 'no week before the last day of all').toEqual(order.toSorted((a, b) => a - b));
    expect(
      history
        .slice(0, 50)
        .map(({ deviceId }) => deviceId)
        .toSorted(),
      'each in turn',
    ).toEqual(ids.toSorted());
    expect(history.filter(({ recency }) => recency === 'week')).toHaveLength(6 * 50);
    const firstWeek = history.filter(({ recency }) => recency === 'week').slice(0, 50);
    expect(new Set(firstWeek.map(({ deviceId }) => deviceId)).size).toBe(50);
    expect(figuresOf(world.planner).openHistoryMs).toEqual(NOTHING_OPEN);
  });

  test('a first history comes before a backfill', () => {
    const world = createWorld([evenDevice('a', { intervalMs: MINUTE_MS, untilMs: -DAY_MS })]);
    world.storeUpTo('a', 0);
    world.open('backfill', 'a', { day: 0, week: 0, rest: 50 * DAY_MS });
    world.open('first-history', 'a', { day: 0, week: 0, rest: 20 * DAY_MS });
    const lanes = world.run({ fromMs: 0, untilMs: 100 * SECOND_MS }).map(({ decision }) => decision.lane);
    const first = lanes.slice(0, lanes.lastIndexOf('first-history') + 1);
    expect(first.filter((lane) => lane === 'backfill').length, 'but for its reserve').toBeLessThanOrEqual(2);
    expect(lanes.filter((lane) => lane === 'backfill')).toHaveLength(50);
  });

  test('a range that cannot be requested rests, and the others get their turns', () => {
    const queue = createHistoryQueue();
    for (const id of ['bad', 'good']) setOpenHistory(queue, id, { ...NOTHING_OPEN, day: 5 });
    pauseHistory(queue, 'bad');
    expect(pickAt(queue, 0)).toEqual({ deviceId: 'good', recency: 'day' });
    releaseHistory(queue, 'bad', false, 100);
    setOpenHistory(queue, 'good', NOTHING_OPEN);
    expect(pickAt(queue, 99)).toBeNull();
    expect(nextHistoryMs(queue)).toBe(100);
    expect(pickAt(queue, 100)).toEqual({ deviceId: 'bad', recency: 'day' });
    removeHistory(queue, 'bad');
    expect(pickAt(queue, 200)).toBeNull();
    expect(queue.openMs).toEqual(NOTHING_OPEN);
  });

  test('open ranges are counted right, and nothing that is done is requested, whatever happens', () => {
    const open = fc.record({ day: fc.nat(2), week: fc.nat(2), rest: fc.nat(2) });
    const changeOf = fc.record({ kind: fc.constantFrom('open', 'gone', 'hold', 'release'), id: fc.nat(8), open });
    fc.assert(
      fc.property(fc.array(changeOf, { maxLength: 120 }), (changes) => {
        const queue = createHistoryQueue();
        const model = createModel();
        changes.forEach(({ kind, id, open: next }, atMs) => {
          const deviceId = `d${id}`;
          change(queue, kind, deviceId, next);
          model[kind](deviceId, next);
          const pick = pickAt(queue, atMs);
          expect(pick?.recency, 'the newest range that any free one lacks').toBe(model.recency());
          if (pick !== null) expect(model.opens.get(pick.deviceId)?.[pick.recency]).toBeGreaterThan(0);
          expect(queue.openMs).toEqual(model.sum());
        });
      }),
    );
  });
});

function change(
  queue: HistoryQueue,
  kind: 'open' | 'gone' | 'hold' | 'release',
  deviceId: string,
  open: OpenHistory,
): void {
  if (kind === 'open') setOpenHistory(queue, deviceId, open);
  else if (kind === 'release') releaseHistory(queue, deviceId, true);
  else if (kind === 'hold') pauseHistory(queue, deviceId);
  else removeHistory(queue, deviceId);
}

/** The queue in its simplest implementation. */
function createModel() {
  const opens = new Map<string, OpenHistory>();
  const held = new Set<string>();
  const sumOf = (recency: Recency): number => [...opens.values()].reduce((sum, each) => sum + each[recency], 0);
  return {
    opens,
    open(deviceId: string, open: OpenHistory) {
      opens.set(deviceId, open);
    },
    gone(deviceId: string) {
      opens.delete(deviceId);
      held.delete(deviceId);
    },
    hold(deviceId: string) {
      if (isOpen(opens.get(deviceId))) held.add(deviceId);
    },
    release(deviceId: string) {
      held.delete(deviceId);
    },
    recency(): Recency | undefined {
      const free = [...opens].filter(([deviceId]) => !held.has(deviceId)).map(([, open]) => open);
      return RECENCIES.find((recency) => free.some((open) => RECENCIES.find((each) => open[each] > 0) === recency));
    },
    sum: (): OpenHistory => ({ day: sumOf('day'), week: sumOf('week'), rest: sumOf('rest') }),
  };
}

function isOpen(open: OpenHistory | undefined): boolean {
  return open !== undefined && RECENCIES.some((recency) => open[recency] > 0);
}
