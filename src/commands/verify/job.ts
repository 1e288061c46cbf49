/**
 * The part of `--verify` that requests readings from the API or writes to the state, alone or as a job of the daemon.
 *
 * The job `repair` fetches ranges again that the archive no longer keeps, delivers them, and updates the missing points
 * of a destination. The job `sample` reads ranges again and compares them.
 *
 * Promises: every request goes through the rate limiter and is counted. Fetched pages are committed like any other page
 * and delivered from the log, so that stopping at any moment loses nothing. No stored reading is counted twice.
 */
import type { Sync } from '../../app/open-sync.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { VerifyCommand } from '../../cli/command.ts';
import type { Config, StateConfig } from '../../config/config.ts';
import { ApiFault, UserError } from '../../core/faults.ts';
import { isRecord } from '../../core/json.ts';
import {
  argumentsNotUnderstood,
  isRepairArgs,
  isSampleArgs,
  missingChangeOf,
  type RepairArgs,
  type RepairSummary,
  readRepairSummary,
  type SampleArgs,
} from '../../core/state/job-args.ts';
import { endWith, type JobEnd, type JobKind } from '../../core/state/jobs.ts';
import type { VerifyState } from '../../core/state/verify.ts';
import { MINUTE_MS } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import { commitPage } from '../../ingest/commit.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { readWindow } from '../../ingest/reread.ts';
import { endsSession } from '../../scheduler/dispatch.ts';
import type { JobWorker } from '../../scheduler/jobs.ts';
import { openStore } from '../../store/store.ts';
import { openVerifyState } from '../../store/views/verify.ts';
import { besideDeliveries, untilDelivered } from '../shared/alone.ts';
import { type CommandRun, fetchAccount, refusalOf } from '../shared/command.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { exitOf, outcomeOf, type SampleVerdict } from './result.ts';
import { readSampleVerdict, sample } from './sample.ts';

/** One run of `--verify`. The configuration includes an API key if one is set and may be needed. */
export type VerifyRun = CommandRun<VerifyCommand, StateConfig | Config>;

/** Neither is the API configured nor is there a daemon that could ask it. */
export class NoApiError extends Error {
  override readonly name = 'NoApiError';
}

/** Updates the record of the points that a destination is missing; sends no request to the API. */
export async function recordMissing(
  run: VerifyRun,
  args: RepairArgs,
  of: { destinationId: number },
  ports: ProcessPorts,
): Promise<void> {
  const alone = (): Promise<RepairSummary> => {
    const { store, close } = openStore(run.config.dataDir);
    try {
      store.amendMissing(of.destinationId, missingChangeOf(args));
      return Promise.resolve({ read: 0, requests: 0, delivered: true, reason: null });
    } finally {
      close();
    }
  };
  const shown = { done: { windows: 0 }, total: 1, what: 'missing points updated' };
  await doShown(run, { kind: 'repair', args, alone, read: readRepairSummary, ...shown }, ports);
}

/**
 * Fetches windows again and delivers them.
 *
 * @throws UserError with the exit code and what to do, NoApiError
 */
export async function refetch(run: VerifyRun, args: RepairArgs, ports: ProcessPorts): Promise<RepairSummary> {
  const done = { windows: 0 };
  const alone = async (): Promise<RepairSummary> =>
    await withApi(run, true, ports, async (sync) => {
      const repair = async (stop: AbortSignal): Promise<RepairSummary> => await repairState(sync, { args, done }, stop);
      return await besideDeliveries(sync, repair, ports.signal);
    });
  const shown = { done, total: args.windows.length, what: 'ranges read' };
  return await doShown(run, { kind: 'repair', args, alone, read: readRepairSummary, ...shown }, ports);
}

/**
 * Reads windows again and compares.
 *
 * @throws UserError with the exit code and what to do.
 */
export async function runSample(run: VerifyRun, args: SampleArgs, ports: ProcessPorts): Promise<SampleVerdict> {
  const done = { windows: 0 };
  const alone = async (): Promise<SampleVerdict> =>
    await withApi(run, false, ports, async ({ context }) => {
      const state = openState(run.config.dataDir);
      try {
        return await sample({ context, state }, args, done, ports.signal);
      } finally {
        state.close();
      }
    });
  const shown = { done, total: args.windows, what: 'ranges read again' };
  return await doShown(run, { kind: 'sample', args, alone, read: readSampleVerdict, ...shown }, ports);
}

/**
 * Opens the state for a comparison.
 *
 * @throws UserError if nothing is stored yet
 */
function openState(dataDir: string): VerifyState {
  const state = openVerifyState(dataDir);
  if (state === null) throw new UserError('No reading is stored yet: start the daemon or run --once first.', 1);
  return state;
}

interface Shown<T> {
  readonly kind: JobKind;
  readonly args: object;
  readonly alone: () => Promise<T>;
  /** Checks the summary that the daemon has written; `null` if it is of another version. */
  readonly read: (summary: unknown) => T | null;
  /** Grows. */
  readonly done: { readonly windows: number };
  readonly total: number;
  readonly what: string;
}

