/**
 * What the dashboards in InfluxQL and those in PromQL have in common: panels and columns that look the same for both
 * databases. Each gets its queries as an argument.
 */
import { HOUR_MS } from '../../src/core/time.ts';
import {
  BAD_OR_UNKNOWN,
  CODE_WORDS,
  COVERAGE_STATE_CELL,
  COVERED,
  type Column,
  LAG_MAPPINGS,
  LIFECYCLE,
  NEUTRAL,
  NOT_REPORTED,
  NOTHING_MISSING,
  ONLINE_CELL,
  steps,
  UP_TO_DATE_CELL,
} from './looks.ts';
import type { DataLink, Override, PanelSpec, Target, Transformation, Variable } from './model.ts';
import { lineChart, NO_DEVICES, NO_READINGS, stat, timeline } from './panels.ts';
import { SENSOR_UNITS } from './sensor-units.ts';

/** Columns of tables of devices. */
export const DEVICE_COLUMNS = {
  // As the device list last showed it; "unknown", in red, where nothing is reported any more.
  online: { title: 'Online', mappings: [ONLINE_CELL], colored: true, width: 95 },
  // By the newest reading or by the list of devices, which is written hourly: the later of both.
  lastSeen: { title: 'Last seen', unit: 'dateTimeFromNow', width: 145 },
  // By the list alone: of a device that reports, up to an hour old.
  listedSeen: { title: 'Last seen (device list)', unit: 'dateTimeFromNow', width: 175 },
  presence: { title: 'Presence', mappings: CODE_WORDS, width: 100 },
  sync: { title: 'Sync', mappings: [COVERAGE_STATE_CELL, NOT_REPORTED], colored: true, width: 120 },
  // Words where Tidemark reports nothing: how old the copy is by then, the panel "Lag" shows.
  lag: {
    title: 'Lag',
    unit: 'dtdurations',
    decimals: 0,
    mappings: [UP_TO_DATE_CELL, ...LAG_MAPPINGS],
    thresholds: NEUTRAL,
    colored: true,
    width: 125,
  },
  gap: { title: 'Time not read', unit: 's', decimals: 0, mappings: [NOTHING_MISSING], width: 120 },
  lifecycle: { title: 'Lifecycle', mappings: [LIFECYCLE], colored: true, width: 90 },
  model: { title: 'Model', width: 120 },
  id: { title: 'Id', width: 120 },
} as const satisfies Record<string, Column>;

/** What the column of the gaps means. */
export const GAP_SHOWN =
  '"Time not read": how much of the time to be synced Tidemark has not read yet; "none" does not mean that the device has sent readings.';

/** Columns of tables of the values of a range. */
export const VALUE_COLUMNS = {
  newest: { title: 'Newest', decimals: 2 },
  least: { title: 'Min', decimals: 2 },
  mean: { title: 'Mean', decimals: 2 },
  greatest: { title: 'Max', decimals: 2 },
  count: { title: 'Values', decimals: 0 },
} as const satisfies Record<string, Column>;

/**
 * Columns of tables of alerts, by the names of the API. Values are exact: one that is rounded could stand on the wrong
 * side of its threshold.
 */
export const ALERT_COLUMNS = {
  value: { title: 'Value in alert', unit: 'string', width: 115 },
  threshold: { title: 'Threshold', unit: 'string' },
  fireCount: { title: 'Fire count', decimals: 0, width: 100 },
} as const satisfies Record<string, Column>;

/** What these columns mean. */
export const ALERT_COLUMNS_SHOWN =
  '"Value in alert": the value that the API last returned with the alert; it is no current reading. "Fire count": how many times the rule has fired on this alert.';

/** How lines of thresholds look in the chart of a sensor, whose values are rounded to fewer decimals. */
export const THRESHOLD_LINE: Override['properties'] = [
  { id: 'color', value: { mode: 'fixed', fixedColor: 'red' } },
  { id: 'decimals', value: 3 },
  { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 8] } },
  { id: 'custom.showPoints', value: 'never' },
];

export const VALUES_SHOWN =
  'For each sensor the newest value of this range, minimum, mean and maximum, and the number of values.';

export const STOPPED = 'No report for more than 17 minutes: is Tidemark running?';
/** The same in a small panel, in letters that can be read. */
export const NOT_KNOWN = 'unknown';

/** What a number of the present needs: its queries, and how their answers are put together. */
interface Asked {
  readonly targets: readonly Target[];
  readonly transformations?: readonly Transformation[];
  readonly links?: readonly DataLink[];
  /** The one field that is shown, where there are others. */
  readonly fields?: string;
  readonly overrides?: readonly Override[];
  readonly w?: number;
}

export function onlineNow(asked: Asked): PanelSpec {
  return stat({
    title: 'Online',
    description: 'Devices that the workspace lists as online, at the end of the range. Red where Tidemark has stopped.',
    ...{ w: 4, h: 4, ...asked, unit: 'none', noValue: NOT_KNOWN },
    thresholds: steps('red', [1, 'green']),
  });
}

