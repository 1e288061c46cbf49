/**
 * Ports of the archive that `store/` implements with SQLite: keeping it small, and reading it in the order of time.
 */
import type { EpochMs, EpochNs } from '../time.ts';
import type { LogLane } from './log.ts';

/** How much room the state takes. */
export interface StateSize {
  /** Pages in use times their size: what `archive.max_size` is compared with. The write-ahead log is not counted. */
  readonly usedBytes: number;
  /** Pages of the file that are free for new content. */
  readonly freeBytes: number;
  readonly walBytes: number;
}

/** Which destinations the log is kept for. */
export interface LogReaders {
  /**
   * All that are configured: only what these have acknowledged is compacted. Every other one that is known has no
   * claim.
   */
  readonly configured: readonly number[];
  /** Those of them that are not skipped: only what these have acknowledged is cleared. */
  readonly active: readonly number[];
}

/** Which part of what is acknowledged may go: what was archived before a time, or, for the sake of size, all. */
export interface ClearOrder extends LogReaders {
  readonly beforeMs: EpochMs | null;
}

/** One lane of one device, where there may be something to merge. */
export interface CompactionGroup {
  readonly lane: LogLane;
  readonly deviceId: string | null;
}

/** How a destination stands in the log. */
export interface Stall {
  /** Where it was seen last. */
  readonly position: string;
  /** For how long it has been there with something to take. */
  readonly stalledMs: number;
  readonly seenMs: EpochMs;
  /** Skipped: the last block of what goes to its missing points, up to which everything may be dropped; else `null`. */
  readonly skippedTo: number | null;
  /** Why the delivery is blocked, in words; absent or `null` if it is not, or if no one reported it. */
  readonly blockedReason: string | null;
}

/**
 * What keeps the archive small. Every call is one small step and one transaction: done in a few milliseconds, and safe
 * to be broken off at.
 */
export interface ArchiveMaintenance {
  size(): StateSize;
  /** Where something may be merged: of all others it is sure that nothing is. */
  compactionGroups(nowMs: EpochMs): readonly CompactionGroup[];
  /**
   * Merges one run of acknowledged blocks of a group.
   *
   * @returns whether there was one.
   */
  compact(group: CompactionGroup, readers: LogReaders, nowMs: EpochMs): boolean;
  /**
   * Drops some of the oldest blocks that may go.
   *
   * @returns how many blocks and lines that were.
   */
  clear(order: ClearOrder): { readonly blocks: number; readonly lines: number };
  /**
   * Gives free pages back to the file system.
   *
   * @returns how many bytes are free in the file after it.
   */
  vacuum(pages: number): number;
  stall(destinationId: number): Stall | null;
  saveStall(destinationId: number, stall: Stall): void;
  /** Where a destination stands, as text that changes with every line that it acknowledges. */
  positionText(destinationId: number): string;
  /** The place of the newest block. */
  endOfLog(): number;
  /**
   * Moves some of what a skipped destination has not acknowledged into its missing points.
   *
   * @returns whether it has passed `skippedTo`.
   */
  skipBacklog(destinationId: number): boolean;
}

/** What of the archive is read: a half-open range, of some devices or (none named) of all. */
export interface ReadRange {
  readonly from: EpochNs;
  readonly to: EpochNs;
  /** Ids; none: all. */
  readonly devices: readonly string[];
  /** Readings alone, or every line that is archived. */
  readonly kinds: 'telemetry' | 'all';
}

/** Where a step begins. `deviceId` is `null` for the lines of no device's own blocks. */
export interface ScanPosition {
  readonly deviceId: string | null;
  readonly from: EpochNs;
}

/** What one step brings: all lines of the place from `from` (included) to `to`, in the order of time, each once. */
export interface ReadPiece {
  readonly deviceId: string | null;
  readonly from: EpochNs;
  readonly to: EpochNs;
  readonly lines: readonly string[];
  /** Where the next step begins; `null` at the end. */
  readonly next: ScanPosition | null;
}

/**
 * Reads the archive in the order of time, for large reads (export, replay, repair): first the lines outside the blocks
 * of any one device (devices, alerts, the workspace, coverage), then device after device by id.
 *
 * Every step reads the archive as it is at that moment. The next step begins at a time, which no compaction moves. So
 * every line that is there from the first step to the last is returned exactly once.
 */
export interface ArchiveReader {
  /** The first place; `null` where nothing is to be read. */
  begin(range: ReadRange): ScanPosition | null;
  /** @param bytes about how much of lines a step brings at most, unless those of one instant are more. */
  read(range: ReadRange, position: ScanPosition, bytes: number): ReadPiece;
}

/** The latest time there is (SQLite's and the databases' 64 bits), for a range without an end. */
export const END_OF_TIME: EpochNs = 9_223_372_036_854_775_807n;
