/**
 * Compares a day of a device whose sums differ, point by point: the archive against the answer of a destination. It
 * goes range by range, so that few points are in memory.
 *
 * If the archive still has the lines, each line is looked up. If it has cleared them, only sums are left: the sum of
 * the day minus all points with known lines must equal the sum of the rest of the answer.
 *
 * Promises: points that were delivered before the destination is queried must be in its answer; points delivered later
 * may be. With `--repair`, missing points are sent again as identical lines, and the day is compared again.
 */
import { type Interval, type Intervals, includes } from '../../core/intervals.ts';
import { type DestinationKind, type FindMoved, translate } from '../../core/lines/dialect.ts';
import { readLine } from '../../core/lines/line-reader.ts';
import {
  addPoint,
  emptySum,
  type GrowingSum,
  isSameSum,
  lessSum,
  type PointSum,
  pointIdentity,
} from '../../core/lines/points.ts';
import type { ArchivedDay, ArchivedRange, TakePoint } from '../../core/state/verify.ts';
import { type EpochNs, maxNs, minNs } from '../../core/time.ts';

/** The kinds of differences that make a day differ. */
export const DIFFERENCES = ['missing', 'different', 'extra', 'unverifiable'] as const;

/** The findings of a range, by their `--json` names. A point is counted once. */
export interface Findings extends Record<(typeof DIFFERENCES)[number], number> {
  /** Delivered, but not in the database. */
  missing: number;
  /** In the database with another value. */
  different: number;
  /** In the database, but not in this state. */
  extra: number;
  /** Unverifiable: extra points, or readings that arrived after their range was cleared. */
  unverifiable: number;
  /** Extra points at times that the state has not covered (yet), so that it cannot judge them. */
  extra_in_gaps: number;
  /** Extra points from before `sync.history`, which no daemon reads by itself; a part of `extra_in_gaps`. */
  extra_before_history: number;
  /** Not in the database, and no difference: not delivered yet. */
  pending: number;
  /** Not in the database, and no difference: in quarantine. */
  quarantined: number;
  /** Not in the database, and no difference: known to be missing. */
  known_missing: number;
  /** Missing or different points that are no longer in the archive. */
  not_in_archive: number;
}

/** Creates findings in which all counts are 0. */
export function emptyFindings(): Findings {
  const noDifference = { pending: 0, quarantined: 0, known_missing: 0 };
  const inGaps = { extra_in_gaps: 0, extra_before_history: 0 };
  return { missing: 0, different: 0, extra: 0, unverifiable: 0, ...inGaps, ...noDifference, not_in_archive: 0 };
}

/** Whether a day is correct, apart from points that are known to be missing, pending or in quarantine. */
export function isSound(findings: Findings): boolean {
  return DIFFERENCES.every((each) => findings[each] === 0);
}

/** Adds findings to others, in place. */
export function addFindings(to: Findings, from: Findings): void {
  for (const key of Object.keys(to) as (keyof Findings)[]) to[key] += from[key];
}

/** A day of a device with its findings. */
export interface FoundDay {
  readonly deviceId: string;
  /** Days since 1970. */
  readonly day: number;
  readonly archived: ArchivedDay;
  readonly findings: Findings;
  /** How many lines of the day were sent again. */
  readonly sent: number;
  /** The ranges of the day whose lines the archive has cleared, if the day was compared point by point. */
  readonly cleared: Intervals;
  /** The newest missing and the oldest found point among those that were compared by their lines; `null` for none. */
  readonly newestMissing: EpochNs | null;
  readonly oldestFound: EpochNs | null;
}

/** A day without archived points. */
export function emptyDay(day: number): ArchivedDay {
  return { day, readings: 0, texts: 0, ...emptySum() };
}

/** The points of an answer, by their identity. */
export type Returned = Map<string, string>;

/** Returns a function that adds each returned point to the map. A second point with the same identity is added too. */
export function collectInto(returned: Returned): TakePoint {
  return (stamp, sensor, field) => {
    const equals = field.indexOf('=');
    const key = pointKey(stamp, sensor, field.slice(0, equals));
    // A point that appears twice, in series with different other tags, is an extra point.
    returned.set(returned.has(key) ? `${key}\n${returned.size}` : key, field.slice(equals + 1));
  };
}

