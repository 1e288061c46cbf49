/**
 * What to do about an answer that covers nothing, and how long empty answers are not trusted. Pure.
 *
 * A service that lags, restarts or has lost its storage gives odd answers for a while; a retry may get a good one. If
 * pages *with* readings lack the overlap reading several times, that reading is gone. An *empty* page shows only that
 * nothing came: a service whose storage fails answers so, maybe for hours and for every device. So a reading that only
 * empty answers lack counts as gone only a day after it was first missed, if no answer has shown it in the meantime.
 * Until then, empty answers about the device cover nothing.
 *
 * | the answer                                                    | 1st            | 2nd            | 3rd and later       |
 * | ------------------------------------------------------------- | -------------- | -------------- | ------------------- |
 * | is the first empty one, and lacks no overlap reading          | same at once   | (cannot be)    | (cannot be)         |
 * | is empty, while empty answers about the device are in doubt   | give up        | give up        | give up             |
 * | is disordered, of another device, or empty again          | same later     | same later     | give up             |
 * | has readings, but not the overlap reading                     | restart later  | restart later  | overlap is gone     |
 * | is empty, and the overlap reading was never missed before     | restart later  | restart later  | remember, give up   |
 * | is empty, and it was first missed less than a day ago         | give up        | give up        | give up             |
 * | is empty, and it was first missed a day ago or earlier        | restart later  | restart later  | believe the answers |
 *
 * "Same" repeats the request. "Restart" repeats its chain of cursors from the first page. "Later" means after a second.
 * "Give up" leaves a named gap, which is tried again after some minutes.
 */
import type { Edge } from '../core/coverage.ts';
import type { Reading } from '../core/records.ts';
import type { MissedOverlap } from '../core/state/telemetry.ts';
import { DAY_MS, type EpochMs, type EpochNs } from '../core/time.ts';

/** How often a request is made whose answers cover nothing, before its gap is named. */
export const TRIES = 3;

/**
 * How long a stored reading may be missing from empty answers before it counts as gone: longer than an outage lasts.
 */
const EMPTY_PATIENCE_MS = DAY_MS;

/** Kinds of answers that cover nothing: the rows of the table. */
type Finding =
  | 'first empty'
  | 'empty in doubt'
  | 'odd'
  | 'without overlap'
  | 'empty without overlap'
  | 'empty, overlap awaited'
  | 'empty, overlap overdue';

/** The steps: the cells of the table. */
export type Step =
  | 'same at once'
  | 'same later'
  | 'restart later'
  | 'overlap is gone'
  | 'believe the answers'
  | 'remember, give up'
  | 'give up';

const STEPS: Readonly<Record<Finding, readonly [first: Step, second: Step, later: Step]>> = {
  'first empty': ['same at once', 'same at once', 'same at once'],
  'empty in doubt': ['give up', 'give up', 'give up'],
  odd: ['same later', 'same later', 'give up'],
  'without overlap': ['restart later', 'restart later', 'overlap is gone'],
  'empty without overlap': ['restart later', 'restart later', 'remember, give up'],
  'empty, overlap awaited': ['give up', 'give up', 'give up'],
  'empty, overlap overdue': ['restart later', 'restart later', 'believe the answers'],
};

/** The unproven answers of a gap scan since the last answer that covered something. */
export interface Attempts {
  /** Answers that covered nothing, the first empty one aside. */
  readonly rejected: number;
  readonly empties: number;
  /** Answers without the overlap reading. */
  readonly withoutOverlap: number;
  /** Whether empty answers are believed without the overlap reading, because it counts as gone. */
  readonly emptyBelieved: boolean;
}

export const NO_ATTEMPTS: Attempts = { rejected: 0, empties: 0, withoutOverlap: 0, emptyBelieved: false };

/** For how long a reading has been missing from empty answers: never, for less than a day, for longer. */
type Missed = 'never' | 'awaited' | 'overdue';

/** An answer that covers nothing. */
export interface Unproven {
  /** Whether it has no reading, and is not of another device. */
  readonly isEmpty: boolean;
  readonly overlapMissing: boolean;
  /**
   * For how long the overlap reading, or if that is not missing any other of the device, has been missing from empty
   * answers.
   */
  readonly missed: Missed;
}

