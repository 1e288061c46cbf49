/**
 * Excluded devices and sensors, with the complete program and a real InfluxDB: what is excluded is absent, everything
 * else is exact, and what is included again is filled. What is expected is the seed, filtered here by rules of the
 * test's own.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Sync, SyncOptions } from '../../src/app/open-sync.ts';
import { runOnce } from '../../src/commands/once/run.ts';
import { createFilter, type FilterSpec } from '../../src/core/filter.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { AlertSpec, SimDevice } from '../../src/sim/spec.ts';
import { KEEP_ALL } from '../support/defaults.ts';
import { onPath, onRequest } from '../support/faults.ts';
import { influxdAvailable, type Row } from '../support/influxd.ts';
import { NOW_MS, openBench, openRig, type Rig, type RigOptions } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { createWorld, type DeviceSpec } from '../support/trait-world.ts';

const HISTORY_MS = 3 * HOUR_MS;

const bench = sharedBench(openBench);

const HOME = { latitude: 52.517_037, longitude: 13.388_86, updatedAtMs: NOW_MS - DAY_MS };

const DEVICES: DeviceSpec[] = [
  {
    deviceId: 'd-hub',
    name: 'Hub',
    modelId: 'hub-2',
    tags: ['house', 'upper floor'],
    location: HOME,
    intervalMs: MINUTE_MS,
  },
  { deviceId: 'd-shed', name: 'Shed', modelId: 'sense-1', tags: ['garden'], location: HOME, intervalMs: 5 * MINUTE_MS },
  {
    deviceId: 'd-pump',
    name: 'Pump',
    modelId: 'sense-2',
    tags: ['garden'],
    intervalMs: 2 * MINUTE_MS,
    renames: [
      { atMs: NOW_MS + HOUR_MS, value: 'Spare pump' },
      { atMs: NOW_MS + 3 * HOUR_MS, value: 'Pump again' },
    ],
  },
];

const ALERTS: AlertSpec[] = DEVICES.flatMap(({ deviceId }, index) => [
  {
    alertId: 10 + index,
    deviceId,
    openedAtMs: NOW_MS - 2 * HOUR_MS + index * MINUTE_MS,
    changes: [{ atMs: NOW_MS - HOUR_MS, value: { status: 'resolved', fireCount: 1, value: 9.5 } }],
  },
  { alertId: 20 + index, deviceId, openedAtMs: NOW_MS - HOUR_MS + index * MINUTE_MS },
]);

async function rigOf(filter: Partial<FilterSpec>, changes: Partial<RigOptions> = {}): Promise<Rig> {
  const world = (originMs: number) =>
    createWorld({ seed: 11, originMs, historyMs: DAY_MS, devices: DEVICES, alerts: ALERTS });
  return await openRig(bench, { world, historyMs: HISTORY_MS, filter, ...changes });
}

/** The settings of a run with another filter. */
function under(rig: Rig, filter: Partial<FilterSpec>): Partial<SyncOptions> {
  return { settings: { ...rig.settings, filter: createFilter({ ...KEEP_ALL.spec, ...filter }) } };
}

/** The rules in another implementation: a glob as a regular expression. */
function fitsAny(globs: readonly string[], texts: readonly string[]): boolean {
  const patterns = globs.map(
    (glob) =>
      new RegExp(
        `^${glob
          .replace(/[.+^$(){}|[\]\\]/g, '\\$&')
          .replace(/\*/g, '.*')
          .replace(/\?/g, '.')}$`,
        'u',
      ),
  );
  return texts.some((text) => patterns.some((pattern) => pattern.test(text)));
}

function isLeftOut({ include = [], exclude = [] }: Partial<FilterSpec>, device: SimDevice): boolean {
  const texts = [device.deviceId, device.name, device.modelId, ...device.tags];
  return fitsAny(exclude, texts) || (include.length > 0 && !fitsAny(include, texts));
}

