/**
 * The daemon's side of jobs (`core/state/jobs.ts`): it runs the jobs that commands leave in the state. Short jobs run
 * one after the other; each kind of long job runs at the same time.
 *
 * Promises:
 * - Every job ends with a result, whatever happens to it.
 * - A job that only its follower needs is cancelled when the follower has disappeared.
 * - Without jobs, the loop costs one read of an empty index per second.
 * - The command that left a job receives the job's error. The error ends the daemon only if it would also have ended
 *   the daemon's own work.
 */
import { runUnlessFull } from '../core/archive-room.ts';
import {
  createWakeUp,
  type LinkedAbort,
  linkAbort,
  pollUntil,
  repeat,
  restAfter,
  runWorkGroup,
  type WakeUp,
  type WorkGroup,
} from '../core/async.ts';
import type { Observe } from '../core/events.ts';
import { internalErrorText, UserError } from '../core/faults.ts';
import type { Clock } from '../core/ports.ts';
import { scrubbed } from '../core/secret.ts';
import { type Job, type JobEnd, type JobQueue, ruleOf } from '../core/state/jobs.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../core/time.ts';

/** A job that a worker is doing. `runJobs` stores its progress and finally its result. */
export interface JobWork {
  readonly end: Promise<JobEnd>;
  /** The progress of the job: plain JSON, in the form of its kind. */
  progress(): unknown;
}

/**
 * Begins the work of a job.
 *
 * @param save stores resolved arguments with the job, so that a restarted daemon continues with the same ones.
 */
export type JobWorker = (args: unknown, signal: AbortSignal, save: (args: unknown) => void) => JobWork;

/** The input of {@link runJobs}. */
export interface JobParts {
  readonly queue: JobQueue;
  /** Starts the work of a job. If the work ends after the signal has aborted, the job is cancelled. */
  readonly workers: Readonly<Record<string, JobWorker>>;
  readonly clock: Clock;
  readonly observe: Observe;
  /** Called with the progress that a running job reports. */
  readonly onProgress?: ((id: number, progress: unknown) => void) | undefined;
  /** Called with each job that has ended, before the end is reported. */
  readonly onEnd?: ((job: Job, end: JobEnd) => void) | undefined;
  /** Removes every secret from a text. */
  readonly scrub: (text: string) => string;
}

/** How often the loop checks for new jobs, and how often it checks a running job. */
export const JOB_CHECK_MS = SECOND_MS;

/** How long an ended job is kept, and how often old ones are removed. */
const RETENTION_MS = DAY_MS;
const CLEAR_EVERY_MS = HOUR_MS;

const LOST: JobEnd = {
  state: 'cancelled',
  exitCode: 3,
  summary: null,
  message: 'the command that requested it has ended',
};

const STOPPED: JobEnd = {
  state: 'failed',
  exitCode: 3,
  summary: null,
  message: 'the daemon was stopped; the progress is kept. Run the command again',
};

const BEFORE_START: JobEnd = { state: 'cancelled', exitCode: 3, summary: null, message: 'cancelled before it started' };

/**
 * Runs jobs until the signal aborts or a job fails with an error that also ends the daemon's own work. Then it aborts
 * the running jobs and waits for them.
 *
 * @throws the error that also ends the daemon's own work.
 */
export async function runJobs(parts: JobParts, signal: AbortSignal): Promise<never> {
  const wakeUp = createWakeUp(parts.clock);
  return await runWorkGroup(wakeUp, async (group: JobGroup) => await startJobs(parts, group, wakeUp), signal);
}

/** Jobs by their place: each kind of long job has its own place, and all other jobs share one. */
type JobGroup = WorkGroup<string>;

/** Starts each job when its place is free, and clears the ended jobs. */
async function startJobs(
  parts: JobParts,
  { underWay, signal, start }: JobGroup,
  wakeUp: Pick<WakeUp, 'wait'>,
): Promise<never> {
  const { queue, clock } = parts;
  const beats = createBeats(clock, queue.open());
  let clearedAtMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    signal.throwIfAborted();
    ifRoom(() => {
      if (clock.monoMs() - clearedAtMs >= CLEAR_EVERY_MS) {
        queue.clear(clock.nowMs() - RETENTION_MS);
        clearedAtMs = clock.monoMs();
      }
      for (const job of checkJobs(parts, beats)) {
        if (!tryTake(parts, { job, beats, underWay })) continue;
        start(queueOf(job), async (stop) => await doJob(parts, { job, beats }, stop));
      }
    });
    await wakeUp.wait(JOB_CHECK_MS, signal);
  }
}

function queueOf({ kind }: Job): string {
  return ruleOf(kind)?.isLong === true ? kind : '';
}

