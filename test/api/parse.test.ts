/** The meaning of an answer of the API: pages of telemetry, devices and the account, and rejected parts of them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  parseAccount,
  parseAlertPage,
  parseDevicePage,
  parseTelemetryPage,
  type TimeLimit,
  telemetrySteps,
} from '../../src/api/parse.ts';
import { ApiFault } from '../../src/core/faults.ts';
import type { TelemetryPage } from '../../src/core/records.ts';
import { type EpochNs, parseTimestamp } from '../../src/core/time.ts';

const REQUEST = 'GET /x';
const AT = '2026-11-21T12:00:00.123456789Z';

function faultOf(parse: () => unknown): ApiFault {
  try {
    parse();
  } catch (error) {
    if (error instanceof ApiFault) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

function parse(body: unknown, limit?: TimeLimit): TelemetryPage {
  const steps = telemetrySteps(body, REQUEST, limit);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** The result of `JSON.parse` for a text: the only way in which an answer arrives. */
const telemetry = (json: string) => parseTelemetryPage(JSON.parse(json), REQUEST);

describe('a telemetry page', () => {
  test('keeps times to the nanosecond, and values as they were served', () => {
    const page = telemetry(`{"device_id":"d","data":[
      {"recorded_at":"${AT}","values":{"t":1.5,"s":"on","b":true,"n":null,"o":{"x":[1]}}},
      {"recorded_at":"2026-11-21T11:00:00Z","values":{}}],"next_cursor":"c=="}`);
    expect(page).toEqual({
      deviceId: 'd',
      readings: [
        {
          recordedAt: 1_795_262_400_123_456_789n,
          values: [
            ['t', 1.5],
            ['s', 'on'],
            ['b', true],
            ['n', null],
            ['o', { x: [1] }],
          ],
        },
        { recordedAt: parseTimestamp('2026-11-21T11:00:00Z'), values: [] },
      ],
      rejected: [],
      nextCursor: 'c==',
    });
  });

  test('rejects a reading of a time that no clock has reached, with the reason, and shows that there was one', () => {
    const at = (text: string): EpochNs => parseTimestamp(text) ?? 0n;
    const body = {
      data: [
        { recorded_at: '2026-11-22T12:00:00.000000001Z', values: { t: 1 } },
        { recorded_at: '2026-11-22T12:00:00Z', values: { t: 2 } },
        { recorded_at: '1970-01-01T00:00:00Z', values: { t: 3 } },
      ],
    };
    const page = parse(body, { latestNs: at('2026-11-22T12:00:00Z') });
    expect(page.readings.map(({ values }) => values[0]?.[1])).toEqual([2, 3]);
    expect(page).toMatchObject({
      hasFuture: true,
      rejected: [{ reason: expect.stringMatching(/in the future/) }],
    });
    expect(JSON.parse(page.rejected[0]?.record ?? '')).toEqual(body.data[0]);
    expect(parse(body).readings, 'any time that can be stored').toHaveLength(3);
  });

  test('keeps sensors that are called like parts of JavaScript', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '', '1'];
    const values = names.map((name) => `${JSON.stringify(name)}:1`).join();
    const [reading] = telemetry(`{"data":[{"recorded_at":"${AT}","values":{${values}}}]}`).readings;
    expect(reading?.values.map(([name]) => name).sort()).toEqual([...names].sort());
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });

  test('keeps a number that is too large as the number that JSON gives', () => {
    const [reading] = telemetry(`{"data":[{"recorded_at":"${AT}","values":{"x":1e400}}]}`).readings;
    expect(reading?.values).toEqual([['x', Number.POSITIVE_INFINITY]]);
  });

  test('treats missing values as none', () => {
    const page = telemetry(`{"data":[{"recorded_at":"${AT}"},{"recorded_at":"${AT}","values":null}]}`);
    expect(page.readings.map(({ values }) => values)).toEqual([[], []]);
    expect([page.deviceId, page.nextCursor]).toEqual([null, null]);
  });

  test.each([
    ['no object', '7'],
    ['null', 'null'],
    ['a list', '[]'],
    ['no time', '{"values":{"t":1}}'],
    ['a time that is null', '{"recorded_at":null}'],
    ['a time that is a number', '{"recorded_at":1795262400}'],
    ['a day that does not exist', '{"recorded_at":"2026-02-30T00:00:00Z"}'],
    ['no zone', '{"recorded_at":"2026-02-01T00:00:00"}'],
    ['inherited names only', '{"__proto__":{"recorded_at":"2026-11-21T12:00:00Z"}}'],
    ['values that are a list', `{"recorded_at":"${AT}","values":[1,2]}`],
    ['values that are a number', `{"recorded_at":"${AT}","values":5}`],
    [
      'values that are nested without end',
      `{"recorded_at":"${AT}","values":{"x":${'['.repeat(5000)}${']'.repeat(5000)}}}`,
    ],
  ])('sets a reading aside that is or has %s, and keeps the rest', (_what, json) => {
    const page = telemetry(`{"data":[{"recorded_at":"${AT}"},${json},{"recorded_at":"${AT}"}]}`);
    expect([page.readings.length, page.rejected.length]).toEqual([2, 1]);
    expect(page.rejected[0]?.reason).toMatch(/./);
  });

  test('keeps what it sets aside as JSON, shortened without a broken character', () => {
    const record = { recorded_at: 'never', note: `${'x'.repeat(1957)}😀${'y'.repeat(5000)}` };
    const [rejected] = parseTelemetryPage({ data: [record, { recorded_at: 'soon' }] }, REQUEST).rejected;
    expect(rejected?.record.length).toBeLessThanOrEqual(2001);
    expect(rejected?.record.isWellFormed()).toBe(true);
    expect(rejected?.record).toMatch(/^\{"recorded_at":"never","note":"x+/);
  });

  test.each([
    ['null', 'null'],
    ['a list', '[]'],
    ['no data', '{}'],
    ['data that is an object', '{"data":{}}'],
    ['data that is null', '{"data":null}'],
    ['an empty cursor, which the document rules out', '{"data":[],"next_cursor":""}'],
    ['a cursor that is a number', '{"data":[],"next_cursor":7}'],
    ['a cursor that is an object', '{"data":[],"next_cursor":{}}'],
    ['a cursor that is half a character', '{"data":[],"next_cursor":"\\ud800"}'],
    ['more records than can be requested', `{"data":[${'7,'.repeat(1000)}7]}`],
  ])('that is or has %s is malformed', (_what, json) => {
    expect(faultOf(() => telemetry(json))).toMatchObject({ kind: 'malformed', facts: { request: REQUEST } });
  });

  test('is parsed at far more than a hundred thousand readings a second', () => {
    const data = Array.from({ length: 200 }, (_, i) => ({
      recorded_at: `2026-11-21T12:00:${String(i % 60).padStart(2, '0')}.123456Z`,
      values: { temperature: 20 + i, humidity: 40.5, pressure: 1013.25 },
    }));
    const json = JSON.stringify({ device_id: 'd', data });
    // A million readings: at the promised rate, ten seconds, and the limit of a test is sixty.
    for (let i = 0; i < 5000; i += 1) expect(telemetry(json).readings.length).toBe(200);
  });
});

