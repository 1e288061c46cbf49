/** A ledger in memory that outlives the rate limiters which use it, as the database outlives the process. */
import type { Ledger, Purpose, RequestOutcome } from '../../../src/core/ports.ts';
import type { EpochMs } from '../../../src/core/time.ts';

export interface Booking {
  atMs: EpochMs;
  localMs: EpochMs | null;
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
    book(atMs, purpose, localMs) {
      bookings.push({ atMs, localMs: localMs ?? null, purpose, outcome: null });
      return bookings.length;
    },
    recordOutcome(requestId, outcome) {
      const booking = bookings[requestId - 1];
      if (booking === undefined) throw new Error(`nothing is booked under ${requestId}`);
      booking.outcome = outcome;
    },
    writeRest: () => {},
    sentSince: (sinceMs) =>
      bookings
        .map(({ atMs }) => atMs)
        .filter((atMs) => atMs > sinceMs)
        .sort((a, b) => a - b),
    bookedSince: (sinceMs) => bookings.filter(({ atMs }) => atMs > sinceMs).sort((a, b) => a.atMs - b.atMs),
    blockedUntilMs: (nowMs) => Math.min(blocked.untilMs, nowMs + blocked.waitMs),
    block(nowMs, waitMs) {
      blocked = { untilMs: nowMs + waitMs, waitMs };
    },
    dateBack(nowMs, localMs) {
      for (const booking of bookings.filter(({ atMs }) => atMs > nowMs)) {
        booking.atMs = nowMs - Math.max(0, localMs - (booking.localMs ?? localMs));
      }
      blocked = { ...blocked, untilMs: Math.min(blocked.untilMs, nowMs + blocked.waitMs) };
    },
    dateAheadAsNow(localMs) {
      const newestMs = Math.max(...bookings.map(({ atMs }) => atMs));
      for (const booking of bookings) {
        const isAhead = booking.atMs > localMs && (booking.localMs ?? Number.POSITIVE_INFINITY) > localMs;
        if (isAhead) booking.localMs = localMs - (newestMs - booking.atMs);
      }
    },
  };
}
