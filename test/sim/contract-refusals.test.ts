/** Authentication, errors and what the document leaves open, by section, on both ways to the simulator. */
import { expect, test } from 'vitest';
import { DEFAULT_KEY } from '../../src/sim/settings.ts';
import { createManualClock, ENDPOINTS, ORIGIN_MS, onBothWays, smallSimulator, smallWorld } from './support.ts';

test('Authentication: a missing, unknown, revoked or expired key gets 401 and the challenge Bearer', async () => {
  await onBothWays(smallSimulator, async (ask, simulator) => {
    const { key } = simulator.settings;
    const refused = async (authorization?: string | null): Promise<void> => {
      const { status, headers, json } = await ask('/devices', authorization === undefined ? {} : { authorization });
      expect([status, headers['www-authenticate'], json.error.code]).toEqual([401, 'Bearer', 'unauthorized']);
    };
    for (const wrong of [null, '', DEFAULT_KEY, `Bearer ${DEFAULT_KEY}x`, `Basic ${DEFAULT_KEY}`, 'Bearer'])
      await refused(wrong);
    key.revoked = true;
    await refused();
    key.revoked = false;
    key.expiresAtMs = ORIGIN_MS;
    await refused();
    key.expiresAtMs = ORIGIN_MS + 1;
    expect((await ask('/devices')).status).toBe(200);
    expect(simulator.quota().minute.left).toBe(119);
  });
});

test('Authentication: a plan without API access gets 403 on every endpoint', async () => {
  await onBothWays(smallSimulator, async (ask, simulator) => {
    simulator.settings.plan.apiAccess = false;
    for (const path of ENDPOINTS) {
      const { status, json } = await ask(path);
      expect([status, json.error.code]).toEqual([403, 'api_access_required']);
      expect(json.error).not.toHaveProperty('required_scope');
    }
  });
});

test('Authentication: each endpoint needs exactly its scope, and the refusal names it', async () => {
  const scopeOf = (path: string): string => (path.endsWith('/telemetry') ? 'telemetry' : (path.split('/')[1] ?? ''));
  await onBothWays(smallSimulator, async (ask, simulator) => {
    for (const scope of ['devices', 'telemetry', 'alerts', 'account']) {
      simulator.settings.key.scopes = [`${scope}:read`];
      for (const path of ENDPOINTS) {
        const { status, json } = await ask(path);
        if (scopeOf(path) === scope) expect(status).toBe(200);
        else
          expect([status, json.error.code, json.error.required_scope]).toEqual([
            403,
            'insufficient_scope',
            `${scopeOf(path)}:read`,
          ]);
      }
    }
  });
});

test('Scope rules: a retired or invented scope grants nothing', async () => {
  await onBothWays(smallSimulator, async (ask, simulator) => {
    simulator.settings.key.scopes = ['devices', 'devices:*', '*', 'devices:write', 'readings:read'];
    for (const path of ENDPOINTS) expect((await ask(path)).status).toBe(403);
  });
});

test('Errors: a refusal is an object with the single member error, code and message', async () => {
  await onBothWays(smallSimulator, async (ask) => {
    for (const path of ['/nothing', '/devices?limit=0', '/devices/hub/telemetry?after=x', '/devices?cursor=x']) {
      const { json } = await ask(path);
      expect(Object.keys(json)).toEqual(['error']);
      expect(Object.keys(json.error)).toEqual(['code', 'message']);
    }
  });
});

test('Errors: the wait is in whole seconds and never less than one, and the refusal costs nothing', async () => {
  const clock = createManualClock();
  const simulator = () => smallSimulator({ clock, settings: { plan: { requestsPerMinute: 2 } } });
  await onBothWays(simulator, async (ask) => {
    clock.advance(60_000 - (clock.nowMs() % 60_000) + 30_500);
    for (const left of ['1', '0']) expect((await ask('/account')).headers['x-ratelimit-remaining']).toBe(left);
    const { status, json, headers } = await ask('/account');
    expect([status, json.error.code, headers['retry-after']]).toEqual([429, 'rate_limited', '30']);
    expect(headers['x-ratelimit-remaining']).toBe('0');
    clock.advance(29_499);
    expect((await ask('/account')).headers['retry-after']).toBe('1');
    clock.advance(1);
    expect((await ask('/account')).status).toBe(200);
  });
});

