/**
 * Replays: archived points that are sent to a destination again, and the state of a replay until it ends. Types, checks
 * of what another version may have written, and the port that `store/` implements with SQLite.
 */

import { type ExitCode, isExitCode } from '../faults.ts';
import { isRecord, shapeOf } from '../json.ts';
import { DAY_MS, type EpochMs, type EpochNs } from '../time.ts';
import type { ArchiveReader, ScanPosition } from './archive.ts';
import type { ReplayArgs } from './job-args.ts';
import type { DeliveryOutcome } from './log.ts';

/** The counts of the lines so far. */
export interface ReplayCounts {
  /** Sent and answered: the sum of the other counts. */
  readonly lines: number;
  readonly accepted: number;
  /** Rejected, and new in quarantine. */
  readonly refused: number;
  /** Rejected, and already in quarantine. */
  readonly known: number;
  /** Older than the destination keeps. */
  readonly beyond: number;
  /** Accepted lines that were in quarantine and no longer are. */
  readonly released: number;
}

/** The counts before the first line. */
export const NO_COUNTS: ReplayCounts = { lines: 0, accepted: 0, refused: 0, known: 0, beyond: 0, released: 0 };

/** A replay to one destination that is running, or was interrupted. */
export interface ReplayState {
  readonly args: ReplayArgs;
  readonly position: ScanPosition;
  readonly counts: ReplayCounts;
  /**
   * The position after the newest line that was older than the destination's retention; `null` while there was none.
   */
  readonly tooOldTo: EpochNs | null;
  readonly begunMs: EpochMs;
}

/** How long an interrupted replay is resumed; after that the same arguments start again. */
const CONTINUED_WITHIN_MS = 7 * DAY_MS;

/** Whether the arguments are those of the unfinished replay. */
export function canResume(before: ReplayState, args: ReplayArgs, nowMs: EpochMs): boolean {
  const keyOf = ({ devices, typed }: ReplayArgs): string => JSON.stringify([typed.from, typed.to, [...devices].sort()]);
  const ageMs = nowMs - before.begunMs;
  return keyOf(before.args) === keyOf(args) && ageMs < CONTINUED_WITHIN_MS;
}

/** A range in which every line was sent and accepted. `deviceId` is empty for lines that belong to no single device. */
export interface SentRange {
  readonly deviceId: string;
  readonly from: EpochNs;
  readonly to: EpochNs;
  readonly lines: number;
}

/** The result of a step of a replay. */
interface ReplayOutcome extends Pick<DeliveryOutcome, 'destinationId' | 'rejected' | 'missing' | 'atMs'> {
  /** Accepted lines that may be in quarantine. */
  readonly accepted: readonly string[];
  /** The ranges that are no longer missing in the destination, except for points that are not in the archive. */
  readonly sent: readonly SentRange[];
  /** As in `ReplayState`: points before it were too old, and nothing shows that the destination keeps them now. */
  readonly tooOldTo: EpochNs | null;
}

/** The archive, the progress of each destination and the quarantine, as replays use them. */
export interface ReplayStore {
  readonly archiveReader: ArchiveReader;
  /** The unfinished replay of a destination; `null` if there is none. */
  unfinished(destinationId: number): ReplayState | null;
  save(destinationId: number, state: ReplayState): void;
  forget(destinationId: number): void;
  /** The rejected lines so far; `null` if there are more than `most`. */
  quarantined(destinationId: number, most: number): ReadonlySet<string> | null;
  /**
   * Records the result of a step.
   *
   * @returns how many of the rejected lines are new, and how many left the quarantine.
   */
  resolve(outcome: ReplayOutcome): { readonly added: number; readonly released: number };
  /** The pending lines of the destination in the log, live and history. */
  pendingLines(destinationId: number): number;
}

/** The progress and the counts of a replay to a destination. */
export interface ReplayReport extends ReplayCounts {
  readonly name: string;
  readonly outcome: 'running' | 'complete' | 'stalled' | 'interrupted';
  /** Whether it has resumed an interrupted replay. */
  readonly resumed: boolean;
  /** The range that is sent, RFC 3339; `to` is `null` without an end. */
  readonly from: string;
  readonly to: string | null;
  readonly devices_done: number;
  readonly devices: number;
  /** Why its delivery is blocked; `null` while it works. */
  readonly blocked_reason: string | null;
}

/** The JSON of `--replay --json`. */
export interface ReplaySummary {
  readonly outcome: 'complete' | 'stalled' | 'interrupted';
  readonly exit_code: ExitCode;
  readonly destinations: readonly ReplayReport[];
}

const NUMBERS = ['lines', 'accepted', 'refused', 'known', 'beyond', 'released', 'devices_done', 'devices'];

/**
 * Checks reports that a daemon, possibly of another version, has left.
 *
 * @returns `null` if they are not valid.
 */
export function readReplayReports(value: unknown): readonly ReplayReport[] | null {
  const fits =
    Array.isArray(value) &&
    value.every(
      (each) =>
        isRecord(each) &&
        ['name', 'outcome', 'from'].every((name) => typeof each[name] === 'string') &&
        NUMBERS.every((name) => typeof each[name] === 'number'),
    );
  return fits ? (value as readonly ReplayReport[]) : null;
}

/** Checks a stored summary of replays: `null` if its reports, outcome or exit code do not fit. */
export function readReplaySummary(value: unknown): ReplaySummary | null {
  return isReplaySummary(value) ? value : null;
}

const isReplaySummary = shapeOf<ReplaySummary>({
  outcome: (value) => value === 'complete' || value === 'stalled' || value === 'interrupted',
  exit_code: isExitCode,
  destinations: (value): value is readonly ReplayReport[] => readReplayReports(value) !== null,
});
