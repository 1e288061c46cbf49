/**
 * Computes the commit of a judged page: new lines and their offsets, the sums of days, the coverage and the complete
 * hours.
 *
 * Pure. The same state and page always give the same commit, and stored readings add nothing. Time, sensor and value
 * identify a stored reading; coverage plays no part.
 */

import { nameAt } from '../core/device-names.ts';
import { type DeviceFilter, filterReading } from '../core/filter.ts';
import { type Interval, type Intervals, includes } from '../core/intervals.ts';
import {
  descriptiveTag,
  encodeFieldValue,
  encodeLine,
  encodeSeries,
  identityTag,
  type TagValue,
} from '../core/lines/line-protocol.ts';
import { isTelemetryLine } from '../core/lines/line-reader.ts';
import { createUsedTimestamps, type UsedTimestamps } from '../core/lines/offsets.ts';
import {
  addPoint,
  type DropReason,
  flattenReading,
  identityOfSensor,
  readingDigest,
  readingHash,
  type SensorValue,
} from '../core/lines/points.ts';
import type { Reading, RejectedRecord } from '../core/records.ts';
import type { LogLane } from '../core/state/log.ts';
import type { DaySum, PageCommit, TelemetryState, TimestampOffset } from '../core/state/telemetry.ts';
import { DAY_NS, type EpochNs, formatExact } from '../core/time.ts';
import { type CoverageInput, coverageAfter, hourOf, hourStart, hoursToWrite, isCovered } from './coverage-rules.ts';

