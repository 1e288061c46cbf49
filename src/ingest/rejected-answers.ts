/**
 * How to treat an answer that covers nothing, and how long answers without a stored reading are not trusted. Pure.
 *
 * A service that lags, restarts or has lost a part of its storage gives odd answers for a while; a retry may get a good
 * one. A page that has a reading at the very instant of the overlap reading, or readings on both sides of it, shows a
 * restatement: if several do not have the overlap reading, it is gone. A page that has no reading at or beyond it, such
 * as an empty page, shows only that no reading came from there: a service whose storage fails sends such answers, maybe
 * for hours and for every device. A reading that is missing only from such answers counts as gone only half an hour
 * after it was first missed, a day where they are empty, if no answer has shown it in the meantime. Until then, empty
 * answers about the device cover nothing. The ranges that the answers have left empty next to such a reading are
 * requested again after an hour and after a day.
 *
 * | the answer                                                  | 1st           | 2nd           | 3rd and later       |
 * | ----------------------------------------------------------- | ------------- | ------------- | ------------------- |
 * | is the first empty one, and misses no overlap reading       | same at once  | same at once  | same at once        |
 * | is empty, while empty answers about the device are in doubt | give up       | give up       | give up             |
 * | is disordered, of another device, or empty again            | same later    | same later    | give up             |
 * | has another reading in place of the overlap reading         | restart later | restart later | overlap is gone     |
 * | ends before the overlap reading, which was never missed     | restart later | restart later | remember, give up   |
 * | ends before it, and it was first missed a short while ago   | give up       | give up       | give up             |
 * | ends before it, and it was first missed long ago            | restart later | restart later | accept the answers  |
 *
 * "Same" repeats the request. "Restart" repeats its chain of cursors from the first page. "Later" means after a second.
 * "Give up" leaves a named gap, which is tried again after some minutes.
 */
import type { Edge } from '../core/coverage.ts';
import type { Interval } from '../core/intervals.ts';
import type { Reading } from '../core/records.ts';
import type { MissedOverlap } from '../core/state/telemetry.ts';
import { DAY_MS, type EpochMs, type EpochNs, MINUTE_MS, maxNs } from '../core/time.ts';

/** How often a request is sent whose answers cover nothing, before its gap is named. */
export const TRIES = 3;

/**
 * How long a stored reading may be missing from empty answers before it counts as gone: longer than an outage lasts.
 */
const EMPTY_PATIENCE_MS = DAY_MS;

/** The same for pages whose readings end before it. */
const SHORT_PATIENCE_MS = 30 * MINUTE_MS;

/** An overlap reading that is missing in a page. */
export interface MissingOverlap {
  readonly at: EpochNs;
  /**
   * `replaced`: the page has another reading at that instant, or readings on both sides of it. `not reached`: it has
   * none at or beyond it.
   */
  readonly how: 'replaced' | 'not reached';
}

/** The missing overlap readings that a page is accepted without. */
export type AcceptedMissing = 'none' | 'replaced' | 'any';

/** Kinds of answers that cover nothing: the rows of the table. */
type Finding =
  | 'first empty'
  | 'empty in doubt'
  | 'odd'
  | 'overlap replaced'
  | 'overlap not reached'
  | 'overlap awaited'
  | 'overlap overdue';

/** The steps: the cells of the table. */
export type Step =
  | 'same at once'
  | 'same later'
  | 'restart later'
  | 'overlap is gone'
  | 'accept the answers'
  | 'remember, give up'
  | 'give up';

const STEPS: Readonly<Record<Finding, readonly [first: Step, second: Step, later: Step]>> = {
  'first empty': ['same at once', 'same at once', 'same at once'],
  'empty in doubt': ['give up', 'give up', 'give up'],
  odd: ['same later', 'same later', 'give up'],
  'overlap replaced': ['restart later', 'restart later', 'overlap is gone'],
  'overlap not reached': ['restart later', 'restart later', 'remember, give up'],
  'overlap awaited': ['give up', 'give up', 'give up'],
  'overlap overdue': ['restart later', 'restart later', 'accept the answers'],
};

/** The rejected answers of a gap scan since the last answer that covered something. */
export interface Attempts {
  /** Answers that covered nothing, except the first empty one. */
  readonly rejected: number;
  readonly empties: number;
  /** Answers without the overlap reading. */
  readonly withoutOverlap: number;
  /** Whether pages are accepted whose readings end before the overlap reading, because that counts as gone. */
  readonly shortAccepted: boolean;
  /** Whether empty answers are accepted for the same reason. */
  readonly emptyAccepted: boolean;
}

/** The count before the first request. */
export const NO_ATTEMPTS: Attempts = {
  rejected: 0,
  empties: 0,
  withoutOverlap: 0,
  shortAccepted: false,
  emptyAccepted: false,
};

/** How long a reading has been missing in such answers: never, for a short while, for long enough. */
type Missed = 'never' | 'awaited' | 'overdue';

/** An answer that covers nothing. */
export interface RejectedAnswer {
  /** Whether it has no reading, and is about the requested device. */
  readonly isEmpty: boolean;
  readonly overlapMissing: MissingOverlap | null;
  /**
   * How long the overlap reading has been missing in answers that do not reach it. If the answer has it, the same for
   * any other reading of the device.
   */
  readonly missed: Missed;
}

const NOT_REACHED: Readonly<Record<Missed, Finding>> = {
  never: 'overlap not reached',
  awaited: 'overlap awaited',
  overdue: 'overlap overdue',
};

