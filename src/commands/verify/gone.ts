/**
 * What a destination misses and no archive keeps any more: what it costs to fetch it again, and what it comes to in its
 * lack-set. Pure.
 */

import { type Interval, intersect, normalize, subtract } from '../../core/intervals.ts';
import { type PointsText, type RepairArgs, rangeText } from '../../core/state/job-args.ts';
import type { MissingPoints } from '../../core/state/log.ts';
import type { KeptDay, VerifyState } from '../../core/state/verify.ts';
import { DAY_MS, DAY_NS, type EpochMs, msToNs } from '../../core/time.ts';
import { windowSpanNs } from '../../ingest/page-request.ts';
import { backfillNeed } from '../../scheduler/estimate.ts';
import { type Differing, dayStart, type FetchCost, type GoneStretch } from './report.ts';

const PAGE_SIZE = 200;

/** What fetching it takes; `null` where there is nothing to fetch. */
export function fetchCost(gone: readonly GoneStretch[], plan: VerifyState['plan'], nowMs: EpochMs): FetchCost | null {
  if (gone.length === 0) return null;
  const cost = { points: 0, readings: 0, requests: 0 };
  const days = new Set<string>();
  for (const { deviceId, from, to, points, readings } of gone) {
    const day = `${from / DAY_NS} ${deviceId}`;
    if (!days.has(day)) cost.points += points;
    days.add(day);
    const intervalMs = DAY_MS / Math.max(1, readings);
    const need = backfillNeed({
      devices: [{ intervalMs, isQuiet: false, heardMs: nowMs, held: [] }],
      span: { from, to },
      now: msToNs(nowMs),
      pageSize: Math.min(PAGE_SIZE, plan?.maxDevicesPerPage ?? PAGE_SIZE),
      windowNs: windowSpanNs(plan?.historyMaxDays ?? null),
    });
    cost.readings += Math.ceil(need.readings);
    cost.requests += need.requests;
  }
  return { ...cost, devices: new Set(gone.map(({ deviceId }) => deviceId)).size };
}

/** The windows to be fetched, those of a device that touch as one. */
export function windowsOf(gone: readonly GoneStretch[]): RepairArgs['windows'] {
  const windows: { deviceId: string; from: bigint; to: bigint }[] = [];
  for (const { deviceId, from, to } of gone) {
    const last = windows.at(-1);
    if (last?.deviceId === deviceId && last.to === from) last.to = to;
    else windows.push({ deviceId, from, to });
  }
  return windows.map(({ deviceId, from, to }) => rangeText(deviceId, from, to));
}

/** What is gone for good, as the lack-set is told: the points of a day by its first stretch. */
export function missedOf(gone: readonly GoneStretch[]): RepairArgs['missed'] {
  const days = new Set<string>();
  return gone.map(({ deviceId, from, to, points }) => {
    const day = `${from / DAY_NS} ${deviceId}`;
    const isFirst = !days.has(day);
    days.add(day);
    return [deviceId, `${from}`, `${to}`, isFirst ? points : 0] as const;
  });
}

/**
 * Of what a device lacks, what was found to be there: all that was compared of it, but for the days with a difference.
 * Where nothing is kept nothing was found.
 *
 * Points that are no readings are not compared: where a destination was set aside with some that the archive has let go of,
 * those are lacking still.
 */
export function foundOf(
  lacks: readonly MissingPoints[],
  { days, differing, compared, clearedOthers }: FoundParts,
): readonly PointsText[] {
  const bounds = { from: dayStart(compared.fromDay), to: dayStart(compared.toDay) };
  // What is found takes back all of a stretch, for whatever reason it was lacking.
  const aside = lacks.filter(({ reason }) => reason === 'set aside').map(spanOf);
  return lacks
    .filter(({ reason }) => reason === 'cleared' || reason === 'set aside')
    .flatMap(({ deviceId, fromNs, toNs }) => {
      const own = new Set(differing.get(deviceId)?.days);
      const unsound = days.filter(({ day }) => own.has(day)).map(({ day }) => wholeDay(day));
      return subtract(intersect([{ from: fromNs, to: toNs }], [bounds]), unsound).map(({ from, to }) => {
        const within = days.filter(({ day }) => intersect([wholeDay(day)], [{ from, to }]).length > 0);
        const points = within.reduce((sum, each) => sum + each.points, 0);
        const found = [deviceId, `${from}`, `${to}`, points] as const;
        const left = intersect(normalize(aside), [{ from, to }]).length > 0 ? clearedOthers(deviceId, { from, to }) : 0;
        return left > 0 ? ([...found, left] as const) : found;
      });
    })
    .filter(([, , , points]) => points > 0);
}

interface FoundParts {
  /** What is kept of the device. */
  readonly days: readonly KeptDay[];
  readonly differing: Differing;
  /** The days that were compared, the last one not included. */
  readonly compared: { readonly fromDay: number; readonly toDay: number };
  readonly clearedOthers: VerifyState['clearedOthers'];
}

function spanOf({ fromNs, toNs }: MissingPoints): Interval {
  return { from: fromNs, to: toNs };
}

function wholeDay(day: number): Interval {
  return { from: dayStart(day), to: dayStart(day + 1) };
}
