/**
 * The missing points of each destination: ranges of a device whose points were archived but are not in the destination,
 * by reason.
 *
 * Promise: the ranges of one device and reason neither touch nor overlap, and adding a range never removes another.
 */
import type Database from 'better-sqlite3';
import type { Interval } from '../../core/intervals.ts';
import { readEstimate } from '../../core/state/job-args.ts';
import {
  type FoundPoints,
  isRepairable,
  type MissingPoints,
  type MissingReason,
  type MissingSum,
  type RetentionEstimate,
} from '../../core/state/log.ts';
import { DAY_NS, type EpochNs, maxNs, minNs } from '../../core/time.ts';

/** The points that a destination will not get from the log, by device, range and reason. */
export interface MissingTable {
  /** Adds ranges; adjacent ones of one device and reason are joined. Needs a transaction. */
  add(destinationId: number, missing: readonly MissingPoints[]): void;
  /**
   * Removes points that were found in the destination, from those that were skipped or cleared before it got them.
   * Needs a transaction.
   */
  take(destinationId: number, found: FoundPoints): void;
  /**
   * Removes a range from the missing points that `among` selects; their parts before and after it stay. Needs a
   * transaction.
   */
  cut(destinationId: number, found: FoundPoints, among: (missing: MissingPoints) => boolean): void;
  /** Removes all missing points of a destination. Needs a transaction. */
  dropAll(destinationId: number): void;
  /** The missing points of a device that overlap a range, ordered by time. */
  overlapping(destinationId: number, deviceId: string, range: Interval): MissingPoints[];
  /** All missing points of a destination, ordered by device, reason and time. */
  list(destinationId: number): MissingPoints[];
  /** The sums of the missing points, ordered by reason. */
  sums(destinationId: number): MissingSum[];
  /** Stores the retention that a comparison shows and the destination does not report. Needs a transaction. */
  keepEstimate(destinationId: number, estimate: RetentionEstimate): void;
  /** The last stored retention; `null` for none. */
  estimate(destinationId: number): RetentionEstimate | null;
}

interface SumRow extends Omit<MissingRow, 'device_id'> {
  readonly devices: bigint;
}

interface MissingRow {
  readonly device_id: string;
  readonly reason: MissingReason;
  readonly from_ns: EpochNs;
  readonly to_ns: EpochNs;
  readonly points: bigint;
}

/**
 * The largest distance at which two ranges are joined. A retention is an age: points between two points that were too
 * old were too old as well, and a year of history must not become a row for every page. The other reasons are exact.
 */
const BRIDGE_NS: Readonly<Record<MissingReason, bigint>> = {
  beyond_retention: DAY_NS,
  skipped_destination: 0n,
  cleared: 0n,
  dropped: 0n,
};

/** Prepares the missing points of an open database. */
export function createMissingTable(db: Database.Database): MissingTable {
  const rows = prepareRows(db);
  return {
    add: (destinationId, missing) => {
      for (const each of missing) addMissing(rows, destinationId, each);
    },
    cut: (destinationId, found, among) => cutMissing(rows, destinationId, { found, among }),
    take: (destinationId, found) => cutMissing(rows, destinationId, { found, among: isRepairable }),
    dropAll: (destinationId) => void rows.removeAll.run(destinationId),
    overlapping: (destinationId, deviceId, range) => overlapping(rows, destinationId, deviceId, range),
    list: (destinationId) => rows.all.all(destinationId).map(toMissing),
    sums: (destinationId) =>
      rows.sums.all(destinationId).map(({ reason, points, devices, from_ns, to_ns }) => ({
        reason,
        points: Number(points),
        devices: Number(devices),
        fromNs: from_ns,
        toNs: to_ns,
      })),
    keepEstimate: (destinationId, estimate) => void rows.keepEstimate.run(JSON.stringify(estimate), destinationId),
    estimate: (destinationId) => {
      const text = rows.estimate.get(destinationId);
      return text === undefined ? null : readEstimate(JSON.parse(text));
    },
  };
}

type Rows = ReturnType<typeof prepareRows>;

