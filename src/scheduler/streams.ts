/**
 * The streams that are read completely each time: the account, the alerts and the device list. For each of them: when
 * it is due, its delay relative to its schedule, and how often reading the device list saves more requests than it
 * costs. Also the mean interval of every schedule.
 */
import { hash64 } from '../core/hash.ts';
import type { Schedule, Schedules } from '../core/ports.ts';
import { DAY_MS, type EpochMs, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time.ts';

/** The streams that are read as a whole. */
export const WHOLE_STREAMS = ['account', 'alerts', 'devices'] as const;

export type WholeStream = (typeof WHOLE_STREAMS)[number];

/** How long a stream rests after a failure of its own. */
const REST_MS = 5 * SECOND_MS;
const LONGEST_REST_MS = 2 * MINUTE_MS;

/** The range of the phase, so that containers with the same schedule do not all send requests in its first second. */
const PHASE_WITHIN_MS = MINUTE_MS;

/** The phase of a workspace. It is always the same, and many workspaces are spread evenly. */
export function phaseOf(workspace: string): number {
  return hash64(workspace).lo % PHASE_WITHIN_MS;
}

/** When a whole stream (account, devices or alerts) was read and may be read again. */
export interface PlannedStream {
  /** When it was last read to its end; negative infinity if it never was. */
  readonly readMs: number;
  /** The earliest time of its next request, even if the stream is due. */
  readonly restMs: number;
  readonly isUnderWay: boolean;
  /** Whether it is due at once: it has more pages, or it was requested. */
  readonly isUrgent: boolean;
  /** Whether a command or a person requests it now. */
  readonly isRequested: boolean;
  readonly failures: number;
  /** When it last failed since it was read; negative infinity if it did not. */
  readonly failedMs: number;
}

/** A stream that was never read. */
export const UNREAD_STREAM: PlannedStream = {
  readMs: Number.NEGATIVE_INFINITY,
  restMs: Number.NEGATIVE_INFINITY,
  isUnderWay: false,
  isUrgent: false,
  isRequested: false,
  failures: 0,
  failedMs: Number.NEGATIVE_INFINITY,
};

/** The requests of a failing attempt: the client retries them. */
const TRY_REQUESTS = 5;

/** Whether it has failed since it was last read. */
export function isFailing({ failedMs }: PlannedStream): boolean {
  return Number.isFinite(failedMs);
}

/**
 * When it is due; infinite while it is being read.
 *
 * @param everyMs the interval after its last end.
 */
export function dueMs({ readMs, restMs, isUnderWay, isUrgent }: PlannedStream, everyMs: number): number {
  if (isUnderWay) return Number.POSITIVE_INFINITY;
  return isUrgent ? restMs : Math.max(restMs, readMs + everyMs);
}

/**
 * How far it is behind, in periods, if it is due; otherwise 0. While it fails, this counts from its last attempt, and
 * its period is longer by the requests that an attempt takes, so that it takes no more requests from the others than
 * before.
 */
export function periodsBehind(stream: PlannedStream, everyMs: number, nowMs: number): number {
  if (dueMs(stream, everyMs) > nowMs) return 0;
  const { readMs, failedMs } = stream;
  const periods = isFailing(stream) ? (nowMs - failedMs) / (TRY_REQUESTS * everyMs) : (nowMs - readMs) / everyMs;
  return Math.max(1, periods);
}

/** The events of a stream, each with the state that follows. */
export const streamEvents = {
  began: (stream: PlannedStream): PlannedStream => ({ ...stream, isUnderWay: true }),
  done: (nowMs: number): PlannedStream => ({ ...UNREAD_STREAM, readMs: nowMs }),
  /**
   * The stream failed and starts again.
   *
   * @param isOwn whether it rests first, with doubling intervals.
   */
  failed: (stream: PlannedStream, isOwn: boolean, nowMs: number, longestMs = LONGEST_REST_MS): PlannedStream => {
    const failed = { ...stream, isUnderWay: false, failedMs: nowMs };
    if (!isOwn) return failed;
    const restMs = nowMs + Math.min(longestMs, REST_MS * 2 ** Math.min(stream.failures, 16));
    return { ...failed, restMs, failures: stream.failures + 1 };
  },
  requested: (stream: PlannedStream): PlannedStream => ({ ...stream, isUrgent: true, isRequested: true }),
  off: (stream: PlannedStream, untilMs: number): PlannedStream => ({
    ...stream,
    isUnderWay: false,
    isUrgent: false,
    isRequested: false,
    restMs: untilMs,
  }),
};

/** The longest interval, so that new devices appear at some time. */
const LONGEST_LIST_MS = DAY_MS;
/** The assumed part of the quiet devices that report again in a day. */
export const PRIOR_CHANGES_A_DAY = 0.02;
/** The weight of one listing in the learned rate. */
const LEARN = 0.3;

/** The requests that a list of this many devices takes. */
export function listPages(devices: number, pageSize: number): number {
  return Math.max(1, Math.ceil(devices / pageSize));
}

/**
 * The time between two listings that is worth its requests, in ms.
 *
 * A listing costs a request for every page of devices. It shows which quiet devices report again, on average after half
 * the time between two listings. With `s` such devices in a time and a listing every `L`, that comes to `s * L² / 6` of
 * lag; a request spent on live work instead would save `T² / 2`, where `T` is the lag that devices are polled at. The
 * sum of both is least at `L³ = 1.5 * pages * T² / s`. While there is quota to spare, a request costs nothing, and the
 * list is read as often as devices are checked.
 *
 * @param input `lagMs`: the lag at which devices are polled; `changesPerMs`: of all devices together; `leastMs`: the
 * interval of the schedules.
 */
export function listEveryMs(input: {
  devices: number;
  pageSize: number;
  lagMs: number;
  changesPerMs: number;
  leastMs: number;
}): number {
  const { devices, pageSize, lagMs, changesPerMs, leastMs } = input;
  const best = Math.cbrt((1.5 * listPages(devices, pageSize) * lagMs ** 2) / changesPerMs);
  return Math.max(leastMs, Math.min(best, LONGEST_LIST_MS));
}

/** How many quiet devices report again, as learned from listings. */
export interface ChangeRate {
  /** How many quiet devices the current listing has shown to report again. */
  count: number;
  listedMs: number | null;
  learntPerMs: number | null;
}

/** Creates the rate that is assumed until two device lists were read. */
export function createChangeRate(): ChangeRate {
  return { count: 0, listedMs: null, learntPerMs: null };
}

/** Records that a listing is complete. */
export function learnChanges(changes: ChangeRate, nowMs: number, devices: number): void {
  const before = changesPerMs(changes, devices);
  const { listedMs, count } = changes;
  // The first listing finds everything for the first time. If there is none between two listings, that does not mean
  // that there is never one.
  if (listedMs !== null && nowMs > listedMs) {
    const seen = (count + 0.5) / (nowMs - listedMs + HOUR_MS);
    changes.learntPerMs = before + (seen - before) * LEARN;
  }
  changes.listedMs = nowMs;
  changes.count = 0;
}

/** The quiet devices that report again, of all devices together, per ms. */
export function changesPerMs({ learntPerMs }: ChangeRate, devices: number): number {
  return learntPerMs ?? Math.max(1, devices * PRIOR_CHANGES_A_DAY) / DAY_MS;
}

/** Whole weeks, almost a year, so that neither weekdays nor days of the month count too much. */
const SAMPLE_MS = 52 * 7 * DAY_MS;

/**
 * The mean interval of a schedule, in ms; infinite if it is due less than twice.
 *
 * It uses what cron expressions have in common: each due day has the same hours, and each of these the same minutes. So
 * one hour, one day and the days of a year are enough to count all due times.
 *
 * @param fromMs the beginning of the year.
 */
export function meanPeriodMs(schedule: Schedule, fromMs: EpochMs): number {
  const today = Math.floor(fromMs / DAY_MS) * DAY_MS;
  const known = meanPeriods.get(schedule);
  if (known?.today === today) return known.ms;
  const ms = countMeanPeriodMs(schedule, today);
  meanPeriods.set(schedule, { today, ms });
  return ms;
}

/** The mean intervals of all schedules, each at most `longestMs`. */
export function measurePeriods(
  { telemetry, devices, alerts, account }: Schedules,
  fromMs: EpochMs,
  longestMs = Number.POSITIVE_INFINITY,
): Readonly<Record<`${keyof Schedules}Ms`, number>> {
  const periodMs = (schedule: Schedule): number => Math.min(meanPeriodMs(schedule, fromMs), longestMs);
  return {
    telemetryMs: periodMs(telemetry),
    devicesMs: periodMs(devices),
    alertsMs: periodMs(alerts),
    accountMs: periodMs(account),
  };
}

/** The last mean interval of each schedule. It is the same all day, and each listing needs it. */
const meanPeriods = new WeakMap<Schedule, { readonly today: EpochMs; readonly ms: number }>();

function countMeanPeriodMs(schedule: Schedule, today: EpochMs): number {
  const first = schedule.next(today - 1);
  if (first === null) return Number.POSITIVE_INFINITY;
  const hourMs = Math.floor(first / HOUR_MS) * HOUR_MS;
  const dayMs = Math.floor(first / DAY_MS) * DAY_MS;
  const turns = countTurns(schedule, { from: first, to: hourMs + HOUR_MS, next: (atMs) => atMs });
  const hours = countTurns(schedule, { from: first, to: dayMs + DAY_MS, next: (atMs) => periodEnd(atMs, HOUR_MS) });
  const days = countTurns(schedule, { from: first, to: dayMs + SAMPLE_MS, next: (atMs) => periodEnd(atMs, DAY_MS) });
  if (days > 1) return SAMPLE_MS / (days * hours * turns);
  const second = schedule.next(periodEnd(first, DAY_MS));
  return second === null ? Number.POSITIVE_INFINITY : (second - first) / (hours * turns);
}

/** Counts the times of a schedule from one to `to`. From each time it continues after `next` of it. */
function countTurns(
  schedule: Schedule,
  { from, to, next }: { from: EpochMs; to: EpochMs; next: (atMs: EpochMs) => EpochMs },
): number {
  let count = 0;
  for (let at: EpochMs | null = from; at !== null && at < to; at = schedule.next(next(at))) count += 1;
  return count;
}

/** The last millisecond of the hour or day that a time lies in. */
function periodEnd(atMs: EpochMs, lengthMs: number): EpochMs {
  return Math.floor(atMs / lengthMs) * lengthMs + lengthMs - 1;
}