interface Waiting {
  readonly job: Job;
  readonly beats: Beats;
  readonly underWay: ReadonlyMap<string, unknown>;
}

/** Takes a waiting job if its place is free and, if it needs a follower, the follower is there. */
function tryTake({ queue, clock }: JobParts, { job, beats, underWay }: Waiting): boolean {
  if (underWay.has(queueOf(job)) || (ruleOf(job.kind)?.isFollowed === true && !beats.isAlive(job))) return false;
  return queue.take(job.id, clock.nowMs());
}

/**
 * Ends the waiting jobs that were cancelled, whose follower has disappeared, or that this version does not understand.
 *
 * @returns the remaining jobs.
 */
function checkJobs(parts: JobParts, beats: Beats): readonly Job[] {
  const open = parts.queue.open();
  if (open.length === 0) return open;
  parts.queue.beat();
  beats.note(open);
  const beganMs = parts.clock.monoMs();
  return open.filter((job) => {
    if (job.state !== 'waiting') return false;
    const end = endBeforeStart(parts, job, beats);
    if (end !== null) endJob(parts, { job, beganMs, end });
    return end === null;
  });
}

/** Returns how a waiting job ends without a start; `null` if it may start. */
function endBeforeStart({ workers }: JobParts, job: Job, beats: Beats): JobEnd | null {
  const reason = reasonToEnd(job, beats);
  if (reason !== null) return reason === 'lost' ? LOST : BEFORE_START;
  const isUnderstood = workers[job.kind] !== undefined && ruleOf(job.kind)?.takes(job.args) === true;
  return isUnderstood ? null : notUnderstood(job);
}

/** Returns why a job must end before its work does. */
function reasonToEnd(job: Job, beats: Beats): 'cancelled' | 'lost' | null {
  if (job.isCancelRequested) return 'cancelled';
  return ruleOf(job.kind)?.isFollowed === true && beats.isLost(job) ? 'lost' : null;
}

/**
 * Lets a worker do a job and stores its progress and its end. Ends the job early if its row or its follower has
 * disappeared.
 */
async function doJob(parts: JobParts, { job, beats }: { job: Job; beats: Beats }, signal: AbortSignal): Promise<void> {
  const { queue, clock, observe, workers } = parts;
  const beganMs = clock.monoMs();
  observe({ type: 'job-started', job: job.id, kind: job.kind, requestedBy: job.requestedBy });
  const stop = linkAbort(signal);
  const over = new AbortController();
  const seen: Seen = { lost: false, failure: null };
  try {
    const save = (args: unknown): void => void ifRoom(() => queue.saveArgs(job.id, args));
    const work = workers[job.kind]?.(job.args, stop.signal, save);
    if (work === undefined) throw new Error(`no worker for ${job.kind}`);
    const watching = supervise(parts, { job, beats, work, stop, seen }, over.signal).catch((error: unknown) => {
      seen.failure = { error };
      stop.abort(error);
    });
    const end = await work.end.finally(() => over.abort());
    await watching;
    if (seen.failure !== null) throw seen.failure.error;
    if (end.state === 'cancelled') signal.throwIfAborted();
    await endReliably(parts, { job, beganMs, end: cancelReason(end, seen, signal) }, signal);
  } catch (error) {
    if (signal.aborted && ruleOf(job.kind)?.isResumed === true) {
      // The next daemon continues it.
      queue.release(job.id);
      throw error;
    }
    // An error that ends the daemon also ends the job.
    const end =
      signal.aborted && !(error instanceof UserError && error === signal.reason) ? STOPPED : endWithError(error);
    await endReliably(parts, { job, beganMs, end }, signal).catch(() => {});
    if (signal.aborted || !(error instanceof UserError) || error.ends === 'process') throw error;
  } finally {
    stop.release();
    stop.abort(new Error('the job is over'));
    over.abort();
  }
}

/** The observations while a job runs. */
interface Seen {
  lost: boolean;
  /** The error with which watching the job failed; `null` if it did not. */
  failure: { readonly error: unknown } | null;
}

/** Returns the reason why a job was cut short. */
function cancelReason(end: JobEnd, { lost }: Seen, signal: AbortSignal): JobEnd {
  if (end.state !== 'cancelled') return end;
  if (signal.aborted) return STOPPED;
  return lost ? LOST : end;
}

