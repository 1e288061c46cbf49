/**
 * The facts of the status page about a device after a real sync, against the seed of the simulated workspace.
 */
import { describe, expect, test } from 'vitest';
import { runOnce } from '../../../src/commands/once/run.ts';
import { identityTag } from '../../../src/core/lines/line-protocol.ts';
import type { DevicePageFacts, SensorSeries } from '../../../src/core/page-facts.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, parseTimestamp } from '../../../src/core/time.ts';
import { sensorsOf } from '../../../src/sim/devices.ts';
import { liveAsDaemon, worldOf } from '../../support/daemon-rig.ts';
import { influxdAvailable } from '../../support/influxd.ts';
import { openBench, openRig, type Rig } from '../../support/rig.ts';
import { sharedBench } from '../../support/shared-bench.ts';
import type { DeviceSpec } from '../../support/trait-world.ts';
import { ALL } from './support.ts';

const DEVICES: readonly DeviceSpec[] = [
  { deviceId: 'hub', name: 'Cellar', intervalMs: 5 * MINUTE_MS, jitter: 0.5, sensors: sensorsOf(3) },
  { deviceId: 'tied', intervalMs: 7 * MINUTE_MS, traits: ['ties'], parentDeviceId: 'hub', sensors: sensorsOf(3) },
  { deviceId: 'odd', intervalMs: 11 * MINUTE_MS, traits: ['hostile', 'oddValues'], sensors: sensorsOf(30) },
];

interface SeedValue {
  readonly at: bigint;
  readonly value: number;
}

/** The numbers that the seed has of a device in a range, by sensor; the same one at the same instant is one. */
function seedOf({ simulator }: Rig, deviceId: string, { from, to }: DevicePageFacts): Map<string, SeedValue[]> {
  const range = [from, to].map((text) => parseTimestamp(text) ?? 0n);
  const all = new Map<string, Map<string, SeedValue>>();
  for (const { recordedAtNs: at, values } of simulator.world.readings(deviceId, range[0] ?? 0n, range[1] ?? 0n)) {
    const visit = (name: string, value: unknown): void => {
      if (typeof value === 'object' && value !== null) {
        for (const [key, inner] of Object.entries(value)) visit(`${name}.${key}`, inner);
      }
      if (typeof value !== 'number' || !Number.isFinite(value)) return;
      const sensor = identityTag(name);
      all.set(sensor, (all.get(sensor) ?? new Map()).set(`${at} ${value + 0}`, { at, value: value + 0 }));
    };
    for (const [name, json] of values ?? []) visit(name, JSON.parse(json));
  }
  return new Map([...all].map(([sensor, values]) => [sensor, [...values.values()]]));
}

function expectSeries(series: SensorSeries, seed: readonly SeedValue[]): void {
  expect(series.values).toBe(seed.length);
  expect(parseTimestamp(series.last.at)).toBeGreaterThanOrEqual(seed.at(-1)?.at ?? 0n);
  const [first, second] = series.times;
  const half = ((second ?? 0) - (first ?? 0)) / 2;
  let [filled, wrong] = [0, 0];
  for (const [cell, middle] of series.times.entries()) {
    const isIn = ({ at }: SeedValue): boolean =>
      Number(at / 1_000_000n) >= (middle - half) * 1000 && Number(at / 1_000_000n) < (middle + half) * 1000;
    const inside = seed.filter(isIn).map(({ value }) => value);
    filled += Number(inside.length > 0);
    const none = inside.length === 0;
    const mean = inside.reduce((sum, value) => sum + value, 0) / inside.length;
    const isRight = none
      ? series.min[cell] === null && series.mean[cell] === null && series.max[cell] === null
      : series.min[cell] === Math.min(...inside) &&
        series.max[cell] === Math.max(...inside) &&
        Math.abs((series.mean[cell] ?? Number.NaN) - mean) <= 1e-9 * Math.max(1, Math.abs(mean));
    wrong += Number(!isRight);
  }
  expect([filled > 0, wrong]).toEqual([true, 0]);
}

