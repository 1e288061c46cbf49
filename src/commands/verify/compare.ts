/**
 * `--verify`: compares the points that a destination returns with the archive, by device and day: first the sums, then
 * the points of each day whose sums differ. Answers are summed as they arrive, so memory does not depend on the number
 * of points.
 *
 * Promises: nothing is written to the state, and no request is sent to the API here. With `--repair`, only lines of the
 * log are sent to the destination. Points in the destination that are not ours are reported and never deleted. It can
 * be stopped at any moment and leaves nothing half done.
 */

import { type Intervals, intersect, lengthNs, wholeDay } from '../../core/intervals.ts';
import type { DestinationKind } from '../../core/lines/dialect.ts';
import { identityTag } from '../../core/lines/line-protocol.ts';
import { addPoint, emptySum, type GrowingSum, isSameSum, pointIdentity } from '../../core/lines/points.ts';
import type { Clock } from '../../core/ports.ts';
import type { ArchivedDay, PointSource, ReadProblem, TakePoint, VerifyState } from '../../core/state/verify.ts';
import { DAY_NS, dayStart, type EpochNs, minNs, msToNs, SECOND_MS } from '../../core/time.ts';
import { type Comparison, type ExaminedDay, examineDay, queryPatiently } from './compare-day.ts';
import { emptyDay, emptyFindings, type FoundDay } from './examine.ts';
import { addDay, type Compared, createTally, openTally, type Tally } from './result.ts';
import { type AgeFacts, type AgeSearch, countSearched, createAgeSearch, searchDay } from './retention.ts';

/** The days and devices to compare: whole days, UTC. */
export interface VerifyRange {
  readonly fromDay: number;
  /** The day after the last one. */
  readonly toDay: number;
  readonly deviceIds: readonly string[];
  /** Whether these are all devices of the state. Only then are unknown devices of the database reported. */
  readonly isAll: boolean;
}

/** The progress of a destination's comparison. */
export interface Progress {
  /** 0 to 1: devices, and days within one. */
  readonly share: number;
  readonly devices: number;
  /** The devices of this comparison. After a repair, only those that are compared again. */
  readonly total: number;
  /** Archived points that were compared. */
  readonly points: number;
}

/** Called after each day with points, and after each device. */
export type OnProgress = (progress: Progress) => void;

