/**
 * The time of the planner for each of its decisions.
 */
export interface Timing {
  readonly count: number;
  readonly meanUs: number;
  /** 99 of 100 were faster. */
  readonly p99Us: number;
  readonly worstUs: number;
}

/** Steps of the histogram: 5 % each, from a tenth of a microsecond on. */
const BASE = 1.05;
const LEAST_US = 0.1;

export interface Stopwatch {
  /** Does it, and counts the time to the decision at hand. */
  time<T>(work: () => T): T;
  /** The decision at hand has ended. */
  next(): void;
  end(): Timing;
}

export function createTiming(): Stopwatch {
  const histogram = new Uint32Array(500);
  let count = 0;
  let totalUs = 0;
  let worstUs = 0;
  let currentUs = 0;
  const percentile = (part: number): number => {
    let left = count * (1 - part);
    for (let step = histogram.length - 1; step >= 0; step -= 1) {
      left -= histogram[step] ?? 0;
      if (left < 0) return LEAST_US * BASE ** (step + 1);
    }
    return 0;
  };
  return {
    time(work) {
      const began = performance.now();
      const result = work();
      currentUs += (performance.now() - began) * 1000;
      return result;
    },
    next() {
      count += 1;
      totalUs += currentUs;
      worstUs = Math.max(worstUs, currentUs);
      const step = Math.floor(Math.log(Math.max(LEAST_US, currentUs) / LEAST_US) / Math.log(BASE));
      const at = Math.min(histogram.length - 1, Math.max(0, step));
      histogram[at] = (histogram[at] ?? 0) + 1;
      currentUs = 0;
    },
    end: () => ({ count, meanUs: totalUs / Math.max(1, count), p99Us: percentile(0.99), worstUs }),
  };
}
