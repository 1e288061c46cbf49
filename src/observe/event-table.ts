/**
 * The table of events: for each one the log line with its level and fields, how often a repetition is logged, and which
 * metrics it counts. The log, the metrics, the recent events of the status page and the reference page (`docs/logs.md`)
 * all use it.
 *
 * A new event touches two files: its type in `core/events.ts` and its row here, or in `program-events.ts` if it is no
 * event of the sync. An event without a row does not compile. A new field is declared in `event-row.ts`, a new metric
 * in `metrics-table.ts`. Pure; the log makes text safe.
 */
import type { AppEvent, ProgramEvent } from '../core/events.ts';
import { KEY_REJECTED, NO_API_ACCESS, scopeAdvice } from '../core/faults.ts';
import { DESTINATION_NAMES } from '../core/lines/dialect.ts';
import { WAIT_TEXTS } from '../core/quota.ts';
import { OFF_STREAM_REST_MS } from '../core/retry.ts';
import { counted, durationInWords, grouped } from '../core/text.ts';
import { SECOND_MS } from '../core/time.ts';
import {
  debug,
  type EventLine,
  type EventOf,
  type EventRow,
  error,
  type FieldValues,
  info,
  instant,
  type LineLevel,
  type Rows,
  waitSeconds,
  warn,
} from './event-row.ts';
import type { Instruments } from './metrics-table.ts';
import { PROGRAM_EVENTS } from './program-events.ts';

/** A retry is logged at level info if its wait is this long, and at level warn from the second limit on. */
const RETRY_INFO_SECONDS = 5;
const RETRY_WARN_SECONDS = 20;

const JOB_ENDS = { done: 'finished', failed: 'failed', cancelled: 'cancelled' } as const;

