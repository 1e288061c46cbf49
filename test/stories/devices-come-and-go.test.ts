/**
 * Devices that come, leave and are gone, over real loops on a virtual clock: they are noticed in time, and polled only
 * every `sync.gone_poll` once they are gone, and never once they are excluded.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { eventsOf, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { cron } from '../support/defaults.ts';
import { always, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

const bench = sharedBench(openBench);

/** When it leaves: its history is being filled. */
const LEAVES_MS = NOW_MS + 10 * SECOND_MS;

function askedAfter(rig: Rig, path: RegExp, fromMs: number): number {
  return rig.simulator.log.requests.filter((request) => request.atMs > fromMs && path.test(request.path)).length;
}

describe.runIf(influxdAvailable())('a device that leaves while its history is open', () => {
  test('is polled no more once it has answered 404, and reported as gone once', async () => {
    const devices = [
      { deviceId: 'lost', intervalMs: MINUTE_MS, vanishesAtMs: LEAVES_MS },
      { deviceId: 'stays', intervalMs: MINUTE_MS },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, 32 * DAY_MS), historyMs: 30 * DAY_MS });
    const life = await liveAsDaemon(rig, { forMs: 10 * MINUTE_MS });
    expect(life.error).toBeNull();
    expect(life.lastReport.devices.map(({ state }) => state)).toContain('unreachable');
    // Those that were under way, of each lane.
    expect(askedAfter(rig, /lost.telemetry/, LEAVES_MS)).toBeLessThanOrEqual(4);
    expect(eventsOf(life, 'device-gone').length).toBeLessThanOrEqual(2);
  });

  test('is polled no more once it is excluded', async () => {
    const renames = [{ atMs: LEAVES_MS, value: 'private' }];
    const devices = [
      ...['x', 'y', 'z'].map((deviceId) => ({ deviceId, intervalMs: 20 * SECOND_MS, renames })),
      { deviceId: 'stays', intervalMs: 20 * SECOND_MS },
    ];
    const filter = { exclude: ['private'] };
    using rig = await openRig(bench, { world: worldOf(devices, 32 * DAY_MS), historyMs: 30 * DAY_MS, filter });
    const life = await liveAsDaemon(rig, { forMs: 10 * MINUTE_MS });
    expect(life.lastReport.devices.filter(({ state }) => state === 'excluded')).toHaveLength(3);
    // The next listing has it.
    expect(askedAfter(rig, /[xyz].telemetry/, LEAVES_MS + 6 * MINUTE_MS)).toBe(0);
  });
});

describe.runIf(influxdAvailable())('a poll of a device that is gone', () => {
  test('does not keep a listing from being stored when only that device has a fault', async () => {
    const devices = [
      { deviceId: 'lost', intervalMs: HOUR_MS, vanishesAtMs: NOW_MS + 2 * HOUR_MS },
      { deviceId: 'stays', intervalMs: HOUR_MS },
      { deviceId: 'new', intervalMs: HOUR_MS, appearsAtMs: NOW_MS + 9 * HOUR_MS },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, DAY_MS), historyMs: DAY_MS / 4 });
    const hourly = cron('0 * * * *');
    const life = await liveAsDaemon(rig, {
      forMs: 11 * HOUR_MS,
      changes: { settings: { ...rig.settings, polls: { ...rig.settings.polls, gonePollMs: 8 * HOUR_MS } } },
      schedules: { telemetry: cron('*/20 * * * *'), alerts: hourly, devices: hourly },
      meanwhile: async () => {
        await rig.clock.sleep(5 * HOUR_MS);
        rig.simulator.faults = onPath(/lost.telemetry/, always({ kind: 'html' }));
      },
    });
    expect(life.error).toBeNull();
    const asked = (path: RegExp) => rig.simulator.log.requests.filter((request) => path.test(request.path));
    expect(asked(/new.telemetry/).length).toBeGreaterThan(0);
    expect(eventsOf(life, 'stream-failed')).toEqual([]);
    const looks = asked(/lost.telemetry/).filter(({ atMs }) => atMs > NOW_MS + 5 * HOUR_MS);
    expect(looks.length).toBeGreaterThan(0);
    // A look is five tries at most, and it is made again hourly.
    expect(looks.length).toBeLessThanOrEqual(5 * 6);
  });
});

describe.runIf(influxdAvailable())('a device that is gone', () => {
  test('is polled every `sync.gone_poll`', async () => {
    const devices = [
      { deviceId: 'lost', intervalMs: HOUR_MS, vanishesAtMs: NOW_MS + HOUR_MS },
      { deviceId: 'stays', intervalMs: HOUR_MS },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, DAY_MS), historyMs: DAY_MS / 4 });
    const hourly = cron('0 * * * *');
    const settings = { ...rig.settings, polls: { ...rig.settings.polls, gonePollMs: 3 * HOUR_MS } };
    const life = await liveAsDaemon(rig, {
      forMs: 14 * HOUR_MS,
      changes: { settings },
      schedules: { telemetry: cron('*/20 * * * *'), alerts: hourly, devices: hourly },
    });
    expect(life.error).toBeNull();
    // About 6, 9 and 12 hours after the start.
    expect(askedAfter(rig, /lost.telemetry/, NOW_MS + 5 * HOUR_MS)).toBe(3);
  });
});

describe.runIf(influxdAvailable())('the list of devices after hours of downtime', () => {
  test('is read on its schedule, so that a new device is noticed within minutes', async () => {
    const appearsAtMs = NOW_MS + 15 * HOUR_MS + 20 * MINUTE_MS;
    const devices = [
      // Far behind when it is polled again, page after page; then it has nothing new.
      { deviceId: 'old', intervalMs: MINUTE_MS, silences: [{ fromMs: NOW_MS + 15 * HOUR_MS, toMs: NOW_MS + DAY_MS }] },
      { deviceId: 'steady', intervalMs: 5 * MINUTE_MS },
      { deviceId: 'new', intervalMs: 5 * MINUTE_MS, appearsAtMs },
    ];
    using rig = await openRig(bench, { world: worldOf(devices, DAY_MS), historyMs: DAY_MS / 2 });
    await liveAsDaemon(rig, { forMs: HOUR_MS });
    await rig.clock.sleep(14 * HOUR_MS);
    const upMs = rig.clock.nowMs();
    const life = await liveAsDaemon(rig, { forMs: 2 * HOUR_MS });
    expect(life.error).toBeNull();
    const listedMs = rig.simulator.log.requests
      .filter(({ path, atMs }) => atMs >= upMs && path.endsWith('/devices'))
      .map(({ atMs }) => atMs);
    const restsMs = listedMs.slice(1).map((atMs, index) => atMs - (listedMs[index] ?? 0));
    // Every five minutes by the schedule.
    expect(Math.max(...restsMs)).toBeLessThan(7 * MINUTE_MS);
    const first = rig.simulator.log.requests.find(({ path }) => path.includes('/new/telemetry'));
    expect((first?.atMs ?? Number.POSITIVE_INFINITY) - appearsAtMs).toBeLessThan(12 * MINUTE_MS);
  });
});
