/**
 * The arguments of jobs (`core/state/jobs.ts`) as the state keeps them: plain JSON that one process writes and another
 * one, possibly of another version, reads. Each kind has a type and a check. Pure.
 *
 * Times are nanoseconds since 1970 as decimal digits, because a JSON number cannot hold them.
 */

import { UserError } from '../faults.ts';
import { isBoolean, isNumber, isRecord, isText, isTexts, type JsonRecord, orNone, orNull, shapeOf } from '../json.ts';
import type { QuarantineFilter } from '../quarantine.ts';
import type { EpochMs, EpochNs } from '../time.ts';
import { isNsText } from '../time.ts';
import type { FoundPoints, MissingChange, MissingPoints, MissingReason, RetentionEstimate } from './log.ts';

/** The older version must be updated: an older daemon would reject a state of a newer version. */
export const OTHER_VERSION_REMEDY = 'Update the older of the two, restart the daemon, and run the command again.';

/** The error of a job whose arguments another version of the program has written. */
export function argumentsNotUnderstood(): UserError {
  return new UserError('The daemon runs another version of Tidemark and cannot read this job', OTHER_VERSION_REMEDY, 3);
}

/**
 * `--from all` ends this many days before the oldest sign of a device. It is more than a year, so a device that was
 * silent for a season or a year is found again. A limit is necessary: an empty page covers only its own range, and each
 * covered hour becomes a `coverage_hour` point.
 */
export const QUIET_ENDS_DAYS = 400;

/** The arguments of a `backfill` job, as they are stored. */
export interface BackfillArgs {
  /** `all`: as far back as the API has readings. */
  readonly from: string;
  /** `null`: up to the coverage limit when it begins. */
  readonly to: string | null;
  /** The end of the range of a job that has already begun. It stays the same however often the daemon restarts. */
  readonly begunTo?: string | undefined;
  /** Ids; empty: all devices. */
  readonly devices: readonly string[];
  /** The part of the share that the backfill may take, above 0 and up to 1; `null`: all of it. */
  readonly maxShare: number | null;
  /** The time to finish by; the rate follows from it. `null`: as soon as possible. */
  readonly finishByMs: EpochMs | null;
  /** Whether covered ranges are also read again; `false` if absent. */
  readonly recheck?: boolean | undefined;
  /** The times as typed in the command; not in a job that the daemon has requested itself. */
  readonly typed?: TypedTimes | undefined;
}

/** Times as typed, by flag; `null` for a flag that was not given. */
interface TypedTimes {
  readonly from: string | null;
  readonly to: string | null;
  readonly finishBy: string | null;
}

/**
 * Whether two requests for a backfill are the same: the same devices, rate and kind, and times that are equal or were
 * typed in the same way. An age such as `60d` that is typed again later is another time, but the same request.
 *
 * @param a and b: arguments that have passed `isBackfillArgs`.
 */
export function isSameBackfill(a: BackfillArgs, b: BackfillArgs): boolean {
  const isSameTime = (flag: keyof TypedTimes, equal: boolean): boolean =>
    equal || (typeof a.typed?.[flag] === 'string' && a.typed[flag] === b.typed?.[flag]);
  return (
    isSameTime('from', a.from === b.from) &&
    isSameTime('to', a.to === b.to) &&
    isSameTime('finishBy', a.finishByMs === b.finishByMs) &&
    a.maxShare === b.maxShare &&
    (a.recheck ?? false) === (b.recheck ?? false) &&
    isSameList(a.devices, b.devices)
  );
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return JSON.stringify(a.toSorted()) === JSON.stringify(b.toSorted());
}

/** Whether a stored value has the shape of the arguments of a backfill. */
export const isBackfillArgs = shapeOf<BackfillArgs>({
  from: (value): value is string => value === 'all' || isDigits(value),
  to: orNull(isDigits),
  begunTo: orNone(isDigits),
  devices: isTexts,
  maxShare: orNull((value): value is number => isNumber(value) && value > 0 && value <= 1),
  finishByMs: orNull(isNumber),
  recheck: orNone(isBoolean),
  typed: orNone(shapeOf<TypedTimes>({ from: orNull(isText), to: orNull(isText), finishBy: orNull(isText) })),
});

