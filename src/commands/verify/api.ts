/**
 * The part of `--verify` that asks the API or writes to the state: alone it opens the sync itself; beside a daemon that
 * does it, as a job.
 */
import type { Sync } from '../../app/open-sync.ts';
import type { ProcessPorts, Voice } from '../../app/terminal.ts';
import { withSync } from '../../app/with-sync.ts';
import type { Config } from '../../config/config.ts';
import { ApiFault, UserError } from '../../core/faults.ts';
import type { Secret } from '../../core/secret.ts';
import { missingChangeOf, type RepairArgs, type RepairSummary, type SampleArgs } from '../../core/state/job-args.ts';
import type { JobKind } from '../../core/state/jobs.ts';
import { endsSession } from '../../scheduler/dispatch.ts';
import { openVerifyState } from '../../store/look/verify.ts';
import { openStore } from '../../store/store.ts';
import { doOrFollow } from '../shared/do-or-follow.ts';
import { askForAccount, refusalOf } from '../shared/refusal.ts';
import { mend } from './mend.ts';
import { sample } from './sample.ts';
import type { SampleVerdict } from './sample-report.ts';

export interface ApiRun {
  /** With the API; `null`: only a daemon can do it. */
  readonly config: Config | null;
  readonly dataDir: string;
  readonly voice: Voice;
  /** What must not be shown; a secret that is exchanged is added. */
  readonly secrets: Secret[];
}

/** Neither is the API configured nor is there a daemon that could ask it. */
export class NoApiError extends Error {
  override readonly name = 'NoApiError';
}

/** Brings a lack-set up to date; nothing is asked of the API. */
export async function keepLacks(
  run: ApiRun,
  args: RepairArgs,
  of: { destinationId: number },
  ports: ProcessPorts,
): Promise<void> {
  const alone = (): Promise<RepairSummary> => {
    const { store, close } = openStore(run.dataDir);
    try {
      store.amendMissing(of.destinationId, missingChangeOf(args));
      return Promise.resolve({ read: 0, requests: 0, delivered: true, reason: null });
    } finally {
      close();
    }
  };
  const what = 'lack-sets brought up to date';
  await doIt<RepairSummary>(run, { kind: 'mend', args, alone, done: { windows: 0 }, total: 1, what }, ports);
}

/** Fetches again, delivers and keeps what is lacking. @throws UserError with the exit code and what to do, NoApiError */
export async function runMend(run: ApiRun, args: RepairArgs, ports: ProcessPorts): Promise<RepairSummary> {
  const done = { windows: 0 };
  const total = args.windows.length;
  const alone = async (): Promise<RepairSummary> =>
    await withApi(run, true, ports, async (sync) => {
      const stop = new AbortController();
      const both = AbortSignal.any([ports.signal, stop.signal]);
      const deliveries = sync.deliverers.map(async (deliverer) => await deliverer.run(both));
      for (const delivery of deliveries) delivery.catch((error: unknown) => stop.abort(error));
      try {
        return await mend(sync, args, done, both);
      } finally {
        stop.abort();
        await Promise.allSettled(deliveries);
      }
    });
  return await doIt<RepairSummary>(run, { kind: 'mend', args, alone, done, total, what: 'windows fetched' }, ports);
}

/** Reads windows again and compares. @throws UserError with the exit code and what to do. */
export async function runSample(run: ApiRun, args: SampleArgs, ports: ProcessPorts): Promise<SampleVerdict> {
  const done = { windows: 0 };
  const alone = async (): Promise<SampleVerdict> =>
    await withApi(run, false, ports, async ({ context }) => {
      const state = openVerifyState(run.dataDir);
      if (state === null) throw new UserError('There is nothing held yet to be read again.', 1);
      try {
        return await sample({ context, state }, args, done, ports.signal);
      } finally {
        state.close();
      }
    });
  const total = args.windows;
  return await doIt<SampleVerdict>(
    run,
    { kind: 'sample', args, alone, done, total, what: 'windows read again' },
    ports,
  );
}

interface Doing<T> {
  readonly kind: JobKind;
  readonly args: object;
  readonly alone: () => Promise<T>;
  readonly done: { readonly windows: number };
  readonly total: number;
  readonly what: string;
}

async function doIt<T extends object>(
  { dataDir, voice }: ApiRun,
  { kind, args, alone, done, total, what }: Doing<T>,
  ports: ProcessPorts,
): Promise<T> {
  const tell = (windows: number): void =>
    voice.showWork(() => ({ share: total === 0 ? null : windows / total, words: `${windows}/${total} ${what}` }));
  const show = (progress: unknown): void => {
    const { done: told } = { ...(progress as { readonly done?: unknown }) };
    if (typeof told === 'number') tell(told);
  };
  tell(done.windows);
  const work = { kind, args, askedBy: '--verify', alone, read: asSummary<T>, show };
  return await doOrFollow(work, { dataDir, voice }, ports);
}

/** What the daemon has left: an object of the same version of this program. */
function asSummary<T extends object>(summary: unknown): T | null {
  return typeof summary === 'object' && summary !== null && 'requests' in summary ? (summary as T) : null;
}

async function withApi<T>(
  { config, dataDir, voice, secrets }: ApiRun,
  delivers: boolean,
  ports: ProcessPorts,
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  if (config === null) {
    // Where a daemon holds the state, that can do it.
    openStore(dataDir).close();
    throw new NoApiError();
  }
  return await withSync({ config, voice, secrets, delivers }, ports, async (sync) => {
    await knowWorkspace(sync, ports.signal);
    return await work(sync);
  });
}

/** Whoever asks has to ask in the workspace that the state belongs to. */
async function knowWorkspace({ context }: Sync, signal: AbortSignal): Promise<void> {
  try {
    await askForAccount(context, signal);
    context.observe({ type: 'workspace-known' });
  } catch (error) {
    if (!(error instanceof ApiFault)) throw error;
    if (endsSession(error)) throw refusalOf(error);
    throw new UserError(`The API could not be asked: ${error.message}. Run it again when it answers.`, 3);
  }
}
