/**
 * Opens a state while another process may use it, without a lock and without writing. It checks whether this version
 * can read the shape and whether this user may read the file, and explains failures.
 */
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import { UserError } from '../../core/faults.ts';
import { plainText } from '../../core/text.ts';
import { explained } from '../explain.ts';
import {
  foreignDatabase,
  isEmpty,
  isFileThere,
  lockBeside,
  newerState,
  requireNotLost,
  STATE_FILE,
  statePath,
} from './database.ts';
import { isLockMarked } from './lock.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';
import { requireTarget } from './new-file.ts';
import { SHAPE } from './shape.ts';

/**
 * Opens the state in a directory. Integers are read as `bigint`.
 *
 * @param use returns the object that owns and closes the connection; if it returns `null` or throws, the connection is
 * closed here.
 * @returns `null` also if there is no state.
 * @throws UserError (exit 1) if it cannot be read.
 */
export function openReading<T>(directory: string, use: (db: Database.Database, path: string) => T | null): T | null {
  const path = statePath(directory);
  if (!hasStateFile(path)) return null;
  return explainedReading(path, () => {
    const db = new Database(path, { readonly: true, fileMustExist: true });
    let used: T | null = null;
    try {
      db.defaultSafeIntegers(true);
      used = use(db, path);
      return used;
    } finally {
      if (used === null) db.close();
    }
  });
}

/** Opens the state for one read, as of one moment, and closes it. */
export function readOnce<T>(directory: string, read: (db: Database.Database, path: string) => T | null): T | null {
  let seen: T | null = null;
  openReading(directory, (db, path) => {
    seen = db.transaction(() => read(db, path))();
    return null;
  });
  return seen;
}

/** Throws UserError (exit 1) if there is no state in a directory. */
export function requireState(directory: string): void {
  if (!hasStateFile(statePath(directory))) throw noState(directory);
}

/** The error text if there is no state yet. */
export function noState(directory: string): UserError {
  return new UserError(
    `There is no state in ${plainText(directory)} yet`,
    'If a daemon uses another configuration, add it by --config FILE (or set the same data_dir). Else start the daemon, or run --once, first.',
    1,
  );
}

/**
 * Checks the shape of an open state.
 *
 * @param oldest the oldest state version that the caller can read; the present one by default.
 * @returns whether it contains data.
 * @throws UserError (exit 1) if it is of another program, newer, or older.
 */
export function hasShape(db: Database.Database, path: string, oldest: number = MIGRATIONS.length): boolean {
  const version = Number(db.pragma('user_version', { simple: true }));
  const isOurs = Number(db.pragma('application_id', { simple: true })) === APPLICATION_ID;
  // The process that creates it has not finished yet.
  if (version === 0 && (isOurs || isEmpty(db))) return false;
  if (!isOurs) throw foreignDatabase(path);
  if (version > MIGRATIONS.length) throw newerState(path, version);
  if (version < oldest) {
    throw new UserError(
      `${path}: this state was written by an older Tidemark (state version ${version}, this version reads ${MIGRATIONS.length})`,
      'Start the daemon of this version or run --once, which upgrade it, or use the version that wrote it. Nothing was changed.',
      1,
    );
  }
  return true;
}

/**
 * Whether there is a state file.
 *
 * @throws UserError (exit 1) if the state is lost, or if that is unknown: a state that this user may not see, or one
 * behind a dangling link, does not count as missing.
 */
export function hasStateFile(path: string): boolean {
  return explainedReading(path, () => {
    requireTarget(resolve(path));
    const isThere = isFileThere(path);
    requireNotLost(path, () => isLockMarked(lockBeside(path)));
    return isThere;
  });
}

/** The error text if this user may not read; otherwise the same as for a writer. */
export function explainedReading<T>(path: string, work: () => T): T {
  return explained(path, () => {
    try {
      return work();
    } catch (error) {
      if (isUnreadable(error)) throw unreadable(path, error.code);
      if (isAboutSchema(error) && hasOtherSchema(path)) throw otherBuild(path, error.message);
      throw error;
    }
  });
}

const UNREADABLE = /^(?:SQLITE_READONLY|SQLITE_CANTOPEN|SQLITE_PERM|SQLITE_AUTH|EACCES|EPERM|EROFS)/;

/** Whether this user may not read the state. */
function isUnreadable(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && UNREADABLE.test(String(error.code));
}

function unreadable(path: string, code: string): UserError {
  return new UserError(
    `${path}: this user cannot read the state (${code})`,
    `Run the command as the user of the daemon. Or let that user make a copy with --backup, move it to ${STATE_FILE} in a directory of your own, and set data_dir to that.`,
    1,
  );
}

/** SQLite has one code for a missing table, a missing column and a wrong statement. */
function isAboutSchema(error: unknown): error is Error {
  return error instanceof Database.SqliteError && error.code === 'SQLITE_ERROR';
}

/**
 * Whether a state has another schema than this build creates. During development the version number does not show that.
 */
function hasOtherSchema(path: string): boolean {
  const made = new Database(':memory:');
  const db = new Database(path, { readonly: true, fileMustExist: true });
  try {
    made.exec(SHAPE);
    return schemaOf(db) !== schemaOf(made);
  } finally {
    db.close();
    made.close();
  }
}

/** The statements of its tables, indexes and triggers, in one text. */
function schemaOf(db: Database.Database): string {
  const sql = "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY sql";
  return db.prepare(sql).pluck().all().join(';');
}

function otherBuild(path: string, message: string): UserError {
  return new UserError(
    `${path}: another build of Tidemark has written this state, with another database schema (${message})`,
    'Use the build that wrote it. Nothing was changed.',
    1,
  );
}
