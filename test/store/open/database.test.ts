/** How a state file is opened or refused: new, after a kill, gone, damaged, foreign, or of another shape. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { UserError } from '../../../src/core/faults.ts';
import { copyRemedy, openDatabase } from '../../../src/store/open/database.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { openStore } from '../../../src/store/store.ts';
import { isStateLocked } from '../../../src/store/views/inspect.ts';
import { type Scratch, scratch } from '../support.ts';
import { fill, refusal } from './support.ts';

const PAGE = 4096;

/** The bytes of the file and of what SQLite keeps beside it. */
function bytesOf({ file }: Scratch): Record<string, string> {
  const files = ['', '-wal', '-journal'].map((end) => `${file}${end}`).filter((path) => existsSync(path));
  return Object.fromEntries(files.map((path) => [path.slice(file.length), readFileSync(path).toString('base64')]));
}

/** Copies a database while it is open, as a process that is killed leaves it: with its log beside it. */
function leaveBehind(from: string, to: string, end: '-wal' | '-journal' = '-wal'): void {
  copyFileSync(from, to);
  copyFileSync(`${from}${end}`, `${to}${end}`);
}

function overwritePage(file: string, page: number, byte: number): void {
  const bytes = readFileSync(file);
  bytes.fill(byte, (page - 1) * PAGE, page * PAGE);
  writeFileSync(file, bytes);
}

