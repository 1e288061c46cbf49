/** `--once --help`. At most 80 columns wide. */
export const ONCE_TOPIC = `tidemark --once [--config FILE] [--json] [--log-level LEVEL]

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
`;
