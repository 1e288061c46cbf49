/**
 * The ledger by two clocks: bookings are kept in the server's time, waits are counted on the monotonic clock, and this is
 * where the one becomes the other.
 *
 * Before the first `Date` the local clock is all there is, and it may be wrong: behind (a machine without a battery),
 * or ahead. So it is never taken to be earlier than the newest booking, and as soon as the server's time is known the
 * ledger is read again.
 */

import type { Clock, Ledger } from '../core/ports.ts';
import type { ServerClock } from '../core/server-clock.ts';
import { DAY_MS, type EpochMs, SECOND_MS } from '../core/time.ts';
import { LONGEST_BLOCK_MS } from './quota.ts';

/**
 * How far behind the server's clock a booking or a block may have been made: `Date` is cut to the second and has
 * travelled. Times from the ledger are taken to be later by this.
 */
const GRAIN_MS = 2 * SECOND_MS;

/** What the ledger knows, by the monotonic clock. */
interface Spent {
  /** When the requests of the last day were sent, ascending. */
  readonly sentMs: readonly number[];
  /** `null` where no wait that was asked for goes on. */
  readonly blockedUntilMs: number | null;
}

interface Accounting {
  /** Reads what is spent. */
  read(): Spent;
  /** Whether the server's time became known since the ledger was read. */
  isStale(): boolean;
  /** The time to book at. */
  nowMs(): EpochMs;
  /** Takes in that a request was booked, just now. */
  booked(atMs: EpochMs): void;
}

interface AccountingOptions {
  readonly ledger: Pick<Ledger, 'sentSince' | 'blockedUntilMs'>;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
}

/** Opens the ledger for reading by both clocks. */
export function createAccounting({ ledger, clock, serverClock }: AccountingOptions): Accounting {
  let isRead = false;
  let anchor = { epochMs: 0, monoMs: clock.monoMs() };
  /** Own bookings from before the server's time was known. */
  let early: { readonly atMs: EpochMs; readonly monoMs: number }[] = [];

  const isKnown = (): boolean => serverClock.skewMs() !== null;
  const nowMs = (): EpochMs => {
    if (isKnown()) return serverClock.nowMs();
    const carriedMs = anchor.epochMs + Math.ceil(clock.monoMs() - anchor.monoMs);
    // Where there will be no server's time, the local clock knows of the time that the host slept through.
    return serverClock.isDateAbsent() ? Math.max(carriedMs, clock.nowMs()) : carriedMs;
  };

  return {
    nowMs,
    isStale: () => isKnown() && !isRead,
    read() {
      const monoMs = clock.monoMs();
      const earlyAt = new Set(early.map(({ atMs }) => atMs));
      const booked = ledger.sentSince(serverClock.nowMs() - DAY_MS - GRAIN_MS).filter((atMs) => !earlyAt.has(atMs));
      isRead = isKnown();
      if (!isRead) anchor = { epochMs: Math.max(serverClock.nowMs(), (booked.at(-1) ?? 0) + 1), monoMs };
      const now = nowMs();
      // A booking from the future is one of a clock that was wrong: it counts as new.
      const sentMs = booked.map((atMs) => monoMs - Math.max(0, now - atMs - GRAIN_MS));
      const blockedMs = Math.min(LONGEST_BLOCK_MS, Math.max(0, ledger.blockedUntilMs() + GRAIN_MS - now));
      return {
        sentMs: [...sentMs, ...early.map((own) => own.monoMs)].sort((a, b) => a - b),
        blockedUntilMs: blockedMs > 0 ? monoMs + blockedMs : null,
      };
    },
    booked(atMs) {
      if (isKnown()) early = [];
      else early.push({ atMs, monoMs: clock.monoMs() });
    },
  };
}
