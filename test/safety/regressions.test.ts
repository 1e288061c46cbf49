/**
 * Bugs found by random histories and by review, each as the shortest story that shows it.
 */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { SettingsOverrides } from '../../src/sim/settings.ts';
import { always, betweenTimes, onPath } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';

const bench = sharedBench(openBench);

interface Story {
  readonly devices: readonly DeviceSpec[];
  readonly historyMs: number;
  readonly settings?: SettingsOverrides;
  readonly concurrency?: number;
  readonly transportTimeoutMs?: number;
}

async function rigOf({ devices, ...rest }: Story): Promise<Rig> {
  return await openRig(bench, {
    world: (originMs) => createWorld({ seed: 5, originMs, historyMs: 8 * DAY_MS, devices, alerts: [] }),
    ...rest,
  });
}

const EVERY_MINUTE: DeviceSpec = { deviceId: 'often', intervalMs: MINUTE_MS };

/** Missing readings of a device in ranges that the program reports as covered. */
async function coveredFalsely(rig: Rig, deviceId: string): Promise<readonly bigint[]> {
  const { missingAt } = await rig.verdict(NOW_MS, { fromNs: 0n });
  const sync = rig.open();
  const { covered } = sync.context.store.telemetry(deviceId);
  sync.close();
  return missingAt
    .filter((place) => place.deviceId === deviceId && covered.some(({ from, to }) => from <= place.at && place.at < to))
    .map(({ at }) => at);
}

describe.runIf(influxdAvailable())('history as old as the plan', () => {
  test('that the service hides beyond the plan is not covered while it slips away', async () => {
    const settings: SettingsOverrides = {
      bounds: { age: 'empty' },
      plan: { historyMaxDays: 1 },
      time: { latencyMs: { min: 4 * MINUTE_MS, max: 4 * MINUTE_MS } },
    };
    using rig = await rigOf({ devices: [EVERY_MINUTE], settings, historyMs: DAY_MS, transportTimeoutMs: HOUR_MS });
    const { summary } = await rig.once();
    expect(summary.exit_code).toBe(0);
    expect(await coveredFalsely(rig, 'often')).toEqual([]);
  });

  test('that the service refuses to serve is named, without narrowing every window', async () => {
    using rig = await rigOf({
      devices: [EVERY_MINUTE],
      historyMs: 4 * DAY_MS,
      settings: { bounds: { age: 'rejected' }, plan: { historyMaxDays: 2 } },
    });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'gaps_remain', exit_code: 1 });
    expect(summary.gaps.map(({ reason }) => reason)).toEqual(['beyond_plan']);
    expect(await coveredFalsely(rig, 'often')).toEqual([]);
    // 2880 readings in pages of 200, one refusal, the account and the devices.
    expect(rig.simulator.log.total).toBeLessThan(40);
    const served = BigInt(NOW_MS - 2 * DAY_MS + 2 * MINUTE_MS) * 1_000_000n;
    expect((await rig.verdict(NOW_MS, { fromNs: served })).missing).toEqual([]);
  });

  test('that turns out to be served is requested of every device at once', async () => {
    // The new one has been seen last and comes first: its emptiness beyond the plan shows nothing yet.
    const young: DeviceSpec = { deviceId: 'a-young', intervalMs: 5 * SECOND_MS, appearsAtMs: NOW_MS - 10 * MINUTE_MS };
    using rig = await rigOf({
      devices: [young, EVERY_MINUTE],
      historyMs: 4 * DAY_MS,
      settings: { plan: { historyMaxDays: 1 } },
      concurrency: 1,
    });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
  });

  test('is opened again by a plan that has grown', async () => {
    using rig = await rigOf({
      devices: [EVERY_MINUTE],
      historyMs: 4 * DAY_MS,
      settings: { bounds: { age: 'empty' }, plan: { historyMaxDays: 2 } },
    });
    const first = await rig.once();
    expect(first.summary.exit_code).toBe(1);
    rig.simulator.settings.plan.historyMaxDays = 30;
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    expect(
      (await rig.verdict(NOW_MS, { fromNs: BigInt(NOW_MS - 4 * DAY_MS + MINUTE_MS) * 1_000_000n })).missing,
    ).toEqual([]);
  });
});

