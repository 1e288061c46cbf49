/**
 * The collected findings about a destination: by device, so that a device that is compared once more counts in place of
 * before.
 */
import { describe, expect, test } from 'vitest';
import { emptyFindings, type FoundDay } from '../../../src/commands/verify/examine.ts';
import {
  addDay,
  type Compared,
  createTally,
  replaceDevices,
  sumTally,
  verdictUnread,
  verifyExit,
  verifyVerdict,
} from '../../../src/commands/verify/result.ts';
import { NOTHING_HIDDEN } from '../../../src/commands/verify/retention.ts';
import { verifyText } from '../../../src/commands/verify/text.ts';

const INFLUX = { name: 'influx', kind: 'influxdb' } as const;

function found(deviceId: string, change: Partial<FoundDay['findings']>, sent = 0): FoundDay {
  const archived = { day: 10, readings: 5, texts: 0, points: 50, hashHigh: 0, hashLow: 0 };
  const cleared = [{ from: 0n, to: 9n }];
  return {
    deviceId,
    day: 10,
    archived,
    findings: { ...emptyFindings(), ...change },
    sent,
    cleared,
    newestMissing: null,
    oldestFound: null,
  };
}

function compared(...days: readonly FoundDay[]): Compared {
  const tally = createTally();
  for (const day of days) addDay(tally, day);
  return { tally, problem: null, unknown: [], hidden: NOTHING_HIDDEN };
}

