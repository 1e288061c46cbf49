/**
 * Every key of the configuration (design 1.3, binding): its kind, its default, what it means, and whether it acts in
 * this version. The loader, the messages and the example file all go by this table.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';
import type { KnownNames } from './sources.ts';
import type { Parse, ParseItems } from './values.ts';
import * as values from './values.ts';

/** A key that acts. */
export interface ActingKey<T> {
  readonly acts: true;
  readonly secret: false;
  readonly parse: Parse<T>;
  /** As it would be written; `null` where there is none. */
  readonly default: string | null;
  readonly description: string;
  /** A value to show in the example file where there is no default. */
  readonly example?: string;
  /** Set for keys that take a list. */
  readonly parseItems?: ParseItems<T>;
}

/** A key that always has a value. */
interface DefaultedKey<T> extends ActingKey<T> {
  readonly default: string;
}

/** A key that holds a secret; it can be given in a file too, by its name with `_file`. */
export interface SecretKey {
  readonly acts: true;
  readonly secret: true;
  readonly description: string;
  readonly example: string;
}

/** A section whose keys are names that a person chose, each a section with the keys of `influx`. */
export interface FamilyKey {
  readonly acts: true;
  readonly secret: false;
  readonly fileOnly: true;
  readonly default: null;
  readonly description: string;
  readonly example: string;
}

/** A key that is promised and does nothing yet: giving it is a mistake. */
export interface LaterKey {
  readonly acts: false;
  readonly secret: false;
  readonly description: string;
}

export type Key = ActingKey<unknown> | SecretKey | FamilyKey | LaterKey;

function acting<T>(parse: Parse<T>, fallback: string, about: { description: string }): DefaultedKey<T> {
  return { acts: true, secret: false, parse, default: fallback, ...about };
}

function optional<T>(parse: Parse<T>, about: { description: string; example: string }): ActingKey<T> {
  return { acts: true, secret: false, parse, default: null, ...about };
}

/** A key that takes several values: a list in the file, commas in the environment. */
function list<T>(parseItems: ParseItems<T>, about: { description: string; example: string }): ActingKey<T> {
  return { ...optional(values.separated(parseItems), about), parseItems };
}

const timeout = values.duration({ minMs: SECOND_MS, maxMs: 10 * MINUTE_MS, words: 'from 1s to 10m' });
const settle = values.duration({ minMs: 0, maxMs: HOUR_MS, words: 'from 0s to 1h' });

const sweep = values.duration({ minMs: 10 * MINUTE_MS, maxMs: 30 * DAY_MS, words: 'from 10m to 30d' });
const keep = values.duration({ minMs: HOUR_MS, maxMs: 36_500 * DAY_MS, words: 'from 1h to 36500d' });
const archiveSize = values.size({
  minBytes: 64 * 1024 ** 2,
  maxBytes: 4096 * 1024 ** 3,
  words: 'from 64MiB to 4096GiB',
});

