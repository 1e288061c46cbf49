/**
 * A database of lines, with InfluxDB's rules for a write: points of one series and time are one point, a later field
 * value replaces an earlier one, a field keeps the type that it was first written with. What it holds is what was
 * written, so a test compares it with the truth.
 */
import { parseReferenceLine } from '../support/reference-parser.ts';

/** A value as InfluxDB returns it. */
export type Cell = number | boolean | string;

/** A stored point: its series' tags and its fields. */
export interface StoredPoint {
  readonly at: bigint;
  readonly tags: ReadonlyMap<string, string>;
  readonly fields: ReadonlyMap<string, Cell>;
}

/** What a write comes to, in InfluxDB's words. */
export interface StoreAnswer {
  readonly status: number;
  readonly message: string;
}

interface Series {
  readonly tags: ReadonlyMap<string, string>;
  readonly points: Map<string, Map<string, Cell>>;
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
  /** By measurement, then by the series as it stands in a line. */
  readonly measurements: Map<string, Map<string, Series>>;
  /** The points of telemetry by device and sensor: one series for each name that the device had. */
  readonly telemetry: Map<string, Series['points'][]>;
  /** The type of each field, by measurement and name. */
  readonly types: Map<string, string>;
  /** The series that were written, by their text in a line: only what follows it has to be read again. */
  readonly known: Map<string, { readonly measurement: string; readonly series: Series }>;
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
    types: new Map(),
    known: new Map(),
    last: null,
  };
  return {
    write: (body) => {
      if (store.last?.body !== body) store.last = { body, answer: writeLines(store, body.split('\n')) };
      return store.last.answer;
    },
    points: (measurement) =>
      [...(store.measurements.get(measurement)?.values() ?? [])].flatMap(({ tags, points }) =>
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
      for (const all of store.measurements.values()) {
        for (const { points } of all.values())
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
  let parsed: Parsed;
  try {
    parsed = parseLine(store, line);
  } catch (error) {
    return `unable to parse '${line}': ${error instanceof Error ? error.message : ''}`;
  }
  const { measurement, series, fields, time } = parsed;
  for (const [name, value] of fields) {
    const type = store.types.get(`${measurement} ${name}`) ?? typeof value;
    if (type !== typeof value) {
      return `field type conflict: input field "${name}" on measurement "${measurement}" is type ${typeof value}, already exists as type ${type}`;
    }
    store.types.set(`${measurement} ${name}`, type);
  }
  const stored = series.points.get(time);
  if (stored === undefined) series.points.set(time, fields);
  else for (const [name, value] of fields) stored.set(name, value);
  return null;
}

interface Parsed {
  readonly measurement: string;
  readonly series: Series;
  readonly fields: Map<string, Cell>;
  readonly time: string;
}

/** What follows a series of one number: most lines are such. */
const PLAIN = /^([a-z_]+)=(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?) (\d{1,19})$/;

function parseLine(store: Store, line: string): Parsed {
  // The series as it stands in the line ends where the first field begins.
  const key = line.slice(0, seriesLength(line));
  const rest = line.slice(key.length + 1);
  const known = store.known.get(key);
  const plain = known === undefined ? null : PLAIN.exec(rest);
  if (known !== undefined && plain !== null) {
    const [, field = '', value = '', time = ''] = plain;
    return { ...known, fields: new Map([[field, Number(value)]]), time };
  }
  const { measurement, tags, fields, at } = parseReferenceLine(line);
  const series = seriesOf(store, { measurement, key, tags });
  store.known.set(key, { measurement, series });
  return { measurement, series, fields: new Map(fields), time: String(at) };
}

function seriesLength(line: string): number {
  for (let index = 0; index < line.length; index += 1) {
    if (line[index] === '\\') index += 1;
    else if (line[index] === ' ') return index;
  }
  return line.length;
}

function seriesOf(
  store: Store,
  { measurement, key, tags }: { measurement: string; key: string; tags: ReadonlyMap<string, string> },
): Series {
  const all = store.measurements.get(measurement) ?? new Map<string, Series>();
  store.measurements.set(measurement, all);
  const known = all.get(key);
  if (known !== undefined) return known;
  const series: Series = { tags, points: new Map() };
  all.set(key, series);
  if (measurement === 'telemetry') {
    const name = sensorName(tags.get('device_id') ?? '', tags.get('sensor') ?? '');
    store.telemetry.set(name, [...(store.telemetry.get(name) ?? []), series.points]);
  }
  return series;
}
