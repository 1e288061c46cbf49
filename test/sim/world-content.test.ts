/** The contents of the simulated workspace: values, traits and alerts. */
import { expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import { createSeededWorld } from '../support/seeded-world.ts';
import { createWorld, HOSTILE_KEYS, LONG_KEY, ODD_VALUES } from '../support/trait-world.ts';
import { everything, ORIGIN_MS, worldOf } from './support.ts';

test('values are sensible: finite decimals within the sensor, another each time', () => {
  const world = createSeededWorld({
    seed: 3,
    originMs: ORIGIN_MS,
    historyMs: DAY_MS,
    fleet: { devices: 20, sensors: [12, 14] },
  });
  const seen = new Map<string, Set<string>>();
  for (const id of world.deviceIds(ORIGIN_MS)) {
    for (const { values } of everything(world, id)) {
      for (const [key, json] of values ?? []) {
        expect(json).toMatch(/^-?\d+(\.\d{1,3})?$/);
        seen.set(key, (seen.get(key) ?? new Set()).add(json));
      }
    }
  }
  expect([...seen.keys()]).toEqual(
    expect.arrayContaining(['temperature', 'battery_voltage', 'co2', 'rssi', 'temperature_2']),
  );
  expect(seen.get('temperature')?.size).toBeGreaterThan(200);
});

test('trait ties: several readings at one instant, some equal, some disjoint, some in conflict', () => {
  const groups = groupByTime(everything(worldOf({ traits: ['ties'], intervalMs: MINUTE_MS })));
  const tied = groups.filter((group) => group.length > 1);
  expect(tied.length).toBeGreaterThan(100);
  const kinds = tied.map((group) => {
    const [a = [], b = []] = group.map(({ values }) => values ?? []);
    if (JSON.stringify(a) === JSON.stringify(b)) return 'equal';
    return a.some(([key]) => b.some(([other]) => key === other)) ? 'conflict' : 'disjoint';
  });
  expect(new Set(kinds)).toEqual(new Set(['equal', 'conflict', 'disjoint']));
});

test('trait burst: more readings at one instant than a page holds', () => {
  const sizes = groupByTime(everything(worldOf({ traits: ['burst'], intervalMs: MINUTE_MS }))).map(
    (group) => group.length,
  );
  expect(new Set(sizes)).toEqual(new Set([1, 250]));
});

function groupByTime(readings: readonly SimReading[]): SimReading[][] {
  return [...Map.groupBy(readings, ({ recordedAtNs }) => recordedAtNs).values()];
}

test('the traits hostile, oddValues and empty give every name and every value as legal JSON', () => {
  const all = everything(worldOf({ traits: ['hostile', 'oddValues', 'empty'], intervalMs: MINUTE_MS }));
  const pairs = all.flatMap(({ values }) => values ?? []);
  const keys = new Set(pairs.map(([key]) => key));
  expect([...HOSTILE_KEYS, LONG_KEY, ...ODD_VALUES.map(([key]) => key)].filter((key) => !keys.has(key))).toEqual([]);
  for (const [, json] of pairs) expect(() => JSON.parse(json)).not.toThrow();
  expect(pairs).toContainEqual(['odd_overflow', '1e400']);
  expect(all.some(({ values }) => values === null) && all.some(({ values }) => values?.length === 0)).toBe(true);
});

test('alerts: newest first, with ids that never change, open at first and resolved in the end', () => {
  const world = createSeededWorld({ seed: 5, originMs: ORIGIN_MS, historyMs: 60 * DAY_MS, fleet: { devices: 5 } });
  const early = world.alerts(ORIGIN_MS - 10 * DAY_MS);
  const late = world.alerts(ORIGIN_MS);
  const ids = late.map(({ alertId }) => alertId);
  expect(ids).toEqual([...ids].sort((a, b) => b - a));
  expect(ids.slice(-early.length)).toEqual(early.map(({ alertId }) => alertId));
  const statuses = new Set(late.map(({ status }) => status));
  expect(statuses).toEqual(new Set(['open', 'acknowledged', 'resolved']));
  const resolved = late.slice(-100).filter(({ status }) => status === 'resolved');
  expect(resolved.length).toBeGreaterThan(85);
  const opened = late.at(-1);
  expect(world.alerts(opened?.openedAtMs ?? 0)[0]).toMatchObject({
    alertId: opened?.alertId,
    status: 'open',
    fireCount: 1,
  });
});

test('unresolved alerts are counted as the list shows them, old and new', () => {
  const devices = [{ deviceId: 'd', intervalMs: 5 * MINUTE_MS }];
  const world = createWorld({
    seed: 5,
    originMs: ORIGIN_MS,
    historyMs: 200 * DAY_MS,
    alerts: { everyMs: HOUR_MS },
    devices,
  });
  const counts = Array.from({ length: 40 }, (_, at) => ORIGIN_MS - at * 5 * DAY_MS).map((atMs) => ({
    counted: world.unresolvedAlerts(atMs),
    listed: world.alerts(atMs).filter(({ status }) => status !== 'resolved').length,
  }));
  expect(counts[0]?.listed).toBeGreaterThan(30);
  expect(counts.map(({ counted }) => counted)).toEqual(counts.map(({ listed }) => listed));
});

test('alerts by description: equal times in the order of their ids, changes at their times', () => {
  const resolved = { status: 'resolved', fireCount: 3, value: 9 } as const;
  const changes = [{ atMs: ORIGIN_MS + 10, value: resolved }];
  const alerts = [1, 3, 2].map((alertId) => ({ alertId, deviceId: 'd', openedAtMs: ORIGIN_MS, changes }));
  const world = worldOf({}, { alerts });
  expect(world.alerts(ORIGIN_MS - 1)).toEqual([]);
  expect(world.alerts(ORIGIN_MS + 9).map(({ alertId, status }) => `${alertId} ${status}`)).toEqual([
    '3 open',
    '2 open',
    '1 open',
  ]);
  expect(world.alerts(ORIGIN_MS + 10)[0]).toMatchObject({ alertId: 3, ...resolved });
});
