/**
 * The gaps of a device and related records: gaps with a reason, stored readings that answers no longer contain, the
 * unverified empty range, the empty windows of history, the day that was last read again, and the progress of a
 * recheck.
 */
import type Database from 'better-sqlite3';
import { normalize } from '../../core/intervals.ts';
import type {
  EmptyRange,
  EmptyWindow,
  Gap,
  GapReason,
  MissedOverlap,
  RecheckProgress,
  TelemetryStore,
} from '../../core/state/telemetry.ts';
import { DAY_MS, type EpochNs } from '../../core/time.ts';
import { createCache } from '../transactions.ts';

/** How many devices are cached: their rows are requested often and rarely exist. */
const REMEMBERED = 16_384;

interface GapRow {
  readonly device_id: string;
  readonly from_ns: EpochNs;
  readonly to_ns: EpochNs;
  readonly reason: GapReason;
  readonly retry_at_ms: bigint;
}

/** Prepares the gaps of an open database. Writing calls need a transaction. */
export function createGaps(db: Database.Database): Pick<TelemetryStore, 'gaps' | 'nameGap' | 'clearGaps'> {
  const columns = 'SELECT device_id, from_ns, to_ns, reason, retry_at_ms FROM gap';
  const all = db.prepare<[], GapRow>(`${columns} ORDER BY device_id, from_ns`);
  const ofDevice = db.prepare<[string], GapRow>(`${columns} WHERE device_id = +? ORDER BY from_ns`);
  const name = db.prepare(
    'INSERT OR REPLACE INTO gap (device_id, from_ns, to_ns, reason, retry_at_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const clear = db.prepare('DELETE FROM gap WHERE device_id = ?');
  const remove = db.prepare('DELETE FROM gap WHERE device_id = ? AND from_ns = ?');
  const known = createCache<readonly Gap[]>(db, (deviceId) => ofDevice.all(deviceId).map(toGap), REMEMBERED);
  const save = ({ deviceId, fromNs, toNs, reason, retryAtMs }: Gap): void =>
    void name.run(deviceId, fromNs, toNs, reason, Math.ceil(retryAtMs));
  return {
    gaps: (deviceId) => (deviceId === undefined ? all.all().map(toGap) : known.get(deviceId)),
    // The newest name for a time counts. Older ones keep the parts that it does not include.
    nameGap: (gap) => {
      const { deviceId, fromNs, toNs } = gap;
      const older = known.get(deviceId).filter((each) => each.fromNs < toNs && fromNs < each.toNs);
      known.drop(deviceId);
      for (const each of older) {
        if (each.fromNs === fromNs) continue;
        remove.run(deviceId, each.fromNs);
        if (each.fromNs < fromNs) save({ ...each, toNs: fromNs });
        if (toNs < each.toNs) save({ ...each, fromNs: toNs });
      }
      save(gap);
    },
    clearGaps: (deviceId) => {
      known.drop(deviceId);
      clear.run(deviceId);
    },
  };
}

function toGap(row: GapRow): Gap {
  return {
    deviceId: row.device_id,
    fromNs: row.from_ns,
    toNs: row.to_ns,
    reason: row.reason,
    retryAtMs: Number(row.retry_at_ms),
  };
}

interface OverlapRow {
  readonly at_ns: EpochNs;
  readonly since_ms: bigint;
  readonly is_gone: bigint;
}

interface MissedOverlapTable
  extends Pick<TelemetryStore, 'missedOverlaps' | 'saveMissedOverlap' | 'dropMissedOverlaps'> {
  /** Drops the cached data of a device whose rows are removed. */
  dropMemory(deviceId: string): void;
}

/** Prepares the missed overlap readings of an open database. Writing calls need a transaction. */
export function createMissedOverlaps(db: Database.Database): MissedOverlapTable {
  const ofDevice = db.prepare<[string], OverlapRow>(
    'SELECT at_ns, since_ms, is_gone FROM missed_overlap WHERE device_id = +? ORDER BY at_ns',
  );
  const keep = db.prepare(
    'INSERT OR REPLACE INTO missed_overlap (device_id, at_ns, since_ms, is_gone) VALUES (?, ?, ?, ?)',
  );
  const drop = db.prepare('DELETE FROM missed_overlap WHERE device_id = ? AND at_ns = ?');
  const known = createCache<readonly MissedOverlap[]>(
    db,
    (deviceId) => ofDevice.all(deviceId).map(toOverlap),
    REMEMBERED,
  );
  return {
    missedOverlaps: known.get,
    saveMissedOverlap: (deviceId, { at, sinceMs, isGone }) => {
      known.drop(deviceId);
      keep.run(deviceId, at, Math.floor(sinceMs), isGone ? 1 : 0);
    },
    dropMissedOverlaps: (deviceId, ats) => {
      known.drop(deviceId);
      for (const at of ats) drop.run(deviceId, at);
    },
    dropMemory: known.drop,
  };
}

function toOverlap({ at_ns, since_ms, is_gone }: OverlapRow): MissedOverlap {
  return { at: at_ns, sinceMs: Number(since_ms), isGone: is_gone === 1n };
}

interface EmptyRangeRow {
  readonly device_id: string;
  readonly from_ns: EpochNs;
  readonly to_ns: EpochNs;
  readonly since_ms: bigint;
  readonly answers: bigint;
  readonly confirmed: bigint;
  readonly due_ms: bigint | null;
}

interface EmptyRangeTable extends Pick<TelemetryStore, 'emptyRange' | 'dueEmptyRanges' | 'saveEmptyRange'> {
  /** Drops the cached data of a device whose row is removed. */
  dropMemory(deviceId: string): void;
}

/** Prepares the ranges that only empty answers cover. `saveEmptyRange` needs a transaction. */
export function createEmptyRanges(db: Database.Database): EmptyRangeTable {
  const columns = 'SELECT device_id, from_ns, to_ns, since_ms, answers, confirmed, due_ms FROM empty_range';
  const ofDevice = db.prepare<[string], EmptyRangeRow>(`${columns} WHERE device_id = ?`);
  const due = db
    .prepare<[number, number], string>(
      `SELECT device_id FROM (SELECT device_id, due_ms FROM empty_range UNION ALL SELECT device_id, due_ms FROM empty_window)
        WHERE (due_ms <= ? OR due_ms > ?)
        AND device_id NOT IN (SELECT device_id FROM device WHERE gone_since_ms IS NOT NULL)
        GROUP BY device_id ORDER BY min(due_ms)`,
    )
    .pluck();
  const keep = db.prepare(
    `INSERT OR REPLACE INTO empty_range (device_id, from_ns, to_ns, since_ms, answers, confirmed, due_ms)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const drop = db.prepare('DELETE FROM empty_range WHERE device_id = ?');
  const known = createCache<EmptyRange | null>(
    db,
    (deviceId) => {
      const row = ofDevice.get(deviceId);
      return row === undefined ? null : toEmptyRange(row);
    },
    REMEMBERED,
  );
  return {
    emptyRange: known.get,
    // A due time more than a day away was recorded by a clock that was ahead.
    dueEmptyRanges: (nowMs) => due.all(Math.floor(nowMs), Math.floor(nowMs + DAY_MS)),
    saveEmptyRange: (deviceId, range) => {
      known.drop(deviceId);
      if (range === null) drop.run(deviceId);
      else {
        const { from, to, sinceMs, answers, confirmed, dueMs } = range;
        keep.run(deviceId, from, to, Math.floor(sinceMs), answers, confirmed, dueMs === null ? null : Math.ceil(dueMs));
      }
    },
    dropMemory: known.drop,
  };
}

function toEmptyRange(row: EmptyRangeRow): EmptyRange {
  return {
    from: row.from_ns,
    to: row.to_ns,
    sinceMs: Number(row.since_ms),
    answers: Number(row.answers),
    confirmed: Number(row.confirmed),
    dueMs: row.due_ms === null ? null : Number(row.due_ms),
  };
}

interface EmptyWindowRow extends Pick<EmptyRangeRow, 'from_ns' | 'to_ns' | 'since_ms'> {
  readonly due_ms: bigint;
}

/** Prepares the windows of history that only empty answers cover. Writing calls need a transaction. */
export function createEmptyWindows(
  db: Database.Database,
): Pick<TelemetryStore, 'emptyWindows' | 'saveEmptyWindow' | 'dropEmptyWindow'> {
  const ofDevice = db.prepare<[string], EmptyWindowRow>(
    'SELECT from_ns, to_ns, since_ms, due_ms FROM empty_window WHERE device_id = +? ORDER BY from_ns DESC',
  );
  const keep = db.prepare(
    'INSERT OR REPLACE INTO empty_window (device_id, from_ns, to_ns, since_ms, due_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const drop = db.prepare('DELETE FROM empty_window WHERE device_id = ? AND from_ns = ?');
  return {
    emptyWindows: (deviceId) => ofDevice.all(deviceId).map(toEmptyWindow),
    saveEmptyWindow: (deviceId, { from, to, sinceMs, dueMs }) =>
      void keep.run(deviceId, from, to, Math.floor(sinceMs), Math.ceil(dueMs)),
    dropEmptyWindow: (deviceId, from) => void drop.run(deviceId, from),
  };
}

function toEmptyWindow({ from_ns, to_ns, since_ms, due_ms }: EmptyWindowRow): EmptyWindow {
  return { from: from_ns, to: to_ns, sinceMs: Number(since_ms), dueMs: Number(due_ms) };
}

interface RecheckRow {
  readonly from_ns: EpochNs;
  readonly to_ns: EpochNs;
  readonly unread: string;
  readonly at_ms: bigint;
}

/** Prepares the days that were read again, and the rechecks. Writing calls need a transaction. */
export function createRereads(
  db: Database.Database,
): Pick<TelemetryStore, 'rereadDays' | 'saveReread' | 'recheck' | 'saveRecheck'> {
  const all = db.prepare<[], { device_id: string; day: bigint }>('SELECT device_id, day FROM reread');
  const keep = db.prepare('INSERT OR REPLACE INTO reread (device_id, day) VALUES (?, ?)');
  const recheck = db.prepare<[string], RecheckRow>(
    'SELECT from_ns, to_ns, unread, at_ms FROM recheck WHERE device_id = ?',
  );
  const keepRecheck = db.prepare(
    'INSERT OR REPLACE INTO recheck (device_id, from_ns, to_ns, unread, at_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const dropRecheck = db.prepare('DELETE FROM recheck WHERE device_id = ?');
  return {
    rereadDays: () => new Map(all.all().map(({ device_id, day }) => [device_id, Number(day)])),
    saveReread: (deviceId, day) => void keep.run(deviceId, day),
    recheck: (deviceId) => {
      const row = recheck.get(deviceId);
      return row === undefined ? null : toRecheck(row);
    },
    saveRecheck: (deviceId, progress) => {
      if (progress === null) dropRecheck.run(deviceId);
      else {
        const { requested, unread, atMs } = progress;
        const pairs = unread.map(({ from, to }) => [String(from), String(to)]);
        keepRecheck.run(deviceId, requested.from, requested.to, JSON.stringify(pairs), Math.floor(atMs));
      }
    },
  };
}

function toRecheck({ from_ns, to_ns, unread, at_ms }: RecheckRow): RecheckProgress {
  const pairs: [string, string][] = JSON.parse(unread);
  return {
    requested: { from: from_ns, to: to_ns },
    unread: normalize(pairs.map(([from, to]) => ({ from: BigInt(from), to: BigInt(to) }))),
    atMs: Number(at_ms),
  };
}
