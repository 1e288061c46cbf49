/** Which device the planner polls, by its device list, hints and report rates. The workspace is simulated. */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { DayFigures } from '../../src/scheduler/day-budget.ts';
import { noteDeviceStored } from '../../src/scheduler/device-queue.ts';
import {
  figuresOf,
  noteBegan,
  notePollCommitted,
  noteRequestBooked,
  plannerDaySupply,
  setDay,
  takeDecision,
} from '../../src/scheduler/planner.ts';
import { UNKNOWN_RATE } from '../../src/scheduler/report-rate.ts';
import { NARROW_RESERVES, USUAL_RESERVES } from '../../src/scheduler/reserves.ts';
import { countOf, createWorld, evenDevice, newestOf, SILENT } from './planner-world.ts';

function dayOf(budget: number): DayFigures {
  return { limit: budget / 0.8, budget, spent: 0, others: null };
}

describe('which device is polled', () => {
  test('the device list comes first, then the account, then devices that were never polled', () => {
    const world = createWorld([evenDevice('a', { intervalMs: MINUTE_MS })]);
    const kinds = world.run({ fromMs: 0, untilMs: 10 * SECOND_MS }).map(({ decision }) => decision.kind);
    expect(kinds.slice(0, 4)).toEqual(['devices', 'account', 'poll', 'alerts']);
  });

  test('a device without news is polled once, at its idle poll', () => {
    const world = createWorld([evenDevice('silent', SILENT), evenDevice('talks', { intervalMs: 5 * MINUTE_MS })]);
    for (const deviceId of ['silent', 'talks']) world.storeUpTo(deviceId, 0);
    const made = world.run({ fromMs: 0, untilMs: 2 * DAY_MS });
    expect(countOf(made, 'silent')).toBe(0);
    const idlePolls = newestOf(made, 'idle-poll').filter(({ deviceId }) => deviceId === 'silent');
    expect(idlePolls.map(({ atMs }) => Math.round(atMs / HOUR_MS))).toEqual([6, 12, 18, 24, 30, 36, 42]);
    expect(countOf(made, 'talks')).toBe(2 * 288 - 1);
    expect(newestOf(made).every(({ newReadings }) => newReadings === 1)).toBe(true);
  });

  test('the device with the oldest unread reading goes first', () => {
    const ages = { a: 3 * HOUR_MS, b: 9 * HOUR_MS, c: 4 * HOUR_MS };
    const world = createWorld(Object.keys(ages).map((id) => evenDevice(id, { intervalMs: MINUTE_MS })));
    const nowMs = 10 * HOUR_MS;
    for (const [deviceId, ageMs] of Object.entries(ages)) world.storeUpTo(deviceId, nowMs - ageMs);
    const made = world.run({ fromMs: nowMs, untilMs: nowMs + 15 * SECOND_MS });
    // Nine hours of minutes are walked through from the newest end; four hours are a page and something, of which the
    // newest readings wait, so that the next page is as full.
    expect(newestOf(made).map(({ deviceId, newReadings }) => [deviceId, newReadings])).toEqual([
      ['b', 200],
      ['b', 200],
      ['b', 140],
      ['c', 194],
      ['a', 180],
    ]);
  });

  test('a device is not polled again before its request is answered', () => {
    const world = createWorld(['a', 'b'].map((id) => evenDevice(id, { intervalMs: MINUTE_MS })));
    world.run({ fromMs: 0, untilMs: 10 * SECOND_MS });
    const nowMs = 2 * HOUR_MS;
    const first = takeDecision(world.planner, nowMs);
    expect(takeDecision(world.planner, nowMs), 'asking twice gives the same').toEqual(first);
    const given: string[] = [];
    for (
      let decision = first;
      decision.kind !== 'rest' && given.length < 9;
      decision = takeDecision(world.planner, nowMs)
    ) {
      noteBegan(world.planner, decision, nowMs);
      given.push('deviceId' in decision ? decision.deviceId : decision.kind);
    }
    expect(given.toSorted()).toEqual(['a', 'account', 'alerts', 'b', 'devices']);
  });

  test('a device that reports every ten seconds is polled when its target lag is due, not at every reading', () => {
    const world = createWorld([evenDevice('fast', { intervalMs: 10 * SECOND_MS })]);
    world.storeUpTo('fast', 0);
    const asked = newestOf(world.run({ fromMs: 0, untilMs: HOUR_MS }));
    expect(asked.length).toBeGreaterThan(55);
    expect(asked.length).toBeLessThanOrEqual(60);
    expect(asked.every(({ newReadings }) => newReadings >= 5)).toBe(true);
  });

  test('when all schedules are slowed down, a device with a full page goes before older readings of others', () => {
    const slow = Array.from({ length: 200 }, (_, index) => evenDevice(`s${index}`, { intervalMs: MINUTE_MS }));
    const world = createWorld([evenDevice('fast', { intervalMs: 10 * SECOND_MS }), ...slow]);
    for (const { deviceId } of slow) world.storeUpTo(deviceId, 0);
    world.storeUpTo('fast', 0);
    // A request every 20 s: one round over all takes 67 minutes, a page of the fast one 33.
    const made = world.run({ fromMs: 0, untilMs: 8 * HOUR_MS, everyMs: 20 * SECOND_MS });
    const fast = newestOf(made).filter(({ deviceId }) => deviceId === 'fast');
    const gaps = fast.slice(1).map(({ atMs }, index) => (atMs - (fast[index]?.atMs ?? 0)) / MINUTE_MS);
    expect(Math.min(...gaps)).toBeGreaterThan(31);
    expect(Math.max(...gaps)).toBeLessThan(33.5);
    expect(
      fast.every(({ newReadings }) => newReadings <= 200),
      'and before it runs over',
    ).toBe(true);
    const counts = slow.map(({ deviceId }) => countOf(made, deviceId));
    expect(Math.max(...counts) - Math.min(...counts), 'the others take turns').toBeLessThanOrEqual(2);
  });
});