/** A range of a device: id, from, to. */
type RangeText = readonly [deviceId: string, from: string, to: string];

/**
 * A range of a device, and how many of its points are meant.
 *
 * @param left how many other points of the range may still be missing: no archive has them, and no comparison includes
 * them.
 */
export type PointsText = readonly [deviceId: string, from: string, to: string, points: number, left?: number];

/**
 * The arguments of the job `repair` of `--verify`: ranges to fetch again, and the changes of the missing points after
 * that.
 */
export interface RepairArgs {
  /** The ranges to fetch. The name stands in jobs of earlier versions. */
  readonly windows: readonly RangeText[];
  /** By its name in the configuration. */
  readonly destination: string;
  readonly found: readonly PointsText[];
  readonly missed: readonly PointsText[];
  /** Points that the destination hides because of their age. */
  readonly hidden?: readonly PointsText[];
  /** The retention that the comparison shows. It is stored for the next comparison. */
  readonly estimate?: RetentionEstimate | null;
}

/** How a `repair` job ended: the requests that it made, and whether their points reached the destinations. */
export interface RepairSummary {
  /** Windows that were read to their end. */
  readonly read: number;
  readonly requests: number;
  /** Whether all of it has reached every destination. */
  readonly delivered: boolean;
  /** Why not everything was done; `null` if it was. */
  readonly reason: string | null;
}

/**
 * Checks the summary of a repair that a daemon, possibly of another version, has written.
 *
 * @returns `null` if it is not one
 */
export function readRepairSummary(value: unknown): RepairSummary | null {
  if (!isRecord(value)) return null;
  const { read, requests, delivered, reason } = value;
  if (typeof read !== 'number' || typeof requests !== 'number') return null;
  if (typeof delivered !== 'boolean' || !(reason === null || typeof reason === 'string')) return null;
  return { read, requests, delivered, reason };
}

/** Whether a stored value has the shape of the arguments of a repair. */
export function isRepairArgs(value: unknown): value is RepairArgs {
  if (!isRecord(value)) return false;
  const { windows, destination, found, missed, hidden = [], estimate = null } = value;
  return (
    typeof destination === 'string' &&
    (estimate === null || readEstimate(estimate) !== null) &&
    Array.isArray(windows) &&
    windows.every(isRangeText) &&
    [found, missed, hidden].every((list) => Array.isArray(list) && list.every(isPointsText))
  );
}

/**
 * Checks an estimate that another process, possibly of another version, has written.
 *
 * @returns `null` if it is not one
 */
export function readEstimate(value: unknown): RetentionEstimate | null {
  if (!isRecord(value)) return null;
  const { beganMs, endedMs, shortestMs, longestMs } = value;
  const isTime = (each: unknown): each is number => Number.isFinite(each);
  if (!isTime(beganMs) || !isTime(endedMs) || !isTime(shortestMs) || !isTime(longestMs)) return null;
  return { beganMs, endedMs, shortestMs, longestMs };
}

/** The change of the missing points by a repair. */
export function missingChangeOf({ found, missed, hidden = [], estimate }: RepairArgs): MissingChange {
  const points = ([deviceId, from, to, count, left = 0]: PointsText): FoundPoints => ({
    deviceId,
    fromNs: BigInt(from),
    toNs: BigInt(to),
    points: count,
    left: Number.isSafeInteger(left) ? left : 0,
  });
  const withReason = (list: readonly PointsText[], reason: MissingReason): MissingPoints[] =>
    list.map((each) => ({ ...points(each), reason }));
  const missing = [...withReason(missed, 'cleared'), ...withReason(hidden, 'beyond_retention')];
  return { found: found.map(points), missed: missing, estimate: estimate ?? undefined };
}

/** Returns a range as the arguments of a `repair` job hold it: its times as ns since 1970, in decimal digits. */
export function rangeText(deviceId: string, from: EpochNs, to: EpochNs): RangeText {
  return [deviceId, `${from}`, `${to}`];
}

/** The arguments of `--verify --sample`: ranges that are read from the API again and compared. */
export interface SampleArgs {
  /** How many ranges. The name stands in jobs of earlier versions. */
  readonly windows: number;
  /** `null`: from the beginning; to the end. */
  readonly from: string | null;
  readonly to: string | null;
  /** Ids; empty: all. */
  readonly devices: readonly string[];
  /** Whether new readings are committed. */
  readonly repair: boolean;
}

