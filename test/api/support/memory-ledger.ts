/** A ledger in memory that outlives the rate limiters which use it, as the database outlives the process. */
import type { Ledger, Purpose, RequestOutcome } from '../../../src/core/ports.ts';
import type { EpochMs } from '../../../src/core/time.ts';

export interface Booking {
  atMs: EpochMs;
  readonly purpose: Purpose;
  outcome: RequestOutcome | null;
}

export interface MemoryLedger extends Ledger {
  readonly bookings: readonly Booking[];
}

export function createMemoryLedger(): MemoryLedger {
  const bookings: Booking[] = [];
  let blocked = { untilMs: 0, waitMs: 0 };
  return {
    bookings,
    book(atMs, purpose) {
      bookings.push({ atMs, purpose, outcome: null });
      return bookings.length;
    },
    recordOutcome(requestId, outcome) {
      const booking = bookings[requestId - 1];
      if (booking === undefined) throw new Error(`nothing is booked under ${requestId}`);
      booking.outcome = outcome;
    },
    sentSince: (sinceMs) =>
      bookings
        .map(({ atMs }) => atMs)
        .filter((atMs) => atMs > sinceMs)
        .sort((a, b) => a - b),
    blockedUntilMs: (nowMs) => Math.min(blocked.untilMs, nowMs + blocked.waitMs),
    block(nowMs, waitMs) {
      blocked = { untilMs: nowMs + waitMs, waitMs };
    },
    dateBack(nowMs) {
      for (const booking of bookings) booking.atMs = Math.min(booking.atMs, nowMs);
      blocked = { ...blocked, untilMs: Math.min(blocked.untilMs, nowMs + blocked.waitMs) };
    },
  };
}
