/**
 * `--verify`: compares the points that a destination returns with the archive, by device and day: first the sums, then
 * the points of each day whose sums differ. Answers are summed as they arrive, so memory does not depend on the number
 * of points.
 *
 * Promises: nothing is written to the state, and no request is sent to the API here. With `--repair`, only lines of the
 * log are sent to the destination. Points in the destination that are not ours are reported and never deleted. It can
 * be stopped at any moment and leaves nothing half done.
 */

import { type Interval, type Intervals, intersect, lengthNs, normalize, wholeDay } from '../../core/intervals.ts';
import type { DestinationKind } from '../../core/lines/dialect.ts';
import { identityTag } from '../../core/lines/line-protocol.ts';
import { emptySum, type GrowingSum, isSameSum } from '../../core/lines/points.ts';
import type { Clock } from '../../core/ports.ts';
import { isRepairable, type MissingPoints } from '../../core/state/log.ts';
import type {
  ArchivedDay,
  PointSource,
  ReadProblem,
  VerifiedDestination,
  VerifyState,
} from '../../core/state/verify.ts';
import { DAY_NS, dayStart, type EpochMs, type EpochNs, minNs, msToNs, SECOND_MS, SECOND_NS } from '../../core/time.ts';
import {
  beginExamination,
  type Examination,
  endExamination,
  examineRange,
  type FoundDay,
  collectInto,
  type KnownMissing,
  emptyDay,
  emptyFindings,
  type Returned,
} from './examine.ts';
import { batchesOf, beginSums, queryPatiently, rangesOf } from './query.ts';
import { addDay, type Compared, createTally, type Tally, openTally } from './result.ts';
import { type AgeFacts, type AgeSearch, countSearched, createAgeSearch, searchDay } from './retention.ts';

/** A destination that is compared with the state. */
export interface Comparison {
  readonly state: VerifyState;
  readonly source: PointSource;
  readonly destination: VerifiedDestination;
  readonly clock: Clock;
  readonly historyFrom: EpochNs;
  /** `null`: nothing is repaired. */
  readonly resender: Resender | null;
}

/** Sends points to a destination again. */
export interface Resender {
  /**
   * Sends lines of the log.
   *
   * @returns the problem; `null` for none.
   */
  send(lines: readonly string[], signal: AbortSignal): Promise<ReadProblem | null>;
  /**
   * The number of points that the destination has rejected so far, how much of it for its age alone, and its last
   * message.
   */
  refused(): { readonly lines: number; readonly tooOld: number; readonly message: string | null };
}

/** The days and devices to compare: whole days, UTC. */
export interface VerifyRange {
  readonly fromDay: number;
  /** Not included. */
  readonly toDay: number;
  readonly deviceIds: readonly string[];
  /** Whether these are all devices of the state: only then unknown devices of the database are reported. */
  readonly isAll: boolean;
}

/** Called after each device with the number of finished ones. */
export type OnDevice = (done: number, of: number) => void;

