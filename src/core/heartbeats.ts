/**
 * Signs of life of the loops: how `/healthz` distinguishes a loop that is stuck from one that rests.
 *
 * With each turn, a loop announces the longest time that it will rest. A loop that is overdue by more than
 * `STUCK_AFTER_MS` is stuck: it waits for something that does not come, and a restart repairs that. A loop that has not
 * begun, or has ended in good order, is not watched. All times are those of the monotonic clock.
 */
import type { Clock } from './ports.ts';
import type { HealthReport } from './status.ts';
import { MINUTE_MS, SECOND_MS } from './time.ts';

/** A loop that is overdue by more than this is stuck. */
export const STUCK_AFTER_MS = MINUTE_MS;

/** The main loop ticks once a second; a longer interval is a process that was stopped or had no processor. */
const PAUSED_FROM_MS = 5 * SECOND_MS;

/** The interface by which a loop shows that it still runs. */
export interface Pulse {
  /** Records a turn of the loop, and that the next one follows within this time. The first call starts the watch. */
  beat(withinMs?: number): void;
  /** Records that a part of the loop's work has moved. Counts only while the loop is watched. */
  sign(withinMs?: number): void;
  /**
   * Records that the loop begins to wait for something that takes at most this long.
   *
   * @returns the function to call at its end: it records a turn, but other waits of the loop keep their time
   */
  begin(withinMs: number): () => void;
  /** Records that the loop has ended or has nothing to do. It is not watched until its next heartbeat. */
  rest(): void;
}

/** How far a loop is overdue, for metrics and `/healthz`. */
export interface LoopState {
  readonly loop: string;
  /** The time since the loop should have turned; 0 while it is on time or not watched. */
  readonly idleMs: number;
}

/** Collects the signs of life of the process's loops; `healthOf` judges them. */
export interface Heartbeats {
  /** Returns the pulse of a loop, and creates it if there is none with that name. */
  openPulse(loop: string): Pulse;
  /** Records that the process runs. After a pause (a stopped process) each loop gets its full time again. */
  tick(): void;
  loops(): readonly LoopState[];
}

/** Creates heartbeats without any loop: each appears with its first `openPulse`. */
export function createHeartbeats({ monoMs }: Pick<Clock, 'monoMs'>): Heartbeats {
  /** The time by which each loop must turn; infinite if it is not watched. */
  const due = new Map<string, number>();
  let tickedAtMs = monoMs();
  const put = (loop: string, withinMs: number): void => void due.set(loop, monoMs() + withinMs);
  return {
    openPulse: (loop) => {
      if (!due.has(loop)) due.set(loop, Number.POSITIVE_INFINITY);
      const waits = new Set<{ readonly dueMs: number }>();
      const show = (): void => void due.set(loop, Math.max(monoMs(), ...[...waits].map(({ dueMs }) => dueMs)));
      return {
        beat: (withinMs = 0) => put(loop, withinMs),
        sign: (withinMs = 0) => {
          const now = due.get(loop) ?? Number.POSITIVE_INFINITY;
          if (Number.isFinite(now)) due.set(loop, Math.max(now, monoMs() + withinMs));
        },
        begin: (withinMs) => {
          const wait = { dueMs: monoMs() + withinMs };
          waits.add(wait);
          show();
          return () => {
            waits.delete(wait);
            show();
          };
        },
        rest: () => void due.set(loop, Number.POSITIVE_INFINITY),
      };
    },
    tick: () => {
      const pausedMs = monoMs() - tickedAtMs;
      tickedAtMs += pausedMs;
      if (pausedMs < PAUSED_FROM_MS) return;
      for (const [loop, dueMs] of due) due.set(loop, dueMs + pausedMs);
    },
    loops: () => [...due].map(([loop, dueMs]) => ({ loop, idleMs: Math.max(0, monoMs() - dueMs) })),
  };
}

/** A clock for a loop whose pauses are its sleeps: each sleep is a sign of life. */
export function beatingClock(clock: Clock, pulse: Pick<Pulse, 'begin'>): Clock {
  return {
    nowMs: clock.nowMs,
    monoMs: clock.monoMs,
    sleep: async (ms, signal) => {
      const end = pulse.begin(ms);
      try {
        await clock.sleep(ms, signal);
      } finally {
        end();
      }
    },
  };
}

/** The answer of `/healthz`: only what a restart can repair is unhealthy. */
export function healthOf(loops: readonly LoopState[]): HealthReport {
  const still = loops.filter(({ idleMs }) => idleMs >= STUCK_AFTER_MS);
  return {
    healthy: still.length === 0,
    reasons: still.map(
      ({ loop, idleMs }) => `the loop "${loop}" has made no progress for ${Math.floor(idleMs / SECOND_MS)} s`,
    ),
    codes: still.map(() => 'loop_stalled' as const),
  };
}
