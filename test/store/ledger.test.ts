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

  test('keeps what became of a request with its booking', () => {
    using state = scratchStore();
    const [one, two] = [state.ledger.book(1, LIVE), state.ledger.book(2, ACCOUNT)];
    state.ledger.recordOutcome(two, { status: 429, fault: 'throttled' });
    state.ledger.recordOutcome(one, { status: null, fault: 'unreachable' });
    expect(state.rows('SELECT status, fault FROM request ORDER BY id')).toEqual([
      { status: null, fault: 'unreachable' },
      { status: 429, fault: 'throttled' },
    ]);
  });

  test('writes a good answer with what it brings, at one go, or with the next booking', () => {
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

  test('does not take for written what was taken back with the transaction that it was written in', () => {
    using state = scratchStore();
    const one = state.ledger.book(1, LIVE);
    state.store.pinWorkspace({ apiId: 'ws', tag: 'ws' });
    state.ledger.recordOutcome(one, { status: 200, fault: null });
    expect(() => state.store.pinWorkspace({ apiId: 'another', tag: 'ws' })).toThrow();
    state.reopen();
    expect(state.rows('SELECT status FROM request')).toEqual([{ status: 200 }]);
  });

  test('tells what was sent later than a moment, in order, whatever the order of booking, after a restart too', () => {
    using state = scratchStore();
    for (const atMs of [3000, 1000, 2000, 2000]) state.ledger.book(atMs, LIVE);
    state.reopen();
    expect(state.ledger.sentSince(0)).toEqual([1000, 2000, 2000, 3000]);
    expect(state.ledger.sentSince(1000), 'later, not at it').toEqual([2000, 2000, 3000]);
    expect(state.ledger.sentSince(3000)).toEqual([]);
  });

  test('keeps a wait that was asked for, rounded up, after a restart too', () => {
    using state = scratchStore();
    expect(state.ledger.blockedUntilMs()).toBe(0);
    state.ledger.block(5000.2);
    expect(state.rows('SELECT value FROM fact')).toEqual([{ value: '5001' }]);
    state.reopen();
    expect(state.ledger.blockedUntilMs()).toBe(5001);
    state.ledger.block(4000);
    expect(state.ledger.blockedUntilMs(), 'the caller decides which wait holds').toBe(4000);
  });

  test('clears what is older than two days now and then, and never a booking that a window still needs', () => {
    using state = scratchStore();
    const nowMs = 100 * DAY_MS;
    const old = 3 * DAY_MS;
    const ages = [old, 2 * DAY_MS - 1, DAY_MS, 0];
    for (const ageMs of ages) state.ledger.book(nowMs - ageMs, LIVE);
    for (let booked = ages.length; booked < 1000; booked += 1) state.ledger.book(nowMs, LIVE);
    expect(state.ledger.sentSince(nowMs - old - 1)).toHaveLength(999);
    expect(state.ledger.sentSince(nowMs - old - 1)[0]).toBe(nowMs - 2 * DAY_MS + 1);
    expect(state.store.totals().requests, 'what was sent in all is still told').toBe(1000);
  });

  test('clears nothing for a booking by a clock that is far ahead', () => {
    using state = scratchStore();
    const nowMs = 100 * DAY_MS;
    for (let booked = 1; booked < 1000; booked += 1) state.ledger.book(nowMs, LIVE);
    state.ledger.book(nowMs + 365 * DAY_MS, LIVE);
    expect(state.ledger.sentSince(nowMs - 1)).toHaveLength(1000);
  });
});
