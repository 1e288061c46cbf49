/**
 * What the status page is made of beside the status report: devices a page at a time, one device with its readings,
 * alerts and what happened last. Types only; member names are the served ones. Times are RFC 3339 UTC.
 *
 * Each is what `/devices.json`, `/device.json?id=`, `/alerts.json` and `/events.json` serve and what the page shows.
 */
import type { DeviceReport } from './device-report.ts';
import type { DeviceState } from './status.ts';

/** By what the list of devices can be put in order. `lag` and `state`: the worst first, unless reversed. */
export const DEVICE_SORTS = ['state', 'name', 'lag', 'held', 'reading'] as const;

export type DeviceSort = (typeof DEVICE_SORTS)[number];

/** What part of the devices is asked for. */
export interface DevicesQuery {
  /** Part of a name, an id, a model or a hub's name, in any case; empty: all. */
  readonly search: string;
  readonly state: DeviceState | null;
  readonly sort: DeviceSort;
  readonly reversed: boolean;
  /** From 1. Beyond the last one: the last one. */
  readonly page: number;
}

/** The newest value of a sensor, as it was written. */
export interface LastValue {
  readonly sensor: string;
  /** A number in its own digits, `true`, `false`, or a text, shortened. */
  readonly value: string;
  readonly at: string;
}

/**
 * A span cut into days of the same length: `#` held with readings, `-` held and empty, `.` not held in full, a space:
 * not wanted.
 */
export type DayBar = string;

export interface DeviceRow {
  readonly device_id: string;
  readonly device_name: string;
  readonly model_id: string | null;
  /** Name of the hub that it hangs on; `null` for a hub or where none is told. */
  readonly hub_name: string | null;
  readonly state: DeviceState;
  readonly lag_seconds: number | null;
  /** The part of what is wanted that is held, 0 to 1. */
  readonly covered_share: number;
  readonly newest_reading_at: string | null;
  /** Of the last 30 days, the oldest first. */
  readonly bar: DayBar;
  /** Of the newest reading that the archive keeps, the first few sensors by name. */
  readonly values: readonly LastValue[];
}

export interface DevicesPage {
  readonly query: DevicesQuery;
  /** All devices, those that fit, and how many of them there are of each state. */
  readonly devices: number;
  readonly matching: number;
  readonly states: Readonly<Record<DeviceState, number>>;
  readonly page: number;
  readonly pages: number;
  readonly rows: readonly DeviceRow[];
}

/** A sensor's values over a span, thinned out: of each cell the least, the mean and the most. */
export interface SensorSeries {
  readonly sensor: string;
  readonly values: number;
  readonly last: LastValue;
  /** Middle of the cell in epoch seconds; `null` between them: a cell without a value. */
  readonly times: readonly number[];
  readonly min: readonly (number | null)[];
  readonly mean: readonly (number | null)[];
  readonly max: readonly (number | null)[];
}

/** One device with its readings. */
export interface DevicePage {
  readonly device: DeviceReport;
  readonly span_seconds: number;
  readonly from: string;
  readonly to: string;
  /** Numbers only, by name; at most `MAX_SENSORS`. */
  readonly sensors: readonly SensorSeries[];
  /** How many more there are. */
  readonly sensors_left_out: number;
  /** Since when the archive keeps readings of it: before that they are in the databases alone; `null`: none kept. */
  readonly archived_since: string | null;
}

export interface AlertRow {
  readonly alert_id: number;
  readonly device_id: string | null;
  readonly device_name: string | null;
  readonly kind: string | null;
  readonly sensor: string | null;
  readonly opened_at: string;
  readonly open: boolean;
  /** When its last state was observed. */
  readonly observed_at: string;
}

export interface AlertsView {
  /** All that were seen, and those that are open. */
  readonly alerts: number;
  readonly open: number;
  /** The open ones first, then the newest; at most a page of them. */
  readonly rows: readonly AlertRow[];
}

/** Something that happened, as the log tells it. */
export interface RecentEvent {
  readonly at: string;
  readonly level: 'info' | 'warn' | 'error';
  /** Its name in the log. */
  readonly event: string;
  readonly message: string;
  /** What the log tells beside it, as `key value` pairs in one text; empty for nothing. */
  readonly details: string;
}

/** What the page asks of the program. A device of no such id: `null`. */
export interface PageFacts {
  readonly devices: (query: DevicesQuery) => DevicesPage;
  readonly device: (deviceId: string, spanSeconds: number) => DevicePage | null;
  readonly alerts: () => AlertsView;
  /** The newest first, at most 100, since the start of the process. */
  readonly events: () => readonly RecentEvent[];
}
