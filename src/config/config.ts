/**
 * The configuration (design 1.3): file and environment in, one checked `Config` out.
 *
 * Promises: nothing is read but through the arguments; every mistake is told at once, by its place, with what was
 * expected (`UserError`, exit 78); no message holds a secret; a key that does nothing yet is refused, not ignored.
 */

import { codeOf, UserError } from '../core/faults.ts';
import type { FilterSpec } from '../core/filter.ts';
import type { Schedules } from '../core/schedule.ts';
import { Secret } from '../core/secret.ts';
import type { EpochMs } from '../core/time.ts';
import { type InfluxConfig, type NamedDatabase, readDestinations, readInflux } from './databases.ts';
import {
  beginReading,
  fileTrouble,
  isGiven,
  mistakesOf,
  type Reading,
  readCertificates,
  readSecret,
  readValue,
} from './reader.ts';
import { configKeys, fileForm, knownNames, knownVariables, variableOf } from './schema.ts';
import { readEnvironment, readYaml, type SourceReading } from './sources.ts';
import type { History, Listen } from './values.ts';

/** Where the file is looked for unless `--config` names one. */
export const DEFAULT_FILE = 'config/tidemark.yaml';

export interface ApiConfig {
  /** Without a slash at its end. */
  readonly url: string;
  readonly key: Secret;
  /** Where the key came from, to read it again when it is refused; `null` where it was given itself. */
  readonly keyFile: string | null;
  readonly share: number;
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Certificates to trust, as PEM text. */
  readonly ca: string | null;
}

/** The variables that name proxies, by their names. A proxy's address may hold a password: never shown. */
export type Proxies = Readonly<Record<string, string | undefined>>;

export interface Config {
  readonly api: ApiConfig;
  /** `null`: no database, the archive alone is filled. */
  readonly influx: InfluxConfig | null;
  /** Further databases, by their names. */
  readonly destinations: readonly NamedDatabase[];
  /** `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` as they are set, for the databases; the API's transport reads its own. */
  readonly proxies: Proxies;
  /** `null`: as the account says. */
  readonly workspaceId: string | null;
  readonly dataDir: string;
  readonly sync: {
    readonly history: History;
    readonly settleMs: number;
    readonly sweepMs: number;
    /** When each stream is due. */
    readonly schedules: Schedules;
    readonly leftOut: FilterSpec;
  };
  readonly archive: {
    /** How long what is settled is kept. */
    readonly keepMs: number;
    readonly maxBytes: number;
  };
  readonly listen: Listen;
  readonly metrics: { readonly perDevice: boolean };
  readonly log: { readonly level: 'error' | 'warn' | 'info' | 'debug'; readonly format: 'auto' | 'json' | 'pretty' };
}

/** What commands go by that only look at what is held, or send it: they need no API (design 1.2). */
export interface StateConfig extends Omit<Config, 'api'> {
  readonly api: Pick<ApiConfig, 'share' | 'concurrency' | 'timeoutMs'>;
}

/** What `--demo` goes by: the simulated workspace stands for the API, and `null` leaves the place to the demo. */
export interface DemoConfig extends Omit<Config, 'api' | 'dataDir' | 'listen'> {
  readonly api: Pick<ApiConfig, 'share' | 'concurrency' | 'timeoutMs'>;
  readonly dataDir: string | null;
  readonly listen: Listen | null;
}

export interface ConfigInput {
  /** What `--config` names; `null` looks for the default file, which may be missing. */
  readonly file: string | null;
  /** Reads a file as UTF-8; throws as `node:fs` does. */
  readonly readFile: (path: string) => string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The present: `sync.history` has to lie before it. */
  readonly nowMs: EpochMs;
}

export interface Loaded<C> {
  readonly config: C;
  /** Every secret that was given, for the search that keeps them out of the logs. */
  readonly secrets: readonly Secret[];
  /** The environment variables that held a secret, to be deleted once this is read. */
  readonly secretVariables: readonly string[];
}

