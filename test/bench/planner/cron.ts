/**
 * The first baseline: a good plain cron loop, every device at every tick with full pages, that honours the wait of a
 * 429.
 */
import { PAGE, type RunOptions } from './clients.ts';
import { type RunResult, resultOf } from './result.ts';
import { countAnew, storedFrom, takePage } from './stored-readings.ts';

/** Four at once over an answer time of 200 ms. */
const EVERY_MS = 50;

/** @param tickMs from tick to tick. */
export function runCron({ fleet, service, fromMs, untilMs }: Omit<RunOptions, 'plan'>, tickMs: number): RunResult {
  const allStored = fleet.map((device) => storedFrom(device, 0, device.newestAt(0)));
  let counts = { requests: 0, pages: 0, refused: 0 };
  let isCounting = false;
  let nowMs = 0;
  const startCounting = (): void => {
    if (isCounting || nowMs < fromMs) return;
    for (const stored of allStored) countAnew(stored, nowMs);
    counts = { requests: 0, pages: 0, refused: 0 };
    isCounting = true;
  };
  for (let dueMs = 0; dueMs < untilMs; dueMs = (Math.floor(nowMs / tickMs) + 1) * tickMs) {
    nowMs = Math.max(nowMs, dueMs);
    for (const stored of allStored) {
      // A page that does not reach down to what is stored is followed by the next one.
      for (let isMore = true; isMore && nowMs < untilMs; ) {
        startCounting();
        const { waitMs } = service.request(nowMs);
        counts.requests += 1;
        if (waitMs !== null) {
          counts.refused += 1;
          nowMs += waitMs;
          continue;
        }
        counts.pages += 1;
        isMore = takePage(stored, nowMs, { pageSize: PAGE, givesUp: false }).liveGap !== null;
        nowMs += EVERY_MS;
      }
    }
  }
  return resultOf(allStored, counts, { fromMs, untilMs });
}
