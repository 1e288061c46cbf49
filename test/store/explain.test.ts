/** Errors of SQLite and the file system as messages with a next step. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { StateFullError } from '../../src/core/archive-room.ts';
import { UserError } from '../../src/core/faults.ts';
import { explained, explainedCalls } from '../../src/store/explain.ts';

function failing(code: string) {
  return () => {
    throw Object.assign(new Error('as SQLite says it'), { code });
  };
}

describe('errors of the state', () => {
  test('are reported with a remedy, for every call and for the calls of parts', () => {
    const calls = explainedCalls('/state', { full: failing('SQLITE_FULL'), part: { busy: failing('SQLITE_BUSY') } });
    expect(calls.full).toThrow(StateFullError);
    expect(calls.part.busy).toThrow(UserError);
    expect(calls.part.busy).toThrow(/^\/state: another program has locked the state file/);
  });

  test('stay unchanged where they are bugs of this program', () => {
    const calls = explainedCalls('/state', { part: { odd: failing('SQLITE_CONSTRAINT') } });
    expect(calls.part.odd).toThrow(/^as SQLite says it$/);
  });

  test('leave arguments, results and other members unchanged', () => {
    const calls = explainedCalls('/state', { sum: (a: number, b: number) => a + b, name: 'x', none: null, list: [1] });
    expect([calls.sum(1, 2), calls.name, calls.none, calls.list]).toEqual([3, 'x', null, [1]]);
  });
});

test('a file system that is mounted read-only, and a link to itself, are remedied by no rights', () => {
  expect(() => explained('/state', failing('EROFS'))).toThrow(
    'the file system is mounted read-only (as SQLite says it). Mount it for writing (if it was before, check the disk first: the system may have found errors on it), or set data_dir to another directory.',
  );
  expect(() => explained('/state', failing('ELOOP'))).toThrow(
    'a link in this path leads back to itself (as SQLite says it). Correct that link, or set data_dir to another directory.',
  );
});

test.each([
  ['SQLITE_CORRUPT', 'process'],
  ['EACCES', 'process'],
  ['SQLITE_FULL', 'job'],
])('%s ends the %s of a daemon', (code, ends) => {
  expect(() => explained('/state', failing(code))).toThrow(expect.objectContaining({ exitCode: 1, ends }));
});

test('a quota that is used up is not remedied by free space on the disk', () => {
  expect(() => explained('/state', failing('EDQUOT'))).toThrow(StateFullError);
  expect(() => explained('/state', failing('EDQUOT'))).toThrow(/Check the disk \(free space, quota, health\)/);
});

test('the owner of a directory is changed only where no state can be in use', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-explain-'));
  const refused = (): never => {
    throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
  };
  try {
    const path = join(directory, 'tidemark.db');
    expect(() => explained(path, refused)).toThrow(/Make this user the owner: chown \d+ \/\S+ \(in a container/);
    mkdirSync(join(directory, 'lost+found'));
    expect(() => explained(path, refused)).toThrow(/chown/);
    // A directory of the system, or of another program.
    writeFileSync(join(directory, 'theirs'), '');
    expect(() => explained(path, refused)).toThrow(
      /That directory has other files in it: set data_dir to a directory of its own\.$/,
    );
    expect(() => explained(join(directory, 'own', 'tidemark.db'), refused)).toThrow(/mkdir -p/);
    writeFileSync(join(directory, 'tidemark.lock'), '');
    expect(() => explained(path, refused)).not.toThrow(/chown/);
    expect(() => explained(path, refused)).toThrow(/Give this user write permission: chmod u\+rwx/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