describe.runIf(influxdAvailable())('the status page after a sync', () => {
  const bench = sharedBench(openBench);
  const rigOf = async (): Promise<Rig> => await openRig(bench, { world: worldOf(DEVICES), historyMs: 3 * DAY_MS });

  test.each([
    ['hub', 6 * HOUR_MS],
    ['hub', 3 * DAY_MS - HOUR_MS],
    ['tied', DAY_MS],
    ['odd', DAY_MS],
  ])('the series of %s over %d ms are those of the seed', async (deviceId, rangeMs) => {
    using rig = await rigOf();
    using sync = open(rig);
    await runOnce(sync.sync, new AbortController().signal);
    const seconds = rangeMs / 1000;
    const page = await sync.sync.pageFacts(() => []).device(deviceId, seconds);
    if (page === null) throw new Error('no page');
    // Readings after the sync cannot be there; all before it are.
    const newest = parseTimestamp(page.device.newest_reading_at ?? '') ?? 0n;
    const coveredTo = parseTimestamp(page.device.covered.at(-1)?.[1] ?? '') ?? 0n;
    expect(newest).toBeGreaterThan(coveredTo - BigInt(15 * MINUTE_MS) * 1_000_000n);
    expect(page.range_seconds).toBe(seconds);
    const seed = new Map(
      [...seedOf(rig, deviceId, page)].map(([sensor, values]) => [sensor, values.filter(({ at }) => at <= newest)]),
    );
    const shown = page.sensors.map(({ sensor }) => sensor);
    const left = [...seed.keys()].filter((sensor) => !shown.includes(sensor.length > 200 ? cut(sensor) : sensor));
    expect(left.length).toBe(page.sensors_left_out);
    expect(shown.length).toBeGreaterThan(1);
    for (const series of page.sensors) {
      const sensor = [...seed.keys()].find((name) => series.sensor === name || series.sensor === cut(name)) ?? '';
      expectSeries(series, seed.get(sensor) ?? []);
    }
  });

  test('rows show the newest reading of the seed, hubs by name, and all days of the wanted range', async () => {
    using rig = await rigOf();
    using opened = open(rig);
    const { sync } = opened;
    await runOnce(sync, new AbortController().signal);
    const { rows, states, bar_from } = sync.pageFacts(() => []).devices(ALL);
    expect(rows.map(({ device_name, hub_name }) => [device_name, hub_name])).toEqual([
      ['Cellar', null],
      ['odd', null],
      ['tied', 'Cellar'],
    ]);
    expect(states).toMatchObject({ live: 3, 'catching-up': 0 });
    // No blank days before the wanted range.
    expect(bar_from).toBe('2026-06-12T00:00:00Z');
    expect(rows.map(({ bar }) => bar)).toEqual(Array.from(rows, () => '####'));
    const now = BigInt(Math.floor(rig.clock.nowMs())) * 1_000_000n;
    const newest = [...rig.simulator.world.readings('hub', 0n, now)].at(-1);
    expect(parseTimestamp(rows[0]?.newest_reading_at ?? '')).toBe(newest?.recordedAtNs);
    const values = (newest?.values ?? []).map(([sensor, json]) => [sensor, json]).toSorted();
    expect(rows[0]?.values.map(({ sensor, value }) => [sensor, String(JSON.parse(value))])).toEqual(
      values.map(([sensor, json]) => [sensor, String(JSON.parse(json ?? ''))]),
    );
  });

  test('while the daemon runs, an outage shows in the list and goes by itself', async () => {
    using rig = await rigOf();
    const seen: string[] = [];
    await liveAsDaemon(rig, {
      forMs: 4 * HOUR_MS,
      beside: (sync) => [
        async (signal) => {
          const { devices } = sync.pageFacts(() => []);
          const look = (): void => {
            const [worst] = devices({ ...ALL, sort: 'lag' }).rows;
            const lag = worst?.lag_seconds ?? null;
            seen.push(`${lag !== null && lag < 600 ? 'fresh' : 'behind'} ${worst?.bar.at(-1) ?? 'no device'}`);
          };
          look();
          await rig.clock.sleep(HOUR_MS, signal);
          look();
          rig.simulator.faults = (_, { path }) => (path.includes('/telemetry') ? { kind: 'server-error' } : null);
          await rig.clock.sleep(HOUR_MS, signal);
          look();
          rig.simulator.faults = () => null;
          await rig.clock.sleep(1.5 * HOUR_MS, signal);
          look();
        },
      ],
    });
    expect(seen).toEqual(['behind no device', 'fresh #', 'behind .', 'fresh #']);
  });
});

const cut = (sensor: string): string => `${[...sensor].slice(0, 199).join('')}…`;

function open(rig: Rig) {
  const sync = rig.open();
  return { sync, [Symbol.dispose]: () => sync.close() };
}
