/**
 * The command line: the table of modes and flags, from which the parser and the help text are made, and the commands of
 * the program as it states them. Times and numbers are still text, which the command of each mode parses. `null` means
 * that an option was not given.
 */
import type { LogLevel } from '../core/events.ts';
import type { WhatIfText } from '../core/fleet.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';

type FlagValue = 'none' | 'required' | 'optional';

/** A flag, for the parser and the help. */
export interface Flag {
  /** The name without its dashes. */
  readonly flag: string;
  readonly value: FlagValue;
  /** A letter with the same meaning after one dash. */
  readonly short?: string;
  /** How the help text shows its value. */
  readonly hint?: string;
  readonly repeatable?: boolean;
}

const MODE_FLAGS = [
  { flag: 'once', value: 'none', does: 'reads what is missing, delivers it and exits' },
  { flag: 'init', value: 'none', does: 'prompts for key and database, writes the configuration' },
  { flag: 'demo', value: 'none', does: 'runs everything with a simulated workspace' },
  { flag: 'plan', value: 'none', does: 'prints how many requests a sync needs' },
  { flag: 'help', value: 'none', short: 'h', does: 'prints this help, or that of a mode' },
  { flag: 'version', value: 'none', short: 'v', does: 'prints the version' },
  { flag: 'health', value: 'none', does: 'checks the running daemon: exit code 0 or 1' },
  { flag: 'backfill', value: 'none', does: 'reads a range of history' },
  { flag: 'status', value: 'none', does: 'prints coverage, gaps, lag and delivery' },
  { flag: 'check', value: 'none', does: 'checks configuration, key, database and state' },
  { flag: 'verify', value: 'none', does: 'compares a database with the archive' },
  { flag: 'export', value: 'required', hint: 'csv|ndjson|lp', does: 'writes the archive to standard output' },
  { flag: 'replay', value: 'none', does: 'sends archived points to the database again' },
  { flag: 'quarantine', value: 'optional', hint: '[list|retry|drop]', does: 'lists, retries or drops rejected points' },
  { flag: 'backup', value: 'required', hint: 'FILE', does: 'copies the state (data_dir) into a file' },
  { flag: 'forget', value: 'none', does: 'removes a device from the state' },
] as const satisfies readonly (Flag & { readonly does: string })[];

/** A flag that selects the mode. The daemon is the mode without a flag. */
export type Mode = (typeof MODE_FLAGS)[number]['flag'];

/** All modes, in the order of the help text. */
export const MODES: readonly (Flag & { readonly flag: Mode; readonly does: string })[] = MODE_FLAGS;

/** Every flag that the parser accepts; those for modes come first. */
export const FLAGS: readonly Flag[] = [
  ...MODES,
  { flag: 'config', value: 'required', hint: 'FILE' },
  { flag: 'api-only', value: 'none' },
  { flag: 'api-url', value: 'required', hint: 'URL' },
  { flag: 'api-key-file', value: 'required', hint: 'FILE' },
  { flag: 'influx-url', value: 'required', hint: 'URL' },
  { flag: 'influx-token-file', value: 'required', hint: 'FILE' },
  { flag: 'influx-org', value: 'required', hint: 'NAME' },
  { flag: 'influx-bucket', value: 'required', hint: 'NAME' },
  { flag: 'influx-kind', value: 'required', hint: 'influxdb|victoriametrics' },
  { flag: 'history', value: 'required', hint: 'T' },
  { flag: 'listen', value: 'required', hint: 'HOST:PORT' },
  { flag: 'data-dir', value: 'required', hint: 'DIR' },
  { flag: 'overwrite', value: 'none' },
  { flag: 'workspace', value: 'required', hint: 'NAME' },
  { flag: 'for', value: 'required', hint: 'compose|systemd|kubernetes' },
  { flag: 'json', value: 'none' },
  { flag: 'log-level', value: 'required', hint: 'error|warn|info|debug' },
  { flag: 'from', value: 'required', hint: 'T' },
  { flag: 'to', value: 'required', hint: 'T' },
  { flag: 'device', value: 'required', hint: 'ID', repeatable: true },
  { flag: 'what-if', value: 'required', hint: 'KEY=VALUE', repeatable: true },
  { flag: 'destination', value: 'required', hint: 'NAME' },
  { flag: 'repair', value: 'none' },
  { flag: 'sample', value: 'required', hint: 'N' },
  { flag: 'finish-by', value: 'required', hint: 'T' },
  { flag: 'max-share', value: 'required', hint: 'S' },
  { flag: 'recheck', value: 'none' },
  { flag: 'dry-run', value: 'none' },
  { flag: 'write-probe', value: 'none' },
  { flag: 'startup', value: 'none' },
  { flag: 'verbose', value: 'none' },
  { flag: 'bundle', value: 'required', hint: 'FILE' },
  { flag: 'max-rate', value: 'required', hint: 'LINES' },
  { flag: 'reason', value: 'required', hint: 'TEXT' },
];

const COMMON = ['config', 'json', 'log-level'];
const SPAN = ['from', 'to'];

