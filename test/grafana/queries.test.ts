/**
 * Every query of every dashboard and alert rule, as Grafana would send it, against a real InfluxDB that the real daemon
 * has filled from the workspace of the demo: each is answered, in the shape that its panel needs, and has the data of
 * the workspace.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { Bench } from '../support/bench.ts';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench } from '../support/rig.ts';
import { askRules, board, lookAtAll, panelOf } from './support/asked.ts';
import type { Frame } from './support/frames.ts';
import { pictureOf, type Shown } from './support/grafana.ts';
import { column } from './support/shapes.ts';
import { type Reading, reader } from './support/story.ts';
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
        ['Tidemark stopped', 1],
        ['Nothing written', 1],
        ['Sync stale', 1],
        ['Fleet silent', 1],
        ['Hub silent', 4],
        ['Device silent', expect.any(Number)],
        ['Device silent D', 1],
        // Those that somebody has acknowledged are left out.
        ['Alert open for long', simulator.world.alerts(nowMs).filter(({ status }) => status === 'open').length],
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
    const reported = column(rows, 'device_id').map((id, index) => ({
      id,
      name: column(rows, 'device_name')[index],
      online: column(rows, 'online')[index],
      hub: column(rows, 'parent_device_id')[index],
      model: column(rows, 'model_id')[index],
      firmware: column(rows, 'firmware_version')[index],
      lifecycle: column(rows, 'lifecycle_status')[index],
    }));
    expect(reported.sort(byId)).toEqual(
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
    const live = devices.filter(({ online }) => online).length;
    const silent = devices.filter(({ online, lifecycleStatus }) => !online && lifecycleStatus === 'active').length;
    expect(silent).toBeLessThan(devices.length - live);
    for (const uid of ['start', 'fleet']) {
      expect(await reader({ place: place(), toMs: nowMs }).numbers(uid, 'Devices by state')).toEqual([
        `all: ${devices.length}, text`,
        `live: ${live}, green`,
        `silent: ${silent}, orange`,
        `out of service: ${devices.length - live - silent}, text`,
      ]);
    }
    const [addons, , hubs] = await viewer.look(panelOf('fleet', 'Hubs'));
    expect(column(addons, 'device_id')).toHaveLength(devices.filter(({ isAddon }) => isAddon).length);
    expect(new Set(column(hubs, 'hub'))).toEqual(
      new Set(devices.filter(({ isAddon }) => !isAddon).map(({ name }) => name)),
    );
    const [map] = await viewer.look(panelOf('fleet', 'Map of the hubs'));
    expect(map?.length).toBe(4);
  });

  test('a hub that is chosen narrows all lists to it and its add-ons', async () => {
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
    const values = frames.filter(({ refId }) => refId === 'A');
    expect(values.map(({ fields }) => fields[1]?.labels['device_name']).sort()).toEqual([
      'Cold room 2',
      'Cold room 2 (dairy)',
    ]);
  });

  test('coverage distinguishes "no data" from "not synced yet"', async () => {
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

  test.each([DAY_MS, 3 * DAY_MS])(
    'online over time: the sum in Grafana equals that of the database, in a range of %d ms',
    async (rangeMs) => {
      const range = { fromMs: filled.nowMs - rangeMs, toMs: filled.nowMs };
      const viewer = await openBoard(board('fleet'), { place: place(), range });
      const panel = panelOf('fleet', 'Online over time');
      const { fields } = await pictureOf(panel, await viewer.look(panel));
      expect(fields.map(({ title }) => title)).toEqual(['Time', 'Online']);
      const drawn = fields.map(({ cells }) => cells.map(({ value }) => value ?? null));
      const query = panel.targets?.[0]?.query ?? '';
      const [, times = '', step = ''] =
        / WHERE (time >= .*? AND time < \S+) .* GROUP BY (time\(.*?\)),/.exec(query) ?? [];
      const sum = `SELECT sum(online) AS online FROM (${query}) WHERE ${times} GROUP BY ${step} fill(null)`;
      const [line] = await viewer.ask({ refId: 'A', resultFormat: 'time_series' }, viewer.text(sum, panel));
      expect(drawn).toEqual(line?.fields.map(({ values }) => values));
      expect(Math.max(...(drawn[1] ?? []).map(Number))).toBeGreaterThan(20);
    },
  );

  describe('displayed values', () => {
    const at = (minutes: number, more: Partial<Reading> = {}) =>
      reader({ place: place(), toMs: filled.nowMs + minutes * MINUTE_MS, ...more });
    const ONE = (variable: string) => (variable === 'device' ? ['add-ham-02'] : undefined);
    const ALERTS_NOW = [
      ['start', 'Open alerts'],
      ['fleet', 'Open alerts'],
      ['alerts', 'Open'],
      ['alerts', 'Devices with open alerts'],
    ] as const;

    test('while the daemon runs: a lag of a few minutes, green, and each device with the state of its sync', async () => {
      const now = at(0);
      expect(await now.numbers('fleet', 'Lag')).toEqual([
        'median (written every 15 min): < 15 mins, green',
        'p95 (written every 15 min): < 15 mins, green',
      ]);
      expect(await now.numbers('fleet', 'Late')).toEqual(['Late: 0, green']);
      const rows = await now.table('fleet', 'Devices');
      expect(rows[0]).toMatchObject({
        Name: 'Wine cellar',
        Online: 'Not online, red',
        Sync: 'nothing newer, text',
        // Beside eleven days of silence a small lag would read as a mistake.
        Lag: 'silent, orange',
        'Time not read': 'none',
      });
      expect(rows.map((row) => row['Sync'])).not.toContain('unknown, red');
      // A hub has no hub: a sign, and no sentence of the empty panel.
      expect(rows.find(({ Name }) => Name === 'Hamburg warehouse')).toMatchObject({
        Hub: '–',
        Lifecycle: 'active, green',
      });
      expect(rows.find(({ Name }) => Name === 'Cold room 2 (dairy)')).toMatchObject({
        Hub: 'Hamburg warehouse',
        Lag: '< 15 minutes, text',
        Online: 'Online, green',
        'Last seen': expect.stringMatching(/^(?:a minute|[2-9] minutes) ago$/),
      });
      // A device that sends nothing has no newer reading than in the list, and no dash.
      expect(rows[0]?.['Last seen']).toMatch(/^1[12] days ago$/);
      for (const { Name, ...row } of rows) expect(row['Last seen'], Name).toMatch(/ago$/);
      const [device] = await at(0, { choose: ONE }).table('device', 'The device');
      expect(device).toMatchObject({ Hub: 'Hamburg warehouse', 'Last seen': expect.stringMatching(/minutes? ago$/) });
      const hubs = await now.table('fleet', 'Hubs');
      // Of Berlin's add-ons one is retired and one silent.
      expect(hubs[0]).toMatchObject({
        Hub: 'Berlin kitchen',
        'Hub online': 'Online, green',
        'Not reporting': '1, orange',
      });
      expect(hubs.slice(1).map((hub) => hub['Not reporting'])).toEqual(['0, green', '0, green', '0, green']);
    });

    test.each([20, 20 * 60])(
      '%d minutes after the daemon has stopped every view of lag and state is red',
      async (minutes) => {
        const later = at(minutes);
        const [lag, ...others] = await later.numbers('fleet', 'Lag');
        expect(lag).toMatch(/^no report from Tidemark; complete up to: (?:2\d minutes|20 hours) ago, red$/);
        expect(others).toEqual([]);
        const words = ': No report for more than 17 minutes: is Tidemark running?, red';
        expect(await later.numbers('fleet', 'Devices by state')).toEqual([expect.stringContaining(words)]);
        for (const title of ['Silent', 'Late'])
          expect(await later.numbers('fleet', title)).toEqual([expect.stringMatching(/: unknown, red$/)]);
        // Alerts that were opened or resolved since are unknown; the tables list what was reported last.
        for (const [uid, title] of ALERTS_NOW)
          expect(await later.numbers(uid, title), `${uid}: ${title}`).toEqual([
            expect.stringMatching(/: unknown, red$/),
          ]);
        const rows = await later.table('fleet', 'Devices');
        expect(new Set(rows.map((row) => row['Sync']))).toEqual(new Set(['unknown, red']));
        expect(rows.length).toBeGreaterThan(20);
        // An age here would read as a lag, or as the time at which the device was seen: the number above has it.
        expect(new Set(rows.map(({ Lag }) => Lag))).toEqual(new Set(['unknown, red']));
        expect(await later.numbers('workspace', 'Lag')).toEqual([lag]);
        // The number of add-ons that report is unknown then.
        const hubs = await later.table('fleet', 'Hubs');
        expect(hubs.length).toBe(4);
        for (const hub of hubs)
          expect([hub['Add-ons reporting'], hub['Not reporting']]).toEqual(['unknown, red', 'unknown, red']);
        // The device list is as old as the last report: whether a device is online is unknown.
        const devices = [...(await later.table('start', 'Devices that need attention')), ...rows];
        const ofDevice = at(minutes, { choose: ONE });
        devices.push(
          ...(await ofDevice.table('device', 'The device')),
          ...(await ofDevice.table('device', 'Neighbours')),
        );
        expect(new Set(devices.map((row) => row['Online']))).toEqual(new Set(['unknown, red']));
        expect(new Set(hubs.map((hub) => hub['Hub online']))).toEqual(new Set(['unknown, red']));
        const map = await later.table('fleet', 'Map of the hubs');
        expect(map.map((hub) => hub['online_now'])).toEqual(hubs.map(() => 'unknown'));
        expect(await later.numbers('workspace', 'Devices by state of sync')).toEqual([
          expect.stringMatching(/No report|reported nothing.*red$/),
        ]);
      },
    );

    test('the start page names devices that need attention, and all of them once the daemon has stopped', async () => {
      const calm = await at(0).table('start', 'Devices that need attention');
      expect(calm[0]).toMatchObject({
        Name: 'Wine cellar',
        Online: 'Not online, red',
        Lag: 'silent, orange',
      });
      // A device that somebody retired needs none.
      expect(new Set(calm.map(({ Lifecycle }) => Lifecycle))).toEqual(new Set(['active, green']));
      for (const { Online, Lag } of calm) expect(`${Online} ${Lag}`).toMatch(/^Not online|hours?|days?|weeks?/);
      const stopped = await at(20 * 60).table('start', 'Devices that need attention');
      expect(stopped.length).toBe(20);
      expect(new Set(stopped.map(({ Sync }) => Sync))).toEqual(new Set(['unknown, red']));
      expect((await at(20 * 60).numbers('start', 'Lag'))[0]).toMatch(/20 hours ago, red$/);
    });

    test('two days after it, where nothing is left in the range, they are red as well', async () => {
      expect(await at(2 * 24 * 60).numbers('fleet', 'Late')).toEqual([': unknown, red']);
      for (const [uid, title] of ALERTS_NOW)
        expect(await at(2 * 24 * 60).numbers(uid, title), `${uid}: ${title}`).toEqual([': unknown, red']);
      for (const title of ['Devices by state', 'Lag']) {
        expect(await at(2 * 24 * 60).numbers('fleet', title), title).toEqual([
          ': No report for more than 17 minutes: is Tidemark running?, red',
        ]);
      }
    });

    test('a range that ends in the past has no colour of alarm', async () => {
      const [lag] = await at(30, { endsNow: false }).numbers('fleet', 'Lag');
      expect(lag).toMatch(/^no report from Tidemark; complete up to: 3\d minutes ago, text$/);
    });

    test('colours of lag follow the target that is chosen', async () => {
      const choose = (variable: string) => (variable === 'target' ? '60000' : undefined);
      expect((await at(0, { choose }).numbers('fleet', 'Lag'))[0]).toMatch(
        /^median \(written every 15 min\): < 15 mins, (?:yellow|red)$/,
      );
      expect(await at(0, { choose }).numbers('fleet', 'Late')).toEqual([expect.stringMatching(/^Late: \d+, orange$/)]);
      // An address may contain anything: a value that is no number becomes no query.
      const evil = (variable: string) => (variable === 'target' ? '1; DROP MEASUREMENT telemetry' : undefined);
      expect((await at(0, { choose: evil }).numbers('fleet', 'Lag'))[0]).toMatch(/red$/);
      expect((await at(0).numbers('sensors', 'Devices in this range'))[0]).toMatch(/: [1-9]/);
    });

    test('a line of states ends soon after the last report', async () => {
      const { fields } = await at(6 * 60, { choose: ONE }).drawn('device', 'Online and presence');
      const ends = fields.filter(({ title }) => /online|sync/.test(title)).map(({ cells }) => cells.at(-1)?.value);
      expect(ends.length).toBeGreaterThan(1);
      expect(new Set(ends)).toEqual(new Set([null]));
    });

    test('values have the unit of their sensor, whatever the device is called', async () => {
      const unitOf = async (sensor: string): Promise<string[]> => {
        const { fields } = await at(0, { choose: ONE }).drawn('device', '$sensor', sensor);
        return fields
          .filter(({ title }) => !/^Time|threshold: /.test(title))
          .map(({ title, cells }) => `${title}: ${last(cells)}`);
      };
      expect((await unitOf('temperature')).at(-1)).toMatch(/^Cold room 2 \(dairy\): [\d.]+ °C$/);
      expect((await unitOf('humidity')).at(-1)).toMatch(/^Cold room 2 \(dairy\): [\d.]+%$/);
      const choose = (variable: string) => (variable === 'one_sensor' ? 'humidity' : undefined);
      const band = await at(0, { choose }).drawn('sensors', '$one_sensor of the fleet');
      const lines = band.fields.filter(({ title }) => title !== 'Time');
      expect(lines.map(({ title, cells }) => `${title} ${/%$/.test(last(cells))}`)).toEqual(
        ['median', 'p10', 'p90', 'lowest', 'highest'].map((title) => `${title} true`),
      );
      expect(await at(0, { choose }).numbers('sensors', 'Newest values of $one_sensor in the last hour')).toEqual(
        ['lowest', 'median', 'highest'].map((title) => expect.stringMatching(new RegExp(`^${title}: [\\d.]+%, blue$`))),
      );
    });

    test('each value of a table of many sensors, and each bar, has the unit of its sensor', async () => {
      const values = await at(0, { choose: ONE }).table('device', 'Values in this range');
      const units = Object.fromEntries(values.map(({ Sensor, Unit }) => [Sensor, Unit]));
      expect(units).toMatchObject({ temperature: '°C', humidity: '%', battery_voltage: 'V' });
      const alerts = await at(0).table('alerts', 'Open now');
      const two = [...new Set(alerts.map((row) => row['Device id'] ?? ''))].slice(0, 2);
      const choose = (variable: string) => (variable === 'device' ? two : undefined);
      const ofDevices = await at(0, { choose }).table('device', 'Open alerts');
      const chosen = alerts.filter((row) => two.includes(row['Device id'] ?? ''));
      expect(chosen.length).toBeGreaterThan(1);
      expect(ofDevices.map(({ Rule, Device }) => `${Rule} ${Device}`)).toEqual(
        chosen.map(({ Rule, Device }) => `${Rule} ${Device}`),
      );
      expect(alerts.find(({ Sensor }) => Sensor === 'temperature')).toMatchObject({ Unit: '°C' });
      const bars = async (sensor: string): Promise<string[]> =>
        await at(0, { choose: (variable) => (variable === 'one_sensor' ? sensor : undefined) }).numbers(
          'sensors',
          'Highest now',
        );
      expect((await bars('temperature'))[0]).toMatch(/^[^:]*[a-z][^:]*: [\d.]+ °C, blue$/);
      expect((await bars('humidity'))[0]).toMatch(/: [\d.]+%, blue$/);
    });

    test('the threshold of an alert that opened months ago is drawn to the end, in the unit of the sensor', async () => {
      const choose = (variable: string) => (variable === 'device' ? ['add-ham-01'] : undefined);
      const { fields } = await at(0, { choose }).drawn('device', '$sensor', 'temperature');
      const alerts = filled.simulator.world.alerts(filled.nowMs).filter(({ openedAtMs, deviceId, sensor }) => {
        return deviceId === 'add-ham-01' && sensor === 'temperature' && openedAtMs > filled.nowMs - 366 * DAY_MS;
      });
      const sides = new Set(alerts.map(({ condition }) => (/above/.test(condition) ? 'upper' : 'lower')));
      const drawn = fields.filter(({ title, cells }) => /^\w+ threshold: ./.test(title) && last(cells) !== '');
      expect(drawn.map(({ title }) => title).sort()).toEqual(
        [...sides].map((side) => `${side} threshold: Cold room 1`).sort(),
      );
      expect(drawn.length).toBeGreaterThan(0);
      for (const { cells, times, config } of drawn) {
        expect(last(cells)).toMatch(/ °C$/);
        expect(times.at(-1)).toBeGreaterThanOrEqual(filled.nowMs);
        expect(config.color).toEqual({ mode: 'fixed', fixedColor: 'red' });
      }
    });

    test('a threshold in a chart is not rounded like a reading, and lines of devices have a legend', async () => {
      const alerts = filled.simulator.world.alerts(filled.nowMs);
      const alert = alerts.findLast(
        ({ sensor, threshold }) => sensor === 'temperature' && (threshold ?? 0) !== Number(threshold?.toFixed(1)),
      );
      if (alert?.threshold == null) throw new Error('no alert');
      const choose = (variable: string) => (variable === 'device' ? [alert.deviceId] : undefined);
      const { fields } = await at(0, { choose }).drawn('device', '$sensor', 'temperature');
      const shown = fields.filter(({ title }) => /threshold: /.test(title)).map(({ cells }) => last(cells));
      expect(shown).toContain(`${alert.threshold.toFixed(3)} °C`);
      const legend = panelOf('sensors', '$one_sensor by device: five highest and five lowest now').options?.['legend'];
      expect(legend).toMatchObject({ showLegend: true });
    });

    test('an open alert has its time, the newest first, and its last value', async () => {
      const rows = await at(0).table('alerts', 'Open now');
      expect(rows.length).toBeGreaterThan(5);
      for (const row of rows) expect(row['Opened']).toMatch(/ago$/);
      const alerts = filled.simulator.world.alerts(filled.nowMs).filter(({ status }) => status !== 'resolved');
      const newest = alerts.toSorted((a, b) => b.openedAtMs - a.openedAtMs).map(({ alertId }) => String(alertId));
      expect(rows.map((row) => row['Alert id'])).toEqual(newest);
      // As the API returned it: rounded, a value could stand on the wrong side of its threshold.
      const exact = new Map(alerts.map(({ alertId, threshold }) => [String(alertId), String(threshold)]));
      for (const row of rows) expect(row['Threshold']).toBe(exact.get(row['Alert id'] ?? ''));
      // By the names of the API.
      for (const title of ['Value in alert', 'Threshold', 'Fire count']) expect(rows[0]).toHaveProperty(title);
      expect(await at(0).numbers('workspace', 'Left of the daily quota')).toEqual([
        expect.stringMatching(/: \d{3},\d{3}, blue$/),
      ]);
      expect(await at(0).table('workspace', 'Plan')).toEqual([
        expect.objectContaining({ 'History (days, limit)': '31', 'Devices in use': '32' }),
      ]);
      const history = await at(0).table('alerts', 'History');
      expect(history[0]).toHaveProperty('Opened');
      expect(history[0]).toHaveProperty('Last change');
    });

    test('rankings are in their order, and lists begin with the worst', async () => {
      const numberOf = (text: string): number => Number(/: (-?[\d.]+)/.exec(text)?.[1]);
      const choose = (variable: string) => (variable === 'one_sensor' ? 'temperature' : undefined);
      const highest = (await at(0, { choose }).numbers('sensors', 'Highest now')).map(numberOf);
      expect(highest).toEqual(highest.toSorted((a, b) => b - a));
      const lowest = (await at(0, { choose }).numbers('sensors', 'Lowest now')).map(numberOf);
      expect(lowest).toEqual(lowest.toSorted((a, b) => a - b));
      const batteries = await at(0).table('sensors', 'Batteries: replace next');
      const values = batteries.map((row) => Number(row['Newest']));
      expect(values).toEqual(values.toSorted((a, b) => a - b));
      const silent = await at(0).table('fleet', 'Silent or out of service');
      expect(silent[0]).toMatchObject({ Name: 'Wine cellar', Presence: 'no signal', Lifecycle: 'active, green' });
      const offline = filled.simulator.world.devices(filled.nowMs).filter(({ online }) => !online);
      expect(silent.map(({ Name }) => Name).sort()).toEqual(offline.map(({ name }) => name).sort());
      expect((await at(0).numbers('fleet', 'Models')).map(numberOf)[0]).toBeGreaterThan(1);
    });

    test('completeness and availability are computed by device and by hub', async () => {
      const rows = await at(0).table('fleet', 'Completeness and availability');
      const cellar = rows.find(({ Name }) => Name === 'Wine cellar');
      expect(cellar).toMatchObject({ Completeness: '100.0%', Hub: 'Berlin kitchen' });
      expect(rows.find(({ Name }) => Name === 'Cold room 1')).toMatchObject({
        Completeness: '100.0%',
        Availability: '100.0%',
        Hub: 'Hamburg warehouse',
      });
      const hubs = await at(0).table('fleet', 'Completeness and availability by hub');
      expect(hubs.map(({ Hub }) => Hub)).toContain('Hamburg warehouse');
      const sites = await at(0).table('fleet', 'Completeness and availability by site');
      expect(sites.map(({ Site }) => Site).sort()).toEqual([
        'Berlin kitchen',
        'Bremen greenhouse',
        'Hamburg warehouse',
        'Munich laboratory',
      ]);
      const tags = await at(0).table('fleet', 'Completeness and availability by tags');
      expect(tags.find(({ Tags }) => Tags === 'cold-chain,ham')).toMatchObject({ Completeness: '100.0%' });
    });

    test('a range of a quarter of an hour shows its data', async () => {
      const short = { rangeMs: 15 * MINUTE_MS };
      const timeline = await at(0, short).drawn('alerts', 'Timeline');
      const open = timeline.fields.filter(({ title }) => title !== 'Time');
      expect(`Open: ${open.length}, orange`).toBe((await at(0, short).numbers('alerts', 'Open'))[0]);
      const band = await at(0, { ...short, choose: ONE }).drawn('device', 'Coverage, hour by hour');
      expect(band.fields.at(-1)?.cells.map(({ text }) => text)).toContain('covered');
    });
  });
});

function byId(a: { id: unknown }, b: { id: unknown }): number {
  return String(a.id) < String(b.id) ? -1 : 1;
}

/** The last words of a line that has any. */
function last(cells: readonly Shown[]): string {
  return cells.findLast(({ value }) => value !== null)?.text ?? '';
}
