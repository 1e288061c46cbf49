/**
 * The table of events: for each one the log line with its level and fields, how often a repetition is logged, and which
 * metrics it counts. The log, the metrics, the recent events of the status page and the reference page (`docs/logs.md`)
 * all use it.
 *
 * A new event touches two files: its type in `core/events.ts` and its row here. An event without a row does not
 * compile. A new field is declared in `event-row.ts`, a new metric in `metrics-table.ts`.
 *
 * Pure; the log itself makes text from outside safe.
 */
import type { AppEvent, ProgramEvent } from '../core/events.ts';
import { internalErrorWords } from '../core/faults.ts';
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

const WAITS = {
  pace: 'keeping an even pace',
  minute: "this minute's share of the allowance is spent",
  day: "this day's share of the allowance is spent",
  asked: 'the API asked to wait',
} as const;

const JOB_ENDS = { done: 'is done', failed: 'has failed', cancelled: 'was cancelled' } as const;

/** Events of the sync, in the order of the reference page. */
export const SYNC_EVENTS: Rows<Exclude<AppEvent, ProgramEvent>> = {
  'request-done': debug('request done', {
    fields: ({ request, lane, status, durationMs, fault }) => {
      return { request, lane, status, fault, duration_ms: Math.round(durationMs) };
    },
    counts: ({ stream, lane, status, durationMs, fault }, to, nowMs) => {
      to.count('tidemark_api_requests_total', { stream, lane, status: status === null ? 'none' : String(status) });
      to.time('tidemark_api_request_duration_seconds', { stream }, durationMs);
      if (fault === null) to.set('tidemark_stream_last_success_timestamp_seconds', { stream }, nowMs / 1000);
      else to.count('tidemark_api_faults_total', { fault });
      if (fault === 'throttled') to.count('tidemark_api_throttled_total', {});
    },
  }),
  'request-retried': {
    level: { any: ['debug', 'info', 'warn'], of: retryLevel },
    message: ({ message }) => `a request will be tried again: ${message}`,
    fields: ({ request, fault, attempt, waitMs }) => ({ request, fault, attempt, ...waitSeconds(waitMs) }),
    note: 'by its wait: info from 5 seconds on and for lack of allowance, warn from 20 seconds on',
    repeats: { alike: ({ fault }) => fault, isBrief: true },
    counts: (_, to) => to.count('tidemark_api_retries_total', {}),
  },
  'quota-wait': info(({ reason }) => `waiting: ${WAITS[reason]}`, {
    fields: ({ untilMs }) => ({ until: instant(untilMs) }),
    pattern: 'waiting: …',
    repeats: { alike: ({ reason }) => reason },
    counts: ({ reason }, to) => to.count('tidemark_allowance_waits_total', { reason }),
  }),
  'quota-short': warn(({ message }) => `the allowance is short: ${message}`, {
    fields: ({ of }) => ({ of }),
    counts: ({ of }, to) => setShort(to, of),
  }),
  'quota-enough': info('the allowance carries the schedules again', { counts: (_, to) => setShort(to, null) }),
  'limit-mismatch': info('the API speaks of a limit that the plan does not have', {
    fields: ({ limit }) => ({ limit }),
  }),
  'plan-changed': warn('the plan of the workspace has changed', { fields: ({ before, after }) => ({ before, after }) }),
  'records-rejected': warn(({ reason }) => `records were set aside: ${reason}`, {
    fields: ({ stream, count }) => ({ stream, count }),
    repeats: { alike: ({ stream, reason }) => `${stream} ${reason}` },
    counts: ({ stream, count }, to) => to.count('tidemark_records_rejected_total', { stream }, count),
  }),
  'values-dropped': warn(({ reason }) => `values were set aside, the others of their readings are written: ${reason}`, {
    fields: ({ deviceId, count }) => ({ device_id: deviceId, count }),
    repeats: { alike: ({ deviceId, reason }) => `${deviceId} ${reason}` },
    counts: ({ count }, to) => to.count('tidemark_values_dropped_total', {}, count),
  }),
  'page-committed': debug('a page landed', {
    fields: ({ deviceId, lane, readings, newPoints }) => {
      return { device_id: deviceId, lane, new_readings: readings, new_points: newPoints };
    },
    counts: ({ lane, served, readings, newPoints }, to) => {
      to.count('tidemark_readings_pulled_total', { lane }, served);
      to.count('tidemark_readings_new_total', { lane }, readings);
      to.count('tidemark_points_archived_total', { lane }, newPoints);
    },
  }),
  'page-rejected': {
    level: { any: ['info', 'warn'], of: ({ attempt }) => (attempt > 1 ? 'warn' : 'info') },
    message: ({ reason }) => `a page proves nothing: ${reason}`,
    fields: ({ deviceId, attempt }) => ({ device_id: deviceId, attempt }),
    note: 'warn from the second try on',
    repeats: { alike: ({ deviceId, reason }) => `${deviceId} ${reason}` },
    counts: (_, to) => to.count('tidemark_pages_distrusted_total', {}),
  },
  restatement: warn('the API no longer shows a reading that it showed before', {
    fields: ({ deviceId, at }) => ({ device_id: deviceId, at }),
    repeats: { alike: ({ deviceId }) => deviceId },
    counts: (_, to) => to.count('tidemark_restatements_total', {}),
  }),
  'readings-late': info('readings came after their time counted as complete: they are delivered all the same', {
    fields: ({ deviceId, count, worstMs, gracePeriodMs }) => ({
      device_id: deviceId,
      count,
      late_seconds: Math.round(worstMs / SECOND_MS),
      settle_seconds: Math.round(gracePeriodMs / SECOND_MS),
    }),
    repeats: { alike: ({ deviceId }) => deviceId },
    counts: ({ count }, to) => to.count('tidemark_readings_late_total', {}, count),
  }),
  'clock-unconfirmed': warn(
    "the API's clock agrees with no other clock: nothing is covered until a second answer confirms it, a minute later",
    { fields: ({ date, local }) => ({ api_time: date, local_time: local }) },
  ),
  'coverage-withdrawn': warn("the server's clock has fallen back: what lies beyond its present is read again", {
    fields: ({ deviceId, from, to }) => ({ device_id: deviceId, from, to }),
  }),
  // Where pages are what is short, there is one with every page, and one warning for them all.
  'gap-recorded': {
    level: {
      any: ['warn', 'info', 'debug'],
      of: ({ reason }) => (reason === 'beyond allowance' ? 'debug' : reason === 'unverified' ? 'info' : 'warn'),
    },
    message: ({ reason }) => `a gap is left: ${reason}`,
    fields: ({ deviceId, from, to }) => ({ device_id: deviceId, from, to }),
    note: 'debug where pages are what is short: `quota-short` tells of all of them',
    repeats: { alike: ({ deviceId, reason }) => `${deviceId} ${reason}` },
    counts: ({ reason }, to) => to.count('tidemark_gaps_named_total', { reason }),
  },
  // Without these nothing is synced at all; the others may be left out on purpose.
  'stream-off': {
    level: {
      any: ['warn', 'error'],
      of: ({ stream }) => (stream === 'telemetry' || stream === 'devices' ? 'error' : 'warn'),
    },
    message: ({ scope }) =>
      `the key lacks the scope ${scope}: this stream is off, the others run. Give the key the scope (noticed within the hour), or exchange the key in api.key_file (noticed at once)`,
    fields: ({ stream, scope }) => ({ stream, scope }),
    pattern: 'the key lacks the scope …: this stream is off, the others run. …',
    note: 'error for devices and telemetry: nothing is synced without them',
    repeats: { ends: ({ stream }) => `stream ${stream}`, isNews: true },
  },
  'stream-on': info('the key has the scope of this stream now: it is on again', {
    fields: ({ stream }) => ({ stream }),
  }),
  'stream-failed': warn(({ stream, message }) => `${stream} could not be read: ${message}`, {
    fields: ({ stream }) => ({ stream }),
    repeats: { outage: ({ stream }) => `stream ${stream}` },
    counts: ({ stream }, to) => to.count('tidemark_stream_runs_total', { stream, result: 'failed' }),
  }),
  'stream-read': debug('a stream was read', {
    fields: ({ stream }) => ({ stream }),
    counts: ({ stream }, to) => to.count('tidemark_stream_runs_total', { stream, result: 'ok' }),
  }),
  'stream-recovered': info(({ stream }) => `${stream} can be read again`, {
    fields: ({ stream }) => ({ stream }),
    repeats: { ends: ({ stream }) => `stream ${stream}` },
  }),
  'list-page-committed': debug('a page of a listing was taken in', {
    fields: ({ stream, records, newPoints }) => ({ stream, records, new_points: newPoints }),
  }),
  'poll-summary': info(roundMessage, {
    fields: roundFields,
    pattern: '…',
    fieldNames: [
      'stream',
      'runs',
      'requests',
      'failed_requests',
      'devices',
      'new_readings',
      'records',
      'new_points',
      'duration_ms',
    ],
    note: 'a round of a stream: `telemetry: 3 new readings of 2 devices, 12 new points`, `devices: 31 listed, 0 new points`, `alerts: …`, `the account was read`; one a minute at most for each stream, telemetry by the minute',
    isRoutine: true,
  }),
  'device-appeared': info('a new device', {
    fields: ({ deviceId, name }) => ({ device_id: deviceId, device_name: name }),
  }),
  'device-renamed': info('a device was renamed', {
    fields: ({ deviceId, before, after }) => ({ device_id: deviceId, before, after }),
  }),
  'device-gone': info('a device is gone', { fields: ({ deviceId }) => ({ device_id: deviceId }) }),
  'device-returned': info('a device is back', { fields: ({ deviceId }) => ({ device_id: deviceId }) }),
  'filter-matches-nothing': warn(
    ({ key }) => {
      const what = key === 'sync.exclude_sensors' ? 'no sensor that was read so far' : 'no device';
      return `${key}: ${what} matches this pattern; is it a typing error?`;
    },
    { fields: ({ pattern }) => ({ pattern }), pattern: '…: … matches this pattern; is it a typing error?' },
  ),
  'destination-new': {
    level: { any: ['info', 'warn'], of: ({ before }) => (before === null ? 'info' : 'warn') },
    message: ({ known, points }) =>
      `${known ? 'a destination that was left is taken up again' : 'a new destination'}: ${points > 0 ? 'it is filled from the archive' : 'nothing in the archive waits for it, it gets what is read from now on'}`,
    fields: ({ destination, points, before }) => ({ destination, points, before }),
    pattern: '… destination…: …',
    note: 'warn where another had the name before',
  },
  'destination-older': warn(
    'the state is empty, but the database has telemetry of this workspace already: devices that were renamed since are written anew, under the names that they have today. If there is an older state, or a copy of one (--backup), stop, put that into data_dir and start again; else there is nothing to do',
    {
      fields: ({ destination }) => ({ destination }),
      pattern: 'the state is empty, but the database has telemetry of this workspace already: …',
    },
  ),
  'destination-kind': info(
    ({ kind }) => `the database says that it is ${kind === 'influxdb' ? 'an InfluxDB' : 'a VictoriaMetrics'}`,
    { fields: ({ destination, kind }) => ({ destination, kind }), pattern: 'the database says that it is …' },
  ),
  'lines-delivered': debug('lines delivered', {
    fields: ({ destination, lines, durationMs }) => ({ destination, lines, duration_ms: Math.round(durationMs) }),
    counts: ({ destination, lines, durationMs }, to) => {
      to.count('tidemark_points_written_total', { destination }, lines);
      to.time('tidemark_write_duration_seconds', { destination }, durationMs);
    },
  }),
  'lines-quarantined': warn(({ words }) => `points were refused and are kept in quarantine: ${words}`, {
    fields: ({ destination, lines }) => ({ destination, lines }),
    repeats: { alike: ({ destination, words }) => `${destination} ${words}` },
    counts: ({ destination, lines }, to) => to.count('tidemark_points_refused_total', { destination }, lines),
  }),
  'lines-beyond-retention': info('points are older than the database keeps: they are not there', {
    fields: ({ destination, lines }) => ({ destination, lines }),
    repeats: { alike: ({ destination }) => destination },
    counts: ({ destination, lines }, to) => to.count('tidemark_points_beyond_retention_total', { destination }, lines),
  }),
  'delivery-blocked': {
    level: { any: ['warn', 'error'], of: ({ needsPerson }) => (needsPerson ? 'error' : 'warn') },
    message: ({ words, hint }) => `delivery is held: ${words}${hint === '' ? '' : `; ${hint}`}`,
    fields: ({ destination, lines, waitMs }) => ({ destination, lines, ...waitSeconds(waitMs) }),
    pattern: 'delivery is held: …',
    note: 'error where only a person can mend it (token, bucket, address), warn where the database is down or busy',
    repeats: { outage: ({ destination }) => `destination ${destination}`, words: ({ words }) => words },
    counts: ({ destination, lines }, to) => to.count('tidemark_points_retried_total', { destination }, lines),
  },
  'delivery-resumed': info('delivery moves again', {
    fields: ({ destination }) => ({ destination }),
    repeats: { ends: ({ destination }) => `destination ${destination}` },
  }),
  'replay-started': info(
    ({ resumedAfter }) =>
      resumedAfter === null ? 'archived points are sent again' : 'goes on with sending archived points again',
    {
      fields: ({ destination, resumedAfter, from, to }) => {
        return { destination, from, to: to ?? 'now', ...(resumedAfter === null ? {} : { after_lines: resumedAfter }) };
      },
      pattern: '…archived points…again',
    },
  ),
  'replay-ended': {
    level: { any: ['info', 'warn'], of: ({ outcome }) => (outcome === 'complete' ? 'info' : 'warn') },
    message: ({ outcome }) => `sending archived points again: ${outcome}`,
    fields: ({ destination, lines }) => ({ destination, lines }),
    note: 'warn unless it is complete',
  },
  'device-forgotten': info('what was held of a device is removed, as was asked for', {
    fields: ({ deviceId, points }) => ({ device_id: deviceId, points }),
  }),
  'archive-only': info(
    'no database is configured: the archive alone is filled, and pulling stops at archive.max_size',
    { fields: ({ maxBytes }) => ({ max_bytes: maxBytes }) },
  ),
  'archive-cleared': debug(({ why }) => `delivered points were cleared from the archive, by their ${why}`, {
    fields: ({ blocks, lines }) => ({ blocks, lines }),
  }),
  'polling-stopped': error(({ reason }) => `pulling has stopped: ${reason}`, { repeats: { outage: () => 'room' } }),
  'polling-resumed': info('there is room again: pulling goes on', { repeats: { ends: () => 'room' } }),
  'destination-skipped': error(
    'a destination blocks for too long while others move: it is set aside, and lacks what waited for it',
    { fields: ({ destination, lines }) => ({ destination, lines }) },
  ),
  'job-started': info(({ kind }) => `a command asked for work, which is begun: ${kind}`, {
    fields: ({ job, kind, askedBy }) => ({ job, kind, asked_by: askedBy }),
  }),
  'job-ended': {
    level: { any: ['info', 'warn'], of: ({ state }) => (state === 'failed' ? 'warn' : 'info') },
    message: ({ kind, state, message }) =>
      `the work that a command asked for ${JOB_ENDS[state]}: ${kind}${message === null ? '' : `: ${message}`}`,
    fields: ({ job, kind, state, exitCode, durationMs }) => {
      return { job, kind, state, exit_code: exitCode, duration_ms: Math.round(durationMs) };
    },
    pattern: 'the work that a command asked for …',
    note: 'warn where it failed',
  },
  'workspace-known': debug('the workspace is known'),
  'api-outage': warn(({ message }) => `the API does not answer: ${message}`, {
    fields: ({ waitMs }) => waitSeconds(waitMs),
    repeats: { outage: () => 'service' },
  }),
  'api-recovered': info('the API answers again', { repeats: { ends: () => 'service' } }),
  'key-refused': error(({ message }) => message, {
    fields: ({ waitMs }) => waitSeconds(waitMs),
    note: '`the API refuses the key: …`, `the plan of this workspace has no access to the API. …`, `the key lacks the scope …`',
    repeats: { outage: () => 'key', words: ({ message }) => message },
  }),
  'key-accepted': info('the API takes the key again: the sync goes on', {
    note: 'after `key-changed` on debug only',
    repeats: { ends: () => 'key' },
  }),
  'key-changed': info('the key was exchanged: going on with the new one', {
    repeats: { ends: () => 'key', isNews: true },
  }),
  'initial-sync-done': info(
    ({ devices, withGaps }) =>
      withGaps === 0
        ? `all ${devices} devices are held in full`
        : `all that can be had of ${devices} devices is held; ${withGaps} of them have gaps, with their reasons on the status page`,
    {
      fields: ({ points, pending, statusPage }) => ({ points, points_to_deliver: pending, status_page: statusPage }),
      pattern: 'all …',
      note: '`all 31 devices are held in full`, or how many have gaps; once after each start',
    },
  ),
  stopping: info(({ reason }) => `${reason}: what is under way is brought to an end`),
};

