/**
 * `--demo`: a simulated workspace, the real sync against it over HTTP, and the status page, until it is stopped
 * (design 1.2). It needs no key and no database.
 */
import { ApiFault } from '../core/faults.ts';
import { MINUTE_MS } from '../core/time.ts';
import type { SyncContext } from '../sync/context.ts';
import type { Deliverer } from '../sync/deliver.ts';
import { runPass } from '../sync/pass.ts';
import type { Puller } from '../sync/pull.ts';

/** How long a pass rests, and how long it may spend on history before the newest readings get their turn again. */
const REST_MS = MINUTE_MS / 12;
const HISTORY_MS = MINUTE_MS / 3;

export interface DemoParts {
  readonly context: SyncContext;
  readonly puller: Puller;
  readonly deliverers: readonly Deliverer[];
  /** Called a few times a second. */
  readonly tick: () => void;
}

const TICK_MS = 250;

/** Syncs until told to stop. @throws what ends it otherwise: a state that cannot be written. */
export async function runDemo(parts: DemoParts, signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const loops = [
    syncAgainAndAgain(parts, stop.signal),
    tickAgainAndAgain(parts, stop.signal),
    ...parts.deliverers.map((deliverer) => deliverer.run(stop.signal)),
  ];
  try {
    await Promise.race(loops);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    stop.abort();
    await Promise.allSettled(loops);
  }
}

async function syncAgainAndAgain({ context, puller }: DemoParts, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await runPass(context, { puller, fixed: null, historyMs: HISTORY_MS }, signal);
    } catch (error) {
      if (!(error instanceof ApiFault)) throw error;
      context.observe({ type: 'pass-failed', message: error.message, waitMs: REST_MS });
    }
    await context.clock.sleep(REST_MS, signal);
  }
}

async function tickAgainAndAgain({ context, tick }: DemoParts, signal: AbortSignal): Promise<void> {
  for (;;) {
    tick();
    await context.clock.sleep(TICK_MS, signal);
  }
}
