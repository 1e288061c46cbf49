/**
 * The first baseline: a good plain cron loop, every device at every tick with full pages, that honours the wait of a
 * 429.
 */
import { PAGE, type RunOptions } from './clients.ts';
import { countAnew, hold, takePage } from './holdings.ts';
import { type RunResult, resultOf } from './result.ts';

/** Four at once over an answer time of 200 ms. */
const EVERY_MS = 50;

/** @param tickMs from tick to tick. */
export function runCron({ fleet, service, fromMs, untilMs }: Omit<RunOptions, 'plan'>, tickMs: number): RunResult {
  const holdings = fleet.map((device) => hold(device, 0, device.newestAt(0)));
  let counts = { requests: 0, pages: 0, refused: 0 };
  let isCounting = false;
  let nowMs = 0;
  const startCounting = (): void => {
    if (isCounting || nowMs < fromMs) return;
    for (const held of holdings) countAnew(held, nowMs);
    counts = { requests: 0, pages: 0, refused: 0 };
    isCounting = true;
  };
  for (let dueMs = 0; dueMs < untilMs; dueMs = (Math.floor(nowMs / tickMs) + 1) * tickMs) {
    nowMs = Math.max(nowMs, dueMs);
    for (const held of holdings) {
      // A page that does not reach down to what is held is followed by the next one.
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
        isMore = takePage(held, nowMs, { pageSize: PAGE, givesUp: false }).liveGap !== null;
        nowMs += EVERY_MS;
      }
    }
  }
  return resultOf(holdings, counts, { fromMs, untilMs });
}
