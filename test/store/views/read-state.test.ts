/**
 * The state opened read-only: nothing is written, no process is delayed, and an unreadable state is reported.
 */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { UserError } from '../../../src/core/faults.ts';
import { hashHex } from '../../../src/core/hash.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { readOnce } from '../../../src/store/open/read-only.ts';
import { openToRead, readStateView } from '../../../src/store/views/read-state.ts';
import { device, pageCommit, type Scratch, scratch, scratchStore } from '../support.ts';

const LINE = 'telemetry,device_id=d,sensor=s value=1 5000000';

/** A state with a device, a page and a booking. */
function filled() {
  const open = scratchStore({ nowMs: () => 7000 });
  const requestId = open.ledger.book(6000, { lane: 'live', stream: 'telemetry', deviceId: 'd' });
  open.ledger.recordOutcome(requestId, { status: 200, fault: null });
  open.store.saveInventory({
    listed: [{ record: device('d'), name: 'd', line: null, digest: 'x' }],
    missing: [],
    atMs: 6500,
  });
  const edge = { at: 5_000_000n, digest: 'x' };
  const { revision } = open.store.telemetry('d');
  open.store.commitPage(
    pageCommit({
      revision,
      requestId,
      lines: [LINE],
      firstNs: 5_000_000n,
      lastNs: 5_000_000n,
      newReadings: 1,
      covered: [{ from: 1n, to: 9_000_000n, first: edge, last: edge }],
    }),
  );
  return open;
}

/** Every file of a directory and what it holds. `-shm` is no content: every reader marks its place there. */
function contents(directory: string): Record<string, string> {
  const names = readdirSync(directory).filter((name) => !name.endsWith('-shm'));
  return Object.fromEntries(names.map((name) => [name, hashHex(readFileSync(join(directory, name), 'latin1'))]));
}

/** The message of what cannot be read. */
function refusal(place: Scratch): string {
  try {
    openToRead(place.path)?.[Symbol.dispose]();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).exitCode).toBe(1);
    return (error as UserError).message;
  }
  throw new Error('read');
}

describe('a state that is looked at', () => {
  test('beside a working process shows one moment, does not delay that process, and is not changed', () => {
    using open = filled();
    const directory = dirname(open.file);
    const before = contents(directory);
    using look = openToRead(directory);
    expect(look?.isLocked).toBe(true);
    expect(look?.store.coverageOfAll().get('d')).toMatchObject({ newestNs: 5_000_000n, gaps: [] });
    expect(look?.facts.requestsOf('d', 5)).toEqual({
      last: [{ atMs: 6000, lane: 'live', status: 200, fault: null, newReadings: 1 }],
      failed: 0,
    });
    expect(contents(directory)).toEqual(before);
    // The writer continues; the reader still sees the earlier state.
    open.store.markGone('d', 9000);
    expect(open.store.devices()[0]?.goneSinceMs).toBe(9000);
    expect(look?.store.devices()[0]?.goneSinceMs).toBeNull();
    expect(() => look?.store.markGone('d', 1)).toThrow(/readonly/);
  });

  test('without an owner, closed in order or left by a process that died, shows all that was written', () => {
    using open = filled();
    using dead = scratch();
    // The files after a kill: the state and its log, none of it carried over.
    for (const suffix of ['', '-wal']) copyFileSync(`${open.file}${suffix}`, `${dead.file}${suffix}`);
    const left = contents(dead.path);
    {
      using look = openToRead(dead.path);
      expect(look?.isLocked).toBe(false);
      expect(look?.store.devices()).toHaveLength(1);
      expect(look?.facts.lastArchivedMs()).toBe(7000);
    }
    expect(contents(dead.path)).toEqual(left);
    open.close();
    const closed = contents(dirname(open.file));
    using look = openToRead(dirname(open.file));
    expect(look?.isLocked).toBe(false);
    expect(look?.store.devices()).toHaveLength(1);
    expect(contents(dirname(open.file))).toMatchObject(closed);
  });

  test('does not end jobs of a daemon that runs, nor take the lock', () => {
    using open = filled();
    const db = new Database(open.file);
    db.exec(
      "INSERT INTO job (kind, args, requested_by, requested_ms, state, started_ms) VALUES ('once', '{}', '--once', 1, 'running', 2)",
    );
    db.close();
    using look = openToRead(dirname(open.file));
    expect(look?.facts.jobs()).toEqual([
      {
        id: 1,
        kind: 'once',
        state: 'running',
        requestedBy: '--once',
        requestedMs: 1,
        startedMs: 2,
        args: {},
        progress: null,
      },
    ]);
    expect(open.jobs.open()).toMatchObject([{ state: 'running' }]);
  });

  test('where there is none, or nothing in it yet, is none, and none is made', () => {
    using place = scratch();
    expect(openToRead(join(place.path, 'none'))).toBeNull();
    expect(openToRead(place.path)).toBeNull();
    writeFileSync(place.file, '');
    expect(openToRead(place.path)).toBeNull();
    expect(readFileSync(place.file)).toHaveLength(0);
    expect(existsSync(join(place.path, 'tidemark.lock'))).toBe(false);
  });
});

