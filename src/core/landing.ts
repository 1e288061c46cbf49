/**
 * From a judged page to what the state takes in: new lines, their places, the day's sums, the coverage and the hours.
 *
 * Pure. It promises that a landing computed twice from the same state and page is the same, and that what is held
 * already adds nothing.
 */
import { addSpan, type CoveredSpan } from './coverage.ts';
import { hash64 } from './hash.ts';
import { hourOf, hourStart, hoursToWrite } from './hours.ts';
import { encodeLine, encodePoint, encodeSeries, type SeriesKey } from './line-protocol.ts';
import { descriptiveTag, identityTag, type TagValue } from './line-text.ts';
import type { LogLane } from './log-state.ts';
import { nameAt } from './names.ts';
import { createPlaces, type Places } from './placing.ts';
import { type DropReason, flattenReading, type SensorValue } from './points.ts';
import type { Reading, RejectedRecord } from './records.ts';
import type { DaySum, Landing, TelemetryState, Tie } from './telemetry-state.ts';
import { DAY_NS, type EpochMs, type EpochNs, formatExact } from './time.ts';

export interface LandingInput {
  readonly state: TelemetryState;
  readonly workspaceId: string;
  readonly lane: LogLane;
  readonly requestId: number;
  /** The server's time of the answer. */
  readonly answeredAtMs: EpochMs;
  readonly readings: readonly Reading[];
  readonly rejected: readonly RejectedRecord[];
  /** What is held around these readings: see `Store.held`. */
  readonly held: { readonly lines: readonly string[]; readonly ties: readonly Tie[] };
  /** The stretch that the page proves. */
  readonly proven: CoveredSpan | null;
}

/** The time from the oldest to the newest reading of a page; `null` without readings. */
export function extentOf(readings: readonly Reading[]): { from: EpochNs; to: EpochNs } | null {
  const first = readings[0];
  if (first === undefined) return null;
  let from = first.recordedAt;
  let to = first.recordedAt;
  for (const { recordedAt } of readings) {
    if (recordedAt < from) from = recordedAt;
    if (recordedAt > to) to = recordedAt;
  }
  return { from, to };
}

/** Computes what a page changes. */
export function composeLanding(input: LandingInput): Landing {
  const { state, readings, proven } = input;
  const extent = extentOf(readings) ?? { from: 0n, to: 0n };
  const places = createPlaces(input.held.lines, input.held.ties, extent);
  const writer = createWriter(input, places);
  const hourReadings = new Map(state.hourReadings);
  let newReadings = 0;
  // Oldest first, so that a block reads in the order of time.
  for (const reading of readings.toReversed()) {
    if (writer.write(reading) === 0) continue;
    newReadings += 1;
    const hour = hourOf(reading.recordedAt);
    hourReadings.set(hour, (hourReadings.get(hour) ?? 0) + 1);
  }
  const spans = proven === null ? state.spans : addSpan(state.spans, proven);
  const { hours, written } = hoursToWrite(spans, state.hoursWritten);
  const sideLines = hours.map((hour) => hourLine(input, hour, hourReadings.get(hour) ?? 0));
  for (const hour of hourReadings.keys()) if (isWritten(written, hour)) hourReadings.delete(hour);
  return {
    deviceId: state.deviceId,
    revision: state.revision,
    lane: input.lane,
    requestId: input.requestId,
    atMs: input.answeredAtMs,
    ...writer.result(),
    sideLines,
    newReadings,
    ties: places.newTies(),
    spans,
    hourReadings,
    hoursWritten: written,
  };
}

function isWritten(written: LandingInput['state']['hoursWritten'], hour: number): boolean {
  const at = BigInt(hour);
  return written.some(({ from, to }) => from <= at && at < to);
}

function hourLine({ state, workspaceId }: LandingInput, hour: number, readings: number): string {
  const at = hourStart(hour);
  const name = nameAt(state.names, at) ?? state.deviceId;
  const line = encodeLine({
    measurement: 'coverage_hour',
    tags: [
      ['device_id', identityTag(state.deviceId)],
      ['device_name', descriptiveTag(name)],
      ['workspace_id', identityTag(workspaceId)],
    ],
    fields: [['readings', readings]],
    at,
  });
  if (line === null) throw new Error(`no line for hour ${hour} of ${state.deviceId}`);
  return line;
}

