/**
 * The facts that the status page shows in addition to the status report: pages of devices, one device with its
 * readings, alerts, and recent events. Types and limits only. The member names are those of the served JSON. Times are
 * RFC 3339 UTC, and ranges are half-open.
 *
 * `/devices.json`, `/device.json?id=`, `/alerts.json` and `/events.json` serve these objects. `DeviceReport` is also
 * the object of `--status --device ID --json`. Names, sensors and texts are passed on as they came, shortened to
 * `MAX_SHOWN_LENGTH`; ids stay complete.
 */
import type { DeviceState, DeviceStatus, ShownState, StatusGap, StatusSpan } from './status.ts';

/** The port of the status page, and its address, unless the configuration has another one. */
export const PAGE_PORT = 9464;
export const DEFAULT_LISTEN = `127.0.0.1:${PAGE_PORT}`;

/** Rows on a page of devices, and of alerts. */
export const DEVICES_A_PAGE = 25;
export const ALERTS_SHOWN = 50;
export const DEVICE_ALERTS = 10;
/** How many days the coverage bar of a device has at most. Days before the wanted range are left out. */
export const BAR_DAYS = 30;
/** How many sensors a row, and a device's page, show. */
export const VALUES_A_ROW = 6;
export const MAX_SENSORS = 24;
/** A series has about this many cells. */
export const SERIES_CELLS = 300;
/** The shortest and the longest range that a device's page shows. Other ranges are changed to the nearer limit. */
export const LEAST_RANGE_SECONDS = 60;
export const MOST_RANGE_SECONDS = 31 * 86_400;
/** How many characters of a name, a sensor, a message or a text value are shown. */
export const MAX_SHOWN_LENGTH = 200;
export const MAX_VALUE_LENGTH = 100;

/**
 * The sort key of the device list. `name`: A to Z. All others: the worst first (the least covered, the longest without
 * a reading), excluded devices last. `reversed` reverses that, but keeps excluded devices last; equal devices stay in
 * the order of names.
 */
export const DEVICE_SORTS = ['state', 'name', 'lag', 'covered', 'reading'] as const;

export type DeviceSort = (typeof DEVICE_SORTS)[number];

/** The query for a part of the devices. */
export interface DevicesQuery {
  /** Part of a name, an id, a model or a hub's name, in any case; empty: all. */
  readonly search: string;
  readonly state: ShownState | null;
  readonly sort: DeviceSort;
  readonly reversed: boolean;
  /** The page number, from 1. A number beyond the last page means the last page. */
  readonly page: number;
}

/** The newest value of a sensor, as it was written. */
export interface LastValue {
  readonly sensor: string;
  /** A number with its own digits, `true`, `false`, or a text, shortened. */
  readonly value: string;
  readonly at: string;
}

/**
 * A range cut into days of the same length: `#` covered with readings, `-` covered and empty, `.` not fully covered, a
 * space: not wanted.
 */
export type DayBar = string;

/** A device in the list of the status page. */
export interface DeviceRow {
  readonly device_id: string;
  readonly device_name: string;
  readonly model_id: string | null;
  /** The name of its hub; `null` for a hub or if none is known. */
  readonly hub_name: string | null;
  readonly state: DeviceState;
  /** Whether readings are expected from it; see `DeviceStatus`. */
  readonly active: boolean;
  readonly lag_seconds: number | null;
  /** The covered share of the wanted range, 0 to 1. */
  readonly covered_share: number;
  readonly newest_reading_at: string | null;
  /** The days (UTC) from `bar_from` on, the oldest first; at most 30. */
  readonly bar: DayBar;
  /** The first few sensors, by name, of the newest reading that the archive keeps. */
  readonly values: readonly LastValue[];
}

/** One page of the devices that match a query, with the counts for its filters and its page links. */
export interface DevicesPage {
  readonly query: DevicesQuery;
  /** The number of all devices, and of those that match. */
  readonly devices: number;
  readonly matching: number;
  /** The number of devices of each state among those that match the search, regardless of the selected state. */
  readonly states: Readonly<Record<ShownState, number>>;
  readonly page: number;
  /** At least 1, even if no device matches. */
  readonly pages: number;
  /** Midnight (UTC) at which the first day of every bar begins. */
  readonly bar_from: string;
  readonly rows: readonly DeviceRow[];
}

/** A sensor's values over a range, reduced to cells. Each cell has the minimum, the mean and the maximum. */
export interface SensorSeries {
  readonly sensor: string;
  readonly values: number;
  readonly last: LastValue;
  /**
   * The middle of every cell in epoch seconds, the same for all sensors. In the members below, `null` is a cell without
   * a value.
   */
  readonly times: readonly number[];
  readonly min: readonly (number | null)[];
  readonly mean: readonly (number | null)[];
  readonly max: readonly (number | null)[];
}

