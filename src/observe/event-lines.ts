/**
 * What each event says in the log, and how loudly. Pure; text from outside is made safe by the log itself.
 *
 * - `error`: a person has to act; it does not heal by itself.
 * - `warn`: it heals by itself, or somebody should know.
 * - `info`: a round of the sync, or a change of state.
 * - `debug`: a request, a page, a write.
 *
 * `log-table.ts` has the same for readers.
 */
import type { AppEvent } from '../core/events.ts';
import { LATER_HINT } from '../core/held-hint.ts';
import { SECOND_MS } from '../core/time.ts';
import type { FieldValues } from './log-fields.ts';

export type LineLevel = 'error' | 'warn' | 'info' | 'debug';

/** A line of the log before it is laid out. */
export interface EventLine {
  readonly level: LineLevel;
  readonly message: string;
  readonly fields: FieldValues;
}

/** How loud it is that a request will be tried again: a blip is nothing but that request's own matter. */
function loudness(waitMs: number): LineLevel {
  if (waitMs < 5 * SECOND_MS) return 'debug';
  return waitMs < 20 * SECOND_MS ? 'info' : 'warn';
}

const WAITS = {
  pace: 'keeping an even pace',
  minute: "this minute's share of the allowance is spent",
  day: "this day's share of the allowance is spent",
  asked: 'the API asked to wait',
} as const;

const JOB_ENDS = { done: 'is done', failed: 'has failed', cancelled: 'was cancelled' } as const;

type Lines = { readonly [T in AppEvent['type']]: (event: Extract<AppEvent, { type: T }>) => EventLine };

