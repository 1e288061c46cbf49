/**
 * Every event, in each of the ways in which it is told differently: what the table of the log is held against.
 */
import type { AppEvent } from '../../src/core/events.ts';
import { LATER_HINT } from '../../src/core/faults.ts';

type Samples = { readonly [T in AppEvent['type']]: readonly Extract<AppEvent, { type: T }>[] };

const round = { runs: 1, requests: 2, failed: 0, devices: 2, records: 3, newPoints: 12, durationMs: 60_000 };
const retried = { request: 'GET /account', fault: 'unreachable', attempt: 1, message: 'm' } as const;
const held = { destination: 'influx', lines: 5, words: 'w', waitMs: 60_000 };
const job = { job: 1, kind: 'once', exitCode: 0, message: null, durationMs: 1 } as const;

/** Total: a new kind of event does not compile without a sample. */
// biome-ignore format: a table, a row an event
export const SAMPLES: Samples = {
  'request-done': [{ type: 'request-done', request: 'GET /account', stream: 'account', lane: 'inventory', status: null, durationMs: 1.5, fault: 'unreachable' }],
  'request-retried': [1000, 10_000, 60_000].map((waitMs) => ({ type: 'request-retried', ...retried, waitMs })),
  'allowance-wait': (['pace', 'minute', 'day', 'asked'] as const).map((reason) => ({ type: 'allowance-wait', untilMs: 8e9, reason })),
  'allowance-short': [{ type: 'allowance-short', of: 'schedules', message: 'm' }],
  'allowance-enough': [{ type: 'allowance-enough' }],
  'plan-doubted': [{ type: 'plan-doubted', limit: 60 }],
  'plan-changed': [{ type: 'plan-changed', before: 'a', after: 'b' }],
  'records-rejected': [{ type: 'records-rejected', stream: 'alerts', count: 1, reason: 'no id' }],
  'values-dropped': [{ type: 'values-dropped', deviceId: 'd', count: 1, reason: 'not a finite number' }],
  'page-landed': [{ type: 'page-landed', deviceId: 'd', lane: 'live', served: 200, readings: 1, newPoints: 4, proven: true }],
  'page-distrusted': [1, 2].map((attempt) => ({ type: 'page-distrusted', deviceId: 'd', reason: 'r', attempt })),
  restatement: [{ type: 'restatement', deviceId: 'd', at: 'T' }],
  'readings-late': [{ type: 'readings-late', deviceId: 'd', count: 1, worstMs: 1000, settleMs: 1000 }],
  'claims-withdrawn': [{ type: 'claims-withdrawn', deviceId: 'd', from: 'F', to: 'T' }],
  'gap-named': ['beyond plan', 'beyond allowance'].map((reason) => ({ type: 'gap-named', deviceId: 'd', reason, from: 'F', to: 'T' })),
  'stream-off': [
    { type: 'stream-off', stream: 'alerts', scope: 'alerts:read' },
    { type: 'stream-off', stream: 'telemetry', scope: 'telemetry:read' },
  ],
  'stream-on': [{ type: 'stream-on', stream: 'alerts' }],
  'stream-failed': [{ type: 'stream-failed', stream: 'alerts', message: 'm' }],
  'stream-read': [{ type: 'stream-read', stream: 'alerts' }],
  'stream-back': [{ type: 'stream-back', stream: 'alerts' }],
  'listing-landed': [{ type: 'listing-landed', stream: 'alerts', records: 1, newPoints: 1 }],
  'round-done': (['account', 'devices', 'telemetry', 'alerts'] as const).map((stream) => ({ type: 'round-done', stream, ...round })),
  'device-appeared': [{ type: 'device-appeared', deviceId: 'd', name: 'n' }],
  'device-renamed': [{ type: 'device-renamed', deviceId: 'd', before: 'a', after: 'b' }],
  'device-gone': [{ type: 'device-gone', deviceId: 'd' }],
  'device-returned': [{ type: 'device-returned', deviceId: 'd' }],
  'filter-matches-nothing': (['sync.include', 'sync.exclude_sensors'] as const).map((key) => ({ type: 'filter-matches-nothing', key, pattern: 'p' })),
  'destination-new': [null, 'b'].map((before) => ({ type: 'destination-new', destination: 'influx', known: before === null, before, points: 1 })),
  'destination-older': [{ type: 'destination-older', destination: 'influx' }],
  'destination-kind': (['influxdb', 'victoriametrics'] as const).map((kind) => ({ type: 'destination-kind', destination: 'influx', kind })),
  'lines-delivered': [{ type: 'lines-delivered', destination: 'influx', lines: 1, durationMs: 1 }],
  'lines-quarantined': [{ type: 'lines-quarantined', destination: 'influx', lines: 1, words: 'w' }],
  'lines-beyond-retention': [{ type: 'lines-beyond-retention', destination: 'influx', lines: 1 }],
  'destination-held': [LATER_HINT, 'h', ''].map((hint) => ({ type: 'destination-held', ...held, hint })),
  'destination-moving': [{ type: 'destination-moving', destination: 'influx' }],
  'replay-begun': [null, 5].map((resumedAfter) => ({ type: 'replay-begun', destination: 'influx', resumedAfter, from: 'F', to: null })),
  'replay-ended': ['complete', 'stalled'].map((outcome) => ({ type: 'replay-ended', destination: 'influx', outcome, lines: 1 })),
  'device-forgotten': [{ type: 'device-forgotten', deviceId: 'd', points: 1 }],
  'archive-only': [{ type: 'archive-only', maxBytes: 1 }],
  'archive-cleared': [{ type: 'archive-cleared', blocks: 1, lines: 1, why: 'age' }],
  'pulling-stopped': [{ type: 'pulling-stopped', reason: 'r' }],
  'pulling-resumed': [{ type: 'pulling-resumed' }],
  'destination-set-aside': [{ type: 'destination-set-aside', destination: 'influx', lines: 1 }],
  'job-started': [{ type: 'job-started', job: 1, kind: 'once', askedBy: '--once' }],
  'job-ended': (['done', 'failed', 'cancelled'] as const).map((state) => ({ type: 'job-ended', ...job, state })),
  'workspace-known': [{ type: 'workspace-known' }],
  'service-trouble': [{ type: 'service-trouble', message: 'm', waitMs: 1000 }],
  'service-back': [{ type: 'service-back' }],
  'key-refused': [{ type: 'key-refused', message: 'm', waitMs: 1000 }],
  'key-accepted': [{ type: 'key-accepted' }],
  'key-exchanged': [{ type: 'key-exchanged' }],
  'pass-started': [{ type: 'pass-started', devices: 1 }],
  'pass-failed': [{ type: 'pass-failed', message: 'm', waitMs: 1000 }],
  'pass-back': [{ type: 'pass-back' }],
  'first-fill-done': [0, 1].map((withGaps) => ({ type: 'first-fill-done', devices: 31, withGaps, points: 1, pending: 0, statusPage: 'http://127.0.0.1:9464/' })),
  stopping: [{ type: 'stopping', reason: 'stopped by SIGTERM' }],
  started: [{ type: 'started', statusPage: 'http://127.0.0.1:9464/' }],
  stopped: [{ type: 'stopped' }],
  'status-page-failed': [{ type: 'status-page-failed', message: 'm' }],
  progress: [{ type: 'progress', message: 'm' }],
  'configuration-invalid': [{ type: 'configuration-invalid', message: 'm', mistakes: 1, exitCode: 2 }],
  failed: [true, false].map((isKnown) => ({ type: 'failed', message: 'm', isKnown, exitCode: 1 })),
  'run-ended': ([0, 3] as const).map((exitCode) => ({ type: 'run-ended', outcome: 'o', exitCode, isAllRead: true, devices: 1, points: 1, gaps: 0 })),
  'run-lacks': [true, false].map((isWanted) => ({ type: 'run-lacks', message: 'm', isWanted })),
  'replay-told': [true, false].map((isWell) => ({ type: 'replay-told', message: 'm', isWell })),
  'export-told': [true, false].map((isWell) => ({ type: 'export-told', message: 'm', isWell })),
  'repair-told': [null, { destination: 'influx', points: 1, readings: 1, requests: 1 }].map((cost) => ({ type: 'repair-told', message: 'm', isWell: cost === null, cost })),
  'job-followed': [{ type: 'job-followed', dataDir: '/data' }],
  'job-queued': [{ type: 'job-queued' }],
  'bundle-written': [{ type: 'bundle-written', file: 'bundle.json' }],
};
