/**
 * Detects the kind of a database (an InfluxDB of any version, or VictoriaMetrics, which has the same write protocol but
 * stores other things) and checks whether it would accept points.
 *
 * The check is a write like all later ones, with the configured token and no other right; without a point unless one is
 * given. Every InfluxDB since 1.4 names its build in each answer. VictoriaMetrics names its host, or identifies itself
 * as InfluxDB 1.8.0 without a build, which no real InfluxDB does (seen with InfluxDB 1.6.7 and VictoriaMetrics 1.79.5).
 * The database may reject queries for further facts (version, retention, deduplication): then they are unknown, which
 * is no fault.
 */
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { DestinationFacts, KindAnswer, UnknownServer, WriteAnswer } from '../core/ports.ts';
import { plainText } from '../core/text.ts';
import { FULL_HINT, NAME_HINT, readTooOld, type ServerAnswer } from './answers.ts';
import { readBucketRetention, readDatabases, readFlags, readRetentionPolicies, type ServerFacts } from './facts.ts';
import {
  createDatabaseClient,
  createInfluxSink,
  type DatabaseClient,
  type InfluxSinkOptions,
  namesOf,
  writePath,
} from './sink.ts';

/**
 * Creates the probe for a database of the kind `auto`.
 *
 * @throws TypeError as `createInfluxSink` does
 */
export function createUnknownServer(options: InfluxSinkOptions): UnknownServer {
  const client = createDatabaseClient(options, 'influxdb');
  const path = writePath(options, 'influxdb');
  return {
    request: async (signal) => {
      signal.throwIfAborted();
      const answer = await client.request({ method: 'POST', path, body: '' }, signal);
      if ('kind' in answer) return answer;
      const marked = readMarks(answer);
      if (marked !== null) return marked;
      const result = client.read(answer, signal);
      // A cause that blocks every write blocks this one as well.
      if (result.kind === 'blocked' && answer.status !== 405) return result;
      if (result.kind === 'later' && answer.status !== 400 && answer.status !== 422) return result;
      return await requestBuild(client, signal);
    },
    sinkFor: (kind) => createInfluxSink(options, kind),
  };
}

/** Returns the kind that the headers name; `null` if they name none. */
function readMarks({ headers }: ServerAnswer): KindAnswer | null {
  if (headers['x-influxdb-build'] !== undefined) return { kind: 'known', server: 'influxdb' };
  const isVictoria = headers['x-server-hostname'] !== undefined || headers['x-influxdb-version'] === '1.8.0';
  return isVictoria ? { kind: 'known', server: 'victoriametrics' } : null;
}

/**
 * Detects the kind of a database without a write: InfluxDB 3 creates a database for each name.
 *
 * @returns a `later` without a status if the database cannot be reached
 * @throws the signal's reason when that aborts
 */
export async function requestKind(options: InfluxSinkOptions, signal: AbortSignal): Promise<KindAnswer> {
  return await requestBuild(createDatabaseClient(options, 'influxdb'), signal);
}

/**
 * Probes a server that accepts writes but names no kind, such as one behind a proxy that removes headers.
 * VictoriaMetrics answers like Prometheus, which no InfluxDB does; any other server counts as InfluxDB.
 */
