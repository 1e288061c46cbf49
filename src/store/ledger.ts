/**
 * The ledger of the allowance: every request, booked before it is sent, in the server's time (design 2.3).
 *
 * Promise: a booking is on disk before `book` returns, so that neither a crash nor a restart forgets what was spent.
 */
import type Database from 'better-sqlite3';
import type { Ledger } from '../core/ports.ts';
import { DAY_MS, type EpochMs } from '../core/time.ts';

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

/** Prepares the ledger of an open database. */
export function createLedger(db: Database.Database): Ledger {
  const book = db.prepare('INSERT INTO request (at_ms, lane, stream, device_id) VALUES (?, ?, ?, ?)');
  const settle = db.prepare('UPDATE request SET status = ?, fault = ? WHERE id = ?');
  const since = db.prepare<[number], bigint>('SELECT at_ms FROM request WHERE at_ms > ? ORDER BY at_ms').pluck();
  const clear = db.prepare(
    `DELETE FROM request WHERE at_ms < min(?, (SELECT at_ms FROM request WHERE id <= ? ORDER BY id DESC LIMIT 1)) - ${KEPT_MS}`,
  );
  const readFact = db.prepare<[string], string>('SELECT value FROM fact WHERE key = ?').pluck();
  const writeFact = db.prepare('INSERT OR REPLACE INTO fact (key, value) VALUES (?, ?)');
  return {
    book: (atMs, { lane, stream, deviceId }) => {
      const id = Number(book.run(Math.floor(atMs), lane, stream, deviceId ?? null).lastInsertRowid);
      if (id % CLEAR_EVERY === 0) clear.run(Math.floor(atMs), id - LOOK_BACK);
      return id;
    },
    settle: (requestId, { status, fault }) => {
      settle.run(status, fault, requestId);
    },
    sentSince: (sinceMs) => since.all(Math.floor(sinceMs)).map(Number),
    blockedUntilMs: (): EpochMs => Number(readFact.get(BLOCKED_UNTIL) ?? 0),
    block: (untilMs) => {
      writeFact.run(BLOCKED_UNTIL, String(Math.ceil(untilMs)));
    },
  };
}
