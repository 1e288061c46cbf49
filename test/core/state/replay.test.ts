/** When a replay goes on with what was begun, and reports of a daemon of another version. */
import { expect, test } from 'vitest';
import type { ReplayArgs } from '../../../src/core/state/job-args.ts';
import {
  canResume,
  NO_COUNTS,
  type ReplayState,
  readReplayReports,
  readReplaySummary,
} from '../../../src/core/state/replay.ts';
import { DAY_MS } from '../../../src/core/time.ts';

const ARGS: ReplayArgs = {
  destination: null,
  devices: ['a', 'b'],
  typed: { from: '7d', to: null },
  from: '1',
  to: '2',
  maxRate: null,
};
const BEFORE = { args: ARGS, begunMs: 1000 } as ReplayState;

test.each<[string, Partial<ReplayArgs>, number, boolean]>([
  ['unchanged arguments', {}, 0, true],
  ['unchanged devices in another order', { devices: ['b', 'a'] }, 0, true],
  ['unchanged arguments that mean another time by now', { from: '5', to: '9' }, DAY_MS, true],
  ['another rate, which changes none of the lines', { maxRate: 5 }, 0, true],
  ['another device', { devices: ['a'] }, 0, false],
  ['another beginning', { typed: { from: '8d', to: null } }, 0, false],
  ['an end', { typed: { from: '7d', to: '1d' } }, 0, false],
  ['unchanged arguments almost a week later', {}, 7 * DAY_MS - 1, true],
  ['unchanged arguments a week later', {}, 7 * DAY_MS, false],
])('%s: continues, or begins anew', (_what, changes, laterMs, isSame) => {
  expect(canResume(BEFORE, { ...ARGS, ...changes }, 1000 + laterMs)).toBe(isSame);
});

const REPORT = {
  ...NO_COUNTS,
  name: 'influx',
  outcome: 'running',
  from: '2026-01-01T00:00:00Z',
  devices_done: 0,
  devices: 1,
};

test('reports are read with the additions of a later version, and not where a figure is missing', () => {
  expect(readReplayReports([{ ...REPORT, later: 1 }])).toHaveLength(1);
  expect(readReplayReports([])).toEqual([]);
  const wrong = [null, REPORT, [REPORT, null], [{ ...REPORT, lines: '1' }], [{ ...REPORT, from: null }]];
  expect(wrong.map(readReplayReports)).toEqual(wrong.map(() => null));
});

test.each<[string, unknown, boolean]>([
  ['a whole one', { outcome: 'complete', exit_code: 0, destinations: [REPORT] }, true],
  ['one that still runs', { outcome: 'running', exit_code: 0, destinations: [] }, false],
  ['one with an exit code that the program has not', { outcome: 'stalled', exit_code: 4, destinations: [] }, false],
  ['one with reports that are none', { outcome: 'complete', exit_code: 0, destinations: [{}] }, false],
])('a summary: %s', (_what, value, isRead) => {
  expect(readReplaySummary(value) !== null).toBe(isRead);
});
