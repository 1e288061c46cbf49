/** The planner under load: no lane starves, and lower lanes use spare requests. The workspace is simulated. */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { OpenHistory } from '../../src/scheduler/history-queue.ts';
import { noteBegan, plannerDaySupply, setDay, setReread, takeDecision } from '../../src/scheduler/planner.ts';
import { NARROW_RESERVES, RESERVED_LANES, USUAL_RESERVES } from '../../src/scheduler/reserves.ts';
import { createWorld, evenDevice, type Made, newestOf } from './planner-world.ts';

const LANES = ['live', ...RESERVED_LANES] as const;
type Lane = (typeof LANES)[number];
const MUCH: OpenHistory = { day: 100_000 * DAY_MS, week: 0, rest: 0 };

function laneOf({ decision: { lane, kind } }: Made): Lane {
  if (lane !== 'inventory') return lane;
  return kind === 'account' ? 'account' : 'devices';
}

/** The most requests between two of a lane, the beginning and the end included. */
function longestWait(made: readonly Made[], lane: Lane): number {
  const at = made.flatMap((each, index) => (laneOf(each) === lane ? [index] : []));
  return Math.max(...[...at, made.length].map((index, nth) => index - (at[nth - 1] ?? -1)));
}

/** Live work for ten times the requests there are, and work for every lane below it. */
function busyWorld(devices: number, intervalMs: number) {
  const talking = Array.from({ length: devices }, (_, index) => evenDevice(`t${index}`, { intervalMs }));
  const silent = Array.from({ length: devices }, (_, index) =>
    evenDevice(`s${index}`, { intervalMs, untilMs: -DAY_MS }),
  );
  const world = createWorld([...talking, ...silent]);
  for (const { deviceId } of [...talking, ...silent]) {
    world.storeUpTo(deviceId, -12 * HOUR_MS);
    world.open('first-history', deviceId, MUCH);
    world.open('backfill', deviceId, MUCH);
  }
  return world;
}

describe('no lane starves', () => {
  test.each([
    ['where the readings fit', USUAL_RESERVES, 10 * MINUTE_MS, null],
    ['where they do not', NARROW_RESERVES, 10 * SECOND_MS, 800],
  ] as const)(
    '%s: each lane with work gets its reserve and waits no longer than its reciprocal',
    (_, reserves, intervalMs, budget) => {
      const world = busyWorld(300, intervalMs);
      if (budget !== null) setDay(world.planner, { limit: budget / 0.8, budget, spent: 0, others: null }, 0);
      const days = budget === null ? 1 : 4;
      const made = world.run({ fromMs: 0, untilMs: days * DAY_MS, everyMs: 30 * SECOND_MS });
      expect(plannerDaySupply(world.planner, days * DAY_MS).backfillReserve).toBe(reserves.backfill);
      for (const lane of RESERVED_LANES) {
        const count = made.filter((each) => laneOf(each) === lane).length;
        expect(count, lane).toBeGreaterThanOrEqual(Math.floor(made.length * reserves[lane] * 0.9) - 2);
        // Its own reciprocal, once more for each request that it got at the start beyond its reserve (the first listing
        // has three pages), and a few where several are due.
        const times = lane === 'devices' ? 7 : 2;
        expect(longestWait(made, lane), lane).toBeLessThanOrEqual(times / reserves[lane] + 2 * RESERVED_LANES.length);
      }
      const live = made.filter(({ decision }) => decision.lane === 'live').length;
      expect(live / made.length, 'and live work the rest').toBeGreaterThan(0.7);
    },
  );

  test('the account and the listing are charged alike, and neither starves', () => {
    const world = busyWorld(300, 10 * MINUTE_MS);
    const made = world.run({ fromMs: 0, untilMs: DAY_MS, everyMs: 30 * SECOND_MS });
    for (const kind of ['account', 'devices']) {
      const at = made.filter(({ decision }) => decision.kind === kind).map(({ atMs }) => atMs);
      const gaps = at.slice(1).map((atMs, index) => atMs - (at[index] ?? 0));
      expect(Math.max(...gaps), kind).toBeLessThan(9 * HOUR_MS);
    }
  });
});

