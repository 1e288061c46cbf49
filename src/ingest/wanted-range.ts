/**
 * The range that the sync wants, and the coverage limit at its upper end.
 */
import type { CoveredRange } from '../core/coverage.ts';
import { LIVE_LAG_SECONDS } from '../core/device-coverage.ts';
import { hash64 } from '../core/hash.ts';
import type { Interval } from '../core/intervals.ts';
import { gracePeriodOf } from '../core/state/telemetry.ts';
import { type EpochMs, type EpochNs, MINUTE_MS, maxNs, minNs, msToNs, SECOND_MS } from '../core/time.ts';
import type { SyncContext, SyncSettings, WantedRange } from './context.ts';
import { coverageLimit } from './coverage-rules.ts';

/** The wanted range of work that begins now; `null` while nothing is known of the server's time. */
export function wantedNow({
  serverClock,
  settings,
}: {
  readonly serverClock: Pick<SyncContext['serverClock'], 'highestPassedMs' | 'passedMs' | 'nowMs'>;
  readonly settings: Pick<SyncSettings, 'history' | 'gracePeriodMs'>;
}): WantedRange | null {
  const highestMs = serverClock.highestPassedMs();
  // Where `Date` has fallen back nothing new is covered, and what lies beyond is read again once it has passed.
  const passedMs = serverClock.passedMs();
  if (highestMs === null || passedMs === null) return null;
  // After a wrong year the history of the right one is wanted.
  return wantedAt(settings, { nowMs: Math.min(highestMs, serverClock.nowMs()), passedMs });
}

/** The wanted range by times that are known. */
export function wantedAt(
  settings: Pick<SyncSettings, 'history' | 'gracePeriodMs'>,
  { nowMs, passedMs }: { nowMs: EpochMs; passedMs: EpochMs },
): WantedRange {
  return {
    nowMs,
    wantedFrom: wantedFrom(settings, nowMs),
    gracePeriodMs: settings.gracePeriodMs,
    limit: coverageLimit(passedMs, settings.gracePeriodMs),
  };
}

/** The coverage limit while the server's clock is behind a time that it has shown before; `null` while it is not. */
export function limitAfterFall({
  serverClock,
  settings,
}: {
  readonly serverClock: Pick<SyncContext['serverClock'], 'highestPassedMs' | 'passedMs' | 'presentAtMostMs'>;
  readonly settings: Pick<SyncSettings, 'gracePeriodMs'>;
}): EpochNs | null {
  const presentMs = serverClock.presentAtMostMs();
  const passedMs = serverClock.passedMs();
  if (presentMs === null || passedMs === null || presentMs >= (serverClock.highestPassedMs() ?? passedMs)) return null;
  return coverageLimit(passedMs, settings.gracePeriodMs);
}

/**
 * A wanted range that was fixed before, up to what can be covered now: less while the server's clock has fallen back.
 */
export function coverableNow(context: Parameters<typeof limitAfterFall>[0], wantedRange: WantedRange): WantedRange {
  const limit = limitAfterFall(context);
  return limit === null ? wantedRange : { ...wantedRange, limit: minNs(limit, wantedRange.limit) };
}

/** The server's clock is known to a few seconds: what leaves the wanted range within these has left it. */
const LEAVING_MS = 10 * SECOND_MS;

/** Where the range that is still wanted begins, when time has passed since it was fixed. */
export function stillWantedFrom({ serverClock, settings }: Pick<SyncContext, 'serverClock' | 'settings'>): EpochNs {
  return wantedFrom(settings, serverClock.nowMs() + LEAVING_MS);
}

/** Where the wanted range begins at a moment. */
export function wantedFrom({ history }: Pick<SyncSettings, 'history'>, nowMs: number): EpochNs {
  return history.kind === 'since' ? history.since : maxNs(msToNs(nowMs - history.ageMs), 0n);
}

/** How far below the newest stored reading a live request begins at least. */
const LOOKBACK_MS = 10 * MINUTE_MS;

/**
 * How far below a gap its live request extends to find late readings, if its page has room: through the covered part
 * that is wanted and not cleared. Readings in a cleared range could not be distinguished from new ones, and would be
 * written again.
 *
 * Between two full pages it extends only as far below the newest stored reading as a reading is likely to be late: a
 * page of known readings takes most of the time of a poll.
 */
export function lateReadingsFrom(
  context: SyncContext,
  {
    deviceId,
    gap,
    below,
    isToLearn = false,
  }: {
    readonly deviceId: string;
    readonly gap: Interval;
    readonly below: CoveredRange;
    /** Whether the page is to show a rate: then it has the full covered part, as far as it has room. */
    readonly isToLearn?: boolean;
  },
): EpochNs {
  const { store, settings } = context;
  const cleared = store.cleared(deviceId, below.from, below.to).at(-1)?.to ?? below.from;
  const oldest = maxNs(maxNs(below.from, cleared), stillWantedFrom(context));
  const { late } = store.telemetry(deviceId);
  // The end of the covered range is the time of the last page. Each device has its own turns.
  const everyNs = msToNs(settings.polls.fullPollMs);
  const turnOf = (at: EpochNs): bigint => (at + msToNs(hash64(deviceId).hi)) / everyNs;
  if (isToLearn || late.readings > 0 || below.last === null || turnOf(gap.from) < turnOf(gap.to)) return oldest;
  const lookbackMs = Math.max(LOOKBACK_MS, gracePeriodOf(settings.gracePeriodMs, late));
  return maxNs(oldest, below.last.at - msToNs(lookbackMs));
}

/** How long the newest gap of a device may be: until its next turn comes, and the turn after that. */
export function openSeconds({
  context,
  staleMs,
}: {
  readonly context: { readonly settings: Pick<SyncSettings, 'gracePeriodMs'> };
  /** How old readings normally become where the quota is short, in ms. */
  readonly staleMs: () => number;
}): number {
  return Math.max(LIVE_LAG_SECONDS, (2 * staleMs()) / 1000) + context.settings.gracePeriodMs / 1000;
}