/** Total: a new kind of event does not compile without a line. */
const LINES: Lines = {
  'request-done': ({ request, lane, status, durationMs, fault }) =>
    line('debug', 'request done', { request, lane, status, fault, duration_ms: Math.round(durationMs) }),
  // A refusal for lack of allowance is the API's way to say "later", not a failure.
  'request-retried': ({ request, fault, attempt, waitMs, message }) =>
    line(fault === 'throttled' ? 'info' : loudness(waitMs), `a request will be tried again: ${message}`, {
      request,
      fault,
      attempt,
      ...seconds(waitMs),
    }),
  'allowance-wait': ({ reason, untilMs }) => line('info', `waiting: ${WAITS[reason]}`, { until: instant(untilMs) }),
  'allowance-short': ({ of, message }) => line('warn', `the allowance is short: ${message}`, { of }),
  'allowance-enough': () => line('info', 'the allowance carries the schedules again', {}),
  'plan-doubted': ({ limit }) => line('info', 'the API speaks of a limit that the plan does not have', { limit }),
  'plan-changed': ({ before, after }) => line('warn', 'the plan of the workspace has changed', { before, after }),

  'records-rejected': ({ stream, count, reason }) =>
    line('warn', `records were set aside: ${reason}`, { stream, count }),
  'values-dropped': ({ deviceId, count, reason }) =>
    line('warn', `values were set aside, the others of their readings are written: ${reason}`, {
      device_id: deviceId,
      count,
    }),
  'page-landed': ({ deviceId, lane, readings, newPoints }) =>
    line('debug', 'a page landed', {
      device_id: deviceId,
      lane,
      new_readings: readings,
      new_points: newPoints,
    }),
  'page-distrusted': ({ deviceId, reason, attempt }) =>
    line(attempt > 1 ? 'warn' : 'info', `a page proves nothing: ${reason}`, { device_id: deviceId, attempt }),
  restatement: ({ deviceId, at }) =>
    line('warn', 'the API no longer shows a reading that it showed before', { device_id: deviceId, at }),
  'readings-late': ({ deviceId, count, worstMs, settleMs }) =>
    line('info', 'readings came after their time counted as complete: they are delivered all the same', {
      device_id: deviceId,
      count,
      late_seconds: Math.round(worstMs / SECOND_MS),
      settle_seconds: Math.round(settleMs / SECOND_MS),
    }),
  'claims-withdrawn': ({ deviceId, from, to }) =>
    line('warn', "the server's clock has fallen back: what lies beyond its present is read again", {
      device_id: deviceId,
      from,
      to,
    }),
  'gap-named': ({ deviceId, reason, from, to }) =>
    // Where pages are what is short, there is one with every page, and one warning for them all.
    line(reason === 'beyond allowance' ? 'debug' : 'warn', `a gap is left: ${reason}`, {
      device_id: deviceId,
      from,
      to,
    }),
  'stream-failed': ({ stream, message }) => line('warn', `${stream} could not be read: ${message}`, { stream }),
  'listing-landed': ({ stream, records, newPoints }) =>
    line('debug', 'a page of a listing was taken in', { stream, records, new_points: newPoints }),
  'round-done': roundLine,
  'stream-read': ({ stream }) => line('debug', 'a stream was read', { stream }),
  'stream-back': ({ stream }) => line('info', `${stream} can be read again`, { stream }),
  'stream-off': ({ stream, scope }) =>
    line(
      // Without these nothing is synced at all; the others may be left out on purpose.
      stream === 'telemetry' || stream === 'devices' ? 'error' : 'warn',
      `the key lacks the scope ${scope}: this stream is off, the others run. Give the key the scope (noticed within the hour), or exchange the key in api.key_file (noticed at once)`,
      { stream, scope },
    ),

  'stream-on': ({ stream }) => line('info', 'the key has the scope of this stream now: it is on again', { stream }),

  'device-appeared': ({ deviceId, name }) => line('info', 'a new device', { device_id: deviceId, device_name: name }),
  'device-renamed': ({ deviceId, before, after }) =>
    line('info', 'a device was renamed', { device_id: deviceId, before, after }),
  'device-gone': ({ deviceId }) => line('info', 'a device is gone', { device_id: deviceId }),
  'device-returned': ({ deviceId }) => line('info', 'a device is back', { device_id: deviceId }),
  'filter-matches-nothing': ({ key, pattern }) => {
    const what = key === 'sync.exclude_sensors' ? 'no sensor that was read so far' : 'no device';
    return line('warn', `${key}: ${what} matches this pattern; is it a typing error?`, { pattern });
  },

  'destination-new': ({ destination, known, before, points }) =>
    line(
      before === null ? 'info' : 'warn',
      `${known ? 'a destination that was left is taken up again' : 'a new destination'}: ${points > 0 ? 'it is filled from the archive' : 'nothing in the archive waits for it, it gets what is read from now on'}`,
      { destination, points, before },
    ),
  'destination-older': ({ destination }) =>
    line(
      'warn',
      'the state is empty, but the database has telemetry of this workspace already: devices that were renamed since are written anew, under the names that they have today. If there is an older state, or a copy of one (--backup), stop, put that into data_dir and start again; else there is nothing to do',
      { destination },
    ),
  'destination-kind': ({ destination, kind }) =>
    line('info', `the database says that it is ${kind === 'influxdb' ? 'an InfluxDB' : 'a VictoriaMetrics'}`, {
      destination,
      kind,
    }),
  'lines-delivered': ({ destination, lines, durationMs }) =>
    line('debug', 'lines delivered', { destination, lines, duration_ms: Math.round(durationMs) }),
  'lines-quarantined': ({ destination, lines, words }) =>
    line('warn', `points were refused and are kept in quarantine: ${words}`, { destination, lines }),
  'lines-beyond-retention': ({ destination, lines }) =>
    line('info', 'points are older than the database keeps: they are not there', { destination, lines }),
  'destination-held': ({ destination, lines, words, hint, waitMs }) =>
    line(
      // Where it says what a person can do, nothing but that helps.
      hint === '' || hint === LATER_HINT ? 'warn' : 'error',
      `delivery is held: ${words}${hint === '' ? '' : `; ${hint}`}`,
      { destination, lines, ...seconds(waitMs) },
    ),
  'destination-moving': ({ destination }) => line('info', 'delivery moves again', { destination }),
  'replay-begun': ({ destination, resumedAfter, from, to }) =>
    line(
      'info',
      resumedAfter === null ? 'archived points are sent again' : 'goes on with sending archived points again',
      { destination, from, to: to ?? 'now', ...(resumedAfter === null ? {} : { after_lines: resumedAfter }) },
    ),
  'replay-ended': ({ destination, outcome, lines }) =>
    line(outcome === 'complete' ? 'info' : 'warn', `sending archived points again: ${outcome}`, { destination, lines }),

  'device-forgotten': ({ deviceId, points }) =>
    line('info', 'what was held of a device is removed, as was asked for', { device_id: deviceId, points }),

  'job-started': ({ job, kind, askedBy }) =>
    line('info', `a command asked for work, which is begun: ${kind}`, { job, kind, asked_by: askedBy }),
  'job-ended': ({ job, kind, state, exitCode, message, durationMs }) =>
    line(
      state === 'failed' ? 'warn' : 'info',
      `the work that a command asked for ${JOB_ENDS[state]}: ${kind}${message === null ? '' : `: ${message}`}`,
      { job, kind, state, exit_code: exitCode, duration_ms: Math.round(durationMs) },
    ),

  'workspace-known': () => line('debug', 'the workspace is known', {}),
  'service-trouble': ({ message, waitMs }) => line('warn', `the API does not answer: ${message}`, seconds(waitMs)),
  'service-back': () => line('info', 'the API answers again', {}),
  'key-refused': ({ message, waitMs }) => line('error', message, seconds(waitMs)),
  'key-accepted': () => line('info', 'the API takes the key again: the sync goes on', {}),
  'key-exchanged': () => line('info', 'the key was exchanged: going on with the new one', {}),
  'archive-only': ({ maxBytes }) =>
    line('info', 'no database is configured: the archive alone is filled, and pulling stops at archive.max_size', {
      max_bytes: maxBytes,
    }),
  'archive-cleared': ({ blocks, lines, why }) =>
    line('debug', `delivered points were cleared from the archive, by their ${why}`, { blocks, lines }),
  'pulling-stopped': ({ reason }) => line('error', `pulling has stopped: ${reason}`, {}),
  'pulling-resumed': () => line('info', 'there is room again: pulling goes on', {}),
  'destination-set-aside': ({ destination, lines }) =>
    line(
      'error',
      'a destination blocks for too long while others move: it is set aside, and lacks what waited for it',
      {
        destination,
        lines,
      },
    ),

  'pass-started': ({ devices }) => line('debug', 'a pass begins', { devices }),
  'pass-failed': ({ message, waitMs }) => line('warn', `a pass failed: ${message}`, seconds(waitMs)),
  'pass-back': () => line('info', 'a pass went through again', {}),
  'first-fill-done': ({ devices, withGaps, points, pending, statusPage }) =>
    line(
      'info',
      withGaps === 0
        ? `all ${devices} devices are held in full`
        : `all that can be had of ${devices} devices is held; ${withGaps} of them have gaps, with their reasons on the status page`,
      { points, points_to_deliver: pending, status_page: statusPage },
    ),
  stopping: ({ reason }) => line('info', `${reason}: what is under way is brought to an end`, {}),
};

