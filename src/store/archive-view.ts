/**
 * The archive as a command reads it that only looks: no lock, nothing written, every look short, so that whoever works
 * with the state meanwhile is never held up.
 */
import type Database from 'better-sqlite3';
import type { ArchiveWalker, WalkSpan } from '../core/state/archive.ts';
import type { EpochNs } from '../core/time.ts';
import { createArchiveWalker } from './archive/walker.ts';
import { explainedCalls } from './explain.ts';
import { openReading } from './open/read-only.ts';
import { hasShape } from './shape.ts';

/** Points that were archived and are not any more. */
export interface ClearedPoints {
  readonly points: number;
  readonly devices: number;
  /** From the first of them to the end of the last. */
  readonly from: EpochNs;
  readonly to: EpochNs;
}

export interface ArchiveView extends ArchiveWalker {
  /** How many devices are known. */
  deviceCount(): number;
  /** Which of the ids nothing is known of. */
  strangers(deviceIds: readonly string[]): readonly string[];
  deviceIds(): readonly string[];
  /** What was cleared of a stretch, at most: whole stretches are remembered; `null` for nothing. */
  cleared(span: WalkSpan): ClearedPoints | null;
  close(): void;
}

/**
 * Opens the archive in a directory.
 *
 * @returns `null` where there is no state, or nothing in it yet. @throws UserError (exit 1) where it cannot be read.
 */
export function openArchiveView(directory: string): ArchiveView | null {
  return openReading(directory, (db, path) => {
    if (!hasShape(db, path)) return null;
    return explainedCalls(path, { ...createArchiveWalker(db), ...createFacts(db), close: () => void db.close() });
  });
}

interface ClearedRow {
  readonly points: bigint | null;
  readonly devices: bigint;
  readonly from: EpochNs;
  readonly to: EpochNs;
}

function createFacts(db: Database.Database): Omit<ArchiveView, keyof ArchiveWalker | 'close'> {
  const count = db.prepare<[], bigint>('SELECT count(*) FROM device').pluck();
  const ids = db.prepare<[], string>('SELECT device_id FROM device ORDER BY device_id').pluck();
  const known = db
    .prepare<[string, string], bigint>(
      'SELECT 1 FROM device WHERE device_id = ? UNION SELECT 1 FROM block WHERE device_id = ?',
    )
    .pluck();
  const cleared = db.prepare<[Readonly<Record<string, unknown>>], ClearedRow>(
    `SELECT sum(points) AS points, count(DISTINCT nullif(device_id, '')) AS devices,
       min(from_ns) AS "from", max(to_ns) AS "to"
     FROM cleared WHERE from_ns < @to AND to_ns > @from AND (kind = 'telemetry' OR @all)
       AND (@devices IS NULL OR device_id IN (SELECT value FROM json_each(@devices)))`,
  );
  return {
    deviceCount: () => Number(count.get() ?? 0n),
    deviceIds: () => ids.all(),
    strangers: (deviceIds) => deviceIds.filter((id) => known.get(id, id) === undefined),
    cleared: ({ from, to, devices, kinds }) => {
      const named = devices.length === 0 ? null : JSON.stringify(devices);
      const row = cleared.get({ from, to, all: kinds === 'all' ? 1 : 0, devices: named });
      if (row === undefined || row.points === null) return null;
      return { points: Number(row.points), devices: Number(row.devices), from: row.from, to: row.to };
    },
  };
}