describe('an unreadable state is an error with a remedy', () => {
  test.each([
    [1, /written by an older Tidemark \(state version 1, this version reads \d+\)\. Start the daemon of this version/],
    [MIGRATIONS.length + 1, /written by a newer Tidemark .* Use the newer version/],
  ])('a state of version %i is refused', (version, words) => {
    using place = scratch();
    const db = new Database(place.file);
    db.exec(MIGRATIONS[0] ?? '');
    db.pragma(`application_id = ${APPLICATION_ID}`);
    db.pragma(`user_version = ${version}`);
    db.close();
    const before = contents(place.path);
    expect(refusal(place)).toMatch(words);
    expect(contents(place.path)).toEqual(before);
  });

  test('a state that another build of this version has left', () => {
    using place = scratch();
    const db = new Database(place.file);
    for (const step of MIGRATIONS) db.exec(step);
    db.exec('DROP TABLE job');
    db.pragma(`application_id = ${APPLICATION_ID}`);
    db.pragma(`user_version = ${MIGRATIONS.length}`);
    db.close();
    expect(refusal(place)).toMatch(
      /another build of Tidemark has written this state, with another database schema \(no such table: job\)/,
    );
  });

  test('a wrong statement of this build is not taken for the state of another one', () => {
    using open = filled();
    open.close();
    expect(() => readOnce(dirname(open.file), (db) => db.prepare('SELECT x FROM nowhere').all())).toThrow(
      /^no such table: nowhere$/,
    );
  });

  test('a foreign, damaged or truncated file and a directory are refused', () => {
    using place = scratch();
    const db = new Database(place.file);
    db.exec('CREATE TABLE x (y)');
    db.close();
    expect(refusal(place)).toMatch(/database of another program/);
    writeFileSync(place.file, 'this is no database at all, and long enough to be looked at as one'.repeat(100));
    expect(refusal(place)).toMatch(/damaged/);
    using open = filled();
    open.close();
    writeFileSync(place.file, readFileSync(open.file).subarray(0, 20_000));
    expect(() => {
      using look = openToRead(place.path);
      look?.store.devices();
      look?.store.coverageOfAll();
      look?.store.totals();
    }).toThrow(/damaged/);
    using other = scratch();
    mkdirSync(other.file);
    expect(refusal(other)).toMatch(/this is not a file/);
  });

  test('a state of another user is refused', () => {
    using open = filled();
    open.close();
    const directory = dirname(open.file);
    const isAdministrator = process.geteuid?.() === 0;
    // The administrator may read everything.
    if (isAdministrator) process.seteuid?.(65_534);
    else chmodSync(directory, 0o000);
    try {
      expect(() => openToRead(directory)).toThrow(
        /this user cannot read the state \(EACCES\).*Run the command as the user/,
      );
    } finally {
      if (isAdministrator) process.seteuid?.(0);
      else chmodSync(directory, 0o700);
    }
  });
});

const SINCE = { day: 100, requestsMs: 0 };

