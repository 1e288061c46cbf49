/** The estimated requests, readings and time of a range of history. */
import { describe, expect, test } from 'vitest';
import { DAY_MS, DAY_NS, HOUR_MS, HOUR_NS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import { maxWidthNs } from '../../src/ingest/page-request.ts';
import {
  type BackfillInput,
  backfillNeed,
  besideSupply,
  findBeginning,
  loadPerMs,
  scaleNeed,
} from '../../src/scheduler/estimate.ts';

const NOW = Date.UTC(2026, 5, 15, 12);
const NOW_NS = msToNs(NOW);

/** A range, in days from the beginning of today. */
describe('the cost of a range', () => {
  const device = { intervalMs: MINUTE_MS, isQuiet: false, lastSignMs: NOW, covered: [] };
  const need = (changes: Partial<BackfillInput> = {}) =>
    backfillNeed({
      devices: [device],
      range: { from: NOW_NS - 30n * DAY_NS, to: NOW_NS },
      now: NOW_NS,
      limit: NOW_NS,
      pageSize: 200,
      windowNs: null,
      ...changes,
    });

  test('counts pages of 199 new readings for the day, the week and the rest', () => {
    const pages = [1, 6, 23].reduce((sum, days) => sum + Math.ceil((days * 1440) / 199), 0);
    const expected = { devices: 1, openShare: 1, readings: 43_200, requests: pages };
    expect(need()).toEqual({ ...expected, assumesFullHistory: true });
  });

  test('a device is expected to begin where those did that were read as far back', () => {
    const days = (count: number): bigint => NOW_NS - BigInt(count) * DAY_NS;
    const begun = (at: number) => ({ ...device, covered: [{ from: days(30), to: NOW_NS }], beginsNs: days(at) });
    const open = (at: number) => ({ ...device, covered: [{ from: days(at), to: NOW_NS }] });
    const left = (...devices: BackfillInput['devices']) => need({ devices }).readings / 1440;
    expect(left(open(8)), 'nothing is known of the others').toBeCloseTo(22, 1);
    expect(left(begun(10), open(8)), 'one alone shows nothing').toBeCloseTo(22, 1);
    expect(left(begun(10), begun(10), begun(10), open(8)), 'all begin ten days ago').toBeCloseTo(2, 1);
    // Of four that were read back to ten days, one begins there; the open one may be the fifth.
    expect(left(begun(10), begun(30), begun(30), begun(30), open(8))).toBeCloseTo(2 + 0.75 * 20, 1);
    expect(left(begun(10), begun(12), open(15), open(15)), 'it was read further back than they reach').toBeCloseTo(
      30,
      1,
    );
    expect(left(begun(2), begun(3), begun(4), open(1)), 'one after the other').toBeCloseTo(1 + 2 / 3 + 1 / 3, 1);
    expect(left({ ...begun(10), covered: [] }), 'read again from its beginning').toBeCloseTo(10, 1);
  });

  test('a device that made nothing for days before its first reading begins there, and shows it of others', () => {
    const days = (count: number): bigint => NOW_NS - BigInt(count) * DAY_NS;
    const read = (at: number, first: number | null) => {
      const edge = first === null ? null : { at: days(first), digest: '' };
      const covered = [{ from: days(at), to: NOW_NS, first: edge, last: edge }];
      return { ...device, covered, beginsNs: findBeginning(covered, days(30)) };
    };
    // As far back as it was read; three days without a reading; covered down to the beginning.
    expect(read(7, 5).beginsNs).toBeNull();
    expect(read(7, null).beginsNs).toBeNull();
    expect(read(7, 4).beginsNs).toBe(days(4));
    expect(read(30, 29).beginsNs).toBe(days(29));
    expect(findBeginning([], days(30))).toBeNull();
    const others = [{ ...device, covered: [{ from: days(1), to: NOW_NS }] }];
    expect(need({ devices: [read(7, 4), read(7, 4), ...others] })).toMatchObject({
      readings: expect.closeTo(3 * 1440, -1),
      assumesFullHistory: false,
    });
    // Of these two, only an empty answer and its confirmation are left.
    expect(need({ devices: [read(7, 4), read(7, 4)] })).toMatchObject({ devices: 2, readings: 0, requests: 4 });
    expect(need({ devices: [read(7, 5), ...others] }).assumesFullHistory).toBe(true);
  });

  test('counts the windows of the plan, and small pages', () => {
    const rare = { ...device, intervalMs: 12 * HOUR_MS };
    expect(need({ devices: [rare] }).requests).toBe(3);
    // The rest of 23 days in windows of 7 days less an hour, the week in one.
    expect(need({ devices: [rare], windowNs: maxWidthNs(7) }).requests).toBe(1 + 1 + 4);
    expect(need({ pageSize: 50 }).requests).toBeGreaterThan(4 * 217);
    expect(need({ pageSize: 1 }).requests).toBe(43_200);
  });

  test('covered time costs nothing, and the newest hour is no history', () => {
    const own = { ...device, covered: [{ from: NOW_NS - 10n * DAY_NS, to: NOW_NS - HOUR_NS / 2n }] };
    expect(need({ devices: [own] })).toMatchObject({ devices: 1, readings: 20 * 1440 });
    const all = { ...device, covered: [{ from: NOW_NS - 40n * DAY_NS, to: NOW_NS - HOUR_NS / 2n }] };
    const none = { devices: 0, openShare: 0, readings: 0, requests: 0, assumesFullHistory: false };
    expect(need({ devices: [all] })).toEqual(none);
    const short = { from: NOW_NS - HOUR_NS / 2n, to: NOW_NS };
    expect(need({ range: short })).toMatchObject({ openShare: 1, readings: 30, requests: 1 });
    expect(need({ devices: [] })).toEqual(none);
  });

  test('a quiet device has no readings since; one that never reported needs two empty answers', () => {
    const since = { ...device, isQuiet: true, lastSignMs: NOW - 10 * DAY_MS };
    expect(need({ devices: [since] }).readings).toBe(20 * 1440);
    const never = { ...device, isQuiet: true, lastSignMs: null };
    expect(need({ devices: [never] })).toMatchObject({ readings: 0, requests: 6 });
  });

  test('dense readings: the slack uses a part of each page, a cursor the rest', () => {
    const dense = { ...device, intervalMs: 10 };
    const range = { from: NOW_NS - DAY_NS, to: NOW_NS };
    expect(need({ devices: [dense], range }).requests).toBe(86_400);
  });

  test('additional devices have no coverage; fewer devices have their share of it', () => {
    const [own, anew] = [
      { devices: 2, openShare: 0, readings: 0, requests: 0, assumesFullHistory: false },
      { devices: 2, openShare: 1, readings: 1000, requests: 10, assumesFullHistory: false },
    ];
    expect(scaleNeed(own, 3, () => anew)).toMatchObject({ devices: 6, openShare: 2 / 3, readings: 2000, requests: 20 });
    expect(scaleNeed(anew, 0.5, () => anew)).toMatchObject({ devices: 1, openShare: 1, readings: 500, requests: 5 });
  });
});

test('the load of other lanes is known where requests were sent before the ten minutes that it is measured over', () => {
  const loadOf = (...agoMs: readonly number[]): number | null =>
    loadPerMs((sinceMs) => agoMs.filter((each) => NOW - each > sinceMs).length, NOW);
  expect(loadOf()).toBeNull();
  expect(loadOf(MINUTE_MS, 9 * MINUTE_MS)).toBeNull();
  expect(loadOf(MINUTE_MS, 9 * MINUTE_MS, 10 * MINUTE_MS)).toBe(2 / (10 * MINUTE_MS));
  expect(loadOf(MINUTE_MS, 20 * MINUTE_MS)).toBeNull();
  expect(loadOf(15 * MINUTE_MS)).toBe(0);
});

test('history gets the budget of a minute, or the measured rate while the day has requests to spare', () => {
  const day = { spare: 2, deficit: 0, fillPerMs: 1, backfillReserve: 0.1 };
  const figures = { minute: 60, seenPerMs: 1 / 4000, othersPerMs: 1 / 4000 };
  const perMinute = (...[of, given]: Parameters<typeof besideSupply>): number =>
    besideSupply(of, given).minutePerMs * MINUTE_MS;
  expect(perMinute(day, figures)).toBeCloseTo(30, 9);
  expect(perMinute({ ...day, spare: 1 }, figures)).toBe(60);
  expect(perMinute(day, { ...figures, seenPerMs: null })).toBe(60);
  expect(perMinute(day, { ...figures, minute: 20 })).toBe(20);
  expect(perMinute(day, { ...figures, minute: null, seenPerMs: null })).toBe(Number.POSITIVE_INFINITY);
});
