/** The simulated world: a function of its seed, the same from every side and at every point. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS, MS_NS, minNs, msToNs, parseTimestamp } from '../../src/core/time.ts';
import type { Precision } from '../../src/sim/instants.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import { createSeededWorld } from '../support/seeded-world.ts';
import { createWorld, type Trait } from '../support/trait-world.ts';
import { everything, ORIGIN_MS, worldOf } from './support.ts';

const DIGITS: Record<Precision, number> = { s: 0, ms: 3, us: 6, ns: 9 };

test('a seed always gives the same bytes, another seed others', () => {
  const digest = (seed: string): string => {
    const world = createSeededWorld({
      seed,
      originMs: ORIGIN_MS,
      historyMs: 2 * DAY_MS,
      fleet: { devices: 12, silentShare: 0.5, changingShare: 0.5, comingShare: 0.5 },
      devices: [{ deviceId: 'x', traits: ['ties', 'burst', 'hostile', 'oddValues', 'empty'], jitter: 0.7 }],
    });
    const hash = createHash('sha256');
    const json = (value: unknown): string =>
      JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? String(member) : member));
    for (const id of ['x', ...world.deviceIds(ORIGIN_MS)]) hash.update(json(everything(world, id)));
    return hash.update(json([world.devices(ORIGIN_MS), world.alerts(ORIGIN_MS)])).digest('hex');
  };
  expect(digest('one')).toBe(digest('one'));
  expect(digest('one')).not.toBe(digest('two'));
});

const shapes = fc.record({
  intervalMs: fc.constantFrom(450, 1000, 10_007, MINUTE_MS),
  jitter: fc.constantFrom(0, 0.1, 0.9, 1),
  precision: fc.constantFrom<Precision>('s', 'ms', 'us', 'ns'),
  traits: fc.subarray<Trait>(['ties', 'burst', 'empty']),
  silences: fc.array(
    fc.tuple(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 0, max: 300 })).map(([from, length]) => {
      const fromMs = ORIGIN_MS - 10 * MINUTE_MS + from * 600;
      return { fromMs, toMs: fromMs + length * 600 };
    }),
    { maxLength: 3 },
  ),
  cuts: fc.tuple(fc.integer({ min: -1000, max: 601_000 }), fc.integer({ min: 0, max: 601_000 })),
  offGridNs: fc.constantFrom(0n, 1n, 499_999n),
});

test('any range equals a scan of everything, forwards, backwards and from any position', () => {
  fc.assert(
    fc.property(shapes, ({ cuts, offGridNs, precision, ...spec }) => {
      const world = worldOf({ ...spec, burst: { every: 11, size: 210 } }, { precision, historyMs: 10 * MINUTE_MS });
      const fromNs = msToNs(ORIGIN_MS - 10 * MINUTE_MS + cuts[0]) + offGridNs;
      const toNs = minNs(fromNs + msToNs(cuts[1]), msToNs(ORIGIN_MS));
      const positions = (readings: Iterable<SimReading>): number[] => Array.from(readings, ({ position }) => position);
      const scanned = positions(
        everything(world).filter((reading) => reading.recordedAtNs >= fromNs && reading.recordedAtNs < toNs),
      );
      expect(positions(world.readings('d', fromNs, toNs)).join()).toBe(scanned.join());
      expect(positions(world.readingsDescending('d', { fromNs, toNs })).reverse().join()).toBe(scanned.join());
      const belowPosition = scanned[Math.floor(scanned.length / 3)] ?? 0;
      const below = scanned.filter((position) => position < belowPosition).reverse();
      expect(positions(world.readingsDescending('d', { fromNs, toNs, belowPosition })).join()).toBe(below.join());
    }),
    { numRuns: 60 },
  );
});

test('positions ascend strictly and times never go back, in every precision', () => {
  for (const precision of ['s', 'ms', 'us', 'ns'] as const) {
    const all = everything(worldOf({ traits: ['dense', 'ties'], jitter: 0.9 }, { precision, historyMs: MINUTE_MS }));
    expect(all.length).toBeGreaterThan(1400);
    for (const [at, reading] of all.entries()) {
      const next = all[at + 1];
      if (next === undefined) break;
      expect(next.position).toBeGreaterThan(reading.position);
      expect(next.recordedAtNs >= reading.recordedAtNs).toBe(true);
    }
  }
});

test('times are served with exactly the digits of the precision, and mean the time that is reported', () => {
  for (const precision of ['s', 'ms', 'us', 'ns'] as const) {
    for (const reading of everything(worldOf({ jitter: 0.5, intervalMs: MINUTE_MS }, { precision }))) {
      expect(reading.recordedAt).toMatch(
        new RegExp(`:\\d\\d${DIGITS[precision] === 0 ? '' : `\\.\\d{${DIGITS[precision]}}`}Z$`),
      );
      expect(parseTimestamp(reading.recordedAt)).toBe(reading.recordedAtNs);
      expect(msToNs(reading.visibleAtMs) >= reading.recordedAtNs).toBe(true);
    }
  }
});

test('without jitter the readings lie on the grid, for as long as the device has been there', () => {
  const all = everything(worldOf({ intervalMs: HOUR_MS, appearsAtMs: ORIGIN_MS - 5 * HOUR_MS }));
  expect(all.map(({ recordedAt }) => recordedAt.slice(11))).toEqual(
    ['07', '08', '09', '10', '11'].map((hour) => `${hour}:00:00.000Z`),
  );
});

test('the simulation continues after its origin, and the far future costs no more than today', () => {
  const world = worldOf({ intervalMs: MINUTE_MS });
  const fromNs = msToNs(ORIGIN_MS + 3650 * DAY_MS);
  const [newest] = world.readingsDescending('d', { fromNs: 0n, toNs: fromNs });
  expect(newest?.recordedAtNs).toBe(fromNs - 60_000n * MS_NS);
});

test('a thousand devices of a year are made and queried anywhere without being stored', () => {
  const world = createSeededWorld({
    seed: 1,
    originMs: ORIGIN_MS,
    historyMs: 365 * DAY_MS,
    fleet: { devices: 1000, silentShare: 1 },
  });
  const ids = world.deviceIds(ORIGIN_MS);
  expect(new Set(ids).size).toBe(1000);
  expect(ids).toEqual([...ids].sort());
  for (const id of ids) {
    const toNs = msToNs(ORIGIN_MS - 300 * DAY_MS);
    const [reading] = world.readingsDescending(id, { fromNs: 0n, toNs });
    expect(reading !== undefined && reading.recordedAtNs < toNs).toBe(true);
  }
});

test('a device appears, is renamed, moves, is paused, goes silent, vanishes and returns at its times', () => {
  const at = (hours: number): number => ORIGIN_MS + hours * HOUR_MS;
  const world = worldOf({
    name: 'old',
    intervalMs: 10 * MINUTE_MS,
    appearsAtMs: at(-20),
    renames: [{ atMs: at(-10), value: 'new' }],
    parentDeviceId: 'hub-1',
    moves: [
      { atMs: at(-9), value: 'hub-2' },
      { atMs: at(-1), value: null },
    ],
    lifecycle: [
      { atMs: at(-8), value: 'paused' },
      { atMs: at(-7), value: 'active' },
      { atMs: at(5), value: 'retired' },
    ],
    silences: [{ fromMs: at(-6), toMs: at(-5) }],
    vanishesAtMs: at(-4),
    returnsAtMs: at(-2),
    firmwareVersion: '1',
    firmwareChanges: [{ atMs: at(-3), value: '2' }],
  });
  const snapshot = (hours: number) => world.device('d', at(hours));
  expect([snapshot(-20.1), snapshot(-4), snapshot(-2.1), world.has('d', at(-3))]).toEqual([null, null, null, false]);
  expect(snapshot(-11)).toMatchObject({
    name: 'old',
    parentDeviceId: 'hub-1',
    isAddon: true,
    online: true,
    presence: 'reporting',
  });
  expect(snapshot(-7.1)).toMatchObject({
    name: 'new',
    lifecycleStatus: 'paused',
    online: false,
    presence: 'paused',
    parentDeviceId: 'hub-2',
  });
  expect(snapshot(-5.1)).toMatchObject({
    online: false,
    presence: 'no_signal',
    lastSeenAt: '2026-01-15T05:50:00.000Z',
  });
  expect(snapshot(0)).toMatchObject({
    name: 'new',
    isAddon: false,
    parentDeviceId: null,
    firmwareVersion: '2',
    online: true,
  });
  expect(snapshot(9)).toMatchObject({ lifecycleStatus: 'retired', presence: 'retired' });
  const hours = everything(world, 'd', at(10)).map(
    ({ recordedAtNs }) => Number(recordedAtNs / MS_NS - BigInt(ORIGIN_MS)) / HOUR_MS,
  );
  const quiet = [
    [-8, -7],
    [-6, -5],
    [-4, -2],
    [5, 99],
  ] as const;
  for (const hour of hours) expect(quiet.some(([from, to]) => hour >= from && hour < to)).toBe(false);
  expect(hours).toHaveLength((25 - 4) * 6);
});

test('a device that never reported is never seen', () => {
  const world = worldOf({ silences: [{ fromMs: -Infinity, toMs: Infinity }] });
  expect(world.device('d', ORIGIN_MS)).toMatchObject({ online: false, presence: 'never_seen', lastSeenAt: null });
  expect(everything(world)).toEqual([]);
});

test('two devices of one id are a mistake', () => {
  expect(() => createWorld({ seed: 1, originMs: ORIGIN_MS, devices: [{ deviceId: 'd' }, { deviceId: 'd' }] })).toThrow(
    RangeError,
  );
});
