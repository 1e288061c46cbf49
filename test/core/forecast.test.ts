import { describe, expect, test } from 'vitest';
import { ASSUMED_INTERVAL_MS, type ForecastInput, forecastOf, withChanges } from '../../src/core/forecast.ts';
import { ageText, shortfallOf, shortfallText } from '../../src/core/shortfall.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';

const USUAL: ForecastInput = {
  devices: [
    { isReporting: true, intervalMs: MINUTE_MS },
    { isReporting: true, intervalMs: MINUTE_MS },
    { isReporting: true, intervalMs: 10 * MINUTE_MS },
    { isReporting: true, intervalMs: null },
    { isReporting: false, intervalMs: null },
  ],
  freshnessMs: MINUTE_MS,
  devicesMs: 5 * MINUTE_MS,
  alertsMs: 2 * MINUTE_MS,
  accountMs: HOUR_MS,
  sweepMs: 6 * HOUR_MS,
  pageSize: 200,
  perMinute: 60,
  perDay: 20_000,
  share: 0.8,
  othersPerDay: 0,
  backfillMs: null,
  windowMs: null,
};

const CROWDED: ForecastInput = {
  ...USUAL,
  devices: Array.from({ length: 1000 }, () => ({ isReporting: true, intervalMs: 10 * SECOND_MS })),
  perDay: 5000,
};

describe('what a sync would cost', () => {
  test('tells devices, rates, requests, allowance and freshness', () => {
    const forecast = forecastOf(USUAL);
    expect(forecast.devices).toEqual({ all: 5, reporting: 4, measured: 3 });
    expect(forecast.assumedIntervalMs, 'the middle one of the measured').toBe(MINUTE_MS);
    expect(forecast.requestsPerDay.live).toBe(3 * 1440 + 144);
    const { all, ...lanes } = forecast.requestsPerDay;
    expect(all).toBe(Object.values(lanes).reduce((sum, requests) => sum + requests, 0));
    expect(forecast.ofDay).toBeCloseTo(all / 20_000);
    expect(forecast.ofMinute).toBeCloseTo(all / 86_400);
    expect(forecast.freshness).toEqual({ medianMs: MINUTE_MS, p95Ms: MINUTE_MS });
    expect(forecast.shortfall).toBeNull();
    expect(forecast.backfill).toBeNull();
  });

  test('assumes a rate where none was measured, and needs no device', () => {
    const none = forecastOf({ ...USUAL, devices: [] });
    expect(none.assumedIntervalMs).toBe(ASSUMED_INTERVAL_MS);
    expect(none.requestsPerDay.live).toBe(0);
    expect(none.freshness).toEqual({ medianMs: 0, p95Ms: 0 });
    const blind = forecastOf({ ...USUAL, perMinute: null, perDay: null });
    expect([blind.ofMinute, blind.ofDay, blind.shortfall]).toEqual([null, null, null]);
  });

  test('tells the time to finish a backfill: what is left of the day, and the windows that a plan allows', () => {
    const month = { ...USUAL, backfillMs: 30 * DAY_MS };
    const backfill = forecastOf(month).backfill;
    // Three of a minute take 221 pages each, one of ten minutes 23, the quiet one a look.
    expect(backfill?.requests).toBe(3 * 221 + 23 + 1);
    const left = 16_000 - forecastOf(USUAL).requestsPerDay.all;
    expect(backfill?.finishedInMs).toBeCloseTo(((backfill?.requests ?? 0) / left) * DAY_MS);
    const windowed = forecastOf({ ...month, windowMs: 7 * DAY_MS }).backfill;
    expect(windowed?.requests, 'four windows more of each, and the quiet one a look at each').toBe(
      3 * 221 + 23 + 4 * 4 + 5,
    );
  });

  test('what if: another share, schedule, number of devices or plan', () => {
    expect(withChanges(USUAL, { share: 0.5, perDay: 9 })).toMatchObject({ share: 0.5, perDay: 9, perMinute: 60 });
    const tenfold = withChanges(USUAL, { devices: 50 });
    expect(forecastOf(tenfold).devices).toEqual({ all: 50, reporting: 40, measured: 30 });
    expect(forecastOf(withChanges(USUAL, { devices: 3 })).devices.all).toBe(3);
    expect(forecastOf(withChanges({ ...USUAL, devices: [] }, { devices: 3 })).devices.reporting).toBe(3);
    expect(forecastOf(withChanges(USUAL, { freshnessMs: HOUR_MS })).requestsPerDay.live).toBeLessThan(200);
    expect(forecastOf(tenfold).requestsPerDay.live).toBeGreaterThan(forecastOf(USUAL).requestsPerDay.live);
  });
});

