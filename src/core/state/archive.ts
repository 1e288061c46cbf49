/**
 * Ports of the archive that `store/` implements with SQLite: limiting its size, and reading it in the order of time.
 */
import type { EpochMs, EpochNs } from '../time.ts';
import type { LogLane } from './log.ts';

/** How many bytes the state takes, by what they are used for. */
export interface StateSize {
  /** Pages in use times their size: what `archive.max_size` is compared with. The write-ahead log is not counted. */
  readonly usedBytes: number;
  /** Free pages of the file times their size. */
  readonly freeBytes: number;
  readonly walBytes: number;
}

/** Which destinations the log is kept for. */
export interface LogReaders {
  /**
   * All configured destinations. Only blocks that all of them have acknowledged are compacted. Other known destinations
   * do not count.
   */
  readonly configured: readonly number[];
  /** The configured destinations that are not skipped. Only blocks that all of them have acknowledged are cleared. */
  readonly active: readonly number[];
}

/** Which acknowledged blocks may be cleared: those archived before a time or, to save space, all. */
export interface ClearOrder extends LogReaders {
  readonly beforeMs: EpochMs | null;
}

/** One lane of one device with blocks that may be merged. */
export interface CompactionGroup {
  readonly lane: LogLane;
  readonly deviceId: string | null;
}

/** The delivery progress of a destination, and how long it has been stalled. */
export interface Stall {
  /** The position at which it was last seen, as text. */
  readonly position: string;
  /** How long it has been there although it had lines to take. */
  readonly stalledMs: number;
  readonly seenMs: EpochMs;
  /**
   * If skipped: the last block that goes to its missing points. Everything up to that block may be dropped. Otherwise
   * `null`.
   */
  readonly skippedTo: number | null;
}

/**
 * The functions that keep the archive small. Every call is one small step and one transaction: it takes a few
 * milliseconds, and may be interrupted.
 */
export interface ArchiveMaintenance {
  size(): StateSize;
  /** The groups in which blocks may be merged. All other groups certainly have nothing to merge. */
  compactionGroups(nowMs: EpochMs): readonly CompactionGroup[];
  /**
   * Merges one run of acknowledged blocks of a group.
   *
   * @returns whether there was one.
   */
  compact(group: CompactionGroup, readers: LogReaders, nowMs: EpochMs): boolean;
  /**
   * Drops some of the oldest blocks that may be dropped.
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
  /** The position of a destination, as text that changes with every acknowledged line. */
  positionText(destinationId: number): string;
  /** The number of the newest block. */
  endOfLog(): number;
  /**
   * Records a part of a skipped destination's backlog as its missing points.
   *
   * @returns whether it has passed `skippedTo`.
   */
  skipBacklog(destinationId: number): boolean;
}

/** The part of the archive to read: a half-open range, of some devices or all. */
export interface ReadRange {
  readonly from: EpochNs;
  readonly to: EpochNs;
  /** Ids; empty: all. */
  readonly devices: readonly string[];
  /** Whether to read only readings, or every archived line. */
  readonly kinds: 'telemetry' | 'all';
}

/** Where a step begins. `deviceId` is `null` for the lines that belong to no single device. */
export interface ScanPosition {
  readonly deviceId: string | null;
  readonly from: EpochNs;
}

/** The result of one step: all lines of the device from `from` (included) to `to`, in the order of time, each once. */
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
 * every line that is archived from the first step to the last is returned exactly once.
 */
export interface ArchiveReader {
  /** The first position; `null` if there is nothing to read. */
  begin(range: ReadRange): ScanPosition | null;
  /**
   * Reads a step.
   *
   * @param bytes about the largest size of the lines of one step, unless the lines of one instant are larger.
   */
  read(range: ReadRange, position: ScanPosition, bytes: number): ReadPiece;
}

/** The latest time there is (SQLite's and the databases' 64 bits), for a range without an end. */
export const END_OF_TIME: EpochNs = 9_223_372_036_854_775_807n;
