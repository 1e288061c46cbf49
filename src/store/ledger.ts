/**
 * The ledger of the quota: every request, booked before it is sent, in the server's time, and also in the local clock's
 * time in case the server's was wrong.
 *
 * A booking is on disk before `book` returns, so neither a crash nor a restart forgets a request that was sent.
 */

import type Database from 'better-sqlite3';
import type { BookingTimes, Ledger, Purpose, RequestLane, RequestOutcome } from '../core/ports.ts';
import { DAY_MS, type EpochMs, SECOND_MS } from '../core/time.ts';
import { prepareFact } from './facts.ts';
import { createWriter } from './transactions.ts';

/** The facts about the wait that the server requested: its end and its length. An older state has only the end. */
const BLOCKED_UNTIL = 'blocked_until_ms';
const BLOCKED_FOR = 'blocked_for_ms';

/** How long bookings are kept: the longest quota window, and a day for `--status`. */
const RETENTION_MS = 2 * DAY_MS;

/** How many bookings are made between two removals of old ones. */
const CLEAR_EVERY = 1000;

/**
 * How many bookings back a removal reads the time. A booking that a wrong clock made at a start, far ahead of the
 * server's, must not remove bookings that a quota window still needs.
 */
const CLEARANCE_LOOKBACK = 500;

/**
 * If requests follow so fast that a disk write for each would be most of the work, bookings are made in advance, as
 * small leases: from eight bookings per second on, a quarter of the number within the last second. A lease has the time
 * of its writing, and ends within the two seconds that readers of the ledger allow for. If the process dies, the unused
 * part of a lease counts as spent.
 */
const LEASE_LIFE_MS = SECOND_MS;
const LEASE_FROM = 8;
const LEASE_PART = 4;
const LEASE_AT_MOST = 32;

/** The ledger, and the work that its owner does before the file is closed. */
export interface OwnedLedger extends Ledger {
  /**
   * Writes the outcomes of requests inside a transaction of other work, so that they need no commit of their own.
   *
   * @returns a function to call once that transaction is on disk.
   */
  writeAlong(): () => void;
  /** Writes everything that is not on disk yet, and removes the unused bookings that were made in advance. */
  flush(): void;
  /** The facts that the rows do not have yet: which rows are booked in advance, and which requests have used them. */
  unwrittenBookings(): Unwritten;
}

/** The rows that were booked in advance. */
export interface Unwritten {
  /** All of their ids, ascending. Their purposes on disk have no meaning. */
  readonly ids: readonly number[];
  /** The requests that have used some of these rows. */
  readonly bookings: readonly Booking[];
}

interface Booking extends BookingTimes {
  readonly purpose: Purpose;
}

type Rows = ReturnType<typeof prepareRows>;

/** The prepared statements, and the bookings that are not on disk yet. */
interface LedgerState {
  readonly rows: Rows;
  /** `writeOwed` as one transaction. */
  readonly write: (state: LedgerState, booking: Booking | null, count: number) => number[];
  /** When the bookings of the last second were made. */
  recent: EpochMs[];
  /** The ids that are booked in advance, and when. */
  lease: { readonly ids: readonly number[]; readonly atMs: EpochMs };
  /** The purposes of leased ids that are not in their rows yet. */
  named: Map<number, Booking>;
  /** The outcomes of requests that are not in their rows yet. */
  outcomes: Map<number, RequestOutcome>;
}

