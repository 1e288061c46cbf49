/**
 * The table of all configuration keys: kind, default and meaning. The loader, the messages, the example file and the
 * page about the configuration are made from it.
 */
import { LOG_LEVELS } from '../core/events.ts';
import { MOST_DEVICE_SERIES } from '../core/fleet.ts';
import { DESTINATION_KINDS } from '../core/lines/dialect.ts';
import { DEFAULT_LISTEN } from '../core/page-facts.ts';
import { grouped } from '../core/text.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import type { KnownNames } from './sources.ts';
import type { ParseAt, ParseItems } from './values.ts';
import * as values from './values.ts';

/** A key whose value is parsed from its text, as opposed to a secret or sections. */
export interface ValueKey<T> {
  readonly kind: 'value';
  readonly parse: ParseAt<T>;
  /** The default as it would be written; `null` if there is none. */
  readonly default: string | null;
  readonly description: string;
  /** A value for the example file if there is no default. */
  readonly example?: string;
  /** Given for keys that accept a list. */
  readonly parseItems?: ParseItems<T>;
}

/** A key that always has a value. */
interface DefaultedKey<T> extends ValueKey<T> {
  readonly default: string;
}

/** A key for a secret. A file can provide it instead, with the key's name followed by `_file`. */
interface SecretKey {
  readonly kind: 'secret';
  readonly default: null;
  readonly description: string;
  readonly example: string;
}

/** A section whose keys are names that the user chooses. Each of them is a section with the keys of `influx`. */
interface SectionsKey {
  readonly kind: 'sections';
  readonly default: null;
  readonly description: string;
  readonly example: string;
}

export type Key = ValueKey<unknown> | SecretKey | SectionsKey;

function defaulted<T>(parse: ParseAt<T>, fallback: string, description: string): DefaultedKey<T> {
  return { kind: 'value', parse, default: fallback, description };
}

function optional<T>(parse: ParseAt<T>, about: { description: string; example: string }): ValueKey<T> {
  return { kind: 'value', parse, default: null, ...about };
}

/** A key with several values: a list in the file, separated by commas in the environment. */
function list<T>(parseItems: ParseItems<T>, about: { description: string; example: string }): ValueKey<T> {
  return { ...optional(values.separated(parseItems), about), parseItems };
}

