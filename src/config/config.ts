/**
 * The types of a checked configuration, for the different kinds of commands, and the input and output of the loader. It
 * also finds the mistakes that no single key shows: the API is missing, or the value of another key contains a secret.
 */

import type { LogLevel } from '../core/events.ts';
import { UserError } from '../core/faults.ts';
import type { FilterSpec } from '../core/filter.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Schedules } from '../core/ports.ts';
import { isGuessable, type Secret } from '../core/secret.ts';
import { plainText } from '../core/text.ts';
import type { EpochMs } from '../core/time.ts';
import type { Listen } from './listen.ts';
import { fileForm, type POLL_KEYS, type SecretPath, variableOf } from './schema.ts';
import { DEFAULT_FILE, type Given, type Location, locationText, type Mistake, mistakeText, ofKey } from './sources.ts';
import { type History, isShort } from './values.ts';

/** The section `api`: the address and key of the vendor's API, and how much of its quota is used. */
export interface ApiConfig {
  /** Without a trailing slash. */
  readonly url: string;
  readonly key: Secret;
  /** The file of the key, to read the key again when the API rejects it; `null` if the key was given directly. */
  readonly keyFile: string | null;
  readonly share: number;
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Certificates to trust, as PEM text. */
  readonly ca: string | null;
}

/** The section `influx`, or one further destination. */
export interface InfluxConfig {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: Secret | null;
  readonly tokenFile: string | null;
  readonly org: string;
  /** Empty if a VictoriaMetrics needs none. */
  readonly bucket: string;
  readonly kind: 'auto' | DestinationKind;
  readonly ca: string | null;
  readonly timeoutMs: number;
  readonly batchLines: number;
}

/** A database under `destinations`. */
export interface NamedDatabase extends InfluxConfig {
  readonly name: string;
}

/** The proxy variables by name. A proxy's address may contain a password, so it is never shown. */
export type Proxies = Readonly<Record<string, string | undefined>>;

/** Who may read the status page, and where it is served. */
export interface StatusPageConfig {
  /** `listen_names`: the host names under which the page may be requested. */
  readonly names: readonly string[];
  /** `null` if everybody who can reach the page may read it. */
  readonly password: Secret | null;
  readonly passwordFile: string | null;
  /** `grafana_url` and `docs_url`: the links of the page; `null` for no link. */
  readonly grafanaUrl: string | null;
  readonly docsUrl: string | null;
}

/** The complete configuration, for the daemon and `--once`. */
export interface Config {
  readonly api: ApiConfig;
  /** `null` if there is no database and only the archive is filled. */
  readonly influx: InfluxConfig | null;
  /** The further databases of `destinations`, by their names. */
  readonly destinations: readonly NamedDatabase[];
  /** `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` for the databases. The API's transport reads its own. */
  readonly proxies: Proxies;
  /** `null` for the workspace of the account. */
  readonly workspaceId: string | null;
  readonly dataDir: string;
  readonly sync: {
    readonly history: History;
    readonly gracePeriodMs: number;
    /** The poll intervals of devices that report nothing new, in ms. */
    readonly polls: { readonly [setting in keyof typeof POLL_KEYS]: number };
    /** When each stream is polled. */
    readonly schedules: Schedules;
    readonly leftOut: FilterSpec;
  };
  readonly archive: {
    /** How long points are kept after every database has accepted them. */
    readonly retentionMs: number;
    readonly maxBytes: number;
  };
  readonly listen: Listen;
  readonly statusPage: StatusPageConfig;
  readonly metrics: { readonly perDevice: boolean };
  readonly log: { readonly level: LogLevel; readonly format: 'auto' | 'json' | 'pretty' };
}

/** For commands that only read the state or deliver from it: they need no API. */
export interface StateConfig extends Omit<Config, 'api'> {
  readonly api: Pick<ApiConfig, 'share' | 'concurrency' | 'timeoutMs'>;
}

/** For `--demo`: the simulated workspace replaces the API. A directory of `null` lets the demo choose one. */
export interface DemoConfig extends Omit<Config, 'api' | 'dataDir' | 'listen'> {
  readonly api: Pick<ApiConfig, 'share' | 'concurrency' | 'timeoutMs'>;
  readonly dataDir: string | null;
  readonly listen: Listen | null;
}

/** The sources of a configuration, instead of the real files and environment. */
export interface ConfigInput {
  /** The file that `--config` names; `null` for the default file, which may be missing. */
  readonly file: string | null;
  /** Reads a file as UTF-8. Throws as `node:fs` does. */
  readonly readFile: (path: string) => string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The current time: `sync.history` must begin before it. */
  readonly nowMs: EpochMs;
}

/** A valid configuration, and everything that was noticed while it was read. */
export interface Loaded<C> {
  readonly config: C;
  /** Every given secret, to keep them out of the logs. */
  readonly secrets: readonly Secret[];
  /** Values that are valid but not recommended. */
  readonly warnings: readonly Mistake[];
  /** The environment variables that contained a secret; they are deleted after loading. */
  readonly secretVariables: readonly string[];
}

