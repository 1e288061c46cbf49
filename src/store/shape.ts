/**
 * Whether a state that is only looked at has a shape that this version reads; what is said where it has not.
 */
import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { UserError } from '../core/faults.ts';
import { explained } from './explain.ts';
import { STATE_FILE } from './open/database.ts';
import { APPLICATION_ID, MIGRATIONS } from './open/migrations.ts';

/**
 * Looks at the shape of an open state.
 *
 * @param oldest the oldest state version that whoever asks can read; the present one where it is left out.
 * @returns whether there is anything in it yet. @throws UserError (exit 1) where it is of another program, newer, or older.
 */
export function hasShape(db: Database.Database, path: string, oldest: number = MIGRATIONS.length): boolean {
  const version = Number(db.pragma('user_version', { simple: true }));
  const isOurs = Number(db.pragma('application_id', { simple: true })) === APPLICATION_ID;
  // Whoever makes it has not got further yet.
  if (version === 0 && (isOurs || isEmpty(db))) return false;
  if (!isOurs) {
    throw new UserError(`${path}: this is a database of another program. data_dir names the wrong directory.`, 1);
  }
  if (version > MIGRATIONS.length) {
    throw new UserError(
      `${path}: this state was written by a newer Tidemark (state version ${version}, this one knows ${MIGRATIONS.length}). Look at it with that version; nothing was changed.`,
      1,
    );
  }
  if (version < oldest) {
    throw new UserError(
      `${path}: this state was written by an older Tidemark (state version ${version}, this one reads ${MIGRATIONS.length}). Start the daemon of this version, or run --once, which bring it up to date; or look at it with the version that wrote it. Nothing was changed.`,
      1,
    );
  }
  return true;
}

function isEmpty(db: Database.Database): boolean {
  return Number(db.prepare('SELECT count(*) FROM sqlite_master').pluck().get()) === 0;
}

/**
 * Whether there is a state file.
 *
 * @throws UserError (exit 1) where that cannot be told: a state that this user may not see is none that is missing.
 */
export function isThere(path: string): boolean {
  return explainedReading(path, () => {
    const file = statSync(path, { throwIfNoEntry: false });
    if (file?.isFile() === false) {
      throw new UserError(`${path}: this is no file. data_dir names the wrong directory.`, 1);
    }
    return file !== undefined;
  });
}

/** What is said where this user may not read; the rest is as for whoever writes. */
export function explainedReading<T>(path: string, work: () => T): T {
  return explained(path, () => {
    try {
      return work();
    } catch (error) {
      if (isRefusal(error)) throw unreadable(path, error.code);
      if (isOtherShape(error)) throw otherBuild(path, error.message);
      throw error;
    }
  });
}

const REFUSALS = /^(?:SQLITE_READONLY|SQLITE_CANTOPEN|SQLITE_PERM|SQLITE_AUTH|EACCES|EPERM|EROFS)/;

function isRefusal(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && REFUSALS.test(String(error.code));
}

function unreadable(path: string, code: string): UserError {
  return new UserError(
    `${path}: this user cannot read the state there (${code}). SQLite needs to make a small file beside it for that. Run this as the user of the daemon, or copy ${STATE_FILE} and, where there is one, ${STATE_FILE}-wal to a directory of your own and name that by data_dir.`,
    1,
  );
}

/** Something that was asked for is not there: the number of a version says nothing of what is being made. */
function isOtherShape(error: unknown): error is Error {
  return error instanceof Database.SqliteError && error.code === 'SQLITE_ERROR' && /^no such /.test(error.message);
}

function otherBuild(path: string, words: string): UserError {
  return new UserError(
    `${path}: this state lacks something that this version reads (${words}). It was made by another build: look at it with that one. Nothing was changed.`,
    1,
  );
}