/** The flags that each mode accepts. */
export const VALUE_FLAGS: Readonly<Record<Mode, readonly string[]>> = {
  once: COMMON,
  init: [
    'config',
    'api-url',
    'api-key-file',
    'influx-url',
    'influx-token-file',
    'influx-org',
    'influx-bucket',
    'influx-kind',
    'history',
    'listen',
    'data-dir',
    'overwrite',
    'workspace',
    'for',
  ],
  demo: ['api-only', 'log-level'],
  health: ['config', 'json'],
  help: [],
  version: [],
  backfill: [...COMMON, ...SPAN, 'device', 'finish-by', 'max-share', 'recheck', 'dry-run'],
  plan: [...COMMON, ...SPAN, 'device', 'what-if', 'finish-by', 'max-share'],
  status: [...COMMON, 'device'],
  check: [...COMMON, 'write-probe', 'startup', 'verbose', 'bundle'],
  verify: [...COMMON, ...SPAN, 'device', 'destination', 'repair', 'sample'],
  export: [...COMMON, ...SPAN, 'device'],
  replay: [...COMMON, ...SPAN, 'device', 'destination', 'max-rate'],
  quarantine: [...COMMON, ...SPAN, 'device', 'destination', 'reason'],
  backup: COMMON,
  forget: [...COMMON, 'device'],
};

/** The values of `--export`. */
export const EXPORT_FORMATS = ['csv', 'ndjson', 'lp'] as const;

/** One of the formats of `--export`. */
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** The values of `--quarantine`. */
export const QUARANTINE_ACTIONS = ['list', 'retry', 'drop'] as const;

type QuarantineAction = (typeof QUARANTINE_ACTIONS)[number];

interface Common {
  readonly configFile: string | null;
  readonly logLevel: LogLevel | null;
  readonly json: boolean;
}

/** The options of modes that work on a time range and some devices. */
interface Scoped extends Common {
  readonly from: string | null;
  readonly to: string | null;
  /** The ids of the devices; empty for all devices. */
  readonly devices: readonly string[];
}

interface BackfillRate {
  readonly finishBy: string | null;
  readonly maxShare: string | null;
}

export type PlanCommand = { readonly mode: 'plan'; readonly whatIf: readonly WhatIfText[] } & Scoped & BackfillRate;

export type BackfillCommand = {
  readonly mode: 'backfill';
  readonly dryRun: boolean;
  readonly recheck: boolean;
} & Scoped &
  BackfillRate;

export type StatusCommand = { readonly mode: 'status'; readonly device: string | null } & Common;

export type CheckCommand = {
  readonly mode: 'check';
  readonly writeProbe: boolean;
  /** Whether only problems that end a daemon at its start decide the exit code. */
  readonly startup: boolean;
  /** Whether the text includes the lines for developers. */
  readonly verbose: boolean;
  /** The file of a support bundle. */
  readonly bundle: string | null;
} & Common;

export type VerifyCommand = {
  readonly mode: 'verify';
  readonly repair: boolean;
  /** How many covered windows to read from the API again. */
  readonly sample: string | null;
  readonly destination: string | null;
} & Scoped;

export type ExportCommand = { readonly mode: 'export'; readonly format: ExportFormat } & Scoped;

export type ReplayCommand = {
  readonly mode: 'replay';
  readonly destination: string | null;
  /** The most lines per second. */
  readonly maxRate: string | null;
} & Scoped;

export type QuarantineCommand = {
  readonly mode: 'quarantine';
  readonly action: QuarantineAction;
  readonly destination: string | null;
  /** A part of the reason's text. */
  readonly reason: string | null;
} & Scoped;

export type BackupCommand = { readonly mode: 'backup'; readonly file: string } & Common;

export type ForgetCommand = { readonly mode: 'forget'; readonly device: string } & Common;

/** Where a further workspace runs, for which `init` writes the files. */
export const INIT_TARGETS = ['compose', 'systemd', 'kubernetes'] as const;
export type InitTarget = (typeof INIT_TARGETS)[number];

/** The names of the settings that `init` sets or leaves out, as keys and as variables. All others are the user's. */
export const OF_INIT =
  /(?:^(?:api|influx|sync)\.|TIDEMARK_(?:API|INFLUX|SYNC)_)(?:url|key|org|bucket|kind|token|history)(?:_file)?$/i;

/** The answers that are given by flags; `null` for an answer that is prompted for. A file of `-` is standard input. */
export interface InitCommand {
  readonly mode: 'init';
  /** The further workspace to write files for; `null` for a separate configuration file. */
  readonly workspace: { readonly name: string; readonly target: InitTarget } | null;
  readonly configFile: string | null;
  readonly apiUrl: string | null;
  readonly apiKeyFile: string | null;
  readonly influxUrl: string | null;
  readonly influxTokenFile: string | null;
  readonly influxOrg: string | null;
  readonly influxBucket: string | null;
  readonly influxKind: DestinationKind | null;
  readonly history: string | null;
  /** Where the page listens, as `host:port`. */
  readonly listen: string | null;
  readonly dataDir: string | null;
  /** Whether existing files are replaced. */
  readonly overwrite: boolean;
}

export type HealthCommand = { readonly mode: 'health' } & Pick<Common, 'configFile' | 'json'>;

/** The command line after it was parsed and checked: one member for each mode. */
export type Command =
  /** Without a flag for a mode, the daemon runs. */
  | ({ readonly mode: 'daemon' } & Omit<Common, 'json'>)
  | ({ readonly mode: 'once' } & Common)
  | {
      readonly mode: 'demo';
      /** Whether only the simulated API is served. */
      readonly apiOnly: boolean;
      readonly logLevel: LogLevel | null;
    }
  | InitCommand
  | HealthCommand
  | PlanCommand
  | BackfillCommand
  | StatusCommand
  | CheckCommand
  | VerifyCommand
  | ExportCommand
  | ReplayCommand
  | QuarantineCommand
  | BackupCommand
  | ForgetCommand
  /** `topic` is the mode that `--help` was given with, such as `--once --help`. */
  | { readonly mode: 'help'; readonly topic: Mode | null }
  | { readonly mode: 'version' };
