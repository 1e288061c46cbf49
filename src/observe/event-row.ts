/** The row type of the event table, short ways to write rows, and every field that a log line may have. */

import type { AppEvent, LogLevel } from '../core/events.ts';
import { FAULT_TEXTS } from '../core/faults.ts';
import { REQUEST_LANES, STREAMS, type Stream } from '../core/ports.ts';
import { formatMs } from '../core/time.ts';
import type { Instruments } from './metrics-table.ts';

/**
 * The level of a log line.
 *
 * `error`: a person has to act. `warn`: it recovers by itself, but an operator should know. `info`: a summary of the
 * sync, or a change of state. `debug`: a request, a page, a write.
 */
export type LineLevel = LogLevel;

/** A line of the log before it is laid out. */
export interface EventLine {
  readonly level: LineLevel;
  readonly message: string;
  readonly fields: FieldValues;
}

/** The row of an event: its line, its repeats and its counts. */
export interface EventRow<E> {
  /** The level. If there are several: all of them, the usual one first, and a function that chooses one. */
  readonly level: LineLevel | { readonly any: readonly LineLevel[]; readonly choose: (event: E) => LineLevel };
  readonly message: string | ((event: E) => string);
  readonly fields?: (event: E) => FieldValues;
  /** For the reference page: when it has which level, or other details. */
  readonly note?: string;
  /** For the reference page: the message, if it cannot be derived from an event whose members are all `…`. */
  readonly pattern?: string;
  /** How often it is logged; without a rule, each time. */
  readonly repeats?: RepeatRule<E>;
  /**
   * Updates the metrics.
   *
   * @param nowMs the local wall clock.
   */
  readonly counts?: (event: E, to: Instruments, nowMs: number) => void;
  /** Returns the counts that it adds to the summary of its stream. */
  readonly sums?: (event: E) => PollSums;
  /** Whether it occurs every minute in normal operation. The recent events of the status page leave it out. */
  readonly isRoutine?: true;
  /**
   * Whether the sentence contains everything that a person needs. Then the pretty log shows no fields, as for routine
   * events.
   */
  readonly isWhole?: true;
}

export type EventOf<T extends AppEvent['type']> = Extract<AppEvent, { readonly type: T }>;

/** A row for each kind of event. */
export type Rows<E extends AppEvent> = { readonly [T in E['type']]: EventRow<EventOf<T>> };

/** The counts of a poll summary, as one event adds to them. */
export interface PollSums extends Partial<Pick<EventOf<'poll-summary'>, PollSum>> {
  readonly stream: Stream;
  /** The device that was polled. */
  readonly deviceId?: string;
}

type PollSum = 'runs' | 'requests' | 'failed' | 'records' | 'newPoints';

type RepeatRule<E> =
  /** The beginning of an outage: its subject, and the message whose change is logged. */
  | { readonly outage: (event: E) => string; readonly message?: (event: E) => string }
  /** The end of an outage. `alwaysLogged`: whether it is logged even if the outage was not. */
  | { readonly ends: (event: E) => string; readonly alwaysLogged?: (event: E) => boolean }
  /** An event without an end, by its kind. `isBrief`: it counts as over after ten minutes without it. */
  | { readonly alike: (event: E) => string; readonly isBrief?: true };

type Message<E> = EventRow<E>['message'];
type More<E> = Omit<EventRow<E>, 'level' | 'message'>;

/** Makes the row of an event that is always logged at the level `error`. */
export function error<E>(message: Message<E>, more?: More<E>): EventRow<E> {
  return { level: 'error', message, ...more };
}

/** Makes the row of an event that is always logged at the level `warn`. */
export function warn<E>(message: Message<E>, more?: More<E>): EventRow<E> {
  return { level: 'warn', message, ...more };
}

/** Makes the row of an event that is always logged at the level `info`. */
export function info<E>(message: Message<E>, more?: More<E>): EventRow<E> {
  return { level: 'info', message, ...more };
}

/** Makes the row of an event that is always logged at the level `debug`. */
export function debug<E>(message: Message<E>, more?: More<E>): EventRow<E> {
  return { level: 'debug', message, ...more };
}

/** The field of a wait, to a tenth of a second. */
export function waitSeconds(waitMs: number): { readonly wait_seconds: number } {
  return { wait_seconds: Math.round(waitMs / 100) / 10 };
}

/** A time for people. A time outside the calendar does not stop the log. */
export function instant(ms: number): string {
  return Math.abs(ms) < 8.64e15 ? formatMs(ms) : 'unknown';
}

