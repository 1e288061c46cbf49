/** The sentence that sums the state up, and what is reported of a job. */
import { describe, expect, test } from 'vitest';
import { createFilter } from '../../src/core/filter.ts';
import type { OpenJob } from '../../src/core/state/state.ts';
import type { StatusOverview } from '../../src/core/status.ts';
import { HOUR_MS, MINUTE_MS, msToNs } from '../../src/core/time.ts';
import type { DeviceSums } from '../../src/report/device-snapshot.ts';
import { overviewNow, type ReportParts } from '../../src/report/report.ts';

const NOW_MS = Date.UTC(2026, 5, 15, 12);
const DAY_AGO = String(msToNs(NOW_MS - 24 * HOUR_MS));

const SUMS: DeviceSums = {
  devices: 5,
  excluded: 0,
  complete: 5,
  silent: { devices: 0, first: [], resting: {} },
  coveredShare: 1,
  gaps: [],
  open: { devices: 0, seconds: 0 },
  initial: 0,
  lag: { behind_devices: 0, median_seconds: 0, p95_seconds: 0, max_seconds: 0 },
};

const PROGRESS = {
  totals: { devices: 5, devices_complete: 2, archived_readings: 10, requests: 20, covered_share: 0.304 },
  destinations: [],
  allowance: { waiting_until: null },
  eta: { seconds: 480, basis: 'about 1,680 requests at 210 a minute' },
};

const BACKFILL: OpenJob = {
  id: 1,
  kind: 'backfill',
  state: 'running',
  requestedBy: '--backfill',
  requestedMs: NOW_MS,
  startedMs: NOW_MS,
  args: { from: DAY_AGO, to: null, devices: [], maxShare: null, finishByMs: null },
  progress: PROGRESS,
};

interface Case {
  readonly sums?: Partial<DeviceSums>;
  readonly jobs?: readonly OpenJob[];
  readonly isRunning?: boolean;
  readonly lastRequestMs?: number | null;
  readonly etaSeconds?: number | null;
  readonly assumesFullHistory?: boolean;
  readonly problem?: string;
  readonly isKeyRejected?: boolean;
  /** How long until an API that rejects the key is tried again. */
  readonly attemptInMs?: number;
  readonly failing?: { readonly name: 'alerts'; readonly reason: string }[];
  /** Why the delivery to a database is blocked. */
  readonly blocked?: { readonly reason: string; readonly isAnswer: boolean };
  /** Since when the oldest point waits for a database, and the oldest new one. */
  readonly pending?: { readonly all: number; readonly live: number | null };
}

/** A database that nothing was delivered to yet. */
const UNKNOWN_DATABASE: ReportParts['deliverers'][number] = {
  name: 'influx',
  destinationId: null,
  deliveredLines: () => 0,
  blockedReason: () => null,
  isBlockedByAnswer: () => false,
  nextAttemptInMs: () => null,
  blockedForMs: () => null,
};

function blockedDatabase({ reason, isAnswer }: NonNullable<Case['blocked']>): ReportParts['deliverers'][number] {
  return { ...UNKNOWN_DATABASE, blockedReason: () => reason, isBlockedByAnswer: () => isAnswer };
}