interface Expected {
  readonly filter: Partial<FilterSpec>;
  /** The expected part of the seed, in the server's milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** The seed's readings of a device, but for the sensors that are left out, as texts that identify points. */
function seedOf(rig: Rig, deviceId: string, { filter, fromMs, toMs }: Expected): string[] {
  const { excludeSensors = [] } = filter;
  const [from, to] = [BigInt(Math.floor(fromMs)) * 1_000_000n, BigInt(Math.floor(toMs)) * 1_000_000n];
  return [...rig.simulator.world.readings(deviceId, from, to)].flatMap(({ recordedAtNs, values }) =>
    (values ?? [])
      .filter(([sensor]) => !fitsAny(excludeSensors, [sensor]))
      .map(([sensor, json]) => `${deviceId} ${sensor} ${recordedAtNs} ${Number(json)}`),
  );
}

async function stored(rig: Rig, where = ''): Promise<string[]> {
  const rows = await bench.influxd.query(rig.database, `SELECT * FROM telemetry ${where}`);
  return rows.map((row) => `${row.device_id} ${row.sensor} ${row.time} ${row.value}`);
}

const rowsOf = async (rig: Rig, query: string): Promise<Row[]> => await bench.influxd.query(rig.database, query);

/** Everything of the span is there that the filter keeps, and nothing else of any time. */
async function expectExact(rig: Rig, expected: Expected): Promise<number> {
  const there = new Set(await stored(rig));
  const kept = rig.simulator.world
    .devices(rig.clock.nowMs())
    .filter((device) => !isLeftOut(expected.filter, device))
    .map(({ deviceId }) => deviceId);
  const wanted = kept.flatMap((deviceId) => seedOf(rig, deviceId, expected));
  const allowed = new Set(kept.flatMap((id) => seedOf(rig, id, { ...expected, fromMs: 0, toMs: rig.clock.nowMs() })));
  expect(wanted.filter((point) => !there.has(point)).slice(0, 5)).toEqual([]);
  expect([...there].filter((point) => !allowed.has(point)).slice(0, 5)).toEqual([]);
  return wanted.length;
}

const claimed = (nowMs: number) => ({ fromMs: nowMs - HISTORY_MS + 1000, toMs: nowMs - 2 * MINUTE_MS - 2500 });

async function states(rig: Rig): Promise<Record<string, unknown[]>> {
  const found: Record<string, unknown[]> = {};
  for (const { device_id, state } of await rowsOf(rig, 'SELECT * FROM coverage')) {
    const ofDevice = found[String(device_id)] ?? [];
    found[String(device_id)] = [...ofDevice, state];
  }
  return found;
}

async function idsIn(rig: Rig, measurement: string): Promise<string[]> {
  const rows = await rowsOf(rig, `SELECT * FROM ${measurement}`);
  return [...new Set(rows.map(({ device_id }) => String(device_id)))].sort();
}

const asked = (rig: Rig, deviceId: string): number =>
  rig.simulator.log.requests.filter(({ path }) => path.startsWith(`/devices/${deviceId}/`)).length;

/** Records events that a healthy service never causes. */
function oddEvents(): { odd: string[]; observe: SyncOptions['observe'] } {
  const kinds = ['page-rejected', 'restatement', 'gap-recorded', 'records-rejected', 'readings-late'];
  const odd: string[] = [];
  const observe: SyncOptions['observe'] = ({ type }) => {
    if (kinds.includes(type)) odd.push(type);
  };
  return { odd, observe };
}

/** One run that is inspected before it ends. */
async function lookAfterOnce<T>(rig: Rig, look: (sync: Sync) => T, changes: Partial<SyncOptions> = {}): Promise<T> {
  const sync = rig.open(changes);
  try {
    await runOnce(sync, new AbortController().signal);
    sync.fleet.request();
    return look(sync);
  } finally {
    sync.close();
  }
}

describe.runIf(influxdAvailable())('an excluded device', () => {
  test.each<[string, Partial<FilterSpec>, string[]]>([
    ['by its id', { exclude: ['d-shed'] }, ['d-hub', 'd-pump']],
    ['by a tag', { exclude: ['gard?n'] }, ['d-hub']],
    ['by its name', { exclude: ['S*'] }, ['d-hub', 'd-pump']],
    ['by its model', { include: ['hub-*', 'sense-2'] }, ['d-hub', 'd-pump']],
    ['over being included', { include: ['garden'], exclude: ['Pump'] }, ['d-shed']],
  ])('%s is never polled, has no points but its coverage, and is named', async (_how, filter, kept) => {
    using rig = await rigOf(filter);
    const { summary, events } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, devices: 3 });
    expect(await expectExact(rig, { filter, ...claimed(NOW_MS) })).toBeGreaterThan(100);
    expect(await idsIn(rig, 'device')).toEqual(kept);
    expect(await idsIn(rig, 'alert')).toEqual(kept);
    expect(await idsIn(rig, 'alert_state')).toEqual(kept);
    expect(await idsIn(rig, 'coverage_hour')).toEqual(kept);
    const out = DEVICES.map(({ deviceId }) => deviceId).filter((id) => !kept.includes(id));
    for (const deviceId of out) {
      expect(asked(rig, deviceId)).toBe(0);
      expect((await states(rig))[deviceId]).toEqual(['excluded']);
    }
    expect(summary.gaps.map(({ device_id, reason }) => [device_id, reason])).toEqual(
      out.sort().map((deviceId) => [deviceId, 'excluded']),
    );
    expect(events.filter(({ type }) => type === 'filter-matches-nothing')).toEqual([]);
  });

