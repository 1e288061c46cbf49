/**
 * What a backfill counts of its own requests and pages, and the rate that its estimate goes by.
 */
import { describe, expect, test } from 'vitest';
import { MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import { createBackfillTally } from '../../src/scheduler/backfill.ts';

function tallyAt() {
  const now = { ms: 0 };
  return { now, tally: createBackfillTally({ monoMs: () => now.ms }) };
}

describe('the tally of a backfill', () => {
  test('counts requests, and the readings and points of committed pages', () => {
    const { tally } = tallyAt();
    tally.sent();
    tally.sent();
    tally.committed({ lane: 'backfill', newReadings: 200, newPoints: 600 });
    tally.committed({ lane: 'backfill', newReadings: 3, newPoints: 9 });
    expect(tally.counts()).toEqual({ requests: 2, readings: 203, points: 609 });
  });

  test('knows no rate before three requests, then the one of the time since it began', () => {
    const { now, tally } = tallyAt();
    tally.sent();
    now.ms = 30 * SECOND_MS;
    tally.sent();
    expect(tally.perMinute()).toBeNull();
    now.ms = MINUTE_MS;
    tally.sent();
    expect(tally.perMinute()).toBe(3);
  });

  test('lets the rate go by the last five minutes, and answering changes nothing', () => {
    const { now, tally } = tallyAt();
    for (let sent = 0; sent < 100; sent += 1) tally.sent();
    now.ms = 6 * MINUTE_MS;
    for (let sent = 0; sent < 10; sent += 1) tally.sent();
    expect([tally.perMinute(), tally.perMinute()]).toEqual([2, 2]);
    now.ms = 12 * MINUTE_MS;
    expect(tally.perMinute()).toBeNull();
    expect(tally.counts().requests).toBe(110);
  });

  test('goes by the newest thousand requests where there are more', () => {
    const { now, tally } = tallyAt();
    for (let sent = 0; sent < 2000; sent += 1) {
      now.ms += 60;
      tally.sent();
    }
    expect(tally.perMinute()).toBeCloseTo(1000, -1);
  });
});
