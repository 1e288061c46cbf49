/** The workspace of the demo: enough to look at, and enough going on in its first minutes. */
import { expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import { createDemoWorld } from '../../src/sim/demo-world.ts';
import { ORIGIN_MS } from './support.ts';

const world = createDemoWorld(ORIGIN_MS);

test('worlds that begin at different moments have different readings, and are different workspaces', () => {
  const later = createDemoWorld(ORIGIN_MS + 1000);
  const instants = (each: typeof world) =>
    [...each.readings('add-ham-01', msToNs(ORIGIN_MS - DAY_MS), msToNs(ORIGIN_MS))].map(({ recordedAt }) => recordedAt);
  expect(instants(later)).not.toEqual(instants(world));
  expect([world, later].map(({ workspaceId }) => workspaceId)).toEqual([
    'ws-demo-20260115-120000',
    'ws-demo-20260115-120001',
  ]);
});

test('some dozens of hubs and add-ons, each add-on with a hub that is there, with names, tags and places', () => {
  const devices = world.devices(ORIGIN_MS);
  const ids = new Set(devices.map(({ deviceId }) => deviceId));
  expect(devices.length).toBeGreaterThanOrEqual(24);
  expect(devices.filter(({ isAddon }) => !isAddon)).toHaveLength(4);
  for (const { parentDeviceId } of devices) expect(parentDeviceId === null || ids.has(parentDeviceId)).toBe(true);
  expect(new Set(devices.map(({ name }) => name))).toContain('Cold room 2');
  expect(devices.filter(({ latitude, tags }) => latitude !== null && tags.length > 0).length).toBeGreaterThan(20);
  expect(new Set(devices.map(({ presence }) => presence))).toEqual(new Set(['reporting', 'no_signal', 'paused']));
});

test('the devices have half a year of history, reported every 20 s to 15 min', () => {
  const rates = world.deviceIds(ORIGIN_MS).map((id) => {
    const day = [...world.readings(id, msToNs(ORIGIN_MS - 13 * DAY_MS), msToNs(ORIGIN_MS - 12 * DAY_MS))];
    return day.length;
  });
  expect(Math.max(...rates)).toBe(4320);
  expect(rates.filter((rate) => rate >= 90 && rate <= 1440).length).toBeGreaterThan(22);
  const [first] = world.readings('hub-ham-1', 0n, msToNs(ORIGIN_MS));
  expect(first?.recordedAt.slice(0, 10)).toBe('2025-07-19');
});

test('within ten minutes a device each is renamed, appears, retires, moves and returns', () => {
  const name = (id: string, minutes: number) => world.device(id, ORIGIN_MS + minutes * MINUTE_MS);
  expect([name('add-ham-02', 0)?.name, name('add-ham-02', 10)?.name]).toEqual(['Cold room 2', 'Cold room 2 (dairy)']);
  expect([name('add-ham-21', 0), name('add-ham-21', 10)?.online]).toEqual([null, true]);
  expect([name('add-ber-05', 0)?.lifecycleStatus, name('add-ber-05', 10)?.lifecycleStatus]).toEqual([
    'active',
    'retired',
  ]);
  expect([name('add-bre-02', 0)?.parentDeviceId, name('add-bre-02', 10)?.parentDeviceId]).toEqual([
    'hub-bre-1',
    'hub-muc-1',
  ]);
  expect([name('add-bre-20', 0)?.online, name('add-bre-20', 15)?.online]).toEqual([false, true]);
});

test('alerts of all states, about devices that are there', () => {
  const alerts = world.alerts(ORIGIN_MS);
  expect(alerts.length).toBeGreaterThan(300);
  expect(new Set(alerts.map(({ status }) => status)).size).toBe(3);
  const ids = new Set([...world.deviceIds(ORIGIN_MS)]);
  for (const { deviceId } of alerts) expect(ids.has(deviceId)).toBe(true);
});

test('an alert opens with the value that its device measured then, beyond the threshold of its rule', () => {
  const opened = world.alerts(ORIGIN_MS).map(({ alertId, openedAtMs }) => {
    const alert = world.alerts(openedAtMs).find((one) => one.alertId === alertId);
    if (alert === undefined) throw new Error(`no alert ${alertId}`);
    return { ...alert, openedAtMs };
  });
  for (const { deviceId, sensor, value, threshold, condition, openedAtMs } of opened) {
    const range = { fromNs: msToNs(openedAtMs - DAY_MS), toNs: msToNs(openedAtMs) };
    const readings = world.readingsDescending(deviceId, range);
    const newest = [...readings].find(({ values }) => values?.some(([key]) => key === sensor));
    expect(newest?.values, condition).toContainEqual([sensor, String(value)]);
    expect(condition.includes('above') ? value > threshold : value < threshold, condition).toBe(true);
  }
  expect(new Set(opened.map(({ ruleName }) => ruleName)).size).toBeGreaterThan(4);
});

test('thresholds are crossed rarely, so that a chart does not lie beyond one all day without an alert', () => {
  const newest = new Map(
    world
      .alerts(ORIGIN_MS)
      .toReversed()
      .map((alert) => [`${alert.deviceId} ${alert.ruleName}`, alert]),
  );
  const range = { fromNs: msToNs(ORIGIN_MS - DAY_MS), toNs: msToNs(ORIGIN_MS) };
  const shares = [...newest.values()].flatMap(({ deviceId, sensor, condition, threshold }) => {
    const values = [...world.readingsDescending(deviceId, range)].flatMap(({ values: all }) =>
      (all ?? []).filter(([key]) => key === sensor).map(([, value]) => Number(value)),
    );
    const beyond = values.filter((value) => (condition.includes('above') ? value > threshold : value < threshold));
    return values.length === 0 ? [] : [beyond.length / values.length];
  });
  expect(shares.length).toBeGreaterThan(50);
  expect(shares.reduce((sum, share) => sum + share, 0) / shares.length).toBeLessThan(0.03);
});
