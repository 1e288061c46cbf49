/**
 * Shared parts of the tests of the rules: readings and pages in few words, and the small integers that stand for times.
 */
import type { CoveredRange, Edge } from '../../../src/core/coverage.ts';
import type { Interval, Intervals } from '../../../src/core/intervals.ts';
import { readingDigest } from '../../../src/core/lines/points.ts';
import type { Cursor, DeviceRecord, JsonValue, Reading, TelemetryPage } from '../../../src/core/records.ts';
import { type EpochNs, SECOND_NS } from '../../../src/core/time.ts';

/** 2026-01-15T12:00:00Z: where the seconds of the tests are counted from. */
export const T0: EpochNs = 1_768_478_400n * SECOND_NS;

/** The instant so many seconds after {@link T0}; fractions to the microsecond. */
export function at(seconds: number): EpochNs {
  return T0 + BigInt(Math.round(seconds * 1e6)) * 1000n;
}

/** A reading at an instant with its values; without any it has one that follows from its instant. */
export function readingAt(recordedAt: EpochNs, values: Readonly<Record<string, JsonValue>> = {}): Reading {
  const pairs = Object.entries(values);
  return { recordedAt, values: pairs.length > 0 ? pairs : [['t', Number(recordedAt % 1_000_000_007n)]] };
}

/** A reading so many seconds after {@link T0}. */
export function reading(seconds: number, values: Readonly<Record<string, JsonValue>> = {}): Reading {
  return readingAt(at(seconds), values);
}

/** A reading as coverage remembers it. */
export function edgeOf(held: Reading): Edge {
  return { at: held.recordedAt, digest: readingDigest(held) };
}

/** A page as the API serves it; `next`: whether it names another one. */
export function pageOf(readings: readonly Reading[], next: string | null = null): TelemetryPage {
  return { deviceId: 'd1', readings, rejected: [], nextCursor: next === null ? null : (next as Cursor) };
}

/** The set of the small integers in the intervals. */
export function instantsOf(intervals: Intervals): Set<number> {
  const found = new Set<number>();
  for (const { from, to } of intervals) for (let at = from; at < to; at += 1n) found.add(Number(at));
  return found;
}

/** The interval between two small integers. */
export function between(from: number, to: number): Interval {
  return { from: BigInt(from), to: BigInt(to) };
}

/** A covered range without readings at its edges. */
export function bare({ from, to }: Interval): CoveredRange {
  return { from, to, first: null, last: null };
}

/** The members of `a` that are not in `b`. */
export function without(a: ReadonlySet<number>, b: ReadonlySet<number>): Set<number> {
  return new Set([...a].filter((member) => !b.has(member)));
}

/** A device of which nothing is known but its id. */
export const BARE_DEVICE: DeviceRecord = {
  deviceId: 'd-1',
  name: null,
  modelId: null,
  firmwareVersion: null,
  isAddon: null,
  parentDeviceId: null,
  lifecycleStatus: null,
  online: null,
  presence: null,
  lastSeenAt: null,
  latitude: null,
  longitude: null,
  locationUpdatedAt: null,
  tags: [],
};
