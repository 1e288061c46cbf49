/**
 * Going through the archive in the order of time: the port that `store/` fills with SQLite, for whoever reads much of it
 * (export, replay, repair).
 *
 * First the lines that are of no device's own blocks (devices, alerts, the workspace, coverage), then device after
 * device by id, each part in the order of time. Every step is a look of its own at the archive as it is then, and where
 * the next one begins is a time, which no sealing moves: so whatever the daemon does meanwhile, what is there from the
 * first step to the last comes exactly once.
 */
import type { EpochNs } from '../time.ts';

/** What of the archive is gone through: a half-open stretch, of some devices or (none named) of all. */
export interface WalkSpan {
  readonly from: EpochNs;
  readonly to: EpochNs;
  /** Ids; none: all. */
  readonly devices: readonly string[];
  /** Readings alone, or every line that is archived. */
  readonly kinds: 'telemetry' | 'all';
}

/** Where a step begins. `deviceId` is `null` for the lines of no device's own blocks. */
export interface WalkPlace {
  readonly deviceId: string | null;
  readonly from: EpochNs;
}

/** What one step brings: all lines of the place from `from` (included) to `to`, in the order of time, each once. */
export interface WalkPiece {
  readonly deviceId: string | null;
  readonly from: EpochNs;
  readonly to: EpochNs;
  readonly lines: readonly string[];
  /** Where the next step begins; `null` at the end. */
  readonly next: WalkPlace | null;
}

export interface ArchiveWalker {
  /** The first place; `null` where nothing is to be gone through. */
  begin(span: WalkSpan): WalkPlace | null;
  /** @param bytes about how much of lines a step brings at most, unless those of one instant are more. */
  read(span: WalkSpan, place: WalkPlace, bytes: number): WalkPiece;
}

/** The latest time there is (SQLite's and the databases' 64 bits), for a stretch without an end. */
export const END_OF_TIME: EpochNs = 9_223_372_036_854_775_807n;
