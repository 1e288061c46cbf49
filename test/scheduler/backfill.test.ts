/**
 * The rules of a backfill: its range, the gaps that it requests, and the counts and the rate of its requests.
 */
import { describe, expect, test } from 'vitest';
import { MINUTE_MS, SECOND_MS } from '../../src/core/time.ts';
import {
  type BackfillGapFacts,
  backfillGaps,
  backfillRange,
  createBackfillTally,
} from '../../src/scheduler/backfill.ts';

function tallyAt() {
  const now = { ms: 0 };
  return { now, tally: createBackfillTally({ monoMs: () => now.ms }) };
}

describe('the tally of a backfill', () => {
  test('counts requests, and the readings and points of committed pages', () => {
    const { tally } = tallyAt();
    tally.noteSent();
    tally.noteSent();
    tally.noteCommitted({ lane: 'backfill', newReadings: 200, newPoints: 600 });
    tally.noteCommitted({ lane: 'backfill', newReadings: 3, newPoints: 9 });
    expect(tally.counts()).toEqual({ requests: 2, readings: 203, points: 609 });
  });

  test('knows no rate before three requests, then the one of the time since it began', () => {
    const { now, tally } = tallyAt();
    tally.noteSent();
    now.ms = 30 * SECOND_MS;
    tally.noteSent();
    expect(tally.perMinute()).toBeNull();
    now.ms = MINUTE_MS;
    tally.noteSent();
    expect(tally.perMinute()).toBe(3);
  });

  test('lets the rate go by the last five minutes, and answering changes nothing', () => {
    const { now, tally } = tallyAt();
    for (let sent = 0; sent < 100; sent += 1) tally.noteSent();
    now.ms = 6 * MINUTE_MS;
    for (let sent = 0; sent < 10; sent += 1) tally.noteSent();
    expect([tally.perMinute(), tally.perMinute()]).toEqual([2, 2]);
    now.ms = 12 * MINUTE_MS;
    expect(tally.perMinute()).toBeNull();
    expect(tally.counts().requests).toBe(110);
  });

  test('of the last minute is not that of the minutes before', () => {
    const { now, tally } = tallyAt();
    for (let sent = 0; sent < 300; sent += 1) tally.noteSent();
    now.ms = 2 * MINUTE_MS;
    for (let sent = 0; sent < 5; sent += 1) tally.noteSent();
    expect([tally.perMinute(MINUTE_MS), tally.perMinute()]).toEqual([5, 152.5]);
  });

  test('goes by the newest thousand requests where there are more', () => {
    const { now, tally } = tallyAt();
    for (let sent = 0; sent < 2000; sent += 1) {
      now.ms += 60;
      tally.noteSent();
    }
    expect(tally.perMinute()).toBeCloseTo(1000, -1);
  });
});

describe('the range of a backfill', () => {
  test('ends at the coverage limit, or earlier where an end is given', () => {
    expect(backfillRange({ from: '10', to: null }, 100n)).toEqual({ from: 10n, to: 100n });
    expect(backfillRange({ from: '10', to: '60' }, 100n)).toEqual({ from: 10n, to: 60n });
    expect(backfillRange({ from: '10', to: '200' }, 100n)).toEqual({ from: 10n, to: 100n });
  });

  test('keeps the end of its first start after a restart', () => {
    expect(backfillRange({ from: '10', to: null, begunTo: '80' }, 100n)).toEqual({ from: 10n, to: 80n });
    expect(backfillRange({ from: 'all', to: '60', begunTo: '80' }, 100n)).toEqual({ from: 0n, to: 60n });
  });

  test('is refused when it is empty', () => {
    expect(() => backfillRange({ from: '100', to: null }, 100n)).toThrow(/^--from: expected a time before/);
  });
});

const NO_READINGS = { first: null, last: null };

/** A device with one covered range, and a wanted range from 0 to 100. */
function gapsWith(facts: Partial<BackfillGapFacts>) {
  return backfillGaps({
    covered: [{ from: 40n, to: 60n, ...NO_READINGS }],
    named: [],
    wanted: { from: 0n, to: 100n },
    limit: 100n,
    isTopLeft: false,
    others: [],
    nowMs: 0,
    ...facts,
  });
}

function gapNamed(reason: 'over_quota' | 'page_rejected', retryAtMs: number) {
  return { deviceId: 'a', fromNs: 10n, toNs: 20n, reason, retryAtMs };
}

describe('the gaps that a backfill requests', () => {
  test('are the wanted ranges that are not covered, up to the coverage limit of the device', () => {
    expect(gapsWith({})).toEqual([
      { from: 0n, to: 40n },
      { from: 60n, to: 100n },
    ]);
    expect(gapsWith({ limit: 90n }).at(-1)).toEqual({ from: 60n, to: 90n });
    expect(gapsWith({ limit: null }).at(-1)).toEqual({ from: 60n, to: 100n });
  });

  test('leave the top to live work for a while, and the ranges that others request', () => {
    expect(gapsWith({ isTopLeft: true })).toEqual([{ from: 0n, to: 40n }]);
    expect(gapsWith({ isTopLeft: true, covered: [] })).toEqual([]);
    expect(gapsWith({ isTopLeft: true, others: [{ from: 0n, to: 30n }] })).toEqual([{ from: 30n, to: 40n }]);
  });

  test('leave out a gap until its next try', () => {
    const outside = [
      { from: 0n, to: 10n },
      { from: 20n, to: 40n },
    ];
    expect(gapsWith({ isTopLeft: true, named: [gapNamed('page_rejected', 5)] })).toEqual(outside);
    expect(gapsWith({ isTopLeft: true, named: [gapNamed('page_rejected', 5)], nowMs: 5 })).toEqual([
      { from: 0n, to: 40n },
    ]);
  });

  test('include ranges that live work gave up, even where live work counts them as its own', () => {
    const facts = { isTopLeft: true, named: [gapNamed('over_quota', 5)], others: [{ from: 0n, to: 30n }] };
    expect(gapsWith(facts)).toEqual([
      { from: 10n, to: 20n },
      { from: 30n, to: 40n },
    ]);
  });
});
