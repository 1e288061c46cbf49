/** The dashboard "Sensors": one sensor across many devices. */
import { HOUR_MS } from '../../src/core/time.ts';
import { VALUE_COLUMNS } from './both.ts';
import { chosen, HOURLY, IN_RANGE, lines, OF_DEVICES, OF_FLEET, OF_WORKSPACE, tables } from './influxql.ts';
import { join, PLAIN, TO_DEVICE, toPanel } from './looks.ts';
import type { DashboardSpec, Override, PanelSpec, Variable } from './model.ts';
import { bars, grid, lineChart, NO_READINGS, stat } from './panels.ts';
import { SENSOR_UNITS, UNIT_COLUMN } from './sensor-units.ts';
import { choice, deviceVariable, HUB, MODEL, ONE_SENSOR, WORKSPACE } from './variables.ts';

const OF_ONE_SENSOR = chosen('sensor', 'one_sensor');
const OF_ALL = `telemetry WHERE ${IN_RANGE} AND ${OF_WORKSPACE} AND ${OF_ONE_SENSOR} AND ${OF_DEVICES}`;
const EACH = 'device_id, device_name';

/** The newest value of each device in the last hour of the range, with the name that it had then: an older one is not of now. */
const NEWEST = `SELECT last(value) AS now, device_name, sensor FROM ${OF_ALL} AND time >= \${__to}ms - 1h GROUP BY device_id`;

/** A figure of all readings over time. */
function steps(figure: string): string {
  return `SELECT ${figure} FROM ${OF_ALL} GROUP BY time($__interval), sensor fill(null)`;
}

const OF_SAMPLE = `telemetry WHERE ${IN_RANGE} AND ${OF_WORKSPACE} AND ${OF_ONE_SENSOR} AND ${chosen('device_id', 'sample')}`;

/**
 * A percentile of the devices over time, each by its mean: of single readings, the device that reports most often would
 * be the usual one.
 */
function ofDevices(percent: number): string {
  // A low percentile is the high one of the negative means: for few devices, InfluxDB returns the lowest value for the
  // tenth percentile.
  const sign = percent < 50 ? '-1 * ' : '';
  const means = `SELECT ${sign}mean(value) AS mean FROM ${OF_SAMPLE} GROUP BY time($__interval), device_id, sensor fill(none)`;
  return `SELECT ${sign}percentile(mean, ${Math.max(percent, 100 - percent)}) FROM (${means}) WHERE ${IN_RANGE} GROUP BY time($__interval), sensor fill(null)`;
}

/** Units for fields that are named "sensor figure"; shown by the name of the figure. */
function inUnits(...figures: readonly string[]): readonly Override[] {
  return [
    ...SENSOR_UNITS,
    ...figures.map((figure) => ({
      matcher: { id: 'byRegexp', options: `/ ${figure}$/` } as const,
      properties: [{ id: 'displayName', value: figure }],
    })),
  ];
}

const LIST = [toPanel('tidemark-sensors', 'All devices', 'List the devices')];

const NUMBERS: readonly PanelSpec[] = [
  stat({
    title: 'Devices in this range',
    description: 'Devices that report the sensor in this range.',
    w: 4,
    h: 4,
    targets: lines([`SELECT count(now) FROM (SELECT last(value) AS now FROM ${OF_ALL} GROUP BY device_id)`, 'Devices']),
    noValue: '0',
    unit: 'none',
    thresholds: PLAIN,
    links: LIST,
  }),
  stat({
    title: 'All readings of $one_sensor in this range',
    description: 'Minimum, mean and maximum of all readings in this range.',
    w: 10,
    h: 4,
    targets: lines([
      `SELECT min(value) AS minimum, mean(value) AS mean, max(value) AS maximum FROM ${OF_ALL} GROUP BY sensor`,
      '$tag_sensor $col',
    ]),
    noValue: NO_READINGS,
    unit: 'none',
    decimals: 2,
    thresholds: PLAIN,
    links: LIST,
    overrides: inUnits('minimum', 'mean', 'maximum'),
  }),
  stat({
    title: 'Newest values of $one_sensor in the last hour',
    description:
      'The lowest, the median and the highest of the newest values of the devices that sent one in the last hour.',
    w: 10,
    h: 4,
    targets: lines([
      `SELECT min(now) AS lowest, percentile(now, 50) AS median, max(now) AS highest FROM (${NEWEST}) GROUP BY sensor`,
      '$tag_sensor $col',
    ]),
    noValue: NO_READINGS,
    unit: 'none',
    decimals: 2,
    thresholds: PLAIN,
    links: LIST,
    overrides: inUnits('lowest', 'median', 'highest'),
  }),
];

