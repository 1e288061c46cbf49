/**
 * The daemon and `--once` under clocks that are wrong at a start: the API's, by days or years, and the local one.
 * Nothing beyond the present is ever called covered, and nothing is missing in the end.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, parseTimestamp, SECOND_MS } from '../../src/core/time.ts';
import { type DaemonWatch, DEVICES, eventsOf, expectExact, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { withWallOffset } from '../support/virtual-clock.ts';

const bench = sharedBench(openBench);

/** The judge's cache is filled once. */
const WORLD = worldOf(DEVICES);

async function rigOf(settings: RigOptions['settings'] = {}): Promise<Rig> {
  return await openRig(bench, { world: WORLD, historyMs: 2 * DAY_MS, settings });
}

const YEAR_MS = 365 * DAY_MS;

/** Ranges covered beyond the true present, and readiness that comes too early, checked every second. */
async function watchClaims(rig: Rig, { report, ready }: DaemonWatch, forMs: number): Promise<string[]> {
  const found: string[] = [];
  for (let passedMs = 0; passedMs < forMs; passedMs += SECOND_MS) {
    const presentNs = BigInt(rig.clock.nowMs()) * 1_000_000n;
    const beyond = report().devices.flatMap(({ device_id, covered }) =>
      covered.filter(([, to]) => (parseTimestamp(to) ?? 0n) > presentNs).map(([, to]) => `${device_id} to ${to}`),
    );
    found.push(
      ...beyond,
      ...(ready().ready && report().devices.some((each) => each.covered.length === 0) ? ['ready'] : []),
    );
    await rig.clock.sleep(SECOND_MS);
  }
  return found;
}

describe.runIf(influxdAvailable())('a Date that is wrong at a start', () => {
  test.each([
    ['two days ahead', 2 * DAY_MS],
    ['in 2100', 74 * YEAR_MS],
    ['in 9999', 7973 * YEAR_MS],
  ])('%s for 14 s covers nothing beyond the present', async (_, aheadMs) => {
    using rig = await rigOf();
    const { time } = rig.simulator.settings;
    time.jumpMs = aheadMs;
    let found: string[] = [];
    const life = await liveAsDaemon(rig, {
      forMs: 10 * MINUTE_MS,
      meanwhile: async (watch) => {
        void rig.clock.sleep(14 * SECOND_MS).then(() => {
          time.jumpMs = 0;
        });
        found = await watchClaims(rig, watch, 3 * MINUTE_MS);
      },
    });
    expect(life.error).toBeNull();
    expect(found).toEqual([]);
    expect(eventsOf(life, 'coverage-withdrawn')).toEqual([]);
    expect(life.lastReady).toMatchObject({ ready: true });
    await expectExact(rig);
  });

  test('is not ready, gives the reason, and covers nothing until a second answer confirms it', async () => {
    using rig = await rigOf();
    rig.simulator.settings.time.jumpMs = HOUR_MS;
    const codes: string[] = [];
    await liveAsDaemon(rig, {
      forMs: 3 * MINUTE_MS,
      meanwhile: async ({ ready, report }) => {
        await rig.clock.sleep(50 * SECOND_MS);
        codes.push(...ready().codes);
        expect(report().devices.filter(({ covered }) => covered.length > 0)).toEqual([]);
      },
    });
    expect(codes).toContain('clock_unconfirmed');
  });

  test('of a wrong year that lasted costs a few requests per device once it is right', async () => {
    using rig = await rigOf({ plan: { historyMaxDays: 30 } });
    rig.simulator.settings.time.jumpMs = 74 * YEAR_MS;
    await liveAsDaemon(rig, { forMs: 7 * MINUTE_MS });
    rig.simulator.settings.time.jumpMs = 0;
    const before = rig.simulator.log.total;
    const { lastReady } = await liveAsDaemon(rig, { forMs: 5 * MINUTE_MS });
    const asked = rig.simulator.log.requests.filter(({ number, path }) => number > before && /telemetry/.test(path));
    // As many as a first start needs for the two days and five minutes of polls.
    expect(asked.length).toBeLessThan(40);
    expect(lastReady).toMatchObject({ ready: true });
    await liveAsDaemon(rig, { forMs: 20 * MINUTE_MS });
    await expectExact(rig);
  });
});

