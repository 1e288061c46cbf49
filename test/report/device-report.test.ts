/** When a device is due, and why it is not fresh, over a real state. */
import { describe, expect, test } from 'vitest';
import { unscheduledText } from '../../src/core/device-coverage.ts';
import type { DeviceReport } from '../../src/core/page-facts.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs, SECOND_MS } from '../../src/core/time.ts';
import { deviceReport } from '../../src/report/device-report.ts';
import { type ScratchStore, scratchStore } from '../store/support.ts';
import { hold, list, NOON_MS, online, type PageOptions, pagePartsOf } from './page-facts/support.ts';

/** The grace period, and the grain of the server's clock. */
const LIMIT_LAG_MS = 2 * MINUTE_MS + 2 * SECOND_MS;
const LONG_AGO = NOON_MS - 60 * DAY_MS;

const at = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z');

/** The report on the device `d` at noon. */
function reportOf(state: ScratchStore, options: Omit<PageOptions, 'nowMs'> = {}): DeviceReport {
  const device = state.store.device('d');
  if (device === null) throw new Error('no device');
  const report = deviceReport(pagePartsOf(state, { ...options, nowMs: () => NOON_MS }), device);
  if (report === null) throw new Error('no report');
  return report;
}

/** A state with the device, covered up to so long before noon. */
function coveredUntil(beforeNoonMs: number, seenMs: number | null = NOON_MS): ScratchStore {
  const state = scratchStore();
  list(state, [online('d', { lastSeenAt: seenMs === null ? null : msToNs(seenMs) })]);
  hold(state, 'd', { covered: [[LONG_AGO, NOON_MS - beforeNoonMs]] });
  return state;
}