/** Whether a stored value has the shape of the arguments of a sample. */
export const isSampleArgs = shapeOf<SampleArgs>({
  windows: isWhole,
  from: orNull(isDigits),
  to: orNull(isDigits),
  devices: isTexts,
  repair: isBoolean,
});

/** The arguments of a `replay` job, as they are stored. */
export interface ReplayArgs {
  /** The name of a destination; `null`: every one. */
  readonly destination: string | null;
  /** Ids; empty: all. */
  readonly devices: readonly string[];
  /** As typed: the same text resumes an interrupted replay. */
  readonly typed: { readonly from: string | null; readonly to: string | null };
  /** The resulting range, half-open. */
  readonly from: string;
  readonly to: string;
  /** The most lines a second to each destination; `null`: the default of the process that runs the job. */
  readonly maxRate: number | null;
}

/** Whether a stored value has the shape of the arguments of a replay. */
export const isReplayArgs = shapeOf<ReplayArgs>({
  destination: orNull(isText),
  devices: isTexts,
  typed: shapeOf<ReplayArgs['typed']>({ from: orNull(isText), to: orNull(isText) }),
  from: isDigits,
  to: isDigits,
  maxRate: orNull((value): value is number => isNumber(value) && value >= 1),
});

/** Whether two requests for a replay are the same. Each has passed `isReplayArgs`. */
export function isSameReplay(a: ReplayArgs, b: ReplayArgs): boolean {
  return (
    a.destination === b.destination &&
    a.typed.from === b.typed.from &&
    a.typed.to === b.typed.to &&
    a.maxRate === b.maxRate &&
    isSameList(a.devices, b.devices)
  );
}

/** A quarantine filter as a job stores it: its times as ns since 1970, in decimal digits. */
interface FilterArgs extends Omit<QuarantineFilter, 'from' | 'to'> {
  readonly from: string | null;
  readonly to: string | null;
}

/** Returns a quarantine filter as the arguments of a job; `filterOf` is its inverse. */
export function filterArgs(filter: QuarantineFilter): FilterArgs & JsonRecord {
  const { destination, devices, reason, from, to } = filter;
  return { destination, devices, reason, from: from?.toString() ?? null, to: to?.toString() ?? null };
}

/**
 * The filter of arguments.
 *
 * @param args that have passed `isFilterArgs`.
 */
export function filterOf(args: unknown): QuarantineFilter {
  const { from, to, ...rest } = args as FilterArgs;
  return { ...rest, from: from === null ? null : BigInt(from), to: to === null ? null : BigInt(to) };
}

/** Whether a stored value has the shape of the arguments of a quarantine command. */
export function isFilterArgs(value: unknown): boolean {
  if (!hasExactly(value, ['destination', 'devices', 'reason', 'from', 'to'])) return false;
  const { destination, devices, reason, from, to } = value;
  return [destination, reason].every(orNull(isText)) && [from, to].every(orNull(isNsText)) && isTexts(devices);
}

/** Whether a stored value has the shape of the arguments of `--forget`. */
export function isForgetArgs(value: unknown): boolean {
  return hasExactly(value, ['device']) && typeof value['device'] === 'string';
}

/**
 * The device to forget.
 *
 * @param args that have passed `isForgetArgs`.
 */
export function deviceToForget(args: unknown): string {
  return (args as { readonly device: string }).device;
}

/** The arguments of jobs that take none. */
export function isEmptyObject(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 0;
}

function isRangeText(value: unknown): boolean {
  return Array.isArray(value) && typeof value[0] === 'string' && isDigits(value[1]) && isDigits(value[2]);
}

function isPointsText(value: unknown): boolean {
  return isRangeText(value) && Number.isSafeInteger((value as unknown[])[3]);
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isDigits(value: unknown): value is string {
  return isText(value) && /^\d{1,19}$/.test(value);
}

/** Unknown members mean arguments that this version does not understand. */
function hasExactly(value: unknown, names: readonly string[]): value is JsonRecord {
  if (!isRecord(value)) return false;
  const keys = Object.keys(value);
  return keys.length === names.length && names.every((name) => Object.hasOwn(value, name));
}
