/**
 * A range of a device in cells. The sensors, from their telemetry lines: the last values (`LastValue`), and the numbers
 * reduced to the minimum, mean and maximum of each cell (`SensorSeries`). The coverage: one character for each cell
 * (`CoverageBar`) or each UTC day (`DayBar`). Pure.
 *
 * A series reads one line at a time, in the order of time. Its memory does not grow with the number of lines or
 * sensors: it keeps only the first `MAX_SENSORS` sensors by name. Each line costs one lookup and two numbers.
 */

import type { DayReadings } from '../core/fleet.ts';
import { hashHex } from '../core/hash.ts';
import { type Interval, type Intervals, intersect, lengthNs } from '../core/intervals.ts';
import { readFieldValue, readLine, readSeries, seriesOf } from '../core/lines/line-reader.ts';
import {
  type DayBar,
  type LastValue,
  MAX_SENSORS,
  MAX_SHOWN_LENGTH,
  MAX_VALUE_LENGTH,
  SERIES_CELLS,
  type SensorSeries,
} from '../core/page-facts.ts';
import { compare, shortened } from '../core/text.ts';
import { DAY_NS, type EpochMs, type EpochNs, formatExact, maxNs, minNs, SECOND_MS, SECOND_NS } from '../core/time.ts';
import { orderKey } from './device-list.ts';

/**
 * The cells of a range. They are whole seconds long and begin at multiples of their length, so that they do not move as
 * time continues.
 */
interface CellGrid {
  /** Where the first cell begins: not after the range's beginning. */
  readonly fromMs: EpochMs;
  readonly cellMs: number;
  readonly cells: number;
}

/** Divides a half-open range into at most `SERIES_CELLS` + 1 cells of whole seconds, on multiples of their length. */
export function createGrid(fromMs: EpochMs, toMs: EpochMs): CellGrid {
  const cellMs = Math.max(1, Math.ceil((toMs - fromMs) / SERIES_CELLS / SECOND_MS)) * SECOND_MS;
  const first = Math.floor(fromMs / cellMs);
  return { fromMs: first * cellMs, cellMs, cells: Math.max(1, Math.ceil(toMs / cellMs) - first) };
}

/** The series of a device while its lines are read. */
export interface SeriesCells {
  /** Takes telemetry lines of one device, in the order of time, all inside the grid. */
  add(lines: readonly string[]): void;
  result(): { readonly sensors: readonly SensorSeries[]; readonly leftOut: number };
}

/** Sensors beyond this number are not counted one by one. */
const MOST_COUNTED = 10_000;
/** How many series are cached by their text: more than one reading can have. */
const MOST_KNOWN = 4096;

/** Creates the series of a device, without any value. */
export function createSeriesCells(grid: CellGrid): SeriesCells {
  /** By name, at most `MAX_SENSORS`. */
  const kept: Sensor[] = [];
  const seen = new Set<string>();
  const known = new Map<string, Sensor | null>();
  const admit = (name: string): Sensor | null => {
    if (seen.size < MOST_COUNTED + MAX_SENSORS) seen.add(hashHex(name));
    const key = orderKey(name);
    const isAfter = (other: Sensor): boolean => (compare(other.key, key) || compare(other.name, name)) >= 0;
    const found = kept.findIndex(isAfter);
    const at = found === -1 ? kept.length : found;
    const there = kept[at];
    if (there?.name === name) return there;
    if (at >= MAX_SENSORS) return null;
    const sensor = emptySensor(name, key, grid.cells);
    kept.splice(at, 0, sensor);
    // A sensor that is pushed out never returns, because the sensors before it stay.
    const out = kept.length > MAX_SENSORS ? kept.pop() : undefined;
    if (out !== undefined) out.isOut = true;
    return sensor;
  };
  const sensorOf = (series: string): Sensor | null => {
    const sensor = known.get(series);
    if (sensor !== undefined) return sensor;
    if (known.size >= MOST_KNOWN) known.clear();
    const name = readSeries(series).find(([key]) => key === 'sensor')?.[1];
    const admitted = name === undefined ? null : admit(name);
    known.set(series, admitted);
    return admitted;
  };
  return {
    add: (lines) => {
      for (const line of lines) {
        const series = seriesOf(line);
        if (!line.startsWith(NUMBER, series.length + 1)) continue;
        const sensor = sensorOf(series);
        if (sensor !== null && !sensor.isOut) take(sensor, line, series.length + 1 + NUMBER.length, grid);
      }
    },
    result: () => {
      const { fromMs, cellMs, cells } = grid;
      const times = Array.from({ length: cells }, (_, cell) => (fromMs + (cell + 0.5) * cellMs) / SECOND_MS);
      return { sensors: kept.map((sensor) => toSeries(sensor, times)), leftOut: seen.size - kept.length };
    },
  };
}