test('any JSON whatever gives a record or a fault, nothing else', () => {
  const names = [
    'data',
    'next_cursor',
    'device_id',
    'recorded_at',
    'values',
    'workspace_id',
    'plan',
    'usage',
    '__proto__',
  ];
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.jsonValue(),
      tie('object'),
      fc.array(tie('value'), { maxLength: 4 }),
    ),
    object: fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), tie('value'), { maxKeys: 6 }),
  })).value;
  fc.assert(
    fc.property(json, (value) => {
      const body = JSON.parse(JSON.stringify(value) ?? 'null');
      for (const parse of [parseAccount, parseDevicePage, parseTelemetryPage]) {
        try {
          parse(body, REQUEST);
        } catch (error) {
          expect(error).toBeInstanceOf(ApiFault);
        }
      }
    }),
    { numRuns: 500 },
  );
});

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

  test('is read completely', () => {
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

  test('may omit everything but its id, and have it of any type', () => {
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

  test('is read completely', () => {
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

  test('treats a limit that makes no sense as missing', () => {
    for (const odd of [0, -5, 1.5, '60', null, Number.POSITIVE_INFINITY, [], {}]) {
      const account = parseAccount(
        { workspace_id: 'w', plan: { ...plan, external_requests_per_minute: odd } },
        REQUEST,
      );
      expect([account.plan.requestsPerMinute, account.plan.requestsPerDay]).toEqual([null, 5000]);
    }
  });
});

test('a page of telemetry is parsed in steps of a bounded number of values, with the same result', () => {
  const values = Object.fromEntries(Array.from({ length: 300 }, (_, sensor) => [`s${sensor}`, sensor]));
  const body = { data: Array.from({ length: 200 }, () => ({ recorded_at: AT, values })) };
  const steps = telemetrySteps(body, REQUEST);
  let yields = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) yields += 1;
  expect(step.value).toEqual(parseTelemetryPage(body, REQUEST));
  expect(yields).toBe(Math.floor(200 / Math.ceil(5000 / 300)));
});

describe('a time that no clock has reached', () => {
  const LIMIT = { latestNs: 1_795_262_400_000_000_000n };

  test('is no last_seen_at: the device counts without it', () => {
    const { devices, rejected } = parseDevicePage(
      {
        data: [
          { device_id: 'a', last_seen_at: '2026-11-21T12:00:00.001Z' },
          { device_id: 'b', last_seen_at: '2026-11-21T12:00:00Z' },
        ],
      },
      REQUEST,
      LIMIT,
    );
    expect(devices.map(({ lastSeenAt }) => lastSeenAt)).toEqual([null, LIMIT.latestNs]);
    expect(rejected).toEqual([]);
  });

  test('rejects an alert that was opened then', () => {
    const { alerts, rejected } = parseAlertPage(
      {
        data: [
          { alert_id: 1, opened_at: '2026-11-21T12:00:01Z' },
          { alert_id: 2, opened_at: '2026-11-21T12:00:00Z' },
        ],
      },
      REQUEST,
      LIMIT,
    );
    expect(alerts.map(({ alertId }) => alertId)).toEqual([2]);
    expect(rejected).toMatchObject([{ reason: expect.stringMatching(/^opened_at .*in the future/) }]);
  });
});
