/**
 * Jobs: work that a command leaves to the daemon, because only one process may spend the quota and write to the state.
 * The command stores a job, the daemon runs it, and the command follows it.
 *
 * Each side shows that it is alive by a counter that it increases. Clocks may jump, so no times are compared: the other
 * side watches the counter by its own monotonic clock.
 */

import { type ExitCode, isExitCode } from '../faults.ts';
import { isRecord } from '../json.ts';
import type { ProgressReport } from '../status.ts';
import type { EpochMs } from '../time.ts';
import {
  isBackfillArgs,
  isEmptyObject,
  isFilterArgs,
  isForgetArgs,
  isRepairArgs,
  isReplayArgs,
  isSameBackfill,
  isSameReplay,
  isSampleArgs,
} from './job-args.ts';

export type JobKind =
  | 'once'
  | 'check'
  | 'backfill'
  | 'repair'
  | 'sample'
  | 'replay'
  | 'quarantine-retry'
  | 'quarantine-drop'
  | 'forget';

/** The state of a job; the last three are ends. */
export type JobState = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled';

/** How the daemon treats the jobs of one kind when their command or the daemon itself ends. */
interface JobRule {
  /** Whether only its follower needs it. Without a follower it is cancelled. */
  readonly isFollowed: boolean;
  /** Whether it waits again after the daemon that ran it has stopped or died. Otherwise it has failed. */
  readonly isResumed: boolean;
  /**
   * Whether it may take days. Then it runs at the same time as all others, one per kind. Other jobs run one after
   * another.
   */
  readonly isLong: boolean;
  /** Whether a stored value has the shape of this kind's arguments. */
  readonly takes: (args: unknown) => boolean;
  /** Whether two requests are the same: the second command follows the job of the first. Absent: never. */
  readonly isSame?: (args: unknown, other: unknown) => boolean;
}

export const JOB_RULES: Readonly<Record<JobKind, JobRule>> = {
  once: { isFollowed: true, isResumed: false, isLong: false, takes: isEmptyObject },
  check: { isFollowed: true, isResumed: false, isLong: false, takes: isEmptyObject },
  // It continues after its follower has lost the connection.
  backfill: {
    isFollowed: false,
    isResumed: true,
    isLong: true,
    takes: isBackfillArgs,
    isSame: (args, other) => isBackfillArgs(args) && isBackfillArgs(other) && isSameBackfill(args, other),
  },
  // The parts of `--verify` that need the daemon: fetching again and changing the missing points; reading windows
  // again.
  repair: { isFollowed: true, isResumed: false, isLong: true, takes: isRepairArgs },
  sample: { isFollowed: true, isResumed: false, isLong: true, takes: isSampleArgs },
  replay: {
    isFollowed: false,
    isResumed: true,
    isLong: true,
    takes: isReplayArgs,
    isSame: (args, other) => isReplayArgs(args) && isReplayArgs(other) && isSameReplay(args, other),
  },
  'quarantine-retry': { isFollowed: true, isResumed: false, isLong: false, takes: isFilterArgs },
  'quarantine-drop': { isFollowed: true, isResumed: false, isLong: false, takes: isFilterArgs },
  forget: { isFollowed: true, isResumed: false, isLong: false, takes: isForgetArgs },
};

/** The rules of a kind by its stored name; `null` for one of a newer version. */
export function ruleOf(kind: string): JobRule | null {
  return Object.hasOwn(JOB_RULES, kind) ? JOB_RULES[kind as JobKind] : null;
}

/** A job as its requester leaves it in the state. */
export interface JobRequest {
  readonly kind: JobKind;
  /** The arguments of its kind, as plain JSON (`job-args.ts`). */
  readonly args: Readonly<Record<string, unknown>>;
  /** The requester, in words for the log. */
  readonly requestedBy: string;
  /** By the local clock of the requesting process. */
  readonly requestedMs: EpochMs;
}

/** Whether an open job belongs to an equal request. Its command has ended, or follows the job at the same time. */
export function isJobOf({ kind, args, isCancelRequested }: Job, request: JobRequest): boolean {
  const rule = JOB_RULES[request.kind];
  if (kind !== request.kind || isCancelRequested || rule.isSame === undefined) return false;
  return rule.takes(args) && rule.isSame(args, request.args);
}

/** How a job ended: its command prints the summary and exits with the code. */
export interface JobEnd {
  readonly state: 'done' | 'failed' | 'cancelled';
  /** The exit code of the command that requested it. */
  readonly exitCode: ExitCode;
  /** The summary to print; `null` for none. */
  readonly summary: unknown;
  /** The message if there is no summary. */
  readonly message: string | null;
}