/** The text before a number in a line. */
const NUMBER = 'value=';

/** A sensor while its values are read. */
interface Sensor {
  readonly name: string;
  readonly key: string;
  readonly count: Uint32Array;
  readonly min: Float64Array;
  readonly mean: Float64Array;
  readonly max: Float64Array;
  values: number;
  last: { readonly raw: string; readonly at: string };
  /** Whether another sensor has replaced it. */
  isOut: boolean;
}

function emptySensor(name: string, key: string, cells: number): Sensor {
  return {
    name,
    key,
    count: new Uint32Array(cells),
    min: new Float64Array(cells).fill(Number.POSITIVE_INFINITY),
    mean: new Float64Array(cells),
    max: new Float64Array(cells).fill(Number.NEGATIVE_INFINITY),
    values: 0,
    last: { raw: '', at: '0' },
    isOut: false,
  };
}

function take(sensor: Sensor, line: string, valueAt: number, grid: CellGrid): void {
  const valueEnd = line.lastIndexOf(' ');
  const raw = line.slice(valueAt, valueEnd);
  const at = line.slice(valueEnd + 1);
  const value = Number(raw);
  // In whole milliseconds, which a double holds; cells begin at whole seconds.
  const cell = Math.floor((Number(at.slice(0, -6)) - grid.fromMs) / grid.cellMs);
  const count = (sensor.count[cell] ?? 0) + 1;
  const mean = sensor.mean[cell] ?? 0;
  sensor.values += 1;
  sensor.last = { raw, at };
  sensor.count[cell] = count;
  // Divided before subtracting: the difference of two doubles may exceed the range of a double.
  sensor.mean[cell] = mean + (value / count - mean / count);
  if (value < (sensor.min[cell] ?? value)) sensor.min[cell] = value;
  if (value > (sensor.max[cell] ?? value)) sensor.max[cell] = value;
}

function toSeries({ name, count, min, mean, max, values, last }: Sensor, times: readonly number[]): SensorSeries {
  const filled = (cells: Float64Array): (number | null)[] =>
    Array.from(cells, (value, cell) => (count[cell] === 0 ? null : value));
  return {
    sensor: shortened(name, MAX_SHOWN_LENGTH),
    values,
    last: lastValue(name, last.raw, BigInt(last.at)),
    times,
    min: filled(min),
    mean: filled(mean).map((value, cell) =>
      value === null ? null : clampTo(roundDigits(value), min[cell], max[cell]),
    ),
    max: filled(max),
  };
}

/** Twelve digits are more than any sensor has. Further digits are rounding noise and make the page longer. */
function roundDigits(value: number): number {
  return Number(value.toPrecision(12));
}

function clampTo(value: number, least = value, most = value): number {
  return Math.min(most, Math.max(least, value));
}

/**
 * The newest value of each sensor in some lines, in the order of the sensors' names. If two values have one instant
 * (they have two types), the one whose field comes last.
 *
 * @param most the maximum number of sensors.
 */
