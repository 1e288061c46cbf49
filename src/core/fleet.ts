/**
 * The devices of a workspace for estimates: how often each reports (measured, or assumed), and what
 * `--plan --what-if KEY=VALUE` supposes instead. Coverage never depends on these figures.
 *
 * Keys of the configuration keep their names in `--what-if`; the shorter names mean the same keys.
 */
import { type NamedDevice, nameOf } from './device-names.ts';
import type { UserError } from './faults.ts';
import type { DeviceFilter } from './filter.ts';
import { type Intervals, intersect, lengthNs } from './intervals.ts';
import type { Schedules } from './ports.ts';
import { type DeviceRecord, RESTING } from './records.ts';
import { nearest } from './text.ts';
import { DAY_MS, DAY_NS, type EpochMs, type EpochNs, HOUR_MS, MINUTE_MS, MS_NS, nsToMs } from './time.ts';

/** A device without a sign of life for this long counts as quiet. */
const QUIET_AFTER_MS = DAY_MS;
/** The assumed interval of a device if no device of the workspace was measured yet. */
export const ASSUMED_INTERVAL_MS = MINUTE_MS;
/** How far back days are checked. */
export const MEASURED_DAYS = 8;
/** A rate is measured only if more time than this is covered. */
const LEAST_COVERED_MS = HOUR_MS;

/** The archived readings of a day. */
export interface DayReadings {
  /** Days since 1970. */
  readonly day: number;
  readonly readings: number;
}

/** The facts about a device from the listing and from the state. */
export interface DeviceFacts extends NamedDevice {
  /** `last_seen_at`; `null` if the listing has none. */
  readonly lastSeenMs: EpochMs | null;
  readonly lifecycle: string | null;
  /** Whether the configuration excludes it. */
  readonly isLeftOut: boolean;
  readonly covered: Intervals;
  /** The time of the newest archived reading; `null` without any. */
  readonly newestMs: EpochMs | null;
  /** Its first reading, if it is known or likely that there is no older one. */
  readonly beginsNs: EpochNs | null;
  /** The days of the last `MEASURED_DAYS` that have readings. */
  readonly days: readonly DayReadings[];
}

type CoverageOfDevices = ReadonlyMap<string, Pick<DeviceFacts, 'covered' | 'newestMs' | 'beginsNs' | 'days'>>;

/** Combines the facts about the devices. */
export function deviceFacts(
  records: readonly DeviceRecord[],
  coverage: CoverageOfDevices,
  filter: DeviceFilter,
): DeviceFacts[] {
  return records.map((record) => ({
    deviceId: record.deviceId,
    name: nameOf(record),
    lastSeenMs: record.lastSeenAt === null ? null : nsToMs(record.lastSeenAt),
    lifecycle: record.lifecycleStatus,
    isLeftOut: filter.excludes(record),
    ...(coverage.get(record.deviceId) ?? NEVER_READ),
  }));
}

const NEVER_READ = { covered: [], newestMs: null, beginsNs: null, days: [] };

/** The report rate of a device, measured or assumed, as plans and estimates use it. */
export interface DeviceRate {
  readonly deviceId: string;
  /** The interval between readings, in ms. For a quiet device: the interval while it still reported. */
  readonly intervalMs: number;
  readonly isMeasured: boolean;
  readonly isQuiet: boolean;
  /** Its last sign of life; `null` for none. */
  readonly lastSignMs: EpochMs | null;
  readonly covered: Intervals;
  readonly beginsNs: EpochNs | null;
}

/** How often the devices report. */
export interface FleetRates {
  /** Every device that the configuration does not exclude. */
  readonly devices: readonly DeviceRate[];
  readonly leftOut: number;
  /** The interval that is assumed for unmeasured devices: the median of the others, or a minute. */
  readonly assumedMs: number;
}

/**
 * Measures the report rate of every included device, or assumes the median of the others. `leftOut` counts the excluded
 * ones.
 */
export function fleetRates(all: readonly DeviceFacts[], nowMs: EpochMs): FleetRates {
  const included = all.filter(({ isLeftOut }) => !isLeftOut);
  const measured = new Map(included.map((device) => [device.deviceId, measuredIntervalMs(device, nowMs)]));
  const known = [...measured.values()].filter((ms) => ms !== null && Number.isFinite(ms)).map(Number);
  const assumedMs = percentile(Float64Array.from(known).sort(), 0.5) ?? ASSUMED_INTERVAL_MS;
  const devices = included.map((device): DeviceRate => {
    const own = measured.get(device.deviceId) ?? null;
    // Signs of life without readings do not show a report rate.
    const lastSignMs = own === Number.POSITIVE_INFINITY ? device.newestMs : latest(device.lastSeenMs, device.newestMs);
    const isSilent = lastSignMs === null || nowMs - lastSignMs > QUIET_AFTER_MS;
    return {
      deviceId: device.deviceId,
      intervalMs: own === null || !Number.isFinite(own) ? assumedMs : own,
      isMeasured: own !== null,
      isQuiet: isSilent || own === Number.POSITIVE_INFINITY || RESTING.has(device.lifecycle ?? ''),
      lastSignMs,
      covered: device.covered,
      beginsNs: device.beginsNs,
    };
  });
  return { devices, leftOut: all.length - included.length, assumedMs };
}

