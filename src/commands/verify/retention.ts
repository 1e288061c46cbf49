/**
 * Finds the points that a database hides for their age. VictoriaMetrics drops them and reports its retention.
 * InfluxDB 3 does not report it: it accepts points that are older than the retention of the database with 204 and shows
 * none of them (seen with InfluxDB 3 Core 3.6.0).
 *
 * Only acknowledged points count: all of them before one instant are missing and all later ones are there. Either they
 * were just sent again and accepted, or one retention explains two comparisons that are at least an hour apart. If the
 * database has no point at all, only sending them again shows a retention. The conclusion is recorded, and applies from
 * then on.
 */
import type { Interval } from '../../core/intervals.ts';
import type { DestinationKind } from '../../core/lines/dialect.ts';
import type { PointsText } from '../../core/state/job-args.ts';
import type { MissingPoints, RetentionEstimate } from '../../core/state/log.ts';
import {
  DAY_NS,
  dayStart,
  type EpochMs,
  type EpochNs,
  HOUR_MS,
  maxNs,
  minNs,
  msToNs,
  nsToMs,
} from '../../core/time.ts';
import type { FoundDay } from './examine.ts';

/** The points of a destination that a comparison has seen, day by day. */
export interface AgeSearch {
  /** Days with missing points, which are not counted yet. */
  readonly days: FoundDay[];
  /** The oldest point that was found on a day that was compared point by point; `null` for none. */
  oldestFound: EpochNs | null;
  /** The first day whose sums are equal; `null` for none. */
  oldestEqualDay: number | null;
}

/** A search that has seen no day yet. */
export function createAgeSearch(): AgeSearch {
  return { days: [], oldestFound: null, oldestEqualDay: null };
}

/** The most days that are kept pending until the end of a comparison. */
const MOST_DAYS = 200_000;

/** Adds a day at its last comparison. Returns whether the day is kept pending and counted at the end. */
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
const SHORTEST_MS = HOUR_MS;

/** The border between missing and found points, and the retentions that explain it. */
interface Parting {
  readonly before: EpochNs;
  /** `null` if no point was found. */
  readonly estimate: RetentionEstimate | null;
}

/** The border between missing and found points; `null` if no single instant separates them. */
function findParting(
  { days, oldestFound, oldestEqualDay }: AgeSearch,
  { beganMs, endedMs, isResent }: Pick<AgeFacts, 'beganMs' | 'endedMs' | 'isResent'>,
): Parting | null {
  const missing = days.flatMap(({ newestMissing }) => newestMissing ?? []);
  // On a day whose sums are equal, the first point may have any time.
  const found = [oldestFound ?? [], oldestEqualDay === null ? [] : dayStart(oldestEqualDay + 1)].flat();
  if (missing.length === 0) return null;
  const newest = missing.reduce(maxNs);
  if (newest > msToNs(endedMs - SHORTEST_MS)) return null;
  // If no point is there, the database may have lost everything, unless it has just accepted the points again.
  if (found.length === 0) return isResent ? { before: newest + 1n, estimate: null } : null;
  if (oldestFound !== null && oldestFound <= newest) return null;
  if (oldestEqualDay !== null && oldestEqualDay < Number(newest / DAY_NS)) return null;
  const ageMs = (at: EpochNs, nowMs: EpochMs): number => nowMs - nsToMs(at);
  const shortestMs = Math.max(0, ageMs(found.reduce(minNs), beganMs) - 1);
  return { before: newest + 1n, estimate: { beganMs, endedMs, shortestMs, longestMs: ageMs(newest, endedMs) } };
}

/** The shortest time between two comparisons that count. */
const APART_MS = HOUR_MS;

/** Whether one retention explains two comparisons. */
function agree(one: RetentionEstimate, other: RetentionEstimate): boolean {
  return one.shortestMs <= other.longestMs && other.shortestMs <= one.longestMs;
}

/** The newest missing point. If a retention hides points, it moves on with time; if points were deleted, it stays. */
function edgeMs({ endedMs, longestMs }: RetentionEstimate): EpochMs {
  return endedMs - longestMs;
}

/** Whether two comparisons with one retention show that only a retention can be the cause. */
function isConfirmed(earlier: RetentionEstimate, later: RetentionEstimate): boolean {
  return later.beganMs - earlier.endedMs >= APART_MS && edgeMs(later) > edgeMs(earlier);
}

/** The points that a destination hides for their age. */
export interface Hidden {
  /** The hidden points by device and day. From now on they are known to be missing. */
  readonly days: readonly PointsText[];
  /** All points before this time are missing and all later ones are there; `null` if that is not so. */
  readonly before: EpochNs | null;
  /** The facts to store for the next comparison; `null` for none. */
  readonly estimate: RetentionEstimate | null;
}

/** The result if no retention hides a point. */
export const NOTHING_HIDDEN: Hidden = { days: [], before: null, estimate: null };