const EMPTY_WITHOUT_OVERLAP: Readonly<Record<Missed, Finding>> = {
  never: 'empty without overlap',
  awaited: 'empty, overlap awaited',
  overdue: 'empty, overlap overdue',
};

function findingOf({ isEmpty, overlapMissing, missed }: Unproven, { empties }: Attempts): Finding {
  if (overlapMissing) return isEmpty ? EMPTY_WITHOUT_OVERLAP[missed] : 'without overlap';
  if (!isEmpty) return 'odd';
  if (missed === 'awaited') return 'empty in doubt';
  return empties === 0 ? 'first empty' : 'odd';
}

/** Decides the step after an answer that covers nothing, and counts the answer. Pure. */
export function decideStep(before: Attempts, answer: Unproven): { readonly step: Step; readonly attempts: Attempts } {
  const finding = findingOf(answer, before);
  const countsMiss = answer.overlapMissing && finding !== 'empty, overlap awaited';
  const rejected = before.rejected + (finding === 'first empty' ? 0 : 1);
  const withoutOverlap = before.withoutOverlap + (countsMiss ? 1 : 0);
  const [first, second, later] = STEPS[finding];
  const nth = countsMiss ? withoutOverlap : rejected;
  const step = nth >= TRIES ? later : nth === 2 ? second : first;
  return {
    step,
    attempts: {
      rejected,
      empties: before.empties + (answer.isEmpty ? 1 : 0),
      withoutOverlap,
      emptyBelieved: before.emptyBelieved || step === 'believe the answers',
    },
  };
}

/** Whether a page is accepted without the overlap reading. An empty answer needs more than that to be believed. */
export function isOverlapOptional({ withoutOverlap, emptyBelieved }: Attempts, readings: readonly Reading[]): boolean {
  return withoutOverlap >= TRIES && (readings.length > 0 || emptyBelieved);
}

/** @returns an overlap reading that answers still have to show; `null` where it is taken as gone. */
export function unlessGone(edge: Edge | null, missed: readonly MissedOverlap[]): Edge | null {
  return missed.some(({ at, isGone }) => isGone && at === edge?.at) ? null : edge;
}

/**
 * Whether an empty answer about a device covers nothing for now, because a reading that such answers must contain is
 * missing.
 */
export function areEmptyAnswersIgnored(missed: readonly MissedOverlap[], nowMs: EpochMs): boolean {
  return missed.some(({ isGone, sinceMs }) => !isGone && nowMs - sinceMs < EMPTY_PATIENCE_MS);
}

/** @returns the times of the missed overlap readings that a page shows again. */
export function reappearedOverlaps(missed: readonly MissedOverlap[], readings: readonly Reading[]): EpochNs[] {
  return missed.map(({ at }) => at).filter((at) => readings.some(({ recordedAt }) => recordedAt === at));
}

/** @returns for how long the overlap reading, or if that was returned any other of the device, has been missing. */
export function missedSince(
  missed: readonly MissedOverlap[],
  { at, isEmpty, overlapMissing }: Omit<Unproven, 'missed'> & { readonly at: EpochNs },
  nowMs: EpochMs,
): Missed {
  if (!isEmpty) return 'never';
  if (!overlapMissing) return areEmptyAnswersIgnored(missed, nowMs) ? 'awaited' : 'never';
  const known = missed.find((each) => each.at === at);
  if (known === undefined) return 'never';
  return nowMs - known.sinceMs < EMPTY_PATIENCE_MS ? 'awaited' : 'overdue';
}

/** @returns the record to store about the overlap reading of that time after a step; `null` if nothing changes. */
export function missedAfter(
  missed: readonly MissedOverlap[],
  { at, step }: { readonly at: EpochNs; readonly step: Step },
  nowMs: EpochMs,
): MissedOverlap | null {
  const known = missed.find((each) => each.at === at);
  // Missed first in the future: by a clock that was ahead.
  if (known?.isGone === false && known.sinceMs > nowMs) return { ...known, sinceMs: nowMs };
  if (step === 'remember, give up' || step === 'believe the answers') {
    const sinceMs = known?.sinceMs ?? nowMs;
    const isGone = nowMs - sinceMs >= EMPTY_PATIENCE_MS;
    return known?.isGone === isGone ? null : { at, sinceMs, isGone };
  }
  // Answers with readings do not contain it either: it counts as gone.
  return step === 'overlap is gone' && known?.isGone === false ? { ...known, isGone: true } : null;
}
