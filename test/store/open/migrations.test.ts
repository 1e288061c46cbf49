/**
 * A state as the first version left it, opened by this one: everything is there, and the archive counts from now.
 */
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { KEPT_FRAME_BYTES, pack, repack } from '../../../src/store/archive/block-codec.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../../src/store/open/migrations.ts';
import { openStore } from '../../../src/store/store.ts';
import { readAll, type Scratch, scratch } from '../support.ts';

/** Makes the file of state version 1, with blocks, sums and a destination in the middle of them. */
function makeVersion1({ file }: Scratch): { live: string[]; history: string[] } {
  const db = new Database(file);
  db.pragma('auto_vacuum = INCREMENTAL');
  db.pragma('journal_mode = WAL');
  db.pragma(`application_id = ${APPLICATION_ID}`);
  db.exec(MIGRATIONS[0] ?? '');
  db.pragma('user_version = 1');
  const insert = db.prepare(
    'INSERT INTO block (lane, device_id, first_ns, last_ns, lines, bytes, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  const held: { live: string[]; history: string[] } = { live: [], history: [] };
  for (let n = 0; n < 3000; n += 1) {
    const lane = n % 3 === 0 ? 'history' : 'live';
    const lines = [`telemetry,device_id=d,sensor=s value=${n} ${n}`, `telemetry,device_id=d,sensor=t value=${n} ${n}`];
    const text = lines.join('\n');
    insert.run(lane, 'd', n, n, 2, text.length, zstdCompressSync(text));
    held[lane].push(...lines);
  }
  db.exec(`INSERT INTO day_sum VALUES ('d', 0, 1000, 2000, 1, 2), ('d', 1, 2000, 4000, 3, 4);
    INSERT INTO destination (id, name, identity) VALUES (1, 'influx', 'x');
    INSERT INTO position VALUES (1, 'live', 1500, 1), (1, 'history', 3001, 0)`);
  db.close();
  return held;
}

test('a state of version 1 is brought to this one with all it holds', () => {
  using place = scratch();
  const held = makeVersion1(place);
  const beganMs = Date.now();
  const { store, maintenance, close } = openStore(place.path);
  expect(readAll({ store }, 'live').lines).toEqual(held.live);
  expect(readAll({ store }, 'history').lines).toEqual(held.history);
  expect(store.totals()).toMatchObject({ readings: 3000, points: 6000, lines: 6000 });
  const { pendingLines } = store.backlog(1);
  expect(pendingLines).toBe(store.read('live', store.position(1, 'live'), { lines: 9e9, bytes: 9e9 }).lines.length);
  const claims = { configured: [1], active: [1] };
  expect(maintenance.clear({ ...claims, beforeMs: beganMs - 1000 }).blocks, 'it counts from now').toBe(0);
  expect(maintenance.clear({ ...claims, beforeMs: Date.now() + 1000 }).blocks).toBeGreaterThan(0);
  expect(store.backlog(1).pendingLines).toBe(pendingLines);
  close();
});

test('bookings and jobs that were stored under an older name of their lane or kind have the new one', () => {
  using place = scratch();
  const db = new Database(place.file);
  db.pragma('journal_mode = WAL');
  db.pragma(`application_id = ${APPLICATION_ID}`);
  for (const step of MIGRATIONS.slice(0, 6)) db.exec(step);
  db.pragma('user_version = 6');
  db.exec(`INSERT INTO request (at_ms, lane, stream) VALUES (1, 'sweep', 'telemetry'), (2, 'live', 'telemetry');
    INSERT INTO job (kind, args, asked_by, asked_ms) VALUES ('mend', '{}', '--verify', 1), ('once', '{}', '--once', 2)`);
  db.close();
  openStore(place.path).close();
  const after = new Database(place.file, { readonly: true });
  expect(after.prepare('SELECT lane FROM request ORDER BY at_ms').pluck().all()).toEqual(['idle-poll', 'live']);
  expect(after.prepare('SELECT kind FROM job ORDER BY requested_ms').pluck().all()).toEqual(['repair', 'once']);
  after.close();
});

describe('a program that writes one frame a block', () => {
  /** The state version of the last one. */
  const LAST = 11;

  /** Opens a state as that program would. */
  function openEarlier(place: Scratch): void {
    const steps = MIGRATIONS as string[];
    const later = steps.splice(LAST);
    try {
      openStore(place.path).close();
    } finally {
      steps.push(...later);
    }
  }

  test('would lose the lines of all frames but the first, without an error', () => {
    const { data, bytes } = pack(['x'.repeat(KEPT_FRAME_BYTES + 1)]);
    const block = { data, bytes: BigInt(bytes) };
    const both = repack([block, block]);
    expect(zstdDecompressSync(both.data)).toHaveLength(bytes);
    expect(both.bytes).toBe(2 * bytes + 1);
  });

  test.each([0, LAST])('opens no state that this one has opened (of version %i before)', (from) => {
    using place = scratch();
    if (from > 0) openEarlier(place);
    openStore(place.path).close();
    expect(() => openEarlier(place)).toThrow(/written by a newer Tidemark .*this version supports 11/);
  });
});