const pointKey = (stamp: string, sensor: string, name: string): string => `${stamp} ${name} ${sensor}`;

/** The state of the comparison of a day, range by range. */
export interface Examination {
  /** The beginning of `sync.history`. */
  readonly historyFrom: EpochNs;
  readonly findings: Findings;
  /** Lines of the log that must be sent again. */
  readonly resend: string[];
  /** The archived lines outside all cleared ranges. */
  readonly known: GrowingSum;
  /** The points inside the cleared ranges, after `resend` is sent. */
  readonly inside: GrowingSum;
  /** How many lines are archived inside cleared ranges. The day's sum may or may not count each of them. */
  archivedInside: number;
  newestMissing: EpochNs | null;
  oldestFound: EpochNs | null;
}

/** Begins the comparison of a day. */
export function beginExamination(historyFrom: EpochNs): Examination {
  const times = { newestMissing: null, oldestFound: null };
  const sums = { known: emptySum(), inside: emptySum(), archivedInside: 0 };
  return { historyFrom, findings: emptyFindings(), resend: [], ...sums, ...times };
}

/** A range with points that are known to be missing, and how many of them are not accounted for yet. */
export interface KnownMissing extends Interval {
  points: number;
}

/** A range of a day, from the archive and from the database. */
export interface RangeInput {
  readonly kind: DestinationKind;
  readonly archived: ArchivedRange;
  readonly returned: Returned;
  readonly findMoved: FindMoved;
  /**
   * Ranges in which this many missing points are no difference, because they are known. The comparison uses them up.
   */
  readonly knownMissing: readonly KnownMissing[];
  /** The covered ranges of the device. */
  readonly covered: Intervals;
  /** The range of the query. `archived` may extend a little beyond it, because times may be changed for a database. */
  readonly range: Interval;
}

/** Compares a range. Each range of a day is passed once; `returned` is consumed. */
export function examineRange(day: Examination, input: RangeInput): void {
  const { archived, returned, covered, range } = input;
  for (const point of collectExpected(input).values()) {
    if (point.at < range.from || point.at >= range.to) continue;
    const isInside = includes(archived.cleared, point.at);
    if (isInside) day.archivedInside += 1;
    addPoint(isInside ? day.inside : day.known, point.identity);
    comparePoint(day, point, { value: returned.get(point.key), ...input });
    returned.delete(point.key);
  }
  for (const [key, value] of returned) {
    const [stamp = '', name = '', ...sensor] = key.split(' ');
    const at = BigInt(stamp);
    if (!includes(archived.cleared, at)) countExtra(day, at, covered);
    else addPoint(day.inside, pointIdentity(stamp, sensor.join(' '), `${name}=${value}`));
  }
}

function countExtra({ findings, historyFrom }: Examination, at: EpochNs, covered: Intervals): void {
  findings.extra += 1;
  if (includes(covered, at)) return;
  findings.extra_in_gaps += 1;
  if (at < historyFrom) findings.extra_before_history += 1;
}

interface Expected {
  readonly key: string;
  readonly at: EpochNs;
  readonly identity: string;
  /** Several lines if the destination does not distinguish their times. */
  readonly values: Set<string>;
  readonly line: string;
  readonly delivery: 'acknowledged' | 'pending' | 'quarantined';
}

/** The points that the destination should have, as it stores them. */
function collectExpected({ kind, archived, findMoved }: RangeInput): Map<string, Expected> {
  const quarantined = new Set(archived.quarantined);
  const acknowledged = archived.lines.map(({ isAcknowledged }) => isAcknowledged);
  const known = new Set(archived.lines.map(({ line }) => line));
  // A rejected line is known, whether or not its block still exists.
  const lines = [...archived.lines.map(({ line }) => line), ...archived.quarantined.filter((line) => !known.has(line))];
  const sent = translate(kind, lines, findMoved);
  const expected = new Map<string, Expected>();
  sent.lines.forEach((text, index) => {
    const origin = sent.origins[index] ?? 0;
    const line = lines[origin] ?? '';
    const delivery = quarantined.has(line)
      ? 'quarantined'
      : (acknowledged[origin] ?? true)
        ? 'acknowledged'
        : 'pending';
    const point = expectedPoint(text, { line, delivery, isInMs: kind === 'victoriametrics' });
    const before = expected.get(point.key);
    if (before === undefined) expected.set(point.key, point);
    else
      expected.set(point.key, {
        ...strictestExpected(before, point),
        values: new Set([...before.values, ...point.values]),
      });
  });
  return expected;
}

