/**
 * From a judged page to what the state takes in: new lines, their places, the day's sums, the coverage and the hours.
 *
 * Pure. It promises that a landing computed twice from the same state and page is the same, and that what is held
 * already adds nothing.
 */
import type { CoveredSpan } from '../core/coverage.ts';
import { type DeviceFilter, keptReading } from '../core/filter.ts';
import { type Intervals, includes, normalize, subtract, union } from '../core/intervals.ts';
import { claimAfter, isCovered } from '../core/late.ts';
import {
  descriptiveTag,
  encodeFieldValue,
  encodeLine,
  encodeSeries,
  identityTag,
  type SeriesKey,
  type TagValue,
} from '../core/lines/line-protocol.ts';
import { nameAt } from '../core/lines/names.ts';
import { createPlaces, type Places } from '../core/lines/offsets.ts';
import {
  addPoint,
  type DropReason,
  flattenReading,
  pointIdentity,
  readingDigest,
  type SensorValue,
} from '../core/lines/points.ts';
import type { Reading, RejectedRecord } from '../core/records.ts';
import type { LogLane } from '../core/state/log.ts';
import type { DaySum, PageCommit, TelemetryState, Tie } from '../core/state/telemetry.ts';
import { DAY_NS, type EpochMs, type EpochNs, formatExact, HOUR_NS } from '../core/time.ts';

