/** The summary of `--once`. */
import { describe, expect, test } from 'vitest';
import { type OnceSummary, onceProgress, reportEnd } from '../../../src/commands/once/result.ts';
import type { ProgramEvent } from '../../../src/core/events.ts';
import type { MissingStatus, StatusReport } from '../../../src/core/status.ts';
import { eventLine } from '../../../src/observe/event-table.ts';

const DESTINATION = {
  name: 'influx',
  delivered_points: 5,
  pending_points: 0,
  quarantined: 0,
  missing: [],
  blocked_reason: null,
};

const SUMMARY: OnceSummary = {
  outcome: 'complete',
  exit_code: 0,
  workspace_id: 'ws-1',
  devices: 3,
  points_archived: 12,
  gaps: [],
  streams_off: [],
  rejected_records: 0,
  destinations: [DESTINATION],
};

function linesOf(changes: Partial<OnceSummary>): string[] {
  const lines: string[] = [];
  const write = (event: ProgramEvent): void => {
    const { level, message } = eventLine(event);
    lines.push(`${level}: ${message}`);
  };
  reportEnd({ ...SUMMARY, ...changes }, { write });
  return lines;
}

describe('the end of --once', () => {
  test('is one line where all is complete', () => {
    expect(linesOf({})).toEqual(['info: Sync complete: 3 devices, no gaps, 12 telemetry points in the archive']);
  });

  test('shows how it ended, and counts the missed gaps, not those that were left out on purpose', () => {
    const gap = { device_id: 'd', from: 'a', to: 'b', reason: 'unreachable' };
    const left = { ...gap, reason: 'excluded' };
    expect(linesOf({ gaps: [left] }).at(0)).toBe(
      'info: Sync complete: 2 devices, no gaps, 12 telemetry points in the archive',
    );
    expect(linesOf({ outcome: 'stalled', exit_code: 3, gaps: [gap, left], devices: 2 }).at(0)).toBe(
      'warn: Sync incomplete: stalled (1 device, 1 gap, 12 telemetry points in the archive)',
    );
    expect(linesOf({ outcome: 'gaps_remain', exit_code: 1, gaps: [gap] }).at(0)).toBe(
      'warn: Sync incomplete: gaps remain that cannot be closed (3 devices, 1 gap, 12 telemetry points in the archive)',
    );
    expect(linesOf({ streams_off: ['alerts'] }).at(0)).toBe(
      'info: Sync complete for the streams that the key may read: 3 devices, no gaps, 12 telemetry points in the archive',
    );
  });

  test('names the points that are not in a database, and the reason', () => {
    const lack: MissingStatus = {
      reason: 'beyond_retention',
      points: 12_345,
      devices: 2,
      from: '2026-01-01T00:00:00Z',
      to: '2026-02-01T00:00:00.5Z',
    };
    const missing = [lack, { ...lack, reason: 'skipped_destination' }, { ...lack, reason: 'cleared' }] as const;
    const range = '(from 2026-01-01T00:00:00Z to 2026-02-01T00:00:00.5Z)';
    expect(linesOf({ destinations: [{ ...DESTINATION, missing }] })).toEqual([
      'info: Sync complete: 3 devices, no gaps, 12 telemetry points in the archive',
      `warn: 12,345 points of 2 devices missing in influx: beyond its retention ${range}; once the database keeps points for longer, tidemark --replay --destination influx sends those that the archive still has`,
      `warn: 12,345 points of 2 devices missing in influx: it had accepted nothing for longer than archive.retention ${range}; tidemark --verify --repair --destination influx sends them`,
      `warn: 12,345 points of 2 devices missing in influx: the archive had removed them ${range}; tidemark --verify --repair --destination influx requests them again from the API`,
    ]);
  });

  test('counts rejected records, and names the gaps', () => {
    const gap = { device_id: 'd', from: 'a', to: 'b', reason: 'device_gone' };
    expect(linesOf({ rejected_records: 2, gaps: Array.from({ length: 22 }, () => gap) }).slice(1)).toEqual([
      'warn: 2 records or points are in quarantine, each with its reason',
      ...Array.from({ length: 20 }, () => 'warn: gap: d from a to b: device gone'),
      'warn: and 2 more gaps; --json lists them all',
    ]);
  });
});

test('the progress has the ETA of --status, and the counts of the run', () => {
  const report = (seconds: number | null, assumesFullHistory = false, full: string | null = null) =>
    ({
      totals: { devices: 2, archived_readings: 900, requests: 90 },
      destinations: [],
      allowance: { waiting_until: null },
      next: { eta_seconds: seconds, eta_assumes_full_history: assumesFullHistory },
      archive: { full },
    }) as unknown as StatusReport;
  const counts = { archived_readings: 5, requests: 2 };
  expect(onceProgress(report(94), counts)).toEqual({
    totals: { devices: 2, archived_readings: 5, requests: 2 },
    destinations: [],
    allowance: { waiting_until: null },
    eta: { seconds: 94, basis: '' },
    waits: null,
  });
  expect(onceProgress(report(94, true), counts).eta?.basis).toBe('less if devices are younger than the range');
  expect(onceProgress(report(null), counts).eta, 'unknown, not extrapolated').toBeNull();
  expect(onceProgress(report(94, false, '/data: only 1 MiB of its disk are free.'), counts)).toMatchObject({
    eta: null,
    waits: 'polling is stopped: /data: only 1 MiB of its disk are free.',
  });
});
