/** The ledger of requests in a real state file: bookings, results and waits, after restarts and jumps of clocks. */
import { describe, expect, test } from 'vitest';
import type { Purpose } from '../../src/core/ports.ts';
import { DAY_MS } from '../../src/core/time.ts';
import { scratchStore } from './support.ts';

const LIVE: Purpose = { lane: 'live', stream: 'telemetry', deviceId: 'd' };
const ACCOUNT: Purpose = { lane: 'inventory', stream: 'account' };

describe('the ledger', () => {
  test('has a booking on disk before it returns', () => {
    using state = scratchStore();
    const first = state.ledger.book(1000.9, LIVE);
    // Another connection sees what is committed, and nothing else.
    expect(state.rows('SELECT id, at_ms, lane, stream, device_id, status FROM request')).toEqual([
      { id: first, at_ms: 1000, lane: 'live', stream: 'telemetry', device_id: 'd', status: null },
    ]);
    expect(state.ledger.book(1001, ACCOUNT)).not.toBe(first);
    expect(state.rows('SELECT count(*) n FROM request')).toEqual([{ n: 2 }]);
  });

  test('keeps the result of a request with its booking', () => {
    using state = scratchStore();
    const [one, two] = [state.ledger.book(1, LIVE), state.ledger.book(2, ACCOUNT)];
    state.ledger.recordOutcome(two, { status: 429, fault: 'throttled' });
    state.ledger.recordOutcome(one, { status: null, fault: 'unreachable' });
    expect(state.rows('SELECT status, fault FROM request ORDER BY id')).toEqual([
      { status: null, fault: 'unreachable' },
      { status: 429, fault: 'throttled' },
    ]);
  });

  test('writes a good answer together with its data, or with the next booking', () => {
    using state = scratchStore();
    const answers = (): unknown[] => state.rows('SELECT status FROM request ORDER BY id');
    const one = state.ledger.book(1, LIVE);
    state.ledger.recordOutcome(one, { status: 200, fault: null });
    state.store.append(['a v=1 1'], 'live');
    expect(answers()).toEqual([{ status: 200 }]);
    const two = state.ledger.book(2, LIVE);
    state.ledger.recordOutcome(two, { status: 304, fault: null });
    state.ledger.book(3, LIVE);
    expect(answers()).toEqual([{ status: 200 }, { status: 304 }, { status: null }]);
  });

  test('writes the results of fast requests when none follows', () => {
    using state = scratchStore();
    const ids = Array.from({ length: 30 }, (_, n) => state.ledger.book(1000 + n, { ...LIVE, deviceId: `d${n}` }));
    for (const id of ids) state.ledger.recordOutcome(id, { status: 200, fault: null });
    state.store.append(['a v=1 1'], 'live');
    const unanswered = (): unknown[] => state.rows('SELECT count(*) n FROM request WHERE status IS NULL');
    expect(unanswered()).not.toEqual([{ n: 0 }]);
    state.ledger.writeRest();
    expect(unanswered()).toEqual([{ n: 0 }]);
    expect(state.rows('SELECT device_id FROM request ORDER BY id')).toEqual(
      ids.map((_, n) => ({ device_id: `d${n}` })),
    );
    const last = state.ledger.book(9000, LIVE);
    state.ledger.recordOutcome(last, { status: 200, fault: null });
    state.ledger.writeRest();
    expect(unanswered(), 'that of a single request is written with its page').toEqual([{ n: 1 }]);
  });

  test('does not count a booking as written that was rolled back with its transaction', () => {
    using state = scratchStore();
    const one = state.ledger.book(1, LIVE);
    state.store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
    state.ledger.recordOutcome(one, { status: 200, fault: null });
    expect(() => state.store.pinWorkspace({ apiId: 'another', tag: 'ws' })).toThrow();
    state.reopen();
    expect(state.rows('SELECT status FROM request')).toEqual([{ status: 200 }]);
  });

  test('returns the requests after a time in order, whatever the order of booking, across restarts', () => {
    using state = scratchStore();
    for (const atMs of [3000, 1000, 2000, 2000]) state.ledger.book(atMs, LIVE);
    state.reopen();
    expect(state.ledger.sentSince(0)).toEqual([1000, 2000, 2000, 3000]);
    expect(state.ledger.sentSince(1000), 'later, not at it').toEqual([2000, 2000, 3000]);
    expect(state.ledger.sentSince(3000)).toEqual([]);
  });

  test('keeps a requested wait, rounded up, after a restart too', () => {
    using state = scratchStore();
    expect(state.ledger.blockedUntilMs(0)).toBe(0);
    state.ledger.block(3000, 2000.2);
    expect(state.rows('SELECT value FROM fact')).toEqual([{ value: '2001' }, { value: '5001' }]);
    state.reopen();
    expect(state.ledger.blockedUntilMs(3000)).toBe(5001);
    state.ledger.block(3000, 1000);
    expect(state.ledger.blockedUntilMs(3000), 'the caller decides which wait holds').toBe(4000);
  });

  test('counts a wait from now that was kept by a clock that was ahead', () => {
    using state = scratchStore();
    state.ledger.block(2 * DAY_MS, 7000);
    expect(state.ledger.blockedUntilMs(1000)).toBe(8000);
  });

  test('dates back bookings of a clock that was ahead, and its wait', () => {
    using state = scratchStore();
    for (const atMs of [1000, 2 * DAY_MS, 3 * DAY_MS]) state.ledger.book(atMs, LIVE);
    state.ledger.block(2 * DAY_MS, 7000);
    state.ledger.dateBack(5000, 0);
    state.reopen();
    expect(state.ledger.sentSince(0)).toEqual([1000, 5000, 5000]);
    expect(state.ledger.blockedUntilMs(6000), 'counted from then on').toBe(12_000);
  });

  test('dates back to its booking by the local clock, if that is known and has passed', () => {
    using state = scratchStore();
    state.ledger.book(2 * DAY_MS, LIVE, 300);
    state.ledger.book(2 * DAY_MS, LIVE, 9999);
    state.ledger.dateBack(5000, 1000);
    state.reopen();
    expect(state.ledger.sentSince(0)).toEqual([4300, 5000]);
  });

  test('has both times of a booking, also of one that was booked in advance', () => {
    using state = scratchStore();
    for (let booked = 0; booked < 20; booked += 1) state.ledger.book(10_000 + booked, LIVE, 500.9 + booked);
    expect(state.ledger.bookedSince(10_017).map(({ localMs }) => Math.floor(localMs ?? 0))).toEqual([518, 519]);
    state.reopen();
    expect(state.ledger.bookedSince(10_017)).toMatchObject([
      { atMs: 10_018, localMs: 518 },
      { atMs: 10_019, localMs: 519 },
    ]);
  });

  test('moves bookings that are ahead of the local clock back to it, with the distances between them', () => {
    using state = scratchStore();
    const booked: [atMs: number, localMs?: number][] = [[900, 900], [5000], [6000, 6000], [7000, 400], [8000, 8000]];
    for (const [atMs, localMs] of booked) state.ledger.book(atMs, LIVE, localMs);
    state.ledger.dateAheadAsNow(1000);
    state.reopen();
    expect(state.ledger.bookedSince(0).map(({ localMs }) => localMs)).toEqual([900, -2000, -1000, 400, 1000]);
  });

  test('accepts the end of a wait that an older version has kept without its length', () => {
    using state = scratchStore();
    state.store.saveFact('blocked_until_ms', '5000');
    expect(state.ledger.blockedUntilMs(1000)).toBe(5000);
  });

  test('clears bookings older than two days now and then, and never one that a window still needs', () => {
    using state = scratchStore();
    const nowMs = 100 * DAY_MS;
    const old = 3 * DAY_MS;
    const ages = [old, 2 * DAY_MS - 1, DAY_MS, 0];
    for (const ageMs of ages) state.ledger.book(nowMs - ageMs, LIVE);
    for (let booked = ages.length; booked < 1000; booked += 1) state.ledger.book(nowMs, LIVE);
    expect(state.ledger.sentSince(nowMs - old - 1)).toHaveLength(999);
    expect(state.ledger.sentSince(nowMs - old - 1)[0]).toBe(nowMs - 2 * DAY_MS + 1);
    state.reopen();
    expect(state.store.totals().requests, 'the sum keeps what was cleared').toBe(1000);
  });

  test('clears nothing for a booking by a clock that is far ahead', () => {
    using state = scratchStore();
    const nowMs = 100 * DAY_MS;
    for (let booked = 1; booked < 1000; booked += 1) state.ledger.book(nowMs, LIVE);
    state.ledger.book(nowMs + 365 * DAY_MS, LIVE);
    expect(state.ledger.sentSince(nowMs - 1)).toHaveLength(1000);
  });
});

