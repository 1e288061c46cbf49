/**
 * Whether a state that is only looked at has a shape that this version reads; what is said where it has not.
 */
import type Database from 'better-sqlite3';
import { UserError } from '../core/faults.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';

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
