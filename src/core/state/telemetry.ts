/**
 * Port of the telemetry of each device: coverage, gaps, names and sums. `store/` implements it with SQLite.
 */

import type { CoveredRange } from '../coverage.ts';
import type { Interval, Intervals } from '../intervals.ts';
import type { PointSum } from '../lines/points.ts';
import type { RejectedRecord } from '../records.ts';
import type { EpochMs, EpochNs } from '../time.ts';
import type { LogLane } from './log.ts';

/** The time from which a device is written under a name: `fromNs` is 0 for the first one. */
export interface NameRecord {
  readonly fromNs: EpochNs;
  readonly name: string;
}

/**
 * A value with an offset, because its series already had another value at its instant: where it was recorded and where
 * it is written. It is stored forever, so that the same reading always becomes the same line.
 */
export interface TimestampOffset {
  /** The sensor as its tag value reads. */
  readonly sensor: string;
  readonly recordedNs: EpochNs;
  /** The field as written in the line: `value=1.5`. */
  readonly field: string;
  readonly writtenNs: EpochNs;
}

/**
 * The sum of a day of a device: the numbers of readings and points, and the sum of the points' hashes, each half mod
 * 2^32.
 */
export interface DaySum extends PointSum {
  /** Days since 1970-01-01. */
  readonly day: number;
  readonly readings: number;
}

/** How late readings of a device arrived. */
export interface LateRecord {
  /** How many readings have ever arrived late. */
  readonly readings: number;
  /** The longest delay: from a reading's time to when it was first seen. */
  readonly worstMs: number;
  /** The minimum grace period of this device; 0 if no reading was late. */
  readonly gracePeriodMs: number;
}

/** The record of a device without late readings. */
export const NEVER_LATE: LateRecord = { readings: 0, worstMs: 0, gracePeriodMs: 0 };

/** How long after its time a reading of this device may still arrive, as far as is known. */
export function gracePeriodOf(configuredMs: number, { gracePeriodMs }: LateRecord): number {
  return Math.max(configuredMs, gracePeriodMs);
}

/** The late readings of one page, and the updated record. */
export interface LateFound {
  readonly count: number;
  /** The longest delay on the page: from a reading's time to when it was seen. */
  readonly worstMs: number;
  readonly record: LateRecord;
}

/** The stored facts about a device's telemetry, for requests and for page commits. */
export interface TelemetryState {
  readonly deviceId: string;
  /** Changes with every change of the members below. A commit that was computed from an older revision is rejected. */
  readonly revision: number;
  readonly covered: readonly CoveredRange[];
  readonly names: readonly NameRecord[];
  /** How many readings were first seen, by hour since 1970, for hours that are not written as `coverage_hour` yet. */
  readonly hourReadings: ReadonlyMap<number, number>;
  /** The hours (since 1970, as intervals of hours) that are written. */
  readonly hoursWritten: Intervals;
  /** How late its readings were seen to come. */
  readonly late: LateRecord;
  /** The newest readings of the last page, if that was a live one, as hashes. They are only in memory. */
  readonly lastPage: readonly number[];
}

/** The changes of one page to the state of one device. */
export interface PageCommit extends Pick<TelemetryState, 'deviceId' | 'hourReadings' | 'hoursWritten' | 'lastPage'> {
  /** The revision that the commit was computed from. */
  readonly revision: number;
  readonly lane: LogLane;
  /** The request of the page; its yield is stored with its booking. */
  readonly requestId: number;
  /** Telemetry lines that are not in the archive yet. */
  readonly lines: readonly string[];
  /** Further lines of the device that are not telemetry (`coverage_hour`). */
  readonly sideLines: readonly string[];
  /** The written times of the first and last telemetry line; `null` without any. */
  readonly firstNs: EpochNs | null;
  readonly lastNs: EpochNs | null;
  /** The number of readings with at least one new value. */
  readonly newReadings: number;
  readonly offsets: readonly TimestampOffset[];
  readonly daySums: readonly DaySum[];
  /** How many of the points are texts, by day; 0 for a day without an entry. */
  readonly dayTexts?: ReadonlyMap<number, number>;
  /** The coverage after this page. */
  readonly covered: readonly CoveredRange[];
  /** Present if readings came late. */
  readonly late?: LateFound;
  /** The range below the page whose coverage was withdrawn, because more readings may lie there. */
  readonly reopened?: Interval;
  readonly rejected: readonly RejectedRecord[];
  /** The server's time of the answer. */
  readonly atMs: EpochMs;
}

/** Thrown for a page commit that was computed from an outdated state. Nothing was written; compute it again. */
export class StaleStateError extends Error {
  override readonly name = 'StaleStateError';
}

/** Thrown for a page commit on a device that was removed while the page was in flight. Nothing was written. */
export class ForgottenError extends Error {
  override readonly name = 'ForgottenError';
}

/** The reasons why a range that is wanted is not covered. */
export const GAP_REASONS = [
  'beyond_plan',
  'over_quota',
  'page_rejected',
  'unverified',
  'unreachable',
  'device_gone',
] as const;

export type GapReason = (typeof GAP_REASONS)[number];

/** A range of a device that is not covered, with its reason. */
export interface Gap {
  readonly deviceId: string;
  readonly fromNs: EpochNs;
  readonly toNs: EpochNs;
  readonly reason: GapReason;
  readonly retryAtMs: EpochMs;
}

/**
 * A stored reading that an answer had to contain and that was missing in completely empty answers. The answers may be
 * false, or the API may no longer have the reading.
 */
export interface MissedOverlap {
  readonly at: EpochNs;
  /** When it was first missed, in the server's time. */
  readonly sinceMs: EpochMs;
  /** Whether it counts as gone: no answer has to show it any more. */
  readonly isGone: boolean;
}