describe('the findings about a destination', () => {
  test('is the sum over its days; a day without a difference is not listed', () => {
    const verdict = verifyVerdict(
      INFLUX,
      compared(found('a', { missing: 2, pending: 1 }), found('b', { known_missing: 3 })),
    );
    expect(verdict).toMatchObject({
      outcome: 'different',
      missing: 2,
      pending: 1,
      known_missing: 3,
      points_compared: 100,
    });
    expect(verdict.differences).toEqual([
      {
        device_id: 'a',
        day: '1970-01-11',
        archived_points: 50,
        missing: 2,
        different: 0,
        extra: 0,
        unverifiable: 0,
        not_in_archive: 0,
      },
    ]);
    expect(verdict).not.toHaveProperty('not_in_archive');
  });

  test('extra points before sync.history lead to the advice to backfill again, those in gaps to wait', () => {
    const textOf = (findings: Parameters<typeof found>[1]): string => {
      const destinations = [verifyVerdict(INFLUX, compared(found('a', findings)))];
      return verifyText({ from: null, to: null, repair: false, destinations, sample: null }).replace(/\s+/g, ' ');
    };
    expect(textOf({ extra: 9, extra_in_gaps: 9, extra_before_history: 9 })).toMatch(
      /never deleted\. 9 of them lie before sync\.history .* run --backfill --from with the first day of the table, then --verify\. Only telemetry was compared\. /,
    );
    const both = textOf({ extra: 9, extra_in_gaps: 9, extra_before_history: 8 });
    expect(both).toContain(
      '1 of them lies in ranges that are not covered yet and may be correct. Run --verify again when the gaps are closed (--status).',
    );
    expect(both).toContain('8 of them lie before sync.history');
    expect(textOf({ extra: 9, extra_in_gaps: 9 })).not.toContain('sync.history');
  });

  test('the text ends with the kinds of points that are not compared, if there was a comparison', () => {
    const textOf = (...days: FoundDay[]): string => {
      const destinations = [verifyVerdict(INFLUX, compared(...days))];
      return verifyText({ from: null, to: null, repair: true, destinations, sample: null }).replace(/\s+/g, ' ');
    };
    expect(textOf(found('a', {}))).toMatch(
      /no differences .* Only telemetry was compared\. tidemark --replay also sends the archived device, alert, workspace and coverage points again\. $/,
    );
    expect(textOf()).not.toContain('Only telemetry');
  });

  test('different points in VictoriaMetrics that a repair may not replace lead to the advice to delete their series', () => {
    const destinations = [
      verifyVerdict({ name: 'vm', kind: 'victoriametrics' }, compared(found('a', { different: 2 }))),
    ];
    const text = verifyText({ from: null, to: null, repair: true, destinations, sample: null }).replace(/\s+/g, ' ');
    expect(text).toContain(
      'If the next --verify still lists them, delete the series of these devices there (VictoriaMetrics deletes only whole series) and run --verify --repair again. That restores only what the archive or the API still has.',
    );
  });

  test('points that a repair sent again and that are still missing are on a line of their own', () => {
    const verdict = verifyVerdict(INFLUX, compared(found('a', { missing: 5, not_in_archive: 1 }, 6)), {
      toFetch: { points: 1, readings: 1, requests: 1, devices: 1 },
    });
    const textOf = (repair: boolean): string =>
      verifyText({ from: null, to: null, repair, destinations: [verdict], sample: null }).replace(/\s+/g, ' ');
    expect(textOf(true)).toContain(
      ' repaired: 2 points sent again from the archive still missing: 4 points sent again, which the database accepted and does not return ',
    );
    expect(textOf(false)).not.toContain('still missing');
  });

  test('points that were sent again and are there now count as repaired', () => {
    expect(sumTally(compared(found('a', { missing: 5, not_in_archive: 3 }, 10)).tally)).toMatchObject({ repaired: 8 });
  });

  test('a second comparison of a device replaces the first, and keeps its repairs', () => {
    const first = compared(found('a', { missing: 5, not_in_archive: 5 }, 2), found('b', { extra: 1 }));
    expect(sumTally(first.tally).cleared).toHaveLength(1);
    replaceDevices(first.tally, compared(found('a', {}, 1)).tally, ['a']);
    expect(sumTally(first.tally)).toMatchObject({ repaired: 3, cleared: [], differing: 1, days: 2 });
    const verdict = verifyVerdict(INFLUX, first, { fetched: 5 });
    expect(verdict).toMatchObject({ outcome: 'different', missing: 0, extra: 1, repaired: 3, fetched: 5 });
    expect(verdict.differences.map(({ device_id }) => device_id)).toEqual(['b']);
  });

  test('for a device whose second comparison did not end, the first findings stay', () => {
    const days = [
      found('a', { missing: 5, not_in_archive: 5 }),
      { ...found('a', { missing: 4, not_in_archive: 4 }), day: 11 },
    ];
    const first = compared(...days, found('b', { missing: 3, not_in_archive: 3 }));
    const before = verifyVerdict(INFLUX, first);
    // Broken off after the first day of the first device.
    replaceDevices(first.tally, compared(found('a', {})).tally, []);
    expect(verifyVerdict(INFLUX, first)).toEqual(before);
  });

  test('a device of which nothing is there any more when it is compared once more counts no more', () => {
    const first = compared(found('a', { missing: 5, not_in_archive: 5 }), found('b', { extra: 1 }));
    replaceDevices(first.tally, compared().tally, ['a']);
    const verdict = verifyVerdict(INFLUX, first);
    expect(verdict).toMatchObject({ missing: 0, extra: 1, days_compared: 1 });
    const report = { from: null, to: null, repair: false, destinations: [verdict], sample: null };
    expect(verifyText(report)).toMatch(/ {2}compared: \d+ points of \d devices? on 1 device day\n/);
  });

  test('the text names the last compared day, not the day after it', () => {
    const textOf = (to: string, partly: number): string => {
      const verdict = { ...verifyVerdict(INFLUX, compared(found('a', {}))), days_partly_covered: partly };
      const report = { from: '2026-11-27T00:00:00Z', repair: false, destinations: [verdict], sample: null };
      return verifyText({ ...report, to }).replaceAll(/\s+/g, ' ');
    };
    const several = textOf('2026-11-29T00:00:00Z', 58);
    expect(several).toMatch(/^Telemetry: 2026-11-27 to 2026-11-28 \(whole days, UTC\) /);
    expect(several).toContain(
      '58 device days are covered in part (first day, today, or with gaps): what is stored of them was compared',
    );
    const one = textOf('2026-11-28T00:00:00Z', 1);
    expect(one).toMatch(/^Telemetry: 2026-11-27 \(whole day, UTC\) /);
    expect(one).toContain(
      '1 device day is covered in part (first day, today, or with gaps): what is stored of it was compared',
    );
  });

  test('a destination that was not read is unfinished, or equal where the archive is empty too', () => {
    expect(verdictUnread('a', 'nothing was sent')).toMatchObject({ outcome: 'unfinished', reason: 'nothing was sent' });
    expect(verdictUnread('a', null)).toMatchObject({ outcome: 'equal', kind: null, reason: null, points_compared: 0 });
  });

  test('findings for a person come before those that another run may fix', () => {
    expect([verifyExit([]), verifyExit(['equal', 'unfinished']), verifyExit(['unfinished', 'unreadable'])]).toEqual([
      0, 3, 1,
    ]);
  });
});
