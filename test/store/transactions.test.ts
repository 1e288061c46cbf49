import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { ridingWriter, writer, writing } from '../../src/store/transactions.ts';

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
