/** The table of modes and flags. The parser and the help text are made from it. */

/** Whether a flag has a value. */
type FlagValue = 'none' | 'required' | 'optional';

export interface Flag {
  /** Its name without the dashes. */
  readonly flag: string;
  readonly value: FlagValue;
  /** A letter that means the same after one dash. */
  readonly short?: string;
  /** How the help text shows its value. */
  readonly hint?: string;
  readonly repeatable?: boolean;
}

const MODE_FLAGS = [
  { flag: 'once', value: 'none', does: 'closes every hole in the history, delivers, and exits' },
  { flag: 'demo', value: 'none', does: 'shows it all at work, with a simulated workspace' },
  { flag: 'plan', value: 'none', does: 'tells what a sync would cost' },
  { flag: 'help', value: 'none', short: 'h', does: 'shows this, or with a mode more about that' },
  { flag: 'version', value: 'none', short: 'v', does: 'shows the version' },
  { flag: 'health', value: 'none', does: 'asks the running daemon whether it is well: 0 or 1' },
  { flag: 'backfill', value: 'none', does: 'fills a span of history' },
  { flag: 'status', value: 'none', does: 'tells what is held' },
  { flag: 'check', value: 'none', does: 'checks key, destination and state' },
  { flag: 'verify', value: 'none', does: 'compares a destination with what is held' },
  { flag: 'export', value: 'required', hint: 'csv|ndjson|lp', does: 'writes what is held' },
  { flag: 'replay', value: 'none', does: 'delivers again, without asking the API' },
  { flag: 'quarantine', value: 'optional', hint: '[list|retry|drop]', does: 'handles refused points' },
  { flag: 'backup', value: 'required', hint: 'FILE', does: 'copies the state' },
  { flag: 'forget', value: 'none', does: 'removes what is held of a device' },
] as const satisfies readonly (Flag & { readonly does: string })[];

/** A flag that selects the mode. The daemon is the mode without a flag. */
export type Mode = (typeof MODE_FLAGS)[number]['flag'];

/** All modes, in the order of the help text. */
export const MODES: readonly (Flag & { readonly flag: Mode; readonly does: string })[] = MODE_FLAGS;

/** All flags, modes included. */
export const FLAGS: readonly Flag[] = [
  ...MODES,
  { flag: 'config', value: 'required', hint: 'FILE' },
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
  { flag: 'dry-run', value: 'none' },
  { flag: 'write-probe', value: 'none' },
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
  demo: ['log-level'],
  health: ['config', 'json'],
  help: [],
  version: [],
  backfill: [...COMMON, ...SPAN, 'device', 'finish-by', 'max-share', 'dry-run'],
  plan: [...COMMON, ...SPAN, 'device', 'what-if', 'finish-by', 'max-share'],
  status: [...COMMON, 'device'],
  check: [...COMMON, 'write-probe', 'verbose', 'bundle'],
  verify: [...COMMON, ...SPAN, 'device', 'destination', 'repair', 'sample'],
  export: [...COMMON, ...SPAN, 'device'],
  replay: [...COMMON, ...SPAN, 'device', 'destination', 'max-rate'],
  quarantine: [...COMMON, ...SPAN, 'device', 'destination', 'reason'],
  backup: COMMON,
  forget: [...COMMON, 'device'],
};
