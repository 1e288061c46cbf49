/** The words for the states of devices and streams, and the lags, which `--status` and the page share. */
import { expect, test } from 'vitest';
import {
  deviceStateText,
  type StreamStatus,
  streamStateText,
  unreadNow,
  withShownLags,
} from '../../src/core/status.ts';
import { REPORT } from '../page/facts.ts';

test('every state has one word', () => {
  const devices = (['live', 'catching-up', 'silent', 'out-of-service', 'unreachable', 'excluded'] as const).map(
    deviceStateText,
  );
  expect(devices).toEqual(['live', 'catching up', 'silent', 'out of service', 'unreachable', 'excluded']);
  const streams = (['on', 'waiting', 'failing', 'off'] as const).map((state) =>
    streamStateText({ state, last_read_at: null }),
  );
  expect(streams).toEqual(['on', 'not read yet', 'failing', 'off']);
  const before = { state: 'waiting', last_read_at: '2026-06-15T12:00:00Z' } as const;
  expect(streamStateText(before)).toBe('not read since the start');
});

/** The report of a moment 90 s after telemetry was last read. */
function reportWith(state: StreamStatus['state'], code: 'key_refused' | null = null) {
  const streams = [{ name: 'telemetry', state, reason: null, last_read_at: '2026-11-21T22:15:00Z' } as const];
  const summary_problem = code === null ? null : { code, name: null };
  return { ...REPORT, streams, summary_problem, generated_at: '2026-11-21T22:16:30Z' };
}

test.each([
  ['on', null, null],
  ['waiting', null, null],
  ['failing', null, 'failing'],
  ['off', null, 'off'],
  ['failing', 'key_refused', 'on hold'],
  ['off', 'key_refused', 'on hold'],
] as const)('telemetry that is %s, with the problem %s: polling is %s', (state, code, polling) => {
  const report = reportWith(state, code);
  expect(unreadNow(report)?.polling ?? null).toBe(polling);
  const { freshness, destinations } = withShownLags(report);
  const lags = [freshness.median_seconds, freshness.p95_seconds, freshness.max_seconds, destinations[0]?.lag_seconds];
  expect(lags).toEqual(polling === null ? [42, 75, 118, 55.5] : [90, 90, 118, 90]);
});

test('without a known lag or poll, the time since the last poll counts, or nothing is added', () => {
  const report = reportWith('failing', 'key_refused');
  const unknown = { ...report.freshness, median_seconds: null, p95_seconds: null, max_seconds: null };
  expect(withShownLags({ ...report, freshness: unknown }).freshness).toMatchObject({
    median_seconds: 90,
    p95_seconds: 90,
    max_seconds: 90,
  });
  expect(unreadNow({ ...report, streams: [] })).toEqual({ sinceAt: null, seconds: null, polling: 'on hold' });
  expect(withShownLags({ ...report, streams: [], freshness: unknown }).freshness).toEqual(unknown);
});
