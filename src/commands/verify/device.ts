/**
 * A device of a destination, day by day: the sums first, the points of those days of which the sums differ.
 *
 * The answers are summed as they come: however many points there are, none is kept.
 */
import { identityTag } from '../../core/lines/line-text.ts';
import { addPoint, emptySum, type GrowingSum, isSameSum, pointIdentity } from '../../core/lines/point-sum.ts';
import type { KeptDay, ReadTrouble, TakePoint } from '../../core/state/verify.ts';
import { DAY_NS } from '../../core/time.ts';
import { askPatiently } from './ask.ts';
import { noFindings } from './day.ts';
import { type DeviceParts, type Examined, examineDay, noDay } from './examine.ts';

/** What is found of a day. */
export interface DayVerdict extends Examined {
  /** How many points the destination had of it at first. */
  readonly returned: number;
}

/** Which days of a device, `from` included, `to` not; days since 1970. */
export interface DeviceDays {
  readonly deviceId: string;
  readonly fromDay: number;
  readonly toDay: number;
}

/** The days are handed on as they are done, those with something on either side. @returns what was in the way; `null` for nothing. */
export async function verifyDevice(
  parts: DeviceParts,
  { deviceId, fromDay, toDay }: DeviceDays,
  take: (verdict: DayVerdict) => void,
  signal: AbortSignal,
): Promise<ReadTrouble | null> {
  const days = parts.state.days(deviceId, fromDay, toDay);
  for (const [from, to] of batchesOf(days, fromDay, toDay)) {
    const span = { device: identityTag(deviceId), from: BigInt(from) * DAY_NS, to: BigInt(to) * DAY_NS };
    const sums = await askPatiently(parts, span, beginSums, signal);
    if ('words' in sums) return sums;
    const kept = new Map(days.filter(({ day }) => day >= from && day < to).map((day) => [day.day, day]));
    for (const day of new Set([...kept.keys(), ...sums.keys()])) {
      const verdict = await judgeDay(
        parts,
        { deviceId, kept: kept.get(day) ?? noDay(day), found: sums.get(day) },
        signal,
      );
      if ('words' in verdict) return verdict;
      take(verdict);
    }
  }
  return null;
}

async function judgeDay(
  parts: DeviceParts,
  { deviceId, kept, found = emptySum() }: { deviceId: string; kept: KeptDay; found: GrowingSum | undefined },
  signal: AbortSignal,
): Promise<DayVerdict | ReadTrouble> {
  const { day } = kept;
  const returned = found.points;
  if (isSameSum(kept, found)) return { day, kept, returned, findings: noFindings(), sent: 0, cleared: [] };
  const verdict = await examineDay(parts, { deviceId, day, size: Math.max(kept.points, returned) }, signal);
  return 'words' in verdict ? verdict : { ...verdict, returned };
}

/** How many points are asked for at once: some seconds of work for a database. */
const BATCH_POINTS = 250_000;

/** Consecutive days, `[from, to)`, that are asked for by one query. */
function batchesOf(days: readonly KeptDay[], fromDay: number, toDay: number): [number, number][] {
  const batches: [number, number][] = [];
  let [start, points] = [fromDay, 0];
  for (const day of days) {
    if (points > 0 && points + day.points > BATCH_POINTS) {
      batches.push([start, day.day]);
      [start, points] = [day.day, 0];
    }
    points += day.points;
  }
  if (start < toDay) batches.push([start, toDay]);
  return batches;
}

function beginSums(): { gathered: Map<number, GrowingSum>; take: TakePoint } {
  const sums = new Map<number, GrowingSum>();
  return { gathered: sums, take: summing(sums) };
}

function summing(sums: Map<number, GrowingSum>): TakePoint {
  let [lastDay, last] = [Number.NaN, emptySum()];
  return (stamp, sensor, field) => {
    const day = Math.floor(Number(stamp.slice(0, -9)) / 86_400);
    if (day !== lastDay) {
      lastDay = day;
      last = sums.get(day) ?? emptySum();
      sums.set(day, last);
    }
    addPoint(last, pointIdentity(stamp, sensor, FLAGS[field] ?? field));
  };
}

/** Where there are numbers only, flags are such. */
const FLAGS: Readonly<Record<string, string>> = { 'flag=1': 'flag=true', 'flag=0': 'flag=false' };
