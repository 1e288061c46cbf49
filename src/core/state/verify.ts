/**
 * Ports of `--verify`: a destination that can be read, and the state.
 */

import type { Interval, Intervals } from '../intervals.ts';
import type { DestinationKind, FindMoved } from '../lines/dialect.ts';
import type { PointSum } from '../lines/points.ts';
import type { EpochMs } from '../time.ts';
import type { LogLane, LogPosition, MissingPoints, RetentionEstimate } from './log.ts';

/** Why a destination could not be read. */
export interface ReadProblem {
  /** `down`: it may answer later; `rejected`: a person has to fix something. */
  readonly kind: 'down' | 'rejected';
  readonly message: string;
  /** The next step; empty if waiting is enough. */
  readonly hint: string;
  /** The range holds more files than the database reads in one query; a shorter range may be read. */
  readonly isTooWide?: true;
}

/**
 * Receives one telemetry point that a destination returns.
 *
 * @param stamp its time in nanoseconds, in digits.
 * @param sensor the tag value.
 * @param field `value=1.5`.
 */
export type TakePoint = (stamp: string, sensor: string, field: string) => void;

/**
 * A destination's telemetry of one workspace. It never holds a complete answer in memory, only reads, and throws only
 * on abort.
 */
export interface PointSource {
  readonly name: string;
  readonly kind: DestinationKind;
  /**
   * All points of a device (its tag value) in a range, in any order.
   *
   * @returns the problem; `null` for none.
   */
  points(
    range: { readonly device: string } & Interval,
    take: TakePoint,
    signal: AbortSignal,
  ): Promise<ReadProblem | null>;
  /** The tag values of all devices with telemetry. */
  devices(signal: AbortSignal): Promise<readonly string[] | ReadProblem>;
  /** Whether it has any telemetry of the workspace, according to its index. */
  hasAny(signal: AbortSignal): Promise<boolean | ReadProblem>;
}

/** The archived sums of a day of a device. */
export interface ArchivedDay extends PointSum {
  /** Days since 1970. */
  readonly day: number;
  readonly readings: number;
  /** How many of the points are texts. */
  readonly texts: number;
}

/** One of the identities (`destinationIdentity`) that a configured destination can have. */
export interface DestinationCandidate {
  readonly identity: string;
  readonly kind: DestinationKind;
}

/** A destination that `--verify` compares, with its facts from the state. */
export interface VerifiedDestination {
  readonly id: number;
  readonly kind: DestinationKind;
}

/** The positions of a destination at some moment. */
type LogPositions = Readonly<Record<LogLane, AcknowledgedTo>>;

interface AcknowledgedTo extends LogPosition {
  /**
   * When the newest of the blocks before it was archived. A block that is acknowledged later may be merged into an
   * earlier one, which then has the time of its newest part.
   */
  readonly newestMs: EpochMs;
}

/** A telemetry line of the archive, and whether the destination had acknowledged it at the given positions. */
export interface ArchivedLine {
  readonly line: string;
  readonly isAcknowledged: boolean;
}

/** The archived lines of a range of a device, as of one moment. */
export interface ArchivedRange {
  readonly lines: readonly ArchivedLine[];
  /** Lines that the destination rejected. */
  readonly quarantined: readonly string[];
  /** The ranges whose lines were cleared. */
  readonly cleared: Intervals;
}

/** The state for reading while another process may use it. Every call is one short transaction; nothing is written. */
export interface VerifyState {
  readonly workspaceTag: string | null;
  /** The limits of the plan that requests observe; `null` if the account was never read. */
  readonly plan: { readonly historyMaxDays: number | null; readonly maxDevicesPerPage: number | null } | null;
  /** The destination by its name and possible identities; `null` if nothing was ever sent to it. */
  destination(name: string, candidates: readonly DestinationCandidate[]): VerifiedDestination | null;
  /** The first and the last day with points in the archive's sums; `null` if there is none. */
  extent(): { readonly from: number; readonly to: number } | null;
  /** Ids of the devices that are listed or have any stored data, in order. */
  deviceIds(): readonly string[];
  /** The days from `from` to before `to`. */
  days(deviceId: string, from: number, to: number): readonly ArchivedDay[];
  covered(deviceId: string): Intervals;
  /** The maximum number of cleared points in a range of a device that are no readings. */
  clearedOthers(deviceId: string, range: Interval): number;
  positions(destinationId: number): LogPositions;
  missing(destinationId: number, deviceId: string, range: Interval): readonly MissingPoints[];
  /** The retention that an earlier comparison showed and the destination does not report; `null` for none. */
  retentionEstimate(destinationId: number): RetentionEstimate | null;
  range(
    wanted: { readonly deviceId: string; readonly destinationId: number } & Interval,
    at: LogPositions,
  ): ArchivedRange;
  readonly movedTo: FindMoved;
  close(): void;
}