describe('a hint', () => {
  test('that proves wrong is counted and dropped for that device, and its report rate is used', () => {
    const lying = evenDevice('lies', { intervalMs: 5 * MINUTE_MS, seenAt: () => -DAY_MS });
    const world = createWorld([lying, evenDevice('silent', SILENT)]);
    world.storeUpTo('silent', 0);
    noteDeviceStored(world.planner.devices, 'lies', { newestMs: 0, polledMs: 0, rate: UNKNOWN_RATE });
    const before = world.run({ fromMs: 0, untilMs: 5 * HOUR_MS });
    expect(countOf(before, 'lies'), 'the list says that it is silent').toBe(0);
    const after = world.run({ fromMs: 5 * HOUR_MS, untilMs: DAY_MS });
    expect(figuresOf(world.planner).droppedHints).toBe(1);
    expect(countOf(after, 'lies'), 'every five minutes from its idle poll on').toBeGreaterThan(17 * 12);
    expect(countOf(after, 'silent'), 'the hint of the other one stands').toBe(0);
  });

  test('that never followed a sign of life does not outweigh a device that answered with readings last time', () => {
    const world = createWorld([
      evenDevice('lies', { intervalMs: 10 * SECOND_MS, seenAt: () => -DAY_MS }),
      evenDevice('silent', SILENT),
    ]);
    for (const deviceId of ['lies', 'silent']) world.storeUpTo(deviceId, 0);
    // The list is read before either is due: it shows nothing new for both.
    const made = world.run({ fromMs: 5 * MINUTE_MS, untilMs: HOUR_MS });
    expect(countOf(made, 'lies')).toBeGreaterThan(50);
    expect(countOf(made, 'silent')).toBe(0);
    expect(figuresOf(world.planner).droppedHints).toBe(1);
  });

  test('of life without readings is trusted three times', () => {
    const beats = evenDevice('beats', { ...SILENT, seenAt: (atMs) => atMs });
    const world = createWorld([beats]);
    world.storeUpTo('beats', 0);
    const made = world.run({ fromMs: 0, untilMs: DAY_MS });
    expect(figuresOf(world.planner).droppedHints).toBe(1);
    // Then at doubling distances up to the idle poll.
    expect(countOf(made, 'beats')).toBeLessThan(14);
  });

  test('of life without readings is not trusted where empty answers were confirmed for good', () => {
    const beats = evenDevice('beats', { ...SILENT, seenAt: (atMs) => atMs });
    const world = createWorld([beats]);
    const day = { fromMs: MINUTE_MS, untilMs: DAY_MS };
    world.storeUpTo('beats', 0);
    noteDeviceStored(world.planner.devices, 'beats', { newestMs: 0, polledMs: 0, rate: UNKNOWN_RATE, isSilent: true });
    const made = world.run(day);
    expect(countOf(made, 'beats')).toBe(0);
    const polls = made.filter(({ decision }) => decision.kind === 'poll');
    expect(polls.length, 'by the idle poll of six hours alone').toBe(3);
  });

  test('is not needed: without last_seen_at the report rate alone decides', () => {
    const world = createWorld([
      evenDevice('talks', { intervalMs: 5 * MINUTE_MS, seenAt: () => null }),
      evenDevice('silent', { ...SILENT, seenAt: () => null }),
    ]);
    for (const deviceId of ['talks', 'silent']) world.storeUpTo(deviceId, 0);
    const made = world.run({ fromMs: 0, untilMs: DAY_MS });
    expect(countOf(made, 'talks')).toBeGreaterThan(280);
    expect(countOf(made, 'silent')).toBeLessThan(14);
    expect(figuresOf(world.planner).droppedHints, 'a list that says nothing says nothing wrong').toBe(0);
  });

  test('of a quiet device makes it polled with the next listing', () => {
    const speaks = evenDevice('speaks', { intervalMs: 10 * HOUR_MS });
    const world = createWorld([speaks]);
    // It counts as one of every minute that has fallen silent.
    world.storeUpTo('speaks', 0);
    noteDeviceStored(world.planner.devices, 'speaks', {
      newestMs: 0,
      polledMs: 0,
      rate: { intervalMs: MINUTE_MS, deviationMs: 0 },
    });
    const asked = newestOf(world.run({ fromMs: 0, untilMs: 11 * HOUR_MS })).filter(
      ({ newReadings }) => newReadings > 0,
    );
    expect(asked).toHaveLength(1);
    expect(asked[0]?.atMs ?? 0).toBeLessThan(10 * HOUR_MS + 5 * MINUTE_MS);
  });
});

