/**
 * The facts about the newest end of one device: how listings, answers and failures change them, and when a request for
 * it is due.
 *
 * A device has new readings if the listing shows a newer one, or if its report rate makes one almost certain. Otherwise
 * it is quiet, and is polled only after a sign of life or when its idle poll is due. The rate is a prediction and the
 * listing is a hint: neither changes the coverage.
 */

import { LISTING_LAG_MS } from '../core/device-coverage.ts';
import type { PollSettings } from '../core/ports.ts';
import { type EpochMs, MINUTE_MS } from '../core/time.ts';
import {
  certainWithinMs,
  isRegular,
  learnFromEmpty,
  learnFromPage,
  learnFromSeen,
  RESOLUTION_MS,
  type ReportRate,
  UNKNOWN_RATE,
} from './report-rate.ts';

/** Stands for an event that has never happened. */
export const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * From this many missing pages on, the scan reads all of them from the newest end: a few more or fewer readings do not
 * matter.
 */
const STOPPED_PAGES = 2.5;
/** The smallest fill of a page that counts as full, however long the device's turn may take. */
const LEAST_FILL = 0.8;
/** A page scan of up to this many pages is finished before the next one. */
const SCAN_PAGES = 10;
/** After this many signs of life in a row that no reading follows, signs of life are no hint of readings. */
const FALSE_SIGNS = 3;
/**
 * How long a device rests after a failure of its own, doubled with each failure in a row. However long it has failed,
 * its readings are read at most half an hour after it answers again.
 */
const REST_MS = MINUTE_MS;
const LONGEST_REST_MS = 20 * MINUTE_MS;
/** A known rate is learned from the new readings of a page, but at least from this many: the rate may have changed. */
const LATEST_READINGS = 20;

