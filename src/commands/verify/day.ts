/**
 * A day of a device point by point: what is kept against what a destination returns. For days of which the sums differ.
 *
 * Pure. Where the archive keeps the lines, each is looked for by itself. Where it has let them go, what is left of the
 * day's kept sum, once all that is known by its line is taken off, has to be the sum of what is left of the answer.
 */

import { type Interval, includes } from '../../core/intervals.ts';
import { type DestinationKind, type FindDisplaced, translate } from '../../core/lines/dialect.ts';
import { readLine } from '../../core/lines/line-reader.ts';
import {
  addPoint,
  emptySum,
  type GrowingSum,
  isSameSum,
  lessSum,
  type PointSum,
  pointIdentity,
} from '../../core/lines/point-sum.ts';
import type { KeptDay, KeptStretch, TakePoint } from '../../core/state/verify.ts';
import type { EpochNs } from '../../core/time.ts';

/** Why points that are kept are not in a destination without being a difference. */
export interface Excused {
  /** Not delivered yet. */
  pending: number;
  /** In quarantine. */
  quarantined: number;
  /** In its lack-set. */
  lacking: number;
}

/** What is found of some stretch. A point is counted once. */
export interface Findings extends Excused {
  /** Settled, and not there. */
  missing: number;
  /** There with another value. */
  different: number;
  /** There, and of nothing that is kept. */
  extra: number;
  /** Of those missing or different: what the archive keeps no more. */
  gone: number;
  /** Maybe extra, maybe readings that came when the archive had let go of their stretch: nothing tells. */
  untold: number;
}

export function noFindings(): Findings {
  const excused = { pending: 0, quarantined: 0, lacking: 0 };
  return { ...excused, missing: 0, different: 0, extra: 0, gone: 0, untold: 0 };
}

/** The points of an answer, by what identifies them. */
export type Returned = Map<string, string>;

/** Gathers an answer. */
export function gather(returned: Returned): TakePoint {
  return (stamp, sensor, field) => {
    const equals = field.indexOf('=');
    const key = keyOf(stamp, sensor, field.slice(0, equals));
    // A point that is there twice, in series that differ by other tags, is one too many.
    returned.set(returned.has(key) ? `${key}\n${returned.size}` : key, field.slice(equals + 1));
  };
}

const keyOf = (stamp: string, sensor: string, name: string): string => `${stamp} ${name} ${sensor}`;

/** What goes on while a day is examined, stretch by stretch. */
export interface Examination {
  readonly findings: Findings;
  /** Lines of the log that are to be sent again. */
  readonly resend: string[];
  /** What is kept by its line outside of all cleared stretches. */
  readonly known: GrowingSum;
  /** What will be there inside of them once `resend` is sent. */
  readonly inside: GrowingSum;
  /** How many lines are kept there: each may or may not be counted in the day's sum. */
  keptInside: number;
}

export function beginExamination(): Examination {
  return { findings: noFindings(), resend: [], known: emptySum(), inside: emptySum(), keptInside: 0 };
}

/** A stretch of the lack-set, and how many points it still excuses. */
export interface LackLeft extends Interval {
  points: number;
}

export interface StretchInput {
  readonly kind: DestinationKind;
  readonly kept: KeptStretch;
  readonly returned: Returned;
  readonly findDisplaced: FindDisplaced;
  /** Stretches of the lack-set in which so many missing points are no difference. Used up. */
  readonly lacks: readonly LackLeft[];
  /** What `returned` was asked for. `kept` may reach a little beyond it: times may be moved on the way. */
  readonly span: Interval;
}

/** Compares a stretch. Each stretch of a day is given once; `returned` is used up. */
export function examineStretch(day: Examination, input: StretchInput): void {
  const { kept, returned, span } = input;
  for (const point of expectedOf(input).values()) {
    if (point.at < span.from || point.at >= span.to) continue;
    const isInside = includes(kept.cleared, point.at);
    if (isInside) day.keptInside += 1;
    addPoint(isInside ? day.inside : day.known, point.identity);
    judge(day, point, { value: returned.get(point.key), ...input });
    returned.delete(point.key);
  }
  for (const [key, value] of returned) {
    const [stamp = '', name = '', ...sensor] = key.split(' ');
    if (!includes(kept.cleared, BigInt(stamp))) day.findings.extra += 1;
    else addPoint(day.inside, pointIdentity(stamp, sensor.join(' '), `${name}=${value}`));
  }
}

interface Expected {
  readonly key: string;
  readonly at: EpochNs;
  readonly identity: string;
  /** Several where a destination cannot tell their times apart. */
  readonly values: Set<string>;
  readonly line: string;
  readonly standing: 'settled' | 'pending' | 'quarantined';
}

