/**
 * A real InfluxDB for a test: Debian's 1.6.7, started on a free port of loopback in a temporary directory.
 *
 * It promises to leave nothing behind: the process is killed and the directory removed when the test closes it, and
 * when the test process ends without that, however it ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from './ports.ts';

const BINARY = '/usr/bin/influxd';

/**
 * Runs the database as a child of a shell that waits for a word on its standard input. When the test process dies, the
 * input ends, and the shell still kills the database and removes its files.
 */
const KEEPER =
  '"$1" -config "$2" </dev/null & child=$!; read -r word; kill -9 $child; wait $child; [ "$word" = keep ] || rm -rf "$3"';

/** A row of a query's answer: columns by name, times (`time`) as exact nanoseconds; tags of a `GROUP BY` included. */
export type Row = Readonly<Record<string, bigint | number | string | boolean | null>>;

/** A series of a query's answer; of each row of `values` the first cell is the time, as the digits of its nanoseconds. */
export interface Series {
  readonly columns: readonly string[];
  /** Those of a `GROUP BY`. */
  readonly tags?: Readonly<Record<string, string>>;
  readonly values: readonly (readonly Cell[])[];
}

export type Cell = bigint | number | string | boolean | null;

export interface Influxd extends AsyncDisposable {
  /** Base URL of its own API (`/write`, `/query`): for `/api/v2/write` put `startV2Proxy` before it. */
  readonly url: string;
  /** Its process; `undefined` while it is ended. */
  pid(): number | undefined;
  /**
   * Runs one InfluxQL statement.
   *
   * @throws Error with the server's words.
   */
  query(db: string, influxql: string): Promise<Row[]>;
  /** The same, as the answer has it: for many points. */
  series(db: string, influxql: string): Promise<readonly Series[]>;
  /**
   * Posts lines past everything, as a test's own hand.
   *
   * @returns the status.
   */
  write(db: string, lines: string): Promise<number>;
  /** Kills it as a crash would; the data stay. */
  kill(): Promise<void>;
  /** Starts it again on the same data and port, after {@link kill}. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface InfluxdOptions {
  /** Created at the start. */
  readonly databases?: readonly string[];
  /** More settings, by the names of influxd's environment variables: `INFLUXDB_HTTP_MAX_BODY_SIZE`. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Whether tests with a real InfluxDB can run here. Where it is missing: an error in CI, so that nothing is quietly
 * left out there; elsewhere `false`, with a word on how to get it.
 */
export function influxdAvailable(): boolean {
  if (existsSync(BINARY)) return true;
  const advice = `${BINARY} is missing: the tests with a real InfluxDB need it (apt-get install influxdb)`;
  const { CI } = process.env;
  if (CI !== undefined && CI !== '') throw new Error(advice);
  process.stderr.write(`${advice}; they are left out\n`);
  return false;
}

/** Starts an InfluxDB and waits until it answers. */
export async function startInfluxd({ databases = ['tidemark'], env = {} }: InfluxdOptions = {}): Promise<Influxd> {
  const dir = mkdtempSync(join(tmpdir(), 'tidemark-influxd-'));
  const [port = 0, rpcPort = 0] = await freePorts(2);
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(join(dir, 'influxd.conf'), configuration(dir, port, rpcPort));
  let child: ChildProcess | null = null;
  const start = async (): Promise<void> => {
    child = spawn('/bin/sh', ['-c', KEEPER, 'sh', BINARY, join(dir, 'influxd.conf'), dir], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { ...process.env, ...env },
    });
    await untilReady(url, child);
  };
  const end = async (word: 'keep' | 'remove'): Promise<void> => {
    if (child !== null) await tell(child, word);
    child = null;
    if (word === 'remove') rmSync(dir, { recursive: true, force: true });
  };
  await start();
  const series = async (db: string, influxql: string): Promise<readonly Series[]> => await runQuery(url, db, influxql);
  const query = async (db: string, influxql: string): Promise<Row[]> =>
    (await series(db, influxql)).flatMap(({ columns, tags = {}, values }) =>
      values.map((cells) => rowOf(columns, tags, cells)),
    );
  for (const database of databases) await query('', `CREATE DATABASE "${database}"`);
  const write = async (db: string, lines: string): Promise<number> =>
    (await fetch(`${url}/write?db=${encodeURIComponent(db)}&precision=ns`, { method: 'POST', body: lines })).status;
  const close = async (): Promise<void> => await end('remove');
  return {
    url,
    pid: () =>
      child === null ? undefined : Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')),
    query,
    series,
    write,
    kill: async () => await end('keep'),
    restart: start,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function configuration(dir: string, port: number, rpcPort: number): string {
  return `reporting-disabled = true
bind-address = "127.0.0.1:${rpcPort}"
[meta]
dir = "${dir}/meta"
[data]
dir = "${dir}/data"
wal-dir = "${dir}/wal"
index-version = "inmem"
query-log-enabled = false
[monitor]
store-enabled = false
[subscriber]
enabled = false
[continuous_queries]
enabled = false
[http]
bind-address = "127.0.0.1:${port}"
log-enabled = false
[logging]
level = "error"
`;
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 15_000; attempt += 1) {
    if (child.exitCode !== null) throw new Error('influxd ended at once');
    const answer = await fetch(`${url}/ping`).catch(() => null);
    if (answer?.status === 204) return;
    await sleep(20);
  }
  throw new Error('influxd did not answer within five minutes');
}

/** Sends the supervising shell the order for the data, and waits until the database is gone. */
async function tell(child: ChildProcess, word: 'keep' | 'remove'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.stdin?.end(`${word}\n`);
  await ended;
}

interface QueryAnswer {
  readonly error?: string;
  readonly results?: readonly {
    readonly error?: string;
    readonly series?: readonly Series[];
  }[];
}

async function runQuery(url: string, db: string, influxql: string): Promise<readonly Series[]> {
  const body = new URLSearchParams({ db, q: influxql, epoch: 'ns' });
  const answer = await fetch(`${url}/query`, { method: 'POST', body });
  const { error, results } = parseExact(await answer.text());
  const failure = error ?? results?.[0]?.error;
  if (failure !== undefined) throw new Error(`${influxql}: ${failure}`);
  return results?.[0]?.series ?? [];
}

function rowOf(columns: readonly string[], tags: Readonly<Record<string, string>>, cells: readonly Cell[]): Row {
  const row: Record<string, Cell> = { ...tags };
  for (const [index, name] of columns.entries()) {
    const cell = cells[index] ?? null;
    row[name] = name === 'time' && cell !== null ? BigInt(cell) : cell;
  }
  return row;
}

/** The time of a row, which is its first cell: the rows of a series follow each other, and quotes in texts are escaped. */
const LONG_TIME = /("values":\[|\],)\[(-?\d{16,})(?=[,\]])/g;

/** Nanoseconds are beyond what a double holds: times of that size are kept as their digits. */
function parseExact(text: string): QueryAnswer {
  return JSON.parse(text.replace(LONG_TIME, '$1["$2"')) as QueryAnswer;
}
