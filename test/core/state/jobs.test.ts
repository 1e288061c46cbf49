/** The rules of jobs, and figures that a daemon of another version may have left. */
import { expect, test } from 'vitest';
import { endWith, JOB_RULES, readProgress, ruleOf } from '../../../src/core/state/jobs.ts';

test('a kind that a newer version has left has no rule, whatever it is called', () => {
  expect(['dance', '', 'toString', '__proto__', 'Once'].map(ruleOf)).toEqual([null, null, null, null, null]);
  expect(ruleOf('once')).toBe(JOB_RULES.once);
});

test('a job that continues after a restart continues without its follower too', () => {
  const resumed = Object.entries(JOB_RULES).filter(([, { isResumed }]) => isResumed);
  expect(resumed.map(([kind]) => kind)).toEqual(['backfill', 'replay']);
  expect(resumed.every(([, { isFollowed, isLong }]) => !isFollowed && isLong)).toBe(true);
});

test('an end with a summary is done, or cancelled where it was cut short', () => {
  expect(endWith({ a: 1 }, 3)).toEqual({ state: 'done', exitCode: 3, summary: { a: 1 }, message: null });
  expect(endWith({}, 0, true).state).toBe('cancelled');
});

const PROGRESS = {
  totals: { devices: 2, devices_complete: 1, archived_readings: 5, requests: 3, covered_share: 0.5 },
  destinations: [{ name: 'influx', pending_points: 1, delivered_points: 2 }],
  allowance: { waiting_until: null },
};

test.each([
  ['of this version', PROGRESS],
  [
    'without a share and a destination',
    { ...PROGRESS, totals: { ...PROGRESS.totals, covered_share: null }, destinations: [] },
  ],
  ['with an estimate', { ...PROGRESS, eta: { seconds: 5, basis: 'measured' }, waits: 'quota', requests_per_minute: 1 }],
  [
    'of a job beside the daemon',
    { ...PROGRESS, destinations: [{ name: 'influx', pending_points: 1, delivered_points: null }] },
  ],
  ['with more than is known', { ...PROGRESS, later: {} }],
])('progress %s is shown', (_what, progress) => {
  expect(readProgress(progress)).toBe(progress);
});

test.each<[string, unknown]>([
  ['nothing', null],
  ['without totals', { ...PROGRESS, totals: undefined }],
  ['with a count that is a text', { ...PROGRESS, totals: { ...PROGRESS.totals, devices: '2' } }],
  ['with a share that is none', { ...PROGRESS, totals: { ...PROGRESS.totals, covered_share: '50 %' } }],
  ['with a destination without counts', { ...PROGRESS, destinations: [{ name: 'influx' }] }],
  ['with one destination in the place of a list', { ...PROGRESS, destinations: PROGRESS.destinations[0] }],
  ['with an estimate without a basis', { ...PROGRESS, eta: { seconds: 5 } }],
  ['with a wait that is a number', { ...PROGRESS, waits: 5 }],
  ['with a time that is a number', { ...PROGRESS, allowance: { waiting_until: 5 } }],
])('progress %s is not', (_what, progress) => {
  expect(readProgress(progress)).toBeNull();
});
