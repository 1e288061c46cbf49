/** `--check --help`. At most 80 columns wide. */
export const CHECK_TOPIC = `tidemark --check [--write-probe] [--bundle FILE] [--config FILE] [--json]
                 [--log-level LEVEL]

Looks whether everything is set up right, and tells a line for each thing (ok,
warn or FAIL; - where it was not looked at), with what to do:

  configuration   every mistake; secrets that others can read or overhear
  state           data_dir: can it be written, is it private, is it sound, is
                  there room
  API             name, connection, TLS; the key and each of its scopes; plan,
                  workspace, this machine's clock, what the answers show
  destinations    each database: reachable, kind, token, bucket, retention, and
                  the deduplication that VictoriaMetrics needs

It takes at most 6 requests of the allowance, booked like all others: for that
a state is made in data_dir where there is none yet. Where a daemon runs on the
same data_dir, that one asks, with its own key. Nothing is synced or delivered.

  --write-probe   writes a point into each database (measurement
                  tidemark_probe); else it is asked by a write without points
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
`;
