/**
 * What the dashboards in InfluxQL and those in PromQL have in common: panels and columns that look the same and say the
 * same, whichever database is asked. Each is given its queries.
 */
import { BAD_IF_ANY, type Column, HELD, LAG, ONLINE, steps } from './looks.ts';
import type { PanelSpec, Target } from './model.ts';
import { lineChart, NO_DEVICES, NO_READINGS, stat, timeline } from './panels.ts';
import { SENSOR_UNITS } from './sensor-units.ts';

const HOUR_MS = 3_600_000;

/** Columns of tables of devices. */
export const DEVICE_COLUMNS = {
  online: { title: 'Online', mappings: [ONLINE], colored: true, width: 110 },
  lastSeen: { title: 'Last seen', unit: 'dateTimeFromNow' },
  lag: { title: 'Behind by', unit: 's', decimals: 0, thresholds: LAG, colored: true },
  gap: { title: 'Missing', unit: 's', decimals: 0 },
  model: { title: 'Model' },
  id: { title: 'Id' },
} as const satisfies Record<string, Column>;

/** Columns of tables of the values of a range. */
export const VALUE_COLUMNS = {
  now: { title: 'Now', decimals: 2 },
  least: { title: 'Least', decimals: 2 },
  mean: { title: 'Mean', decimals: 2 },
  greatest: { title: 'Greatest', decimals: 2 },
  count: { title: 'Values', decimals: 0 },
} as const satisfies Record<string, Column>;

export const VALUES_TOLD =
  'For each sensor the newest value, the least, the mean and the greatest one, and how many there are.';

export function onlineNow(targets: readonly Target[]): PanelSpec {
  return stat({
    title: 'Online',
    description: 'Devices of which the workspace says, at the end of the range, that they report.',
    ...{ w: 4, h: 4, targets, unit: 'none' },
    noValue: 'No states at the end of this range. The status page of Tidemark (port 9464) says why.',
    thresholds: steps('red', [1, 'green']),
  });
}

/** A number of devices or alerts that had better be none. */
export function badCount(title: string, description: string, targets: readonly Target[]): PanelSpec {
  return stat({
    ...{ title, description, w: 4, h: 4, targets, noValue: '0', unit: 'none' },
    thresholds: BAD_IF_ANY,
  });
}

/** @param targets the lag of the middle device, and that of all but the worst 5 %. */
export function behindNow(targets: readonly Target[], w: number): PanelSpec {
  return stat({
    title: 'Behind by',
    description:
      'How old the copy of the workspace in this database is: the newest stretch that is not held yet, for the middle device and for all but the worst 5 %.',
    ...{ w, h: 4, targets, noValue: NO_DEVICES, unit: 's', decimals: 0 },
    thresholds: LAG,
  });
}

/** How an online-over-time chart is said and drawn: what a step is differs by the language. */
export function onlineOverTime(
  targets: readonly Target[],
  { description, interval }: { readonly description: string; readonly interval: string },
): PanelSpec {
  return lineChart({
    title: 'Online over time',
    description,
    ...{ w: 12, h: 6, interval, targets, noValue: NO_DEVICES, unit: 'none', decimals: 0, min: 0 },
    breakMs: 3 * HOUR_MS,
    legend: targets.length > 1 ? 'list' : 'none',
  });
}

/** @param targets the lag of the middle device, of all but 5 %, and of the worst. */
export function behindOverTime(targets: readonly Target[]): PanelSpec {
  return lineChart({
    title: 'Behind over time',
    description: 'How old the copy in this database was, hour by hour: the middle device, all but 5 %, the worst one.',
    ...{ w: 12, h: 6, interval: '1h', targets, noValue: NO_DEVICES, unit: 's', decimals: 0, min: 0 },
    breakMs: 3 * HOUR_MS,
  });
}

/** A sensor over time, once for each that is chosen. @param targets lines that are named after their sensor. */
export function sensorChart(targets: readonly Target[], interval: string): PanelSpec {
  return lineChart({
    title: '$sensor',
    description: 'The mean of each interval, a line for each device. A line breaks where nothing came for an hour.',
    ...{ w: 12, h: 8, repeat: 'sensor', interval, targets },
    // Named after the sensor, so that the rules for units fit; shown by the name of the device.
    displayName: `\${__field.labels.device_name}`,
    overrides: SENSOR_UNITS,
    noValue: NO_READINGS,
    unit: 'none',
    breakMs: HOUR_MS,
    legend: 'table',
  });
}

/** @param targets the readings of each hour, and -1 where an hour is not held. */
export function coverageBand(targets: readonly Target[]): PanelSpec {
  return timeline({
    title: 'Coverage, hour by hour',
    description:
      'Green: held, with readings. Blue: held, and the device sent nothing. Pale: not synced yet, so nothing can be said. The running hour settles a little later. Where a step is longer than an hour, one hour with readings makes it green.',
    ...{ w: 24, h: 5, interval: '1h', targets, mappings: HELD },
    noValue: 'Not synced in this range: no hour of it is held in full yet.',
  });
}
