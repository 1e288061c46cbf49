/**
 * Clearing: drops settled blocks, and remembers of what stretches they were.
 *
 * Promise: a block goes only if every active destination has settled it, and without any destination none goes. What it
 * held is remembered in the same transaction: for ever in `cleared`, which every later destination lacks and by which a
 * landing knows that a value cannot be told; and in the lack-set of every destination that had not settled it.
 */

import type Database from 'better-sqlite3';
import type { ArchiveMaintenance, ClearOrder } from '../../core/state/archive.ts';
import type { LogLane } from '../../core/state/log.ts';
import { LOG_LANES } from '../../core/state/log.ts';
import { createLosses, type Loss } from '../clear-lacks.ts';
import { createCleared } from '../clear-memory.ts';
import { createStretches } from '../clear-void.ts';
import type { Lacks } from '../delivery/missing-points.ts';
import { unpack } from './block-codec.ts';
import { createSettledBelow } from './compaction.ts';

/** How many bytes of lines, uncompressed, one step goes through. One block is always taken. */
export const STEP_BYTES = 256 * 1024;

/** How many blocks one step takes at most. */
export const STEP_BLOCKS = 64;

interface OldRow {
  readonly seq: bigint;
  readonly at_ms: bigint;
}

interface DoomedRow {
  readonly device_id: string | null;
  readonly lines: bigint;
  readonly bytes: bigint;
  readonly data: Buffer;
}

interface Doomed {
  readonly lane: LogLane;
  readonly seq: number;
  readonly atMs: number;
}

/** Prepares clearing in an open database. Only inside a transaction. */
export function createClearer(db: Database.Database, lacks: Lacks): ArchiveMaintenance['clear'] {
  const oldest = db.prepare<[string, number, number], OldRow>(
    `SELECT seq, at_ms FROM block INDEXED BY block_age
     WHERE lane = ? AND at_ms < ? AND seq < ? ORDER BY at_ms, seq LIMIT ${STEP_BLOCKS}`,
  );
  const read = db.prepare<[number], DoomedRow>('SELECT device_id, lines, bytes, data FROM block WHERE seq = ?');
  const remove = db.prepare('DELETE FROM block WHERE seq = ?');
  const settled = createSettledBelow(db);
  const stretches = createStretches(db);
  const cleared = createCleared(db);
  const bereave = createBereavement(db, lacks);
  const candidates = ({ active, beforeMs }: ClearOrder): Doomed[] =>
    LOG_LANES.flatMap((lane) => {
      const below = settled(lane, active);
      if (below === null) return [];
      const rows = oldest.all(lane, beforeMs ?? Number.MAX_SAFE_INTEGER, below);
      return rows.map((row) => ({ lane, seq: Number(row.seq), atMs: Number(row.at_ms) }));
    }).toSorted((a, b) => a.atMs - b.atMs || a.seq - b.seq);
  return (order) => {
    const done = { blocks: 0, lines: 0 };
    let bytes = 0;
    for (const doomed of candidates(order).slice(0, STEP_BLOCKS)) {
      const row = read.get(doomed.seq);
      if (row === undefined) continue;
      bytes += Number(row.bytes);
      if (done.blocks > 0 && bytes > STEP_BYTES) break;
      const deviceId = row.device_id ?? '';
      const spans = stretches.of(deviceId, unpack(row.data));
      cleared.add(deviceId, spans);
      bereave(doomed, order, { deviceId, spans });
      remove.run(doomed.seq);
      done.blocks += 1;
      done.lines += Number(row.lines);
    }
    return done;
  };
}

/** Writes into the lack-sets what goes although a destination has not settled it. */
function createBereavement(db: Database.Database, lacks: Lacks) {
  const behind = db
    .prepare<[string, number], bigint>(
      `SELECT id FROM destination
       WHERE ifnull((SELECT block FROM position WHERE destination_id = id AND lane = ?), 0) <= ?`,
    )
    .pluck();
  const lose = createLosses(db, lacks);
  return ({ lane, seq }: Doomed, { configured }: ClearOrder, gone: Omit<Loss, 'reason'>): void => {
    for (const id of behind.all(lane, seq).map(Number)) {
      lose(id, { ...gone, reason: configured.includes(id) ? 'set aside' : 'cleared' });
    }
  };
}
