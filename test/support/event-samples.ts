/**
 * Events whose line depends on more than the words in it, in each of the ways in which it does: the table of events is
 * compared with them. For all others the line of placeholders is enough.
 */
import type { AppEvent } from '../../src/core/events.ts';

type Samples = { readonly [T in AppEvent['type']]?: readonly Extract<AppEvent, { type: T }>[] };

const round = { runs: 1, requests: 2, failed: 0, devices: 2, records: 3, newPoints: 12, periodMs: 60_000 };
const retried = { request: 'GET /account', fault: 'unreachable', attempt: 1, message: 'm' } as const;
const held = { destination: 'influx', lines: 5, message: 'w', waitMs: 60_000 };
const job = { job: 1, kind: 'once', exitCode: 0, message: null, durationMs: 1 } as const;

// biome-ignore format: a table, a row an event
export const SAMPLES: Samples = {
  'request-retried': [1000, 10_000, 60_000].map((waitMs) => ({ type: 'request-retried', ...retried, waitMs })),
  'quota-wait': (['rate', 'minute', 'day', 'retry_after'] as const).map((reason) => ({ type: 'quota-wait', untilMs: 8e9, reason })),
  'page-rejected': [1, 2].map((attempt) => ({ type: 'page-rejected', deviceId: 'd', reason: 'r', attempt })),
  'gap-recorded': (['page_rejected', 'beyond_plan', 'over_quota', 'unverified'] as const).map((reason) => ({ type: 'gap-recorded', deviceId: 'd', reason, from: 'F', to: 'T' })),
  'stream-off': [
    { type: 'stream-off', stream: 'alerts', scope: 'alerts:read' },
    { type: 'stream-off', stream: 'telemetry', scope: 'telemetry:read' },
  ],
  'poll-summary': (['account', 'devices', 'telemetry', 'alerts'] as const).map((stream) => ({ type: 'poll-summary', stream, ...round })),
  'filter-matches-nothing': (['sync.include', 'sync.exclude_sensors'] as const).map((key) => ({ type: 'filter-matches-nothing', key, pattern: 'p' })),
  'device-appeared': [0, 22].map((more) => ({ type: 'device-appeared', deviceId: 'd', name: 'n', more })),
  'destination-new': ([[false, 'b', 1], [false, null, 0], [true, null, 1]] as const).map(([known, before, points]) => ({ type: 'destination-new', destination: 'influx', known, before, points })),
  'destination-older': [{ type: 'destination-older', destination: 'influx' }],
  'destination-kind': (['influxdb', 'victoriametrics'] as const).map((kind) => ({ type: 'destination-kind', destination: 'influx', kind })),
  'delivery-blocked': [true, false].map((needsPerson) => ({ type: 'delivery-blocked', ...held, hint: 'h', needsPerson })),
  'replay-started': [null, 5].map((resumedAfter) => ({ type: 'replay-started', destination: 'influx', resumedAfter, from: 'F', to: null })),
  'replay-ended': ['complete', 'stalled'].map((outcome) => ({ type: 'replay-ended', destination: 'influx', outcome, lines: 1 })),
  'job-ended': (['done', 'failed', 'cancelled'] as const).map((state) => ({ type: 'job-ended', ...job, state })),
  'initial-sync-done': [0, 2].map((withGaps) => ({ type: 'initial-sync-done', devices: 31, withGaps, points: 86_924, pending: 0, statusPage: 'http://127.0.0.1:9464/' })),
  failed: [true, false].map((isKnown) => ({ type: 'failed', message: 'm', isKnown, exitCode: 1 })),
  'run-ended': ([0, 3] as const).map((exitCode) => ({ type: 'run-ended', outcome: 'stalled', exitCode, isAllRead: true, devices: 24, points: 86_924, gaps: exitCode })),
  'job-followed': [{ isFound: false }, { isFound: true }, { isFound: false, isCheck: true }].map((found) => ({ type: 'job-followed', dataDir: 'data', ...found })),
  'run-incomplete': [true, false].map((isWanted) => ({ type: 'run-incomplete', message: 'm', isWanted })),
  'replay-report': [true, false].map((isWell) => ({ type: 'replay-report', message: 'm', isWell })),
  'export-report': [true, false].map((isWell) => ({ type: 'export-report', message: 'm', isWell })),
  'repair-report': [null, { destination: 'influx', points: 1, readings: 1, requests: 1 }].map((cost) => ({ type: 'repair-report', message: 'm', isWell: cost === null, cost })),
};