/** Events of the program around the sync and of its commands. */
export const PROGRAM_EVENTS: Rows<ProgramEvent> = {
  started: info('tidemark runs', { fields: ({ statusPage }) => ({ status_page: statusPage }) }),
  stopped: info('stopped'),
  'status-page-failed': error(({ message }) => `status page: ${message}`),
  progress: info(({ message }) => message, { note: 'how far long work is, once a minute' }),
  'configuration-odd': warn(({ message }) => message),
  'configuration-invalid': error(({ message }) => `The configuration is not usable: ${message}`, {
    fields: ({ mistakes, exitCode }) => ({ mistakes, exit_code: exitCode }),
    note: 'where `log.format: json` can be read, or is in the environment; elsewhere it is told as text',
  }),
  failed: error(({ message, isKnown }) => (isKnown ? message : internalErrorWords(message)), {
    fields: ({ exitCode }) => ({ exit_code: exitCode }),
    note: 'the last line of a program that ends because of an error, with `log.format: json`; elsewhere it is told as text',
  }),
  'run-ended': {
    level: { any: ['info', 'warn'], of: ({ exitCode }) => (exitCode === 0 ? 'info' : 'warn') },
    message: ({ exitCode, isAllRead, outcome }) => {
      if (exitCode !== 0) return `ended before it was complete: ${outcome}`;
      return `${isAllRead ? 'all' : 'all that the key may read'} is in place`;
    },
    fields: ({ devices, points, gaps, exitCode, outcome }) => {
      return { devices, points, gaps, exit_code: exitCode, outcome };
    },
    pattern: '…',
    note: '`--once`, `--backfill`: all is in place, or why not (warn)',
  },
  'run-incomplete': {
    level: { any: ['warn', 'info'], of: ({ isWanted }) => (isWanted ? 'info' : 'warn') },
    message: ({ message }) => message,
    note: '`--once`, `--backfill`: something that is not in place, a line each; info for what was left out on purpose',
  },
  'replay-report': told('`--replay`: what has become of the points'),
  'export-report': told('`--export`: what was written, and what the archive has no longer'),
  'repair-report': {
    ...told('`--verify --repair`: what is fetched again, and what could not be'),
    fields: ({ cost }) => {
      if (cost === null) return {};
      const { destination, points, readings, requests } = cost;
      return { destination, points, readings, requests };
    },
  },
  'job-followed': info('a daemon works with this state: it does the work, with its own configuration', {
    fields: ({ dataDir }) => ({ data_dir: dataDir }),
  }),
  'job-queued': info(
    'the daemon is at other work of this kind, which a command asked for before: this one waits (--status tells of both)',
  ),
  'bundle-written': info('a support bundle was written: look through it before you send it', {
    fields: ({ file }) => ({ file }),
  }),
};

