import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAccount, parseDevicePage } from '../../src/api/parse.ts';
import { ApiFault } from '../../src/core/faults.ts';
import { parseTimestamp } from '../../src/core/time.ts';

const REQUEST = 'GET /x';

function faultOf(parse: () => unknown): ApiFault {
  try {
    parse();
  } catch (error) {
    if (error instanceof ApiFault) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

const devices = (...list: unknown[]) => parseDevicePage({ data: list }, REQUEST);

describe('a device', () => {
  const whole = {
    device_id: 'hub-1',
    name: 'Hub',
    model_id: 'm',
    firmware_version: '1.2',
    is_addon: false,
    parent_device_id: null,
    lifecycle_status: 'active',
    online: true,
    presence: 'reporting',
    last_seen_at: '2026-11-21T12:00:00.5Z',
    latitude: 52.5,
    longitude: -0.25,
    location_updated_at: '2026-01-01T00:00:00Z',
    tags: ['a', 'b'],
    colour: 'unknown members are ignored',
  };

  test('is read whole', () => {
    expect(devices(whole).devices).toEqual([
      {
        deviceId: 'hub-1',
        name: 'Hub',
        modelId: 'm',
        firmwareVersion: '1.2',
        isAddon: false,
        parentDeviceId: null,
        lifecycleStatus: 'active',
        online: true,
        presence: 'reporting',
        lastSeenAt: parseTimestamp('2026-11-21T12:00:00.5Z'),
        latitude: 52.5,
        longitude: -0.25,
        locationUpdatedAt: parseTimestamp('2026-01-01T00:00:00Z'),
        tags: ['a', 'b'],
      },
    ]);
  });

  test('may lack everything but its id, and have it of any type', () => {
    const empty = devices({ device_id: 'x' }).devices[0];
    expect(Object.values(empty ?? {}).filter((value) => value !== null)).toEqual(['x', []]);
    const members = Object.keys(whole).filter((name) => name !== 'device_id');
    const odd = fc.record(Object.fromEntries(members.map((name) => [name, fc.jsonValue()])), { requiredKeys: [] });
    fc.assert(
      fc.property(odd, (rest) => {
        const page = parseDevicePage(JSON.parse(JSON.stringify({ data: [{ ...rest, device_id: 'x' }] })), REQUEST);
        expect([page.devices.length, page.rejected.length, page.devices[0]?.deviceId]).toEqual([1, 0, 'x']);
      }),
    );
  });

  test('keeps the tags that are words', () => {
    expect(devices({ device_id: 'x', tags: ['a', 7, null, 'b', {}] }).devices[0]?.tags).toEqual(['a', 'b']);
  });

  test.each(['a', ' ', 'a/b', '../x', '...', '%2e%2e', 'ünï cødé', '😀', '\'"`', 'x'.repeat(256)])(
    'may be called %j',
    (id) => {
      expect(devices({ device_id: id }).devices[0]?.deviceId).toBe(id);
    },
  );

  test.each([
    undefined,
    null,
    7,
    {},
    '',
    '.',
    '..',
    'a\nb',
    'a\u0000',
    'a\u007f',
    'a\u0085',
    '\ud800',
    'x'.repeat(257),
    'ü'.repeat(129),
  ])('is set aside when it is called %j', (id) => {
    const page = devices(
      { device_id: 'before' },
      { device_id: id, name: 'kept for the quarantine' },
      { device_id: 'after' },
    );
    expect(page.devices.map(({ deviceId }) => deviceId)).toEqual(['before', 'after']);
    expect(page.rejected[0]?.record).toContain('kept for the quarantine');
  });
});

describe('the account', () => {
  const plan = {
    plan_id: 'pro',
    name: 'Pro',
    max_api_keys: 5,
    external_requests_per_minute: 60,
    external_requests_per_day: 5000,
    history_max_days: 90,
    max_devices_per_page: 200,
  };

  test('is read whole', () => {
    const account = { workspace_id: 'w', name: 'Works', plan, usage: { devices: 3, open_alerts: 0 } };
    expect(parseAccount(account, REQUEST)).toEqual({
      workspaceId: 'w',
      name: 'Works',
      plan: {
        planId: 'pro',
        name: 'Pro',
        maxApiKeys: 5,
        requestsPerMinute: 60,
        requestsPerDay: 5000,
        historyMaxDays: 90,
        maxDevicesPerPage: 200,
      },
      devices: 3,
      openAlerts: 0,
    });
  });

  test('needs its workspace and nothing else', () => {
    const bare = parseAccount({ workspace_id: 'w' }, REQUEST);
    expect([bare.workspaceId, bare.plan.requestsPerMinute, bare.devices]).toEqual(['w', null, null]);
    for (const id of [undefined, null, '', 7, {}])
      expect(faultOf(() => parseAccount({ workspace_id: id }, REQUEST)).kind).toBe('malformed');
  });

  test('takes a limit that makes no sense for one that was not told', () => {
    for (const odd of [0, -5, 1.5, '60', null, Number.POSITIVE_INFINITY, [], {}]) {
      const account = parseAccount(
        { workspace_id: 'w', plan: { ...plan, external_requests_per_minute: odd } },
        REQUEST,
      );
      expect([account.plan.requestsPerMinute, account.plan.requestsPerDay]).toEqual([null, 5000]);
    }
  });
});
