/**
 * Reads the telemetry of one workspace back from a destination, in pieces of a few thousand rows or samples.
 *
 * InfluxDB is read by InfluxQL at `/query`, which 1.8, 2 and 3 support. Times are requested as RFC 3339 text with all
 * digits, because nanoseconds as numbers exceed the precision of JSON parsers. VictoriaMetrics is read by its export:
 * numbers and whole milliseconds, each line a piece of a series.
 */
import type { Interval } from '../core/intervals.ts';
import { isRecord, type JsonRecord, parseJson } from '../core/json.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import { encodeFieldValue } from '../core/lines/line-protocol.ts';
import type { PointSource, ReadProblem, TakePoint } from '../core/state/verify.ts';
import { plainText } from '../core/text.ts';
import { DAY_NS, type EpochNs, MINUTE_NS, nsToMs, parseTimestamp } from '../core/time.ts';
import { type SettingNames, settingNames } from './answers.ts';
import { createReader, mayRead, type ReadLines } from './reader.ts';
import type { InfluxSinkOptions } from './sink.ts';

/**
 * Opens a destination for reading, with the connection options for writing. It sends no request yet.
 *
 * @param workspace the value of the tag
 * @throws UserError (exit code 78) if a proxy variable is not a URL
 */
export function createPointSource(options: InfluxSinkOptions, kind: DestinationKind, workspace: string): PointSource {
  const { name, bucket } = options;
  const read = createReader({ ...options, kind });
  return kind === 'victoriametrics'
    ? createVictoriaSource({ name, workspace }, read)
    : createInfluxSource({ name, bucket, workspace }, read);
}

/** How many rows a piece of an answer has. */
const PIECE_ROWS = 5000;

const FIELDS = ['value', 'flag', 'text'] as const;

/** Where to read: a destination and a bucket, and the workspace by its tag value. */
interface BucketTags {
  readonly name: string;
  readonly bucket: string;
  readonly workspace: string;
}

/** Creates a source that reads from an InfluxDB's `/query`. */
function createInfluxSource({ name, bucket, workspace }: BucketTags, read: ReadLines): PointSource {
  const path = (query: string): string => {
    // A bucket of version 1 is a database, or a database and a retention policy. Later versions map the same names.
    const [db = '', ...rp] = bucket.split('/');
    const into = { db, ...(rp.length === 0 ? {} : { rp: rp.join('/') }) };
    return `/query?${new URLSearchParams({ ...into, q: query, chunked: 'true', chunk_size: `${PIECE_ROWS}` })}`;
  };
  const request = async (query: string, take: TakeSeries, signal: AbortSignal): Promise<ReadProblem | null> => {
    const pieces = createPieces(name, take);
    return (await read(path(query), pieces.take, signal)) ?? pieces.end();
  };
  const own = `"workspace_id" = ${quoted(workspace)}`;
  const inSteps = createSteps();
  /** Returns the values, each once: of all points, or with `isAny` at least one if there is any. */
  const tagValues = async (
    key: string,
    signal: AbortSignal,
    isAny = false,
  ): Promise<readonly string[] | ReadProblem> => {
    const found = new Set<string>();
    const query = `SHOW TAG VALUES FROM "telemetry" WITH KEY = "${key}" WHERE ${own}`;
    const take: TakeSeries = ({ columns, values }) => {
      const at = columns.indexOf('value');
      for (const row of values) found.add(String(row[at]));
    };
    const problem = await readBack(
      async (range) => await request(`${query} AND ${range}`, take, signal),
      () => isAny && found.size > 0,
    );
    return problem ?? [...found];
  };
  return {
    name,
    kind: 'influxdb',
    points: async ({ device, ...range }, take, signal) =>
      await inSteps(range, async ({ from, to }) => {
        const where = `"device_id" = ${quoted(device)} AND ${own} AND time >= ${from} AND time < ${to}`;
        const fields = FIELDS.map((field) => `"${field}"`).join(', ');
        const query = `SELECT ${fields} FROM "telemetry" WHERE ${where} GROUP BY "sensor"`;
        return await request(query, pointTaker(take), signal);
      }),
    devices: async (signal) => await tagValues('device_id', signal),
    hasAny: async (signal) => {
      const found = await tagValues('workspace_id', signal, true);
      return 'kind' in found ? found : found.length > 0;
    },
  };
}

/** Shorter ranges are not tried: files of InfluxDB 3 contain ten minutes. */
const SHORTEST_NS = 10n * MINUTE_NS;

type ReadRange = (range: Interval) => Promise<ReadProblem | null>;

/**
 * Creates a function that reads a range in one query, until a database rejects that for its number of files. Then it
 * reads in steps of a day, which are halved each time the database rejects one. The step that was found also applies to
 * the following ranges.
 */
