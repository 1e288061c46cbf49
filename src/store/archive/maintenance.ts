/**
 * The maintenance of the archive over one open database: compaction, clearing and the progress of destinations. Each
 * call is one transaction.
 */

import { statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import type { ArchiveMaintenance } from '../../core/state/archive.ts';
import { LOG_LANES, type LogLane } from '../../core/state/log.ts';
import type { MissingTable } from '../delivery/missing-points.ts';
import type { PositionTable } from '../delivery/positions.ts';
import { createRareRead, createWriter } from '../transactions.ts';
import { unpack } from './block-codec.ts';
import { createClearer, createLineRanges, createLosses, STEP_BLOCKS, STEP_BYTES } from './clearing.ts';
import { createCompactor } from './compaction.ts';

/**
 * Composes the maintenance.
 *
 * @param path the state file.
 */
export function createMaintenance(
  db: Database.Database,
  { positions, missing, path }: { positions: PositionTable; missing: MissingTable; path: string },
): ArchiveMaintenance {
  const write = createWriter(db);
  const compactor = createCompactor(db, positions);
  const skipped = createSkipped(db, positions, missing);
  const end = db.prepare<[], bigint>('SELECT ifnull(max(seq), 0) FROM block').pluck();
  return {
    ...createVacuum(db, path),
    compactionGroups: compactor.groups,
    compact: write(compactor.compact),
    clear: write(createClearer(db, positions, missing)),
    stall: skipped.stall,
    saveStall: write(skipped.saveStall),
    positionText: positions.text,
    endOfLog: () => Number(end.get() ?? 0n),
    skipBacklog: write(skipped.skipBacklog),
  };
}

/** Prepares measuring the state file, and returning its free pages to the file system. */
export function createVacuum(db: Database.Database, path: string): Pick<ArchiveMaintenance, 'size' | 'vacuum'> {
  const pageBytes = Number(db.pragma('page_size', { simple: true }));
  // Prepared once, because this is checked very often.
  const pages = db.prepare<[], bigint>('PRAGMA page_count').pluck();
  const freePages = db.prepare<[], bigint>('PRAGMA freelist_count').pluck();
  const freeBytes = (): number => Number(freePages.get()) * pageBytes;
  const inPages = createRareRead(db, () => {
    const free = freeBytes();
    return { usedBytes: Number(pages.get()) * pageBytes - free, freeBytes: free };
  });
  const vacuum = createWriter(db)((most: number) => db.pragma(`incremental_vacuum(${most})`));
  return {
    // The write-ahead log can shrink without a change of the state.
    size: () => ({ ...inPages(), walBytes: sizeOf(`${path}-wal`) }),
    vacuum: (most) => {
      vacuum(most);
      inPages.forget();
      return freeBytes();
    },
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

type Skipped = Pick<ArchiveMaintenance, 'stall' | 'saveStall' | 'skipBacklog'>;

interface StallRow {
  readonly position: string;
  readonly stalled_ms: bigint;
  readonly seen_ms: bigint;
  readonly skipped_to: bigint | null;
}

interface SkippedRow {
  readonly seq: bigint;
  readonly device_id: string | null;
  readonly bytes: bigint;
  readonly data: Buffer;
}

/** Prepares skipping of destinations that block the archive for too long. Writing calls need a transaction. */
function createSkipped(db: Database.Database, positions: PositionTable, missing: MissingTable): Skipped {
  const read = db.prepare<[number], StallRow>('SELECT * FROM stall WHERE destination_id = ?');
  const write = db.prepare(
    `INSERT OR REPLACE INTO stall (destination_id, position, stalled_ms, seen_ms, skipped_to)
     SELECT id, ?, ?, ?, ? FROM destination WHERE id = ?`,
  );
  const move = db.prepare('UPDATE stall SET position = ? WHERE destination_id = ?');
  const skipLane = createSkip(db, positions, missing);
  return {
    stall: (id) => {
      const row = read.get(id);
      if (row === undefined) return null;
      const skippedTo = row.skipped_to === null ? null : Number(row.skipped_to);
      return {
        position: row.position,
        stalledMs: Number(row.stalled_ms),
        seenMs: Number(row.seen_ms),
        skippedTo,
      };
    },
    saveStall: (id, stall) => {
      const { stalledMs, seenMs, skippedTo } = stall;
      write.run(stall.position, Math.floor(stalledMs), Math.floor(seenMs), skippedTo, id);
    },
    skipBacklog: (id) => {
      const row = read.get(id);
      // A destination that has acknowledged lines in the meantime has recovered: it gets the remaining lines.
      if (row === undefined || row.skipped_to === null || row.position !== positions.text(id)) return true;
      const skippedTo = Number(row.skipped_to);
      const isPast = LOG_LANES.map((lane) => skipLane(id, lane, skippedTo)).every(Boolean);
      move.run(positions.text(id), id);
      return isPast;
    },
  };
}

/**
 * Moves a destination past some blocks of a lane, and records them as its missing points.
 *
 * @returns whether it has reached `skippedTo`.
 */
function createSkip(db: Database.Database, positions: PositionTable, missing: MissingTable) {
  const next = db.prepare<[string, number, number], SkippedRow>(
    `SELECT seq, device_id, bytes, data FROM block
     WHERE lane = ? AND seq >= ? AND seq <= ? ORDER BY seq LIMIT ${STEP_BLOCKS + 1}`,
  );
  const ranges = createLineRanges(db);
  const lose = createLosses(db, missing);
  return (id: number, lane: LogLane, skippedTo: number): boolean => {
    const from = positions.read(id, lane);
    const { block, line } = from;
    let [taken, bytes, end] = [0, 0, null as bigint | null];
    let isPast = true;
    for (const row of next.all(lane, block, skippedTo)) {
      bytes += Number(row.bytes);
      if (taken > 0 && (bytes > STEP_BYTES || taken >= STEP_BLOCKS)) {
        isPast = false;
        break;
      }
      const lines = unpack(row.data).slice(Number(row.seq) === block ? line : 0);
      const deviceId = row.device_id ?? '';
      lose(id, { deviceId, lineRanges: ranges.rangesIn(deviceId, lines), reason: 'skipped_destination' });
      taken += 1;
      end = row.seq;
    }
    if (end !== null) positions.advance(id, lane, { from, to: { block: Number(end) + 1, line: 0 } });
    return isPast;
  };
}
