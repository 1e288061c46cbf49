/**
 * `--verify`, one day of a device: compares its points line by line, range by range, and sends the lines that differ
 * again. `compare.ts` chooses the days.
 */
import { type Interval, type Intervals, intersect, normalize, wholeDay } from '../../core/intervals.ts';
import { identityTag } from '../../core/lines/line-protocol.ts';
import { isSameSum } from '../../core/lines/points.ts';
import type { Clock } from '../../core/ports.ts';
import { isRepairable, type MissingPoints } from '../../core/state/log.ts';
import type {
  ArchivedDay,
  PointSource,
  ReadProblem,
  TakePoint,
  VerifiedDestination,
  VerifyState,
} from '../../core/state/verify.ts';
import { DAY_NS, dayStart, type EpochNs, MS_NS, SECOND_MS, SECOND_NS } from '../../core/time.ts';
import {
  beginExamination,
  collectInto,
  type Examination,
  emptyDay,
  endExamination,
  examineRange,
  type FoundDay,
  type KnownMissing,
  type Returned,
} from './examine.ts';

/** A destination that is compared with the state. */
export interface Comparison {
  readonly state: VerifyState;
  readonly source: PointSource;
  readonly destination: VerifiedDestination;
  readonly clock: Clock;
  readonly historyFrom: EpochNs;
  /** Requests the retention that the database reports, in ms; `null` if it reports none. */
  readonly requestRetention: (signal: AbortSignal) => Promise<number | null>;
  /** Sends missing points again; `null` if nothing is repaired. */
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
   * The points that the destination has rejected so far: how many, how many of these only for their age, and the last
   * message.
   */
  rejections(): { readonly lines: number; readonly tooOld: number; readonly message: string | null };
}

/** How often a day is compared again because the state has changed in the meantime. */
const ATTEMPTS = 3;

/** A day of a device, and the points that the destination must have. */
interface DayOf {
  readonly deviceId: string;
  readonly day: number;
  /** About how many points it has. */
  readonly size: number;
  /**
   * The points before these positions must be there; `null`: those that are acknowledged when the comparison begins.
   */
  readonly acknowledged: Positions | null;
  /** Whether no more lines are sent. Otherwise the day is checked again after sending. */
  readonly isLast: boolean;
}

type Positions = ReturnType<VerifyState['positions']>;

/** A day with its findings, and the positions from before. A later comparison requires no more points than that. */
export interface ExaminedDay extends FoundDay {
  readonly acknowledged: Positions | null;
}

/**
 * Compares a day range by range and repairs it.
 *
 * @returns the findings, or the problem.
 */
