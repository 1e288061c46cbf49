/**
 * The jobs in the state, over two connections: the one that holds the lock, and the one of the requester.
 */
import { copyFileSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { JobEnd, JobRequest } from '../../src/core/state/jobs.ts';
import type { ProgressReport } from '../../src/core/status.ts';
import { openJobBoard } from '../../src/store/jobs.ts';
import { isLocked, takeLock } from '../../src/store/open/lock.ts';
import { MIGRATIONS } from '../../src/store/open/migrations.ts';
import { openStore } from '../../src/store/store.ts';
import { scratch, scratchStore } from './support.ts';

const REQUEST: JobRequest = { kind: 'once', args: {}, requestedBy: '--once', requestedMs: 1000.5 };

const DONE: JobEnd = { state: 'done', exitCode: 0, summary: { outcome: 'complete' }, message: null };

const PROGRESS: ProgressReport = {
  totals: { devices: 3, devices_complete: 1, archived_readings: 5, requests: 7, covered_share: 0.5 },
  destinations: [{ pending_points: 1, delivered_points: 2 }],
  allowance: { waiting_until: null },
};

/** A state that one process holds and another one leaves jobs in. */
function bothSides() {
  const state = scratchStore();
  const opened = openJobBoard(state.file.replace(/\/tidemark\.db$/, ''));
  if (opened === null) throw new Error('no jobs');
  const { board } = opened;
  return {
    state,
    board,
    isLocked: opened.isLocked,
    get queue() {
      return state.jobs;
    },
    [Symbol.dispose]: () => {
      opened.close();
      state[Symbol.dispose]();
    },
  };
}

describe('a job', () => {
  test('of an equal request is found while it is open, and is not submitted again', () => {
    using sides = bothSides();
    const { board, queue } = sides;
    const typed = { from: '60d', to: null, finishBy: '12h' };
    const args = { from: '5', to: null, devices: ['a', 'b'], maxShare: 0.5, finishByMs: 99, typed };
    const request: JobRequest = { ...REQUEST, kind: 'backfill', args };
    const first = board.submit(request);
    expect(first.isFound).toBe(false);
    const found = { id: first.id, isFound: true };
    expect(board.submit(request)).toEqual(found);
    queue.take(first.id, 2000);
    queue.saveArgs(first.id, { ...args, begunTo: '9' });
    const of = (change: object) => board.submit({ ...request, args: { ...args, ...change } });
    // Typed again, an age is another time; a date that is typed in another way is the same one.
    expect(of({ from: '6', finishByMs: 100 })).toEqual(found);
    expect(of({ devices: ['b', 'a'], recheck: false })).toEqual(found);
    expect(of({ typed: { ...typed, from: '1970-01-01', finishBy: null } })).toEqual(found);
    const others = [
      { from: '6', typed: { ...typed, from: '59d' } },
      { from: '7', typed: undefined },
      { to: '8' },
      { finishByMs: null, typed: { ...typed, finishBy: null } },
      { devices: [] },
      { maxShare: null },
      { recheck: true },
    ];
    const ids = others.map((change) => of(change)).map(({ id, isFound }) => (isFound ? null : id));
    expect(new Set(ids).size, JSON.stringify(ids)).toBe(others.length);
    expect(ids).not.toContain(null);
    // One that is being cancelled is over soon, and one that has ended has its summary.
    board.cancel(first.id);
    const next = board.submit(request);
    expect(next.isFound).toBe(false);
    queue.end(next.id, DONE, 3000);
    expect(board.submit(request).isFound).toBe(false);
  });

  test('of an equal replay is found, and one of a kind that is for its follower alone is not', () => {
    using sides = bothSides();
    const { board } = sides;
    const args = { destination: null, devices: [], typed: { from: '5d', to: null }, from: '5', to: '9', maxRate: null };
    const replay: JobRequest = { ...REQUEST, kind: 'replay', args };
    const { id } = board.submit(replay);
    expect(board.submit({ ...replay, args: { ...args, from: '6' } })).toEqual({ id, isFound: true });
    for (const change of [
      { destination: 'b' },
      { maxRate: 5 },
      { devices: ['a'] },
      { typed: { from: null, to: null } },
    ])
      expect(board.submit({ ...replay, args: { ...args, ...change } }).isFound).toBe(false);
    board.submit(REQUEST);
    expect(board.submit(REQUEST).isFound).toBe(false);
  });

  test('goes from the requester to the holder of the state, and its end goes back', () => {
    using sides = bothSides();
    const { board, queue } = sides;
    expect(queue.open()).toEqual([]);
    const id = board.submit(REQUEST).id;
    expect(queue.open()).toEqual([
      {
        id,
        kind: 'once',
        args: {},
        requestedBy: '--once',
        state: 'waiting',
        progress: null,
        isCancelRequested: false,
        followerBeat: 0,
        workerBeat: 0,
        end: null,
      },
    ]);
    queue.beat();
    expect(queue.take(id, 2000)).toBe(true);
    queue.reportProgress(id, PROGRESS);
    board.beat(id);
    expect(board.get(id)).toMatchObject({
      state: 'running',
      progress: PROGRESS,
      workerBeat: 1,
      followerBeat: 1,
      end: null,
    });
    queue.end(id, DONE, 3000);
    expect(queue.open()).toEqual([]);
    expect(board.get(id)).toMatchObject({ state: 'done', end: DONE });
    expect(sides.state.rows('SELECT requested_ms, started_ms, ended_ms FROM job')).toEqual([
      { requested_ms: 1000, started_ms: 2000, ended_ms: 3000 },
    ]);
  });

  test('runs once, and not after it was cancelled', () => {
    using sides = bothSides();
    const { board, queue } = sides;
    const id = board.submit(REQUEST).id;
    expect(queue.take(id, 1)).toBe(true);
    expect(queue.take(id, 2)).toBe(false);
    expect(board.withdraw(id), 'it runs').toBe(false);
    board.cancel(id);
    expect(board.get(id)).toMatchObject({ state: 'running', isCancelRequested: true });
    const other = board.submit(REQUEST).id;
    expect(board.withdraw(other)).toBe(true);
    expect(queue.take(other, 3)).toBe(false);
    expect(board.get(other)).toBeNull();
    expect(board.submit(REQUEST).id, 'a number is not given twice').toBeGreaterThan(other);
  });

  test('has one end', () => {
    using sides = bothSides();
    const { board, queue } = sides;
    const id = board.submit(REQUEST).id;
    queue.take(id, 1);
    queue.end(id, DONE, 2);
    queue.end(id, { state: 'failed', exitCode: 3, summary: null, message: 'later' }, 3);
    queue.reportProgress(id, PROGRESS);
    board.cancel(id);
    expect(board.get(id)).toMatchObject({ end: DONE, progress: null, isCancelRequested: false });
  });

  test('that was left running counts as failed for the next process, one that waits still waits', () => {
    using sides = bothSides();
    const { board } = sides;
    const [first, second] = [board.submit(REQUEST).id, board.submit(REQUEST).id];
    sides.queue.take(first, 1);
    sides.state.reopen();
    expect(board.get(first)).toMatchObject({
      state: 'failed',
      end: { exitCode: 3, summary: null, message: expect.stringMatching(/the daemon .* has died/) },
    });
    expect(sides.queue.open().map(({ id }) => id)).toEqual([second]);
  });

  test('is removed a while after its end, and not before', () => {
    using sides = bothSides();
    const { board, queue } = sides;
    const [old, young, open] = [board.submit(REQUEST).id, board.submit(REQUEST).id, board.submit(REQUEST).id];
    queue.end(old, DONE, 1000);
    queue.end(young, DONE, 5000);
    queue.clear(5000);
    expect([old, young, open].map((id) => board.get(id)?.state)).toEqual([undefined, 'done', 'waiting']);
  });

  test('with unreadable parts is read as far as possible', () => {
    using sides = bothSides();
    const { board } = sides;
    const id = board.submit(REQUEST).id;
    const db = new Database(sides.state.file);
    db.exec("UPDATE job SET kind = 'hum', args = '{', progress = '[1'");
    db.exec("UPDATE job SET state = 'done', ended_ms = 1, exit_code = 42, summary = '}'");
    db.close();
    expect(board.get(id)).toMatchObject({
      kind: 'hum',
      args: null,
      progress: null,
      end: { exitCode: 1, summary: null },
    });
  });
});

describe('the requester', () => {
  test('needs no lock, changes no shape, and leaves the holder’s work alone', () => {
    using sides = bothSides();
    expect(sides.isLocked()).toBe(true);
    for (let n = 0; n < 50; n += 1) {
      sides.state.store.append([`m v=${n} ${n}`], 'live');
      sides.board.submit(REQUEST);
    }
    expect(sides.state.store.totals().lines).toBe(50);
    expect(sides.queue.open()).toHaveLength(50);
    sides.state.close();
    expect(sides.isLocked()).toBe(false);
  });

  test('finds no jobs where there is no state, or one of another version or program', () => {
    using place = scratch();
    expect(openJobBoard(place.path)).toBeNull();
    openStore(place.path).close();
    openJobBoard(place.path)?.close();
    for (const spoil of ['user_version = 1', `user_version = ${MIGRATIONS.length + 1}`, 'application_id = 7']) {
      copyFileSync(place.file, `${place.file}.whole`);
      const db = new Database(place.file);
      db.pragma(spoil);
      db.close();
      expect(openJobBoard(place.path), spoil).toBeNull();
      copyFileSync(`${place.file}.whole`, place.file);
      for (const tail of ['-wal', '-shm']) rmSync(`${place.file}${tail}`, { force: true });
    }
    const db = new Database(place.file);
    db.exec('DROP TABLE job');
    db.close();
    expect(openJobBoard(place.path)).toBeNull();
  });
});

describe('the lock', () => {
  test('a test shows whether another process holds it, without taking it', () => {
    using place = scratch();
    const file = `${place.path}/tidemark.lock`;
    expect(isLocked(file), 'there is none yet').toBe(false);
    const lock = takeLock(file);
    expect(isLocked(file)).toBe(true);
    lock.release();
    expect(isLocked(file)).toBe(false);
    takeLock(file).release();
  });
});
