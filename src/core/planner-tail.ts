/**
 * What the planner knows of the newest end of one device, and the rules of when that is worth a request (design 2.4).
 *
 * A device has something new where the listing says so, or where its next reading is there all but certainly by its rate.
 * Otherwise it is quiet: nothing but a sign of life or its sweep has it asked. The rate is a prediction and the listing a
 * hint; neither ever says what is held.
 */
import {
  learnFromEmpty,
  learnFromPage,
  learnFromSeen,
  type ReportRate,
  surelyWithinMs,
  UNKNOWN_RATE,
} from './report-rate.ts';
import { MINUTE_MS, SECOND_MS } from './time.ts';

export const NEVER_MS = Number.NEGATIVE_INFINITY;

/** The listing may be answered from somewhere that lags: what is younger than this it need not know. */
const LISTING_LAG_MS = MINUTE_MS;
/** Times may be cut to seconds on one side and not on the other. */
const GRAIN_MS = SECOND_MS;
/** Signs of life that no reading follows: after so many in a row they are no hint of readings. */
const FALSE_SIGNS = 3;

/** One device. All times in the server's time, in ms; `NEVER_MS` where there is none. */
export interface Tail {
  readonly deviceId: string;
  readonly slot: number;
  /** The newest reading that is held. */
  newestMs: number;
  /** `last_seen_at`, as of the listing at `listedMs`. */
  seenMs: number;
  listedMs: number;
  /** When it was asked last and answered, for whatever reason. */
  askedMs: number;
  rate: ReportRate;
  /** Nothing is predicted any more until there is a sign of life. */
  isQuiet: boolean;
  /** The listing has been wrong about it. */
  isHintDropped: boolean;
  /** The sign of life that no reading was found for. */
  emptySeenMs: number;
  falseSigns: number;
  emptiesInARow: number;
  /** From when on a reading is missing below newer ones that are held. */
  holeFromMs: number | null;
  isUnderWay: boolean;
}

/** A device of which nothing is known. */
export function newTail(deviceId: string, slot: number): Tail {
  return {
    deviceId,
    slot,
    newestMs: NEVER_MS,
    seenMs: NEVER_MS,
    listedMs: NEVER_MS,
    askedMs: NEVER_MS,
    rate: UNKNOWN_RATE,
    isQuiet: false,
    isHintDropped: false,
    emptySeenMs: NEVER_MS,
    falseSigns: 0,
    emptiesInARow: 0,
    holeFromMs: null,
    isUnderWay: false,
  };
}

/** When a device is worth a request. */
export interface Standing {
  /** The time of its oldest reading that is not held, as well as it is known; of one that was never asked, far back. */
  readonly oldestMs: number;
  /** From when on its freshness target is due and there is something to find. */
  readonly dueMs: number;
  /** From when on the page is full, so that waiting longer costs another one. */
  readonly fullMs: number;
}

export interface StandingRules {
  /** How often a device is asked while it has something new, where the allowance carries that. */
  readonly freshnessMs: number;
  readonly sweepMs: number;
  readonly pageSize: number;
  /** How many pages' worth is waited for before a page counts as full: less than one, so that nothing runs over. */
  readonly fill: number;
  /** How old it may become where pages are waited for until they are full. */
  readonly staleMs: number;
}

/** @returns `null` where there is nothing to expect: it waits for a sign of life or its sweep. */
export function standingOf(tail: Tail, rules: StandingRules): Standing | null {
  if (tail.holeFromMs !== null) return { oldestMs: tail.holeFromMs, dueMs: tail.askedMs, fullMs: tail.askedMs };
  const sureMs = sureFromMs(tail, rules);
  if (sureMs === Number.POSITIVE_INFINITY) return null;
  // Never asked: before all others, those with the newest signs of life first.
  if (tail.newestMs === NEVER_MS)
    return { oldestMs: -tail.seenMs, dueMs: tail.askedMs, fullMs: Number.POSITIVE_INFINITY };
  const oldestMs = oldestOf(tail);
  const fullMs = tail.newestMs + rules.fill * rules.pageSize * (tail.rate.intervalMs ?? Number.POSITIVE_INFINITY);
  return {
    oldestMs,
    dueMs: Math.max(tail.askedMs + rules.freshnessMs, oldestMs, sureMs),
    fullMs: Math.max(Math.min(fullMs, oldestMs + rules.staleMs), sureMs),
  };
}

