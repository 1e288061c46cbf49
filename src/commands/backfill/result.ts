/**
 * The result of a backfill: the object that `--backfill --json` prints, its exit code, and the text for people. The
 * text lists what the backfill brought, what was empty, what is missing, and what to do about that.
 */

import { gapWords, missingStatuses, missingWords, PENDING } from '../../core/device-coverage.ts';
import { type ExitCode, isExitCode } from '../../core/faults.ts';
import { areRecords, isRecord } from '../../core/json.ts';
import type { DestinationStatus, StatusGap } from '../../core/status.ts';
import { counted, duration, grouped, plainText } from '../../core/text.ts';
import { type EpochNs, formatExact, parseTimestamp } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import type { Backfill } from '../../scheduler/backfill.ts';
import { wrap } from '../shared/layout.ts';
import { type BackfilledDevice, type BackfillView, backfillView, gapMs } from './progress.ts';

export type BackfillOutcome = 'complete' | 'incomplete for good' | 'stalled' | 'interrupted';

/** A range that could not be filled. */
interface MissingRange extends StatusGap {
  readonly device_id: string;
  readonly device_name: string;
}

/** What `--backfill --json` prints. Times are RFC 3339 UTC, lengths seconds. */
export interface BackfillSummary {
  readonly outcome: BackfillOutcome;
  readonly exit_code: ExitCode;
  readonly workspace_id: string | null;
  /** `null`: all there is. */
  readonly from: string | null;
  readonly to: string;
  readonly devices: number;
  /** Devices whose whole range is covered. */
  readonly devices_complete: number;
  /** Devices without a reading in the covered part of the range. */
  readonly devices_empty: number;
  /** The oldest stored reading of any of them. */
  readonly oldest_reading: string | null;
  /** What was covered and is read again; `null` without `--recheck`. */
  readonly recheck: RecheckSummary | null;
  /** The requests of this run, and the readings and points that they added. */
  readonly requests: number;
  readonly readings: number;
  readonly points: number;
  /** Whether it was to be done by a time, and was not. */
  readonly late: boolean;
  readonly missing_seconds: number;
  /** The device that misses most comes first. */
  readonly missing: readonly MissingRange[];
  readonly destinations: readonly DestinationStatus[];
}

/** What came of a recheck. */
interface RecheckSummary {
  /** Covered ranges that were read again to their end. */
  readonly ranges: number;
  readonly new_readings: number;
  /**
   * Covered ranges that were not: not yet (`pending`, `unreachable`, `page_rejected`), or not at all (`cleared`,
   * `beyond_plan`).
   */
  readonly unread: readonly MissingRange[];
}

const EXIT_CODES: Readonly<Record<BackfillOutcome, ExitCode>> = {
  complete: 0,
  stalled: 3,
  interrupted: 3,
  'incomplete for good': 1,
};

interface Course {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
  readonly backfill: Backfill;
  /** What each destination had been sent before it began. */
  readonly deliveredBefore: readonly number[];
}

/** The summary of the work as it stands. */
export function summarizeBackfill(course: Course, outcome: BackfillOutcome): BackfillSummary {
  const { context, backfill } = course;
  const view = backfillView(context, backfill);
  const { args, to } = backfill;
  const oldest = oldestOf(view);
  return {
    outcome,
    exit_code: EXIT_CODES[outcome],
    workspace_id: context.store.workspaceTag(),
    from: args.from === 'all' ? null : formatExact(BigInt(args.from)),
    to: formatExact(to),
    devices: view.devices.length,
    devices_complete: view.devices.filter(({ openMs }) => openMs === 0).length,
    devices_empty: view.devices.filter(({ hasReadings }) => !hasReadings).length,
    oldest_reading: oldest === null ? null : formatExact(oldest),
    recheck: recheckOf(view, backfill),
    ...backfill.tally.counts(),
    late: backfill.pace.isLate(context.serverClock.nowMs()),
    missing_seconds: Math.round(view.openMs / 1000),
    missing: missingRanges(view),
    destinations: destinationsOf(course),
  };
}

