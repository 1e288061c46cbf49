/**
 * A pretend InfluxDB 3 for tests: it gives the answers that were recorded from a real InfluxDB 3 Core 3.6.0
 * (`test/influx/influxdb3-answers.json`, shortened where a word was cut), makes a database with any write, plans no query over too
 * many files, and closes the connection at `SHOW RETENTION POLICIES`, as that one did. The list of its databases has the form of
 * its documentation.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

interface Recorded {
  readonly status: number;
  readonly body: unknown;
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
  /** The ranges that were queried, in minutes, and whether each was answered. */
  readonly asked: { readonly minutes: number; readonly answered: boolean }[];
}

interface Contents {
  readonly databases: Set<string>;
  /** The times of the points of its one series, in minutes since 1970; each ten minutes are a file. */
  readonly minutes: readonly number[];
  /** How many files a query may read. */
  readonly mostFiles: number;
  readonly asked: { minutes: number; answered: boolean }[];
}

function answerToWrite({ databases }: Contents, bucket: string, length: number): Recorded {
  if (!databases.has(bucket) && databases.size === 5) return written('a sixth database');
  databases.add(bucket);
  return length === 0 ? written('empty') : written('good');
}

/** @returns null where the connection is cut */
function answerToQuery({ databases, minutes, mostFiles, asked }: Contents, db: string, query: string): Recorded | null {
  if (query.startsWith('SHOW RETENTION')) return null;
  if (!databases.has(db)) return ANSWERS.queries.noDatabase;
  const [, ...range] = /time >= (\d+) AND time < (\d+)/.exec(query) ?? [];
  const [from = 0, to = 0] = range.map((ns) => Number(BigInt(ns) / 60_000_000_000n));
  const inside = minutes.filter((minute) => minute >= from && minute < to);
  const answered = new Set(inside.map((minute) => Math.floor(minute / 10))).size <= mostFiles;
  if (range.length > 0) asked.push({ minutes: to - from, answered });
  if (!answered) return ANSWERS.queries.fileLimit;
  const values = inside.map((minute) => [new Date(minute * 60_000).toISOString(), minute, null, null]);
  const series = { name: 'telemetry', tags: { sensor: 't' }, columns: ['time', 'value', 'flag', 'text'], values };
  return { status: 200, body: `${JSON.stringify({ results: [{ series: values.length === 0 ? [] : [series] }] })}\n` };
}

function answerTo(contents: Contents, method: string, url: URL, length: number): Recorded | null {
  const asks = (name: string): string => url.searchParams.get(name) ?? '';
  switch (`${method} ${url.pathname}`) {
    case 'GET /api/v3/configure/database':
      return { status: 200, body: ['_internal', ...contents.databases].map((name) => ({ 'iox::database': name })) };
    case 'POST /api/v2/write':
      return answerToWrite(contents, asks('bucket'), length);
    case 'GET /query':
      return answerToQuery(contents, asks('db'), asks('q'));
    default:
      return { status: 404, body: 'not found' };
  }
}

/** Starts one that has these databases, and these points in each. */
export async function startInfluxdb3({
  databases = [],
  minutes = [],
  mostFiles = 432,
}: {
  databases?: readonly string[];
  minutes?: readonly number[];
  mostFiles?: number;
}): Promise<Influxdb3> {
  const token = 'apiv3-token';
  const contents: Contents = { databases: new Set(databases), minutes, mostFiles, asked: [] };
  const server = createServer((request, response) => {
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
    });
    request.on('end', () => {
      const { method = '', url = '/', headers } = request;
      const isKnown = headers.authorization === `Token ${token}`;
      const given = isKnown
        ? answerTo(contents, method, new URL(url, 'http://x'), length)
        : written('no token, or a wrong one');
      if (given === null) response.destroy();
      else response.writeHead(given.status).end(given.status === 204 ? undefined : bodyOf(given));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const place = server.address();
  return {
    url: `http://127.0.0.1:${typeof place === 'object' && place !== null ? place.port : 0}`,
    token,
    databases: contents.databases,
    asked: contents.asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
