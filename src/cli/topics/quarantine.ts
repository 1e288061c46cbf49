/** `--quarantine --help`. At most 80 columns wide. */
export const QUARANTINE_TOPIC = `tidemark --quarantine [list|retry|drop] [--destination NAME] [--device ID]...
                      [--reason TEXT] [--from T] [--to T]
                      [--config FILE] [--json] [--log-level LEVEL]

Points that a database refused, and records of the API that were not
understood: each is kept with the words of whoever refused it.

  list    what stands there, by destination and reason, with the commands that
          would handle it. Changes nothing, also beside a daemon.
  retry   sends the points again. What is accepted leaves the quarantine, what
          is refused stays with the new words, and where the database does not
          answer nothing changes. Records of the API are read again by this
          version, without asking the API.
  drop    gives up for ever, which is kept: the database is shown to lack these
          points. It has to be told which: by one of the flags below at least.

  --destination NAME   the points of this database alone
  --device ID          those of this device; may be repeated
  --reason TEXT        those whose words hold this text
  --from T, --to T     points of this time: a date, an RFC 3339 time or an age;
                       records of the API by when they were set aside

Where a daemon runs on the same data_dir, it does the work. No API key is
needed.

Exit codes: 0 done; 1 some were refused again, or are still not understood; 2
the command line is wrong, or drop was not told which; 3 a database did not
answer, or it was stopped: run it again; 78 the configuration is wrong.

Examples:
  tidemark --quarantine
  tidemark --quarantine retry --destination influx
  tidemark --quarantine drop --device hub-1 --to 2026-01-31
`;