async function requestBuild(client: DatabaseClient, signal: AbortSignal): Promise<KindAnswer> {
  const answer = await client.request({ method: 'GET', path: '/api/v1/status/buildinfo', body: '' }, signal);
  if ('kind' in answer) return answer;
  const shown = readTooOld(answer) ?? readMarks(answer);
  if (shown !== null) return shown;
  const result = client.read(answer, signal);
  if (result.kind === 'later' && answer.status !== 400) return result;
  const isPrometheus = answer.status === 200 && /^\s*\{\s*"status"\s*:\s*"success"/.test(answer.body);
  return isPrometheus
    ? { kind: 'known', server: 'victoriametrics' }
    : { kind: 'known', server: 'influxdb', isAssumed: true };
}

interface ProbeOptions extends InfluxSinkOptions {
  /** The configured kind; for `auto`, a request finds it out. */
  readonly kind: 'auto' | DestinationKind;
  /** A point to write, as a line for each kind; `null` for none. */
  readonly point: Readonly<Record<DestinationKind, string>> | null;
}

/**
 * Probes a destination.
 *
 * @throws the signal's reason when that aborts, and TypeError as `createInfluxSink` does
 */
export async function probeDestination(options: ProbeOptions, signal: AbortSignal): Promise<DestinationFacts> {
  const isListRead = options.kind !== 'victoriametrics' && options.point === null;
  const write = isListRead ? await probeMissing(options, signal) : null;
  if (write !== null) return { ...NO_FACTS, kind: 'influxdb', write, isMissing: true };
  return await probeByWrite(options, signal);
}

async function probeByWrite(options: ProbeOptions, signal: AbortSignal): Promise<DestinationFacts> {
  const server = options.kind === 'auto' ? await createUnknownServer(options).request(signal) : null;
  if (server !== null && server.kind !== 'known') return { ...NO_FACTS, write: server };
  const configured = server?.kind === 'known' ? server.server : options.kind === 'auto' ? 'influxdb' : options.kind;
  const client = createDatabaseClient(options, configured);
  const line = options.point?.[configured] ?? null;
  const call = {
    method: 'POST',
    path: writePath(options, configured),
    body: line === null ? '' : `${line}\n`,
  } as const;
  const answer = await client.request(call, signal);
  if ('kind' in answer) return { ...NO_FACTS, write: answer };
  const isPoint = line !== null;
  const write = isPoint ? client.read(answer, signal) : readEmpty(answer, client, signal);
  const marked = readMarks(answer);
  // Another kind of server that does not name itself must not count as a database.
  const unmarked = write.kind === 'accepted' ? configured : null;
  const kind = marked?.kind === 'known' ? marked.server : unmarked;
  if (kind === null) return { ...NO_FACTS, write, isPoint };
  const facts = await (kind === 'victoriametrics'
    ? probeVictoria(client, signal)
    : probeInflux(client, options, signal));
  const isQueried = await probeQuery(client, { kind, bucket: options.bucket }, signal);
  return { ...NO_FACTS, kind, write, isPoint, isQueried, ...facts, version: facts.version ?? versionIn(answer) };
}

/**
 * Looks for the database in the list of an InfluxDB 3. This comes first, because any write, even an empty one, creates
 * a database.
 *
 * @returns whether a write could create it; `null` if it exists, or if no InfluxDB 3 answers
 */
async function probeMissing(options: InfluxSinkOptions, signal: AbortSignal): Promise<WriteAnswer | null> {
  const { bucket } = options;
  const client = createDatabaseClient(options, 'influxdb');
  const found = readDatabases(await body(client, '/api/v3/configure/database?format=json', signal));
  if (found === null || found.includes(bucket)) return null;
  const missing = `this InfluxDB 3 has no database "${plainText(bucket, 100)}"`;
  if (!/^[a-z\d][\w/-]*$/i.test(bucket)) {
    const message = `${missing} and cannot create one: a name has only letters, digits, "_", "-" and "/", and begins with a letter or a digit`;
    return { kind: 'blocked', message, hint: NAME_HINT(namesOf(options)) };
  }
  const others = found.filter((each) => each !== '_internal').length;
  if (others < CORE_DATABASES || !(await isCore(client, signal))) return { kind: 'accepted' };
  const message = `${missing} and cannot create one: it has ${others} databases, and Core allows ${CORE_DATABASES}`;
  return { kind: 'blocked', message, hint: FULL_HINT(namesOf(options)) };
}

/** How many databases InfluxDB 3 Core allows, not counting its own. Enterprise allows more. */
const CORE_DATABASES = 5;

async function isCore(client: DatabaseClient, signal: AbortSignal): Promise<boolean> {
  const answer = await client.request({ method: 'GET', path: '/ping', body: '' }, signal);
  return !('kind' in answer) && /^core$/i.test(String(answer.headers['x-influxdb-build']));
}

const NO_FACTS = {
  kind: null,
  version: null,
  isPoint: false,
  isMissing: false,
  retentionMs: null,
  isQueried: null,
  dedupMs: null,
} as const;

/**
 * Reads the answer to an empty write. InfluxDB 2 and 3 check the token first and then report that the write was empty,
 * which means success here.
 */
function readEmpty(answer: ServerAnswer, client: DatabaseClient, signal: AbortSignal): WriteAnswer {
  const { status, body } = answer;
  if (status === 400 && EMPTY.test(body)) return { kind: 'accepted' };
  return client.read(answer, signal);
}

const EMPTY = /"message"\s*:\s*"[^"]*(?:writing requires points|incoming write was empty)/;

