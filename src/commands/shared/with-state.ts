/**
 * Opens the state for commands that change it: with the lock, without the API, and without deliveries.
 */
import { openSync, type Sync } from '../../app/open-sync.ts';
import { realClock, realRandom } from '../../app/real-clock.ts';
import { settingsOf } from '../../app/settings.ts';
import type { CommandRun } from './command.ts';

/**
 * Opens the state for work that neither asks the API nor delivers by itself, and closes it after that.
 *
 * @throws UserError where it cannot be used (HeldError: another process has it), and whatever the work throws.
 */
export async function withState<T>(
  { config, terminal }: Pick<CommandRun<unknown>, 'config' | 'terminal'>,
  work: (sync: Sync) => Promise<T>,
): Promise<T> {
  const sync = openSync({
    ...settingsOf(config),
    destinations: [],
    observe: terminal.observe,
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
