/**
 * A clock for simulations: time moves only when everybody sleeps.
 *
 * Once the event loop has turned a few times without anybody going to sleep or waking, the clock jumps to the earliest
 * sleeper and wakes it, alone; who sleeps to the same moment wakes in the order of falling asleep. So a month takes
 * seconds, and the same program gives the same run. Work that the event loop cannot show (sockets, disks) has to be
 * told by `busy`; microtasks and `setImmediate` need not.
 */
import type { Clock } from '../core/ports.ts';
import type { EpochMs } from '../core/time.ts';

export interface VirtualClock extends Clock {
  /** Keeps time still until `work` is settled; gives `work` back. */
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

/** @param startMs what `nowMs` says first; `monoMs` begins at 0. */
export function createVirtualClock(startMs: EpochMs): VirtualClock {
  let elapsedMs = 0;
  let order = 0;
  let busyCount = 0;
  let movements = 0;
  let watching = false;
  const queue: Sleeper[] = [];

  function watch(): void {
    if (watching) return;
    watching = true;
    let seen = movements;
    let quietTurns = 0;
    const turn = (): void => {
      if (busyCount > 0 || earliest(queue) === undefined) {
        watching = false;
        return;
      }
      quietTurns = seen === movements ? quietTurns + 1 : 0;
      seen = movements;
      if (quietTurns >= QUIET_TURNS) {
        quietTurns = 0;
        wakeEarliest();
      }
      setImmediate(turn);
    };
    setImmediate(turn);
  }

  function wakeEarliest(): void {
    const next = popSleeper(queue);
    if (next?.wake == null) return;
    elapsedMs = Math.max(elapsedMs, next.atMs);
    next.wake();
  }

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      movements += 1;
      order += 1;
      const sleeper: Sleeper = { atMs: elapsedMs + Math.max(0, ms || 0), order, wake: null };
      const callOff = (): void => {
        movements += 1;
        sleeper.wake = null;
        reject(signal?.reason);
      };
      sleeper.wake = () => {
        movements += 1;
        sleeper.wake = null;
        signal?.removeEventListener('abort', callOff);
        resolve();
      };
      signal?.addEventListener('abort', callOff, { once: true });
      if (sleeper.atMs === Infinity) return;
      pushSleeper(queue, sleeper);
      watch();
    });
  }

  async function busy<T>(work: Promise<T>): Promise<T> {
    busyCount += 1;
    try {
      return await work;
    } finally {
      busyCount -= 1;
      movements += 1;
      watch();
    }
  }

  return {
    nowMs: () => startMs + elapsedMs,
    monoMs: () => elapsedMs,
    sleep,
    busy,
    sleepers: () => queue.filter(({ wake }) => wake !== null).length,
  };
}

/** The same time with another wall clock: `offsetMs()` is added to `nowMs`, and may change at any time. */
export function withWallOffset(clock: Clock, offsetMs: () => number): Clock {
  return {
    nowMs: () => clock.nowMs() + offsetMs(),
    monoMs: () => clock.monoMs(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
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
