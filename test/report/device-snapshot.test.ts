/** The snapshot of one device. */
import { describe, expect, test } from 'vitest';
import { createFilter } from '../../src/core/filter.ts';
import { type CoverageNow, NOTHING_COVERED } from '../../src/core/state/telemetry.ts';
import { formatExact, HOUR_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import type { SyncSettings } from '../../src/ingest/context.ts';
import { wantedAt } from '../../src/ingest/wanted-range.ts';
import { type DeviceSnapshot, type SnapshotView, snapshotDevice, sumUp } from '../../src/report/device-snapshot.ts';
import { device } from '../store/support.ts';

const NOW_MS = Date.UTC(2026, 5, 15, 12);

function viewAt(
  range: Pick<SyncSettings, 'history' | 'gracePeriodMs'>,
  nowMs: number,
  openSeconds: number,
): SnapshotView {
  const filter = createFilter({ include: [], exclude: [], excludeSensors: [], includesLocation: true });
  const settings = { ...range, filter };
  const wantedRange = wantedAt(settings, { nowMs, passedMs: nowMs });
  const context = { settings, nextReadingMs: () => null } as unknown as SnapshotView['context'];
  return { context, wantedRange, openSeconds };
}

/** The lag of a device that the last list shows as quiet, when no list was read for so long. */
function quietAfter(seconds: number): number | null {
  const nowMs = NOW_MS + seconds * 1000;
  const seen = msToNs(NOW_MS - 6 * HOUR_MS);
  const covered = [{ from: msToNs(NOW_MS - 48 * HOUR_MS), to: seen + 1n, first: null, last: { at: seen, digest: '' } }];
  const settings = { history: { kind: 'since', since: covered[0]?.from ?? 0n }, gracePeriodMs: 119_000 } as const;
  const listed = {
    record: device('d', { lastSeenAt: seen }),
    name: 'd',
    firstListedMs: 0,
    lastListedMs: NOW_MS,
    goneSinceMs: null,
  };
  return snapshotDevice(viewAt(settings, nowMs, 420), listed, { ...NOTHING_COVERED, covered, newestNs: seen }).status
    .lag_seconds;
}

type Hours = readonly (readonly [from: number, to: number])[];

function snapshotOf(hours: Hours, openSeconds: number): DeviceSnapshot {
  const at = (hour: number): bigint => msToNs(NOW_MS + hour * HOUR_MS);
  const covered = hours.map(([from, to]) => ({ from: at(from), to: at(to), first: null, last: null }));
  const known: CoverageNow = { ...NOTHING_COVERED, covered };
  const settings = { history: { kind: 'age', ageMs: 48 * HOUR_MS }, gracePeriodMs: 2 * MINUTE_MS } as const;
  const listed = {
    record: device('d', { lastSeenAt: null }),
    name: 'd',
    firstListedMs: 0,
    lastListedMs: NOW_MS,
    goneSinceMs: null,
  };
  return snapshotDevice(viewAt(settings, NOW_MS, openSeconds), listed, known);
}

function coveredOf(...hours: Hours): readonly (readonly string[])[] {
  return snapshotOf(hours, 0).status.covered;
}

test('the newest range is no missing part until the device is behind', () => {
  // Covered up to six minutes ago; the grace period is two of them.
  expect(snapshotOf([[-49, -0.1]], 420).share).toBe(1);
  expect(snapshotOf([[-49, -0.1]], 200).share).toBeCloseTo(1 - 239 / (48 * 3600 - 121), 6);
  expect(
    snapshotOf(
      [
        [-49, -24],
        [-23, -0.1],
      ],
      420,
    ).share,
  ).toBeCloseTo(47 / 48, 3);
  expect(snapshotOf([], 420).share).toBe(0);
});

describe('the lag of a device that reports nothing new', () => {
  test.each([
    [0, 0],
    [120, 0],
    [180, 60],
    [3600, 3480],
  ])('%s s after the last device list', (afterSeconds, lag) => {
    expect(quietAfter(afterSeconds)).toBe(lag);
  });
});

const text = (hour: number): string => formatExact(msToNs(NOW_MS + hour * HOUR_MS));

test('the lag is not known while most devices have none yet, but for one that is late', () => {
  const lagOf = (...lags: (number | null)[]) => {
    const snapshots = lags.map((lag_seconds, at): DeviceSnapshot => {
      const status = {
        device_id: `d${at}`,
        device_name: 'd',
        state: 'catching-up',
        active: true,
        newest_reading_at: null,
        lag_seconds,
        covered: [],
        gaps: [],
      };
      return {
        status,
        isExcluded: false,
        isGone: false,
        resting: null,
        isInitial: true,
        isCurrent: lag_seconds === null,
        share: 0,
      } as DeviceSnapshot;
    });
    const { median_seconds, p95_seconds, max_seconds } = sumUp(snapshots, 60).lag;
    return [median_seconds, p95_seconds, max_seconds];
  };
  expect(lagOf(0, null, null)).toEqual([null, null, null]);
  expect(lagOf(61, null, null)).toEqual([null, null, 61]);
  expect(lagOf(0, 5, null)).toEqual([0, 5, 5]);
  expect(lagOf()).toEqual([null, null, null]);
});

test('only active devices are silent, and the first are named; others are out of service, by their status', () => {
  const silent = (device_name: string, resting: string | null): DeviceSnapshot =>
    ({
      status: {
        ...{ device_id: device_name, device_name, state: 'silent', active: resting === null },
        ...{ newest_reading_at: text(-3), lag_seconds: 0, covered: [], gaps: [] },
      },
      ...{ isExcluded: false, isGone: false, resting, isInitial: false, isCurrent: true, share: 1 },
    }) satisfies DeviceSnapshot;
  const found = [silent('a', null), silent('b', 'retired'), silent('c', 'paused'), silent('d', 'retired')];
  const first = [{ name: 'a', newestAt: text(-3) }];
  expect(sumUp(found, 60).silent).toEqual({ devices: 1, first, resting: { retired: 2, paused: 1 } });
  const many = Array.from({ length: 2000 }, (_, index) => silent(`d${index}`, null));
  expect(sumUp(many, 60).silent.first).toHaveLength(4);
});

describe('the covered ranges of a device', () => {
  test('are shown as they are up to the present', () => {
    expect(coveredOf([-48, -20], [-3, 0])).toEqual([
      [text(-48), text(-20)],
      [text(-3), text(0)],
    ]);
  });

  test("end at the API's present, whatever a clock that was ahead has covered beyond it", () => {
    expect(coveredOf([-3, 24 * 400], [24 * 500, 24 * 501])).toEqual([[text(-3), text(0)]]);
  });
});
