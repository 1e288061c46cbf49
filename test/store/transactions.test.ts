/** Calls as transactions, the guard before each write, and values that are cached until a write. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open/database.ts';
import {
  asTransactions,
  createCache,
  createPiggybackWriter,
  createRareRead,
  createWriter,
  guardCommits,
} from '../../src/store/transactions.ts';
import { scratch } from './support.ts';

function table() {
  const db = new Database(':memory:');
  db.exec('CREATE TABLE word (text TEXT)');
  const insert = db.prepare('INSERT INTO word VALUES (?)');
  const all = db.prepare<[], string>('SELECT text FROM word').pluck();
  return { db, add: (text: string) => void insert.run(text), all: () => all.all() };
}

describe('a call as a transaction', () => {
  test('returns its result, and rolls back completely where it fails', () => {
    const { db, add, all } = table();
    const addTwo = createWriter(db)((one: string, two: string | null) => {
      add(one);
      if (two === null) throw new Error('no second word');
      add(two);
      return `${one} ${two}`;
    });
    expect(addTwo('a', 'b')).toBe('a b');
    expect(() => addTwo('c', null)).toThrow('no second word');
    expect(all()).toEqual(['a', 'b']);
  });

  test('includes pending values, which count as written only once they are on disk', () => {
    const { db, add, all } = table();
    const written: string[] = [];
    const write = createPiggybackWriter(db, () => {
      add('owed');
      return () => {
        expect(db.inTransaction).toBe(false);
        written.push('owed');
      };
    });
    write(add)('own');
    expect([all(), written]).toEqual([['own', 'owed'], ['owed']]);
    const fail = write(() => {
      throw new Error('no');
    });
    expect(fail).toThrow('no');
    expect([all(), written]).toEqual([['own', 'owed'], ['owed']]);
  });

  test('is made of the calls that are named, and of no others', () => {
    const { db } = table();
    const isInside = (): boolean => db.inTransaction;
    const calls = asTransactions(createWriter(db), { read: isInside, write: isInside }, ['write']);
    expect([calls.read(), calls.write()]).toEqual([false, true]);
  });
});

/** The calls that could write past the guard once a state is open, and do not. */
const KNOWN_WAYS: readonly string[] = [
  // In a call of a writer.
  'archive/maintenance.ts: incremental_vacuum',
  'device/forget.ts: incremental_vacuum',
  'transactions.ts: db.transaction(',
  // Several reads as of one moment.
  'archive/reader.ts: db.transaction(',
  'report-facts.ts: db.transaction(',
  'views/verify.ts: db.transaction(',
  'views/verify.ts: db.transaction(',
  // Connections of their own that only read.
  'views/backup.ts: db.exec(',
  'views/bundle.ts: db.exec(',
  'views/inspect.ts: db.transaction(',
  'views/read-state.ts: db.exec(',
];

