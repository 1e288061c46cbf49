/**
 * Bookings in advance: fewer writes where requests follow fast, and never one that is not on disk when it is handed out.
 */
import { describe, expect, test } from 'vitest';
import type { Purpose } from '../../src/core/ports.ts';
import { scratchStore } from './support.ts';

const LIVE: Purpose = { lane: 'live', stream: 'telemetry', deviceId: 'd' };
const HISTORY: Purpose = { lane: 'first-history', stream: 'telemetry', deviceId: 'e' };

/** Another connection sees what is committed, and nothing else. */
const BOOKED = 'SELECT count(*) n FROM request';

const bookedIn = (state: ReturnType<typeof scratchStore>): number => numbers(state, BOOKED)[0] ?? 0;

/** The first column of what a query gives. */
function numbers(state: ReturnType<typeof scratchStore>, sql: string): number[] {
  return state.rows(sql).map((row) => Number(Object.values(Object(row))[0]));
}

describe('a ledger that is asked fast', () => {
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

  test('counts in advance as spent what was handed out, to within a second, when it is killed', () => {
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

  test('tells what was sent and no more, what for, and what became of it', () => {
    using state = scratchStore();
    for (let booked = 0; booked < 50; booked += 1) state.ledger.book(10_000 + booked, LIVE);
    const id = state.ledger.book(10_060, HISTORY);
    state.ledger.recordOutcome(id, { status: 500, fault: 'server-fault' });
    expect(state.ledger.sentSince(0)).toHaveLength(51);
    expect(state.ledger.sentSince(10_059)).toEqual([10_060]);
    expect(state.rows(`SELECT at_ms, lane, device_id, status, fault FROM request WHERE id = ${id}`)).toEqual([
      { at_ms: 10_060, lane: 'first-history', device_id: 'e', status: 500, fault: 'server-fault' },
    ]);
  });

  test('gives back what it has not used when it is closed', () => {
    using state = scratchStore();
    for (let booked = 0; booked < 50; booked += 1) state.ledger.book(10_000 + booked, LIVE);
    expect(bookedIn(state)).toBeGreaterThan(50);
    state.reopen();
    expect(state.rows(BOOKED)).toEqual([{ n: 50 }]);
  });

  test('books one by one at the pace of a plan, and after a clock that went back', () => {
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
