/**
 * The state as a second process opens it, which leaves a job there for the one that holds the lock (`core/state/jobs.ts`).
 *
 * Promises: the lock is not taken and the shape of the state is not changed; the holder is kept waiting for a few
 * milliseconds at most, as every write is one small statement, and carrying the log over into the file is left to it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { JobBoard } from '../core/state/jobs.ts';
import { explained, explainedCalls } from './explain.ts';
import { createJobBoard } from './jobs.ts';
import { LOCK_FILE, STATE_FILE } from './open/database.ts';
import { isHeld } from './open/lock.ts';
import { APPLICATION_ID, MIGRATIONS } from './open/migrations.ts';

export interface OpenJobBoard {
  readonly board: JobBoard;
  /** Whether any process holds the lock. */
  isHeld(): boolean;
  close(): void;
}

/**
 * Opens the jobs of a state that another process holds.
 *
 * @returns `null` where there are none: no state, or one of another version.
 * @throws UserError (exit 1) where this user may not.
 */
export function openJobBoard(directory: string): OpenJobBoard | null {
  const path = join(directory, STATE_FILE);
  const lock = join(directory, LOCK_FILE);
  return explained(path, () => {
    if (!existsSync(path)) return null;
    const db = new Database(path, { fileMustExist: true });
    try {
      if (!hasJobs(db)) {
        db.close();
        return null;
      }
      // What is lost of a job in a power failure is no loss, and carrying the log over is the holder's.
      db.pragma('synchronous = NORMAL');
      db.pragma('wal_autocheckpoint = 0');
      const board = explainedCalls(path, createJobBoard(db));
      return { board, isHeld: () => explained(lock, () => isHeld(lock)), close: () => db.close() };
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

/** Whether it is a state of this very version; a state that was made while this version was written may lack jobs. */
function hasJobs(db: Database.Database): boolean {
  const id = db.pragma('application_id', { simple: true });
  const version = Number(db.pragma('user_version', { simple: true }));
  if (id !== APPLICATION_ID || version !== MIGRATIONS.length) return false;
  return db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'job'").get() !== undefined;
}
