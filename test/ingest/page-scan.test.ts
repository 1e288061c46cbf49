/**
 * Answers that are odd, rejected or false, with the complete program: every available reading is stored, only stored
 * ranges are covered, and each gap has a name.
 */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import type { SimPage } from '../../src/sim/answers.ts';
import type { World } from '../../src/sim/world.ts';
import { always, anyOf, falselyEmpty, onPath, upsideDown } from '../support/faults.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';

const bench = sharedBench(openBench);

const WALK: DeviceSpec = { deviceId: 'walk', intervalMs: 20 * SECOND_MS, jitter: 0.5 };
const CALM: DeviceSpec = { deviceId: 'calm', intervalMs: 5 * MINUTE_MS };
/** For days of history: pages enough of it, and no more. */
const LONG: readonly DeviceSpec[] = [{ ...WALK, intervalMs: 5 * MINUTE_MS }, CALM];

function worldOf(devices: readonly DeviceSpec[], historyMs = 10 * HOUR_MS): (nowMs: number) => World {
  return (originMs) => createWorld({ seed: 4, originMs, historyMs, devices });
}

async function rigOf(changes: Partial<RigOptions> = {}): Promise<Rig> {
  return await openRig(bench, { world: worldOf([WALK, CALM]), historyMs: 5 * HOUR_MS, ...changes });
}

const eventsOf = (events: readonly AppEvent[], type: AppEvent['type']): AppEvent[] =>
  events.filter((event) => event.type === type);

const telemetryOf = (deviceId: string): RegExp => new RegExp(`/devices/${deviceId}/telemetry`);

