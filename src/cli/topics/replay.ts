/** `--replay --help`. At most 80 columns wide. */
export const REPLAY_TOPIC = `tidemark --replay [--from T] [--to T] [--device ID]... [--destination NAME]
                [--max-rate LINES] [--config FILE] [--json] [--log-level LEVEL]

Sends archived points to the database once more, without asking the API: after
points were lost there, or its retention was made longer. What is there already
is not stored twice.

  --from T, --to T     the stretch: a date, an RFC 3339 time or an age (90d),
                       its end not included; else all that the archive keeps
  --device ID          this device alone; may be repeated
  --destination NAME   one of several databases; else each of them
  --max-rate LINES     lines a second at most

Where a daemon runs on the same data_dir, that one does it, with its own
configuration: live points go first, and no more than 20,000 lines a second are
sent unless --max-rate says otherwise. Alone it is as fast as the database.

Stopped or cut off, it goes on from there when it is run again with the same
words within a week. Refused points go to quarantine by the same rule as always;
what a database takes now leaves the quarantine, and its list of lacks.

Prints nothing to standard output but, with --json, one summary object.

Exit codes: 0 all was sent; 3 stopped, or ten minutes without progress: run it
again; 1 there is no state, or it cannot be used; 2 the command line is wrong;
78 the configuration is wrong, or has no database.

Examples:
  tidemark --replay --from 7d
  tidemark --replay --from 2026-06-01 --to 2026-06-02 --destination second
  tidemark --replay --device hub-1 --max-rate 500 --json
`;
