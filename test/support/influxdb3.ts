/**
 * A pretend InfluxDB 3 for tests: it gives the answers that were recorded from a real InfluxDB 3 Core 3.6.0
 * (`test/influx/influxdb3-answers.json`, shortened where a word was cut), makes a database with any write, has `value`
 * as a number in every table, reads the first member of gzip alone, plans no query over too many files, and closes the
 * connection at `SHOW RETENTION POLICIES`, as that one did. The list of its databases has the form of its
 * documentation.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';

interface Recorded {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RecordedWrite extends Recorded {
  readonly case: string;
  readonly means: string;
  readonly hint?: string;
}

/** The recorded answers. */
export const ANSWERS: {
  readonly writes: readonly RecordedWrite[];
  readonly queries: { readonly fileLimit: Recorded; readonly noDatabase: Recorded };
} = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'influx', 'influxdb3-answers.json'), 'utf8'));

/** The body of a recorded answer as it came. */
export const bodyOf = ({ body }: Recorded): string => (typeof body === 'string' ? body : JSON.stringify(body));

const written = (name: string): RecordedWrite => {
  const found = ANSWERS.writes.find((each) => each.case === name);
  if (found === undefined) throw new Error(`nothing was recorded of ${name}`);
  return found;
};

export interface Influxdb3 extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  readonly databases: Set<string>;
  /** The lines that were stored. */
  readonly stored: readonly string[];
  /** The ranges that were queried, in minutes, and whether each was answered. */
  readonly asked: { readonly minutes: number; readonly answered: boolean }[];
  /** The lines whose fault was requested at /api/v3/write_lp. */
  readonly explained: readonly string[];
}

interface Contents {
  readonly build: string;
  readonly databases: Set<string>;
  readonly stored: string[];
  /** The times of the points of its one series, in minutes since 1970; each ten minutes are a file. */
  readonly minutes: readonly number[];
  /** How many files a query may read. */
  readonly mostFiles: number;
  readonly asked: { minutes: number; answered: boolean }[];
  readonly explained: string[];
}

function answerToWrite({ databases, stored }: Contents, bucket: string, lines: string): Recorded {
  if (/[^\w/-]/.test(bucket)) return written('an invalid name of a database');
  if (!databases.has(bucket) && databases.size === 5) return written('a sixth database');
  databases.add(bucket);
  if (lines.includes('value="')) return written('a field of another type, and every other fault of a line');
  if (lines === '') return written('empty');
  stored.push(...lines.trimEnd().split('\n'));
  return written('good');
}

/** @returns null where the connection is cut */
function answerToQuery(contents: Contents, db: string, query: string): Recorded | null {
  const { databases, minutes, mostFiles, asked } = contents;
  if (query.startsWith('SHOW RETENTION')) return null;
  if (!databases.has(db)) return ANSWERS.queries.noDatabase;
  if (query.startsWith('SHOW TAG VALUES')) return answerToTagValues(contents, query);
  const [, ...range] = /time >= (\d+) AND time < (\d+)/.exec(query) ?? [];
  const [from = 0, to = 0] = range.map((ns) => Number(BigInt(ns) / 60_000_000_000n));
  const inside = minutes.filter((minute) => minute >= from && minute < to);
  const answered = filesOf(inside) <= mostFiles;
  if (range.length > 0) asked.push({ minutes: to - from, answered });
  if (!answered) return ANSWERS.queries.fileLimit;
  const values = inside.map((minute) => [new Date(minute * 60_000).toISOString(), minute, null, null]);
  const series = { name: 'telemetry', tags: { sensor: 't' }, columns: ['time', 'value', 'flag', 'text'], values };
  return { status: 200, body: `${JSON.stringify({ results: [{ series: values.length === 0 ? [] : [series] }] })}\n` };
}

/** Without a time the last 24 hours, by the clock of this machine, are looked at. */
function answerToTagValues({ minutes, mostFiles, asked }: Contents, query: string): Recorded {
  const now = Date.now() / 60_000;
  const since = /time >= now\(\) - (\d+)m/.exec(query)?.[1] ?? (query.includes('time >= ') ? Infinity : 24 * 60);
  const until = /time < now\(\) - (\d+)m/.exec(query)?.[1] ?? -Infinity;
  const inside = minutes.filter((minute) => minute >= now - Number(since) && minute < now - Number(until));
  const answered = filesOf(inside) <= mostFiles;
  asked.push({ minutes: Number(since), answered });
  if (!answered) return ANSWERS.queries.fileLimit;
  const series = { name: 'telemetry', columns: ['key', 'value'], values: [['device_id', 'd']] };
  return { status: 200, body: JSON.stringify({ results: [{ series: inside.length === 0 ? [] : [series] }] }) };
}

const filesOf = (minutes: readonly number[]): number => new Set(minutes.map((minute) => Math.floor(minute / 10))).size;

function answerTo(contents: Contents, method: string, url: URL, body: string): Recorded | null {
  const asks = (name: string): string => url.searchParams.get(name) ?? '';
  switch (`${method} ${url.pathname}`) {
    case 'GET /api/v3/configure/database':
      return { status: 200, body: ['_internal', ...contents.databases].map((name) => ({ 'iox::database': name })) };
    case 'GET /ping':
      return { status: 200, body: '{}', headers: { 'x-influxdb-build': contents.build } };
    case 'POST /api/v2/write':
      return answerToWrite(contents, asks('bucket'), body);
    case 'POST /api/v3/write_lp':
      contents.explained.push(body);
      return written('a field of another type, at /api/v3/write_lp');
    case 'GET /query':
      return answerToQuery(contents, asks('db'), asks('q'));
    default:
      return { status: 404, body: 'not found' };
  }
}

/**
 * Data behind the first member of gzip was lost, with 204. The header that Node writes has no more than its ten bytes.
 */
const firstMember = (packed: Buffer): Buffer => inflateRawSync(packed.subarray(10));

/** Starts one that has these databases, and these points in each. An empty token: it was started without authentication. */
export async function startInfluxdb3({
  databases = [],
  minutes = [],
  mostFiles = 432,
  build = 'Core',
  token = 'apiv3-token',
}: {
  databases?: readonly string[];
  minutes?: readonly number[];
  mostFiles?: number;
  build?: string;
  token?: string;
}): Promise<Influxdb3> {
  const contents: Contents = {
    build,
    databases: new Set(databases),
    stored: [],
    minutes,
    mostFiles,
    asked: [],
    explained: [],
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
    });
    request.on('end', () => {
      const { method = '', url = '/', headers } = request;
      const sent = Buffer.concat(chunks);
      const body = (headers['content-encoding'] === 'gzip' ? firstMember(sent) : sent).toString();
      const isKnown = token === '' || headers.authorization === `Token ${token}`;
      const given = isKnown
        ? answerTo(contents, method, new URL(url, 'http://x'), body)
        : written('no token, or a wrong one');
      if (given === null) response.destroy();
      else response.writeHead(given.status, given.headers).end(given.status === 204 ? undefined : bodyOf(given));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const place = server.address();
  return {
    url: `http://127.0.0.1:${typeof place === 'object' && place !== null ? place.port : 0}`,
    token,
    databases: contents.databases,
    stored: contents.stored,
    asked: contents.asked,
    explained: contents.explained,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
