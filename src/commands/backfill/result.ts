/**
 * The result of a backfill: the object that `--backfill --json` prints, its exit code, and the text for people. The
 * text lists what was stored, which ranges were empty, what is missing, and what to do about that.
 */

import { gapText, missingText, PENDING } from '../../core/device-coverage.ts';
import { type ExitCode, isExitCode } from '../../core/faults.ts';
import { areRecords, isRecord } from '../../core/json.ts';
import { STALLED_AFTER_MS } from '../../core/retry.ts';
import type { DestinationStatus, StatusGap } from '../../core/status.ts';
import { capitalized, counted, databaseText, duration, durationInWords, grouped, plainText } from '../../core/text.ts';
import { type EpochNs, formatExact, MINUTE_MS, nsToMs, parseTimestamp, rangeNs } from '../../core/time.ts';
import type { Deliverer } from '../../delivery/deliver.ts';
import type { SyncContext } from '../../ingest/context.ts';
import { SPREAD_MS } from '../../ingest/empty-ranges.ts';
import type { Backfill } from '../../scheduler/backfill.ts';
import { destinationStatuses, isOutcome, OUTCOME_EXIT_CODES, type Outcome } from '../shared/alone.ts';
import { wrap } from '../shared/layout.ts';
import { type BackfilledDevice, type BackfillView, backfillView } from './progress.ts';

/** A range that could not be filled. */
interface MissingRange extends StatusGap {
  readonly device_id: string;
  readonly device_name: string;
}

/** The JSON of `--backfill --json`. Times are RFC 3339 UTC, durations seconds. */
export interface BackfillSummary {
  readonly outcome: Outcome;
  readonly exit_code: ExitCode;
  readonly workspace_id: string | null;
  /** `null` for all history that the API has. */
  readonly from: string | null;
  readonly to: string;
  readonly devices: number;
  /** Devices whose complete range is covered. */
  readonly devices_complete: number;
  /** Devices without a reading in the covered part of the range. */
  readonly devices_empty: number;
  /** The oldest stored reading of any of them. */
  readonly oldest_reading: string | null;
  /** The covered ranges that were read again; `null` without `--recheck`. */
  readonly recheck: RecheckSummary | null;
  /** The requests of this run, and the readings and points that they added. */
  readonly requests: number;
  readonly readings: number;
  readonly points: number;
  /** Whether it missed the requested time. */
  readonly late: boolean;
  readonly missing_seconds: number;
  /** The missing ranges, those of the device with the most missing time first. */
  readonly missing: readonly MissingRange[];
  readonly destinations: readonly DestinationStatus[];
}

/** The part of the summary about `--recheck`. */
interface RecheckSummary {
  /** Covered ranges that were read again completely. */
  readonly ranges: number;
  readonly new_readings: number;
  /**
   * Covered ranges that were not read again: not yet (`pending`, `unreachable`, `page_rejected`), or not at all
   * (`cleared`, `beyond_plan`).
   */
  readonly unread: readonly MissingRange[];
}

interface BackfillCourse {
  readonly context: SyncContext;
  readonly deliverers: readonly Deliverer[];
  readonly backfill: Backfill;
  /** How many points each destination had acknowledged before the backfill began. */
  readonly deliveredBefore: readonly number[];
}

/** Returns the summary of the backfill at this moment. */
export function summarizeBackfill(course: BackfillCourse, outcome: Outcome): BackfillSummary {
  const { context, backfill, deliverers, deliveredBefore } = course;
  const view = backfillView(context, backfill);
  const { args, to } = backfill;
  const oldest = oldestReadingNs(view);
  return {
    outcome,
    exit_code: OUTCOME_EXIT_CODES[outcome],
    workspace_id: context.store.workspaceTag(),
    from: args.from === 'all' ? null : formatExact(BigInt(args.from)),
    to: formatExact(to),
    devices: view.devices.length,
    devices_complete: view.devices.filter(({ openMs }) => openMs === 0).length,
    devices_empty: view.devices.filter(({ hasReadings }) => !hasReadings).length,
    oldest_reading: oldest === null ? null : formatExact(oldest),
    recheck: recheckSummary(view, backfill),
    ...backfill.tally.counts(),
    late: backfill.rate.isLate(context.serverClock.nowMs()),
    missing_seconds: Math.round(view.openMs / 1000),
    missing: missingRanges(view),
    destinations: destinationStatuses(context.store, deliverers, deliveredBefore, outcome),
  };
}