function classifyRejected({ isEmpty, overlapMissing, missed }: RejectedAnswer, { empties }: Attempts): Finding {
  if (overlapMissing !== null) return overlapMissing.how === 'replaced' ? 'overlap replaced' : NOT_REACHED[missed];
  if (!isEmpty) return 'odd';
  if (missed === 'awaited') return 'empty in doubt';
  return empties === 0 ? 'first empty' : 'odd';
}

/** Decides the step after an answer that covers nothing, and counts the answer. Pure. */
export function decideStep(
  before: Attempts,
  answer: RejectedAnswer,
): { readonly step: Step; readonly attempts: Attempts } {
  const finding = classifyRejected(answer, before);
  const countsMiss = answer.overlapMissing !== null && finding !== 'overlap awaited';
  const rejected = before.rejected + (finding === 'first empty' ? 0 : 1);
  const withoutOverlap = before.withoutOverlap + (countsMiss ? 1 : 0);
  const [first, second, later] = STEPS[finding];
  const nth = countsMiss ? withoutOverlap : rejected;
  const step = nth >= TRIES ? later : nth === 2 ? second : first;
  const isAccepted = step === 'accept the answers';
  return {
    step,
    attempts: {
      rejected,
      empties: before.empties + (answer.isEmpty ? 1 : 0),
      withoutOverlap,
      shortAccepted: before.shortAccepted || isAccepted,
      emptyAccepted: before.emptyAccepted || (isAccepted && answer.isEmpty),
    },
  };
}

/** Returns the missing overlap readings that a page is accepted without. An empty page needs more evidence. */
export function acceptedMissing(
  { withoutOverlap, shortAccepted, emptyAccepted }: Attempts,
  readings: readonly Reading[],
): AcceptedMissing {
  if (readings.length === 0 ? emptyAccepted : shortAccepted) return 'any';
  return withoutOverlap >= TRIES ? 'replaced' : 'none';
}

/** Returns an overlap reading that answers still have to show; `null` if it counts as gone. */
export function stillRequired(edge: Edge | null, missed: readonly MissedOverlap[]): Edge | null {
  return missed.some(({ at, isGone }) => isGone && at === edge?.at) ? null : edge;
}

/**
 * The range that a page leaves empty up to a stored reading that it does not reach, because that reading counts as
 * gone. The cause that hides that reading may hide others there, so the range is requested again.
 *
 * @returns `null` if the page reaches all stored readings next to its covered range.
 */
export function emptiedRange(
  { covers, newest }: { readonly covers: Interval | null; readonly newest: Reading | undefined },
  edges: readonly (Edge | null)[],
  missed: readonly MissedOverlap[],
): Interval | null {
  if (covers === null) return null;
  const end = (newest?.recordedAt ?? -1n) + 1n;
  const isNotReached = edges.some((edge) => edge !== null && edge.at >= end && stillRequired(edge, missed) === null);
  const range = { from: maxNs(covers.from, end), to: covers.to };
  return isNotReached && range.from < range.to ? range : null;
}

/**
 * Whether an empty answer about a device covers nothing for now, because a reading that such answers must contain is
 * missing.
 */
export function areEmptyAnswersIgnored(missed: readonly MissedOverlap[], nowMs: EpochMs): boolean {
  return missed.some(({ isGone, sinceMs }) => !isGone && nowMs - sinceMs < EMPTY_PATIENCE_MS);
}

/** Returns the times of the missed overlap readings that a page shows again. */
export function reappearedOverlaps(missed: readonly MissedOverlap[], readings: readonly Reading[]): EpochNs[] {
  return missed.map(({ at }) => at).filter((at) => readings.some(({ recordedAt }) => recordedAt === at));
}

/**
 * Returns how long the overlap reading has been missing. If it was returned, the same for any other reading of the
 * device.
 *
 * @param waitedMs how long a reading of the device has been missing by the monotonic clock, because without `Date` the
 * server's time jumps with the local clock. Infinite if an earlier process missed it first.
 */
export function missedSince(
  missed: readonly MissedOverlap[],
  { isEmpty, overlapMissing }: Omit<RejectedAnswer, 'missed'>,
  { nowMs, waitedMs }: { readonly nowMs: EpochMs; readonly waitedMs: number },
): Missed {
  if (overlapMissing === null) return isEmpty && areEmptyAnswersIgnored(missed, nowMs) ? 'awaited' : 'never';
  const known = missed.find(({ at }) => at === overlapMissing.at);
  if (known === undefined) return 'never';
  const patienceMs = isEmpty ? EMPTY_PATIENCE_MS : SHORT_PATIENCE_MS;
  return Math.min(nowMs - known.sinceMs, waitedMs) < patienceMs ? 'awaited' : 'overdue';
}

/** Returns the record to store about the overlap reading with that time after a step; `null` if nothing changes. */
export function missedAfter(
  missed: readonly MissedOverlap[],
  { at, step }: { readonly at: EpochNs; readonly step: Step },
  nowMs: EpochMs,
): MissedOverlap | null {
  const known = missed.find((each) => each.at === at);
  // First missed in the future: recorded by a clock that was ahead.
  if (known?.isGone === false && known.sinceMs > nowMs) return { ...known, sinceMs: nowMs };
  if (known === undefined) return step === 'remember, give up' ? { at, sinceMs: nowMs, isGone: false } : null;
  const isGone = step === 'accept the answers' || step === 'overlap is gone';
  return isGone && !known.isGone ? { ...known, isGone } : null;
}
