/**
 * What the planner knows of the newest end of one device, and the rules of when that is worth a request (design 2.4).
 *
 * A device has something new where the listing says so, or where its next reading is there all but certainly by its rate.
 * Otherwise it is quiet: nothing but a sign of life or its sweep has it asked. The rate is a prediction and the listing a
 * hint; neither ever says what is held.
 */

import { SECOND_MS } from '../core/time.ts';
import { type ReportRate, surelyWithinMs, UNKNOWN_RATE } from './report-rate.ts';

export const NEVER_MS = Number.NEGATIVE_INFINITY;

/** Times may be cut to seconds on one side and not on the other. */
export const GRAIN_MS = SECOND_MS;
/** What takes so many pages is walked through from its newest end, as a few readings more or less do not matter. */
const STOPPED_PAGES = 2.5;
/** However long its turn may take: a page is at least so full. */
const LEAST_FILL = 0.8;
/** A walk of so many pages is gone on with at a stretch. */
const WALK_PAGES = 10;

/** A stretch that is not held, below newer readings that are. */
export interface Hole {
  readonly fromMs: number;
  readonly toMs: number;
}

/** One device. All times in the server's time, in ms; `NEVER_MS` where there is none. */
export interface Tail {
  readonly deviceId: string;
  readonly slot: number;
  /** The newest reading that is held; where none was found up to a later time, that time. */
  newestMs: number;
  /** `last_seen_at`, as of the listing at `listedMs`. */
  seenMs: number;
  listedMs: number;
  /** When it was asked last and answered, for whatever reason. */
  askedMs: number;
  rate: ReportRate;
  /** Whether it spoke again after a rest, so that its rate does not say how much there is. */
  isBack: boolean;
  /** Whether its life cycle lets readings be expected; else a hint or a sweep alone has it asked. */
  isActive: boolean;
  /** Whether it is gone: looked at now and then. */
  isGone: boolean;
  /** Nothing is predicted any more until there is a sign of life. */
  isQuiet: boolean;
  /** The listing has been wrong about it. */
  isHintDropped: boolean;
  /** Whether the listing was seen to follow its signs of life: one that never moves may know nothing. */
  isHintProven: boolean;
  /** The sign of life that no reading was found for. */
  emptySeenMs: number;
  falseSigns: number;
  emptiesInARow: number;
  /** Failures of its own in a row, and until when it rests after them. */
  failures: number;
  restMs: number;
  /** What is missing below newer readings that are held. */
  hole: Hole | null;
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
    isBack: false,
    isActive: true,
    isGone: false,
    isQuiet: false,
    isHintDropped: false,
    isHintProven: false,
    emptySeenMs: NEVER_MS,
    falseSigns: 0,
    emptiesInARow: 0,
    failures: 0,
    restMs: NEVER_MS,
    hole: null,
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
  /** How much earlier than that it is asked, as others may be before it. */
  readonly slackMs: number;
  /** Whether pages that are full are taken in turn, as not all can be taken before they run over. */
  readonly isInTurn: boolean;
  /** How old it may become where pages are waited for until they are full. */
  readonly staleMs: number;
}

/** @returns `null` where there is nothing to expect: it waits for a sign of life or its sweep. */
export function standingOf(tail: Tail, rules: StandingRules): Standing | null {
  if (tail.isGone) return null;
  if (tail.hole !== null) {
    const dueMs = Math.max(tail.askedMs, tail.restMs);
    return { oldestMs: tail.hole.fromMs, dueMs, fullMs: dueMs };
  }
  const sureMs = sureFromMs(tail, rules);
  if (sureMs === Number.POSITIVE_INFINITY) return null;
  // Never asked: before all others, those with the newest signs of life first.
  if (tail.newestMs === NEVER_MS)
    return { oldestMs: -tail.seenMs, dueMs: Math.max(tail.askedMs, tail.restMs), fullMs: Number.POSITIVE_INFINITY };
  const oldestMs = oldestOf(tail);
  const fullMs = fullFromMs(tail, rules);
  return {
    oldestMs,
    dueMs: Math.max(tail.askedMs + rules.freshnessMs, oldestMs, sureMs, tail.restMs),
    fullMs: Math.max(Math.min(fullMs, oldestMs + rules.staleMs), sureMs, tail.restMs),
  };
}