  test('is in the status with its reason, in no sum, and nothing waits for it', async () => {
    using rig = await rigOf({ exclude: ['d-shed'] });
    const { report, ready } = await lookAfterOnce(rig, (sync) => ({ report: sync.report(), ready: sync.ready() }));
    expect(ready).toEqual({ ready: true, reasons: [], codes: [], names: [] });
    expect(report.summary).toEqual(expect.stringMatching(/^In sync: all 2 devices are complete \(1 excluded\); /));
    expect(report.totals).toMatchObject({ devices: 2, devices_complete: 2 });
    expect(report.totals.covered_share).toBeGreaterThan(0.999);
    const shed = report.devices.find(({ device_id }) => device_id === 'd-shed');
    expect(shed).toMatchObject({ device_name: 'Shed', state: 'excluded', covered: [] });
    expect(shed?.gaps.map(({ reason }) => reason)).toEqual(['excluded']);
  });

  test('is no problem where it is all there is', async () => {
    using rig = await rigOf({ include: ['nothing', 'd-hubb'] });
    const look = await lookAfterOnce(rig, (sync) => ({ report: sync.report(), ready: sync.ready() }));
    expect(look.ready.ready).toBe(true);
    expect(look.report.summary).toBe('No device is synced: all 3 are excluded.');
    expect(await stored(rig)).toEqual([]);
  });

  test('is not used for the time either, where the service sends none', async () => {
    const filter = { exclude: ['d-hub', 'd-pump'] };
    using rig = await rigOf(filter, { settings: { time: { date: 'absent' } } });
    expect((await rig.once()).summary.exit_code).toBe(0);
    expect([asked(rig, 'd-hub'), asked(rig, 'd-pump')]).toEqual([0, 0]);
    expect(asked(rig, 'd-shed')).toBeGreaterThan(0);
    expect(
      await expectExact(rig, { filter, fromMs: NOW_MS - 2 * HOUR_MS, toMs: NOW_MS - 10 * MINUTE_MS }),
    ).toBeGreaterThan(10);
  });

  test('that is included again is filled, its alerts too; data of one that is excluded later stays', async () => {
    using rig = await rigOf({ exclude: ['d-shed'] }, { historyMs: 12 * HOUR_MS });
    await rig.once();
    await rig.clock.sleep(90 * MINUTE_MS);
    const { summary } = await rig.once(under(rig, {}));
    const second = rig.clock.nowMs();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [] });
    await expectExact(rig, { filter: {}, ...claimed(second) });
    expect(await idsIn(rig, 'device')).toEqual(['d-hub', 'd-pump', 'd-shed']);
    const facts = await rowsOf(rig, 'SELECT * FROM alert');
    expect(facts.map(({ alert_id }) => alert_id).sort()).toEqual(['10', '11', '12', '20', '21', '22']);
    const last = (await rowsOf(rig, "SELECT * FROM alert_state WHERE device_id = 'd-shed'")).map((row) => [
      row.alert_id,
      row.status,
      row.device_name,
    ]);
    expect(last.sort()).toEqual([
      ['11', 'resolved', 'Shed'],
      ['21', 'open', 'Shed'],
    ]);
    expect((await states(rig))['d-shed']?.at(-1)).toBe('live');

