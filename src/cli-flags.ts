/**
 * The table of modes and flags (design 1.2), and the help text that is made from it.
 */

/** What a flag may be followed by. */
type FlagValue = 'none' | 'required' | 'optional';

export interface Flag {
  /** Its name without the dashes. */
  readonly flag: string;
  readonly value: FlagValue;
  /** How its value is written in the help text. */
  readonly hint?: string;
  readonly repeatable?: boolean;
}

/** A flag that decides what the program does. */
interface ModeEntry extends Flag {
  readonly flag: Mode;
  readonly does: string;
  /** Whether this version has it. */
  readonly works: boolean;
}

export type Mode =
  | 'once'
  | 'demo'
  | 'help'
  | 'version'
  | 'backfill'
  | 'plan'
  | 'status'
  | 'check'
  | 'verify'
  | 'export'
  | 'replay'
  | 'quarantine'
  | 'backup'
  | 'forget';

/** Every mode of design 1.2 but the daemon, which has no flag. */
export const MODES: readonly ModeEntry[] = [
  { flag: 'once', value: 'none', works: true, does: 'closes every hole in the history, delivers, and exits' },
  { flag: 'demo', value: 'none', works: true, does: 'shows it all at work, with a simulated workspace' },
  { flag: 'plan', value: 'none', works: true, does: 'tells what a sync would cost' },
  { flag: 'help', value: 'none', works: true, does: 'shows this, or with a mode more about that' },
  { flag: 'version', value: 'none', works: true, does: 'shows the version' },
  { flag: 'backfill', value: 'none', works: false, does: 'fills a span of history' },
  { flag: 'status', value: 'none', works: false, does: 'tells what is held' },
  { flag: 'check', value: 'none', works: false, does: 'checks key, destination and state' },
  { flag: 'verify', value: 'none', works: false, does: 'compares a destination with what is held' },
  { flag: 'export', value: 'required', hint: 'csv|ndjson|lp', works: false, does: 'writes what is held' },
  { flag: 'replay', value: 'none', works: false, does: 'delivers again, without asking the API' },
  { flag: 'quarantine', value: 'optional', hint: '[list|retry|drop]', works: false, does: 'handles refused points' },
  { flag: 'backup', value: 'required', hint: 'FILE', works: false, does: 'copies the state' },
  { flag: 'forget', value: 'none', works: false, does: 'removes what is held of a device' },
];

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
];

const COMMON = ['config', 'json', 'log-level'];

/** Which flags mean something beside a mode. */
export const VALUE_FLAGS: Readonly<Record<Mode, readonly string[]>> = {
  once: COMMON,
  demo: ['log-level'],
  help: [],
  version: [],
  backfill: [...COMMON, 'from', 'to', 'device'],
  plan: [...COMMON, 'from', 'to', 'device', 'what-if'],
  status: [...COMMON, 'device'],
  check: COMMON,
  verify: [...COMMON, 'from', 'to', 'device', 'repair'],
  export: [...COMMON, 'from', 'to', 'device'],
  replay: [...COMMON, 'from', 'to', 'destination'],
  quarantine: COMMON,
  backup: COMMON,
  forget: [...COMMON, 'device'],
};

const OVERVIEW = `Tidemark keeps a complete and fresh copy of a device-monitoring workspace in
the time-series database of its owner.

Usage: tidemark [MODE] [FLAGS]
       npm start -- [MODE] [FLAGS]      in a checkout

Modes, one at a time:
`;

const FLAGS_AND_MORE = `
Flags:
  --config FILE        the configuration file, else config/tidemark.yaml
  --json               with --once, --plan: one object on standard output
  --log-level LEVEL    error, warn, info or debug; wins over log.level

Configuration: a YAML file, see config/tidemark.example.yaml, and for every key
an environment variable, which wins: api.url is TIDEMARK_API_URL, and so on.

Exit codes:
  0   done
  1   failed: running it again will not mend it
  2   the command line is wrong
  3   ended before it was complete; progress is kept, run it again
  77  the API refuses the key
  78  the configuration is wrong

Examples:
  tidemark --demo
  tidemark --config /etc/tidemark.yaml
  tidemark --plan --what-if share=0.5
  tidemark --once --config /etc/tidemark.yaml
  TIDEMARK_API_KEY_FILE=/run/key tidemark --once --json
`;

