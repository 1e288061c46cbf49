/**
 * A workspace for the tests of the page: fixed facts that answer searches, sorts and pages like the real ones, with
 * hostile names on request.
 */
import type { DeviceReport } from '../../src/core/page-facts.ts';
import {
  DEVICES_A_PAGE,
  type DevicePageFacts,
  type DeviceRow,
  type DevicesPage,
  type DevicesQuery,
  type PageFacts,
} from '../../src/core/page-facts.ts';
import { type DeviceState, type StatusReport, shownState } from '../../src/core/status.ts';
import type { OverviewParts } from '../../src/page/overview.ts';

export const NOW = '2026-11-21T22:15:03.5Z';
const NOW_MS = Date.parse(NOW);

export const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '\u202egnp.elif\u202c \u2066turned\u2069 \u200f\u200e',
  '\u0000\u001b[31mred\u0007',
  '&lt;b&gt; &amp; </td></tr></table>',
  'x'.repeat(10_240),
  'ﷺ'.repeat(3000),
  'javascript:alert(1)',
  '\ud800 half',
];

export const REPORT: StatusReport = {
  version: '0.1.0',
  generated_at: NOW,
  workspace_id: 'ws-1',
  workspace_name: 'Żabka & Sons',
  summary: 'In sync: all 60 devices are complete; 12 points not delivered to influx yet.',
  summary_problem: null,
  process: { running: true, last_request_at: NOW, last_archived_at: NOW },
  freshness: {
    target_seconds: 60,
    expected_seconds: 90,
    behind_after_seconds: 420,
    behind_devices: 0,
    median_seconds: 42,
    p95_seconds: 75,
    max_seconds: 118,
  },
  gaps: [
    { reason: 'malformed pages', devices: 2, seconds: 7200, from: '2026-11-01T00:00:00Z', to: '2026-11-02T00:00:00Z' },
  ],
  jobs: [
    {
      id: 4,
      kind: 'backfill',
      state: 'running',
      requested_by: 'tidemark --backfill',
      requested_at: '2026-11-21T21:00:00Z',
      started_at: '2026-11-21T21:00:02Z',
      range: { from: '2026-10-01T00:00:00Z', to: '2026-11-21T21:00:02Z' },
      share: 0.42,
      requests: 1234,
      readings: 98_700,
      requests_per_minute: 21.4,
      eta_seconds: 1560,
      eta_basis: 'about 560 requests at 21 a minute',
      waits: null,
    },
  ],
  next: {
    attempt_at: null,
    streams: [{ name: 'telemetry', due_at: '2026-11-21T22:16:00Z' }],
    devices_with_gaps: 3,
    gap_seconds: 1800,
    initial_devices: 0,
    eta_seconds: null,
    eta_assumes_full_history: false,
  },
  streams: [
    { name: 'account', state: 'on', reason: null, last_read_at: '2026-11-21T06:00:00Z' },
    { name: 'devices', state: 'on', reason: null, last_read_at: '2026-11-21T22:10:00Z' },
    { name: 'telemetry', state: 'on', reason: null, last_read_at: '2026-11-21T22:15:00Z' },
    { name: 'alerts', state: 'off', reason: 'the key lacks the scope alerts:read', last_read_at: null },
  ],
  totals: {
    devices: 60,
    devices_complete: 60,
    archived_readings: 1_234_567,
    archived_points: 2_345_678,
    requests: 99,
    rejected_records: 4321,
    covered_share: 0.99999,
  },
  devices: [],
  destinations: [
    {
      name: 'influx',
      pending_points: 12,
      quarantined: 3,
      delivered_points: 45_678,
      oldest_pending_at: '2026-11-21T22:14:50Z',
      oldest_live_pending_at: '2026-11-21T22:14:50Z',
      lag_seconds: 55.5,
      missing: [
        { reason: 'cleared', points: 98_765, devices: 2, from: '2026-09-01T00:00:00Z', to: '2026-10-01T00:00:00Z' },
      ],
      blocked_reason: null,
      blocked_since: null,
      next_attempt_at: null,
    },
  ],
  archive: {
    points: 2_345_678,
    state_bytes: 412_000_000,
    max_bytes: 10_000_000_000,
    disk_free_bytes: 120_000_000_000,
    full: null,
  },
  allowance: {
    share: 0.8,
    lanes: [
      { lane: 'live', minute: 300, day: 40_000 },
      { lane: 'backfill', minute: 12, day: 8000 },
    ],
    minute: { limit: 900, budget: 720, spent: 312, others: 40 },
    day: { limit: 200_000, budget: 160_000, spent: 48_000, others: 0 },
    waiting_until: null,
    history_waiting_until: null,
  },
};

