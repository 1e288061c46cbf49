/**
 * Allows one writing process per state, with a lock that the operating system releases when the process dies.
 *
 * The lock is an open exclusive transaction on a database of its own. A file with a process id would outlive a crash,
 * and in a container every process has the same id.
 */
import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { UserError } from '../../core/faults.ts';
import { createPrivate } from './new-file.ts';

export interface Lock {
  release(): void;
}

/** Another process holds the lock. */
export class HeldError extends UserError {
  constructor(file: string) {
    super(
      `${file}: another process is working with this state. Only one may write it: stop that one, or give this one another data_dir.`,
      1,
    );
  }
}

/** Longer than somebody takes who only looks whether it is held (`isHeld`). */
const WAIT_MS = 200;

/**
 * Takes the lock of a data directory.
 *
 * @throws HeldError (exit 1) where another process holds it.
 */
export function takeLock(file: string): Lock {
  createPrivate(file);
  const handle = new Database(file, { timeout: WAIT_MS });
  try {
    handle.pragma('journal_mode = DELETE');
    handle.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    handle.close();
    if (!isBusy(error)) throw error;
    throw new HeldError(file);
  }
  return {
    release: () => {
      handle.exec('ROLLBACK');
      handle.close();
    },
  };
}

/** Whether a process holds the lock. It is not taken for that, so that nobody who starts meanwhile is turned away. */
export function isHeld(file: string): boolean {
  if (!existsSync(file)) return false;
  const handle = new Database(file, { timeout: 0, readonly: true });
  try {
    handle.prepare('SELECT count(*) FROM sqlite_master').get();
    return false;
  } catch (error) {
    if (!isBusy(error)) throw error;
    return true;
  } finally {
    handle.close();
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
}
