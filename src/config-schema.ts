/**
 * Every key of the configuration (design 1.3, binding): its kind, its default, what it means, and whether it acts in
 * this version. The loader, the messages and the example file all go by this table.
 */
import type { KnownNames } from './config-sources.ts';
import type { Parse } from './config-values.ts';
import * as values from './config-values.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from './core/time.ts';

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

/** A key of the design that does nothing yet: giving it is a mistake. */
export interface LaterKey {
  readonly acts: false;
  readonly secret: false;
  readonly description: string;
}

export type Key = ActingKey<unknown> | SecretKey | LaterKey;

function later(description: string): LaterKey {
  return { acts: false, secret: false, description };
}

function acting<T>(parse: Parse<T>, fallback: string, about: { description: string }): DefaultedKey<T> {
  return { acts: true, secret: false, parse, default: fallback, ...about };
}

function optional<T>(parse: Parse<T>, about: { description: string; example: string }): ActingKey<T> {
  return { acts: true, secret: false, parse, default: null, ...about };
}

const timeout = values.duration({ minMs: SECOND_MS, maxMs: 10 * MINUTE_MS, words: 'from 1s to 10m' });
const settle = values.duration({ minMs: 0, maxMs: HOUR_MS, words: 'from 0s to 1h' });

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
      description: 'Address of the InfluxDB to fill. Without one the archive alone is filled.',
      example: 'https://influxdb.example:8086',
    }),
    'influx.token': {
      acts: true,
      secret: true,
      description: 'Its token; for InfluxDB 1.8 that is user:password. Better given as influx.token_file.',
      example: '/run/secrets/tidemark-influx-token',
    } satisfies SecretKey,
    'influx.org': optional(values.line, { description: 'Its organisation.', example: 'home' }),
    'influx.bucket': optional(values.line, {
      description: 'The bucket to write to; for InfluxDB 1.8 that is database/retention-policy.',
      example: 'devices',
    }),
    'influx.kind': acting(values.influxKind, 'auto', { description: 'auto or influxdb.' }),
    'influx.ca_file': optional(values.line, {
      description: 'Certificates (PEM) to trust for the database.',
      example: '/etc/ssl/own-ca.pem',
    }),
    'influx.timeout': acting(timeout, '30s', { description: 'How long one write may take.' }),
    'influx.batch_lines': acting(values.count(1, 50_000), '5000', {
      description: 'How many lines one write carries at most.',
    }),
    destinations: later('Several databases (file only).'),
    'workspace.id': optional(values.line, {
      description:
        'The workspace_id tag of every point. Unless given it comes from the API. Fixed once a point is made.',
      example: 'my-workspace',
    }),
    data_dir: acting(values.line, './data', {
      description: 'Where the state and the archive live; one running Tidemark at a time.',
    }),
    'sync.history': acting(values.history(nowMs), '30d', {
      description: 'How far back the first sync goes: an age such as 30d, a date or an RFC 3339 time.',
    }),
    'sync.settle': acting(settle, '2m', {
      description: 'How long after its time a reading may still appear in the API.',
    }),
    'sync.devices': later('When the device list is due.'),
    'sync.telemetry': later('When telemetry is due.'),
    'sync.alerts': later('When alerts are due.'),
    'sync.account': later('When the account is due.'),
    'sync.include': later('Devices to sync.'),
    'sync.exclude': later('Devices to leave out.'),
    'sync.exclude_sensors': later('Sensors to leave out.'),
    'sync.location': later('Whether positions are kept.'),
    'sync.sweep': later('How often unchanged devices are asked.'),
    'archive.keep': later('How long delivered points are kept.'),
    'archive.max_size': later('How large the archive may grow.'),
    listen: acting(values.listen, '127.0.0.1:9464', {
      description: 'Where the status page is served: host:port. Port 0 takes a free one.',
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

/** Keys that the environment cannot give. */
const FILE_ONLY: readonly string[] = ['destinations'];

/** The names that a configuration file may use. */
export function knownNames(keys: ConfigKeys): KnownNames {
  const paths = Object.entries(keys).flatMap(([path, key]) => (key.secret ? [path, fileForm(path)] : [path]));
  return { paths: new Set(paths.filter((path) => !FILE_ONLY.includes(path))), opaque: new Set(FILE_ONLY) };
}

/** Every environment variable and its path. */
export function knownVariables(keys: ConfigKeys): ReadonlyMap<string, string> {
  return new Map([...knownNames(keys).paths].map((path) => [variableOf(path), path]));
}
