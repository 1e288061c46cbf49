/**
 * What the planner learns of the newest end of a device from listings, answers and failures: how its rate, its hint and
 * its quiet move.
 */

import { MINUTE_MS } from '../core/time.ts';
import { GRAIN_MS, type Hole, hasNews, isHinted, NEVER_MS, type Tail } from './device-outlook.ts';
import { learnFromEmpty, learnFromPage, learnFromSeen, surelyWithinMs } from './report-rate.ts';

/** The listing may be answered from somewhere that lags: what is younger than this it need not know. */
const LISTING_LAG_MS = MINUTE_MS;
/** Signs of life that no reading follows: after so many in a row they are no hint of readings. */
const FALSE_SIGNS = 3;
/**
 * How long a device rests after a failure of its own, doubled with each in a row. However long it has failed: half an hour
 * after it can be read again, what was missed of it is there.
 */
const REST_MS = MINUTE_MS;
const LONGEST_REST_MS = 20 * MINUTE_MS;

/**
 * Takes in what a listing says.
 *
 * @param seenMs `last_seen_at`; `null` where it says none.
 * @returns whether it is a surprise: a device that was quiet has spoken.
 */
export function noteListed(tail: Tail, seenMs: number | null, atMs: number): boolean {
  const before = tail.seenMs;
  tail.listedMs = atMs;
  tail.seenMs = seenMs ?? NEVER_MS;
  // Two signs of life with pages between them tell nothing that the pages did not.
  if (before !== NEVER_MS && tail.seenMs > before) tail.isHintProven = true;
  if (before !== NEVER_MS && before >= tail.newestMs) tail.rate = learnFromSeen(tail.rate, tail.seenMs - before);
  if (hasNews(tail)) {
    if (tail.isQuiet) tail.isBack = true;
    const isSurprise = tail.isQuiet && !tail.isGone;
    tail.isQuiet = false;
    return isSurprise;
  }
  const expectedMs = tail.newestMs + surelyWithinMs(tail.rate);
  const isDenied = expectedMs + LISTING_LAG_MS < atMs;
  // A listing that was never seen to follow is not believed against a device that spoke when it was asked last: that
  // costs one request, and a device that the listing knows nothing of is noticed at once.
  const isBelieved = tail.isHintProven || expectedMs < tail.askedMs;
  if (isDenied && isHinted(tail) && isBelieved) tail.isQuiet = true;
  return false;
}

/** What an answer about the newest end of a device brought. */
export interface TailAnswer {
  /** Readings that were not held before. */
  readonly newReadings: number;
  /** The instants of the readings of the page, newest first; those that were held before may be among them. */
  readonly instantsMs: readonly number[];
  /** The stretch below the page that is not held, where one is left. */
  readonly hole: Hole | null;
  /** How far the question reached, where it was not asked for what is newer. */
  readonly untilMs?: number | null;
}

/**
 * Takes in an answer about its newest end.
 *
 * @returns whether its hint is dropped for that: the listing had denied what was found, or has promised time and again
 * what was not there.
 */
export function noteAnswer(tail: Tail, answer: TailAnswer, atMs: number): boolean {
  const { newReadings, instantsMs } = answer;
  const wasDropped = tail.isHintDropped;
  const isWrong = isHintWrong(tail, instantsMs);
  const hadNews = hasNews(tail);
  const wasWalk = tail.hole !== null;
  Object.assign(tail, { askedMs: atMs, isGone: false, failures: 0, restMs: NEVER_MS, hole: answer.hole });
  if (newReadings > 0 || tail.rate.intervalMs === null) tail.rate = learnFromPage(tail.rate, instantsMs);
  // A page further down says nothing of the newest end.
  if (wasWalk) return false;
  if (newReadings === 0 && answer.untilMs != null) {
    // It rested just there: that says nothing of what is newer, and its rate not how much that is.
    tail.newestMs = Math.max(tail.newestMs, answer.untilMs);
    tail.isBack = true;
    return false;
  }
  tail.isBack = false;
  tail.newestMs = Math.max(tail.newestMs, instantsMs[0] ?? NEVER_MS);
  if (isWrong) tail.isHintDropped = true;
  if (newReadings > 0) noteFound(tail);
  else noteEmpty(tail, hadNews);
  // The answer itself says that nothing newer was there.
  if (tail.newestMs + surelyWithinMs(tail.rate) < (answer.untilMs ?? atMs)) tail.isQuiet = true;
  return tail.isHintDropped && !wasDropped;
}

/** Takes in that it could not be asked, by a fault of its own. */
export function noteFailure(tail: Tail, atMs: number): void {
  tail.restMs = atMs + Math.min(LONGEST_REST_MS, REST_MS * 2 ** Math.min(tail.failures, 16));
  tail.failures += 1;
}

function noteFound(tail: Tail): void {
  tail.isQuiet = false;
  tail.emptiesInARow = 0;
  tail.falseSigns = 0;
}

function noteEmpty(tail: Tail, hadNews: boolean): void {
  tail.emptiesInARow += 1;
  if (!tail.isQuiet && !hadNews) tail.rate = learnFromEmpty(tail.rate);
  tail.isQuiet = true;
  if (!hadNews) return;
  tail.emptySeenMs = tail.seenMs;
  tail.falseSigns += 1;
  if (tail.falseSigns >= FALSE_SIGNS) tail.isHintDropped = true;
}

/** Whether the last listing ought to have told of a reading that is in the page and was not held. */
function isHintWrong(tail: Tail, instantsMs: readonly number[]): boolean {
  if (!isHinted(tail) || tail.newestMs === NEVER_MS) return false;
  if (tail.seenMs > tail.newestMs + GRAIN_MS) return false;
  const knownToMs = tail.listedMs - LISTING_LAG_MS;
  return instantsMs.some((atMs) => atMs > tail.newestMs + GRAIN_MS && atMs <= knownToMs);
}
