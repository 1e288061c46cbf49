/**
 * The state between processes: other users, other writers, a disk that is full.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { UserError } from '../../../src/core/faults.ts';
import { createArchive } from '../../../src/store/archive/archive.ts';
import { explained } from '../../../src/store/explain.ts';
import { openDatabase } from '../../../src/store/open/database.ts';
import { openStore } from '../../../src/store/store.ts';
import { isStateLocked } from '../../../src/store/views/inspect.ts';
import { smallDisk } from '../../support/small-disk.ts';
import { readAll, type Scratch, scratch } from '../support.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const STORE = pathToFileURL(join(ROOT, 'src', 'store', 'store.ts')).href;

/** A program that opens the state of a directory, reports the result, and holds it until its input ends. */
const OPENER = `
  const { openStore } = await import(process.argv[1]);
  try {
    const { close } = openStore(process.argv[2]);
    console.log('open');
    process.stdin.resume().on('end', () => { close(); process.exit(0); });
  } catch (error) {
    console.log(error.name + ' ' + error.exitCode + ' ' + error.message);
    process.exit(9);
  }`;

const openerArgs = (directory: string): string[] => ['--input-type=module', '-e', OPENER, STORE, directory];

/** Who is nobody here: tests often run as root, whom no mode keeps out. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

function openAsNobody(directory: string): string {
  const { stdout, stderr } = spawnSync(process.execPath, openerArgs(directory), {
    ...NOBODY,
    cwd: ROOT,
    encoding: 'utf8',
    input: '',
  });
  return `${stdout}${stderr}`.trim();
}

async function holder(directory: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, openerArgs(directory), { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] });
  const [first] = await once(child.stdout ?? child, 'data');
  expect(String(first)).toBe('open\n');
  return child;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

describe('a user without the right to write', () => {
  const WORDS =
    /^UserError 1 .*tidemark\.db: this user \(\d+\) cannot write the state \(.*\)\. Make this user the owner: chown \d+ \//;
  // A state that is there may be in use: another owner would take it away from its process.
  const ELSEWHERE =
    NOBODY.uid === undefined
      ? /^UserError 1 .*tidemark\.db: this user \(\d+\) cannot write .*\. Give this user write permission: chmod u\+rwx \//
      : /^UserError 1 .*tidemark\.db: this user \(\d+\) cannot write .*\. Run Tidemark as the user that owns .*tidemark\.db \(0\)/;

  function forNobody(): Scratch {
    const place = scratch();
    chmodSync(place.path, 0o755);
    return place;
  }

  test('is reported for a directory', () => {
    using place = forNobody();
    if (NOBODY.uid === undefined) chmodSync(place.path, 0o555);
    expect(openAsNobody(place.path)).toMatch(WORDS);
    // One that is not there cannot get another owner.
    expect(openAsNobody(join(place.path, 'new'))).toMatch(
      /cannot create '.*new' \(.*\)\. As root: mkdir -p \/\S+new && chown \d+ \/\S+new; or set data_dir/,
    );
  });

  test('is reported for a directory that contains a state, which stays as it is', () => {
    using place = forNobody();
    openStore(place.path).close();
    for (const name of ['tidemark.db', 'tidemark.lock']) chmodSync(join(place.path, name), 0o444);
    chmodSync(place.path, 0o555);
    const before = readFileSync(place.file);
    expect(openAsNobody(place.path)).toMatch(ELSEWHERE);
    expect(readFileSync(place.file).equals(before)).toBe(true);
    chmodSync(place.path, 0o755);
    if (NOBODY.uid === undefined) return;
    const asOwner = spawnSync(process.execPath, openerArgs(place.path), { cwd: ROOT, encoding: 'utf8', input: '' });
    expect(asOwner.stdout).toBe('open\n');
  });

  test('is reported for a state file of its own directory that belongs to another user', () => {
    using place = forNobody();
    openStore(place.path).close();
    rmSync(join(place.path, 'tidemark.lock'));
    chmodSync(place.file, 0o444);
    if (NOBODY.uid !== undefined) chownSync(place.path, NOBODY.uid, NOBODY.gid);
    else chmodSync(place.path, 0o555);
    // Copied there by root, as a restored backup is: nobody else can work with it.
    const remedy = NOBODY.uid === undefined ? ELSEWHERE : /\. As root: chown 65534 \/\S+tidemark\.db, or set data_dir/;
    expect(openAsNobody(place.path)).toMatch(remedy);
    chmodSync(place.path, 0o755);
  });
});

describe('a state that another process works with', () => {
  test('is never to change its owner, nor are its files to be moved away', async () => {
    using place = scratch();
    chmodSync(place.path, 0o755);
    const child = await holder(place.path);
    try {
      for (const mode of [0o755, 0o700]) {
        chmodSync(place.path, mode);
        const said = openAsNobody(place.path);
        expect(said).toMatch(/^UserError 1 /);
        expect(said).not.toMatch(/chown|move tidemark/);
      }
    } finally {
      chmodSync(place.path, 0o755);
      child.kill('SIGKILL');
    }
  });

  test('is refused, and free again the moment that process is killed', async () => {
    using place = scratch();
    const child = await holder(place.path);
    try {
      const refused = expect(() => openStore(place.path));
      refused.toThrow(UserError);
      expect(() => openStore(place.path)).toThrow(
        /Tidemark already runs with this state\. If that is the daemon, no second one is needed/,
      );
      const second = spawnSync(process.execPath, openerArgs(place.path), { cwd: ROOT, encoding: 'utf8', input: '' });
      expect(second.stdout).toMatch(/^UserError 1 .*Tidemark already runs with this state/);
      await end(child, 'SIGKILL');
      openStore(place.path).close();
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('also excludes processes that come after one was refused', () => {
    using place = scratch();
    const { close } = openStore(place.path);
    const attempt = (): string =>
      spawnSync(process.execPath, openerArgs(place.path), { cwd: ROOT, encoding: 'utf8', input: '' }).stdout;
    // Here, in the same process, an attempt must not take the lock away either.
    expect(() => openStore(place.path)).toThrow(/already runs with this state/);
    expect(attempt()).toMatch(/^UserError 1 .*Tidemark already runs with this state/);
    close();
    expect(attempt()).toBe('open\n');
  });
});

describe('a state that several paths lead to', () => {
  const ways = {
    'a link to the directory': (place: Scratch) => {
      symlinkSync(join(place.path, 'real'), join(place.path, 'other'));
      return 'real';
    },
    'a link to the file': (place: Scratch) => {
      mkdirSync(join(place.path, 'other'));
      symlinkSync(join(place.path, 'real', 'tidemark.db'), join(place.path, 'other', 'tidemark.db'));
      return 'real';
    },
    'links to a file of another name': (place: Scratch) => {
      renameSync(join(place.path, 'real', 'tidemark.db'), join(place.path, 'real', 'kept.db'));
      for (const name of ['other', 'third']) {
        mkdirSync(join(place.path, name));
        symlinkSync(join(place.path, 'real', 'kept.db'), join(place.path, name, 'tidemark.db'));
      }
      return 'third';
    },
  };
  test.each(Object.entries(ways))('has one writer: %s', async (_name, make) => {
    using place = scratch();
    openStore(join(place.path, 'real')).close();
    const [one, other] = [join(place.path, make(place)), join(place.path, 'other')];
    for (const [first, second] of [
      [one, other],
      [other, one],
    ] as const) {
      const child = await holder(first);
      try {
        expect(isStateLocked(second)).toBe(true);
        expect(() => openStore(second)).toThrow(/Tidemark already runs with this state/);
      } finally {
        await end(child, 'SIGKILL');
      }
      openStore(second).close();
    }
  });
});

describe('a state whose lock file was deleted', () => {
  test('is not written any more by the process that had the lock, so that a second one can have it', async () => {
    using place = scratch();
    const first = openStore(place.path);
    first.store.saveFact('a', '1');
    rmSync(join(place.path, 'tidemark.lock'));
    const second = await holder(place.path);
    try {
      const refused =
        /tidemark\.lock: this file was deleted or replaced while the daemon held its lock, .*\. Tidemark stops writing\. Start it again when no other process uses this data_dir\.$/;
      expect(() => first.store.saveFact('a', '2')).toThrow(UserError);
      expect(() => first.store.append(['m v=1 1'], 'live')).toThrow(refused);
      const purpose = { stream: 'account', lane: 'inventory' } as const;
      expect(() => first.ledger.book(Date.now(), purpose)).toThrow(refused);
      expect([
        first.store.fact('a'),
        first.store.read('live', { block: 0, line: 0 }, { lines: 9, bytes: 99 }).lines,
      ]).toEqual(['1', []]);
      first.close();
    } finally {
      await end(second, 'SIGKILL');
    }
    openStore(place.path).close();
  });
});

/**
 * Appends until it is refused.
 *
 * @returns the lines that were taken, and the refusal.
 */