/** All keys by path, in the order of the example file. @param nowMs the present, for keys that must lie in the past. */
export function configKeys(nowMs: number) {
  return {
    'api.url': optional(values.apiUrl, {
      description: 'Base address of the API, ending in /external/v1. Required.',
      example: 'https://monitoring.example/external/v1',
    }),
    'api.key': {
      acts: true,
      secret: true,
      description: 'Workspace API key. Required; better given as api.key_file, the path of a file that holds it alone.',
      example: '/run/secrets/tidemark-api-key',
    } satisfies SecretKey,
    'api.share': acting(values.share, '0.8', {
      description: "The part of the workspace's allowance that this program may use: above 0, up to 1.",
    }),
    'api.concurrency': acting(values.count(1, 64), '4', {
      description: 'How many requests may be under way at once.',
    }),
    'api.timeout': acting(timeout, '30s', { description: 'How long one request may take.' }),
    'api.ca_file': optional(values.line, {
      description: 'Certificates (PEM) to trust for the API.',
      example: '/etc/ssl/own-ca.pem',
    }),
    'influx.url': optional(values.baseUrl, {
      description: 'Address of the InfluxDB or VictoriaMetrics to fill. Without one the archive alone is filled.',
      example: 'https://influxdb.example:8086',
    }),
    'influx.token': {
      acts: true,
      secret: true,
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
    'influx.kind': acting(values.influxKind, 'auto', {
      description: 'influxdb, victoriametrics, or auto: the database is asked once.',
    }),
    'influx.ca_file': optional(values.line, {
      description: 'Certificates (PEM) to trust for the database.',
      example: '/etc/ssl/own-ca.pem',
    }),
    'influx.timeout': acting(timeout, '30s', { description: 'How long one write may take.' }),
    'influx.batch_lines': acting(values.count(1, 50_000), '5000', {
      description: 'How many lines one write carries at most.',
    }),
    destinations: {
      acts: true,
      secret: false,
      fileOnly: true,
      default: null,
      description: 'Further databases: a map of names to what influx takes. In the file only.',
      example: '{second: {url: "https://victoria.example:8428", kind: victoriametrics}}',
    } satisfies FamilyKey,
    'workspace.id': optional(values.line, {
      description:
        'The workspace_id tag of every point. Unless given it comes from the API. Fixed once a point is made.',
      example: 'my-workspace',
    }),
    data_dir: acting(values.line, './data', {
      description: 'Where the state and the archive live; one running Tidemark at a time.',
    }),
    'sync.history': acting(values.history(nowMs), '30d', {
      description:
        'How far back the first sync goes: an age such as 30d, a date, an RFC 3339 time, or all. all is 30d, and then, once, as a job of the daemon, everything older that the API has.',
    }),
    'sync.settle': acting(settle, '2m', {
      description: 'How long after its time a reading may still appear in the API.',
    }),
    'sync.devices': acting(values.cron, '*/5 * * * *', {
      description:
        'When the device list is due at the latest: a cron expression, in UTC. With allowance to spare it is read more often, as it tells of news.',
    }),
    'sync.telemetry': acting(values.cron, '* * * * *', {
      description:
        'How often a device that has something new is asked: a cron expression, in UTC. Its mean distance counts.',
    }),
    'sync.alerts': acting(values.cron, '*/2 * * * *', {
      description: 'When alerts are due: a cron expression, in UTC.',
    }),
    'sync.account': acting(values.cron, '0 * * * *', {
      description: 'When the account and its plan are due: a cron expression, in UTC.',
    }),
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
    'sync.location': acting(values.flag, 'true', {
      description: 'Whether positions of devices are kept: true or false.',
    }),
    'sync.sweep': acting(sweep, '6h', {
      description: 'How often a device is asked all the same of which the device list tells nothing new.',
    }),
    'archive.keep': acting(keep, '30d', {
      description: 'How long points are kept in the archive once every database has settled them.',
    }),
    'archive.max_size': acting(archiveSize, '2GiB', {
      description:
        'How large the state may grow. Near it settled points go before their time; where that is not enough, nothing new is pulled.',
    }),
    listen: acting(values.listen, '127.0.0.1:9464', {
      description: 'Where the status page is served: host:port. Port 0 takes a free one.',
    }),
    'metrics.per_device': acting(values.flag, 'false', {
      description: 'Whether /metrics tells of each device, of 1,000 at most: true or false.',
    }),
    'log.level': acting(values.choice('error', 'warn', 'info', 'debug'), 'info', {
      description: 'error, warn, info or debug.',
    }),
    'log.format': acting(values.choice('auto', 'json', 'pretty'), 'auto', {
      description: 'json, pretty, or auto: pretty on a terminal and json elsewhere.',
    }),
  } as const;
}

export type ConfigKeys = ReturnType<typeof configKeys>;

/** A key's path, such as `api.url`. */
export type KeyPath = keyof ConfigKeys;

/** A path that is read by `ConfigReader.value`. */
export type ValuePath = { [K in KeyPath]: ConfigKeys[K] extends ActingKey<unknown> ? K : never }[KeyPath];

/** The type of a key's value: with `null` where there is no default. */
export type ValueOf<K extends ValuePath> =
  ConfigKeys[K] extends DefaultedKey<infer T> ? T : ConfigKeys[K] extends ActingKey<infer T> ? T | null : never;

/** The paths of the keys that hold a secret. */
export type SecretPath = 'api.key' | 'influx.token';

/** The path of the file form of a secret key. */
export function fileForm(path: string): string {
  return `${path}_file`;
}

/** The environment variable of a path: `api.url` is `TIDEMARK_API_URL`. */
export function variableOf(path: string): string {
  return `TIDEMARK_${path.toUpperCase().replaceAll('.', '_')}`;
}

/** Sections that the environment cannot give, and whose keys each section below one of their names takes. */
const FAMILIES: ReadonlyMap<string, string> = new Map([['destinations', 'influx']]);

/** The names that a configuration file may use. */
export function knownNames(keys: ConfigKeys): KnownNames {
  const paths = Object.entries(keys).flatMap(([path, key]) => (key.secret ? [path, fileForm(path)] : [path]));
  const lists = Object.entries(keys).flatMap(([path, key]) => (key.acts && 'parseItems' in key ? [path] : []));
  return {
    paths: new Set(paths.filter((path) => !FAMILIES.has(path))),
    lists: new Set(lists),
    families: FAMILIES,
  };
}

/** Every environment variable and its path. */
export function knownVariables(keys: ConfigKeys): ReadonlyMap<string, string> {
  return new Map([...knownNames(keys).paths].map((path) => [variableOf(path), path]));
}