test('Errors, names by the settings: other codes, another wait header, another challenge header', async () => {
  const settings = {
    codes: { quotaSpent: 'slow_down', notFound: 'missing' },
    headerNames: { wait: 'X-RateLimit-Reset-After', challenge: 'X-Challenge' },
    plan: { requestsPerMinute: 1 },
  };
  await onBothWays(
    () => smallSimulator({ settings }),
    async (ask) => {
      expect((await ask('/none')).json.error.code).toBe('missing');
      expect((await ask('/account', { authorization: null })).headers['x-challenge']).toBe('Bearer');
      await ask('/account');
      const { json, headers } = await ask('/account');
      expect([json.error.code, headers['x-ratelimit-reset-after'], headers['retry-after']]).toEqual([
        'slow_down',
        '60',
        undefined,
      ]);
    },
  );
});

test('Date: the server clock with its offset, the header with its skew, or none', async () => {
  await onBothWays(smallSimulator, async (ask, { settings }) => {
    expect((await ask('/account')).headers).toMatchObject({ date: 'Thu, 15 Jan 2026 12:00:00 GMT' });
    settings.time.offsetMs = 61_000;
    expect((await ask('/account')).headers).toMatchObject({ date: 'Thu, 15 Jan 2026 12:01:01 GMT' });
    settings.time.dateSkewMs = -1000;
    expect((await ask('/none')).headers).toMatchObject({ date: 'Thu, 15 Jan 2026 12:01:00 GMT' });
    settings.time.date = 'absent';
    expect((await ask('/account')).headers).not.toHaveProperty('date');
  });
});

test('Versioning: nothing is served outside the base path', () => {
  const simulator = smallSimulator();
  const headers = { authorization: `Bearer ${DEFAULT_KEY}` };
  for (const target of [
    '/devices',
    '/external/v2/devices',
    '/external/v1',
    '/external/v1devices',
    '/external/v1//devices',
  ]) {
    expect([target, simulator.handle({ method: 'GET', target, headers }).answer.status]).toEqual([target, 404]);
  }
});

test('Paths: ids are decoded, and a device may be called anything', async () => {
  const ids = ['a/b', 'a b', 'ü%', '__proto__', '?x'];
  const world = smallWorld({ devices: ids.map((deviceId) => ({ deviceId })) });
  await onBothWays(
    () => smallSimulator({ world }),
    async (ask) => {
      for (const id of ids) expect((await ask(`/devices/${encodeURIComponent(id)}`)).json.device_id).toBe(id);
      expect((await ask('/devices/%zz')).status).toBe(404);
    },
  );
});

test('the settings add unknown members everywhere, and make fields null or absent', async () => {
  const settings = { surprises: { unknownMembers: 1, missingFields: 0.5 } };
  await onBothWays(
    () => smallSimulator({ settings }),
    async (ask) => {
      const unknown = (record: object): string[] => Object.keys(record).filter((name) => name.startsWith('x_'));
      const devices = (await ask('/devices')).json;
      const telemetry = (await ask('/devices/a1/telemetry')).json;
      const account = (await ask('/account')).json;
      const { error } = (await ask('/nothing')).json;
      const records = [devices, devices.data[0], telemetry, telemetry.data[0], account, account.plan, error];
      for (const record of records) expect(unknown(record)).toHaveLength(1);
      expect(devices.data.map((device: { device_id: string }) => device.device_id)).toEqual(['a1', 'a2', 'hub']);
      expect(account.plan.history_max_days).toBe(365);
      const fields = devices.data.flatMap((device: object) => Object.values(device));
      expect(fields.filter((value: unknown) => value === null).length).toBeGreaterThan(2);
      expect((await ask('/devices')).json).toEqual(devices);
    },
  );
});
