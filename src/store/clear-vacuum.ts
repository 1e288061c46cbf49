/**
 * How large the state file is, and giving back what is free in it.
 */
import { statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import type { ArchiveKeeper } from '../core/archive-keeper.ts';

/** Prepares it for an open database. */
export function createVacuum(db: Database.Database, path: string): Pick<ArchiveKeeper, 'size' | 'vacuum'> {
  const pragma = (name: string): number => Number(db.pragma(name, { simple: true }));
  const pageBytes = pragma('page_size');
  const freeBytes = (): number => pragma('freelist_count') * pageBytes;
  return {
    size: () => {
      const free = freeBytes();
      return { usedBytes: pragma('page_count') * pageBytes - free, freeBytes: free, walBytes: sizeOf(`${path}-wal`) };
    },
    vacuum: (pages) => {
      db.pragma(`incremental_vacuum(${pages})`);
      return freeBytes();
    },
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
