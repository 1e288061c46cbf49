/**
 * The facts that a database reports about itself (its version, its retention, its deduplication, its list of
 * databases), read from its answers, and the advice if one of them loses points or stores them twice.
 */
import type { Advice } from '../core/faults.ts';
import { isRecord, type JsonRecord, parseJson } from '../core/json.ts';
import type { DestinationFacts } from '../core/ports.ts';
import { duration, plainText } from '../core/text.ts';
import { DAY_MS, SECOND_MS, UNIT_MS } from '../core/time.ts';

/** The facts that a server reports, each `null` where it is unknown. */
export type ServerFacts = Pick<DestinationFacts, 'version' | 'retentionMs' | 'dedupMs'>;

/**
 * Reads the list of databases of an InfluxDB 3; `null` for anything else. The server gives an object with the name for
 * each, and its API description has `{databases: [names]}`. Deleted databases do not count.
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

/** Reads `GET /api/v2/buckets`: the retention of the bucket with that name, in ms; `null` if it is not shown. */
export function readBucketRetention(text: string | null, bucket: string): number | null {
  const { buckets } = { ...(parseJson(text) as MaybeRecord) };
  const own: MaybeRecord = Array.isArray(buckets)
    ? buckets.find((each: MaybeRecord) => each?.['name'] === bucket)
    : null;
  const rules = own?.['retentionRules'];
  if (!Array.isArray(rules)) return null;
  const seconds: unknown = rules[0]?.everySeconds ?? 0;
  return typeof seconds === 'number' && seconds >= 0 ? toRetentionMs(seconds * SECOND_MS) : null;
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
  return ms === null ? null : toRetentionMs(ms);
}

/** Converts a retention: databases report zero for unlimited retention. */
function toRetentionMs(ms: number): number {
  return ms === 0 ? Number.POSITIVE_INFINITY : ms;
}

/**
 * Reads the flags of a VictoriaMetrics: `/metrics` lists all flags, `/flags` those that were set. A proxy in front of
 * it or the vminsert of a cluster lists its own flags there, which are ignored.
 */
export function readFlags({
  metrics,
  flags,
}: {
  readonly metrics: string | null;
  readonly flags: string | null;
}): ServerFacts {
  const flag = (name: string): string | null =>
    find(metrics, new RegExp(`^flag\\{name="${name}", ?value="([^"]*)"`, 'm')) ??
    find(flags, new RegExp(`^-${name}="([^"]*)"`, 'm'));
  const dedup = flag('dedup\\.minScrapeInterval');
  const retention = flag('retentionPeriod');
  // A single node has a directory for its data, and `/flags` lists only the flags that were set.
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

/** Reads a duration as Go writes it (`168h0m0s`), or with larger units; `null` for anything else. */
function parseDuration(text: string): number | null {
  if (/^0+$/.test(text)) return 0;
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhdwy]))+$/.test(text)) return null;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdwy])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS.get(unit ?? '') ?? 0), 0);
}

/** Reads `-retentionPeriod`: a number without a unit means months of 31 days. */
function parseRetention(text: string): number | null {
  return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 31 * DAY_MS : parseDuration(text);
}

/** The flag that VictoriaMetrics must be started with. */
export const DEDUP_FLAG = '-dedup.minScrapeInterval=1ms';

/** The problem of a VictoriaMetrics' deduplication; `null` for none. `dedupMs` as in `DestinationFacts`. */
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

/**
 * The advice if an InfluxDB 3 has no such database. It creates a database for a misspelt name, and accepts the points.
 */
export function missingAdvice(bucket: string, key: string): Advice {
  return {
    what: `this InfluxDB 3 has no database "${plainText(bucket, 100)}"; it creates one with the first point`,
    remedy: `If you meant an existing database, correct ${key}.`,
  };
}

/** The retention of a VictoriaMetrics that is started without `-retentionPeriod`. */
const DEFAULT_RETENTION_MS = 31 * DAY_MS;

/**
 * The advice if a database keeps points for less time than the history goes back, or a VictoriaMetrics only for its
 * default retention; `null` if neither applies, or if the retention is unknown.
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
