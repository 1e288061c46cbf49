/**
 * Loads the configuration: reads the file and the environment, and returns one checked `Config`.
 *
 * Promises: it reads only through its arguments. It reports all mistakes at once, each with its place and what was
 * expected (`UserError`, exit code 78). No message contains a secret: no wording repeats a value, and as a safeguard
 * every text that was given for a secret is removed from the messages.
 */
import { Secret } from '../core/secret.ts';
import type { EpochMs } from '../core/time.ts';
import {
  type ApiConfig,
  type Config,
  ConfigError,
  type ConfigInput,
  type DemoConfig,
  type InfluxConfig,
  type Loaded,
  type LocatedSecret,
  misplacedSecrets,
  missingApi,
  type NamedDatabase,
  type Proxies,
  type StateConfig,
} from './config.ts';
import type { Listen } from './listen.ts';
import {
  CONFIG_KEYS,
  fileForm,
  knownNames,
  knownVariables,
  POLL_KEYS,
  renamedVariables,
  type SecretPath,
  type ValueKey,
  type ValueOf,
  type ValuePath,
  variableOf,
} from './schema.ts';
import {
  destinationSections,
  type Given,
  type Location,
  locationText,
  type Mistake,
  mistakesOf,
  NO_FILE,
  ofKey,
  readConfigFile,
  readEnvironment,
  type SourceReading,
  shownPath,
  unreadable,
} from './sources.ts';
import { InvalidText, keyText, secretText, warningsOf } from './values.ts';

/** Loads the configuration of the daemon and `--once`. @throws ConfigError with all mistakes */
export function loadConfig(input: ConfigInput): Loaded<Config> {
  const file = readConfigFile(input, knownNames());
  const reading = beginReading(input, file);
  // If the file could not be read, its keys are not reported as missing.
  if (file.whole) reading.mistakes.push(...missingApi(reading.given));
  const key = readSecret(reading, 'api.key');
  const config = {
    api: {
      ...readApiLimits(reading),
      url: readValue(reading, 'api.url') ?? '',
      key: key.secret ?? new Secret(''),
      keyFile: key.file,
      ca: readCertificates(reading, 'api.ca_file'),
    },
    ...readPaths(reading, input),
  };
  return finish(config, reading, input.environment);
}

/**
 * Reads the configuration of a command that needs no API. The API's address and key may be missing and are not checked,
 * so that a copy of the state can be read on a machine without the key.
 *
 * @throws UserError (exit code 78) with all mistakes
 */
export function loadStateConfig(input: ConfigInput): Loaded<StateConfig> {
  const reading = beginWithoutApi(input, readConfigFile(input, knownNames()));
  return finish({ api: readApiLimits(reading), ...readPaths(reading, input) }, reading, input.environment);
}

/**
 * Reads `listen` and nothing else. A health check must not fail because of a wrong new key that the running program
 * does not use yet.
 *
 * @throws UserError (exit code 78) if the file or its `listen` cannot be read
 */
export function loadListen(input: ConfigInput): Listen {
  const file = readConfigFile(input, knownNames());
  const { given, ...rest } = beginReading(input, file);
  const reading = { ...rest, given: new Map([...given].filter(([path]) => path === 'listen')), mistakes: [] };
  const listen = readValue(reading, 'listen');
  const mistakes = file.whole ? mistakesOf(reading) : file.mistakes;
  if (mistakes.length > 0) throw new ConfigError(mistakes, 'pretty');
  return listen;
}

/** Whether any key of the API is given: for commands that do more with an API than without. */
export function isApiGiven(input: ConfigInput): boolean {
  const reading = beginReading(input, readConfigFile(input, knownNames()));
  return isGiven(reading, 'api.url') || isGiven(reading, 'api.key');
}

/** The keys for the API's address and key. */
const NOT_OF_THE_STATE = ['api.url', 'api.key', fileForm('api.key'), 'api.ca_file'];

/**
 * Starts reading without the API's address and key, which may be missing or wrong. A key that can be read is still
 * searched for in the other values, because it must not be sent to a database.
 */
function beginWithoutApi(input: Omit<ConfigInput, 'file'>, file: SourceReading): Reading {
  const withKey = beginReading(input, file);
  readSecret(withKey, 'api.key');
  const { owners, hidden } = withKey;
  return { ...beginReading(input, file, NOT_OF_THE_STATE), owners, hidden };
}