/** One device with its readings. */
export interface DevicePageFacts {
  readonly device: DeviceReport;
  readonly range_seconds: number;
  readonly from: string;
  readonly to: string;
  /** Sensors with numeric values, by name; at most `MAX_SENSORS`. */
  readonly sensors: readonly SensorSeries[];
  /** How many further sensors there are; at most 10,000 are counted. */
  readonly sensors_left_out: number;
  /** The alerts of the device, the open ones first, then the newest; at most `DEVICE_ALERTS`. */
  readonly alerts: readonly AlertRow[];
  /** The time of the device's oldest reading that the archive keeps; `null`: none kept. */
  readonly archived_since: string | null;
  /** Whether the archive has cleared readings of the device. Only the databases still have those. */
  readonly archive_cleared: boolean;
}

/** An alert as the status page shows it. */
export interface AlertRow {
  readonly alert_id: number;
  readonly device_id: string | null;
  readonly device_name: string | null;
  readonly kind: string | null;
  readonly sensor: string | null;
  readonly opened_at: string;
  readonly open: boolean;
  /** The values that the API returned last; `null`: not returned, or not stored yet. */
  readonly rule_name: string | null;
  readonly condition: string | null;
  readonly threshold: number | null;
  readonly value: number | null;
  readonly fire_count: number | null;
  /** `open`, `acknowledged`, `resolved`, or another value that the API has sent. */
  readonly status: string | null;
  /** When its last state was observed. */
  readonly observed_at: string;
}

/** The alerts of the status page. */
export interface AlertsView {
  /** The number of all alerts seen, and of the open ones. */
  readonly alerts: number;
  readonly open: number;
  /** The open ones first, then the newest; at most a page of them. */
  readonly rows: readonly AlertRow[];
}

/** The key under which the state keeps the recent events for the next process. */
export const RECENT_EVENTS = 'recent_events';

/** A log line as the status page shows it. */
export interface RecentEvent {
  readonly at: string;
  readonly level: 'info' | 'warn' | 'error';
  /** The name of the event in the log. */
  readonly event: string;
  readonly message: string;
  /** The device that the event is about; `null` for none. */
  readonly device_id: string | null;
  /** The fields of the event, as `key value` pairs in one text; empty for none. */
  readonly details: string;
}

/** The data that the page requests from the program. The result for an unknown device is `null`. */
export interface PageFacts {
  readonly devices: (query: DevicesQuery) => DevicesPage;
  /**
   * Returns the facts about a device over a range that ends now. `LEAST_RANGE_SECONDS` and `MOST_RANGE_SECONDS` limit
   * the length. Takes turns with other work.
   */
  readonly device: (deviceId: string, rangeSeconds: number) => Promise<DevicePageFacts | null>;
  readonly alerts: () => AlertsView;
  /** The newest first, at most 100, including those from before the last start. */
  readonly events: () => readonly RecentEvent[];
}

/** A request for telemetry of the device, as it was booked and answered. */
export interface DeviceAnswer {
  readonly at: string;
  readonly lane: string;
  /** The HTTP status; `null` if no answer came. */
  readonly status: number | null;
  readonly fault: string | null;
  readonly new_readings: number | null;
}

/** A gap with its reason, and when it will be tried again. */
interface NamedGap extends StatusGap {
  readonly retry_at: string;
}

/**
 * The coverage of a range, cell by cell: `#` covered, `-` covered without a reading on its days, `.` not fully covered.
 */
interface CoverageBar {
  readonly from: string;
  readonly to: string;
  readonly cell_seconds: number;
  readonly cells: string;
}

/** Everything about one device, for `--status --device --json`. */
export interface DeviceReport extends DeviceStatus {
  readonly version: string;
  readonly generated_at: string;
  readonly workspace_id: string | null;
  readonly running: boolean;
  /**
   * Whether the device is polled. It is not without a daemon, while the API cannot be read, while the state is full, or
   * if it is excluded.
   */
  readonly polled: boolean;
  /** Whether the device is listed, not excluded and not behind. */
  readonly fresh: boolean;
  readonly behind_after_seconds: number;
  /** Why the device is behind, or another problem, in sentences; the most important first. */
  readonly reasons: readonly string[];
  /** As the last device list showed it. */
  readonly listed: {
    readonly last_seen_at: string | null;
    readonly online: boolean | null;
    readonly presence: string | null;
    readonly lifecycle_status: string | null;
    readonly last_listed_at: string;
    readonly gone_since: string | null;
  };
  readonly last_polled_at: string | null;
  /** When it is polled next; `null`: never in the current state. */
  readonly next_due_at: string | null;
  /** `idle_poll`: the list reports nothing new, so only the idle poll remains. */
  readonly next_kind: 'newest_readings' | 'idle_poll' | null;
  /** The newest first. */
  readonly last_answers: readonly DeviceAnswer[];
  /** Telemetry requests that failed in the last two days. */
  readonly failed_requests: number;
  readonly wanted: StatusSpan;
  /** The covered share of the wanted range, 0 to 1. */
  readonly covered_share: number;
  readonly named_gaps: readonly NamedGap[];
  /** How long a reading may arrive after its own time. */
  readonly grace_period_seconds: number;
  readonly late: { readonly readings: number; readonly max_seconds: number };
  /** The names that its points carry, and from when on. The first name applies from the beginning. */
  readonly names: readonly { readonly from: string | null; readonly name: string }[];
  readonly bar: CoverageBar;
}