function roundLine(event: Extract<AppEvent, { type: 'round-done' }>): EventLine {
  const { stream, runs, requests, failed, devices, records, newPoints, durationMs } = event;
  const counts = { stream, runs, requests, failed_requests: failed, duration_ms: Math.round(durationMs) };
  const news = `${newPoints} new points`;
  switch (stream) {
    case 'telemetry':
      return line('info', `telemetry: ${records} new readings of ${devices} devices, ${news}`, {
        ...counts,
        devices,
        new_readings: records,
        new_points: newPoints,
      });
    case 'account':
      return line('info', 'the account was read', counts);
    default:
      return line('info', `${stream}: ${listedWords(event)}, ${news}`, { ...counts, records, new_points: newPoints });
  }
}

function listedWords({ runs, requests, failed, records }: Extract<AppEvent, { type: 'round-done' }>): string {
  if (failed === requests) return 'not listed';
  return runs > 1 ? `${records} listed in ${runs} runs` : `${records} listed`;
}

/** The line of an event. */
export function describeEvent(event: AppEvent): EventLine {
  // The table's type ties every kind of event to its line; only a call by name loses sight of that.
  return (LINES[event.type] as (event: AppEvent) => EventLine)(event);
}

function line(level: LineLevel, message: string, fields: FieldValues): EventLine {
  return { level, message, fields };
}

function seconds(waitMs: number): { wait_seconds: number } {
  return { wait_seconds: Math.round(waitMs / 100) / 10 };
}

/** A time for people; one that no calendar has does not stop the log. */
function instant(ms: number): string {
  return Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString() : 'unknown';
}
