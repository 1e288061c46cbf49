/**
 * Finds a retention that a database does not report. InfluxDB 3 accepts points that are older than the retention of the
 * database with 204 and shows none of them (seen with InfluxDB 3 Core 3.6.0).
 *
 * It is concluded from acknowledged points only: all of them before one instant are missing, although they were just sent
 * again and accepted, and all later ones are there. Without sending, an earlier conclusion has to be recorded.
 */
import type { Interval } from '../../core/intervals.ts';
import type { PointsText } from '../../core/state/job-args.ts';
import type { MissingPoints } from '../../core/state/log.ts';
import { DAY_NS, dayStart, type EpochNs, HOUR_NS, maxNs, minNs } from '../../core/time.ts';
import type { FoundDay } from './examine.ts';

/** What a comparison has seen of a destination, day by day. */
export interface AgeSearch {
  /** Days with missing points: not counted yet. */
  readonly days: FoundDay[];
  /** The oldest point that was found on a day that was compared point by point; `null` for none. */
  oldestFound: EpochNs | null;
  /** The first day whose sums are equal; `null` for none. */
  oldestEqualDay: number | null;
}

export function createAgeSearch(): AgeSearch {
  return { days: [], oldestFound: null, oldestEqualDay: null };
}

/** The most days that are held back until the end of a comparison. */
const MOST_DAYS = 200_000;

/** Takes in a day at its last comparison. @returns whether it is held back to be counted at the end */
export function searchDay(search: AgeSearch, found: FoundDay): boolean {
  const { day, archived, findings, oldestFound } = found;
  if (oldestFound !== null) search.oldestFound = minNs(search.oldestFound ?? oldestFound, oldestFound);
  else if (findings.missing === 0 && archived.points > findings.known_missing + findings.pending + findings.quarantined)
    search.oldestEqualDay = Math.min(search.oldestEqualDay ?? day, day);
  if (findings.missing === 0 || search.days.length >= MOST_DAYS) return false;
  search.days.push(found);
  return true;
}

/** The shortest retention that an InfluxDB has. */
const SHORTEST_NS = HOUR_NS;

/**
 * The instant before which a destination shows nothing; `null` where missing and found points do not part at an instant.
 *
 * @param now the current time by the local clock
 */
function hiddenBefore({ days, oldestFound, oldestEqualDay }: AgeSearch, now: EpochNs): EpochNs | null {
  let newest: EpochNs | null = null;
  for (const { newestMissing } of days) {
    if (newestMissing !== null) newest = newest === null ? newestMissing : maxNs(newest, newestMissing);
  }
  if (newest === null || newest > now - SHORTEST_NS) return null;
  // Nothing that is there shows that the database shows anything.
  if (oldestFound === null && oldestEqualDay === null) return null;
  if (oldestFound !== null && oldestFound <= newest) return null;
  return oldestEqualDay !== null && oldestEqualDay < Number(newest / DAY_NS) ? null : newest + 1n;
}

/** The points that a destination hides for their age. */
export interface Hidden {
  /** By device and day: known to be missing from now on. */
  readonly days: readonly PointsText[];
  /** Before it everything is missing and from it on everything is there; `null` where that is not so. */
  readonly before: EpochNs | null;
}

export const NOTHING_HIDDEN: Hidden = { days: [], before: null };

/** The facts by which the days of a search are counted. */
export interface AgeFacts {
  /** Whether a retention is looked for: not where something was not compared. */
  readonly isAsked: boolean;
  /** The current time by the local clock. */
  readonly now: EpochNs;
  /** Whether the missing points were sent again and accepted. */
  readonly isResent: boolean;
  /** The points of a device that are recorded as missing. */
  readonly missing: (deviceId: string, range: Interval) => readonly MissingPoints[];
  readonly count: (found: FoundDay) => void;
}

/** Counts the days that were held back: points that are surely hidden for their age as known to be missing. */
export function countSearched(search: AgeSearch, facts: AgeFacts): Hidden {
  const before = facts.isAsked ? hiddenBefore(search, facts.now) : null;
  const isCertain = before !== null && (facts.isResent || isRecorded(search, facts, before));
  const days: PointsText[] = [];
  for (const day of search.days) {
    const { found, points, to } = isCertain ? withoutHidden(day, before) : { found: day, points: 0, to: 0n };
    facts.count(found);
    if (points > 0) days.push([day.deviceId, `${dayStart(day.day)}`, `${to}`, points]);
  }
  return { days, before };
}

/** Whether an earlier comparison has recorded that older points are hidden. */
function isRecorded({ days }: AgeSearch, { missing }: AgeFacts, before: EpochNs): boolean {
  return days.some(({ deviceId }) =>
    missing(deviceId, { from: 0n, to: before }).some(({ reason }) => reason === 'beyond_retention'),
  );
}

/** The sentences for a person about hidden points. */
export function adviceOnHidden(
  verdict: { readonly hidden_before: string | null; readonly missing: number; readonly known_missing: number },
  repair: boolean,
): string[] {
  const { hidden_before: before, missing, known_missing: known } = verdict;
  if (before === null) return [];
  const seen = `Every point before ${before} is missing and every later one is there: the database shows nothing that is older than its retention`;
  if (missing === 0 && known > 0) return [`${seen}, although it accepts it.`];
  return repair ? [] : [`${seen}? --verify --repair sends them again, and records them as missing if they stay so.`];
}

/** A day whose hidden points are known to be missing, and how many they are. */
interface HiddenDay {
  readonly found: FoundDay;
  readonly points: number;
  /** The range of the day that is hidden ends before it. */
  readonly to: EpochNs;
}

/** Counts the points of a day that lie before an instant as known to be missing. */
function withoutHidden(found: FoundDay, before: EpochNs): HiddenDay {
  const end = dayStart(found.day + 1);
  const { missing, gone, known_missing: known } = found.findings;
  // Where the archive has no lines, only whole days are known to be before it.
  const points = end <= before ? missing : dayStart(found.day) < before ? missing - gone : 0;
  const left = { missing: missing - points, gone: end <= before ? 0 : gone, known_missing: known + points };
  return { found: { ...found, findings: { ...found.findings, ...left }, sent: 0 }, points, to: minNs(end, before) };
}
