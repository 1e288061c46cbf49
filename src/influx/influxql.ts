/**
 * Telemetry read back from an InfluxDB by InfluxQL, which 1.8, 2 and 3 all take at `/query`, in pieces of some thousand
 * rows.
 *
 * Times are asked for as text, RFC 3339 with every digit: as numbers, nanoseconds are more than JSON's readers hold.
 */
import { encodeFieldValue } from '../core/lines/line-protocol.ts';
import type { PointSource, ReadTrouble, TakePoint } from '../core/state/verify.ts';
import { plainText } from '../core/text.ts';
import { parseTimestamp } from '../core/time.ts';
import { MAY_READ, type ReadLines } from './reading.ts';
import { inSectionOf } from './trouble.ts';

/** Rows in a piece of an answer. */
const PIECE_ROWS = 5000;

const FIELDS = ['value', 'flag', 'text'] as const;

/** Where the telemetry is. @param workspace the tag value. */
export interface InfluxPlace {
  readonly name: string;
  readonly bucket: string;
  readonly workspace: string;
}

/** A source over a database's `/query`. */
export function createInfluxSource({ name, bucket, workspace }: InfluxPlace, read: ReadLines): PointSource {
  const path = (query: string): string => {
    // A bucket of version 1 is a database, or a database and a retention policy; the later versions map the same names.
    const [db = '', ...rp] = bucket.split('/');
    const into = { db, ...(rp.length === 0 ? {} : { rp: rp.join('/') }) };
    return `/query?${new URLSearchParams({ ...into, q: query, chunked: 'true', chunk_size: `${PIECE_ROWS}` })}`;
  };
  const ask = async (query: string, take: TakeSeries, signal: AbortSignal): Promise<ReadTrouble | null> => {
    const pieces = createPieces(name, take);
    return (await read(path(query), pieces.take, signal)) ?? pieces.end();
  };
  const own = `"workspace_id" = ${quoted(workspace)}`;
  return {
    name,
    kind: 'influxdb',
    points: async ({ device, from, to }, take, signal) => {
      const where = `"device_id" = ${quoted(device)} AND ${own} AND time >= ${from} AND time < ${to}`;
      const fields = FIELDS.map((field) => `"${field}"`).join(', ');
      return await ask(`SELECT ${fields} FROM "telemetry" WHERE ${where} GROUP BY "sensor"`, pointTaker(take), signal);
    },
    devices: async (signal) => {
      const found: string[] = [];
      const query = `SHOW TAG VALUES FROM "telemetry" WITH KEY = "device_id" WHERE ${own}`;
      const trouble = await ask(
        query,
        ({ columns, values }) => {
          const at = columns.indexOf('value');
          for (const row of values) found.push(String(row[at]));
        },
        signal,
      );
      return trouble ?? found;
    },
    hasAny: async (signal) => {
      let rows = 0;
      const query = `SHOW TAG VALUES FROM "telemetry" WITH KEY = "workspace_id" WHERE ${own} LIMIT 1`;
      const count: TakeSeries = ({ values }) => {
        rows += values.length;
      };
      return (await ask(query, count, signal)) ?? rows > 0;
    },
  };
}

/** Text in an InfluxQL statement. */
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

/** Reads an answer piece by piece; each is a line. */
function createPieces(name: string, take: TakeSeries) {
  let isOpen = true;
  return {
    take: (line: string): ReadTrouble | null => {
      let piece: Piece;
      try {
        piece = JSON.parse(line);
      } catch {
        return notUnderstood(name);
      }
      const result = piece.results?.[0];
      const error = piece.error ?? result?.error;
      if (error !== undefined) return troubleOf(name, error);
      if (result === undefined) return notUnderstood(name);
      for (const { tags = {}, columns = [], values = [] } of result.series ?? []) take({ tags, columns, values });
      isOpen = result.partial === true || result.series?.at(-1)?.partial === true;
      return null;
    },
    /** What ends in the middle is no answer. */
    end: (): ReadTrouble | null =>
      isOpen ? { kind: 'down', words: 'the answer ended before it was whole', hint: '' } : null,
  };
}

function notUnderstood(name: string): ReadTrouble {
  const hint = inSectionOf(name, 'influx.url: what answers at /query there is no InfluxDB');
  return { kind: 'refused', words: 'the answer to a query is not understood', hint };
}

/** Words by which a database says that it is itself in the way, with a status that says nothing. */
const ITSELF = /timeout|timed out|unavailable|shutting down|engine is closed|too many|max-concurrent|interrupted/i;

function troubleOf(name: string, error: string): ReadTrouble {
  const words = plainText(error, 180);
  return ITSELF.test(error)
    ? { kind: 'down', words, hint: '' }
    : { kind: 'refused', words, hint: inSectionOf(name, MAY_READ) };
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

/** As it stands in a line of ours: `1.5`, `true`, `"text"`. */
function fieldText(value: unknown): string {
  const known = typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string';
  return (known ? encodeFieldValue(value) : null) ?? String(value);
}

/** RFC 3339 to nanoseconds in digits. Rows come in the order of time, many in one second: that is read once. */
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
    // Of times before 1970-01-01T00:00:01 the digits of the second are none.
    if (stamp.length > 9 && text.endsWith('Z')) [second, digits] = [text.slice(0, 19), stamp.slice(0, -9)];
    return stamp;
  };
}
