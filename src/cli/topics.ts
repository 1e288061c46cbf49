/** The text of `--help` for each mode, at most 80 columns wide. Modes without one get the overview of `help.ts`. */
import { DEFAULT_LISTEN } from '../core/page-facts.ts';
import { STALLED_AFTER } from '../core/retry.ts';
import { QUIET_ENDS_DAYS } from '../core/state/job-args.ts';
import type { Mode } from './command.ts';

export const TOPICS: Partial<Record<Mode, string>> = {
  backfill: `tidemark --backfill --from T [--to T] [--device ID]... [--max-share S |
                    --finish-by T] [--recheck] [--dry-run] [--config FILE]
                    [--json] [--log-level LEVEL]

Reads a range of history and delivers it. A range is covered when every reading
of it that the API has is stored. Covered ranges are not requested again, unless
--recheck is given. The last day of all devices comes first, then the last week,
then the rest. The command ends when the range is covered and delivered to every
database. It prints how much was read, which ranges were empty and which could
not be read. Stop it at any time, or kill it: run it again and it continues.

If a daemon runs on the same data_dir, the daemon runs it as a job with its own
configuration, beside its live polls. This command shows the progress; Ctrl-C
cancels the job. If only this command dies, the job continues, even after a
restart of the daemon. Without a daemon the command uses the whole budget
(api.share of the quota).

  --from T          start: a date, an RFC 3339 time, an age (90d), or all: for
                    each device, back until ${QUIET_ENDS_DAYS} days in a row have no reading
  --to T            end; default: now minus sync.grace_period
  --device ID       only this device, by id or name; may be repeated
  --max-share S     use at most this fraction of the budget, such as 0.25
  --finish-by T     spread the requests up to this time: a date, an RFC 3339
                    time, or a duration from now (12h)
  --recheck         also read covered ranges again, for readings that the API
                    served too late or left out. New readings are stored and
                    delivered; none is stored twice. Ranges that the archive no
                    longer has (archive.retention) are skipped
  --dry-run         print the number of requests and the time; request no
                    telemetry (without a daemon: the account and the devices)

If you enlarge sync.history, you need no backfill: after a restart the daemon
reads the additional range.

Exit codes: 0 covered and delivered; 1 the missing ranges cannot be read (or the
state cannot be used); 2 the command line is wrong; 3 incomplete, run it again;
77 the API rejects the key; 78 the configuration is wrong.

Examples:
  tidemark --backfill --from 90d --dry-run
  tidemark --backfill --from 2026-01-01 --to 2026-02-01 --device hub-1
  tidemark --backfill --from all --max-share 0.25
  tidemark --backfill --recheck --from 15d --device hub-1
`,
  once: `tidemark --once [--config FILE] [--json] [--log-level LEVEL]

Reads everything that is missing from sync.history up to now minus
sync.grace_period, delivers it to every database and exits. Stop it at any time
and run it again: it continues.

If a daemon runs on the same data_dir, the daemon runs it as a job with its own
configuration. This command shows the progress and cancels the job when you stop
it.

Prints nothing to standard output, except one summary object with --json. The
log goes to standard error.

Exit codes: 0 complete; 1 failed, running it again will not help; 3 gaps or
undelivered points remain, run it again; 77 the API rejects the key; 78 the
configuration is wrong.

Examples:
  tidemark --once
  tidemark --once --json --log-level warn > summary.json
`,
  plan: `tidemark --plan [--from T] [--to T] [--device ID]... [--what-if KEY=VALUE]...
                [--max-share S | --finish-by T] [--config FILE] [--json]
                [--log-level LEVEL]

Prints how many API requests the poll schedules and a range of history need,
before any of them is sent: devices and their reporting intervals, requests a
day, the fraction of the quota per minute and day, the lag, and the duration.

It requests only the account and the device list: one request, and one for every
200 devices. If a daemon runs on the same data_dir, it requests nothing and uses
the daemon's data. It reads no telemetry and delivers nothing.

  --from T, --to T     the range: a date, an RFC 3339 time or an age (90d);
                       default: sync.history up to now; --from all: everything
  --device ID          the range of this device only, by id or name; may be
                       repeated
  --max-share S        use at most this fraction of the budget, such as 0.25
  --finish-by T        end by this time: a date, an RFC 3339 time, or a duration
                       from now (12h)
  --what-if KEY=VALUE  assume another value; may be repeated:
    api.share                  the fraction of the quota; short: share
    sync.telemetry, sync.alerts, sync.account, sync.devices
                               a poll schedule (cron expression); short:
                               telemetry, alerts, account
    devices                    the number of devices, reporting as often as
                               those of today
    requests_per_minute, requests_per_day
                               the limits of another plan

Exit codes: 0 printed, whether the quota is large enough or not; 1 the state
cannot be used; 2 the command line is wrong; 3 the API did not answer, or the
daemon has just started: run it again; 77 the API rejects the key; 78 the
configuration is wrong.

Examples:
  tidemark --plan
  tidemark --plan --from 90d --device hub-1 --json
  tidemark --plan --what-if devices=2000 --what-if requests_per_day=20000
`,
  init: `tidemark --init [--config FILE] [--api-url URL] [--api-key-file FILE]
                [--influx-url URL] [--influx-token-file FILE]
                [--influx-org NAME] [--influx-bucket NAME]
                [--influx-kind KIND] [--history T] [--listen HOST:PORT]
                [--data-dir DIR] [--overwrite] [--workspace NAME [--for TARGET]]

Prompts for the address of the API, the key, the database and the history,
tests each answer immediately, and writes the configuration file and a file for
each secret (mode 0600). At the end it prints the command that starts Tidemark.

Each answer can be a flag; without a terminal, the required ones must be flags.
Secrets come from a file (- reads a line of standard input, the key first), from
TIDEMARK_API_KEY and TIDEMARK_INFLUX_TOKEN, or are typed and not shown. A secret
file is used where it is (copied for --workspace); typed secrets are written to
secrets/ beside the configuration file.

  --config FILE              the file to write (with --workspace: the directory)
  --influx-url URL           the database, or the word none: only the archive;
                             default: that of the replaced file, else none;
                             Kubernetes: the Kustomize base's
  --influx-bucket NAME       the bucket; leave it out for VictoriaMetrics
  --influx-kind KIND         influxdb or victoriametrics; default: detected
  --history T                default: that of the replaced file, else 30d;
                             Kubernetes: the Kustomize base's
  --listen HOST:PORT         where the status page listens (${DEFAULT_LISTEN})
  --overwrite                replace existing files
  --workspace NAME           write the files for one additional workspace next
                             to the running ones, and print how to start it
  --for TARGET               compose (default), systemd (/etc/tidemark) or
                             kubernetes (config/kubernetes/workspaces)

It sends one or two requests to the API, recorded in the state if there is one.

Exit codes: 0 written; 1 the API or the database does not answer, or a file
already exists; 2 the command line is wrong, or an answer is missing; 3
interrupted; 77 the API rejects the key; 78 the answers contradict each other.

Examples:
  tidemark --init --api-url https://api.example/external/v1 --api-key-file ./key
  tidemark --init --workspace office --for systemd
`,
  demo: `tidemark --demo [--api-only] [--log-level LEVEL]

Runs everything on this machine: a simulated workspace, the daemon that syncs it
over HTTP, and the status page. Needs no key and no database. Prints the address
of the status page and runs until it is stopped (Ctrl+C).

It reads no configuration file. Environment variables apply, except
TIDEMARK_API_URL, TIDEMARK_API_KEY and TIDEMARK_API_CA_FILE, which the simulated
workspace replaces. By default the state goes to a temporary directory
(TIDEMARK_DATA_DIR) and the page to a free port (TIDEMARK_LISTEN). With
TIDEMARK_INFLUX_URL, TIDEMARK_INFLUX_BUCKET and so on, the simulated readings
are written to that database.

  --api-only   serve only the simulated API at 127.0.0.1:9465 (TIDEMARK_LISTEN),
               and print its address and key, to try "tidemark init" with it

Examples:
  tidemark --demo
  TIDEMARK_LISTEN=${DEFAULT_LISTEN} tidemark --demo
`,
  check: `tidemark --check [--write-probe] [--startup] [--verbose] [--bundle FILE]
                 [--config FILE] [--json] [--log-level LEVEL]

Checks the whole setup and prints one line for each check (ok, warn or FAIL; -
for a check that was not run), with the remedy:

  configuration   every mistake; secrets that other users can read
  state           data_dir: writable, private, undamaged, enough space
  API             connection, TLS, key, scopes, plan, workspace, clock, quota
  destinations    each database: reachable, kind, token, bucket, retention, and
                  the deduplication that VictoriaMetrics needs
  status page     its address: free, or used by the daemon; who can read it
  dashboards      whether each database answers queries with this token

It records its requests (at most 6) in the state and creates a missing state. It
sends none that would upgrade an older state. If a daemon runs on the same
data_dir, the daemon sends them with its own key. It syncs and delivers nothing.

  --write-probe   write a point into each database (measurement
                  tidemark_probe); default: an empty write request
  --startup       fail only where a daemon would exit at its start, not where it
                  would wait for the API, another key or a database
  --verbose       print lines unshortened, and details for developers
  --bundle FILE   also write a support bundle to attach to a question: one JSON
                  file that only you can read (0600); an existing file is never
                  overwritten. It contains versions, the configuration, these
                  lines, the status, sizes, the last requests, rejections and
                  jobs. It contains no secret, no reading and no geographic
                  position; devices are called d1, d2 and so on. It is written
                  even if the configuration or the state is broken. Read it
                  before you send it.

Exit codes, the first that applies: 78 the configuration is wrong; 77 the API
rejects the key, the plan has no API access, or devices:read or telemetry:read
is missing; 1 another check failed; 0 all required checks passed, perhaps with
warnings. Also 2 the command line is wrong, 3 it was interrupted.

Examples:
  tidemark --check
  tidemark --check --config /etc/tidemark.yaml --json
  tidemark --check --bundle tidemark-bundle.json
`,
  export: `tidemark --export csv|ndjson|lp [--from T] [--to T] [--device ID]...
                [--json] [--config FILE] [--log-level LEVEL]

Writes the archive to standard output: device by device in order of their ids,
each in order of time, every reading once. It needs no key, writes nothing to
the state and may run beside the daemon.

  csv      readings as a table: time, device_id, device_name, sensor, value,
           type
  ndjson   readings, one JSON object per line
  lp       every archived line in line protocol with nanoseconds, as
           influx write and /api/v2/write take it. Devices, alerts, the
           workspace and coverage come first, then the readings of each device

  --from T, --to T     the range: a date, an RFC 3339 time or an age (90d); the
                       end is exclusive; default: everything
  --device ID          only this device, by id or name; may be repeated

  --json               at the end print one object to standard error (the data
                       on standard output keep their format): readings, points,
                       devices, from, to, bytes, seconds

Standard error shows the progress (a bar on a terminal, else a line a minute)
and the number of points that the archive no longer has (archive.retention,
archive.max_size). If the program behind the pipe closes it, that is no error.

Exit codes: 0 written, or the pipe was closed; 1 there is no state, or it
or the output cannot be used; 2 the command line is wrong; 3 stopped before the
end; 78 the configuration is wrong.

Examples:
  tidemark --export csv --from 7d --device hub-1 > hub-1.csv
  tidemark --export ndjson --from 2026-06-01 --to 2026-07-01 | gzip > june.gz
  tidemark --export lp | influx write --bucket devices
`,
  replay: `tidemark --replay [--from T] [--to T] [--device ID]... [--destination NAME]
                [--max-rate LINES] [--config FILE] [--json] [--log-level LEVEL]

Sends archived points to the database again, without requests to the API: after
the database lost points, or after its retention was extended. A point that is
already there is not stored twice.

  --from T, --to T     the range: a date, an RFC 3339 time or an age (90d); the
                       end is exclusive; default: the whole archive
  --device ID          only this device, by id or name; may be repeated
  --destination NAME   one of several databases; default: all
  --max-rate LINES     at most this many lines a second

If a daemon runs on the same data_dir, the daemon runs it as a job with its own
configuration: live points go first, and it sends at most 20,000 lines a second
unless --max-rate is given. Without a daemon only the database limits the rate.

If it is stopped, run it again with the same arguments within a week: it
continues. Rejected points go to quarantine as usual; points that the database
accepts now leave the quarantine and the list of missing points.

Prints nothing to standard output, except one summary object with --json.

Exit codes: 0 everything was sent; 1 there is no state, or it cannot be used; 2
the command line is wrong; 3 interrupted, or ${STALLED_AFTER} without progress: run
it again; 78 the configuration is wrong, or has no database.

Examples:
  tidemark --replay --from 7d
  tidemark --replay --from 2026-06-01 --to 2026-06-02 --destination second
  tidemark --replay --device hub-1 --max-rate 500 --json
`,
  verify: `tidemark --verify [--from T] [--to T] [--device ID]... [--destination NAME]
                  [--repair] [--sample N] [--json] [--config FILE]

Compares the telemetry in a database with the archive, by device and day, by
count and hash. Without --repair and --sample it needs no API key and writes
nothing. It may run beside the daemon. Default range: all days from the first
reading to today, also those that the archive has cleared; whole days (UTC).
Points that are not delivered yet, are in quarantine, or are already listed as
missing by --status do not count as differences; they are listed separately.

  missing      archived and delivered, but not in the database
  different    in the database with another value
  extra        in the database, but not in this state; never deleted

The token must be allowed to read: in InfluxDB 2 and 3 read permission for the
bucket, in 1.8 GRANT READ. VictoriaMetrics stores only numbers, with times in
milliseconds; the comparison is limited to these. A large range takes the
database a long time; Tidemark reads one device at a time.

  --repair     send missing and different points again from the archive, without
               requests to the API; no reading is stored twice. Points that the
               archive no longer has are read from the API again, if it is
               configured or a daemon runs (the number of requests is printed
               first); points that cannot be read are recorded as missing
  --sample N   read N random covered ranges from the API again and compare them
               with the archive. Needs api.key (or the daemon's). With --repair,
               readings found this way are stored and delivered, and count as
               late readings
  --destination NAME   only this database: influx (the section influx), or a
               name from destinations

Exit codes: 0 equal; 1 a difference, or the token may not read; 2 the command
line is wrong; 3 not finished (database or API down, interrupted): run it again;
77 the API rejects the key; 78 the configuration is wrong.

Examples:
  tidemark --verify
  tidemark --verify --from 7d --device hub-1 --json
  tidemark --verify --repair
  tidemark --verify --sample 20
`,
  quarantine: `tidemark --quarantine [list|retry|drop] [--destination NAME] [--device ID]...
                      [--reason TEXT] [--from T] [--to T]
                      [--config FILE] [--json] [--log-level LEVEL]

Lists, retries or drops the contents of the quarantine: points that a database
rejected, and records of the API that could not be parsed, each with the reason.

  list    print the contents, by destination and reason, with the commands to
          retry or drop them. Changes nothing; may run beside a daemon.
  retry   send the points again. Accepted points leave the quarantine, rejected
          ones stay with the new reason; if the database does not answer,
          nothing changes. Records of the API are parsed again by this version,
          without requests to the API.
  drop    drop the points permanently; --status then lists them as missing from
          that database. At least one of the flags below is required.

  --destination NAME   points of this database only
  --device ID          points of this device, by id or name; may be repeated
  --reason TEXT        entries whose reason contains this text
  --from T, --to T     points whose time is in this range (a date, an RFC 3339
                       time or an age); records of the API that were rejected
                       in this range

If a daemon runs on the same data_dir, the daemon runs it as a job. No API key
is needed.

Exit codes: 0 done; 1 some were rejected again, or still cannot be parsed; 2 the
command line is wrong, or drop has no filter; 3 a database did not answer, or it
was interrupted: run it again; 78 the configuration is wrong.

Examples:
  tidemark --quarantine
  tidemark --quarantine retry --destination influx
  tidemark --quarantine drop --device hub-1 --to 2026-01-31
`,
  backup: `tidemark --backup FILE [--config FILE] [--json] [--log-level LEVEL]

Copies the state (archive, coverage, names, used quota) into one file, as a
consistent snapshot. A daemon on the same data_dir continues meanwhile. The file
gets its name when it is complete, checked and on the disk; an existing file is
never overwritten. It contains readings, so only its owner may read it.

To restore it, on this machine or another: copy it as tidemark.db into an empty
data_dir, and start. Never let the original and the copy sync at the same time:
each would use the whole quota. No API key is needed.

Exit codes: 0 done; 1 failed, see the message; 2 the command line is wrong;
3 interrupted, the partial file was removed; 78 the configuration is wrong.

Examples:
  tidemark --backup /backups/tidemark-monday.db
  tidemark --backup copy.db --json
`,
  forget: `tidemark --forget --device ID [--config FILE] [--json] [--log-level LEVEL]

Removes a device from the state: its readings in the archive, its coverage,
names, daily totals, quarantine and alerts. Nothing of it remains in
tidemark.db. Your databases are not changed: the command prints how to remove
the device there. Earlier backups still contain it.

The device must be gone from the workspace, or excluded by sync.exclude (and the
daemon restarted); otherwise it would be synced again at once, and the command
changes nothing. It also changes nothing while points of the device wait for a
database.

If a daemon runs on the same data_dir, the daemon runs it as a job. No API key
is needed.

Exit codes: 0 done; 1 the device is still synced; 2 the command line is wrong,
or the state has no such device; 3 points wait for a database, or it was
interrupted: run it again; 78 the configuration is wrong.

Examples:
  tidemark --forget --device hub-1
`,
  status: `tidemark --status [--device ID] [--config FILE] [--json] [--log-level LEVEL]

Prints one screen: coverage and gaps with their reasons, lag, points that wait
for each database, quarantine, used and remaining quota, jobs, and the next
polls.

It only reads the state in data_dir: no API, no database, no key, no lock. It
works beside a running daemon, without one, and on a copy. It requests, writes
and delivers nothing.

  --device ID          one device, by id or name: last request, next poll, last
                       responses, coverage as a bar, gaps, names
  --json               the object that a daemon serves as /status.json; with
                       --device that of the device

Exit codes: 0 printed, whatever the status; 1 there is no state yet, or it
cannot be read; 2 the command line is wrong, or no device has that id or name;
78 the configuration is wrong.

Examples:
  tidemark --status
  tidemark --status --device hub-1
  tidemark --status --json --config /etc/tidemark.yaml
`,
  health: `tidemark --health [--config FILE] [--json]

Requests /healthz from the daemon on this machine. Use it as the health check of
a container, where there is no curl. It reads only listen (TIDEMARK_LISTEN) from
the configuration; 0.0.0.0 means 127.0.0.1. It needs no key, does not open the
state, and ends within three seconds.

A daemon that waits for quota is healthy. So is one whose database or API is
down: a restart would not repair that, and /readyz reports it.

Exit codes:
  0   healthy
  1   not healthy (prints the loop that is stalled), or no daemon answers
  2   the command line is wrong
  78  the configuration cannot be read, or listen in it is wrong

Examples:
  tidemark --health
  HEALTHCHECK CMD ["tidemark", "--health"]
`,
};
