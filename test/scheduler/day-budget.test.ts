/** The day's budget: how it is spread, its reserve for live work, restarts, other clients, and changes of the plan. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/time.ts';
import {
  budgetAfterRequest,
  type DayBudget,
  type DayFigures,
  deficitAt,
  fillRate,
  freeAtMs,
  requestRate,
  spareAt,
  unlimitedDay,
  withFigures,
} from '../../src/scheduler/day-budget.ts';

const FIGURES: DayFigures = { limit: 5000, budget: 4000, spent: 0, others: null };

/** The budget of 80 % of a limit, by its first figures. */
const dayOf = (figures: DayFigures): DayBudget => withFigures(unlimitedDay(0.8), figures, 0);

/** Sends whenever it may: the times, and the budget after them. */
function sendAll(first: DayBudget, [fromMs, untilMs]: readonly [number, number], isLive = true) {
  let day = first;
  const sent: number[] = [];
  for (let nowMs = fromMs; nowMs < untilMs; ) {
    const freeMs = freeAtMs(day, isLive, nowMs);
    if (freeMs > nowMs) {
      nowMs = freeMs;
      continue;
    }
    day = budgetAfterRequest(day, nowMs);
    sent.push(nowMs);
    nowMs += 1000;
  }
  return { sent, day };
}

describe("the day's budget", () => {
  test('does not change when the time of the next request is read', () => {
    const { day } = sendAll(dayOf(FIGURES), [0, HOUR_MS]);
    const freeMs = freeAtMs(day, false, HOUR_MS);
    expect(freeMs).toBeGreaterThan(HOUR_MS);
    freeAtMs(day, true, DAY_MS);
    expect(freeAtMs(day, false, HOUR_MS)).toBe(freeMs);
  });

  test('gathers at the rate of its time: a larger budget counts from when it is known', () => {
    let day = dayOf(FIGURES);
    for (let count = 0; count < 120; count += 1) day = budgetAfterRequest(day, 0);
    // Half an hour brings 81 requests by the old budget. By the new one it would be 8,000, more than the reserve.
    day = withFigures(day, { ...FIGURES, limit: 500_000, budget: 400_000 }, HOUR_MS / 2);
    expect(spareAt(day, HOUR_MS / 2)).toBe(0);
    // The missing requests have been refilled when the first request below live work may go.
    const deficit = deficitAt(day, HOUR_MS / 2);
    expect(deficit).toBeGreaterThan(0);
    const freeMs = freeAtMs(day, false, HOUR_MS / 2);
    expect((deficit + 1) / fillRate(day)).toBeCloseTo(freeMs - HOUR_MS / 2, -2);
    expect(deficitAt(day, freeMs)).toBe(0);
  });

  test('is used all but wholly, evenly, and never exceeded in any 24 hours', () => {
    const { sent } = sendAll(dayOf(FIGURES), [0, 3 * DAY_MS]);
    expect(sent.length).toBeGreaterThan(0.95 * 3 * 4000);
    for (let first = 0; first < sent.length; first += 1) {
      expect((sent[first + 4000] ?? Infinity) - (sent[first] ?? 0)).toBeGreaterThanOrEqual(DAY_MS);
    }
    const hours = Array.from({ length: 70 }, (_, hour) => sent.filter((at) => Math.floor(at / HOUR_MS) === hour + 1));
    for (const hour of hours) expect(Math.abs(hour.length - 4000 / 24)).toBeLessThan(7);
    expect(hours[0]?.length, 'the first hours burn nothing').toBeLessThan(170);
  });

  test('is never exceeded whatever the rests between', () => {
    const rests = fc.array(fc.integer({ min: 0, max: 10 * HOUR_MS }), { minLength: 5, maxLength: 30 });
    fc.assert(
      fc.property(rests, fc.integer({ min: 1, max: 400 }), (pauses, budget) => {
        let day = dayOf({ limit: budget / 0.8, budget, spent: 0, others: null });
        const sent: number[] = [];
        let nowMs = 0;
        for (const pauseMs of pauses) {
          const sending = sendAll(day, [nowMs, nowMs + 30 * MINUTE_MS]);
          day = sending.day;
          sent.push(...sending.sent);
          nowMs += 30 * MINUTE_MS + pauseMs;
        }
        for (let first = 0; first + budget < sent.length; first += 1) {
          expect((sent[first + budget] ?? 0) - (sent[first] ?? 0)).toBeGreaterThanOrEqual(DAY_MS - 1);
        }
      }),
      { numRuns: 50 },
    );
  });

  test('keeps a reserve for live work', () => {
    const first = sendAll(dayOf(FIGURES), [0, 1], false);
    let { day } = first;
    expect(first.sent).toHaveLength(1);
    for (let count = 1; freeAtMs(day, false, 0) === 0; count += 1) {
      expect(count).toBeLessThan(100);
      day = budgetAfterRequest(day, 0);
    }
    expect(freeAtMs(day, true, 0), 'live work goes on').toBe(0);
  });

  test('a restart returns nothing: the requests before it count', () => {
    const day = dayOf({ ...FIGURES, spent: 2000 });
    expect(freeAtMs(day, true, 0)).toBeGreaterThan(0);
  });

  test('is not spread where no limit is known', () => {
    let day = unlimitedDay(0.8);
    expect(requestRate(day)).toBe(Infinity);
    day = withFigures(day, { limit: null, budget: null, spent: 9, others: null }, 0);
    expect(sendAll(day, [0, HOUR_MS]).sent).toHaveLength(3600);
  });

  test('others are yielded to, as much as they were seen to use, for two days', () => {
    let day = dayOf(FIGURES);
    const alone = requestRate(day);
    day = withFigures(day, { ...FIGURES, others: 1500 }, HOUR_MS);
    const beside = requestRate(day);
    expect(beside * DAY_MS).toBeLessThan(5000 - 1500 - 500);
    expect(beside * DAY_MS).toBeGreaterThan(0.9 * (5000 - 1500 - 600));
    for (let hour = 1; hour <= 10; hour += 1) day = withFigures(day, { ...FIGURES, others: 1500 }, hour * HOUR_MS);
    expect(requestRate(day), 'a figure that stands still is no news').toBe(beside);
    day = withFigures(day, { ...FIGURES, others: 200 }, 10 * HOUR_MS);
    expect(requestRate(day), 'they have their habits').toBe(beside);
    day = withFigures(day, { ...FIGURES, others: 210 }, 3 * DAY_MS);
    expect(requestRate(day)).toBe(alone);
  });

  test('a plan that grows or shrinks is followed at once', () => {
    let day = dayOf(FIGURES);
    const before = requestRate(day);
    day = withFigures(day, { ...FIGURES, limit: 10_000, budget: 8000 }, 1);
    expect(requestRate(day)).toBeCloseTo(2 * before);
    day = withFigures(day, { ...FIGURES, limit: 500, budget: 400 }, 2);
    expect(requestRate(day)).toBeCloseTo(before / 10);
  });

  test('the limit of the minute counts where it is lower', () => {
    let day = dayOf({ ...FIGURES, minuteBudget: 1 });
    expect(requestRate(day)).toBe(1 / MINUTE_MS);
    day = withFigures(day, { limit: null, budget: null, spent: 0, others: null, minuteBudget: 48 }, 1);
    expect(requestRate(day)).toBe(48 / MINUTE_MS);
  });
});
