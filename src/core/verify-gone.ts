/**
 * What a destination misses and no archive keeps any more: what it costs to fetch it again, and what it comes to in its
 * lack-set. Pure.
 */
import { backfillNeed } from './backfill-estimate.ts';
import type { Lack } from './log-state.ts';
import { type MendArgs, type PointsText, stretchText } from './mending.ts';
import { DAY_MS, DAY_NS, type EpochMs, maxNs, minNs, msToNs } from './time.ts';
import type { KeptDay, VerifyState } from './verify-ports.ts';
import { type DayDifference, dayStart, dayText, type FetchCost, type GoneStretch } from './verify-report.ts';
import { windowSpanNs } from './walk.ts';

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
export function windowsOf(gone: readonly GoneStretch[]): MendArgs['windows'] {
  const windows: { deviceId: string; from: bigint; to: bigint }[] = [];
  for (const { deviceId, from, to } of gone) {
    const last = windows.at(-1);
    if (last?.deviceId === deviceId && last.to === from) last.to = to;
    else windows.push({ deviceId, from, to });
  }
  return windows.map(({ deviceId, from, to }) => stretchText(deviceId, from, to));
}

/** What is gone for good, as the lack-set is told: the points of a day by its first stretch. */
export function missedOf(gone: readonly GoneStretch[]): MendArgs['missed'] {
  const days = new Set<string>();
  return gone.map(({ deviceId, from, to, points }) => {
    const day = `${from / DAY_NS} ${deviceId}`;
    const isFirst = !days.has(day);
    days.add(day);
    return [deviceId, `${from}`, `${to}`, isFirst ? points : 0] as const;
  });
}

/** Of what a device lacks, what was found to be there: whole days without a difference. @param days what is kept of it. */
export function foundOf(
  lacks: readonly Lack[],
  { days, differences }: { readonly days: readonly KeptDay[]; readonly differences: readonly DayDifference[] },
): MendArgs['found'] {
  return lacks
    .filter(({ reason }) => reason === 'cleared' || reason === 'set aside')
    .flatMap(({ deviceId, fromNs, toNs }) => {
      const unsound = new Set(differences.filter(({ device_id }) => device_id === deviceId).map(({ day }) => day));
      return days
        .filter(({ day, points }) => points > 0 && !unsound.has(dayText(day)))
        .map(({ day, points }) => ({ from: maxNs(dayStart(day), fromNs), to: minNs(dayStart(day + 1), toNs), points }))
        .filter(({ from, to }) => from < to)
        .map(({ from, to, points }): PointsText => [deviceId, `${from}`, `${to}`, points]);
    });
}
