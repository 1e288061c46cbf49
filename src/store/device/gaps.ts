/**
 * Holes that have a name, and when they are worth another try.
 */
import type Database from 'better-sqlite3';
import type { Gap, GapReason, TelemetryStore } from '../../core/state/telemetry.ts';
import type { EpochNs } from '../../core/time.ts';

interface GapRow {
  readonly device_id: string;
  readonly from_ns: EpochNs;
  readonly to_ns: EpochNs;
  readonly reason: GapReason;
  readonly retry_at_ms: bigint;
}

/** Devices of which the gaps are remembered: they are looked at again and again, and seldom there. */
const REMEMBERED = 16_384;

/** Prepares the table of an open database. The writing calls are for the inside of a transaction. */
export function createGaps(db: Database.Database): Pick<TelemetryStore, 'gaps' | 'nameGap' | 'clearGaps'> {
  const columns = 'SELECT device_id, from_ns, to_ns, reason, retry_at_ms FROM gap';
  const all = db.prepare<[], GapRow>(`${columns} ORDER BY device_id, from_ns`);
  const ofDevice = db.prepare<[string], GapRow>(`${columns} WHERE device_id = ? ORDER BY from_ns`);
  const name = db.prepare(
    'INSERT OR REPLACE INTO gap (device_id, from_ns, to_ns, reason, retry_at_ms) VALUES (?, ?, ?, ?, ?)',
  );
  const clear = db.prepare('DELETE FROM gap WHERE device_id = ?');
  const known = new Map<string, readonly Gap[]>();
  return {
    gaps: (deviceId) => {
      if (deviceId === undefined) return all.all().map(toGap);
      const remembered = known.get(deviceId);
      if (remembered !== undefined) return remembered;
      const gaps = ofDevice.all(deviceId).map(toGap);
      if (known.size >= REMEMBERED) known.clear();
      // What a transaction has written may be taken back.
      if (!db.inTransaction) known.set(deviceId, gaps);
      return gaps;
    },
    nameGap: (gap) => {
      known.delete(gap.deviceId);
      name.run(gap.deviceId, gap.fromNs, gap.toNs, gap.reason, Math.ceil(gap.retryAtMs));
    },
    clearGaps: (deviceId) => {
      known.delete(deviceId);
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