function missingRanges({ devices }: BackfillView): MissingRange[] {
  const worstFirst = devices.toSorted((a, b) => b.openMs - a.openMs || (a.deviceId < b.deviceId ? -1 : 1));
  return worstFirst.flatMap(({ deviceId, name, gaps }) =>
    gaps
      .toSorted((a, b) => Number(rangeNs(b) - rangeNs(a)))
      .map(({ from, to, reason }) => ({ device_id: deviceId, device_name: name, from, to, reason })),
  );
}

function recheckSummary({ devices }: BackfillView, { recheck }: Backfill): RecheckSummary | null {
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

function oldestReadingNs({ devices }: BackfillView): EpochNs | null {
  return devices.reduce<EpochNs | null>(
    (oldest, { oldest: own }: BackfilledDevice) => (own !== null && (oldest === null || own < oldest) ? own : oldest),
    null,
  );
}

const COUNTS = ['devices', 'devices_complete', 'devices_empty', 'requests', 'readings', 'points', 'missing_seconds'];

/**
 * Checks a summary that a daemon, possibly of another version, has left.
 *
 * @returns `null` if it is not valid.
 */
export function readBackfillSummary(value: unknown): BackfillSummary | null {
  if (!isRecord(value)) return null;
  const { outcome, exit_code, from, to, oldest_reading, late, missing, destinations, recheck = null } = value;
  const fits =
    isOutcome(outcome) &&
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

/** The remedy for a missing range, by its reason. */
const REMEDIES: Readonly<Record<string, string>> = {
  [PENDING]: 'run the same command again to continue',
  page_rejected: 'the API returned invalid pages for this range; run the command again later',
  unverified: `the API returned no readings although its device list shows activity then; run the command again in ${durationInWords(SPREAD_MS)}`,
  unreachable: 'the requests for this device fail; run the command again later',
  beyond_plan:
    "older than the plan's history_max_days, and the API has never served readings that old; a larger plan may include them",
  over_quota: 'skipped for lack of quota; run the command again',
  device_gone: 'the device is no longer in the workspace; its readings cannot be read',
  excluded: 'left out by sync.include or sync.exclude',
};

/** The end as a text of several lines, at most 80 columns wide; `isBeside`: a daemon did the work as a job. */
export function backfillEndText(summary: BackfillSummary, { isBeside = false } = {}): string {
  const lines = [
    headLine(summary),
    storedLines(summary),
    ...emptyOf(summary),
    ...recheckText(summary),
    ...missingLines(summary),
    ...newestOf(summary),
    ...deliveryOf(summary, isBeside),
  ];
  return lines.map((line) => wrap(line)).join('');
}

function headLine({ outcome, from, to, devices, late }: BackfillSummary): string {
  const rangeText = from === null ? `everything up to ${shortTime(to)}` : `${shortTime(from)} to ${shortTime(to)}`;
  const text = {
    complete: 'complete',
    gaps_remain: 'finished, but some gaps cannot be closed (see below)',
    stalled: `stopped after ${STALLED_AFTER_MS / MINUTE_MS} minutes without progress. The progress is kept; run the command again`,
    interrupted: 'interrupted. The progress is kept; run the command again',
  }[outcome];
  return `Backfill of ${rangeText}, ${counted(devices, 'device')}: ${text}.${late ? ' It finished later than --finish-by.' : ''}`;
}

function storedLines({
  readings,
  points,
  requests,
  devices,
  devices_complete,
  oldest_reading: oldest,
}: BackfillSummary): string {
  const storedText =
    requests === 0
      ? 'No request was necessary.'
      : `${counted(readings, 'new reading')} (${counted(points, 'telemetry point')}) from ${counted(requests, 'request')}.`;
  const since = oldest === null ? '' : ` The oldest stored reading is from ${shortTime(oldest)}.`;
  return `${storedText} Complete: ${grouped(devices_complete)} of ${counted(devices, 'device')}.${since}`;
}

function emptyOf({ devices_empty: empty, devices }: BackfillSummary): string[] {
  if (empty === 0 || devices === 0) return [];
  return [`Without any reading in this range: ${counted(empty, 'device')}.`];
}

const NOT_REREAD: Readonly<Record<string, string>> = {
  [PENDING]: 'not read yet: run the same command again',
  cleared: 'the archive has already removed these points, so new readings could not be distinguished from known ones',
  beyond_plan: 'older than the plan serves',
};

function recheckText({ recheck }: BackfillSummary): string[] {
  if (recheck === null) return [];
  const { ranges, new_readings, unread } = recheck;
  const reasons = [...new Set(unread.map(({ reason }) => reason))];
  return [
    `Read again: ${counted(ranges, 'covered range')}, with ${counted(new_readings, 'new reading')}.`,
    ...reasons.map((reason) => {
      const ms = unread.reduce((sum, range) => sum + (range.reason === reason ? nsToMs(rangeNs(range)) : 0), 0);
      return `Not read again: ${duration(ms / 1000)}: ${NOT_REREAD[reason] ?? gapText(reason).why}.`;
    }),
  ];
}

/** A gap up to this length at the end of the range lasts only until the next polls. */
const NEWEST_MS = 10 * MINUTE_MS;

const lengthMs = (range: MissingRange): number => nsToMs(rangeNs(range));

function isNewest(range: MissingRange, end: string): boolean {
  return range.reason === PENDING && range.to === end && lengthMs(range) <= NEWEST_MS;
}

function newestOf({ missing, to }: BackfillSummary): string[] {
  const newest = missing.filter((range) => isNewest(range, to));
  if (newest.length === 0) return [];
  const longestMs = newest.reduce((longest, range) => Math.max(longest, lengthMs(range)), 0);
  return [
    `Only the newest readings of ${counted(newest.length, 'device')} (at most ${duration(longestMs / 1000)}) are not read yet: the next polls read them, or the same command.`,
  ];
}

function missingLines({ missing: all, to: end }: BackfillSummary): string[] {
  const missing = all.filter((range) => !isNewest(range, end));
  if (missing.length === 0) return [];
  const reasons = new Map<string, MissingRange[]>();
  for (const range of missing) reasons.set(range.reason, [...(reasons.get(range.reason) ?? []), range]);
  const sums = [...reasons].map(([reason, ranges]) => {
    const devices = new Set(ranges.map(({ device_id }) => device_id)).size;
    const ms = ranges.reduce((sum, range) => sum + lengthMs(range), 0);
    return {
      ms,
      line: `  ${gapText(reason).why}: ${duration(ms / 1000)} on ${counted(devices, 'device')}: ${REMEDIES[reason] ?? 'run the command again'}`,
    };
  });
  const worst = missing.slice(0, RANGES_LISTED).map((range) => {
    const { device_id, from, to, reason } = range;
    return `  ${plainText(device_id, ID_LENGTH)}: ${duration(lengthMs(range) / 1000)} from ${shortTime(from)} to ${shortTime(to)}, ${gapText(reason).why}`;
  });
  const more = missing.length - worst.length;
  return [
    'Remaining gaps by reason:',
    ...sums.toSorted((a, b) => b.ms - a.ms).map(({ line }) => line),
    'By device, the longest first:',
    ...worst,
    ...(more > 0 ? [`  and ${counted(more, 'more gap')}; --json lists them all`] : []),
  ];
}

function deliveryOf({ destinations }: BackfillSummary, isBeside: boolean): string[] {
  if (destinations.length === 0) return ['No database is configured: the points are in the archive.'];
  const textOf = (name: string): string => databaseText(plainText(name, 40), destinations.length);
  return destinations.flatMap(
    ({ name, pending_points: pending, delivered_points: delivered, quarantined, missing, blocked_reason }) => [
      pending === 0
        ? `${capitalized(textOf(name))}: ${quarantined > 0 || missing.length > 0 ? 'not every point is stored' : 'every point is stored'}${deliveredText(delivered, isBeside)}.`
        : `${capitalized(textOf(name))}: ${counted(pending, 'point')} in the archive not delivered: ${plainText(blocked_reason ?? 'the command ended before that')}. Run the command again.`,
      ...(quarantined > 0
        ? [`  ${counted(quarantined, 'point')} rejected by it, in quarantine (tidemark --quarantine).`]
        : []),
      ...missing.map((range) => `  ${plainText(missingText(name, range), 500)}`),
    ],
  );
}

function deliveredText(points: number, isBeside: boolean): string {
  if (points === 0) return '';
  const text = counted(points, 'point');
  return isBeside
    ? ` (meanwhile, the daemon has delivered ${text}, those of its own polls included)`
    : ` (${text} delivered during this run, all measurements counted)`;
}

/** Cuts an RFC 3339 time to the second. */
function shortTime(text: string): string {
  return parseTimestamp(text) === null ? 'an unknown time' : `${text.slice(0, 19)}Z`;
}
