/** The requests that schedules and readings need, compared with the quota, and the remedies for a shortage. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readCron } from '../../src/config/cron.ts';
import { duration } from '../../src/core/text.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  computeDemand,
  type DemandInput,
  findShortfall,
  shortfallText,
  totalRequests,
  usableBudget,
  withIntervals,
} from '../../src/scheduler/demand.ts';
import { FULL_PAGE } from '../../src/scheduler/reserves.ts';
import { meanPeriodMs } from '../../src/scheduler/streams.ts';
import { POLLS } from '../support/defaults.ts';

const USUAL: DemandInput = {
  intervalsMs: Array.from({ length: 40 }, () => 5 * MINUTE_MS),
  quietDevices: 10,
  telemetryMs: MINUTE_MS,
  devicesMs: 5 * MINUTE_MS,
  alertsMs: 2 * MINUTE_MS,
  alertRequests: 1,
  accountMs: HOUR_MS,
  polls: POLLS,
  pageSize: 200,
  perMinute: 600,
  perDay: 200_000,
  share: 0.8,
  othersPerDay: 0,
};

const FLEETS = fc.record({
  intervalsMs: fc.array(fc.integer({ min: 10 * SECOND_MS, max: HOUR_MS }), { minLength: 1, maxLength: 300 }),
  quietDevices: fc.nat(100),
  perDay: fc.integer({ min: 1000, max: 300_000 }),
  perMinute: fc.integer({ min: 10, max: 1000 }),
});

describe('the requests that the schedules need', () => {
  test('counts each lane', () => {
    const { needed, fits, slowdown, planned, readingsMade } = computeDemand(USUAL);
    expect(needed).toEqual({ live: 40 * 288, alerts: 720, inventory: 288, account: 24, idlePolls: 40 });
    expect({ fits, slowdown, planned }).toEqual({ fits: true, slowdown: 1, planned: needed });
    expect(readingsMade).toBe(40 * 288);
    const fast = computeDemand({ ...USUAL, intervalsMs: [10 * SECOND_MS], quietDevices: 0 });
    expect(fast.needed.live, 'a device of ten seconds once a minute').toBe(1440);
    const rare = computeDemand({ ...USUAL, intervalsMs: [10 * SECOND_MS], quietDevices: 400, telemetryMs: DAY_MS });
    expect(rare.needed.live, 'or when its page is full').toBeCloseTo(8640 / (200 * FULL_PAGE));
    expect(computeDemand({ ...USUAL, alertRequests: 5 }).needed.alerts, 'a poll of five pages').toBe(5 * 720);
    expect(rare.needed.inventory, 'a list of 401 has three pages').toBe(3 * 288);
  });

  test('is compared with the lower of both limits, less the use by others', () => {
    expect(usableBudget(USUAL)).toEqual({ budget: 160_000, boundBy: 'day' });
    expect(usableBudget({ ...USUAL, perMinute: 60 })).toEqual({ budget: 48 * 1440, boundBy: 'minute' });
    expect(usableBudget({ ...USUAL, othersPerDay: 60_000 })).toEqual({ budget: 140_000, boundBy: 'day' });
    expect(usableBudget({ ...USUAL, perMinute: null, perDay: null })).toEqual({ budget: Infinity, boundBy: null });
    expect(usableBudget({ ...USUAL, perDay: 1 }).budget, 'one at least').toBe(1);
    expect(computeDemand({ ...USUAL, perMinute: null, perDay: null }).fits, 'no known limit holds everything').toBe(
      true,
    );
  });
});

describe('where the demand of the schedules exceeds the budget', () => {
  test('all are slowed down evenly until they fit the budget, and no further', () => {
    fc.assert(
      fc.property(FLEETS, (fleet) => {
        const demand = computeDemand({ ...USUAL, ...fleet });
        const spent = totalRequests(demand.planned);
        expect(demand.slowdown).toBeGreaterThanOrEqual(1);
        if (!demand.readingsFit) return;
        expect(spent).toBeLessThanOrEqual(demand.budget * 1.001);
        if (demand.slowdown === 1) return;
        expect(spent, 'a stretched plan uses more than half of its budget').toBeGreaterThan(demand.budget * 0.5);
        const least = Math.min(demand.needed.alerts, 0.01 * demand.budget);
        expect(demand.planned.alerts).toBeCloseTo(Math.max(demand.needed.alerts / demand.slowdown, least), 3);
        expect(demand.lag.medianMs).toBeLessThanOrEqual(demand.lag.p95Ms);
      }),
    );
  });

  test('a larger plan or share never makes it older, more devices never fresher', () => {
    fc.assert(
      fc.property(FLEETS, (fleet) => {
        const input = { ...USUAL, ...fleet };
        const here = computeDemand(input);
        const larger = computeDemand({ ...input, perDay: fleet.perDay * 2, perMinute: fleet.perMinute * 2 });
        expect(larger.lag.medianMs).toBeLessThanOrEqual(here.lag.medianMs * 1.01);
        expect(larger.readingsCovered).toBeGreaterThanOrEqual(here.readingsCovered);
        const more = computeDemand({ ...input, intervalsMs: [...fleet.intervalsMs, ...fleet.intervalsMs] });
        expect(more.lag.medianMs).toBeGreaterThanOrEqual(here.lag.medianMs * 0.99);
      }),
    );
  });

  test('history has its reserve', () => {
    const tight = computeDemand({ ...USUAL, perDay: 5000 });
    expect(tight.fits).toBe(false);
    expect(tight.leftForHistory).toBeCloseTo(0.15 * 4000);
    expect(computeDemand(USUAL).leftForHistory).toBeCloseTo(160_000 - totalRequests(computeDemand(USUAL).needed));
  });
});

describe('where the readings alone exceed the budget', () => {
  const crowded = { ...USUAL, intervalsMs: Array.from({ length: 1000 }, () => 10 * SECOND_MS), perDay: 5000 };

  test('reports how many readings are made and read, and how long a turn is', () => {
    const demand = computeDemand(crowded);
    expect(demand.readingsFit).toBe(false);
    expect(demand.readingsMade).toBe(8_640_000);
    expect(demand.readingsCovered / (4000 * 200)).toBeGreaterThan(0.97);
    expect(demand.readingsCovered / (4000 * 200)).toBeLessThan(1);
    expect(demand.lag.medianMs / HOUR_MS, '1,000 devices by 4,000 requests a day').toBeCloseTo(6, 0);
    expect(totalRequests(demand.planned)).toBeCloseTo(4000);
  });

  test('the readings that are read stay within the budget, in a fleet of any size', () => {
    fc.assert(
      fc.property(FLEETS, fc.integer({ min: 1, max: 50 }), (fleet, perDay) => {
        const demand = computeDemand({ ...USUAL, ...fleet, perDay });
        expect(demand.readingsCovered).toBeLessThanOrEqual(demand.readingsMade);
        expect(demand.readingsCovered).toBeLessThanOrEqual(demand.budget * 200);
      }),
    );
  });
});

describe('the remedies of a shortage', () => {
  /** The interval of the value that the text gives for a key, as the configuration reads and the plan measures it. */
  function intervalIn(text: string, key: string): number | undefined {
    const [, cron, minutes, every] = new RegExp(`${key}: (?:'([^']+)'|(\\d+)m) \\(every ([^)]+)\\)`).exec(text) ?? [];
    const schedule = cron === undefined ? null : readCron(cron);
    if (schedule !== null && 'mistake' in schedule) return undefined;
    const ms = schedule === null ? Number(minutes) * MINUTE_MS : meanPeriodMs(schedule, 0);
    expect(every).toBe(duration(ms / SECOND_MS));
    return ms;
  }

  /** The changes, each followed: the text names it, and the budget then carries the schedules. */
  function followed(input: DemandInput): string[] {
    const shortfall = findShortfall(input);
    if (shortfall === null) return [];
    const text = shortfallText(shortfall);
    for (const change of shortfall.remedies.intervals) {
      expect(computeDemand(withIntervals(input, change)).fits).toBe(true);
      for (const { key, ms } of change) expect(intervalIn(text, key)).toBe(ms);
    }
    return shortfall.remedies.intervals.map((change) => change.map(({ key }) => key).join(' and '));
  }

  test('are a longer sync.telemetry where that alone is enough, and no shorter one of even distances is', () => {
    const input = { ...USUAL, perDay: 10_000 };
    expect(followed(input)).toEqual(['sync.telemetry']);
    const [[change] = []] = findShortfall(input)?.remedies.intervals ?? [];
    expect(change?.ms).toBe(10 * MINUTE_MS);
    const shorter = { ...input, telemetryMs: 6 * MINUTE_MS };
    expect(computeDemand(shorter).fits).toBe(false);
  });

  test.each([
    [10_000, "sync.telemetry: '*/10 * * * *' (every 10 min)"],
    [2300, "sync.telemetry: '0 */2 * * *' (every 2 h)"],
    [1500, "sync.telemetry: '0 */8 * * *' (every 8 h)"],
    [1400, "sync.telemetry: '0 * * * *' (every 60 min) together with sync.alerts: '0 */2 * * *' (every 2 h)"],
  ])('name a value that the configuration accepts: of %d requests a day', (perDay, setting) => {
    const shortfall = findShortfall({ ...USUAL, perDay });
    expect(shortfall === null ? '' : shortfallText(shortfall)).toContain(setting);
  });

  test('are the keys of other schedules where those need too much', () => {
    expect(followed({ ...USUAL, intervalsMs: [HOUR_MS], alertsMs: MINUTE_MS, perDay: 1500 })).toEqual(['sync.alerts']);
    const listed = { ...USUAL, quietDevices: 3000, polls: { ...POLLS, idlePollMs: HOUR_MS }, perDay: 50_000 };
    expect(followed(listed)).toEqual(['sync.idle_poll']);
  });

  test('are several keys together where none alone is enough', () => {
    const input = { ...USUAL, intervalsMs: Array.from({ length: 3 }, () => MINUTE_MS), alertsMs: MINUTE_MS };
    expect(followed({ ...input, quietDevices: 0, perDay: 900 })).toEqual([
      'sync.telemetry and sync.alerts and sync.devices',
    ]);
  });

  test('carry the schedules of any fleet', () => {
    fc.assert(fc.property(FLEETS, (fleet) => void followed({ ...USUAL, ...fleet })));
  });
});