export const STANDING: OverviewParts = {
  report: REPORT,
  ageSeconds: 0,
  ready: { ready: true, reasons: [], codes: [], names: [] },
  health: { healthy: true, reasons: [], codes: [] },
};

const STATES: readonly DeviceState[] = [
  'live',
  'live',
  'live',
  'catching-up',
  'silent',
  'live',
  'unreachable',
  'live',
  'live',
  'excluded',
];

/**
 * A device, the same for the same number.
 *
 * @param hostile used as its name, model, hub and sensors
 */
export function rowOf(index: number, hostile?: string): DeviceRow {
  const id = `dev-${String(index).padStart(5, '0')}`;
  return {
    device_id:
      hostile === undefined
        ? id
        : `${hostile
            .toWellFormed()
            .replace(/\p{Cc}/gu, '')
            .slice(0, 60)}-${index}`,
    device_name: hostile ?? `Sensor ${index}, ${['cellar', 'roof', 'hall', 'gate'][index % 4]}`,
    model_id: hostile ?? 'TH-2',
    hub_name: hostile ?? (index % 3 === 0 ? null : `Hub ${index % 7}`),
    state: STATES[index % STATES.length] ?? 'live',
    active: true,
    lag_seconds: index % 13 === 12 ? null : (index * 37) % 900,
    covered_share: 1 - (index % 17) / 400,
    newest_reading_at: new Date(NOW_MS - ((index * 37) % 900) * 1000).toISOString(),
    bar: `${'#'.repeat(12 + (index % 9))}${'-'.repeat(index % 4)}${index % 5 === 0 ? '.' : '#'}`.padEnd(30, '#'),
    values: ['battery', 'humidity', 'temperature'].map((sensor, at) => ({
      sensor: hostile ?? sensor,
      value: hostile ?? String(Math.round((20 + at * 13.37 + index / 7) * 10) / 10),
      at: NOW,
    })),
  };
}

/** The text of an alert. */
const ALERT_FACTS = {
  rule_name: 'Too warm',
  condition: 'above',
  threshold: 8,
  value: 12.345678,
  fire_count: 3,
  status: 'open',
};

/** Facts of so many devices. */
export function factsOf(rows: readonly DeviceRow[], hostile?: string): PageFacts {
  return {
    devices: (query) => pageOf(rows, query),
    device: async (deviceId, rangeSeconds) => {
      const row = rows.find(({ device_id }) => device_id === deviceId);
      return await Promise.resolve(row === undefined ? null : devicePageOf(row, rangeSeconds, hostile));
    },
    alerts: () => ({
      alerts: 12,
      open: 2,
      rows: Array.from({ length: 12 }, (_, index) => ({
        alert_id: 900 - index,
        device_id: rows[index]?.device_id ?? null,
        device_name: rows[index]?.device_name ?? null,
        kind: hostile ?? 'threshold',
        sensor: hostile ?? 'temperature',
        opened_at: new Date(NOW_MS - index * 7_200_000).toISOString(),
        open: index < 2,
        observed_at: NOW,
        ...ALERT_FACTS,
        rule_name: hostile ?? 'Too warm',
        status: index < 2 ? 'acknowledged' : 'resolved',
      })),
    }),
    events: () =>
      Array.from({ length: 30 }, (_, index) => ({
        at: new Date(NOW_MS - index * 61_000).toISOString(),
        level: (['info', 'info', 'warn', 'info', 'error'] as const)[index % 5] ?? 'info',
        event: 'page_landed',
        device_id: index % 4 === 0 ? (rows[index]?.device_id ?? null) : null,
        message: hostile ?? `telemetry: ${40 + index} devices were asked, ${200 + index} new readings`,
        details: hostile ?? 'requests 41 wait_ms 0',
      })),
  };
}