function readPaths(reading: Reading, { environment }: ConfigInput): Omit<Config, 'api'> {
  return {
    dataDir: readValue(reading, 'data_dir'),
    listen: readValue(reading, 'listen'),
    proxies: proxiesOf(environment),
    ...readShared(reading),
  };
}

/**
 * Reads the configuration of `--demo` from the environment alone. The API's address, key and certificates are not read,
 * because the demo never connects to it.
 *
 * @throws UserError (exit code 78) with all mistakes
 */
export function loadDemoConfig(input: Omit<ConfigInput, 'file'>): Loaded<DemoConfig> {
  const reading = beginWithoutApi(input, NO_FILE);
  const config = {
    api: readApiLimits(reading),
    dataDir: isGiven(reading, 'data_dir') ? readValue(reading, 'data_dir') : null,
    listen: isGiven(reading, 'listen') ? readValue(reading, 'listen') : null,
    proxies: proxiesOf(input.environment),
    ...readShared(reading),
  };
  return finish(config, reading, input.environment);
}

/** The usual proxy variables, in upper or lower case. */
export function proxiesOf(environment: ConfigInput['environment']): Proxies {
  const names = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
  return Object.fromEntries(names.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])));
}

function readApiLimits(reading: Reading): Pick<ApiConfig, 'share' | 'concurrency' | 'timeoutMs'> {
  return {
    share: readValue(reading, 'api.share'),
    concurrency: readValue(reading, 'api.concurrency'),
    timeoutMs: readValue(reading, 'api.timeout'),
  };
}

function readShared(
  reading: Reading,
): Pick<Config, 'influx' | 'destinations' | 'workspaceId' | 'sync' | 'archive' | 'statusPage' | 'metrics' | 'log'> {
  const password = readSecret(reading, 'listen_password');
  return {
    influx: readInflux(reading),
    destinations: readDestinations(reading),
    workspaceId: readValue(reading, 'workspace.id'),
    sync: {
      history: readValue(reading, 'sync.history'),
      gracePeriodMs: readValue(reading, 'sync.grace_period'),
      polls: readAll(reading, POLL_KEYS),
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
        includesLocation: readValue(reading, 'sync.location'),
      },
    },
    archive: { retentionMs: readValue(reading, 'archive.retention'), maxBytes: readValue(reading, 'archive.max_size') },
    statusPage: {
      names: readValue(reading, 'listen_names') ?? [],
      password: password.secret,
      passwordFile: password.file,
      grafanaUrl: readValue(reading, 'grafana_url'),
      docsUrl: readValue(reading, 'docs_url'),
    },
    metrics: { perDevice: readValue(reading, 'metrics.per_device') },
    log: { level: readValue(reading, 'log.level'), format: readValue(reading, 'log.format') },
  };
}

/** Ends reading: returns the configuration, or throws all mistakes at once. */
function finish<C>(config: C, reading: Reading, environment: ConfigInput['environment']): Loaded<C> {
  reading.mistakes.push(...misplacedSecrets(reading));
  const mistakes = mistakesOf(reading);
  if (mistakes.length > 0) {
    const format = reading.given.get('log.format')?.text.trim() ?? 'auto';
    const shown = format === 'json' || format === 'auto' ? format : 'pretty';
    throw new ConfigError(mistakes, shown);
  }
  const variables = (['api.key', 'influx.token', 'listen_password'] as const).map(variableOf);
  return {
    config,
    warnings: reading.warnings,
    secrets: reading.secrets,
    secretVariables: variables.filter((name) => environment[name] !== undefined),
  };
}

/** The state of one reading of the configuration. */
interface Reading {
  readonly nowMs: EpochMs;
  readonly readFile: (path: string) => string;
  /** The given values by path. The environment already overrides the file. */
  readonly given: ReadonlyMap<string, Given>;
  readonly mistakes: Mistake[];
  readonly secrets: Secret[];
  /** The secrets, with their locations. */
  readonly owners: LocatedSecret[];
  /** Values that are valid but not recommended. */
  readonly warnings: Mistake[];
  /** All texts that were given for a secret, valid or not. */
  readonly hidden: string[];
}

/** A secret and the file that it came from. */
interface SecretAndFile {
  readonly secret: Secret | null;
  readonly file: string | null;
}

/**
 * Starts reading.
 *
 * @param without the keys to leave out
 */