    const before = await stored(rig, "WHERE device_id = 'd-shed'");
    await rig.clock.sleep(HOUR_MS);
    expect((await rig.once(under(rig, { exclude: ['d-shed'] }))).summary).toMatchObject({ outcome: 'complete' });
    expect(await stored(rig, "WHERE device_id = 'd-shed'")).toEqual(before);
    expect((await states(rig))['d-shed']?.at(-1)).toBe('excluded');
    await rig.clock.sleep(HOUR_MS);
    await rig.once(under(rig, {}));
    await expectExact(rig, { filter: {}, fromMs: NOW_MS - HISTORY_MS + 1000, toMs: claimed(rig.clock.nowMs()).toMs });
  });

  test('that is included again gets all its alerts by one complete listing', async () => {
    const alerts: AlertSpec[] = Array.from({ length: 40 }, (_, index) => ({
      alertId: index + 1,
      deviceId: index < 10 ? 'd-shed' : 'd-hub',
      openedAtMs: NOW_MS - 3 * HOUR_MS + index * MINUTE_MS,
      changes: [{ atMs: NOW_MS - HOUR_MS, value: { status: 'resolved', fireCount: 1, value: 9.5 } }],
    }));
    const world = (originMs: number) =>
      createWorld({ seed: 11, originMs, historyMs: DAY_MS, devices: DEVICES, alerts });
    using rig = await rigOf({ exclude: ['d-shed'] }, { world, settings: { plan: { maxDevicesPerPage: 7 } } });
    const pages = (): number => rig.simulator.log.requests.filter(({ path }) => path === '/alerts').length;
    await rig.once();
    expect(await rowsOf(rig, 'SELECT * FROM alert')).toHaveLength(30);
    const read = pages();
    await rig.once();
    expect(pages() - read, 'the alerts of an excluded device are not listed again').toBe(1);
    await rig.once(under(rig, {}));
    expect(await rowsOf(rig, 'SELECT * FROM alert')).toHaveLength(40);
    expect(await rowsOf(rig, "SELECT * FROM alert_state WHERE device_id = 'd-shed'")).toHaveLength(10);
    const again = pages();
    await rig.once(under(rig, {}));
    expect(pages() - again).toBe(1);
  });

  test('by a new name is left alone from then on, and is back by the next one', async () => {
    const filter = { exclude: ['Spare*'] };
    using rig = await rigOf(filter, { historyMs: 12 * HOUR_MS });
    const first = await rig.once();
    expect(first.summary.gaps).toEqual([]);
    expect(first.events).toContainEqual({ type: 'filter-matches-nothing', key: 'sync.exclude', pattern: 'Spare*' });
    const before = await stored(rig, "WHERE device_id = 'd-pump'");
    expect(before.length).toBeGreaterThan(100);

    await rig.clock.sleep(2 * HOUR_MS);
    const requests = asked(rig, 'd-pump');
    const { summary } = await rig.once();
    expect(summary.gaps.map(({ device_id, reason }) => [device_id, reason])).toEqual([['d-pump', 'excluded']]);
    expect(await stored(rig, "WHERE device_id = 'd-pump'")).toEqual(before);
    expect(asked(rig, 'd-pump')).toBe(requests);

    await rig.clock.sleep(2 * HOUR_MS);
    expect((await rig.once()).summary.gaps).toEqual([]);
    await expectExact(rig, { filter, fromMs: NOW_MS - HISTORY_MS + 1000, toMs: claimed(rig.clock.nowMs()).toMs });
    const names = await rowsOf(rig, `SELECT * FROM telemetry WHERE device_id = 'd-pump'`);
    const heldFrom = (name: string): number =>
      Number(names.find(({ device_name }) => device_name === name)?.time ?? 0n) / 1e6;
    expect(heldFrom('Spare pump')).toBeGreaterThan(NOW_MS + 2 * HOUR_MS - 5 * MINUTE_MS);
    expect(heldFrom('Pump again') === 0 || heldFrom('Pump again') > NOW_MS + 4 * HOUR_MS - 5 * MINUTE_MS).toBe(true);
  });
});

