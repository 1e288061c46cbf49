/**
 * Calls as transactions, and values that are cached until a transaction changes them.
 *
 * Every transaction takes the write lock when it begins, so that none fails half-way because another connection writes.
 */
import type Database from 'better-sqlite3';

type Call<A extends unknown[], R> = (...args: A) => R;

/** Makes a call one transaction of its own. */
export type Writer = <A extends unknown[], R>(work: Call<A, R>) => Call<A, R>;

/** A condition that must be true before a transaction of a database is committed. */
const guards = new WeakMap<Database.Database, () => void>();

/**
 * Makes every write over a connection call a guard first, after taking the write lock. This applies to each transaction
 * that is created later, and to each statement that is prepared later and runs outside a transaction.
 *
 * Each of these statements is prepared at its first use. A state has more than two hundred, of which most runs use only
 * some, and each takes time and memory.
 *
 * @param guard throws if writing is not allowed.
 */
export function guardCommits(db: Database.Database, guard: () => void): void {
  guards.set(db, guard);
  const prepare = db.prepare.bind(db);
  const guarded = (sql: string): Database.Statement<unknown[]> => {
    const statement = prepare(sql);
    if (statement.readonly) return statement;
    const run = statement.run.bind(statement);
    const alone = createWriter(db)(run);
    return Object.assign(statement, {
      run: (...values: unknown[]) => (db.inTransaction ? run(...values) : alone(...values)),
    });
  };
  db.prepare = ((sql: string) => lateStatement(() => guarded(sql))) as typeof db.prepare;
}

/** The calls of a statement that this program uses. */
interface LateStatement extends Pick<Database.Statement<unknown[]>, 'run' | 'get' | 'all' | 'iterate'> {
  pluck(): LateStatement;
  raw(): LateStatement;
}

function lateStatement(make: () => Database.Statement<unknown[]>): LateStatement {
  let made: Database.Statement<unknown[]> | null = null;
  const statement = (): Database.Statement<unknown[]> => {
    made ??= make();
    return made;
  };
  return {
    run: (...values) => statement().run(...values),
    get: (...values) => statement().get(...values),
    all: (...values) => statement().all(...values),
    iterate: (...values) => statement().iterate(...values),
    pluck: () => lateStatement(() => statement().pluck()),
    raw: () => lateStatement(() => statement().raw()),
  };
}

/** Makes transactions of an open database. */
export function createWriter(db: Database.Database): Writer {
  const guard = guards.get(db);
  return <A extends unknown[], R>(work: Call<A, R>) =>
    db.transaction((...args: A): R => {
      guard?.();
      return work(...args);
    }).immediate;
}

/**
 * Creates transactions that also write the outstanding data of another part.
 *
 * @param writeAlong writes the data inside the transaction. It returns a function to call once the data is on disk.
 */
export function createPiggybackWriter(db: Database.Database, writeAlong: () => () => void): Writer {
  return <A extends unknown[], R>(work: Call<A, R>) => {
    const transaction = createWriter(db)((...args: A) => ({ result: work(...args), onDisk: writeAlong() }));
    return (...args: A): R => {
      const { result, onDisk } = transaction(...args);
      onDisk();
      return result;
    };
  };
}

/** The calls of a part of the state, with each of the named ones as one transaction. */
export function asTransactions<T extends object>(write: Writer, calls: T, names: readonly (keyof T)[]): T {
  const asTransaction = (name: keyof T): unknown => write(calls[name] as Call<unknown[], unknown>);
  // Each call keeps its own arguments and result, which a mapped type cannot express.
  return { ...calls, ...Object.fromEntries(names.map((name) => [name, asTransaction(name)])) };
}

/** A cached read that is repeated only after a change. */
interface RareRead<T> {
  (): T;
  /** Drops the cached result, because of a change that is not a row. */
  forget(): void;
}

/**
 * Creates a read that is repeated only after a row was changed over this connection: most loops find the state
 * unchanged.
 *
 * It is for rows that only the process with the lock changes. A read-only connection does not notice those changes, so
 * it reads each time.
 */
export function createRareRead<T>(db: Database.Database, read: () => T): RareRead<T> {
  const changes = db.prepare<[], bigint>('SELECT total_changes()').pluck();
  let known: { readonly changes: bigint | undefined; readonly value: T } | null = null;
  const readRarely = (): T => {
    // A transaction may be rolled back.
    if (db.readonly || db.inTransaction) return read();
    const now = changes.get();
    if (known === null || known.changes !== now) known = { changes: now, value: read() };
    return known.value;
  };
  const forget = (): void => {
    known = null;
  };
  return Object.assign(readRarely, { forget });
}

/** Cached values of a database. */
export interface Remembered<T> {
  /** Returns the value of a key: the cached one, otherwise the one in the database. */
  get(key: string): T;
  /** Drops the value of a key because it is about to be written. */
  drop(key: string): void;
}

/**
 * Creates an empty cache.
 *
 * @param read reads the value of a key from the database.
 * @param most the largest number of keys; beyond that the cache is emptied.
 */
export function createCache<T>(
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
      // A transaction may be rolled back.
      if (!db.inTransaction) known.set(key, value);
      return value;
    },
    drop: (key) => void known.delete(key),
  };
}
