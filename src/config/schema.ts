/**
 * The table of all configuration keys: kind, default and meaning. The loader, the messages, the example file and the
 * page about the configuration are made from it.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import type { KnownNames } from './sources.ts';
import type { ParseAt, ParseItems } from './values.ts';
import * as values from './values.ts';

/** A key with a value. */
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

/** A section whose keys are names chosen by a person. Each of them is a section with the keys of `influx`. */
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

const timeout = values.duration({ minMs: SECOND_MS, maxMs: 10 * MINUTE_MS, words: 'from 1s to 10m' });
const settle = values.duration({ minMs: 0, maxMs: HOUR_MS, words: 'from 0s to 1h' });

const sweep = values.duration({ minMs: 10 * MINUTE_MS, maxMs: 30 * DAY_MS, words: 'from 10m to 30d' });
const gonePoll = values.duration({ minMs: HOUR_MS, maxMs: 30 * DAY_MS, words: 'from 1h to 30d' });
const keep = values.duration({ minMs: HOUR_MS, maxMs: 36_500 * DAY_MS, words: 'from 1h to 36500d' });
const archiveSize = values.size({
  minBytes: 64 * 1024 ** 2,
  maxBytes: 4096 * 1024 ** 3,
  words: 'from 64MiB to 4096GiB',
});

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
    example: '/run/secrets/tidemark-api-key',
  } satisfies SecretKey,
  'api.share': defaulted(
    values.share,
    '0.8',
    "The part of the workspace's allowance that this program may use: above 0, up to 1.",
  ),
  'api.concurrency': defaulted(values.count(1, 64), '4', 'How many requests may be under way at once.'),
  'api.timeout': defaulted(timeout, '30s', 'How long one request may take.'),
  'api.ca_file': optional(values.line, {
    description: 'Certificates (PEM) to trust for the API.',
    example: '/etc/ssl/own-ca.pem',
  }),
  'influx.url': optional(values.baseUrl, {
    description: 'Address of the InfluxDB or VictoriaMetrics to fill. Without one the archive alone is filled.',
    example: 'https://influxdb.example:8086',
  }),
  'influx.token': {
    kind: 'secret',
    default: null,
    description:
      'Its token; for InfluxDB 1.8 and VictoriaMetrics that is user:password. Better given as influx.token_file.',
    example: '/run/secrets/tidemark-influx-token',
  } satisfies SecretKey,
  'influx.org': optional(values.line, { description: 'Its organisation.', example: 'home' }),
  'influx.bucket': optional(values.line, {
    description:
      'The bucket to write to; for InfluxDB 1.8 that is database/retention-policy. With influx.kind victoriametrics none is needed.',
    example: 'devices',
  }),
  'influx.kind': defaulted(
    values.influxKind,
    'auto',
    'influxdb, victoriametrics, or auto: the database is asked once.',
  ),
  'influx.ca_file': optional(values.line, {
    description: 'Certificates (PEM) to trust for the database.',
    example: '/etc/ssl/own-ca.pem',
  }),
  'influx.timeout': defaulted(timeout, '30s', 'How long one write may take.'),
  'influx.batch_lines': defaulted(values.count(1, 50_000), '5000', 'How many lines one write carries at most.'),
  destinations: {
    kind: 'sections',
    default: null,
    description: 'Further databases: a map of names to what influx takes. In the file only.',
    example: '{second: {url: "https://victoria.example:8428", kind: victoriametrics}}',
  } satisfies SectionsKey,
  'workspace.id': optional(values.line, {
    description: 'The workspace_id tag of every point. Unless given it comes from the API. Fixed once a point is made.',
    example: 'my-workspace',
  }),
  data_dir: defaulted(values.line, './data', 'Where the state and the archive live; one running Tidemark at a time.'),
  'sync.history': defaulted(
    values.history,
    '30d',
    'How far back the first sync goes: an age such as 30d, a date, an RFC 3339 time, or all. all is 30d, and then, once, as a job of the daemon, everything older that the API has.',
  ),
  'sync.settle': defaulted(settle, '2m', 'How long after its time a reading may still appear in the API.'),
  'sync.devices': defaulted(
    values.cron,
    '*/5 * * * *',
    'When the device list is due at the latest: a cron expression, in UTC. With allowance to spare it is read more often, as it tells of news.',
  ),
  'sync.telemetry': defaulted(
    values.cron,
    '* * * * *',
    'How often a device that has something new is asked: a cron expression, in UTC. Its mean distance counts.',
  ),
  'sync.alerts': defaulted(values.cron, '*/2 * * * *', 'When alerts are due: a cron expression, in UTC.'),
  'sync.account': defaulted(
    values.cron,
    '0 * * * *',
    'When the account and its plan are due: a cron expression, in UTC.',
  ),
  'sync.include': list(values.patterns, {
    description:
      'Devices to sync, by id, name, model or tag; all unless given. A list of patterns: * is any text, ? one character.',
    example: 'greenhouse-*, Cold store',
  }),
  'sync.exclude': list(values.patterns, {
    description: 'Devices to leave out, in the same way; it wins over sync.include.',
    example: 'test-*',
  }),
  'sync.exclude_sensors': list(values.patterns, {
    description: 'Sensors whose values are not written; a nested value is named with dots.',
    example: 'rssi, debug.*',
  }),
  'sync.location': defaulted(values.flag, 'true', 'Whether positions of devices are kept: true or false.'),
  'sync.sweep': defaulted(
    sweep,
    '6h',
    'How often a device is asked all the same of which the device list tells nothing new.',
  ),
  'sync.gone_poll': defaulted(
    gonePoll,
    '1d',
    'How often a device is asked that is not in the workspace any more, to see whether it is back. Each costs a request.',
  ),
  'archive.keep': defaulted(
    keep,
    '30d',
    'How long points are kept in the archive once every database has settled them.',
  ),
  'archive.max_size': defaulted(
    archiveSize,
    '2GiB',
    'How large the state may grow. Near it settled points go before their time; where that is not enough, nothing new is pulled.',
  ),
  listen: defaulted(
    values.listen,
    '127.0.0.1:9464',
    'Where the status page is served: host:port. Port 0 takes a free one.',
  ),
  listen_names: list(values.hostNames, {
    description:
      'Public names by which the status page is asked for, such as that of a proxy. IP addresses, localhost, names of one word and below .local and .internal need not be listed.',
    example: 'tidemark.example.com',
  }),
  listen_password: {
    kind: 'secret',
    default: null,
    description:
      'A password for the status page, its JSON and /metrics, with any user name; /healthz needs none. Better given as listen_password_file. Without one everybody who reaches the port reads them.',
    example: '/run/secrets/tidemark-page-password',
  } satisfies SecretKey,
  'metrics.per_device': defaulted(
    values.flag,
    'false',
    'Whether /metrics tells of each device, of 1,000 at most: true or false.',
  ),
  'log.level': defaulted(values.choice('error', 'warn', 'info', 'debug'), 'info', 'error, warn, info or debug.'),
  'log.format': defaulted(
    values.choice('auto', 'json', 'pretty'),
    'auto',
    'json, pretty, or auto: pretty on a terminal and json elsewhere.',
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

/** The paths of the keys for secrets. */
export type SecretPath = 'api.key' | 'influx.token' | 'listen_password';

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

/** The poll intervals of devices that report nothing new: the names of the settings, and their keys. */
export const POLL_KEYS = { idlePollMs: 'sync.sweep', goneMs: 'sync.gone_poll' } as const satisfies Readonly<
  Record<string, ValuePath>
>;

/** All keys with their paths. */
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
  };
}

/** Every environment variable and its path. */
export function knownVariables(): ReadonlyMap<string, string> {
  return new Map([...knownNames().paths].map((path) => [variableOf(path), path]));
}