/** A number that had better be 0; not known where Tidemark has stopped. */
export function badCount(title: string, description: string, asked: Asked): PanelSpec {
  const look = { w: 4, h: 4, noValue: NOT_KNOWN, unit: 'none', thresholds: BAD_OR_UNKNOWN };
  return stat({ title, description, ...look, ...asked });
}

/** Alerts that are not resolved. */
export function openAlerts(description: string, asked: Asked): PanelSpec {
  return badCount('Open alerts', description, asked);
}

/** @param overrides colours by the target of the dashboard. */
export function lagStat(asked: Asked & { readonly overrides: readonly Override[] }, w: number): PanelSpec {
  const panel = stat({
    title: 'Lag',
    description:
      'How far the copy is behind: the time since the newest instant up to which a device is covered without a gap, for the median device and the 95th percentile. Tidemark writes the lag of each device at least every 15 minutes, so a smaller lag reads "< 15 mins". A silent device counts as up to date, because nothing newer exists. A device in its initial sync has no lag, unless its newest readings are late. Green within the target chosen above, yellow up to four times as large, red beyond. Red, with the instant up to which the data is complete, where nothing was reported for 17 minutes: Tidemark has stopped, or the database rejects its points. A device may have been seen after that instant: the newest readings count as complete only after the grace period (sync.grace_period).',
    ...{ w, h: 4, ...asked, noValue: STOPPED, unit: 's', decimals: 0 },
    thresholds: NEUTRAL,
  });
  // Red also where nothing is answered. A single number has its name too: it may be that of a stopped daemon.
  const defaults = { ...panel.defaults, color: { mode: 'fixed', fixedColor: 'red' } };
  return { ...panel, defaults, options: { ...panel.options, textMode: 'value_and_name' } } as PanelSpec;
}

/** What lag is good: of a device that runs, it is the grace period and up to a quarter of an hour. */
export const TARGET: Variable = {
  type: 'custom',
  name: 'target',
  label: 'Target of the lag (written every 15 min)',
  // In milliseconds: queries take it as a date, so that whatever stands in an address becomes a number.
  query: '15 mins : 900000,30 mins : 1800000,1 hour : 3600000,3 hours : 10800000,12 hours : 43200000',
  current: { text: '15 mins', value: '900000' },
  options: [],
  multi: false,
  includeAll: false,
  hide: 0,
};

/**
 * The description and style of an online-over-time chart; the step and how the results are combined differ by query
 * language.
 */
export function onlineOverTime(
  targets: readonly Target[],
  given: Pick<PanelSpec, 'description' | 'interval' | 'maxDataPoints' | 'transformations'>,
): PanelSpec {
  return lineChart({
    title: 'Online over time',
    ...{ w: 12, h: 7, targets, noValue: NO_DEVICES, unit: 'none', decimals: 0, min: 0, ...given },
    breakMs: 3 * HOUR_MS,
    ...(given.transformations === undefined ? { legend: 'list' } : { legend: 'none', displayName: 'Online' }),
  });
}

/** @param targets the lag of the median device, the 95th percentile, and the largest. */
export function lagOverTime(targets: readonly Target[]): PanelSpec {
  return lineChart({
    title: 'Lag over time',
    description:
      'The largest lag of each step, beyond the grace period (sync.grace_period): median, 95th percentile and maximum of the devices.',
    ...{ w: 12, h: 7, interval: '15m', targets, noValue: NO_DEVICES, unit: 's', min: 0 },
    breakMs: HOUR_MS,
  });
}

/** A sensor over time, once for each that is chosen. @param targets lines that are named after their sensor. */
export function sensorChart(targets: readonly Target[], interval: string): PanelSpec {
  return lineChart({
    title: '$sensor',
    description: 'The mean of each interval, a line for each device. A line breaks where an hour has no reading.',
    ...{ w: 12, h: 8, repeat: 'sensor', interval, targets },
    // Named after the sensor, so that the rules for units match; shown by the name of the device.
    displayName: `\${__field.labels.device_name}`,
    overrides: SENSOR_UNITS,
    noValue: NO_READINGS,
    unit: 'none',
    breakMs: HOUR_MS,
    legend: 'table',
  });
}

/** @param targets the readings of each hour, and -1 where an hour is not covered. */
export function coverageBand(targets: readonly Target[]): PanelSpec {
  return timeline({
    title: 'Coverage, hour by hour',
    description:
      'Green: covered, with readings. Blue: covered, and the device sent nothing. Pale: not covered yet, so readings may be missing. The current hour is covered shortly after it ends. Where a step is longer than an hour, one hour with readings makes it green.',
    ...{ w: 24, h: 5, interval: '1h', targets, mappings: COVERED },
    noValue: 'Not covered in this range.',
  });
}
