/**
 * The text of `--status` for states that are made by hand: every reason in words, hostile names, an empty state, a very
 * large one.
 */
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { StatusCommand } from '../../../src/cli/command.ts';
import { runStatusCommand } from '../../../src/commands/status/command.ts';
import { statusText } from '../../../src/commands/status/text.ts';
import { blockedFact } from '../../../src/core/state/log.ts';
import type { GapReason } from '../../../src/core/state/telemetry.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, msToNs } from '../../../src/core/time.ts';
import { fillState } from '../../bench/scale/state.ts';
import { REPORT } from '../../page/facts.ts';
import { device, scratch, scratchStore } from '../../store/support.ts';
import { patient } from '../../support/patience.ts';
import { createVirtualClock } from '../../support/virtual-clock.ts';
import {
  configOfDirectory,
  deviceOf,
  expectPlain,
  hold,
  lookAt,
  NOW_MS,
  ON_TIME_MS,
  reportOf,
  textOf,
  unwrapped,
} from './support.ts';

test.each([
  [60, 60],
  [200, 200],
  [0, 80],
  [null, 80],
])('on a terminal of %s columns, lines have at most %i; null: a pipe', (columns, width) => {
  using open = scratchStore();
  hold(open, ['hub', 'x'.repeat(60)], { fromMs: NOW_MS - 3 * DAY_MS, toMs: NOW_MS - 2 * DAY_MS });
  const textFor = (id: string | null): string => {
    let text = '';
    runStatusCommand(
      {
        command: { mode: 'status', json: false, device: id } as StatusCommand,
        config: configOfDirectory(dirname(open.file)),
        terminal: { scrub: (shown) => shown },
      },
      {
        print: (printed) => {
          text += printed;
        },
        stdout: { isTTY: columns !== null, columns: columns ?? 300, write: () => Promise.resolve(true) },
      },
    );
    expectPlain(text, width);
    return text;
  };
  const lengths = textFor(null)
    .split('\n')
    .map((each) => each.length);
  // It uses the width: the longest line nearly fills it.
  expect(Math.max(...lengths)).toBeGreaterThan(width * 0.75);
  const bar = /^ {12}\[([#.-]+)\]$/m.exec(textFor('hub'))?.[1] ?? '';
  expect([bar.length, bar.replace(/\.+/, '.').includes('.')]).toEqual([width === 60 ? 30 : 60, true]);
});

test('a device that was retired does not count as silent', () => {
  using open = scratchStore();
  hold(open, ['cellar', 'shed']);
  const offline = { lastSeenAt: msToNs(ON_TIME_MS), online: false };
  const records = [device('cellar', offline), device('shed', { ...offline, lifecycleStatus: 'paused' })];
  const listed = records.map((record) => ({ record, name: record.deviceId, line: null, digest: 'y' }));
  open.store.saveInventory({ listed, missing: [], atMs: NOW_MS - MINUTE_MS });
  const { text, report } = lookAt(open);
  expect(report().devices).toMatchObject([
    { state: 'silent', active: true },
    { state: 'silent', active: false },
  ]);
  expect(unwrapped(text())).toContain('; states: 1 silent, 1 out of service ');
  expect(report().summary).toContain(
    '1 device is silent: cellar (no reading in the sync range). 1 device is out of service (paused).',
  );
  expect(text('cellar')).toMatch(/^Nothing newer to read: silent\.$/m);
  expect(text('shed')).toMatch(/^Nothing newer to read: out of service\.$/m);
});

describe('gaps', () => {
  const REASONS: readonly [GapReason, RegExp][] = [
    ['beyond_plan', /older than the plan serves: 1 device, 6 h; limited by the plan's history_max_days/],
    ['over_quota', /skipped for lack of quota: 1 device, 6 h; --plan shows what quota would be enough/],
    ['unverified', /although the device list shows activity then; requested again/],
    ['page_rejected', /invalid responses: 1 device, 6 h; retried periodically, see the log/],
    ['unreachable', /device unreachable: 1 device, 6 h; its requests fail/],
  ];

  test.each(REASONS)('%s is explained, with what to do', (reason, words) => {
    using open = scratchStore();
    const gap = { fromMs: NOW_MS - 7 * DAY_MS, toMs: NOW_MS - 7 * DAY_MS + 6 * HOUR_MS };
    hold(open, ['hub'], gap);
    const [fromNs, toNs] = [msToNs(gap.fromMs), msToNs(gap.toMs)];
    open.store.nameGap({ deviceId: 'hub', fromNs, toNs, reason, retryAtMs: NOW_MS + HOUR_MS });
    const { text, report, of } = lookAt(open);
    expect(report().gaps).toEqual([
      { reason, devices: 1, seconds: 21_600, from: '2026-06-08T12:00:00Z', to: '2026-06-08T18:00:00Z' },
    ]);
    expect(unwrapped(text())).toMatch(words);
    expect(text()).toMatch(/Devices with the largest gaps or lag\n {2}hub {21} 1 gap, 6 h: /);
    expect(of('hub')).toMatchObject({
      fresh: true,
      reasons: [],
      named_gaps: [{ reason, retry_at: '2026-06-15T13:00:00Z' }],
    });
    expect(unwrapped(text('hub'))).toContain('next attempt at 2026-06-15 13:00:00 UTC');
    // Twelve hours a sign: the gap is half of one.
    expect(of('hub').bar.cells.split('.')).toHaveLength(2);
  });

  test('an unreachable device, one that is gone and one that is left out have texts as well', () => {
    using open = scratchStore();
    hold(open, ['gone', 'open', 'out'], { fromMs: NOW_MS - 7 * DAY_MS, toMs: NOW_MS - 6 * DAY_MS });
    open.store.markGone('gone', NOW_MS - 2 * DAY_MS);
    const { config, clock } = lookAt(open);
    const leftOut = { ...config.sync.leftOut, exclude: ['out'] };
    const filtered = { ...config, sync: { ...config.sync, leftOut } };
    const report = reportOf(filtered, clock);
    expect(report.gaps.map(({ reason, devices }) => `${reason} ${devices}`).sort()).toEqual([
      'device_gone 1',
      'excluded 1',
      'pending 1',
    ]);
    // A range that cannot be requested is not the next one.
    expect(report.next).toMatchObject({ devices_with_gaps: 1, gap_seconds: 86_400 });
    const text = unwrapped(textOf(filtered, clock));
    expect(text).toContain('device gone: 1 device, ');
    expect(text).toContain('excluded: 1 device, ');
    expect(text).toContain('not read yet: 1 device, 24 h');
    expect(deviceOf(filtered, clock, 'out')).toMatchObject({ fresh: false, next_due_at: null, next_kind: null });
    expect(textOf(filtered, clock, 'out')).toContain('The device is excluded by sync.include or sync.exclude');
    expect(textOf(filtered, clock, 'gone').replaceAll(/\s+/g, ' ')).toMatch(
      /The device has not been in the workspace since .*\. Tidemark checks every 24 h whether/,
    );
  });
});

test('the newest minutes of a device that is read on schedule are no gap, and later they are', () => {
  using open = scratchStore();
  hold(open, ['hub']);
  const record = device('hub', { lastSeenAt: msToNs(NOW_MS - 90_000) });
  open.store.saveInventory({ listed: [{ record, name: 'hub', line: null, digest: 'x' }], missing: [], atMs: NOW_MS });
  const { report, text, config } = lookAt(open);
  expect(report().devices[0]?.gaps).toEqual([]);
  expect(text('hub')).toMatch(/\nUp to date: \S+, lag 59 s\.\n[\s\S]*\nGaps +none\n/);
  expect(report()).toMatchObject({ gaps: [], totals: { devices_complete: 1 }, next: { devices_with_gaps: 0 } });
  expect(report().freshness).toMatchObject({ behind_devices: 0, max_seconds: 59 });
  expect(text()).toContain('Gaps        none');
  const later = reportOf(config, createVirtualClock(NOW_MS + HOUR_MS));
  expect(later).toMatchObject({ gaps: [{ reason: 'pending' }], totals: { devices_complete: 0 } });
  expect(later.freshness).toMatchObject({ behind_devices: 1, max_seconds: 3659 });
});

describe('delivery', () => {
  test('names pending, rejected and missing points, and the command that fetches them', () => {
    const time = { nowMs: NOW_MS - 3 * HOUR_MS };
    using open = scratchStore({ nowMs: () => time.nowMs });
    hold(open, ['hub']);
    const { id } = open.store.useDestination('influx', '["influxdb","http://x","","b"]');
    open.store.append(['workspace,workspace_id=w devices=1 1', 'workspace,workspace_id=w devices=1 2'], 'live');
    time.nowMs = NOW_MS;
    open.store.append(['workspace,workspace_id=w devices=1 3'], 'live');
    const from = { block: 0, line: 0 };
    const lack = {
      deviceId: 'hub',
      fromNs: msToNs(NOW_MS - 9 * DAY_MS),
      toNs: msToNs(NOW_MS - 8 * DAY_MS),
      points: 500,
    };
    open.store.acknowledge({
      destinationId: id,
      lane: 'live',
      from,
      to: { block: 1, line: 1 },
      rejected: [{ line: 'workspace,workspace_id=w devices=1 1', message: 'no' }],
      missing: [
        { ...lack, reason: 'cleared' },
        { ...lack, reason: 'beyond_retention' },
        { ...lack, reason: 'dropped' },
      ],
      atMs: NOW_MS,
    });
    const { text, report } = lookAt(open);
    expect(report().destinations).toMatchObject([
      { pending_points: 2, quarantined: 1, oldest_pending_at: '2026-06-15T09:00:00Z', blocked_reason: null },
    ]);
    const words = unwrapped(text());
    expect(words).toContain('Delivery 2 points wait, the oldest for 3 h; 1 in quarantine');
    expect(words).toContain('(tidemark --quarantine)');
    expect(words).toContain(
      '500 points of 1 device missing in influx: the archive had removed them (from 2026-06-06 12:00 to',
    );
    expect(words).toContain('--verify --repair --destination influx requests them again from the API');
    expect(words).toContain(
      'once the database keeps points for longer, tidemark --replay --destination influx sends those that the archive still has',
    );
    expect(words).toContain(
      'it rejected them, and they were dropped from quarantine (from 2026-06-06 12:00 to 2026-06-07 12:00)',
    );
    expect(words).not.toMatch(/dropped from quarantine [^)]*\); tidemark --verify/);
    const next = { rejected: [], missing: [], atMs: NOW_MS, destinationId: id, lane: 'live' } as const;
    open.store.acknowledge({ ...next, from: { block: 1, line: 1 }, to: { block: 2, line: 0 } });
    expect(report().destinations).toMatchObject([{ pending_points: 1, oldest_pending_at: '2026-06-15T12:00:00Z' }]);
    open.store.acknowledge({ ...next, from: { block: 2, line: 0 }, to: { block: 3, line: 0 } });
    expect(report().destinations).toMatchObject([{ pending_points: 0, oldest_pending_at: null }]);
  });

  test('a database that the state does not know yet waits for everything', () => {
    using open = scratchStore();
    hold(open, ['hub']);
    open.store.append(['workspace,workspace_id=w devices=1 1'], 'live');
    const { config, clock } = lookAt(open);
    const database = { name: 'second', kind: 'auto', url: 'http://x:8086', org: '', bucket: 'b' };
    const configured = { ...config, destinations: [database] } as unknown as typeof config;
    expect(reportOf(configured, clock).destinations).toMatchObject([{ name: 'second', pending_points: 1 }]);
  });
});

describe('odd cases', () => {
  test('names and words of others show themselves and do nothing else', () => {
    using open = scratchStore();
    const hostile = `a\u001b[31m\u202eevil\n\u0007${'漢字😀e\u0301'.repeat(2000)}`;
    hold(open, [hostile, `${hostile}2`], { fromMs: NOW_MS - 3 * DAY_MS, toMs: NOW_MS - 2 * DAY_MS });
    open.store.pinWorkspace({ apiId: hostile, tag: hostile });
    open.store.nameGap({
      deviceId: hostile,
      fromNs: msToNs(NOW_MS - 3 * DAY_MS),
      toNs: msToNs(NOW_MS - 2 * DAY_MS),
      reason: hostile as GapReason,
      retryAtMs: NOW_MS,
    });
    const { id } = open.store.useDestination(hostile, 'x');
    open.store.saveFact(blockedFact(id), hostile);
    const db = new Database(open.file);
    db.prepare("INSERT INTO job (kind, args, requested_by, requested_ms) VALUES (?, '{}', ?, 1)").run(hostile, hostile);
    db.prepare("INSERT INTO request (at_ms, lane, stream, device_id, fault) VALUES (?, ?, 'telemetry', ?, ?)").run(
      NOW_MS,
      hostile,
      hostile,
      hostile,
    );
    db.close();
    const { text, config, clock, of } = lookAt(open);
    expectPlain(text());
    expectPlain(text(hostile));
    expect(of(hostile).device_id).toBe(hostile);
    expect(() => textOf(config, clock, 'evil')).toThrow(/^--device: [^\p{Cc}\u202e]*$/u);
  });

  test('a missing and an empty state are reported as such', () => {
    using place = scratch();
    const clock = createVirtualClock(NOW_MS);
    const config = configOfDirectory(place.path);
    for (const device of [null, 'hub']) {
      expect(() => textOf(config, clock, device)).toThrow(
        /There is no state in .* yet\. If a daemon uses another configuration/,
      );
    }
    using open = scratchStore();
    const seen = lookAt(open);
    const { text, report } = seen;
    expect(report()).toMatchObject({
      summary: 'Starting: the device list is not complete yet.',
      devices: [],
      gaps: [],
    });
    expect(report().totals.covered_share).toBeNull();
    // Requests of `--check` sync nothing.
    const requestId = open.ledger.book(NOW_MS, { lane: 'inventory', stream: 'devices' });
    open.ledger.recordOutcome(requestId, { status: 200, fault: null });
    expect(report().streams.map(({ state }) => state)).toEqual(Array.from({ length: 4 }, () => 'waiting'));
    expect(unwrapped(text())).toMatch(
      /Gaps no device is known yet .*Streams all not read yet .*; no device is known yet $/,
    );
    const database = { name: 'influx', kind: 'auto', url: 'http://x:8086', org: '', bucket: 'b' };
    const delivering = { ...seen.config, destinations: [database] } as unknown as typeof config;
    expect(textOf(delivering, clock)).toMatch(/^Delivery +no point to deliver yet$/m);
    expect(text().split('\n').length).toBeLessThanOrEqual(24);
    expect(() => text('hub')).toThrow(/no device is listed yet/);
    open.close();
    expect(text()).toContain(
      'No daemon is running; the last request was at 2026-06-15T12:00:00Z. Start it, or\nrun --once. The device list has not been read yet.',
    );
  });

  test('jobs that commands have requested are shown', () => {
    using open = scratchStore();
    hold(open, ['hub']);
    const db = new Database(open.file);
    db.exec(`INSERT INTO job (kind, args, requested_by, requested_ms, state, started_ms) VALUES
      ('once', '{}', '--once', ${NOW_MS - HOUR_MS}, 'running', ${NOW_MS - 3 * MINUTE_MS}),
      ('verify', '{}', 'somebody', ${NOW_MS - HOUR_MS}, 'waiting', NULL)`);
    db.close();
    const { text, report } = lookAt(open);
    expect(report().jobs).toMatchObject([{ kind: 'once', started_at: '2026-06-15T11:57:00Z' }, { started_at: null }]);
    expect(text()).toContain(
      'Jobs        once: running, for 3 min\n            verify (somebody): waiting, requested 60 min ago',
    );
  });

  test('ten thousand devices fit into a screen and a half, in a short time', () => {
    using place = scratch();
    const clock = createVirtualClock(NOW_MS);
    const newestMs = NOW_MS - 4 * MINUTE_MS;
    const size = { devices: 10_000, readings: 20_000, days: 2, sensors: 1, seed: 1, influx: 'http://x:8086' };
    const { readings } = fillState(place.path, { ...size, newestMs });
    const config = configOfDirectory(place.path);
    const beganMs = performance.now();
    const text = textOf(config, clock);
    // Some hundred milliseconds; with a query of all devices for each it is ten seconds.
    expect(performance.now() - beganMs).toBeLessThan(patient(2_500));
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(38);
    const report = reportOf(config, clock);
    expect(report.devices).toHaveLength(10_000);
    expect(report.totals.archived_readings).toBe(readings);
    expect(text).toMatch(/and [\d,]+ more; tidemark --status --device ID shows one/);
    expect(deviceOf(config, clock, 'Sensor 4711').device_id).toBe('dev_004711');
  });
});

test.each([
  ['on', 'key_refused', 'read once the key is accepted'],
  ['off', 'scope_missing', 'read once the key has the scope'],
  ['failing', 'api_unreachable', 'read when polling works again'],
  ['on', 'destination_blocked', 'the daemon reads them now'],
] as const)('gaps are read now only while telemetry is: %s, %s', (state, code, when) => {
  const report = {
    ...REPORT,
    streams: REPORT.streams.map((each) => (each.name === 'telemetry' ? { ...each, state } : each)),
    summary_problem: { code, name: null },
    gaps: [{ reason: 'pending', devices: 32, seconds: 3600, from: '2026-11-21T20:00:00Z', to: '2026-11-21T21:00:00Z' }],
  };
  expect(unwrapped(statusText(report))).toContain(` not read yet: 32 devices, 60 min in total; ${when} `);
  const stopped = { ...report, process: { ...report.process, running: false } };
  expect(unwrapped(statusText(stopped))).toContain(' in total; start the daemon or run --once ');
});

test.each([
  [null, ''],
  [30, ''],
  [500, ' largest lag so far 8 min;'],
])(
  'while telemetry is not read in the initial sync, the lag of %s s is shown if it is above the time since the last poll',
  (max_seconds, largest) => {
    const text = statusText({
      ...REPORT,
      generated_at: '2026-11-21T22:16:06Z',
      summary_problem: { code: 'key_refused', name: null },
      freshness: { ...REPORT.freshness, expected_seconds: 60, median_seconds: null, max_seconds },
      next: { ...REPORT.next, initial_devices: 60 },
    });
    expect(unwrapped(text)).toContain(` Lag initial sync;${largest} poll interval 60 s; last poll 66 s ago Gaps `);
  },
);
