/**
 * The end of a backfill for people: what it brought, what was empty, what could not be had and what to do about it.
 */

import { lackWords } from '../../core/holdings.ts';
import { counted, duration, grouped, plainText } from '../../core/text.ts';
import { parseTimestamp } from '../../core/time.ts';
import { wrap } from '../shared/layout.ts';
import { holeMs } from './look.ts';
import type { BackfillSummary, MissingStretch } from './summary.ts';

/** How many stretches are told one by one. */
const TOLD = 10;
const ID_LENGTH = 32;

/** What to do about a stretch that could not be had, by its reason. */
const REMEDIES: Readonly<Record<string, string>> = {
  'not reached yet': 'run the same command again: it goes on where it was',
  'page not understood': 'the API answers oddly there; run it again later',
  'device unreachable': 'the API does not answer for this device; run it again later',
  'beyond plan':
    'older than history_max_days of the plan, and nothing that old was ever served: a larger plan may show it',
  'beyond allowance': 'given up while the allowance was short; run it again',
  'device gone': 'the workspace has it no more: nobody can read this',
  excluded: 'left out by sync.include or sync.exclude',
};

/** The end as a text of several lines, at most 80 columns wide. */
export function backfillEndText(summary: BackfillSummary): string {
  const lines = [
    headOf(summary),
    broughtOf(summary),
    ...emptyOf(summary),
    ...missingOf(summary),
    ...deliveryOf(summary),
  ];
  return lines.map((line) => wrap(line)).join('');
}

function headOf({ outcome, from, to, devices, late }: BackfillSummary): string {
  const stretch = from === null ? `all up to ${short(to)}` : `${short(from)} to ${short(to)}`;
  const words = {
    complete: 'done',
    'incomplete for good': 'done, as far as it can be had',
    stalled: 'not done: nothing has moved for 10 min. What was reached stays; run it again',
    interrupted: 'stopped. What was reached stays; run it again',
  }[outcome];
  return `Backfill of ${stretch}, ${counted(devices, 'device')}: ${words}.${late ? ' It took longer than --finish-by.' : ''}`;
}

function broughtOf({
  readings,
  points,
  requests,
  devices,
  devices_complete,
  oldest_reading: oldest,
}: BackfillSummary): string {
  const brought =
    requests === 0
      ? 'Nothing had to be asked.'
      : `Brought ${counted(readings, 'reading')} (${counted(points, 'point')}) in ${counted(requests, 'request')}.`;
  const since = oldest === null ? '' : ` The oldest reading that is held is of ${short(oldest)}.`;
  return `${brought} Held in full: ${grouped(devices_complete)} of ${counted(devices, 'device')}.${since}`;
}

function emptyOf({ devices_empty: empty, devices }: BackfillSummary): string[] {
  if (empty === 0 || devices === 0) return [];
  return [`No reading in that time: ${counted(empty, 'device')}.`];
}

function missingOf({ missing }: BackfillSummary): string[] {
  if (missing.length === 0) return [];
  const reasons = new Map<string, MissingStretch[]>();
  for (const stretch of missing) reasons.set(stretch.reason, [...(reasons.get(stretch.reason) ?? []), stretch]);
  const sums = [...reasons].map(([reason, stretches]) => {
    const devices = new Set(stretches.map(({ device_id }) => device_id)).size;
    const ms = stretches.reduce((sum, stretch) => sum + holeMs(stretch), 0);
    return {
      ms,
      line: `  ${plainText(reason, 40)}: ${duration(ms / 1000)} of ${counted(devices, 'device')}: ${REMEDIES[reason] ?? 'run it again'}`,
    };
  });
  const worst = missing.slice(0, TOLD).map((stretch) => {
    const { device_id, from, to, reason } = stretch;
    return `  ${plainText(device_id, ID_LENGTH)}: ${duration(holeMs(stretch) / 1000)} from ${short(from)} to ${short(to)}, ${plainText(reason, 40)}`;
  });
  const more = missing.length - worst.length;
  return [
    'Could not be had:',
    ...sums.toSorted((a, b) => b.ms - a.ms).map(({ line }) => line),
    'By device, the worst first:',
    ...worst,
    ...(more > 0 ? [`  and ${counted(more, 'more stretch', 'more stretches')}; --json lists them all`] : []),
  ];
}

function deliveryOf({ destinations }: BackfillSummary): string[] {
  if (destinations.length === 0) return ['No database is configured: it is in the archive.'];
  return destinations.flatMap(
    ({ name, pending_points: pending, delivered_points: delivered, quarantined, lacks, held }) => [
      pending === 0
        ? `${plainText(name, 40)} has it all (${counted(delivered, 'point')} delivered meanwhile).`
        : `${plainText(name, 40)}: ${counted(pending, 'point')} wait in the archive: ${plainText(held ?? 'not delivered yet')}. Run it again.`,
      ...(quarantined > 0 ? [`  ${counted(quarantined, 'point')} that it refused are in quarantine.`] : []),
      ...lacks.map((lack) => `  ${plainText(lackWords(name, lack))}`),
    ],
  );
}

/** A time to the second. */
function short(text: string): string {
  return parseTimestamp(text) === null ? 'an unknown time' : `${text.slice(0, 19)}Z`;
}