function createSteps(): (range: Interval, read: ReadRange) => Promise<ReadProblem | null> {
  let stepNs: bigint | null = null;
  return async ({ from, to }, read) => {
    let at = from;
    while (at < to) {
      const step = { from: at, to: endOfStep(at, to, stepNs) };
      const problem = await read(step);
      // A query is rejected before its first row, so no row is read twice.
      if (problem === null) at = step.to;
      else {
        stepNs = shorterStep(step, problem);
        if (stepNs === null) return problem;
      }
    }
    return null;
  };
}

function endOfStep(at: EpochNs, to: EpochNs, stepNs: bigint | null): EpochNs {
  return stepNs === null || at + stepNs > to ? to : at + stepNs;
}

/** Returns a shorter step; `null` if it would not help. */
function shorterStep({ from, to }: Interval, { isTooWide }: ReadProblem): bigint | null {
  const half = (to - from) / 2n;
  if (isTooWide !== true || 2n * half <= SHORTEST_NS) return null;
  return half > DAY_NS ? DAY_NS : half;
}

const DAY_MINUTES = 24 * 60;

const SHORTEST_MINUTES = Number(SHORTEST_NS / MINUTE_NS);

/** A century: further back than any point. */
const LONGEST_MINUTES = 100 * 365 * DAY_MINUTES;

/**
 * Reads all times in one query, until a database rejects that for its number of files. Then it reads backwards
 * from the present, in ranges that are halved when the database rejects one and doubled when it answers. Each query
 * has a range, because without one InfluxDB 3 reads only the last 24 hours.
 *
 * @param isEnough returns whether the ranges further back need not be read
 */
async function readBack(
  read: (range: string) => Promise<ReadProblem | null>,
  isEnough: () => boolean,
): Promise<ReadProblem | null> {
  const problem = await read("time >= '1970-01-01T00:00:00Z'");
  if (problem?.isTooWide !== true) return problem;
  let [back, step] = [0, DAY_MINUTES];
  while (back < LONGEST_MINUTES && !isEnough()) {
    const until = back === 0 ? '' : ` AND time < now() - ${back}m`;
    const rejection = await read(`time >= now() - ${back + step}m${until}`);
    if (rejection === null) {
      back += step;
      step = Math.min(2 * step, LONGEST_MINUTES);
    } else if (rejection.isTooWide === true && step > SHORTEST_MINUTES) {
      step = Math.max(Math.floor(step / 2), SHORTEST_MINUTES);
    } else return rejection;
  }
  return null;
}

/** Quotes a text for an InfluxQL statement. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
}

interface Series {
  readonly tags: Readonly<Record<string, string>>;
  readonly columns: readonly string[];
  readonly values: readonly (readonly unknown[])[];
}

type TakeSeries = (series: Series) => void;

interface Piece {
  readonly error?: string;
  readonly results?: readonly {
    readonly error?: string;
    readonly partial?: boolean;
    readonly series?: readonly (Partial<Series> & { readonly partial?: boolean })[];
  }[];
}

/** Reads an answer piece by piece; each piece is a line. */
function createPieces(name: string, take: TakeSeries) {
  let isOpen = true;
  return {
    take: (line: string): ReadProblem | null => {
      const piece = parseJson(line) as Piece | null;
      if (piece === null) return unparsableResponse(name, NO_INFLUX);
      const result = piece.results?.[0];
      const error = piece.error ?? result?.error;
      if (error !== undefined) return queryProblem(name, error);
      if (result === undefined) return unparsableResponse(name, NO_INFLUX);
      for (const { tags = {}, columns = [], values = [] } of result.series ?? []) take({ tags, columns, values });
      isOpen = result.partial === true || result.series?.at(-1)?.partial === true;
      return null;
    },
    /** An answer that ends in the middle is incomplete. */
    end: (): ReadProblem | null =>
      isOpen ? { kind: 'down', message: 'the response ended before it was complete', hint: '' } : null,
  };
}

interface Misunderstanding {
  readonly message: string;
  /** Returns the hint, with the names of the destination's settings. */
  readonly hint: (influx: SettingNames) => string;
}

const NO_INFLUX: Misunderstanding = {
  message: 'the response to a query could not be parsed',
  hint: (influx) => `${influx.url}: the server that answers at /query is not an InfluxDB`,
};
const NO_VICTORIA: Misunderstanding = {
  message: 'the response to an export could not be parsed',
  hint: (influx) => `${influx.url}: the server is not a VictoriaMetrics, or its export is disabled`,
};

function unparsableResponse(name: string, { message, hint }: Misunderstanding): ReadProblem {
  return { kind: 'rejected', message, hint: hint(settingNames(name)) };
}

/** Words with which a database reports its own failure under a status that does not show it. */
const ITSELF = /timeout|timed out|unavailable|shutting down|engine is closed|too many|max-concurrent|interrupted/i;

