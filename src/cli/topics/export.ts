/** `--export --help`. At most 80 columns wide. */
export const EXPORT_TOPIC = `tidemark --export csv|ndjson|lp [--from T] [--to T] [--device ID]...
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
  --device ID          this device alone; may be repeated

  --json               tells at its end what was written, as one object in one
                       line on standard error (the data keep their own form):
                       readings, points, devices, from, to, bytes, seconds

What the archive no longer keeps (archive.keep, archive.max_size) is told on
standard error, with how many points that is; so is how far it is, on a terminal
as a bar, elsewhere as a line a minute.
A reader that closes the pipe is no failure.

Exit codes: 0 written, or the reader has gone away; 1 there is no state, or it
or the output cannot be used; 2 the command line is wrong; 3 stopped before the
end; 78 the configuration is wrong.

Examples:
  tidemark --export csv --from 7d --device hub-1 > hub-1.csv
  tidemark --export ndjson --from 2026-06-01 --to 2026-07-01 | gzip > june.gz
  tidemark --export lp | influx write --bucket devices
`;
