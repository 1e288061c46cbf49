/**
 * A device list that is empty, with 200, though there are devices: the account counts them. And one that has no end.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { eventLine } from '../../src/observe/event-table.ts';
import { DEVICES, eventsOf, expectExact, liveAsDaemon, worldOf } from '../support/daemon-rig.ts';
import { cron } from '../support/defaults.ts';
import { always, falselyEmpty, onPath } from '../support/faults.ts';
import type { Fault, FaultPlan } from '../support/faulty-simulator.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { transportOf } from '../support/sim-transport.ts';

const emptyAtFirst = (times: number): FaultPlan => {
  let left = times;
  return onPath(/\/devices$/, () => {
    left -= 1;
    return left >= 0 ? falselyEmpty : null;
  });
};

const FEW_ALERTS = { alerts: cron('0 * * * *') };

/** When the daemon has polled a device, by the log of the API. */
function pollsOf(rig: Rig, deviceId: string): readonly number[] {
  const path = `/devices/${deviceId}/telemetry`;
  return rig.simulator.log.requests.filter((request) => request.path === path).map(({ atMs }) => atMs);
}

/** The longest time from a moment up to now in which a device was not polled, in ms. */
function longestWithoutPoll(rig: Rig, deviceId: string, fromMs: number): number {
  const times = [fromMs, ...pollsOf(rig, deviceId).filter((atMs) => atMs > fromMs), rig.clock.nowMs()];
  return Math.max(...times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0)));
}

