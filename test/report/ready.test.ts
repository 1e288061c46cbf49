/** Readiness, and the line about the end of the initial sync: once, and not before. */
import { describe, expect, test } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import type { FleetFigures } from '../../src/core/figures.ts';
import type { ServerClock } from '../../src/core/server-clock.ts';
import type { KnownDevice } from '../../src/core/state/inventory.ts';
import type { DeviceStatus, StatusReport } from '../../src/core/status.ts';
import { createFirstFill, readyNow } from '../../src/report/ready.ts';

const NO_DEVICES = { listed: 0, present: 0, lastDayMissing: 0 } as FleetFigures;

/** @param isListed whether the devices were listed to their end since the start. */
function codes(
  fleet: FleetFigures | null,
  isListed: boolean,
  hasDevices = false,
  unconfirmed: ReturnType<ServerClock['unconfirmed']> = null,
  fallenToMs: number | null = null,
  isLocalBehind = false,
): readonly string[] {
  const streams = {
    list: () => [],
    problem: () => null,
    isKeyRejected: () => false,
    failingLong: () => [],
    isListed: () => isListed,
  };
  const store = { devices: () => [{ goneSinceMs: hasDevices ? null : 1 } as KnownDevice] };
  const space = { usedBytes: 0, maxBytes: null, diskFreeBytes: null, full: null };
  const parts = { deliverers: [], streams, space: { status: () => space }, store, fleet: () => fleet };
  const serverClock = {
    unconfirmed: () => unconfirmed,
    fallenToMs: () => fallenToMs,
    isLocalBehind: () => isLocalBehind,
  };
  return readyNow({ ...parts, serverClock }).codes;
}

test('a clock of the API that agrees with no other is not relied on', () => {
  const filled = { listed: 2, present: 2, lastDayMissing: 0 } as FleetFigures;
  expect(codes(filled, true)).toEqual([]);
  expect(codes(filled, true, false, { dateMs: 0, confirmedInMs: 1 })).toEqual(['clock_unconfirmed']);
  expect(codes(filled, true, false, null, 0), 'it has fallen back').toEqual(['clock_unconfirmed']);
  expect(codes(filled, true, false, null, null, true), 'the local one is behind').toEqual(['clock_unconfirmed']);
});

describe('the device list', () => {
  test('is waited for to its end, whatever is known from before', () => {
    const filled = { listed: 2, present: 2, lastDayMissing: 0 } as FleetFigures;
    expect(codes(NO_DEVICES, false)).toEqual(['devices_not_listed']);
    expect(codes(filled, false, true), 'devices of an earlier process').toEqual(['devices_not_listed']);
    expect(codes(null, true)).toEqual(['devices_not_listed']);
    expect(codes(NO_DEVICES, true, true), 'it was just read').toEqual(['devices_not_listed']);
  });

  test('may be empty', () => {
    expect(codes(NO_DEVICES, true)).toEqual([]);
  });
});

const gap = (reason: string) => ({ from: 'a', to: 'b', reason });

function device(changes: Partial<DeviceStatus> = {}): DeviceStatus {
  const covered = [['a', 'b']] as const;
  const common = { device_id: 'd', device_name: 'd', active: true, newest_reading_at: null };
  return { ...common, state: 'live', lag_seconds: 0, covered: covered, gaps: [], ...changes };
}

/** The events about these devices after a few scans, ten seconds apart. */
function eventsOf(devices: readonly DeviceStatus[], ready = true): AppEvent[] {
  const events: AppEvent[] = [];
  let nowMs = 0;
  const report = {
    devices,
    totals: { archived_points: 99 },
    freshness: { behind_after_seconds: 60 },
    destinations: [{ pending_points: 5 }, { pending_points: 2 }],
  } as unknown as StatusReport;
  const look = createFirstFill({
    report: () => report,
    ready: () => ({ ready, reasons: [], codes: [], names: [] }),
    observe: (event) => events.push(event),
    clock: { monoMs: () => nowMs },
    statusPage: 'http://127.0.0.1:9464/',
  });
  for (; nowMs < 60_000; nowMs += 10_000) look();
  return events;
}

const done = { type: 'initial-sync-done', points: 99, pending: 7, statusPage: 'http://127.0.0.1:9464/' };

describe('the line about the end of the initial sync', () => {
  test('is reported once when all is covered up to the last check', () => {
    const catchingUp = device({ state: 'catching-up', lag_seconds: 70, gaps: [gap('pending')] });
    const excluded = device({ state: 'excluded', lag_seconds: null, gaps: [gap('excluded')] });
    expect(eventsOf([device(), catchingUp, excluded])).toEqual([{ ...done, devices: 2, withGaps: 0 }]);
  });

  test('gaps that cannot be closed now do not keep it back, and are counted', () => {
    const hidden = device({ gaps: [gap('beyond_plan')] });
    const gone = device({ state: 'unreachable', lag_seconds: null, covered: [], gaps: [gap('device_gone')] });
    expect(eventsOf([device(), hidden, gone])).toEqual([{ ...done, devices: 3, withGaps: 2 }]);
  });

  test('is not reported while a device has a pending gap', () => {
    const filling = device({ lag_seconds: 70, gaps: [gap('pending'), gap('pending')] });
    expect(eventsOf([device(), filling])).toEqual([]);
    expect(eventsOf([device({ lag_seconds: 50, gaps: [gap('pending')] })])).toEqual([]);
    expect(eventsOf([device({ lag_seconds: null, covered: [] })])).toEqual([]);
    expect(eventsOf([])).toEqual([]);
    expect(eventsOf([device()], false)).toEqual([]);
  });
});