function beginReading(
  { environment, readFile, nowMs }: Omit<ConfigInput, 'file'>,
  file: SourceReading,
  without: readonly string[] = [],
): Reading {
  const own = readEnvironment(environment, knownVariables(), renamedVariables());
  const given = new Map([...file.given, ...own.given]);
  for (const path of without) given.delete(path);
  return {
    nowMs,
    readFile,
    given,
    mistakes: [...file.mistakes, ...own.mistakes],
    secrets: [],
    owners: [],
    warnings: [],
    hidden: [],
  };
}

/** Whether a key was given, directly or as a file. */
function isGiven({ given }: Reading, path: ValuePath | SecretPath): boolean {
  return given.has(path) || given.has(fileForm(path));
}

/** Reads a group of keys into an object that has the names of their settings. */
function readAll<G extends Readonly<Record<string, ValuePath>>>(reading: Reading, keys: G) {
  const values = Object.entries(keys).map(([name, path]) => [name, readValue(reading, path)]);
  return Object.fromEntries(values) as { [N in keyof G]: ValueOf<G[N]> };
}

/** Reads a key: its value, otherwise its default, otherwise `null`. */
function readValue<K extends ValuePath>({ given, mistakes, nowMs }: Reading, path: K): ValueOf<K> {
  const key: ValueKey<unknown> = CONFIG_KEYS[path];
  const own = given.get(path);
  if (own !== undefined) {
    const text = own.text.trim();
    const value =
      own.items !== undefined && key.parseItems !== undefined
        ? key.parseItems(own.items)
        : text === ''
          ? new InvalidText('is empty', 'give a value, or remove the key')
          : key.parse(text, nowMs);
    // The schema connects a path with the type that its parser returns.
    if (!(value instanceof InvalidText)) return value as ValueOf<K>;
    mistakes.push({ ...own.location, what: value.reason, remedy: value.remedy });
  }
  return (key.default === null ? null : key.parse(key.default, nowMs)) as ValueOf<K>;
}

/**
 * Reads a secret, which may be given directly or as the path of a file, but not both. Deployments mount one token file
 * for every database: an empty file is no token.
 *
 * @param databaseUrl for a token: the address that it is sent to
 */
function readSecret(reading: Reading, path: SecretPath, databaseUrl?: string): SecretAndFile {
  const [own, byFile] = [reading.given.get(path), reading.given.get(fileForm(path))];
  if (own !== undefined) reading.hidden.push(own.text);
  if (own !== undefined && byFile !== undefined) {
    const what = `${locationText(byFile.location)} is also set`;
    reading.mistakes.push({ ...own.location, what, remedy: 'remove one of them' });
    return { secret: null, file: null };
  }
  const checked = (text: string, what: string, location: Location, remedy?: string): Secret | null =>
    checkSecret(reading, text, { what, location, remedy, databaseUrl, isKey: path === 'api.key' });
  if (own !== undefined) return { secret: checked(own.text, 'the secret', own.location), file: null };
  if (byFile === undefined) return { secret: null, file: null };
  const file = byFile.text.trim();
  const text = openFile(reading, byFile.location, file);
  if (text === null || (databaseUrl !== undefined && text.trim() === '')) return { secret: null, file };
  reading.hidden.push(text);
  const remedy = `write only the ${/[a-z]+$/.exec(path)?.[0]} into this file`;
  return { secret: checked(text, `the file${shownPath(file)}`, byFile.location, remedy), file };
}

/** A secret in messages (`what`), and the remedy if a reason has none of its own. */
interface SecretPlace extends Pick<Mistake, 'what' | 'remedy'> {
  readonly location: Location;
  readonly databaseUrl: string | undefined;
  readonly isKey: boolean;
}

/** Checks a secret. */
function checkSecret(
  reading: Reading,
  text: string,
  { what, location, remedy, databaseUrl, isKey }: SecretPlace,
): Secret | null {
  const checked = isKey ? keyText(text) : secretText(text, databaseUrl);
  if (checked instanceof InvalidText) {
    reading.mistakes.push({ ...location, what: `${what} ${checked.reason}`, remedy: checked.remedy ?? remedy });
    return null;
  }
  const secret = new Secret(checked);
  reading.secrets.push(secret);
  reading.owners.push({ location, secret });
  reading.warnings.push(...warningsOf(checked, isKey).map((warning) => ({ ...location, ...warning })));
  return secret;
}