function prepareRows(db: Database.Database) {
  const columns = 'SELECT device_id, reason, from_ns, to_ns, points FROM missing';
  // Stored by the identity, because the number of a removed destination may be used again.
  const estimateKey = "'retention_estimate ' || name || ' ' || identity";
  return {
    keepEstimate: db.prepare<[string, number]>(
      `INSERT OR REPLACE INTO fact (key, value) SELECT ${estimateKey}, ? FROM destination WHERE id = ?`,
    ),
    estimate: db
      .prepare<[number], string>(
        `SELECT value FROM fact WHERE key = (SELECT ${estimateKey} FROM destination WHERE id = ?)`,
      )
      .pluck(),
    // The ranges of a device and reason do not overlap, so of the ranges that begin before, only the last one can reach
    // this far.
    near: db.prepare<{ id: number; device: string; reason: string; from: EpochNs; to: EpochNs }, MissingRow>(
      `${columns}
       WHERE destination_id = @id AND device_id = @device AND reason = @reason AND from_ns <= @to AND to_ns >= @from
         AND from_ns >= ifnull((SELECT max(from_ns) FROM missing
           WHERE destination_id = @id AND device_id = @device AND reason = @reason AND from_ns <= @from), @from)`,
    ),
    remove: db.prepare<[number, string, string, EpochNs]>(
      'DELETE FROM missing WHERE destination_id = ? AND device_id = ? AND reason = ? AND from_ns = ?',
    ),
    removeAll: db.prepare<[number]>('DELETE FROM missing WHERE destination_id = ?'),
    insert: db.prepare(
      'INSERT INTO missing (destination_id, device_id, reason, from_ns, to_ns, points) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    overlapping: db.prepare<[number, string, EpochNs, EpochNs], MissingRow>(
      `${columns} WHERE destination_id = ? AND device_id = ? AND from_ns < ? AND to_ns > ? ORDER BY from_ns`,
    ),
    all: db.prepare<[number], MissingRow>(`${columns} WHERE destination_id = ? ORDER BY device_id, reason, from_ns`),
    sums: db.prepare<[number], SumRow>(
      `SELECT reason, sum(points) AS points, count(DISTINCT nullif(device_id, '')) AS devices,
         min(from_ns) AS from_ns, max(to_ns) AS to_ns
       FROM missing WHERE destination_id = ? GROUP BY reason ORDER BY reason`,
    ),
  };
}

/** Adds a range, joined with the ranges of its device and reason that it touches. */
function addMissing({ near, remove, insert }: Rows, id: number, missing: MissingPoints): void {
  const { deviceId, reason, fromNs, toNs } = missing;
  if (fromNs >= toNs) return;
  const bridge = BRIDGE_NS[reason];
  let merged = missing;
  for (const row of near.all({ id, device: deviceId, reason, from: fromNs - bridge, to: toNs + bridge })) {
    remove.run(id, deviceId, reason, row.from_ns);
    merged = join(merged, toMissing(row));
  }
  insert.run(id, deviceId, reason, merged.fromNs, merged.toNs, merged.points);
}

/** Removes a range from the missing points that `among` selects. */
function cutMissing(
  rows: Rows,
  id: number,
  { found, among }: { readonly found: FoundPoints; readonly among: (missing: MissingPoints) => boolean },
): void {
  const { deviceId, fromNs, toNs, points } = found;
  for (const missing of overlapping(rows, id, deviceId, { from: fromNs, to: toNs }).filter(among)) {
    const { reason } = missing;
    rows.remove.run(id, deviceId, reason, missing.fromNs);
    const rests = [
      { from: missing.fromNs, to: fromNs },
      { from: toNs, to: missing.toNs },
    ].filter(({ from, to }) => from < to);
    // The distribution of the points over a range is not recorded. The points that were found are removed; the others
    // may be missing.
    const left = Math.max(missing.points - points, rests.length);
    rests.forEach(({ from, to }, index) => {
      rows.insert.run(id, deviceId, reason, from, to, index === 0 ? left - (rests.length - 1) : 1);
    });
    // Other ranges that may be missing keep their part of the points, and no more.
    const others = reason === 'skipped_destination' ? Math.min(found.left ?? 0, missing.points) : 0;
    if (others === 0) continue;
    rows.insert.run(id, deviceId, reason, maxNs(missing.fromNs, fromNs), minNs(missing.toNs, toNs), others);
  }
}

function overlapping(rows: Rows, id: number, deviceId: string, { from, to }: Interval): MissingPoints[] {
  return rows.overlapping.all(id, deviceId, to, from).map(toMissing);
}

function join(a: MissingPoints, b: MissingPoints): MissingPoints {
  return { ...a, fromNs: minNs(a.fromNs, b.fromNs), toNs: maxNs(a.toNs, b.toNs), points: a.points + b.points };
}

function toMissing(row: MissingRow): MissingPoints {
  return {
    deviceId: row.device_id,
    fromNs: row.from_ns,
    toNs: row.to_ns,
    reason: row.reason,
    points: Number(row.points),
  };
}
