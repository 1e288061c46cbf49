/**
 * When a page is worth a request by how full it is: pages are what is short where not all readings fit (design 2.4).
 */
import { DAY_MS, MINUTE_MS } from '../core/time.ts';

/** How full pages come at best, as they are asked for before they run over. */
export const FULL_PAGE = 0.97;
/** The part of the requests that may go to pages that are not full yet where pages are what is short. */
export const UNFULL_PART = 0.012;
const LONGEST_MS = 30 * DAY_MS;
const STEPS = 24;

/**
 * How old a reading may become before its device is asked although its page is not full, where full pages are what is
 * short: as old as keeps the room that is wasted small.
 *
 * @param intervalsMs of the devices that report. @returns milliseconds, at most 30 days.
 */
export function staleLimitMs(
  intervalsMs: readonly number[],
  { pageSize, requestsPerMs }: { pageSize: number; requestsPerMs: number },
): number {
  const wasted = (staleMs: number): number => {
    let sum = 0;
    for (const intervalMs of intervalsMs) {
      const fillMs = pageSize * FULL_PAGE * intervalMs;
      if (fillMs > staleMs) sum += (1 - staleMs / fillMs) / staleMs;
    }
    return sum;
  };
  return leastOf({ from: MINUTE_MS, to: LONGEST_MS }, (staleMs) => wasted(staleMs) <= UNFULL_PART * requestsPerMs);
}

/**
 * The least value at which a condition holds that holds for all greater ones, to a few millionths; the greatest where it
 * never does.
 *
 * @param range above 0.
 */
export function leastOf(range: { from: number; to: number }, holds: (value: number) => boolean): number {
  let { from, to } = range;
  if (holds(from)) return from;
  for (let step = 0; step < STEPS; step += 1) {
    const middle = Math.sqrt(from * to);
    if (holds(middle)) to = middle;
    else from = middle;
  }
  return to;
}
