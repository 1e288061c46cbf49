/** The facts about a device that the planner needs, from its coverage and the device list. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CoveredRange } from '../../src/core/coverage.ts';
import { lengthNs, normalize, subtract } from '../../src/core/intervals.ts';
import { DAY_MS, HOUR_MS, msToNs, nsToMs } from '../../src/core/time.ts';
import { buildView } from '../../src/scheduler/device-view.ts';

const NOW = 100 * DAY_MS;

/** A covered range, in ms, with the newest reading in it. */
function span(fromMs: number, toMs: number, lastMs: number | null = toMs - 1000): CoveredRange {
  const last = lastMs === null ? null : { at: msToNs(lastMs), digest: 'x' };
  return { from: msToNs(fromMs), to: msToNs(toMs), first: last, last };
}

function view(covered: readonly CoveredRange[], { fromMs = NOW - 30 * DAY_MS, resting = [span(0, 0)] } = {}) {
  const wanted = { from: msToNs(fromMs), to: msToNs(NOW) };
  return buildView({ covered, wanted, resting: normalize(resting) });
}

describe('the facts of a device for the planner', () => {
  test('a device that was never polled has no history yet: its newest page comes first', () => {
    expect(view([])).toEqual({ newestMs: null, coveredToMs: null, liveGap: null, open: { day: 0, week: 0, rest: 0 } });
  });

  test('after that page its history is missing, by age', () => {
    const seen = view([span(NOW - 2 * HOUR_MS, NOW)]);
    expect(seen.liveGap).toBeNull();
    expect(seen.open).toEqual({ day: 22 * HOUR_MS, week: 6 * DAY_MS, rest: 23 * DAY_MS });
    expect(seen.newestMs).toBe(NOW - 1000);
  });

  test('live work closes a short gap; a long one waits its turn as history', () => {
    const fromMs = NOW - 20 * DAY_MS;
    const short = view([span(fromMs, NOW - 5 * HOUR_MS), span(NOW - HOUR_MS, NOW)], { fromMs });
    expect(short.liveGap).toEqual({ fromMs: NOW - 5 * HOUR_MS, toMs: NOW - HOUR_MS });
    expect(short.open).toEqual({ day: 0, week: 0, rest: 0 });
    const long = view([span(fromMs, NOW - 9 * DAY_MS), span(NOW - HOUR_MS, NOW)], { fromMs });
    expect(long.liveGap).toBeNull();
    expect(long.open).toEqual({ day: 23 * HOUR_MS, week: 6 * DAY_MS, rest: 2 * DAY_MS });
  });

  test('the newest range is no gap, and a silent device shows its last reading', () => {
    const silent = view([span(NOW - 30 * DAY_MS, NOW - HOUR_MS, NOW - 12 * DAY_MS)]);
    expect(silent).toEqual({
      newestMs: NOW - 12 * DAY_MS,
      coveredToMs: NOW - HOUR_MS,
      liveGap: null,
      open: { day: 0, week: 0, rest: 0 },
    });
    expect(view([span(NOW - 30 * DAY_MS, NOW - HOUR_MS, null)]).newestMs, 'none ever: up to when').toBe(NOW - HOUR_MS);
  });

  test('named gaps rest', () => {
    const fromMs = NOW - 20 * DAY_MS;
    const held = [span(fromMs, NOW - 5 * HOUR_MS), span(NOW - HOUR_MS, NOW)];
    const resting = [span(NOW - 5 * HOUR_MS, NOW - HOUR_MS)];
    expect(view(held, { fromMs, resting })).toMatchObject({ liveGap: null, open: { day: 0, week: 0, rest: 0 } });
  });

  test('gap and history together are all that is missing below the newest range, for any coverage', () => {
    const edges = fc.uniqueArray(fc.integer({ min: 1, max: 40 * 24 }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(edges, (hours) => {
        const at = hours.toSorted((a, b) => a - b).map((hour) => NOW - 40 * DAY_MS + hour * HOUR_MS);
        const covered = at.flatMap((fromMs, index) => {
          const toMs = at[index + 1];
          return index % 2 === 0 && toMs !== undefined ? [span(fromMs, toMs)] : [];
        });
        const { liveGap, open } = view(covered);
        const top = covered.at(-1);
        const below = { from: msToNs(NOW - 30 * DAY_MS), to: top?.from ?? 0n };
        const missing = subtract(normalize([below]), normalize(covered));
        const reported = open.day + open.week + open.rest + (liveGap === null ? 0 : liveGap.toMs - liveGap.fromMs);
        expect(reported).toBe(nsToMs(lengthNs(missing)));
      }),
    );
  });
});
