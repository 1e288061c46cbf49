/** The accounting over a ledger in memory and a clock that can jump. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type Accounting, createAccounting } from '../../src/api/rate-limiter.ts';
import { createServerClock, type ServerClock } from '../../src/core/server-clock.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../src/core/time.ts';
import { createVirtualClock, type VirtualClock, withWallOffset } from '../support/virtual-clock.ts';
import { createMemoryLedger, type MemoryLedger } from './support/memory-ledger.ts';
import { LIVE, START_MS } from './support/paced-world.ts';

let clock: VirtualClock;
let ledger: MemoryLedger;
let serverClock: ServerClock;
let wallOffsetMs: number;

beforeEach(() => {
  clock = createVirtualClock(START_MS);
  ledger = createMemoryLedger();
  wallOffsetMs = 0;
});

function open(): Accounting {
  const local = withWallOffset(clock, () => wallOffsetMs);
  serverClock = createServerClock(local);
  const accounting = createAccounting({ ledger, clock: local, serverClock });
  accounting.adopt();
  return accounting;
}

/** Receives an answer with the server's time. */
function hear(dateMs = START_MS + clock.monoMs()): void {
  const monoMs = clock.monoMs();
  serverClock.noteDate({ dateMs, sentMonoMs: monoMs, receivedMonoMs: monoMs });
}

describe('the bookings of the last day', () => {
  test('are read by the monotonic clock, later by what `Date` may be behind, and never later than now', () => {
    for (const ageMs of [DAY_MS + HOUR_MS, HOUR_MS, 10 * SECOND_MS, SECOND_MS]) ledger.book(START_MS - ageMs, LIVE);
    const accounting = open();
    hear(START_MS);
    const behindMs = START_MS - serverClock.nowMs();
    expect(accounting.read().sentMs.map((ms) => Math.round(ms + behindMs))).toEqual([
      -HOUR_MS + 2 * SECOND_MS,
      -8 * SECOND_MS,
      behindMs,
    ]);
  });

  test('from before the time was known count once, as they were sent', async () => {
    const accounting = open();
    await clock.sleep(5 * SECOND_MS);
    const atMs = accounting.nowMs();
    ledger.book(atMs, LIVE, accounting.localMs().latest);
    accounting.noteBooked(atMs);
    hear();
    await clock.sleep(SECOND_MS);
    expect(accounting.read().sentMs).toEqual([5 * SECOND_MS]);
  });

  test('of a server’s clock that was ahead get their age from the local clock', () => {
    ledger.book(START_MS + HOUR_MS, LIVE, START_MS - 10 * SECOND_MS);
    expect(open().read().sentMs).toEqual([-8 * SECOND_MS]);
  });

  test('of a local clock that was ahead count as made now, once', () => {
    ledger.book(START_MS + HOUR_MS, LIVE, START_MS + HOUR_MS);
    expect(open().read().sentMs).toEqual([0]);
    expect(ledger.bookings[0]?.localMs, 'the ledger records that').toBe(START_MS);
  });
});

test('reading the ledger changes neither it nor the time to book with', () => {
  const accounting = open();
  ledger.book(START_MS + HOUR_MS, LIVE, START_MS + HOUR_MS);
  expect([accounting.read(), accounting.nowMs()]).toEqual([accounting.read(), START_MS]);
  expect(ledger.bookings[0]?.localMs).toBe(START_MS + HOUR_MS);
});

describe('the time to book with', () => {
  test('is not earlier than the newest booking while the server’s time is unknown, and continues', async () => {
    ledger.book(START_MS + HOUR_MS, LIVE, START_MS + HOUR_MS);
    const accounting = open();
    expect(accounting.nowMs()).toBe(START_MS + HOUR_MS + 1);
    await clock.sleep(SECOND_MS);
    expect(accounting.nowMs()).toBe(START_MS + HOUR_MS + 1 + SECOND_MS);
  });

  test('is the server’s once that is known', () => {
    const accounting = open();
    hear();
    expect(accounting.nowMs()).toBe(serverClock.nowMs());
  });

  test('is the local clock’s where that has moved on, and the server sends no time', () => {
    const accounting = open();
    wallOffsetMs = HOUR_MS;
    expect(accounting.nowMs()).toBe(START_MS);
    for (let answer = 0; answer < 3; answer += 1) {
      serverClock.noteDate({ dateMs: null, sentMonoMs: 0, receivedMonoMs: 0 });
    }
    expect(accounting.nowMs()).toBe(START_MS + HOUR_MS);
  });
});

test('the ledger is to be read again when the server’s time has become known', () => {
  const accounting = open();
  expect(accounting.isStale()).toBe(false);
  hear();
  expect(accounting.isStale()).toBe(true);
  accounting.adopt();
  expect(accounting.isStale()).toBe(false);
});

test('a wait continues by the monotonic clock, for a day and an hour at most', async () => {
  await clock.sleep(SECOND_MS);
  const accounting = open();
  hear();
  const nowMs = serverClock.nowMs();
  expect(accounting.read().blockedUntilMs).toBeNull();
  ledger.block(nowMs, 7000);
  expect(accounting.read().blockedUntilMs).toBe(clock.monoMs() + 7000 + 2000);
  ledger.block(nowMs, 9 * DAY_MS);
  expect(accounting.read().blockedUntilMs).toBe(clock.monoMs() + 25 * HOUR_MS + 10 * SECOND_MS);
});

test('the local clock that has jumped gives both times: with the jump and without', () => {
  const accounting = open();
  wallOffsetMs = HOUR_MS;
  expect(accounting.localMs()).toEqual({ earliest: START_MS, latest: START_MS + HOUR_MS });
  wallOffsetMs = -HOUR_MS;
  expect(accounting.localMs()).toEqual({ earliest: START_MS - HOUR_MS, latest: START_MS });
});
