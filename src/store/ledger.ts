/**
 * The ledger of the allowance: every request, booked before it is sent, in the server's time (design 2.3).
 *
 * Promise: a booking is on disk before `book` returns, so that neither a crash nor a restart forgets what was spent.
 */
import type Database from 'better-sqlite3';
import type { Ledger, Purpose } from '../core/ports.ts';
import { DAY_MS, type EpochMs, SECOND_MS } from '../core/time.ts';

const BLOCKED_UNTIL = 'blocked_until_ms';

/** How long bookings are kept: the longest window, and a day for `--status`. */
const KEPT_MS = 2 * DAY_MS;

/** Bookings between two clearances of old ones. */
const CLEAR_EVERY = 1000;

/**
 * How many bookings back a clearance looks for the time: one that was booked by a clock which is wrong at a start, far
 * ahead of the server's, must not clear what a window still needs.
 */
const LOOK_BACK = 500;

/**
 * Bookings are made in advance ("small leases", design 2.3) where requests follow so fast that a write to the disk for
 * each would be the larger part of the work: a quarter of what was booked within the last second, from eight a second
 * on. A lease is as old as its writing, and ends before the two seconds by which whoever reads the ledger takes
 * bookings to be later. What is left of one when the process dies counts as spent.
 */
const LEASE_LIFE_MS = SECOND_MS;
const LEASE_FROM = 8;
const LEASE_PART = 4;
const LEASE_AT_MOST = 32;

/** The ledger, and what its owner does before the file is closed. */
export interface OwnedLedger extends Ledger {
  /**
   * Inside a transaction of something else: writes with it what became of requests, so that this costs no commit of its
   * own. @returns to be called once that is on disk.
   */
  ride(): () => void;
  /** Writes what is not written yet, and gives back what was booked in advance. */
  flush(): void;
}

interface Booking {
  readonly atMs: EpochMs;
  readonly purpose: Purpose;
}

type Settlement = Parameters<Ledger['recordOutcome']>[1];

/** Prepares the ledger of an open database. */
export function createLedger(db: Database.Database): OwnedLedger {
  const insert = db.prepare('INSERT INTO request (at_ms, lane, stream, device_id) VALUES (?, ?, ?, ?)');
  const name = db.prepare('UPDATE request SET at_ms = ?, lane = ?, stream = ?, device_id = ? WHERE id = ?');
  const settle = db.prepare('UPDATE request SET status = ?, fault = ? WHERE id = ?');
  const remove = db.prepare('DELETE FROM request WHERE id = ?');
  const since = db.prepare<[number], bigint>('SELECT at_ms FROM request WHERE at_ms > ? ORDER BY at_ms').pluck();
  const sinceIn = db
    .prepare<[number, string], bigint>('SELECT at_ms FROM request WHERE at_ms > ? AND lane = ? ORDER BY at_ms')
    .pluck();
  const clear = db.prepare(
    `DELETE FROM request WHERE at_ms < min(?, (SELECT at_ms FROM request WHERE id <= ? ORDER BY id DESC LIMIT 1)) - ${KEPT_MS}`,
  );
  const readFact = db.prepare<[string], string>('SELECT value FROM fact WHERE key = ?').pluck();
  const writeFact = db.prepare('INSERT OR REPLACE INTO fact (key, value) VALUES (?, ?)');
  const pace = createPace();
  /** Ids that are booked in advance, and when; what became of ids whose rows do not say so yet. */
  let lease: { ids: readonly number[]; atMs: EpochMs } = { ids: [], atMs: 0 };
  let named = new Map<number, Booking>();
  let settled = new Map<number, Settlement>();

  const bookRow = ({ atMs, purpose: { lane, stream, deviceId } }: Booking): number => {
    const id = Number(insert.run(Math.floor(atMs), lane, stream, deviceId ?? null).lastInsertRowid);
    if (id % CLEAR_EVERY === 0) clear.run(Math.floor(atMs), id - LOOK_BACK);
    return id;
  };
  const writeSettled = (): void => {
    for (const [id, { status, fault }] of settled) settle.run(status, fault, id);
  };
  /** Writes what is owed, and with it `count` bookings. @returns their ids. */
  const write = db.transaction((booking: Booking | null, count: number): number[] => {
    for (const [id, { atMs, purpose }] of named) {
      name.run(Math.floor(atMs), purpose.lane, purpose.stream, purpose.deviceId ?? null, id);
    }
    writeSettled();
    for (const id of lease.ids) remove.run(id);
    return booking === null ? [] : Array.from({ length: count }, () => bookRow(booking));
  });
  const writeAll = (booking: Booking | null, count: number): number[] => {
    const ids = write.immediate(booking, count);
    // Only now is it sure that it is on disk.
    named = new Map();
    settled = new Map();
    lease = { ids: [], atMs: booking?.atMs ?? 0 };
    return ids;
  };
  const isOwed = (): boolean => lease.ids.length > 0 || named.size > 0 || settled.size > 0;
  const flush = (): void => {
    if (isOwed()) writeAll(null, 0);
  };
  return {
    book: (atMs, purpose) => {
      const ageMs = atMs - lease.atMs;
      const [leased, ...rest] = ageMs >= 0 && ageMs < LEASE_LIFE_MS ? lease.ids : [];
      const ahead = pace.note(atMs);
      if (leased !== undefined) {
        lease = { ...lease, ids: rest };
        named.set(leased, { atMs, purpose });
        return leased;
      }
      const [id = 0, ...ids] = writeAll({ atMs, purpose }, 1 + ahead);
      lease = { ids, atMs };
      return id;
    },
    recordOutcome: (requestId, settlement) => {
      settled.set(requestId, settlement);
      // What was answered well is written with what the answer brings; a failure is looked for at once, and may be the last.
      if (settlement.fault !== null && lease.ids.length === 0 && named.size === 0) flush();
    },
    ride: () => {
      // Requests that follow fast are written with the next lease, many at once.
      if (settled.size === 0 || named.size > 0 || lease.ids.length > 0) return () => {};
      writeSettled();
      const written = settled;
      return () => {
        if (settled === written) settled = new Map();
      };
    },
    sentSince: (sinceMs, lane) => {
      flush();
      const from = Math.floor(sinceMs);
      return (lane === undefined ? since.all(from) : sinceIn.all(from, lane)).map(Number);
    },
    blockedUntilMs: (): EpochMs => Number(readFact.get(BLOCKED_UNTIL) ?? 0),
    block: (untilMs) => {
      writeFact.run(BLOCKED_UNTIL, String(Math.ceil(untilMs)));
    },
    flush,
  };
}

/** How fast bookings come. */
function createPace(): { note(atMs: EpochMs): number } {
  let recent: EpochMs[] = [];
  return {
    /** Takes in a booking. @returns how many are worth booking in advance. */
    note: (atMs) => {
      recent = recent.filter((at) => at <= atMs && atMs - at < SECOND_MS);
      const count = recent.push(atMs);
      return count < LEASE_FROM ? 0 : Math.min(LEASE_AT_MOST, Math.floor(count / LEASE_PART));
    },
  };
}
