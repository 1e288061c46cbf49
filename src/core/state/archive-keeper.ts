/**
 * What keeps the archive small over the years, as the motion sees it: the port that `store/` fills with SQLite.
 *
 * Every call is one small step and one transaction: done in a few milliseconds, and safe to be broken off at.
 */
import type { EpochMs } from '../time.ts';
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
export interface Claims {
  /** All that are configured: only what these have settled is sealed. Every other one that is known has no claim. */
  readonly configured: readonly number[];
  /** Those of them that are not set aside: only what these have settled is cleared. */
  readonly active: readonly number[];
}

/** Which part of what is settled may go: what was archived before a time, or, for the sake of size, all. */
export interface ClearOrder extends Claims {
  readonly beforeMs: EpochMs | null;
}

/** One lane of one device, where there may be something to merge. */
export interface CompactionGroup {
  readonly lane: LogLane;
  readonly deviceId: string | null;
}

/** How a destination stands in the log. */
export interface Standing {
  /** Where it was seen last. */
  readonly place: string;
  /** For how long it has been there with something to take. */
  readonly stoodMs: number;
  readonly seenMs: EpochMs;
  /** Set aside: the last block of what goes to its lack-set, and on to which everything may be dropped; else `null`. */
  readonly asideTo: number | null;
  /** Why nothing moves, as its delivery says; none while it does, or where nobody said. */
  readonly held?: string | null;
}

export interface ArchiveMaintenance {
  size(): StateSize;
  /** Where something may be merged: of all others it is sure that nothing is. */
  compactionGroups(nowMs: EpochMs): readonly CompactionGroup[];
  /** Merges one run of settled blocks of a group. @returns whether there was one. */
  compact(group: CompactionGroup, claims: Claims, nowMs: EpochMs): boolean;
  /** Drops some of the oldest blocks that may go. @returns how many blocks and lines that were. */
  clear(order: ClearOrder): { readonly blocks: number; readonly lines: number };
  /** Gives free pages back to the file system. @returns how many bytes are free in the file after it. */
  vacuum(pages: number): number;
  standing(destinationId: number): Standing | null;
  keepStanding(destinationId: number, standing: Standing): void;
  /** Where a destination stands, as text that changes with every line that it settles. */
  placeOf(destinationId: number): string;
  /** The place of the newest block. */
  endOfLog(): number;
  /**
   * Moves some of what a destination that is set aside has not settled into its lack-set. @returns whether it has
   * passed `asideTo`.
   */
  skipBacklog(destinationId: number): boolean;
}
