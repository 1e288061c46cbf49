/**
 * The daemon over hours and days of virtual time: on time, complete, and polite, whatever happens to it.
 */

import { describe, expect, test } from 'vitest';
import type { StatusReport } from '../../src/core/status.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { sensorsOf } from '../../src/sim/devices.ts';
import { configOf, reportOf } from '../commands/status/support.ts';
import { DEVICES, eventsOf, expectExact, keyFile, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { cron } from '../support/defaults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import type { DeviceSpec } from '../support/trait-world.ts';

describe.runIf(influxdAvailable())('the daemon', () => {
  const bench = sharedBench(openBench);

  /** The judge's cache is filled once. */
  const WORLD = worldOf(DEVICES);

  const rigOf = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
    await openRig(bench, { world: WORLD, historyMs: 2 * DAY_MS, ...options });

  test('sends the requests of its schedules, and polls the devices that have something new', async () => {
    const tied: DeviceSpec = { deviceId: 'tied', intervalMs: MINUTE_MS, traits: ['ties'] };
    using rig = await rigOf({ world: worldOf(DEVICES.with(1, tied)), historyMs: 6 * HOUR_MS });
    const { log } = rig.simulator;
    await liveAsDaemon(rig, { forMs: 5 * MINUTE_MS });
    const before = log.total;
    const startedMs = rig.clock.nowMs();
    await liveAsDaemon(rig, { forMs: 2 * HOUR_MS });
    const asked = log.requests.filter(({ number }) => number > before);
    const count = (path: RegExp): number => asked.filter((entry) => path.test(entry.path)).length;
    expect(rig.clock.nowMs() - startedMs).toBeGreaterThanOrEqual(2 * HOUR_MS);
    // One at the start, and one whenever it is due.
    expect(count(/\/account$/)).toBe(3);
    expect(count(/\/alerts$/)).toBe(61);
    // With quota to spare once a minute: one request lists all devices.
    expect(count(/\/devices$/)).toBeGreaterThanOrEqual(25);
    expect(count(/\/devices$/)).toBeLessThanOrEqual(124);
    const ofDevice = (deviceId: string): number => count(new RegExp(`/${deviceId}/telemetry$`));
    // Two that speak every minute or oftener, and one that does every 17 minutes.
    for (const deviceId of ['often', 'tied']) {
      expect(ofDevice(deviceId), deviceId).toBeGreaterThanOrEqual(100);
      expect(ofDevice(deviceId), deviceId).toBeLessThanOrEqual(124);
    }
    expect(ofDevice('seldom')).toBeGreaterThanOrEqual(7);
    expect(ofDevice('seldom')).toBeLessThanOrEqual(12);
  });

  test('delivers points of devices, alerts and coverage at once, also while no reading comes', async () => {
    using rig = await rigOf({ world: worldOf([{ deviceId: 'seldom', intervalMs: 5 * HOUR_MS }]) });
    let points = 0;
    let oldestMs = 0;
    await liveAsDaemon(rig, {
      meanwhile: async ({ report }) => {
        for (let look = 0; look < 400; look += 1) {
          await rig.clock.sleep(15 * SECOND_MS);
          const [{ oldest_pending_at: oldest = null, delivered_points: delivered = 0 } = {}] = report().destinations;
          if (oldest !== null) oldestMs = Math.max(oldestMs, rig.clock.nowMs() - Date.parse(oldest));
          points = delivered ?? points;
        }
      },
    });
    expect(points).toBeGreaterThan(10);
    expect(oldestMs).toBeLessThan(5 * SECOND_MS);
  });

  test('catches a missed tick up once, however many were missed', async () => {
    using rig = await rigOf({ transportTimeoutMs: 200 * SECOND_MS });
    await liveAsDaemon(rig, { forMs: 20 * MINUTE_MS });
    const before = rig.simulator.log.total;
    // Answers so slow that several ticks pass while one turn is under way.
    rig.simulator.settings.time.latencyMs = { min: 100 * SECOND_MS, max: 100 * SECOND_MS };
    await liveAsDaemon(rig, {
      forMs: 2 * HOUR_MS,
      changes: {
        api: {
          url: 'http://simulator.test/external/v1',
          key: () => rig.simulator.settings.key.secret,
          share: 0.8,
          concurrency: 1,
        },
      },
    });
    const entries = rig.simulator.log.requests.filter(({ number }) => number > before);
    // One request at a time: a hundred seconds each, and never a pause in between.
    expect(entries.length).toBeGreaterThan(50);
    expect(entries.length).toBeLessThanOrEqual(74);
  });

  test('turns off a stream whose scope is missing, reports it once, and resumes it', async () => {
    using rig = await rigOf();
    rig.simulator.settings.key.scopes = ['devices:read', 'telemetry:read', 'account:read'];
    const life = await liveAsDaemon(rig, {
      forMs: 2.25 * HOUR_MS,
      meanwhile: async () => {
        await rig.clock.sleep(HOUR_MS + 5 * MINUTE_MS);
        rig.simulator.settings.key.scopes.push('alerts:read');
      },
    });
    expect(eventsOf(life, 'stream-off')).toMatchObject([{ stream: 'alerts', scope: 'alerts:read' }]);
    expect(eventsOf(life, 'stream-on')).toMatchObject([{ stream: 'alerts' }]);
    expect(life.lastReport.streams.find(({ name }) => name === 'alerts')).toMatchObject({ state: 'on' });
    await expectExact(rig);
  });

  test('resumes a stream whose scope is missing within a minute of another key in its file', async () => {
    using rig = await rigOf();
    const { key } = rig.simulator.settings;
    const file = keyFile(key.secret);
    const scopes = [...key.scopes];
    key.scopes = scopes.filter((scope) => scope !== 'alerts:read');
    const alerts = (report: StatusReport) => report.streams.find(({ name }) => name === 'alerts')?.state;
    const states: unknown[] = [];
    const life = await liveAsDaemon(rig, {
      forMs: 30 * MINUTE_MS,
      changes: { api: { url: 'http://simulator.test/external/v1', key: file.inUse, share: 0.8, concurrency: 4 } },
      key: file,
      meanwhile: async ({ report }) => {
        await rig.clock.sleep(20 * MINUTE_MS);
        states.push(alerts(report()));
        key.secret = 'sim_the-key-with-all-scopes';
        key.scopes = scopes;
        file.write(key.secret);
        await rig.clock.sleep(MINUTE_MS);
        states.push(alerts(report()));
      },
    });
    expect([life.error, ...states]).toEqual([null, 'off', 'on']);
    expect(eventsOf(life, 'stream-off')).toMatchObject([{ stream: 'alerts', scope: 'alerts:read' }]);
    await expectExact(rig);
  });

  test('continues without the scope for telemetry while yesterday is to be read again', async () => {
    using rig = await rigOf();
    await liveAsDaemon(rig, { forMs: 20 * MINUTE_MS });
    await rig.clock.sleep(DAY_MS);
    rig.simulator.settings.key.scopes = ['devices:read', 'alerts:read', 'account:read'];
    const life = await liveAsDaemon(rig, { forMs: HOUR_MS });
    expect(life.error).toBeNull();
    expect(eventsOf(life, 'key-refused').slice(0, 1)).toEqual([]);
    expect(eventsOf(life, 'stream-off')).toMatchObject([{ stream: 'telemetry', scope: 'telemetry:read' }]);
    expect(life.lastReport.streams.find(({ name }) => name === 'alerts')).toMatchObject({ state: 'on' });
  });

  test('holds while the key is rejected, and continues with the one that its file has then', async () => {
    using rig = await rigOf();
    const { settings } = rig.simulator;
    const file = keyFile(settings.key.secret);
    const status = () => reportOf(configOf(rig), rig.clock);
    const changes = {
      api: { url: 'http://simulator.test/external/v1', key: file.inUse, share: 0.8, concurrency: 4 },
    };
    const seen: { requests: number; reasons: readonly string[]; status: StatusReport }[] = [];
    const life = await liveAsDaemon(rig, {
      forMs: 3.5 * HOUR_MS,
      changes,
      key: file,
      meanwhile: async ({ ready }) => {
        await rig.clock.sleep(HOUR_MS / 4);
        settings.key.secret = 'sim_the-second-key';
        const before = rig.simulator.log.total;
        await rig.clock.sleep(3 * HOUR_MS);
        seen.push({ requests: rig.simulator.log.total - before, reasons: ready().reasons, status: status() });
        file.write('sim_the-second-key');
        await rig.clock.sleep(2 * MINUTE_MS);
        seen.push({ requests: 0, reasons: ready().reasons, status: status() });
      },
    });
    expect(life.error).toBeNull();
    const [refused, renewed] = seen;
    // Looks now and then: a few in the first hour, four an hour after that.
    expect(refused?.requests).toBeGreaterThan(8);
    expect(refused?.requests).toBeLessThan(30);
    expect(refused?.reasons.join()).toMatch(/rejects the key/);
    expect(renewed?.reasons).toEqual([]);
    // A command beside the daemon reports it as well, problems first.
    expect(refused?.status).toMatchObject({
      summary: expect.stringMatching(/^The API cannot be read: the API rejects the key/),
      summary_problem: { code: 'key_refused' },
    });
    expect(refused?.status.streams.map(({ state }) => state)).toEqual(Array.from({ length: 4 }, () => 'failing'));
    expect(renewed?.status.summary_problem).toBeNull();
    expect(renewed?.status.streams.map(({ state }) => state)).not.toContain('failing');
    expect(eventsOf(life, 'key-changed')).toHaveLength(1);
    expect(eventsOf(life, 'key-accepted')).toEqual([{ type: 'key-accepted', isOther: true }]);
    await expectExact(rig);
  });

  test('a new key that is rejected is tried again within a minute, whatever the key before', async () => {
    using rig = await rigOf({ historyMs: HOUR_MS });
    const { settings } = rig.simulator;
    const file = keyFile(settings.key.secret);
    const life = await liveAsDaemon(rig, {
      forMs: 2 * HOUR_MS,
      changes: { api: { url: 'http://simulator.test/external/v1', key: file.inUse, share: 0.8, concurrency: 4 } },
      key: file,
      meanwhile: async () => {
        await rig.clock.sleep(HOUR_MS);
        file.write('sim_a-mistake');
        await rig.clock.sleep(HOUR_MS / 2);
        file.write('sim_another-mistake');
      },
    });
    const lines = life.events.filter(({ type }) => type === 'key-changed' || type === 'key-refused');
    const firsts = lines.flatMap((line, index) =>
      line.type === 'key-refused' && lines[index - 1]?.type === 'key-changed' ? [line.waitMs] : [],
    );
    expect(firsts).toHaveLength(2);
    expect(Math.max(...firsts)).toBeLessThanOrEqual(MINUTE_MS);
  });

  test('skips no turn of a schedule when the key is exchanged', async () => {
    using rig = await rigOf({ historyMs: HOUR_MS });
    const { settings, log } = rig.simulator;
    const file = keyFile(settings.key.secret);
    // The first session begins at 12:34:56, the second one an hour later.
    const life = await liveAsDaemon(rig, {
      forMs: 2.5 * HOUR_MS,
      changes: { api: { url: 'http://simulator.test/external/v1', key: file.inUse, share: 0.8, concurrency: 4 } },
      // The account is read every hour.
      schedules: { telemetry: cron('*/10 * * * *'), alerts: cron('*/10 * * * *'), devices: cron('*/10 * * * *') },
      key: file,
      meanwhile: async () => {
        await rig.clock.sleep(HOUR_MS);
        settings.key.secret = 'sim_the-second-key';
        file.write('sim_the-second-key');
      },
    });
    expect(life.error).toBeNull();
    const read = log.requests.filter(({ path, status }) => path.endsWith('/account') && status === 200);
    // The turn of this workspace is half a second before the end of the minute, and a request may wait as long for others.
    expect(read.map(({ atMs }) => new Date(atMs - SECOND_MS).toISOString().slice(11, 16))).toEqual([
      '12:34',
      '13:00',
      expect.stringMatching(/^13:3[45]$/),
      '14:00',
      '15:00',
    ]);
  });

  test('follows devices that appear, vanish, come back, are renamed, move, fall silent and retire', async () => {
    const at = (hours: number): number => NOW_MS + hours * HOUR_MS;
    const intervalMs = 3 * MINUTE_MS;
    const churn: DeviceSpec[] = [
      { deviceId: 'hub-a', intervalMs },
      { deviceId: 'late-comer', intervalMs, appearsAtMs: at(2) },
      { deviceId: 'leaver', intervalMs, vanishesAtMs: at(3) },
      { deviceId: 'returner', intervalMs, vanishesAtMs: at(2), returnsAtMs: at(5) },
      { deviceId: 'renamed', name: 'Old', intervalMs, renames: [{ atMs: at(3), value: 'New' }] },
      { deviceId: 'mover', intervalMs, parentDeviceId: 'hub-a', moves: [{ atMs: at(4), value: 'hub-b' }] },
      { deviceId: 'silent', intervalMs, silences: [{ fromMs: at(1), toMs: at(20) }] },
      { deviceId: 'retiree', intervalMs, lifecycle: [{ atMs: at(2), value: 'retired' }] },
    ];
    const measured = churn.map((device) => ({ ...device, sensors: sensorsOf(2) }));
    using rig = await rigOf({ world: worldOf(measured), historyMs: 6 * HOUR_MS });
    const schedules = { telemetry: cron('*/10 * * * *'), alerts: cron('0 * * * *'), devices: cron('*/10 * * * *') };
    const life = await liveAsDaemon(rig, { forMs: 7 * HOUR_MS, schedules });
    expect(life.error).toBeNull();
    const ids = (type: 'device-gone' | 'device-returned'): string[] =>
      eventsOf(life, type).map(({ deviceId }) => deviceId);
    expect(ids('device-gone').toSorted()).toEqual(['leaver', 'returner']);
    expect(ids('device-returned')).toEqual(['returner']);
    expect(eventsOf(life, 'device-appeared').map(({ deviceId }) => deviceId)).toContain('late-comer');
    expect(eventsOf(life, 'device-renamed')).toMatchObject([{ deviceId: 'renamed', before: 'Old', after: 'New' }]);
    const state = Object.fromEntries(life.lastReport.devices.map((device) => [device.device_id, device]));
    expect(state['leaver']?.state).toBe('unreachable');
    const query = async (influxql: string) => await bench.influxd.query(rig.database, influxql);
    const parents = await query("SELECT parent_device_id FROM device WHERE device_id = 'mover'");
    expect([...new Set(parents.map((row) => row.parent_device_id))]).toEqual(['hub-a', 'hub-b']);
    const cycles = await query("SELECT lifecycle_status FROM device WHERE device_id = 'retiree'");
    expect([...new Set(cycles.map((row) => row.lifecycle_status))]).toEqual(['active', 'retired']);
    const verdict = await rig.verdict(rig.clock.nowMs() - 15 * MINUTE_MS, {
      fromNs: BigInt(NOW_MS - 5 * HOUR_MS) * 1_000_000n,
    });
    // Data of a device that left is not available when the API itself does not show it any more.
    expect(verdict.missing.filter((point) => !/^(leaver|returner)/.test(point)).slice(0, 5)).toEqual([]);
    expect(verdict.missing.filter((point) => point.startsWith('returner')).slice(0, 5)).toEqual([]);
    expect(verdict.expected).toBeGreaterThan(2000);
  });

  test('keeps a schedule of seconds, and one that is not due for months does no harm', async () => {
    const devices = [{ deviceId: 'often', intervalMs: 20 * SECOND_MS, jitter: 0.5 }];
    using rig = await rigOf({ world: worldOf(devices), historyMs: HOUR_MS });
    await liveAsDaemon(rig, { forMs: 10 * MINUTE_MS });
    const before = rig.simulator.log.total;
    await liveAsDaemon(rig, {
      forMs: 10 * MINUTE_MS,
      schedules: { telemetry: cron('*/20 * * * * *'), devices: cron('0 0 1 10 *') },
    });
    const asked = rig.simulator.log.requests.filter(({ number }) => number > before);
    const often = asked.filter(({ path }) => path.endsWith('/often/telemetry')).length;
    expect(often).toBeGreaterThanOrEqual(24);
    expect(often).toBeLessThanOrEqual(33);
  });
});