describe.runIf(influxdAvailable())('a service with habits of its own', () => {
  test('that sends no Date, with a key that may not read telemetry: the stream is named as not read', async () => {
    using rig = await rigOf({
      devices: [EVERY_MINUTE],
      historyMs: 3 * HOUR_MS,
      settings: { time: { date: 'absent' }, key: { scopes: ['devices:read', 'alerts:read', 'account:read'] } },
    });
    expect((await rig.once()).summary.streams_off).toContain('telemetry');
  });

  test('that sends no Date and always requires bounds is synced', async () => {
    using rig = await rigOf({
      devices: [EVERY_MINUTE],
      historyMs: 3 * HOUR_MS,
      settings: { time: { date: 'absent' }, bounds: { rejectedShapes: ['none', 'after', 'before'] } },
    });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    const toNs = BigInt(NOW_MS - 4 * MINUTE_MS) * 1_000_000n;
    const verdict = await rig.verdict(NOW_MS, { toNs });
    expect(verdict.missing).toEqual([]);
    expect(verdict.expected).toBeGreaterThan(100);
  });

  test('that sends no Date and answers emptily once does not count as one without readings', async () => {
    using rig = await rigOf({ devices: [EVERY_MINUTE], historyMs: HOUR_MS, settings: { time: { date: 'absent' } } });
    let lied = false;
    rig.simulator.faults = onPath(/telemetry/, () => {
      if (lied) return null;
      lied = true;
      return { kind: 'mangle', change: (page) => ({ ...page, records: [], nextCursor: null }) };
    });
    await rig.once();
    const verdict = await rig.verdict(NOW_MS, { toNs: BigInt(NOW_MS - 4 * MINUTE_MS) * 1_000_000n });
    expect(verdict.missing).toEqual([]);
    expect(verdict.expected).toBeGreaterThan(50);
  });

  test('that requires both bounds gets them for every device, also for those that were under way', async () => {
    const devices = ['a', 'b', 'c', 'd'].map((deviceId) => ({ ...EVERY_MINUTE, deviceId }));
    using rig = await rigOf({
      devices,
      historyMs: HOUR_MS,
      settings: { bounds: { rejectedShapes: ['after'] }, time: { latencyMs: { min: 200, max: 200 } } },
    });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    expect(events.filter(({ type }) => type === 'gap-recorded' || type === 'page-rejected')).toEqual([]);
  });

  test('that answers every cursor with the first page does not hold the program for ever', async () => {
    using rig = await rigOf({ devices: [{ ...EVERY_MINUTE, intervalMs: 10 }], historyMs: 5 * MINUTE_MS });
    let first: readonly string[] | null = null;
    rig.simulator.faults = onPath(
      /telemetry/,
      always({
        kind: 'mangle',
        change: (page) => {
          first ??= page.records;
          return { ...page, records: first, nextCursor: page.nextCursor };
        },
      }),
    );
    const { summary } = await rig.once();
    expect(summary.exit_code).toBe(3);
    expect(summary.gaps.map(({ reason }) => reason)).toContain('page_rejected');
    expect(rig.simulator.log.total).toBeLessThan(200);
  });

  test('that names a next page behind every empty one does not hold the program for ever', async () => {
    const devices = [{ ...EVERY_MINUTE, intervalMs: 10 * SECOND_MS }];
    using rig = await rigOf({ devices, historyMs: HOUR_MS, settings: { plan: { maxDevicesPerPage: 7 } } });
    const hollow = always({ kind: 'mangle', change: (page) => ({ ...page, records: [] }) });
    rig.simulator.faults = onPath(/telemetry/, hollow);
    const { summary } = await rig.once();
    expect(summary.exit_code).toBe(3);
    expect(summary.gaps.length).toBeGreaterThan(0);
    expect(rig.simulator.log.total).toBeLessThan(200);
  });
});

describe.runIf(influxdAvailable())('a device that is gone', () => {
  test('is named as that, whatever was wrong before, and not waited for', async () => {
    const gone: DeviceSpec = { ...EVERY_MINUTE, deviceId: 'gone', vanishesAtMs: NOW_MS + HOUR_MS };
    using rig = await rigOf({ devices: [EVERY_MINUTE, gone], historyMs: 3 * HOUR_MS });
    rig.simulator.faults = onPath(/gone.telemetry/, always({ kind: 'malformed' }));
    const first = await rig.once();
    expect(first.summary.exit_code).toBe(3);
    rig.simulator.faults = null;
    await rig.clock.sleep(HOUR_MS);
    await rig.once();
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    expect(summary.gaps.map(({ device_id, reason }) => [device_id, reason])).toEqual([['gone', 'device_gone']]);
  });
});

describe.runIf(influxdAvailable())('a run whose first pass is broken off', () => {
  test('keeps to the span that it began with', async () => {
    const devices = [EVERY_MINUTE, { ...EVERY_MINUTE, deviceId: 'b' }, { ...EVERY_MINUTE, deviceId: 'c' }];
    using rig = await rigOf({ devices, historyMs: 3 * HOUR_MS });
    const outage = betweenTimes(NOW_MS, NOW_MS + 8 * MINUTE_MS, { kind: 'server-error' });
    rig.simulator.faults = onPath(/telemetry/, outage);
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    const fromNs = BigInt(NOW_MS - 3 * HOUR_MS + 10 * SECOND_MS) * 1_000_000n;
    expect((await rig.verdict(NOW_MS, { fromNs })).missing).toEqual([]);
  });

  test('names its gaps when it ends like that', async () => {
    const devices = [EVERY_MINUTE, { ...EVERY_MINUTE, deviceId: 'b' }, { ...EVERY_MINUTE, deviceId: 'c' }];
    using rig = await rigOf({ devices, historyMs: 3 * HOUR_MS });
    rig.simulator.faults = onPath(/telemetry/, always({ kind: 'server-error' }));
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    expect(new Set(summary.gaps.map(({ device_id }) => device_id))).toEqual(new Set(['often', 'b', 'c']));
  });
});
