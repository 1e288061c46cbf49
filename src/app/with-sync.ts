/** Runs the work of a command with a sync: opens the sync's parts in order and closes them in reverse. */
import { createHttpTransport } from '../api/transport.ts';
import type { Config, StateConfig } from '../config/config.ts';
import { closeAll } from '../core/async.ts';
import type { Secret } from '../core/secret.ts';
import { withOldPointCheck } from './deliveries.ts';
import { openSync, type Sync, type SyncOptions } from './open-sync.ts';
import { realClock, realRandom } from './real-clock.ts';
import { createSecretReader } from './secret-files.ts';
import { createSyncOptions, saveSettings, selectDatabases } from './settings.ts';
import { type ProcessPorts, reportOdd, type TerminalOutput } from './terminal.ts';

interface SyncNeeds {
  readonly config: Config;
  readonly terminal: TerminalOutput;
  /** The secrets to hide in all output. A secret that is read again is added. */
  readonly secrets: Secret[];
  /** The key in use; by default the configured one. */
  readonly key?: () => Secret;
  /** Whether points are delivered; by default they are. */
  readonly delivers?: boolean;
}

/**
 * Opens a sync, does the work and closes the sync.
 *
 * @throws UserError if the state cannot be used, and all errors of the work
 */
export async function withSync<T>(
  { secrets, delivers = true, ...needs }: SyncNeeds,
  { readFile }: Pick<ProcessPorts, 'readFile'>,
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  const readSecret = createSecretReader({ readFile, secrets, onUnusable: reportOdd(needs.terminal) });
  const { destinations, ...rest } = createSyncOptions(needs.config, readSecret);
  const settings = { ...rest, destinations: delivers ? destinations : [] };
  return await overHttp({ ...needs, settings }, async (sync) => {
    if (delivers) saveSettings(sync);
    return await work(sync);
  });
}

/** The same for work that only sends requests to the API: no point is delivered, and no secret is read again. */
export async function withRequestsOnly<T>(
  needs: Pick<SyncNeeds, 'config' | 'terminal'>,
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  return await overHttp({ ...needs, settings: { ...createSyncOptions(needs.config), destinations: [] } }, work);
}

/**
 * The same for work that only changes the state: it sends no request, and no point is delivered.
 *
 * @throws UserError if the state cannot be used (StateInUseError: another process has it), and all errors of the work
 */
export async function withState<T>(
  { config, terminal }: { readonly config: StateConfig; readonly terminal: TerminalOutput },
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  const sync = openSync({
    ...createSyncOptions(config),
    destinations: [],
    observe: terminal.observe,
    clock: realClock,
    random: realRandom,
    transport: () => Promise.reject(new Error('this command sends no requests to the API')),
    api: { ...config.api, url: 'http://127.0.0.1/external/v1', key: () => '' },
    dataDir: config.dataDir,
  });
  try {
    return await work(sync);
  } finally {
    sync.close();
  }
}

interface HttpNeeds extends Pick<SyncNeeds, 'config' | 'terminal' | 'key'> {
  readonly settings: Pick<SyncOptions, 'settings' | 'destinations' | 'archive'>;
}

async function overHttp<T>(
  { config, terminal, settings, key = () => config.api.key }: HttpNeeds,
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  const { ca, timeoutMs, concurrency } = config.api;
  const http = createHttpTransport({ timeoutMs, connections: concurrency, ...(ca === null ? {} : { ca }) });
  let sync: Sync | null = null;
  let wasEmpty = false;
  try {
    const oldPoints = {
      databases: selectDatabases(config, null).map(({ options }) => options),
      workspace: () => (wasEmpty ? (sync?.context.store.workspaceTag() ?? null) : null),
      observe: terminal.observe,
    };
    sync = openSync({
      ...settings,
      destinations: settings.destinations.map((to) => withOldPointCheck(to, oldPoints)),
      observe: terminal.observe,
      clock: realClock,
      random: realRandom,
      transport: http.transport,
      api: { ...config.api, key: () => key().reveal() },
      dataDir: config.dataDir,
    });
    const { points, lines } = sync.context.store.totals();
    wasEmpty = points === 0 && lines === 0;
    return await work(sync);
  } finally {
    await closeAll(
      () => sync?.close(),
      () => http.close(),
    );
  }
}