export async function examineDay(
  parts: Comparison,
  target: DayOf,
  signal: AbortSignal,
): Promise<ExaminedDay | ReadProblem> {
  const { state, destination, source } = parts;
  // The order matters: points that were acknowledged before the query must be in the answer, and points in the answer
  // have been archived by then.
  const acknowledged = target.acknowledged ?? state.positions(destination.id);
  let sent = 0;
  for (let attempt = 1; ; attempt += 1) {
    const archivedBefore = readArchivedDay(state, target);
    const knownMissing = state
      .missing(destination.id, target.deviceId, wholeDay(target.day))
      .filter((range) => staysMissing(range, parts))
      .map(({ fromNs, toNs, points }): KnownMissing => ({ from: fromNs, to: toNs, points }));
    const covered = state.covered(target.deviceId);
    const work: DayWork = {
      target,
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
    const archived = readArchivedDay(state, target);
    const cleared = normalize(work.cleared);
    const { newestMissing, oldestFound } = work.examination;
    const end = {
      deviceId: target.deviceId,
      day: target.day,
      archived,
      sent,
      cleared,
      acknowledged,
      newestMissing,
      oldestFound,
    };
    // Without a cleared range, every line was compared.
    if (cleared.length === 0) return { ...end, findings: work.examination.findings };
    if (!isSameSum(archived, archivedBefore) && attempt < ATTEMPTS) continue;
    const knownMissingPoints = pointsIn(knownMissing, cleared);
    return { ...end, findings: endExamination(work.examination, { kind: source.kind, archived, knownMissingPoints }) };
  }
}

/** Compares the ranges of a day, and sends the lines that differ again. */
async function examineRanges(parts: Comparison, work: DayWork, signal: AbortSignal): Promise<ReadProblem | null> {
  const resender = work.target.isLast ? null : parts.resender;
  const { examination } = work;
  for (const range of splitDay(work.target)) {
    const problem = await compareRange(parts, { ...work, range }, signal);
    if (problem !== null) return problem;
    const lines = examination.resend.splice(0);
    if (resender === null || lines.length === 0) continue;
    const unsent = await resender.send(lines, signal);
    if (unsent !== null) return unsent;
    work.sent += lines.length;
  }
  return null;
}

/**
 * Whether points that are recorded as missing are not sent again: nothing is repaired, or their reason rules it out.
 */
function staysMissing(missing: MissingPoints, { resender }: Comparison): boolean {
  return resender === null || !isRepairable(missing);
}

function pointsIn(knownMissing: readonly KnownMissing[], cleared: Intervals): number {
  return knownMissing
    .filter((each) => intersect([each], cleared).length > 0)
    .reduce((sum, { points }) => sum + points, 0);
}

/** The comparison of a day in progress. */
interface DayWork {
  readonly target: DayOf;
  readonly examination: Examination;
  readonly covered: Intervals;
  readonly acknowledged: Positions;
  /** The cleared ranges of the day; they grow while it is compared. */
  readonly cleared: Interval[];
  readonly knownMissing: readonly KnownMissing[];
  sent: number;
}

/** How far times may be changed for a database that stores milliseconds. */
const MOVED_NS: EpochNs = SECOND_NS;

/** Compares a range of a day line by line. */
async function compareRange(
  { state, source, destination, clock }: Comparison,
  {
    target: { deviceId },
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
  const archived = state.range({ deviceId, destinationId: destination.id, ...reach }, acknowledged);
  const gone = isMoved
    ? archived.cleared.map(({ from, to }) => ({ from: from - (from % MS_NS), to }))
    : archived.cleared;
  cleared.push(...intersect(gone, [range]));
  examineRange(examination, {
    kind: source.kind,
    archived: { ...archived, cleared: gone },
    returned,
    findMoved: state.movedTo,
    knownMissing,
    covered,
    range,
  });
  return null;
}

function readArchivedDay(state: VerifyState, { deviceId, day }: DayOf): ArchivedDay {
  return state.days(deviceId, day, day + 1)[0] ?? emptyDay(day);
}

/** How many points are compared at once. */
const RANGE_POINTS = 20_000;

/**
 * The ranges of a day that are compared point by point, one after another.
 *
 * @param size about how many points the day has.
 */
function splitDay({ day, size }: { readonly day: number; readonly size: number }): Interval[] {
  const parts = BigInt(Math.min(1440, Math.ceil(Math.max(1, size) / RANGE_POINTS)));
  const from = dayStart(day);
  return Array.from({ length: Number(parts) }, (_, nth) => ({
    from: from + edge(BigInt(nth), parts),
    to: from + edge(BigInt(nth) + 1n, parts),
  }));
}

/** Whole milliseconds: in a database that stores those, no point crosses an edge. */
function edge(nth: bigint, parts: bigint): EpochNs {
  const ns = (DAY_NS * nth) / parts;
  return ns - (ns % MS_NS);
}

/** How long to wait before each further attempt. */
const REST_MS: readonly number[] = [SECOND_MS, 3 * SECOND_MS, 10 * SECOND_MS];

/**
 * Queries a destination for a range. A temporary failure repeats the query from the beginning of the range.
 *
 * @param begin creates the collector of the points, once for each attempt.
 * @returns the collector with all points, or the problem.
 */
export async function queryPatiently<T extends object>(
  { source, clock }: { readonly source: PointSource; readonly clock: Clock },
  range: { readonly device: string } & Interval,
  begin: () => { readonly gathered: T; readonly take: TakePoint },
  signal: AbortSignal,
): Promise<T | ReadProblem> {
  for (let nth = 0; ; nth += 1) {
    const { gathered, take } = begin();
    const problem = await source.points(range, take, signal);
    if (problem === null) return gathered;
    const restMs = REST_MS[nth];
    if (problem.kind === 'rejected' || restMs === undefined) return problem;
    await clock.sleep(restMs, signal);
  }
}