/** The report of a workspace in sync, but for what a case changes. */
function overviewOf({
  sums = {},
  jobs = [],
  isRunning = true,
  etaSeconds = null,
  assumesFullHistory = false,
  lastRequestMs = NOW_MS - MINUTE_MS + 7,
  blocked,
  pending,
  ...streams
}: Case): StatusOverview {
  const { problem = null, isKeyRejected = false, attemptInMs = null, failing = [] } = streams;
  const every = { text: '* * * * *', next: (afterMs: number) => afterMs + MINUTE_MS };
  const settings: ReportParts['context']['settings'] = {
    history: { kind: 'age', ageMs: HOUR_MS },
    gracePeriodMs: MINUTE_MS,
    filter: createFilter({ include: [], exclude: [], excludeSensors: [], includesLocation: true }),
    schedules: { account: every, devices: every, telemetry: every, alerts: every },
  };
  const store = {
    totals: () => ({ readings: 10, points: 20, lines: 30, bytes: 40, requests: 50, rejectedRecords: 0 }),
    account: () => null,
    workspaceTag: () => 'ws',
    backlog: () => ({ pendingLines: 7, quarantined: 0 }),
    missingSums: () => [],
  } as unknown as ReportParts['context']['store'];
  const window = { limit: null, budget: null, spent: 0 };
  const parts: ReportParts = {
    context: {
      store,
      settings,
      serverClock: { nowMs: () => NOW_MS, highestPassedMs: () => NOW_MS, passedMs: () => NOW_MS },
      nextReadingMs: () => null,
    },
    deliverers: [
      ...(blocked === undefined ? [] : [blockedDatabase(blocked)]),
      ...(pending === undefined ? [] : [{ ...UNKNOWN_DATABASE, destinationId: 1 }]),
    ],
    quota: () => ({ share: 1, minute: window, day: window, waiting_until: null, history_waiting_until: null }),
    staleMs: () => MINUTE_MS,
    historyEta: () => (etaSeconds === null ? null : { seconds: etaSeconds, assumesFullHistory }),
    streams: {
      list: () => [
        { name: 'telemetry', state: 'on', reason: null, last_read_at: null },
        { name: 'alerts', state: 'off', reason: 'no scope', last_read_at: null },
      ],
      problem: () => problem,
      isKeyRejected: () => isKeyRejected,
      failingLong: () => failing,
      isListed: () => true,
      nextAttemptInMs: () => attemptInMs,
    },
    space: { status: () => ({ usedBytes: 0, maxBytes: null, diskFreeBytes: null, full: null }) },
    facts: {
      spending: () => [],
      lastRequestMs: () => lastRequestMs,
      lastArchivedMs: () => null,
      oldestPendingMs: () => pending?.all ?? null,
      oldestLivePendingMs: () => pending?.live ?? null,
      jobs: () => jobs,
      streams: () => [{ stream: 'telemetry', readAtMs: NOW_MS - 60_000, failure: null }],
    } as unknown as ReportParts['facts'],
    isRunning: () => isRunning,
    version: '0',
  };
  return overviewNow(parts, { ...SUMS, ...sums });
}

test('no stream is read before an API that rejects the key is tried again', () => {
  const { attempt_at, streams } = overviewOf({ problem: 'no', isKeyRejected: true, attemptInMs: 90_400 }).next;
  expect(attempt_at).toBe('2026-06-15T12:01:30.4Z');
  expect(streams).toEqual([
    { name: 'telemetry', due_at: attempt_at },
    { name: 'alerts', due_at: null },
  ]);
  const outage = overviewOf({ problem: 'no', attemptInMs: 90_400 }).next;
  expect(outage.streams, 'in an outage, too').toEqual(streams);
  const [seldom] = overviewOf({ problem: 'no', attemptInMs: 1 }).next.streams;
  expect(Date.parse(seldom?.due_at ?? ''), 'but not before it is due').toBeGreaterThan(NOW_MS + 1);
  expect(overviewOf({ problem: 'no', attemptInMs: 1, isRunning: false }).next.attempt_at).toBeNull();
  const other = overviewOf({}).next;
  expect(other.attempt_at).toBeNull();
  expect(Date.parse(other.streams[0]?.due_at ?? '')).toBeGreaterThan(NOW_MS);
});

