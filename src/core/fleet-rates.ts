/**
 * How often each device of a workspace reports, as far as that is known before anything is asked of it: measured from what
 * is held, else assumed (issue 4, `--plan`). Estimates only: nothing that is held or claimed goes by them.
 */
import type { DeviceFilter } from './filter.ts';
import { type Intervals, intersect, lengthNs } from './intervals.ts';
import type { DeviceRecord } from './records.ts';
import { DAY_MS, DAY_NS, type EpochMs, HOUR_MS, MINUTE_MS, MS_NS, nsToMs } from './time.ts';

/** A device without a sign of life for so long counts as quiet. */
export const QUIET_AFTER_MS = DAY_MS;
/** What is assumed of a device where no device of the workspace was measured yet. */
export const ASSUMED_INTERVAL_MS = MINUTE_MS;
/** How far back days are looked at. */
export const MEASURED_DAYS = 8;
/** Less than this of held time says nothing of a rate. */
const LEAST_HELD_MS = HOUR_MS;
/** The words of `lifecycle_status` for devices that do not report (API document, "Device"). */
const RESTING: ReadonlySet<string> = new Set(['paused', 'shelved', 'retired']);

/** Readings of a day that are held. */
export interface DayReadings {
  /** Days since 1970. */
  readonly day: number;
  readonly readings: number;
}

/** What is known of a device from the listing and from the state. */
export interface DeviceFacts {
  readonly deviceId: string;
  /** `last_seen_at`; `null` where the listing says none. */
  readonly lastSeenMs: EpochMs | null;
  readonly lifecycle: string | null;
  /** Whether the configuration leaves it out. */
  readonly isLeftOut: boolean;
  /** What is held in full. */
  readonly held: Intervals;
  /** The newest reading that is held. */
  readonly newestMs: EpochMs | null;
  /** The last `MEASURED_DAYS`, as far as there are readings. */
  readonly days: readonly DayReadings[];
}

/** What the state holds of devices. */
export type HeldOfDevices = ReadonlyMap<string, Pick<DeviceFacts, 'held' | 'newestMs' | 'days'>>;

/** Puts together what is known of the devices. */
export function deviceFacts(
  records: readonly DeviceRecord[],
  held: HeldOfDevices,
  filter: DeviceFilter,
): DeviceFacts[] {
  return records.map((record) => ({
    deviceId: record.deviceId,
    lastSeenMs: record.lastSeenAt === null ? null : nsToMs(record.lastSeenAt),
    lifecycle: record.lifecycleStatus,
    isLeftOut: filter.excludes(record),
    ...(held.get(record.deviceId) ?? NOTHING_HELD),
  }));
}

const NOTHING_HELD = { held: [], newestMs: null, days: [] };

export interface DeviceRate {
  readonly deviceId: string;
  /** From reading to reading, in ms; of a quiet device: while it still spoke. */
  readonly intervalMs: number;
  readonly isMeasured: boolean;
  readonly isQuiet: boolean;
  /** Its last sign of life; `null` where there was none. */
  readonly heardMs: EpochMs | null;
  readonly held: Intervals;
}

export interface FleetRates {
  /** Those that are not left out. */
  readonly devices: readonly DeviceRate[];
  readonly leftOut: number;
  /** What is taken of devices that were not measured: the median of those that were, else one a minute. */
  readonly assumedMs: number;
}

/** The rates of all devices. */
export function fleetRates(all: readonly DeviceFacts[], nowMs: EpochMs): FleetRates {
  const kept = all.filter(({ isLeftOut }) => !isLeftOut);
  const measured = new Map(kept.map((device) => [device.deviceId, measuredIntervalMs(device, nowMs)]));
  const known = [...measured.values()].filter((ms) => ms !== null && Number.isFinite(ms)).map(Number);
  const assumedMs = medianOf(known) ?? ASSUMED_INTERVAL_MS;
  const devices = kept.map((device): DeviceRate => {
    const own = measured.get(device.deviceId) ?? null;
    // Signs of life without readings tell nothing of readings.
    const heardMs = own === Number.POSITIVE_INFINITY ? device.newestMs : latest(device.lastSeenMs, device.newestMs);
    const isSilent = heardMs === null || nowMs - heardMs > QUIET_AFTER_MS;
    return {
      deviceId: device.deviceId,
      intervalMs: own === null || !Number.isFinite(own) ? assumedMs : own,
      isMeasured: own !== null,
      isQuiet: isSilent || own === Number.POSITIVE_INFINITY || RESTING.has(device.lifecycle ?? ''),
      heardMs,
      held: device.held,
    };
  });
  return { devices, leftOut: all.length - kept.length, assumedMs };
}

/**
 * From reading to reading in the newest day or so that is held, in ms: held time by readings, of days that had any.
 *
 * @returns infinite where the last whole day is held and had none; `null` where too little is held to tell.
 */
export function measuredIntervalMs({ held, days }: Pick<DeviceFacts, 'held' | 'days'>, nowMs: EpochMs): number | null {
  const today = Math.floor(nowMs / DAY_MS);
  let heldMs = 0;
  let readings = 0;
  for (const { day, readings: ofDay } of days.toSorted((a, b) => b.day - a.day)) {
    if (day > today || day <= today - MEASURED_DAYS || ofDay <= 0) continue;
    heldMs += heldOfDayMs(held, day);
    readings += ofDay;
    if (heldMs >= DAY_MS && readings > 1) break;
  }
  if (readings > 0) return heldMs >= (readings > 1 ? LEAST_HELD_MS : DAY_MS) ? heldMs / readings : null;
  return heldOfDayMs(held, today - 1) >= DAY_MS ? Number.POSITIVE_INFINITY : null;
}

function heldOfDayMs(held: Intervals, day: number): number {
  const from = BigInt(day) * DAY_NS;
  return Number(lengthNs(intersect(held, [{ from, to: from + DAY_NS }])) / MS_NS);
}

function latest(a: EpochMs | null, b: EpochMs | null): EpochMs | null {
  if (a === null || b === null) return a ?? b;
  return Math.max(a, b);
}

function medianOf(values: readonly number[]): number | null {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? null;
}
