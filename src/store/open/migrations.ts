/**
 * The shape of the state file, as numbered steps. A step that was released is never changed; the number of steps done
 * is SQLite's `user_version`.
 *
 * Times in columns named `_ns` are nanoseconds and `_ms` milliseconds since 1970; hours and days count from 1970 too.
 */

import { STEP_2 } from '../step-2.ts';
import { STEP_3 } from '../step-3.ts';

/** Each step is one transaction. */
export const MIGRATIONS: readonly string[] = [
  `
  -- Small facts: the workspace that the state belongs to, the account as last read, what was learnt of the service.
  CREATE TABLE fact (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

  -- Every request, booked before it is sent, in the server's time.
  CREATE TABLE request (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    lane TEXT NOT NULL,
    stream TEXT NOT NULL,
    device_id TEXT,
    status INTEGER,
    fault TEXT,
    new_readings INTEGER
  );
  CREATE INDEX request_at ON request (at_ms);

  -- The inventory. record: the device as last listed, as JSON. point_* and coverage_*: its last points of these kinds.
  CREATE TABLE device (
    device_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    record TEXT NOT NULL,
    first_listed_ms INTEGER NOT NULL,
    last_listed_ms INTEGER NOT NULL,
    missed_listings INTEGER NOT NULL DEFAULT 0,
    gone_since_ms INTEGER,
    point_digest TEXT,
    point_ns INTEGER,
    coverage_state TEXT,
    coverage_ns INTEGER
  ) WITHOUT ROWID;

  -- Names pinned by time: a name holds from from_ns on; the first one from 0.
  CREATE TABLE device_name (
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (device_id, from_ns)
  ) WITHOUT ROWID;

  -- What a landing is computed from moves this number: the compare-and-set of the state of a device.
  CREATE TABLE device_revision (device_id TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;

  -- The stretches that are held in full, half-open, with the readings at their ends.
  CREATE TABLE coverage (
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    first_ns INTEGER,
    first_digest TEXT,
    last_ns INTEGER,
    last_digest TEXT,
    PRIMARY KEY (device_id, from_ns),
    CHECK (from_ns < to_ns)
  ) WITHOUT ROWID;

  -- Holes that have a name.
  CREATE TABLE gap (
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    reason TEXT NOT NULL,
    retry_at_ms INTEGER NOT NULL,
    PRIMARY KEY (device_id, from_ns)
  ) WITHOUT ROWID;

  -- The archive: the durable log of points in line protocol, compressed. first_ns and last_ns bound the telemetry lines.
  CREATE TABLE block (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    lane TEXT NOT NULL CHECK (lane IN ('live', 'history')),
    device_id TEXT,
    first_ns INTEGER,
    last_ns INTEGER,
    lines INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    data BLOB NOT NULL
  );
  CREATE INDEX block_lane ON block (lane, seq);
  CREATE INDEX block_span ON block (device_id, first_ns) WHERE first_ns IS NOT NULL;

  -- Values that had to move a nanosecond or more, because their series had another value at their instant.
  CREATE TABLE tie (
    device_id TEXT NOT NULL,
    recorded_ns INTEGER NOT NULL,
    sensor TEXT NOT NULL,
    field TEXT NOT NULL,
    written_ns INTEGER NOT NULL,
    PRIMARY KEY (device_id, recorded_ns, sensor, field)
  ) WITHOUT ROWID;

  -- Counts and order-independent hashes of the points of a device and day, kept for ever.
  CREATE TABLE day_sum (
    device_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    points INTEGER NOT NULL,
    hash_high INTEGER NOT NULL,
    hash_low INTEGER NOT NULL,
    PRIMARY KEY (device_id, day)
  ) WITHOUT ROWID;

  -- Readings of hours that are not written as coverage_hour yet, and the hours that are.
  CREATE TABLE hour_readings (
    device_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    PRIMARY KEY (device_id, hour)
  ) WITHOUT ROWID;
  CREATE TABLE hours_written (
    device_id TEXT NOT NULL,
    from_hour INTEGER NOT NULL,
    to_hour INTEGER NOT NULL,
    PRIMARY KEY (device_id, from_hour)
  ) WITHOUT ROWID;

  -- Destinations: a position in each lane of the log, what they refused, and what they lack for good.
  CREATE TABLE destination (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    identity TEXT NOT NULL,
    UNIQUE (name, identity)
  );
  CREATE TABLE position (
    destination_id INTEGER NOT NULL REFERENCES destination (id),
    lane TEXT NOT NULL,
    block INTEGER NOT NULL,
    line INTEGER NOT NULL,
    PRIMARY KEY (destination_id, lane)
  ) WITHOUT ROWID;
  CREATE TABLE lack (
    destination_id INTEGER NOT NULL REFERENCES destination (id),
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (destination_id, device_id, from_ns)
  ) WITHOUT ROWID;

  -- Points that a destination refused (destination_id set), and records of the API that could not be understood.
  CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY,
    destination_id INTEGER REFERENCES destination (id),
    source TEXT NOT NULL,
    content TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_ms INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX quarantine_once ON quarantine (ifnull(destination_id, 0), source, content);

  -- Alerts: what their lines carry as first seen, and the last state that became a point.
  CREATE TABLE alert (
    alert_id INTEGER PRIMARY KEY,
    device_id TEXT,
    device_name TEXT,
    kind TEXT,
    sensor TEXT,
    opened_ns INTEGER NOT NULL,
    state_digest TEXT NOT NULL,
    state_ns INTEGER NOT NULL,
    is_open INTEGER NOT NULL,
    is_listed INTEGER NOT NULL
  );
  CREATE INDEX alert_opened ON alert (opened_ns);
  `,
  STEP_2,
  STEP_3,
];

/** Marks a file as ours ("TdMk"), so that another program's database is never taken for the state. */
export const APPLICATION_ID = 0x54_64_4d_6b;
