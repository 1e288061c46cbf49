/** A retention that a database does not report: what shows it, and what does not. */
import { describe, expect, test } from 'vitest';
import { emptyFindings, type FoundDay } from '../../../src/commands/verify/examine.ts';
import {
  type AgeFacts,
  adviceOnHidden,
  countSearched,
  createAgeSearch,
  searchDay,
} from '../../../src/commands/verify/retention.ts';
import { DAY_MS, DAY_NS, dayStart, HOUR_MS, HOUR_NS, MINUTE_MS, MINUTE_NS } from '../../../src/core/time.ts';

const NOW = dayStart(30);
const NOW_MS = 30 * DAY_MS;
const EDGE = dayStart(10) + 5n * HOUR_NS;

interface Day {
  readonly missing?: number;
  readonly not_in_archive?: number;
  readonly newestMissing?: bigint | null;
  readonly oldestFound?: bigint | null;
  readonly deviceId?: string;
}

function found(
  day: number,
  { missing = 0, not_in_archive = 0, newestMissing = null, oldestFound = null, deviceId = 'a' }: Day,
): FoundDay {
  const archived = { day, readings: 5, texts: 0, points: 50, hashHigh: 0, hashLow: 0 };
  const findings = { ...emptyFindings(), missing, not_in_archive };
  return { deviceId, day, archived, findings, sent: missing - not_in_archive, cleared: [], newestMissing, oldestFound };
}

/** Days before the edge that are missing, the day of the edge, and later ones. */
const OLD = found(8, { missing: 50, newestMissing: dayStart(9) - 1n });
const CLEARED = found(9, { missing: 50, not_in_archive: 50 });
const PARTED = found(10, { missing: 20, not_in_archive: 5, newestMissing: EDGE - 1n, oldestFound: EDGE });
const EQUAL = found(11, {});

function search(days: readonly FoundDay[], facts: Partial<AgeFacts> = {}) {
  const ages = createAgeSearch();
  const counted = days.filter((day) => !searchDay(ages, day));
  const count = (day: FoundDay): void => void counted.push(day);
  const hidden = countSearched(ages, {
    isSearched: true,
    retentionMs: null,
    beganMs: NOW_MS,
    endedMs: NOW_MS,
    isResent: true,
    isWhole: true,
    earlier: null,
    missing: () => [],
    count,
    ...facts,
  });
  const sums = counted.reduce(
    (sum, { findings }) => ({
      missing: sum.missing + findings.missing,
      not_in_archive: sum.not_in_archive + findings.not_in_archive,
      known: sum.known + findings.known_missing,
    }),
    { missing: 0, not_in_archive: 0, known: 0 },
  );
  return { ...hidden, sums, counted: counted.length };
}

describe('missing points before an instant, and none after it', () => {
  test('are known to be missing once they were sent again; of the day of the instant those with their lines', () => {
    const { days, before, sums, counted } = search([OLD, CLEARED, PARTED, EQUAL]);
    expect([before, counted]).toEqual([EDGE, 4]);
    expect(sums).toEqual({ missing: 5, not_in_archive: 5, known: 115 });
    expect(days).toEqual([
      ['a', `${dayStart(8)}`, `${dayStart(9)}`, 50],
      ['a', `${dayStart(9)}`, `${dayStart(10)}`, 50],
      ['a', `${dayStart(10)}`, `${EDGE}`, 15],
    ]);
  });

  test('stay differences while they were not sent again, unless that was recorded before', () => {
    const first = search([OLD, PARTED, EQUAL], { isResent: false });
    expect(first).toMatchObject({ before: EDGE, days: [], sums: { missing: 70, known: 0 } });
    const row = { deviceId: 'a', fromNs: 0n, toNs: DAY_NS, reason: 'beyond_retention', points: 9 } as const;
    const later = search([OLD, EQUAL], { isResent: false, missing: () => [row] });
    expect(later.sums).toMatchObject({ missing: 0, known: 50 });
    const cleared = { ...row, reason: 'cleared' } as const;
    expect(search([OLD, EQUAL], { isResent: false, missing: () => [cleared] }).sums.missing).toBe(50);
  });
});

test.each([
  ['a later point is missing too', [OLD, found(20, { missing: 1, newestMissing: dayStart(20) }), EQUAL]],
  [
    'an older point is there',
    [found(9, { missing: 9, newestMissing: dayStart(9) + 9n, oldestFound: dayStart(9) }), EQUAL],
  ],
  ['an older day of another device is there', [OLD, found(7, { deviceId: 'b' }), EQUAL]],
  [
    'the missing point is younger than any retention',
    [found(29, { missing: 1, newestMissing: NOW - HOUR_NS + 1n, oldestFound: NOW })],
  ],
  ['the archive has none of the lines', [CLEARED, EQUAL]],
])('%s: no retention', (_, days) => {
  const { before, sums } = search(days);
  expect([before, sums.known]).toEqual([null, 0]);
  expect(sums.missing).toBeGreaterThan(0);
});

describe('where nothing at all is there', () => {
  test('the database may have lost it, unless it has just accepted it again', () => {
    expect(search([OLD], { isResent: false })).toMatchObject({ before: null, estimate: null, sums: { missing: 50 } });
    const { before, sums, days, estimate } = search([CLEARED, OLD]);
    expect([before, estimate]).toEqual([dayStart(9), null]);
    // The archive has no line of the younger day, so none was sent.
    expect(sums).toEqual({ missing: 50, not_in_archive: 50, known: 50 });
    expect(days).toEqual([['a', `${dayStart(8)}`, `${dayStart(9)}`, 50]]);
  });

  test('points younger than any retention show none', () => {
    const young = found(29, { missing: 1, newestMissing: NOW - HOUR_NS + 1n });
    expect(search([OLD, young])).toMatchObject({ before: null, sums: { missing: 51, known: 0 } });
  });
});

