/**
 * Signs of life of the loops: how `/healthz` distinguishes a loop that is stuck from one that rests.
 *
 * With each turn, a loop announces the longest time that it will rest. A loop that is overdue by more than
 * `STILL_AFTER_MS` is stuck: it waits for something that does not come, and a restart repairs that. A loop that has not
 * begun, or has ended in good order, is not watched. All times are those of the monotonic clock.
 */
import type { Clock } from './ports.ts';
import type { HealthReport } from './status.ts';
import { MINUTE_MS, SECOND_MS } from './time.ts';

/** A loop that is overdue for so long stands still. */
export const STILL_AFTER_MS = MINUTE_MS;

/** The main loop ticks once a second; a longer interval is a process that was stopped or had no processor. */
const PAUSED_FROM_MS = 5 * SECOND_MS;

/** The side of the heartbeats that a loop uses to show that it moves. */
export interface Pulse {
  /** The loop has turned, and will again within this; from the first time on it is watched. */
  beat(withinMs?: number): void;
  /** A part of the loop's work has moved: counts while the loop is watched. */
  sign(withinMs?: number): void;
  /**
   * The loop begins to wait for something that takes at most so long.
   *
   * @returns called at its end: the loop has turned, but what else it waits for keeps its time
   */
  begin(withinMs: number): () => void;
  /** The loop has ended, or has nothing to do: it is not watched until its next heartbeat. */
  rest(): void;
}

/** How far a loop is overdue, as metrics and `/healthz` read it. */
export interface LoopState {
  readonly loop: string;
  /** Since it should have turned; 0 while it is in time or not watched. */
  readonly idleMs: number;
}

/** Collects the signs of life of the process's loops; `healthOf` judges them. */
export interface Heartbeats {
  /** The pulse of a loop, made where there is none of that name. */
  openPulse(loop: string): Pulse;
  /** Records that the process runs. After a pause (a stopped process) each loop gets its full time again. */
  tick(): void;
  loops(): readonly LoopState[];
}

/** Creates heartbeats without any loop: each appears with its first `openPulse`. */
export function createHeartbeats({ monoMs }: Pick<Clock, 'monoMs'>): Heartbeats {
  /** By when each loop is to have turned; infinite where it is not watched. */
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

/** A clock whose sleeps are the rests of a loop: each sleep is a sign of life. */
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
  const still = loops.filter(({ idleMs }) => idleMs >= STILL_AFTER_MS);
  return {
    healthy: still.length === 0,
    reasons: still.map(
      ({ loop, idleMs }) => `the loop "${loop}" has made no progress for ${Math.floor(idleMs / SECOND_MS)} s`,
    ),
    codes: still.map(() => 'loop_stalled' as const),
  };
}
