/**
 * The copy of the state: consistent beside a writer, private, checked, and never in place of another file.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { UserError } from '../../../src/core/faults.ts';
import { MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { openStore } from '../../../src/store/store.ts';
import { type Backup, backUpState } from '../../../src/store/views/backup.ts';
import { pageCommit, readAll, type Scratch, scratch } from '../support.ts';

const NEVER = new AbortController().signal;

const backUp = async (directory: string, file: string, more: { signal?: AbortSignal; onProgress?: () => void } = {}) =>
  await backUpState(
    { directory, file, nowMs: Date.now(), random: Math.random, onProgress: more.onProgress ?? (() => {}) },
    more.signal ?? NEVER,
  );

async function mistakeOf(work: Promise<Backup>): Promise<UserError> {
  const error = await work.then(
    () => null,
    (cause: unknown) => cause,
  );
  expect(error).toBeInstanceOf(UserError);
  return error as UserError;
}

/** Commits `count` pages of so many bytes that nothing compresses. */
function commitPages(open: Pick<ReturnType<typeof openStore>, 'store'>, count: number, bytes = 2000): void {
  for (let n = 0; n < count; n += 1) {
    const { revision } = open.store.telemetry('d');
    const at = BigInt(revision);
    const text = randomBytes((bytes * 3) / 4).toString('base64url');
    const lines = [`telemetry,device_id=d,sensor=s text="${text}" ${at}`];
    const daySums = [{ day: 0, readings: 1, points: 1, hashHigh: 1, hashLow: 1 }];
    const covered = [{ from: 0n, to: at + 1n, first: null, last: null }];
    open.store.commitPage(
      pageCommit({ deviceId: 'd', revision, lines, firstNs: at, lastNs: at, newReadings: 1, daySums, covered }),
    );
  }
}

/** The contents of a restored copy: lines, sums and coverage have to be from the same moment. */
function held(file: string, place: Scratch): number {
  const directory = join(place.path, `restored-${readdirSync(place.path).length}`);
  mkdirSync(directory);
  writeFileSync(join(directory, 'tidemark.db'), readFileSync(file));
  const open = openStore(directory);
  try {
    const { readings } = open.store.totals();
    const { revision, covered } = open.store.telemetry('d');
    expect([readAll(open, 'live').lines.length, revision]).toEqual([readings, readings]);
    expect(covered).toMatchObject(readings === 0 ? [] : [{ from: 0n, to: BigInt(readings) }]);
    commitPages(open, 1);
    expect(open.store.totals().readings).toBe(readings + 1);
    return readings;
  } finally {
    open.close();
  }
}

describe('a copy', () => {
  test('of a state that no process has open, with data in its log alone, and of an empty one', async () => {
    using place = scratch();
    const directory = join(place.path, 'state');
    const first = openStore(directory);
    const empty = join(place.path, 'empty.db');
    await backUp(directory, empty);
    commitPages(first, 20);
    const file = join(place.path, 'copy.db');
    // The writer has it open, and nothing was carried over yet.
    await backUp(directory, file);
    expect(statSync(`${directory}/tidemark.db-wal`).size).toBeGreaterThan(0);
    first.close();
    const closed = join(place.path, 'closed.db');
    const backup = await backUp(directory, closed);
    expect(backup).toEqual({ bytes: statSync(closed).size, stateVersion: MIGRATIONS.length });
    expect([held(empty, place), held(file, place), held(closed, place)]).toEqual([0, 20, 20]);
  });

  test('is one file that only its owner may read, and leaves nothing else behind', async () => {
    using place = scratch();
    const directory = join(place.path, 'state');
    openStore(directory).close();
    const before = process.umask(0);
    const modes = new Set<number>();
    const onProgress = (): void => {
      const files = readdirSync(place.path).filter((name) => name.includes('copy.db'));
      for (const name of files) modes.add(statSync(join(place.path, name)).mode & 0o777);
    };
    try {
      await backUp(directory, join(place.path, 'copy.db'), { onProgress });
    } finally {
      process.umask(before);
    }
    expect([...modes], 'while it is made').toEqual([0o600]);
    expect(statSync(join(place.path, 'copy.db')).mode & 0o777).toBe(0o600);
    expect(readdirSync(place.path).toSorted()).toEqual(['copy.db', 'state']);
    const copy = new Database(join(place.path, 'copy.db'), { readonly: true });
    expect(copy.pragma('journal_mode', { simple: true })).toBe('delete');
    copy.close();
  });

  test('ends beside a writer that never rests, shows one moment, and does not pin the log afterwards', async () => {
    using place = scratch();
    const directory = join(place.path, 'state');
    const open = openStore(directory);
    commitPages(open, 900, 80_000);
    const before = open.store.totals().readings;
    let steps = 0;
    const file = join(place.path, 'copy.db');
    await backUp(directory, file, {
      onProgress: () => {
        steps += 1;
        commitPages(open, 20);
      },
    });
    expect(steps).toBeGreaterThan(4);
    expect(open.store.totals().readings).toBe(before + 20 * steps);
    expect(held(file, place), 'the moment at which it began').toBe(before);
    expect(open.store.forgetting.emptyLog(), 'nobody reads any more').toBe(true);
    open.close();
  });

  test('of a state of an older version is of that version', async () => {
    using place = scratch();
    const { MIGRATIONS, APPLICATION_ID } = await import('../../../src/store/open/migrations.ts');
    const db = new Database(join(place.path, 'tidemark.db'));
    db.exec(MIGRATIONS[0] ?? '');
    db.pragma(`application_id = ${APPLICATION_ID}`);
    db.pragma('user_version = 1');
    db.close();
    expect(await backUp(place.path, join(place.path, 'old.db'))).toMatchObject({ stateVersion: 1 });
  });
});