describe('two comparisons that send nothing', () => {
  /** A comparison `hours` later, over points a minute apart of which those before the edge are missing. */
  const compared = (
    edge: bigint,
    { hours = 0, ...facts }: Partial<AgeFacts> & { readonly hours?: number } = {},
  ): ReturnType<typeof search> => {
    const parted = found(10, { missing: 20, newestMissing: edge - MINUTE_NS, oldestFound: edge });
    const atMs = NOW_MS + hours * HOUR_MS;
    return search([OLD, parted, EQUAL], { beganMs: atMs, endedMs: atMs + MINUTE_MS, isResent: false, ...facts });
  };
  const first = compared(EDGE).estimate;

  test('an hour apart, which one retention explains: the points are known to be missing', () => {
    expect(first).toMatchObject({ beganMs: NOW_MS, endedMs: NOW_MS + MINUTE_MS });
    const second = compared(EDGE + 2n * HOUR_NS, { hours: 2, earlier: first });
    expect(second).toMatchObject({ sums: { missing: 0, known: 70 }, estimate: null });
    expect(second.days).toHaveLength(2);
  });

  test('less than an hour apart: the first one stays to be confirmed', () => {
    const second = compared(EDGE + HOUR_NS / 2n, { hours: 0.5, earlier: first });
    expect(second).toMatchObject({ sums: { missing: 70, known: 0 }, days: [], estimate: null });
  });

  test('whose edge has not moved on with the time: the points were deleted, and it begins again', () => {
    const second = compared(EDGE, { hours: 2, earlier: first });
    expect(second).toMatchObject({ sums: { missing: 70, known: 0 }, days: [] });
    expect(second.estimate).toMatchObject({ beganMs: NOW_MS + 2 * HOUR_MS });
  });

  test('whose edge stands still between points that are far apart: nothing is concluded', () => {
    const sparse = (hours: number, earlier: typeof first): ReturnType<typeof search> => {
      const atMs = NOW_MS + hours * HOUR_MS;
      return search([OLD, EQUAL], { beganMs: atMs, endedMs: atMs, isResent: false, earlier });
    };
    const { estimate } = sparse(0, null);
    expect(sparse(24, estimate)).toMatchObject({ sums: { missing: 50, known: 0 }, days: [], estimate: null });
  });

  test('one of them of single devices, or of a clock that was set back: nothing is concluded', () => {
    const edge = EDGE + 2n * HOUR_NS;
    const part = compared(edge, { hours: 2, earlier: first, isWhole: false });
    expect(part).toMatchObject({ sums: { known: 0 }, estimate: null });
    const back = { beganMs: NOW_MS + 9 * HOUR_MS, endedMs: NOW_MS + 9 * HOUR_MS, shortestMs: 0, longestMs: 1e12 };
    expect(compared(edge, { hours: 2, earlier: back }).sums.known).toBe(0);
  });
});

test('where something was not compared, nothing is concluded', () => {
  expect(search([OLD, EQUAL], { isSearched: false })).toMatchObject({ before: null, sums: { missing: 50 } });
});

test('a retention that the database reports hides what is older, and nothing else', () => {
  const retentionMs = NOW_MS - Number(EDGE / 1_000_000n);
  const late = found(12, { missing: 3, newestMissing: dayStart(12) + 9n });
  expect(search([OLD, CLEARED, PARTED, EQUAL, late], { retentionMs, isResent: false })).toMatchObject({
    before: EDGE,
    estimate: null,
    sums: { missing: 8, known: 115 },
  });
  const younger = found(10, { missing: 20, newestMissing: EDGE, oldestFound: EDGE + 1n });
  expect(search([younger], { retentionMs })).toMatchObject({ before: null, days: [], sums: { missing: 20 } });
  const verdict = {
    name: 'influx',
    kind: 'victoriametrics' as const,
    hidden_before: '2026-01-01T00:00:00Z',
    missing: 0,
    known_missing: 9,
  };
  expect(adviceOnHidden({ ...verdict, pending: 0, quarantined: 0, points_compared: 9 }, true).join()).toMatch(
    /older than its retention \(-retentionPeriod\): --repair cannot add them/,
  );
});

test('the text has a remedy, or the meaning', () => {
  const counts = { pending: 0, quarantined: 0, points_compared: 20 };
  const verdict = {
    name: 'influx',
    kind: 'influxdb' as const,
    hidden_before: '2026-01-01T00:00:00Z',
    missing: 9,
    known_missing: 0,
    ...counts,
  };
  expect(adviceOnHidden(verdict, false).join()).toContain('Run --verify again in an hour');
  expect(adviceOnHidden({ ...verdict, missing: 0, known_missing: 9 }, true).join()).toContain(
    'although it accepts older points',
  );
  const none = adviceOnHidden({ ...verdict, missing: 0, known_missing: 19, pending: 1 }, true).join();
  expect(none).toContain('shows none of them: all are older than its retention');
  expect(adviceOnHidden({ ...verdict, hidden_before: null }, false)).toEqual([]);
});
