/**
 * Looks into a state file, over a connection of its own.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { STATE_FILE } from '../../src/store/open/database.ts';

/** The rows of a query. */
export function readState(dataDir: string, sql: string): Readonly<Record<string, unknown>>[] {
  const db = new Database(join(dataDir, STATE_FILE), { readonly: true });
  try {
    return db.prepare<[], Record<string, unknown>>(sql).all();
  } finally {
    db.close();
  }
}
