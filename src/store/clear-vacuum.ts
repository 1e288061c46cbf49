/**
 * How large the state file is, and giving back what is free in it.
 */
import { statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import type { ArchiveMaintenance } from '../core/state/archive.ts';

/** Prepares it for an open database. */
export function createVacuum(db: Database.Database, path: string): Pick<ArchiveMaintenance, 'size' | 'vacuum'> {
  const pageBytes = Number(db.pragma('page_size', { simple: true }));
  // Prepared once: this is looked at all the time.
  const pages = db.prepare<[], bigint>('PRAGMA page_count').pluck();
  const freePages = db.prepare<[], bigint>('PRAGMA freelist_count').pluck();
  const freeBytes = (): number => Number(freePages.get()) * pageBytes;
  return {
    size: () => {
      const free = freeBytes();
      return { usedBytes: Number(pages.get()) * pageBytes - free, freeBytes: free, walBytes: sizeOf(`${path}-wal`) };
    },
    vacuum: (most) => {
      db.pragma(`incremental_vacuum(${most})`);
      return freeBytes();
    },
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
