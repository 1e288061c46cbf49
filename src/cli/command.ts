/**
 * The commands of the program, as the command line states them. Times and numbers are still text, which the command of
 * each mode parses. `null` means that an option was not given.
 */
import type { WhatIfText } from '../core/fleet.ts';
import type { DestinationKind } from '../core/lines/dialect.ts';
import type { Mode } from './flags.ts';

/** The values of `--log-level`. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;

/** From the fewest lines to the most. */
export type LogLevel = (typeof LOG_LEVELS)[number];

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
  /** Whether only what ends a daemon at its start decides the exit code. */
  readonly startup: boolean;
  /** Whether the text has the lines for developers too. */
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
  /** A part of the words of the reason. */
  readonly reason: string | null;
} & Scoped;

export type BackupCommand = { readonly mode: 'backup'; readonly file: string } & Common;

export type ForgetCommand = { readonly mode: 'forget'; readonly device: string } & Common;

/** Where a further workspace runs, for which `init` writes the files. */
export const INIT_TARGETS = ['compose', 'systemd', 'kubernetes'] as const;
export type InitTarget = (typeof INIT_TARGETS)[number];

/** The answers that are given by flags; `null` for one that is requested. A file of `-` is standard input. */
export interface InitCommand {
  readonly mode: 'init';
  /** The further workspace to write for; `null` for a configuration file of its own. */
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
  /** Whether files that are there are replaced. */
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
