/**
 * `--check`, the status page: who can read it, and whether its address is free or answered by the process that holds
 * the state.
 */
import type { Config, StateConfig } from '../../config/config.ts';
import { isLoopback } from '../../config/values.ts';
import { isRecord, parseJson } from '../../core/json.ts';
import { addressText } from '../../core/text.ts';
import { SECOND_MS } from '../../core/time.ts';
import { ListenError, requireFree } from '../../observe/server.ts';
import { getPage } from '../shared/get-page.ts';
import { type CheckLine, type CheckNotes, createNotes } from './report.ts';

/**
 * All lines about the status page.
 *
 * @param isRunning whether a process uses the state; `null` if that is not known
 */
export async function checkPage(config: Config | StateConfig, isRunning: boolean | null): Promise<CheckLine[]> {
  const notes = createNotes('page');
  const { host, port } = config.listen;
  const address = addressText(host, port);
  if (isRunning === true) await noteDaemonAnswer(notes, config, address);
  else await noteFree(notes, config, { address, isRunning });
  noteReaders(notes, config, address);
  return notes.lines;
}

/** Reports who can read the status page. */
function noteReaders(notes: CheckNotes, { statusPage }: Config | StateConfig, address: string): void {
  const readers = isLoopback(`http://${address}`) ? 'everybody on this machine' : 'everybody who can reach this port';
  const text = statusPage.password === null ? ', without a password' : ', with the password';
  notes.ok('readers', `${readers}${text}`);
}

const ANSWER = { withinMs: 3 * SECOND_MS, bytes: 100_000 };

async function noteDaemonAnswer(notes: CheckNotes, { listen }: Config | StateConfig, address: string): Promise<void> {
  try {
    const health = await healthAt(listen);
    if (health !== null) {
      noteHealth(notes, address, health);
      return;
    }
    notes.fail('listen', {
      message: `${address}: another program answers there, not the daemon`,
      remedy: 'Set listen (TIDEMARK_LISTEN) to another port and restart the daemon.',
    });
  } catch {
    notes.skip(
      'listen',
      `${address}: no answer. The process that uses the state may listen on another address, or is a one-off command without a page`,
    );
  }
}

function noteHealth(notes: CheckNotes, address: string, health: number): void {
  if (health === 200) {
    notes.ok('listen', `${address}: a Tidemark daemon answers and runs; --status shows whether it syncs`);
    return;
  }
  notes.warn('listen', {
    message: `${address}: a Tidemark daemon answers, but is not healthy (HTTP ${health}): one of its loops is stalled`,
    remedy: 'See the log, and run --health, which prints the stalled loop. If it stays stalled, restart the daemon.',
  });
}

/** The HTTP status with which a daemon at an address reports its health; `null` if another program answers. */
async function healthAt(listen: Config['listen']): Promise<number | null> {
  const { status, body } = await getPage(listen, '/healthz', ANSWER);
  const health = parseJson(body);
  return isRecord(health) && typeof health['healthy'] === 'boolean' ? status : null;
}

async function noteFree(
  notes: CheckNotes,
  { listen }: Config | StateConfig,
  { address, isRunning }: { readonly address: string; readonly isRunning: false | null },
): Promise<void> {
  try {
    await requireFree(listen);
    notes.ok(
      'listen',
      listen.port === 0
        ? `${address}: the daemon chooses a free port at each start`
        : `${address}: free for the daemon`,
    );
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    const health = await healthAt(listen).catch(() => null);
    // Stopping a Tidemark daemon would stop the sync of this workspace or of another one.
    if (health !== null && isRunning === null) noteHealth(notes, address, health);
    else if (health !== null) {
      const message = `${address}: a Tidemark daemon with another data_dir answers there`;
      notes.fail('listen', { message, remedy: 'Set listen (TIDEMARK_LISTEN) to another port.' });
    } else notes.fail('listen', { message: error.problem.what, remedy: error.problem.remedy });
  }
}