type Written = Pick<Landing, 'lines' | 'firstNs' | 'lastNs' | 'daySums' | 'rejected'>;

interface Writer {
  /** Writes what is new of a reading. @returns how many values that were. */
  write(reading: Reading): number;
  result(): Written;
}

function createWriter(input: LandingInput, places: Places): Writer {
  const series = createSeriesCache(input);
  const lines: string[] = [];
  const rejected = [...input.rejected];
  const days = new Map<number, DaySum>();
  let firstNs: EpochNs | null = null;
  let lastNs: EpochNs | null = null;
  const writeValue = (recordedAt: EpochNs, value: SensorValue): boolean => {
    const { key, sensor } = series(value.sensor, recordedAt);
    const line = encodePoint(key, [[value.field, value.value]], recordedAt);
    if (line === null) return false;
    const field = line.slice(key.length + 1, line.lastIndexOf(' '));
    const at = places.place({ sensor, recordedAt, field });
    if (at === null) return false;
    lines.push(at === recordedAt ? line : `${key} ${field} ${at}`);
    addToDay(days, at, `${at} ${sensor} ${field}`);
    if (firstNs === null || at < firstNs) firstNs = at;
    if (lastNs === null || at > lastNs) lastNs = at;
    return true;
  };
  return {
    write: (reading) => {
      const { values, dropped } = flattenReading(reading);
      if (dropped.size > 0) rejected.push(rejectedReading(reading, [...dropped.keys()]));
      const written = values.filter((value) => writeValue(reading.recordedAt, value)).length;
      if (written > 0) {
        const day = Number(reading.recordedAt / DAY_NS);
        const sum = days.get(day) ?? emptyDay(day);
        days.set(day, { ...sum, readings: sum.readings + 1 });
      }
      return written;
    },
    result: () => ({ lines, firstNs, lastNs, daySums: [...days.values()], rejected }),
  };
}

/** The identity that a point counts with in the sum of its day: what a database gives back of it, nothing more. */
function addToDay(days: Map<number, DaySum>, at: EpochNs, identity: string): void {
  const day = Number(at / DAY_NS);
  const { hi, lo } = hash64(identity);
  const sum = days.get(day) ?? emptyDay(day);
  days.set(day, {
    ...sum,
    points: sum.points + 1,
    hashHigh: (sum.hashHigh + hi) % 2 ** 32,
    hashLow: (sum.hashLow + lo) % 2 ** 32,
  });
}

function emptyDay(day: number): DaySum {
  return { day, readings: 0, points: 0, hashHigh: 0, hashLow: 0 };
}

const RECORD_LENGTH = 2000;

function rejectedReading(reading: Reading, reasons: readonly DropReason[]): RejectedRecord {
  // JSON has no word for an infinite number; the text keeps what it was.
  const values = JSON.stringify(reading.values, (_, value) =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
  );
  const record = `{"recorded_at":"${formatExact(reading.recordedAt)}","values":${values}}`;
  return { reason: reasons.join(', '), record: record.slice(0, RECORD_LENGTH) };
}

/** The series of a sensor under the name that holds at a time: encoded once, not once a value. */
function createSeriesCache({
  state,
  workspaceId,
}: LandingInput): (sensor: string, at: EpochNs) => { key: SeriesKey; sensor: TagValue } {
  const device = identityTag(state.deviceId);
  const workspace = identityTag(workspaceId);
  const cache = new Map<string, Map<string, { key: SeriesKey; sensor: TagValue }>>();
  return (sensor, at) => {
    const name = nameAt(state.names, at) ?? state.deviceId;
    let ofName = cache.get(name);
    if (ofName === undefined) {
      ofName = new Map();
      cache.set(name, ofName);
    }
    let found = ofName.get(sensor);
    if (found === undefined) {
      const tag = identityTag(sensor);
      const key = encodeSeries('telemetry', [
        ['device_id', device],
        ['sensor', tag],
        ['device_name', descriptiveTag(name)],
        ['workspace_id', workspace],
      ]);
      found = { key, sensor: tag };
      ofName.set(sensor, found);
    }
    return found;
  };
}