/**
 * A range of a device that only empty answers cover, although there is evidence of readings. It is a gap until the
 * answers are accepted, and is requested again some time later.
 */
export interface EmptyRange extends Interval {
  /** When the first empty answer came, in the server's time. */
  readonly sinceMs: EpochMs;
  /** How many requests for it got empty answers. */
  readonly answers: number;
  /** How often it was confirmed: 0 while it is a gap, 1 once it is accepted, and one more with each later check. */
  readonly confirmed: number;
  /** When it is requested again, in the server's time; `null`: not again. */
  readonly dueMs: EpochMs | null;
}

/**
 * A window of history that only empty answers cover. The stored readings above and below were too far away for the
 * answers to show them, so there is no evidence for or against the answers. The window is requested again some time
 * later.
 */
export interface EmptyWindow extends Interval {
  /** When the window first counted as empty, in the server's time. */
  readonly sinceMs: EpochMs;
  /** When it is requested again, in the server's time. */
  readonly dueMs: EpochMs;
}

/** The progress of a device's recheck: `--backfill --recheck` reads covered ranges again. */
export interface RecheckProgress {
  /** The range that the command requested. */
  readonly requested: Interval;
  /** The part that was covered when the recheck began and has not been read again yet, ascending. */
  readonly unread: Intervals;
  /** When the last page of the recheck was read, in the server's time. */
  readonly atMs: EpochMs;
}

/** After this many confirmations a range is not requested again. */
export const CONFIRMED_FOR_GOOD = 3;

/** Whether the empty answers about a device were confirmed for good: its signs of life come without readings. */
export function isSilentForGood(range: EmptyRange | null): boolean {
  return (range?.confirmed ?? 0) >= CONFIRMED_FOR_GOOD;
}

/** The facts about the coverage of a device that reports need. */
export interface CoverageNow {
  readonly covered: readonly CoveredRange[];
  readonly late: LateRecord;
  readonly gaps: readonly Gap[];
  /** The time of the newest archived reading; `null` without any. */
  readonly newestNs: EpochNs | null;
  /** Whether its signs of life are known to come without readings ({@link isSilentForGood}). */
  readonly isSilent: boolean;
}

/** The coverage of a device that was never read. */
export const NOTHING_COVERED: CoverageNow = {
  covered: [],
  late: NEVER_LATE,
  gaps: [],
  newestNs: null,
  isSilent: false,
};

/** The stored telemetry of one device; `coverageOfAll` reads all devices at once. */
export function telemetryNow(
  store: Pick<TelemetryStore, 'telemetry' | 'gaps' | 'newestNs' | 'emptyRange'>,
  deviceId: string,
): TelemetryState & CoverageNow {
  return {
    ...store.telemetry(deviceId),
    gaps: store.gaps(deviceId),
    newestNs: store.newestNs(deviceId),
    isSilent: isSilentForGood(store.emptyRange(deviceId)),
  };
}

/** The telemetry of all devices. */
export interface TelemetryStore {
  telemetry(deviceId: string): TelemetryState;
  /** The coverage of all devices by their ids, in one read: much cheaper than a read for each. */
  coverageOfAll(): ReadonlyMap<string, CoverageNow>;
  /** The newest archived reading of a device; `null` if there is none. */
  newestNs(deviceId: string): EpochNs | null;
  /**
   * The telemetry lines of a device in blocks that overlap the range, all offsets recorded or written in it, and the
   * ranges in it whose stored lines were cleared.
   */
  stored(
    deviceId: string,
    from: EpochNs,
    to: EpochNs,
  ): { lines: readonly string[]; offsets: readonly TimestampOffset[]; cleared: Intervals };
  /** The ranges within a range whose stored lines were cleared, ascending. */
  cleared(deviceId: string, from: EpochNs, to: EpochNs): Intervals;
  /**
   * @returns those of its `rejected` that were not quarantined before.
   * @throws StaleStateError, ForgottenError
   */
  commitPage(page: PageCommit): readonly RejectedRecord[];
  /** The named gaps of one device, or of all. */
  gaps(deviceId?: string): readonly Gap[];
  nameGap(gap: Gap): void;
  clearGaps(deviceId: string): void;
  /** The overlap readings of a device that empty answers have not shown, ascending. */
  missedOverlaps(deviceId: string): readonly MissedOverlap[];
  saveMissedOverlap(deviceId: string, missed: MissedOverlap): void;
  /** Removes the records of overlap readings that were returned again. */
  dropMissedOverlaps(deviceId: string, ats: readonly EpochNs[]): void;
  /** The range of a device that only empty answers cover; `null` for none. */
  emptyRange(deviceId: string): EmptyRange | null;
  /**
   * The devices with an empty range or an empty window that is due for another request, the longest due first, without
   * those that are gone.
   */
  dueEmptyRanges(nowMs: EpochMs): readonly string[];
  /** Stores the empty range of a device; `null` removes it. */
  saveEmptyRange(deviceId: string, range: EmptyRange | null): void;
  /** The empty windows of a device that will be requested again, newest first. */
  emptyWindows(deviceId: string): readonly EmptyWindow[];
  saveEmptyWindow(deviceId: string, window: EmptyWindow): void;
  /** Removes the empty window that begins at that time. */
  dropEmptyWindow(deviceId: string, from: EpochNs): void;
  /** The last day (since 1970) that was read again, for each device that has one. */
  rereadDays(): ReadonlyMap<string, number>;
  saveReread(deviceId: string, day: number): void;
  /** The unfinished recheck of a device; `null` if there is none. */
  recheck(deviceId: string): RecheckProgress | null;
  saveRecheck(deviceId: string, progress: RecheckProgress | null): void;
}
