/**
 * What the upkeep commands need of the state, in a daemon and alone.
 */
import { openSync, type Sync } from '../../app/open-sync.ts';
import { realClock, realRandom } from '../../app/real-clock.ts';
import { settingsOf } from '../../app/settings.ts';
import type { Voice } from '../../app/terminal.ts';
import type { StateConfig } from '../../config/config.ts';
import type { Secret } from '../../core/secret.ts';
import type { DestinationOptions } from '../../delivery/destination.ts';
import { reachableOf } from '../../delivery/known-destinations.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { createRecordRetry } from '../../ingest/retry-records.ts';
import type { JobParts } from '../../scheduler/jobs.ts';
import { createForgetWorker, type ForgetParts } from '../forget/forget.ts';
import { createQuarantineWorkers, type QuarantineParts } from '../quarantine/quarantine.ts';
import { reparse } from '../quarantine/reparse.ts';

/** One run of an upkeep command. */
export interface UpkeepRun<C> {
  readonly command: C;
  readonly config: StateConfig;
  readonly voice: Voice;
  readonly secrets: Secret[];
}

/**
 * Opens the state for work that neither asks the API nor delivers by itself, and closes it after that.
 *
 * @throws UserError where it cannot be used (HeldError: another process has it), and whatever the work throws.
 */
export async function withState<T>(
  { config, voice }: Pick<UpkeepRun<never>, 'config' | 'voice'>,
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  const sync = openSync({
    ...settingsOf(config),
    destinations: [],
    observe: voice.observe,
    clock: realClock,
    random: realRandom,
    transport: () => Promise.reject(new Error('this work asks nothing of the API')),
    api: { ...config.api, url: 'http://127.0.0.1/external/v1', key: () => '' },
    dataDir: config.dataDir,
  });
  try {
    return await work(sync);
  } finally {
    sync.close();
  }
}

/** What the work needs, in a daemon and alone. */
export function quarantineParts(context: SyncContext, destinations: readonly DestinationOptions[]): QuarantineParts {
  const { store, clock } = context;
  return {
    store,
    clock,
    reachable: () => reachableOf(store.quarantine.destinations(), destinations),
    records: () => createRecordRetry(context, reparse),
  };
}

export function forgetParts(context: SyncContext, destinations: readonly DestinationOptions[]): ForgetParts {
  const { store, clock, observe, settings } = context;
  return {
    store,
    clock,
    observe,
    filter: settings.filter,
    configured: () => reachableOf(store.quarantine.destinations(), destinations),
  };
}

/** What a daemon does of it for commands. */
export function upkeepWorkers({ context }: Sync, destinations: readonly DestinationOptions[]): JobParts['workers'] {
  return {
    ...createQuarantineWorkers(quarantineParts(context, destinations)),
    forget: createForgetWorker(forgetParts(context, destinations)),
  };
}