/** A stored job. Kind, arguments, progress and summary are unchecked. */
export interface Job {
  readonly id: number;
  readonly kind: string;
  readonly args: unknown;
  readonly requestedBy: string;
  readonly state: JobState;
  /** The progress, by kind of job; `null` before there is any. */
  readonly progress: unknown;
  /** Whether its follower wants it to stop. */
  readonly isCancelRequested: boolean;
  /** Raised by the requesting process while it follows the job. */
  readonly followerBeat: number;
  /** Raised by the daemon, from the first time that it saw the job. */
  readonly workerBeat: number;
  readonly end: JobEnd | null;
}

/**
 * The end of a job that has a summary.
 *
 * @param isCut whether it was stopped before it was done.
 */
export function endWith(summary: object, exitCode: ExitCode, isCut = false): JobEnd {
  return { state: isCut ? 'cancelled' : 'done', exitCode, summary, message: null };
}

/** The jobs as the daemon sees them. */
export interface JobQueue {
  /**
   * Submits a job of the daemon itself.
   *
   * @returns the id of the job.
   */
  submit(request: JobRequest): number;
  /** The jobs that have not ended, in the order of their requests. Cheap: called every second. */
  open(): readonly Job[];
  /** Increases the daemon's counter in all of them. */
  beat(): void;
  /** Puts a running job back in the queue: the next process that takes jobs continues it. */
  release(id: number): void;
  /**
   * Starts a waiting job.
   *
   * @returns whether it was still there.
   */
  take(id: number, atMs: EpochMs): boolean;
  /**
   * Stores the resolved arguments of a job, for the process that continues it.
   *
   * @param args of its kind; plain JSON.
   */
  saveArgs(id: number, args: unknown): void;
  /**
   * Stores the progress of a job.
   *
   * @param progress plain JSON, in the form of its kind.
   */
  reportProgress(id: number, progress: unknown): void;
  /** Ends a job; does nothing if it has already ended. */
  end(id: number, end: JobEnd, atMs: EpochMs): void;
  /** Removes the jobs that ended before that time. */
  clear(beforeMs: EpochMs): void;
}

/** The jobs for any other process. */
export interface JobBoard {
  /**
   * Submits a job, unless an open one is equal.
   *
   * @returns the id of the job, and whether it existed before.
   */
  submit(request: JobRequest): { readonly id: number; readonly isFound: boolean };
  /** Returns a job; `null` if it no longer exists. */
  get(id: number): Job | null;
  beat(id: number): void;
  /**
   * Withdraws a job that has not been started.
   *
   * @returns whether that succeeded.
   */
  withdraw(id: number): boolean;
  /** Requests the end of a running job. */
  cancel(id: number): void;
}

const TOTAL_COUNTS = ['devices', 'devices_complete', 'archived_readings', 'requests'] as const;

/**
 * Checks the figures that a daemon, possibly of another version, has left.
 *
 * @returns `null` if they cannot be shown.
 */
export function readProgress(value: unknown): ProgressReport | null {
  if (!isRecord(value)) return null;
  const { totals, destinations, allowance: quota } = value;
  if (!isRecord(totals) || !isRecord(quota) || !Array.isArray(destinations)) return null;
  const share = totals['covered_share'];
  const until = quota['waiting_until'];
  const { eta = null, waits = null, requests_per_minute = null } = value;
  const fits =
    areCounts(totals, TOTAL_COUNTS) &&
    (share === null || typeof share === 'number') &&
    (until === null || typeof until === 'string') &&
    (eta === null || (isRecord(eta) && typeof eta['seconds'] === 'number' && typeof eta['basis'] === 'string')) &&
    (waits === null || typeof waits === 'string') &&
    (requests_per_minute === null || typeof requests_per_minute === 'number') &&
    destinations.every(areProgressCounts);
  return fits ? (value as unknown as ProgressReport) : null;
}

/**
 * Reads a stored end.
 *
 * @returns a failure if it is invalid.
 */
export function readEnd({
  state,
  exitCode,
  summary,
  message,
}: Omit<JobEnd, 'exitCode'> & { exitCode: number }): JobEnd {
  return { state, exitCode: isExitCode(exitCode) ? exitCode : 1, summary, message };
}

/** Whether these are the counts of a destination. A job beside the daemon has no count of delivered points. */
function areProgressCounts(value: unknown): boolean {
  if (!isRecord(value) || !areCounts(value, ['pending_points'])) return false;
  return value['delivered_points'] === null || areCounts(value, ['delivered_points']);
}

function areCounts(value: Readonly<Record<string, unknown>>, names: readonly string[]): boolean {
  return names.every((name) => typeof value[name] === 'number');
}
