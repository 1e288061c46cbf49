/**
 * The truth of a story against the database: which readings the service shows at a moment, and whether each of their
 * values stands in the store. What was found there once is not looked for again, until the store has lost something.
 */
import type { Interval } from '../../src/core/intervals.ts';
import { identityTag } from '../../src/core/lines/line-protocol.ts';
import { type EpochMs, type EpochNs, msToNs, nsToMs } from '../../src/core/time.ts';
import type { SimReading } from '../../src/sim/spec.ts';
import type { Simulator } from '../support/faulty-simulator.ts';
import { flatten, TIE_REACH, textsOf, type ValueText } from '../support/judge.ts';
import { type LineStore, sensorName } from './line-store.ts';

/** A reading with the values that can be points. */
interface Entry {
  readonly reading: SimReading;
  /** When, as a line has it. */
  readonly time: string;
  readonly values: readonly (readonly [sensor: string, value: ValueText])[];
}

/** When it is looked, and where. */
export interface Moment {
  readonly nowMs: EpochMs;
  /** Only what the service has shown by then counts; `nowMs` where it is left out. */
  readonly shownByMs?: EpochMs;
  /**
   * Readings handed in later than the grace period count if they were there by then: they cannot be known before a
   * poll.
   */
  readonly lateByMs: EpochMs;
  /** Points that are archived and on their way to the database. */
  readonly pending: () => LineStore;
  /** Whether the absence of a reading cannot be noticed yet. */
  readonly isExcused?: (deviceId: string, reading: SimReading) => boolean;
}

export interface Truth {
  /** Readings and their values that the service shows by then. */
  shown(atMs: EpochMs): { readonly readings: number; readonly values: number };
  /** The readings of ranges that the service shows at a moment and that stand neither in the database nor on the way there. */
  lacking(deviceId: string, ranges: readonly Interval[], at: Moment): EpochNs[];
  /** The database has lost something: all is looked for again. */
  forget(): void;
}

/** Which readings of a device have to be there at a moment, unless their absence cannot be noticed yet. */
function dueAt(
  { simulator, graceMs }: Pick<TruthParts, 'simulator' | 'graceMs'>,
  deviceId: string,
  { nowMs, shownByMs = nowMs, lateByMs }: Moment,
): (reading: SimReading) => boolean {
  return (reading) => {
    const byMs = isLate(reading, graceMs) ? Math.min(shownByMs, lateByMs) : shownByMs;
    return simulator.isVisible(deviceId, reading, byMs);
  };
}

/** Whether a reading was handed in later than the grace period allows. */
export function isLate({ visibleAtMs, recordedAtNs }: SimReading, graceMs: number): boolean {
  return visibleAtMs - nsToMs(recordedAtNs) > graceMs;
}

/** The sources of the truth. */
interface TruthParts {
  readonly simulator: Simulator;
  readonly deviceIds: readonly string[];
  readonly graceMs: number;
  /** The store that the program delivers to now. */
  readonly database: () => LineStore;
}

/** The truth of a story. */
export function createTruth({ simulator, deviceIds, graceMs, database }: TruthParts): Truth {
  const all = new Map(deviceIds.map((deviceId) => [deviceId, entriesOf(simulator, deviceId)] as const));
  /** The points that were not seen in the database yet. */
  const open = new Map(all);
  return {
    shown: (atMs) => {
      let [readings, values] = [0, 0];
      for (const [deviceId, entries] of all) {
        for (const entry of entries) {
          if (!simulator.isVisible(deviceId, entry.reading, atMs)) continue;
          readings += 1;
          values += entry.values.length;
        }
      }
      return { readings, values };
    },
    lacking: (deviceId, ranges, moment) => {
      const nowNs = msToNs(Math.floor(moment.nowMs)) + 1n;
      const places = [database()];
      const isDue = dueAt({ simulator, graceMs }, deviceId, moment);
      const found: EpochNs[] = [];
      const left: Entry[] = [];
      for (const entry of open.get(deviceId) ?? []) {
        const { reading } = entry;
        const { recordedAtNs: at } = reading;
        if (at <= nowNs && stands(entry, places)) continue;
        left.push(entry);
        if (!ranges.some(({ from, to }) => from <= at && at < to)) continue;
        // The search for an excuse is the slowest part.
        const isMissing = isDue(reading) && !stands(entry, [...places, moment.pending()]);
        if (isMissing && moment.isExcused?.(deviceId, reading) !== true) found.push(at);
      }
      open.set(deviceId, left);
      return found;
    },
    forget: () => {
      for (const [deviceId, entries] of all) open.set(deviceId, entries);
    },
  };
}

function entriesOf({ world }: Simulator, deviceId: string): Entry[] {
  const tag = identityTag(deviceId);
  return [...world.readings(deviceId, 0n, 2n ** 63n)].map((reading) => ({
    reading,
    time: String(reading.recordedAtNs),
    values: (reading.values ?? [])
      .flatMap(flatten)
      .map(([name, value]) => [sensorName(tag, identityTag(name)), value] as const),
  }));
}

/** Whether every value of it stands in one of the places: at its instant, or behind others of the same instant. */
function stands({ reading, time, values }: Entry, places: readonly LineStore[]): boolean {
  return values.every(([sensor, value]) => {
    const first = look(places, { sensor, time, value });
    if (first !== 'another') return first === 'there';
    for (let at = reading.recordedAtNs + 1n; at < reading.recordedAtNs + TIE_REACH; at += 1n) {
      const next = look(places, { sensor, time: String(at), value });
      if (next !== 'another') return next === 'there';
    }
    return false;
  });
}

/** Whether a value stands at an instant of a sensor, or another one does, or none. */
function look(
  places: readonly LineStore[],
  { sensor, time, value }: { readonly sensor: string; readonly time: string; readonly value: ValueText },
): 'there' | 'another' | 'nothing' {
  let isAny = false;
  for (const place of places) {
    const fields = place.telemetryAt(sensor, time);
    if (fields === undefined) continue;
    for (const text of textsOf(fields)) {
      if (text === value) return 'there';
      isAny = true;
    }
  }
  return isAny ? 'another' : 'nothing';
}
