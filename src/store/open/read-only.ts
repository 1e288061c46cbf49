/**
 * A state opened beside whoever works with it: no lock, nothing written; what this user may not read, or this version does
 * not know, is said in words.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { UserError } from '../../core/faults.ts';
import { plainText } from '../../core/text.ts';
import { explainedReading, isThere } from '../shape.ts';
import { STATE_FILE } from './database.ts';

/**
 * Opens the state in a directory. Whole numbers are read as `bigint`.
 *
 * @param use makes of it what is kept, which has to close it; where that is `null`, or throws, it is closed here.
 * @returns `null` too where there is no state. @throws UserError (exit 1) where it cannot be read.
 */
export function openReading<T>(directory: string, use: (db: Database.Database, path: string) => T | null): T | null {
  const path = join(directory, STATE_FILE);
  if (!isThere(path)) return null;
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

/** The same for what is read at once, as one moment shows it: it is closed then. */
export function readOnce<T>(directory: string, read: (db: Database.Database, path: string) => T | null): T | null {
  let seen: T | null = null;
  openReading(directory, (db, path) => {
    seen = db.transaction(() => read(db, path))();
    return null;
  });
  return seen;
}

/** @throws UserError (exit 1) where there is no state in a directory. */
export function requireState(directory: string): void {
  if (!isThere(join(directory, STATE_FILE))) throw noState(directory);
}

/** What is said where nobody has made a state yet. */
export function noState(directory: string): UserError {
  return new UserError(
    `There is no state in ${plainText(directory)}: nothing was read yet. Is data_dir the one of your daemon?`,
    1,
  );
}