describe('a device', () => {
  test('that was never polled is due now', () => {
    using state = scratchStore();
    list(state, [online('d')]);
    expect(reportOf(state)).toMatchObject({
      fresh: false,
      polled: true,
      last_polled_at: null,
      next_due_at: at(NOON_MS),
      next_kind: 'newest_readings',
      reasons: ['The device was never polled.'],
    });
  });

  test('that is fresh needs no reason, and was polled at the time in its coverage', () => {
    using state = coveredUntil(LIMIT_LAG_MS);
    const report = reportOf(state);
    expect(report).toMatchObject({ fresh: true, reasons: [], next_kind: 'newest_readings' });
    expect(Math.abs(Date.parse(report.last_polled_at ?? '') - NOON_MS)).toBeLessThanOrEqual(2 * SECOND_MS);
    expect(Date.parse(report.next_due_at ?? '')).toBeGreaterThan(NOON_MS);
    expect(report.bar.cells).not.toContain('.');
  });

  test('that lags shows by how much, and since when its poll is due', () => {
    using state = coveredUntil(HOUR_MS);
    const report = reportOf(state);
    expect(report.fresh).toBe(false);
    expect(report.reasons).toEqual([
      expect.stringMatching(
        /^The lag of the device is \d+ s, more than \d+ s\. Its poll has been due since 2026-06-15T11:/,
      ),
    ]);
    expect(report.bar.cells).toMatch(/\.$/);
  });

  test('that reports nothing new waits for the idle poll', () => {
    using unseen = coveredUntil(HOUR_MS, null);
    expect(reportOf(unseen)).toMatchObject({
      next_kind: 'idle_poll',
      reasons: [expect.stringMatching(/^The device list has no last-seen time for the device\./)],
    });
  });

  test('that was not read for a named reason is due when that is tried again', () => {
    using state = coveredUntil(HOUR_MS);
    const [fromNs, toNs, retryAtMs] = [msToNs(NOON_MS - HOUR_MS), msToNs(NOON_MS - MINUTE_MS), NOON_MS + MINUTE_MS];
    state.store.nameGap({ deviceId: 'd', fromNs, toNs, reason: 'unreachable', retryAtMs });
    const report = reportOf(state);
    expect(report).toMatchObject({ next_due_at: at(retryAtMs), next_kind: 'newest_readings' });
    expect(report.named_gaps).toEqual([
      { from: at(NOON_MS - HOUR_MS), to: at(NOON_MS - MINUTE_MS), reason: 'unreachable', retry_at: at(retryAtMs) },
    ]);
    expect(report.reasons).toEqual([
      expect.stringContaining(`it is tried again at ${at(retryAtMs)}`),
      expect.stringMatching(/^Its newest range cannot be read: /),
    ]);
  });

  test('has no next poll while the API rejects the key', () => {
    using state = coveredUntil(LIMIT_LAG_MS);
    const { streams: calm } = pagePartsOf(state, { nowMs: () => NOON_MS });
    const streams = { ...calm, problem: () => 'the API rejects the key', isKeyRejected: () => true };
    const none = { next_due_at: null, next_kind: null };
    const report = reportOf(state, { parts: { streams } });
    expect(report).toMatchObject({ polled: false, ...none });
    expect(unscheduledText(report)).toBe('no poll until the key is accepted');
    const stopped = reportOf(state, { parts: { streams, isRunning: () => false } });
    expect(stopped.next_due_at).not.toBeNull();
    const excluded = reportOf(state, { filter: { exclude: ['d'] }, parts: { streams } });
    expect(excluded).toMatchObject(none);
    expect(unscheduledText(excluded)).toBe('none scheduled');
  });

  test('that is excluded is not due, and has this reason alone', () => {
    using state = coveredUntil(HOUR_MS);
    expect(reportOf(state, { filter: { exclude: ['d'] }, parts: { isRunning: () => false } })).toMatchObject({
      polled: false,
      fresh: false,
      next_due_at: null,
      next_kind: null,
      reasons: ['The device is excluded by sync.include or sync.exclude.'],
    });
  });

  test('that has left is looked for now and then', () => {
    using state = coveredUntil(HOUR_MS);
    state.store.markGone('d', NOON_MS - HOUR_MS);
    const report = reportOf(state);
    expect(report.listed.gone_since).toBe(at(NOON_MS - HOUR_MS));
    expect(report).toMatchObject({ fresh: false, next_kind: 'idle_poll' });
    expect(report.reasons).toEqual([expect.stringMatching(/^The device has not been in the workspace since /)]);
  });

  test('has no report while nothing is known of the time', () => {
    using state = coveredUntil(HOUR_MS);
    const device = state.store.device('d');
    const parts = pagePartsOf(state, { nowMs: () => NOON_MS, isTimeKnown: false });
    expect(device === null ? 'no device' : deviceReport(parts, device)).toBeNull();
  });
});

test('reasons that stop every device come before those of this one', () => {
  using state = coveredUntil(HOUR_MS);
  const calm = pagePartsOf(state, { nowMs: () => NOON_MS });
  const until = at(NOON_MS + MINUTE_MS);
  const report = reportOf(state, {
    parts: {
      isRunning: () => false,
      streams: {
        ...calm.streams,
        problem: () => 'HTTP 503',
        list: () => [{ name: 'telemetry', state: 'off', reason: 'the key lacks a scope' }] as never,
      },
      space: { status: () => ({ usedBytes: 0, maxBytes: 1, diskFreeBytes: null, full: 'the archive is full.' }) },
      quota: () => ({ ...calm.quota(), waiting_until: until, day: { limit: 10, budget: 8, spent: 8 } }),
    },
  });
  expect(report.polled).toBe(false);
  expect(report.reasons).toEqual([
    'No daemon is running, and no --once.',
    expect.stringMatching(/HTTP 503\.$/),
    'Telemetry is not polled: the key lacks a scope.',
    'Polling stopped: the archive is full.',
    `Quota used up (8 of 8 of the day): requests resume at ${until}.`,
    expect.stringMatching(/^The lag of the device is /),
  ]);
});
