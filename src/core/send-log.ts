/**
 * The times of the requests of the last day, oldest first: what the ceilings of the allowance count.
 *
 * Made for a day of a large plan (some hundred thousand entries): adding costs nothing, counting is a binary search.
 */

export interface SendLog {
  /** Adds a request. Times must not fall. */
  add(atMs: number): void;
  /** Replaces all entries; `times` ascending. */
  load(times: readonly number[]): void;
  /** How many requests are younger than `windowMs`. */
  count(nowMs: number, windowMs: number): number;
  /** From when on fewer than `cap` requests are younger than `windowMs`; negative infinity where that is so at any time. */
  freeAtMs(cap: number, windowMs: number): number;
}

/** Entries that nobody counts any more are dropped in bulk, so that dropping costs next to nothing. */
const DROP_AT_ONCE = 4096;

/** An empty log that keeps entries for `keepMs`. */
export function createSendLog(keepMs: number): SendLog {
  let times: number[] = [];
  let oldest = 0;

  const drop = (nowMs: number): void => {
    while (oldest < times.length && (times[oldest] ?? 0) <= nowMs - keepMs) oldest += 1;
    if (oldest < DROP_AT_ONCE || oldest * 2 < times.length) return;
    times = times.slice(oldest);
    oldest = 0;
  };

  return {
    add(atMs) {
      drop(atMs);
      times.push(Math.max(atMs, times.at(-1) ?? atMs));
    },
    load(loaded) {
      times = [...loaded];
      oldest = 0;
    },
    count: (nowMs, windowMs) => times.length - firstAfter(times, nowMs - windowMs, oldest),
    freeAtMs(cap, windowMs) {
      const blocking = times.length - cap;
      const atMs = blocking < oldest ? undefined : times[blocking];
      return atMs === undefined ? Number.NEGATIVE_INFINITY : atMs + windowMs;
    },
  };
}

/** The index of the first entry later than `atMs`, from index `low` on. */
function firstAfter(times: readonly number[], atMs: number, low: number): number {
  let from = low;
  let to = times.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((times[middle] ?? 0) <= atMs) from = middle + 1;
    else to = middle;
  }
  return from;
}
