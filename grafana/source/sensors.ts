/** The dashboard "Sensors": one sensor across many devices. */
import { chosen, IN_RANGE, lines, OF_DEVICES, OF_WORKSPACE, tables } from './influxql.ts';
import { join, PLAIN, TO_DEVICE } from './looks.ts';
import type { DashboardSpec, InfluxTarget, PanelSpec } from './model.ts';
import { bars, grid, lineChart, NO_READINGS, stat } from './panels.ts';
import { SENSOR_UNITS } from './sensor-units.ts';
import { deviceVariable, HUB, MODEL, ONE_SENSOR, WORKSPACE } from './variables.ts';

const OF_ONE_SENSOR = chosen('sensor', 'one_sensor');
const OF_ALL = `telemetry WHERE ${IN_RANGE} AND ${OF_WORKSPACE} AND ${OF_ONE_SENSOR} AND ${OF_DEVICES}`;
const EACH = 'device_id, device_name';
const HOUR_MS = 3_600_000;

/** The newest value of each device, with the name that it had then. */
const NEWEST = `SELECT last(value) AS now, device_name FROM ${OF_ALL} GROUP BY device_id`;

/** A figure of all readings over time. */
function steps(figure: string): string {
  return `SELECT ${figure} FROM ${OF_ALL} GROUP BY time($__interval) fill(null)`;
}

/** Means of each device over time; with so many steps as a picture of many devices can show. */
function means(alias: string, gaps: 'none' | 'null'): InfluxTarget[] {
  return lines([`SELECT mean(value) FROM ${OF_ALL} GROUP BY time($__interval), sensor, ${EACH} fill(${gaps})`, alias]);
}

const NUMBERS: readonly PanelSpec[] = [
  stat({
    title: 'Devices',
    description: 'Devices that report the sensor in this range.',
    w: 4,
    h: 4,
    targets: lines([`SELECT count(now) FROM (SELECT last(value) AS now FROM ${OF_ALL} GROUP BY device_id)`, 'Devices']),
    noValue: '0',
    unit: 'none',
    thresholds: PLAIN,
  }),
  stat({
    title: 'All readings',
    description: 'Least, mean and greatest value of all of them in this range.',
    w: 12,
    h: 4,
    targets: lines([`SELECT min(value) AS least, mean(value) AS mean, max(value) AS greatest FROM ${OF_ALL}`, '$col']),
    noValue: NO_READINGS,
    unit: 'none',
    decimals: 2,
    thresholds: PLAIN,
  }),
  stat({
    title: 'Newest values',
    description: 'The middle one, and where the lowest and the highest twentieth begins: what is usual now.',
    w: 8,
    h: 4,
    targets: lines([
      `SELECT percentile(now, 5) AS "5 %", percentile(now, 50) AS middle, percentile(now, 95) AS "95 %" FROM (${NEWEST})`,
      '$col',
    ]),
    noValue: NO_READINGS,
    unit: 'none',
    decimals: 2,
    thresholds: PLAIN,
  }),
];

