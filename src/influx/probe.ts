/**
 * Detects the kind of a database (an InfluxDB of any version, or VictoriaMetrics, which has the same write protocol but
 * stores other things) and checks whether it would accept points.
 *
 * The check is a write, as later writes will be: without a point unless one is given, and with the configured token and
 * no other right. Every InfluxDB since 1.4 names its build in each answer. VictoriaMetrics names its host, or
 * identifies itself as InfluxDB 1.8.0 without a build, which no real InfluxDB does (seen with InfluxDB 1.6.7 and
 * VictoriaMetrics 1.79.5). The database may refuse further facts (version, retention, deduplication): then they are
 * unknown, which is no fault.
 */
import type { Advice } from '../core/faults.ts';
import { isRecord, type JsonRecord, parseJson } from '../core/json.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { DestinationFacts, KindAnswer, UnknownServer, WriteAnswer } from '../core/ports.ts';
import { duration, plainText } from '../core/text.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { FULL_HINT, NAME_HINT, type ServerAnswer } from './answers.ts';
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

/** @returns the kind that the headers name; `null` if they name none */
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
  const marked = readMarks(answer);
  if (marked !== null) return marked;
  const result = client.read(answer, signal);
  if (result.kind === 'later' && answer.status !== 400) return result;
  const isPrometheus = answer.status === 200 && /^\s*\{\s*"status"\s*:\s*"success"/.test(answer.body);
  return { kind: 'known', server: isPrometheus ? 'victoriametrics' : 'influxdb' };
}

interface ProbeOptions extends InfluxSinkOptions {
  /** The kind as configured; `auto`: a request finds it out. */
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
  if (write !== null) return { ...NOTHING, kind: 'influxdb', write, isMissing: true };
  return await probeByWrite(options, signal);
}

async function probeByWrite(options: ProbeOptions, signal: AbortSignal): Promise<DestinationFacts> {
  const server = options.kind === 'auto' ? await createUnknownServer(options).request(signal) : null;
  if (server !== null && server.kind !== 'known') return { ...NOTHING, write: server };
  const configured = server?.kind === 'known' ? server.server : options.kind === 'auto' ? 'influxdb' : options.kind;
  const client = createDatabaseClient(options, configured);
  const line = options.point?.[configured] ?? null;
  const call = {
    method: 'POST',
    path: writePath(options, configured),
    body: line === null ? '' : `${line}\n`,
  } as const;
  const answer = await client.request(call, signal);
  if ('kind' in answer) return { ...NOTHING, write: answer };
  const isPoint = line !== null;
  const write = isPoint ? client.read(answer, signal) : readEmpty(answer, client, signal);
  const marked = readMarks(answer);
  // Another kind of server that does not name itself must not count as a database.
  const unmarked = write.kind === 'accepted' ? configured : null;
  const kind = marked?.kind === 'known' ? marked.server : unmarked;
  if (kind === null) return { ...NOTHING, write, isPoint };
  const facts = await (kind === 'victoriametrics'
    ? probeVictoria(client, signal)
    : probeInflux(client, options, signal));
  const isQueried = await probeQuery(client, { kind, bucket: options.bucket }, signal);
  return { ...NOTHING, kind, write, isPoint, isQueried, ...facts, version: facts.version ?? versionIn(answer) };
}

/**
 * Looks for the database in the list of an InfluxDB 3. This comes first: any write, also an empty one, creates a
 * database.
 *
 * @returns whether a write could create it; `null` if it is there, or if no InfluxDB 3 answers
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

/** How many databases InfluxDB 3 Core allows, without its own. Enterprise allows more. */
const CORE_DATABASES = 5;

async function isCore(client: DatabaseClient, signal: AbortSignal): Promise<boolean> {
  const answer = await client.request({ method: 'GET', path: '/ping', body: '' }, signal);
  return !('kind' in answer) && /^core$/i.test(String(answer.headers['x-influxdb-build']));
}

