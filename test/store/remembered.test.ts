import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { remember } from '../../src/store/remembered.ts';

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
