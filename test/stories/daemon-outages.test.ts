/**
 * The daemon in problem: a service that is down, devices that always fail, a plan that changes, 404 for everything.
 */
import { describe, expect, test } from 'vitest';
import type { StatusReport } from '../../src/core/status.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { DEVICES, eventsOf, expectExact, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { cron } from '../support/defaults.ts';
import { always, betweenTimes, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';

/** Schedules of stories that are not about alerts or devices. */
const FEW = { alerts: cron('0 * * * *'), devices: cron('*/10 * * * *') };

/** The run in which the history is read. */
const FIRST = { forMs: 5 * MINUTE_MS, schedules: FEW };

describe.runIf(influxdAvailable())('the daemon in outages', () => {
  const bench = sharedBench(openBench);

  /** The judge's cache is filled once. */
  const WORLD = worldOf(DEVICES);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world: WORLD, historyMs: 2 * DAY_MS, ...options });

  test('waits for a service that does not answer with few requests, and catches up', async () => {
    using rig = await rigOf();
    await liveAsDaemon(rig, FIRST);
    const downMs = rig.clock.nowMs();
    rig.simulator.faults = betweenTimes(downMs, downMs + 3 * HOUR_MS, { kind: 'reset', when: 'before-headers' });
    const before = rig.simulator.log.total;
    let during = 0;
    const life = await liveAsDaemon(rig, {
      forMs: 4 * HOUR_MS,
      meanwhile: async ({ ready }) => {
        await rig.clock.sleep(3 * HOUR_MS - MINUTE_MS);
        during = rig.simulator.log.total - before;
        expect(ready().reasons.join()).toMatch(/^api: /);
      },
    });
    expect(life.error).toBeNull();
    // Five tries every 90 seconds or so, by one stream alone.
    expect(during).toBeGreaterThan(100);
    expect(during).toBeLessThan(3 * 40 * 6);
    expect(eventsOf(life, 'api-recovered').length).toBeGreaterThan(0);
    await expectExact(rig);
  });

  test('notices that the service is back, whichever stream has the turn to try', async () => {
    // One device, and history is full: most turns find nothing to request.
    using rig = await rigOf({ world: worldOf([{ deviceId: 'seldom', intervalMs: 5 * MINUTE_MS }]) });
    const late: number[] = [];
    const life = await liveAsDaemon(rig, {
      forMs: 3 * HOUR_MS,
      meanwhile: async () => {
        await rig.clock.sleep(20 * MINUTE_MS);
        for (const minutes of [35, 36, 37]) {
          const downMs = rig.clock.nowMs();
          const upMs = downMs + minutes * MINUTE_MS;
          rig.simulator.faults = betweenTimes(downMs, upMs, { kind: 'reset', when: 'before-headers' });
          await rig.clock.sleep(50 * MINUTE_MS);
          const first = rig.simulator.log.requests.find(({ atMs }) => atMs >= upMs);
          late.push((first?.atMs ?? Number.POSITIVE_INFINITY) - upMs);
        }
      },
    });
    expect(life.error).toBeNull();
    expect(Math.max(...late)).toBeLessThan(6 * MINUTE_MS);
    await expectExact(rig, 500);
  });

  test.each(['alerts', 'devices'])('leaves a small quota to the readings while %s cannot be read', async (stream) => {
    using rig = await rigOf({ world: worldOf([{ deviceId: 'seldom', intervalMs: 17 * MINUTE_MS }]) });
    rig.simulator.settings.plan.requestsPerDay = 1000;
    await liveAsDaemon(rig, { forMs: 10 * MINUTE_MS });
    rig.simulator.faults = onPath(new RegExp(`/${stream}$`), always({ kind: 'server-error' }));
    const fromMs = rig.clock.nowMs();
    await liveAsDaemon(rig, { forMs: 1.5 * HOUR_MS });
    const after = rig.simulator.log.requests.filter(({ atMs }) => atMs > fromMs);
    const polls = after.filter(({ path }) => path.endsWith('/telemetry')).map(({ atMs }) => atMs);
    const times = [fromMs, ...polls, rig.clock.nowMs()];
    const longestMs = Math.max(...times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0)));
    expect(longestMs).toBeLessThan(45 * MINUTE_MS);
    expect(after.filter(({ path }) => path.endsWith(stream)).length, 'it is still tried').toBeGreaterThan(10);
  });

  test('keeps the other streams going when one alone fails', async () => {
    using rig = await rigOf();
    rig.simulator.faults = onPath(/alerts/, always({ kind: 'server-error' }));
    const alertsOf = ({ streams }: StatusReport) => streams.find(({ name }) => name === 'alerts');
    const life = await liveAsDaemon(rig, {
      forMs: HOUR_MS,
      meanwhile: async ({ ready, report }) => {
        await rig.clock.sleep(HOUR_MS / 2);
        expect(alertsOf(report())).toMatchObject({ state: 'failing', reason: expect.stringContaining('500') });
        expect(ready().reasons.join()).toMatch(/^stream alerts: .*500/);
        expect(report().summary).toMatch(/^The stream alerts cannot be read: .*500/);
        rig.simulator.faults = null;
      },
    });
    await expectExact(rig);
    expect(alertsOf(life.lastReport)).toMatchObject({ state: 'on', reason: null });
    expect(life.lastReady).toEqual({ ready: true, reasons: [], codes: [], names: [] });
    expect(eventsOf(life, 'stream-recovered')).toEqual([{ type: 'stream-recovered', stream: 'alerts' }]);
    expect(eventsOf(life, 'stream-failed').every(({ stream }) => stream === 'alerts')).toBe(true);
    expect(eventsOf(life, 'stream-failed').length).toBeLessThan(60);
    expect(life.lastReport.streams.find(({ name }) => name === 'telemetry')).toMatchObject({ state: 'on' });
  });

  test('reports a key without the scope for telemetry, and continues by itself once it has that', async () => {
    using rig = await rigOf();
    const { key } = rig.simulator.settings;
    const scopes = [...key.scopes];
    const life = await liveAsDaemon(rig, {
      // The scope is looked for every hour.
      forMs: 1.5 * HOUR_MS,
      schedules: FEW,
      meanwhile: async ({ report, ready }) => {
        key.scopes = scopes.filter((scope) => scope !== 'telemetry:read');
        await rig.clock.sleep(HOUR_MS / 2);
        expect(report().streams).toContainEqual(expect.objectContaining({ name: 'telemetry', state: 'off' }));
        expect(report().summary).toBe('The stream telemetry cannot be read: the key lacks the scope telemetry:read');
        expect(ready().codes).toContain('scope_missing');
        key.scopes = scopes;
      },
    });
    expect(life.error).toBeNull();
    expect(life.lastReport.summary).toMatch(/^In sync: all 3 devices are complete/);
  });

  test('is not stopped by devices that never answer: names them, and polls them now and then', async () => {
    const broken = ['a', 'b', 'c', 'd'];
    const quiet = [...broken, 'sound'].map((deviceId) => ({ deviceId, intervalMs: 10 * MINUTE_MS }));
    // Others that are answered all the while: a device is to blame where these are not.
    const lively = ['v', 'w', 'x', 'y', 'z'].map((deviceId) => ({ deviceId, intervalMs: 5 * MINUTE_MS }));
    const devices = [...quiet, ...lively];
    using rig = await rigOf({ world: worldOf(devices, 10 * DAY_MS), historyMs: 8 * DAY_MS });
    rig.simulator.faults = onPath(/\/[abcd]\/telemetry/, always({ kind: 'server-error' }));
    const life = await liveAsDaemon(rig, { forMs: 2 * HOUR_MS, schedules: FEW });
    expect(life.error).toBeNull();
    const state = Object.fromEntries(life.lastReport.devices.map((device) => [device.device_id, device]));
    // All of it, older than a week too, but for the range since the last look.
    expect(state['sound']?.gaps.length).toBeLessThanOrEqual(1);
    expect(state['sound']?.lag_seconds).toBeLessThan(2 * 60);
    for (const id of broken) {
      expect(state[id]?.gaps.map(({ reason }) => reason)).toContain('unreachable');
      const asked = rig.simulator.log.requests.filter(({ path }) => path.includes(`/${id}/telemetry`)).length;
      // A try is five requests: at most one every five minutes in each lane.
      expect(asked).toBeLessThan(2 * 5 * 30);
    }
  });

  test('reports that telemetry fails where it fails for every device, and that it can be read again', async () => {
    using rig = await rigOf();
    await liveAsDaemon(rig, FIRST);
    rig.simulator.faults = onPath(/telemetry$/, always({ kind: 'server-error' }));
    const life = await liveAsDaemon(rig, {
      forMs: 1.5 * HOUR_MS,
      schedules: FEW,
      meanwhile: async ({ report, ready }) => {
        await rig.clock.sleep(HOUR_MS);
        expect(report().streams.find(({ name }) => name === 'telemetry')?.state).toBe('failing');
        expect(ready().reasons.join()).toMatch(/stream telemetry/);
        rig.simulator.faults = null;
      },
    });
    expect(life.error).toBeNull();
    expect(life.lastReport.streams.find(({ name }) => name === 'telemetry')?.state).toBe('on');
    expect(life.lastReady).toEqual({ ready: true, reasons: [], codes: [], names: [] });
    await expectExact(rig);
  });

  test('follows a plan that becomes narrower and wider while it runs', async () => {
    using rig = await rigOf({ historyMs: 2 * DAY_MS });
    const { plan } = rig.simulator.settings;
    const life = await liveAsDaemon(rig, {
      forMs: 80 * MINUTE_MS,
      schedules: { ...FEW, account: cron('*/15 * * * *') },
      meanwhile: async () => {
        await rig.clock.sleep(5 * MINUTE_MS);
        Object.assign(plan, { historyMaxDays: 1, requestsPerMinute: 20, maxDevicesPerPage: 40 });
        await rig.clock.sleep(45 * MINUTE_MS);
        Object.assign(plan, { historyMaxDays: 90, requestsPerMinute: 300, maxDevicesPerPage: 200 });
      },
    });
    expect(life.error).toBeNull();
    expect(eventsOf(life, 'plan-changed')).toHaveLength(2);
    await expectExact(rig);
  });

  test('leaves a device alone that answers 404 though it is listed, polls it now and then, and restores it', async () => {
    const lively = { deviceId: 'often', intervalMs: 10 * MINUTE_MS };
    using rig = await rigOf({ world: worldOf([lively, { deviceId: 'seldom', intervalMs: 17 * MINUTE_MS }]) });
    await liveAsDaemon(rig, FIRST);
    const brokenMs = rig.clock.nowMs();
    rig.simulator.faults = onPath(/seldom.telemetry/, always({ kind: 'server-error', status: 404 }));
    const life = await liveAsDaemon(rig, {
      forMs: 14 * HOUR_MS,
      changes: { settings: { ...rig.settings, polls: { ...rig.settings.polls, gonePollMs: 6 * HOUR_MS } } },
      schedules: { telemetry: cron('*/20 * * * *'), alerts: cron('0 * * * *'), devices: cron('0 * * * *') },
      meanwhile: async () => {
        await rig.clock.sleep(9 * HOUR_MS);
        const asked = rig.simulator.log.requests.filter(({ atMs, path }) => atMs > brokenMs && path.includes('seldom'));
        // Until others were answered in between, at waits that double, and once when it is gone.
        expect(asked.length).toBeLessThanOrEqual(5);
        rig.simulator.faults = null;
      },
    });
    expect(life.error).toBeNull();
    expect(eventsOf(life, 'device-gone')).toMatchObject([{ deviceId: 'seldom' }]);
    expect(eventsOf(life, 'device-returned')).toMatchObject([{ deviceId: 'seldom' }]);
    await expectExact(rig, 500, 30 * MINUTE_MS);
  });

  test('treats no device as gone where all answer 404 for a few minutes', async () => {
    using rig = await rigOf({ historyMs: DAY_MS });
    const life = await liveAsDaemon(rig, {
      forMs: 45 * MINUTE_MS,
      schedules: FEW,
      meanwhile: async () => {
        await rig.clock.sleep(5 * MINUTE_MS);
        const lostMs = rig.clock.nowMs();
        const lost = betweenTimes(lostMs, lostMs + 3 * MINUTE_MS, { kind: 'server-error', status: 404 });
        rig.simulator.faults = onPath(/telemetry/, lost);
      },
    });
    expect(life.error).toBeNull();
    expect(eventsOf(life, 'device-gone')).toEqual([]);
    expect(life.lastReady).toEqual({ ready: true, reasons: [], codes: [], names: [] });
  });
});
