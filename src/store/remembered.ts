/**
 * What is read from the database again and again, remembered by its key until it is written.
 */
import type Database from 'better-sqlite3';

export interface Remembered<T> {
  /** The value of a key: as remembered, else as read. */
  get(key: string): T;
  /** Drops what is remembered of a key, because it is written. */
  drop(key: string): void;
}

/** @param most how many keys are remembered; beyond it all are dropped. */
export function remember<T>(
  db: Database.Database,
  read: (key: string) => T,
  most = Number.POSITIVE_INFINITY,
): Remembered<T> {
  const known = new Map<string, T>();
  return {
    get: (key) => {
      const remembered = known.get(key);
      if (remembered !== undefined) return remembered;
      const value = read(key);
      if (known.size >= most) known.clear();
      // What a transaction has written may be taken back.
      if (!db.inTransaction) known.set(key, value);
      return value;
    },
    drop: (key) => void known.delete(key),
  };
}