test('a device with more than a page stops where the page is full, unless the device has rested there', () => {
  const rested = (atMs: number): number => (atMs < HOUR_MS ? Math.floor(atMs / MINUTE_MS) : 60);
  const even = evenDevice('a', { intervalMs: MINUTE_MS });
  // A reading a minute in the first hour, none for six hours, then one a minute again.
  const device = {
    ...even,
    newestAt: (atMs: number) => rested(atMs) + Math.max(0, Math.floor((atMs - 7 * HOUR_MS) / MINUTE_MS)),
    timeOf: (reading: number) => (reading <= 60 ? reading : reading + 360) * MINUTE_MS,
  };
  const world = createWorld([{ ...device, seenAt: (atMs) => device.timeOf(device.newestAt(atMs)) }]);
  world.storeUpTo('a', HOUR_MS);
  const made = newestOf(world.run({ fromMs: 8 * HOUR_MS, untilMs: 8 * HOUR_MS + 10 * MINUTE_MS }));
  expect(made[0]?.newReadings, 'one page and something later nothing is found there').toBe(0);
  expect(made[1]?.newReadings, 'and then all').toBeGreaterThanOrEqual(60);
  expect(made.slice(1).every(({ newReadings }) => newReadings > 0)).toBe(true);
  expect(figuresOf(world.planner).droppedHints).toBe(0);
});

