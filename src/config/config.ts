/**
 * What a configuration is once it is read and checked: the forms of it that the commands go by, and what a loader takes
 * and gives.
 */
import { UserError } from '../core/faults.ts';
import type { FilterSpec } from '../core/filter.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Schedules } from '../core/ports.ts';
import type { Secret } from '../core/secret.ts';
import type { EpochMs } from '../core/time.ts';
import type { Listen } from './listen.ts';
import type { POLL_KEYS } from './schema.ts';
import type { History } from './values.ts';

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

/** One database. */
export interface InfluxConfig {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: Secret | null;
  readonly tokenFile: string | null;
  readonly org: string;
  /** Empty where a VictoriaMetrics needs none. */
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

/** The variables that name proxies, by their names. A proxy's address may hold a password: never shown. */
export type Proxies = Readonly<Record<string, string | undefined>>;

/** Who may read the status page. */
export interface StatusPageConfig {
  /** `listen_names`. */
  readonly names: readonly string[];
  /** `null`: everybody who reaches it. */
  readonly password: Secret | null;
  readonly passwordFile: string | null;
}

/** The whole configuration, as the daemon and `--once` go by it. */
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
    readonly gracePeriodMs: number;
    /** How often devices are asked without a sign of anything new, in ms. */
    readonly polls: { readonly [setting in keyof typeof POLL_KEYS]: number };
    /** When each stream is due. */
    readonly schedules: Schedules;
    readonly leftOut: FilterSpec;
  };
  readonly archive: {
    /** How long points are kept that every database has accepted. */
    readonly keepMs: number;
    readonly maxBytes: number;
  };
  readonly listen: Listen;
  readonly statusPage: StatusPageConfig;
  readonly metrics: { readonly perDevice: boolean };
  readonly log: { readonly level: 'error' | 'warn' | 'info' | 'debug'; readonly format: 'auto' | 'json' | 'pretty' };
}

/** For commands that only read the state, or deliver from it: they need no API. */
export interface StateConfig extends Omit<Config, 'api'> {
  readonly api: Pick<ApiConfig, 'share' | 'concurrency' | 'timeoutMs'>;
}

/** For `--demo`: the simulated workspace stands for the API, and `null` leaves the place to the demo. */
export interface DemoConfig extends Omit<Config, 'api' | 'dataDir' | 'listen'> {
  readonly api: Pick<ApiConfig, 'share' | 'concurrency' | 'timeoutMs'>;
  readonly dataDir: string | null;
  readonly listen: Listen | null;
}

/** What a loader reads from. */
export interface ConfigInput {
  /** What `--config` names; `null` looks for the default file, which may be missing. */
  readonly file: string | null;
  /** Reads a file as UTF-8; throws as `node:fs` does. */
  readonly readFile: (path: string) => string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The present: `sync.history` has to lie before it. */
  readonly nowMs: EpochMs;
}

/** What a loader gives. */
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
  /** Whether it is to be written as the log is, as far as that could be read: `log.format` is `json`. */
  readonly isJson: boolean;

  constructor(mistakes: readonly string[], isJson: boolean) {
    super(['The configuration is not usable:', ...mistakes].join('\n  '), 78);
    this.mistakes = mistakes;
    this.isJson = isJson;
  }
}
