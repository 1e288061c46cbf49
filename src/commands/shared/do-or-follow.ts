/**
 * Runs work that needs the lock of the state. A command does the work itself; if a daemon holds the state, the
 * command leaves the daemon a job and follows it to its end. If the daemon has the job of an equal request already,
 * the command follows that one.
 *
 * How a command uses it: the work is one function in the command's folder. `command.ts` calls `doOrFollow` with three
 * things: the job to leave (`kind`, `args`), `alone`, which opens the state and calls the function, and `read`, which
 * checks the summary of the job, because the daemon may be of another version. `job.ts` is the worker with which the
 * daemon calls the same function. `commands/daemon/command.ts` lists the workers; `core/state/jobs.ts` holds the
 * rules of each kind.
 */

import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts, TerminalOutput } from '../../app/terminal.ts';
import { NEVER_ABORTED, pollUntil } from '../../core/async.ts';
import { UserError } from '../../core/faults.ts';
import type { Clock } from '../../core/ports.ts';
import { OTHER_VERSION_REMEDY } from '../../core/state/job-args.ts';
import {
  type Job,
  type JobBoard,
  type JobEnd,
  type JobKind,
  type JobRequest,
  readProgress,
} from '../../core/state/jobs.ts';
import { durationInWords } from '../../core/text.ts';
import { MINUTE_MS, SECOND_MS } from '../../core/time.ts';
import { openJobBoard } from '../../store/jobs.ts';
import { StateInUseError } from '../../store/open/lock.ts';

/** The work of a command, which this process does itself or leaves to the daemon as a job. */
interface Work<T> {
  /** The job that the daemon is to run, and the flag that requests it. */
  readonly kind: JobKind;
  readonly args: object;
  readonly requestedBy: string;
  /**
   * Does the work in this process.
   *
   * @throws StateInUseError if another process uses the state.
   */
  readonly alone: () => Promise<T>;
  /**
   * Checks the summary that the daemon has left.
   *
   * @returns `null` if it is not valid.
   */
  readonly read: (summary: unknown) => T | null;
  /** The error if the daemon has left no summary; by default one with the daemon's message. */
  readonly failed?: (end: JobEnd) => UserError;
  /** How long to wait for a daemon that has stopped to return. */
  readonly awaitMs?: number;
  /** Shows the progress that the daemon reports. It is unchecked and may come from another version. */
  readonly show: (progress: unknown) => void;
  /** Called if the daemon already had the job of an equal request. */
  readonly onFound?: () => void;
}

/** Where the state is, and the output of the command. */
interface FollowContext {
  readonly dataDir: string;
  readonly terminal: TerminalOutput;
}

/**
 * Does the work in this process or leaves it to the daemon.
 *
 * @throws UserError with the exit code and the remedy.
 */
export async function doOrFollow<T>(
  work: Work<T>,
  context: FollowContext,
  { signal }: Pick<ProcessPorts, 'signal'>,
): Promise<T> {
  try {
    return await work.alone();
  } catch (error) {
    if (!(error instanceof StateInUseError)) throw error;
    const end = await follow(work, context, signal);
    // The process that holds the state takes no jobs. Either the lock is free by now, or `alone` throws again.
    return end === null ? await work.alone() : requireSummary(work, end);
  }
}

/** Follows the job. Returns `null` if there is no daemon that takes jobs. */
async function follow(
  work: Work<unknown>,
  { dataDir, terminal }: FollowContext,
  signal: AbortSignal,
): Promise<JobEnd | null> {
  const opened = openJobBoard(dataDir);
  if (opened === null) return null;
  const { kind, args, requestedBy, show, onFound, awaitMs = 0 } = work;
  const parts: FollowParts = {
    board: opened.board,
    isLocked: opened.isLocked,
    clock: realClock,
    onSeen: (isFound) => {
      if (isFound) onFound?.();
      terminal.logger.write({ type: 'job-followed', dataDir, isFound, isCheck: kind === 'check' });
    },
    onWaiting: () => terminal.logger.write({ type: 'job-queued' }),
    onProgress: show,
    awaitMs,
  };
  try {
    return await followJob(parts, { kind, args: { ...args }, requestedBy, requestedMs: realClock.nowMs() }, signal);
  } finally {
    terminal.endProgress();
    opened.close();
  }
}