/** How many devices have a line at each end: as many as a reader can distinguish. */
const AT_EACH_END = 5;

const OF_HIGHEST = chosen('device_id', 'highest');
/** Where the fleet is so small that a device is among both, it has one line. */
const OF_LOWEST = `${chosen('device_id', 'lowest')} AND ${OF_HIGHEST.replace('=~', '!~')}`;

/** The mean of each interval, a line for each device. */
function linesOf(which: string): string {
  return `SELECT mean(value) FROM ${OF_ALL} AND ${which} GROUP BY time($__interval), sensor, ${EACH} fill(null)`;
}

/** Names the lines of a query, and draws them so that the two ends differ. */
function atEnd(refId: string, end: string, style: Override['properties']): Override {
  const name = { id: 'displayName', value: `${end}: \${__field.labels.device_name}` };
  return { matcher: { id: 'byFrameRefID', options: refId }, properties: [name, ...style] };
}

const OVER_TIME: readonly PanelSpec[] = [
  lineChart({
    title: '$one_sensor of the fleet',
    description:
      'The median of the devices, the band with eight devices in ten (each by its mean of the interval), and the lowest and the highest reading. A value far outside the band is an outlier. With more than 100 devices, median and band are computed from a sample of 100, the extremes from all devices.',
    w: 24,
    h: 9,
    interval: '10m',
    maxDataPoints: 50,
    // A query each: in one query they would wait for each other.
    targets: lines(
      [ofDevices(50), '$tag_sensor median'],
      [ofDevices(10), '$tag_sensor p10'],
      [ofDevices(90), '$tag_sensor p90'],
      [steps('min(value)'), '$tag_sensor lowest'],
      [steps('max(value)'), '$tag_sensor highest'],
    ),
    noValue: NO_READINGS,
    unit: 'none',
    breakMs: HOUR_MS,
    overrides: inUnits('median', 'p10', 'p90', 'lowest', 'highest'),
  }),
  lineChart({
    title: '$one_sensor by device: five highest and five lowest now',
    description:
      'The mean of each interval for the five devices with the highest newest value in the last hour, and dashed for the five with the lowest. Choose a hub, a model or devices above to see others.',
    w: 24,
    h: 12,
    interval: '1m',
    maxDataPoints: 100,
    targets: lines([linesOf(OF_HIGHEST), '$tag_sensor'], [linesOf(OF_LOWEST), '$tag_sensor']),
    overrides: [
      ...SENSOR_UNITS,
      atEnd('A', 'highest', []),
      atEnd('B', 'lowest', [
        { id: 'custom.lineStyle', value: { fill: 'dash', dash: [10, 6] } },
        { id: 'custom.showPoints', value: 'never' },
      ]),
    ],
    noValue: NO_READINGS,
    unit: 'none',
    breakMs: HOUR_MS,
    legend: 'list',
  }),
];

/**
 * The ends of the ranking: each device once, also where it was renamed or has the name of another one. Values and names
 * are lines of one answer, so that the values are named after their sensor and have its unit; the second query is for
 * the order.
 */
function extremes(pick: 'top' | 'bottom', title: string, description: string): PanelSpec {
  return bars({
    title,
    description,
    w: 12,
    h: 9,
    targets: lines(
      [`SELECT ${pick}(now, 10), device_name FROM (${NEWEST}) GROUP BY sensor`, '$tag_sensor $col'],
      [`SELECT ${pick}(now, 10) AS rank FROM (${NEWEST})`, '$col'],
    ),
    noValue: NO_READINGS,
    unit: 'none',
    decimals: 2,
    thresholds: PLAIN,
    transformations: [
      { id: 'concatenate', options: {} },
      { id: 'sortBy', options: { sort: [{ field: 'rank', desc: pick === 'top' }] } },
      {
        id: 'organize',
        options: { excludeByName: { rank: true }, indexByName: {}, renameByName: {}, includeByName: {} },
      },
    ],
    overrides: SENSOR_UNITS,
  });
}

