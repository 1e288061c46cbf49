/** A backfilled range that ends before the present leaves the time after it alone, unless that time is wanted. */
import { expect, test } from 'vitest';
import type { TelemetryState } from '../../src/core/state/telemetry.ts';
import { createIsolatedRanges, noteIsolated, ownWantedFrom } from '../../src/scheduler/isolated-ranges.ts';

const WANTED = 1000n;

/** Facts that outlive nothing. */
function facts() {
  const kept = new Map<string, string>();
  return {
    fact: (key: string) => kept.get(key) ?? null,
    saveFact: (key: string, text: string) => void kept.set(key, text),
    kept,
  };
}

/** Where the wanted range of a device begins by the ranges of these facts. */
function begins(store: ReturnType<typeof facts>, ...rest: [TelemetryState, bigint]): bigint {
  return ownWantedFrom(createIsolatedRanges(store)(), ...rest);
}

/** The covered ranges of a device. */
function covered(deviceId: string, ...ranges: readonly (readonly [bigint, bigint])[]): TelemetryState {
  return { deviceId, covered: ranges.map(([from, to]) => ({ from, to, last: null })) } as unknown as TelemetryState;
}

test('a device without coverage begins with the wanted range', () => {
  expect(begins(facts(), covered('a'), WANTED)).toBe(WANTED);
});

test('a device continues from its coverage, however old that is', () => {
  expect(begins(facts(), covered('a', [100n, 200n]), WANTED)).toBe(200n);
  expect(begins(facts(), covered('a', [100n, 1200n]), WANTED)).toBe(WANTED);
});

test('while the newest range is being filled, from the one before it', () => {
  expect(begins(facts(), covered('a', [100n, 200n], [500n, 600n]), WANTED)).toBe(200n);
});

test('a backfilled range is not continued for its devices', () => {
  const store = facts();
  noteIsolated(store, { from: 100n, to: 200n, devices: ['a'], states: [covered('a')] });
  expect(begins(store, covered('a', [100n, 200n]), WANTED)).toBe(WANTED);
  expect(begins(store, covered('a', [100n, 150n]), WANTED), 'half filled').toBe(WANTED);
  expect(begins(store, covered('a', [100n, 201n]), WANTED), 'grown beyond it').toBe(201n);
  expect(begins(store, covered('b', [100n, 200n]), WANTED), 'another device').toBe(200n);
  expect(begins(store, covered('a', [100n, 200n], [900n, 950n]), WANTED), 'beside its own range').toBe(950n);
});

test('without devices it is of all of them, also of those that come later', () => {
  const store = facts();
  noteIsolated(store, { from: 100n, to: 200n, devices: [], states: [] });
  expect(begins(store, covered('new', [100n, 200n]), WANTED)).toBe(WANTED);
});

test('a device that was read live until somewhere in it still has its later range wanted', () => {
  const store = facts();
  const states = [covered('kept', [50n, 150n]), covered('other', [50n, 90n])];
  noteIsolated(store, { from: 100n, to: 200n, devices: [], states });
  expect(begins(store, covered('kept', [50n, 200n]), WANTED)).toBe(200n);
  expect(begins(store, covered('other', [100n, 200n]), WANTED)).toBe(WANTED);
});

test('a range within a later one of the same devices is not kept beside it', () => {
  const store = facts();
  const note = (from: bigint, to: bigint, devices: readonly string[]): void =>
    noteIsolated(store, { from, to, devices, states: [] });
  note(100n, 200n, ['a']);
  note(90n, 210n, ['b']);
  expect(JSON.parse([...store.kept.values()][0] ?? '')).toHaveLength(2);
  note(90n, 210n, []);
  expect(JSON.parse([...store.kept.values()][0] ?? '')).toEqual([{ from: '90', to: '210', devices: null }]);
});