/** Words of which one applies: `error, warn, info or debug`. */
function anyOf(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

/** The longest time that a request may take. */
export const LONGEST_TIMEOUT_MS = 10 * MINUTE_MS;

const timeout = values.durationWithin({ minMs: SECOND_MS, maxMs: LONGEST_TIMEOUT_MS });
const gracePeriod = values.durationWithin({ minMs: 0, maxMs: HOUR_MS });

const idlePoll = values.durationWithin({ minMs: 10 * MINUTE_MS, maxMs: 30 * DAY_MS });
const gonePoll = values.durationWithin({ minMs: HOUR_MS, maxMs: 30 * DAY_MS });
const fullPoll = values.durationWithin({ minMs: MINUTE_MS, maxMs: DAY_MS });
const retention = values.durationWithin({ minMs: HOUR_MS, maxMs: 36_500 * DAY_MS });
const archiveSize = values.sizeWithin({ minBytes: 64 * 1024 ** 2, maxBytes: 4096 * 1024 ** 3 });

/** All keys by path, in the order of the example file. */
export const CONFIG_KEYS = {
  'api.url': optional(values.apiUrl, {
    description: 'Base address of the API, ending in /external/v1. Required.',
    example: 'https://monitoring.example/external/v1',
  }),
  'api.key': {
    kind: 'secret',
    default: null,
    description: 'Workspace API key. Required; better given as api.key_file, the path of a file that holds it alone.',
    example: '/run/secrets/tidemark_api_key',
  } satisfies SecretKey,
  'api.share': defaulted(
    values.share,
    '0.8',
    "Fraction of the workspace's quota that Tidemark may use: above 0, up to 1.",
  ),
  'api.concurrency': defaulted(values.wholeNumber(1, 64), '4', 'Maximum number of concurrent requests.'),
  'api.timeout': defaulted(timeout, '30s', 'Timeout of one request.'),
  'api.ca_file': optional(values.line, {
    description: 'File of certificates (PEM) to trust for the API.',
    example: '/etc/ssl/own-ca.pem',
  }),
  'influx.url': optional(values.baseUrl, {
    description: 'Address of the InfluxDB or VictoriaMetrics to write to. Without it, Tidemark fills only its archive.',
    example: 'https://influxdb.example:8086',
  }),
  'influx.token': {
    kind: 'secret',
    default: null,
    description:
      'Token of the database; user:password for InfluxDB 1.8 and VictoriaMetrics. Prefer influx.token_file; an empty file means no token.',
    example: '/run/secrets/tidemark_influx_token',
  } satisfies SecretKey,
  'influx.org': optional(values.line, {
    description: 'Organization of the bucket. InfluxDB 2 requires it.',
    example: 'my-org',
  }),
  'influx.bucket': optional(values.line, {
    description:
      'Bucket to write to; database/retention-policy for InfluxDB 1.8. Required unless influx.kind is victoriametrics.',
    example: 'devices',
  }),
  'influx.kind': defaulted(
    values.influxKind,
    'auto',
    `Kind of database: ${DESTINATION_KINDS.join(', ')}, or auto (detected with one request).`,
  ),
  'influx.ca_file': optional(values.line, {
    description: 'File of certificates (PEM) to trust for the database.',
    example: '/etc/ssl/own-ca.pem',
  }),
  'influx.timeout': defaulted(timeout, '30s', 'Timeout of one write.'),
  'influx.batch_lines': defaulted(values.wholeNumber(1, 50_000), '5000', 'Maximum number of lines in one write.'),
  destinations: {
    kind: 'sections',
    default: null,
    description:
      'Additional databases: a map from a name to the same keys as influx. Only in the file: it has no environment variable.',
    example: '{second: {url: "https://victoria.example:8428", kind: victoriametrics}}',
  } satisfies SectionsKey,
  'workspace.id': optional(values.line, {
    description:
      'Value of the workspace_id tag of every point. Default: the id that the API returns. It cannot change once a point is stored.',
    example: 'my-workspace',
  }),
  data_dir: defaulted(
    values.line,
    './data',
    'Directory of the state and the archive. Only one running Tidemark may use it.',
  ),
  'sync.history': defaulted(
    values.history,
    '30d',
    `How far back the first sync reads: an age such as 30d, a date, an RFC 3339 time, or all. With all, the daemon reads ${values.ALL_LIVE_PART_MS / DAY_MS} days first and then everything older that the API has.`,
  ),
  'sync.grace_period': defaulted(
    gracePeriod,
    '2m',
    'How late a reading may appear in the API. Readings younger than this may still be missing, so that range does not count as covered.',
  ),
  'sync.devices': defaulted(
    values.cron,
    '*/5 * * * *',
    'Poll interval of the device list as a cron expression (UTC). Tidemark reads it more often while it has quota to spare.',
  ),
  'sync.telemetry': defaulted(
    values.cron,
    '* * * * *',
    'Poll interval of devices that report new data, as a cron expression (UTC). Tidemark spreads the polls, so only the average interval matters: */25 * * * * is three times an hour, thus every 20 min. If the quota is too small, --plan prints an expression that fits.',
  ),
  'sync.alerts': defaulted(values.cron, '*/2 * * * *', 'Poll interval of the alerts as a cron expression (UTC).'),
  'sync.account': defaulted(
    values.cron,
    '0 * * * *',
    'Poll interval of the account and its plan as a cron expression (UTC).',
  ),
  'sync.include': list(values.patterns, {
    description:
      'Devices to sync, by id, name, model or tag. Default: all. Patterns, as a YAML list or one text with commas: * matches any text, ? one character.',
    example: 'greenhouse-*, Cold store',
  }),
  'sync.exclude': list(values.patterns, {
    description: 'Devices to leave out, by the same patterns. It takes precedence over sync.include.',
    example: 'test-*',
  }),
  'sync.exclude_sensors': list(values.patterns, {
    description: 'Sensors to leave out. Name a nested value with dots.',
    example: 'rssi, debug.*',
  }),
  'sync.location': defaulted(values.flag, 'true', 'Whether to store the positions of devices: true or false.'),
  'sync.idle_poll': defaulted(idlePoll, '6h', 'Maximum interval between polls of a device that reports no new data.'),
  'sync.gone_poll': defaulted(
    gonePoll,
    '1d',
    'Interval between polls of a device that left the workspace, to notice its return. Each poll costs one request.',
  ),
  'sync.full_poll': defaulted(
    fullPoll,
    '15m',
    'Interval between polls that request a full page, to find late readings. The other polls request only what is new.',
  ),
  'archive.retention': defaulted(
    retention,
    '30d',
    'How long the archive keeps points that every database has acknowledged.',
  ),
  'archive.max_size': defaulted(
    archiveSize,
    '2GiB',
    'Maximum size of the state. Near the limit, Tidemark removes acknowledged points early; if that is not enough, it stops reading.',
  ),
  listen: defaulted(values.listen, DEFAULT_LISTEN, 'Address of the status page: host:port. Port 0 takes a free port.'),
  listen_names: list(values.hostNames, {
    description:
      'Public host names under which the status page is served, such as that of a proxy. IP addresses, localhost, one-word names, *.local and *.internal need no entry.',
    example: 'tidemark.example.com',
  }),
  listen_password: {
    kind: 'secret',
    default: null,
    description:
      'Password of the status page, its JSON and /metrics, with any user name. /healthz needs none, and /readyz answers without reasons. Prefer listen_password_file. Without a password, everybody who can reach the port can read them.',
    example: '/run/secrets/tidemark-page-password',
  } satisfies SecretKey,
  grafana_url: optional(values.baseUrl, {
    description: 'Address of Grafana or of one of its dashboards, to which the status page links.',
    example: 'https://grafana.example/d/tidemark-fleet',
  }),
  docs_url: optional(values.baseUrl, {
    description: 'Address of this documentation (the folder `docs`), to which the status page links.',
    example: 'https://git.example/tidemark/docs',
  }),
  'metrics.per_device': defaulted(
    values.flag,
    'false',
    `Whether /metrics has series for each device (at most ${grouped(MOST_DEVICE_SERIES)}): true or false.`,
  ),
  'log.level': defaulted(values.choice(...LOG_LEVELS), 'info', `Lowest level that is logged: ${anyOf(LOG_LEVELS)}.`),
  'log.format': defaulted(
    values.choice('auto', 'json', 'pretty'),
    'auto',
    'Format of the log: json, pretty, or auto (pretty on a terminal, json elsewhere).',
  ),
} as const;

type ConfigKeys = typeof CONFIG_KEYS;

/** A key's path, such as `api.url`. */
type KeyPath = keyof ConfigKeys;

/** A path that `readValue` reads. */
export type ValuePath = { [K in KeyPath]: ConfigKeys[K] extends ValueKey<unknown> ? K : never }[KeyPath];

/** The type of a key's value, with `null` if there is no default. */
export type ValueOf<K extends ValuePath> =
  ConfigKeys[K] extends DefaultedKey<infer T> ? T : ConfigKeys[K] extends ValueKey<infer T> ? T | null : never;

export type SecretPath = { [K in KeyPath]: ConfigKeys[K]['kind'] extends 'secret' ? K : never }[KeyPath];

/** The path of a secret key that names its file. */
export function fileForm(path: string): string {
  return `${path}_file`;
}

/** The environment variable for a path: `TIDEMARK_API_URL` for `api.url`. */
export function variableOf(path: string): string {
  return `TIDEMARK_${path.toUpperCase().replaceAll('.', '_')}`;
}

/** Sections that only the file can contain, and the section whose keys each of their entries has. */
const FAMILIES: ReadonlyMap<string, string> = new Map([['destinations', 'influx']]);

/** The keys of earlier versions with their current names. They are refused with the new name. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ['sync.settle', 'sync.grace_period'],
  ['sync.sweep', 'sync.idle_poll'],
  ['archive.keep', 'archive.retention'],
]);

/**
 * The intervals of polls for data that the device list does not announce: the names of the settings, and their keys.
 */
export const POLL_KEYS = {
  idlePollMs: 'sync.idle_poll',
  gonePollMs: 'sync.gone_poll',
  fullPollMs: 'sync.full_poll',
} as const satisfies Readonly<Record<string, ValuePath>>;

/** Returns every key with its path, such as `api.url`, in the order of the schema. */
export function keyEntries(): [path: string, key: Key][] {
  return Object.entries(CONFIG_KEYS);
}

/** The names that a configuration file may use. */
export function knownNames(): KnownNames {
  const entries = keyEntries().filter(([path]) => !FAMILIES.has(path));
  return {
    paths: new Set(entries.flatMap(([path, { kind }]) => (kind === 'secret' ? [path, fileForm(path)] : [path]))),
    lists: new Set(entries.flatMap(([path, key]) => ('parseItems' in key ? [path] : []))),
    families: FAMILIES,
    renamed: RENAMED,
  };
}

/** Every environment variable and its path. */
export function knownVariables(): ReadonlyMap<string, string> {
  return new Map([...knownNames().paths].map((path) => [variableOf(path), path]));
}

/** Every environment variable of an earlier version, and its name now. */
export function renamedVariables(): ReadonlyMap<string, string> {
  return new Map([...RENAMED].map(([old, now]) => [variableOf(old), variableOf(now)]));
}