const OVER_TIME: readonly PanelSpec[] = [
  lineChart({
    title: '$one_sensor of the fleet',
    description:
      'The middle value, the band in which nine of ten lie, and the extremes: what lies far outside the band is an outlier.',
    w: 12,
    h: 9,
    interval: '1m',
    maxDataPoints: 100,
    // A query each: asked in one, they would wait for each other.
    targets: lines(
      [steps('percentile(value, 50)'), 'middle'],
      [steps('percentile(value, 5)'), '5 %'],
      [steps('percentile(value, 95)'), '95 %'],
      [steps('min(value)'), 'lowest'],
      [steps('max(value)'), 'highest'],
    ),
    noValue: NO_READINGS,
    unit: 'none',
    breakMs: HOUR_MS,
  }),
  {
    type: 'heatmap',
    title: 'Where the values are',
    description:
      'How many devices are at which value when: a second band is a second kind of place, a spot is an event.',
    w: 12,
    h: 9,
    interval: '1m',
    maxDataPoints: 48,
    targets: means('$tag_device_name', 'none'),
    defaults: { noValue: NO_READINGS, unit: 'none' },
    options: {
      calculate: true,
      calculation: { xBuckets: { mode: 'count', value: '48' }, yBuckets: { mode: 'count', value: '24' } },
      cellGap: 1,
      color: { mode: 'scheme', scheme: 'Blues', fill: 'blue', exponent: 0.5, steps: 32, reverse: false },
      exemplars: { color: 'rgba(255,0,255,0.7)' },
      filterValues: { le: 1e-9 },
      legend: { show: true },
      showValue: 'never',
      tooltip: { mode: 'single', yHistogram: true },
      yAxis: {},
    },
  },
  lineChart({
    title: '$one_sensor by device',
    description:
      'The mean of each interval, a line for each device. Choose a hub, a model or devices above to see fewer.',
    w: 24,
    h: 10,
    interval: '1m',
    maxDataPoints: 48,
    targets: means('$tag_sensor', 'null'),
    displayName: `\${__field.labels.device_name}`,
    overrides: SENSOR_UNITS,
    noValue: NO_READINGS,
    unit: 'none',
    breakMs: HOUR_MS,
    legend: 'none',
  }),
];

/** The ends of the ranking: each device once, also where it was renamed or has the name of another one. */
function extremes(pick: 'top' | 'bottom', title: string, description: string): PanelSpec {
  return bars({
    title,
    description,
    w: 12,
    h: 9,
    targets: tables(`SELECT ${pick}(now, 10), device_name FROM (${NEWEST})`),
    noValue: NO_READINGS,
    unit: 'none',
    decimals: 2,
    thresholds: PLAIN,
  });
}

const RANKING: readonly PanelSpec[] = [
  extremes('top', 'Highest now', 'The ten devices with the highest newest value.'),
  extremes('bottom', 'Lowest now', 'The ten devices with the lowest newest value.'),
  grid({
    title: 'All devices',
    description:
      'Sort by a column: "Spread" finds what swings (and, at 0, what is stuck), "Values" what reports seldom, "Mean" the outliers.',
    w: 24,
    h: 12,
    targets: tables(
      `SELECT min(value) AS least, mean(value) AS mean, max(value) AS greatest, max(value) - min(value) AS spread, count(value) AS count FROM ${OF_ALL} GROUP BY device_id`,
      NEWEST,
    ),
    noValue: NO_READINGS,
    // Figures of the device, whatever it was called, beside its newest value and name.
    transformations: [join('device_id')],
    columns: {
      device_name: { title: 'Device', links: [TO_DEVICE], width: 220 },
      now: { title: 'Now', decimals: 2 },
      least: { title: 'Least', decimals: 2 },
      mean: { title: 'Mean', decimals: 2 },
      greatest: { title: 'Greatest', decimals: 2 },
      spread: { title: 'Spread', decimals: 2 },
      count: { title: 'Values', decimals: 0 },
      device_id: { title: 'Id' },
      'Time 1': { title: 'From', hidden: true },
      'Time 2': { title: 'Measured', unit: 'dateTimeFromNow' },
    },
    sortBy: [{ displayName: 'Now', desc: true }],
  }),
];

export const SENSORS_BOARD: DashboardSpec = {
  uid: 'tidemark-sensors',
  title: 'Tidemark / Sensors',
  description: 'One sensor across many devices: what is usual, and who is not?',
  source: 'influxdb',
  from: 'now-24h',
  refresh: '5m',
  variables: [WORKSPACE, HUB, MODEL, ONE_SENSOR, deviceVariable('devices', 'listed')],
  sections: [
    { title: 'Now', panels: NUMBERS },
    { title: 'Over time', panels: OVER_TIME },
    { title: 'Ranking', panels: RANKING },
  ],
};
