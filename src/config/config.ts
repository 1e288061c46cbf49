/**
 * The types of a checked configuration, for the different kinds of commands, and the input and output of the loader.
 */
import { UserError } from '../core/faults.ts';
import type { FilterSpec } from '../core/filter.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Schedules } from '../core/ports.ts';
import type { Secret } from '../core/secret.ts';
import type { EpochMs } from '../core/time.ts';
import type { Listen } from './listen.ts';
import type { POLL_KEYS } from './schema.ts';
import { type Mistake, mistakeText } from './sources.ts';
import type { History } from './values.ts';

/** The section `api`. */
export interface ApiConfig {
  /** Without a trailing slash. */
  readonly url: string;
  readonly key: Secret;
  /** The file of the key, to read it again when it is refused; `null` if the key was given directly. */
  readonly keyFile: string | null;
  readonly share: number;
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Certificates to trust, as PEM text. */
  readonly ca: string | null;
}

/** One database. */
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
  /** `listen_names`. */
  readonly names: readonly string[];
  /** `null` if everybody who can reach the page may read it. */
  readonly password: Secret | null;
  readonly passwordFile: string | null;
  /** `grafana_url` and `docs_url`: where the page links to; `null` if it does not. */
  readonly grafanaUrl: string | null;
  readonly docsUrl: string | null;
}

/** The complete configuration, for the daemon and `--once`. */
export interface Config {
  readonly api: ApiConfig;
  /** `null` if there is no database and only the archive is filled. */
  readonly influx: InfluxConfig | null;
  /** Further databases by name. */
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
    /** When each stream is due. */
    readonly schedules: Schedules;
    readonly leftOut: FilterSpec;
  };
  readonly archive: {
    /** How long points are kept that every database has accepted. */
    readonly retentionMs: number;
    readonly maxBytes: number;
  };
  readonly listen: Listen;
  readonly statusPage: StatusPageConfig;
  readonly metrics: { readonly perDevice: boolean };
  readonly log: { readonly level: 'error' | 'warn' | 'info' | 'debug'; readonly format: 'auto' | 'json' | 'pretty' };
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

/** The input of a loader. */
export interface ConfigInput {
  /** The file that `--config` names; `null` for the default file, which may be missing. */
  readonly file: string | null;
  /** Reads a file as UTF-8. Throws as `node:fs` does. */
  readonly readFile: (path: string) => string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The current time: `sync.history` must begin before it. */
  readonly nowMs: EpochMs;
}

/** The result of a loader. */
export interface Loaded<C> {
  readonly config: C;
  /** Every given secret, to keep them out of the logs. */
  readonly secrets: readonly Secret[];
  /** Values that can be used and should not. */
  readonly warnings: readonly Mistake[];
  /** The environment variables that contained a secret, to be deleted after the loading. */
  readonly secretVariables: readonly string[];
}

/** Thrown if the configuration is unusable (exit code 78). */
export class ConfigError extends UserError {
  readonly mistakes: readonly Mistake[];
  /** `log.format` as far as it could be read: the mistakes are printed in this form. */
  readonly format: Config['log']['format'];

  /** @param workspace of systemd, whose settings were read */
  constructor(mistakes: readonly Mistake[], format: Config['log']['format'], workspace: string | null = null) {
    const isNew = mistakes.length === 2 && mistakes.every(({ kind }) => kind === 'missing');
    const command =
      workspace === null ? 'tidemark init (in a checkout: npm start -- init).' : `tidemark-workspace ${workspace} init`;
    const more = isNew ? `\nTo set them with prompts, run: ${command}` : '';
    super(`${['The configuration is invalid:', ...mistakes.map(mistakeText)].join('\n  ')}${more}`, 78);
    this.mistakes = mistakes;
    this.format = format;
  }
}
