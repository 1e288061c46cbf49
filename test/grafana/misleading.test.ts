/**
 * Cases that would mislead an owner, against a real InfluxDB: devices that are gone, left out, paused, renamed or of
 * one name, ids that tags alter, ranges that are shorter than a step or no whole number of them.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { coverageLine, deviceLine } from '../../src/core/lines/fact-lines.ts';
import type { DeviceRecord } from '../../src/core/records.ts';
import type { DeviceState } from '../../src/core/status.ts';
import { HOUR_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import { BARE_DEVICE } from '../core/support/readings.ts';
import { type Influxd, influxdAvailable, startInfluxd } from '../support/influxd.ts';
import { board, panelOf } from './support/asked.ts';
import type { Frame } from './support/frames.ts';
import { pictureOf } from './support/grafana.ts';
import { replaceMacros } from './support/replacement.ts';
import { column } from './support/shapes.ts';
import { reader } from './support/story.ts';
import { type Choose, openBoard, probeInflux } from './support/viewer.ts';

const NOW_MS = Date.UTC(2026, 5, 15, 12);
const ODD_HUB = 'hub\\1';

function record(deviceId: string, name: string, facts: Partial<DeviceRecord> = {}): DeviceRecord {
  const usual = { modelId: 'sense', isAddon: false, lifecycleStatus: 'active', online: true };
  return { ...BARE_DEVICE, deviceId, name, ...usual, ...facts };
}

/** States of a device, at a minute of each hour, from so many hours ago on, to so many. */
function states(of: DeviceRecord, fromHours: number, toHours = 0, minute = 10): string[] {
  return Array.from({ length: fromHours - toHours }, (_, index) =>
    deviceLine(of, 'w', NOW_MS - (toHours + index + 1) * HOUR_MS + minute * MINUTE_MS),
  );
}

/**
 * The report about a device five minutes ago.
 *
 * @param lagMs how old its watermark is now; `null` where it has none.
 */
function coverage(
  deviceId: string,
  state: DeviceState,
  lagMs: number | null,
  lifecycleStatus: string | null = null,
): string {
  const atNs = msToNs(NOW_MS - 5 * MINUTE_MS);
  const watermarkNs = lagMs === null ? null : msToNs(NOW_MS - lagMs);
  const facts = {
    deviceId,
    deviceName: deviceId,
    state,
    lagSeconds: 0,
    gapSeconds: 0,
    lifecycleStatus,
    watermarkNs,
    atNs,
  };
  return coverageLine(facts, 'w');
}

function reading(
  deviceId: string,
  name: string,
  [value, hoursAgo]: readonly [value: number, hoursAgo: number],
): string {
  return `telemetry,device_id=${deviceId},device_name=${name},sensor=t,workspace_id=w value=${value} ${NOW_MS - hoursAgo * HOUR_MS}000000`;
}

const COVERED = {
  deviceId: 'other',
  deviceName: 'other',
  state: 'live',
  lagSeconds: 0,
  gapSeconds: 0,
  lifecycleStatus: null,
  watermarkNs: null,
} as const;

/** Devices that measure 1, 2, 3 and so on. */
const MANY = Array.from({ length: 14 }, (_, index) => `many-${index + 10}`);

const LINES = [
  ...states(record('here', 'Here'), 24),
  ...states(record('gone', 'Gone'), 24, 20),
  ...states(record('paused', 'Paused', { online: false }), 24, 1),
  ...states(record('paused', 'Paused', { online: false, lifecycleStatus: 'paused' }), 1),
  ...states(record('silent', 'Silent', { online: false }), 24, 0, 40),
  ...states(record(ODD_HUB, 'Odd hub', { online: null, presence: 'none' }), 24),
  ...states(record('below', 'Below', { online: null, presence: 'none', isAddon: true, parentDeviceId: ODD_HUB }), 24),
  ...['new', 'Twin', 'Twin'].flatMap((name, index) => states(record('abc'.charAt(index), name, { online: null }), 24)),
  ...Array.from({ length: 48 }, (_, index) =>
    coverageLine({ ...COVERED, atNs: msToNs(NOW_MS - (4 + index) * HOUR_MS) }, 'stopped'),
  ),
  ...Array.from({ length: 8 }, (_, index) => coverage(`live-${index}`, 'live', 6 * MINUTE_MS)),
  ...states(record('renamed', 'Before', { online: null }), 24, 6),
  ...states(record('renamed', 'After', { online: null }), 6),
  coverage('here', 'catching-up', null),
  coverage('gone', 'unreachable', null),
  coverage('silent', 'silent', 6 * MINUTE_MS),
  coverage('below', 'live', 6 * MINUTE_MS),
  coverage(ODD_HUB, 'live', 6 * MINUTE_MS),
  coverage('paused', 'silent', 6 * MINUTE_MS, 'paused'),
  coverage('left-out', 'excluded', null),
  coverage('left', 'unreachable', 20 * 24 * HOUR_MS),
  ...['d', 'e', 'often'].flatMap((id) => states(record(id, id, { online: null, lastSeenAt: msToNs(NOW_MS) }), 24)),
  ...['d', 'e'].map((id) => reading(id, id, [10, 1]).replace('sensor=t', 'sensor=usual')),
  ...Array.from({ length: 50 }, (_, index) =>
    reading('often', 'often', [99, 1 - index / 500]).replace('sensor=t', 'sensor=usual'),
  ),
  ...MANY.flatMap((id) => states(record(id, id, { online: null, lastSeenAt: msToNs(NOW_MS) }), 24)),
  ...MANY.map((id, index) => reading(id, id, [index + 1, 1]).replace('sensor=t', 'sensor=volt')),
  ...states(record('dead', 'Dead', { online: null }), 24),
  reading('dead', 'Dead', [99, 12]),
  reading('a', 'old', [90, 12]),
  reading('a', 'new', [5, 1]),
  reading('b', 'Twin', [7, 1]),
  reading('c', 'Twin', [9, 1]),
];