/** The facts that decide how the days of a search are counted. */
export interface AgeFacts {
  /** Whether to search for a retention: not if some points were not compared. */
  readonly isSearched: boolean;
  /** The retention that the database reports, in ms; `null` if it reports none, which is then searched. */
  readonly retentionMs: number | null;
  /** When the comparison began and ended, by the local clock. */
  readonly beganMs: EpochMs;
  readonly endedMs: EpochMs;
  /** Whether all devices were compared. */
  readonly isWhole: boolean;
  /** The result of an earlier comparison of all devices; `null` for none. */
  readonly earlier: RetentionEstimate | null;
  /** Whether the missing points were sent again and none was rejected for a reason other than its age. */
  readonly isResent: boolean;
  /** The points of a device that are recorded as missing. */
  readonly missing: (deviceId: string, range: Interval) => readonly MissingPoints[];
  readonly count: (found: FoundDay) => void;
}

/** Counts the pending days: points that are certainly hidden for their age count as known to be missing. */
export function countSearched(search: AgeSearch, facts: AgeFacts): Hidden {
  const { isSearched, retentionMs, endedMs } = facts;
  if (isSearched && retentionMs !== null) {
    const reported = msToNs(Math.floor(endedMs - retentionMs));
    const hiddenDays = countDays(search, facts, reported);
    return { days: hiddenDays, before: hiddenDays.length === 0 ? null : reported, estimate: null };
  }
  const parting = facts.isSearched ? findParting(search, facts) : null;
  const before = parting?.before ?? null;
  const estimate = parting?.estimate ?? null;
  const earlier = estimate === null ? null : agreeingComparison(facts, estimate);
  const isSeenTwice = estimate !== null && earlier !== null && isConfirmed(earlier, estimate);
  const isCertain = before !== null && (facts.isResent || isSeenTwice || isRecorded(search, facts, before));
  const days = countDays(search, facts, isCertain ? before : null);
  const isKept = facts.isWhole && !isCertain && earlier === null;
  return { days, before, estimate: isKept ? estimate : null };
}

/** Counts the pending days. Returns the hidden points: those before this time; `null` if none are hidden. */
function countDays(search: AgeSearch, { count }: Pick<AgeFacts, 'count'>, before: EpochNs | null): PointsText[] {
  const days: PointsText[] = [];
  for (const day of search.days) {
    const { found, points, to } = before === null ? { found: day, points: 0, to: 0n } : withoutHidden(day, before);
    count(found);
    if (points > 0) days.push([day.deviceId, `${dayStart(day.day)}`, `${to}`, points]);
  }
  return days;
}

/** The earlier comparison, if one retention explains it and this one. If the clock was set back, it does not count. */
function agreeingComparison(
  { earlier, isWhole, beganMs }: AgeFacts,
  estimate: RetentionEstimate,
): RetentionEstimate | null {
  return isWhole && earlier !== null && earlier.endedMs <= beganMs && agree(earlier, estimate) ? earlier : null;
}

/** Whether an earlier comparison has recorded that older points are hidden. */
function isRecorded({ days }: AgeSearch, { missing }: AgeFacts, before: EpochNs): boolean {
  return days.some(({ deviceId }) =>
    missing(deviceId, { from: 0n, to: before }).some(({ reason }) => reason === 'beyond_retention'),
  );
}

/** The numbers of a comparison that show the hidden points, by their `--json` names. */
interface HiddenVerdict
  extends Readonly<Record<'missing' | 'known_missing' | 'pending' | 'quarantined' | 'points_compared', number>> {
  readonly name: string;
  readonly kind: DestinationKind | null;
  readonly hidden_before: string | null;
}

/** The sentences for a person about hidden points. */
export function adviceOnHidden(verdict: HiddenVerdict, repair: boolean): string[] {
  const { hidden_before: before, missing, known_missing: known } = verdict;
  if (before === null) return [];
  if (verdict.kind === 'victoriametrics')
    return [
      `VictoriaMetrics has dropped the points before ${before}, which are older than its retention (-retentionPeriod): --repair cannot add them. Once it keeps points for longer, tidemark --replay --destination ${verdict.name} sends those that the archive still has.`,
    ];
  if (missing === 0 && known + verdict.pending + verdict.quarantined >= verdict.points_compared)
    return [
      'The database accepts the points and shows none of them: all are older than its retention. If its retention is longer, check that a query reaches the same database or bucket as a write.',
    ];
  const seen = `Every point before ${before} is missing and every later one is there, so the database probably shows nothing older than its retention`;
  if (missing === 0 && known > 0) return [`${seen}, although it accepts older points.`];
  const confirm = 'Run --verify again in an hour to confirm that, or --verify --repair now to send the points again';
  return repair ? [] : [`${seen}. ${confirm}: those that stay missing are then recorded as missing.`];
}

/** A day whose hidden points are known to be missing, and their number. */
interface HiddenDay {
  readonly found: FoundDay;
  readonly points: number;
  /** The end of the hidden range of the day. */
  readonly to: EpochNs;
}

/** Counts the points of a day before an instant as known to be missing. */
function withoutHidden(found: FoundDay, before: EpochNs): HiddenDay {
  const end = dayStart(found.day + 1);
  const { missing, not_in_archive: cleared, known_missing: known } = found.findings;
  // If the archive has no lines, only a day that lies completely before the instant counts.
  const isOld = found.newestMissing !== null && found.newestMissing < before;
  const points = end <= before ? missing : isOld ? missing - cleared : 0;
  const left = {
    missing: missing - points,
    not_in_archive: end <= before ? 0 : cleared,
    known_missing: known + points,
  };
  return { found: { ...found, findings: { ...found.findings, ...left }, sent: 0 }, points, to: minNs(end, before) };
}
