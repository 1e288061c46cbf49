import { describe, expect, test } from 'vitest';
import type { KnownDevice } from '../../src/core/state/inventory.ts';
import type { FleetFigures, StreamStatus } from '../../src/core/status.ts';
import { readyNow } from '../../src/report/ready.ts';

const NO_DEVICES = { listed: 0, present: 0, lastDayMissing: 0 } as FleetFigures;

/** @param lastReadAt of the list of devices. */
function codes(fleet: FleetFigures | null, lastReadAt: string | null, hasDevices = false): readonly string[] {
  const devices: StreamStatus = { name: 'devices', state: 'on', reason: null, last_read_at: lastReadAt };
  const streams = { trouble: () => null, isRefused: () => false, failingLong: () => [], list: () => [devices] };
  const store = { devices: () => [{ goneSinceMs: hasDevices ? null : 1 } as KnownDevice] };
  const room = { usedBytes: 0, maxBytes: null, diskFreeBytes: null, full: null };
  return readyNow({ deliverers: [], streams, room: { status: () => room }, store, fleet: () => fleet }).codes;
}

describe('a workspace without devices', () => {
  test('is ready once the list was read', () => {
    expect(codes(NO_DEVICES, null)).toEqual(['devices_not_listed']);
    expect(codes(null, '2026-11-21T00:00:00Z')).toEqual(['devices_not_listed']);
    expect(codes(NO_DEVICES, '2026-11-21T00:00:00Z')).toEqual([]);
    expect(codes(NO_DEVICES, '2026-11-21T00:00:00Z', true), 'the list was just read').toEqual(['devices_not_listed']);
  });
});
