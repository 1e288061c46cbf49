/**
 * The state file: opening it, its shape, its durability.
 *
 * It promises WAL with `synchronous=FULL` (better-sqlite3 is compiled to NORMAL in WAL mode, so it is set and checked),
 * an SQLite without the WAL-reset bug, the newest shape, and a message that says what to do for every file that cannot
 * be used. A file that is not ours, damaged or of a newer version is never changed.
 */
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { UserError } from '../core/faults.ts';
import { type Lock, takeLock } from './lock.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';

/** SQLite 3.7.0 to 3.51.2 can damage a WAL database that two connections checkpoint at once. */
const OLDEST_SQLITE: readonly number[] = [3, 51, 3];

const STATE_FILE = 'tidemark.db';

export interface OpenDatabase {
  readonly db: Database.Database;
  readonly path: string;
  close(): void;
}

/**
 * Opens (or makes) the state in a directory for writing, and locks it.
 *
 * @throws UserError (exit 1) where the directory or the file cannot be used, with what to do.
 */
export function openDatabase(directory: string): OpenDatabase {
  const path = join(directory, STATE_FILE);
  return explained(path, () => {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const lock = takeLock(join(directory, 'tidemark.lock'));
    try {
      return { ...openLocked(path, lock), path };
    } catch (error) {
      lock.release();
      throw error;
    }
  });
}

function openLocked(path: string, lock: Lock): Omit<OpenDatabase, 'path'> {
  const unclean = existsSync(`${path}-wal`);
  const db = new Database(path);
  try {
    requireSqlite(db);
    requireOurs(db, path);
    chmodSync(path, 0o600);
    if (unclean) requireSound(db, path);
    requireDurable(db);
    migrate(db);
    db.defaultSafeIntegers(true);
  } catch (error) {
    db.close();
    throw error;
  }
  return {
    db,
    close: () => {
      db.close();
      lock.release();
    },
  };
}

function requireSqlite(db: Database.Database): void {
  const version = String(db.prepare('SELECT sqlite_version()').pluck().get());
  const parts = version.split('.').map(Number);
  const difference = OLDEST_SQLITE.map((least, index) => (parts[index] ?? 0) - least).find((step) => step !== 0) ?? 0;
  if (difference < 0) throw new Error(`SQLite ${version} is older than ${OLDEST_SQLITE.join('.')}`);
}

function requireOurs(db: Database.Database, path: string): void {
  const id = db.pragma('application_id', { simple: true });
  const version = Number(db.pragma('user_version', { simple: true }));
  const empty = Number(db.prepare('SELECT count(*) FROM sqlite_master').pluck().get()) === 0;
  if (id !== APPLICATION_ID && !(empty && id === 0)) {
    throw new UserError(
      `${path}: this is a database of another program. Give Tidemark a data_dir of its own, or move that file away.`,
      1,
    );
  }
  if (version > MIGRATIONS.length) {
    throw new UserError(
      `${path}: this state was written by a newer Tidemark (state version ${version}, this one knows ${MIGRATIONS.length}). Run that version again, or restore a backup from before it; nothing was changed.`,
      1,
    );
  }
}

function requireSound(db: Database.Database, path: string): void {
  const verdict = String(db.pragma('quick_check(1)', { simple: true }));
  if (verdict !== 'ok') throw damaged(path, verdict);
}

/** WAL and FULL, read back after a write: better-sqlite3 falls back to NORMAL with the first one. */
function requireDurable(db: Database.Database): void {
  db.pragma('auto_vacuum = INCREMENTAL');
  const mode = db.pragma('journal_mode = WAL', { simple: true });
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  db.pragma('journal_size_limit = 67108864');
  db.transaction(() => db.pragma(`application_id = ${APPLICATION_ID}`))();
  db.pragma('synchronous = FULL');
  const synchronous = Number(db.pragma('synchronous', { simple: true }));
  if (mode !== 'wal' || synchronous !== 2) {
    throw new Error(`the state could not be opened durably: journal_mode ${String(mode)}, synchronous ${synchronous}`);
  }
}

function migrate(db: Database.Database): void {
  const done = Number(db.pragma('user_version', { simple: true }));
  MIGRATIONS.slice(done).forEach((step, index) => {
    db.transaction(() => {
      db.exec(step);
      db.pragma(`user_version = ${done + index + 1}`);
    })();
  });
}

function damaged(path: string, words: string): UserError {
  return new UserError(
    `${path}: the state file is damaged (${words}). Restore a backup, or move tidemark.db, tidemark.db-wal and tidemark.db-shm away together and start anew: the history is then read from the API again.`,
    1,
  );
}

/** Turns what SQLite and the file system say into what a person can do. */
export function explained<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw explain(path, error);
  }
}

function explain(path: string, error: unknown): unknown {
  if (error instanceof UserError || !(error instanceof Error) || !('code' in error)) return error;
  const code = String(error.code);
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return damaged(path, error.message);
  if (code.startsWith('SQLITE_FULL') || code === 'ENOSPC') {
    return new UserError(`${path}: the disk is full. Make room and start again; what was held before is safe.`, 1);
  }
  const unwritable = [
    'SQLITE_READONLY',
    'SQLITE_CANTOPEN',
    'SQLITE_PERM',
    'EACCES',
    'EPERM',
    'EROFS',
    'ENOTDIR',
    'EEXIST',
  ];
  if (unwritable.some((start) => code.startsWith(start))) {
    return new UserError(
      `${path}: this user cannot write the state there (${error.message}). Give data_dir a directory that it owns, for example: chown -R "$(id -u)" the directory.`,
      1,
    );
  }
  return error;
}
