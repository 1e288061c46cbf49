/**
 * The daemon's main loop: it syncs on its schedules until it is stopped.
 *
 * It runs one session after the other. A session ends when the API refuses the key or the plan. Then the daemon is
 * not ready: it delivers what is archived, checks whether the key was replaced, and tries the API again now and then.
 * The key is replaced only between two sessions, so that each session starts with the account: another workspace
 * behind the key stops the daemon before anything is written.
 */

import { firstOf, pollUntil } from '../core/async.ts';
import { ApiFault, refusalText } from '../core/faults.ts';
import { backoffMs } from '../core/retry.ts';
import { MINUTE_MS, SECOND_MS } from '../core/time.ts';
import { noteAccepted, noteRefused } from './api-state.ts';
import { writeCoveragePoints } from './coverage-points.ts';
import { runSession, type SessionParts } from './session.ts';

/** The key of the API, which may be exchanged while the program runs. */
export interface KeySource {
  /** Whether there can never be another key: then nobody looks for one. */
  readonly isFixed?: boolean;
  /** Whether there is another key than the one in use. */
  hasChanged(): boolean;
  /** Goes on with the key that there is now. */
  adopt(): void;
}

export interface DaemonParts extends SessionParts {
  readonly key: KeySource;
  /** Loops that run beside the sessions until the signal aborts: the deliveries, the maintenance, the jobs. */
  readonly beside: readonly ((signal: AbortSignal) => Promise<unknown>)[];
}

/** How often to check whether the key was exchanged. */
const KEY_CHECK_MS = 10 * SECOND_MS;

/** How long it rests between two tries with a key that is refused. */
const KEY_RETRY = { baseMs: MINUTE_MS, maxMs: 15 * MINUTE_MS };

/**
 * Runs until the signal aborts.
 *
 * @returns when `signal` aborts.
 * @throws UserError where a person has to act and a restart would not help before.
 */
export async function runDaemon(parts: DaemonParts, signal: AbortSignal): Promise<void> {
  const { observe } = parts.context;
  const onAbort = (): void => {
    const { reason } = signal;
    observe({ type: 'stopping', reason: reason instanceof Error ? reason.message : 'Stop requested' });
  };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const sessions = async (stop: AbortSignal): Promise<never> => await runSessions(parts, stop);
  const coverage = async (stop: AbortSignal): Promise<never> => await writeCoveragePoints(parts.context, stop);
  try {
    await firstOf<unknown>([sessions, coverage, ...parts.beside], { signal, reason: 'the daemon has ended' });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

async function runSessions(parts: DaemonParts, signal: AbortSignal): Promise<never> {
  const { key, apiState, context } = parts;
  const { observe, workspaceUnknown, clock, random } = context;
  for (let refusals = 1; ; refusals += 1) {
    const { end, wasAnswered } = await oneSession(parts, signal);
    if (wasAnswered) refusals = 1;
    if (end !== 'key exchanged') {
      const waitMs = backoffMs({ failures: refusals, policy: KEY_RETRY, random, leastMs: end.facts.waitMs ?? 0 });
      workspaceUnknown();
      noteRefused(apiState, end, refusalText(end), waitMs);
      const waits = [
        async (stop: AbortSignal): Promise<unknown> => await clock.sleep(waitMs, stop),
        async (stop: AbortSignal): Promise<unknown> => await watchKey(parts, stop),
      ];
      await firstOf(waits, { signal, reason: 'the API is tried again' });
    }
    if (!key.hasChanged()) continue;
    key.adopt();
    observe({ type: 'key-changed' });
  }
}

interface SessionEnd {
  readonly end: ApiFault | 'key exchanged';
  /** Whether the key was accepted at all. */
  readonly wasAnswered: boolean;
}

/** One session, from reading the account to the error that ends it. */
async function oneSession(parts: DaemonParts, signal: AbortSignal): Promise<SessionEnd> {
  const { apiState } = parts;
  let wasAnswered = false;
  const onStarted = (): void => {
    wasAnswered = true;
    noteAccepted(apiState);
  };
  const session = async (stop: AbortSignal): Promise<never> => await runSession(parts, onStarted, stop);
  const watch = async (stop: AbortSignal): Promise<'key exchanged'> => await watchKey(parts, stop);
  try {
    const end = await firstOf([session, watch], { signal, reason: 'the session has ended' });
    return { end, wasAnswered };
  } catch (error) {
    if (error instanceof ApiFault) return { end: error, wasAnswered };
    throw error;
  }
}

/** Resolves when there is another key. */
async function watchKey({ key, context }: DaemonParts, signal: AbortSignal): Promise<'key exchanged'> {
  const check = (): 'key exchanged' | null => (key.hasChanged() ? 'key exchanged' : null);
  const everyMs = key.isFixed === true ? Number.POSITIVE_INFINITY : KEY_CHECK_MS;
  return await pollUntil(context.clock, check, { everyMs }, signal);
}
