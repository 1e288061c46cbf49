/** Arguments of jobs: those of another version are accepted or refused completely. */
import { describe, expect, test } from 'vitest';
import {
  argumentsNotUnderstood,
  filterArgs,
  filterOf,
  isBackfillArgs,
  isEmptyObject,
  isFilterArgs,
  isForgetArgs,
  isRepairArgs,
  isReplayArgs,
  isSampleArgs,
  missingChangeOf,
  rangeText,
  readRepairSummary,
} from '../../../src/core/state/job-args.ts';

const BACKFILL = { from: '1', to: null, devices: [], maxShare: null, finishByMs: null };
const SAMPLE = { windows: 3, from: null, to: '9', devices: ['a'], repair: false };
const REPLAY = { destination: null, devices: [], typed: { from: null, to: '1d' }, from: '1', to: '2', maxRate: null };
const FILTER = { destination: 'influx', devices: ['a'], reason: null, from: '-1', to: null };
const REPAIR = { windows: [['a', '1', '2']], destination: 'influx', found: [['a', '1', '2', 3]], missed: [] };

test.each<[string, (value: unknown) => boolean, unknown]>([
  ['a backfill', isBackfillArgs, BACKFILL],
  ['a backfill of all there is', isBackfillArgs, { ...BACKFILL, from: 'all', begunTo: '5' }],
  ['a backfill as typed', isBackfillArgs, { ...BACKFILL, typed: { from: '1d', to: null, finishBy: null } }],
  ['a backfill with a pace', isBackfillArgs, { ...BACKFILL, maxShare: 1, finishByMs: 5 }],
  ['a sample', isSampleArgs, SAMPLE],
  ['a replay', isReplayArgs, { ...REPLAY, maxRate: 1 }],
  ['a filter', isFilterArgs, FILTER],
  ['a repair', isRepairArgs, REPAIR],
  ['a repair with points that may still be missing', isRepairArgs, { ...REPAIR, missed: [['a', '1', '2', 3, 4]] }],
  ['a device to forget', isForgetArgs, { device: '' }],
  ['no arguments', isEmptyObject, {}],
])('%s is understood, also as JSON', (_what, is, value) => {
  expect([is(value), is(JSON.parse(JSON.stringify(value)))]).toEqual([true, true]);
});

describe('unknown arguments', () => {
  const checks = [isBackfillArgs, isSampleArgs, isReplayArgs, isFilterArgs, isRepairArgs, isForgetArgs, isEmptyObject];
  test.each([[null], [[]], ['all'], [1], [undefined]])('%j is the arguments of no job', (value) => {
    expect(checks.map((is) => is(value))).toEqual(checks.map(() => false));
  });

  test.each<[string, (value: unknown) => boolean, unknown]>([
    ['a backfill from a date', isBackfillArgs, { ...BACKFILL, from: '2026-01-01' }],
    ['a backfill from a number, which may have lost digits', isBackfillArgs, { ...BACKFILL, from: 1 }],
    ['a backfill from before 1970', isBackfillArgs, { ...BACKFILL, from: '-1' }],
    ['a backfill with 20 digits', isBackfillArgs, { ...BACKFILL, to: '1'.repeat(20) }],
    ['a backfill typed as a number', isBackfillArgs, { ...BACKFILL, typed: { from: 1, to: null, finishBy: null } }],
    ['a backfill that may take nothing', isBackfillArgs, { ...BACKFILL, maxShare: 0 }],
    ['a backfill that may take too much', isBackfillArgs, { ...BACKFILL, maxShare: 1.01 }],
    ['a backfill that ends at no time', isBackfillArgs, { ...BACKFILL, finishByMs: Number.NaN }],
    ['a backfill of something that is no id', isBackfillArgs, { ...BACKFILL, devices: [1] }],
    ['a sample of half a window', isSampleArgs, { ...SAMPLE, windows: 0.5 }],
    ['a sample without its repair', isSampleArgs, { ...SAMPLE, repair: undefined }],
    ['a replay without the typed words', isReplayArgs, { ...REPLAY, typed: null }],
    ['a replay without an end', isReplayArgs, { ...REPLAY, to: null }],
    ['a replay that does not move', isReplayArgs, { ...REPLAY, maxRate: 0 }],
    ['a filter with a member that is not known', isFilterArgs, { ...FILTER, sensor: 'x' }],
    ['a filter without one of its members', isFilterArgs, { ...FILTER, reason: undefined, from: undefined }],
    ['a device to forget, and something more', isForgetArgs, { device: 'a', force: true }],
    ['a repair of half a range', isRepairArgs, { ...REPAIR, windows: [['a', '1']] }],
    ['a repair of no count', isRepairArgs, { ...REPAIR, found: [['a', '1', '2', '3']] }],
    ['something where nothing is taken', isEmptyObject, { a: 1 }],
  ])('%s', (_what, is, value) => {
    expect(is(value)).toBe(false);
  });

  test('is refused with what to do about it', () => {
    expect(argumentsNotUnderstood()).toMatchObject({
      exitCode: 3,
      message: expect.stringContaining('Update the older of the two, restart the daemon, and run the command again.'),
    });
  });
});

test('a filter comes back from its arguments as it was, to the nanosecond', () => {
  const filter = { destination: 'influx', devices: ['a'], reason: 'no', from: 1_700_000_000_123_456_789n, to: null };
  const kept: unknown = JSON.parse(JSON.stringify(filterArgs(filter)));
  expect(isFilterArgs(kept)).toBe(true);
  expect(filterOf(kept)).toEqual(filter);
});

test('a repair becomes a change of the missing points, also one by an older version', () => {
  const [device, from, to] = rangeText('a', 1_700_000_000_123_456_789n, 2_000_000_000_000_000_000n);
  const change = missingChangeOf({
    windows: [],
    destination: 'influx',
    found: [[device, from, to, 3]],
    missed: [[device, from, to, 5, 2]],
  });
  const range = { deviceId: 'a', fromNs: 1_700_000_000_123_456_789n, toNs: 2_000_000_000_000_000_000n };
  expect(change).toEqual({
    found: [{ ...range, points: 3, left: 0 }],
    missed: [{ ...range, points: 5, left: 2, reason: 'cleared' }],
  });
});

test('the summary of a repair is read without the additions of a later version, and refused where it is another', () => {
  const summary = { read: 1, requests: 2, delivered: true, reason: null };
  expect(readRepairSummary({ ...summary, more: 1 })).toEqual(summary);
  const wrong = [null, { ...summary, read: '1' }, { ...summary, delivered: 1 }, { ...summary, reason: undefined }];
  expect(wrong.map(readRepairSummary)).toEqual([null, null, null, null]);
});
