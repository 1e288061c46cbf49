/**
 * Port of the durable log and its destinations. `store/` implements it with SQLite.
 */
import type { MovedValue } from '../lines/dialect.ts';
import type { EpochMs, EpochNs } from '../time.ts';

/** The two lanes of the log, in the order in which they are delivered. */
export const LOG_LANES = ['live', 'history'] as const;
export type LogLane = (typeof LOG_LANES)[number];

/** The byte between two lines of a block, and after each line of a batch. */
export const NEWLINE = 0x0a;

/** A position in one lane of the log: blocks before `block` are acknowledged, and `line` lines of that block. */
export interface LogPosition {
  readonly block: number;
  readonly line: number;
}

/** Lines to deliver, in the order of the log, and the blocks that contain them. */
export interface LogBatch extends KeptLines {
  readonly segments: readonly LogSegment[];
}

/**
 * Lines in their stored form. They are converted to strings only when one is examined, because that takes longer than
 * sending them.
 */
export interface KeptLines {
  /** The lines in UTF-8, each with a newline at its end. */
  readonly text: Uint8Array;
  readonly count: number;
  /** The times of the lines: no line is before the first or after the last; `null` if no time is known. */
  readonly extent: { readonly first: EpochNs; readonly last: EpochNs } | null;
  /** The text split into lines on first use, then kept. */
  readonly lines: readonly string[];
}

/** `lines` lines of a block, from line number `line` on; `rest` is true if the block has more lines after them. */
export interface LogSegment {
  readonly block: number;
  readonly line: number;
  readonly lines: number;
  readonly rest: boolean;
}

/** The position in the log after the first `acknowledged` lines of a batch are acknowledged. */
export function positionAfter(batch: Pick<LogBatch, 'segments'>, from: LogPosition, acknowledged: number): LogPosition {
  let left = acknowledged;
  let position = from;
  for (const { block, line, lines, rest } of batch.segments) {
    if (left < lines) return left === 0 ? position : { block, line: line + left };
    position = rest ? { block, line: line + lines } : { block: block + 1, line: 0 };
    left -= lines;
  }
  return position;
}

/** A destination in the state; another kind, URL, organisation or bucket makes another destination. */
export interface DestinationState {
  readonly id: number;
  readonly name: string;
  /** Whether it was seen for the first time by this call. */
  readonly created: boolean;
  /** The identity that had this name before this call, if it was another one. */
  readonly previous: string | null;
}

/**
 * Why a destination is missing points for good: they are older than its retention, it blocked the log for too long, the
 * log no longer had them when it came to them, or it rejected them and a person has dropped them.
 */
export const MISSING_REASONS = ['beyond_retention', 'skipped_destination', 'cleared', 'dropped'] as const;
/** Why points are not in a destination. */
export type MissingReason = (typeof MISSING_REASONS)[number];

/** Whether a repair can restore the points. It cannot change a retention or a person's decision. */
export function isRepairable({ reason }: Pick<MissingPoints, 'reason'>): boolean {
  return reason === 'skipped_destination' || reason === 'cleared';
}

/** A range in which a destination is missing archived points. */
export interface MissingPoints {
  /** Empty for points without a device. */
  readonly deviceId: string;
  readonly fromNs: EpochNs;
  readonly toNs: EpochNs;
  readonly reason: MissingReason;
  /** The number of missing points; one that was left out twice counts twice. */
  readonly points: number;
}

/** A range in which a destination was found to have this many points. */
export type FoundPoints = Pick<MissingPoints, 'deviceId' | 'fromNs' | 'toNs' | 'points'> & {
  /**
   * How many other points of the range may still be missing. The skipped part of the range stays recorded for those.
   */
  readonly left?: number;
};

/** The changes of a destination's missing points, as found by a comparison. */
export interface MissingChange {
  /** Points beyond a retention stay missing anyway. */
  readonly found: readonly FoundPoints[];
  readonly missed: readonly MissingPoints[];
  /** The retention that the comparison shows and the destination does not report; absent if the last one stays. */
  readonly estimate?: RetentionEstimate | undefined;
}

/**
 * The retentions that would explain which points a destination returned in one comparison, and which it did not. Times
 * by the local clock.
 */
export interface RetentionEstimate {
  readonly beganMs: EpochMs;
  readonly endedMs: EpochMs;
  readonly shortestMs: number;
  readonly longestMs: number;
}

/** All missing points of a destination for one reason. */
export interface MissingSum {
  readonly reason: MissingReason;
  readonly points: number;
  /** How many devices the points belong to. */
  readonly devices: number;
  /** From the first range to the end of the last; the time between them may have no missing points. */
  readonly fromNs: EpochNs;
  readonly toNs: EpochNs;
}

/**
 * The result of a batch. In one transaction the position moves to `to`, the rejected lines go to quarantine, and the
 * lines that were left out go to the missing points.
 */
export interface DeliveryOutcome {
  readonly destinationId: number;
  readonly lane: LogLane;
  readonly from: LogPosition;
  readonly to: LogPosition;
  readonly rejected: readonly { readonly line: string; readonly message: string }[];
  readonly missing: readonly MissingPoints[];
  readonly atMs: EpochMs;
}

interface Backlog {
  readonly pendingLines: number;
  readonly quarantined: number;
}

/** Sums over the complete archive. */
export interface ArchiveTotals {
  readonly readings: number;
  readonly points: number;
  readonly lines: number;
  readonly bytes: number;
  /** Records of the API that were rejected completely or in part. */
  readonly rejectedRecords: number;
  /** Requests booked since the state was made. */
  readonly requests: number;
}

/** The log: the archived lines, and the position of each destination in it. */
export interface LogStore {
  /** Archives lines that belong to no page commit. */
  append(lines: readonly string[], lane: LogLane): void;
  /** Makes an identity the current one of a name, and adds it if it is new. */
  useDestination(name: string, identity: string): DestinationState;
  /**
   * Returns which of the identities is known under the name: the current one, otherwise the latest; `null` for none.
   */
  knownIdentity(name: string, identities: readonly string[]): string | null;
  /** Gives a destination that was added with an incomplete identity its true one, which may already be known. */
  identify(destinationId: number, identity: string): DestinationState;
  /** The telemetry values that were written at any of the instants instead of their own time. */
  movedTo(writtenAt: readonly EpochNs[]): readonly MovedValue[];
  position(destinationId: number, lane: LogLane): LogPosition;
  /** The position after everything that is archived in a lane so far. */
  endOf(lane: LogLane): LogPosition;
  read(lane: LogLane, from: LogPosition, limits: { lines: number; bytes: number }): LogBatch;
  /** The lines of the newest block without readings, and of the newest one with readings. */
  newestLines(): readonly string[];
  acknowledge(outcome: DeliveryOutcome): void;
  backlog(destinationId: number): Backlog;
  /** The points that a destination is missing permanently, by device, reason and time. */
  missing(destinationId: number): readonly MissingPoints[];
  /**
   * Removes points that were found in the destination from the missing ones, and adds points that were found missing.
   */
  amendMissing(destinationId: number, change: MissingChange): void;
  /** The sums of the missing points, by reason. */
  missingSums(destinationId: number): readonly MissingSum[];
  totals(): ArchiveTotals;
}

/**
 * The key of the fact with the reason why the delivery to a destination is blocked; its value is empty if it is not.
 */
export function blockedFact(destinationId: number): string {
  return `blocked.${destinationId}`;
}

/** The key of the fact whether that reason is an answer of the database or of a proxy: `yes`, or an empty text. */
export function blockedByAnswerFact(destinationId: number): string {
  return `blocked_by_answer.${destinationId}`;
}