/** Records the progress of a running job, and stops the job if it is cancelled or its follower has disappeared. */
async function supervise(
  parts: JobParts,
  watch: { job: Job; beats: Beats; work: JobWork; stop: LinkedAbort; seen: Seen },
  over: AbortSignal,
): Promise<void> {
  const { clock, queue, scrub } = parts;
  const { job, beats, work, stop, seen } = watch;
  let reportedAtMs = Number.NEGATIVE_INFINITY;
  let tookMs = 0;
  const step = (): number => {
    ifRoom(() => {
      const now = queue.open().find(({ id }) => id === job.id);
      const reason = now === undefined ? 'lost' : reasonToEnd(now, beats);
      if (reason !== null) {
        seen.lost ||= reason === 'lost';
        stop.abort(
          new Error(reason === 'lost' ? 'the command that started the job has ended' : 'the job was cancelled'),
        );
      }
      const startedMs = clock.monoMs();
      // A progress report may check every device.
      if (startedMs - reportedAtMs < restAfter(tookMs)) return;
      const progress: unknown = scrubbed<unknown>(work.progress(), scrub);
      queue.reportProgress(job.id, progress);
      parts.onProgress?.(job.id, progress);
      reportedAtMs = clock.monoMs();
      tookMs = reportedAtMs - startedMs;
    });
    return JOB_CHECK_MS;
  };
  await repeat(clock, step, over).catch((error: unknown) => {
    if (error !== over.reason) throw error;
  });
}

/**
 * Runs a piece of work for the jobs. While the state is full, jobs wait like everything else, and the result is `null`.
 */
function ifRoom<T>(work: () => T): T | null {
  return runUnlessFull(work, () => {});
}

interface Ended {
  readonly job: Job;
  readonly beganMs: number;
  readonly end: JobEnd;
}

/** Ends a job as soon as the state has disk space for the result. */
async function endReliably(parts: JobParts, ended: Ended, signal: AbortSignal): Promise<void> {
  const tryEnd = (): true | null => ifRoom(() => endJob(parts, ended));
  await pollUntil(parts.clock, tryEnd, { everyMs: JOB_CHECK_MS }, signal);
}

function endJob({ queue, clock, observe, onEnd, scrub }: JobParts, { job, beganMs, end }: Ended): true {
  const clean = scrubbed(end, scrub);
  queue.end(job.id, clean, clock.nowMs());
  onEnd?.(job, clean);
  const { state, exitCode, message } = clean;
  const durationMs = clock.monoMs() - beganMs;
  observe({ type: 'job-ended', job: job.id, kind: job.kind, state, exitCode, message, durationMs });
  return true;
}

function notUnderstood({ kind }: Job): JobEnd {
  const message = `the daemon does not know this kind of job (${kind}): the daemon is of another version. Restart it with the version of this command`;
  return { state: 'failed', exitCode: 1, summary: null, message };
}

function endWithError(error: unknown): JobEnd {
  if (error instanceof UserError) {
    return { state: 'failed', exitCode: error.exitCode, summary: null, message: error.message };
  }
  const message = internalErrorText(error instanceof Error ? error.message : 'unknown');
  return { state: 'failed', exitCode: 1, summary: null, message };
}

/**
 * A follower whose counter has not changed for this long is gone: several times the interval of a follower
 * (`commands/shared/do-or-follow.ts`).
 */
const FOLLOWER_GONE_AFTER_MS = 30 * SECOND_MS;

/** The followers that are still there. Their counters have changed recently by our own monotonic clock. */
interface Beats {
  /** Records the counters of the open jobs. */
  note(open: readonly Job[]): void;
  /** Whether the follower of a job is there. The follower of a job from before a restart may have ended long ago. */
  isAlive(job: Job): boolean;
  isLost(job: Job): boolean;
}

/** The last counter seen of a follower, and when it changed. */
interface Heartbeat {
  readonly beat: number;
  readonly atMs: number;
  readonly isAlive: boolean;
}

/**
 * Creates the record of the followers' counters.
 *
 * @param left the jobs from before the start: their counters must change first.
 */
function createBeats(clock: Clock, left: readonly Job[]): Beats {
  const atMs = clock.monoMs();
  let seen = new Map<number, Heartbeat>(
    left.map(({ id, followerBeat }) => [id, { beat: followerBeat, atMs, isAlive: false }]),
  );
  return {
    note: (open) => {
      const nowMs = clock.monoMs();
      seen = new Map(
        open.map(({ id, followerBeat }) => {
          const before = seen.get(id);
          if (before?.beat === followerBeat) return [id, before];
          return [id, { beat: followerBeat, atMs: nowMs, isAlive: true }];
        }),
      );
    },
    isAlive: ({ id }) => seen.get(id)?.isAlive === true,
    isLost: ({ id }) => clock.monoMs() - (seen.get(id)?.atMs ?? clock.monoMs()) >= FOLLOWER_GONE_AFTER_MS,
  };
}