describe('a guard', () => {
  test('is called before each write, inside the write transaction, whether or not the write is a call of a writer', () => {
    const { db, add, all } = table();
    let asked = 0;
    let isAllowed = true;
    guardCommits(db, () => {
      asked += 1;
      expect(db.inTransaction).toBe(true);
      if (!isAllowed) throw new Error('not ours');
    });
    const insert = db.prepare('INSERT INTO word VALUES (?)');
    const write = createWriter(db)((text: string) => {
      insert.run(text);
      insert.run(text);
    });
    expect(insert.run('a').changes).toBe(1);
    write('b');
    expect([asked, all()]).toEqual([2, ['a', 'b', 'b']]);
    isAllowed = false;
    expect(() => insert.run('c')).toThrow('not ours');
    expect(() => write('c')).toThrow('not ours');
    expect(db.prepare('SELECT count(*) FROM word').pluck().get()).toBe(3);
    expect([asked, db.inTransaction]).toEqual([4, false]);
    // A statement from before the guard is none of a state that is open.
    add('d');
  });

  test('cannot be bypassed by other code of the store', () => {
    const folder = join(import.meta.dirname, '..', '..', 'src', 'store');
    const found = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('open'))
      .flatMap((name) => {
        const code = readFileSync(join(folder, name), 'utf8');
        const ways = code.match(/\bdb\.exec\(|\bdb\.transaction\(|\bRETURNING\b|incremental_vacuum/g) ?? [];
        return ways.map((way) => `${name}: ${way}`);
      });
    expect(found.toSorted()).toEqual(KNOWN_WAYS.toSorted());
  });
});

describe('a statement that is prepared late', () => {
  test('is made at its first use, once, in the row format of that use', () => {
    const { db, add } = table();
    add('a');
    guardCommits(db, () => {});
    const texts = ['all', 'get', 'raw', 'other'].map((name) => `SELECT text, '${name}' AS name FROM later`);
    const [rows, values, raw, other] = texts.map((sql) => db.prepare<[], unknown>(sql));
    const [plucked, lists, insert] = [values?.pluck(), raw?.raw(), db.prepare('INSERT INTO later VALUES (?)')];
    expect(() => rows?.all(), 'before there is what it reads').toThrow('no such table');
    db.exec('CREATE TABLE later (text TEXT)');
    expect(insert.run('b').changes).toBe(1);
    const row = { text: 'b', name: 'all' };
    expect([rows?.all(), rows?.get(), [...(rows?.iterate() ?? [])]]).toEqual([[row], row, [row]]);
    expect([plucked?.get(), lists?.all()]).toEqual(['b', [['b', 'raw']]]);
    expect(other?.get()).toEqual({ text: 'b', name: 'other' });
  });

  test('is one of a state, whose writes call the guard', () => {
    using place = scratch();
    const { db, close } = openDatabase(place.path);
    expect(() => db.prepare('SELECT * FROM none')).not.toThrow();
    rmSync(join(place.path, 'tidemark.lock'));
    expect(() => db.prepare('DELETE FROM fact').run()).toThrow('lock');
    close();
  });
});

describe('a read that is done again only after a change', () => {
  test('sees each change of a row, and no rolled back change', () => {
    const { db, add, all } = table();
    let reads = 0;
    const read = createRareRead(db, () => {
      reads += 1;
      return all();
    });
    expect([read(), read(), reads]).toEqual([[], [], 1]);
    add('a');
    expect([read(), read(), reads]).toEqual([['a'], ['a'], 2]);
    const fail = createWriter(db)(() => {
      add('b');
      expect(read()).toEqual(['a', 'b']);
      throw new Error('no');
    });
    expect(fail).toThrow('no');
    expect(read()).toEqual(['a']);
    const before = reads;
    read.forget();
    read();
    expect(reads).toBe(before + 1);
  });

  test('sees the writes of another connection where it cannot write itself', () => {
    using state = scratch();
    const path = state.file;
    const db = new Database(path);
    db.exec('CREATE TABLE word (text TEXT)');
    const reader = new Database(path, { readonly: true });
    const count = createRareRead(reader, () => reader.prepare('SELECT count(*) FROM word').pluck().get());
    expect(count()).toBe(0);
    db.exec("INSERT INTO word VALUES ('a')");
    expect(count()).toBe(1);
    reader.close();
    db.close();
  });
});

function counted(most?: number) {
  const db = new Database(':memory:');
  const reads: string[] = [];
  const read = (key: string): string | null => {
    reads.push(key);
    return key === 'none' ? null : key.toUpperCase();
  };
  return { db, reads, known: createCache(db, read, most) };
}

describe('cached values', () => {
  test('is read once, also where there is nothing, until it is written', () => {
    const { known, reads } = counted();
    expect([known.get('a'), known.get('a'), known.get('none'), known.get('none')]).toEqual(['A', 'A', null, null]);
    known.drop('a');
    known.get('a');
    expect(reads).toEqual(['a', 'none', 'a']);
  });

  test('is not a value read inside of a transaction, which may be rolled back', () => {
    const { db, known, reads } = counted();
    db.transaction(() => known.get('a'))();
    known.get('a');
    expect(reads).toEqual(['a', 'a']);
  });

  test('is no more than a number of keys', () => {
    const { known, reads } = counted(2);
    for (const key of ['a', 'b', 'c', 'c', 'a']) known.get(key);
    expect(reads).toEqual(['a', 'b', 'c', 'a']);
  });
});