/** Returns the acknowledged one of two lines for one point, if there is one: then the database must have the point. */
function strictestExpected(a: Expected, b: Expected): Expected {
  return a.delivery === 'acknowledged' ? a : b;
}

function expectedPoint(
  text: string,
  { line, delivery, isInMs }: Pick<Expected, 'line' | 'delivery'> & { readonly isInMs: boolean },
): Expected {
  const { tags, fields, at } = readLine(text);
  const stamp = isInMs ? `${at}000000` : `${at}`;
  const sensor = tags.find(([name]) => name === 'sensor')?.[1] ?? '';
  const [name = '', value = ''] = fields[0] ?? [];
  return {
    key: pointKey(stamp, sensor, name),
    at: BigInt(stamp),
    identity: pointIdentity(stamp, sensor, `${name}=${value}`),
    values: new Set([value]),
    line,
    delivery,
  };
}

function comparePoint(
  day: Examination,
  point: Expected,
  { value, knownMissing, kind }: Pick<RangeInput, 'knownMissing' | 'kind'> & { readonly value: string | undefined },
): void {
  const { findings, resend } = day;
  if (value !== undefined) day.oldestFound = minNs(day.oldestFound ?? point.at, point.at);
  if (value !== undefined && (point.values.has(value) || (kind !== 'influxdb' && isNearly(value, point.values))))
    return;
  const written = BigInt(point.line.slice(point.line.lastIndexOf(' ') + 1));
  if (point.delivery !== 'acknowledged') findings[point.delivery] += 1;
  else if (value === undefined && takeKnownMissing(knownMissing, written)) findings.known_missing += 1;
  else {
    findings[value === undefined ? 'missing' : 'different'] += 1;
    if (value === undefined) day.newestMissing = maxNs(day.newestMissing ?? point.at, point.at);
    resend.push(point.line);
  }
}

function takeKnownMissing(knownMissing: readonly KnownMissing[], at: EpochNs): boolean {
  const range = knownMissing.find(({ from, to, points }) => points > 0 && from <= at && at < to);
  if (range !== undefined) range.points -= 1;
  return range !== undefined;
}

/**
 * VictoriaMetrics keeps about twelve digits of a number, and fewer if the number is tiny compared to its neighbours.
 */
const NEARLY = { ofIt: 1e-11, atLeast: 1e-15 };

function isNearly(value: string, values: ReadonlySet<string>): boolean {
  return [...values].some((wanted) => {
    const [a, b] = [Number(wanted), Number(value)];
    return Number.isFinite(a) && Math.abs(a - b) <= Math.abs(a) * NEARLY.ofIt + NEARLY.atLeast;
  });
}

interface DayEnd {
  readonly kind: DestinationKind;
  readonly archived: ArchivedDay;
  /** How many points are known to be missing in the cleared ranges of this day. */
  readonly knownMissingPoints: number;
}

/**
 * Ends the comparison of a day by its archived sum.
 *
 * @returns the findings.
 */
export function endExamination(day: Examination, { kind, archived, knownMissingPoints }: DayEnd): Findings {
  const { findings, inside } = day;
  const isExact = kind === 'influxdb';
  // VictoriaMetrics gets no texts, so all points with a known line are numbers there.
  const all: PointSum = isExact ? archived : { ...archived, points: archived.points - archived.texts };
  const left = lessSum(all, day.known);
  if (isExact ? isSameSum(left, inside) : left.points === inside.points) return findings;
  const short = left.points - inside.points;
  if (short > 0) {
    const known = Math.min(short, knownMissingPoints);
    findings.known_missing += known;
    findings.missing += short - known;
    findings.not_in_archive += short - known;
  } else if (short === 0) {
    // The counts are equal but the sums are not: at least one point differs.
    findings.different += 1;
    findings.not_in_archive += 1;
  } else {
    const unverifiable = Math.min(-short, day.archivedInside);
    findings.unverifiable += unverifiable;
    findings.extra += -short - unverifiable;
  }
  return findings;
}
