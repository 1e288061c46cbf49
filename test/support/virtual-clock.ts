/**
 * A clock for simulations: time moves only when everybody sleeps.
 *
 * Once the event loop has turned a few times without anybody going to sleep or waking, the clock jumps to the earliest
 * sleeper and wakes it, alone; who sleeps to the same moment wakes in the order of falling asleep. So a month takes
 * seconds, and the same program gives the same run. Work that the event loop cannot show (sockets, disks) has to be
 * announced with `busy`; microtasks and `setImmediate` need not.
 */
import type { Clock } from '../../src/core/ports.ts';
import { type EpochMs, MINUTE_MS } from '../../src/core/time.ts';

export interface VirtualClock extends Clock {
  /** Stops the time until `work` has settled; returns `work`. */
  busy<T>(work: Promise<T>): Promise<T>;
  /** How many are asleep. */
  sleepers(): number;
}

interface Sleeper {
  readonly atMs: number;
  readonly order: number;
  /** `null` once it has been woken or called off. */
  wake: (() => void) | null;
}

/** Turns of the event loop without any movement that count as everybody being asleep. */
const QUIET_TURNS = 3;

/** Where a clock stands. */
interface ClockState {
  elapsedMs: number;
  /** How many have fallen asleep so far. */
  order: number;
  /** Work under way that keeps time still. */
  busyCount: number;
  /** Counts everything by which the event loop shows that somebody is awake. */
  movements: number;
  watching: boolean;
  /** A binary heap, the earliest first. */
  readonly queue: Sleeper[];
}

/** @param startMs the first value of `nowMs`; `monoMs` begins at 0. */
export function createVirtualClock(startMs: EpochMs): VirtualClock {
  const state: ClockState = { elapsedMs: 0, order: 0, busyCount: 0, movements: 0, watching: false, queue: [] };
  return {
    nowMs: () => startMs + state.elapsedMs,
    monoMs: () => state.elapsedMs,
    sleep: (ms, signal) => fallAsleep(state, ms, signal),
    async busy(work) {
      state.busyCount += 1;
      try {
        return await work;
      } finally {
        state.busyCount -= 1;
        state.movements += 1;
        watch(state);
      }
    },
    sleepers: () => state.queue.filter(({ wake }) => wake !== null).length,
  };
}

function fallAsleep(state: ClockState, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    state.movements += 1;
    state.order += 1;
    const sleeper: Sleeper = { atMs: state.elapsedMs + Math.max(0, ms || 0), order: state.order, wake: null };
    const callOff = (): void => {
      state.movements += 1;
      sleeper.wake = null;
      reject(signal?.reason);
    };
    sleeper.wake = () => {
      state.movements += 1;
      sleeper.wake = null;
      signal?.removeEventListener('abort', callOff);
      resolve();
    };
    signal?.addEventListener('abort', callOff, { once: true });
    if (sleeper.atMs === Infinity) return;
    pushSleeper(state.queue, sleeper);
    watch(state);
  });
}

/** Follows the turns of the event loop until nobody sleeps or work is under way, and moves time in the quiet. */
function watch(state: ClockState): void {
  if (state.watching) return;
  state.watching = true;
  let seen = state.movements;
  let quietTurns = 0;
  const turn = (): void => {
    const next = earliest(state.queue);
    if (state.busyCount > 0 || next === undefined) {
      state.watching = false;
      return;
    }
    quietTurns = seen === state.movements ? quietTurns + 1 : 0;
    seen = state.movements;
    if (quietTurns >= QUIET_TURNS) {
      quietTurns = 0;
      popSleeper(state.queue);
      state.elapsedMs = Math.max(state.elapsedMs, next.atMs);
      next.wake?.();
    }
    setImmediate(turn);
  };
  setImmediate(turn);
}

/** The same time with another wall clock: `offsetMs()` is added to `nowMs`, and may change at any time. */
export function withWallOffset(clock: Clock, offsetMs: () => number): Clock {
  return {
    nowMs: () => clock.nowMs() + offsetMs(),
    monoMs: () => clock.monoMs(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}

/** The shortest rest of a loop that looks for work every few seconds. */
const UNHURRIED_MS = 5 * MINUTE_MS;

/** The same clock, with longer rests: a look at the state every five seconds would be a large part of a virtual day. */
export function unhurried(clock: Clock): Clock {
  return {
    ...clock,
    sleep: async (ms, signal) => await clock.sleep(ms < 1000 ? ms : Math.max(ms, UNHURRIED_MS), signal),
  };
}

/** The earliest that is still asleep; those called off are dropped on the way. */
function earliest(queue: Sleeper[]): Sleeper | undefined {
  while (queue[0] !== undefined && queue[0].wake === null) popSleeper(queue);
  return queue[0];
}

function before(a: Sleeper, b: Sleeper): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Adds to a binary heap, the earliest first. */
function pushSleeper(heap: Sleeper[], sleeper: Sleeper): void {
  let at = heap.push(sleeper) - 1;
  while (at > 0) {
    const up = (at - 1) >> 1;
    const parent = heap[up];
    if (parent === undefined || !before(sleeper, parent)) break;
    heap[at] = parent;
    at = up;
  }
  heap[at] = sleeper;
}

function popSleeper(heap: Sleeper[]): Sleeper | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (top === undefined || last === undefined || heap.length === 0) return top;
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    const [a, b] = [heap[left], heap[left + 1]];
    const child = a !== undefined && b !== undefined && before(b, a) ? left + 1 : left;
    const least = heap[child];
    if (least === undefined || !before(least, last)) break;
    heap[at] = least;
    at = child;
  }
  heap[at] = last;
  return top;
}
