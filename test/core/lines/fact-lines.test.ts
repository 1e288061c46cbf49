/** The points that are not telemetry (devices, account, coverage, alerts), read back by a reference parser. */
import { describe, expect, test } from 'vitest';
import {
  coverageLine,
  deviceDigest,
  deviceLine,
  type KnownAlert,
  observeAlert,
  workspaceLine,
} from '../../../src/core/lines/fact-lines.ts';
import type { Account, AlertRecord, DeviceRecord } from '../../../src/core/records.ts';
import { DAY_NS, nsToMs } from '../../../src/core/time.ts';
import { parseReferenceLine, type ReferenceLine } from '../../support/reference-parser.ts';
import { at, BARE_DEVICE } from '../support/readings.ts';

const AT_MS = 1_768_478_400_000;
const AT_NS = 1_768_478_400_000_000_000n;

const FULL: DeviceRecord = {
  deviceId: 'd-1',
  name: 'Pump, east',
  modelId: 'M 2',
  firmwareVersion: '1.4.2',
  isAddon: true,
  parentDeviceId: 'd-0',
  lifecycleStatus: 'active',
  online: false,
  presence: 'no "signal"',
  lastSeenAt: at(1.5),
  latitude: 52.5,
  longitude: -13.25,
  locationUpdatedAt: at(0.25),
  tags: ['roof', 'a b'],
};

/** Tags and fields in their order, as plain pairs. */
function parts(line: string): Omit<ReferenceLine, 'tags' | 'fields'> & { tags: unknown; fields: unknown } {
  const { measurement, tags, fields, at: instant } = parseReferenceLine(line);
  return { measurement, tags: [...tags], fields: [...fields], at: instant };
}

describe('a device point', () => {
  test('has the tags and fields of the table, in this order, at the time of the answer', () => {
    expect(parts(deviceLine(FULL, 'w1', AT_MS))).toEqual({
      measurement: 'device',
      tags: [
        ['device_id', 'd-1'],
        ['device_name', 'Pump, east'],
        ['model_id', 'M 2'],
        ['workspace_id', 'w1'],
      ],
      fields: [
        ['label', 'Pump, east (d-1)'],
        ['online', 0],
        ['presence', 'no "signal"'],
        ['lifecycle_status', 'active'],
        ['firmware_version', '1.4.2'],
        ['is_addon', 1],
        ['parent_device_id', 'd-0'],
        ['latitude', 52.5],
        ['longitude', -13.25],
        ['location_updated_at', '2026-01-15T12:00:00.25Z'],
        ['last_seen_ms', AT_MS + 1500],
        ['tags', 'roof,a b'],
      ].toSorted(lastSeenLast),
      at: AT_NS,
    });
  });

  test('leaves out null fields and empty tags; the id replaces the name', () => {
    expect(parts(deviceLine(BARE_DEVICE, 'w1', AT_MS))).toEqual({
      measurement: 'device',
      tags: [
        ['device_id', 'd-1'],
        ['device_name', 'd-1'],
        ['workspace_id', 'w1'],
      ],
      fields: [['label', 'd-1 (d-1)']],
      at: AT_NS,
    });
  });

  test('keeps a zero, a false and an empty text: they are no nulls', () => {
    const zero = {
      ...BARE_DEVICE,
      latitude: 0,
      longitude: 0,
      online: false,
      isAddon: false,
      presence: '',
      lastSeenAt: 0n,
    };
    expect(parts(deviceLine(zero, 'w1', AT_MS)).fields).toEqual([
      ['label', 'd-1 (d-1)'],
      ['online', 0],
      ['presence', ''],
      ['is_addon', 0],
      ['latitude', 0],
      ['longitude', 0],
      ['last_seen_ms', 0],
    ]);
  });
});

/** The form of the line has `last_seen_ms` at its end. */
function lastSeenLast([a]: readonly unknown[], [b]: readonly unknown[]): number {
  return Number(a === 'last_seen_ms') - Number(b === 'last_seen_ms');
}

describe('the digest of a device point', () => {
  test('does not change with the time that the device was last seen', () => {
    expect(deviceDigest({ ...FULL, lastSeenAt: at(99) })).toBe(deviceDigest(FULL));
    expect(deviceDigest({ ...FULL, lastSeenAt: null })).toBe(deviceDigest(FULL));
  });

  test('changes with every other field of the point', () => {
    const changes: Partial<DeviceRecord>[] = [
      { deviceId: 'd-2' },
      { name: 'Pump' },
      { modelId: 'M 3' },
      { firmwareVersion: '1.4.3' },
      { isAddon: false },
      { isAddon: null },
      { parentDeviceId: null },
      { lifecycleStatus: 'paused' },
      { online: true },
      { online: null },
      { presence: null },
      { latitude: 52.500001 },
      { longitude: null },
      { locationUpdatedAt: at(0.5) },
      { tags: ['roof'] },
      { tags: [] },
    ];
    const digests = [FULL, ...changes.map((change) => ({ ...FULL, ...change }))].map(deviceDigest);
    expect(new Set(digests).size).toBe(digests.length);
  });
});

const ACCOUNT: Account = {
  workspaceId: 'w1',
  name: 'Acme',
  plan: {
    planId: 'pro',
    name: 'Pro',
    maxApiKeys: 5,
    requestsPerMinute: 60,
    requestsPerDay: 5000,
    historyMaxDays: 30,
    maxDevicesPerPage: 200,
  },
  devices: 12,
  openAlerts: 0,
};
const USE = { spentMinute: 3, leftMinute: 57, spentDay: 120, leftDay: 4880 };
const WORKSPACE = { workspaceTag: 'w1', atMs: AT_MS };

