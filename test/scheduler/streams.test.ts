/** When the account, the alerts and the device list are read, and the mean interval of a schedule. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  changesPerMs,
  createChangeRate,
  dueMs,
  isFailing,
  learnChanges,
  listEveryMs,
  listPages,
  meanPeriodMs,
  periodsBehind,
  phaseOf,
  streamEvents,
  UNREAD_STREAM,
} from '../../src/scheduler/streams.ts';
import { cron } from '../support/defaults.ts';

const NOW = Date.UTC(2026, 5, 15, 12);

const USUAL = {
  devices: 1000,
  pageSize: 200,
  lagMs: 10 * MINUTE_MS,
  changesPerMs: 100 / DAY_MS,
  leastMs: MINUTE_MS,
};

describe('how often the list is read', () => {
  test('needs a page for every 200 devices, at least one', () => {
    expect([0, 1, 200, 201, 10_000].map((devices) => listPages(devices, 200))).toEqual([1, 1, 1, 2, 50]);
    expect(listPages(101, 50)).toBe(3);
  });

  test('follows the schedule while nothing is slowed down, and is at least daily', () => {
    expect(listEveryMs({ ...USUAL, lagMs: 0 })).toBe(MINUTE_MS);
    expect(listEveryMs({ ...USUAL, lagMs: 10 * DAY_MS })).toBe(DAY_MS);
  });

  test('is the interval at which the cost of listings and of lateness is lowest', () => {
    /** The cost of a listing, and of readings that are found late because of it, in ms of lag for each ms. */
    const cost = (everyMs: number, { devices, pageSize, lagMs, changesPerMs }: typeof USUAL): number =>
      (listPages(devices, pageSize) * lagMs ** 2) / 2 / everyMs + (changesPerMs * everyMs ** 2) / 6;
    const input = fc.record({
      devices: fc.integer({ min: 1, max: 20_000 }),
      lagMs: fc.integer({ min: 2 * MINUTE_MS, max: 3 * HOUR_MS }),
      surprises: fc.integer({ min: 1, max: 5000 }),
    });
    fc.assert(
      fc.property(input, ({ devices, lagMs, surprises }) => {
        const about = { ...USUAL, devices, lagMs, changesPerMs: surprises / DAY_MS };
        const everyMs = listEveryMs(about);
        if (everyMs === MINUTE_MS || everyMs === DAY_MS) return;
        for (const other of [0.8, 1.25]) expect(cost(everyMs, about)).toBeLessThan(cost(everyMs * other, about));
      }),
    );
  });

  test('many unexpected changes make the list more frequent, none make it rarer but not absent', () => {
    const surprises = createChangeRate();
    const prior = changesPerMs(surprises, 1000);
    learnChanges(surprises, 0, 1000);
    for (let hour = 1; hour <= 24; hour += 1) {
      for (let count = 0; count < 50; count += 1) surprises.count += 1;
      learnChanges(surprises, hour * HOUR_MS, 1000);
    }
    expect(changesPerMs(surprises, 1000) * HOUR_MS).toBeGreaterThan(20);
    for (let hour = 25; hour <= 80; hour += 1) learnChanges(surprises, hour * HOUR_MS, 1000);
    expect(changesPerMs(surprises, 1000)).toBeLessThan(prior);
    expect(changesPerMs(surprises, 1000)).toBeGreaterThan(0);
  });
});

