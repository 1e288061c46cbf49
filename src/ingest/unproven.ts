/**
 * What to do about an answer that proves nothing, and how long an empty answer is not believed.
 *
 * A service that lags behind, restarts or has lost its storage answers oddly for a while; asked again it may answer well.
 * A page *with* readings that lacks the overlap reading again and again shows that this reading is gone. An *empty* page
 * shows no more than that nothing came: a service whose storage fails answers so, for hours maybe and of every device.
 * So a reading that only empty answers lack is taken as gone only a day after it was first missed, if no answer has
 * shown it meanwhile; until then empty answers about the device prove nothing.
 *
 * | the answer                                                    | 1st            | 2nd            | 3rd and later       |
 * | ------------------------------------------------------------- | -------------- | -------------- | ------------------- |
 * | is the first empty one, and lacks no overlap reading          | same at once   | (cannot be)    | (cannot be)         |
 * | is empty, while empty answers about the device are in doubt   | give up        | give up        | give up             |
 * | is disordered, of another device, or empty once more          | same later     | same later     | give up             |
 * | has readings, but not the overlap reading                     | restart later  | restart later  | overlap is gone     |
 * | is empty, and the overlap reading was never missed before     | restart later  | restart later  | remember, give up   |
 * | is empty, and it was first missed less than a day ago         | give up        | give up        | give up             |
 * | is empty, and it was first missed a day ago or earlier        | restart later  | restart later  | believe the answers |
 *
 * "Same" is the same request, "restart" its chain of cursors from the first page, "later" after a second, "give up" a
 * named gap, which is tried again in some minutes.
 */
import type { Edge } from '../core/coverage.ts';
import type { Reading } from '../core/records.ts';
import { DAY_MS, type EpochNs } from '../core/time.ts';
import type { SyncContext } from './context.ts';

/** How often an answer that proves nothing is asked for before its gap is named. */
export const TRIES = 3;

/** How long empty answers may lack a held reading before it is taken as gone: longer than a service fails. */
const EMPTY_PATIENCE_MS = DAY_MS;

/** What an answer that proves nothing is like: the rows of the table. */
type Finding =
  | 'first empty'
  | 'empty in doubt'
  | 'odd'
  | 'without overlap'
  | 'empty without overlap'
  | 'empty, overlap awaited'
  | 'empty, overlap overdue';

/** What to do about it: the cells of the table. */
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

/** What a scan of one gap has met since the last answer that proved something. */
export interface Doubts {
  /** Answers that proved nothing, the first empty one aside. */
  readonly distrusted: number;
  readonly empties: number;
  /** Answers that lacked the overlap reading. */
  readonly withoutOverlap: number;
  /** Whether empty answers are believed though they lack the overlap reading: it is taken as gone. */
  readonly emptyBelieved: boolean;
}

export const NO_DOUBTS: Doubts = { distrusted: 0, empties: 0, withoutOverlap: 0, emptyBelieved: false };

/** Since when empty answers have lacked a reading: never, for less than a day, for longer. */
type Missed = 'never' | 'awaited' | 'overdue';

/** An answer that proves nothing. */
export interface Unproven {
  /** Whether it has no reading, and is not of another device. */
  readonly isEmpty: boolean;
  readonly overlapMissing: boolean;
  /** Since when empty answers have lacked the overlap reading, or, where that is not missing, any other of the device. */
  readonly missed: Missed;
}

const EMPTY_WITHOUT_OVERLAP: Readonly<Record<Missed, Finding>> = {
  never: 'empty without overlap',
  awaited: 'empty, overlap awaited',
  overdue: 'empty, overlap overdue',
};

function findingOf({ isEmpty, overlapMissing, missed }: Unproven, { empties }: Doubts): Finding {
  if (overlapMissing) return isEmpty ? EMPTY_WITHOUT_OVERLAP[missed] : 'without overlap';
  if (!isEmpty) return 'odd';
  if (missed === 'awaited') return 'empty in doubt';
  return empties === 0 ? 'first empty' : 'odd';
}