describe('where it does not fit', () => {
  const stretched = withChanges(USUAL, { devices: 100, perDay: 5000 });

  test('one line says what is asked, what is carried, what results and what would change it', () => {
    const { shortfall } = forecastOf(stretched);
    if (shortfall === null) throw new Error('it fits');
    expect(shortfall).toMatchObject({ of: 'schedules', carried: 4000, boundBy: 'day' });
    const text = shortfallText(shortfall);
    expect(text).toContain('allowance carries 4,000 (80 % of the plan');
    expect(text).toMatch(/readings are about \d+ min old when they are fetched, where 60 s is asked for/);
    expect(text).toMatch(/a sync.telemetry of every \d+ min/);
    expect(text).toMatch(/a plan of [\d,]+ requests a day and \d+ a minute/);
    expect(text).not.toContain('\n');
  });

  test('each remedy alone makes it fit', () => {
    for (const input of [stretched, withChanges(USUAL, { devices: 20, perDay: 22_000 })]) {
      const { shortfall } = forecastOf(input);
      if (shortfall === null) throw new Error('it fits');
      const { telemetryMs, share, perDay, perMinute } = shortfall.remedies;
      if (telemetryMs !== null) expect(forecastOf({ ...input, freshnessMs: telemetryMs }).shortfall).toBeNull();
      if (share !== null) expect(forecastOf({ ...input, share }).shortfall).toBeNull();
      expect(forecastOf({ ...input, perDay, perMinute }).shortfall).toBeNull();
    }
  });

  test('a share is named only where it is enough', () => {
    const little = forecastOf(withChanges(USUAL, { devices: 20, perDay: 22_000 })).shortfall;
    expect(little?.remedies.share).toBeGreaterThan(0.8);
    expect(little?.remedies.share).toBeLessThanOrEqual(1);
    expect(forecastOf(stretched).shortfall?.remedies.share, 'not even the whole of it').toBeNull();
  });

  test('where not even the readings fit, it says how many are made and carried', () => {
    const { shortfall } = forecastOf(CROWDED);
    if (shortfall === null) throw new Error('it fits');
    expect(shortfall.of).toBe('readings');
    const text = shortfallText(shortfall);
    expect(text).toMatch(/not even the readings fit: 8,640,000 are made a day, 7\d\d,\d{3} are carried/);
    expect(text).toContain('the rest are named gaps');
    expect(text).toContain('sync.exclude');
    const larger = { ...CROWDED, perDay: shortfall.remedies.perDay, perMinute: shortfall.remedies.perMinute };
    expect(forecastOf(larger).shortfall?.of ?? 'schedules', 'that plan carries all readings').toBe('schedules');
  });

  test('nothing is said where all fits', () => {
    expect(shortfallOf({ ...USUAL, intervalsMs: [], quietDevices: 0 })).toBeNull();
  });

  test('ages read as people say them', () => {
    expect([90_000, 12 * MINUTE_MS, 3.5 * HOUR_MS, 50 * HOUR_MS].map(ageText)).toEqual([
      '90 s',
      '12 min',
      '3.5 h',
      '2.1 days',
    ]);
  });
});