function missingRanges({ devices }: BackfillView): MissingRange[] {
  const worstFirst = devices.toSorted((a, b) => b.openMs - a.openMs || (a.deviceId < b.deviceId ? -1 : 1));
  return worstFirst.flatMap(({ deviceId, name, gaps }) =>
    gaps
      .toSorted((a, b) => gapMs(b) - gapMs(a))
      .map(({ from, to, reason }) => ({ device_id: deviceId, device_name: name, from, to, reason })),
  );
}

function recheckOf({ devices }: BackfillView, { recheck }: Backfill): RecheckSummary | null {
  if (recheck === null) return null;
  const { ranges, newReadings } = recheck.counts();
  const names = new Map(devices.map(({ deviceId, name }) => [deviceId, name]));
  const pending = devices.flatMap(({ deviceId, unread, unreadReason }) =>
    unread.map((range) => ({ ...range, deviceId, reason: unreadReason })),
  );
  const unread = [...pending, ...recheck.skipped].map(({ deviceId, from, to, reason }) => ({
    device_id: deviceId,
    device_name: names.get(deviceId) ?? deviceId,
    from: formatExact(from),
    to: formatExact(to),
    reason,
  }));
  return { ranges, new_readings: newReadings, unread };
}

function oldestOf({ devices }: BackfillView): EpochNs | null {
  return devices.reduce<EpochNs | null>(
    (oldest, { oldest: own }: BackfilledDevice) => (own !== null && (oldest === null || own < oldest) ? own : oldest),
    null,
  );
}

function destinationsOf({ context: { store }, deliverers, deliveredBefore }: Course): DestinationStatus[] {
  return deliverers.map((deliverer, index) => {
    const { pendingLines, quarantined } = store.backlog(deliverer.destinationId);
    return {
      name: deliverer.name,
      delivered_points: deliverer.deliveredLines() - (deliveredBefore[index] ?? 0),
      pending_points: pendingLines,
      quarantined,
      missing: missingStatuses(store.missingSums(deliverer.destinationId)),
      blocked_reason: deliverer.blockedReason(),
    };
  });
}

const COUNTS = ['devices', 'devices_complete', 'devices_empty', 'requests', 'readings', 'points', 'missing_seconds'];

/**
 * A summary that a daemon, maybe of another version, has left.
 *
 * @returns `null` where it is none.
 */
export function readBackfillSummary(value: unknown): BackfillSummary | null {
  if (!isRecord(value)) return null;
  const { outcome, exit_code, from, to, oldest_reading, late, missing, destinations, recheck = null } = value;
  const fits =
    typeof outcome === 'string' &&
    Object.hasOwn(EXIT_CODES, outcome) &&
    isExitCode(exit_code) &&
    [from, oldest_reading].every((text) => text === null || typeof text === 'string') &&
    typeof to === 'string' &&
    typeof late === 'boolean' &&
    COUNTS.every((name) => typeof value[name] === 'number') &&
    areRecords(missing, RANGE_MEMBERS) &&
    (recheck === null || isRecheckSummary(recheck)) &&
    areRecords(destinations, ['name']) &&
    destinations.every(
      ({ pending_points, delivered_points, quarantined, missing }) =>
        [pending_points, delivered_points, quarantined].every((count) => typeof count === 'number') &&
        areRecords(missing, ['reason']),
    );
  return fits ? ({ ...value, recheck } as unknown as BackfillSummary) : null;
}

const RANGE_MEMBERS = ['device_id', 'device_name', 'from', 'to', 'reason'];

function isRecheckSummary(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { ranges, new_readings, unread } = value;
  return typeof ranges === 'number' && typeof new_readings === 'number' && areRecords(unread, RANGE_MEMBERS);
}

/** How many ranges the text lists. */
const RANGES_LISTED = 10;
const ID_LENGTH = 32;