/**
 * Reads the list of databases of an InfluxDB 3; `null` for anything else. The server gives an object with the name for
 * each, and its API description has `{databases: [names]}`. A deleted database is none.
 */
export function readDatabases(text: string | null): readonly string[] | null {
  const answer = parseJson(text);
  const rows = isRecord(answer) ? answer['databases'] : answer;
  if (!Array.isArray(rows) || rows.length === 0) return null;
  const names = rows
    .filter((row) => !(isRecord(row) && row['deleted'] === true))
    .map((row) => (isRecord(row) ? row['iox::database'] : row));
  return names.every((name) => typeof name === 'string') ? names : null;
}

type Facts = Pick<DestinationFacts, 'version' | 'retentionMs' | 'dedupMs'>;

const NOTHING = {
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
 * which means that all is well.
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

async function probeVictoria(client: DatabaseClient, signal: AbortSignal): Promise<Facts> {
  const metrics = await body(client, '/metrics', signal);
  const flags = await body(client, '/flags', signal);
  return readFlags({ metrics, flags });
}

async function probeInflux(
  client: DatabaseClient,
  { org, bucket }: InfluxSinkOptions,
  signal: AbortSignal,
): Promise<Facts> {
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
 * @returns `null` where the answer shows neither
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

/** Reads `GET /api/v2/buckets`: the retention of the bucket with that name, in ms; `null` if it is not shown. */
export function readBucketRetention(text: string | null, bucket: string): number | null {
  const { buckets } = { ...(parseJson(text) as MaybeRecord) };
  const own: MaybeRecord = Array.isArray(buckets)
    ? buckets.find((each: MaybeRecord) => each?.['name'] === bucket)
    : null;
  const rules = own?.['retentionRules'];
  if (!Array.isArray(rules)) return null;
  const seconds: unknown = rules[0]?.everySeconds ?? 0;
  return typeof seconds === 'number' && seconds >= 0 ? lasting(seconds * SECOND_MS) : null;
}

type MaybeRecord = JsonRecord | null | undefined;

/** Reads `SHOW RETENTION POLICIES`: the duration of the named policy, or of the default policy. */
export function readRetentionPolicies(text: string | null, policy: string): number | null {
  const answer = parseJson(text) as {
    readonly results?: readonly {
      readonly series?: readonly { readonly columns?: readonly string[]; readonly values?: readonly unknown[][] }[];
    }[];
  } | null;
  const { columns = [], values = [] } = answer?.results?.[0]?.series?.[0] ?? {};
  const cell = (row: readonly unknown[], name: string): unknown => row[columns.indexOf(name)];
  const row = values.find((each) => (policy === '' ? cell(each, 'default') === true : cell(each, 'name') === policy));
  const duration = row === undefined ? null : cell(row, 'duration');
  const ms = typeof duration === 'string' ? parseDuration(duration) : null;
  return ms === null ? null : lasting(ms);
}

/** Databases report zero for unlimited retention. */
function lasting(ms: number): number {
  return ms === 0 ? Number.POSITIVE_INFINITY : ms;
}

/**
 * Reads the flags of a VictoriaMetrics: `/metrics` lists all of them, `/flags` those that were set. A proxy in front of
 * it or the vminsert of a cluster lists its own flags there, which are ignored.
 */
export function readFlags({
  metrics,
  flags,
}: {
  readonly metrics: string | null;
  readonly flags: string | null;
}): Pick<DestinationFacts, 'version' | 'retentionMs' | 'dedupMs'> {
  const flag = (name: string): string | null =>
    find(metrics, new RegExp(`^flag\\{name="${name}", ?value="([^"]*)"`, 'm')) ??
    find(flags, new RegExp(`^-${name}="([^"]*)"`, 'm'));
  const dedup = flag('dedup\\.minScrapeInterval');
  const retention = flag('retentionPeriod');
  // A single node has a directory for its data, and lists here only what was set.
  const isNode = flags !== null && /^-(?:storageDataPath|retentionPeriod)=/m.test(flags);
  const version = find(metrics, /^vm_app_version\{[^}]*short_version="([^"]+)"/m);
  return {
    version: version !== null && /^[\w.+-]{1,40}$/.test(version) ? version : null,
    retentionMs: retention === null ? null : parseRetention(retention),
    dedupMs: dedup === null ? (isNode ? 0 : null) : parseDuration(dedup),
  };
}

function find(text: string | null, pattern: RegExp): string | null {
  return text === null ? null : (pattern.exec(text)?.[1] ?? null);
}

const UNITS: Readonly<{ [unit: string]: number }> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
  y: 365 * DAY_MS,
};

