/**
 * What `--help` prints beside a mode, word for word: a text for each, at most 80 columns wide. Modes without one get
 * the overview of `help.ts`.
 */
import type { Mode } from './flags.ts';

export const TOPICS: Partial<Record<Mode, string>> = {
  backfill: `tidemark --backfill --from T [--to T] [--device ID]... [--max-share S |
                    --finish-by T] [--dry-run] [--config FILE] [--json]
                    [--log-level LEVEL]

Fills a stretch of history: what is held already is not asked for again. The
last day of all devices comes first, then the week, then the rest. It ends when
the stretch is held and every database has it, and says what it brought, what
was empty and what could not be had. It may be stopped at any time, or killed,
and run again: it goes on where it was.

Where a daemon runs on the same data_dir, that one does the work, with its own
configuration, and takes nothing from its live work for it. This command follows
it; Ctrl-C takes the work back. If this command alone dies, the work goes on,
also after a restart of the daemon. Alone it takes the whole share.

  --from T          a date, an RFC 3339 time, an age (90d), or all: as far back
                    as there is anything, of each device until 400 days in a row
                    have no reading
  --to T            the same; else the moment it began, less sync.grace_period
  --device ID       this device alone, by id or name; may be repeated
  --max-share S     takes at most this part of api.share, such as 0.25
  --finish-by T     goes no faster than it takes to be done by then: a date, an
                    RFC 3339 time, or a length of time from now on (12h)
  --dry-run         tells what it would cost, and fetches nothing

A larger sync.history is a backfill of its own: the daemon does it when it is
started with it.

Exit codes: 0 held and delivered; 3 not all of it yet, run it again; 1 what is
missing can not be had (or the state can not be used); 2 the command line is
wrong; 77 the API refuses the key; 78 the configuration is wrong.

Examples:
  tidemark --backfill --from 90d --dry-run
  tidemark --backfill --from 2026-01-01 --to 2026-02-01 --device hub-1
  tidemark --backfill --from all --max-share 0.25
`,

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
                [--max-share S | --finish-by T] [--config FILE] [--json]
                [--log-level LEVEL]

Tells what the schedules and a stretch of history would cost, before anything is
spent: devices and how often they report, requests a day, the share of the
minute's and the day's allowance, how fresh readings come, the time it takes.

It asks for the account and the device list only: one request, and one for every
200 devices. Where a daemon runs on the same data_dir, it asks nothing and goes
by what that has read. Nothing is fetched, kept or delivered.

  --from T, --to T     the stretch: a date, an RFC 3339 time or an age (90d);
                       else sync.history up to now; --from all for all there is
  --device ID          the stretch of this device alone, by id or name; may be
                       repeated
  --max-share S        the stretch at a part of the share, such as 0.25
  --finish-by T        the stretch done by a time to come: a date, an RFC 3339
                       time, or a length of time from now on (12h)
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

  check: `tidemark --check [--write-probe] [--verbose] [--bundle FILE] [--config FILE]
                 [--json] [--log-level LEVEL]

Looks whether everything is set up right, and tells a line for each thing (ok,
warn or FAIL; - where it was not looked at), with what to do:

  configuration   every mistake; secrets that others can read or overhear
  state           data_dir: can it be written, is it private, is it sound, is
                  there room
  API             name, connection, TLS; the key and each of its scopes; plan,
                  workspace, this machine's clock, what the answers show
  destinations    each database: reachable, kind, token, bucket, retention,
                  queries, and the deduplication that VictoriaMetrics needs
  status page     its address: free, or answered by the daemon; who can read it

It takes at most 6 requests of the allowance, booked like all others: for that
a state is made in data_dir where there is none yet. Where a daemon runs on the
same data_dir, that one asks, with its own key. Nothing is synced or delivered.

  --write-probe   writes a point into each database (measurement
                  tidemark_probe); else it is asked by a write without points
  --verbose       whole lines, and lines for developers (headers, page sizes)
  --bundle FILE   also writes a support bundle, to attach to a question: one
                  file of JSON, for you alone (0600), never over another one.
                  It has versions, the configuration, these lines, the status,
                  sizes, the last requests, refusals and jobs. It has no
                  secret, no reading and no position; devices are d1, d2, ...
                  Written also where configuration or state are broken. Look
                  through it before you send it.

Exit codes, the first that fits: 78 the configuration is wrong; 77 the API
refuses the key, the plan has no API access, or devices:read or telemetry:read
is missing; 1 anything else is not in order; 0 all that is needed works, also
with warnings. Also 2 the command line is wrong, 3 it was told to stop.

Examples:
  tidemark --check
  tidemark --check --config /etc/tidemark.yaml --json
  tidemark --check --write-probe
  tidemark --check --bundle tidemark-bundle.json
`,

  export: `tidemark --export csv|ndjson|lp [--from T] [--to T] [--device ID]...
                [--json] [--config FILE] [--log-level LEVEL]

Writes what the archive holds to standard output, device after device by id,
each in the order of time, every reading once. It needs no key, writes nothing
to the state and may run beside the daemon.

  csv      readings as a table: time, device_id, device_name, sensor, value,
           type
  ndjson   readings, one JSON object a line
  lp       every archived line as it is, in line protocol with nanoseconds:
           what influx write and /api/v2/write take. Devices, alerts, the
           workspace and coverage come first, then each device's readings

  --from T, --to T     the stretch: a date, an RFC 3339 time or an age (90d),
                       its end not included; else all of it
  --device ID          this device alone, by id or name; may be repeated

  --json               tells at its end what was written, as one object in one
                       line on standard error (the data keep their own form):
                       readings, points, devices, from, to, bytes, seconds

Standard error names what the archive no longer has (archive.retention,
archive.max_size), with the number of points, and shows the progress: a bar on
a terminal, a line a minute elsewhere.
A reader that closes the pipe is no failure.

Exit codes: 0 written, or the reader has gone away; 1 there is no state, or it
or the output cannot be used; 2 the command line is wrong; 3 stopped before the
end; 78 the configuration is wrong.

Examples:
  tidemark --export csv --from 7d --device hub-1 > hub-1.csv
  tidemark --export ndjson --from 2026-06-01 --to 2026-07-01 | gzip > june.gz
  tidemark --export lp | influx write --bucket devices
`,

  replay: `tidemark --replay [--from T] [--to T] [--device ID]... [--destination NAME]
                [--max-rate LINES] [--config FILE] [--json] [--log-level LEVEL]

Sends archived points to the database once more, without asking the API: after
points were lost there, or its retention was made longer. What is there already
is not stored twice.

  --from T, --to T     the stretch: a date, an RFC 3339 time or an age (90d),
                       its end not included; else all that the archive keeps
  --device ID          this device alone, by id or name; may be repeated
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
`,

  verify: `tidemark --verify [--from T] [--to T] [--device ID]... [--destination NAME]
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
`,

  quarantine: `tidemark --quarantine [list|retry|drop] [--destination NAME] [--device ID]...
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
  --device ID          those of this device, by id or name; may be repeated
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
`,

  backup: `tidemark --backup FILE [--config FILE] [--json] [--log-level LEVEL]

Copies the state (archive, coverage, names, what is spent) into one file, as
one moment shows it. A daemon on the same data_dir goes on meanwhile. The copy
has its name once it is whole, checked and on the disk; an existing file is
never overwritten. It holds readings: only its owner may read it.

To restore it, on this host or another one: copy it as tidemark.db into an
empty data_dir, and start. Never let both the original and the copy sync: each
would spend the allowance, and neither would know of it. No API key is needed.

Exit codes: 0 done; 1 it cannot be done (the message says why); 3 it was
stopped, and nothing is left of it; 2 the command line is wrong; 78 the
configuration is wrong.

Examples:
  tidemark --backup /backups/tidemark-monday.db
  tidemark --backup copy.db --json
`,

  forget: `tidemark --forget --device ID [--config FILE] [--json] [--log-level LEVEL]

Removes what is held of a device from the state: its readings in the archive,
its coverage, names, sums, quarantine and alerts. What was removed does not
linger in the file. Your databases are not touched: it says how to remove it
there. Copies of the state that were made before hold it still.

The device has to be gone from the workspace, or left out by sync.exclude (and
the daemon restarted): else it would be synced anew at once, and nothing is
done. Nothing is done either while points of it wait for a database.

Where a daemon runs on the same data_dir, it does the work. No API key is
needed.

Exit codes: 0 done; 1 it is still synced; 2 the command line is wrong, or
nothing is held of such a device; 3 some of it waits for a database, or it was
stopped: run it again; 78 the configuration is wrong.

Examples:
  tidemark --forget --device hub-1
`,

  status: `tidemark --status [--device ID] [--config FILE] [--json] [--log-level LEVEL]

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
`,

  health: `tidemark --health [--config FILE] [--json]

Asks the daemon of this machine whether its loops move, as /healthz tells it:
for the health check of a container, without curl. Of the configuration it reads
\`listen\` (TIDEMARK_LISTEN) and nothing else; 0.0.0.0 means 127.0.0.1. It needs
no key, does not touch the state, and answers within three seconds.

Waiting for allowance is healthy. So is a database or an API that is down: no
restart mends that, and /readyz tells of it.

Exit codes:
  0   healthy
  1   not healthy, with what stands still; or nobody answers there
  2   the command line is wrong
  78  the configuration cannot be read, or listen in it is wrong

Examples:
  tidemark --health
  HEALTHCHECK CMD ["tidemark", "--health"]
`,
};