/** The configuration cannot be used (exit 78). */
export class ConfigError extends UserError {
  /** A line each; it begins with the place. */
  readonly mistakes: readonly string[];
  /** Whether it is to be told as the log is, as far as that could be read: `log.format` is `json`. */
  readonly isJson: boolean;

  constructor(mistakes: readonly string[], isJson: boolean) {
    super(['The configuration is not usable:', ...mistakes].join('\n  '), 78);
    this.mistakes = mistakes;
    this.isJson = isJson;
  }
}

/** Reads the configuration. @throws ConfigError with every mistake. */
export function loadConfig(input: ConfigInput): Loaded<Config> {
  const { reading, file } = readSources(input);
  // What a file that could not be read would have given is not called missing.
  if (file.whole) demandApi(reading);
  const key = readSecret(reading, 'api.key');
  const config = {
    api: {
      ...readPace(reading),
      url: readValue(reading, 'api.url') ?? '',
      key: key.secret ?? new Secret(''),
      keyFile: key.file,
      ca: readCertificates(reading, 'api.ca_file'),
    },
    ...readPlaces(reading, input),
  };
  return finish(config, reading, input.environment);
}

/**
 * Reads the configuration of a command that does without the API: its address and key may be missing, and are not even
 * looked at, so that a copy of the state can be read where no key is.
 *
 * @throws UserError (exit 78) with every mistake.
 */
export function loadStateConfig(input: ConfigInput): Loaded<StateConfig> {
  const { reading } = readSources(input, NOT_OF_THE_STATE);
  return finish({ api: readPace(reading), ...readPlaces(reading, input) }, reading, input.environment);
}

/** Whether anything is said of the API: for commands that can do without it, and do more with it. */
export function isApiGiven(input: ConfigInput): boolean {
  const { reading } = readSources(input);
  return isGiven(reading, 'api.url') || isGiven(reading, 'api.key');
}

/** What tells where the API is and opens it. */
const NOT_OF_THE_STATE = ['api.url', 'api.key', fileForm('api.key'), 'api.ca_file'];

/** File and environment together. @param without keys that are left aside. */
function readSources(
  input: ConfigInput,
  without: readonly string[] = [],
): { readonly reading: Reading; readonly file: SourceReading } {
  const keys = configKeys(input.nowMs);
  const file = readConfigFile(input);
  const environment = readEnvironment(input.environment, knownVariables(keys));
  const given = new Map([...file.given, ...environment.given]);
  for (const path of without) given.delete(path);
  const mistakes = [...file.mistakes, ...environment.mistakes];
  return { reading: beginReading({ keys, readFile: input.readFile, given, mistakes }), file };
}

function readPlaces(reading: Reading, { environment }: ConfigInput): Omit<Config, 'api'> {
  return {
    dataDir: readValue(reading, 'data_dir'),
    listen: readValue(reading, 'listen'),
    proxies: proxiesOf(environment),
    ...readShared(reading),
  };
}

/**
 * Reads the configuration of `--demo`: the environment alone. It acts as always but for the address, the key and the
 * certificates of the API, which are not even looked at: the demo never speaks to it.
 *
 * @throws UserError (exit 78) with every mistake.
 */
export function loadDemoConfig(input: Omit<ConfigInput, 'file'>): Loaded<DemoConfig> {
  const keys = configKeys(input.nowMs);
  const { given, mistakes } = readEnvironment(input.environment, knownVariables(keys));
  const own = new Map(given);
  for (const path of NOT_OF_THE_STATE) own.delete(path);
  const reading = beginReading({ keys, readFile: input.readFile, given: own, mistakes });
  const config = {
    api: readPace(reading),
    dataDir: isGiven(reading, 'data_dir') ? readValue(reading, 'data_dir') : null,
    listen: isGiven(reading, 'listen') ? readValue(reading, 'listen') : null,
    proxies: proxiesOf(input.environment),
    ...readShared(reading),
  };
  return finish(config, reading, input.environment);
}