test.each([400, 800, 1200, 1440])(
  'where the day carries %i requests, no listing takes the turn of a poll',
  (budget) => {
    const intervalMs = 17 * MINUTE_MS;
    const world = createWorld([evenDevice('only', { intervalMs })]);
    world.storeUpTo('only', 0);
    setDay(world.planner, { limit: budget / 0.8, budget, spent: budget / 2, others: null }, 0);
    const made = world.run({ fromMs: 0, untilMs: 6 * HOUR_MS });
    const polls = newestOf(made).map(({ atMs }) => atMs);
    expect(polls.length, 'a poll for each reading').toBeGreaterThanOrEqual((6 * HOUR_MS) / intervalMs - 2);
    expect(Math.max(...polls.map((atMs, index) => atMs - (polls[index - 1] ?? 0)))).toBeLessThan(2 * intervalMs);
    expect(made.filter(({ decision }) => decision.kind === 'alerts').length).toBeGreaterThan(made.length / 5);
  },
);

test('devices that were never polled wait for no history where the list does not show when they were seen', () => {
  const known = Array.from({ length: 20 }, (_, index) => evenDevice(`k${index}`, { intervalMs: MINUTE_MS }));
  const fresh = Array.from({ length: 30 }, (_, index) =>
    evenDevice(`f${index}`, { intervalMs: 10 * MINUTE_MS, seenAt: () => null }),
  );
  const world = createWorld([...known, ...fresh]);
  for (const { deviceId } of known) {
    world.storeUpTo(deviceId, -HOUR_MS);
    world.open('first-history', deviceId, MUCH);
  }
  setDay(world.planner, { limit: 5000, budget: 4000, spent: 0, others: null }, 0);
  const made = newestOf(world.run({ fromMs: 0, untilMs: HOUR_MS }));
  const firstMs = fresh.map((device) => made.find(({ deviceId }) => deviceId === device.deviceId)?.atMs ?? Infinity);
  expect(Math.max(...firstMs)).toBeLessThan(5 * MINUTE_MS);
});

describe('spare quota', () => {
  test('goes to history before idle polls, and live work does not wait for it', () => {
    const world = createWorld(['a', 'b'].map((id) => evenDevice(id, { intervalMs: MINUTE_MS })));
    for (const deviceId of ['a', 'b']) {
      world.storeUpTo(deviceId, 0);
      world.open('first-history', deviceId, MUCH);
    }
    setDay(world.planner, { limit: 25_000, budget: 20_000, spent: 0, others: null }, 0);
    const made = world.run({ fromMs: 0, untilMs: DAY_MS });
    const share = (lane: Lane): number => made.filter(({ decision }) => decision.lane === lane).length;
    expect(share('live')).toBeGreaterThan(2 * 1400 * 0.98);
    expect(share('first-history')).toBeGreaterThan(13_000);
    expect(made.length, 'all that the day carries').toBeGreaterThan(19_000);
  });

  test('rereads get the requests that all other work leaves, one at a time', () => {
    const world = createWorld([evenDevice('a', { intervalMs: MINUTE_MS })]);
    world.storeUpTo('a', 0);
    world.open('backfill', 'a', { day: 0, week: 0, rest: 3 * DAY_MS });
    setReread(world.planner, true, false);
    const made = world.run({ fromMs: 0, untilMs: MINUTE_MS });
    const kinds = made.map(({ decision }) => decision.kind);
    expect(kinds.filter((kind) => kind === 'reread')).toHaveLength(1);
    expect(kinds.indexOf('reread')).toBeGreaterThan(kinds.lastIndexOf('history'));
    setReread(world.planner, true, false);
    const decision = takeDecision(world.planner, MINUTE_MS - 1);
    if (decision.kind === 'rest') throw new Error('there is something to read again');
    noteBegan(world.planner, decision, MINUTE_MS - 1);
    expect(takeDecision(world.planner, MINUTE_MS - 1).kind, 'it is under way').toBe('rest');
  });

  test('a due reread has the reserve of idle polls where the quota is short', () => {
    const made = (isOwed: boolean): number => {
      const world = busyWorld(300, 10 * SECOND_MS);
      setDay(world.planner, { limit: 1000, budget: 800, spent: 0, others: null }, 0);
      setReread(world.planner, true, isOwed);
      const run = world.run({ fromMs: 0, untilMs: DAY_MS, everyMs: 30 * SECOND_MS });
      return run.filter(({ decision }) => decision.kind === 'reread').length;
    };
    expect([made(false), made(true)]).toEqual([0, 1]);
  });
});