/** Compares a destination. An abort is an outcome (`unfinished`), not an error. */
export async function compareDestination(
  comparison: Comparison,
  { range, onDevice }: { readonly range: VerifyRange; readonly onDevice: OnDevice },
  signal: AbortSignal,
): Promise<Compared> {
  const work: Work = { comparison, tally: createTally(), later: [], search: createAgeSearch() };
  const beganMs = comparison.clock.nowMs();
  let problem: ReadProblem | null = null;
  let unknown: readonly string[] = [];
  try {
    problem = (await allDevices(work, { range, onDevice }, signal)) ?? (await recheck(work, signal));
    if (problem === null && range.isAll) unknown = await unknownDevices(comparison.source, range.deviceIds, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    problem = STOPPED;
  }
  const hidden = countSearched(
    work.search,
    ageFacts(work, { beganMs, isWhole: range.isAll, isDone: problem === null }),
  );
  // Points that were sent and not checked again count as they were found.
  for (const day of work.later) addDay(work.tally, { ...day, sent: 0 });
  return { tally: work.tally, problem, unknown, hidden };
}

/** @param of.isWhole whether all devices were compared; `isDone`: to their end. */
function ageFacts(
  { comparison, tally }: Work,
  of: { readonly beganMs: EpochMs; readonly isWhole: boolean; readonly isDone: boolean },
): AgeFacts {
  const { source, clock, state, destination, resender } = comparison;
  const refused = resender?.refused() ?? null;
  return {
    // VictoriaMetrics reports its retention.
    isAsked: of.isDone && source.kind === 'influxdb',
    beganMs: of.beganMs,
    endedMs: clock.nowMs(),
    isResent: refused !== null && refused.lines === refused.tooOld,
    isWhole: of.isWhole,
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

/** Counts a day at its last comparison, or holds it back until all are compared. */
function addLast({ tally, search }: Work, found: FoundDay): void {
  if (!searchDay(search, found)) addDay(tally, found);
}

async function allDevices(
  work: Work,
  { range, onDevice }: { readonly range: VerifyRange; readonly onDevice: OnDevice },
  signal: AbortSignal,
): Promise<ReadProblem | null> {
  const { comparison, tally, later } = work;
  const now = msToNs(comparison.clock.nowMs());
  for (const deviceId of range.deviceIds) {
    const covered = comparison.state.covered(deviceId);
    const take = (found: ExaminedDay): void => {
      if (!isCovered(covered, found.day, now)) openTally(tally, deviceId).partly += 1;
      if (needsRecheck(comparison, found) && later.length < MOST_RECHECKED) later.push(found);
      else addLast(work, found);
    };
    const problem = await compareDevice(comparison, { ...range, deviceId, take }, signal);
    if (problem !== null) return problem;
    tally.devices += 1;
    onDevice(tally.devices, range.deviceIds.length);
  }
  return null;
}

/**
 * Consecutive days of a device, `from` included, `to` not; a day with points on either side is handed on once it is
 * compared.
 */
interface DeviceDays extends Pick<VerifyRange, 'fromDay' | 'toDay'> {
  readonly deviceId: string;
  readonly take: (found: ExaminedDay) => void;
}

/** @returns the problem; `null` for none. */
async function compareDevice(
  comparison: Comparison,
  { deviceId, fromDay, toDay, take }: DeviceDays,
  signal: AbortSignal,
): Promise<ReadProblem | null> {
  const days = comparison.state.days(deviceId, fromDay, toDay);
  for (const [from, to] of batchesOf(days, fromDay, toDay)) {
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
 * Whether a day is to be compared again: lines were sent for it, or the database shows points late and some of any age
 * may have just been delivered.
 */
function needsRecheck({ source }: Comparison, { sent, findings }: FoundDay): boolean {
  return sent > 0 || (source.kind === 'victoriametrics' && findings.missing > findings.not_in_archive);
}

/** The most days that are compared again; where more differ, they count as they were found. */
const MOST_RECHECKED = 100_000;

/** The pause before each comparison: VictoriaMetrics shows new points some seconds later, half a minute under load. */
const RECHECK_AFTER_MS: Readonly<Record<DestinationKind, readonly number[]>> = {
  influxdb: [0],
  victoriametrics: [1.5 * SECOND_MS, 4 * SECOND_MS, 10 * SECOND_MS, 20 * SECOND_MS],
};

async function recheck(work: Work, signal: AbortSignal): Promise<ReadProblem | null> {
  const { comparison } = work;
  const looks = RECHECK_AFTER_MS[comparison.source.kind];
  for (const [nth, afterMs] of looks.entries()) {
    const days = work.later;
    if (days.length === 0) return null;
    work.later = [];
    await comparison.clock.sleep(afterMs, signal);
    for (let first = days.shift(); first !== undefined; first = days.shift()) {
      // Until it was checked it has no result.
      work.later.unshift(first);
      const of = { ...first, size: first.archived.points, isLast: true };
      const found = await examineDay(comparison, of, signal).finally(() => {
        if (signal.aborted) work.later.push(...days);
      });
      if ('message' in found) {
        work.later.push(...days);
        return found;
      }
      work.later.shift();
      const day = { ...found, sent: first.sent };
      if (found.findings.missing > found.findings.not_in_archive && nth < looks.length - 1) work.later.push(day);
      else addLast(work, day);
    }
  }
  return null;
}

/** Whether the whole day is covered, as far as it has passed. */
function isCovered(covered: Intervals, day: number, now: EpochNs): boolean {
  const { from, to } = wholeDay(day);
  const whole = { from, to: minNs(to, now) };
  return whole.from >= whole.to || lengthNs(intersect(covered, [whole])) === whole.to - whole.from;
}

/** Some databases cannot list their devices; then none is reported. */
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
 * The days to compare: those that the range touches; all archived ones where an end is missing.
 *
 * @returns `null` for none.
 */
export function daysOf(
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

/** How often a day is compared again because the state has changed in the meantime. */
const ATTEMPTS = 3;

interface DayOf {
  readonly deviceId: string;
  readonly day: number;
  /** About how many points it has. */
  readonly size: number;
  /** The points before these positions have to be there; `null`: those that are acknowledged when it begins. */
  readonly acknowledged: Positions | null;
  /** Whether nothing is sent again any more: it is checked again after that. */
  readonly isLast: boolean;
}

type Positions = ReturnType<VerifyState['positions']>;

/** A day as it was found, and what was acknowledged before: a later comparison requires no more than that. */
interface ExaminedDay extends FoundDay {
  readonly acknowledged: Positions | null;
}

/**
 * Compares a day range by range and repairs it.
 *
 * @returns the findings, or the problem.
 */
async function examineDay(parts: Comparison, of: DayOf, signal: AbortSignal): Promise<ExaminedDay | ReadProblem> {
  const { state, destination, source } = parts;
  // The order matters: points acknowledged before the query have to be in the answer, and points in the answer have
  // been archived by then.
  const acknowledged = of.acknowledged ?? state.positions(destination.id);
  let sent = 0;
  for (let attempt = 1; ; attempt += 1) {
    const archivedBefore = archivedDayOf(state, of);
    const knownMissing = state
      .missing(destination.id, of.deviceId, wholeDay(of.day))
      .filter((range) => staysMissing(range, parts))
      .map(({ fromNs, toNs, points }): KnownMissing => ({ from: fromNs, to: toNs, points }));
    const covered = state.covered(of.deviceId);
    const work: DayWork = {
      of,
      examination: beginExamination(parts.historyFrom),
      covered,
      acknowledged,
      cleared: [],
      knownMissing,
      sent: 0,
    };
    const problem = await examineRanges(parts, work, signal);
    if (problem !== null) return problem;
    sent += work.sent;
    const archived = archivedDayOf(state, of);
    const cleared = normalize(work.cleared);
    const { newestMissing, oldestFound } = work.examination;
    const end = {
      deviceId: of.deviceId,
      day: of.day,
      archived,
      sent,
      cleared,
      acknowledged,
      newestMissing,
      oldestFound,
    };
    // Without a cleared range, every line was compared by itself.
    if (cleared.length === 0) return { ...end, findings: work.examination.findings };
    if (!isSameSum(archived, archivedBefore) && attempt < ATTEMPTS) continue;
    const knownMissingPoints = pointsIn(knownMissing, cleared);
    return { ...end, findings: endExamination(work.examination, { kind: source.kind, archived, knownMissingPoints }) };
  }
}

async function examineRanges(parts: Comparison, work: DayWork, signal: AbortSignal): Promise<ReadProblem | null> {
  const resender = work.of.isLast ? null : parts.resender;
  const { examination } = work;
  for (const range of rangesOf(work.of)) {
    const problem = await compareRange(parts, { ...work, range }, signal);
    if (problem !== null) return problem;
    const lines = examination.resend.splice(0);
    if (resender === null || lines.length === 0) continue;
    const refusal = await resender.send(lines, signal);
    if (refusal !== null) return refusal;
    work.sent += lines.length;
  }
  return null;
}

/** Whether missing points stay missing. */
function staysMissing(missing: MissingPoints, { resender }: Comparison): boolean {
  return resender === null || !isRepairable(missing);
}

function pointsIn(knownMissing: readonly KnownMissing[], cleared: Intervals): number {
  return knownMissing
    .filter((each) => intersect([each], cleared).length > 0)
    .reduce((sum, { points }) => sum + points, 0);
}

interface DayWork {
  readonly of: DayOf;
  readonly examination: Examination;
  readonly covered: Intervals;
  readonly acknowledged: Positions;
  /** Grows. */
  readonly cleared: Interval[];
  readonly knownMissing: readonly KnownMissing[];
  sent: number;
}

/** How far times may be moved on the way to a database that keeps milliseconds. */
const MOVED_NS: EpochNs = SECOND_NS;

async function compareRange(
  { state, source, destination, clock }: Comparison,
  {
    of: { deviceId },
    range,
    examination,
    covered,
    acknowledged,
    cleared,
    knownMissing,
  }: DayWork & { readonly range: Interval },
  signal: AbortSignal,
): Promise<ReadProblem | null> {
  const isMoved = source.kind === 'victoriametrics';
  const returned = await queryPatiently(
    { source, clock },
    { device: identityTag(deviceId), ...range },
    () => {
      const gathered: Returned = new Map();
      return { gathered, take: collectInto(gathered) };
    },
    signal,
  );
  if ('message' in returned) return returned;
  const reach = isMoved ? { from: range.from - MOVED_NS, to: range.to + MOVED_NS } : range;
  const looked = state.range({ deviceId, destinationId: destination.id, ...reach }, acknowledged);
  const gone = isMoved
    ? looked.cleared.map(({ from, to }) => ({ from: from - (from % 1_000_000n), to }))
    : looked.cleared;
  cleared.push(...intersect(gone, [range]));
  examineRange(examination, {
    kind: source.kind,
    archived: { ...looked, cleared: gone },
    returned,
    findMoved: state.movedTo,
    knownMissing,
    covered,
    range,
  });
  return null;
}

function archivedDayOf(state: VerifyState, { deviceId, day }: DayOf): ArchivedDay {
  return state.days(deviceId, day, day + 1)[0] ?? emptyDay(day);
}