/** What to do about an answer that proves nothing, and what the scan has met with it. Pure. */
export function weigh(before: Doubts, answer: Unproven): { readonly step: Step; readonly doubts: Doubts } {
  const finding = findingOf(answer, before);
  const countsMiss = answer.overlapMissing && finding !== 'empty, overlap awaited';
  const distrusted = before.distrusted + (finding === 'first empty' ? 0 : 1);
  const withoutOverlap = before.withoutOverlap + (countsMiss ? 1 : 0);
  const [first, second, later] = STEPS[finding];
  const nth = countsMiss ? withoutOverlap : distrusted;
  const step = nth >= TRIES ? later : nth === 2 ? second : first;
  return {
    step,
    doubts: {
      distrusted,
      empties: before.empties + (answer.isEmpty ? 1 : 0),
      withoutOverlap,
      emptyBelieved: before.emptyBelieved || step === 'believe the answers',
    },
  };
}

/** Whether a page may go without the overlap reading. That others lack it makes no empty answer one to believe. */
export function isOverlapWaived({ withoutOverlap, emptyBelieved }: Doubts, readings: readonly Reading[]): boolean {
  return withoutOverlap >= TRIES && (readings.length > 0 || emptyBelieved);
}

/** An overlap reading, where answers still have to show it. */
export function unlessGone({ store }: SyncContext, deviceId: string, edge: Edge | null): Edge | null {
  const isGone = store.missedOverlaps(deviceId).some(({ at, isGone }) => isGone && at === edge?.at);
  return isGone ? null : edge;
}

/** Whether an empty answer about a device proves nothing for now: such answers have lacked what it must show. */
export function isEmptyInDoubt({ store, serverClock }: SyncContext, deviceId: string): boolean {
  const missed = store.missedOverlaps(deviceId);
  if (missed.length === 0) return false;
  const nowMs = serverClock.nowMs();
  return missed.some(({ isGone, sinceMs }) => !isGone && nowMs - sinceMs < EMPTY_PATIENCE_MS);
}

/** Takes in the readings of a page: what it shows is not missing any more. */
export function noteShown({ store }: SyncContext, deviceId: string, readings: readonly Reading[]): void {
  const missed = store.missedOverlaps(deviceId);
  if (missed.length === 0) return;
  const shown = missed.map(({ at }) => at).filter((at) => readings.some(({ recordedAt }) => recordedAt === at));
  if (shown.length > 0) store.dropMissedOverlaps(deviceId, shown);
}

/** Since when empty answers have lacked what this one had to show; any of the device where it has shown all it had to. */
export function missedSince(
  context: SyncContext,
  { deviceId, at, isEmpty, overlapMissing }: Omit<Unproven, 'missed'> & { deviceId: string; at: EpochNs },
): Missed {
  if (!isEmpty) return 'never';
  if (!overlapMissing) return isEmptyInDoubt(context, deviceId) ? 'awaited' : 'never';
  const missed = context.store.missedOverlaps(deviceId).find((each) => each.at === at);
  if (missed === undefined) return 'never';
  return context.serverClock.nowMs() - missed.sinceMs < EMPTY_PATIENCE_MS ? 'awaited' : 'overdue';
}

/** Keeps in mind what a step says of the overlap reading of that time. */
export function noteStep(
  { store, serverClock }: SyncContext,
  { deviceId, at, step }: { readonly deviceId: string; readonly at: EpochNs; readonly step: Step },
): void {
  const missed = store.missedOverlaps(deviceId).find((each) => each.at === at);
  if (step === 'remember, give up' || step === 'believe the answers') {
    const nowMs = serverClock.nowMs();
    const sinceMs = missed?.sinceMs ?? nowMs;
    const isGone = nowMs - sinceMs >= EMPTY_PATIENCE_MS;
    if (missed?.isGone !== isGone) store.keepMissedOverlap(deviceId, { at, sinceMs, isGone });
  } else if (step === 'overlap is gone' && missed?.isGone === false) {
    // Answers with readings lack it as well: nobody waits for it any more.
    store.keepMissedOverlap(deviceId, { ...missed, isGone: true });
  }
}
