/**
 * The accounting of the rate limiter. It converts between two clocks: the ledger stores bookings in server time, and
 * waits are counted on the monotonic clock.
 *
 * Before the first `Date` only the local clock is known, and it may be behind (a machine without a battery) or ahead.
 * So the current time is never earlier than the newest booking, and the ledger is read again as soon as the
 * server's time is known.
 *
 * A booking from the future was made by a clock that was ahead, or the clock of now is behind. Its age comes from the
 * local clock, which was read at the same time. If that is in the future too, the booking counts as made now; the
 * ledger records that, so that it is over a quota window later, however often the program starts meanwhile.
 */

import type { BookingTimes, Clock, Ledger } from '../core/ports.ts';
import type { ServerClock } from '../core/server-clock.ts';
import { DAY_MS, type EpochMs, SECOND_MS } from '../core/time.ts';
import { LONGEST_BLOCK_MS } from './quota.ts';

/**
 * How far behind the server's clock the times in the ledger may lie, because `Date` is truncated to the second and has
 * travelled. Times that are read from the ledger are treated as later by this.
 */
const RESOLUTION_MS = 2 * SECOND_MS;

/** The booked requests, by the monotonic clock. */
interface Spent {
  /** When the requests of the last day were sent, ascending. */
  readonly sentMs: readonly number[];
  /** Until when the server has requested a wait; `null` if no such wait is left. */
  readonly blockedUntilMs: number | null;
}

/** The requests that were sent and may still be sent, by the ledger and the plan. */
export interface Accounting {
  /**
   * Loads the ledger, at the start and once the server's time is known: without that time, bookings from the future
   * become as old as now, and the time to book with continues from the newest one.
   */
  adopt(): void;
  /** Reads the bookings of the last day and the wait. */
  read(): Spent;
  /** Whether the server's time became known since the ledger was taken over. */
  isStale(): boolean;
  /** The time under which a request is booked: the server's, as well as it is known. */
  nowMs(): EpochMs;
  /**
   * The local clock's time, by its time at the start as well: it may jump meanwhile. A booking has the later one, and
   * its age is counted up to the earlier one, so that no jump makes it older.
   */
  localMs(): { readonly earliest: EpochMs; readonly latest: EpochMs };
  /** Records that a request was booked just now. */
  noteBooked(atMs: EpochMs): void;
}

interface AccountingOptions {
  readonly ledger: Pick<Ledger, 'bookedSince' | 'dateAheadAsNow' | 'blockedUntilMs'>;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
}

/** Creates the accounting over a ledger. `adopt` is to be called first. */
export function createAccounting({ ledger, clock, serverClock }: AccountingOptions): Accounting {
  let isTimeAdopted = false;
  let origin = { epochMs: 0, monoMs: clock.monoMs() };
  const localOffsetMs = clock.nowMs() - clock.monoMs();
  /** Bookings of this process from before the server's time was known. */
  let early: { readonly atMs: EpochMs; readonly monoMs: number }[] = [];

  const { isKnown } = serverClock;
  const nowMs = (): EpochMs => {
    if (isKnown()) return serverClock.nowMs();
    const carriedMs = origin.epochMs + Math.ceil(clock.monoMs() - origin.monoMs);
    // If the server sends no `Date`, the local clock is the one that includes the time for which the host slept.
    return serverClock.isDateAbsent() ? Math.max(carriedMs, clock.nowMs()) : carriedMs;
  };

  const localMs = (): { earliest: EpochMs; latest: EpochMs } => {
    const [wallMs, carriedMs] = [clock.nowMs(), clock.monoMs() + localOffsetMs];
    return { earliest: Math.min(wallMs, carriedMs), latest: Math.max(wallMs, carriedMs) };
  };

  return {
    nowMs,
    localMs,
    isStale: () => isKnown() && !isTimeAdopted,
    adopt() {
      isTimeAdopted = isKnown();
      if (isTimeAdopted) return;
      ledger.dateAheadAsNow(localMs().earliest);
      const timeMs = serverClock.nowMs();
      const newest = ledger.bookedSince(timeMs - 1).at(-1);
      origin = { epochMs: newest === undefined ? timeMs : newest.atMs + 1, monoMs: clock.monoMs() };
    },
    read() {
      const monoMs = clock.monoMs();
      const timeMs = serverClock.nowMs();
      const { earliest } = localMs();
      const earlyAt = new Set(early.map(({ atMs }) => atMs));
      const booked = ledger.bookedSince(timeMs - DAY_MS - RESOLUTION_MS).filter(({ atMs }) => !earlyAt.has(atMs));
      const ageMs = (times: BookingTimes): number =>
        times.atMs <= timeMs ? timeMs - times.atMs : earliest - (times.localMs ?? earliest);
      const sentMs = booked.map((times) => monoMs - Math.max(0, ageMs(times) - RESOLUTION_MS));
      const now = nowMs();
      const blockedMs = Math.min(LONGEST_BLOCK_MS, Math.max(0, ledger.blockedUntilMs(now) + RESOLUTION_MS - now));
      return {
        sentMs: [...sentMs, ...early.map((own) => own.monoMs)].sort((a, b) => a - b),
        blockedUntilMs: blockedMs > 0 ? monoMs + blockedMs : null,
      };
    },
    noteBooked(atMs) {
      if (isKnown()) early = [];
      else early.push({ atMs, monoMs: clock.monoMs() });
    },
  };
}
