/**
 * The counts of a process, and the remaining time of a running job that does not report it itself.
 */
import { expect, test } from 'vitest';
import type { Job } from '../../src/core/state/jobs.ts';
import { MINUTE_MS } from '../../src/core/time.ts';
import { countsFromNow, createJobSpeeds } from '../../src/report/figures.ts';

const progressAt = (share: number) => ({
  totals: { devices: 1, devices_complete: 0, archived_readings: 0, requests: 0, covered_share: share },
  destinations: [],
  allowance: { waiting_until: null },
});

const job = (id: number, progress: unknown): Job => ({
  id,
  kind: 'once',
  args: {},
  requestedBy: '--once',
  state: 'running',
  isCancelRequested: false,
  followerBeat: 0,
  workerBeat: 0,
  progress,
  end: null,
});

test('the counts of a process begin at 0, however much the state has', () => {
  let totals = { readings: 354_037, points: 1, lines: 1, bytes: 1, rejectedRecords: 0, requests: 442 };
  const counts = countsFromNow({ totals: () => totals });
  expect(counts()).toEqual({ archived_readings: 0, requests: 0 });
  totals = { ...totals, readings: 354_041, requests: 445 };
  expect(counts()).toEqual({ archived_readings: 4, requests: 3 });
});

test('the remaining time of a job follows from its reported progress, however often it is read', () => {
  const now = { ms: 0 };
  const open: number[] = [1];
  const speeds = createJobSpeeds({ monoMs: () => now.ms }, () => open);
  speeds.note(1, progressAt(0.5));
  now.ms = MINUTE_MS;
  speeds.note(1, progressAt(0.6));
  const figures = [{ kind: 'once', share: 0.6, etaSeconds: expect.closeTo(240, 5) }];
  expect(speeds.figures([job(1, progressAt(0.6))])).toEqual(figures);
  expect(speeds.figures([job(1, progressAt(0.6))])).toEqual(figures);
  // Of one that has reported nothing since this process began, polling alone begins no measurement.
  expect(speeds.figures([job(2, progressAt(0.1))])).toEqual([{ kind: 'once', share: 0.1, etaSeconds: null }]);
  now.ms = 2 * MINUTE_MS;
  expect(speeds.figures([job(2, progressAt(0.4))])).toEqual([{ kind: 'once', share: 0.4, etaSeconds: null }]);
});
