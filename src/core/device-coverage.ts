/**
 * The coverage of a device and the missing points of a destination, as figures and sentences. The `coverage` points,
 * the status report and the summary of a run use them. Pure.
 */
import { type CoveredRange, coveredIntervals, gapsIn } from './coverage.ts';
import { type Interval, type Intervals, intersect, lengthNs, normalize, subtract, union } from './intervals.ts';
import type { KnownDevice } from './state/inventory.ts';
import type { MissingReason, MissingSum } from './state/log.ts';
import { type CoverageNow, type Gap, type GapReason, gracePeriodOf } from './state/telemetry.ts';
import type { DeviceState, DeviceStatus, MissingStatus, StatusGap } from './status.ts';
import { counted, plainText } from './text.ts';
import {
  DAY_NS,
  type EpochMs,
  type EpochNs,
  formatExact,
  MINUTE_MS,
  MINUTE_NS,
  maxNs,
  minNs,
  msToNs,
  SECOND_NS,
} from './time.ts';

/** The device list may come from a replica that lags, so it may not show readings that are younger than this. */
export const LISTING_LAG_MS = MINUTE_MS;

/** Every device has a gap since its last poll. A gap of up to this length does not make a device count as behind. */
export const LIVE_LAG_SECONDS = 5 * 60;

/** How long it usually takes at most until polls have read the newest readings, with the default settings. */
export const NEWEST_READ_WITHIN_MS = 3 * MINUTE_MS;

/** How long a device that does not report whether it is online may send no readings before it counts as silent. */
const SILENT_AFTER_NS = DAY_NS;

interface DeviceCoverage {
  readonly state: DeviceState;
  /** The device has no gap before this instant. At most the end of the wanted range. */
  readonly coveredTo: EpochNs;
  /** From `coveredTo` to the end of the wanted range. */
  readonly lagSeconds: number;
  readonly gapSeconds: number;
  /** The gaps, each with its reason. The newest range is left out while it only waits for the next poll. */
  readonly gaps: readonly StatusGap[];
  /**
   * Whether the device is covered up to the present. A newest range that only waits for the next poll does not count.
   */
  readonly isCurrent: boolean;
  /** Whether the beginning of the wanted range has not been read yet: the initial sync. */
  readonly isInitial: boolean;
}

/** The facts about a device that its coverage depends on. */
type WantedDevice = Pick<KnownDevice, 'record' | 'goneSinceMs'> & {
  /** Whether the configuration excludes it. Then it is not read, whether it is present or gone. */
  readonly isExcluded?: boolean;
};

/** The reason of a gap that nothing blocks: it has not been read yet. */
export const PENDING = 'pending';

/** The text for the reason of a gap: the cause, and what happens next. */
interface GapText {
  readonly why: string;
  readonly remedy: string;
}

const GAP_TEXTS: Readonly<Record<GapReason | typeof PENDING | 'excluded', GapText>> = {
  [PENDING]: { why: 'not read yet', remedy: 'start the daemon or run --once' },
  beyond_plan: { why: 'older than the plan serves', remedy: "limited by the plan's history_max_days" },
  over_quota: { why: 'skipped for lack of quota', remedy: '--plan shows what quota would be enough' },
  page_rejected: { why: 'invalid responses', remedy: 'retried periodically, see the log' },
  unverified: { why: 'empty responses', remedy: 'although the device list shows activity then; requested again' },
  unreachable: { why: 'device unreachable', remedy: 'its requests fail; retried periodically' },
  device_gone: { why: 'device gone', remedy: 'no longer in the workspace; checked periodically' },
  excluded: { why: 'excluded', remedy: 'by sync.include or sync.exclude' },
};

/** The text for the reason of a gap. A reason that another version has written is shown as it is. */
export function gapText(reason: string): GapText {
  return Object.hasOwn(GAP_TEXTS, reason)
    ? GAP_TEXTS[reason as keyof typeof GAP_TEXTS]
    : { why: plainText(reason, 60), remedy: '' };
}

/** The status of the device in words, for `--status` and the page; `null` for an excluded device. */
export function syncStateText({
  state,
  fresh,
  polled,
  lag_seconds,
  gaps,
}: Pick<DeviceStatus, 'state' | 'lag_seconds' | 'gaps'> & {
  readonly fresh: boolean;
  readonly polled: boolean;
}): string | null {
  if (state === 'excluded') return null;
  const some = counted(gaps.length, 'gap');
  if (!polled || !fresh) return `${polled ? 'behind' : 'not polled now'}${gaps.length === 0 ? '' : `, ${some}`}`;
  if (lag_seconds === null) return 'initial sync';
  if (state === 'silent') return 'nothing newer to read';
  return gaps.length === 0 ? 'up to date' : `up to date except for ${some}`;
}

/** The text for a device without a time for its next poll. */
export function unscheduledText({
  state,
  polled,
  running,
}: Pick<DeviceStatus, 'state'> & { readonly polled: boolean; readonly running: boolean }): string {
  return state !== 'excluded' && running && !polled ? 'no poll until the key is accepted' : 'none scheduled';
}