test.runIf(influxdAvailable()).each([
  ['an age', {}],
  ['a fixed start, in windows of 30 days', { since: parseTimestamp('2026-06-13T00:00:00Z') ?? 0n }],
])(
  'a Date of 2100 that is corrected in the same process costs a few requests per device: history by %s',
  async (_, history) => {
    using rig = await openRig(bench, {
      world: WORLD,
      historyMs: 2 * DAY_MS,
      settings: { plan: { historyMaxDays: 30 } },
      ...history,
    });
    const { time } = rig.simulator.settings;
    time.jumpMs = 74 * YEAR_MS;
    let before = 0;
    const life = await liveAsDaemon(rig, {
      // The requests that the wrong year has spent of the day's quota delay the history.
      forMs: 50 * MINUTE_MS,
      meanwhile: async () => {
        await rig.clock.sleep(7 * MINUTE_MS);
        time.jumpMs = 0;
        before = rig.simulator.log.total;
      },
    });
    const polls = 43;
    for (const { deviceId } of DEVICES) {
      const asked = rig.simulator.log.requests.filter(
        ({ number, path }) => number > before && path.includes(`/${deviceId}/telemetry`),
      );
      // Two days of the device that reports every minute are 15 pages.
      expect(asked.length, deviceId).toBeLessThan(polls + 30);
    }
    expect(life.lastReady).toMatchObject({ ready: true });
    await expectExact(rig);
  },
);

test.runIf(influxdAvailable())('a wrong local clock costs no time where devices report', async () => {
  using rig = await rigOf();
  const clock = withWallOffset(rig.clock, () => -3 * HOUR_MS);
  const beganMs = rig.clock.nowMs();
  const { summary, events } = await rig.once({ clock });
  expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
  expect(events.filter(({ type }) => type === 'clock-unconfirmed')).toEqual([]);
  expect(rig.clock.nowMs() - beganMs).toBeLessThan(MINUTE_MS);
  await expectExact(rig, 1000, 10 * MINUTE_MS);
});

describe.runIf(influxdAvailable())('a service that sends no Date', () => {
  test.each([
    ['1970', -NOW_MS, 'stalled', true],
    ['2276', 250 * YEAR_MS, 'gaps_remain', false],
  ])(
    'is not called complete while the local clock is in %s, nor does the process end',
    async (_, byMs, outcome, isUnknown) => {
      using rig = await rigOf({ time: { date: 'absent' } });
      const clock = withWallOffset(rig.clock, () => byMs);
      expect((await rig.once({ clock })).summary.outcome).toBe(outcome);
      const life = await liveAsDaemon(rig, { forMs: 10 * MINUTE_MS, changes: { clock } });
      expect([life.error, life.lastReady.codes.includes('clock_unconfirmed')]).toEqual([null, isUnknown]);
      expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', gaps: [] });
      await expectExact(rig);
    },
  );

  test('except in its first answer, where the local clock is wrong, is still read', async () => {
    const silences = [{ fromMs: NOW_MS - HOUR_MS, toMs: NOW_MS + DAY_MS }];
    using rig = await openRig(bench, {
      world: worldOf([{ deviceId: 'a', intervalMs: MINUTE_MS, silences }]),
      historyMs: DAY_MS,
    });
    const { time } = rig.simulator.settings;
    const stop = new AbortController();
    rig.simulator.faults = (number) => {
      if (number > 200) stop.abort();
      time.date = number === 1 ? 'sent' : 'absent';
      return null;
    };
    const clock = withWallOffset(rig.clock, () => HOUR_MS);
    const { summary } = await rig.once({ clock }, stop.signal);
    expect(summary).toMatchObject({ outcome: 'complete', gaps: [] });
  });

  test('is current without a request a minute for the time, also while no device reports', async () => {
    const silences = [{ fromMs: NOW_MS + HOUR_MS, toMs: NOW_MS + DAY_MS }];
    const devices = [{ deviceId: 'seldom', intervalMs: 10 * MINUTE_MS, silences }];
    const settings = { time: { date: 'absent' as const } };
    using rig = await openRig(bench, { world: worldOf(devices), historyMs: DAY_MS, settings });
    const life = await liveAsDaemon(rig, { forMs: 3 * HOUR_MS });
    expect(life.error).toBeNull();
    const polls = rig.simulator.log.requests.filter(({ path }) => path.endsWith('/telemetry')).length;
    expect(polls, 'a poll for each of seven readings, and the history').toBeLessThan(30);
    expect(life.lastReport.devices).toMatchObject([{ device_id: 'seldom', lag_seconds: 0, gaps: [] }]);
  });
});
