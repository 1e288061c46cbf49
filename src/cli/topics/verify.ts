/** `--verify --help`. At most 80 columns wide. */
export const VERIFY_TOPIC = `tidemark --verify [--from T] [--to T] [--device ID]... [--destination NAME]
                  [--repair] [--sample N] [--json] [--config FILE]

Proves the copy: compares the telemetry that a database returns with what this
state has archived, by device and day, count and hash. It needs no API key and
writes nothing, beside a running daemon too. Without --from and --to it is all
that is kept; whole days (UTC). What is not delivered yet, in quarantine or in
the lack-set is told as such and is no difference.

  missing      archived and delivered, and not in the database
  different    there with another value
  extra        in the database and not of this state; told, never deleted

The token has to be allowed to read: in InfluxDB 2 and 3 read permission for
the bucket, in 1.8 GRANT READ. VictoriaMetrics is compared in what it can hold:
numbers, to the millisecond. A run over much data is a long read for the
database; it asks for one device at a time.

  --repair     sends again from the archive what is missing or different: no
               request to the API, no reading doubled. What the archive keeps
               no more is fetched again where the API is configured or a daemon
               runs (told first: points, readings, requests); what cannot be
               had is kept in the database's lack-set
  --sample N   reads N windows that are held, drawn at random, again from the
               API and compares them with the archive. Needs api.key (or the
               daemon's). With --repair, new readings are taken in as late ones
  --destination NAME   this database only; influx is the section of that name

Exit codes: 0 all is equal; 1 something differs, or the token may not read; 2
the command line is wrong; 3 it could not be finished (database or API down,
interrupted): run it again; 77 the API refuses the key; 78 the configuration is
wrong.

Examples:
  tidemark --verify
  tidemark --verify --from 7d --device hub-1 --json
  tidemark --verify --repair
  tidemark --verify --sample 20
`;
