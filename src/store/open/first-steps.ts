/**
 * The shape of the state file as its first two versions had it: the first two steps of `migrations.ts`.
 */

/** The tables of the first release. */
export const STEP_1 = `
  -- Single facts: the workspace that the state belongs to, the account as last read, what was learnt of the service.
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

  -- Names by time: a name applies from from_ns on; the first one from 0.
  CREATE TABLE device_name (
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (device_id, from_ns)
  ) WITHOUT ROWID;

  -- Grows whenever what a commit is computed from changes: the compare-and-set of the state of a device.
  CREATE TABLE device_revision (device_id TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;

  -- The covered ranges, half-open, with the readings at their ends.
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

  -- Gaps that have a reason.
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

  -- Values that are written a nanosecond or more later, because their series has another value at their instant.
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

  -- Destinations: a position in each lane of the log, what they rejected, and the points that they are missing.
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

  -- Points that a destination rejected (destination_id set), and records of the API that could not be understood.
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
  `;

/** The archive: merged blocks, and the record of cleared lines. */
const ARCHIVE = `
  -- When a block was archived (its newest line, once merged), and how far it is merged: 0 as its page came, 1 with
  -- others of its day, 2 for good. Blocks from before this step count from now.
  ALTER TABLE block ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE block ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
  UPDATE block SET at_ms = CAST(unixepoch('subsec') * 1000 AS INTEGER);
  DROP INDEX block_lane;
  DROP INDEX block_span;
  CREATE INDEX block_lane ON block (lane, seq, lines);
  CREATE INDEX block_span ON block (device_id, first_ns, last_ns) WHERE first_ns IS NOT NULL;
  CREATE INDEX block_age ON block (lane, at_ms, seq);
  CREATE INDEX block_hot ON block (lane, device_id, seq, level, at_ms, bytes) WHERE level < 2;
  CREATE INDEX quarantine_of ON quarantine (destination_id);

  -- Running sums, which the triggers update: of 1024 blocks of the log each, and of all days.
  CREATE TABLE log_sum (
    lane TEXT NOT NULL,
    part INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (lane, part)
  ) WITHOUT ROWID;
  INSERT INTO log_sum SELECT lane, seq >> 10, count(*), sum(lines), sum(length(data)) FROM block GROUP BY 1, 2;
  CREATE TRIGGER block_added AFTER INSERT ON block BEGIN
    INSERT INTO log_sum (lane, part, blocks, lines, bytes)
    VALUES (new.lane, new.seq >> 10, 1, new.lines, length(new.data))
    ON CONFLICT DO UPDATE SET blocks = blocks + 1, lines = lines + excluded.lines, bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER block_sealed AFTER UPDATE ON block BEGIN
    UPDATE log_sum SET lines = lines + new.lines - old.lines, bytes = bytes + length(new.data) - length(old.data)
    WHERE lane = old.lane AND part = old.seq >> 10;
  END;
  CREATE TRIGGER block_removed AFTER DELETE ON block BEGIN
    UPDATE log_sum SET blocks = blocks - 1, lines = lines - old.lines, bytes = bytes - length(old.data)
    WHERE lane = old.lane AND part = old.seq >> 10;
    DELETE FROM log_sum WHERE lane = old.lane AND part = old.seq >> 10 AND blocks = 0;
  END;
  CREATE TABLE day_total (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    readings INTEGER NOT NULL,
    points INTEGER NOT NULL
  );
  INSERT INTO day_total SELECT 1, ifnull(sum(readings), 0), ifnull(sum(points), 0) FROM day_sum;
  CREATE TRIGGER day_sum_added AFTER INSERT ON day_sum BEGIN
    UPDATE day_total SET readings = readings + new.readings, points = points + new.points;
  END;
  CREATE TRIGGER day_sum_changed AFTER UPDATE ON day_sum BEGIN
    UPDATE day_total SET readings = readings + new.readings - old.readings, points = points + new.points - old.points;
  END;
  CREATE TRIGGER day_sum_removed AFTER DELETE ON day_sum BEGIN
    UPDATE day_total SET readings = readings - old.readings, points = points - old.points;
  END;

  -- What was cleared away: ranges of the lines of a device (empty: of none), those of readings ('telemetry') separate
  -- from all others ('other'), with how many points.
  CREATE TABLE cleared (
    device_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('telemetry', 'other')),
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    points INTEGER NOT NULL,
    PRIMARY KEY (device_id, kind, from_ns),
    CHECK (from_ns < to_ns)
  ) WITHOUT ROWID;

  -- How long each destination has had points to take and not moved. aside_to: it is skipped; what it has not
  -- acknowledged up to this block counts as missing.
  CREATE TABLE standing (
    destination_id INTEGER PRIMARY KEY REFERENCES destination (id) ON DELETE CASCADE,
    place TEXT NOT NULL,
    stood_ms INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL,
    aside_to INTEGER
  );
`;