/** Reads the PEM text of a `ca_file` key. */
function readCertificates(reading: Reading, path: 'api.ca_file' | 'influx.ca_file'): string | null {
  const file = readValue(reading, path);
  if (file === null) return null;
  const location = reading.given.get(path)?.location ?? ofKey(path);
  const text = openFile(reading, location, file);
  if (text === null || text.includes('-----BEGIN CERTIFICATE-----')) return text;
  reading.mistakes.push({ ...location, what: `the file${shownPath(file)} holds no certificates in PEM form` });
  return null;
}

function openFile(reading: Reading, location: Location, path: string): string | null {
  if (path === '') {
    reading.mistakes.push({ ...location, what: 'is empty', remedy: 'give the path of a file, or remove the key' });
    return null;
  }
  try {
    return reading.readFile(path);
  } catch (error) {
    reading.mistakes.push({ ...location, ...unreadable(error, path) });
    return null;
  }
}

/** The name of the database in the section `influx`. */
const SECTION = 'influx';

/** Reads the database of the section `influx`. It needs `url` and `bucket`, unless the section has no key at all. */
function readInflux(reading: Reading): InfluxConfig | null {
  const influx = readDatabase(reading);
  const own = [...reading.given].filter(([path]) => path.startsWith(`${SECTION}.`));
  // An empty token file configures nothing.
  const first = own.find(([path]) => path !== fileForm('influx.token') || influx.token !== null)?.[1].location;
  if (first === undefined) return null;
  requireDatabaseKeys(reading, { section: SECTION, first, kind: influx.kind });
  return influx;
}

/** The databases under `destinations`, in the order of the file. */
function readDestinations(reading: Reading): NamedDatabase[] {
  return destinationSections(reading.given).map((section) => {
    const location = reading.given.get(section)?.location ?? ofKey(section);
    const name = section.slice('destinations.'.length);
    const mistake = mistakeIn(name);
    if (mistake !== null) reading.mistakes.push({ ...location, ...mistake });
    const own = sectionAsInflux(reading, section);
    const database = readDatabase(own);
    requireDatabaseKeys(own, { section, first: location, kind: database.kind });
    return { name, ...database };
  });
}

function mistakeIn(name: string): Pick<Mistake, 'what' | 'remedy'> | null {
  if (name === SECTION) return { what: 'this name is taken by the section influx', remedy: 'choose another one' };
  if (/^[a-z][a-z0-9_-]{0,31}$/.test(name)) return null;
  return { what: 'expected a name of at most 32 lowercase letters, digits, - and _, beginning with a letter' };
}

/** A view of the reading in which the keys of one section replace those of `influx`. */
function sectionAsInflux(reading: Reading, section: string): Reading {
  const given = new Map<string, Given>();
  for (const [path, value] of reading.given) {
    if (path.startsWith(`${section}.`)) given.set(`${SECTION}${path.slice(section.length)}`, value);
  }
  return { ...reading, given };
}

function readDatabase(reading: Reading): InfluxConfig {
  const url = readValue(reading, 'influx.url') ?? '';
  const { secret, file } = readSecret(reading, 'influx.token', url);
  return {
    url,
    token: secret,
    tokenFile: file,
    org: readValue(reading, 'influx.org') ?? '',
    bucket: readValue(reading, 'influx.bucket') ?? '',
    kind: readValue(reading, 'influx.kind'),
    ca: readCertificates(reading, 'influx.ca_file'),
    timeoutMs: readValue(reading, 'influx.timeout'),
    batchLines: readValue(reading, 'influx.batch_lines'),
  };
}

interface Demand {
  readonly section: string;
  /** The place where the section is first named. */
  readonly first: Location;
  readonly kind: InfluxConfig['kind'];
}

function requireDatabaseKeys(reading: Reading, { section, first, kind }: Demand): void {
  const keys = kind === 'victoriametrics' ? (['url'] as const) : (['url', 'bucket'] as const);
  for (const key of keys) {
    if (isGiven(reading, `${SECTION}.${key}`)) continue;
    const needed = keys.map((each) => `${section}.${each}`).join(' and ');
    const unless = key === 'bucket' ? ` (not needed with ${section}.kind: victoriametrics)` : '';
    reading.mistakes.push({
      ...ofKey(`${section}.${key}`),
      what: `is missing, although ${locationText(first)} is given`,
      remedy: `a database needs ${needed}${unless}`,
    });
  }
}
