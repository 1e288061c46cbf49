/**
 * What survives a crash, as the motion sees it: the port that `store/` fills with SQLite.
 *
 * Invariant of every writing call: it is one transaction. What a page brought and the coverage that it proves move
 * together or not at all, and only if what they were computed from still holds (`StaleStateError`).
 */
import type { KnownAlert } from './alerts.ts';
import type { CoveredSpan } from './coverage.ts';
import type { Intervals } from './intervals.ts';
import type { Account, DeviceRecord, RejectedRecord } from './records.ts';
import type { EpochMs, EpochNs } from './time.ts';

/** The two lanes of the log: live points are delivered before history. */
export type LogLane = 'live' | 'history';

/** From when on a device is written under a name: `fromNs` is 0 for the first one. */
export interface NameHold {
  readonly fromNs: EpochNs;
  readonly name: string;
}

/**
 * A value that had to move because its series already had another one at its instant: where it was recorded and where
 * it is written. Remembered for ever, so that the same reading always becomes the same line.
 */
export interface Tie {
  /** The sensor as its tag value reads. */
  readonly sensor: string;
  readonly recordedNs: EpochNs;
  /** The field as it stands in the line: `value=1.5`. */
  readonly field: string;
  readonly writtenNs: EpochNs;
}

/** What a day of a device holds: how many readings and points, and the sum of the points' hashes, each half mod 2^32. */
export interface DaySum {
  /** Days since 1970-01-01. */
  readonly day: number;
  readonly readings: number;
  readonly points: number;
  readonly hashHigh: number;
  readonly hashLow: number;
}

/** What telemetry needs to know of a device before it asks, and what a landing is computed from. */
export interface TelemetryState {
  readonly deviceId: string;
  /** Moves with every change of what is below: a landing that was computed from an older one is refused. */
  readonly revision: number;
  readonly spans: readonly CoveredSpan[];
  readonly names: readonly NameHold[];
  /** Readings first seen, by hour since 1970, of hours not written as `coverage_hour` yet. */
  readonly hourReadings: ReadonlyMap<number, number>;
  /** The hours (since 1970, as intervals of hours) that are written. */
  readonly hoursWritten: Intervals;
}

/** What one page adds to the state of one device. */
export interface Landing {
  readonly deviceId: string;
  /** The revision that it was computed from. */
  readonly revision: number;
  readonly lane: LogLane;
  /** The request that brought it; its yield is kept with its booking. */
  readonly requestId: number;
  /** New telemetry lines. */
  readonly lines: readonly string[];
  /** Further lines of the device that are not telemetry (`coverage_hour`). */
  readonly sideLines: readonly string[];
  /** The written times of the first and last telemetry line; `null` without one. */
  readonly firstNs: EpochNs | null;
  readonly lastNs: EpochNs | null;
  /** How many readings brought at least one new value. */
  readonly newReadings: number;
  readonly ties: readonly Tie[];
  readonly daySums: readonly DaySum[];
  /** The coverage after this page. */
  readonly spans: readonly CoveredSpan[];
  readonly hourReadings: ReadonlyMap<number, number>;
  readonly hoursWritten: Intervals;
  readonly rejected: readonly RejectedRecord[];
  /** The server's time of the answer. */
  readonly atMs: EpochMs;
}

/** A landing that was computed from a state that has moved on. Nothing was written; compute it again. */
export class StaleStateError extends Error {
  override readonly name = 'StaleStateError';
}

/** Why a stretch that is wanted is not held (design 1.1, promise 5). */
export type GapReason = 'beyond plan' | 'page not understood' | 'device unreachable' | 'device gone';

export interface Gap {
  readonly deviceId: string;
  readonly fromNs: EpochNs;
  readonly toNs: EpochNs;
  readonly reason: GapReason;
  /** When it is worth another try. */
  readonly retryAtMs: EpochMs;
}

/** A device as the inventory knows it. */
export interface KnownDevice {
  readonly record: DeviceRecord;
  readonly name: string;
  readonly firstListedMs: EpochMs;
  readonly lastListedMs: EpochMs;
  /** Complete listings in a row that did not have it. */
  readonly missedListings: number;
  /** Since when it is gone; `null` while it is there. */
  readonly goneSinceMs: EpochMs | null;
}

/** What a complete listing of devices changes. */
export interface InventoryChange {
  /** Devices listed, with the `device` lines of those that changed or are due. */
  readonly listed: readonly ListedDevice[];
  /** Devices that this complete listing did not have. */
  readonly missing: readonly string[];
  readonly atMs: EpochMs;
}

export interface ListedDevice {
  readonly record: DeviceRecord;
  /** The name under which points are written: the record's, or the id. */
  readonly name: string;
  /** The `device` line to archive; `null` where nothing changed and none is due. */
  readonly line: string | null;
  /** The content of the line without its times, to notice a change. */
  readonly digest: string;
}

/** What is kept of the last `device` point of a device. */
export interface DevicePoint {
  readonly digest: string;
  readonly atNs: EpochNs;
}

/** What is kept of the last `coverage` point of a device. */
export interface CoveragePoint {
  readonly state: string;
  readonly atNs: EpochNs;
}