function fillUp(append: (lines: readonly string[]) => void): { taken: string[]; error: unknown } {
  const taken: string[] = [];
  for (let n = 0; n < 5000; n += 1) {
    // Hardly to be compressed, so that it fills.
    const lines = Array.from({ length: 10 }, (_, at) => `m v=${Math.sin(n * 10 + at)} ${n}`);
    try {
      append(lines);
    } catch (error) {
      return { taken, error };
    }
    taken.push(...lines);
  }
  throw new Error('it never was full');
}

const FULL_WORDS =
  /tidemark\.db: the disk is full\. Free space on the disk and start again; the data stored before is safe/;

describe('a full disk', () => {
  test('is reported, and everything that was stored before is there', () => {
    // Where nothing can be mounted, a state that may not grow stands for it.
    using disk = smallDisk('2m') ?? scratch();
    const isDisk = disk.path.includes('tidemark-disk-');
    const { db, path, close } = openDatabase(disk.path);
    const archive = createArchive(db);
    if (!isDisk) db.pragma('max_page_count = 300');
    const append = db.transaction((lines: readonly string[]) =>
      archive.append({ lane: 'live', deviceId: null, firstNs: null, lastNs: null, lines }),
    );
    const { taken, error } = fillUp((lines) => explained(path, () => append(lines)));
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ exitCode: 1, message: expect.stringMatching(FULL_WORDS) });
    close();
    using roomier = scratch();
    // The log too: where there is no room it cannot be carried over into the file.
    for (const end of ['', '-wal'])
      if (existsSync(`${disk.file}${end}`)) copyFileSync(`${disk.file}${end}`, `${roomier.file}${end}`);
    const state = openStore(roomier.path);
    expect(taken.length).toBeGreaterThan(100);
    expect(readAll(state, 'live').lines).toEqual(taken);
    state.close();
  });
});

describe('a file system that fails', () => {
  test('is reported, with a remedy', () => {
    using place = scratch();
    mkdirSync(join(place.path, 'state'));
    const script = `
      const { openStore } = await import(process.argv[1]);
      const { store } = openStore(process.argv[2]);
      try { for (let n = 0; n < 5000; n += 1) store.append([String(Math.sin(n)).repeat(100) + Math.cos(n)], 'live'); }
      catch (error) { console.log(error.name + ' ' + error.exitCode + ' ' + error.message); }`;
    // A limit on the size of files fails a write in the middle, with another code than a full disk.
    const { stdout } = spawnSync(
      '/bin/sh',
      [
        '-c',
        'trap "" XFSZ; ulimit -f 800; exec "$@"',
        'sh',
        process.execPath,
        '--input-type=module',
        '-e',
        script,
        STORE,
        join(place.path, 'state'),
      ],
      { cwd: ROOT, encoding: 'utf8' },
    );
    expect(stdout).toMatch(/^UserError 1 .*tidemark\.db: the file system failed \(.*\)\. Check the disk/);
    const db = new Database(join(place.path, 'state', 'tidemark.db'));
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    db.close();
  });
});