/** A judged page with the state of its device, from which the commit is composed. */
export interface CommitInput extends Omit<CoverageInput, 'state'> {
  readonly state: TelemetryState;
  readonly workspaceId: string;
  readonly lane: LogLane;
  readonly requestId: number;
  /** The readings that are not known to be stored ({@link withoutStored}); all by default. */
  readonly fresh?: readonly Reading[];
  /** Whether new readings in covered ranges do not count as late; `false` if absent. */
  readonly isRecheck?: boolean;
  readonly rejected: readonly RejectedRecord[];
  /** The stored lines around these readings: see `Store.stored`. */
  readonly stored: {
    readonly lines: readonly string[];
    readonly offsets: readonly TimestampOffset[];
    /** The ranges whose stored lines were cleared; none if absent. */
    readonly cleared?: Intervals;
  };
  /** The stored lines in blocks that overlap a range: see `Store.stored`. */
  readonly storedAt: (range: Interval) => { readonly lines: readonly string[]; readonly cleared?: Intervals };
  /** Which sensors are written; all by default. The covered range and its edges always come from complete readings. */
  readonly filter?: Pick<DeviceFilter, 'includesSensor' | 'wasLeftOut'> | undefined;
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

/** How many readings of a live page are remembered. A poll has the readings of about ten minutes. */
const MOST_REMEMBERED = 16;

/**
 * The readings of a page without those that are known to be stored, by instant and content: the ones at the edges of
 * covered ranges, which the page had to contain, and those of the last page. The other readings of a page that
 * continues from them lie outside all blocks, so no block has to be unpacked to find out that they are new.
 */
export function withoutStored(
  readings: readonly Reading[],
  { covered, lastPage }: Pick<TelemetryState, 'covered' | 'lastPage'>,
): readonly Reading[] {
  const digests = new Map<EpochNs, string[]>();
  for (const edge of covered.flatMap(({ first, last }) => [first, last])) {
    if (edge !== null) digests.set(edge.at, [...(digests.get(edge.at) ?? []), edge.digest]);
  }
  const isEdge = (reading: Reading): boolean =>
    digests.get(reading.recordedAt)?.includes(readingDigest(reading)) ?? false;
  const isRemembered = (reading: Reading): boolean => lastPage.length > 0 && lastPage.includes(readingHash(reading));
  return readings.filter((reading) => !isEdge(reading) && !isRemembered(reading));
}

/** Computes the changes that a page makes. */
export function composeCommit(input: CommitInput): PageCommit {
  const { state, fresh: readings = input.readings } = input;
  const writer = createWriter(input, extentOf(readings) ?? { from: 0n, to: 0n });
  const hourReadings = new Map(state.hourReadings);
  const newByHour = new Map<number, number>();
  const late: Reading[] = [];
  let newReadings = 0;
  // Oldest first, so that the lines in a block are in the order of time.
  for (const reading of readings.toReversed()) {
    const outcome = writeReading(writer, reading);
    if (outcome === 'stored' || outcome === 'addition') continue;
    newReadings += 1;
    const hour = hourOf(reading.recordedAt);
    hourReadings.set(hour, (hourReadings.get(hour) ?? 0) + 1);
    newByHour.set(hour, (newByHour.get(hour) ?? 0) + 1);
    if (outcome === 'late' && input.isRecheck !== true) late.push(reading);
  }
  const { covered, ...lateness } = coverageAfter(input, late);
  const { hours, written } = hoursToWrite(covered, state.hoursWritten);
  const sideLines = [
    ...correctedHours(input, newByHour),
    ...hours.map((hour) => hourLine(input, hour, hourReadings.get(hour) ?? 0)),
  ];
  for (const hour of hourReadings.keys()) if (includes(written, BigInt(hour))) hourReadings.delete(hour);
  const { lines, firstNs, lastNs, texts, rejected } = writer;
  return {
    deviceId: state.deviceId,
    revision: state.revision,
    lane: input.lane,
    requestId: input.requestId,
    atMs: input.answeredAtMs,
    lines,
    firstNs,
    lastNs,
    daySums: [...writer.days.values()].filter(({ readings: count, points }) => count > 0 || points > 0),
    ...(texts.size === 0 ? {} : { dayTexts: texts }),
    rejected,
    sideLines,
    newReadings,
    offsets: writer.timestamps.newOffsets(),
    covered,
    hourReadings,
    hoursWritten: written,
    lastPage: input.lane === 'live' ? input.readings.slice(0, MOST_REMEMBERED).map(readingHash) : [],
    ...lateness,
  };
}

/** The corrected lines of hours that were written before and have more readings now. */
function correctedHours(input: CommitInput, newByHour: ReadonlyMap<number, number>): readonly string[] {
  const { state, storedAt } = input;
  return [...newByHour].flatMap(([hour, count]) => {
    if (!includes(state.hoursWritten, BigInt(hour))) return [];
    const range = { from: hourStart(hour), to: hourStart(hour + 1) };
    const { lines, cleared = [] } = storedAt(range);
    // The number of readings in cleared lines is not known.
    return cleared.length > 0 ? [] : [hourLine(input, hour, new Set(instantsIn(lines, range)).size + count)];
  });
}

/** The instants of the telemetry lines that lie in a range. */
export function instantsIn(lines: readonly string[], { from, to }: Interval): EpochNs[] {
  const telemetry = lines.filter(isTelemetryLine);
  return telemetry.map((line) => BigInt(line.slice(line.lastIndexOf(' ') + 1))).filter((at) => from <= at && at < to);
}

function hourLine({ state, workspaceId }: CommitInput, hour: number, readings: number): string {
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
  if (line === null) throw new Error(`cannot encode the coverage_hour point of hour ${hour} of ${state.deviceId}`);
  return line;
}

/** The lines and counts of a page so far. */
interface Writer {
  readonly input: CommitInput;
  readonly timestamps: UsedTimestamps;
  readonly seriesAt: (at: EpochNs) => SeriesOf;
  readonly lines: string[];
  readonly rejected: RejectedRecord[];
  /** The sums of the days that lines are written for, in the order of their first line. */
  readonly days: Map<number, GrowingSum>;
  /** How many points of a day are texts. */
  readonly texts: Map<number, number>;
  firstNs: EpochNs | null;
  lastNs: EpochNs | null;
}

type GrowingSum = { -readonly [K in keyof DaySum]: DaySum[K] };

function createWriter(input: CommitInput, extent: Interval): Writer {
  return {
    input,
    timestamps: createUsedTimestamps(input.stored.lines, input.stored.offsets, extent),
    seriesAt: createSeriesCache(input),
    lines: [],
    rejected: [...input.rejected],
    days: new Map(),
    texts: new Map(),
    firstNs: null,
    lastNs: null,
  };
}

/** Returns the sums of the day of an instant, empty at first. */
function openDay({ days }: Writer, at: EpochNs): GrowingSum {
  const day = Number(at / DAY_NS);
  let sum = days.get(day);
  if (sum === undefined) {
    sum = { day, readings: 0, points: 0, hashHigh: 0, hashLow: 0 };
    days.set(day, sum);
  }
  return sum;
}

/**
 * The kinds of a page's reading:
 * - `new`: no value of it was stored;
 * - `late`: the same, and its time was covered;
 * - `completed`: some of its values were stored. It was served before, so it is not late;
 * - `addition`: it was stored without the excluded sensors, which are written now: neither new nor late;
 * - `stored`: all of its values are stored, or equal to stored ones.
 */
type ReadingOutcome = 'new' | 'late' | 'completed' | 'addition' | 'stored';

/**
 * The kinds of a reading's value:
 * - `new`: it is written, and counted with its day;
 * - `stored`: it is stored already, or no line can contain it: it is not written;
 * - `unverifiable`: it lies in a range whose lines were cleared, so it may be new or stored. It is written again, as
 *   the identical line, and does not count.
 */
type ValueOutcome = 'new' | 'stored' | 'unverifiable';

/** The parts that all values of a reading share. They are computed once, because most of the work is per value. */
interface Instant {
  readonly at: EpochNs;
  /** The time as it is written in a line, and the end of the line that contains it. */
  readonly stamp: string;
  readonly end: string;
  readonly day: GrowingSum;
  readonly seriesOf: SeriesOf;
}

/** Writes the new values of a reading. */
function writeReading(writer: Writer, served: Reading): ReadingOutcome {
  const { filter } = writer.input;
  const reading = filter === undefined ? served : filterReading(filter, served);
  const { values, dropped } = flattenReading(reading);
  if (dropped.size > 0) writer.rejected.push(rejectedReading(reading, dropped));
  const at = reading.recordedAt;
  const stamp = `${at}`;
  const instant = { at, stamp, end: ` ${stamp}`, day: openDay(writer, at), seriesOf: writer.seriesAt(at) };
  const fresh = values.filter((value) => writeValue(writer, instant, value) === 'new');
  const outcome = readingOutcome(writer.input, at, { fresh, known: values.length - fresh.length });
  if (outcome !== 'stored' && outcome !== 'addition') instant.day.readings += 1;
  return outcome;
}

function readingOutcome(
  { state, filter }: CommitInput,
  at: EpochNs,
  { fresh, known }: { readonly fresh: readonly SensorValue[]; readonly known: number },
): ReadingOutcome {
  if (fresh.length === 0) return 'stored';
  const isCoveredTime = known === 0 && isCovered(state.covered, at);
  const isSeenBefore = known > 0 || isCoveredTime;
  if (filter !== undefined && isSeenBefore && fresh.every(({ sensor }) => filter.wasLeftOut(sensor))) return 'addition';
  if (known > 0) return 'completed';
  return isCoveredTime ? 'late' : 'new';
}

function writeValue(writer: Writer, instant: Instant, value: SensorValue): ValueOutcome {
  const { start, sensor, identity } = instant.seriesOf(value.sensor);
  const text = encodeFieldValue(value.value);
  if (text === null) return 'stored';
  const field = `${value.field}=${text}`;
  const at = writer.timestamps.assign({ sensor, recordedAt: instant.at, field });
  if (at === null) return 'stored';
  const hasNoOffset = at === instant.at;
  const { stamp, end } = hasNoOffset ? instant : { stamp: `${at}`, end: ` ${at}` };
  writer.lines.push(start + field + end);
  if (writer.firstNs === null || at < writer.firstNs) writer.firstNs = at;
  if (writer.lastNs === null || at > writer.lastNs) writer.lastNs = at;
  if (hasNoOffset && isCleared(writer.input, at)) return 'unverifiable';
  const day = hasNoOffset ? instant.day : openDay(writer, at);
  addPoint(day, stamp, identity, field);
  if (value.field === 'text') writer.texts.set(day.day, (writer.texts.get(day.day) ?? 0) + 1);
  return 'new';
}

/** Whether lines with that time were stored and then cleared. */
function isCleared({ stored: { cleared = [] } }: CommitInput, at: EpochNs): boolean {
  return cleared.length > 0 && includes(cleared, at);
}

const RECORD_LENGTH = 2000;

function rejectedReading(reading: Reading, dropped: ReadonlyMap<DropReason, number>): RejectedRecord {
  // Each value takes more than one character, so later ones never fit into the record.
  const first = reading.values.slice(0, RECORD_LENGTH);
  // JSON cannot express an infinite number; the text keeps it.
  const values = JSON.stringify(first, (_, value) =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
  );
  const record = `{"recorded_at":"${formatExact(reading.recordedAt)}","values":${values}}`;
  const droppedValues = [...dropped.values()].reduce((sum, count) => sum + count, 0);
  return { reason: [...dropped.keys()].join(', '), record: record.slice(0, RECORD_LENGTH), droppedValues };
}

/** The parts that all lines of a sensor share, joined once: fewer pieces mean fewer objects per value. */
interface Series {
  readonly sensor: TagValue;
  /** The beginning of a line, up to its field. */
  readonly start: string;
  /** The part of a point's identity between its time and its field. */
  readonly identity: string;
}

type SeriesOf = (sensor: string) => Series;

/** The series of the sensors under the name that applies at a time. Each is encoded once, not once per value. */
function createSeriesCache({ state, workspaceId }: CommitInput): (at: EpochNs) => SeriesOf {
  const device = identityTag(state.deviceId);
  const workspace = identityTag(workspaceId);
  const byName = new Map<string, SeriesOf>();
  const ofName = (name: string): SeriesOf => {
    const found = new Map<string, Series>();
    return (sensor) => {
      const known = found.get(sensor);
      if (known !== undefined) return known;
      const tag = identityTag(sensor);
      const key = encodeSeries('telemetry', [
        ['device_id', device],
        ['sensor', tag],
        ['device_name', descriptiveTag(name)],
        ['workspace_id', workspace],
      ]);
      const series = { sensor: tag, start: `${key} `, identity: identityOfSensor(tag) };
      found.set(sensor, series);
      return series;
    };
  };
  return (at) => {
    const name = nameAt(state.names, at) ?? state.deviceId;
    const known = byName.get(name) ?? ofName(name);
    byName.set(name, known);
    return known;
  };
}