function rootPage(file: string, table: string): number {
  // Not read only: such a connection would leave a log behind.
  const db = new Database(file);
  try {
    return Number(db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').pluck().get(table));
  } finally {
    db.close();
  }
}

describe('a new state', () => {
  test('is kept in WAL with every commit synced, also after a write and after it was opened again', () => {
    using place = scratch();
    for (const turn of ['new', 'again']) {
      const { db, close } = openDatabase(place.path);
      const inForce = () => [
        db.pragma('journal_mode', { simple: true }),
        Number(db.pragma('synchronous', { simple: true })),
      ];
      expect(inForce(), turn).toEqual(['wal', 2]);
      db.prepare("INSERT INTO fact (key, value) VALUES (?, 'x')").run(turn);
      db.transaction(() => db.prepare("INSERT INTO fact (key, value) VALUES (?, 'x')").run(`${turn} 2`))();
      expect(inForce(), `${turn}, after writes`).toEqual(['wal', 2]);
      expect(Number(db.pragma('foreign_keys', { simple: true }))).toBe(1);
      expect(Number(db.pragma('auto_vacuum', { simple: true })), 'incremental').toBe(2);
      close();
    }
  });

  test('is for its owner alone, whatever the process allows', () => {
    using place = scratch();
    const directory = join(place.path, 'state', 'deeper');
    const before = process.umask(0o000);
    try {
      const { close, store } = openStore(directory);
      store.saveFact('x', 'y');
      for (const name of ['tidemark.db', 'tidemark.db-wal', 'tidemark.db-shm', 'tidemark.lock']) {
        expect((statSync(join(directory, name)).mode & 0o777).toString(8), name).toBe('600');
      }
      close();
    } finally {
      process.umask(before);
    }
    expect((statSync(directory).mode & 0o777).toString(8)).toBe('700');
    chmodSync(join(directory, 'tidemark.db'), 0o644);
    openStore(directory).close();
    expect((statSync(join(directory, 'tidemark.db')).mode & 0o777).toString(8), 'one that was opened up').toBe('600');
  });

  test('is marked as ours and of the newest version, from an empty file too', () => {
    using place = scratch();
    writeFileSync(place.file, '');
    openStore(place.path).close();
    const header = readFileSync(place.file);
    expect(header.readUInt32BE(68)).toBe(APPLICATION_ID);
    expect(header.readUInt32BE(60)).toBe(MIGRATIONS.length);
  });

  test('that died before its first table is begun again', () => {
    using place = scratch();
    const db = new Database(place.file);
    db.pragma('journal_mode = WAL');
    db.pragma(`application_id = ${APPLICATION_ID}`);
    using dead = scratch();
    leaveBehind(place.file, dead.file);
    db.close();
    openStore(dead.path).close();
    expect(readFileSync(dead.file).readUInt32BE(60)).toBe(MIGRATIONS.length);
  });

  test('that died while its first page was written is begun again', () => {
    using place = scratch();
    const db = new Database(place.file);
    db.pragma('user_version = 0');
    db.exec('BEGIN IMMEDIATE; PRAGMA user_version = 7');
    using dead = scratch();
    leaveBehind(place.file, dead.file, '-journal');
    db.exec('ROLLBACK');
    db.close();
    expect(statSync(dead.file).size).toBeLessThanOrEqual(PAGE);
    openStore(dead.path).close();
    expect(readFileSync(dead.file).readUInt32BE(60)).toBe(MIGRATIONS.length);
  });
});

describe('a state that was left behind by a kill', () => {
  test('has all that was committed', () => {
    using place = scratch();
    using dead = scratch();
    const { store, close } = openStore(place.path);
    store.saveFact('last', 'word');
    leaveBehind(place.file, dead.file);
    close();
    const again = openStore(dead.path);
    expect(again.store.fact('last')).toBe('word');
    again.close();
  });
});

describe('a state that is gone', () => {
  test('is created again once all its files are gone, or if the first start was killed too early', () => {
    using place = scratch();
    openStore(place.path).close();
    for (const name of readdirSync(place.path)) rmSync(join(place.path, name));
    for (const name of ['tidemark.lock', 'tidemark.db']) writeFileSync(join(place.path, name), '');
    openStore(place.path).close();
    expect(statSync(place.file).size).toBeGreaterThan(0);
  });
});

describe('garbage beside a state', () => {
  test('in the place of the lock is called that, and the state is untouched', () => {
    using place = scratch();
    openStore(place.path).close();
    const before = bytesOf(place);
    const lock = join(place.path, 'tidemark.lock');
    writeFileSync(lock, 'garbage'.repeat(1000));
    expect(refusal(place.path).message).toMatch(/^[^:]*tidemark\.lock: this is not a lock file of Tidemark/);
    rmSync(lock);
    mkdirSync(lock);
    expect(refusal(place.path).message).toMatch(/tidemark\.lock: this is not a lock file of Tidemark/);
    expect(bytesOf(place)).toEqual(before);
  });

  test.each<[string, (lock: string) => void]>([
    ['text', (lock) => writeFileSync(lock, 'garbage'.repeat(1000))],
    [
      'a head and nothing behind it',
      (lock) => writeFileSync(lock, `SQLite format 3\0${'\xff'.repeat(5000)}`, 'latin1'),
    ],
    ['a cut state', (lock) => writeFileSync(lock, readFileSync(join(dirname(lock), 'tidemark.db')).subarray(0, 5000))],
    ['a directory', (lock) => mkdirSync(lock)],
  ])('in the place of the lock never costs the state: %s', (_what, put) => {
    using place = scratch();
    fill(place);
    const lock = join(place.path, 'tidemark.lock');
    rmSync(lock);
    put(lock);
    const errors: unknown[] = [];
    for (const use of [() => openStore(place.path).close(), () => isStateLocked(place.path)]) {
      try {
        use();
      } catch (error) {
        errors.push(error);
        expect(String(error)).toMatch(/tidemark\.lock: this is not a lock file of Tidemark\. Move it away/);
        expect(String(error)).not.toContain('move tidemark.db');
      }
    }
    expect(errors.length).toBeGreaterThan(0);
    // As in the error.
    renameSync(lock, join(place.path, 'away'));
    const { store, close } = openStore(place.path);
    expect(store.totals().lines).toBe(1);
    close();
  });
});

describe('a database of another program', () => {
  const WORDS = /tidemark\.db: this is a database of another program\. Set data_dir to another directory/;

  function foreign(file: string): Database.Database {
    const db = new Database(file);
    db.exec("CREATE TABLE mine (x); INSERT INTO mine VALUES ('y')");
    return db;
  }

  test('is refused and left as it is', () => {
    using place = scratch();
    foreign(place.file).close();
    const before = bytesOf(place);
    expect(refusal(place.path)).toMatchObject({ exitCode: 1, message: expect.stringMatching(WORDS) });
    expect(bytesOf(place)).toEqual(before);
  });

  test('is refused by its mark alone, empty as it may be', () => {
    using place = scratch();
    const db = new Database(place.file);
    db.pragma('application_id = 1234');
    db.close();
    const before = bytesOf(place);
    expect(refusal(place.path).message).toMatch(WORDS);
    expect(bytesOf(place)).toEqual(before);
  });

  test('is not even cleaned up: its log stays', () => {
    using place = scratch();
    using theirs = scratch();
    const db = foreign(theirs.file);
    db.pragma('journal_mode = WAL');
    db.exec("INSERT INTO mine VALUES ('in the log')");
    leaveBehind(theirs.file, place.file);
    db.close();
    const before = bytesOf(place);
    expect(refusal(place.path).message).toMatch(WORDS);
    expect(bytesOf(place)).toEqual(before);
  });

  test('is not rolled back: a change that it has broken off is its own affair', () => {
    using place = scratch();
    using theirs = scratch();
    const db = foreign(theirs.file);
    db.pragma('cache_size = 1');
    const insert = db.prepare('INSERT INTO mine VALUES (?)');
    for (let n = 0; n < 50; n += 1) insert.run('x'.repeat(2000));
    db.exec("BEGIN; UPDATE mine SET x = 'changed' || x");
    leaveBehind(theirs.file, place.file, '-journal');
    db.exec('ROLLBACK');
    db.close();
    const before = bytesOf(place);
    expect(refusal(place.path).message).toMatch(
      /If it is the database of another program, set data_dir to another directory/,
    );
    expect(bytesOf(place)).toEqual(before);
  });
});

describe('a state of a newer version', () => {
  const WORDS = /written by a newer Tidemark \(state version 999, this version supports \d+\)\. Use the newer version/;

  test('is refused and left as it is', () => {
    using place = scratch();
    fill(place);
    const db = new Database(place.file);
    db.pragma('user_version = 999');
    db.close();
    const before = bytesOf(place);
    expect(refusal(place.path)).toMatchObject({ exitCode: 1, message: expect.stringMatching(WORDS) });
    expect(bytesOf(place)).toEqual(before);
  });

  test('is refused where only its log shows that', () => {
    using place = scratch();
    using dead = scratch();
    fill(place);
    const db = new Database(place.file);
    db.pragma('user_version = 999');
    leaveBehind(place.file, dead.file);
    db.close();
    expect(readFileSync(dead.file).readUInt32BE(60)).toBe(MIGRATIONS.length);
    const before = bytesOf(dead);
    expect(refusal(dead.path).message).toMatch(WORDS);
    expect(bytesOf(dead)).toEqual(before);
  });
});

describe('a damaged state', () => {
  const WORDS =
    /the state file is damaged \(.*\)\. Stop Tidemark and restore a backup into an empty data_dir, or move tidemark\.db, tidemark\.db-wal, tidemark\.db-shm and tidemark\.lock away/;

  test.each([
    ['that is no database', (file: string) => writeFileSync(file, 'garbage '.repeat(1000))],
    ['whose first page is gone', (file: string) => overwritePage(file, 1, 0)],
    ['that was cut short', (file: string) => truncateSync(file, 2 * PAGE + 100)],
  ])('%s is refused at the start and left as it is', (_what, damage) => {
    using place = scratch();
    fill(place);
    damage(place.file);
    const before = bytesOf(place);
    expect(refusal(place.path)).toMatchObject({ exitCode: 1, message: expect.stringMatching(WORDS) });
    expect(bytesOf(place)).toEqual(before);
  });

  test.each([
    ['zeroed', 0],
    ['overwritten', 0x5a],
  ])('after a kill, with a page in the middle %s, is found at the start and left as it is', (_what, byte) => {
    using place = scratch();
    using dead = scratch();
    fill(place);
    const page = rootPage(place.file, 'block');
    const db = new Database(place.file);
    db.exec("INSERT INTO fact (key, value) VALUES ('in the', 'log')");
    leaveBehind(place.file, dead.file);
    db.close();
    overwritePage(dead.file, page, byte);
    const before = bytesOf(dead);
    expect(refusal(dead.path)).toMatchObject({ exitCode: 1, message: expect.stringMatching(WORDS) });
    expect(bytesOf(dead)).toEqual(before);
  });

  test.each(['block', 'coverage', 'request', 'device'])(
    'with its table %s overwritten is found at the first use',
    (table) => {
      using place = scratch();
      fill(place);
      overwritePage(place.file, rootPage(place.file, table), 0x5a);
      const state = openStore(place.path);
      try {
        const use = (): void => {
          state.store.telemetry('d');
          state.store.devices();
          state.store.read('live', { block: 0, line: 0 }, { lines: 10, bytes: 1000 });
          state.ledger.book(1, { lane: 'live', stream: 'devices' });
        };
        expect(use).toThrow(UserError);
        expect(use).toThrow(WORDS);
      } finally {
        state.close();
      }
    },
  );
});

test.each([
  ['SQLITE_FULL', /^Free space on that disk and start again, or write the copy to another disk/],
  ['ENOSPC', /^Free space on that disk/],
  ['EROFS', /^Mount it for writing/],
  ['SQLITE_IOERR_WRITE', /^Check the disk \(free space, quota, health\)/],
  ['EACCES', /^(?:Make this user the owner|Give this user write permission): /],
  ['ERR_FS_EISDIR', /^Write the copy to another directory \(--backup FILE\)/],
])('the remedy for a copy before an upgrade that fails depends on the error: %s', (code, words) => {
  using place = scratch();
  const error = Object.assign(new Error('no'), { code });
  expect(copyRemedy(place.file, `${place.file}.version-1`, error)).toMatch(words);
});

describe('a change of the shape', () => {
  test.each([
    ['of a new state', { done: 0, table: 'coverage', version: MIGRATIONS.length }],
    ['of one of version 1', { done: 1, table: 'cleared', version: 2 }],
  ])('that fails leaves the state as it was, and reports that: %s', (_what, { done, table, version }) => {
    using place = scratch();
    const db = new Database(place.file);
    db.pragma(`application_id = ${APPLICATION_ID}`);
    for (const step of MIGRATIONS.slice(0, done)) db.exec(step);
    db.pragma(`user_version = ${done}`);
    using another = scratch();
    copyFileSync(place.file, another.file);
    db.exec(`CREATE TABLE ${table} (theirs); INSERT INTO ${table} VALUES ('kept')`);
    const names = (of: Database.Database) => of.prepare('SELECT name FROM sqlite_master').pluck().all();
    const before = names(db);
    db.close();
    const error = refusal(place.path);
    expect(error.exitCode).toBe(1);
    expect(error.message).toContain(
      `could not be upgraded to state version ${version} (table ${table} already exists). It was not changed; use the version that wrote it, or restore a backup into an empty data_dir.`,
    );
    const after = new Database(place.file, { readonly: true });
    expect(names(after)).toEqual(before);
    expect(after.prepare(`SELECT * FROM ${table}`).pluck().all()).toEqual(['kept']);
    expect(Number(after.pragma('user_version', { simple: true }))).toBe(done);
    after.close();
    // A backup in an empty directory.
    openStore(another.path).close();
  });
});
