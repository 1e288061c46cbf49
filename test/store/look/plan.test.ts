/**
 * A look at a state that another process works with.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { UserError } from '../../../src/core/faults.ts';
import { lookAtState } from '../../../src/store/look/read-state.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { scratch, scratchStore } from '../support.ts';

const SINCE = { day: 100, requestsMs: 0 };

test('where there is none, or nothing in it yet, nothing is told and nothing is made', () => {
  using place = scratch();
  expect(lookAtState(`${place.path}/none`, SINCE)).toBeNull();
  expect(lookAtState(place.path, SINCE)).toBeNull();
  writeFileSync(place.file, '');
  expect(lookAtState(place.path, SINCE)).toBeNull();
  expect(readFileSync(place.file)).toHaveLength(0);
});

test('it sees what the process that holds the lock has written last, and holds it up in nothing', () => {
  using open = scratchStore();
  const directory = open.file.replace(/\/[^/]+$/, '');
  expect(lookAtState(directory, SINCE)).toEqual({ account: null, devices: [], telemetry: new Map(), requests: 0 });
  open.ledger.book(1000, { lane: 'live', stream: 'telemetry', deviceId: 'a' });
  open.ledger.book(5000, { lane: 'live', stream: 'telemetry', deviceId: 'a' });
  expect(lookAtState(directory, SINCE)?.requests).toBe(2);
  expect(lookAtState(directory, { ...SINCE, requestsMs: 1000 })?.requests).toBe(1);
  open.store.keepFact('account', JSON.stringify({ workspaceId: 'ws' }));
  expect(lookAtState(directory, SINCE)?.account).toEqual({ workspaceId: 'ws' });
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
  const look = lookAtState(place.path, SINCE);
  expect(look?.devices).toEqual([
    { record: { deviceId: 'a', lastSeenAt: 5_000_000_000n, locationUpdatedAt: null }, lastListedMs: 7 },
  ]);
  expect(look?.telemetry.get('a')).toEqual({
    held: [{ from: 10n, to: 9_000_000n }],
    newestMs: 8,
    days: [{ day: 100, readings: 7 }],
  });
  const after = new Database(place.file, { readonly: true });
  expect(after.pragma('user_version', { simple: true })).toBe(1);
  after.close();
});

test('what is no state that can be read is told as such', () => {
  using place = scratch();
  const told = (): string => {
    try {
      lookAtState(place.path, SINCE);
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
  expect(told()).toMatch(/a database of another program/);
  db.pragma(`application_id = ${APPLICATION_ID}`);
  db.pragma(`user_version = ${MIGRATIONS.length + 1}`);
  expect(told()).toMatch(/written by a newer Tidemark .* Look at it with that version/);
  db.close();
  writeFileSync(place.file, 'this is no database at all, and long enough to be looked at as one'.repeat(100));
  expect(told()).toMatch(/damaged/);
});