/** Prepares the ledger of an open database. */
export function createLedger(db: Database.Database): OwnedLedger {
  const rows = prepareRows(db);
  const state: LedgerState = {
    rows,
    write: createWriter(db)(writeOwed),
    recent: [],
    lease: { ids: [], atMs: 0 },
    named: new Map(),
    outcomes: new Map(),
  };
  return {
    book: (atMs, purpose, localMs) => book(state, { atMs, localMs: localMs ?? null, purpose }),
    recordOutcome: (requestId, outcome) => {
      state.outcomes.set(requestId, outcome);
      // The outcome of a successful answer is written with its page. A failure may be read at once, and may be the last
      // request.
      if (outcome.fault !== null && state.lease.ids.length === 0 && state.named.size === 0) flush(state);
    },
    writeRest: () => {
      if (state.lease.ids.length > 0 || state.named.size > 0) flush(state);
    },
    writeAlong: () => writeAlong(state),
    sentSince: (sinceMs, ...lanes) => sentSince(state, Math.floor(sinceMs), lanes),
    bookedSince: (sinceMs) => bookedSince(state, Math.floor(sinceMs)),
    blockedUntilMs: (nowMs) => blockedUntilMs(rows, nowMs),
    block: (nowMs, waitMs) => block(rows, nowMs, waitMs),
    dateBack: (nowMs, localMs) => {
      flush(state);
      rows.dateBack.run({ now: Math.floor(nowMs), local: Math.floor(localMs) });
      const waitMs = blockedUntilMs(rows, nowMs) - nowMs;
      if (waitMs > 0) block(rows, nowMs, waitMs);
    },
    dateAheadAsNow: (localMs) => {
      flush(state);
      rows.dateAheadAsNow.run({ local: Math.floor(localMs) });
    },
    flush: () => flush(state),
    unwrittenBookings: () => unwrittenBookings(state),
  };
}

function unwrittenBookings({ named, lease }: LedgerState): Unwritten {
  return { ids: [...named.keys(), ...lease.ids], bookings: [...named.values()] };
}

function prepareRows(db: Database.Database) {
  return {
    insert: db.prepare('INSERT INTO request (at_ms, local_ms, lane, stream, device_id) VALUES (?, ?, ?, ?, ?)'),
    name: db.prepare('UPDATE request SET at_ms = ?, local_ms = ?, lane = ?, stream = ?, device_id = ? WHERE id = ?'),
    answer: db.prepare('UPDATE request SET status = ?, fault = ? WHERE id = ?'),
    remove: db.prepare('DELETE FROM request WHERE id = ?'),
    dateBack: db.prepare(
      'UPDATE request SET at_ms = :now - max(0, :local - ifnull(local_ms, :local)) WHERE at_ms > :now',
    ),
    dateAheadAsNow: db.prepare(
      `UPDATE request SET local_ms = :local - ((SELECT max(at_ms) FROM request) - at_ms)
        WHERE at_ms > :local AND (local_ms IS NULL OR local_ms > :local)`,
    ),
    since: db
      .prepare<[{ from: number; lanes: string; except: string }], bigint>(
        `SELECT at_ms FROM request WHERE at_ms > :from AND (:lanes = '[]' OR lane IN (SELECT value FROM json_each(:lanes)))
          AND id NOT IN (SELECT value FROM json_each(:except)) ORDER BY at_ms`,
      )
      .pluck(),
    booked: db.prepare<[{ from: number; except: string }], { at_ms: bigint; local_ms: bigint | null }>(
      `SELECT at_ms, local_ms FROM request WHERE at_ms > :from
        AND id NOT IN (SELECT value FROM json_each(:except)) ORDER BY at_ms`,
    ),
    clear: db.prepare(
      `DELETE FROM request WHERE at_ms < min(?, (SELECT at_ms FROM request WHERE id <= ? ORDER BY id DESC LIMIT 1)) - ${RETENTION_MS}`,
    ),
    readFact: prepareFact(db),
    writeBlock: db.prepare(
      `INSERT OR REPLACE INTO fact (key, value) VALUES ('${BLOCKED_UNTIL}', :until), ('${BLOCKED_FOR}', :length)`,
    ),
  };
}

function blockedUntilMs({ readFact }: Rows, nowMs: EpochMs): EpochMs {
  const longestMs = Number(readFact.get(BLOCKED_FOR) ?? Number.POSITIVE_INFINITY);
  return Math.min(Number(readFact.get(BLOCKED_UNTIL) ?? 0), nowMs + longestMs);
}

function block({ writeBlock }: Rows, nowMs: EpochMs, waitMs: number): void {
  writeBlock.run({ until: String(Math.ceil(nowMs + waitMs)), length: String(Math.ceil(waitMs)) });
}

/** The bookings later than `from`: rows on disk, and leased ids with their purposes. */
function sentSince(state: LedgerState, from: EpochMs, lanes: readonly RequestLane[]): EpochMs[] {
  const { ids, bookings } = unwrittenBookings(state);
  const written = state.rows.since.all({ from, lanes: JSON.stringify(lanes), except: JSON.stringify(ids) }).map(Number);
  const used = bookings
    .filter(({ atMs, purpose }) => Math.floor(atMs) > from && (lanes.length === 0 || lanes.includes(purpose.lane)))
    .map(({ atMs }) => Math.floor(atMs));
  return used.length === 0 ? written : [...written, ...used].toSorted((a, b) => a - b);
}

