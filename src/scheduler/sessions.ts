/**
 * The daemon: syncs on its schedules until it is told to stop.
 *
 * It moves from session to session. A session ends where the key or the plan is refused; then the daemon holds: it
 * delivers what it has, looks whether the key was exchanged, asks again now and then, and is not ready meanwhile. A key
 * is exchanged between two sessions only, so that the new one begins with the account: another workspace behind it
 * stops the daemon before anything is written.
 */

import type { Observe } from '../core/events.ts';
import { ApiFault } from '../core/faults.ts';
import { backoffMs } from '../core/retry.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import type { Deliverer } from '../delivery/deliver.ts';
import { runSession, type SessionParts } from './session.ts';

/** The key of the API, which may be exchanged while the program runs. */
export interface KeySource {
  /** Whether there is another key than the one in use. */
  hasChanged(): boolean;
  /** Goes on with the key that there is now. */
  adopt(): void;
}

export interface DaemonParts extends SessionParts {
  readonly key: KeySource;
  readonly deliverers: readonly Deliverer[];
  /** Lets somebody hear of every event. */
  readonly listen: (listener: Observe) => void;
  /** Further loops that run beside the sync until they are told to stop. */
  readonly beside: readonly ((signal: AbortSignal) => Promise<unknown>)[];
}

/** How often it is looked whether the key was exchanged. */
const KEY_LOOK_MS = 10 * SECOND_MS;

/** How long it rests between two tries with a key that is refused. */
const HOLD = { baseMs: MINUTE_MS, maxMs: 15 * MINUTE_MS };

/**
 * Runs until told to stop.
 *
 * @returns when `signal` aborts. @throws UserError where a person has to act and a restart would not help before.
 */
export async function runDaemon(parts: DaemonParts, signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  const onAbort = (): void => {
    const { reason } = signal;
    parts.context.observe({ type: 'stopping', reason: reason instanceof Error ? reason.message : 'told to stop' });
    stop.abort(reason);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const loops = [
    holdSessions(parts, stop.signal),
    ...parts.deliverers.map((deliverer) => deliverer.run(stop.signal)),
    ...parts.beside.map((loop) => loop(stop.signal)),
  ];
  try {
    await Promise.race(loops);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    stop.abort(new Error('the daemon has ended'));
    await Promise.allSettled(loops);
  }
}

async function holdSessions(parts: DaemonParts, signal: AbortSignal): Promise<never> {
  const { observe, clock, random } = parts.context;
  const progress = { answered: false, wasRefused: false };
  for (let refusals = 1; ; refusals += 1) {
    const end = await oneSession(parts, progress, signal);
    if (progress.answered) refusals = 1;
    progress.answered = false;
    if (end !== 'key exchanged') {
      const waitMs = backoffMs({ failures: refusals, policy: HOLD, random, askedMs: end.facts.waitMs ?? 0 });
      observe({ type: 'key-refused', message: refusalWords(end), waitMs });
      progress.wasRefused = true;
      const untilMs = clock.monoMs() + waitMs;
      while (clock.monoMs() < untilMs && !parts.key.hasChanged()) {
        await clock.sleep(Math.min(KEY_LOOK_MS, Math.max(1, untilMs - clock.monoMs())), signal);
      }
    }
    if (!parts.key.hasChanged()) continue;
    parts.key.adopt();
    observe({ type: 'key-exchanged' });
  }
}

/** One session, from the account to what ends it. @param progress set where the key was accepted at all. */
async function oneSession(
  parts: DaemonParts,
  progress: { answered: boolean; wasRefused: boolean },
  signal: AbortSignal,
): Promise<ApiFault | 'key exchanged'> {
  const end = new AbortController();
  const onAbort = (): void => end.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const onBegun = (): void => {
    progress.answered = true;
    if (progress.wasRefused) parts.context.observe({ type: 'key-accepted' });
    progress.wasRefused = false;
  };
  const session = runSession({ ...parts, onBegun }, end.signal);
  const watch = watchKey(parts, end.signal);
  try {
    return await Promise.race([session, watch]);
  } catch (error) {
    if (error instanceof ApiFault) return error;
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    end.abort(new Error('the session has ended'));
    await Promise.allSettled([session, watch]);
  }
}

/** Resolves when there is another key. */
async function watchKey({ key, context }: DaemonParts, signal: AbortSignal): Promise<'key exchanged'> {
  while (!key.hasChanged()) await context.clock.sleep(KEY_LOOK_MS, signal);
  return 'key exchanged';
}

function refusalWords({ kind, facts }: ApiFault): string {
  if (kind === 'unauthorized') {
    return 'the API refuses the key: it is unknown, revoked or expired. Create one in the dashboard (Settings, then API) and put it where api.key_file points: there it is noticed without a restart (given as api.key, restart Tidemark)';
  }
  if (kind === 'no-api-access')
    return 'the plan of this workspace has no access to the API. A plan that includes it is needed';
  return `the key lacks the scope ${facts.scope ?? 'devices:read'}, without which nothing can be synced. Create a key that has it`;
}
