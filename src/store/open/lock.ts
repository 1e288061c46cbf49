/**
 * Allows one writing process per state, with a lock that the operating system releases when the process dies.
 *
 * The lock is an open exclusive transaction on a database of its own. A file with a process id would outlive a crash,
 * and in a container every process has the same id. The lock belongs to the file, not to its name: its holder checks
 * before each commit that the name still leads to the same file (`requireOwn`), so that a second process cannot work
 * with the state after the file was deleted.
 */
import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { UserError } from '../../core/faults.ts';
import { createPrivate } from './new-file.ts';

/** The lock that prevents a second process from writing the same state. */
export interface Lock {
  /** Whether there was once a complete state next to this file. */
  readonly isMarked: boolean;
  /** Records that there is a complete state next to this file. */
  mark(): void;
  /** Throws UserError (exit 1) if the file was deleted or replaced: another process may hold its lock by now. */
  requireOwn(): void;
  release(): void;
}

/** Another process holds the lock. */
export class StateInUseError extends UserError {
  constructor(file: string) {
    super(
      `${file}: Tidemark already runs with this state`,
      'If that is the daemon, no second one is needed; if it is a command, start again when it has ended. A daemon for another workspace needs a data_dir of its own.',
      1,
    );
  }
}

/** Longer than the time for which a process that only checks the lock holds it (`isLocked`). */
const WAIT_MS = 200;

/**
 * Takes the lock of a data directory.
 *
 * @throws StateInUseError (exit 1) if another process has it.
 */
export function takeLock(file: string): Lock {
  createPrivate(file);
  const handle = openLockFile(file);
  let isMarked = false;
  try {
    // Marking in between does not release the lock.
    handle.pragma('locking_mode = EXCLUSIVE');
    handle.pragma('journal_mode = DELETE');
    handle.exec('BEGIN EXCLUSIVE');
    isMarked = handle.pragma('user_version', { simple: true }) === MARK;
  } catch (error) {
    handle.close();
    if (isBusy(error)) throw new StateInUseError(file);
    throw isGarbage(error) ? noLockFile(file) : error;
  }
  const own = statSync(file, { throwIfNoEntry: false });
  return {
    isMarked,
    mark: () => {
      if (!isMarked) handle.exec(`PRAGMA user_version = ${MARK}; COMMIT; BEGIN EXCLUSIVE`);
    },
    requireOwn: () => {
      const now = statSync(file, { throwIfNoEntry: false });
      if (now !== undefined && now.ino === own?.ino && now.dev === own.dev) return;
      throw new UserError(
        `${file}: this file was deleted or replaced while the daemon held its lock, so another process may use this state`,
        'Tidemark stops writing. Start it again when no other process uses this data_dir.',
        1,
      );
    },
    release: () => {
      if (handle.inTransaction) handle.exec('ROLLBACK');
      handle.close();
    },
  };
}

/** Whether a process holds the lock. */
export function isLocked(file: string): boolean {
  return readVersion(file) === null;
}

/** Whether there was once a complete state next to this file; `false` while a process holds the lock. */
export function isLockMarked(file: string): boolean {
  return readVersion(file) === MARK;
}

/**
 * The version of a lock file, 0 if there is none, or `null` while a process holds the lock. It does not take the lock,
 * so that a process that starts in the meantime is not refused.
 */
function readVersion(file: string): number | null {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  if (!found.isFile()) throw noLockFile(file);
  const handle = new Database(file, { timeout: 0, readonly: true });
  try {
    return Number(handle.pragma('user_version', { simple: true }));
  } catch (error) {
    if (isBusy(error)) return null;
    throw isGarbage(error) ? noLockFile(file) : error;
  } finally {
    handle.close();
  }
}

/** The version of a lock file once the state next to it is complete. */
const MARK = 1;

function openLockFile(file: string): Database.Database {
  if (!statSync(file).isFile()) throw noLockFile(file);
  return new Database(file, { timeout: WAIT_MS });
}

function isGarbage(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(?:NOTADB|CORRUPT)/.test(error.code);
}

function noLockFile(file: string): UserError {
  return new UserError(
    `${file}: this is not a lock file of Tidemark`,
    'Move it away and start again; the state next to it was not changed.',
    1,
  );
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
}
