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

/** The wanted range of work that begins now; `null` while the server's time is unknown. */
export function wantedNow({
  serverClock,
  settings,
}: {
  readonly serverClock: Pick<SyncContext['serverClock'], 'highestPassedMs' | 'passedMs' | 'nowMs'>;
  readonly settings: Pick<SyncSettings, 'history' | 'gracePeriodMs'>;
}): WantedRange | null {
  const highestMs = serverClock.highestPassedMs();
  // After `Date` has fallen back, no new range is covered, and the range beyond it is read again once that time has
  // passed.
  const passedMs = serverClock.passedMs();
  if (highestMs === null || passedMs === null) return null;
  // After a wrong year, the history of the right year is wanted.
  return wantedAt(settings, { nowMs: Math.min(highestMs, serverClock.nowMs()), passedMs });
}

/** The wanted range for known times. */
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

/**
 * The coverage limit while the server's clock is behind a time that it has shown before; `null` if it is not behind.
 */
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
 * A wanted range that was fixed before, up to the current coverage limit, which is lower while the server's clock has
 * fallen back.
 */
export function coverableNow(context: Parameters<typeof limitAfterFall>[0], wantedRange: WantedRange): WantedRange {
  const limit = limitAfterFall(context);
  return limit === null ? wantedRange : { ...wantedRange, limit: minNs(limit, wantedRange.limit) };
}

/**
 * The server's clock is known only to a few seconds, so a range counts as left if it leaves the wanted range within
 * this time.
 */
const LEAVING_MS = 10 * SECOND_MS;

/** Where the wanted range begins now, after time has passed since the range was fixed. */
export function stillWantedFrom({ serverClock, settings }: Pick<SyncContext, 'serverClock' | 'settings'>): EpochNs {
  return wantedFrom(settings, serverClock.nowMs() + LEAVING_MS);
}

/** Where the wanted range begins at a given time. */
export function wantedFrom({ history }: Pick<SyncSettings, 'history'>, nowMs: number): EpochNs {
  return history.kind === 'since' ? history.since : maxNs(msToNs(nowMs - history.ageMs), 0n);
}

/** The shortest distance from the newest stored reading down to the beginning of a live request. */
const LOOKBACK_MS = 10 * MINUTE_MS;

/**
 * How far below a gap its live request extends to find late readings, if its page has free space: through the covered
 * part that is wanted and not cleared. Readings in a cleared range could not be distinguished from new ones, and would
 * be written again.
 *
 * Between two full polls it extends below the newest stored reading only as far as a reading is likely to be late,
 * because a page of known readings takes most of the time of a poll.
 */
export function lateReadingsFrom(
  context: SyncContext,
  {
    deviceId,
    gap,
    below,
    needsRate = false,
  }: {
    readonly deviceId: string;
    readonly gap: Interval;
    readonly below: CoveredRange;
    /** Whether the page should show a rate. Then it includes the full covered part, as far as it fits. */
    readonly needsRate?: boolean;
  },
): EpochNs {
  const { store, settings } = context;
  const cleared = store.cleared(deviceId, below.from, below.to).at(-1)?.to ?? below.from;
  const oldest = maxNs(maxNs(below.from, cleared), stillWantedFrom(context));
  const { late } = store.telemetry(deviceId);
  // The end of the covered range is the time of the last page. Each device has its own times for a full poll.
  const everyNs = msToNs(settings.polls.fullPollMs);
  const turnOf = (at: EpochNs): bigint => (at + msToNs(hash64(deviceId).hi)) / everyNs;
  if (needsRate || late.readings > 0 || below.last === null || turnOf(gap.from) < turnOf(gap.to)) return oldest;
  const lookbackMs = Math.max(LOOKBACK_MS, gracePeriodOf(settings.gracePeriodMs, late));
  return maxNs(oldest, below.last.at - msToNs(lookbackMs));
}

/** How long the newest gap of a device may be: until its next poll, and the poll after that. */
export function openSeconds({
  context,
  staleMs,
}: {
  readonly context: { readonly settings: Pick<SyncSettings, 'gracePeriodMs'> };
  /** The normal lag of readings if the quota is short, in ms. */
  readonly staleMs: () => number;
}): number {
  return Math.max(LIVE_LAG_SECONDS, (2 * staleMs()) / 1000) + context.settings.gracePeriodMs / 1000;
}