const TOPICS: Partial<Record<Mode, string>> = {
  once: `tidemark --once [--config FILE] [--json] [--log-level LEVEL]

Closes every hole from now - sync.history up to what can be claimed at its
start, delivers to the database and exits. It may be stopped at any time and
run again: it goes on where it was.

Where a daemon runs on the same data_dir, that one does the work, with its own
configuration: this command follows it, and takes the work back when stopped.

Prints nothing to standard output but, with --json, one summary object. Logs
go to standard error.

Exit codes: 0 all in place; 3 gaps or undelivered points remain, run it again;
1 failed, running it again will not mend it; 77 the API refuses the key; 78 the
configuration is wrong.

Examples:
  tidemark --once
  tidemark --once --json --log-level warn > summary.json
`,
  plan: `tidemark --plan [--from T] [--to T] [--device ID]... [--what-if KEY=VALUE]...
                [--config FILE] [--json] [--log-level LEVEL]

Tells what the schedules and a stretch of history would cost, before anything is
spent: devices and how often they report, requests a day, the share of the
minute's and the day's allowance, how fresh readings come, the time it takes.

It asks for the account and the device list only: one request, and one for every
200 devices. Where a daemon runs on the same data_dir, it asks nothing and goes
by what that has read. Nothing is fetched, kept or delivered.

  --from T, --to T     the stretch: a date, an RFC 3339 time or an age (90d);
                       else sync.history up to now
  --device ID          the stretch of this device alone; may be repeated
  --what-if KEY=VALUE  supposes something else; may be repeated:
    api.share                          the part of the allowance, or share
    sync.telemetry, sync.alerts,       cron expressions, or telemetry,
    sync.devices, sync.account         alerts, account
    devices                            how many devices, mixed as they are
    requests_per_minute, requests_per_day    what another plan allows

Exit codes: 0 told, whether it fits or not; 2 the command line is wrong; 3 the
API did not answer, or the daemon has just begun: run it again; 77 the API
refuses the key; 78 the configuration is wrong; 1 the state cannot be used.

Examples:
  tidemark --plan
  tidemark --plan --from 90d --device hub-1 --json
  tidemark --plan --what-if devices=2000 --what-if requests_per_day=20000
`,
  demo: `tidemark --demo [--log-level LEVEL]

Everything on this machine: a simulated workspace, the real sync against it over
HTTP, and the status page. Needs no key and no database. Prints the address of
the status page first and runs until it is stopped (Ctrl+C).

It reads no configuration file. Environment variables act as always, but for
TIDEMARK_API_URL, TIDEMARK_API_KEY and TIDEMARK_API_CA_FILE: the simulated
workspace stands in their place. Unless they are set, the state goes to a
temporary directory (TIDEMARK_DATA_DIR) and the page to a free port
(TIDEMARK_LISTEN). With TIDEMARK_INFLUX_URL and its kin set, the simulated
readings are written to that database.

Examples:
  tidemark --demo
  TIDEMARK_LISTEN=127.0.0.1:9464 tidemark --demo
`,
};

/**
 * The help text, at most 80 columns wide.
 *
 * @param topic a mode to tell more of; one without more to tell, and `null`, give the overview.
 */
export function helpText(topic: Mode | null = null): string {
  const own = topic === null ? undefined : TOPICS[topic];
  return own ?? `${OVERVIEW}${modeLines(true)}\nNot in this version yet:\n${modeLines(false)}${FLAGS_AND_MORE}`;
}

function modeLines(works: boolean): string {
  const first = works ? `  ${'(no mode)'.padEnd(19)}  the daemon: syncs until it is told to stop\n` : '';
  const lines = MODES.filter((mode) => mode.works === works).map(({ flag, hint, does }) => {
    const left = hint === undefined ? `--${flag}` : `--${flag} ${hint}`;
    return `  ${left.padEnd(works ? 19 : 31)}  ${does}\n`;
  });
  return first + lines.join('');
}
