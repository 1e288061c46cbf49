/**
 * How far the sync may claim and how far back it is wanted (design 2.1, "Claims have a limit").
 */
import { type EpochNs, maxNs, msToNs, SECOND_MS } from '../core/time.ts';
import type { Horizon, SyncContext, SyncSettings } from './context.ts';

/**
 * The server's clock speaks in seconds: what it says may lie up to a second ahead of the time at which it looked.
 */
const CLOCK_GRAIN_MS = SECOND_MS;

/** The horizon of a pass that begins now; `null` while nothing is known of the server's time. */
export function horizonNow({ serverClock, settings }: Pick<SyncContext, 'serverClock' | 'settings'>): Horizon | null {
  const claimableMs = serverClock.claimableMs();
  if (claimableMs === null) return null;
  return {
    nowMs: claimableMs,
    wantedFrom: wantedFrom(settings, claimableMs),
    limit: maxNs(msToNs(claimableMs - CLOCK_GRAIN_MS - settings.settleMs), 0n),
  };
}

/** The server's clock is known to a few seconds: what leaves the wanted span within these has left it. */
const LEAVING_MS = 10 * SECOND_MS;

/** Where the span that is still wanted begins, when time has gone on since the horizon was fixed. */
export function stillWantedFrom({ serverClock, settings }: Pick<SyncContext, 'serverClock' | 'settings'>): EpochNs {
  return wantedFrom(settings, serverClock.nowMs() + LEAVING_MS);
}

/** Where the wanted span begins, seen from a moment. */
export function wantedFrom({ history }: Pick<SyncSettings, 'history'>, nowMs: number): EpochNs {
  return history.kind === 'since' ? history.since : maxNs(msToNs(nowMs - history.ageMs), 0n);
}
