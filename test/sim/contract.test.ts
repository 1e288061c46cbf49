/** Resources, endpoints and pages of the API document, by section, on both ways to the simulator. */
import { expect, test } from 'vitest';
import { ENDPOINTS, ORIGIN_MS, onBothWays, smallSimulator, walk } from './support.ts';

test('Errors: any other method on an endpoint is refused, with the limits', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      for (const path of ENDPOINTS) {
        const { status, json, headers } = await ask(path, { method });
        expect(status).toBe(405);
        expect(json.error.code).toBe('method_not_allowed');
        expect(headers['x-ratelimit-remaining']).toBe('120');
      }
    }
    expect((await ask('/devices', { method: 'HEAD' })).status).toBe(405);
  });
});

test('Errors: a missing resource and one of another workspace look the same', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    const paths = [
      '/devices/other',
      '/devices/other/telemetry',
      '/alerts/999999',
      '/alerts/x',
      '/nothing',
      '/devices/',
      '/',
    ];
    for (const path of paths) {
      const { status, json } = await ask(path);
      expect([path, status, json.error.code]).toEqual([path, 404, 'not_found']);
    }
    const { text } = await ask('/devices/other');
    expect(text).toBe((await ask('/devices/another')).text);
  });
});

test('Account: plan and usage by their names, and no members', async () => {
  await onBothWays(smallSimulator, async (ask, simulator) => {
    simulator.settings.plan.historyMaxDays = null;
    const { json, status } = await ask('/account');
    expect(status).toBe(200);
    const open = simulator.world.alerts(ORIGIN_MS).filter((alert) => alert.status !== 'resolved');
    expect(json).toEqual({
      workspace_id: 'ws-simulated',
      name: 'Simulated workspace',
      plan: {
        plan_id: 'business',
        name: 'Business',
        max_api_keys: 5,
        external_requests_per_minute: 120,
        external_requests_per_day: 20_000,
        history_max_days: null,
        max_devices_per_page: 200,
      },
      usage: { devices: 3, open_alerts: open.length },
    });
  });
});

test('Device: all fields, the add-on with its hub, in one flat list', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    const { json } = await ask('/devices');
    expect(json.data.map((device: { device_id: string }) => device.device_id)).toEqual(['a1', 'a2', 'hub']);
    expect(json.data[0]).toMatchObject({ name: 'Add-on 1', is_addon: true, parent_device_id: 'hub', online: true });
    expect(Object.keys(json.data[0]).join(' ')).toBe(
      'device_id name model_id firmware_version is_addon parent_device_id lifecycle_status online presence ' +
        'last_seen_at latitude longitude location_updated_at tags',
    );
    expect((await ask('/devices/a1')).json).toEqual(json.data[0]);
  });
});

test('Alert: all fields, one by its id as in the list, the newest first', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    const { json } = await ask('/alerts?limit=200');
    const opened = json.data.map((alert: { opened_at: string }) => alert.opened_at);
    expect(opened).toEqual([...opened].sort().reverse());
    expect(json.data.length).toBeGreaterThan(100);
    const [first] = json.data;
    expect(Object.keys(first).join(' ')).toBe(
      'alert_id device_id rule_name kind sensor condition threshold value fire_count status opened_at',
    );
    expect((await ask(`/alerts/${first.alert_id}`)).json).toEqual(first);
  });
});

test('Endpoints: every response, success or refusal, carries both limits and JSON', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    const answers = [
      ...(await Promise.all(ENDPOINTS.map((path) => ask(path)))),
      await ask('/devices', { authorization: null }),
      await ask('/nothing'),
      await ask('/devices', { method: 'POST' }),
      await ask('/devices?limit=0'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 401, 404, 405, 400]);
    for (const { headers } of answers) {
      expect(headers['content-type']).toBe('application/json');
      expect(headers['x-ratelimit-limit']).toBe('120');
      expect(Number(headers['x-ratelimit-remaining'])).toBeGreaterThanOrEqual(114);
    }
  });
});

test('Telemetry page: the device, the readings newest first', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    const { json } = await ask('/devices/a1/telemetry?limit=5');
    expect(Object.keys(json)).toEqual(['device_id', 'data', 'next_cursor']);
    expect(json.device_id).toBe('a1');
    const times = json.data.map((reading: { recorded_at: string }) => reading.recorded_at);
    expect(times).toEqual([...times].sort().reverse());
    expect(Object.keys(json.data[0])).toEqual(['recorded_at', 'values']);
    expect(typeof json.data[0].values.temperature).toBe('number');
  });
});

test('Pagination: 50 records by default, and 200 at most', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    expect((await ask('/devices/a1/telemetry')).json.data).toHaveLength(50);
    expect((await ask('/devices/a1/telemetry?limit=200')).json.data).toHaveLength(200);
    expect((await ask('/devices/a1/telemetry?limit=1')).json.data).toHaveLength(1);
    for (const limit of ['0', '201', '-1', 'x', '', '1.5']) {
      const { status, json } = await ask(`/devices/a1/telemetry?limit=${limit}`);
      expect([limit, status, json.error.code]).toEqual([limit, 400, 'invalid_request']);
    }
  });
});

test('Pagination: the settings clamp a limit outside 1 to 200', async () => {
  const simulator = () => smallSimulator({ settings: { paging: { limitOutside: 'clamped' } } });
  await onBothWays(simulator, async (ask) => {
    expect((await ask('/devices/a1/telemetry?limit=5000')).json.data).toHaveLength(200);
    expect((await ask('/devices/a1/telemetry?limit=0')).json.data).toHaveLength(1);
  });
});

test('Pagination, plan.max_devices_per_page: the largest page follows the plan', async () => {
  await onBothWays(smallSimulator, async (ask, simulator) => {
    simulator.settings.plan.maxDevicesPerPage = 20;
    expect((await ask('/devices/a1/telemetry')).json.data).toHaveLength(20);
    expect((await ask('/devices/a1/telemetry?limit=21')).status).toBe(400);
  });
});

test('Pagination: next_cursor is absent on the last page, also where that page is just full', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    expect('next_cursor' in (await ask('/devices?limit=3')).json).toBe(false);
    expect('next_cursor' in (await ask('/devices?limit=2')).json).toBe(true);
    expect(await walk(ask, '/devices?limit=1')).toMatchObject({ pages: 3 });
    const whole = await walk(ask, '/alerts?limit=200');
    expect(await walk(ask, '/alerts?limit=7')).toEqual({ ...whole, pages: Math.ceil(whole.records.length / 7) });
  });
});

test('Query parameters: one given twice is refused, an unknown one ignored, or refused by the settings', async () => {
  await onBothWays(smallSimulator, async (ask, { settings }) => {
    expect((await ask('/devices?limit=1&limit=1')).json.error).toMatchObject({ code: 'invalid_request' });
    expect((await ask('/devices?after=x&whatever=1')).status).toBe(200);
    settings.paging.unknownParameters = 'rejected';
    expect((await ask('/devices?after=x')).json.error.message).toMatch(/^after/);
    expect((await ask('/account?limit=1')).status).toBe(400);
  });
});
