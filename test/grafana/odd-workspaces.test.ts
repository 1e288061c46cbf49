/** The dashboards of workspaces that are odd: without anything, with one device, with hostile names, with a thousand. */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { NOW_MS, openBench } from '../support/rig.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { askRules, board, lookAtAll, panelOf } from './support/asked.ts';
import { writeFleet } from './support/fleet-lines.ts';
import { column } from './support/shapes.ts';
import { type Choose, openBoard, type Place } from './support/viewer.ts';
import { fill, HOSTILE, hostile, single } from './support/workspaces.ts';

describe.runIf(influxdAvailable())('against a real InfluxDB', () => {
  const bench = sharedBench(openBench);
  const place = (database: string): Place => ({ url: bench.influxd.url, database });

  test('an empty database: nothing to show, and no error', async () => {
    await bench.influxd.query('', 'CREATE DATABASE nothing');
    const seen = await lookAtAll({ place: place('nothing'), nowMs: NOW_MS });
    expect([...seen.values()].flat()).toEqual([]);
    const asked = await askRules(place('nothing'), NOW_MS);
    expect(asked.size).toBe(8);
    expect(new Set(asked.values())).toEqual(new Set([0]));
  });

  test('one device that has just begun', async () => {
    using alone = await fill(bench, single, { forMs: 12 * MINUTE_MS, historyMs: HOUR_MS });
    const seen = await lookAtAll({ place: place(alone.database), nowMs: alone.nowMs });
    expect(seen.get('tidemark-fleet: Devices by state')?.[0]?.fields[1]?.values).toEqual([1]);
    expect(seen.get('tidemark-device: $sensor temperature')?.[0]?.length).toBeGreaterThan(30);
  });

  test('hostile names: each device is found by name, and queries about it return only its own data', async () => {
    using odd = await fill(bench, hostile, { forMs: 12 * MINUTE_MS, historyMs: 4 * HOUR_MS });
    const all = await lookAtAll({ place: place(odd.database), nowMs: odd.nowMs });
    expect(all.get('tidemark-fleet: Devices')?.[0]?.length).toBe(HOSTILE.length);
    for (const { deviceId, name } of HOSTILE) {
      const choose: Choose = (variable) => (variable === 'device' ? [deviceId] : undefined);
      const range = { fromMs: odd.nowMs - DAY_MS, toMs: odd.nowMs };
      const viewer = await openBoard(board('device'), { place: place(odd.database), range, choose });
      expect(viewer.lists.get('device')).toContainEqual({ value: deviceId, text: name?.replaceAll('\n', ' ') });
      const [facts] = await viewer.look(panelOf('device', 'The device'));
      expect(column(facts, 'device_id')).toEqual([deviceId]);
      const [values] = await viewer.look(panelOf('device', 'Values in this range'));
      const rows = values === undefined ? [] : column(values, 'device_id');
      expect(rows.filter((id) => id !== deviceId)).toEqual([]);
      expect(rows.length > 0).toBe(deviceId !== HOSTILE[9]?.deviceId);
      for (const { value: sensor } of viewer.lists.get('sensor') ?? []) {
        const frames = await viewer.look(panelOf('device', '$sensor'), sensor);
        for (const { fields } of frames) expect(fields[1]?.labels).toMatchObject({ sensor, device_id: deviceId });
      }
    }
    const flags = await openBoard(board('device'), {
      place: place(odd.database),
      range: { fromMs: odd.nowMs - DAY_MS, toMs: odd.nowMs },
      choose: (variable) => (variable === 'device' ? HOSTILE.map(({ deviceId }) => deviceId) : undefined),
    });
    const types = (await flags.look(panelOf('device', 'Switches and texts'))).map(({ fields }) => fields[1]?.type);
    expect(new Set(types)).toEqual(new Set(['boolean', 'string']));
  });

  test('a thousand devices: every panel, with one row for each where its description promises that', async () => {
    await bench.influxd.query('', 'CREATE DATABASE large');
    const size = { devices: 1000, days: 0.125, intervalMs: 10 * MINUTE_MS, nowMs: Date.UTC(2026, 5, 15, 12) };
    await writeFleet(bench.influxd, 'large', size);
    const alerts = Array.from({ length: 70 }, (_, id) => {
      const tags = `alert_id=a${id},device_id=d00${100 + id},device_name=Device\\ ${100 + id},kind=offline,workspace_id=ws-large`;
      return `alert_state,${tags} status="open",open=1,fire_count=1 ${size.nowMs - (100 + id) * MINUTE_MS}000000`;
    });
    expect(await bench.influxd.write('large', alerts.join('\n'))).toBe(204);
    const seen = await lookAtAll({ place: place('large'), nowMs: size.nowMs });
    for (const name of ['tidemark-fleet: Devices', 'tidemark-sensors: All devices']) {
      expect(new Set(column(seen.get(name)?.[0], 'device_id')).size, name).toBe(1000);
      expect(seen.get(name)?.[0]?.length, name).toBe(1000);
    }
    // At most as many lines as a reader can distinguish.
    for (const [name, frames] of seen) {
      const isDrawn = /^tidemark-(?:fleet|sensors|workspace|alerts): .*(?:over time|by device|Timeline)/.test(name);
      if (isDrawn) expect(frames.length, name).toBeLessThanOrEqual(50);
    }
    expect(seen.get('tidemark-sensors: $one_sensor by device: five highest and five lowest now')).toHaveLength(10);
    const lines = new Set(seen.get('tidemark-alerts: Timeline')?.map(({ name }) => /\((\w+)\)$/.exec(name ?? '')?.[1]));
    expect([lines.has('a0'), lines.has('a40'), lines.has('a60')]).toEqual([true, true, false]);
    const range = { fromMs: size.nowMs - DAY_MS, toMs: size.nowMs };
    const sensors = await openBoard(board('sensors'), { place: place('large'), range });
    expect(sensors.lists.get('sample')).toHaveLength(100);
  });
});
