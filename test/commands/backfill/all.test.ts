/**
 * `--from all`: how far back it goes, under every reading of the API document, and that it ends.
 */
import { describe, expect, test } from 'vitest';
import { backfillEndText } from '../../../src/commands/backfill/result.ts';
import { DAY_MS, HOUR_MS } from '../../../src/core/time.ts';
import { sensorsOf } from '../../../src/sim/devices.ts';
import type { SettingsOverrides } from '../../../src/sim/settings.ts';
import type { World } from '../../../src/sim/world.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../../support/trait-world.ts';
import { backfillAlone, coverageOf, telemetryRequests } from './support.ts';

/** Three years of a device, one since ten days, one that rested for a year, one that fell silent two years ago. */
const BEGAN = NOW_MS - 1100 * DAY_MS;
const DEVICES = [
  { deviceId: 'old', intervalMs: 12 * HOUR_MS },
  { deviceId: 'young', intervalMs: HOUR_MS, silences: [{ fromMs: 0, toMs: NOW_MS - 10 * DAY_MS }] },
  {
    deviceId: 'rested',
    intervalMs: 6 * HOUR_MS,
    silences: [{ fromMs: NOW_MS - 420 * DAY_MS, toMs: NOW_MS - 40 * DAY_MS }],
  },
  {
    deviceId: 'silent',
    intervalMs: 12 * HOUR_MS,
    silences: [{ fromMs: NOW_MS - 730 * DAY_MS, toMs: Number.POSITIVE_INFINITY }],
  },
];

/** It never changes, and what the judge has made of it is there for the next test as well. */
const worldOf = (devices: readonly DeviceSpec[]): World =>
  createWorld({
    ...{ seed: 9, originMs: NOW_MS, historyMs: NOW_MS - BEGAN, alerts: [] },
    // Each value costs as much CPU time as its reading, and what is looked at here are requests and times.
    devices: devices.map((device) => ({ ...device, sensors: sensorsOf(1) })),
  });
const WORLD = worldOf(DEVICES);

const GO = { requestsPerMinute: 6000, requestsPerDay: 1_000_000 };

describe.runIf(influxdAvailable())('--from all', () => {
  const bench = sharedBench(openBench);

  const rigOf = async (settings: SettingsOverrides, world = WORLD): Promise<Rig> =>
    await openRig(bench, {
      world: () => world,
      historyMs: 2 * DAY_MS,
      settings,
    });

  const missingOf = async (rig: Rig): Promise<readonly string[]> => {
    const verdict = await rig.verdict(NOW_MS, { fromNs: BigInt(BEGAN) * 1_000_000n });
    expect(verdict.invented.slice(0, 3)).toEqual([]);
    expect(verdict.expected).toBeGreaterThan(1000);
    return verdict.missing;
  };

  test.each([
    ['no limit of windows', { plan: { ...GO, historyMaxDays: null } }, 60],
    ['windows of a year', { plan: { ...GO, historyMaxDays: 365 } }, 90],
    ['windows of a month', { plan: { ...GO, historyMaxDays: 30 } }, 400],
    [
      'bounds in whole seconds, exclusive',
      { plan: { ...GO, historyMaxDays: 90 }, bounds: { after: 'exclusive', resolution: 'seconds' } },
      200,
    ],
  ] as const)('brings everything there is with %s, the year of rest included, and ends', async (_, settings, most) => {
    using rig = await rigOf(settings as SettingsOverrides);
    const { summary } = await backfillAlone(rig, { fromMs: 'all' });
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, from: null, missing: [] });
    expect(await missingOf(rig)).toEqual([]);
    expect(telemetryRequests(rig)).toBeLessThan(most);
    expect(summary.oldest_reading?.slice(0, 7)).toBe(new Date(BEGAN).toISOString().slice(0, 7));
    // Running it again: the same end, with requests for the newest minutes only.
    const before = telemetryRequests(rig);
    expect((await backfillAlone(rig, { fromMs: 'all', toMs: NOW_MS - HOUR_MS })).summary.outcome).toBe('complete');
    expect(telemetryRequests(rig)).toBe(before);
  });

  test('where the account may not be read, a plan without limits is not assumed: it ends by the rule', async () => {
    using rig = await rigOf({
      plan: { ...GO, historyMaxDays: 60 },
      key: { scopes: ['devices:read', 'telemetry:read'] },
    });
    const { summary } = await backfillAlone(rig, { fromMs: 'all' });
    expect(summary.outcome).toBe('complete');
    expect(await missingOf(rig)).toEqual([]);
    expect(telemetryRequests(rig)).toBeLessThan(400);
  });

  test('covers no more than was requested: below the oldest reading the silence that was seen, and no further', async () => {
    using rig = await rigOf({ plan: { ...GO, historyMaxDays: 365 } });
    await backfillAlone(rig, { fromMs: 'all' });
    const [[fromMs] = [0], ...more] = coverageOf(rig, 'young');
    expect(more).toEqual([]);
    expect((NOW_MS - 10 * DAY_MS - fromMs) / DAY_MS).toBeGreaterThan(398);
    expect((NOW_MS - 10 * DAY_MS - fromMs) / DAY_MS).toBeLessThan(401);
  });

  test.each(['rejected', 'empty'] as const)(
    'ends where the plan hides older readings (%s): these are no part of all, and not reported as covered',
    async (age) => {
      using rig = await rigOf({ plan: { ...GO, historyMaxDays: 90 }, bounds: { age } });
      const { summary } = await backfillAlone(rig, { fromMs: 'all' });
      expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
      expect(new Set(summary.missing.map(({ reason }) => reason))).toEqual(new Set(['beyond_plan']));
      const verdict = await rig.verdict(NOW_MS, { fromNs: BigInt(NOW_MS - 89 * DAY_MS) * 1_000_000n });
      expect(verdict.missing).toEqual([]);
      for (const { deviceId } of DEVICES) {
        const oldest = coverageOf(rig, deviceId)[0]?.[0] ?? Number.POSITIVE_INFINITY;
        expect(oldest).toBeGreaterThan(NOW_MS - 90.1 * DAY_MS);
      }
      expect(telemetryRequests(rig)).toBeLessThan(age === 'rejected' ? 40 : 150);
    },
  );

  test('a range that the plan hides cannot be read: exit 1, with its reason', async () => {
    using rig = await rigOf({ plan: { ...GO, historyMaxDays: 90 }, bounds: { age: 'empty' } });
    const { summary } = await backfillAlone(rig, { fromMs: NOW_MS - 200 * DAY_MS });
    expect(summary).toMatchObject({ outcome: 'gaps_remain', exit_code: 1 });
    expect(new Set(summary.missing.map(({ reason }) => reason))).toEqual(new Set(['beyond_plan']));
    expect(backfillEndText(summary).replaceAll(/\s+/g, ' ')).toContain(
      "older than the plan's history_max_days, and the API has never served readings that old; a larger plan may include them",
    );
  });

  test('a device that never reported ends too', async () => {
    const mute = { deviceId: 'mute', intervalMs: HOUR_MS, silences: [{ fromMs: 0, toMs: Number.POSITIVE_INFINITY }] };
    using rig = await rigOf({ plan: { ...GO, historyMaxDays: 365 } }, worldOf([mute]));
    const { summary } = await backfillAlone(rig, { fromMs: 'all' });
    expect(summary).toMatchObject({ devices: 1, devices_empty: 1, readings: 0, oldest_reading: null });
    expect(telemetryRequests(rig)).toBeLessThan(14);
  });
});