describe.runIf(influxdAvailable())('misleading cases', () => {
  let influxd: Influxd;
  const place = () => ({ url: influxd.url, database: 'tidemark' });
  beforeAll(async () => {
    influxd = await startInfluxd();
    expect(await influxd.write('tidemark', LINES.join('\n'))).toBe(204);
  });
  afterAll(async () => await influxd[Symbol.asyncDispose]());

  const look = async (
    [uid, title]: readonly [string, string],
    rangeMs = 24 * HOUR_MS,
    choose: Choose = () => undefined,
  ) => {
    const range = { fromMs: NOW_MS - rangeMs, toMs: NOW_MS };
    return await (await openBoard(board(uid), { place: place(), range, choose })).look(panelOf(uid, title));
  };

  test('a device that is gone is not online', async () => {
    const read = reader({ place: place(), toMs: NOW_MS });
    const states = await read.numbers('fleet', 'Devices by state');
    expect(states).toEqual([
      'all: 16, text',
      'live: 10, green',
      'catching up: 1, blue',
      'silent: 1, orange',
      'unreachable: 2, red',
      'excluded: 1, text',
      'out of service: 1, text',
    ]);
    // The numbers add up, and bars have the same colours.
    const bars = await read.numbers('workspace', 'Devices by state of sync');
    expect(bars.map((bar) => bar.replace('all: 16, blue', 'all: 16, text'))).toEqual(states);
    // One that is silent is not late: it has a number of its own, without the paused one.
    for (const uid of ['fleet', 'start']) expect(await read.numbers(uid, 'Silent')).toEqual(['Silent: 1, orange']);
    // Each that is silent has a row, also the paused one.
    const silent = await read.table('fleet', 'Silent or out of service');
    expect(silent.map(({ Name, Lifecycle }) => `${Name}: ${Lifecycle}`)).toEqual([
      'Silent: active, green',
      'Paused: paused, blue',
    ]);
    // The same rule in the list of all: a paused one is not silent.
    const all = await read.table('fleet', 'Devices');
    const lagOf = (name: string) => all.find(({ Name }) => Name === name)?.['Lag'];
    expect([lagOf('Silent'), lagOf('Paused')]).toEqual(['silent, orange', 'out of service, text']);
    const attention = await read.table('start', 'Devices that need attention');
    const names = attention.map(({ Name }) => Name);
    expect([names.includes('Silent'), names.includes('Paused')], 'a paused one needs no attention').toEqual([
      true,
      false,
    ]);
  });

  test.each([5 * MINUTE_MS, 3 * HOUR_MS, 10.5 * HOUR_MS])(
    'online over time has all devices in each step of %d ms',
    async (ms) => {
      const online = ['fleet', 'Online over time'] as const;
      const { fields } = await pictureOf(panelOf(...online), await look(online, ms));
      const [times, values] = fields.map(({ cells }) => cells.map(({ value }) => value));
      // The shown step, and the one before it.
      const shown = (values ?? []).filter((_, index) => Number(times?.[index]) >= NOW_MS - ms - 2 * HOUR_MS);
      expect(shown.length).toBeGreaterThan(0);
      expect(new Set(shown)).toEqual(new Set([1]));
    },
  );

  test('devices that are left out, or gone, do not make the copy old', async () => {
    for (const uid of ['fleet', 'workspace']) {
      const lags = (await look([uid, 'Lag'])).map(({ fields }) => fields[1]?.values[0]);
      expect(lags, uid).toEqual([360, 360, 1]);
      const [, , largest] = await look([uid, 'Lag over time']);
      expect(Math.max(...(largest?.fields[1]?.values.map(Number) ?? [])), uid).toBe(0);
    }
  });

  test('an add-on for which the workspace reports no online status counts by its readings', async () => {
    const read = reader({ place: place(), toMs: NOW_MS });
    const hubs = await read.table('fleet', 'Hubs');
    expect(hubs.find(({ Hub }) => Hub === 'Odd hub')).toMatchObject({ 'Add-ons': '1', 'Add-ons reporting': '1, text' });
    // One that has no add-ons stands there as well.
    expect(hubs.find(({ Hub }) => Hub === 'Here')).toMatchObject({ 'Add-ons': '0', 'Add-ons reporting': '0, text' });
  });

  test('how many add-ons report is unknown once Tidemark has stopped', async () => {
    const later = reader({ place: place(), toMs: NOW_MS + 20 * MINUTE_MS });
    const hubs = await later.table('fleet', 'Hubs');
    expect(hubs.find(({ Hub }) => Hub === 'Here')).toMatchObject({
      'Hub online': 'unknown, red',
      'Add-ons reporting': 'unknown, red',
      'Not reporting': 'unknown, red',
    });
    expect(await later.numbers('fleet', 'Silent')).toEqual([': unknown, red']);
    const [lag] = await later.numbers('fleet', 'Lag');
    expect(lag).toMatch(/^no report from Tidemark; complete up to: 2\d minutes ago, red$/);
  });

  test('where no alert was ever reported, none is open while Tidemark reports; without it, the number is unknown', async () => {
    for (const uid of ['start', 'fleet']) {
      expect(await reader({ place: place(), toMs: NOW_MS }).numbers(uid, 'Open alerts')).toEqual(['Open: 0, green']);
      const later = reader({ place: place(), toMs: NOW_MS + 20 * MINUTE_MS });
      expect(await later.numbers(uid, 'Open alerts')).toEqual([': unknown, red']);
    }
  });

  test('a device in its initial sync is neither late nor up to date', async () => {
    const read = reader({ place: place(), toMs: NOW_MS });
    const rows = await read.table('fleet', 'Devices');
    // For this one the workspace does not report whether it is online.
    expect(rows.find(({ Name }) => Name === 'Below')).toMatchObject({ Online: '–, text', Sync: 'live, green' });
    expect(rows.find(({ Name }) => Name === 'Here')).toMatchObject({
      Online: 'Online, green',
      Sync: 'catching up, blue',
      Lag: 'initial sync, blue',
    });
    expect(await read.numbers('fleet', 'Late')).toEqual(['Late: 0, green']);
    expect(await read.numbers('fleet', 'Lag')).toContain('devices catching up: 1, blue');
  });

  test('a device stands once in a ranking, with its name of now, and so do two of one name', async () => {
    const read = reader({ place: place(), toMs: NOW_MS });
    expect(await read.numbers('sensors', 'Highest now')).toEqual([
      'Twin: 9.00, blue',
      'Twin: 7.00, blue',
      'new: 5.00, blue',
    ]);
    expect(await read.numbers('sensors', 'Lowest now')).toEqual([
      'new: 5.00, blue',
      'Twin: 7.00, blue',
      'Twin: 9.00, blue',
    ]);
    const [figures, newest] = await look(['sensors', 'All devices']);
    expect(column(figures, 'device_id')).toEqual(['a', 'b', 'c', 'dead']);
    expect(column(figures, 'greatest')).toEqual([90, 7, 9, 99]);
    expect(column(newest, 'device_name')).toEqual(['new', 'Twin', 'Twin', 'Dead']);
  });

  test('the usual value of the fleet is not that of the device with the most reports', async () => {
    const choose: Choose = (variable) => (variable === 'one_sensor' ? 'usual' : undefined);
    const lines = await look(['sensors', '$one_sensor of the fleet'], 24 * HOUR_MS, choose);
    const values = (frame: Frame | undefined) => frame?.fields[1]?.values.filter((value) => value !== null);
    expect(values(lines[0])).toEqual([10]);
    expect(values(lines.at(-1))).toEqual([99]);
  });

  test('few devices have as many of them below the band as above it', async () => {
    const choose: Choose = (variable) => (variable === 'one_sensor' ? 'volt' : undefined);
    const lines = await look(['sensors', '$one_sensor of the fleet'], 24 * HOUR_MS, choose);
    const [, p10, p90, lowest, highest] = lines.map(({ fields }) =>
      fields[1]?.values.filter((value) => value !== null),
    );
    expect([lowest, p10, p90, highest]).toEqual([[1], [2], [13], [14]]);
  });

  test.each([
    [
      'volt',
      [10, 11, 12, 13, 14].map((low) => `lowest: many-${low}`),
      [19, 20, 21, 22, 23].map((high) => `many-${high}`),
    ],
    // Each of these is among the highest and among the lowest.
    ['t', [], ['Twin', 'Twin', 'new', 'old']],
  ] as const)('%s by device: few lines, each with the end that it is of', async (sensor, lowest, highest) => {
    const choose: Choose = (variable) => (variable === 'one_sensor' ? sensor : undefined);
    const read = reader({ place: place(), toMs: NOW_MS, choose });
    const { fields } = await read.drawn('sensors', '$one_sensor by device: five highest and five lowest now');
    const lines = fields.filter(({ title }) => !/^Time$|: $/.test(title));
    const wanted = [...highest.map((name) => `highest: ${name}`), ...lowest];
    expect(lines.map(({ title }) => title).toSorted()).toEqual(wanted.toSorted());
    const dashed = lines.filter(({ config }) => config.custom?.lineStyle?.fill === 'dash');
    expect(dashed.map(({ title }) => title).toSorted()).toEqual(lowest);
  });

  test('a device with an id that is no valid tag is found by name, and so are its add-ons', async () => {
    const choose: Choose = (variable, options) =>
      variable === 'device' ? options.filter(({ text }) => text === 'Odd hub').map(({ value }) => value) : undefined;
    const [facts] = await look(['device', 'The device'], 24 * HOUR_MS, choose);
    expect(column(facts, 'device_name')).toEqual(['Odd hub']);
    const [around] = await look(['device', 'Neighbours'], 24 * HOUR_MS, choose);
    expect(column(around, 'device_name')).toEqual(['Below']);
    const picture = await pictureOf(panelOf('device', 'Neighbours'), [around as Frame]);
    const titles = picture.fields.map(({ title }) => title);
    expect(titles).toEqual(['Name', 'Online', 'Presence', 'Last seen (device list)', 'Model', 'Id']);
  });

  test('a device that was renamed has a mark where its new name was reported first', async () => {
    const renames = async (id: string, hours: number): Promise<unknown[]> => {
      const choose: Choose = (variable) => (variable === 'device' ? [id] : undefined);
      const range = { fromMs: NOW_MS - hours * HOUR_MS, toMs: NOW_MS };
      const viewer = await openBoard(board('device'), { place: place(), range, choose });
      const { target } = board('device').annotations.list.find(({ name }) => name === 'Renames') ?? {};
      const [frame] = await viewer.ask({ refId: 'Anno', resultFormat: 'table' }, viewer.text(target?.query ?? ''));
      // Points before the range are not drawn.
      const isDrawn = (_: unknown, row: number): boolean => Number(frame?.fields[0]?.values[row]) >= range.fromMs;
      return frame === undefined ? [] : column(frame, 'label').filter(isDrawn);
    };
    expect(await renames('renamed', 12)).toEqual(['After (renamed)']);
    expect(await renames('renamed', 3)).toEqual([]);
    expect(await renames('here', 12)).toEqual([]);
  });

  test('rules: a device that was paused is not silent, one that is left out does not make the copy stale', async () => {
    expect(await newestOf('tidemark-hub-silent', 'device_id')).toEqual({ here: 1, silent: 0 });
    expect(await newestOf('tidemark-fleet-silent', 'workspace_id')).toEqual({ w: 0.5 });
    // Below a hub that is silent, no rule for add-ons fires.
    expect(await newestOf('tidemark-device-silent', 'workspace_id', 'D')).toEqual({ w: 0 });
    expect(await newestOf('tidemark-sync-stale', 'workspace_id')).toEqual({ w: 0 });
  });

  test('rules: of two workspaces, the one of which nothing is written any more is reported', async () => {
    const written = await newestOf('tidemark-nothing-written', 'workspace_id');
    expect(written).toEqual({ w: expect.any(Number), stopped: 0 });
    expect(written['w']).toBeGreaterThan(1);
  });

  /** The newest value of each line of a rule, by a label. */
  async function newestOf(uid: string, label: string, refId = 'A'): Promise<Record<string, unknown>> {
    const file = parse(readFileSync('grafana/provisioning/alerting/tidemark.yaml', 'utf8'));
    const { data } = file.groups[0].rules.find((rule: { uid: string }) => rule.uid === uid);
    const query = data.find((one: { refId: string }) => one.refId === refId);
    const range = { fromMs: NOW_MS - query.relativeTimeRange.from * 1000, toMs: NOW_MS };
    const series = await probeInflux(place(), replaceMacros(query.model.query, range, MINUTE_MS));
    return Object.fromEntries(series.map(({ tags, values }) => [tags?.[label] ?? '', values?.at(-1)?.[1]]));
  }
});