/**
 * Where a request for its newest end had better stop: what has run over a page by less than another one would take a
 * second request for the rest, which at the next turn costs nothing. So the oldest page of it is asked for, and the
 * newest readings wait for that turn.
 *
 * @returns a time; `null` where nothing has run over, or so much that its newest readings should not wait for it.
 */
export function stopOf(tail: Tail, { pageSize, fill, isInTurn }: StandingRules, nowMs: number): number | null {
  const { intervalMs } = tail.rate;
  if (
    isInTurn ||
    tail.isBack ||
    tail.isQuiet ||
    tail.hole !== null ||
    tail.newestMs === NEVER_MS ||
    intervalMs === null
  )
    return null;
  const pages = (nowMs - tail.newestMs) / (intervalMs * pageSize);
  return pages > fill && pages < STOPPED_PAGES ? tail.newestMs + intervalMs * pageSize * fill : null;
}

/** From when on its page counts as full: a little before, by the time that its turn may take to come. */
function fullFromMs(tail: Tail, { fill, pageSize, slackMs }: StandingRules): number {
  const fillMs = pageSize * (tail.rate.intervalMs ?? Number.POSITIVE_INFINITY);
  return tail.newestMs + Math.max(fillMs * fill - slackMs, fillMs * LEAST_FILL);
}

/**
 * Its place among those whose page is full: the one whose page runs over first goes first; where all run over, the one
 * that was asked longest ago. A walk that has begun is finished before the next one begins, as no page but its last
 * makes the device whole; unless it is a long one.
 */
export function turnOf(tail: Tail, { pageSize, isInTurn }: StandingRules): number {
  if (tail.hole === null)
    return isInTurn ? tail.askedMs : tail.newestMs + pageSize * (tail.rate.intervalMs ?? Number.POSITIVE_INFINITY);
  const readings = (tail.hole.toMs - tail.hole.fromMs) / (tail.rate.intervalMs ?? 0);
  return readings <= WALK_PAGES * pageSize ? NEVER_MS : tail.askedMs;
}

/** Whether the listing tells of it at all, as far as is known. */
export function isHinted(tail: Tail): boolean {
  return !tail.isHintDropped && tail.seenMs !== NEVER_MS;
}

/** Whether the listing says that there is something that is not held. */
export function hasNews(tail: Tail): boolean {
  return isHinted(tail) && tail.seenMs > Math.max(tail.newestMs + GRAIN_MS, tail.emptySeenMs);
}

/** From when on something new is there all but certainly. */
function sureFromMs(tail: Tail, { sweepMs }: StandingRules): number {
  if (hasNews(tail)) return NEVER_MS;
  if (tail.newestMs === NEVER_MS || !tail.isActive) return Number.POSITIVE_INFINITY;
  if (!tail.isQuiet) return tail.newestMs + surelyWithinMs(tail.rate);
  if (isHinted(tail)) return Number.POSITIVE_INFINITY;
  // Without a hint nobody tells when it speaks again: it is asked at doubling distances until that is its sweep.
  const restMs = surelyWithinMs(tail.rate) * 2 ** Math.min(tail.emptiesInARow, 20);
  return restMs >= sweepMs ? Number.POSITIVE_INFINITY : tail.askedMs + restMs;
}

/**
 * From one look to the next at a quiet device of which no listing tells: at its next reading where that is still to
 * come, then at doubling distances. What had said nothing for a sweep when it was asked last has its sweeps alone.
 */
export function lookEveryMs(
  tail: Tail,
  { sweepMs, freshnessMs }: Pick<StandingRules, 'sweepMs' | 'freshnessMs'>,
): number {
  const withinMs = surelyWithinMs(tail.rate);
  const silentMs = tail.askedMs - tail.newestMs;
  if (!tail.isActive || !(silentMs < sweepMs)) return sweepMs;
  const nextMs = withinMs > silentMs ? withinMs - silentMs : withinMs * 2 ** Math.min(tail.emptiesInARow, 20);
  return Math.min(sweepMs, Math.max(freshnessMs, nextMs));
}

function oldestOf(tail: Tail): number {
  const byRateMs = tail.newestMs + (tail.rate.intervalMs ?? Number.POSITIVE_INFINITY);
  return hasNews(tail) ? Math.min(byRateMs, tail.seenMs) : byRateMs;
}
