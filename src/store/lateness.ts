/**
 * How late readings of each device were seen to come, and which day of it was last read again.
 */
import type Database from 'better-sqlite3';
import { type LateRecord, NEVER_LATE, type TelemetryStore } from '../core/state/telemetry.ts';

export interface LatenessTable {
  read(deviceId: string): LateRecord;
  keep(deviceId: string, record: LateRecord): void;
}

/** Prepares the table of late readings of an open database. */
export function createLateness(db: Database.Database): LatenessTable {
  const read = db.prepare<[string], { readings: bigint; worst_ms: bigint; settle_ms: bigint }>(
    'SELECT readings, worst_ms, settle_ms FROM lateness WHERE device_id = ?',
  );
  const write = db.prepare(
    'INSERT OR REPLACE INTO lateness (device_id, readings, worst_ms, settle_ms) VALUES (?, ?, ?, ?)',
  );
  return {
    read: (deviceId: string): LateRecord => {
      const row = read.get(deviceId);
      if (row === undefined) return NEVER_LATE;
      return { readings: Number(row.readings), worstMs: Number(row.worst_ms), settleMs: Number(row.settle_ms) };
    },
    keep: (deviceId: string, { readings, worstMs, settleMs }: LateRecord): void => {
      write.run(deviceId, readings, Math.ceil(worstMs), Math.ceil(settleMs));
    },
  };
}

/** Prepares the table of days that were read again. */
export function createRereads(db: Database.Database): Pick<TelemetryStore, 'rereadDays' | 'keepReread'> {
  const all = db.prepare<[], { device_id: string; day: bigint }>('SELECT device_id, day FROM reread');
  const keep = db.prepare('INSERT OR REPLACE INTO reread (device_id, day) VALUES (?, ?)');
  return {
    rereadDays: () => new Map(all.all().map(({ device_id, day }) => [device_id, Number(day)])),
    keepReread: (deviceId, day) => {
      keep.run(deviceId, day);
    },
  };
}