export interface LandingInput {
  readonly state: TelemetryState;
  readonly workspaceId: string;
  readonly lane: LogLane;
  readonly requestId: number;
  /** The server's time of the answer. */
  readonly answeredAtMs: EpochMs;
  readonly readings: readonly Reading[];
  /** Those of them that are not known to be held ({@link withoutEdges}); all where it is left out. */
  readonly fresh?: readonly Reading[];
  readonly rejected: readonly RejectedRecord[];
  /** What is held around these readings: see `Store.held`. */
  readonly held: {
    readonly lines: readonly string[];
    readonly ties: readonly Tie[];
    /** Where lines were held that are cleared away; nowhere where it is left out. */
    readonly cleared?: Intervals;
  };
  /** The stretch that the page proves. */
  readonly proven: CoveredSpan | null;
  /** The configured `sync.settle`, in milliseconds. */
  readonly settleMs: number;
  /** Which sensors are written; all where it is left out. What the page proves and how it is known again is of whole readings. */
  readonly filter?: Pick<DeviceFilter, 'keepsSensor' | 'wasLeftOut'>;
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

/**
 * The readings of a page without those at the edges of what is held, which it was asked to show: they are held, known
 * by instant and content. What is left of a page that goes on from an edge lies outside all blocks, so that none has to
 * be unpacked to know that it is new.
 */
export function withoutEdges(readings: readonly Reading[], spans: readonly CoveredSpan[]): readonly Reading[] {
  const digests = new Map<EpochNs, string[]>();
  for (const edge of spans.flatMap(({ first, last }) => [first, last])) {
    if (edge !== null) digests.set(edge.at, [...(digests.get(edge.at) ?? []), edge.digest]);
  }
  const isEdge = (reading: Reading): boolean =>
    digests.get(reading.recordedAt)?.includes(readingDigest(reading)) ?? false;
  return readings.some(isEdge) ? readings.filter((reading) => !isEdge(reading)) : readings;
}

/** Computes what a page changes. */
export function composeLanding(input: LandingInput): PageCommit {
  const { state, fresh: readings = input.readings } = input;
  const extent = extentOf(readings) ?? { from: 0n, to: 0n };
  const places = createPlaces(input.held.lines, input.held.ties, extent);
  const writer = createWriter(input, places);
  const hourReadings = new Map(state.hourReadings);
  const late: Reading[] = [];
  let newReadings = 0;
  // Oldest first, so that a block reads in the order of time.
  for (const reading of readings.toReversed()) {
    const { fresh, known } = writer.write(reading);
    if (fresh === 0) continue;
    newReadings += 1;
    const hour = hourOf(reading.recordedAt);
    hourReadings.set(hour, (hourReadings.get(hour) ?? 0) + 1);
    // One of which some values are held has been here before: it was added to, it is not late.
    if (known === 0 && isCovered(state.spans, reading.recordedAt)) late.push(reading);
  }
  const { spans, ...lateness } = claimAfter(input, late);
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
    ...lateness,
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

type Written = Pick<PageCommit, 'lines' | 'firstNs' | 'lastNs' | 'daySums' | 'dayTexts' | 'rejected'>;

interface Writer {
  /**
   * Writes what is new of a reading. @returns how many values that were, and how many were held already or cannot be
   * told any more: those are written again as the identical lines, and count no more than those that are held.
   */
  write(reading: Reading): { fresh: number; known: number };
  result(): Written;
}

function createWriter(input: LandingInput, places: Places): Writer {
  const seriesAt = createSeriesCache(input);
  const lines: string[] = [];
  const rejected = [...input.rejected];
  const days = createDays();
  const texts = new Map<number, number>();
  let firstNs: EpochNs | null = null;
  let lastNs: EpochNs | null = null;
  const gone = input.held.cleared ?? [];
  const isUntold = (at: EpochNs): boolean => gone.length > 0 && includes(gone, at);
  const reach = (at: EpochNs): void => {
    if (firstNs === null || at < firstNs) firstNs = at;
    if (lastNs === null || at > lastNs) lastNs = at;
  };
  /** @returns whether the value is new. */
  const writeValue = (instant: Instant, value: SensorValue): boolean => {
    const { key, sensor } = instant.seriesOf(value.sensor);
    const text = encodeFieldValue(value.value);
    if (text === null) return false;
    const field = `${value.field}=${text}`;
    const at = places.place({ sensor, recordedAt: instant.at, field });
    if (at === null) return false;
    const isInPlace = at === instant.at;
    const stamp = isInPlace ? instant.stamp : `${at}`;
    lines.push(`${key} ${field} ${stamp}`);
    reach(at);
    if (isInPlace && isUntold(at)) return false;
    const day = isInPlace ? instant.day : days.of(at);
    addPoint(day, pointIdentity(stamp, sensor, field));
    if (value.field === 'text') texts.set(day.day, (texts.get(day.day) ?? 0) + 1);
    return true;
  };
  return {
    write: (served) => {
      const reading = input.filter === undefined ? served : keptReading(input.filter, served);
      const { values, dropped } = flattenReading(reading);
      if (dropped.size > 0) rejected.push(rejectedReading(reading, dropped));
      const at = reading.recordedAt;
      const instant: Instant = { at, stamp: `${at}`, day: days.of(at), seriesOf: seriesAt(at) };
      const written = values.filter((value) => writeValue(instant, value));
      const known = values.length - written.length;
      // A sensor that is written again adds to readings that were seen before: those are neither new nor late.
      const isAddition =
        input.filter !== undefined &&
        (known > 0 || isCovered(input.state.spans, at)) &&
        written.every(({ sensor }) => input.filter?.wasLeftOut(sensor));
      const fresh = isAddition ? 0 : written.length;
      if (fresh > 0) instant.day.readings += 1;
      return { fresh, known };
    },
    result: () => ({
      ...{ lines, firstNs, lastNs, daySums: days.sums(), rejected },
      ...(texts.size === 0 ? {} : { dayTexts: texts }),
    }),
  };
}

/** What all values of a reading share, made once: this is where the mass is. */
interface Instant {
  readonly at: EpochNs;
  /** The time as it stands in a line. */
  readonly stamp: string;
  readonly day: GrowingSum;
  readonly seriesOf: SeriesOf;
}

type GrowingSum = { -readonly [K in keyof DaySum]: DaySum[K] };

/** The sums of the days that are written to, in the order in which they were met. */
function createDays(): { of(at: EpochNs): GrowingSum; sums(): readonly DaySum[] } {
  const days = new Map<number, GrowingSum>();
  return {
    of: (at) => {
      const day = Number(at / DAY_NS);
      let sum = days.get(day);
      if (sum === undefined) {
        sum = { day, readings: 0, points: 0, hashHigh: 0, hashLow: 0 };
        days.set(day, sum);
      }
      return sum;
    },
    sums: () => [...days.values()].filter(({ readings, points }) => readings > 0 || points > 0),
  };
}

const RECORD_LENGTH = 2000;

function rejectedReading(reading: Reading, dropped: ReadonlyMap<DropReason, number>): RejectedRecord {
  // JSON has no word for an infinite number; the text keeps what it was.
  const values = JSON.stringify(reading.values, (_, value) =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
  );
  const record = `{"recorded_at":"${formatExact(reading.recordedAt)}","values":${values}}`;
  const droppedValues = [...dropped.values()].reduce((sum, count) => sum + count, 0);
  return { reason: [...dropped.keys()].join(', '), record: record.slice(0, RECORD_LENGTH), droppedValues };
}

type SeriesOf = (sensor: string) => { readonly key: SeriesKey; readonly sensor: TagValue };

/** The series of the sensors under the name that holds at a time: encoded once, not once a value. */
function createSeriesCache({ state, workspaceId }: LandingInput): (at: EpochNs) => SeriesOf {
  const device = identityTag(state.deviceId);
  const workspace = identityTag(workspaceId);
  const byName = new Map<string, SeriesOf>();
  const ofName = (name: string): SeriesOf => {
    const found = new Map<string, ReturnType<SeriesOf>>();
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
      found.set(sensor, { key, sensor: tag });
      return { key, sensor: tag };
    };
  };
  return (at) => {
    const name = nameAt(state.names, at) ?? state.deviceId;
    const known = byName.get(name) ?? ofName(name);
    byName.set(name, known);
    return known;
  };
}

/** The hour of a time, counted from 1970. */
export function hourOf(at: EpochNs): number {
  return Number(at / HOUR_NS);
}

/** When an hour begins. */
export function hourStart(hour: number): EpochNs {
  return BigInt(hour) * HOUR_NS;
}

/** The hours that lie whole inside the spans and are not written yet, and the set of written ones with them. */
export function hoursToWrite(
  spans: readonly CoveredSpan[],
  written: Intervals,
): { hours: readonly number[]; written: Intervals } {
  const whole = normalize(spans.map(({ from, to }) => ({ from: (from + HOUR_NS - 1n) / HOUR_NS, to: to / HOUR_NS })));
  const fresh = subtract(whole, written);
  const hours = fresh.flatMap(({ from, to }) =>
    Array.from({ length: Number(to - from) }, (_, index) => Number(from) + index),
  );
  return { hours, written: hours.length === 0 ? written : union(written, whole) };
}

/*
 * Claims that no reading vouches for: stretches that were called empty while nothing at all was held of a device.
 *
 * Such answers could not be held against anything (two in a row had to do), and a service that answers emptily for
 * hours would leave all that was before them missing for good. So once a device shows a reading, what was called empty is
 * asked for again, wherever the reading lies: the page that shows it may be one of history, and tells nothing of what is
 * newer. From then on there is a reading that the answers have to show.
 */

type Claims = Pick<TelemetryState, 'spans' | 'hoursWritten'>;

/**
 * The claims that are left when a page lands.
 *
 * @param hasLines whether telemetry of the device was ever archived. Its hours are told anew only where none was; and where
 * some was, nothing is taken back before a page vouches: a reading that is too young to be claimed comes with every page.
 */
export function upholdClaims<State extends Claims>(
  state: State,
  { readings, proven }: { readonly readings: readonly Reading[]; readonly proven: CoveredSpan | null },
  hasLines: () => boolean,
): State {
  if (readings.length === 0 || state.spans.length === 0 || state.spans.some(isVouchedFor)) return state;
  if (!hasLines()) return { ...state, spans: [], hoursWritten: [] };
  return proven !== null && isVouchedFor(proven) ? { ...state, spans: [] } : state;
}

function isVouchedFor({ first, last }: CoveredSpan): boolean {
  return first !== null || last !== null;
}
