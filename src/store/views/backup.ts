/**
 * Copies the state as of one moment, while another process may use it (`--backup`).
 *
 * It takes no lock and changes nothing in the state. The copy is one file that only its owner may read. It gets its
 * name only when it is complete, checked and on disk, and it never replaces another file.
 *
 * The pages are copied in steps inside one read transaction. Without it, SQLite would restart an online backup whenever
 * another connection has written in between, and with a busy daemon it would never end. The write-ahead log grows in
 * the meantime, and is reused afterwards.
 */
import { chmodSync, closeSync, fsyncSync, openSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { codeOf, UserError } from '../../core/faults.ts';
import type { Random } from '../../core/ports.ts';
import { byteSize, plainText } from '../../core/text.ts';
import type { EpochMs } from '../../core/time.ts';
import { statePath } from '../open/database.ts';
import { isLocked } from '../open/lock.ts';
import { APPLICATION_ID } from '../open/migrations.ts';
import {
  alternativeText,
  createPrivate,
  newPartPath,
  placeText,
  removeOldParts,
  removePart,
  requireNewFile,
  takeName,
} from '../open/new-file.ts';
import { explainedReading, requireState } from '../open/read-only.ts';
import { createDisk } from './data-dir.ts';

interface BackupOptions {
  /** The data directory. */
  readonly directory: string;
  /** The path of the copy. */
  readonly file: string;
  readonly random: Random;
  readonly nowMs: EpochMs;
  /** Called with the progress, 0 to 1. */
  readonly onProgress: (share: number, bytes: number) => void;
}

/** The size of a finished copy and the version of the state in it. */
export interface Backup {
  readonly bytes: number;
  readonly stateVersion: number;
}

/** How many pages are copied between two checks of the signal and the progress. */
const STEP_PAGES = 2048;

/** The disk space that is required in addition to the copy. */
const SPARE_BYTES = 16 * 1024 * 1024;

/**
 * Makes the copy.
 *
 * @throws UserError (exit 1) if there is no state, or the target exists, its directory is missing, full or not
 * writable; the signal's reason when that aborts. Nothing is left behind then.
 */
export async function backUpState(options: BackupOptions, signal: AbortSignal): Promise<Backup> {
  const source = statePath(options.directory);
  const file = resolve(options.file);
  requireState(options.directory);
  requireNewFile('--backup', options.file);
  await atTarget(options, () => removeOldParts(file, options.nowMs, isBeingWritten));
  const part = newPartPath(file, options.random);
  const db = explainedReading(source, () => new Database(source, { readonly: true, fileMustExist: true }));
  try {
    const bytes = explainedReading(source, () => beginReading(db, source));
    requireRoom(file, bytes);
    const stateVersion = await atTarget(options, async () => {
      createPrivate(part);
      await copyPages(db, part, { ...options, signal, bytes });
      options.onProgress(1, bytes);
      return finalizeFile(part);
    });
    await atTarget(options, () => {
      takeName('--backup', part, file);
      syncDirectory(file);
    });
    return { bytes: statSync(file).size, stateVersion };
  } finally {
    db.close();
    removePart(part);
  }
}

/** Whether another backup is writing this part: it has it locked from the first page to the last check. */
function isBeingWritten(part: string): boolean {
  try {
    return isLocked(part);
  } catch {
    // Not even a database.
    return false;
  }
}

/**
 * Begins the one transaction.
 *
 * @returns how large the state is.
 */
function beginReading(db: Database.Database, source: string): number {
  db.exec('BEGIN');
  const pragma = (name: string): number => Number(db.pragma(name, { simple: true }));
  if (pragma('application_id') !== APPLICATION_ID || pragma('user_version') === 0) {
    throw new UserError(`${source}: this is not a complete state of Tidemark. Nothing was copied.`, null, 1);
  }
  return pragma('page_count') * pragma('page_size');
}

function requireRoom(file: string, bytes: number): void {
  const free = createDisk(dirname(file)).freeBytes();
  if (free === null || free >= bytes + SPARE_BYTES) return;
  throw full(file, `the copy needs ${byteSize(bytes)}, but only ${byteSize(free)} are free`);
}

interface CopyOptions extends Pick<BackupOptions, 'onProgress'> {
  readonly signal: AbortSignal;
  readonly bytes: number;
}

async function copyPages(db: Database.Database, part: string, { onProgress, signal, bytes }: CopyOptions) {
  await db.backup(part, {
    progress: ({ totalPages, remainingPages }) => {
      signal.throwIfAborted();
      const share = totalPages === 0 ? 0 : (totalPages - remainingPages) / totalPages;
      onProgress(share, share * bytes);
      return STEP_PAGES;
    },
  });
}

/**
 * Checks the copy, makes it one file, and syncs it to disk.
 *
 * @returns its state version.
 */
function finalizeFile(part: string): number {
  const copy = new Database(part);
  try {
    copy.pragma('journal_mode = DELETE');
    copy.exec('BEGIN EXCLUSIVE');
    const id = copy.pragma('application_id', { simple: true });
    const verdict = String(copy.pragma('quick_check(1)', { simple: true }));
    if (verdict !== 'ok' || id !== APPLICATION_ID) throw inconsistentCopyError(verdict);
    return Number(copy.pragma('user_version', { simple: true }));
  } finally {
    copy.close();
    chmodSync(part, 0o600);
    syncFile(part);
  }
}

function inconsistentCopyError(verdict: string): UserError {
  return new UserError(
    `The copy is inconsistent (${plainText(verdict)}), so it was removed`,
    'If it happens again, the state itself may be damaged: run --check.',
    1,
  );
}

/** By its directory a name is on the disk; some file systems know of none that can be synced. */
function syncDirectory(file: string): void {
  try {
    syncFile(dirname(file));
  } catch {}
}

function syncFile(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

async function atTarget<T>(options: Target, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw errorAtTarget(options, error);
  }
}

type Target = Pick<BackupOptions, 'directory' | 'file'>;

/** The error text for the directory of the copy. */
function errorAtTarget({ directory, file: given }: Target, error: unknown): unknown {
  const file = resolve(given);
  const code = codeOf(error, '');
  if (error instanceof UserError || code === '') return error;
  if (/^(SQLITE_FULL|ENOSPC|EDQUOT|EFBIG)/.test(code)) return full(file, 'the disk, or a quota, is full');
  const name = plainText(basename(file));
  if (/^(EACCES|EPERM|EROFS|SQLITE_CANTOPEN|SQLITE_READONLY)/.test(code)) {
    return new UserError(
      `--backup: this user may not write ${name} into ${placeText(dirname(file), given)}: ${code}`,
      `Choose another directory${alternativeText(file, directory)}.`,
      1,
    );
  }
  return new UserError(
    `--backup: ${name} could not be written (${code}). Nothing is left of it`,
    `Choose another directory${alternativeText(file, directory)}.`,
    1,
  );
}

function full(file: string, why: string): UserError {
  return new UserError(
    `--backup: no room in ${plainText(dirname(file))}: ${why}. The partial copy was removed`,
    'Choose another directory.',
    1,
  );
}
