/**
 * The newest shape of the state file, for a state that is new: the steps of `migrations.ts` lead to the same in ten
 * times as long. `test/store/open/shape.test.ts` writes this file.
 */
export const SHAPE = `
  CREATE TABLE fact (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE request (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    lane TEXT NOT NULL,
    stream TEXT NOT NULL,
    device_id TEXT,
    status INTEGER,
    fault TEXT,
    new_readings INTEGER
  , local_ms INTEGER);
  CREATE INDEX request_at ON request (at_ms);
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
  , watermark_ns INTEGER) WITHOUT ROWID;
  CREATE TABLE device_name (
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (device_id, from_ns)
  ) WITHOUT ROWID;
  CREATE TABLE device_revision (device_id TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
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
  CREATE TABLE gap (
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    reason TEXT NOT NULL,
    retry_at_ms INTEGER NOT NULL,
    PRIMARY KEY (device_id, from_ns)
  ) WITHOUT ROWID;
  CREATE TABLE block (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    lane TEXT NOT NULL CHECK (lane IN ('live', 'history')),
    device_id TEXT,
    first_ns INTEGER,
    last_ns INTEGER,
    lines INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    data BLOB NOT NULL
  , at_ms INTEGER NOT NULL DEFAULT 0, level INTEGER NOT NULL DEFAULT 0, side_from_ns INTEGER, side_to_ns INTEGER);
  CREATE TABLE "time_offset" (
    device_id TEXT NOT NULL,
    recorded_ns INTEGER NOT NULL,
    sensor TEXT NOT NULL,
    field TEXT NOT NULL,
    written_ns INTEGER NOT NULL,
    PRIMARY KEY (device_id, recorded_ns, sensor, field)
  ) WITHOUT ROWID;
  CREATE TABLE day_sum (
    device_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    points INTEGER NOT NULL,
    hash_high INTEGER NOT NULL,
    hash_low INTEGER NOT NULL,
    PRIMARY KEY (device_id, day)
  ) WITHOUT ROWID;
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
  CREATE TABLE destination (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    identity TEXT NOT NULL, is_current INTEGER NOT NULL DEFAULT 0,
    UNIQUE (name, identity)
  );
  CREATE TABLE position (
    destination_id INTEGER NOT NULL REFERENCES destination (id),
    lane TEXT NOT NULL,
    block INTEGER NOT NULL,
    line INTEGER NOT NULL,
    PRIMARY KEY (destination_id, lane)
  ) WITHOUT ROWID;
  CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY,
    destination_id INTEGER REFERENCES destination (id),
    source TEXT NOT NULL,
    content TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_ms INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX quarantine_once ON quarantine (ifnull(destination_id, 0), source, content);
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
  , facts TEXT);
  CREATE INDEX alert_opened ON alert (opened_ns);
  CREATE INDEX block_lane ON block (lane, seq, lines);
  CREATE INDEX block_span ON block (device_id, first_ns, last_ns) WHERE first_ns IS NOT NULL;
  CREATE INDEX block_age ON block (lane, at_ms, seq);
  CREATE INDEX block_hot ON block (lane, device_id, seq, level, at_ms, bytes) WHERE level < 2;
  CREATE INDEX quarantine_of ON quarantine (destination_id);
  CREATE TABLE log_sum (
    lane TEXT NOT NULL,
    part INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (lane, part)
  ) WITHOUT ROWID;
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
  CREATE TRIGGER day_sum_added AFTER INSERT ON day_sum BEGIN
    UPDATE day_total SET readings = readings + new.readings, points = points + new.points;
  END;
  CREATE TRIGGER day_sum_changed AFTER UPDATE ON day_sum BEGIN
    UPDATE day_total SET readings = readings + new.readings - old.readings, points = points + new.points - old.points;
  END;
  CREATE TRIGGER day_sum_removed AFTER DELETE ON day_sum BEGIN
    UPDATE day_total SET readings = readings - old.readings, points = points - old.points;
  END;
  CREATE TABLE cleared (
    device_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('telemetry', 'other')),
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    points INTEGER NOT NULL,
    PRIMARY KEY (device_id, kind, from_ns),
    CHECK (from_ns < to_ns)
  ) WITHOUT ROWID;
  CREATE TABLE "stall" (
    destination_id INTEGER PRIMARY KEY REFERENCES destination (id) ON DELETE CASCADE,
    position TEXT NOT NULL,
    stalled_ms INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL,
    skipped_to INTEGER
  );
  CREATE TABLE lateness (
    device_id TEXT PRIMARY KEY,
    readings INTEGER NOT NULL,
    worst_ms INTEGER NOT NULL,
    grace_period_ms INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE reread (device_id TEXT PRIMARY KEY, day INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE day_text (
    device_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    points INTEGER NOT NULL,
    PRIMARY KEY (device_id, day)
  ) WITHOUT ROWID;
  CREATE INDEX tie_written ON "time_offset" (written_ns);
  CREATE TABLE "missing" (
    destination_id INTEGER NOT NULL REFERENCES destination (id),
    device_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    points INTEGER NOT NULL,
    PRIMARY KEY (destination_id, device_id, reason, from_ns),
    CHECK (from_ns < to_ns)
  ) WITHOUT ROWID;
  CREATE TABLE job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    args TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_ms INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    started_ms INTEGER,
    ended_ms INTEGER,
    is_cancel_requested INTEGER NOT NULL DEFAULT 0,
    follower_beat INTEGER NOT NULL DEFAULT 0,
    worker_beat INTEGER NOT NULL DEFAULT 0,
    progress TEXT,
    summary TEXT,
    message TEXT,
    exit_code INTEGER,
    CHECK ((ended_ms IS NULL) = (state IN ('waiting', 'running')))
  );
  CREATE INDEX job_open ON job (id) WHERE ended_ms IS NULL;
  CREATE INDEX block_side ON block (device_id, side_from_ns, side_to_ns) WHERE side_from_ns IS NOT NULL;
  CREATE TABLE replay (
    destination_id INTEGER PRIMARY KEY REFERENCES destination (id) ON DELETE CASCADE,
    args TEXT NOT NULL,
    position TEXT NOT NULL,
    counts TEXT NOT NULL,
    started_ms INTEGER NOT NULL
  );
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
  CREATE TABLE "missed_overlap" (
    device_id TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    is_gone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (device_id, at_ns)
  ) WITHOUT ROWID;
  CREATE TABLE empty_range (
    device_id TEXT PRIMARY KEY,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    answers INTEGER NOT NULL,
    confirmed INTEGER NOT NULL,
    due_ms INTEGER
  ) WITHOUT ROWID;
  CREATE TABLE recheck (
    device_id TEXT PRIMARY KEY,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    unread TEXT NOT NULL,
    at_ms INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE empty_window (
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,
    PRIMARY KEY (device_id, from_ns)
  ) WITHOUT ROWID;
  INSERT INTO day_total VALUES (1, 0, 0);
`;
