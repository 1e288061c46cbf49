/**
 * A command that acts (design 1.2): alone it does its work itself; where a daemon holds the state, it leaves that a job
 * and follows it.
 */

import { realClock } from '../../app/real-clock.ts';
import type { ProcessPorts, Voice } from '../../app/terminal.ts';
import { UserError } from '../../core/faults.ts';
import { type JobEnd, type JobRequest, readProgress } from '../../core/state/jobs.ts';
import { openJobBoard } from '../../store/job-board.ts';
import { HeldError } from '../../store/lock.ts';
import { followJob } from './follow.ts';

export interface Work<T> {
  /** What a daemon is asked for. */
  readonly request: JobRequest;
  /** Does it in this process. @throws HeldError where another one holds the state. */
  readonly alone: () => Promise<T>;
  /** What the end of the job comes to. @throws UserError where it came to nothing that can be shown. */
  readonly summaryOf: (end: JobEnd) => T;
  /** For how long a daemon that has stopped is waited for to come back. */
  readonly awaitMs?: number;
  /** Shows what the daemon tells of its progress: unchecked, maybe of another version. */
  readonly show: (progress: unknown) => void;
}

/** Does the work or has it done. @throws UserError with the exit code and what to do. */
export async function doOrFollow<T>(
  work: Work<T>,
  place: { readonly dataDir: string; readonly voice: Voice },
  ports: Pick<ProcessPorts, 'signal'>,
): Promise<T> {
  try {
    return await work.alone();
  } catch (error) {
    if (!(error instanceof HeldError)) throw error;
    const end = await follow(work, place, ports);
    // Whoever holds the state takes no jobs: it is free by now, or that is the answer.
    return end === null ? await work.alone() : work.summaryOf(end);
  }
}

/** Shows the figures that a daemon tells. */
export function showProgress(voice: Voice): (progress: unknown) => void {
  return (told) => {
    const progress = readProgress(told);
    if (progress !== null) voice.show(() => progress);
  };
}

/** @returns `null` where there is no daemon that takes jobs. */
async function follow<T>(
  { request, show, awaitMs }: Work<T>,
  { dataDir, voice }: { readonly dataDir: string; readonly voice: Voice },
  { signal }: Pick<ProcessPorts, 'signal'>,
): Promise<JobEnd | null> {
  const opened = openJobBoard(dataDir);
  if (opened === null) return null;
  const { board, isHeld, close } = opened;
  const onSeen = (): void =>
    voice.logger.info('a daemon works with this state: it does the work, with its own configuration', {
      event: 'job-followed',
      data_dir: dataDir,
    });
  const onWaiting = (): void =>
    voice.logger.info(
      'the daemon is at other work of this kind, which a command asked for before: this one waits (--status tells of both)',
      { event: 'job-queued' },
    );
  const parts = { board, isHeld, clock: realClock, onSeen, onWaiting, onProgress: show };
  try {
    return await followJob({ ...parts, ...(awaitMs === undefined ? {} : { awaitMs }) }, request, signal);
  } finally {
    voice.endProgress();
    close();
  }
}

/** What the end of a job comes to: its summary, checked, or a mistake that tells why there is none. */
export function summaryBy<T>(read: (summary: unknown) => T | null): (end: JobEnd) => T {
  return ({ exitCode, summary, message }) => {
    const known = read(summary);
    if (known !== null) return known;
    const words = message ?? 'it has left no summary that this version understands';
    throw new UserError(`The daemon did not do it: ${words}`, exitCode === 0 ? 1 : exitCode);
  };
}