/** Thrown if the configuration is unusable (exit code 78). */
export class ConfigError extends UserError {
  readonly mistakes: readonly Mistake[];
  /** `log.format`, if it could be read: the mistakes are printed in this form. */
  readonly format: Config['log']['format'];

  constructor(mistakes: readonly Mistake[], format: Config['log']['format']) {
    super(['The configuration is invalid:', ...mistakes.map(mistakeText)].join('\n  '), null, 78);
    this.mistakes = mistakes;
    this.format = format;
  }
}

/**
 * The systemd workspace whose settings are read, recognized by the state directory that its unit sets; `null` for none.
 */
function systemdWorkspace(given: ReadonlyMap<string, Given>): string | null {
  return /^\/var\/lib\/tidemark\/([a-z0-9-]+)$/.exec(given.get('data_dir')?.text ?? '')?.[1] ?? null;
}

/** The command that writes a configuration. */
const INIT = 'tidemark init (in a checkout: npm start -- init)';

/** Returns a mistake for the API's address and for its key, if they are missing. */
export function missingApi(given: ReadonlyMap<string, Given>): Mistake[] {
  const isGiven = (path: SecretPath | 'api.url'): boolean => given.has(path) || given.has(fileForm(path));
  const missing = (key: string) => ({ ...ofKey(key), what: 'is missing' });
  const workspace = systemdWorkspace(given);
  const settings = workspace === null ? null : `/etc/tidemark/${workspace}`;
  const [url, file] = [variableOf('api.url'), fileForm('api.key')];
  const mistakes: Mistake[] = [];
  if (!isGiven('api.url')) {
    const init = workspace === null ? INIT : `tidemark-workspace ${workspace} init`;
    const prompts = isGiven('api.key') ? '' : `run ${init}, which asks for everything, or `;
    const place =
      settings === null
        ? `set it in ${DEFAULT_FILE} (--config names another file), or set ${url}`
        : `set ${url} in ${settings}/tidemark.env`;
    const remedy = `${prompts}${place}: the base address of the API, ending in /external/v1`;
    mistakes.push({ ...missing('api.url'), remedy });
  }
  if (isGiven('api.key')) return mistakes;
  const remedy =
    settings === null
      ? `write only the workspace API key into a file and name that file by ${file} or ${variableOf(file)}, or set ${variableOf('api.key')}`
      : `write only the workspace API key into ${settings}/tidemark_api_key and name that file by ${variableOf(file)} in ${settings}/tidemark.env`;
  mistakes.push({ ...missing('api.key'), remedy });
  return mistakes;
}

/** A secret and the place where it was given. */
export interface LocatedSecret {
  readonly location: Location;
  readonly secret: Secret;
}

/** Returns a mistake for each secret in a place where it would be shown, or sent to another service. */
export function misplacedSecrets({
  given,
  owners,
}: {
  readonly given: ReadonlyMap<string, Given>;
  readonly owners: readonly LocatedSecret[];
}): Mistake[] {
  const places = new Set(owners.map(({ location }) => location));
  const long = owners.filter(({ secret }) => !isShort(secret.reveal()));
  const key = long.find(({ location }) => location.key?.startsWith('api.'));
  const inValues = [...given.values()].flatMap(({ text, items = [], location }) => {
    const texts = [text, ...items, ...text.split(',')].map((each) => each.trim());
    const isIn = (owner: LocatedSecret): boolean =>
      texts.includes(owner.secret.reveal()) || (owner === key && containsKey(text, owner.secret.reveal()));
    const owner = places.has(location) ? undefined : long.find(isIn);
    return owner === undefined ? [] : [misplaced(location, owner, onlyPlace(owner, given))];
  });
  const elsewhere = long.flatMap(({ location, secret }) =>
    key === undefined || location === key.location || !containsKey(secret.reveal(), key.secret.reveal())
      ? []
      : [misplaced(location, key, 'use another value: only the API may receive the API key')],
  );
  return [...inValues, ...elsewhere];
}

/**
 * Whether a value contains the API key, even inside a longer text or encoded for a URL. A short key or a plain word may
 * be part of another text by chance, so it counts only as the complete value.
 */
function containsKey(text: string, key: string): boolean {
  if (key.length < SHORTEST_PART || isGuessable(key)) return text.trim() === key;
  return [key, encodeURIComponent(key)].some((form) => text.includes(form));
}

/** The shortest key that is searched for inside other texts. */
const SHORTEST_PART = 8;

/** The remedy for a secret in the value of another key: the place where it may stay. */
function onlyPlace({ location: { key } }: LocatedSecret, given: ReadonlyMap<string, Given>): string {
  const file = given.get(key?.endsWith('_file') ? key : '')?.text.trim();
  return `remove it here${file === undefined ? '' : `: only the file ${plainText(file, 100)} may contain it`}`;
}

function misplaced(location: Location, owner: LocatedSecret, remedy: string): Mistake {
  return { ...location, what: `this value contains the secret of ${locationText(owner.location)}`, remedy };
}
