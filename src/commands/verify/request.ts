/**
 * The part of `--verify` that requests readings from the API or writes to the state. The daemon does it as a job
 * (`job.ts`); without a daemon the command does it itself.
 */
import type { Sync } from '../../app/open-sync.ts';
import type { ProcessPorts } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { VerifyCommand } from '../../cli/command.ts';
import type { Config, StateConfig } from '../../config/config.ts';
import { ApiFault } from '../../core/faults.ts';
import { isRecord } from '../../core/json.ts';
import {
  missingChangeOf,
  type RepairArgs,
  type RepairSummary,
  readRepairSummary,
  type SampleArgs,
} from '../../core/state/job-args.ts';
import type { JobKind } from '../../core/state/jobs.ts';
import { rateText } from '../../core/text.ts';
import { openStore } from '../../store/store.ts';
import { runBesideDeliveries } from '../shared/alone.ts';
import { type CommandRun, failureOf, fetchAccount } from '../shared/command.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { openState, repairState } from './job.ts';
import type { SampleVerdict } from './result.ts';
import { compareSample, readSampleVerdict } from './sample.ts';

/** One run of `--verify`. The configuration includes an API key if one is set and may be needed. */
export type VerifyRun = CommandRun<VerifyCommand, StateConfig | Config>;

/** The API is not configured, and no daemon that could query it is running. */
export class NoApiError extends Error {
  override readonly name = 'NoApiError';
}

/** Updates the record of the points that a destination is missing; sends no request to the API. */
export async function recordMissing(
  run: VerifyRun,
  args: RepairArgs,
  destination: { destinationId: number },
  ports: ProcessPorts,
): Promise<void> {
  const alone = (): Promise<RepairSummary> => {
    const { store, upgrade, close } = openStore(run.config.dataDir);
    try {
      if (upgrade !== null) run.terminal.observe({ type: 'state-upgraded', ...upgrade });
      store.amendMissing(destination.destinationId, missingChangeOf(args));
      return Promise.resolve({ read: 0, requests: 0, delivered: true, reason: null });
    } finally {
      close();
    }
  };
  const shown = { done: { ranges: 0 }, total: 1, what: 'missing points updated' };
  await doShown(run, { kind: 'repair', args, alone, read: readRepairSummary, ...shown }, ports);
}

/**
 * Fetches ranges again and delivers them.
 *
 * @throws UserError with the exit code and the remedy, NoApiError
 */
export async function refetch(run: VerifyRun, args: RepairArgs, ports: ProcessPorts): Promise<RepairSummary> {
  const done = { ranges: 0 };
  const alone = async (): Promise<RepairSummary> =>
    await withApi(run, true, ports, async (sync) => {
      const repair = async (stop: AbortSignal): Promise<RepairSummary> => await repairState(sync, { args, done }, stop);
      return await runBesideDeliveries(sync, repair, ports.signal);
    });
  const shown = { done, total: args.windows.length, what: 'ranges read' };
  return await doShown(run, { kind: 'repair', args, alone, read: readRepairSummary, ...shown }, ports);
}

/**
 * Reads ranges again and compares.
 *
 * @throws UserError with the exit code and the remedy.
 */
export async function runSample(run: VerifyRun, args: SampleArgs, ports: ProcessPorts): Promise<SampleVerdict> {
  const done = { ranges: 0 };
  const alone = async (): Promise<SampleVerdict> =>
    await withApi(run, false, ports, async ({ context }) => {
      const state = openState(run.config.dataDir);
      try {
        return await compareSample({ context, state }, args, done, ports.signal);
      } finally {
        state.close();
      }
    });
  const shown = { done, total: args.windows, what: 'ranges read again' };
  return await doShown(run, { kind: 'sample', args, alone, read: readSampleVerdict, ...shown }, ports);
}

interface Shown<T> {
  readonly kind: JobKind;
  readonly args: object;
  readonly alone: () => Promise<T>;
  /** Checks the summary that the daemon has written; `null` if it is of another version. */
  readonly read: (summary: unknown) => T | null;
  /** The number of ranges that are done. The work increases it. */
  readonly done: { readonly ranges: number };
  readonly total: number;
  readonly what: string;
}

/** Does the work or leaves it to the daemon, and shows its progress. */
async function doShown<T extends object>(
  { config: { dataDir }, terminal }: VerifyRun,
  { kind, args, alone, read, done, total, what }: Shown<T>,
  ports: ProcessPorts,
): Promise<T> {
  const showDone = (ranges: number): void =>
    terminal.showWork(() => ({
      share: total === 0 ? null : ranges / total,
      text: `${ranges}/${total} ${what}`,
      rate: { done: ranges, text: (perSecond) => `${rateText(perSecond * 60)} ranges a minute` },
    }));
  const show = (progress: unknown): void => {
    const reported = isRecord(progress) ? progress['done'] : null;
    if (typeof reported === 'number') showDone(reported);
  };
  showDone(done.ranges);
  return await doOrFollow({ kind, args, requestedBy: '--verify', alone, read, show }, { dataDir, terminal }, ports);
}

async function withApi<T>(
  { config, terminal, secrets }: VerifyRun,
  delivers: boolean,
  ports: ProcessPorts,
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  if (!hasKey(config)) {
    // If a daemon holds the state, the daemon can do this.
    const { upgrade, close } = openStore(config.dataDir);
    close();
    if (upgrade !== null) terminal.observe({ type: 'state-upgraded', ...upgrade });
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
    context.noteWorkspaceKnown();
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    throw failureOf(error, 'The requests to the API failed', 'Run the command again when it answers.');
  }
}

function hasKey(config: StateConfig | Config): config is Config {
  return 'key' in config.api;
}
