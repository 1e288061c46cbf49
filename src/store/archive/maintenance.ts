/**
 * Everything that keeps the archive small, over one open database: each call one transaction.
 */
import type Database from 'better-sqlite3';
import type { ArchiveMaintenance } from '../../core/state/archive.ts';
import { createAsides } from '../clear-aside.ts';
import { createVacuum } from '../clear-vacuum.ts';
import type { Lacks } from '../delivery/missing-points.ts';
import { createClearer } from './clearing.ts';
import { createSealer } from './compaction.ts';

/** Puts it together. @param path the state file. */
export function createKeeper(
  db: Database.Database,
  { lacks, path }: { lacks: Lacks; path: string },
): ArchiveMaintenance {
  const guarded = <A extends unknown[], R>(work: (...args: A) => R): ((...args: A) => R) => {
    const transaction = db.transaction(work);
    return (...args) => transaction.immediate(...args);
  };
  const sealer = createSealer(db);
  const asides = createAsides(db, lacks);
  const end = db.prepare<[], bigint>('SELECT ifnull(max(seq), 0) FROM block').pluck();
  return {
    ...createVacuum(db, path),
    compactionGroups: sealer.groups,
    compact: guarded(sealer.seal),
    clear: guarded(createClearer(db, lacks)),
    standing: asides.standing,
    keepStanding: guarded(asides.keepStanding),
    placeOf: asides.placeOf,
    endOfLog: () => Number(end.get() ?? 0n),
    skipBacklog: guarded(asides.skipBacklog),
  };
}