/** Shows the figures that a daemon reports. */
export function showProgress(terminal: TerminalOutput): (progress: unknown) => void {
  return (reported) => {
    const progress = readProgress(reported);
    if (progress !== null) terminal.show(() => progress);
  };
}

function requireSummary<T>({ read, failed = notDone }: Work<T>, end: JobEnd): T {
  const summary = read(end.summary);
  if (summary === null) throw failed(end);
  return summary;
}

function notDone({ exitCode, message }: JobEnd): UserError {
  const code = exitCode === 0 ? 1 : exitCode;
  if (message !== null) return new UserError(`The daemon did not run the job: ${message}`, null, code);
  const what = 'The daemon finished the job, but it runs another version of Tidemark, so the result cannot be shown';
  return new UserError(what, OTHER_VERSION_REMEDY, code);
}

interface FollowParts extends Pick<Work<unknown>, 'awaitMs'> {
  readonly board: JobBoard;
  /** Whether any process holds the state. */
  readonly isLocked: () => boolean;
  readonly clock: Clock;
  /** Called once it is certain that there is a daemon which takes jobs. `isFound`: it already had the job. */
  readonly onSeen: (isFound: boolean) => void;
  /** Called if the daemon is busy with other work of this kind: soon, and then every minute while that lasts. */
  readonly onWaiting?: () => void;
  /** Called with the progress that the daemon reports, unchecked. */
  readonly onProgress: (progress: unknown) => void;
}

/** How often the job is checked, and how often its follower increases its counter. */
const FOLLOW_CHECK_MS = SECOND_MS / 2;
const BEAT_EVERY_MS = 5 * SECOND_MS;

/** A daemon that takes jobs checks for them once a second. */
const SEEN_WITHIN_MS = 5 * SECOND_MS;

/** After this time without a heartbeat the lock is checked. After the longer time the daemon counts as stuck. */
const LOCK_CHECK_AFTER_MS = 5 * SECOND_MS;
const DAEMON_STUCK_AFTER_MS = MINUTE_MS;

/** When the command first reports that it waits for other work, and how often it repeats that. */
const WAITING_AFTER_MS = 3 * SECOND_MS;
const REPORT_WAIT_EVERY_MS = MINUTE_MS;

/** How long to wait for the end of a cancelled job: a stopped command exits within ten seconds. */
const CANCEL_WITHIN_MS = 8 * SECOND_MS;

/**
 * Leaves a job and follows it, or follows the open job of an equal request.
 *
 * @returns its end; `null` if no daemon took the job. The job is then withdrawn, unless it existed before.
 * @throws UserError (exit 3) if the daemon is gone, or did not end the job after it was cancelled.
 */
export async function followJob(parts: FollowParts, request: JobRequest, signal: AbortSignal): Promise<JobEnd | null> {
  const { board, clock } = parts;
  const { id, isFound } = board.submit(request);
  const requestedAtMs = clock.monoMs();
  const state: FollowState = {
    requestedAtMs,
    isFound,
    isTaken: false,
    beat: board.get(id)?.workerBeat ?? 0,
    movedAtMs: requestedAtMs,
    beatAtMs: requestedAtMs,
    reportWaitAtMs: requestedAtMs + WAITING_AFTER_MS,
  };
  const checkJob = (): JobEnd | 'not taken' | null => {
    signal.throwIfAborted();
    const job = jobNow(parts, id);
    if (job.end !== null) {
      // Short work may be over before it was seen running.
      if (!state.isTaken) parts.onSeen(isFound);
      return job.end;
    }
    if (handleUpdate(parts, job, state)) return null;
    return isFound || board.withdraw(id) ? 'not taken' : null;
  };
  try {
    const end = await pollUntil(clock, checkJob, { everyMs: FOLLOW_CHECK_MS }, signal);
    return end === 'not taken' ? null : end;
  } catch (error) {
    if (!signal.aborted || error instanceof UserError) throw error;
    return await cancel(parts, id);
  }
}

