/**
 * When each stream has its next turn: its schedule, moved by the phase of the workspace.
 *
 * Promises: work on a stream never overlaps, because whoever does it waits here between two turns; a tick that passed
 * meanwhile (the work took longer, the machine slept) is caught up at once, and several of them by one turn. A local
 * clock that jumps delays nothing: waits are slept in small pieces, and a turn that lies further ahead than the
 * schedule explains is looked for anew.
 */
import type { AppEvent } from '../core/events.ts';
import type { ApiFaultKind } from '../core/faults.ts';
import { hash64 } from '../core/hash.ts';
import type { Clock, Stream } from '../core/ports.ts';
import type { Schedules } from '../core/schedule.ts';
import { type EpochMs, MINUTE_MS, SECOND_MS } from '../core/time.ts';

export interface Agenda {
  /** Resolves when the stream is due; the first time at once. Rejects with the signal's reason when that aborts. */
  due(stream: Stream, signal: AbortSignal): Promise<void>;
  /** Takes in that the stream has had a turn just now, for which nobody waited here. */
  took(stream: Stream): void;
  /** Takes an event in: a refusal for what was asked, or another limit, may tell of a plan that has changed. */
  observe(event: AppEvent): void;
}

/** The longest sleep at a stretch: after a jump of the clock the schedule is looked at again this soon. */
const LOOK_EVERY_MS = 15 * SECOND_MS;

/** Phases lie within this, so that containers which all go by the minute do not all ask at its first second. */
const PHASE_WITHIN_MS = MINUTE_MS;

/** Refusals by which a plan that has changed shows itself. */
const PLAN_DOUBTS: ReadonlySet<ApiFaultKind> = new Set(['invalid-request', 'range-too-large']);

/** The account is read out of turn for that no more often than this. */
const DOUBT_EVERY_MS = 10 * MINUTE_MS;

/** For a limit that the plan does not have it is read sooner: nothing but the account tells which one counts. */
const LIMIT_DOUBT_EVERY_MS = MINUTE_MS;

/** The phase of a workspace: always the same one, spread evenly over many workspaces. */
export function phaseOf(workspace: string): number {
  return hash64(workspace).lo % PHASE_WITHIN_MS;
}

/** An agenda on which everything is due. @param phaseMs by how much later than its schedule each stream is due. */
export function createAgenda(clock: Clock, schedules: Schedules, phaseMs: () => number): Agenda {
  const lastTurnMs = new Map<Stream, EpochMs>();
  const waiting = new Map<Stream, AbortController>();
  let doubtedAtMs = Number.NEGATIVE_INFINITY;

  const turnOf = (stream: Stream): EpochMs => {
    const nowMs = clock.nowMs();
    const lastMs = lastTurnMs.get(stream);
    if (lastMs === undefined) return nowMs;
    // A clock that was set back must not make anybody wait until it has caught up.
    const sinceMs = Math.min(lastMs, nowMs) - phaseMs();
    return (schedules[stream].next(sinceMs) ?? Number.POSITIVE_INFINITY) + phaseMs();
  };

  return {
    due: async (stream, signal) => {
      for (;;) {
        const waitMs = turnOf(stream) - clock.nowMs();
        if (waitMs <= 0) break;
        await nap(stream, Math.min(waitMs, LOOK_EVERY_MS), signal);
      }
      lastTurnMs.set(stream, clock.nowMs());
    },
    took: (stream) => void lastTurnMs.set(stream, clock.nowMs()),
    observe: (event) => {
      const isRefusal = event.type === 'request-done' && event.fault !== null && PLAN_DOUBTS.has(event.fault);
      if (!isRefusal && event.type !== 'plan-doubted') return;
      const restMs = isRefusal ? DOUBT_EVERY_MS : LIMIT_DOUBT_EVERY_MS;
      if (clock.monoMs() - doubtedAtMs < restMs) return;
      doubtedAtMs = clock.monoMs();
      lastTurnMs.delete('account');
      waiting.get('account')?.abort();
    },
  };

  /** Sleeps until it is time, or the stream is hastened. */
  async function nap(stream: Stream, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const woken = new AbortController();
    const onAbort = (): void => woken.abort();
    signal.addEventListener('abort', onAbort, { once: true });
    waiting.set(stream, woken);
    try {
      await clock.sleep(ms, woken.signal);
    } catch (error) {
      if (!woken.signal.aborted) throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      waiting.delete(stream);
    }
    signal.throwIfAborted();
  }
}