/**
 * The mean interval between readings in about the last covered day, in ms: covered time divided by readings, over days
 * with readings.
 *
 * @returns infinite if the last whole day is covered and has no readings; `null` if too little is covered.
 */
export function measuredIntervalMs(
  { covered, days }: Pick<DeviceFacts, 'covered' | 'days'>,
  nowMs: EpochMs,
): number | null {
  const today = Math.floor(nowMs / DAY_MS);
  let coveredMs = 0;
  let readings = 0;
  for (const { day, readings: ofDay } of days.toSorted((a, b) => b.day - a.day)) {
    if (day > today || day <= today - MEASURED_DAYS || ofDay <= 0) continue;
    coveredMs += coveredOfDayMs(covered, day);
    readings += ofDay;
    if (coveredMs >= DAY_MS && readings > 1) break;
  }
  if (readings > 0) return coveredMs >= (readings > 1 ? LEAST_COVERED_MS : DAY_MS) ? coveredMs / readings : null;
  return coveredOfDayMs(covered, today - 1) >= DAY_MS ? Number.POSITIVE_INFINITY : null;
}

function coveredOfDayMs(covered: Intervals, day: number): number {
  const from = BigInt(day) * DAY_NS;
  return Number(lengthNs(intersect(covered, [{ from, to: from + DAY_NS }])) / MS_NS);
}

function latest(a: EpochMs | null, b: EpochMs | null): EpochMs | null {
  if (a === null || b === null) return a ?? b;
  return Math.max(a, b);
}

/**
 * A nearest-rank percentile: the smallest value such that at least `part` of all values are not larger; `null` without
 * values.
 *
 * @param part from 0 to 1, such as 0.95.
 */
export function percentile(ascending: ArrayLike<number>, part: number): number | null {
  return ascending[Math.max(0, Math.ceil(part * ascending.length) - 1)] ?? null;
}

/** The keys of `--what-if` with their values, for the help text and for messages. */
const WHAT_IF_KEYS = {
  'api.share': 'a number above 0 and up to 1, such as 0.8',
  'sync.telemetry': 'a cron expression',
  'sync.devices': 'a cron expression',
  'sync.alerts': 'a cron expression',
  'sync.account': 'a cron expression',
  devices: 'how many devices',
  requests_per_minute: 'what a plan allows',
  requests_per_day: 'what a plan allows',
} as const;

type WhatIfKey = keyof typeof WHAT_IF_KEYS;

/** Shorter names. `devices` means the number of devices, so the schedule of that name has no short form. */
const SHORT: ReadonlyMap<string, WhatIfKey> = new Map([
  ['share', 'api.share'],
  ['telemetry', 'sync.telemetry'],
  ['alerts', 'sync.alerts'],
  ['account', 'sync.account'],
]);

/** An assumption as it was given. */
export interface WhatIfText {
  readonly key: WhatIfKey;
  readonly value: string;
}

/**
 * The settings and the fleet that `--plan --what-if` assumes instead of the real ones; an absent member stays as it is.
 */
export interface WhatIf {
  readonly share?: number;
  readonly schedules?: Partial<Schedules>;
  readonly devices?: number;
  readonly perMinute?: number;
  readonly perDay?: number;
}

/**
 * Parses `KEY=VALUE`.
 *
 * @returns the assumption, or the mistake in words. The text repeats no part of the input.
 */
export function readWhatIf(text: string): WhatIfText | { readonly mistake: Pick<UserError, 'what' | 'remedy'> } {
  const at = text.indexOf('=');
  const [name, value] = [text.slice(0, Math.max(at, 0)).trim(), text.slice(at + 1).trim()];
  if (at < 1 || value === '') return { mistake: { what: 'takes KEY=VALUE, such as share=0.5.', remedy: null } };
  const names = [...Object.keys(WHAT_IF_KEYS), ...SHORT.keys()];
  const key = SHORT.get(name) ?? names.find((known): known is WhatIfKey => known === name && known in WHAT_IF_KEYS);
  if (key !== undefined) return { key, value };
  const meant = nearest(name, names);
  const list = Object.keys(WHAT_IF_KEYS).join(', ');
  const remedy = `${meant === null ? '' : `Did you mean ${meant}? `}Its keys: ${list}.`;
  return { mistake: { what: 'has no such key', remedy } };
}

/**
 * A fleet of another size with the same mix as this one.
 *
 * @param intervalsMs of the devices that report.
 * @param assumedMs the interval if there is no device to measure.
 * @returns the intervals and the number of quiet devices for the wanted number.
 */
export function resizeFleet(
  { intervalsMs, quiet }: { readonly intervalsMs: readonly number[]; readonly quiet: number },
  { devices, assumedMs }: { devices: number; assumedMs: number },
): { intervalsMs: readonly number[]; quiet: number } {
  const now = intervalsMs.length + quiet;
  const reporting = now === 0 ? devices : Math.round((devices * intervalsMs.length) / now);
  const sorted = intervalsMs.toSorted((a, b) => a - b);
  // Each device is repeated equally often, so the mix stays the same for any number.
  const at = (index: number): number => sorted[Math.floor(((index + 0.5) * sorted.length) / reporting)] ?? assumedMs;
  return { intervalsMs: Array.from({ length: reporting }, (_, index) => at(index)), quiet: devices - reporting };
}

/**
 * The maximum number of devices with their own series (those with the first ids), so that a scrape stays within a
 * megabyte.
 */
export const MOST_DEVICE_SERIES = 1000;
