/**
 * The work of `--replay`, alone or as a job of the daemon: sends archived points again to one or all destinations, at
 * the same time.
 */

import { unknownDestination } from '../../app/settings.ts';
import { type ExitCode, UserError } from '../../core/faults.ts';
import { argumentsNotUnderstood, isReplayArgs, type ReplayArgs } from '../../core/state/job-args.ts';
import { endWith, type JobEnd } from '../../core/state/jobs.ts';
import type { ReplayReport, ReplaySummary } from '../../core/state/replay.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import { openReplay, type Replay, type ReplayParts } from '../../delivery/replay.ts';
import type { JobWork } from '../../scheduler/jobs.ts';

interface ReplayCommandParts extends Pick<ReplayParts, 'store' | 'clock' | 'random' | 'observe' | 'isBeside'> {
  /** The deliveries of all configured destinations. */
  readonly deliverers: readonly Deliverer[];
}

/** The default rate in lines per second in a daemon, which leaves capacity for live points. */
export const RATE_BESIDE = 20_000;

/** How much is read in one step: small steps delay a daemon by only a few milliseconds. */
const STEP_BYTES = { alone: 512 * 1024, beside: 128 * 1024 };

const BATCH_LINES = 5000;

/**
 * With a rate, a batch has at most this part of a second's lines, so that the stream is even and not one burst per
 * second.
 */
const BATCHES_A_SECOND = 4;

/** The assumed length of a line, which determines the size of a step. */
const LINE_BYTES = 100;

/** The replays of one command or job, one for each destination. */
interface Replays {
  reports(): readonly ReplayReport[];
  run(signal: AbortSignal): Promise<ReplaySummary>;
}

/**
 * Opens the replays.
 *
 * @throws UserError if there is no such destination.
 */
export function openReplays(parts: ReplayCommandParts, args: ReplayArgs): Replays {
  const { isBeside } = parts;
  const maxRate = args.maxRate ?? (isBeside ? RATE_BESIDE : null);
  // Slow replays use small steps, so that little is sent again after an interruption.
  const batchLines = maxRate === null ? BATCH_LINES : Math.min(BATCH_LINES, Math.ceil(maxRate / BATCHES_A_SECOND));
  const stepBytes = Math.min(isBeside ? STEP_BYTES.beside : STEP_BYTES.alone, batchLines * LINE_BYTES);
  const replays = chosenDeliverers(parts.deliverers, args).map((target) =>
    openReplay(target, args, { ...parts, batchLines, stepBytes, maxRate }),
  );
  const reports = (): readonly ReplayReport[] => replays.map((replay) => replay.report());
  return { reports, run: async (signal) => await runAll(replays, signal) };
}

function chosenDeliverers(deliverers: readonly Deliverer[], { destination }: ReplayArgs): readonly Deliverer[] {
  requireDestination(
    deliverers.map(({ name }) => name),
    destination,
  );
  return deliverers.filter(({ name }) => destination === null || name === destination);
}

/**
 * Checks the destination. @throws UserError if no destination is configured (exit 78), or none has that name (exit 2).
 */
export function requireDestination(names: readonly string[], destination: string | null): void {
  if (names.length === 0) {
    throw new UserError('No database is configured', 'set influx.url or destinations.', 78, { joint: ':' });
  }
  if (destination === null || names.includes(destination)) return;
  throw unknownDestination(destination, names);
}

async function runAll(replays: readonly Replay[], signal: AbortSignal): Promise<ReplaySummary> {
  // A fault of the state concerns all destinations; the others still finish.
  const ended = await Promise.allSettled(replays.map((replay) => replay.run(signal)));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  const destinations = replays.map((replay) => replay.report());
  const outcome = (['interrupted', 'stalled'] as const).find((each) =>
    destinations.some((one) => one.outcome === each),
  );
  const exitCode: ExitCode = outcome === undefined ? 0 : 3;
  return { outcome: outcome ?? 'complete', exit_code: exitCode, destinations };
}

/** Creates the worker for `runJobs` that replays while the daemon delivers. */
export function createReplayWorker(
  parts: Omit<ReplayCommandParts, 'isBeside'>,
): (args: unknown, signal: AbortSignal) => JobWork {
  return (args, signal) => {
    let replays: Replays | null = null;
    const work = async (): Promise<JobEnd> => {
      if (!isReplayArgs(args)) throw argumentsNotUnderstood();
      replays = openReplays({ ...parts, isBeside: true }, args);
      const summary = await replays.run(signal);
      return endWith(summary, summary.exit_code, summary.outcome === 'interrupted');
    };
    return { end: work(), progress: () => replays?.reports() ?? [] };
  };
}