function versionIn({ headers }: ServerAnswer): string | null {
  const version = headers['x-influxdb-version'];
  return typeof version === 'string' && /^[\w.+~-]{1,40}$/.test(version) ? version : null;
}

/** Requests the retention of a VictoriaMetrics, in ms; `null` if it reports none. */
export async function requestRetention(options: InfluxSinkOptions, signal: AbortSignal): Promise<number | null> {
  const { retentionMs } = await probeVictoria(createDatabaseClient(options, 'victoriametrics'), signal);
  return retentionMs === Number.POSITIVE_INFINITY ? null : retentionMs;
}

async function probeVictoria(client: DatabaseClient, signal: AbortSignal): Promise<ServerFacts> {
  const metrics = await body(client, '/metrics', signal);
  const flags = await body(client, '/flags', signal);
  return readFlags({ metrics, flags });
}

async function probeInflux(
  client: DatabaseClient,
  { org, bucket }: InfluxSinkOptions,
  signal: AbortSignal,
): Promise<ServerFacts> {
  const name = new URLSearchParams({ name: bucket, ...(org === '' ? {} : { org }) });
  const ofBucket = readBucketRetention(await body(client, `/api/v2/buckets?${name}`, signal), bucket);
  if (ofBucket !== null) return { version: null, retentionMs: ofBucket, dedupMs: null };
  const [db = '', policy = ''] = bucket.split('/');
  const q = `SHOW RETENTION POLICIES ON "${db.replaceAll(/["\\]/g, '\\$&')}"`;
  const policies = await body(client, `/query?${new URLSearchParams({ db, q })}`, signal);
  return { version: null, retentionMs: readRetentionPolicies(policies, policy), dedupMs: null };
}

/**
 * Sends a small query in the language of the dashboards.
 *
 * @returns `null` if the answer does not show whether queries work
 */
async function probeQuery(
  client: DatabaseClient,
  { kind, bucket }: { readonly kind: DestinationKind; readonly bucket: string },
  signal: AbortSignal,
): Promise<boolean | null> {
  const [db = ''] = bucket.split('/');
  const path =
    kind === 'victoriametrics'
      ? '/api/v1/query?query=1'
      : `/query?${new URLSearchParams({ db, q: 'SHOW MEASUREMENTS LIMIT 1' })}`;
  const answer = await client.request({ method: 'GET', path, body: '' }, signal);
  if ('kind' in answer) return null;
  if (answer.status === 401 || answer.status === 403) return false;
  if (answer.status !== 200) return null;
  return kind === 'victoriametrics' ? true : !/"error"\s*:/.test(answer.body);
}

/** The body of the answer at a path; `null` if there is none. */
async function body(client: DatabaseClient, path: string, signal: AbortSignal): Promise<string | null> {
  const answer = await client.request({ method: 'GET', path, body: '' }, signal);
  return !('kind' in answer) && answer.status === 200 ? answer.body : null;
}