/** Events of the sync, in the order of the reference page. */
export const SYNC_EVENTS: Rows<Exclude<AppEvent, ProgramEvent>> = {
  'request-done': debug('Request finished', {
    fields: ({ request, lane, status, durationMs, fault }) => {
      return { request, lane, status, fault, duration_ms: Math.round(durationMs) };
    },
    counts: ({ stream, lane, status, durationMs, fault, bytes }, to, nowMs) => {
      to.count('tidemark_api_requests_total', { stream, lane, status: status === null ? 'none' : String(status) });
      to.count('tidemark_api_response_bytes_total', { stream, form: 'wire' }, bytes?.wire ?? 0);
      to.count('tidemark_api_response_bytes_total', { stream, form: 'decoded' }, bytes?.decoded ?? 0);
      to.time('tidemark_api_request_duration_seconds', { stream }, durationMs);
      if (fault === null) to.set('tidemark_stream_last_success_timestamp_seconds', { stream }, nowMs / 1000);
      else to.count('tidemark_api_faults_total', { fault });
      if (fault === 'throttled') to.count('tidemark_api_throttled_total', {});
    },
    sums: ({ stream, fault }) => ({ stream, requests: 1, failed: fault === null ? 0 : 1 }),
  }),
  'request-retried': {
    level: { any: ['debug', 'info', 'warn'], choose: retryLevel },
    message: ({ message }) => `Retrying a request: ${message}`,
    fields: ({ request, fault, attempt, waitMs }) => ({ request, fault, attempt, ...waitSeconds(waitMs) }),
    note: `level by the length of the wait: info from ${RETRY_INFO_SECONDS} seconds on and while the quota is used up, warn from ${RETRY_WARN_SECONDS} seconds on`,
    repeats: { alike: ({ fault }) => fault, isBrief: true },
    counts: (_, to) => to.count('tidemark_api_retries_total', {}),
  },
  'quota-wait': info(({ reason }) => `Waiting: ${WAIT_TEXTS[reason]}`, {
    fields: ({ untilMs }) => ({ until: instant(untilMs) }),
    pattern: 'Waiting: …',
    repeats: { alike: ({ reason }) => reason },
    counts: ({ reason }, to) => to.count('tidemark_quota_waits_total', { reason }),
  }),
  'quota-short': warn(({ message }) => `The quota is too small: ${message}`, {
    fields: ({ unmet }) => ({ of: unmet }),
    counts: ({ unmet }, to) => setShort(to, unmet),
  }),
  'quota-enough': info('The quota is large enough for all schedules again', { counts: (_, to) => setShort(to, null) }),
  'limit-mismatch': info('The API reports another limit than the plan that was read last; reading the account again', {
    fields: ({ limit }) => ({ limit }),
  }),
  'plan-changed': warn('The plan of the workspace has changed', { fields: ({ before, after }) => ({ before, after }) }),
  'records-rejected': warn(({ reason }) => `Records rejected: ${reason}`, {
    fields: ({ stream, count }) => ({ stream, count }),
    repeats: { alike: ({ stream, reason }) => `${stream} ${reason}` },
    counts: ({ stream, count }, to) => to.count('tidemark_records_rejected_total', { stream }, count),
  }),
  'values-dropped': warn(({ reason }) => `Values rejected, the rest of their readings is stored: ${reason}`, {
    fields: ({ deviceId, count }) => ({ device_id: deviceId, count }),
    repeats: { alike: ({ deviceId, reason }) => `${deviceId} ${reason}` },
    counts: ({ count }, to) => to.count('tidemark_values_dropped_total', {}, count),
  }),
  'page-committed': debug('Page committed', {
    fields: ({ deviceId, lane, readings, newPoints }) => {
      return { device_id: deviceId, lane, new_readings: readings, new_points: newPoints };
    },
    counts: ({ lane, served, readings, newPoints }, to) => {
      to.count('tidemark_readings_received_total', { lane }, served);
      to.count('tidemark_readings_new_total', { lane }, readings);
      to.count('tidemark_points_archived_total', { lane }, newPoints);
    },
    sums: ({ deviceId, readings, newPoints }) => ({ stream: 'telemetry', deviceId, records: readings, newPoints }),
  }),
  'page-rejected': {
    level: { any: ['info', 'warn'], choose: ({ attempt }) => (attempt > 1 ? 'warn' : 'info') },
    message: ({ reason }) => `Response rejected: ${reason}`,
    fields: ({ deviceId, attempt }) => ({ device_id: deviceId, attempt }),
    note: 'warn from the second attempt on',
    repeats: { alike: ({ deviceId, reason }) => `${deviceId} ${reason}` },
    counts: (_, to) => to.count('tidemark_pages_rejected_total', {}),
  },
  restatement: warn('The API no longer returns a reading that it returned before', {
    fields: ({ deviceId, at }) => ({ device_id: deviceId, at }),
    repeats: { alike: ({ deviceId }) => deviceId },
    counts: (_, to) => to.count('tidemark_restatements_total', {}),
  }),
  'readings-late': info('Readings arrived later than the grace period; they are stored and delivered', {
    fields: ({ deviceId, count, worstMs, gracePeriodMs }) => ({
      device_id: deviceId,
      count,
      late_seconds: Math.round(worstMs / SECOND_MS),
      grace_period_seconds: Math.round(gracePeriodMs / SECOND_MS),
    }),
    repeats: { alike: ({ deviceId }) => deviceId },
    counts: ({ count }, to) => to.count('tidemark_readings_late_total', {}, count),
  }),
  'clock-unconfirmed': warn(
    "The API's clock differs from this machine's clock and from the newest readings; nothing counts as covered until a response at least a minute later confirms the time. Check the clock of this machine",
    { fields: ({ date, local }) => ({ api_time: date, local_time: local }) },
  ),
  'coverage-withdrawn': warn("The API's clock went back; ranges later than its current time are read again", {
    fields: ({ deviceId, from, to }) => ({ device_id: deviceId, from, to }),
  }),
  // While pages are short, every page records a gap; one warning covers all of them.
  'gap-recorded': {
    level: {
      any: ['warn', 'info', 'debug'],
      // A gap beyond the plan is no fault. It often closes when another device shows that the API serves readings of
      // that age.
      choose: ({ reason }) =>
        reason === 'over_quota' ? 'debug' : reason === 'unverified' || reason === 'beyond_plan' ? 'info' : 'warn',
    },
    message: ({ reason }) => `Gap recorded: ${reason}`,
    fields: ({ deviceId, from, to }) => ({ device_id: deviceId, from, to }),
    note: 'debug while the quota is too small to read all pages: one `quota-short` line stands for them',
    repeats: { alike: ({ deviceId, reason }) => `${deviceId} ${reason}` },
    counts: ({ reason }, to) => to.count('tidemark_gaps_recorded_total', { reason }),
  },
  // Without these streams nothing is synced. The others may be off on purpose.
  'stream-off': {
    level: {
      any: ['warn', 'error'],
      choose: ({ stream }) => (stream === 'telemetry' || stream === 'devices' ? 'error' : 'warn'),
    },
    message: ({ scope }) =>
      `The key lacks the scope ${scope}, so this stream is off; the others run. Add the scope to the key (takes effect within ${durationInWords(OFF_STREAM_REST_MS)}), or write another key into the file of api.key_file (takes effect at once)`,
    fields: ({ stream, scope }) => ({ stream, scope }),
    note: 'error for devices and telemetry: nothing is synced without them',
    repeats: { ends: ({ stream }) => `stream ${stream}`, alwaysLogged: () => true },
  },
  'stream-on': info('The key now has the scope of this stream; the stream is on again', {
    fields: ({ stream }) => ({ stream }),
  }),
  'stream-failed': warn(({ stream, message }) => `Stream ${stream} failed: ${message}`, {
    fields: ({ stream }) => ({ stream }),
    repeats: { outage: ({ stream }) => `stream ${stream}` },
    counts: ({ stream }, to) => to.count('tidemark_stream_runs_total', { stream, result: 'failed' }),
  }),
  'stream-read': debug('Stream polled', {
    fields: ({ stream }) => ({ stream }),
    counts: ({ stream }, to) => to.count('tidemark_stream_runs_total', { stream, result: 'ok' }),
    sums: ({ stream }) => ({ stream, runs: 1 }),
  }),
  'stream-recovered': info(({ stream }) => `Stream ${stream} recovered`, {
    fields: ({ stream }) => ({ stream }),
    repeats: { ends: ({ stream }) => `stream ${stream}` },
  }),
  'list-page-committed': debug('List page committed', {
    fields: ({ stream, records, newPoints }) => ({ stream, records, new_points: newPoints }),
    sums: ({ stream, records, newPoints }) => ({ stream, records, newPoints }),
  }),
  'poll-summary': info(summaryMessage, {
    fields: summaryFields,
    pattern: '…',
    note: 'a summary of the polls of a stream, at most one line per stream and minute; of the alerts, the newest and the open ones are read',
    isRoutine: true,
  }),
  'device-appeared': info(
    ({ more }) => `New device${more > 0 ? ` (${more} more ${more === 1 ? 'is' : 'are'} not logged separately)` : ''}`,
    {
      fields: ({ deviceId, name }) => ({ device_id: deviceId, device_name: name }),
      pattern: 'New device…',
    },
  ),
  'device-renamed': info('Device renamed', {
    fields: ({ deviceId, before, after }) => ({ device_id: deviceId, before, after }),
  }),
  'device-gone': info('Device is no longer listed', { fields: ({ deviceId }) => ({ device_id: deviceId }) }),
  'device-returned': info('Device is listed again', { fields: ({ deviceId }) => ({ device_id: deviceId }) }),
  'filter-matches-nothing': warn(
    ({ key }) => {
      const what = key === 'sync.exclude_sensors' ? 'no sensor that was read so far' : 'no device';
      return `${key}: ${what} matches this pattern. Is it a typo?`;
    },
    { fields: ({ pattern }) => ({ pattern }), pattern: '…: … matches this pattern. Is it a typo?' },
  ),
  'destination-new': {
    level: { any: ['info', 'warn'], choose: ({ before }) => (before === null ? 'info' : 'warn') },
    message: ({ known, points }) =>
      known
        ? 'Destination is configured again: it gets the points that it does not have yet'
        : `New destination: ${points > 0 ? 'the archive is sent to it' : 'it gets everything that is read from now on, new readings and history'}`,
    fields: ({ destination, points, before }) => ({ destination, points, before }),
    pattern: '…',
    note: 'warn if another database had this name before',
  },
  'destination-older': warn(
    'The state is empty, but the database already has telemetry of this workspace: the readings of devices that were renamed since will be in it twice, under the earlier and the current name. If you have an older state or a backup of one (--backup), stop, copy it as tidemark.db into an empty data_dir and start again; else nothing needs to be done',
    {
      fields: ({ destination }) => ({ destination }),
      pattern: 'The state is empty, but the database already has telemetry of this workspace: …',
    },
  ),
  'destination-kind': info(({ kind }) => `The database is ${DESTINATION_NAMES[kind]}`, {
    fields: ({ destination, kind }) => ({ destination, kind }),
    pattern: 'The database is …',
  }),
  'lines-delivered': debug('Points delivered', {
    fields: ({ destination, lines, durationMs }) => ({ destination, lines, duration_ms: Math.round(durationMs) }),
    counts: ({ destination, lines, durationMs }, to) => {
      to.count('tidemark_points_written_total', { destination }, lines);
      to.time('tidemark_write_duration_seconds', { destination }, durationMs);
    },
  }),
  'lines-quarantined': warn(({ message }) => `Points rejected by the database, see tidemark --quarantine: ${message}`, {
    fields: ({ destination, lines }) => ({ destination, lines }),
    repeats: { alike: ({ destination, message }) => `${destination} ${message}` },
    counts: ({ destination, lines }, to) => to.count('tidemark_points_rejected_total', { destination }, lines),
  }),
  'lines-beyond-retention': info('Points are older than the retention of the database; it drops them', {
    fields: ({ destination, lines }) => ({ destination, lines }),
    repeats: { alike: ({ destination }) => destination },
    counts: ({ destination, lines }, to) => to.count('tidemark_points_beyond_retention_total', { destination }, lines),
  }),
  'delivery-blocked': {
    level: { any: ['warn', 'error'], choose: ({ needsPerson }) => (needsPerson ? 'error' : 'warn') },
    message: ({ message, hint }) => `Delivery blocked: ${message}${hint === '' ? '' : `; ${hint}`}`,
    fields: ({ destination, lines, waitMs }) => ({ destination, lines, ...waitSeconds(waitMs) }),
    pattern: 'Delivery blocked: …',
    note: 'error if you must act (token, bucket, address), warn if the database is down or busy',
    repeats: { outage: ({ destination }) => `destination ${destination}`, message: ({ message }) => message },
    counts: ({ destination, lines }, to) => to.count('tidemark_points_retried_total', { destination }, lines),
  },
  'delivery-resumed': info('Delivery resumed', {
    fields: ({ destination }) => ({ destination }),
    repeats: { ends: ({ destination }) => `destination ${destination}` },
  }),
  'replay-started': info(
    ({ resumedAfter }) =>
      resumedAfter === null
        ? 'Replay started: archived points are sent again'
        : 'Replay continues: archived points are sent again',
    {
      fields: ({ destination, resumedAfter, from, to }) => {
        return { destination, from, to: to ?? 'now', ...(resumedAfter === null ? {} : { after_lines: resumedAfter }) };
      },
      pattern: 'Replay …: archived points are sent again',
    },
  ),
  'replay-ended': {
    level: { any: ['info', 'warn'], choose: ({ outcome }) => (outcome === 'complete' ? 'info' : 'warn') },
    message: ({ outcome }) => `Replay ended: ${outcome}`,
    fields: ({ destination, lines }) => ({ destination, lines }),
    note: 'warn unless it is complete',
  },
  'device-forgotten': info('Device removed from the state, as requested (--forget)', {
    fields: ({ deviceId, points }) => ({ device_id: deviceId, points }),
  }),
  'archive-only': info('No database is configured: only the archive is used, and polling stops at archive.max_size', {
    fields: ({ maxBytes }) => ({ max_bytes: maxBytes }),
  }),
  'archive-cleared': debug(({ why }) => `Delivered points removed from the archive, by ${why}`, {
    fields: ({ blocks, lines }) => ({ blocks, lines }),
  }),
  'polling-stopped': error(({ reason }) => `Polling stopped: ${reason}`, { repeats: { outage: () => 'room' } }),
  'polling-resumed': info('Polling resumed: there is enough space again', { repeats: { ends: () => 'room' } }),
  'destination-skipped': error(
    'Destination has accepted nothing for longer than archive.retention while others work. Its undelivered points are skipped and recorded as missing (--status lists them); it receives all later points once it accepts them',
    { fields: ({ destination, lines }) => ({ destination, lines }) },
  ),
  'job-started': info(({ kind, requestedBy }) => `Starting job "${kind}" (requested by ${requestedBy})`, {
    fields: ({ job, kind, requestedBy }) => ({ job, kind, requested_by: requestedBy }),
  }),
  'job-ended': {
    level: { any: ['info', 'warn'], choose: ({ state }) => (state === 'failed' ? 'warn' : 'info') },
    message: ({ kind, state, message, exitCode }) => {
      const code = state === 'done' && exitCode !== 0 ? ` with exit code ${exitCode}` : '';
      return `Job "${kind}" ${JOB_ENDS[state]}${code}${message === null ? '' : `: ${message}`}`;
    },
    fields: ({ job, kind, state, exitCode, durationMs }) => {
      return { job, kind, state, exit_code: exitCode, duration_ms: Math.round(durationMs) };
    },
    pattern: 'Job "…" …',
    note: 'warn if it failed',
    isWhole: true,
  },
  'state-upgraded': info(
    ({ from, to, copy }) => `State upgraded from version ${from} to ${to}; the copy of the old one is ${copy}`,
    { fields: ({ from, to, copy }) => ({ before: from, after: to, file: copy }), isWhole: true },
  ),
  'workspace-known': debug('Workspace identified'),
  'api-outage': warn(({ message }) => `The API does not answer: ${message}`, {
    fields: ({ waitMs }) => waitSeconds(waitMs),
    repeats: { outage: () => 'service' },
  }),
  'api-recovered': info('The API recovered', { repeats: { ends: () => 'service' } }),
  'key-refused': error(({ message }) => message, {
    fields: ({ waitMs }) => waitSeconds(waitMs),
    note: [KEY_REJECTED, NO_API_ACCESS.what, scopeAdvice('…').what].map((text) => `\`${text}. …\``).join(', '),
    repeats: { outage: () => 'key', message: ({ message }) => message },
  }),
  'key-accepted': info('The API accepts the key; polling resumed', {
    // The change of the key has already ended the problem in the log.
    repeats: { ends: () => 'key', alwaysLogged: ({ isOther }) => isOther },
  }),
  'key-changed': info('The key has changed; using the new one', {
    repeats: { ends: () => 'key', alwaysLogged: () => true },
  }),
  'initial-sync-done': info(
    ({ devices, withGaps, points, pending }) =>
      withGaps === 0
        ? `Sync complete: all ${counted(devices, 'device')}, no gaps, ${counted(points, 'telemetry point')} in the archive${pending === 0 ? '' : `, ${counted(pending, 'point')} to deliver`}`
        : `Initial sync complete: ${counted(devices, 'device')}, ${grouped(withGaps)} with gaps, ${counted(points, 'telemetry point')} in the archive; the status page shows the reasons`,
    {
      fields: ({ points, pending, statusPage }) => ({ points, points_to_deliver: pending, status_page: statusPage }),
      pattern: '…',
      note: 'once after each start',
    },
  ),
  stopping: info(({ reason }) => `${reason}, shutting down`),
};