describe('obstacles', () => {
  test('an existing file, a directory, a missing folder: each is reported, and nothing is touched', async () => {
    using place = scratch();
    const directory = join(place.path, 'state');
    openStore(directory).close();
    const taken = join(place.path, 'taken.db');
    writeFileSync(taken, 'precious');
    const mistakes = await Promise.all(
      [taken, directory, join(place.path, 'missing', 'x.db'), join(taken, 'x.db')].map(
        async (file) => await mistakeOf(backUp(directory, file)),
      ),
    );
    expect(mistakes.map(({ exitCode }) => exitCode)).toEqual([1, 1, 1, 1]);
    expect(mistakes[0]?.message).toMatch(/already exists and is not overwritten\. Choose another name/);
    expect(mistakes[1]?.message).toMatch(/is a directory\. Choose the name of a new file in it/);
    expect(mistakes[2]?.message).toMatch(/there is no directory .*missing\. Create it first/);
    expect(readFileSync(taken, 'utf8')).toBe('precious');
    expect(readdirSync(place.path).toSorted()).toEqual(['state', 'taken.db']);
  });

  test('a name that becomes occupied while the copy is made', async () => {
    using place = scratch();
    const directory = join(place.path, 'state');
    openStore(directory).close();
    const file = join(place.path, 'copy.db');
    const { message } = await mistakeOf(
      backUp(directory, file, { onProgress: () => writeFileSync(file, 'somebody else') }),
    );
    expect(message).toMatch(/already exists/);
    expect(readFileSync(file, 'utf8')).toBe('somebody else');
    expect(readdirSync(place.path).toSorted()).toEqual(['copy.db', 'state']);
  });

  test('a missing state and one of another program are refused', async () => {
    using place = scratch();
    const file = join(place.path, 'copy.db');
    expect((await mistakeOf(backUp(join(place.path, 'none'), file))).message).toMatch(
      /There is no state in .*data_dir/,
    );
    const other = join(place.path, 'other');
    mkdirSync(other);
    const db = new Database(join(other, 'tidemark.db'));
    db.exec('CREATE TABLE x (y)');
    db.close();
    expect((await mistakeOf(backUp(other, file))).message).toMatch(/not a complete state of Tidemark/);
    expect(existsSync(file)).toBe(false);
    expect(readdirSync(other)).toEqual(['tidemark.db']);
  });

  test('a directory without write permission', async () => {
    using place = scratch();
    const directory = join(place.path, 'state');
    openStore(directory).close();
    const { message } = await mistakeOf(backUp(directory, relative('', '/sys/tidemark-copy.db')));
    expect(message).toMatch(/(this user may not write|could not be written|no room in)/);
    if (message.includes('may not write')) {
      // Under systemd a relative path does not start where it was typed.
      expect(message).toContain(`into /sys (a relative path starts in the working directory, ${process.cwd()}): E`);
      expect(message).toContain(`Choose another directory, such as ${join(directory, 'tidemark-copy.db')}.`);
    }
    expect(existsSync('/sys/tidemark-copy.db')).toBe(false);
    // Another directory.
    await backUp(directory, join(directory, 'tidemark-copy.db'));
    expect(existsSync(join(directory, 'tidemark-copy.db'))).toBe(true);
  });

  test('an interruption leaves no file', async () => {
    using place = scratch();
    const directory = join(place.path, 'state');
    const open = openStore(directory);
    commitPages(open, 300, 80_000);
    open.close();
    const stop = new AbortController();
    const file = join(place.path, 'copy.db');
    const work = backUp(directory, file, {
      signal: stop.signal,
      onProgress: () => stop.abort(new Error('Stopped')),
    });
    await expect(work).rejects.toThrow('Stopped');
    expect(readdirSync(place.path)).toEqual(['state']);
    // Run again.
    await backUp(directory, file);
    expect(existsSync(file)).toBe(true);
  });
});