/** Reads a duration as Go writes it (`168h0m0s`), or with larger units; `null` for anything else. */
function parseDuration(text: string): number | null {
  if (/^0+$/.test(text)) return 0;
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhdwy]))+$/.test(text)) return null;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdwy])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit ?? ''] ?? 0), 0);
}

/** Reads `-retentionPeriod`: a number without a unit means months of 31 days. */
function parseRetention(text: string): number | null {
  return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 31 * DAY_MS : parseDuration(text);
}

/** The flag that VictoriaMetrics has to be started with. */
export const DEDUP_FLAG = '-dedup.minScrapeInterval=1ms';

/**
 * The fault of the deduplication of a VictoriaMetrics; `null` for none. `dedupMs` as in `DestinationFacts`.
 */
export function dedupAdvice(dedupMs: number | null): Advice | null {
  if (dedupMs === 1) return null;
  if (dedupMs === null) {
    return {
      what: 'the database does not report its deduplication: without deduplication, points that are sent again are stored twice',
      remedy: `Check that VictoriaMetrics was started with ${DEDUP_FLAG} (in a cluster: vmselect and vmstorage).`,
    };
  }
  const what =
    dedupMs < 1
      ? 'deduplication is off: points that are sent again, for instance after a crash, are stored twice'
      : `VictoriaMetrics keeps only one of several readings within ${dedupMs < 1000 ? `${dedupMs} ms` : duration(dedupMs / 1000)} (deduplication)`;
  return { what, remedy: `Start VictoriaMetrics with ${DEDUP_FLAG}.` };
}

/** That an InfluxDB 3 has no such database. It creates the database of a misspelt name, and accepts the points. */
export function missingAdvice(bucket: string, key: string): Advice {
  return {
    what: `this InfluxDB 3 has no database "${plainText(bucket, 100)}"; it creates one with the first point`,
    remedy: `If you meant an existing database, correct ${key}.`,
  };
}

/** The retention of a VictoriaMetrics that is started without `-retentionPeriod`. */
const DEFAULT_RETENTION_MS = 31 * DAY_MS;

/**
 * That a database keeps points for less time than the history goes back, or a VictoriaMetrics only for its default
 * retention; `null` for neither, and where the retention is unknown.
 */
export function retentionAdvice(
  { kind, retentionMs }: Pick<DestinationFacts, 'kind' | 'retentionMs'>,
  historyMs: number,
): Advice | null {
  if (retentionMs === null) return null;
  if (retentionMs >= historyMs) {
    if (kind !== 'victoriametrics' || retentionMs !== DEFAULT_RETENTION_MS) return null;
    return {
      what: `the database keeps points for only ${duration(retentionMs / 1000)}, the default of VictoriaMetrics: it deletes every point that becomes older`,
      remedy: 'Start VictoriaMetrics with a longer -retentionPeriod, unless a month is enough for you.',
    };
  }
  const what = `the database keeps points for only ${duration(retentionMs / 1000)}, but sync.history goes back ${duration(historyMs / 1000)}: older points will not be in the database`;
  return kind === 'victoriametrics'
    ? { what, remedy: 'Start VictoriaMetrics with a longer -retentionPeriod, or shorten sync.history.' }
    : { what, remedy: 'Set a longer retention in the database, or shorten sync.history.' };
}