/** Whether the listing says that there is something that is not held. */
export function hasNews(tail: Tail): boolean {
  return !tail.isHintDropped && tail.seenMs > Math.max(tail.newestMs + GRAIN_MS, tail.emptySeenMs);
}

/** From when on something new is there all but certainly. */
function sureFromMs(tail: Tail, { sweepMs }: StandingRules): number {
  if (hasNews(tail)) return NEVER_MS;
  if (tail.newestMs === NEVER_MS) return Number.POSITIVE_INFINITY;
  const byRateMs = tail.newestMs + surelyWithinMs(tail.rate);
  if (!tail.isQuiet || !Number.isFinite(byRateMs)) return tail.isQuiet ? Number.POSITIVE_INFINITY : byRateMs;
  if (!tail.isHintDropped) return Number.POSITIVE_INFINITY;
  // Without a hint nobody tells when it speaks again: it is asked at doubling distances until that is its sweep.
  const restMs = surelyWithinMs(tail.rate) * 2 ** Math.min(tail.emptiesInARow, 20);
  return restMs >= sweepMs ? Number.POSITIVE_INFINITY : tail.askedMs + restMs;
}

function oldestOf(tail: Tail): number {
  const byRateMs = tail.newestMs + (tail.rate.intervalMs ?? Number.POSITIVE_INFINITY);
  return hasNews(tail) ? Math.min(byRateMs, tail.seenMs) : byRateMs;
}

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
  if (before !== NEVER_MS && before >= tail.newestMs) tail.rate = learnFromSeen(tail.rate, tail.seenMs - before);
  if (hasNews(tail)) {
    const isSurprise = tail.isQuiet;
    tail.isQuiet = false;
    return isSurprise;
  }
  const isDenied = tail.newestMs + surelyWithinMs(tail.rate) + LISTING_LAG_MS < atMs;
  if (isDenied && !tail.isHintDropped) tail.isQuiet = true;
  return false;
}

/** What an answer about the newest end of a device brought. */
export interface TailAnswer {
  /** Readings that were not held before. */
  readonly newReadings: number;
  /** The instants of the readings of the page, newest first; those that were held before may be among them. */
  readonly instantsMs: readonly number[];
  /** Where a stretch below the page is left that is not held: where it begins. */
  readonly holeFromMs: number | null;
}

/** @returns whether the listing is proven wrong by it: it had denied what was found. */
export function noteAnswer(tail: Tail, answer: TailAnswer, atMs: number): boolean {
  const { newReadings, instantsMs } = answer;
  const isWrong = isHintWrong(tail, instantsMs);
  const hadNews = hasNews(tail);
  tail.askedMs = atMs;
  tail.rate = learnFromPage(tail.rate, instantsMs);
  tail.newestMs = Math.max(tail.newestMs, instantsMs[0] ?? NEVER_MS);
  tail.holeFromMs = answer.holeFromMs;
  if (isWrong) tail.isHintDropped = true;
  if (newReadings > 0) noteFound(tail);
  else noteEmpty(tail, hadNews);
  // The answer itself says that nothing newer was there.
  if (tail.newestMs + surelyWithinMs(tail.rate) < atMs) tail.isQuiet = true;
  return isWrong;
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
  if (tail.isHintDropped || tail.listedMs === NEVER_MS || tail.newestMs === NEVER_MS) return false;
  if (tail.seenMs > tail.newestMs + GRAIN_MS) return false;
  const knownToMs = tail.listedMs - LISTING_LAG_MS;
  return instantsMs.some((atMs) => atMs > tail.newestMs + GRAIN_MS && atMs <= knownToMs);
}
