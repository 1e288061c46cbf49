/** How often devices report, measured or assumed, and the assumptions of --what-if. */
import { describe, expect, test } from 'vitest';
import { type DeviceFacts, fleetRates, measuredIntervalMs, readWhatIf, resizeFleet } from '../../src/core/fleet.ts';
import { DAY_MS, DAY_NS, HOUR_MS, HOUR_NS, MINUTE_MS, msToNs } from '../../src/core/time.ts';

const NOW = Date.UTC(2026, 5, 15, 12);
const TODAY = Math.floor(NOW / DAY_MS);
const NOW_NS = msToNs(NOW);

function held(fromDay: number, toDay: number) {
  const at = (day: number): bigint => BigInt(TODAY) * DAY_NS + (BigInt(Math.round(day * 24)) * DAY_NS) / 24n;
  return { from: at(fromDay), to: at(toDay) };
}

describe('the rate of a device', () => {
  test('is measured in about the newest covered day', () => {
    const days = [{ day: TODAY - 1, readings: 1440 }];
    expect(measuredIntervalMs({ covered: [held(-1, 0)], days }, NOW)).toBe(MINUTE_MS);
    // Half of today covered, and yesterday: both count. What is older does not.
    const more = [
      { day: TODAY, readings: 360 },
      { day: TODAY - 1, readings: 720 },
      { day: TODAY - 2, readings: 9 },
    ];
    expect(measuredIntervalMs({ covered: [held(-2, 0.5)], days: more }, NOW)).toBe(2 * MINUTE_MS);
  });

  test('a covered part of a day is enough, an hour the least', () => {
    const days = [{ day: TODAY, readings: 60 }];
    expect(measuredIntervalMs({ covered: [held(0.25, 0.5)], days }, NOW)).toBe(6 * MINUTE_MS);
    const short = [{ from: NOW_NS - HOUR_NS / 2n, to: NOW_NS }];
    expect(measuredIntervalMs({ covered: short, days }, NOW)).toBeNull();
    expect(measuredIntervalMs({ covered: [], days }, NOW)).toBeNull();
    const old = [{ day: TODAY - 30, readings: 9 }];
    expect(measuredIntervalMs({ covered: [held(-40, -20)], days: old }, NOW)).toBeNull();
  });

  test('a single reading a day gives a day; less than a covered day gives none', () => {
    const rare = [{ day: TODAY - 1, readings: 1 }];
    expect(measuredIntervalMs({ covered: [held(-1, 0)], days: rare }, NOW)).toBe(DAY_MS);
    expect(measuredIntervalMs({ covered: [held(-0.5, 0)], days: rare }, NOW)).toBeNull();
    expect(measuredIntervalMs({ covered: [held(-1, 0)], days: [] }, NOW)).toBe(Number.POSITIVE_INFINITY);
    expect(measuredIntervalMs({ covered: [held(-0.9, 0)], days: [] }, NOW)).toBeNull();
  });

  const DEVICE: DeviceFacts = {
    deviceId: 'd',
    name: 'd',
    lastSeenMs: NOW - MINUTE_MS,
    lifecycle: 'active',
    isLeftOut: false,
    covered: [],
    newestMs: null,
    beginsNs: null,
    days: [],
  };
  const quiet = (device: Partial<DeviceFacts>) => fleetRates([{ ...DEVICE, ...device }], NOW).devices[0]?.isQuiet;

  test('a device is quiet by its last sign of life, its lifecycle, or its coverage', () => {
    expect(quiet({})).toBe(false);
    expect(quiet({ lastSeenMs: NOW - DAY_MS - 1 })).toBe(true);
    expect(quiet({ lastSeenMs: NOW - DAY_MS })).toBe(false);
    expect(quiet({ lastSeenMs: null })).toBe(true);
    expect(quiet({ lastSeenMs: null, newestMs: NOW - HOUR_MS })).toBe(false);
    for (const lifecycle of ['paused', 'shelved', 'retired']) expect(quiet({ lifecycle })).toBe(true);
    // Unknown words, and none, have no meaning.
    for (const lifecycle of ['hibernating', null]) expect(quiet({ lifecycle })).toBe(false);
    expect(quiet({ covered: [held(-1, 0.5)] })).toBe(true);
  });

  test('an unmeasured rate counts as the median of the measured ones, else as one a minute', () => {
    const measured = (deviceId: string, readings: number): DeviceFacts => {
      return { ...DEVICE, deviceId, covered: [held(-1, 0)], days: [{ day: TODAY - 1, readings }] };
    };
    const all = [measured('a', 1440), measured('b', 144), measured('c', 24), DEVICE];
    const { devices, assumedMs, leftOut } = fleetRates([...all, { ...DEVICE, isLeftOut: true }], NOW);
    expect([assumedMs, leftOut, devices.length]).toEqual([10 * MINUTE_MS, 1, 4]);
    expect(devices.at(-1)).toMatchObject({ intervalMs: 10 * MINUTE_MS, isMeasured: false });
    expect(fleetRates([DEVICE], NOW).assumedMs).toBe(MINUTE_MS);
    expect(fleetRates([], NOW)).toEqual({ devices: [], leftOut: 0, assumedMs: MINUTE_MS });
  });
});

describe('the assumptions', () => {
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
    ['shair=0.5', /has no such key\. Did you mean share\? Its keys: api\.share, sync\.telemetry/],
    ['toString=1', /has no such key/],
    ['constructor=1', /has no such key/],
    ['sk_live_4242=1', /has no such key\. Its keys:/],
  ])('%s is a mistake', (text, words) => {
    const read = readWhatIf(text);
    expect('mistake' in read ? `${read.mistake.what}. ${read.mistake.remedy}` : '').toMatch(words);
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
