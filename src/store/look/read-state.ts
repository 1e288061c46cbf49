/**
 * The state opened to be looked at: no lock, nothing written, all of it as one moment shows it, beside the process that
 * works with it or without one.
 *
 * The whole store over a connection that cannot write: who looks goes by the same rules as who works. A state of another
 * version has other tables, and is told as such.
 */
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import type { Ledger } from '../../core/ports.ts';
import type { EpochMs } from '../../core/time.ts';
import { LOCK_FILE } from '../open/database.ts';
import { isHeld } from '../open/lock.ts';
import { openReading } from '../open/read-only.ts';
import { hasShape } from '../shape.ts';
import { assemble, type OpenStore } from '../store.ts';

/** A destination that the state knows. */
export interface KnownDestination {
  readonly id: number;
  readonly name: string;
  readonly identity: string;
  /** Whether it is the one that has its name now. */
  readonly isCurrent: boolean;
}

/** A state that can be looked at. What would write is refused by the database. */
export interface ReadState extends Disposable {
  readonly store: OpenStore['store'];
  readonly facts: OpenStore['facts'];
  readonly keeper: Pick<OpenStore['keeper'], 'size' | 'standing'>;
  readonly ledger: Pick<Ledger, 'sentSince' | 'blockedUntilMs'>;
  readonly destinations: readonly KnownDestination[];
  /** The newest time that the state has seen, by the server's clock; 0 where it has seen none. */
  readonly newestMs: EpochMs;
  /** Whether a process works with it. */
  readonly isHeld: boolean;
  readonly path: string;
}

/**
 * Opens the state in a directory to be looked at.
 *
 * @returns `null` where there is none, or nothing in it yet. @throws UserError (exit 1) where it cannot be read.
 */
export function openToRead(directory: string): ReadState | null {
  return openReading(directory, (db, path) => {
    // Each page is looked at once: a large cache would be memory for nothing.
    db.pragma('cache_size = -4096');
    // One moment for all that is read, however long it takes: whoever writes is not held up by it.
    db.exec('BEGIN');
    return hasShape(db, path) ? readStateOf(db, directory, path) : null;
  });
}

function readStateOf(db: Database.Database, directory: string, path: string): ReadState {
  const { store, facts, keeper, ledger } = assemble(db, { path, isLook: true });
  const destinations = db
    .prepare<[], { id: bigint; name: string; identity: string; is_current: bigint }>(
      'SELECT id, name, identity, is_current FROM destination ORDER BY id',
    )
    .all();
  const newest = db
    .prepare<[], bigint | null>(
      'SELECT max(at) FROM (SELECT max(last_listed_ms) AS at FROM device UNION ALL SELECT max(at_ms) FROM request)',
    )
    .pluck();
  return {
    store,
    facts,
    keeper,
    ledger,
    destinations: destinations.map(({ id, name, identity, is_current }) => ({
      id: Number(id),
      name,
      identity,
      isCurrent: is_current === 1n,
    })),
    newestMs: Number(newest.get() ?? 0n),
    isHeld: isHeld(join(directory, LOCK_FILE)),
    path,
    [Symbol.dispose]: () => db.close(),
  };
}