const RANKING: readonly PanelSpec[] = [
  extremes(
    'top',
    'Highest now',
    'The ten devices with the highest newest value, of those that sent one in the last hour.',
  ),
  extremes(
    'bottom',
    'Lowest now',
    'The ten devices with the lowest newest value, of those that sent one in the last hour.',
  ),
  grid({
    title: 'All devices',
    description:
      'Figures of this range. Sort by a column: "Spread" (max minus min) finds unstable sensors (and, at 0, stuck ones), "Values" devices that report rarely, "Mean" outliers.',
    w: 24,
    h: 12,
    targets: tables(
      `SELECT min(value) AS least, mean(value) AS mean, max(value) AS greatest, max(value) - min(value) AS spread, count(value) AS count FROM ${OF_ALL} GROUP BY device_id`,
      `SELECT last(value) AS now, device_name, sensor AS unit FROM ${OF_ALL} GROUP BY device_id`,
    ),
    noValue: NO_READINGS,
    // Figures of the device, whatever it was called, beside its newest value and name.
    transformations: [join('device_id')],
    columns: {
      device_name: { title: 'Device', links: [TO_DEVICE], width: 220 },
      unit: UNIT_COLUMN,
      now: VALUE_COLUMNS.newest,
      least: VALUE_COLUMNS.least,
      mean: VALUE_COLUMNS.mean,
      greatest: VALUE_COLUMNS.greatest,
      spread: { title: 'Spread', decimals: 2 },
      count: VALUE_COLUMNS.count,
      device_id: { title: 'Id' },
      Time: { title: 'From', hidden: true },
    },
    sortBy: [{ displayName: 'Newest', desc: true }],
  }),
];

/** What is to be looked after next: the lowest newest values of sensors whose name shows what they measure. */
function weakest(title: string, pattern: string, description: string): PanelSpec {
  const where = `telemetry WHERE ${IN_RANGE} AND ${OF_WORKSPACE} AND ${OF_DEVICES} AND sensor =~ /${pattern}/`;
  return grid({
    ...{ title, description, w: 12, h: 10, noValue: 'No device reports such a sensor in this range.' },
    targets: tables(
      `SELECT sensor, device_name, device_id, now, before, sensor AS unit FROM (SELECT last(value) AS now, first(value) AS before FROM ${where} GROUP BY sensor, device_id, device_name)`,
    ),
    transformations: [
      {
        id: 'calculateField',
        options: {
          mode: 'binary',
          binary: {
            left: { matcher: { id: 'byName', options: 'now' } },
            operator: '-',
            right: { matcher: { id: 'byName', options: 'before' } },
          },
          alias: 'change',
        },
      },
    ],
    columns: {
      device_name: { title: 'Device', links: [TO_DEVICE], width: 220 },
      sensor: { title: 'Sensor' },
      unit: UNIT_COLUMN,
      now: VALUE_COLUMNS.newest,
      change: { title: 'Change in this range', decimals: 2 },
      device_id: { title: 'Id' },
      before: { title: 'Before', hidden: true },
      Time: { title: 'From', hidden: true },
    },
    sortBy: [{ displayName: 'Sensor' }, { displayName: 'Newest' }],
  });
}

const BATTERIES: readonly PanelSpec[] = [
  weakest(
    'Batteries: replace next',
    '(?i)batt|(^|[._ -])(soc|vbat)([._ -]|$)',
    'The newest value of each battery sensor, the lowest first, with its change in this range.',
  ),
  weakest(
    'Signal: weakest',
    '(?i)rssi|signal|snr|(^|[._ -])lqi([._ -]|$)',
    'The newest value of each sensor of the radio link, the weakest first, with its change in this range.',
  ),
];

/** Devices that are picked by their newest value; nobody chooses them. */
function picked(name: 'highest' | 'lowest', pick: 'top' | 'bottom'): Variable {
  // The ids alone: each column of an answer would be in the list.
  const query = `SELECT id FROM (SELECT ${pick}(now, ${AT_EACH_END}), device_id AS id FROM (${NEWEST}))`;
  return choice({ name, label: name, query, all: 'listed', hide: 2 });
}

/**
 * A hundred of the chosen devices: those with the greatest remainders of the time they were seen last, which is
 * independent of the values.
 */
const SAMPLE: Variable = choice({
  name: 'sample',
  label: 'sample',
  query: `SELECT id FROM (SELECT top(rest, 100), device_id AS id FROM (SELECT last(last_seen_ms) % 997 AS rest FROM device WHERE ${HOURLY} AND ${OF_FLEET} AND ${OF_DEVICES} GROUP BY device_id))`,
  all: 'listed',
  hide: 2,
});

export const SENSORS_BOARD: DashboardSpec = {
  uid: 'tidemark-sensors',
  title: 'Tidemark / Sensors',
  description: 'One sensor across many devices: which values are usual, and which devices are outliers?',
  source: 'influxdb',
  from: 'now-24h',
  refresh: '5m',
  variables: [
    WORKSPACE,
    HUB,
    MODEL,
    ONE_SENSOR,
    deviceVariable('devices', 'listed'),
    picked('highest', 'top'),
    picked('lowest', 'bottom'),
    SAMPLE,
  ],
  sections: [
    { title: 'Overview', panels: NUMBERS },
    { title: 'Over time', panels: OVER_TIME },
    { title: 'Ranking', panels: RANKING },
    { title: 'Batteries and signal', panels: BATTERIES },
  ],
};