/** Does it or has it done, and shows how far it is. */
async function doShown<T extends object>(
  { config: { dataDir }, terminal }: VerifyRun,
  { kind, args, alone, read, done, total, what }: Shown<T>,
  ports: ProcessPorts,
): Promise<T> {
  const showDone = (windows: number): void =>
    terminal.showWork(() => ({ share: total === 0 ? null : windows / total, text: `${windows}/${total} ${what}` }));
  const show = (progress: unknown): void => {
    const reported = isRecord(progress) ? progress['done'] : null;
    if (typeof reported === 'number') showDone(reported);
  };
  showDone(done.windows);
  return await doOrFollow({ kind, args, requestedBy: '--verify', alone, read, show }, { dataDir, terminal }, ports);
}

async function withApi<T>(
  { config, terminal, secrets }: VerifyRun,
  delivers: boolean,
  ports: ProcessPorts,
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  if (!hasKey(config)) {
    // Where a daemon holds the state, that can do it.
    openStore(config.dataDir).close();
    throw new NoApiError();
  }
  return await withSync({ config, terminal, secrets, delivers }, ports, async (sync) => {
    await confirmWorkspace(sync, ports.signal);
    return await work(sync);
  });
}

/** Makes sure that requests go to the workspace of the state. */
async function confirmWorkspace({ context }: Sync, signal: AbortSignal): Promise<void> {
  try {
    await fetchAccount(context, signal);
    context.workspaceKnown();
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (endsSession(error)) throw refusalOf(error);
    throw new UserError(`The requests to the API failed: ${error.message}. Run the command again when it answers.`, 3);
  }
}

function hasKey(config: StateConfig | Config): config is Config {
  return 'key' in config.api;
}

interface RepairParts {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
}

/** The worker for `runJobs` that fetches again. */
export function createRepairWorker(parts: RepairParts): JobWorker {
  return (args, signal) => {
    const done = { windows: 0 };
    const work = async (): Promise<JobEnd> => {
      if (!isRepairArgs(args)) throw argumentsNotUnderstood();
      const summary = await repairState(parts, { args, done }, signal);
      return endWith(summary, summary.reason === null && summary.delivered ? 0 : 3, signal.aborted);
    };
    return {
      end: work(),
      progress: () => ({ done: done.windows, total: isRepairArgs(args) ? args.windows.length : 0 }),
    };
  };
}

/** The worker for `runJobs` that reads samples. */
export function createSampleWorker({ context }: Pick<RepairParts, 'context'>, dataDir: string): JobWorker {
  return (args, signal) => {
    const done = { windows: 0 };
    const work = async (): Promise<JobEnd> => {
      if (!isSampleArgs(args)) throw argumentsNotUnderstood();
      const state = openState(dataDir);
      try {
        const summary = await sample({ context, state }, args, done, signal);
        return endWith(summary, exitOf([outcomeOf(summary)]), signal.aborted);
      } finally {
        state.close();
      }
    };
    return { end: work(), progress: () => ({ done: done.windows, total: isSampleArgs(args) ? args.windows : 0 }) };
  };
}

/** The repair to do, and its progress, which grows. */
interface RepairOrder {
  readonly args: RepairArgs;
  readonly done: { windows: number };
}

/**
 * Fetches ranges again, delivers them and records what is missing.
 *
 * @throws UserError where a person has to act (77).
 */
async function repairState(
  parts: RepairParts,
  { args, done }: RepairOrder,
  signal: AbortSignal,
): Promise<RepairSummary> {
  const { context, deliverers } = parts;
  const counts = { requests: 0, read: 0 };
  let reason: string | null = null;
  try {
    reason = await readAgain(context, { args, done, counts }, signal);
    const delivered = args.windows.length === 0 || (await untilDelivered(parts, signal, REPAIR_STALLED_AFTER_MS));
    const destination = deliverers.find(({ name }) => name === args.destination);
    if (destination !== undefined) context.store.amendMissing(destination.destinationId, missingChangeOf(args));
    return { ...counts, delivered, reason };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { ...counts, delivered: false, reason: 'interrupted' };
  }
}

/**
 * Reads the windows again.
 *
 * @returns why not all of them; `null` where all.
 */
async function readAgain(
  context: SyncContext,
  { args: { windows }, done, counts }: RepairOrder & { readonly counts: { requests: number; read: number } },
  signal: AbortSignal,
): Promise<string | null> {
  for (const [deviceId, from, to] of windows) {
    const room = context.checkRoom();
    if (!room.ok) return 'the archive is full';
    try {
      const isRead = await readWindow(
        context,
        {
          deviceId,
          window: { from: BigInt(from), to: BigInt(to) },
          take: (page) => {
            counts.requests += 1;
            commitPage(context, { deviceId, lane: 'idle-poll', covers: null, isRefetched: true, ...page });
          },
        },
        signal,
      );
      if (isRead) counts.read += 1;
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      if (endsSession(error)) throw refusalOf(error);
      return error.message;
    }
    done.windows += 1;
  }
  return null;
}

/** How long nothing may move before delivery is not waited for any more. */
const REPAIR_STALLED_AFTER_MS = 2 * MINUTE_MS;