/** What should be there by its line, in the terms of the destination. */
function expectedOf({ kind, kept, findDisplaced }: StretchInput): Map<string, Expected> {
  const quarantined = new Set(kept.quarantined);
  const settled = kept.lines.map(({ isSettled }) => isSettled);
  const known = new Set(kept.lines.map(({ line }) => line));
  // What was refused is known by its line, whether its block is still there or not.
  const lines = [...kept.lines.map(({ line }) => line), ...kept.quarantined.filter((line) => !known.has(line))];
  const sent = translate(kind, lines, findDisplaced);
  const expected = new Map<string, Expected>();
  sent.lines.forEach((text, index) => {
    const origin = sent.origins[index] ?? 0;
    const line = lines[origin] ?? '';
    const standing = quarantined.has(line) ? 'quarantined' : (settled[origin] ?? true) ? 'settled' : 'pending';
    const point = pointOf(text, { line, standing, isInMs: kind === 'victoriametrics' });
    const before = expected.get(point.key);
    if (before === undefined) expected.set(point.key, point);
    else expected.set(point.key, { ...calmer(before, point), values: new Set([...before.values, ...point.values]) });
  });
  return expected;
}

/** Of two lines of one point the one that asks for less: one that is settled may have been settled long ago. */
function calmer(a: Expected, b: Expected): Expected {
  return a.standing === 'settled' ? a : b;
}

function pointOf(
  text: string,
  { line, standing, isInMs }: Pick<Expected, 'line' | 'standing'> & { readonly isInMs: boolean },
): Expected {
  const { tags, fields, at } = readLine(text);
  const stamp = isInMs ? `${at}000000` : `${at}`;
  const sensor = tags.find(([name]) => name === 'sensor')?.[1] ?? '';
  const [name = '', value = ''] = fields[0] ?? [];
  return {
    key: keyOf(stamp, sensor, name),
    at: BigInt(stamp),
    identity: pointIdentity(stamp, sensor, `${name}=${value}`),
    values: new Set([value]),
    line,
    standing,
  };
}

function judge(
  day: Examination,
  point: Expected,
  { value, lacks, kind }: Pick<StretchInput, 'lacks' | 'kind'> & { readonly value: string | undefined },
): void {
  const { findings, resend } = day;
  if (value !== undefined && (point.values.has(value) || (kind !== 'influxdb' && isNearly(value, point.values))))
    return;
  const written = BigInt(point.line.slice(point.line.lastIndexOf(' ') + 1));
  if (point.standing !== 'settled') findings[point.standing] += 1;
  else if (value === undefined && isExcused(lacks, written)) findings.lacking += 1;
  else {
    findings[value === undefined ? 'missing' : 'different'] += 1;
    resend.push(point.line);
  }
}

function isExcused(lacks: readonly LackLeft[], at: EpochNs): boolean {
  const lack = lacks.find(({ from, to, points }) => points > 0 && from <= at && at < to);
  if (lack !== undefined) lack.points -= 1;
  return lack !== undefined;
}

/** VictoriaMetrics keeps some twelve digits of a number, and fewer of one that is tiny beside its neighbours. */
const NEARLY = { ofIt: 1e-11, atLeast: 1e-15 };

function isNearly(value: string, values: ReadonlySet<string>): boolean {
  return [...values].some((wanted) => {
    const [a, b] = [Number(wanted), Number(value)];
    return Number.isFinite(a) && Math.abs(a - b) <= Math.abs(a) * NEARLY.ofIt + NEARLY.atLeast;
  });
}

export interface DayEnd {
  readonly kind: DestinationKind;
  readonly kept: KeptDay;
  /** How many points the lack-set names in the stretches of this day that the archive keeps no more. */
  readonly lackPoints: number;
}

/** Ends the examination of a day by its kept sum. @returns what is found of it. */
export function endExamination(day: Examination, { kind, kept, lackPoints }: DayEnd): Findings {
  const { findings, inside } = day;
  const isExact = kind === 'influxdb';
  // Texts go to no VictoriaMetrics: what is known by its line is numbers alone there.
  const all: PointSum = isExact ? kept : { ...kept, points: kept.points - kept.texts };
  const left = lessSum(all, day.known);
  if (isExact ? isSameSum(left, inside) : left.points === inside.points) return findings;
  const short = left.points - inside.points;
  if (short > 0) {
    const lacking = Math.min(short, lackPoints);
    findings.lacking += lacking;
    findings.missing += short - lacking;
    findings.gone += short - lacking;
  } else if (short === 0) {
    // As many, and not the same: at least one is another one.
    findings.different += 1;
    findings.gone += 1;
  } else {
    const untold = Math.min(-short, day.keptInside);
    findings.untold += untold;
    findings.extra += -short - untold;
  }
  return findings;
}

/** Whether a day is as it should be, apart from what is excused. */
export function isSound({ missing, different, extra, untold }: Findings): boolean {
  return missing + different + extra + untold === 0;
}

export function addFindings(to: Findings, from: Findings): void {
  for (const key of Object.keys(to) as (keyof Findings)[]) to[key] += from[key];
}
