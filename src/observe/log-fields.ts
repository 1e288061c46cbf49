/**
 * Every field that a line of the log may have beside `time`, `level` and `msg`: its unit and what it means. A field that
 * is not here does not compile; `docs/logs.md` is made from this table.
 */

interface Field {
  /** A unit, or what kind of text it is. */
  readonly unit: string;
  readonly meaning: string;
}

function field(unit: string, meaning: string): Field {
  return { unit, meaning };
}

// biome-ignore format: a table, a row a field
export const FIELDS = {
  after: field('text', 'as it is now'),
  after_lines: field('points', 'how many were sent before it was broken off'),
  asked_by: field('text', 'the command that asked'),
  at: field('RFC 3339', 'the time of a reading'),
  attempt: field('count', 'which try it was, from 1'),
  before: field('text', 'as it was before; null where there was none'),
  blocks: field('count', 'pieces of the archive'),
  count: field('count', 'how many records, values or readings'),
  data_dir: field('path', 'the directory of the state'),
  destination: field('name', 'the database, by its name in the configuration'),
  device_id: field('id', 'the device'),
  device_name: field('text', 'its name'),
  devices: field('devices', 'how many it is about'),
  duration_ms: field('milliseconds', 'how long it took'),
  exit_code: field('exit code', 'what the program ends with, or the command that asked'),
  failed_requests: field('requests', 'those that did not bring what they were sent for'),
  fault: field('word', 'why it failed: `unreachable`, `throttled`, `unauthorized`, `scope-missing`, `no-api-access`, `not-found`, `bad-cursor`, `range-too-large`, `invalid-request`, `server-fault`, `malformed`; null where it did not'),
  file: field('path', 'what was written'),
  from: field('RFC 3339', 'the beginning of a stretch of time'),
  gaps: field('stretches', 'what is wanted and not held'),
  held_back: field('lines', 'how many like it were not written since the last one'),
  job: field('number', 'the work, as `--status` names it'),
  kind: field('word', 'what kind of work, or which kind of database'),
  lane: field('word', 'what a request is for: `live`, `alerts`, `inventory`, `first-history`, `backfill`, `sweep`'),
  late_seconds: field('seconds', 'how long after its time the latest reading came'),
  limit: field('requests', 'the limit that an answer speaks of'),
  lines: field('points', 'how many it is about'),
  max_bytes: field('bytes', 'archive.max_size'),
  mistakes: field('count', 'how many there are'),
  new_points: field('points', 'those that the archive did not have'),
  new_readings: field('readings', 'those that brought something new'),
  of: field('word', 'what does not fit: `schedules`, or even the `readings`'),
  outcome: field('word', 'how it ended'),
  pattern: field('text', 'as it stands in the configuration'),
  points: field('points', 'how many it is about'),
  points_to_deliver: field('points', 'those that the databases have not got yet'),
  readings: field('readings', 'how many it is about'),
  records: field('records', 'how many were listed'),
  request: field('path', 'method and path; never the query'),
  requests: field('requests', 'how many were sent, or will be'),
  runs: field('count', 'how often the work on the stream came to its end'),
  scope: field('word', 'what the key lacks'),
  settle_seconds: field('seconds', 'how long readings of this device are waited for from now on'),
  state: field('word', 'how it ended: `done`, `failed`, `cancelled`'),
  status: field('HTTP status', 'of the answer; null where none came'),
  status_page: field('URL', 'where the status page is served'),
  stream: field('word', '`account`, `devices`, `telemetry` or `alerts`'),
  to: field('RFC 3339', 'the end of a stretch of time; `now` where it has none'),
  until: field('RFC 3339', 'how long it waits'),
  wait_seconds: field('seconds', 'until the next try'),
} as const satisfies Readonly<Record<string, Field>>;

export type FieldName = keyof typeof FIELDS;

export type FieldValue = string | number | boolean | null;

/** What a line says beside its message. Only plain values: no object from outside can ride along. */
export type FieldValues = { readonly [F in FieldName]?: FieldValue };
