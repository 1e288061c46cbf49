/**
 * Opens the state file: its shape and its durability.
 *
 * It guarantees WAL with `synchronous=FULL` (better-sqlite3 is compiled with NORMAL in WAL mode, so it is set and
 * checked), an SQLite without the WAL-reset bug, and the newest shape. For every file that cannot be used it gives a
 * message with a next step. It never changes a file that belongs to another program, is damaged, or was written by a
 * newer version. Before it brings a state to a newer shape it keeps a copy of it.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, extname, join, parse, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { codeOf, UserError } from '../../core/faults.ts';
import type { StateUpgrade } from '../../core/state/state.ts';
import { shellText } from '../../core/text.ts';
import { adviceOn, DamageError, explained } from '../explain.ts';
import { createWriter, guardCommits } from '../transactions.ts';
import { type Lock, takeLock } from './lock.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';
import { createPrivate, requireTarget } from './new-file.ts';
import { SHAPE } from './shape.ts';

/** SQLite 3.7.0 to 3.51.2 can damage a WAL database that two connections checkpoint at once. */
const OLDEST_SQLITE: readonly number[] = [3, 51, 3];

/** Both files are in the data directory. */
export const STATE_FILE = 'tidemark.db';
const LOCK_FILE = 'tidemark.lock';

/** The path of the state in a directory. If the file there is a link, its target. */
export function statePath(directory: string): string {
  const path = join(directory, STATE_FILE);
  try {
    return lstatSync(path).isSymbolicLink() ? realpathSync(path) : path;
  } catch {
    // The file does not exist, or the open call reports that this user may not see it.
    return path;
  }
}

/** The path of the lock: next to the state itself, so that all links to a state lead to one lock. */
export function lockPath(directory: string): string {
  return lockBeside(statePath(directory));
}

/** The path of the lock of the state at this path. */
export function lockBeside(path: string): string {
  return join(dirname(path), `${parse(path).name}${extname(LOCK_FILE)}`);
}

interface OpenDatabase {
  readonly db: Database.Database;
  readonly path: string;
  /** The upgrade that opening the state made; `null` if it had the newest shape. */
  readonly upgrade: StateUpgrade | null;
  close(): void;
}

/**
 * Opens (or creates) the state in a directory for writing, and locks it.
 *
 * @param maxBytes how large the file may grow; a larger one is opened and must not grow further. `null`: no limit.
 * @throws UserError (exit 1) with a remedy, if the directory or the file cannot be used.
 */
export function openDatabase(directory: string, maxBytes: number | null = null): OpenDatabase {
  const path = statePath(directory);
  return explained(path, () => {
    for (const name of [LOCK_FILE, STATE_FILE]) requireTarget(resolve(directory, name));
    isFileThere(path);
    makeDirectory(directory);
    const lock = takeLock(lockPath(directory));
    try {
      return { ...openLocked(path, { lock, maxBytes }), path };
    } catch (error) {
      lock.release();
      throw error;
    }
  });
}

/**
 * Creates a directory and those above it. Node's recursive call is not used, because it tries forever on a file system
 * that accepts no directory, such as /proc.
 */
