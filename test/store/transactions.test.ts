import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { remember, ridingWriter, whileUnchanged, writer, writing } from '../../src/store/transactions.ts';
import { scratch } from './support.ts';

function table() {
  const db = new Database(':memory:');
  db.exec('CREATE TABLE word (text TEXT)');
  const insert = db.prepare('INSERT INTO word VALUES (?)');
  const all = db.prepare<[], string>('SELECT text FROM word').pluck();
  return { db, add: (text: string) => void insert.run(text), all: () => all.all() };
}

describe('a call as a transaction', () => {
  test('gives back what it comes to, and takes all of it back where it fails', () => {
    const { db, add, all } = table();
    const addTwo = writer(db)((one: string, two: string | null) => {
      add(one);
      if (two === null) throw new Error('no second word');
      add(two);
      return `${one} ${two}`;
    });
    expect(addTwo('a', 'b')).toBe('a b');
    expect(() => addTwo('c', null)).toThrow('no second word');
    expect(all()).toEqual(['a', 'b']);
  });

  test('brings along what is owed, which counts as written only once it is on the disk', () => {
    const { db, add, all } = table();
    const written: string[] = [];
    const write = ridingWriter(db, () => {
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
    const calls = writing(writer(db), { read: isInside, write: isInside }, ['write']);
    expect([calls.read(), calls.write()]).toEqual([false, true]);
  });
});

describe('a read that is done again only after a change', () => {
  test('sees each change of a row, and nothing of what was rolled back', () => {
    const { db, add, all } = table();
    let reads = 0;
    const read = whileUnchanged(db, () => {
      reads += 1;
      return all();
    });
    expect([read(), read(), reads]).toEqual([[], [], 1]);
    add('a');
    expect([read(), read(), reads]).toEqual([['a'], ['a'], 2]);
    const fail = writer(db)(() => {
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

  test('sees what another connection writes where it cannot write itself', () => {
    using state = scratch();
    const path = state.file;
    const db = new Database(path);
    db.exec('CREATE TABLE word (text TEXT)');
    const reader = new Database(path, { readonly: true });
    const count = whileUnchanged(reader, () => reader.prepare('SELECT count(*) FROM word').pluck().get());
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
  return { db, reads, known: remember(db, read, most) };
}

describe('what is remembered', () => {
  test('is read once, also where there is nothing, until it is written', () => {
    const { known, reads } = counted();
    expect([known.get('a'), known.get('a'), known.get('none'), known.get('none')]).toEqual(['A', 'A', null, null]);
    known.drop('a');
    known.get('a');
    expect(reads).toEqual(['a', 'none', 'a']);
  });

  test('is not what was read inside of a transaction, which may be taken back', () => {
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