/** The reasons of gaps that no request can close. Such gaps are reported, but nothing waits for them. */
export const CLOSED_BY_NONE: ReadonlySet<string> = new Set(['device_gone', 'excluded']);

/** The coverage of a device, and the empty ranges that follow from the device list. */
interface KnownCoverage {
  readonly covered: readonly CoveredRange[];
  readonly gaps: readonly Gap[];
  /** See `emptyByListing`. Empty if only evidence from answers is to count. */
  readonly listedEmpty?: Intervals;
  /**
   * How long the newest range may be open without counting as a gap: it is always open until the next poll. Default 0.
   */
  readonly openSeconds?: number;
}

/** Computes the coverage of a device within the wanted range. */
export function determineCoverage(device: WantedDevice, known: KnownCoverage, wanted: Interval): DeviceCoverage {
  const reason = unreadReason(device);
  const open = subtract(gapsIn(wanted, known.covered), known.listedEmpty ?? []);
  const newest = open.at(-1);
  const lag = newest?.to === wanted.to ? newest.to - newest.from : 0n;
  const isCurrent = known.covered.length > 0 && seconds(lag) <= (known.openSeconds ?? 0);
  const missing = isCurrent && lag > 0n ? open.slice(0, -1) : open;
  // The reason of an excluded or gone device replaces all other reasons.
  const gaps = reason === null ? nameGaps(missing, known.gaps, PENDING) : nameGaps(missing, [], reason);
  return {
    state: deviceState(device, { covered: known.covered, open: missing, wanted }),
    coveredTo: wanted.to - lag,
    lagSeconds: seconds(lag),
    gapSeconds: seconds(lengthNs(open)),
    gaps,
    isCurrent,
    isInitial: missing[0]?.from === wanted.from && gaps[0]?.reason === PENDING,
  };
}

/**
 * Whether the coverage of a device shows a lag. It shows none before the first page and during the initial sync, when
 * the device is not complete up to any instant. A newest range that is open for too long always shows a lag.
 */
export function hasLag({ isCurrent, isInitial }: Pick<DeviceCoverage, 'isCurrent' | 'isInitial'>): boolean {
  return !isCurrent || !isInitial;
}

/** Why nothing of a device can be read; `null` if it can be read. */
function unreadReason({ goneSinceMs, isExcluded }: WantedDevice): 'excluded' | 'device_gone' | null {
  if (isExcluded === true) return 'excluded';
  return goneSinceMs === null ? null : 'device_gone';
}

function deviceState(
  { record, goneSinceMs, isExcluded }: WantedDevice,
  { covered, open, wanted }: { covered: readonly CoveredRange[]; open: Intervals; wanted: Interval },
): DeviceState {
  if (isExcluded === true) return 'excluded';
  if (goneSinceMs !== null) return 'unreachable';
  if (open.length > 0) return 'catching-up';
  const newest = covered.at(-1)?.last?.at ?? null;
  if (record.online !== null) return record.online ? 'live' : 'silent';
  return newest !== null && wanted.to - newest < SILENT_AFTER_NS ? 'live' : 'silent';
}

/** Names the gaps. Named gaps may overlap; each instant counts once, under the first reason that applies. */
function nameGaps(open: Intervals, gaps: readonly Gap[], otherwise: string): StatusGap[] {
  let left = open;
  const named: NamedGap[] = [];
  for (const { fromNs, toNs, reason } of gaps) {
    const range = normalize([{ from: fromNs, to: toNs }]);
    named.push(...intersect(left, range).map((gap) => ({ gap, reason })));
    left = subtract(left, range);
  }
  const sorted = [...named, ...left.map((gap) => ({ gap, reason: otherwise }))].sort((a, b) =>
    a.gap.from < b.gap.from ? -1 : 1,
  );
  return joinGaps(sorted).map(({ gap, reason }) => ({ from: formatExact(gap.from), to: formatExact(gap.to), reason }));
}

interface NamedGap {
  readonly gap: Interval;
  readonly reason: string;
}

/** Joins neighbouring gaps that have the same reason. */
function joinGaps(gaps: readonly NamedGap[]): NamedGap[] {
  const result: NamedGap[] = [];
  for (const next of gaps) {
    const last = result.at(-1);
    if (last?.reason !== next.reason || last.gap.to !== next.gap.from) result.push(next);
    else result[result.length - 1] = { gap: { from: last.gap.from, to: next.gap.to }, reason: next.reason };
  }
  return result;
}

/**
 * How far above its covered range (plus the grace period) a page may show a reading: a slow answer can take this long.
 */
const ANSWERED_NS = 2n * MINUTE_NS;

/** The settings and due times that an empty range depends on, in addition to the device. */
interface ListingContext {
  readonly settings: { readonly gracePeriodMs: number };
  readonly nextReadingMs: (deviceId: string) => EpochMs | null;
}