/** Compares a destination. An abort is an outcome (`unfinished`), not an error. */
export async function compareDestination(
  comparison: Comparison,
  { range, onProgress }: { readonly range: VerifyRange; readonly onProgress: OnProgress },
  signal: AbortSignal,
): Promise<Compared> {
  const work: Work = { comparison, tally: createTally(), later: [], search: createAgeSearch() };
  const beganMs = comparison.clock.nowMs();
  let problem: ReadProblem | null = null;
  let unknown: readonly string[] = [];
  let retentionMs: number | null = null;
  try {
    problem = (await allDevices(work, { range, onProgress }, signal)) ?? (await recheck(work, signal));
    if (problem === null && range.isAll) unknown = await unknownDevices(comparison.source, range.deviceIds, signal);
    if (problem === null && work.search.days.length > 0) retentionMs = await comparison.requestRetention(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    problem = STOPPED;
  }
  const hidden = countSearched(
    work.search,
    ageFacts(work, { beganMs, retentionMs, isWhole: range.isAll, isDone: problem === null }),
  );
  // Points that were sent but not checked again count with their first findings.
  for (const day of work.later) addDay(work.tally, { ...day, sent: 0 });
  return { tally: work.tally, problem, unknown, hidden };
}

/**
 * Collects the facts about hidden points.
 *
 * @param search.isWhole whether all devices were compared; `isDone`: completely.
 */
function ageFacts(
  { comparison, tally }: Work,
  search: Pick<AgeFacts, 'beganMs' | 'retentionMs' | 'isWhole'> & { readonly isDone: boolean },
): AgeFacts {
  const { source, clock, state, destination, resender } = comparison;
  const rejections = resender?.rejections() ?? null;
  return {
    // Without its retention, a VictoriaMetrics may show points late.
    isSearched: search.isDone && (source.kind === 'influxdb' || search.retentionMs !== null),
    retentionMs: search.retentionMs,
    beganMs: search.beganMs,
    endedMs: clock.nowMs(),
    isResent: rejections !== null && rejections.lines === rejections.tooOld,
    isWhole: search.isWhole,
    earlier: state.retentionEstimate(destination.id),
    missing: (deviceId, range) => state.missing(destination.id, deviceId, range),
    count: (found) => addDay(tally, found),
  };
}

/** The result of a comparison that was stopped. */
export const STOPPED: ReadProblem = { kind: 'down', message: 'interrupted', hint: '' };

interface Work {
  readonly comparison: Comparison;
  readonly tally: Tally;
  /** Days that are checked again at the end. */
  later: ExaminedDay[];
  readonly search: AgeSearch;
}

/** Counts a day at its last comparison, or keeps it pending until all days are compared. */
function addLast({ tally, search }: Work, found: FoundDay): void {
  if (!searchDay(search, found)) addDay(tally, found);
}

async function allDevices(
  work: Work,
  { range, onProgress }: { readonly range: VerifyRange; readonly onProgress: OnProgress },
  signal: AbortSignal,
): Promise<ReadProblem | null> {
  const { comparison, tally, later } = work;
  const now = msToNs(comparison.clock.nowMs());
  const total = range.deviceIds.length;
  let [share, points] = [0, 0];
  for (const deviceId of range.deviceIds) {
    const covered = comparison.state.covered(deviceId);
    const take = (found: ExaminedDay): void => {
      if (!isDayCovered(covered, found.day, now)) openTally(tally, deviceId).partly += 1;
      if (needsRecheck(comparison, found) && later.length < MOST_RECHECKED) later.push(found);
      else addLast(work, found);
      points += found.archived.points;
      // A day that only the database has may come after later days.
      share = Math.max(share, (tally.devices + (found.day - range.fromDay) / (range.toDay - range.fromDay)) / total);
      onProgress({ share, devices: tally.devices, total, points });
    };
    const problem = await compareDevice(comparison, { ...range, deviceId, take }, signal);
    if (problem !== null) return problem;
    tally.devices += 1;
    share = tally.devices / total;
    onProgress({ share, devices: tally.devices, total, points });
  }
  return null;
}

/**
 * Consecutive days of a device, from `fromDay` to before `toDay`. A day with points on either side is passed on once it
 * is compared.
 */
interface DeviceDays extends Pick<VerifyRange, 'fromDay' | 'toDay'> {
  readonly deviceId: string;
  readonly take: (found: ExaminedDay) => void;
}

/** Compares a device. Returns the problem; `null` for none. */
async function compareDevice(
  comparison: Comparison,
  { deviceId, fromDay, toDay, take }: DeviceDays,
  signal: AbortSignal,
): Promise<ReadProblem | null> {
  const days = comparison.state.days(deviceId, fromDay, toDay);
  for (const [from, to] of queryBatches(days, fromDay, toDay)) {
    const range = { device: identityTag(deviceId), from: dayStart(from), to: dayStart(to) };
    const sums = await queryPatiently(comparison, range, beginSums, signal);
    if ('message' in sums) return sums;
    const archived = new Map(days.filter(({ day }) => day >= from && day < to).map((day) => [day.day, day]));
    for (const day of new Set([...archived.keys(), ...sums.keys()])) {
      const found = await compareDay(
        comparison,
        { deviceId, archived: archived.get(day) ?? emptyDay(day), returned: sums.get(day) ?? emptySum() },
        signal,
      );
      if ('message' in found) return found;
      take(found);
    }
  }
  return null;
}

async function compareDay(
  comparison: Comparison,
  { deviceId, archived, returned }: { deviceId: string; archived: ArchivedDay; returned: GrowingSum },
  signal: AbortSignal,
): Promise<ExaminedDay | ReadProblem> {
  const { day } = archived;
  if (isSameSum(archived, returned)) {
    const times = { newestMissing: null, oldestFound: null };
    return { deviceId, day, archived, findings: emptyFindings(), sent: 0, cleared: [], acknowledged: null, ...times };
  }
  const size = Math.max(archived.points, returned.points);
  return await examineDay(comparison, { deviceId, day, size, acknowledged: null, isLast: false }, signal);
}

/**
 * Whether a day must be compared again: lines were sent for it, or the database shows points late and some points may
 * have just been delivered.
 */
function needsRecheck({ source }: Comparison, { sent, findings }: FoundDay): boolean {
  return sent > 0 || (source.kind === 'victoriametrics' && findings.missing > findings.not_in_archive);
}

/** The most days that are compared again. Further days count with their first findings. */
const MOST_RECHECKED = 100_000;

/**
 * The pause before each comparison: VictoriaMetrics shows new points after several seconds, or half a minute under
 * load.
 */
const RECHECK_AFTER_MS: Readonly<Record<DestinationKind, readonly number[]>> = {
  influxdb: [0],
  victoriametrics: [1.5 * SECOND_MS, 4 * SECOND_MS, 10 * SECOND_MS, 20 * SECOND_MS],
};

async function recheck(work: Work, signal: AbortSignal): Promise<ReadProblem | null> {
  const { comparison } = work;
  const delaysMs = RECHECK_AFTER_MS[comparison.source.kind];
  for (const [nth, afterMs] of delaysMs.entries()) {
    const days = work.later;
    if (days.length === 0) return null;
    work.later = [];
    await comparison.clock.sleep(afterMs, signal);
    for (let first = days.shift(); first !== undefined; first = days.shift()) {
      // The day has no result until it was checked.
      work.later.unshift(first);
      const target = { ...first, size: first.archived.points, isLast: true };
      const found = await examineDay(comparison, target, signal).finally(() => {
        if (signal.aborted) work.later.push(...days);
      });
      if ('message' in found) {
        work.later.push(...days);
        return found;
      }
      work.later.shift();
      const day = { ...found, sent: first.sent };
      if (found.findings.missing > found.findings.not_in_archive && nth < delaysMs.length - 1) work.later.push(day);
      else addLast(work, day);
    }
  }
  return null;
}

/** Whether the whole part of the day that has passed is covered. */
function isDayCovered(covered: Intervals, day: number, now: EpochNs): boolean {
  const { from, to } = wholeDay(day);
  const whole = { from, to: minNs(to, now) };
  return whole.from >= whole.to || lengthNs(intersect(covered, [whole])) === whole.to - whole.from;
}

/** The devices that only the database has. Some databases cannot list their devices; then none is reported. */
async function unknownDevices(
  source: PointSource,
  deviceIds: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found = await source.devices(signal);
  if ('message' in found) return [];
  const known = new Set<string>(deviceIds.map(identityTag));
  return found.filter((tag) => !known.has(tag));
}

/**
 * The days to compare: those that overlap the range. If an end is missing, up to the first or last archived day.
 *
 * @returns `null` for none.
 */
export function daysToCompare(
  state: Pick<VerifyState, 'extent'>,
  range: { readonly from: EpochNs | null; readonly to: EpochNs | null },
  clock: Pick<Clock, 'nowMs'>,
): Pick<VerifyRange, 'fromDay' | 'toDay'> | null {
  const archived = state.extent();
  if (archived === null) return null;
  const today = Number(msToNs(clock.nowMs()) / DAY_NS);
  const fromDay = range.from === null ? archived.from : Number(range.from / DAY_NS);
  const toDay = range.to === null ? Math.max(archived.to, today) + 1 : Number((range.to + DAY_NS - 1n) / DAY_NS);
  return { fromDay, toDay: Math.max(fromDay + 1, toDay) };
}

/** Starts to collect the sum of each day. */
function beginSums(): { gathered: Map<number, GrowingSum>; take: TakePoint } {
  const sums = new Map<number, GrowingSum>();
  return { gathered: sums, take: addPointsTo(sums) };
}

function addPointsTo(sums: Map<number, GrowingSum>): TakePoint {
  let [lastDay, last] = [Number.NaN, emptySum()];
  return (stamp, sensor, field) => {
    const day = Math.floor(Number(stamp.slice(0, -9)) / 86_400);
    if (day !== lastDay) {
      lastDay = day;
      last = sums.get(day) ?? emptySum();
      sums.set(day, last);
    }
    addPoint(last, pointIdentity(stamp, sensor, FLAGS[field] ?? field));
  };
}

/** The values of flags in a database that stores only numbers. */
const FLAGS: Readonly<Record<string, string>> = { 'flag=1': 'flag=true', 'flag=0': 'flag=false' };

/** How many points are requested at once: several seconds of work for a database. */
const BATCH_POINTS = 250_000;

/** Consecutive days, `[from, to)`, that are requested by one query. */
function queryBatches(days: readonly ArchivedDay[], fromDay: number, toDay: number): [number, number][] {
  const batches: [number, number][] = [];
  let [start, points] = [fromDay, 0];
  for (const day of days) {
    if (points > 0 && points + day.points > BATCH_POINTS) {
      batches.push([start, day.day]);
      [start, points] = [day.day, 0];
    }
    points += day.points;
  }
  if (start < toDay) batches.push([start, toDay]);
  return batches;
}