function pageOf(rows: readonly DeviceRow[], query: DevicesQuery): DevicesPage {
  const found = rows.filter(({ device_name, device_id }) =>
    `${device_name} ${device_id}`.toLowerCase().includes(query.search.toLowerCase()),
  );
  const states = { live: 0, 'catching-up': 0, silent: 0, 'out-of-service': 0, unreachable: 0, excluded: 0 };
  for (const row of found) states[shownState(row)] += 1;
  const fitting = found.filter((row) => query.state === null || shownState(row) === query.state);
  const keyOf = ({ device_name, lag_seconds, covered_share }: DeviceRow): string | number =>
    query.sort === 'name' ? device_name : query.sort === 'covered' ? covered_share : -(lag_seconds ?? -1);
  const sorted = fitting.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  if (query.reversed) sorted.reverse();
  const pages = Math.max(1, Math.ceil(sorted.length / DEVICES_A_PAGE));
  const page = Math.min(query.page, pages);
  return {
    query,
    devices: rows.length,
    matching: sorted.length,
    states,
    page,
    pages,
    bar_from: '2026-10-23T00:00:00Z',
    rows: sorted.slice((page - 1) * DEVICES_A_PAGE, page * DEVICES_A_PAGE),
  };
}

const CELLS = 300;

function devicePageOf(row: DeviceRow, rangeSeconds: number, hostile?: string): DevicePageFacts {
  const toS = Math.floor(NOW_MS / 1000);
  const times = Array.from(
    { length: CELLS },
    (_, index) => toS - rangeSeconds + (index + 0.5) * (rangeSeconds / CELLS),
  );
  const sensors = ['battery', 'humidity', 'temperature'].map((sensor, at) => {
    const mean = times.map((time, index) =>
      index % 97 > 90 ? null : 20 + at * 20 + 4 * Math.sin(time / 13_750) + Math.sin(time / 700),
    );
    return {
      sensor: hostile === undefined ? sensor : `${at}${hostile}`,
      values: 14_400,
      last: { sensor, value: hostile ?? '21.52', at: NOW },
      times,
      mean,
      min: mean.map((value) => (value === null ? null : value - 1.2)),
      max: mean.map((value) => (value === null ? null : value + 0.9)),
    };
  });
  return {
    device: reportOf(row, hostile),
    range_seconds: rangeSeconds,
    from: new Date(NOW_MS - rangeSeconds * 1000).toISOString(),
    to: NOW,
    sensors,
    sensors_left_out: 2,
    alerts: [
      {
        alert_id: 7,
        device_id: row.device_id,
        device_name: row.device_name,
        kind: 'threshold',
        sensor: 'temperature',
        opened_at: NOW,
        open: true,
        observed_at: NOW,
        ...ALERT_FACTS,
        rule_name: hostile ?? 'Too warm',
      },
    ],
    archived_since: '2026-10-22T00:00:00Z',
    archive_cleared: false,
  };
}

function reportOf(
  { device_id, device_name, state, active, lag_seconds, covered_share, newest_reading_at }: DeviceRow,
  hostile?: string,
): DeviceReport {
  return {
    device_id,
    device_name,
    state,
    active,
    lag_seconds,
    covered_share,
    newest_reading_at,
    version: '0.1.0',
    generated_at: NOW,
    workspace_id: 'ws-1',
    running: true,
    polled: true,
    fresh: state === 'live',
    behind_after_seconds: 420,
    reasons:
      state === 'live' ? [] : [hostile ?? 'The last request for the device failed; the next attempt is in 2 min.'],
    covered: [['2026-10-22T00:00:00Z', '2026-11-21T00:00:00.5Z']],
    gaps: [{ from: '2026-11-01T00:00:00Z', to: '2026-11-02T00:00:00Z', reason: hostile ?? 'malformed pages' }],
    listed: {
      last_seen_at: NOW,
      online: true,
      presence: null,
      lifecycle_status: hostile ?? 'active',
      last_listed_at: NOW,
      gone_since: null,
    },
    last_polled_at: '2026-11-21T22:14:00Z',
    next_due_at: '2026-11-21T22:16:00Z',
    next_kind: 'idle_poll',
    last_answers: [
      { at: '2026-11-21T22:15:00Z', lane: 'live', status: null, fault: null, new_readings: null },
      { at: '2026-11-21T22:14:00Z', lane: 'live', status: 200, fault: null, new_readings: 4 },
      { at: '2026-11-21T22:13:00Z', lane: 'live', status: null, fault: 'timeout', new_readings: null },
    ],
    failed_requests: 1,
    wanted: ['2026-10-22T00:00:00Z', NOW],
    named_gaps: [],
    grace_period_seconds: 120,
    late: { readings: 3, max_seconds: 340 },
    names: [{ from: null, name: device_name }],
    bar: {
      from: '2026-10-22T00:00:00Z',
      to: NOW,
      cell_seconds: 43_200,
      cells: `${'#'.repeat(40)}--....${'#'.repeat(14)}`,
    },
  };
}