/**
 * The newest range of a device that is empty according to the last device list. The device is polled there only after a
 * sign of life or at its idle poll, so the open range is no lag. The list is no evidence: the range never counts as
 * covered. A device that was never seen has such a range while it is offline and has never had a reading.
 *
 * @param nextReadingMs the time until which no reading is overdue that the list does not announce. The range is empty
 * up to the time that a poll at that moment would cover, and up to the last device list.
 * @param newestNs the newest archived reading, whether or not its range is covered yet.
 * @param isSilent whether the device's signs of life come without readings. If the device never had a reading, a newer
 * sign of life means nothing. If it had one, it may report again.
 */
export function emptyByListing(
  { settings, nextReadingMs }: ListingContext,
  { record, lastListedMs }: Pick<KnownDevice, 'record' | 'lastListedMs'>,
  { covered, newestNs, isSilent, late }: Omit<CoverageNow, 'gaps'>,
): Intervals {
  const newest = covered.at(-1);
  if (newest === undefined) return [];
  const seenAt = record.lastSeenAt;
  const listedNs = msToNs(lastListedMs);
  // A page covers nothing that is younger than the grace period.
  const gracePeriodMs = gracePeriodOf(settings.gracePeriodMs, late);
  const dueNs = msToNs(Math.max(0, (nextReadingMs(record.deviceId) ?? 0) - gracePeriodMs));
  const untilDue = normalize([{ from: newest.to, to: minNs(dueNs, listedNs) }]);
  if (seenAt === null && mayHaveReported(record, covered, newestNs)) return untilDue;
  if (seenAt === null) return normalize([{ from: newest.to, to: listedNs }]);
  const isDisproved =
    newestNs !== null && newestNs > seenAt + SECOND_NS && newestNs <= listedNs - msToNs(LISTING_LAG_MS);
  if (isDisproved) return untilDue;
  const knownTo = newestNs === null ? newest.to : maxNs(newest.to, newestNs + SECOND_NS);
  // A newest reading further above the covered range than a grace period comes from a page that covered nothing.
  const isApart = newestNs !== null && newestNs - newest.to > msToNs(gracePeriodMs) + ANSWERED_NS;
  const neverReports = isSilent && newestNs === null;
  return seenAt > knownTo && !neverReports ? [] : normalize([{ from: isApart ? newestNs : newest.to, to: listedNs }]);
}

/**
 * Whether a device without a last-seen time may have readings. The list may have no last-seen time for any device; then
 * only `online` shows that a device has begun to report.
 */
function mayHaveReported(
  { online }: KnownDevice['record'],
  covered: readonly CoveredRange[],
  newestNs: EpochNs | null,
): boolean {
  return online !== false || newestNs !== null || covered.some(({ first, last }) => first !== null || last !== null);
}

/**
 * The covered share of the wanted range, 0 to 1.
 *
 * @param listedEmpty ranges that count as covered although only the device list shows that they are empty.
 */
export function coveredShare(covered: readonly CoveredRange[], wanted: Interval, listedEmpty: Intervals = []): number {
  const whole = wanted.to - wanted.from;
  if (whole <= 0n) return 1;
  const all = union(coveredIntervals(covered), listedEmpty);
  return Number(lengthNs(intersect(all, normalize([wanted])))) / Number(whole);
}

/** The wanted range of a device: it ends at the coverage limit, or when the device was gone. */
export function wantedPart({ goneSinceMs }: Pick<KnownDevice, 'goneSinceMs'>, range: Interval): Interval {
  if (goneSinceMs === null) return range;
  const end: EpochNs = BigInt(Math.floor(goneSinceMs)) * (SECOND_NS / 1000n);
  return { from: range.from, to: end < range.to ? end : range.to };
}

function seconds(ns: bigint): number {
  return Number(ns / (SECOND_NS / 1000n)) / 1000;
}

/** The missing points of a destination, as the status report shows them. */
export function missingStatuses(sums: readonly MissingSum[]): MissingStatus[] {
  return sums.map(({ reason, points, devices, fromNs, toNs }) => ({
    reason,
    points,
    devices,
    from: formatExact(fromNs),
    to: formatExact(toNs),
  }));
}

const WHY: Readonly<Record<MissingReason, string>> = {
  beyond_retention: 'beyond its retention',
  skipped_destination: 'it had accepted nothing for longer than archive.retention',
  cleared: 'the archive had removed them',
  dropped: 'it rejected them, and they were dropped from quarantine',
};

/** The command that restores the missing points. */
const REMEDIES: Partial<Readonly<Record<MissingReason, (destination: string) => string>>> = {
  beyond_retention: (name) =>
    `once the database keeps points for longer, tidemark --replay --destination ${name} sends those that the archive still has`,
  skipped_destination: (name) => `tidemark --verify --repair --destination ${name} sends them`,
  cleared: (name) => `tidemark --verify --repair --destination ${name} requests them again from the API`,
};

/** A sentence for people, without its end: how many points are not in the destination, why, and what to do. */
export function missingText(destination: string, { reason, points, devices, from, to }: MissingStatus): string {
  const remedy = REMEDIES[reason]?.(destination);
  const text = `${counted(points, 'point')} of ${counted(devices, 'device')} missing in ${destination}: ${WHY[reason]} (from ${from} to ${to})`;
  return remedy === undefined ? text : `${text}; ${remedy}`;
}
