/** `--status --help`. At most 80 columns wide. */
export const STATUS_TOPIC = `tidemark --status [--device ID] [--config FILE] [--json] [--log-level LEVEL]

Tells what is held, what is not and why, in one screen: coverage and holes with
their reasons, freshness against the schedule, what waits for each database and
for how long, quarantine, the allowance spent and left, jobs, what comes next.

It reads the state in data_dir and nothing else: no API, no database, no key, no
lock. It works beside a running daemon, without one, and on a copy. Nothing is
asked, written or delivered.

  --device ID          why is this device not fresh? Last asked, next due, last
                       answers, coverage as a bar, holes, names; an id, or a
                       name that only one device has
  --json               the object that a daemon serves as /status.json; with
                       --device that of the device

Exit codes: 0 told, however it stands; 1 there is no state yet, or it cannot be
read; 2 the command line is wrong, or no device has that id or name; 78 the
configuration is wrong.

Examples:
  tidemark --status
  tidemark --status --device hub-1
  tidemark --status --json --config /etc/tidemark.yaml
`;
