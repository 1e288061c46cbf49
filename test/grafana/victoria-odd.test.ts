/**
 * The dashboards in PromQL of workspaces that are odd: with hostile names, with one device, without anything; and that
 * they name what is written.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { translate } from '../../src/core/lines/dialect.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { Bench } from '../support/bench.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { patient } from '../support/patience.ts';
import { NOW_MS, openBench } from '../support/rig.ts';
import { startVictoria, victoriaAvailable } from '../support/victoria.ts';
import { writeFleet } from './support/fleet-lines.ts';
import { lookAtAllProm, VICTORIA_QUERIES, vmBoard, vmPanel } from './support/promql-asked.ts';
import { labelsOf, metricsOf } from './support/promql-names.ts';
import { openPromBoard, type PromViewer } from './support/promql-viewer.ts';
import { column } from './support/shapes.ts';
import { choosing, type FilledVictoria, fillVictoria } from './support/victoria-workspaces.ts';
import { HOSTILE, hostile, single } from './support/workspaces.ts';

describe.runIf(influxdAvailable() && victoriaAvailable())('against a real VictoriaMetrics', () => {
  let bench: Bench;
  let odd: FilledVictoria;
  beforeAll(async () => {
    bench = await openBench();
    odd = await fillVictoria(bench, hostile, { forMs: 12 * MINUTE_MS, historyMs: 4 * HOUR_MS });
  });
  afterAll(async () => {
    await odd[Symbol.asyncDispose]();
    await bench[Symbol.asyncDispose]();
  });

  test('hostile names: each device is found by name, and queries about it return only its own data', async () => {
    const { url } = odd.victoria;
    const range = { fromMs: odd.filled.nowMs - DAY_MS, toMs: odd.filled.nowMs };
    const list = (await openPromBoard(vmBoard('device'), { url, range })).lists.get('device') ?? [];
    for (const { deviceId, name } of HOSTILE) {
      const listed = list.filter(({ text }) => text === name?.replaceAll('\\', '/'));
      expect(listed.length, `${name}: ${JSON.stringify(list)}`).toBe(name === HOSTILE[0]?.name ? 2 : 1);
      const own = listed.find(({ value }) => value.startsWith(deviceId.slice(0, 5)))?.value ?? '';
      const viewer = await openPromBoard(vmBoard('device'), { url, range, choose: choosing(own) });
      const [facts] = await viewer.look(vmPanel('device', 'The device'));
      expect(column(facts, 'device_id')).toEqual([own]);
      const [values] = await viewer.look(vmPanel('device', 'Values in this range'));
      const rows = values === undefined ? [] : column(values, 'device_id');
      expect(rows.filter((id) => id !== own)).toEqual([]);
      expect(rows.length > 0).toBe(deviceId !== HOSTILE[9]?.deviceId);
      await expectOwnSensors(viewer, own);
    }
  });

  test('hostile names: all at once, switches among them', async () => {
    const { victoria, filled } = odd;
    const listed = await openPromBoard(vmBoard('device'), {
      url: victoria.url,
      range: { fromMs: filled.nowMs - DAY_MS, toMs: filled.nowMs },
    });
    const ids = (listed.lists.get('device') ?? []).map(({ value }) => value);
    const all = await lookAtAllProm({ url: victoria.url, nowMs: filled.nowMs, choose: choosing(...ids) });
    for (const name of ['tidemark-vm-fleet: Devices', 'tidemark-vm-device: The device']) {
      expect(new Set(column(all.get(name)?.[0], 'device_id')), name).toEqual(new Set(ids));
    }
    expect(all.get('tidemark-vm-device: Coverage, hour by hour')).toHaveLength(HOSTILE.length);
    const switches = all.get('tidemark-vm-device: Switches') ?? [];
    expect(switches.map(({ fields }) => fields[1]?.displayName)).toEqual(['<b>bold</b>: relay']);
    expect(new Set(switches[0]?.fields[1]?.values)).toEqual(new Set([0, 1]));
  });

  test('the names in the queries are those that the program writes', async () => {
    const written = new Map<string, Set<string>>();
    for (const { metric } of await odd.victoria.exported()) {
      const { __name__: name = '', ...labels } = metric;
      written.set(name, new Set([...(written.get(name) ?? []), ...Object.keys(labels)]));
    }
    for (const [where, expr] of VICTORIA_QUERIES) {
      const named = metricsOf(expr);
      expect(named.length, where).toBeGreaterThan(0);
      expect(
        named.filter((metric) => !written.has(metric)),
        where,
      ).toEqual([]);
      const known = new Set(named.flatMap((metric) => [...(written.get(metric) ?? [])]));
      expect(
        labelsOf(expr).filter((label) => !known.has(label)),
        where,
      ).toEqual([]);
    }
  });

  test('a thousand devices: every panel, with one row for each where its description promises that, and in good time', async () => {
    await using large = await startVictoria();
    const size = { devices: 1000, days: 0.25, intervalMs: 10 * MINUTE_MS, nowMs: Date.UTC(2026, 5, 15, 12) };
    const write = async (_: string, lines: string): Promise<number> => {
      const body = translate('victoriametrics', lines.split('\n'), () => []).lines.join('\n');
      return (await fetch(`${large.url}/api/v2/write?precision=ms`, { method: 'POST', body })).status;
    };
    expect(await writeFleet({ write }, '', size)).toBeGreaterThan(100_000);
    await large.exported('{device_id="none"}');
    const startedMs = performance.now();
    const seen = await lookAtAllProm({ url: large.url, nowMs: size.nowMs });
    // Some forty queries; a bound that only a query of another order of growth would miss.
    expect(performance.now() - startedMs).toBeLessThan(patient(40_000));
    for (const name of ['tidemark-vm-fleet: Devices', 'tidemark-vm-device: The same sensors elsewhere']) {
      expect(new Set(column(seen.get(name)?.[0], 'device_id')).size, name).toBe(1000);
    }
    expect(seen.get('tidemark-vm-fleet: Devices')?.[0]?.length).toBe(1000);
    expect(seen.get('tidemark-vm-fleet: Online')?.[0]?.fields[1]?.values).toEqual([980]);
  });

  test('one device that has just begun', async () => {
    await using alone = await fillVictoria(bench, single, { forMs: 12 * MINUTE_MS, historyMs: HOUR_MS });
    const seen = await lookAtAllProm({ url: alone.victoria.url, nowMs: alone.filled.nowMs });
    expect(seen.get('tidemark-vm-fleet: Online')?.[0]?.fields[1]?.values).toEqual([1]);
    expect(seen.get('tidemark-vm-fleet: Silent')?.[0]?.fields[1]?.values).toEqual([0]);
    expect(seen.get('tidemark-vm-device: $sensor temperature')?.[0]?.length).toBeGreaterThan(30);
  });

  test('an empty database: nothing to show, and no error', async () => {
    await using victoria = await startVictoria();
    const seen = await lookAtAllProm({ url: victoria.url, nowMs: NOW_MS });
    expect(seen.size).toBeGreaterThan(12);
    expect([...seen.values()].flat()).toEqual([]);
  });
});

test('a name that is not written would be found', () => {
  expect(metricsOf('sum by (devise_id) (last_over_time(device_onlin{workspace=~`.*`}[3h]))')).toEqual(['device_onlin']);
  expect(labelsOf('sum by (devise_id) (last_over_time(device_onlin{workspace=~`.*`}[3h]))')).toEqual([
    'devise_id',
    'workspace',
  ]);
});

/** Each sensor of the list has lines, and all of them are the device's. */
async function expectOwnSensors(viewer: PromViewer, deviceId: string): Promise<void> {
  for (const { value: sensor } of viewer.lists.get('sensor') ?? []) {
    const frames = await viewer.look(vmPanel('device', '$sensor'), sensor);
    expect(frames.length, sensor).toBeGreaterThan(0);
    for (const { fields } of frames) expect(fields[1]?.labels).toMatchObject({ sensor, device_id: deviceId });
  }
}
