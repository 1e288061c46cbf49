/**
 * Every query of the dashboards in PromQL, as Grafana would send it, against a real VictoriaMetrics that the real
 * daemon has filled from the workspace of the demo: each is answered, in the shape that its panel needs, and has the
 * data of the workspace.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LAG_WORDS } from '../../grafana/source/looks.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { Bench } from '../support/bench.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench } from '../support/rig.ts';
import { type Exported, victoriaAvailable } from '../support/victoria.ts';
import type { Frame } from './support/frames.ts';
import { drawnOf, pictureOf, valuesOf } from './support/grafana.ts';
import { lookAtAllProm, vmBoard, vmPanel } from './support/promql-asked.ts';
import { openPromBoard, type PromViewer } from './support/promql-viewer.ts';
import { column } from './support/shapes.ts';
import { choosing, type FilledVictoria, fillVictoria } from './support/victoria-workspaces.ts';
import type { Choose } from './support/viewer.ts';
import { demo } from './support/workspaces.ts';

describe.runIf(influxdAvailable() && victoriaAvailable())('against a real VictoriaMetrics', () => {
  let bench: Bench;
  let shown: FilledVictoria;
  beforeAll(async () => {
    bench = await openBench();
    shown = await fillVictoria(bench, demo, { forMs: 66 * MINUTE_MS });
  });
  afterAll(async () => {
    await shown[Symbol.asyncDispose]();
    await bench[Symbol.asyncDispose]();
  });

  const open = async (
    uid: string,
    choose?: Choose,
    span: { rangeMs?: number; toMs?: number } = {},
  ): Promise<PromViewer> => {
    const { rangeMs = DAY_MS, toMs = shown.filled.nowMs } = span;
    const range = { fromMs: toMs - rangeMs, toMs };
    return await openPromBoard(vmBoard(uid), {
      url: shown.victoria.url,
      range,
      ...(choose === undefined ? {} : { choose }),
    });
  };

  test('the workspace of the demo: every panel of every dashboard shows something', async () => {
    const seen = await lookAtAllProm({
      url: shown.victoria.url,
      nowMs: shown.filled.nowMs,
      choose: choosing('add-ham-02', 'add-ber-20'),
    });
    const empty = [...seen].filter(([, frames]) => !frames.some(({ length }) => length > 0)).map(([name]) => name);
    // The demo has no such sensors; the hostile workspace below does.
    expect(new Set(empty)).toEqual(new Set(['tidemark-vm-device: Switches']));
    for (const [where, frames] of seen) {
      if (/Value|Devices|The device|elsewhere|open$/.test(where)) expect(frames.length, where).toBeGreaterThan(0);
    }
  });

  test('the fleet: numbers and rows as the workspace has them', async () => {
    const { simulator, nowMs } = shown.filled;
    const devices = simulator.world.devices(nowMs);
    const viewer = await open('fleet');
    const number = async (title: string): Promise<unknown> =>
      (await viewer.look(vmPanel('fleet', title)))[0]?.fields[1]?.values[0] ?? 0;
    const online = devices.filter((device) => device.online).length;
    expect(online).toBeGreaterThan(20);
    expect(await number('Online')).toBe(online);
    const isOff = ({ online, lifecycleStatus }: (typeof devices)[number]): boolean =>
      !online && lifecycleStatus === 'active';
    expect(await number('Silent')).toBe(devices.filter(isOff).length);
    expect(devices.filter(isOff).length).toBeLessThan(devices.length - online);
    // With the retired ones, the numbers add up to the list.
    expect(await number('Out of service')).toBe(devices.length - online - devices.filter(isOff).length);
    expect(await number('Open alerts')).toBe(
      simulator.world.alerts(nowMs).filter(({ status }) => status !== 'resolved').length,
    );
    const reporting = devices.filter(({ deviceId }) => {
      const span = [BigInt(nowMs - HOUR_MS + 1) * 1_000_000n, BigInt(nowMs - 5 * MINUTE_MS) * 1_000_000n] as const;
      return [...simulator.world.readings(deviceId, ...span)].length > 0;
    });
    expect(await number('Reported in the last hour')).toBe(reporting.length);
    const [rows, seen, , , active] = await viewer.look(vmPanel('fleet', 'Devices'));
    const reported = column(rows, 'device_id').map((id, index) => ({
      id,
      name: column(rows, 'device_name')[index],
      online: column(rows, 'Value #A')[index],
      model: column(rows, 'model_id')[index],
    }));
    expect(reported.sort(byId)).toEqual(
      devices
        .map(({ deviceId: id, name, online: isOnline, modelId: model, lifecycleStatus }) => ({
          id,
          name,
          online: isOnline ? 1 : lifecycleStatus === 'active' ? 0 : 2,
          model,
        }))
        .sort(byId),
    );
    expect(seen?.length).toBe(devices.length);
    const figures = (frame: Frame | undefined, name: string) =>
      new Map(column(frame, 'device_id').map((id, index) => [id, Number(column(frame, name)[index])]));
    // The list of devices is an hour old at worst, the newest reading is not; devices that send nothing are in the
    // list.
    const at = figures(seen, 'Value #B');
    for (const id of reporting.map(({ deviceId }) => deviceId)) expect(at.get(id), id).toBeGreaterThan(nowMs - HOUR_MS);
    for (const { deviceId, lastSeenAt } of devices.filter((device) => !device.online)) {
      expect(at.get(deviceId), deviceId).toBe(Date.parse(lastSeenAt ?? ''));
    }
    const isActive = new Map(
      devices.map(({ deviceId, lifecycleStatus }) => [deviceId, Number(lifecycleStatus === 'active')]),
    );
    expect(figures(active, 'Value #E')).toEqual(isActive);
    const [alerts] = await viewer.look(vmPanel('fleet', 'Alerts that are open'));
    expect(new Set(column(alerts, 'alert_id'))).toEqual(
      new Set(
        simulator.world
          .alerts(nowMs)
          .filter(({ status }) => status !== 'resolved')
          .map(({ alertId }) => String(alertId)),
      ),
    );
    const [lines, listed] = await viewer.look(vmPanel('fleet', 'Online over time'));
    expect([lines?.fields[1]?.values.at(-1), listed?.fields[1]?.values.at(-1)]).toEqual([online, devices.length]);
  });

  test('the lag of each device is the age of its watermark, also while all are late', async () => {
    const exported = await shown.victoria.exported('coverage_watermark_ms');
    const lastMs = Math.max(...exported.flatMap(({ timestamps }) => timestamps));
    const { silent, outOfService } = LAG_WORDS;
    const offline = new Map(
      shown.filled.simulator.world
        .devices(lastMs)
        .filter(({ online }) => !online)
        .map(({ deviceId, lifecycleStatus }) => [deviceId, lifecycleStatus === 'active' ? silent : outOfService]),
    );
    expect(new Set(offline.values())).toEqual(new Set([silent, outOfService]));
    expect(offline.size).toBeGreaterThan(1);
    for (const toMs of [lastMs, lastMs + 10 * MINUTE_MS]) {
      const viewer = await open('fleet', undefined, { toMs });
      const [, , lags] = await viewer.look(vmPanel('fleet', 'Devices'));
      const newest = newestAt(exported, toMs);
      const expected = [...newest].map(([id, watermarkMs]) => [id, Math.round((toMs - watermarkMs) / 1000)] as const);
      // Of what is offline nothing newer exists: no small lag stands beside it.
      const shownAs = expected.map(([id, lag]) => [id, lag <= 900 ? (offline.get(id) ?? lag) : lag] as const);
      const found = column(lags, 'device_id').map((id, index) => [
        id,
        Math.round(Number(column(lags, 'Value #C')[index])),
      ]);
      expect(new Map(found as [string, number][])).toEqual(new Map(shownAs));
      const late = expected.filter(([, lag]) => lag > 900).length;
      const look = async (title: string) =>
        await valuesOf(vmPanel('fleet', title), await viewer.look(vmPanel('fleet', title)));
      expect(await look('Late')).toMatchObject([{ text: String(late), color: late === 0 ? 'green' : 'orange' }]);
      const [lag] = await look('Lag');
      expect(lag?.title).toBe('p95 (written every 15 min)');
      expect(lag?.color).toBe(late === 0 ? 'green' : 'yellow');
    }
  });

  test('no step of the lag over time passes over a peak', async () => {
    const exported = await shown.victoria.exported('coverage_lag_seconds');
    const toMs = shown.filled.nowMs;
    const largest = (fromMs: number, untilMs: number): number =>
      Math.max(
        0,
        ...exported.flatMap(({ values, timestamps }) =>
          values.filter((_, index) => fromMs < (timestamps[index] ?? 0) && (timestamps[index] ?? 0) <= untilMs),
        ),
      );
    const viewer = await open('fleet', undefined, { toMs });
    const [, , line] = await viewer.look(vmPanel('fleet', 'Lag over time'));
    const [times = [], values = []] = line?.fields.map((field) => field.values as number[]) ?? [];
    const stepMs = 15 * MINUTE_MS;
    const peaks = times.map((time) => largest(time, Math.min(time + stepMs, toMs)));
    expect(Math.max(...peaks)).toBeGreaterThan(0);
    for (const [index, peak] of peaks.entries()) expect(values[index]).toBeGreaterThanOrEqual(peak);
  });

  test('the open alerts of a device stand on its dashboard, with their thresholds in its charts', async () => {
    const { simulator, nowMs } = shown.filled;
    const alerts = simulator.world.alerts(nowMs).filter(({ status }) => status !== 'resolved');
    const isCharted = ({ sensor }: (typeof alerts)[number]): boolean =>
      sensor === 'humidity' || sensor === 'temperature';
    const [alert] = alerts.filter(isCharted);
    if (alert?.sensor == null) throw new Error('no alert');
    const viewer = await open('device', choosing(alert.deviceId));
    const panel = vmPanel('device', 'Open alerts');
    const { fields, rows } = await pictureOf(panel, await viewer.look(panel));
    const cells = (title: string) => fields.find((field) => field.title === title)?.cells.map(({ text }) => text);
    const own = alerts.filter(({ deviceId }) => deviceId === alert.deviceId);
    expect(rows).toBe(own.length);
    expect(cells('Alert id')?.sort()).toEqual(own.map(({ alertId }) => String(alertId)).sort());
    expect(cells('Threshold')).toContain(String(alert.threshold));
    expect(cells('Value in alert')).toContain(String(alert.value));
    expect(cells('Fire count')).toContain(String(alert.fireCount));
    const chart = vmPanel('device', '$sensor');
    const drawn = await drawnOf(chart, await viewer.look(chart, alert.sensor), nowMs);
    const line = drawn.fields.find(({ title }) => title.startsWith(`threshold of alert ${alert.alertId}: `));
    expect(line?.cells.at(-1)?.value).toBe(alert.threshold);
  });

  test('a chart ends with the newest reading, as the table of the values does', async () => {
    const readings = (await shown.victoria.exported('telemetry_value')).filter(
      ({ metric }) => metric['device_id'] === 'add-ham-01' && metric['sensor'] === 'temperature',
    );
    const times = readings.flatMap(({ timestamps }) => timestamps).toSorted((a, b) => a - b);
    for (const atMs of times.slice(-6, -2)) {
      const viewer = await open('device', choosing('add-ham-01'), { toMs: atMs + 500 });
      const chart = await viewer.look(vmPanel('device', '$sensor'), 'temperature');
      const [now] = await viewer.look(vmPanel('device', 'Values in this range'));
      const row = column(now, 'sensor').indexOf('temperature');
      expect(chart[0]?.fields[1]?.values.at(-1), String(atMs)).toBe(column(now, 'Value #A')[row]);
    }
  });

  test.each([20, 20 * 60])(
    '%d minutes after the daemon has stopped every view of lag and state is red',
    async (minutes) => {
      const viewer = await open('fleet', undefined, { toMs: shown.filled.nowMs + minutes * MINUTE_MS });
      const look = async (title: string) =>
        await valuesOf(vmPanel('fleet', title), await viewer.look(vmPanel('fleet', title)));
      for (const title of ['Online', 'Silent', 'Late', 'Open alerts', 'Lag']) {
        const [shownNow, ...others] = await look(title);
        expect(shownNow?.color, title).toBe('red');
        expect(others, title).toEqual([]);
      }
      expect((await look('Lag'))[0]?.text).toMatch(minutes === 20 ? /^2\d minutes ago$/ : /^20 hours ago$/);
      const { fields } = await pictureOf(vmPanel('fleet', 'Devices'), await viewer.look(vmPanel('fleet', 'Devices')));
      const online = fields.find(({ title }) => title === 'Online')?.cells ?? [];
      // After 20 hours no device is listed.
      const unknown = minutes === 20 ? ['unknown, red'] : [];
      expect([...new Set(online.map(({ text, color }) => `${text}, ${color}`))]).toEqual(unknown);
      const lags = fields.find(({ title }) => title === 'Lag')?.cells ?? [];
      expect([...new Set(lags.map(({ text, color }) => `${text}, ${color}`))]).toEqual(
        unknown.map(() => 'unknown, red'),
      );
    },
  );

  test('the values of a device are those of the seed', async () => {
    const { simulator, nowMs } = shown.filled;
    const toMs = nowMs - 10 * MINUTE_MS;
    const values = [
      ...simulator.world.readings(
        'add-ham-01',
        BigInt(toMs - DAY_MS) * 1_000_000n + 1n,
        BigInt(toMs) * 1_000_000n + 1n,
      ),
    ]
      .flatMap(({ recordedAtNs, values: own }) =>
        (own ?? [])
          .filter(([name]) => name === 'temperature')
          .map(([, json]) => [Number(recordedAtNs / 1_000_000n), Number(json)] as const),
      )
      .sort(([a], [b]) => a - b);
    expect(values.length).toBeGreaterThan(250);
    const numbers = values.map(([, value]) => value);
    const mean = (list: readonly number[]): number => list.reduce((sum, value) => sum + value, 0) / list.length;
    const viewer = await open('device', choosing('add-ham-01'), { toMs });
    const frames = await viewer.look(vmPanel('device', 'Values in this range'));
    const reported = frames.map((frame) => {
      const row = column(frame, 'sensor').indexOf('temperature');
      return Number(column(frame, `Value #${frame.refId}`)[row]);
    });
    const wanted = [numbers.at(-1), Math.min(...numbers), mean(numbers), Math.max(...numbers), numbers.length];
    expect(reported).toHaveLength(5);
    reported.forEach((value, index) => {
      expect(value).toBeCloseTo(wanted[index] ?? Number.NaN, 8);
    });
    const [line, ...others] = await viewer.look(vmPanel('device', '$sensor'), 'temperature');
    expect(others).toEqual([]);
    expect(line?.fields[1]).toMatchObject({ displayName: 'temperature', labels: { device_name: 'Cold room 1' } });
    const times = line?.fields[0]?.values as number[];
    const stepMs = Math.min(...times.slice(1).map((time, index) => time - (times[index] ?? 0)));
    times.slice(1).forEach((time, index) => {
      const own = values.filter(([atMs]) => time < atMs && atMs <= time + stepMs).map(([, value]) => value);
      expect(line?.fields[1]?.values[index + 1], `${time}`).toBeCloseTo(mean(own), 8);
    });
    expect(times.length).toBeGreaterThan(200);
  });

  test('a sensor across all devices: the median lies between the extremes, which are those of the rows', async () => {
    const viewer = await open('device', choosing('add-ham-01'));
    const frames = await viewer.look(vmPanel('device', '$sensor across all devices'), 'temperature');
    const named = new Map(frames.map(({ fields }) => [fields[1]?.displayName, fields[1]?.values as number[]]));
    const names = ['lowest', '5 %', 'median', '95 %', 'highest'].map((name) => `temperature ${name}`);
    expect(new Set(named.keys())).toEqual(new Set(names));
    const ordered = names.map((name) => named.get(name) ?? []);
    expect(ordered[0]?.length).toBeGreaterThan(20);
    for (let at = 0; at < (ordered[0]?.length ?? 0); at += 1) {
      const band = ordered.map((values) => values[at] ?? Number.NaN);
      expect(band).toEqual([...band].sort((a, b) => a - b));
      expect(band[0]).toBeLessThan(band[4] ?? 0);
    }
    const [rows] = await viewer.look(vmPanel('device', 'The same sensors elsewhere'));
    const devices = column(rows, 'device_id').filter((_, index) => column(rows, 'sensor')[index] === 'temperature');
    expect(new Set(devices).size).toBeGreaterThan(10);
  });

  test('a device that was renamed is one device, by its new name, with the lines of both', async () => {
    const viewer = await open('device', choosing('add-ham-02'));
    const named = (viewer.lists.get('device') ?? []).filter(({ value }) => value === 'add-ham-02');
    expect(named).toEqual([{ text: 'Cold room 2 (dairy)', value: 'add-ham-02' }]);
    const [facts] = await viewer.look(vmPanel('device', 'The device'));
    expect(column(facts, 'device_name')).toEqual(['Cold room 2 (dairy)']);
    const labelsOf = (frames: readonly Frame[]): unknown[] =>
      frames.map(({ fields }) => fields[1]?.labels['device_name']).sort();
    expect(labelsOf(await viewer.look(vmPanel('device', '$sensor'), 'temperature'))).toEqual([
      'Cold room 2',
      'Cold room 2 (dairy)',
    ]);
    const bands = await viewer.look(vmPanel('device', 'Coverage, hour by hour'));
    expect(labelsOf(bands)).toEqual(['Cold room 2 (dairy)']);
    const hours = (bands[0]?.fields[1]?.values ?? []).slice(1, -3);
    expect(hours.length).toBeGreaterThan(15);
    expect(hours.filter((value) => Number(value) <= 0)).toEqual([]);
  });

  test('coverage distinguishes "no data" from "not synced yet", and the states are those of the workspace', async () => {
    const { simulator, nowMs } = shown.filled;
    const viewer = await open('device', choosing('add-ham-01', 'add-ber-20'));
    const frames = await viewer.look(vmPanel('device', 'Coverage, hour by hour'));
    const hours = (name: string): readonly unknown[] =>
      frames.find(({ fields }) => fields[1]?.displayName === name)?.fields[1]?.values ?? [];
    // A wine cellar that fell silent eleven days ago, and a cold room that reports every five minutes.
    expect(hours('Wine cellar').slice(1, 20)).toEqual(Array.from({ length: 19 }, () => 0));
    for (const value of hours('Cold room 1').slice(1, 20)) expect(Number(value)).toBeGreaterThan(0);
    expect(hours('Cold room 1').at(-1)).toBe(-1);
    // The hour that a sample stands for begins where it is shown.
    const times = frames[0]?.fields[0]?.values as number[];
    const at = 10;
    const span = [times[at] ?? 0, (times[at] ?? 0) + HOUR_MS].map((ms) => BigInt(ms) * 1_000_000n) as [bigint, bigint];
    expect(hours('Cold room 1')[at]).toBe([...simulator.world.readings('add-ham-01', ...span)].length);
    const states = await viewer.look(vmPanel('device', 'Online'));
    const last = new Map(states.map(({ fields }) => [fields[1]?.labels['device_id'], fields[1]?.values.at(-1)]));
    const world = simulator.world
      .devices(nowMs)
      .filter(({ deviceId }) => ['add-ham-01', 'add-ber-20'].includes(deviceId));
    expect(last).toEqual(new Map(world.map(({ deviceId, online }) => [deviceId, Number(online)])));
  });

  test('a device that was renamed has one mark, by its new name, and others have none', async () => {
    const [{ expr = '' } = {}] = vmBoard('device').annotations.list.map(({ target }) => target);
    expect(expr).toContain('device_online');
    const [online] = vmPanel('device', 'Online').targets ?? [];
    if (online === undefined) throw new Error('no query');
    const viewer = await open('device', choosing('add-ham-01', 'add-ham-02'));
    // A longer range has wider steps.
    for (const interval of ['1m', '5m']) {
      const marks = { ...vmPanel('device', 'Online'), interval, maxDataPoints: 11_000 };
      const frames = await viewer.look({ ...marks, targets: [{ ...online, expr }] });
      expect(frames.map(({ fields }) => [fields[1]?.labels['device_name'], fields[1]?.values])).toEqual([
        ['Cold room 2 (dairy)', [1]],
      ]);
    }
  });

  test('a short range, a long one and one of long ago are answered too; lists outlive an outage', async () => {
    const { url } = shown.victoria;
    const { nowMs, simulator } = shown.filled;
    for (const [toMs, rangeMs] of [
      [nowMs, 5 * MINUTE_MS],
      [nowMs, 90 * DAY_MS],
      [nowMs - 400 * DAY_MS, DAY_MS],
    ] as const) {
      const seen = await lookAtAllProm({ url, nowMs: toMs, rangeMs });
      expect(seen.size).toBeGreaterThan(12);
    }
    const all = simulator.world.devices(nowMs).length;
    const brief = await open('fleet', undefined, { rangeMs: 5 * MINUTE_MS });
    expect((await brief.look(vmPanel('fleet', 'Devices')))[0]?.length).toBe(all);
    // States of alerts are written daily while they are open.
    const nextDay = await open('fleet', undefined, { toMs: nowMs + 20 * HOUR_MS });
    const stillOpen = simulator.world.alerts(nowMs).filter(({ status }) => status !== 'resolved').length;
    const [alerts] = await nextDay.look(vmPanel('fleet', 'Alerts that are open'));
    expect(alerts).toHaveLength(stillOpen);
    const later = await open('device', choosing('add-ham-01'), { toMs: nowMs + 10 * HOUR_MS });
    expect(later.lists.get('device')).toHaveLength(all);
    expect(later.lists.get('sensor')?.length).toBeGreaterThan(1);
  });
});

/** The newest lag of each device, up to a moment. */
function newestAt(exported: readonly Exported[], toMs: number): Map<string, number> {
  const newest = new Map<string, readonly [atMs: number, lag: number]>();
  for (const { metric, values, timestamps } of exported) {
    const id = metric['device_id'] ?? '';
    timestamps.forEach((atMs, index) => {
      if (atMs <= toMs && (newest.get(id)?.[0] ?? 0) <= atMs) newest.set(id, [atMs, values[index] ?? Number.NaN]);
    });
  }
  return new Map([...newest].map(([id, [, lag]]) => [id, lag]));
}

function byId(a: { id: unknown }, b: { id: unknown }): number {
  return String(a.id) < String(b.id) ? -1 : 1;
}
