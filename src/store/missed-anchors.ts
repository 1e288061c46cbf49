/**
 * Held readings that empty answers have lacked, and since when.
 */
import type Database from 'better-sqlite3';
import type { MissedOverlap, TelemetryStore } from '../core/state/telemetry.ts';
import type { EpochNs } from '../core/time.ts';

interface Row {
  readonly at_ns: EpochNs;
  readonly since_ms: bigint;
  readonly is_gone: bigint;
}

export interface MissedAnchorTable
  extends Pick<TelemetryStore, 'missedOverlaps' | 'keepMissedOverlap' | 'dropMissedOverlaps'> {
  /** Drops what is remembered of a device, whose rows are removed. */
  dropMemory(deviceId: string): void;
}

/** Devices of which the rows are remembered: they are looked at with every page, and seldom there. */
const REMEMBERED = 16_384;

/** Prepares the table of an open database. The writing calls are for the inside of a transaction. */
export function createMissedAnchors(db: Database.Database): MissedAnchorTable {
  const ofDevice = db.prepare<[string], Row>(
    'SELECT at_ns, since_ms, is_gone FROM missed_anchor WHERE device_id = ? ORDER BY at_ns',
  );
  const keep = db.prepare(
    'INSERT OR REPLACE INTO missed_anchor (device_id, at_ns, since_ms, is_gone) VALUES (?, ?, ?, ?)',
  );
  const drop = db.prepare('DELETE FROM missed_anchor WHERE device_id = ? AND at_ns = ?');
  const known = new Map<string, readonly MissedOverlap[]>();
  return {
    missedOverlaps: (deviceId) => {
      const remembered = known.get(deviceId);
      if (remembered !== undefined) return remembered;
      const anchors = ofDevice.all(deviceId).map(toAnchor);
      if (known.size >= REMEMBERED) known.clear();
      // What a transaction has written may be taken back.
      if (!db.inTransaction) known.set(deviceId, anchors);
      return anchors;
    },
    keepMissedOverlap: (deviceId, { at, sinceMs, isGone }) => {
      known.delete(deviceId);
      keep.run(deviceId, at, Math.floor(sinceMs), isGone ? 1 : 0);
    },
    dropMissedOverlaps: (deviceId, ats) => {
      known.delete(deviceId);
      for (const at of ats) drop.run(deviceId, at);
    },
    dropMemory: (deviceId) => void known.delete(deviceId),
  };
}

function toAnchor({ at_ns, since_ms, is_gone }: Row): MissedOverlap {
  return { at: at_ns, sinceMs: Number(since_ms), isGone: is_gone === 1n };
}
