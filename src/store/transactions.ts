/**
 * Calls as transactions, and values that are remembered until a transaction writes them.
 *
 * Every transaction begins with the right to write, so that none fails half-way because another connection writes.
 */
import type Database from 'better-sqlite3';

type Call<A extends unknown[], R> = (...args: A) => R;

/** Makes a call one transaction of its own. */
export type Writer = <A extends unknown[], R>(work: Call<A, R>) => Call<A, R>;

/** A condition that must be true before a transaction of a database is committed. */
const guards = new WeakMap<Database.Database, () => void>();

/**
 * Has every write over a connection call this first, with the right to write already taken: each transaction that is
 * made from now on, and each statement that is prepared from now on and run outside of one.
 *
 * @param guard throws where nothing may be written.
 */
export function guardCommits(db: Database.Database, guard: () => void): void {
  guards.set(db, guard);
  const prepare = db.prepare.bind(db);
  db.prepare = ((sql: string) => {
    const statement = prepare(sql);
    if (statement.readonly) return statement;
    const run = statement.run.bind(statement);
    const alone = createWriter(db)(run);
    return Object.assign(statement, {
      run: (...values: unknown[]) => (db.inTransaction ? run(...values) : alone(...values)),
    });
  }) as typeof db.prepare;
}

/** The calls of a statement that this program uses. */
interface LateStatement extends Pick<Database.Statement<unknown[]>, 'run' | 'get' | 'all' | 'iterate'> {
  pluck(): LateStatement;
  raw(): LateStatement;
}

/**
 * Has every statement that is prepared from now on made at its first use. A state has more than two hundred, of which
 * most runs use a part, and each takes time and memory.
 */
export function prepareLate(db: Database.Database): void {
  const prepare = db.prepare.bind(db);
  db.prepare = ((sql: string) => lateStatement(() => prepare(sql))) as typeof db.prepare;
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
 * @param ride writes it inside of the transaction.
 * @returns a function to call once that is on disk.
 */
export function createRidingWriter(db: Database.Database, ride: () => () => void): Writer {
  return <A extends unknown[], R>(work: Call<A, R>) => {
    const transaction = createWriter(db)((...args: A) => ({ result: work(...args), onDisk: ride() }));
    return (...args: A): R => {
      const { result, onDisk } = transaction(...args);
      onDisk();
      return result;
    };
  };
}

/** The calls of a part of the state, those of these names as one transaction each. */
export function asTransactions<T extends object>(write: Writer, calls: T, names: readonly (keyof T)[]): T {
  const asTransaction = (name: keyof T): unknown => write(calls[name] as Call<unknown[], unknown>);
  // Each call keeps its own arguments and result, which a mapped type cannot show.
  return { ...calls, ...Object.fromEntries(names.map((name) => [name, asTransaction(name)])) };
}

/** A read that is done again only after something was changed. */
interface RareRead<T> {
  (): T;
  /** Reads again next time: something was changed that is no row. */
  forget(): void;
}

/**
 * Creates a read that is done again only after a row was changed over this connection: most loops look at a state that
 * is as it was before.
 *
 * For rows that only the process with the lock changes. A connection that only reads sees the changes of that
 * one, so that it reads each time.
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

/** Values that are read from the database again and again. */
export interface Remembered<T> {
  /** @returns the value of a key: the remembered one, else as the database has it. */
  get(key: string): T;
  /** Forgets the value of a key, because it is about to be written. */
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
