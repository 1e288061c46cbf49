/**
 * Every query of every dashboard and alert rule, as Grafana would send it, against a real InfluxDB that the real daemon
 * has filled from the workspace of the demo: each is answered, in the shape that its panel needs, and says what was in
 * the workspace.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { Bench } from '../support/bench.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench } from '../support/rig.ts';
import { askRules, board, lookAtAll, panelOf } from './support/asked.ts';
import type { Frame } from './support/frames.ts';
import { column } from './support/shapes.ts';
import { type Choose, openBoard, type Place } from './support/viewer.ts';
import { demo, type Filled, fill } from './support/workspaces.ts';

describe.runIf(influxdAvailable())('against a real InfluxDB', () => {
  let bench: Bench;
  let filled: Filled;
  const place = (database = filled.database): Place => ({ url: bench.influxd.url, database });
  beforeAll(async () => {
    bench = await openBench();
    filled = await fill(bench, demo, { forMs: 66 * MINUTE_MS });
  });
  afterAll(async () => {
    filled[Symbol.dispose]();
    await bench[Symbol.asyncDispose]();
  });

  test('the workspace of the demo: every panel of every dashboard shows something', async () => {
    const { nowMs, simulator } = filled;
    const [recent] = simulator.world.alerts(nowMs).filter(({ openedAtMs }) => openedAtMs > nowMs - 20 * HOUR_MS);
    const busy: Choose = (variable) =>
      /^devices?$/.test(variable) ? [recent?.deviceId ?? '', 'add-ham-02'] : undefined;
    const first = await lookAtAll({ place: place(), nowMs });
    const chosen = await lookAtAll({ place: place(), nowMs, choose: busy });
    const shows = (frames: readonly Frame[] | undefined): boolean => (frames ?? []).some(({ length }) => length > 0);
    const empty = [...chosen.keys()].filter((name) => !shows(first.get(name)) && !shows(chosen.get(name)));
    // The demo has no sensors of these kinds; the hostile workspace below does.
    expect(empty).toEqual(['tidemark-device: Switches and texts']);
    expect(await askRules(place(), filled.nowMs)).toEqual(
      new Map([
        ['Device silent', expect.any(Number)],
        ['Alert open for long', expect.any(Number)],
        ['Sync stale', 1],
        ['Nothing written', 1],
      ]),
    );
  });

  test('the fleet: one row for each device, as the workspace has it', async () => {
    const { simulator, nowMs } = filled;
    const viewer = await openBoard(board('fleet'), { place: place(), range: { fromMs: nowMs - DAY_MS, toMs: nowMs } });
    const devices = simulator.world.devices(nowMs);
    const [rows, covered] = await viewer.look(panelOf('fleet', 'Devices'));
    expect(column(rows, 'device_id')).toHaveLength(devices.length);
    expect(new Set(column(covered, 'device_id'))).toEqual(new Set(column(rows, 'device_id')));
    const told = column(rows, 'device_id').map((id, index) => ({
      id,
      name: column(rows, 'device_name')[index],
      online: column(rows, 'online')[index],
      hub: column(rows, 'parent_device_id')[index],
      model: column(rows, 'model_id')[index],
      firmware: column(rows, 'firmware_version')[index],
      lifecycle: column(rows, 'lifecycle_status')[index],
    }));
    expect(told.sort(byId)).toEqual(
      devices
        .map((device) => ({
          id: device.deviceId,
          name: device.name,
          online: Number(device.online),
          hub: device.parentDeviceId,
          model: device.modelId,
          firmware: device.firmwareVersion,
          lifecycle: device.lifecycleStatus,
        }))
        .sort(byId),
    );
    const number = async (title: string): Promise<unknown> =>
      (await viewer.look(panelOf('fleet', title)))[0]?.fields[1]?.values[0] ?? 0;
    expect(await number('Online')).toBe(devices.filter(({ online }) => online).length);
    expect(await number('Silent')).toBe(
      devices.filter(({ online, lifecycleStatus }) => !online && lifecycleStatus === 'active').length,
    );
    expect(await number('Paused, shelved, retired')).toBe(
      devices.filter(({ lifecycleStatus }) => lifecycleStatus !== 'active').length,
    );
    const [addons, hubs] = await viewer.look(panelOf('fleet', 'Add-ons under their hubs'));
    expect(column(addons, 'device_id')).toHaveLength(devices.filter(({ isAddon }) => isAddon).length);
    expect(new Set(column(hubs, 'hub'))).toEqual(
      new Set(devices.filter(({ isAddon }) => !isAddon).map(({ name }) => name)),
    );
    const [map] = await viewer.look(panelOf('fleet', 'Hubs'));
    expect(map?.length).toBe(4);
  });

  test('a hub that is chosen narrows all lists to it and what reports to it', async () => {
    const choose: Choose = (variable) => (variable === 'hub' ? ['hub-muc-1'] : undefined);
    const range = { fromMs: filled.nowMs - DAY_MS, toMs: filled.nowMs };
    const own = filled.simulator.world
      .devices(filled.nowMs)
      .filter(({ deviceId, parentDeviceId }) => deviceId === 'hub-muc-1' || parentDeviceId === 'hub-muc-1')
      .map(({ deviceId }) => deviceId);
    for (const uid of ['device', 'sensors', 'alerts']) {
      const viewer = await openBoard(board(uid), { place: place(), range, choose });
      const listed = (viewer.lists.get(uid === 'device' ? 'device' : 'devices') ?? []).map(({ value }) => value);
      expect(listed.sort(), uid).toEqual([...own].sort());
    }
    const sensors = await openBoard(board('sensors'), { place: place(), range, choose });
    const [rows] = await sensors.look(panelOf('sensors', 'All devices'));
    expect(rows?.length).toBeGreaterThan(0);
    expect(column(rows, 'device_id').filter((id) => !own.includes(String(id)))).toEqual([]);
  });

  test('a device that was renamed is one device, by its new name, with the lines of both', async () => {
    const range = { fromMs: filled.nowMs - DAY_MS, toMs: filled.nowMs };
    const viewer = await openBoard(board('device'), { place: place(), range, choose: () => undefined });
    const named = (viewer.lists.get('device') ?? []).filter(({ value }) => value === 'add-ham-02');
    expect(named).toEqual([{ text: 'Cold room 2 (dairy)', value: 'add-ham-02' }]);
    const renamed = await openBoard(board('device'), {
      place: place(),
      range,
      choose: (variable) => (variable === 'device' ? ['add-ham-02'] : undefined),
    });
    const frames = await renamed.look(panelOf('device', '$sensor'), 'temperature');
    expect(frames.map(({ fields }) => fields[1]?.labels['device_name']).sort()).toEqual([
      'Cold room 2',
      'Cold room 2 (dairy)',
    ]);
  });

  test('coverage tells "no data" from "not synced yet"', async () => {
    const { nowMs } = filled;
    const range = { fromMs: nowMs - DAY_MS, toMs: nowMs };
    const choose: Choose = (variable) => (variable === 'device' ? ['add-ham-01', 'add-ber-20'] : undefined);
    const viewer = await openBoard(board('device'), { place: place(), range, choose });
    const frames = await viewer.look(panelOf('device', 'Coverage, hour by hour'));
    const hours = (name: string): readonly unknown[] =>
      frames.find(({ fields }) => fields[1]?.displayName === name)?.fields[1]?.values ?? [];
    // A wine cellar that fell silent eleven days ago, and a cold room that reports every five minutes.
    expect(hours('Wine cellar').slice(1, 20)).toEqual(Array.from({ length: 19 }, () => 0));
    for (const value of hours('Cold room 1').slice(1, 20)) expect(Number(value)).toBeGreaterThan(0);
    expect(hours('Cold room 1').at(-1)).toBe(-1);
  });

  test('the alerts that are open, by the account of the workspace', async () => {
    const { simulator, nowMs } = filled;
    const viewer = await openBoard(board('alerts'), { place: place(), range: { fromMs: nowMs - DAY_MS, toMs: nowMs } });
    const [states] = await viewer.look(panelOf('alerts', 'Open now'));
    const open = column(states, 'open').filter((value) => value === 1).length;
    const [sum] = await viewer.look(panelOf('alerts', 'Open'));
    expect(sum?.fields[1]?.values).toEqual([open]);
    expect(open).toBe(simulator.world.alerts(nowMs).filter(({ status }) => status !== 'resolved').length);
    const timeline = await viewer.look(panelOf('alerts', 'Timeline'));
    expect(timeline).toHaveLength(open);
  });

  test('a short range, a long one and one of long ago are answered too', async () => {
    for (const [nowMs, rangeMs] of [
      [filled.nowMs, 5 * MINUTE_MS],
      [filled.nowMs, 90 * DAY_MS],
      [filled.nowMs - 400 * DAY_MS, DAY_MS],
    ] as const) {
      const seen = await lookAtAll({ place: place(), nowMs, rangeMs });
      expect(seen.size).toBeGreaterThan(40);
    }
    const range = { fromMs: filled.nowMs - 5 * MINUTE_MS, toMs: filled.nowMs };
    const viewer = await openBoard(board('fleet'), { place: place(), range });
    const [rows] = await viewer.look(panelOf('fleet', 'Devices'));
    expect(rows?.length).toBe(filled.simulator.world.devices(filled.nowMs).length);
  });
});

function byId(a: { id: unknown }, b: { id: unknown }): number {
  return String(a.id) < String(b.id) ? -1 : 1;
}