const EVENTS: Rows<AppEvent> = { ...SYNC_EVENTS, ...PROGRAM_EVENTS };

/** The row of a kind of event. */
export function rowOf(type: AppEvent['type']): EventRow<AppEvent> {
  // The table's type ties every kind of event to its row; only a look-up by name loses sight of that.
  return EVENTS[type] as EventRow<AppEvent>;
}

/** The line of an event. */
export function lineOf(event: AppEvent): EventLine {
  const { level, message, fields } = rowOf(event.type);
  return {
    level: typeof level === 'string' ? level : level.of(event),
    message: typeof message === 'string' ? message : message(event),
    fields: fields === undefined ? {} : fields(event),
  };
}

/** How loud it is that a request will be tried again: a blip is nothing but that request's own matter. */
function retryLevel({ fault, waitMs }: EventOf<'request-retried'>): LineLevel {
  // A refusal for lack of allowance is the API's way to say "later", not a failure.
  if (fault === 'throttled') return 'info';
  if (waitMs < 5 * SECOND_MS) return 'debug';
  return waitMs < 20 * SECOND_MS ? 'info' : 'warn';
}

/** A line in words of the command's own. */
function told<E extends { readonly message: string; readonly isWell: boolean }>(note: string): EventRow<E> {
  return {
    level: { any: ['info', 'warn'], of: ({ isWell }) => (isWell ? 'info' : 'warn') },
    message: ({ message }) => message,
    note,
  };
}