describe.runIf(influxdAvailable())('a pull', () => {
  test('requests no more than the pages that the readings fill', async () => {
    using rig = await rigOf({ world: worldOf([WALK]) });
    await rig.once();
    const readings = [
      ...rig.simulator.world.readings('walk', BigInt(NOW_MS - 5 * HOUR_MS) * 1_000_000n, BigInt(NOW_MS) * 1_000_000n),
    ];
    const pages = rig.simulator.log.requests.filter(({ path }) => path.endsWith('/telemetry')).length;
    expect(readings.length).toBeGreaterThan(800);
    expect(pages).toBeLessThanOrEqual(Math.ceil(readings.length / 196) + 2);
  });

  test('reports a device that disappears during a scan, keeps its pages, and completes the others', async () => {
    const leaving = { ...WALK, deviceId: 'leaving', intervalMs: 5 * SECOND_MS, vanishesAtMs: NOW_MS + 4 * SECOND_MS };
    using rig = await rigOf({ world: worldOf([leaving, CALM]), concurrency: 1 });
    const { summary, events } = await rig.once();
    expect(eventsOf(events, 'device-gone')).toMatchObject([{ deviceId: 'leaving' }]);
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    expect(summary.gaps.map(({ device_id, reason }) => [device_id, reason])).toEqual([['leaving', 'device_gone']]);
    const verdict = await rig.verdict(NOW_MS);
    expect([verdict.missing, verdict.invented.filter((text) => !text.startsWith('leaving'))]).toEqual([[], []]);
    const kept = await bench.influxd.query(
      rig.database,
      "SELECT count(value) FROM telemetry WHERE device_id = 'leaving'",
    );
    expect(Number(kept[0]?.count)).toBeGreaterThan(100);
  });

  test('names a gap for a page that stays out of order, and closes it when the page is right', async () => {
    using rig = await rigOf();
    const shuffle = (page: SimPage): SimPage =>
      page.nextCursor === null ? page : { ...page, records: page.records.toReversed() };
    rig.simulator.faults = onPath(telemetryOf('walk'), () => ({ kind: 'mangle', change: shuffle }));
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    expect(summary.gaps).not.toEqual([]);
    expect(new Set(summary.gaps.map(({ device_id, reason }) => `${device_id}: ${reason}`))).toEqual(
      new Set(['walk: page_rejected']),
    );
    expect(eventsOf(events, 'page-rejected').length).toBeGreaterThanOrEqual(3);
    const kept = await bench.influxd.query(rig.database, "SELECT count(value) FROM telemetry WHERE device_id = 'walk'");
    expect(Number(kept[0]?.count)).toBeGreaterThan(100);
    rig.simulator.faults = null;
    await rig.clock.sleep(10 * MINUTE_MS);
    const startedMs = rig.clock.nowMs();
    expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    const verdict = await rig.verdict(startedMs);
    expect([verdict.missing, verdict.invented]).toEqual([[], []]);
  });

  test('accepts no empty answers about a range of which readings are archived, whatever others have', async () => {
    using rig = await rigOf();
    const some = (page: SimPage): SimPage => ({ ...page, records: page.records.slice(0, 9).toReversed() });
    let answers = 0;
    rig.simulator.faults = onPath(telemetryOf('calm'), () => {
      answers += 1;
      return answers === 1 ? { kind: 'mangle', change: some } : falselyEmpty;
    });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    expect(summary.gaps).toMatchObject([{ device_id: 'calm', reason: 'unverified' }]);
  });

  test('does not use a page that is rejected as a control of empty answers about another device', async () => {
    using rig = await rigOf();
    rig.simulator.faults = anyOf(
      onPath(telemetryOf('calm'), always(falselyEmpty)),
      onPath(telemetryOf('walk'), always(upsideDown)),
    );
    const { summary } = await rig.once();
    expect(summary.gaps.map(({ device_id, reason }) => `${device_id}: ${reason}`)).toContain('calm: unverified');
  });

  test('names the end of its requests where a page without one stops short of the last sign of life', async () => {
    const silences = [{ fromMs: NOW_MS - 10 * MINUTE_MS, toMs: NOW_MS + DAY_MS }];
    using rig = await rigOf({ world: worldOf([{ ...WALK, silences }, CALM]) });
    const cut = (page: SimPage): SimPage => ({ ...page, records: page.records.slice(50) });
    rig.simulator.faults = onPath(telemetryOf('walk'), (_, { query }) =>
      query.has('before') ? null : { kind: 'mangle', change: cut },
    );
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    expect(eventsOf(events, 'page-rejected'), 'one page was enough').toHaveLength(1);
    expect((await rig.verdict(NOW_MS)).missing).toEqual([]);
  });

  test('uses no reading from a page of another device', async () => {
    using rig = await rigOf();
    let lies = 0;
    rig.simulator.faults = onPath(telemetryOf('calm'), () => {
      lies += 1;
      return lies <= 2 ? { kind: 'mangle', change: (page) => ({ ...page, deviceId: 'walk' }) } : null;
    });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    expect(eventsOf(events, 'page-rejected')).toHaveLength(2);
    const verdict = await rig.verdict(NOW_MS);
    expect([verdict.missing, verdict.invented]).toEqual([[], []]);
  });

  test('survives a server that ignores the bounds for a while', async () => {
    using rig = await rigOf();
    let lies = 0;
    rig.simulator.faults = onPath(telemetryOf('walk'), () => {
      lies += 1;
      if (lies !== 2) return null;
      const change = (page: SimPage): SimPage => {
        const first = '{"recorded_at":"2026-06-15T12:34:50.000Z","values":{"temperature":1}}';
        return { ...page, records: [first, ...page.records] };
      };
      return { kind: 'mangle', change };
    });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    expect((await rig.verdict(NOW_MS)).missing).toEqual([]);
  });

  test('accepts after three tries that a reading is gone, reports it and continues', async () => {
    using rig = await rigOf();
    await rig.once();
    await rig.clock.sleep(HOUR_MS);
    // The service withdraws the newest reading of the first run.
    const cutMs = BigInt(NOW_MS - 30 * MINUTE_MS) * 1_000_000n;
    rig.hides = (deviceId, reading) =>
      deviceId === 'walk' && reading.recordedAtNs > cutMs && reading.recordedAtNs < BigInt(NOW_MS) * 1_000_000n;
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0 });
    expect(eventsOf(events, 'restatement')).toMatchObject([{ deviceId: 'walk' }]);
  });

  test('follows a plan that allows less than the account reports', async () => {
    using rig = await rigOf({ world: worldOf(LONG, 12 * DAY_MS), historyMs: 10 * DAY_MS });
    let asked = 0;
    rig.simulator.settings.plan.historyMaxDays = 30;
    rig.simulator.faults = onPath(/telemetry/, () => {
      asked += 1;
      if (asked === 1) rig.simulator.settings.plan.historyMaxDays = 3;
      return null;
    });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    const verdict = await rig.verdict(NOW_MS);
    expect([verdict.missing, verdict.invented]).toEqual([[], []]);
  });

  test('calls nothing "no data" that the plan may hide: the gap is named, and the end is 1', async () => {
    using rig = await rigOf({
      world: worldOf(LONG, 12 * DAY_MS),
      historyMs: 10 * DAY_MS,
      settings: { bounds: { age: 'empty' }, plan: { historyMaxDays: 3 } },
    });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'gaps_remain', exit_code: 1 });
    expect(new Set(summary.gaps.map(({ reason }) => reason))).toEqual(new Set(['beyond_plan']));
    for (const { to } of summary.gaps) expect(Date.parse(to)).toBeLessThan(NOW_MS - 3 * DAY_MS + 10 * MINUTE_MS);
    const fromNs = BigInt(NOW_MS - 3 * DAY_MS + 30 * MINUTE_MS) * 1_000_000n;
    const verdict = await rig.verdict(NOW_MS, { fromNs });
    expect([verdict.missing, verdict.invented]).toEqual([[], []]);
  });

  test('closes old windows of a silent device once it has seen that the plan does not hide them', async () => {
    const silent: DeviceSpec = { deviceId: 'silent', appearsAtMs: NOW_MS - 20 * DAY_MS, intervalMs: 100 * DAY_MS };
    using rig = await rigOf({
      world: worldOf([CALM, silent], 12 * DAY_MS),
      historyMs: 10 * DAY_MS,
      concurrency: 1,
      settings: { plan: { historyMaxDays: 3 } },
    });
    expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
  });

  test('keeps no workspace incomplete for a hub that is seen all the time and never reports', async () => {
    using rig = await rigOf({ world: worldOf([CALM, { deviceId: 'hub', readings: [] }]) });
    let listed = 0;
    const seen = (record: string): string => {
      listed += 1;
      return JSON.stringify({ ...JSON.parse(record), last_seen_at: new Date(rig.clock.nowMs() - 1000).toISOString() });
    };
    const isHub = (record: string): boolean => record.includes('"hub"');
    rig.simulator.faults = onPath(/\/devices$/, () => ({
      kind: 'mangle',
      change: (page) => ({ ...page, records: page.records.map((record) => (isHub(record) ? seen(record) : record)) }),
    }));
    for (let day = 0; day < 3; day += 1) {
      const before = rig.simulator.log.requests.length;
      expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
      const asked = rig.simulator.log.requests.slice(before).filter(({ path }) => path.includes('/hub/'));
      expect(asked.length, `requests about it on day ${day}`).toBeLessThanOrEqual(4);
      await rig.clock.sleep(DAY_MS);
    }
    expect(listed).toBeGreaterThanOrEqual(3);
  });

  test('covers nothing and ends with 3 if a service sends no Date and only empty pages', async () => {
    using rig = await rigOf({ settings: { time: { date: 'absent' } } });
    rig.simulator.faults = onPath(
      /telemetry/,
      always({ kind: 'mangle', change: (page) => ({ ...page, records: [], nextCursor: null }) }),
    );
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    expect(new Set(summary.gaps.map(({ device_id, reason }) => `${device_id}: ${reason}`))).toEqual(
      new Set(['walk: unverified', 'calm: unverified']),
    );
    // Nothing that it could wait for would change that: it does not wait for ten minutes.
    expect(rig.clock.nowMs() - NOW_MS).toBeLessThan(2 * MINUTE_MS);
  });

  test('continues without telemetry where the key does not have the scope, and reports it', async () => {
    using rig = await rigOf({ settings: { key: { scopes: ['devices:read', 'account:read', 'alerts:read'] } } });
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, streams_off: ['telemetry'] });
    expect(eventsOf(events, 'stream-off')).toMatchObject([{ stream: 'telemetry', scope: 'telemetry:read' }]);
  });

  test('continues without the account, under the tag "default"', async () => {
    using rig = await rigOf({ settings: { key: { scopes: ['devices:read', 'telemetry:read', 'alerts:read'] } } });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({
      outcome: 'complete',
      exit_code: 0,
      workspace_id: 'default',
      streams_off: ['account'],
    });
    const rows = await bench.influxd.query(rig.database, 'SHOW TAG VALUES FROM telemetry WITH KEY = workspace_id');
    expect(rows.map(({ value }) => value)).toEqual(['default']);
    const verdict = await rig.verdict(NOW_MS);
    expect([verdict.missing, verdict.invented]).toEqual([[], []]);
  });

  test('writes devices, the workspace and coverage as in the schema', async () => {
    using rig = await rigOf();
    await rig.once();
    const query = async (text: string) => await bench.influxd.query(rig.database, text);
    const devices = await query('SELECT * FROM device');
    expect(devices.map(({ device_id }) => device_id).sort()).toEqual(['calm', 'walk']);
    expect(await query('SELECT * FROM workspace')).toMatchObject([{ workspace_id: 'ws-simulated', devices: 2 }]);
    expect((await query('SELECT * FROM coverage')).map(({ state }) => state)).toEqual(['live', 'live']);
    const hours = await query("SELECT * FROM coverage_hour WHERE device_id = 'calm'");
    // A wanted range of five hours that begins and ends in the middle of one: four complete ones, twelve readings each.
    expect(hours).toHaveLength(4);
    const counts = hours.map(({ readings }) => Number(readings));
    for (const count of counts) expect(count).toBeGreaterThanOrEqual(11);
    const seed = [
      ...rig.simulator.world.readings(
        'calm',
        BigInt(String(hours[0]?.time)),
        BigInt(String(hours[3]?.time)) + 3_600_000_000_000n,
      ),
    ];
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(seed.length);
  });

  test('ends with 3 after ten minutes in which the service cannot be reached', async () => {
    using rig = await rigOf();
    rig.simulator.faults = always({ kind: 'reset', when: 'before-headers' });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'stalled', exit_code: 3 });
    expect(rig.clock.nowMs() - NOW_MS).toBeLessThan(20 * MINUTE_MS);
  });

  test('writes the rest of the quota by the plan that was just read', async () => {
    using rig = await rigOf();
    await rig.once();
    const [point] = await bench.influxd.query(rig.database, 'SELECT * FROM workspace');
    const { requestsPerMinute, requestsPerDay } = rig.simulator.settings.plan;
    expect(Number(point?.requests_left_minute)).toBeGreaterThanOrEqual(requestsPerMinute - 3);
    expect(Number(point?.requests_left_day)).toBeGreaterThanOrEqual(requestsPerDay - 3);
  });
});
