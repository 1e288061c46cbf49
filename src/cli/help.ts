/** The text of `--help`. The overview is generated from the table of modes. */
import { MODES, type Mode } from './command.ts';
import { TOPICS } from './topics.ts';

const OVERVIEW = `Tidemark keeps a complete, up-to-date copy of a device-monitoring workspace in
your own time-series database.

Usage: tidemark [MODE] [FLAGS]
       npm start -- [MODE] [FLAGS]      in a checkout

Modes, one at a time. "tidemark status" is the same as "tidemark --status", and
"tidemark help status" explains it:
`;

const FLAGS_AND_MORE = `
Flags:
  --config FILE        the configuration file; default: config/tidemark.yaml
  --json               the result as one JSON object on standard output
                       (--export: on standard error)
  --log-level LEVEL    error, warn, info or debug; overrides log.level
  -h, -v               the same as --help and --version

Configuration: a YAML file, see config/tidemark.example.yaml. Every key except
destinations also has an environment variable, which overrides it:
TIDEMARK_API_URL for api.url.

Exit codes:
  0   done
  1   failed: running it again will not help
  2   the command line is wrong
  3   incomplete; the progress is saved, run it again
  77  the API rejects the key
  78  the configuration is wrong

Examples:
  tidemark --demo
  tidemark --config /etc/tidemark.yaml
  tidemark --plan --what-if share=0.5
  tidemark status --device "Cold room 1"
  tidemark --once --config /etc/tidemark.yaml
  TIDEMARK_API_KEY_FILE=/run/key tidemark --once --json
`;

/**
 * The help text, at most 80 columns wide.
 *
 * @param topic a mode with its own page; any other mode, and `null`, give the overview
 */
export function helpText(topic: Mode | null = null): string {
  const own = topic === null ? undefined : TOPICS[topic];
  return own ?? `${OVERVIEW}${modeLines()}${FLAGS_AND_MORE}`;
}

function modeLines(): string {
  const lines = MODES.map(({ flag, hint, does }) => line(hint === undefined ? `--${flag}` : `--${flag} ${hint}`, does));
  return [line('(no mode)', 'the daemon: syncs until it is stopped'), ...lines].join('');
}

const LEFT = 22;

/** If the left column is too long, its description starts on the next line. */
function line(left: string, does: string): string {
  return `  ${left.length > LEFT ? `${left}\n  ${' '.repeat(LEFT)}` : left.padEnd(LEFT)}  ${does}\n`;
}