describe('a workspace point', () => {
  test('has every limit of the plan by the name of the API, and the used requests', () => {
    expect(parts(workspaceLine(ACCOUNT, USE, WORKSPACE))).toEqual({
      measurement: 'workspace',
      tags: [['workspace_id', 'w1']],
      fields: [
        ['name', 'Acme'],
        ['devices', 12],
        ['open_alerts', 0],
        ['plan_id', 'pro'],
        ['plan_name', 'Pro'],
        ['max_api_keys', 5],
        ['external_requests_per_minute', 60],
        ['external_requests_per_day', 5000],
        ['history_max_days', 30],
        ['max_devices_per_page', 200],
        ['requests_spent_minute', 3],
        ['requests_left_minute', 57],
        ['requests_spent_day', 120],
        ['requests_left_day', 4880],
      ],
      at: AT_NS,
    });
  });

  test('leaves out missing fields of the account; the id replaces the name', () => {
    const plan = {
      planId: null,
      name: null,
      maxApiKeys: null,
      requestsPerMinute: null,
      requestsPerDay: null,
      historyMaxDays: null,
      maxDevicesPerPage: null,
    };
    const untold: Account = { workspaceId: 'w1', name: null, plan, devices: null, openAlerts: null };
    const use = { spentMinute: 0, leftMinute: null, spentDay: 0, leftDay: null };
    expect(parts(workspaceLine(untold, use, WORKSPACE)).fields).toEqual([
      ['name', 'w1'],
      ['requests_spent_minute', 0],
      ['requests_spent_day', 0],
    ]);
  });
});

describe('a coverage point', () => {
  test('has the state, the lag and the gap of a device', () => {
    const facts = {
      deviceId: 'd-1',
      deviceName: 'Pump',
      state: 'catching-up',
      lagSeconds: 1.5,
      gapSeconds: 0,
      lifecycleStatus: 'active',
      watermarkNs: AT_NS,
    } as const;
    expect(parts(coverageLine({ ...facts, atNs: AT_NS + 1n }, 'w1'))).toEqual({
      measurement: 'coverage',
      tags: [
        ['device_id', 'd-1'],
        ['device_name', 'Pump'],
        ['workspace_id', 'w1'],
      ],
      fields: [
        ['state', 'catching-up'],
        ['lag_seconds', 1.5],
        ['gap_seconds', 0],
        ['active', 1],
        ['watermark_ms', nsToMs(AT_NS)],
      ],
      at: AT_NS + 1n,
    });
  });

  test.each([
    ['paused', 0],
    ['shelved', 0],
    ['retired', 0],
    ['something new', 1],
  ])('shows whether a device that is %s should report: %d', (lifecycleStatus, active) => {
    const facts = { deviceId: 'd', deviceName: 'n', state: 'silent', lagSeconds: 0, gapSeconds: 0 } as const;
    const line = coverageLine({ ...facts, lifecycleStatus, watermarkNs: AT_NS, atNs: AT_NS }, 'w1');
    expect(parts(line).fields).toContainEqual(['active', active]);
  });

  test('has no watermark where there is none', () => {
    const facts = {
      deviceId: 'd',
      deviceName: 'n',
      state: 'catching-up',
      lagSeconds: 9,
      gapSeconds: 9,
      lifecycleStatus: null,
    } as const;
    const { fields } = parseReferenceLine(coverageLine({ ...facts, watermarkNs: null, atNs: AT_NS }, 'w1'));
    expect([...fields.keys()]).toEqual(['state', 'lag_seconds', 'gap_seconds']);
  });
});

describe('the state of an alert', () => {
  const ALERT: AlertRecord = {
    alertId: 1,
    deviceId: 'd',
    ruleName: null,
    kind: null,
    sensor: null,
    condition: null,
    threshold: null,
    value: 1,
    fireCount: 1,
    status: 'open',
    openedAt: 5n * DAY_NS,
  };
  const observe = (alert: AlertRecord, known: KnownAlert | null, atNs: bigint) =>
    observeAlert(alert, { known, deviceName: null, atNs, workspaceTag: 'w' });

  test('is written at its own time, though the one before was observed by a clock that was a year ahead', () => {
    const ahead = observe(ALERT, null, 400n * DAY_NS).known;
    const [line] = observe({ ...ALERT, fireCount: 2 }, ahead, 10n * DAY_NS).lines;
    expect(line?.endsWith(` ${10n * DAY_NS}`)).toBe(true);
    expect(observe(ALERT, ahead, 10n * DAY_NS).known.stateNs, 'unchanged, and repeated').toBe(10n * DAY_NS);
  });

  test('is written a nanosecond later than the one before at the same time', () => {
    const { known } = observe(ALERT, null, 10n * DAY_NS);
    expect(observe({ ...ALERT, fireCount: 2 }, known, 10n * DAY_NS).known.stateNs).toBe(10n * DAY_NS + 1n);
  });
});

test('no name is a tag in one point and a field in another', () => {
  const facts = {
    deviceId: 'd',
    deviceName: 'n',
    state: 'live',
    lagSeconds: 0,
    gapSeconds: 0,
    lifecycleStatus: null,
    watermarkNs: null,
    atNs: 1n,
  } as const;
  const lines = [deviceLine(FULL, 'w', 1), workspaceLine(ACCOUNT, USE, WORKSPACE), coverageLine(facts, 'w')];
  const read = lines.map(parseReferenceLine);
  const tags = new Set(read.flatMap((line) => [...line.tags.keys()]));
  for (const field of read.flatMap((line) => [...line.fields.keys()])) expect(tags).not.toContain(field);
});