/** Telemetry: how late readings of a device came, when a day was read again, texts. */
const TELEMETRY = `
  -- Readings that came inside covered ranges; settle_ms: the least grace period of the device since then.
  CREATE TABLE lateness (
    device_id TEXT PRIMARY KEY,
    readings INTEGER NOT NULL,
    worst_ms INTEGER NOT NULL,
    settle_ms INTEGER NOT NULL
  ) WITHOUT ROWID;

  -- The last day that was read again, days since 1970.
  CREATE TABLE reread (device_id TEXT PRIMARY KEY, day INTEGER NOT NULL) WITHOUT ROWID;

  -- How many points of a day are texts, which some databases do not keep. Of days before this step none are counted.
  CREATE TABLE day_text (
    device_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    points INTEGER NOT NULL,
    PRIMARY KEY (device_id, day)
  ) WITHOUT ROWID;
`;

/**
 * Delivery: the missing points of a destination (a range can be missing for several reasons); which identity has a
 * destination's name now; the offsets of duplicate timestamps, by the time at which they are written.
 */
const DELIVERY = `
  ALTER TABLE destination ADD COLUMN is_current INTEGER NOT NULL DEFAULT 0;
  UPDATE destination SET is_current = 1 WHERE id IN (SELECT max(id) FROM destination GROUP BY name);
  CREATE INDEX tie_written ON tie (written_ns);
  DROP TABLE lack;
  CREATE TABLE lack (
    destination_id INTEGER NOT NULL REFERENCES destination (id),
    device_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    points INTEGER NOT NULL,
    PRIMARY KEY (destination_id, device_id, reason, from_ns),
    CHECK (from_ns < to_ns)
  ) WITHOUT ROWID;
`;

/**
 * Jobs: the work that commands have requested from the daemon. Arguments, progress and summary are JSON; times are
 * local ones. The command and the daemon each increase their beat while they run.
 */
const JOBS = `
  CREATE TABLE job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    args TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    asked_ms INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    started_ms INTEGER,
    ended_ms INTEGER,
    is_cancel_asked INTEGER NOT NULL DEFAULT 0,
    asker_beat INTEGER NOT NULL DEFAULT 0,
    worker_beat INTEGER NOT NULL DEFAULT 0,
    progress TEXT,
    summary TEXT,
    message TEXT,
    exit_code INTEGER,
    CHECK ((ended_ms IS NULL) = (state IN ('waiting', 'running')))
  );
  CREATE INDEX job_open ON job (id) WHERE ended_ms IS NULL;
`;

/**
 * Reading the archive by time, and replays. side_*: the times of the first and the last line of a block that is not
 * telemetry, NULL if it has none; unknown for blocks that were archived before this step.
 */
const REPLAYS = `
  ALTER TABLE block ADD COLUMN side_from_ns INTEGER;
  ALTER TABLE block ADD COLUMN side_to_ns INTEGER;
  UPDATE block SET side_from_ns = 0, side_to_ns = 9223372036854775807;
  CREATE INDEX block_side ON block (device_id, side_from_ns, side_to_ns) WHERE side_from_ns IS NOT NULL;

  -- Unfinished replays: their arguments, positions and counts, as JSON.
  CREATE TABLE replay (
    destination_id INTEGER PRIMARY KEY REFERENCES destination (id) ON DELETE CASCADE,
    asked TEXT NOT NULL,
    place TEXT NOT NULL,
    counts TEXT NOT NULL,
    begun_ms INTEGER NOT NULL
  );
`;

/**
 * Records of the API that were dropped from the quarantine (a digest each, which identifies a repetition), and devices
 * that are being removed: up to which block and which item of the quarantine.
 */
const REMOVALS = `
  CREATE TABLE dropped_record (
    source TEXT NOT NULL,
    digest TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    dropped_ms INTEGER NOT NULL,
    PRIMARY KEY (source, digest)
  ) WITHOUT ROWID;
  CREATE TABLE forgetting (
    device_id TEXT PRIMARY KEY, tag TEXT NOT NULL, block INTEGER NOT NULL DEFAULT 0, item INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  -- Why a destination is blocked, as its delivery reported at seen_ms.
  ALTER TABLE standing ADD COLUMN held TEXT;
`;

/** The second version of the shape. */
export const STEP_2 = [ARCHIVE, TELEMETRY, DELIVERY, JOBS, REPLAYS, REMOVALS].join('\n');