/** Both times of the bookings later than `from`. */
function bookedSince({ rows, lease, named }: LedgerState, from: EpochMs): BookingTimes[] {
  const written = rows.booked
    .all({ from, except: JSON.stringify([...lease.ids, ...named.keys()]) })
    .map(({ at_ms, local_ms }) => ({ atMs: Number(at_ms), localMs: local_ms === null ? null : Number(local_ms) }));
  const unwritten = [...named.values()].filter(({ atMs }) => Math.floor(atMs) > from);
  return unwritten.length === 0 ? written : [...written, ...unwritten].toSorted((a, b) => a.atMs - b.atMs);
}

/**
 * Books a request: with an id of the lease while that is young, otherwise by writing.
 *
 * @returns its id.
 */
function book(state: LedgerState, booking: Booking): number {
  const { lease, named } = state;
  const ageMs = booking.atMs - lease.atMs;
  const [leased, ...rest] = ageMs >= 0 && ageMs < LEASE_LIFE_MS ? lease.ids : [];
  const ahead = noteBooking(state, booking.atMs);
  if (leased !== undefined) {
    state.lease = { ...lease, ids: rest };
    named.set(leased, booking);
    return leased;
  }
  const [id = 0, ...ids] = writeAll(state, booking, 1 + ahead);
  state.lease = { ids, atMs: booking.atMs };
  return id;
}

/**
 * Updates the rate of the bookings.
 *
 * @returns how many to book in advance.
 */
function noteBooking(state: LedgerState, atMs: EpochMs): number {
  state.recent = state.recent.filter((at) => at <= atMs && atMs - at < SECOND_MS);
  const count = state.recent.push(atMs);
  return count < LEASE_FROM ? 0 : Math.min(LEASE_AT_MOST, Math.floor(count / LEASE_PART));
}

function flush(state: LedgerState): void {
  if (state.lease.ids.length > 0 || state.named.size > 0 || state.outcomes.size > 0) writeAll(state, null, 0);
}

/**
 * Writes the outstanding outcomes and `count` bookings.
 *
 * @returns their ids.
 */
function writeAll(state: LedgerState, booking: Booking | null, count: number): number[] {
  const ids = state.write(state, booking, count);
  // Cleared only now, when the data is certainly on disk.
  state.named = new Map();
  state.outcomes = new Map();
  state.lease = { ids: [], atMs: booking?.atMs ?? 0 };
  return ids;
}

function writeOwed(state: LedgerState, booking: Booking | null, count: number): number[] {
  const { rows, named, lease } = state;
  for (const [id, { purpose, ...times }] of named) {
    rows.name.run(...timeColumns(times), purpose.lane, purpose.stream, purpose.deviceId ?? null, id);
  }
  writeOutcomes(state);
  for (const id of lease.ids) rows.remove.run(id);
  return booking === null ? [] : Array.from({ length: count }, () => bookRow(rows, booking));
}

function writeOutcomes({ rows, outcomes }: LedgerState): void {
  for (const [id, { status, fault }] of outcomes) rows.answer.run(status, fault, id);
}

function timeColumns({ atMs, localMs }: BookingTimes): [atMs: number, localMs: number | null] {
  return [Math.floor(atMs), localMs === null ? null : Math.floor(localMs)];
}

function bookRow({ insert, clear }: Rows, { purpose: { lane, stream, deviceId }, ...times }: Booking): number {
  const id = Number(insert.run(...timeColumns(times), lane, stream, deviceId ?? null).lastInsertRowid);
  if (id % CLEAR_EVERY === 0) clear.run(Math.floor(times.atMs), id - CLEARANCE_LOOKBACK);
  return id;
}

function writeAlong(state: LedgerState): () => void {
  const { outcomes, named, lease } = state;
  // Outcomes of fast requests are written with the next lease, many at once.
  if (outcomes.size === 0 || named.size > 0 || lease.ids.length > 0) return () => {};
  writeOutcomes(state);
  return () => {
    if (state.outcomes === outcomes) state.outcomes = new Map();
  };
}