function makeDirectory(directory: string): void {
  const missing: string[] = [];
  let path = resolve(directory);
  while (!existsSync(path) && path !== dirname(path)) {
    missing.push(path);
    path = dirname(path);
  }
  for (const each of missing.reverse()) {
    try {
      mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      // Another process may have created it just now.
      if (statSync(each, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
    }
  }
}

function openLocked(
  path: string,
  { lock, maxBytes }: { lock: Lock; maxBytes: number | null },
): Omit<OpenDatabase, 'path'> {
  requireNotLost(path, () => lock.isMarked);
  inspectLeftovers(path);
  createPrivate(path);
  const db = new Database(path);
  try {
    requireSqlite(db);
    requireOurs(db, path);
    chmodSync(path, 0o600);
    requireDurable(db);
    const upgrade = neededUpgrade(db, path);
    copyBeforeMigration(db, path, upgrade);
    guardCommits(db, lock.requireOwn);
    migrate(db, path);
    limit(db, maxBytes);
    db.defaultSafeIntegers(true);
    lock.mark();
    const close = (): void => {
      db.close();
      lock.release();
    };
    return { db, upgrade, close };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * A state that has disappeared must not count as one that never existed: its archive, coverage and names would be lost
 * without a message.
 *
 * @throws UserError (exit 1) with the remedy.
 */
export function requireNotLost(path: string, isMarked: () => boolean): void {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size;
  const isLeft = (): boolean => isMarked() || existsSync(`${path}-wal`) || existsSync(`${path}-shm`);
  if ((bytes ?? 0) > 0 || !isLeft()) return;
  throw new UserError(
    `${path}: the state file is ${bytes === undefined ? 'missing' : 'empty'}, but other files of a state are in the same directory`,
    `Restore a backup into an empty data_dir. To begin a new state instead, move ${STATE_FILE}, ${STATE_FILE}-wal, ${STATE_FILE}-shm and ${LOCK_FILE} away together.`,
    1,
  );
}

/**
 * Checks, with a read-only connection, the files that a process left when it died. A writing connection would merge the
 * log into the file when it closes, even if the file is damaged, newer, or belongs to another program.
 */
function inspectLeftovers(path: string): void {
  // A read-only check leaves an empty log.
  const isLogged = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (!existsSync(path) || !(isLogged || existsSync(`${path}-journal`))) return;
  const db = new Database(path, { readonly: true });
  try {
    requireOurs(db, path);
    if (isLogged) requireSound(db);
  } catch (error) {
    // A first start that died before more than the first page was written can only start again.
    if (isRollback(error) && statSync(path).size <= FIRST_PAGE_BYTES) return;
    throw isRollback(error) ? strayJournal(path) : error;
  } finally {
    db.close();
  }
}

const FIRST_PAGE_BYTES = 4096;

/**
 * Whether an interrupted change must be rolled back first. Our own files are changed in that way only when they are
 * created.
 */
function isRollback(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code === 'SQLITE_READONLY_ROLLBACK';
}

function requireSqlite(db: Database.Database): void {
  const version = String(db.prepare('SELECT sqlite_version()').pluck().get());
  const parts = version.split('.').map(Number);
  const difference = OLDEST_SQLITE.map((least, index) => (parts[index] ?? 0) - least).find((step) => step !== 0) ?? 0;
  if (difference < 0) throw new Error(`SQLite ${version} is older than ${OLDEST_SQLITE.join('.')}`);
}

function requireOurs(db: Database.Database, path: string): void {
  const id = db.pragma('application_id', { simple: true });
  const version = versionOf(db);
  const empty = isEmpty(db);
  if (id !== APPLICATION_ID && !(empty && id === 0)) {
    throw foreignDatabase(path);
  }
  if (version > MIGRATIONS.length) throw newerState(path, version);
}

/** Whether a database has no tables. */
export function isEmpty(db: Database.Database): boolean {
  return Number(db.prepare('SELECT count(*) FROM sqlite_master').pluck().get()) === 0;
}

/** The error for a rollback journal. Our own files never have one after their creation. */
function strayJournal(path: string): UserError {
  return new UserError(
    `${path}-journal: this journal does not belong to a state of Tidemark`,
    `If ${STATE_FILE} is your state, keep a copy of both files, move the journal away and start again; if --check then shows damage, restore a backup into an empty data_dir. If it is the database of another program, set data_dir to another directory. Nothing was changed.`,
    1,
  );
}

/** The error text for a state of a version that is newer than this one. */
export function newerState(path: string, version: number): UserError {
  return new UserError(
    `${path}: this state was written by a newer Tidemark (state version ${version}, this version supports ${MIGRATIONS.length})`,
    'Use the newer version, or restore a backup of an older state into an empty data_dir. Nothing was changed.',
    1,
  );
}

/**
 * Whether there is a file at the path of the state.
 *
 * @throws UserError (exit 1) for a directory, or anything else that is not a file.
 */
export function isFileThere(path: string): boolean {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file?.isFile() === false) {
    throw new UserError(`${path}: this is not a file`, 'Set data_dir to another directory, or move it away.', 1);
  }
  return file !== undefined;
}

/** The error text for a file that is not a state of Tidemark. */
export function foreignDatabase(path: string): UserError {
  return new UserError(
    `${path}: this is a database of another program`,
    'Set data_dir to another directory, or move that file away, together with its -wal and -shm.',
    1,
  );
}

function requireSound(db: Database.Database): void {
  const verdict = String(db.pragma('quick_check(1)', { simple: true }));
  if (verdict !== 'ok') throw new DamageError(verdict);
}

/** Sets WAL and FULL, and reads them back: better-sqlite3 falls back to NORMAL when WAL is set. */
function requireDurable(db: Database.Database): void {
  db.pragma('auto_vacuum = INCREMENTAL');
  const mode = db.pragma('journal_mode = WAL', { simple: true });
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  // Commits only append, so a small cache serves them as well as a large one and leaves memory to others.
  db.pragma('cache_size = -1024');
  db.pragma('journal_size_limit = 67108864');
  // Overwritten data inside a page is zeroed. That costs nothing, and `--forget` relies on it.
  db.pragma('secure_delete = FAST');
  db.transaction(() => db.pragma(`application_id = ${APPLICATION_ID}`))();
  db.pragma('synchronous = FULL');
  const synchronous = Number(db.pragma('synchronous', { simple: true }));
  if (mode !== 'wal' || synchronous !== 2) {
    throw new Error(
      `the state could not be opened with durable writes: journal_mode ${String(mode)}, synchronous ${synchronous}`,
    );
  }
}

/**
 * Limits the size of the file. The limit belongs to the connection, not to the file. At the limit, deletes and writes
 * into free pages still work.
 */
function limit(db: Database.Database, maxBytes: number | null): void {
  if (maxBytes === null) return;
  const pages = Math.ceil(maxBytes / Number(db.pragma('page_size', { simple: true })));
  db.pragma(`max_page_count = ${Math.max(pages, 1)}`);
}

/** The path of the copy that is made of a state before a migration. */
export const copyBefore = (path: string, version: number): string => `${path}.version-${version}`;

/** The upgrade that a state needs; `null` if it needs none. */
function neededUpgrade(db: Database.Database, path: string): StateUpgrade | null {
  const from = versionOf(db);
  if (from === 0 || from >= MIGRATIONS.length) return null;
  return { from, to: MIGRATIONS.length, copy: copyBefore(path, from) };
}

/** The copies of earlier upgrades. Only one copy is kept. */
function olderCopies(path: string, version: number): string[] {
  const copies = Array.from({ length: version - 1 }, (_, index) => copyBefore(path, index + 1));
  return copies.filter((copy) => existsSync(copy));
}

/** The state version of the file; 0 if there is nothing in it yet. */
function versionOf(db: Database.Database): number {
  return Number(db.pragma('user_version', { simple: true }));
}

/**
 * Copies a state of an older version, complete and synced to disk, before the migration.
 *
 * @throws UserError (exit 1) if that fails; nothing is changed then.
 */
function copyBeforeMigration(db: Database.Database, path: string, upgrade: StateUpgrade | null): void {
  if (upgrade === null) return;
  const { from: version, copy } = upgrade;
  const part = `${copy}.0.tidemark-part`;
  try {
    rmSync(part, { force: true });
    createPrivate(part);
    db.prepare('VACUUM INTO ?').run(part);
    const handle = openSync(part, 'r');
    fsyncSync(handle);
    closeSync(handle);
    renameSync(part, copy);
    for (const older of olderCopies(path, version)) rmSync(older, { force: true });
  } catch (error) {
    rmSync(part, { recursive: true, force: true });
    // An existing copy of this version, which may be a link to another place, is enough.
    if (existsSync(copy)) return;
    throw new UserError(
      `${path}: the backup before the upgrade could not be written (${codeOf(error)}); nothing was changed`,
      copyRemedy(path, copy, error),
      1,
    );
  }
}

/** Returns the remedy for a copy that cannot be written. If no file can be created, no link can be created either. */
export function copyRemedy(path: string, copy: string, error: unknown): string {
  const found = adviceOn(path, error);
  if (found !== null && ['read-only', 'unwritable', 'io'].includes(found.problem)) return found.remedy;
  const link = `link it to the name that is expected (ln -s FILE ${shellText(copy)}), and start again.`;
  return found?.problem === 'full'
    ? `Free space on that disk and start again, or write the copy to another disk (--backup FILE), ${link}`
    : `Write the copy to another directory (--backup FILE), ${link}`;
}

/** Brings a state to the newest shape: a new state at once, an older one step by step. */
function migrate(db: Database.Database, path: string): void {
  const done = versionOf(db);
  const steps = MIGRATIONS.map((sql, index) => ({ sql, version: index + 1 })).slice(done);
  for (const { sql, version } of done === 0 ? [{ sql: SHAPE, version: MIGRATIONS.length }] : steps) {
    try {
      createWriter(db)(() => {
        db.exec(sql);
        db.pragma(`user_version = ${version}`);
      })();
    } catch (error) {
      if (!(error instanceof Database.SqliteError) || error.code !== 'SQLITE_ERROR') throw error;
      throw new UserError(
        `${path}: this state could not be upgraded to state version ${version} (${error.message})`,
        'It was not changed; use the version that wrote it, or restore a backup into an empty data_dir.',
        1,
      );
    }
  }
}