/** What to do about a missing range, by its reason. */
const REMEDIES: Readonly<Record<string, string>> = {
  [PENDING]: 'run the same command again: it goes on where it was',
  page_rejected: 'the API answers oddly there; run it again later',
  unverified: 'the API answers emptily though the device was seen then; run it again in half an hour',
  unreachable: 'the API does not answer for this device; run it again later',
  beyond_plan:
    'older than history_max_days of the plan, and nothing that old was ever served: a larger plan may show it',
  over_quota: 'given up while the allowance was short; run it again',
  device_gone: 'the workspace has it no more: nobody can read this',
  excluded: 'left out by sync.include or sync.exclude',
};

/** The end as a text of several lines, at most 80 columns wide. */
export function backfillEndText(summary: BackfillSummary): string {
  const lines = [
    headOf(summary),
    broughtOf(summary),
    ...emptyOf(summary),
    ...recheckWords(summary),
    ...missingOf(summary),
    ...deliveryOf(summary),
  ];
  return lines.map((line) => wrap(line)).join('');
}

function headOf({ outcome, from, to, devices, late }: BackfillSummary): string {
  const rangeWords = from === null ? `all up to ${short(to)}` : `${short(from)} to ${short(to)}`;
  const words = {
    complete: 'done',
    'incomplete for good': 'done, as far as it can be had',
    stalled: 'not done: nothing has moved for 10 min. What was reached stays; run it again',
    interrupted: 'stopped. What was reached stays; run it again',
  }[outcome];
  return `Backfill of ${rangeWords}, ${counted(devices, 'device')}: ${words}.${late ? ' It took longer than --finish-by.' : ''}`;
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

const NOT_READ_AGAIN: Readonly<Record<string, string>> = {
  [PENDING]: 'not reached yet: run the same command again',
  cleared: 'the archive no longer has their lines, so nothing could be recognized as new',
  beyond_plan: 'older than the plan serves',
};

function recheckWords({ recheck }: BackfillSummary): string[] {
  if (recheck === null) return [];
  const { ranges, new_readings, unread } = recheck;
  const reasons = [...new Set(unread.map(({ reason }) => reason))];
  return [
    `Read again: ${counted(ranges, 'covered range')}, in which ${counted(new_readings, 'reading was', 'readings were')} new.`,
    ...reasons.map((reason) => {
      const ms = unread.reduce((sum, range) => sum + (range.reason === reason ? gapMs(range) : 0), 0);
      return `Not read again: ${duration(ms / 1000)}: ${NOT_READ_AGAIN[reason] ?? gapWords(reason).why}.`;
    }),
  ];
}

function missingOf({ missing }: BackfillSummary): string[] {
  if (missing.length === 0) return [];
  const reasons = new Map<string, MissingRange[]>();
  for (const range of missing) reasons.set(range.reason, [...(reasons.get(range.reason) ?? []), range]);
  const sums = [...reasons].map(([reason, ranges]) => {
    const devices = new Set(ranges.map(({ device_id }) => device_id)).size;
    const ms = ranges.reduce((sum, range) => sum + gapMs(range), 0);
    return {
      ms,
      line: `  ${gapWords(reason).why}: ${duration(ms / 1000)} of ${counted(devices, 'device')}: ${REMEDIES[reason] ?? 'run it again'}`,
    };
  });
  const worst = missing.slice(0, RANGES_LISTED).map((range) => {
    const { device_id, from, to, reason } = range;
    return `  ${plainText(device_id, ID_LENGTH)}: ${duration(gapMs(range) / 1000)} from ${short(from)} to ${short(to)}, ${gapWords(reason).why}`;
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
    ({ name, pending_points: pending, delivered_points: delivered, quarantined, missing, blocked_reason }) => [
      pending === 0
        ? `${plainText(name, 40)} has it all (${counted(delivered, 'point')} delivered meanwhile).`
        : `${plainText(name, 40)}: ${counted(pending, 'point')} wait in the archive: ${plainText(blocked_reason ?? 'not delivered yet')}. Run it again.`,
      ...(quarantined > 0 ? [`  ${counted(quarantined, 'point')} that it refused are in quarantine.`] : []),
      ...missing.map((range) => `  ${plainText(missingWords(name, range))}`),
    ],
  );
}

/** A time to the second. */
function short(text: string): string {
  return parseTimestamp(text) === null ? 'an unknown time' : `${text.slice(0, 19)}Z`;
}
