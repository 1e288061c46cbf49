/**
 * Decides at which nanosecond a value is written: at its own time, or just after it if the series has another value
 * there.
 *
 * Device, time, sensor and value identify a point; coverage plays no part. The same value at the same time is one
 * point. Different values at one time all survive: each later one takes the next free nanosecond. The state keeps that
 * offset forever, so the same reading always becomes the same line.
 */

import type { TimestampOffset } from '../state/telemetry.ts';
import { type EpochNs, MS_NS } from '../time.ts';
import { readSeries, seriesOf } from './line-reader.ts';

/** The largest offset: how far beyond a range its values may be written, in ns. */
export const MAX_OFFSET_NS = MS_NS;

/** The used timestamps of one device in one range. It grows as values are added. */
export interface UsedTimestamps {
  /** Returns where to write the value, or `null` if it is already stored. */
  assign(value: RecordedValue): EpochNs | null;
  /** The offsets that were decided since the start. */
  newOffsets(): readonly TimestampOffset[];
}

/** A value at the instant at which it was recorded. */
export interface RecordedValue {
  /** The sensor as its tag value reads (not escaped). */
  readonly sensor: string;
  readonly recordedAt: EpochNs;
  /** The field as written in a line: `value=1.5`. */
  readonly field: string;
}

interface StoredValue {
  readonly field: string;
  readonly recordedAt: EpochNs;
}

/**
 * Reads the used timestamps.
 *
 * @param stored telemetry lines of the device, at least those written from `from` to `to` plus {@link MAX_OFFSET_NS}.
 * @param offsets the offsets of the device that touch that range.
 */
export function createUsedTimestamps(
  stored: readonly string[],
  offsets: readonly TimestampOffset[],
  { from, to }: { from: EpochNs; to: EpochNs },
): UsedTimestamps {
  /** By sensor, then by the time at which they are written: a page has many times and few sensors. */
  const taken = new Map<string, Map<EpochNs, StoredValue>>();
  const takenOf = (sensor: string): Map<EpochNs, StoredValue> => {
    let own = taken.get(sensor);
    if (own === undefined) {
      own = new Map();
      taken.set(sensor, own);
    }
    return own;
  };
  const moved = new Map<string, EpochNs>();
  const decided: TimestampOffset[] = [];
  for (const { sensor, field, recordedNs, writtenNs } of offsets) {
    moved.set(recordedKey(sensor, recordedNs, field), writtenNs);
    // Its timestamp stays used even after its line is cleared.
    takenOf(sensor).set(writtenNs, { field, recordedAt: recordedNs });
  }
  const movedTo = new Map(offsets.map((offset) => [key(offset.sensor, offset.writtenNs), offset.recordedNs]));
  const readValue = createValueReader();
  for (const line of linesBetween(stored, from, to + MAX_OFFSET_NS)) {
    const { sensor, field, at } = readValue(line);
    const recordedAt = movedTo.get(key(sensor, at)) ?? at;
    takenOf(sensor).set(at, { field, recordedAt });
  }
  return {
    assign: ({ sensor, recordedAt, field }) => {
      // Duplicate timestamps are rare; without any, no key is made.
      if (moved.size > 0 && moved.has(recordedKey(sensor, recordedAt, field))) return null;
      const own = takenOf(sensor);
      let writtenNs = recordedAt;
      for (let occupant = own.get(writtenNs); occupant !== undefined; occupant = own.get(writtenNs)) {
        if (occupant.recordedAt === recordedAt && occupant.field === field) return null;
        writtenNs += 1n;
      }
      own.set(writtenNs, { field, recordedAt });
      if (writtenNs !== recordedAt) {
        moved.set(recordedKey(sensor, recordedAt, field), writtenNs);
        decided.push({ sensor, recordedNs: recordedAt, field, writtenNs });
      }
      return writtenNs;
    },
    newOffsets: () => decided,
  };
}

const key = (sensor: string, at: EpochNs): string => `${at} ${sensor}`;

const recordedKey = (sensor: string, at: EpochNs, field: string): string => `${at} ${field} ${sensor}`;

/** The lines written in a range. Only their last word is read, because most lines lie outside it. */
function linesBetween(lines: readonly string[], from: EpochNs, to: EpochNs): readonly string[] {
  const [low, high] = [`${from}`, `${to}`];
  return lines.filter((line) => {
    const stamp = line.slice(line.lastIndexOf(' ') + 1);
    // Numbers with the same number of digits sort like their texts. Times of this century have 19 digits.
    if (stamp.length === low.length && stamp.length === high.length) return low <= stamp && stamp <= high;
    const at = BigInt(stamp);
    return from <= at && at <= to;
  });
}

/**
 * Creates a reader for lines of telemetry, which have one field each. Most lines belong to a known series, which is
 * read only once.
 */
function createValueReader(): (line: string) => { sensor: string; field: string; at: EpochNs } {
  const sensors = new Map<string, string>();
  return (line) => {
    const series = seriesOf(line);
    let sensor = sensors.get(series);
    if (sensor === undefined) {
      sensor = readSeries(series).find(([name]) => name === 'sensor')?.[1] ?? '';
      sensors.set(series, sensor);
    }
    const end = line.lastIndexOf(' ');
    return { sensor, field: line.slice(series.length + 1, end), at: BigInt(line.slice(end + 1)) };
  };
}
