/**
 * One writing process a state: a lock that the operating system takes back when the process dies.
 *
 * The lock is an open exclusive transaction on a database of its own. A file with a process id would outlive a crash,
 * and in a container every process has the same id.
 */
import Database from 'better-sqlite3';
import { UserError } from '../core/faults.ts';
import { createPrivate } from './private-file.ts';

export interface Lock {
  release(): void;
}

/**
 * Takes the lock of a data directory.
 *
 * @throws UserError (exit 1) where another process holds it.
 */
export function takeLock(file: string): Lock {
  createPrivate(file);
  const handle = new Database(file, { timeout: 0 });
  try {
    handle.pragma('journal_mode = DELETE');
    handle.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    handle.close();
    if (!isBusy(error)) throw error;
    throw new UserError(
      `${file}: another process is working with this state. Only one may write it: stop that one, or give this one another data_dir.`,
      1,
    );
  }
  return {
    release: () => {
      handle.exec('ROLLBACK');
      handle.close();
    },
  };
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
}