describe.runIf(influxdAvailable())('an empty device list', () => {
  const bench = sharedBench(openBench);
  /** The judge's cache is filled once. */
  const WORLD = worldOf(DEVICES);

  const rigOf = async (world = WORLD): Promise<Rig> => await openRig(bench, { world, historyMs: 2 * DAY_MS });

  const LISTS: readonly [string, Fault, RegExp][] = [
    ['empty', falselyEmpty, /no device is listed, though the account counts 3/],
    ['answered with 500', { kind: 'server-error' }, /the server failed/],
  ];

  test.each(LISTS)(
    'or one that is (%s) for hours, from the start of a daemon on, stops nothing else',
    async (_, fault, words) => {
      using rig = await rigOf();
      await liveAsDaemon(rig, { forMs: 20 * MINUTE_MS });
      rig.simulator.faults = onPath(/\/devices$/, always(fault));
      const fromMs = rig.clock.nowMs();
      const life = await liveAsDaemon(rig, { forMs: 2 * HOUR_MS });
      expect(eventsOf(life, 'device-gone')).toEqual([]);
      const failures = eventsOf(life, 'stream-failed');
      expect(new Set(failures.map(({ stream }) => stream))).toEqual(new Set(['devices']));
      expect(failures[0]?.message).toMatch(words);
      expect(life.lastReady.reasons.join()).toMatch(/stream devices/);
      const lags = new Map(life.lastReport.devices.map(({ device_id, lag_seconds }) => [device_id, lag_seconds]));
      for (const deviceId of ['often', 'tied']) expect(lags.get(deviceId), deviceId).toBeLessThan(300);
      expect(lags.get('seldom'), 'no list tells of it: it is looked for').toBeLessThan(40 * 60);
      const asked = (path: RegExp): number =>
        rig.simulator.log.requests.filter((request) => request.atMs >= fromMs && path.test(request.path)).length;
      expect(asked(/alerts$/), 'every two minutes').toBeGreaterThan(50);
      expect(asked(/devices$/), 'seldom').toBeLessThan(400);
      rig.simulator.faults = null;
      const after = await liveAsDaemon(rig, { forMs: 10 * MINUTE_MS });
      expect(after.lastReady).toMatchObject({ ready: true, reasons: [] });
      await expectExact(rig);
    },
  );

  test.each<[string, number, Fault]>([
    ['fails from the start of a second life on', 0, { kind: 'server-error' }],
    ['is not answered any more three minutes after its start', 3 * MINUTE_MS, { kind: 'hang' }],
  ])('or one that %s lets no device wait for its idle poll', async (_, afterMs, fault) => {
    // Devices whose rate is not known yet, and no other stream shows that the service answers.
    const devices = DEVICES.filter(({ deviceId }) => deviceId !== 'often');
    using rig = await rigOf(worldOf(devices));
    await liveAsDaemon(rig, { forMs: 5 * MINUTE_MS, schedules: FEW_ALERTS });
    const fromMs = rig.clock.nowMs();
    const fails = onPath(/\/devices$/, always(fault));
    rig.simulator.faults = (...asked) => (rig.clock.nowMs() - fromMs < afterMs ? null : fails(...asked));
    const forMs = HOUR_MS;
    await liveAsDaemon(rig, { forMs, schedules: FEW_ALERTS });
    for (const { deviceId, intervalMs = 0 } of devices) {
      // The first tries that time out, ten minutes until the list is out of date, and five until the next try of a
      // service that seems to be down.
      expect(longestWithoutPoll(rig, deviceId, fromMs), deviceId).toBeLessThan(25 * MINUTE_MS);
      const polls = pollsOf(rig, deviceId).filter((atMs) => atMs >= fromMs).length;
      expect(polls, `${deviceId}: a poll for each reading, and a few more`).toBeLessThan(forMs / intervalMs + 6);
    }
  });

  const OF_ONCE: typeof LISTS = [
    ...LISTS,
    ['never answered', { kind: 'hang' }, /GET \/devices: no answer/],
    ['not there', { kind: 'html', status: 404 }, /GET \/devices: /],
  ];

  test.each(OF_ONCE)(
    'or one that is (%s) leaves the known devices to --once, which reports it',
    async (_, fault, words) => {
      using rig = await rigOf();
      await rig.once();
      rig.simulator.faults = onPath(/\/devices$/, always(fault));
      await rig.clock.sleep(HOUR_MS);
      const startedMs = rig.clock.nowMs();
      const { summary, events } = await rig.once();
      expect(summary.exit_code).toBe(3);
      expect(eventsOf({ events }, 'stream-failed')[0]).toMatchObject({
        stream: 'devices',
        message: expect.stringMatching(words),
      });
      expect((await rig.verdict(startedMs, { fromNs: BigInt(NOW_MS - DAY_MS) * 1_000_000n })).missing).toEqual([]);
    },
  );

  test('without an end ends with a warning that names the bound, and leaves the known devices to --once', async () => {
    using rig = await rigOf();
    await rig.once();
    const transport = transportOf(rig.simulator);
    let pages = 0;
    /** Each page has two hundred devices and names a next one. */
    const endless: typeof transport = async (request, signal) => {
      const url = new URL(request.url);
      if (!url.pathname.endsWith('/devices')) return await transport(request, signal);
      pages += 1;
      url.searchParams.delete('cursor');
      const answer = await transport({ ...request, url: url.href }, signal);
      const { data } = JSON.parse(new TextDecoder().decode(answer.body));
      const devices = Array.from({ length: 200 }, (_, index) => ({
        ...data[0],
        device_id: `made up ${pages} ${index}`,
      }));
      return { ...answer, body: new TextEncoder().encode(JSON.stringify({ data: devices, next_cursor: `${pages}` })) };
    };
    await rig.clock.sleep(HOUR_MS);
    const startedMs = rig.clock.nowMs();
    const { summary, events } = await rig.once({ transport: endless });
    expect(summary.exit_code).toBe(3);
    const [warning] = eventsOf({ events }, 'stream-failed');
    if (warning === undefined) throw new Error('nothing is reported');
    // Ten times the three devices that the account counts, and a thousand.
    expect(eventLine(warning)).toMatchObject({
      level: 'warn',
      message: 'Stream devices failed: GET /devices: the list is too long: 1200 records, where the account counts 3',
    });
    expect(pages / eventsOf({ events }, 'stream-failed').length, 'pages of a listing').toBe(6);
    expect(eventsOf({ events }, 'device-appeared')).toEqual([]);
    expect((await rig.verdict(startedMs, { fromNs: BigInt(NOW_MS - DAY_MS) * 1_000_000n })).missing).toEqual([]);
  });

  test.each([1, 2])('%i times before a true one does not decide a first run', async (times) => {
    using rig = await rigOf();
    rig.simulator.faults = emptyAtFirst(times);
    const startedMs = rig.clock.nowMs();
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    expect((await rig.verdict(startedMs, { fromNs: BigInt(NOW_MS - DAY_MS) * 1_000_000n })).missing).toEqual([]);
  });

  test('of a workspace without devices is one request', async () => {
    using rig = await rigOf(worldOf([]));
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    expect(rig.simulator.log.requests.filter(({ path }) => path.endsWith('/devices'))).toHaveLength(1);
  });

  test('is compared with the devices themselves where nothing counts them', async () => {
    using rig = await rigOf();
    rig.simulator.settings.key.scopes = rig.simulator.settings.key.scopes.filter((scope) => scope !== 'account:read');
    await liveAsDaemon(rig, { forMs: 5 * MINUTE_MS });
    rig.simulator.faults = onPath(/\/devices$/, always(falselyEmpty));
    const life = await liveAsDaemon(rig, { forMs: HOUR_MS });
    expect(eventsOf(life, 'device-gone')).toEqual([]);
    expect(eventsOf(life, 'stream-failed')[0]?.message).toMatch(/no device is listed, though device \w+ answers/);
    expect(life.lastReport.devices.find(({ device_id }) => device_id === 'often')?.lag_seconds).toBeLessThan(300);
  });

  test('is true where no account counts the devices and none of them answers any more', async () => {
    const vanishesAtMs = NOW_MS + HOUR_MS / 4;
    using rig = await rigOf(worldOf(DEVICES.map((device) => ({ ...device, vanishesAtMs }))));
    rig.simulator.settings.key.scopes = rig.simulator.settings.key.scopes.filter((scope) => scope !== 'account:read');
    const life = await liveAsDaemon(rig, { forMs: 1.25 * HOUR_MS });
    expect(life.lastReport.devices.map(({ state }) => state)).not.toContain('live');
    expect(life.lastReady.reasons).toEqual([]);
  });

  test('is true where the account counts none any more: all are gone after two', async () => {
    const vanishesAtMs = NOW_MS + HOUR_MS / 4;
    using rig = await rigOf(worldOf(DEVICES.map((device) => ({ ...device, vanishesAtMs }))));
    const life = await liveAsDaemon(rig, { forMs: 2.25 * HOUR_MS });
    expect(eventsOf(life, 'device-gone')).toHaveLength(3);
    expect(life.lastReport.devices.map(({ state }) => state)).not.toContain('live');
  });
});
