/** The stored devices, signs of life, alerts and last points, and when a device counts as gone. */
import { describe, expect, test } from 'vitest';
import type { ListedDevice } from '../../../src/core/state/inventory.ts';
import { device, readAll, type ScratchStore, scratchStore } from '../support.ts';

const listed = (deviceId: string, changes: Partial<ListedDevice> = {}): ListedDevice => ({
  record: device(deviceId),
  name: deviceId,
  line: null,
  digest: 'digest',
  ...changes,
});

function keep(state: ScratchStore, atMs: number, ids: readonly string[], missing: readonly string[] = []): void {
  state.store.saveInventory({ listed: ids.map((id) => listed(id)), missing, atMs });
}

describe('the inventory', () => {
  test('gives a device back as it was listed, to the nanosecond', () => {
    using state = scratchStore();
    const bare = device('bare', {
      name: null,
      lastSeenAt: null,
      locationUpdatedAt: null,
      latitude: null,
      online: null,
      tags: [],
    });
    const records = [device('full'), bare, device('é "x",=\\')];
    const all = records.map((record) => listed(record.deviceId, { record }));
    state.store.saveInventory({ listed: all, missing: [], atMs: 7 });
    state.reopen();
    expect(state.store.devices().map(({ record }) => record)).toEqual(
      records.toSorted((a, b) => (a.deviceId < b.deviceId ? -1 : 1)),
    );
    expect(state.store.devices()[0]).toMatchObject({ firstListedMs: 7, lastListedMs: 7, goneSinceMs: null });
  });

  test('keeps up to when a list shows the signs of life, apart from when its answer came', () => {
    using state = scratchStore();
    const change = { listed: [listed('a')], missing: [] };
    state.store.saveInventory({ ...change, atMs: 30, listedToMs: 20 });
    expect(state.store.devices()[0]).toMatchObject({ firstListedMs: 30, lastListedMs: 20 });
    state.store.saveInventory({ ...change, atMs: 40 });
    expect(state.store.devices()[0]).toMatchObject({ firstListedMs: 30, lastListedMs: 40 });
  });

  test('counts a device as gone after two complete listings without it, and not after one', () => {
    using state = scratchStore();
    const gone = () => state.store.devices().map(({ goneSinceMs }) => goneSinceMs);
    keep(state, 10, ['a', 'b']);
    keep(state, 20, ['b'], ['a']);
    expect(gone()).toEqual([null, null]);
    keep(state, 30, ['b'], ['a']);
    expect(gone()).toEqual([30, null]);
    keep(state, 40, ['b'], ['a']);
    expect(gone(), 'since when does not move').toEqual([30, null]);
  });

  test('begins to count anew when a device was listed in between', () => {
    using state = scratchStore();
    keep(state, 10, ['a']);
    keep(state, 20, [], ['a']);
    keep(state, 30, ['a']);
    keep(state, 40, [], ['a']);
    expect(state.store.devices()[0]).toMatchObject({ goneSinceMs: null, lastListedMs: 30 });
    keep(state, 50, [], ['a']);
    expect(state.store.devices()[0]).toMatchObject({ goneSinceMs: 50, lastListedMs: 30 });
  });

  test('a device is gone at once after its own 404, and back when it answers, not when it is listed', () => {
    using state = scratchStore();
    keep(state, 10, ['a']);
    state.store.markGone('a', 15);
    state.store.markGone('a', 16);
    expect(state.store.devices()[0]?.goneSinceMs).toBe(15);
    keep(state, 20, ['a']);
    expect(state.store.devices()[0]).toMatchObject({ goneSinceMs: 15, firstListedMs: 10, lastListedMs: 20 });
    state.store.markBack('a');
    expect(state.store.devices()[0]).toMatchObject({ goneSinceMs: null, firstListedMs: 10, lastListedMs: 20 });
  });

  test('restores a device that was missing when it is listed', () => {
    using state = scratchStore();
    keep(state, 10, ['a']);
    keep(state, 20, [], ['a']);
    keep(state, 30, [], ['a']);
    expect(state.store.devices()[0]?.goneSinceMs).toBe(30);
    keep(state, 40, ['a']);
    expect(state.store.devices()[0]).toMatchObject({ goneSinceMs: null, lastListedMs: 40 });
    keep(state, 50, [], ['a']);
    expect(state.store.devices()[0]?.goneSinceMs, 'the count begins anew').toBeNull();
  });

  test('restores a device that was gone by its own 404, and is listed again after a list without it', () => {
    using state = scratchStore();
    keep(state, 10, ['a']);
    state.store.markGone('a', 15);
    keep(state, 20, [], ['a']);
    expect(state.store.devices()[0]).toMatchObject({ goneSinceMs: 15, lastListedMs: 10 });
    keep(state, 30, ['a']);
    expect(state.store.devices()[0]).toMatchObject({ goneSinceMs: null, lastListedMs: 30 });
    keep(state, 40, [], ['a']);
    expect(state.store.devices()[0]?.goneSinceMs, 'the count begins anew').toBeNull();
  });

  test('keeps all that it holds of a device that is gone', () => {
    using state = scratchStore();
    state.store.saveInventory({ listed: [listed('a', { line: 'device a', digest: 'x' })], missing: [], atMs: 10 });
    keep(state, 20, [], ['a']);
    keep(state, 30, [], ['a']);
    expect(state.store.telemetry('a').names).toEqual([{ fromNs: 0n, name: 'a' }]);
    expect(state.store.lastDevicePoint('a')).toEqual({ digest: 'x', atNs: 10_000_000n });
    expect(readAll(state, 'live').lines).toEqual(['device a']);
  });

  test('remembers the last point of a device with the line that it archives, and of none without', () => {
    using state = scratchStore();
    const { store } = state;
    expect(store.lastDevicePoint('a')).toBeNull();
    store.saveInventory({ listed: [listed('a', { line: 'first', digest: 'x' })], missing: [], atMs: 10 });
    store.saveInventory({ listed: [listed('a', { line: null, digest: 'y' })], missing: [], atMs: 20 });
    expect(store.lastDevicePoint('a')).toEqual({ digest: 'x', atNs: 10_000_000n });
    expect(readAll(state, 'live').lines).toEqual(['first']);
  });

  test('stores a listing completely or not at all', () => {
    using state = scratchStore();
    const broken = listed('b', { record: { ...device('b'), deviceId: null as unknown as string } });
    const change = { listed: [listed('a', { line: 'device a' }), broken], missing: [], atMs: 10 };
    expect(() => state.store.saveInventory(change)).toThrow(/NOT NULL/);
    expect(state.store.devices()).toEqual([]);
    expect(readAll(state, 'live').lines).toEqual([]);
    expect(state.store.telemetry('a').names).toEqual([]);
  });

  test('keeps the last coverage point of each device with its line', () => {
    using state = scratchStore();
    keep(state, 10, ['a', 'b']);
    state.store.saveCoveragePoints([
      { deviceId: 'a', state: 'live', watermarkNs: 99n, atNs: 123n, line: 'coverage a' },
    ]);
    state.reopen();
    expect(state.store.coveragePoints()).toEqual(new Map([['a', { state: 'live', watermarkNs: 99n, atNs: 123n }]]));
    expect(readAll(state, 'live').lines).toEqual(['coverage a']);
  });

  test('stores whole milliseconds of a clock that counts in fractions', () => {
    using state = scratchStore();
    keep(state, 10.75, ['a']);
    state.store.markGone('a', 11.5);
    state.store.nameGap({ deviceId: 'a', fromNs: 1n, toNs: 2n, reason: 'beyond_plan', retryAtMs: 12.25 });
    const types = state.rows(
      'SELECT typeof(first_listed_ms) a, typeof(gone_since_ms) b, typeof(retry_at_ms) c FROM device JOIN gap USING (device_id)',
    );
    expect(types).toEqual([{ a: 'integer', b: 'integer', c: 'integer' }]);
  });
});
