/**
 * A database of lines, with InfluxDB's rules for a write: points of one series and time are one point, a later field
 * value replaces an earlier one, a field keeps the type that it was first written with. What it holds is what was
 * written, so a test compares it with the truth.
 */
import { parseReferenceLine, type ReferenceLine } from '../support/reference-parser.ts';

/** A value as InfluxDB returns it. */
export type Cell = number | boolean | string;

/** A stored point: its series' tags and its fields. */
export interface StoredPoint {
  readonly at: bigint;
  readonly tags: ReadonlyMap<string, string>;
  readonly fields: ReadonlyMap<string, Cell>;
}

/** The result of a write, in InfluxDB's words. */
export interface StoreAnswer {
  readonly status: number;
  readonly message: string;
}

interface Series {
  readonly measurement: Measurement;
  readonly tags: ReadonlyMap<string, string>;
  readonly points: Map<string, Map<string, Cell>>;
}

interface Measurement {
  readonly name: string;
  /** By the series as it stands in a line. */
  readonly series: Map<string, Series>;
  /** The type of each field. */
  readonly types: Map<string, string>;
}

export interface LineStore {
  /**
   * Writes what can be written.
   *
   * @param body lines, each with a newline behind it or between them.
   * @returns 204, or why some lines were left out.
   */
  write(body: string): StoreAnswer;
  /** All points of a measurement. */
  points(measurement: string): StoredPoint[];
  /**
   * The fields of the telemetry of a device's sensor at an instant; `undefined` where there is none.
   *
   * @param sensorOf as {@link sensorName} has it.
   * @param time in nanoseconds.
   */
  telemetryAt(sensorOf: string, time: string): ReadonlyMap<string, Cell> | undefined;
  /** All telemetry: for each sensor of a device ({@link sensorName}) its points by their times. */
  telemetry(): ReadonlyMap<string, readonly ReadonlyMap<string, ReadonlyMap<string, Cell>>[]>;
  /** Loses every point for which `isLost` holds. */
  lose(isLost: (at: bigint) => boolean): void;
}

interface Store {
  readonly measurements: Map<string, Measurement>;
  /** The points of telemetry by device and sensor: one series for each name that the device had. */
  readonly telemetry: Map<string, Series['points'][]>;
  /** The series that were written, by their text in a line: only what follows it has to be read again. */
  readonly known: Map<string, Series>;
  /** The content of lines other than those of one number: facts are sent repeatedly while a write fails. */
  readonly read: Map<string, ReferenceLine>;
  /** The last body and its answer: the same right behind it changes nothing. `null` where something was lost since. */
  last: { readonly body: string; readonly answer: StoreAnswer } | null;
}

const NONE: readonly never[] = [];

/** The name of a sensor of a device, by their tags. */
export function sensorName(deviceTag: string, sensorTag: string): string {
  return `${deviceTag} ${sensorTag}`;
}

/** An empty store. */
export function createLineStore(): LineStore {
  const store: Store = {
    measurements: new Map(),
    telemetry: new Map(),
    known: new Map(),
    read: new Map(),
    last: null,
  };
  return {
    write: (body) => {
      if (store.last?.body !== body) store.last = { body, answer: writeLines(store, body.split('\n')) };
      return store.last.answer;
    },
    points: (measurement) =>
      [...(store.measurements.get(measurement)?.series.values() ?? [])].flatMap(({ tags, points }) =>
        [...points].map(([at, fields]) => ({ at: BigInt(at), tags, fields })),
      ),
    telemetryAt: (sensorOf, time) => {
      for (const points of store.telemetry.get(sensorOf) ?? NONE) {
        const fields = points.get(time);
        if (fields !== undefined) return fields;
      }
      return undefined;
    },
    telemetry: () => store.telemetry,
    lose: (isLost) => {
      store.last = null;
      for (const { series } of store.measurements.values()) {
        for (const { points } of series.values())
          for (const at of points.keys()) if (isLost(BigInt(at))) points.delete(at);
      }
    },
  };
}

function writeLines(store: Store, lines: readonly string[]): StoreAnswer {
  let dropped = 0;
  let why = '';
  for (const line of lines) {
    const wrong = line === '' ? null : writeLine(store, line);
    if (wrong === null) continue;
    dropped += 1;
    why ||= wrong;
  }
  if (dropped === 0) return { status: 204, message: '' };
  if (why.startsWith('unable to parse')) return { status: 400, message: why };
  return { status: 400, message: `partial write: ${why} dropped=${dropped}` };
}

/** @returns why the line was left out; `null` where it was written. */
function writeLine(store: Store, line: string): string | null {
  // The series as it stands in the line ends where the first field begins.
  const key = line.slice(0, seriesLength(line));
  const known = store.known.get(key);
  const plain = known === undefined ? null : PLAIN.exec(line.slice(key.length + 1));
  if (known !== undefined && plain !== null) {
    const [, field = '', value = '', time = ''] = plain;
    return writeField(known, time, [field, Number(value)]);
  }
  try {
    const read = store.read.get(line) ?? parseReferenceLine(line);
    store.read.set(line, read);
    const { measurement, tags, fields, at } = read;
    const series = seriesOf(store, { measurement, key, tags });
    store.known.set(key, series);
    return writeFields(series, String(at), [...fields]);
  } catch (error) {
    return `unable to parse '${line}': ${error instanceof Error ? error.message : ''}`;
  }
}

/** The rest of a line after a series of one number: most lines are such. */
const PLAIN = /^([a-z_]+)=(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?) (\d{1,19})$/;

type Field = readonly [name: string, value: Cell];

/** Writes the fields of a line, unless one of them has another type than before. */
function writeFields(series: Series, time: string, fields: readonly Field[]): string | null {
  for (const field of fields) {
    const conflict = conflictOf(series, field);
    if (conflict !== null) return conflict;
  }
  for (const field of fields) writeField(series, time, field);
  return null;
}

function writeField(series: Series, time: string, [name, value]: Field): string | null {
  const conflict = conflictOf(series, [name, value]);
  if (conflict !== null) return conflict;
  const stored = series.points.get(time);
  if (stored === undefined) series.points.set(time, new Map([[name, value]]));
  else stored.set(name, value);
  return null;
}

/** The type of a field is that of its first value. */
function conflictOf({ measurement: { name: measurement, types } }: Series, [name, value]: Field): string | null {
  const type = types.get(name);
  if (type === undefined) types.set(name, typeof value);
  return type === undefined || type === typeof value
    ? null
    : `field type conflict: input field "${name}" on measurement "${measurement}" is type ${typeof value}, already exists as type ${type}`;
}

function seriesLength(line: string): number {
  if (!line.includes('\\')) return Math.max(0, line.indexOf(' '));
  for (let index = 0; index < line.length; index += 1) {
    if (line[index] === '\\') index += 1;
    else if (line[index] === ' ') return index;
  }
  return line.length;
}

function seriesOf(
  store: Store,
  { measurement: name, key, tags }: { measurement: string; key: string; tags: ReadonlyMap<string, string> },
): Series {
  const measurement = store.measurements.get(name) ?? { name, series: new Map(), types: new Map() };
  store.measurements.set(name, measurement);
  const known = measurement.series.get(key);
  if (known !== undefined) return known;
  const series: Series = { measurement, tags, points: new Map() };
  measurement.series.set(key, series);
  if (name === 'telemetry') {
    const sensor = sensorName(tags.get('device_id') ?? '', tags.get('sensor') ?? '');
    store.telemetry.set(sensor, [...(store.telemetry.get(sensor) ?? []), series.points]);
  }
  return series;
}
