/**
 * What each destination is missing for good: ranges of a device of which points were archived and are not there, with the
 * reason.
 *
 * Promise: of one device and reason no two ranges touch or overlap, and none is ever forgotten by adding another.
 */
import type Database from 'better-sqlite3';
import type { FoundPoints, MissingPoints, MissingReason, MissingSum } from '../../core/state/log.ts';
import { DAY_NS, type EpochNs, maxNs, minNs } from '../../core/time.ts';

export interface MissingTable {
  /** Adds ranges; those of one device and reason that touch become one. Only inside a transaction. */
  add(destinationId: number, missing: readonly MissingPoints[]): void;
  /**
   * Takes out what was found to be there, of what was skipped or cleared before it came. Only inside a transaction.
   */
  take(destinationId: number, found: FoundPoints): void;
  /**
   * Takes a range out of those that `among` names: what they have before and after it is missing still. Only inside a
   * transaction.
   */
  cut(destinationId: number, found: FoundPoints, among: (missing: MissingPoints) => boolean): void;
  /** By device, reason and time. */
  list(destinationId: number): MissingPoints[];
  /** The sums of each reason, by reason. */
  sums(destinationId: number): MissingSum[];
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
 * How far two ranges may lie apart to become one. A retention is an age: what lies between two points that were too
 * old is too old as well, and a year of history is not to become a row for every page. The other reasons are exact.
 */
const BRIDGE_NS: Readonly<Record<MissingReason, bigint>> = {
  'beyond retention': DAY_NS,
  'set aside': 0n,
  cleared: 0n,
  dropped: 0n,
};

/** Prepares the missing points of an open database. */
export function createMissingTable(db: Database.Database): MissingTable {
  // No two of them overlap: of those that begin before, only the last one can reach so far.
  const near = db.prepare<{ id: number; device: string; reason: string; from: EpochNs; to: EpochNs }, MissingRow>(
    `SELECT device_id, reason, from_ns, to_ns, points FROM lack
     WHERE destination_id = @id AND device_id = @device AND reason = @reason AND from_ns <= @to AND to_ns >= @from
       AND from_ns >= ifnull((SELECT max(from_ns) FROM lack
         WHERE destination_id = @id AND device_id = @device AND reason = @reason AND from_ns <= @from), @from)`,
  );
  const remove = db.prepare<[number, string, string, EpochNs]>(
    'DELETE FROM lack WHERE destination_id = ? AND device_id = ? AND reason = ? AND from_ns = ?',
  );
  const insert = db.prepare(
    'INSERT INTO lack (destination_id, device_id, reason, from_ns, to_ns, points) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const across = db.prepare<[number, string, EpochNs, EpochNs], MissingRow>(
    `SELECT device_id, reason, from_ns, to_ns, points FROM lack
     WHERE destination_id = ? AND device_id = ? AND from_ns < ? AND to_ns > ?`,
  );
  const all = db.prepare<[number], MissingRow>(
    `SELECT device_id, reason, from_ns, to_ns, points FROM lack
     WHERE destination_id = ? ORDER BY device_id, reason, from_ns`,
  );
  const sums = db.prepare<[number], SumRow>(
    `SELECT reason, sum(points) AS points, count(DISTINCT nullif(device_id, '')) AS devices,
       min(from_ns) AS from_ns, max(to_ns) AS to_ns
     FROM lack WHERE destination_id = ? GROUP BY reason ORDER BY reason`,
  );
  const nearTo = (
    id: number,
    { deviceId, reason, fromNs, toNs }: Omit<MissingPoints, 'points'>,
    bridge: bigint,
  ): MissingRow[] => near.all({ id, device: deviceId, reason, from: fromNs - bridge, to: toNs + bridge });
  const addOne = (destinationId: number, missing: MissingPoints): void => {
    const { deviceId, reason } = missing;
    if (missing.fromNs >= missing.toNs) return;
    const bridge = BRIDGE_NS[reason];
    let merged = missing;
    for (const row of nearTo(destinationId, missing, bridge)) {
      remove.run(destinationId, deviceId, reason, row.from_ns);
      merged = join(merged, toMissing(row));
    }
    insert.run(destinationId, deviceId, reason, merged.fromNs, merged.toNs, merged.points);
  };
  const cut: MissingTable['cut'] = (destinationId, found, among) => {
    const { deviceId, fromNs, toNs, points } = found;
    for (const row of across.all(destinationId, deviceId, toNs, fromNs)) {
      const missing = toMissing(row);
      if (!among(missing)) continue;
      const { reason } = missing;
      remove.run(destinationId, deviceId, reason, missing.fromNs);
      const rests = [
        { from: missing.fromNs, to: fromNs },
        { from: toNs, to: missing.toNs },
      ].filter(({ from, to }) => from < to);
      // How many of its points lie where is not known to the point: what was found is not missing, the rest may be.
      const left = Math.max(missing.points - points, rests.length);
      rests.forEach(({ from, to }, index) => {
        insert.run(destinationId, deviceId, reason, from, to, index === 0 ? left - (rests.length - 1) : 1);
      });
      // Others of it that may be missing keep their part of it, and nothing of the rest.
      const others = reason === 'set aside' ? Math.min(found.left ?? 0, missing.points) : 0;
      if (others === 0) continue;
      insert.run(destinationId, deviceId, reason, maxNs(missing.fromNs, fromNs), minNs(missing.toNs, toNs), others);
    }
  };
  return {
    cut,
    take: (destinationId, found) => cut(destinationId, found, ({ reason }) => REPAIRABLE.includes(reason)),
    add: (destinationId, missing) => {
      for (const each of missing) addOne(destinationId, each);
    },
    list: (destinationId) => all.all(destinationId).map(toMissing),
    sums: (destinationId) =>
      sums.all(destinationId).map(({ reason, points, devices, from_ns, to_ns }) => ({
        reason,
        points: Number(points),
        devices: Number(devices),
        fromNs: from_ns,
        toNs: to_ns,
      })),
  };
}

/** What a repair can bring back: what is older than a destination keeps stays so. */
const REPAIRABLE: readonly MissingReason[] = ['set aside', 'cleared'];

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