function queryProblem(name: string, error: string): ReadProblem {
  const message = plainText(error, 180);
  return ITSELF.test(error)
    ? { kind: 'down', message, hint: '' }
    : { kind: 'rejected', message, hint: mayRead(settingNames(name)) };
}

function pointTaker(take: TakePoint): TakeSeries {
  return ({ tags, columns, values }) => {
    const sensor = tags['sensor'] ?? '';
    const [timeAt, ...fieldsAt] = ['time', ...FIELDS].map((name) => columns.indexOf(name));
    const stampOf = createStamps();
    for (const row of values) {
      const stamp = stampOf(row[timeAt ?? 0]);
      FIELDS.forEach((field, index) => {
        const value = row[fieldsAt[index] ?? -1];
        if (value !== null && value !== undefined) take(stamp, sensor, `${field}=${fieldText(value)}`);
      });
    }
  };
}

/** A value in the form of line protocol: `1.5`, `true`, `"text"`. */
function fieldText(value: unknown): string {
  const known = typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string';
  return (known ? encodeFieldValue(value) : null) ?? String(value);
}

/**
 * Creates a converter from RFC 3339 to nanoseconds in digits. Rows come in the order of time with many in one second,
 * so each second is converted once.
 */
function createStamps(): (time: unknown) => string {
  let second = '';
  let digits = '';
  return (time) => {
    const text = String(time);
    if (text.length >= 20 && text.endsWith('Z') && text.slice(0, 19) === second) {
      return digits + text.slice(20, -1).padEnd(9, '0');
    }
    const at = parseTimestamp(/[Z+]|-\d\d:\d\d$/.test(text) ? text : `${text}Z`);
    if (at === null) return text;
    const stamp = `${at}`;
    // Before 1970-01-01T00:00:01 the digits of the second are empty.
    if (stamp.length > 9 && text.endsWith('Z')) [second, digits] = [text.slice(0, 19), stamp.slice(0, -9)];
    return stamp;
  };
}

/** How many samples a line of an answer has. */
const LINE_SAMPLES = 5000;

/** The metrics of telemetry, and the field of each. */
const FIELD_OF: Readonly<Record<string, string>> = { telemetry_value: 'value', telemetry_flag: 'flag' };

interface Exported {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (number | null)[];
  readonly timestamps: readonly number[];
}

/** Creates a source that reads from a VictoriaMetrics' export. */
function createVictoriaSource({ name, workspace }: Omit<BucketTags, 'bucket'>, read: ReadLines): PointSource {
  const own = `__name__=~"telemetry_(value|flag)",workspace_id=${JSON.stringify(workspace)}`;
  const labelValues = async (label: string, signal: AbortSignal): Promise<ReadProblem | string[]> => {
    const found: string[] = [];
    const query = new URLSearchParams({ 'match[]': `{${own}}`, start: '0' });
    const take = (line: string): ReadProblem | null => {
      const data = parsed(line)?.['data'];
      if (!Array.isArray(data)) return unparsableResponse(name, NO_VICTORIA);
      found.push(...data.map(String));
      return null;
    };
    return (await read(`/api/v1/label/${label}/values?${query}`, take, signal)) ?? found;
  };
  return {
    name,
    kind: 'victoriametrics',
    points: async ({ device, from, to }, take, signal) => {
      const query = new URLSearchParams({
        'match[]': `{${own},device_id=${JSON.stringify(device)}}`,
        start: seconds(from),
        // The range includes both of its ends.
        end: seconds(to - 1n),
        max_rows_per_line: `${LINE_SAMPLES}`,
      });
      const takeLine = (line: string): ReadProblem | null => {
        const series = parsed(line) as Partial<Exported> | null;
        if (!isSeries(series)) return unparsableResponse(name, NO_VICTORIA);
        const field = FIELD_OF[series.metric['__name__'] ?? ''] ?? 'value';
        const sensor = series.metric['sensor'] ?? '';
        series.timestamps.forEach((ms, index) => {
          take(`${ms}000000`, sensor, `${field}=${series.values[index]}`);
        });
        return null;
      };
      return await read(`/api/v1/export?${query}`, takeLine, signal);
    },
    devices: async (signal) => await labelValues('device_id', signal),
    hasAny: async (signal) => {
      const found = await labelValues('workspace_id', signal);
      return Array.isArray(found) ? found.length > 0 : found;
    },
  };
}

/** Unix time in seconds, to the millisecond. */
function seconds(at: EpochNs): string {
  const ms = `${nsToMs(at)}`.padStart(4, '0');
  return `${ms.slice(0, -3)}.${ms.slice(-3)}`;
}

function parsed(line: string): JsonRecord | null {
  const value = parseJson(line);
  return isRecord(value) ? value : null;
}

function isSeries(series: Partial<Exported> | null): series is Exported {
  return series?.metric !== undefined && Array.isArray(series.values) && Array.isArray(series.timestamps);
}
