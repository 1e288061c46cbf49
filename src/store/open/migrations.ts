/**
 * The shape of the state file as numbered steps of SQL. A released step never changes. SQLite's `user_version` counts
 * the steps that were done.
 *
 * Times in columns named `_ns` are nanoseconds since 1970, in `_ms` milliseconds; hours and days count from 1970 too.
 */
import { STEP_1, STEP_2 } from './first-steps.ts';

/** Marks a file as ours ("TdMk"), so that another program's database is never mistaken for the state. */
export const APPLICATION_ID = 0x54_64_4d_6b;

const STEP_3 = `
  -- Since when (server's time) answers have been missing an overlap reading that they had to contain, and whether it
  -- counts as gone by now. A row is deleted when an answer contains the reading.
  CREATE TABLE missed_anchor (
    device_id TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    is_gone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (device_id, at_ns)
  ) WITHOUT ROWID;
`;

const STEP_4 = `
  -- The watermark of the last coverage point; NULL where it had none.
  ALTER TABLE device ADD COLUMN watermark_ns INTEGER;
  -- An alert as last observed: rule, condition, threshold, status, value, count; JSON.
  ALTER TABLE alert ADD COLUMN facts TEXT;
`;

const STEP_5 = `
  -- The range of a device that only empty answers cover: when they began, how many came, how often they were
  -- confirmed since they were believed, and when the range is requested once more (NULL: never).
  CREATE TABLE empty_range (
    device_id TEXT PRIMARY KEY,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    answers INTEGER NOT NULL,
    confirmed INTEGER NOT NULL,
    due_ms INTEGER
  ) WITHOUT ROWID;
`;

const STEP_6 = `
  -- Reasons are codes.
  UPDATE gap SET reason = CASE reason
    WHEN 'beyond plan' THEN 'beyond_plan' WHEN 'beyond allowance' THEN 'over_quota'
    WHEN 'page not understood' THEN 'page_rejected' WHEN 'device unreachable' THEN 'unreachable'
    WHEN 'device gone' THEN 'device_gone' ELSE reason END;
  UPDATE lack SET reason = CASE reason
    WHEN 'beyond retention' THEN 'beyond_retention' WHEN 'set aside' THEN 'skipped_destination' ELSE reason END;
`;

/** The stored names of a lane and of a kind of job. */
const STEP_7 = `
  UPDATE request SET lane = 'idle-poll' WHERE lane = 'sweep';
  UPDATE job SET kind = 'repair' WHERE kind = 'mend';
`;

const STEP_8 = `
  -- Unfinished rechecks: the range of each device, what of it is still to be read again (JSON, pairs of times), and
  -- when the last page of it was read.
  CREATE TABLE recheck (
    device_id TEXT PRIMARY KEY,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    unread TEXT NOT NULL,
    at_ms INTEGER NOT NULL
  ) WITHOUT ROWID;
`;

const STEP_9 = `
  -- One name for a thing, here as in the program.
  ALTER TABLE lateness RENAME COLUMN settle_ms TO grace_period_ms;
  ALTER TABLE missed_anchor RENAME TO missed_overlap;
  ALTER TABLE tie RENAME TO time_offset;
  ALTER TABLE lack RENAME TO missing;
  ALTER TABLE standing RENAME TO stall;
  ALTER TABLE stall RENAME COLUMN place TO position;
  ALTER TABLE stall RENAME COLUMN stood_ms TO stalled_ms;
  ALTER TABLE stall RENAME COLUMN aside_to TO skipped_to;
  -- Why a destination is blocked is a fact (blocked.*) since this version.
  ALTER TABLE stall DROP COLUMN held;
  ALTER TABLE replay RENAME COLUMN asked TO args;
  ALTER TABLE replay RENAME COLUMN place TO position;
  ALTER TABLE replay RENAME COLUMN begun_ms TO started_ms;
  ALTER TABLE job RENAME COLUMN asked_by TO requested_by;
  ALTER TABLE job RENAME COLUMN asked_ms TO requested_ms;
  ALTER TABLE job RENAME COLUMN is_cancel_asked TO is_cancel_requested;
  ALTER TABLE job RENAME COLUMN asker_beat TO follower_beat;
`;

const STEP_10 = `
  -- When a request was booked by the local clock; NULL in bookings of before.
  ALTER TABLE request ADD COLUMN local_ms INTEGER;
`;

const STEP_11 = `
  -- Windows of history that only empty answers cover, below stored readings that were too far away to support these:
  -- when they were called empty, and when they are requested once more.
  CREATE TABLE empty_window (
    device_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,
    PRIMARY KEY (device_id, from_ns)
  ) WITHOUT ROWID;
`;

const STEP_12 = `
  -- A block may have several frames of zstd since this version: an earlier one would read the first of them alone.
`;

/** Each step is one transaction. */
export const MIGRATIONS: readonly string[] = [
  STEP_1,
  STEP_2,
  STEP_3,
  STEP_4,
  STEP_5,
  STEP_6,
  STEP_7,
  STEP_8,
  STEP_9,
  STEP_10,
  STEP_11,
  STEP_12,
];
