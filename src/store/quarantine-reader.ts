/**
 * The quarantine as a second process reads it: no lock, nothing written, and as one moment shows it.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { UserError } from '../core/faults.ts';
import { plainText } from '../core/text.ts';
import { STATE_FILE } from './database.ts';
import { createQuarantineReader, type QuarantineReader } from './quarantine.ts';
import { explainedReading, hasShape, isThere } from './shape.ts';

/** @throws UserError (exit 1) where there is no state in a directory. */
export function requireState(directory: string): void {
  if (isThere(join(directory, STATE_FILE))) return;
  throw noState(directory);
}

function noState(directory: string): UserError {
  return new UserError(
    `There is no state in ${plainText(directory)}: nothing was read yet. Is data_dir the one of your daemon?`,
    1,
  );
}

/**
 * Reads the quarantine of the state in a directory.
 *
 * @throws UserError (exit 1) where there is none, or one of another version.
 */
export function readQuarantine<T>(directory: string, read: (quarantine: QuarantineReader) => T): T {
  requireState(directory);
  const path = join(directory, STATE_FILE);
  return explainedReading(path, () => {
    const db = new Database(path, { readonly: true, fileMustExist: true });
    try {
      db.defaultSafeIntegers(true);
      return db.transaction(() => {
        if (!hasShape(db, path)) throw noState(directory);
        return read(createQuarantineReader(db));
      })();
    } finally {
      db.close();
    }
  });
}