const EVENTS: Rows<AppEvent> = { ...SYNC_EVENTS, ...PROGRAM_EVENTS };

/** Returns the row of a type of event. */
export function rowOf(type: AppEvent['type']): EventRow<AppEvent> {
  // The type of the table relates every kind of event to its row. A lookup by name loses that relation.
  return EVENTS[type] as EventRow<AppEvent>;
}

/** The row of the event with this name; `undefined` for any other name. */
export function findRow(name: unknown): EventRow<AppEvent> | undefined {
  return typeof name === 'string' && Object.hasOwn(EVENTS, name) ? rowOf(name as AppEvent['type']) : undefined;
}

/** Returns the log line of an event: its level, its message and its fields. */
export function eventLine(event: AppEvent): EventLine {
  const { level, message, fields } = rowOf(event.type);
  return {
    level: typeof level === 'string' ? level : level.choose(event),
    message: typeof message === 'string' ? message : message(event),
    fields: fields === undefined ? {} : fields(event),
  };
}

/** The level of a retry: a short failure concerns only that request. */
function retryLevel({ fault, waitMs }: EventOf<'request-retried'>): LineLevel {
  // A 429 means "retry later", not a failure.
  if (fault === 'throttled') return 'info';
  if (waitMs < RETRY_INFO_SECONDS * SECOND_MS) return 'debug';
  return waitMs < RETRY_WARN_SECONDS * SECOND_MS ? 'info' : 'warn';
}