describe('the sentence', () => {
  const silent = (name: string, hours: number | null = null) => ({
    name,
    newestAt: hours === null ? null : new Date(NOW_MS - hours * HOUR_MS).toISOString(),
  });

  test.each<[string, Case, string]>([
    ['in sync', {}, 'In sync: all 5 devices are complete.'],
    [
      'silent devices',
      { sums: { silent: { devices: 9, first: ['a', 'b', 'c', 'd'].map((name) => silent(name)), resting: {} } } },
      'In sync: all 5 devices are complete. 9 devices are silent.',
    ],
    [
      'few silent devices, each with the time since its newest reading',
      { sums: { silent: { devices: 2, first: [silent('Wine cellar', 72), silent('Attic')], resting: {} } } },
      'In sync: all 5 devices are complete. 2 devices are silent: Wine cellar for 3 days, Attic (no reading in the sync range).',
    ],
    [
      'a silent device, beside some that were taken out of service',
      { sums: { silent: { devices: 1, first: [silent('Wine cellar', 14)], resting: { retired: 1, paused: 2 } } } },
      'In sync: all 5 devices are complete. 1 device is silent: Wine cellar for 14 h. 3 devices are out of service (paused or retired).',
    ],
    [
      'a device that was taken out of service is not silent',
      { sums: { silent: { devices: 0, first: [], resting: { retired: 1 } } } },
      'In sync: all 5 devices are complete. 1 device is out of service (retired).',
    ],
    [
      'new points that wait',
      { pending: { all: NOW_MS - MINUTE_MS, live: NOW_MS - 1000 } },
      'In sync: all 5 devices are complete; 7 points not delivered to the database yet.',
    ],
    [
      'points of the history that wait',
      { pending: { all: NOW_MS - MINUTE_MS, live: null } },
      'In sync: all 5 devices are complete; 7 points of history not delivered to the database yet.',
    ],
    [
      'a backfill',
      { jobs: [BACKFILL] },
      'In sync: all 5 devices are complete. Backfill running: 30.4 % of its range covered, ETA 8 min.',
    ],
    [
      'a backfill that waits',
      {
        jobs: [{ ...BACKFILL, progress: { ...PROGRESS, eta: null, waits: 'waiting for 1 unreachable device' } }],
      },
      'In sync: all 5 devices are complete. Backfill running: 30.4 % of its range covered, waiting for 1 unreachable device.',
    ],
    [
      'a backfill during the initial sync, before it has reported',
      { sums: { complete: 2, initial: 3 }, jobs: [{ ...BACKFILL, progress: null }] },
      'Initial sync: 2 of 5 devices complete. Backfill running.',
    ],
    [
      'the initial sync of a narrow plan, whose first devices lag behind already',
      {
        sums: {
          ...{ complete: 2, initial: 3, open: { devices: 3, seconds: 90_000 } },
          lag: { behind_devices: 4, median_seconds: 900, p95_seconds: 900, max_seconds: 900 },
        },
        etaSeconds: 5400,
      },
      'Initial sync: 2 of 5 devices complete, ETA 90 min.',
    ],
    [
      'an initial sync of which it is not known how far back the readings go',
      {
        sums: { complete: 0, initial: 5, open: { devices: 5, seconds: 90_000 } },
        ...{ etaSeconds: 5400, assumesFullHistory: true },
      },
      'Initial sync: 0 of 5 devices complete, ETA 90 min (less if devices are younger than the range).',
    ],
    [
      'gaps after an outage',
      { sums: { complete: 2, open: { devices: 3, seconds: 9000 } }, etaSeconds: 100 },
      'Catching up: 2 of 5 devices complete, ETA 100 s.',
    ],
    [
      'gaps while no process runs',
      { sums: { complete: 2, open: { devices: 3, seconds: 9000 } }, etaSeconds: 100, isRunning: false },
      'No daemon is running; the last request was at 2026-06-15T11:59:00Z. Start it, or run --once. 2 of 5 devices complete.',
    ],
    [
      'a backfill that no process works on',
      { jobs: [BACKFILL], isRunning: false },
      'No daemon is running; the last request was at 2026-06-15T11:59:00Z. Start it, or run --once. All 5 devices are complete.',
    ],
    [
      'no process since the state was made',
      { isRunning: false, lastRequestMs: null },
      'No daemon is running. Start it, or run --once. All 5 devices are complete.',
    ],
    [
      'a backfill that is not begun',
      { jobs: [{ ...BACKFILL, state: 'waiting' }] },
      'In sync: all 5 devices are complete.',
    ],
  ])('%s', (_what, given, words) => {
    expect(overviewOf(given)).toMatchObject({ summary: words, summary_problem: null });
  });

  test.each<[Case, string, object]>([
    [{ problem: 'no key', isKeyRejected: true }, 'The API cannot be read: no key', { code: 'key_refused', name: null }],
    [
      { problem: 'no key. Create one', isKeyRejected: true, isRunning: false },
      'Polling failed at the last attempt: no key. Create one. No daemon is running; the last request was at 2026-06-15T11:59:00Z. Start it, or run --once.',
      { code: 'key_refused', name: null },
    ],
    [{ problem: 'no connection' }, 'The API cannot be read: no connection', { code: 'api_unreachable', name: null }],
    [
      { problem: 'no connection', isRunning: false },
      'No daemon is running; the last request was at 2026-06-15T11:59:00Z. Start it, or run --once. Polling failed at the last attempt: no connection',
      { code: 'api_unreachable', name: null },
    ],
    [
      { failing: [{ name: 'alerts', reason: 'HTTP 500' }] },
      'The stream alerts cannot be read: HTTP 500',
      { code: 'stream_failing', name: 'alerts' },
    ],
    // A status alone does not identify the server.
    [
      { blocked: { reason: 'HTTP 503: overloaded; if this lasts, check the log', isAnswer: true } },
      'Delivery to the database is blocked: the database, or a proxy in front of it, answers HTTP 503: overloaded; if this lasts, check the log',
      { code: 'destination_blocked', name: 'influx' },
    ],
    [
      { blocked: { reason: 'the database refuses the connection', isAnswer: false } },
      'Delivery to the database is blocked: the database refuses the connection',
      { code: 'destination_blocked', name: 'influx' },
    ],
  ])('%j names the problem by its code', (given, summary, problem) => {
    expect(overviewOf(given)).toMatchObject({ summary, summary_problem: problem });
  });
});

