/**
 * Port of the quarantine. `store/` implements it with SQLite.
 *
 * The quarantine holds lines that a destination rejected, and records of the API that could not be parsed.
 */

import type { RejectedRecord } from '../records.ts';
import type { EpochMs } from '../time.ts';
import type { DeliveryOutcome, MissingPoints } from './log.ts';

/** A rejected line or record that waits in quarantine to be retried or dropped. */
export interface QuarantinedItem {
  readonly id: number;
  /** The destination that rejected the line; `null` for a record of the API. */
  readonly destinationId: number | null;
  /** For a record: the device whose telemetry contained it, or `devices` or `alerts`. */
  readonly source: string;
  /** The line, or the record as JSON, shortened. */
  readonly content: string;
  /** The message of the rejection. */
  readonly reason: string;
  /** When the item was quarantined. */
  readonly atMs: EpochMs;
}

/** A destination that the state has records of, whether or not it is still configured. */
export interface KnownDestination {
  readonly id: number;
  readonly name: string;
  readonly identity: string;
  /** Whether this destination has the name now. Another one may have it. */
  readonly isCurrent: boolean;
}

/** The result of sending lines to their destination again. */
interface RetryOutcome extends Pick<DeliveryOutcome, 'destinationId' | 'missing' | 'atMs'> {
  /** Ids of the items that the destination has accepted. */
  readonly accepted: readonly number[];
  /** Items that stay, with the new message. */
  readonly rejected: readonly { readonly id: number; readonly message: string }[];
  /** Ids of items that are older than the destination's retention. They go to its missing points. */
  readonly beyond: readonly number[];
}

/** The items to drop, with the missing points that this leaves. */
interface DropOrder {
  readonly ids: readonly number[];
  /** The missing points that the drop leaves in the destinations. */
  readonly missing: readonly { readonly destinationId: number; readonly points: MissingPoints }[];
  readonly atMs: EpochMs;
}

/** Dropped records of the API, by stream and reason. */
export interface DroppedRecords {
  readonly source: string;
  readonly reason: string;
  readonly records: number;
}

/** The quarantine. Every writing call is one transaction. */
export interface QuarantineStore {
  /** Some items after a number, in the order of numbers. */
  page(afterId: number): readonly QuarantinedItem[];
  /** Whether a line that a destination rejected is in quarantine. */
  holds(destinationId: number, line: string): boolean;
  destinations(): readonly KnownDestination[];
  resolve(outcome: RetryOutcome): void;
  /** Removes records that can be parsed now. */
  takeOut(ids: readonly number[]): void;
  /** Drops some items and records what they were. Items that no longer exist are skipped. */
  drop(order: DropOrder): void;
  dropped(): readonly DroppedRecords[];
  /**
   * Quarantines records of the API.
   *
   * @returns the records that were neither quarantined nor dropped before.
   */
  add(source: string, records: readonly RejectedRecord[], atMs: EpochMs): readonly RejectedRecord[];
}