/** An uncovered range below newer covered readings. */
export interface LiveGap {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The facts about a device in the device list, and how reliable they are. Times are `NEVER_MS` if there is none. */
interface Hint {
  /**
   * `confirmed`: the listing was seen to follow the device's signs of life. `dropped`: it missed readings, or
   * repeatedly announced readings that were not there; it is ignored.
   */
  trust: 'untested' | 'confirmed' | 'dropped';
  /** `last_seen_at`, as of the listing at `listedMs`. */
  seenMs: number;
  listedMs: number;
  /** The sign of life that no reading was found for. */
  emptySeenMs: number;
  /** How many signs of life in a row had no reading. */
  falseSigns: number;
}

/** The facts about one device. All times are the server's, in ms; `NEVER_MS` for none. */
export interface OutlookFacts {
  /** The newest covered reading. If a later range was found empty, the end of that range. */
  newestMs: number;
  /** When a request of any kind about the device was last answered. */
  polledMs: number;
  rate: ReportRate;
  readonly hint: Hint;
  /** Whether readings are expected in its lifecycle status. If not, only a hint or an idle poll leads to a poll. */
  isActive: boolean;
  /** Whether the listing shows it as offline. */
  isOffline: boolean;
  /** Whether nothing is predicted until the next sign of life. */
  isQuiet: boolean;
  /** Whether it reported again after a rest. Then its rate does not show how many readings there are. */
  isBack: boolean;
  emptiesInARow: number;
  /** How many times in a row it failed by itself, and until when it rests because of that. */
  failures: number;
  restMs: number;
  /** The gap below newer covered readings. */
  liveGap: LiveGap | null;
}

/** The facts about a device that was never polled and never listed. */
export function unknownDevice(): OutlookFacts {
  return {
    newestMs: NEVER_MS,
    polledMs: NEVER_MS,
    rate: UNKNOWN_RATE,
    hint: { trust: 'untested', seenMs: NEVER_MS, listedMs: NEVER_MS, emptySeenMs: NEVER_MS, falseSigns: 0 },
    isActive: true,
    isOffline: false,
    isQuiet: false,
    isBack: false,
    emptiesInARow: 0,
    failures: 0,
    restMs: NEVER_MS,
    liveGap: null,
  };
}

/** The times by which the queue decides whether a device is polled, and before which others. */
export interface Outlook {
  /**
   * The time of its oldest uncovered reading, as well as it is known. For a device that was never polled: a time long
   * ago.
   */
  readonly oldestMs: number;
  /** The time at which its lag target is reached and there is something to find. */
  readonly dueMs: number;
  /** The time at which its page is full, so that waiting longer costs another page. */
  readonly fullMs: number;
}

/** The rules by which all devices are polled at present. */
export interface OutlookRules {
  readonly polls: PollSettings;
  /** How often a device with new readings is polled, if the quota allows it. */
  readonly telemetryMs: number;
  readonly pageSize: number;
  /** How far below the newest reading a page begins: readings since the watermark are read again. */
  readonly gracePeriodMs: number;
  /** How many pages must be expected before a page counts as full: less than one, so that no reading is missed. */
  readonly fill: number;
  /** How much earlier than that it is polled, because other devices may be polled first. */
  readonly slackMs: number;
  /** Whether full pages are taken in turn, because not all of them can be read before they overflow. */
  readonly isInTurn: boolean;
  /** The largest lag while the scheduler waits for pages to fill. */
  readonly staleMs: number;
  /** Whether the device list is out of date. Then no device counts as followed by it. */
  readonly isUnlisted: boolean;
}

/** Returns `null` if no reading is expected: the device waits for a sign of life or its idle poll. */
export function computeOutlook(facts: OutlookFacts, rules: OutlookRules): Outlook | null {
  if (facts.liveGap !== null) {
    const dueMs = Math.max(facts.polledMs, facts.restMs);
    return { oldestMs: facts.liveGap.fromMs, dueMs, fullMs: dueMs };
  }
  const certainMs = certainFromMs(facts, rules);
  if (certainMs === Number.POSITIVE_INFINITY) return null;
  // Never polled: such devices come before all others, those with the newest signs of life first and those without one
  // last.
  if (facts.newestMs === NEVER_MS)
    return {
      oldestMs: Math.min(0, -facts.hint.seenMs),
      dueMs: Math.max(facts.polledMs, facts.restMs),
      fullMs: Number.POSITIVE_INFINITY,
    };
  const oldestMs = oldestUnreadMs(facts, rules);
  const fullMs = fullFromMs(facts, rules);
  return {
    oldestMs,
    dueMs: Math.max(facts.polledMs + rules.telemetryMs, oldestMs, certainMs, facts.restMs),
    fullMs: Math.max(Math.min(fullMs, oldestMs + rules.staleMs), certainMs, facts.restMs),
  };
}

/**
 * The end of the next request for the newest range, if it should not be the present. If the readings exceed one page by
 * less than another, a second request now would be needed for a few readings that cost nothing at the next turn. So the
 * oldest page is requested, and the newest readings wait for that turn.
 *
 * @returns a time; `null` if the readings fit on one page, or exceed it by so much that the newest readings should not
 * wait.
 */
export function stopAtMs(facts: OutlookFacts, rules: OutlookRules, nowMs: number): number | null {
  const { intervalMs } = facts.rate;
  if (rules.isInTurn || facts.isBack || facts.isQuiet || facts.liveGap !== null) return null;
  if (facts.newestMs === NEVER_MS || intervalMs === null) return null;
  const newMs = nowMs - facts.newestMs;
  const reachMs = pageRangeMs(intervalMs, rules);
  return newMs > reachMs && newMs < STOPPED_PAGES * rules.pageSize * intervalMs ? facts.newestMs + reachMs : null;
}

/** The time at which its page counts as full: a little early, by the time that it may wait for its turn. */
function fullFromMs(facts: OutlookFacts, rules: OutlookRules): number {
  const intervalMs = facts.rate.intervalMs ?? Number.POSITIVE_INFINITY;
  const reachMs = pageRangeMs(intervalMs, rules);
  return (
    facts.newestMs + Math.max(reachMs - rules.slackMs, Math.min(reachMs, rules.pageSize * intervalMs * LEAST_FILL))
  );
}

/**
 * The time that a full page covers, up to the newest reading. The page also contains the readings since the watermark,
 * unless only the newest page is wanted. At least half a page is left for new readings.
 */
function pageRangeMs(intervalMs: number, { pageSize, fill, gracePeriodMs, isInTurn }: OutlookRules): number {
  const pageMs = pageSize * intervalMs * fill;
  return isInTurn ? pageMs : Math.max(pageMs - gracePeriodMs, pageMs / 2);
}

/**
 * Returns the order among devices whose page is full: the one whose page overflows first; if all overflow, the one that
 * was requested longest ago. A short page scan is finished before the next one begins, because only its last page makes
 * the device complete.
 */
export function turnOrderMs(facts: OutlookFacts, { pageSize, isInTurn }: OutlookRules): number {
  const { liveGap, rate, polledMs, newestMs } = facts;
  if (liveGap === null)
    return isInTurn ? polledMs : newestMs + pageSize * (rate.intervalMs ?? Number.POSITIVE_INFINITY);
  const readings = (liveGap.toMs - liveGap.fromMs) / (rate.intervalMs ?? 0);
  return readings <= SCAN_PAGES * pageSize ? NEVER_MS : polledMs;
}

/** Whether the device list is known to report this device. */
function isHinted({ hint }: OutlookFacts): boolean {
  return hint.trust !== 'dropped' && hint.seenMs !== NEVER_MS;
}

/** Whether the device list shows when this device has a new reading. */
function isFollowed(facts: OutlookFacts, { isUnlisted }: Pick<OutlookRules, 'isUnlisted'>): boolean {
  return !isUnlisted && isHinted(facts);
}

/** Whether the listing shows an uncovered reading. */
function hasHint(facts: OutlookFacts): boolean {
  const { hint, newestMs } = facts;
  return isHinted(facts) && hint.seenMs > Math.max(newestMs + RESOLUTION_MS, hint.emptySeenMs);
}

/** The time at which a new reading is almost certain. */
function certainFromMs(facts: OutlookFacts, rules: OutlookRules): number {
  const { polls } = rules;
  if (hasHint(facts)) return NEVER_MS;
  if (!facts.isActive) return Number.POSITIVE_INFINITY;
  if (facts.newestMs === NEVER_MS) return isUnseen(facts) ? NEVER_MS : Number.POSITIVE_INFINITY;
  if (isPolledForRate(facts, rules)) return facts.polledMs;
  if (facts.isQuiet && (isFollowed(facts, rules) || (isHinted(facts) && wasSilent(facts, polls))))
    return Number.POSITIVE_INFINITY;
  const byRateMs = byRateFromMs(facts);
  // If the rate is very low, the idle poll comes first: the device may report more often by now.
  return byRateMs >= idlePollDueMs(facts.polledMs, polls) ? Number.POSITIVE_INFINITY : byRateMs;
}

/**
 * Whether a device was never polled, and the listing shows neither when it was seen nor that it is offline. It may have
 * readings.
 */
function isUnseen({ hint, polledMs, isOffline }: OutlookFacts): boolean {
  return polledMs === NEVER_MS && hint.listedMs !== NEVER_MS && hint.seenMs === NEVER_MS && !isOffline;
}

/**
 * The time at which a reading is almost certain by the rate alone. Without a hint nothing shows when a quiet device
 * reports again: it is polled at doubling intervals until they reach the idle poll.
 */
function byRateFromMs(facts: OutlookFacts): number {
  return facts.isQuiet ? facts.polledMs + unhintedRestMs(facts) : facts.newestMs + certainWithinMs(facts.rate);
}

function unhintedRestMs({ rate, emptiesInARow }: OutlookFacts): number {
  return certainWithinMs(rate) * 2 ** Math.min(Math.max(emptiesInARow - 1, 0), 20);
}

/** Whether the device had been silent for an idle poll interval at its last poll. Then only its idle poll remains. */
function wasSilent({ polledMs, newestMs }: OutlookFacts, { idlePollMs }: PollSettings): boolean {
  return polledMs - newestMs >= idlePollMs;
}

/**
 * Whether a device has to be polled to learn its rate: after a start, nothing else shows when the next reading of a
 * device is due that the listing does not follow.
 */
function isPolledForRate(facts: OutlookFacts, rules: OutlookRules): boolean {
  return needsRate(facts, rules) && !facts.isQuiet && !wasSilent(facts, rules.polls);
}

/**
 * Whether the next page of a device should show how often it reports. Such a page has more than the newest readings if
 * those are few.
 */
export function needsRate(facts: OutlookFacts, rules: Pick<OutlookRules, 'isUnlisted'>): boolean {
  return facts.rate.intervalMs === null && !isFollowed(facts, rules);
}

/**
 * The time until which no reading of a device is overdue, by its rate, if the listing does not follow the device: its
 * next poll. One poll may have found nothing, because a device may leave out a reading. After more empty polls, and for
 * a device that reports irregularly, there is no evidence that no reading exists.
 *
 * @returns a time; `null` for a device that the listing follows, or if no rate is known.
 */
export function nextReadingMs(facts: OutlookFacts, polls: PollSettings): number | null {
  const { newestMs, polledMs, isActive, isQuiet, emptiesInARow, failures, liveGap } = facts;
  const isKnown = newestMs !== NEVER_MS && isActive && isRegular(facts.rate);
  if (!isKnown || isHinted(facts) || failures > 0 || liveGap !== null) return null;
  if (isQuiet && emptiesInARow > 1) return null;
  return Math.min(byRateFromMs(facts), idlePollDueMs(polledMs, polls));
}

/** When a device is due for its idle poll. The listing may show earlier that it has a new reading. */
export function idlePollDueMs(polledMs: EpochMs, { idlePollMs }: PollSettings): EpochMs {
  return polledMs + idlePollMs;
}

function oldestUnreadMs(facts: OutlookFacts, rules: OutlookRules): number {
  const { intervalMs } = facts.rate;
  const byRateMs = facts.newestMs + (intervalMs ?? (isFollowed(facts, rules) ? Number.POSITIVE_INFINITY : 0));
  return hasHint(facts) ? Math.min(byRateMs, facts.hint.seenMs) : byRateMs;
}

/**
 * Records a listing.
 *
 * @param seenMs `last_seen_at`; `null` if it is absent.
 * @returns whether a quiet device has given a sign of life.
 */
export function noteListed(facts: OutlookFacts, seenMs: number | null, atMs: number): boolean {
  const { hint } = facts;
  const before = hint.seenMs;
  hint.listedMs = atMs;
  hint.seenMs = seenMs ?? NEVER_MS;
  if (before !== NEVER_MS && hint.seenMs > before && hint.trust === 'untested') hint.trust = 'confirmed';
  // Two signs of life with pages between them show nothing that the pages did not show.
  if (before !== NEVER_MS && before >= facts.newestMs) facts.rate = learnFromSeen(facts.rate, hint.seenMs - before);
  if (hasHint(facts)) {
    const wasQuiet = facts.isQuiet;
    if (wasQuiet) facts.isBack = true;
    facts.isQuiet = false;
    return wasQuiet;
  }
  const expectedMs = facts.newestMs + certainWithinMs(facts.rate);
  const isDenied = expectedMs + LISTING_LAG_MS < atMs;
  // A listing that was never seen to follow the device is ignored if the device had new readings at its last poll: that
  // costs one request, and a device that the listing does not follow is noticed at once.
  const isReliable = hint.trust === 'confirmed' || expectedMs < facts.polledMs;
  if (isDenied && isHinted(facts) && isReliable) facts.isQuiet = true;
  return false;
}

/** The result of a poll of the newest end of a device. */
export interface PollAnswer {
  /** Readings that were not covered before. */
  readonly newReadings: number;
  /** The instants of the readings of the page, newest first. Some of the readings may have been covered before. */
  readonly instantsMs: readonly number[];
  /** The uncovered range below the page, if there is one. */
  readonly liveGap: LiveGap | null;
  /** The end of the requested range, if it was not the present. */
  readonly untilMs?: number | null;
}

/**
 * Records an answer about the newest end.
 *
 * @returns whether the device's hint is dropped because of it.
 */
export function notePollAnswer(facts: OutlookFacts, answer: PollAnswer, atMs: number): boolean {
  const { newReadings, instantsMs } = answer;
  const wasDropped = facts.hint.trust === 'dropped';
  const isWrong = isHintWrong(facts, instantsMs);
  const hadHint = hasHint(facts);
  const wasUnknown = facts.rate.intervalMs === null;
  const wasScan = facts.liveGap !== null;
  facts.polledMs = atMs;
  facts.failures = 0;
  facts.restMs = NEVER_MS;
  facts.liveGap = answer.liveGap;
  if (wasUnknown) facts.rate = learnFromPage(facts.rate, instantsMs);
  else if (newReadings > 0)
    facts.rate = learnFromPage(facts.rate, instantsMs.slice(0, Math.max(LATEST_READINGS, newReadings + 1)));
  // A page of older readings shows nothing about the newest end.
  if (wasScan) return false;
  if (newReadings === 0 && answer.untilMs != null) {
    // The range ended there because of a rest, so it shows nothing about newer readings or the report rate.
    facts.newestMs = Math.max(facts.newestMs, answer.untilMs);
    facts.isBack = true;
    return false;
  }
  facts.isBack = false;
  facts.newestMs = Math.max(facts.newestMs, instantsMs[0] ?? NEVER_MS);
  if (isWrong) facts.hint.trust = 'dropped';
  if (newReadings > 0) noteFound(facts);
  else noteEmpty(facts, { hadHint, isExpected: isExpectedEmpty(facts, { wasUnknown, hadHint, atMs }) });
  // The answer shows that there was no newer reading.
  if (facts.newestMs + certainWithinMs(facts.rate) < (answer.untilMs ?? atMs)) facts.isQuiet = true;
  return facts.hint.trust === 'dropped' && !wasDropped;
}

/** Records that the device could not be polled because of its own failure. */
export function noteFailure(facts: OutlookFacts, atMs: number): void {
  facts.restMs = atMs + Math.min(LONGEST_REST_MS, REST_MS * 2 ** Math.min(facts.failures, 16));
  facts.failures += 1;
}

/** Records that its signs of life come without readings. Only its idle poll remains until it has a reading again. */
export function noteSilent(facts: OutlookFacts): void {
  facts.isQuiet = true;
  facts.emptiesInARow = Number.MAX_SAFE_INTEGER;
  facts.hint.trust = 'dropped';
}

function noteFound(facts: OutlookFacts): void {
  facts.isQuiet = false;
  facts.emptiesInARow = 0;
  facts.hint.falseSigns = 0;
}

/**
 * Whether no reading was due at a poll that found none: the rate is known from the last page only, or it was an idle
 * poll before the next reading of a device that reports rarely.
 */
function isExpectedEmpty(
  { rate, newestMs }: OutlookFacts,
  { wasUnknown, hadHint, atMs }: { readonly wasUnknown: boolean; readonly hadHint: boolean; readonly atMs: number },
): boolean {
  return rate.intervalMs !== null && (wasUnknown || (!hadHint && atMs < newestMs + certainWithinMs(rate)));
}

/** Records a poll without new readings. `isExpected`: no reading was due. */
function noteEmpty(
  facts: OutlookFacts,
  { hadHint, isExpected }: { readonly hadHint: boolean; readonly isExpected: boolean },
): void {
  const { hint } = facts;
  if (!isExpected) {
    facts.emptiesInARow += 1;
    if (!facts.isQuiet && !hadHint) facts.rate = learnFromEmpty(facts.rate);
    facts.isQuiet = true;
  }
  if (!hadHint) return;
  hint.emptySeenMs = hint.seenMs;
  hint.falseSigns += 1;
  if (hint.falseSigns >= FALSE_SIGNS) hint.trust = 'dropped';
}

/** Whether the last listing should have shown a reading that is on the page and was not covered. */
function isHintWrong(facts: OutlookFacts, instantsMs: readonly number[]): boolean {
  const { hint, newestMs } = facts;
  if (!isHinted(facts) || newestMs === NEVER_MS) return false;
  if (hint.seenMs > newestMs + RESOLUTION_MS) return false;
  const knownToMs = hint.listedMs - LISTING_LAG_MS;
  return instantsMs.some((atMs) => atMs > newestMs + RESOLUTION_MS && atMs <= knownToMs);
}