test('a stream that was not read since the start has the time of its last answer before', () => {
  const { streams } = overviewOf({});
  expect(streams.map(({ name, last_read_at }) => [name, last_read_at])).toEqual([
    ['telemetry', '2026-06-15T11:59:00Z'],
    ['alerts', null],
  ]);
});

describe('a job', () => {
  const jobOf = (changes: Partial<OpenJob>) => overviewOf({ jobs: [{ ...BACKFILL, ...changes }] }).jobs[0];

  test('shows the range of a backfill and the basis of its ETA', () => {
    expect(jobOf({})).toMatchObject({
      range: { from: '2026-06-14T12:00:00Z', to: null },
      eta_seconds: 480,
      eta_basis: 'about 1,680 requests at 210 a minute',
    });
    const begunTo = String(msToNs(NOW_MS));
    expect(jobOf({ args: { ...(BACKFILL.args as object), from: 'all', begunTo } })?.range).toEqual({
      from: null,
      to: '2026-06-15T12:00:00Z',
    });
  });

  test('has no ETA and no rate where no process runs it', () => {
    const none = { requests_per_minute: null, eta_seconds: null, eta_basis: null, waits: null };
    const running = { ...BACKFILL, progress: { ...PROGRESS, requests_per_minute: 210, waits: 'waiting' } };
    const of = (job: OpenJob, isRunning: boolean) => overviewOf({ jobs: [job], isRunning }).jobs[0];
    expect(of(running, true)).toMatchObject({ requests_per_minute: 210, eta_seconds: 480, waits: 'waiting' });
    // The daemon has stopped: with it, or so that the next one continues the job.
    for (const state of ['running', 'waiting'] as const) expect(of({ ...running, state }, false)).toMatchObject(none);
    // Another job of its kind runs first.
    expect(of({ ...running, state: 'waiting' }, true)).toMatchObject(none);
  });

  test('has no ETA and no rate while the API cannot be read', () => {
    const progress = { ...PROGRESS, requests_per_minute: 210 };
    const [backfill, replay] = overviewOf({
      problem: 'the API rejects the key',
      isKeyRejected: true,
      jobs: [
        { ...BACKFILL, progress },
        { ...BACKFILL, kind: 'replay', progress },
      ],
    }).jobs;
    const none = { requests_per_minute: null, eta_seconds: null, eta_basis: null };
    expect(backfill).toMatchObject({ ...none, share: 0.304, waits: 'waiting until the API can be read' });
    expect(replay).toMatchObject({ requests_per_minute: 210, eta_seconds: 480, waits: null });
  });

  test('of another kind, or with arguments that are not understood, has no range', () => {
    expect(jobOf({ kind: 'replay' })?.range).toBeNull();
    expect(jobOf({ args: { from: 'yesterday' } })?.range).toBeNull();
  });
});
