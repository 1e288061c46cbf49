/** When a named gap is tried again. */
import { describe, expect, test } from 'vitest';
import type { Gap } from '../../src/core/state/telemetry.ts';
import { DAY_MS, HOUR_NS, MINUTE_MS } from '../../src/core/time.ts';
import { isAwaitingRetry, isResting, namedGap, restingRange } from '../../src/ingest/named-gaps.ts';

const NOW_MS = Date.UTC(2026, 5, 15, 12);
const RANGE = { deviceId: 'd', from: 0n, to: 10n * HOUR_NS };

const gapOf = (reason: Gap['reason']): Gap => namedGap({ ...RANGE, reason }, NOW_MS);

describe('a named gap', () => {
  test('rests for minutes where an answer was odd, for a day where the plan hides it', () => {
    const odd = gapOf('page_rejected');
    expect(isAwaitingRetry(odd, NOW_MS + 5 * MINUTE_MS - 1)).toBe(true);
    expect(isAwaitingRetry(odd, NOW_MS + 5 * MINUTE_MS)).toBe(false);
    expect(isAwaitingRetry(gapOf('beyond_plan'), NOW_MS + DAY_MS - 1)).toBe(true);
    expect(namedGap({ ...RANGE, reason: 'beyond_plan' }, NOW_MS, MINUTE_MS).retryAtMs).toBe(NOW_MS + MINUTE_MS);
  });

  test('that was named by a clock far ahead is tried now, and one that was named by seconds ahead is not', () => {
    const named = namedGap({ ...RANGE, reason: 'unreachable' }, NOW_MS + 400 * DAY_MS);
    expect(isAwaitingRetry(named, NOW_MS)).toBe(false);
    expect(isAwaitingRetry({ ...named, retryAtMs: NOW_MS + 6 * MINUTE_MS }, NOW_MS)).toBe(true);
  });

  test('that was given up for newer pages is open to a backfill, and to nothing else', () => {
    const gap = gapOf('over_quota');
    expect([isResting(gap, 'backfill', NOW_MS), isResting(gap, 'live', NOW_MS)]).toEqual([false, true]);
    expect(isResting(gapOf('page_rejected'), 'backfill', NOW_MS)).toBe(true);
  });

  test('that the plan hides rests as far up as the plan still hides it', () => {
    const gap = gapOf('beyond_plan');
    expect(restingRange(gap, null), 'any age is served by now').toEqual({ from: 0n, to: 0n });
    expect(restingRange(gap, 4n * HOUR_NS), 'the plan has grown').toEqual({ from: 0n, to: 4n * HOUR_NS });
    expect(restingRange(gap, 10n * HOUR_NS)).toEqual({ from: 0n, to: RANGE.to });
    expect(restingRange(gapOf('unverified'), 4n * HOUR_NS)).toEqual({ from: 0n, to: RANGE.to });
  });
});