test('without a state, or with an empty one, nothing is returned and nothing is created', () => {
  using place = scratch();
  expect(readStateView(`${place.path}/none`, SINCE)).toBeNull();
  expect(readStateView(place.path, SINCE)).toBeNull();
  writeFileSync(place.file, '');
  expect(readStateView(place.path, SINCE)).toBeNull();
  expect(readFileSync(place.file)).toHaveLength(0);
});

test('it sees the last write of the process that holds the lock, and does not delay it', () => {
  using open = scratchStore();
  const directory = open.file.replace(/\/[^/]+$/, '');
  expect(readStateView(directory, SINCE)).toEqual({
    account: null,
    devices: [],
    telemetry: new Map(),
    sentMs: [],
    liveSentMs: [],
    openAlerts: { open: 0, sinceOldest: 0 },
  });
  open.ledger.book(1000, { lane: 'live', stream: 'telemetry', deviceId: 'a' });
  open.ledger.book(5000, { lane: 'live', stream: 'telemetry', deviceId: 'a' });
  expect(readStateView(directory, SINCE)?.sentMs).toHaveLength(2);
  expect(readStateView(directory, { ...SINCE, requestsMs: 1000 })?.sentMs).toHaveLength(1);
  open.store.saveFact('account', JSON.stringify({ workspaceId: 'ws' }));
  expect(readStateView(directory, SINCE)?.account).toEqual({ workspaceId: 'ws' });
});

test('a state of the first version is read as it is, and not changed', () => {
  using place = scratch();
  const db = new Database(place.file);
  db.exec(MIGRATIONS[0] ?? '');
  db.pragma(`application_id = ${APPLICATION_ID}`);
  db.pragma('user_version = 1');
  db.exec(`
    INSERT INTO device (device_id, name, record, first_listed_ms, last_listed_ms, gone_since_ms) VALUES
      ('a', 'A', '{"deviceId":"a","lastSeenAt":"5000000000","locationUpdatedAt":null}', 1, 7, NULL),
      ('b', 'B', '{"deviceId":"b","lastSeenAt":null,"locationUpdatedAt":null}', 1, 3, 4);
    INSERT INTO coverage VALUES ('a', 10, 20, NULL, NULL, NULL, NULL), ('a', 20, 9000000, 11, 'x', 8000000, 'y');
    INSERT INTO day_sum VALUES ('a', 99, 5, 5, 0, 0), ('a', 100, 7, 7, 0, 0), ('a', 101, 0, 0, 0, 0);`);
  db.close();
  const look = readStateView(place.path, SINCE);
  expect(look?.devices).toEqual([
    { record: { deviceId: 'a', lastSeenAt: 5_000_000_000n, locationUpdatedAt: null }, lastListedMs: 7 },
  ]);
  expect(look?.telemetry.get('a')).toEqual({
    covered: [{ from: 10n, to: 9_000_000n }],
    newestMs: 8,
    beginsNs: null,
    days: [{ day: 100, readings: 7 }],
  });
  const after = new Database(place.file, { readonly: true });
  expect(after.pragma('user_version', { simple: true })).toBe(1);
  after.close();
});

test('a file that is no readable state is reported as such', () => {
  using place = scratch();
  const reported = (): string => {
    try {
      readStateView(place.path, SINCE);
    } catch (error) {
      expect(error).toBeInstanceOf(UserError);
      expect((error as UserError).exitCode).toBe(1);
      return (error as UserError).message;
    }
    throw new Error('read');
  };
  const db = new Database(place.file);
  db.exec('CREATE TABLE x (y)');
  db.pragma('user_version = 3');
  expect(reported()).toMatch(/a database of another program/);
  db.pragma(`application_id = ${APPLICATION_ID}`);
  db.pragma(`user_version = ${MIGRATIONS.length + 1}`);
  expect(reported()).toMatch(/written by a newer Tidemark .* Use the newer version/);
  db.close();
  writeFileSync(place.file, 'this is no database at all, and long enough to be looked at as one'.repeat(100));
  expect(reported()).toMatch(/damaged/);
});