/** The observations so far, by the monotonic clock. */
interface FollowState {
  readonly requestedAtMs: number;
  /** Whether the job existed before. */
  readonly isFound: boolean;
  /** Whether a daemon has increased its counter. */
  isTaken: boolean;
  beat: number;
  movedAtMs: number;
  beatAtMs: number;
  /** When to report next that other work comes first. */
  reportWaitAtMs: number;
}

function jobNow({ board }: FollowParts, id: number): Job {
  const job = board.get(id);
  if (job === null) throw new UserError('The state does not contain this job any more', 'Run the command again.', 3);
  return job;
}

/**
 * Records the state of the job and increases the follower's counter.
 *
 * @returns whether there is, or may soon be, a daemon that runs jobs.
 */
function handleUpdate(parts: FollowParts, job: Job, state: FollowState): boolean {
  const { board, clock, onSeen, onProgress } = parts;
  const nowMs = clock.monoMs();
  if (nowMs - state.beatAtMs >= BEAT_EVERY_MS) {
    board.beat(job.id);
    state.beatAtMs = nowMs;
  }
  if (job.workerBeat !== state.beat) {
    if (!state.isTaken) onSeen(state.isFound);
    state.isTaken = true;
    state.beat = job.workerBeat;
    state.movedAtMs = nowMs;
  }
  if (!state.isTaken) return nowMs - state.requestedAtMs < SEEN_WITHIN_MS;
  if (job.progress !== null) onProgress(job.progress);
  if (job.state === 'waiting' && nowMs >= state.reportWaitAtMs) {
    state.reportWaitAtMs = nowMs + REPORT_WAIT_EVERY_MS;
    parts.onWaiting?.();
  }
  if (nowMs - state.movedAtMs >= LOCK_CHECK_AFTER_MS) missDaemon(parts, job, nowMs - state.movedAtMs);
  return true;
}

/** Checks a job without heartbeats. @throws UserError if the daemon is gone. */
function missDaemon(parts: FollowParts, { id }: Job, stillMs: number): void {
  if (stillMs < DAEMON_STUCK_AFTER_MS && (parts.isLocked() || stillMs < (parts.awaitMs ?? 0))) return;
  // The daemon may have ended the job just now, while it stopped.
  if (jobNow(parts, id).end !== null) return;
  if (!parts.board.withdraw(id)) parts.board.cancel(id);
  if (stillMs >= DAEMON_STUCK_AFTER_MS)
    throw new UserError(
      `The daemon has not responded for ${durationInWords(DAEMON_STUCK_AFTER_MS)}; the progress is kept`,
      'Check the log of the daemon, restart it if it hangs, and run the command again.',
      3,
    );
  throw new UserError(
    'The daemon that ran this job has stopped or died; the progress is kept',
    'Start the daemon again, or run the command again: without a daemon, the command runs the job itself.',
    3,
  );
}

/**
 * Cancels a job.
 *
 * @returns its end, if the daemon had begun it.
 * @throws UserError (exit 3) if the job was still waiting, or if the daemon does not confirm its end in time.
 */
async function cancel(parts: FollowParts, id: number): Promise<JobEnd> {
  const { board, clock, isLocked } = parts;
  if (board.withdraw(id))
    throw new UserError('The job was waiting for the daemon to start it; it is cancelled.', null, 3);
  board.cancel(id);
  const untilMs = clock.monoMs() + CANCEL_WITHIN_MS;
  const checkJob = (): JobEnd | 'too late' | null => {
    if (clock.monoMs() >= untilMs) return 'too late';
    return jobNow(parts, id).end ?? (isLocked() ? null : 'too late');
  };
  const end = await pollUntil(clock, checkJob, { everyMs: FOLLOW_CHECK_MS }, NEVER_ABORTED);
  if (end !== 'too late') return end;
  throw new UserError(
    `The daemon has not confirmed within ${CANCEL_WITHIN_MS / SECOND_MS} seconds that it stopped the job; the progress is kept`,
    'Run the command again.',
    3,
  );
}