const HISTORY: Purpose = { lane: 'first-history', stream: 'telemetry', deviceId: 'e' };

/** Another connection sees what is committed, and nothing else. */
const BOOKED = 'SELECT count(*) n FROM request';

const bookedIn = (state: ReturnType<typeof scratchStore>): number => numbers(state, BOOKED)[0] ?? 0;

/** The first column of what a query gives. */
function numbers(state: ReturnType<typeof scratchStore>, sql: string): number[] {
  return state.rows(sql).map((row) => Number(Object.values(Object(row))[0]));
}

describe('a ledger with many requests per second', () => {
  test('has every booking on disk before it returns, and writes far less often than it books', () => {
    using state = scratchStore();
    let writes = 0;
    let onDisk = 0;
    const ids = new Set<number>();
    for (let booked = 1; booked <= 400; booked += 1) {
      const id = state.ledger.book(10_000 + booked * 2, LIVE);
      ids.add(id);
      expect(state.rows(`SELECT id FROM request WHERE id = ${id}`)).toHaveLength(1);
      const now = bookedIn(state);
      if (now !== onDisk) writes += 1;
      onDisk = now;
      state.ledger.recordOutcome(id, { status: 200, fault: null });
      expect(onDisk - booked, 'few in advance').toBeLessThanOrEqual(32);
    }
    expect(ids.size, 'each its own').toBe(400);
    expect(writes).toBeLessThan(60);
  });

  test('counts the rest of a lease as spent, to within a second, when it is killed', () => {
    using state = scratchStore();
    const times = Array.from({ length: 300 }, (_, index) => 10_000 + index * 10);
    for (const atMs of times) state.ledger.book(atMs, LIVE);
    const kept = numbers(state, 'SELECT at_ms FROM request ORDER BY at_ms');
    expect(kept.length).toBeGreaterThanOrEqual(times.length);
    // As many as were sent, each no more than the reader's grain too early.
    for (const [index, atMs] of times.toReversed().entries()) {
      expect(atMs - (kept.at(-1 - index) ?? 0)).toBeLessThan(2000);
    }
  });

  test('reports exactly the requests that were sent, their purpose, and their result', () => {
    using state = scratchStore();
    for (let booked = 0; booked < 50; booked += 1) state.ledger.book(10_000 + booked, LIVE);
    const id = state.ledger.book(10_060, HISTORY);
    state.ledger.recordOutcome(id, { status: 500, fault: 'server-fault' });
    expect(state.ledger.sentSince(0)).toHaveLength(51);
    expect(state.ledger.sentSince(10_059)).toEqual([10_060]);
    expect(state.ledger.sentSince(0, 'first-history'), 'by its own lane, not by that of its lease').toEqual([10_060]);
    expect(state.ledger.sentSince(0, 'live')).toHaveLength(50);
    expect(state.ledger.sentSince(0, 'live', 'first-history')).toHaveLength(51);
    expect(state.ledger.sentSince(0, 'alerts', 'backfill')).toEqual([]);
    state.reopen();
    expect(state.rows(`SELECT at_ms, lane, device_id, status, fault FROM request WHERE id = ${id}`)).toEqual([
      { at_ms: 10_060, lane: 'first-history', device_id: 'e', status: 500, fault: 'server-fault' },
    ]);
  });

  test('returns its unused lease when it is closed', () => {
    using state = scratchStore();
    for (let booked = 0; booked < 50; booked += 1) state.ledger.book(10_000 + booked, LIVE);
    expect(bookedIn(state)).toBeGreaterThan(50);
    state.reopen();
    expect(state.rows(BOOKED)).toEqual([{ n: 50 }]);
  });

  test('books one by one at the rate of a plan, also after a clock that fell back', () => {
    using state = scratchStore();
    for (let booked = 1; booked <= 30; booked += 1) {
      state.ledger.book(100_000 + booked * 250, LIVE);
      expect(state.rows(BOOKED)).toEqual([{ n: booked }]);
    }
    for (let booked = 0; booked < 50; booked += 1) state.ledger.book(200_000 + booked, LIVE);
    const later = state.ledger.book(205_000, LIVE);
    expect(state.rows(`SELECT at_ms FROM request WHERE id = ${later}`), 'no lease that is old').toEqual([
      { at_ms: 205_000 },
    ]);
    const id = state.ledger.book(50_000, LIVE);
    expect(state.rows(`SELECT at_ms FROM request WHERE id = ${id}`), 'no lease of another time').toEqual([
      { at_ms: 50_000 },
    ]);
  });
});