export function lastValues(lines: readonly string[], most: number): readonly LastValue[] {
  const newest = new Map<string, { readonly field: string; readonly raw: string; readonly at: EpochNs }>();
  for (const line of lines) {
    const { tags, fields, at } = readLine(line);
    const sensor = tags.find(([key]) => key === 'sensor')?.[1];
    const [field, raw] = fields[0] ?? [];
    if (sensor === undefined || field === undefined || raw === undefined) continue;
    const known = newest.get(sensor);
    if (known === undefined || at > known.at || (at === known.at && field > known.field)) {
      newest.set(sensor, { field, raw, at });
    }
  }
  return [...newest]
    .map(([sensor, value]) => ({ key: orderKey(sensor), sensor, value }))
    .sort((a, b) => compare(a.key, b.key) || compare(a.sensor, b.sensor))
    .slice(0, most)
    .map(({ sensor, value: { raw, at } }) => lastValue(sensor, raw, at));
}

/**
 * A value as the page shows it.
 *
 * @param raw as it stands in a line: `21.5`, `true`, `"text"`.
 */
function lastValue(sensor: string, raw: string, at: EpochNs): LastValue {
  const text = raw.startsWith('"') ? String(readFieldValue(raw)) : raw;
  return {
    sensor: shortened(sensor, MAX_SHOWN_LENGTH),
    value: shortened(text, MAX_VALUE_LENGTH),
    at: formatExact(at),
  };
}

const BAR_CELLS = 60;

/** The shortest cell. */
const LEAST_CELL_NS = 60n * SECOND_NS;

/**
 * Computes a bar. A cell is covered if no part of it is missing. It counts as empty if it is covered and none of its
 * days has a reading: readings are counted by days, not by hours.
 */
export function coverageCells(
  range: Interval,
  { covered, days }: { covered: Intervals; days: readonly DayReadings[] },
): { readonly cells: string; readonly cellNs: bigint } {
  const length = range.to - range.from;
  if (length <= 0n) return { cells: '', cellNs: LEAST_CELL_NS };
  const even = (length + BigInt(BAR_CELLS) - 1n) / BigInt(BAR_CELLS);
  const cellNs = even > LEAST_CELL_NS ? even : LEAST_CELL_NS;
  const withReadings = new Set(days.filter(({ readings }) => readings > 0).map(({ day }) => day));
  let cells = '';
  for (let from = range.from; from < range.to; from += cellNs) {
    const to = from + cellNs < range.to ? from + cellNs : range.to;
    const isCovered = lengthNs(intersect(covered, [{ from, to }])) === to - from;
    cells += isCovered ? (touchesAny({ from, to }, withReadings) ? '#' : '-') : '.';
  }
  return { cells, cellNs };
}

function touchesAny({ from, to }: Interval, days: ReadonlySet<number>): boolean {
  for (let day = Number(from / DAY_NS); day <= Number((to - 1n) / DAY_NS); day += 1) if (days.has(day)) return true;
  return false;
}

/** The facts about a device and some days. */
export interface BarFacts {
  /** The first day (days since 1970), and the number of days. */
  readonly fromDay: number;
  readonly days: number;
  /** The wanted range. Only this part of a day counts. */
  readonly wanted: Interval;
  readonly covered: Intervals;
  /** The days (since 1970) that have a reading. */
  readonly withReadings: ReadonlySet<number>;
  /** Whether uncovered time is not wanted, as for an excluded device. */
  readonly isLeftOut: boolean;
}

/** Draws the bar of single days, for the device list. */
export function dayBar({ fromDay, days, wanted, covered, withReadings, isLeftOut }: BarFacts): DayBar {
  let bar = '';
  for (let day = fromDay; day < fromDay + days; day += 1) {
    const from = maxNs(BigInt(day) * DAY_NS, wanted.from);
    const to = minNs(BigInt(day + 1) * DAY_NS, wanted.to);
    if (from >= to) bar += ' ';
    else if (lengthNs(intersect(covered, [{ from, to }])) === to - from) bar += withReadings.has(day) ? '#' : '-';
    else bar += isLeftOut ? ' ' : '.';
  }
  return bar;
}