interface Field {
  /** A unit, or what kind of text it is. */
  readonly unit: string;
  readonly meaning: string;
}

function field(unit: string, meaning: string): Field {
  return { unit, meaning };
}

function codes(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}

/**
 * Every field that a line of the log may have besides `time`, `level`, `event` and `msg`: its unit and its meaning. The
 * type checker rejects any other field.
 */
// biome-ignore format: a table, a row a field
export const FIELDS = {
  after: field('text', 'the new value'),
  after_lines: field('points', 'the points sent before the interruption'),
  api_time: field('RFC 3339', "the time on the API's clock"),
  at: field('RFC 3339', 'the time of a reading'),
  attempt: field('count', 'the number of the attempt, from 1'),
  before: field('text', 'the old value; null if there was none'),
  blocks: field('count', 'the number of archive blocks'),
  count: field('count', 'the number of records, values or readings'),
  data_dir: field('path', 'the directory of the state (`data_dir`)'),
  destination: field('name', 'the database, by its name in the configuration'),
  device_id: field('id', 'the id of the device'),
  device_name: field('text', 'the name of the device'),
  devices: field('devices', 'the number of devices'),
  duration_ms: field('milliseconds', 'the duration'),
  exit_code: field('exit code', 'the exit code of the program; in `job-ended`, the result of the job (the command that requested it may exit with another code)'),
  failed_requests: field('requests', 'the requests that failed'),
  fault: field('word', `the kind of failure: ${codes(Object.keys(FAULT_TEXTS))}; null if the request succeeded`),
  file: field('path', 'the file that was written'),
  from: field('RFC 3339', 'the start of the range'),
  gaps: field('count', 'the number of gaps'),
  grace_period_seconds: field('seconds', 'the longer grace period that the device has from now on, because its readings arrive late'),
  job: field('number', 'the number of the job in `--status`'),
  kind: field('word', 'the kind of job, or of database'),
  lane: field('word', `the purpose of the request: ${codes(REQUEST_LANES)}`),
  late_seconds: field('seconds', 'how late the latest of the readings arrived'),
  limit: field('requests', 'the limit in the response'),
  lines: field('points', 'the number of points'),
  local_time: field('RFC 3339', 'the time on the clock of this machine'),
  max_bytes: field('bytes', 'archive.max_size'),
  mistakes: field('count', 'the number of mistakes'),
  new_points: field('points', 'the points that are new in the archive'),
  new_readings: field('readings', 'the readings that are new'),
  of: field('word', '`schedules` if the poll schedules need more than the quota, `readings` if the quota cannot even fetch all readings'),
  outcome: field('word', 'the outcome of the run'),
  pattern: field('text', 'the pattern in the configuration'),
  period_ms: field('milliseconds', 'how long the summary covers: from its first request to this line'),
  points: field('points', 'the number of points'),
  points_to_deliver: field('points', 'the points that are not delivered yet'),
  problem_lines_suppressed: field('lines', 'at the end of a problem (and when a key or token changes): the number of lines about the problem that were suppressed since the last one'),
  readings: field('readings', 'the number of readings'),
  records: field('records', 'the number of records that were read'),
  request: field('path', 'method and path, without the query'),
  requested_by: field('text', 'the command that requested it'),
  requests: field('requests', 'the number of requests'),
  runs: field('count', 'the number of finished polls of the stream'),
  scope: field('word', 'the missing scope'),
  state: field('word', 'the outcome of the job: `done`, `failed`, `cancelled`'),
  status: field('HTTP status', 'the status of the response; null if there was none'),
  status_page: field('URL', 'the address of the status page'),
  stream: field('word', codes(STREAMS)),
  suppressed: field('lines', 'the number of similar lines that were suppressed since the last one'),
  to: field('RFC 3339', 'the end of the range; `now` if it has none'),
  until: field('RFC 3339', 'the time at which the wait ends'),
  version: field('text', 'the version of Tidemark'),
  wait_seconds: field('seconds', 'the time until the next attempt'),
} as const satisfies Readonly<Record<string, Field>>;

type FieldName = keyof typeof FIELDS;

/** A value of a field: plain, so that no object from outside gets into the log. */
export type LogValue = string | number | boolean | null;

/** The fields of a line. Only plain values, so that no object from outside is logged. */
export type FieldValues = { readonly [F in FieldName]?: LogValue };