describe('when a stream is due', () => {
  const read = streamEvents.done(10 * MINUTE_MS);

  test('at once where it was never read, then by its schedule, and not while it is read', () => {
    expect(dueMs(UNREAD_STREAM, MINUTE_MS)).toBe(Number.NEGATIVE_INFINITY);
    expect(dueMs(read, 2 * MINUTE_MS)).toBe(12 * MINUTE_MS);
    expect(dueMs(streamEvents.began(read), 2 * MINUTE_MS)).toBe(Number.POSITIVE_INFINITY);
    expect(dueMs(streamEvents.requested(read), 2 * MINUTE_MS)).toBe(Number.NEGATIVE_INFINITY);
    expect(dueMs(streamEvents.off(streamEvents.requested(read), DAY_MS), MINUTE_MS)).toBe(DAY_MS);
  });

  test('after failures of its own at doubling times, up to two minutes; after one of the service as before', () => {
    const began = streamEvents.began(UNREAD_STREAM);
    expect(dueMs(streamEvents.failed(began, false, DAY_MS), MINUTE_MS)).toBe(Number.NEGATIVE_INFINITY);
    let stream = began;
    const rests = Array.from({ length: 7 }, () => {
      stream = streamEvents.failed(stream, true, DAY_MS);
      return (dueMs(stream, MINUTE_MS) - DAY_MS) / SECOND_MS;
    });
    expect(rests).toEqual([5, 10, 20, 40, 80, 120, 120]);
    // Or less, for callers with less time.
    expect(dueMs(streamEvents.failed(stream, true, DAY_MS, MINUTE_MS), MINUTE_MS)).toBe(DAY_MS + MINUTE_MS);
    expect(streamEvents.done(DAY_MS).failures).toBe(0);
  });

  test('its lag is reported in periods, at least one, and nothing before it is due', () => {
    expect(periodsBehind(read, 2 * MINUTE_MS, 11 * MINUTE_MS)).toBe(0);
    expect(periodsBehind(read, 2 * MINUTE_MS, 16 * MINUTE_MS)).toBe(3);
    expect(periodsBehind(streamEvents.requested(read), 2 * MINUTE_MS, 11 * MINUTE_MS)).toBe(1);
  });

  test('its lag counts from its last try while it fails, in periods of five requests', () => {
    for (const isOwn of [true, false]) {
      const failing = streamEvents.failed(streamEvents.began(read), isOwn, HOUR_MS);
      expect([isFailing(read), isFailing(failing), isFailing(streamEvents.done(DAY_MS))]).toEqual([false, true, false]);
      expect(periodsBehind(failing, 2 * MINUTE_MS, HOUR_MS + 30 * MINUTE_MS)).toBe(3);
      expect(periodsBehind(failing, 2 * MINUTE_MS, HOUR_MS + 5 * MINUTE_MS)).toBe(1);
    }
  });
});

test('the phase of a workspace is always the same, and spread over a minute', () => {
  const phases = Array.from({ length: 200 }, (_, index) => phaseOf(`workspace-${index}`));
  expect(phaseOf('workspace-7')).toBe(phases[7]);
  expect(phases.every((ms) => ms >= 0 && ms < MINUTE_MS)).toBe(true);
  expect(new Set(phases.map((ms) => Math.floor(ms / (10 * SECOND_MS)))).size).toBe(6);
});

describe('the mean interval of a schedule', () => {
  test.each([
    ['* * * * *', MINUTE_MS],
    ['*/5 * * * *', 5 * MINUTE_MS],
    ['*/10 * * * * *', 10_000],
    ['15,57 * * * * *', 30_000],
    ['0 * * * *', HOUR_MS],
    ['0 0,12 * * *', 12 * HOUR_MS],
    ['*/30 9-16 * * *', 90 * MINUTE_MS],
    ['0 6 * * MON', 7 * DAY_MS],
    ['*/15 9-16 * * 1-5', (7 * DAY_MS) / (5 * 8 * 4)],
    ['*/10 * 9-16 * * *', 30_000],
  ])('%s: %d ms', (text, ms) => {
    expect(meanPeriodMs(cron(text), NOW)).toBeCloseTo(ms, 3);
  });

  test('months and leap years are near enough', () => {
    expect(meanPeriodMs(cron('0 0 1 * *'), NOW) / DAY_MS).toBeCloseTo(30.4, 0);
    expect(meanPeriodMs(cron('0 0 29 2 *'), NOW) / DAY_MS).toBe(4 * 365 + 1);
    expect(meanPeriodMs({ text: 'never', next: () => null }, NOW)).toBe(Number.POSITIVE_INFINITY);
    expect(meanPeriodMs({ text: 'once', next: (ms) => (ms < NOW ? NOW : null) }, NOW)).toBe(Number.POSITIVE_INFINITY);
  });

  test('a schedule that is due every second of the year is counted', () => {
    expect(meanPeriodMs(cron('* * * * * *'), NOW)).toBeCloseTo(1000, 6);
  });
});
