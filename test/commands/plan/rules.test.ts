/**
 * The rules that `--plan` is computed by: periods of schedules, rates of devices, the cost of a stretch, suppositions.
 */
import { describe, expect, test } from 'vitest';
import { createQuota } from '../../../src/api/quota.ts';
import { ASSUMED_PER_MINUTE } from '../../../src/commands/plan/cost.ts';
import { type DeviceFacts, fleetRates, measuredIntervalMs, readWhatIf, resizeFleet } from '../../../src/core/fleet.ts';
import { DAY_MS, DAY_NS, HOUR_MS, HOUR_NS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { windowSpanNs } from '../../../src/ingest/page-request.ts';
import {
  type BackfillInput,
  backfillNeed,
  finishMs,
  meanPeriodMs,
  scaleNeed,
} from '../../../src/scheduler/estimate.ts';
import { cron } from '../../support/rig.ts';

const NOW = Date.UTC(2026, 5, 15, 12);
const TODAY = Math.floor(NOW / DAY_MS);
const NOW_NS = msToNs(NOW);

describe('the mean distance of the turns of a schedule', () => {
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

  test('a turn every second of the year is counted', () => {
    expect(meanPeriodMs(cron('* * * * * *'), NOW)).toBeCloseTo(1000, 6);
  });
});

/** A stretch, in days from the beginning of today. */
function held(fromDay: number, toDay: number) {
  const at = (day: number): bigint => BigInt(TODAY) * DAY_NS + (BigInt(Math.round(day * 24)) * DAY_NS) / 24n;
  return { from: at(fromDay), to: at(toDay) };
}

describe('the rate of a device', () => {
  test('is what the newest held day or so says', () => {
    const days = [{ day: TODAY - 1, readings: 1440 }];
    expect(measuredIntervalMs({ held: [held(-1, 0)], days }, NOW)).toBe(MINUTE_MS);
    // Half of today held, and yesterday: both count. What is older does not.
    const more = [
      { day: TODAY, readings: 360 },
      { day: TODAY - 1, readings: 720 },
      { day: TODAY - 2, readings: 9 },
    ];
    expect(measuredIntervalMs({ held: [held(-2, 0.5)], days: more }, NOW)).toBe(2 * MINUTE_MS);
  });

  test('a part of a day that is held is enough, an hour the least', () => {
    const days = [{ day: TODAY, readings: 60 }];
    expect(measuredIntervalMs({ held: [held(0.25, 0.5)], days }, NOW)).toBe(6 * MINUTE_MS);
    const short = [{ from: NOW_NS - HOUR_NS / 2n, to: NOW_NS }];
    expect(measuredIntervalMs({ held: short, days }, NOW)).toBeNull();
    expect(measuredIntervalMs({ held: [], days }, NOW)).toBeNull();
    const old = [{ day: TODAY - 30, readings: 9 }];
    expect(measuredIntervalMs({ held: [held(-40, -20)], days: old }, NOW)).toBeNull();
  });

  test('a single reading a day, and none in a held day', () => {
    const rare = [{ day: TODAY - 1, readings: 1 }];
    expect(measuredIntervalMs({ held: [held(-1, 0)], days: rare }, NOW)).toBe(DAY_MS);
    expect(measuredIntervalMs({ held: [held(-0.5, 0)], days: rare }, NOW)).toBeNull();
    expect(measuredIntervalMs({ held: [held(-1, 0)], days: [] }, NOW)).toBe(Number.POSITIVE_INFINITY);
    expect(measuredIntervalMs({ held: [held(-0.9, 0)], days: [] }, NOW)).toBeNull();
  });

  const DEVICE: DeviceFacts = {
    deviceId: 'd',
    lastSeenMs: NOW - MINUTE_MS,
    lifecycle: 'active',
    isLeftOut: false,
    held: [],
    newestMs: null,
    days: [],
  };
  const quiet = (device: Partial<DeviceFacts>) => fleetRates([{ ...DEVICE, ...device }], NOW).devices[0]?.isQuiet;

  test('who is quiet: by the last sign of life, by the lifecycle, by what is held', () => {
    expect(quiet({})).toBe(false);
    expect(quiet({ lastSeenMs: NOW - DAY_MS - 1 })).toBe(true);
    expect(quiet({ lastSeenMs: NOW - DAY_MS })).toBe(false);
    expect(quiet({ lastSeenMs: null })).toBe(true);
    expect(quiet({ lastSeenMs: null, newestMs: NOW - HOUR_MS })).toBe(false);
    for (const lifecycle of ['paused', 'shelved', 'retired']) expect(quiet({ lifecycle })).toBe(true);
    // Words that no document names, and none, say nothing.
    for (const lifecycle of ['hibernating', null]) expect(quiet({ lifecycle })).toBe(false);
    expect(quiet({ held: [held(-1, 0.5)] })).toBe(true);
  });

  test('what is not measured is taken as the median of what is, else as one a minute', () => {
    const measured = (deviceId: string, readings: number): DeviceFacts => {
      return { ...DEVICE, deviceId, held: [held(-1, 0)], days: [{ day: TODAY - 1, readings }] };
    };
    const all = [measured('a', 1440), measured('b', 144), measured('c', 24), DEVICE];
    const { devices, assumedMs, leftOut } = fleetRates([...all, { ...DEVICE, isLeftOut: true }], NOW);
    expect([assumedMs, leftOut, devices.length]).toEqual([10 * MINUTE_MS, 1, 4]);
    expect(devices.at(-1)).toMatchObject({ intervalMs: 10 * MINUTE_MS, isMeasured: false });
    expect(fleetRates([DEVICE], NOW).assumedMs).toBe(MINUTE_MS);
    expect(fleetRates([], NOW)).toEqual({ devices: [], leftOut: 0, assumedMs: MINUTE_MS });
  });
});

describe('the cost of a stretch', () => {
  const device = { intervalMs: MINUTE_MS, isQuiet: false, heardMs: NOW, held: [] };
  const need = (changes: Partial<BackfillInput> = {}) =>
    backfillNeed({
      devices: [device],
      span: { from: NOW_NS - 30n * DAY_NS, to: NOW_NS },
      now: NOW_NS,
      pageSize: 200,
      windowNs: null,
      ...changes,
    });

  test('pages of 199 new readings, the day, the week and the rest one by one', () => {
    const pages = [1, 6, 23].reduce((sum, days) => sum + Math.ceil((days * 1440) / 199), 0);
    expect(need()).toEqual({ devices: 1, openShare: 1, readings: 43_200, requests: pages });
  });

  test('windows of the plan, and small pages', () => {
    const rare = { ...device, intervalMs: 12 * HOUR_MS };
    expect(need({ devices: [rare] }).requests).toBe(3);
    // The rest of 23 days in windows of 7 days less an hour, the week in one.
    expect(need({ devices: [rare], windowNs: windowSpanNs(7) }).requests).toBe(1 + 1 + 4);
    expect(need({ pageSize: 50 }).requests).toBeGreaterThan(4 * 217);
    expect(need({ pageSize: 1 }).requests).toBe(43_200);
  });

  test('what is held is not asked for, and the newest hour is no history', () => {
    const own = { ...device, held: [{ from: NOW_NS - 10n * DAY_NS, to: NOW_NS - HOUR_NS / 2n }] };
    expect(need({ devices: [own] })).toMatchObject({ devices: 1, readings: 20 * 1440 });
    const all = { ...device, held: [{ from: NOW_NS - 40n * DAY_NS, to: NOW_NS - HOUR_NS / 2n }] };
    expect(need({ devices: [all] })).toEqual({ devices: 0, openShare: 0, readings: 0, requests: 0 });
    const short = { from: NOW_NS - HOUR_NS / 2n, to: NOW_NS };
    expect(need({ span: short })).toMatchObject({ openShare: 1, readings: 30, requests: 1 });
    expect(need({ devices: [] })).toEqual({ devices: 0, openShare: 0, readings: 0, requests: 0 });
  });

  test('a quiet device made none since; of one that never spoke emptiness is proven twice', () => {
    const since = { ...device, isQuiet: true, heardMs: NOW - 10 * DAY_MS };
    expect(need({ devices: [since] }).readings).toBe(20 * 1440);
    const never = { ...device, isQuiet: true, heardMs: null };
    expect(need({ devices: [never] })).toMatchObject({ readings: 0, requests: 6 });
  });

  test('dense readings: the slack takes a part of each page, a cursor the rest', () => {
    const dense = { ...device, intervalMs: 10 };
    const span = { from: NOW_NS - DAY_NS, to: NOW_NS };
    expect(need({ devices: [dense], span }).requests).toBe(86_400);
  });

  test('more devices than there are hold nothing, fewer hold their part', () => {
    const [own, anew] = [
      { devices: 2, openShare: 0, readings: 0, requests: 0 },
      { devices: 2, openShare: 1, readings: 1000, requests: 10 },
    ];
    expect(scaleNeed(own, 3, () => anew)).toEqual({ devices: 6, openShare: 2 / 3, readings: 2000, requests: 20 });
    expect(scaleNeed(anew, 0.5, () => anew)).toEqual({ devices: 1, openShare: 1, readings: 500, requests: 5 });
  });

  test('time is requests by what there is a day', () => {
    expect([finishMs(100, 50), finishMs(0, 0), finishMs(1, 0)]).toEqual([2 * DAY_MS, 0, null]);
  });
});

describe('what is supposed', () => {
  test.each([
    ['share=0.5', { key: 'api.share', value: '0.5' }],
    [' api.share = 0.5 ', { key: 'api.share', value: '0.5' }],
    ['telemetry=*/5 * * * *', { key: 'sync.telemetry', value: '*/5 * * * *' }],
    ['sync.devices=@hourly', { key: 'sync.devices', value: '@hourly' }],
    ['devices=2000', { key: 'devices', value: '2000' }],
    ['requests_per_day=a=b', { key: 'requests_per_day', value: 'a=b' }],
  ])('%s', (text, read) => {
    expect(readWhatIf(text)).toEqual(read);
  });

  test.each([
    ['share', /takes KEY=VALUE/],
    ['=1', /takes KEY=VALUE/],
    ['share=', /takes KEY=VALUE/],
    ['shair=0.5', /does not know that key\. Did you mean share\? It knows api\.share, sync\.telemetry/],
    ['toString=1', /does not know that key/],
    ['constructor=1', /does not know that key/],
    ['sk_live_4242=1', /does not know that key\. It knows/],
  ])('%s is a mistake', (text, words) => {
    const read = readWhatIf(text);
    expect('mistake' in read ? read.mistake : '').toMatch(words);
    expect(JSON.stringify(read)).not.toContain('4242');
  });

  test('a fleet of another size is mixed as this one is', () => {
    const fleet = { intervalsMs: [10, 20, 20, 40], quiet: 4 };
    expect(resizeFleet(fleet, { devices: 16, assumedMs: 1 })).toEqual({
      intervalsMs: [10, 10, 20, 20, 20, 20, 40, 40],
      quiet: 8,
    });
    expect(resizeFleet(fleet, { devices: 2, assumedMs: 1 })).toEqual({ intervalsMs: [20], quiet: 1 });
    expect(resizeFleet({ intervalsMs: [], quiet: 0 }, { devices: 3, assumedMs: 7 })).toEqual({
      intervalsMs: [7, 7, 7],
      quiet: 0,
    });
    expect(resizeFleet({ intervalsMs: [], quiet: 5 }, { devices: 3, assumedMs: 7 })).toEqual({
      intervalsMs: [],
      quiet: 3,
    });
  });
});

test('what is taken where no limit is told is what the quota takes', () => {
  const quota = createQuota({ share: 1, random: () => 0.5 });
  expect(quota.figures(0).minute.budget).toBe(ASSUMED_PER_MINUTE);
});