export interface NewCoveragePoint extends CoveragePoint {
  readonly deviceId: string;
  readonly line: string;
}

/** A place in the log of one lane: blocks before `block` are settled, and `line` lines of that block. */
export interface LogPosition {
  readonly block: number;
  readonly line: number;
}

/** Lines to deliver, in the order of the log, and which blocks they are of. */
export interface LogBatch {
  readonly lines: readonly string[];
  readonly segments: readonly LogSegment[];
}

/** `lines` lines of a block, from its line number `line` on; `rest` says whether the block has more after them. */
export interface LogSegment {
  readonly block: number;
  readonly line: number;
  readonly lines: number;
  readonly rest: boolean;
}

/** The place in the log once the first `settled` lines of a batch are settled. */
export function positionAfter(batch: LogBatch, from: LogPosition, settled: number): LogPosition {
  let left = settled;
  let position = from;
  for (const { block, line, lines, rest } of batch.segments) {
    if (left < lines) return left === 0 ? position : { block, line: line + left };
    position = rest ? { block, line: line + lines } : { block: block + 1, line: 0 };
    left -= lines;
  }
  return position;
}

/** A destination as the state knows it; a changed kind, URL, organisation or bucket makes another one. */
export interface DestinationState {
  readonly id: number;
  readonly name: string;
  /** Whether it was seen for the first time by this call. */
  readonly created: boolean;
}

/** What became of a batch: the position moves to `to`, the refused lines go to quarantine, in one transaction. */
export interface DeliveryOutcome {
  readonly destinationId: number;
  readonly lane: LogLane;
  readonly from: LogPosition;
  readonly to: LogPosition;
  readonly refused: readonly { readonly line: string; readonly words: string }[];
  readonly atMs: EpochMs;
}

export interface Backlog {
  readonly pendingLines: number;
  readonly quarantined: number;
}

/** Sums over the whole archive. */
export interface ArchiveTotals {
  readonly readings: number;
  readonly points: number;
  readonly lines: number;
  readonly bytes: number;
  /** Records of the API that were not understood. */
  readonly rejectedRecords: number;
  /** Requests booked since the state was made. */
  readonly requests: number;
}

/** The alerts that were seen. */
export interface AlertStore {
  find(alertId: number): KnownAlert | null;
  /** Those that are not resolved, newest first. */
  open(): readonly KnownAlert[];
  /** How many known alerts were opened when this one was, or later. */
  countFrom(alert: KnownAlert): number;
  /** Keeps what was observed of alerts, and the points of it. */
  keep(alerts: readonly KnownAlert[], lines: readonly string[]): void;
  /** Says that a listing that had these came to its end. */
  markListed(alertIds: readonly number[]): void;
  /** Says that the API has it no more: it is not followed any longer. */
  forget(alertId: number): void;
}

/** The state of one workspace. */
export interface Store {
  /** The `workspace_id` tag that every point carries; `null` before it is pinned. */
  workspaceTag(): string | null;
  /**
   * Ties the state to a workspace and its tag, once and for ever. `apiId` is `null` where the key may not read it.
   * Throws a `UserError` for another workspace (exit 1) or another tag (exit 78), before anything is written.
   */
  pinWorkspace(workspace: { apiId: string | null; tag: string }): void;
  account(): Account | null;
  keepAccount(account: Account, lines: readonly string[]): void;

  devices(): readonly KnownDevice[];
  lastDevicePoint(deviceId: string): DevicePoint | null;
  /** Takes a complete listing in: records, names, who is missing, and the `device` lines. */
  keepInventory(change: InventoryChange): void;
  /** The last `coverage` point of each device. */
  coveragePoints(): ReadonlyMap<string, CoveragePoint>;
  keepCoveragePoints(points: readonly NewCoveragePoint[]): void;
  markGone(deviceId: string, atMs: EpochMs): void;

  readonly alerts: AlertStore;

  telemetry(deviceId: string): TelemetryState;
  /** Telemetry lines of a device in blocks that overlap the stretch, and all ties recorded or written in it. */
  held(deviceId: string, from: EpochNs, to: EpochNs): { lines: readonly string[]; ties: readonly Tie[] };
  /** @throws StaleStateError */
  land(landing: Landing): void;
  /** Archives lines that belong to no telemetry landing. */
  append(lines: readonly string[], lane: LogLane): void;
  quarantineRecords(source: string, records: readonly RejectedRecord[], atMs: EpochMs): void;

  /** The named gaps of one device, or of all. */
  gaps(deviceId?: string): readonly Gap[];
  nameGap(gap: Gap): void;
  clearGaps(deviceId: string): void;

  /** A small fact that outlives the process. */
  fact(key: string): string | null;
  keepFact(key: string, value: string): void;

  destination(name: string, identity: string): DestinationState;
  position(destinationId: number, lane: LogLane): LogPosition;
  read(lane: LogLane, from: LogPosition, limits: { lines: number; bytes: number }): LogBatch;
  settle(outcome: DeliveryOutcome): void;
  backlog(destinationId: number): Backlog;
  totals(): ArchiveTotals;
}