describe('when the quota does not even carry the readings', () => {
  const fleet = Array.from({ length: 40 }, (_, index) => evenDevice(`d${index}`, { intervalMs: 10 * SECOND_MS }));
  /** 40 devices make 1,728 pages a day; so many requests carry a third of them. */
  const crowded = () => {
    const world = createWorld(fleet);
    for (const { deviceId } of fleet) world.storeUpTo(deviceId, 0);
    setDay(world.planner, dayOf(600), 0);
    return world;
  };

  test('every device gets its newest page, in turn, and pages are full', () => {
    const world = crowded();
    world.run({ fromMs: 0, untilMs: 6 * HOUR_MS });
    expect(plannerDaySupply(world.planner, 6 * HOUR_MS).backfillReserve).toBe(NARROW_RESERVES.backfill);
    const asked = newestOf(world.run({ fromMs: 6 * HOUR_MS, untilMs: 2 * DAY_MS }));
    const counts = fleet.map(({ deviceId }) => asked.filter((each) => each.deviceId === deviceId).length);
    expect(Math.min(...counts)).toBeGreaterThan(20);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    const full = asked.filter(({ newReadings }) => newReadings === 200);
    expect(full.length / asked.length).toBeGreaterThan(0.98);
    expect(asked.every(({ decision }) => decision.kind === 'poll' && decision.newestOnly)).toBe(true);
  });

  test('fast and slow ones take the same turns', () => {
    const mixed = Array.from({ length: 40 }, (_, index) =>
      evenDevice(`m${index}`, { intervalMs: (index % 2 === 0 ? 10 : 60) * SECOND_MS }),
    );
    const world = createWorld(mixed);
    for (const { deviceId } of mixed) world.storeUpTo(deviceId, 0);
    // A turn of six hours, where pages of the fast ones fill in half an hour and those of the slow ones in three.
    setDay(world.planner, dayOf(160), 0);
    world.run({ fromMs: 0, untilMs: DAY_MS });
    const asked = newestOf(world.run({ fromMs: DAY_MS, untilMs: 5 * DAY_MS }));
    const counts = mixed.map(({ deviceId }) => asked.filter((each) => each.deviceId === deviceId).length);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  });

  test('readings below a page are not scanned', () => {
    const world = crowded();
    const nowMs = 6 * HOUR_MS;
    const last = newestOf(world.run({ fromMs: 0, untilMs: nowMs })).at(-1);
    if (last?.decision.kind !== 'poll') throw new Error('nothing was asked');
    const { decision } = last;
    noteBegan(world.planner, decision, nowMs);
    const liveGap = { fromMs: nowMs - 2 * HOUR_MS, toMs: nowMs - HOUR_MS };
    notePollCommitted(world.planner, decision, { newReadings: 200, instantsMs: [nowMs], liveGap }, nowMs);
    const after = world.run({ fromMs: nowMs, untilMs: nowMs + HOUR_MS });
    expect(countOf(after, decision.deviceId)).toBe(0);
  });

  test('a larger plan ends this', () => {
    const world = crowded();
    world.run({ fromMs: 0, untilMs: DAY_MS });
    setDay(world.planner, dayOf(40_000), DAY_MS);
    expect(plannerDaySupply(world.planner, DAY_MS).backfillReserve).toBe(USUAL_RESERVES.backfill);
    const asked = newestOf(world.run({ fromMs: DAY_MS, untilMs: 1.5 * DAY_MS }));
    expect(asked.some(({ decision }) => decision.kind === 'poll' && decision.newestOnly)).toBe(false);
  });

  test('the wait for the budget of the day is reported', () => {
    const world = crowded();
    let rest = takeDecision(world.planner, 0);
    for (let count = 0; rest.kind !== 'rest' && count < 100; count += 1) {
      noteRequestBooked(world.planner, { lane: 'live', stream: 'telemetry' }, 0);
      rest = takeDecision(world.planner, 0);
    }
    expect(rest).toMatchObject({ kind: 'rest', reason: 'day' });
    expect(rest.kind === 'rest' ? rest.untilMs : 0).toBeGreaterThan(0);
  });
});