function summaryMessage(event: EventOf<'poll-summary'>): string {
  const { stream, devices, records, newPoints } = event;
  if (stream === 'account') return 'account: read';
  if (stream !== 'telemetry') return `${stream}: ${listedText(event)}, ${counted(newPoints, 'new point')}`;
  return `telemetry: ${counted(records, 'new reading')}, ${counted(devices, 'device')} polled, ${counted(newPoints, 'new point')}`;
}

function listedText({ stream, runs, requests, failed, records }: EventOf<'poll-summary'>): string {
  // An alert listing reads only the alerts that may have changed; a device listing is complete.
  const done = stream === 'alerts' ? 'read' : 'listed';
  if (failed === requests) return `not ${done}`;
  return runs > 1 ? `${done} ${runs} times (${grouped(records)} records in all)` : `${grouped(records)} ${done}`;
}

function summaryFields(event: EventOf<'poll-summary'>): FieldValues {
  const { stream, runs, requests, failed, devices, records, newPoints, periodMs } = event;
  const counts = { stream, runs, requests, failed_requests: failed, period_ms: Math.round(periodMs) };
  if (stream === 'account') return counts;
  if (stream !== 'telemetry') return { ...counts, records, new_points: newPoints };
  return { ...counts, devices, new_readings: records, new_points: newPoints };
}

/**
 * Sets the gauges for a quota that is too small.
 *
 * @param unmet what the quota is too small for; `null`: it is large enough.
 */
function setShort(to: Instruments, unmet: 'schedules' | 'readings' | null): void {
  for (const each of ['schedules', 'readings'] as const) {
    to.set('tidemark_quota_short', { of: each }, unmet === each ? 1 : 0);
  }
}