/** The usual variables, in either case of letters. */
function proxiesOf(environment: ConfigInput['environment']): Proxies {
  const names = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  return Object.fromEntries(names.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])));
}

/** What the file gives: nothing where the default one is missing. */
export function readConfigFile({ file, readFile, nowMs }: ConfigInput): SourceReading {
  const path = file ?? DEFAULT_FILE;
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    const missing = ['ENOENT', 'ENOTDIR'].includes(codeOf(error));
    if (file === null && missing) return { given: new Map(), mistakes: [], whole: true };
    const remedy = missing ? '; create it, or name another with --config' : '';
    return {
      given: new Map(),
      mistakes: [`${file === null ? '' : '--config: '}${fileTrouble(error)} ${path}${remedy}`],
      whole: false,
    };
  }
  return readYaml({ path, text }, knownNames(configKeys(nowMs)));
}

function demandApi(reading: Reading): void {
  if (!isGiven(reading, 'api.url')) {
    reading.mistakes.push(
      `api.url: is missing; set it in ${DEFAULT_FILE}, or set ${variableOf('api.url')}: the base address of the API, ending in /external/v1`,
    );
  }
  if (!isGiven(reading, 'api.key')) {
    const file = fileForm('api.key');
    reading.mistakes.push(
      `api.key: is missing; put the workspace API key alone into a file and name that by ${file} or ${variableOf(file)}, or set ${variableOf('api.key')}`,
    );
  }
}

function readPace(reading: Reading): Pick<ApiConfig, 'share' | 'concurrency' | 'timeoutMs'> {
  return {
    share: readValue(reading, 'api.share'),
    concurrency: readValue(reading, 'api.concurrency'),
    timeoutMs: readValue(reading, 'api.timeout'),
  };
}

function readShared(
  reading: Reading,
): Pick<Config, 'influx' | 'destinations' | 'workspaceId' | 'sync' | 'archive' | 'metrics' | 'log'> {
  return {
    influx: readInflux(reading),
    destinations: readDestinations(reading),
    workspaceId: readValue(reading, 'workspace.id'),
    sync: {
      history: readValue(reading, 'sync.history'),
      settleMs: readValue(reading, 'sync.settle'),
      sweepMs: readValue(reading, 'sync.sweep'),
      schedules: {
        devices: readValue(reading, 'sync.devices'),
        telemetry: readValue(reading, 'sync.telemetry'),
        alerts: readValue(reading, 'sync.alerts'),
        account: readValue(reading, 'sync.account'),
      },
      leftOut: {
        include: readValue(reading, 'sync.include') ?? [],
        exclude: readValue(reading, 'sync.exclude') ?? [],
        excludeSensors: readValue(reading, 'sync.exclude_sensors') ?? [],
        keepsLocation: readValue(reading, 'sync.location'),
      },
    },
    archive: { keepMs: readValue(reading, 'archive.keep'), maxBytes: readValue(reading, 'archive.max_size') },
    metrics: { perDevice: readValue(reading, 'metrics.per_device') },
    log: { level: readValue(reading, 'log.level'), format: readValue(reading, 'log.format') },
  };
}

/** Ends the reading: everything that is wrong at once, or the configuration. */
function finish<C>(config: C, reading: Reading, environment: ConfigInput['environment']): Loaded<C> {
  const mistakes = mistakesOf(reading);
  if (mistakes.length > 0) {
    throw new ConfigError(mistakes, reading.given.get('log.format')?.text.trim() === 'json');
  }
  const variables = [variableOf('api.key'), variableOf('influx.token')];
  return {
    config,
    secrets: reading.secrets,
    secretVariables: variables.filter((name) => environment[name] !== undefined),
  };
}
