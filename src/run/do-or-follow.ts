/**
 * A command that acts (design 1.2): alone it does its work itself; where a daemon holds the state, it leaves that a job
 * and follows it.
 */
import { followJob } from '../commands/follow.ts';
import type { JobEnd, JobRequest } from '../core/jobs.ts';
import { realClock } from '../real-clock.ts';
import { openJobBoard } from '../store/job-board.ts';
import { HeldError } from '../store/lock.ts';
import type { ProcessPorts, Voice } from '../voice.ts';

export interface Work<T> {
  /** What a daemon is asked for. */
  readonly request: JobRequest;
  /** Does it in this process. @throws HeldError where another one holds the state. */
  readonly alone: () => Promise<T>;
  /** What the end of the job comes to. @throws UserError where it came to nothing that can be shown. */
  readonly summaryOf: (end: JobEnd) => T;
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

/** @returns `null` where there is no daemon that takes jobs. */
async function follow<T>(
  { request, show }: Work<T>,
  { dataDir, voice }: { readonly dataDir: string; readonly voice: Voice },
  { signal }: Pick<ProcessPorts, 'signal'>,
): Promise<JobEnd | null> {
  const opened = openJobBoard(dataDir);
  if (opened === null) return null;
  const { board, isHeld, close } = opened;
  const onSeen = (): void =>
    voice.logger.info('a daemon works with this state: it does the work, with its own configuration', {
      data_dir: dataDir,
    });
  try {
    return await followJob({ board, isHeld, clock: realClock, onSeen, onProgress: show }, request, signal);
  } finally {
    voice.endProgress();
    close();
  }
}