describe.runIf(influxdAvailable())('an excluded sensor', () => {
  test('is not written; coverage, overlap readings and sums are as ever', async () => {
    const filter = { excludeSensors: ['temp*', 'battery_voltage'] };
    using rig = await rigOf(filter);
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ outcome: 'complete', exit_code: 0, gaps: [], rejected_records: 0 });
    expect(await expectExact(rig, { filter, ...claimed(NOW_MS) })).toBeGreaterThan(100);
    const hours = await rowsOf(rig, 'SELECT * FROM coverage_hour');
    expect(hours.length).toBeGreaterThan(0);
    for (const { device_id, time, readings } of hours) {
      const from = time as bigint;
      const there = [...rig.simulator.world.readings(String(device_id), from, from + 3_600_000_000_000n)];
      expect(readings).toBe(there.length);
    }
  });

  test('comes and goes with the list, each from then on, without a stir', async () => {
    using rig = await rigOf({ excludeSensors: ['temperature'] });
    await rig.once();
    const first = rig.clock.nowMs();
    const { odd, observe } = oddEvents();
    await rig.clock.sleep(HOUR_MS);
    await rig.once({ ...under(rig, {}), observe });
    const second = rig.clock.nowMs();
    await rig.clock.sleep(HOUR_MS);
    await rig.once({ ...under(rig, { excludeSensors: ['temperature'] }), observe });
    expect(odd).toEqual([]);
    const third = rig.clock.nowMs();
    const all = { fromMs: NOW_MS - HISTORY_MS + 1000, toMs: claimed(third).toMs };
    const there = await stored(rig);
    const others = new Set(there.filter((point) => !point.includes(' temperature ')));
    const rest = { filter: { excludeSensors: ['temperature'] }, ...all };
    for (const { deviceId } of DEVICES) {
      expect(seedOf(rig, deviceId, rest).filter((point) => !others.has(point))).toEqual([]);
      const between = seedOf(rig, deviceId, { filter: {}, fromMs: first, toMs: second - 3 * MINUTE_MS });
      expect(between.filter((point) => !there.includes(point))).toEqual([]);
    }
    const times = (await rowsOf(rig, "SELECT * FROM telemetry WHERE sensor = 'temperature'")).map(
      ({ time }) => Number(time as bigint) / 1e6,
    );
    expect(Math.max(...times)).toBeLessThan(second);
  });

  test('that was all a device had is not late when it is written again', async () => {
    using rig = await rigOf({ excludeSensors: ['*'] });
    expect((await rig.once()).summary).toMatchObject({ outcome: 'complete', gaps: [] });
    expect(await stored(rig)).toEqual([]);
    const { odd, observe } = oddEvents();
    await rig.clock.sleep(20 * MINUTE_MS);
    await rig.once({ ...under(rig, {}), observe });
    expect(odd).toEqual([]);
    expect((await stored(rig)).length).toBeGreaterThan(50);
    const hours = await rowsOf(rig, 'SELECT * FROM coverage_hour');
    expect(new Set(hours.map(({ readings }) => readings))).toEqual(new Set([0]));
  });

  test('that no device has is reported, once', async () => {
    using rig = await rigOf({ excludeSensors: ['temperature', 'temprature'], exclude: ['d-hubb', 'd-hub'] });
    const { events } = await rig.once();
    expect(events.filter(({ type }) => type === 'filter-matches-nothing')).toEqual([
      { type: 'filter-matches-nothing', key: 'sync.exclude', pattern: 'd-hubb' },
      { type: 'filter-matches-nothing', key: 'sync.exclude_sensors', pattern: 'temprature' },
    ]);
  });
});

describe.runIf(influxdAvailable())('a position', () => {
  /** Every byte of the state, as text. */
  const stateText = (rig: Rig): string =>
    readdirSync(rig.dataDir)
      .map((file) => readFileSync(join(rig.dataDir, file), 'latin1'))
      .join('');
  const positions = async (rig: Rig): Promise<Row[]> =>
    await rowsOf(rig, 'SELECT latitude, longitude, location_updated_at FROM device');
  const badRecord = onPath(
    /^\/devices$/,
    onRequest([2, 3], {
      kind: 'mangle',
      change: (page) => ({ ...page, records: [...page.records, `{"latitude":${HOME.latitude},"name":"no id"}`] }),
    }),
  );

  test('that is not kept is in no point and not in the state, not even of a record that could not be read', async () => {
    using rig = await rigOf({ includesLocation: false }, { faults: badRecord });
    const { summary } = await rig.once();
    expect(summary).toMatchObject({ exit_code: 0, rejected_records: 1 });
    expect(await positions(rig)).toEqual([]);
    expect(stateText(rig)).not.toContain('52.517');
    expect(await idsIn(rig, 'device')).toHaveLength(3);
  });

  test('is kept by default, and comes and goes from then on', async () => {
    using rig = await rigOf({}, { faults: badRecord });
    await rig.once();
    expect(stateText(rig)).toContain('52.517');
    const first = await positions(rig);
    expect(first).toHaveLength(2);
    await rig.clock.sleep(2 * MINUTE_MS);
    await rig.once(under(rig, { includesLocation: false }));
    expect(await positions(rig)).toEqual(first);
    await rig.clock.sleep(2 * MINUTE_MS);
    await rig.once(under(rig, {}));
    expect(await positions(rig)).toHaveLength(4);
  });
});

describe.runIf(influxdAvailable())('any filter', () => {
  test('keeps exactly the part of the seed that its rules select', async () => {
    const words = ['d-hub', 'd-*', 'Hub', 'S???', 'garden', '*p', 'sense-?', 'upper floor', 'x', '*'];
    const sensors = ['temperature', 'h*', '*_*', 'rssi', '?', 'te*re'];
    const some = (from: string[]) => fc.subarray(from, { maxLength: 2 });
    const filters = fc.record({ include: some(words), exclude: some(words), excludeSensors: some(sensors) });
    await fc.assert(
      fc.asyncProperty(filters, async (filter) => {
        using rig = await rigOf(filter);
        expect((await rig.once()).summary.exit_code).toBe(0);
        await expectExact(rig, { filter, ...claimed(NOW_MS) });
      }),
      { numRuns: 12 },
    );
  });
});