function roundMessage(event: EventOf<'poll-summary'>): string {
  const { stream, devices, records, newPoints } = event;
  if (stream === 'account') return 'the account was read';
  if (stream !== 'telemetry') return `${stream}: ${listedWords(event)}, ${newPoints} new points`;
  return `telemetry: ${records} new readings of ${devices} devices, ${newPoints} new points`;
}

function listedWords({ runs, requests, failed, records }: EventOf<'poll-summary'>): string {
  if (failed === requests) return 'not listed';
  return runs > 1 ? `${records} listed in ${runs} runs` : `${records} listed`;
}

function roundFields(event: EventOf<'poll-summary'>): FieldValues {
  const { stream, runs, requests, failed, devices, records, newPoints, durationMs } = event;
  const counts = { stream, runs, requests, failed_requests: failed, duration_ms: Math.round(durationMs) };
  if (stream === 'account') return counts;
  if (stream !== 'telemetry') return { ...counts, records, new_points: newPoints };
  return { ...counts, devices, new_readings: records, new_points: newPoints };
}

/** @param of what the allowance does not carry; `null`: it carries all. */
function setShort(to: Instruments, of: 'schedules' | 'readings' | null): void {
  for (const each of ['schedules', 'readings'] as const) {
    to.set('tidemark_allowance_short', { of: each }, of === each ? 1 : 0);
  }
}
