/**
 * What databases tell of themselves beside writes: how long they keep points, and what VictoriaMetrics drops as duplicates.
 * Pure. Whatever cannot be read is not known.
 */
import type { DestinationFacts } from '../core/ports.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** `GET /api/v2/buckets`: the rule of the bucket of that name, in ms; `null` where it is not told. */
export function readBucketRetention(text: string | null, bucket: string): number | null {
  const { buckets } = { ...(parse(text) as Record) };
  const own: Record = Array.isArray(buckets) ? buckets.find((each: Record) => each?.['name'] === bucket) : null;
  const rules = own?.['retentionRules'];
  if (!Array.isArray(rules)) return null;
  const seconds: unknown = rules[0]?.everySeconds ?? 0;
  return typeof seconds === 'number' && seconds >= 0 ? lasting(seconds * SECOND_MS) : null;
}

type Record = Readonly<{ [name: string]: unknown }> | null | undefined;

/** `SHOW RETENTION POLICIES`: that of a policy, or, where none is named, of the default one. */
export function readRetentionPolicies(text: string | null, policy: string): number | null {
  const answer = parse(text) as {
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

/** In the databases zero means for ever. */
function lasting(ms: number): number {
  return ms === 0 ? Number.POSITIVE_INFINITY : ms;
}

/**
 * What VictoriaMetrics tells of its flags: `/metrics` lists all of them, `/flags` those that were set. A proxy before it,
 * or a cluster's vminsert, answers there with flags of its own: they say nothing.
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
  // A single node has a place for its data, and lists here what was set and nothing else.
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

/** A duration as Go writes it (`168h0m0s`), or with larger units; `null` for anything else. */
function parseDuration(text: string): number | null {
  if (/^0+$/.test(text)) return 0;
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhdwy]))+$/.test(text)) return null;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdwy])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit ?? ''] ?? 0), 0);
}

/** `-retentionPeriod`: a number alone means months of 31 days. */
function parseRetention(text: string): number | null {
  return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 31 * DAY_MS : parseDuration(text);
}

function parse(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
