/**
 * A daemon that accepts jobs, and a command that follows its `--once`: for tests with both on the virtual clock.
 */
import type { Sync } from '../../src/app/open-sync.ts';
import { createOnceWorker } from '../../src/commands/once/job.ts';
import { type OnceSummary, readOnceSummary } from '../../src/commands/once/result.ts';
import { followJob } from '../../src/commands/shared/do-or-follow.ts';
import type { JobEnd, JobRequest } from '../../src/core/state/jobs.ts';
import type { ProgressReport } from '../../src/core/status.ts';
import { type JobWork, runJobs } from '../../src/scheduler/jobs.ts';
import { openJobBoard } from '../../src/store/jobs.ts';
import type { Rig } from './rig.ts';

/** The loop of jobs as the daemon has it. */
export function takingJobs(sync: Sync, workers?: Readonly<Record<string, () => JobWork>>) {
  const { clock, observe } = sync.context;
  const scrub = (text: string): string => text.replaceAll('rig-token', '[hidden]');
  const parts = { queue: sync.jobs, workers: workers ?? { once: createOnceWorker(sync) }, clock, observe, scrub };
  return [(signal: AbortSignal) => runJobs(parts, signal)];
}

/** The job that `--once` requests from a daemon. */
export const requestOf = (rig: Rig): JobRequest => ({
  kind: 'once',
  args: {},
  requestedBy: '--once',
  requestedMs: rig.clock.nowMs(),
});

/** The view of a command that followed its job. */
export interface Followed {
  readonly end: JobEnd | null;
  readonly progress: readonly ProgressReport[];
  readonly tookMs: number;
}

/** A command that follows its job, over a connection of its own; by default a `--once`. */
export async function follow(
  rig: Rig,
  signal = new AbortController().signal,
  { request = requestOf(rig), awaitMs }: { readonly request?: JobRequest; readonly awaitMs?: number } = {},
): Promise<Followed> {
  const opened = openJobBoard(rig.dataDir);
  if (opened === null) throw new Error('no state to ask');
  const progress: ProgressReport[] = [];
  const beganMs = rig.clock.monoMs();
  const parts = {
    ...opened,
    clock: rig.clock,
    ...(awaitMs === undefined ? {} : { awaitMs }),
    onSeen: () => {},
    onProgress: (one: unknown) => void progress.push(one as ProgressReport),
  };
  try {
    const end = await followJob(parts, request, signal);
    return { end, progress, tookMs: rig.clock.monoMs() - beganMs };
  } finally {
    opened.close();
  }
}

/** The summary of a job that has ended. */
export function summaryOf({ end }: Pick<Followed, 'end'>): OnceSummary {
  const summary = readOnceSummary(end?.summary);
  if (summary === null) throw new Error(`no summary: ${JSON.stringify(end)}`);
  return summary;
}
