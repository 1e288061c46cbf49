/** The dashboard "Device (PromQL)": one device, or several side by side. For those who have a VictoriaMetrics. */
import {
  ALERT_COLUMNS_SHOWN,
  coverageBand,
  GAP_SHOWN,
  sensorChart,
  THRESHOLD_LINE,
  VALUE_COLUMNS,
  VALUES_SHOWN,
} from './both.ts';
import { ONLINE, toDevice, words } from './looks.ts';
import type { DashboardSpec, PanelSpec, PromAnnotation } from './model.ts';
import { grid, lineChart, NO_DEVICES, NO_READINGS, timeline } from './panels.ts';
import {
  AT_THE_END,
  DEVICE,
  held,
  names,
  OF_DEVICE,
  OF_SENSOR,
  OF_WORKSPACE,
  of,
  ofInterval,
  ofRange,
  openThresholds,
  renamed,
  SENSORS,
  WORKSPACE,
  withUnit,
} from './points.ts';
import { presentTable, series } from './promql.ts';
import { deviceTable, openAlertTable } from './promql-fleet.ts';
import { SENSOR_UNITS, UNIT_COLUMN } from './sensor-units.ts';

const OF_CHOSEN = `${OF_DEVICE}, ${OF_SENSOR}`;
const OF_ALL = `${OF_WORKSPACE}, ${OF_SENSOR}`;
const MERGE = { id: 'merge', options: {} } as const;

/** Draws the thresholds of open alerts into the chart of a sensor. */
function withThresholds(panel: PanelSpec): PanelSpec {
  const displayName = {
    id: 'displayName',
    value: `threshold of alert \${__field.labels.alert_id}: \${__field.labels.device_name}`,
  };
  return {
    ...panel,
    description: `${panel.description} Dashed: the thresholds of alerts, only while an alert is open: without one, a sensor has no dashed line.`,
    overrides: [
      ...(panel.overrides ?? []),
      { matcher: { id: 'byFrameRefID', options: 'B' }, properties: [displayName, ...THRESHOLD_LINE] },
    ],
  };
}

const VALUES: readonly PanelSpec[] = [
  grid({
    title: 'Values in this range',
    description: VALUES_SHOWN,
    w: 24,
    h: 7,
    targets: presentTable(
      withUnit(ofRange('last', OF_CHOSEN)),
      withUnit(ofRange('min', OF_CHOSEN)),
      withUnit(ofRange('avg', OF_CHOSEN)),
      withUnit(ofRange('max', OF_CHOSEN)),
      withUnit(ofRange('count', OF_CHOSEN)),
    ),
    noValue: NO_READINGS,
    transformations: [MERGE],
    columns: {
      sensor: { title: 'Sensor' },
      device_name: { title: 'Device' },
      unit: UNIT_COLUMN,
      'Value #A': VALUE_COLUMNS.newest,
      'Value #B': VALUE_COLUMNS.least,
      'Value #C': VALUE_COLUMNS.mean,
      'Value #D': VALUE_COLUMNS.greatest,
      'Value #E': VALUE_COLUMNS.count,
      device_id: { title: 'Id', hidden: true },
      Time: { title: 'Time', hidden: true },
    },
    sortBy: [{ displayName: 'Sensor' }],
  }),
  withThresholds(
    sensorChart(
      series([ofInterval(OF_CHOSEN), '{{sensor}}'], [openThresholds(OF_CHOSEN), '{{sensor}} threshold']),
      '1m',
    ),
  ),
];

/** A quantile of the means of all devices of the workspace. */
function ofFleet(q: number): string {
  return `quantile by (sensor) (${q}, ${ofInterval(OF_ALL)})`;
}

const ACROSS: readonly PanelSpec[] = [
  lineChart({
    title: '$sensor across all devices',
    description:
      'All devices of the workspace, hour by hour: the median, the band with nine devices in ten, and the extremes. Compare the chosen device with them.',
    ...{ w: 12, h: 8, repeat: 'sensor', interval: '1h', noValue: NO_READINGS, unit: 'none' },
    targets: series(
      [ofFleet(0.5), '{{sensor}} median'],
      [ofFleet(0.05), '{{sensor}} 5 %'],
      [ofFleet(0.95), '{{sensor}} 95 %'],
      [ofFleet(0), '{{sensor}} lowest'],
      [ofFleet(1), '{{sensor}} highest'],
    ),
    overrides: SENSOR_UNITS,
    breakMs: 3 * 3_600_000,
  }),
  grid({
    title: 'The same sensors elsewhere',
    description:
      'The newest value of each device of the workspace that reported one of the sensors in the last three hours.',
    w: 24,
    h: 10,
    targets: presentTable(withUnit(`max by (sensor, device_id, device_name) (${held('telemetry_value', OF_ALL)})`)),
    noValue: 'No device reported one of these sensors in the three hours before the end of the range.',
    columns: {
      sensor: { title: 'Sensor' },
      device_name: { title: 'Device', links: [toDevice('tidemark-vm-device', 'victoria_datasource')], width: 260 },
      unit: UNIT_COLUMN,
      Value: VALUE_COLUMNS.newest,
      device_id: { title: 'Id' },
      Time: { title: 'Time', hidden: true },
    },
    sortBy: [{ displayName: 'Newest', desc: true }],
  }),
];

const STATES: readonly PanelSpec[] = [
  timeline({
    title: 'Online',
    description:
      'Whether each device was online. A step with several states shows the worst. After a device is renamed, its old name continues for three hours.',
    ...{ w: 24, h: 6, interval: '1m', noValue: NO_DEVICES, mappings: [ONLINE] },
    targets: series([
      `min by (device_id, device_name) (min_over_time(${of('device_online', OF_DEVICE)}[$__interval]) or ${held('device_online', OF_DEVICE)})`,
      '{{device_name}}',
    ]),
  }),
  coverageBand(
    series([
      `(sum by (device_id) (sum_over_time(${of('coverage_hour_readings', OF_DEVICE)}[$__interval])) or -1 * group by (device_id) (${names(OF_DEVICE, AT_THE_END)})) * on (device_id) group_left (device_name) ${names(OF_DEVICE, AT_THE_END)}`,
      '{{device_name}}',
    ]),
  ),
  timeline({
    title: 'Switches',
    description:
      'Sensors that report true or false; a value is shown for at most an hour. Texts are not in this database.',
    ...{ w: 24, h: 5, interval: '1m' },
    targets: series([
      `max by (sensor, device_id, device_name) (last_over_time(${of('telemetry_flag', OF_DEVICE)}[1h]))`,
      '{{device_name}}: {{sensor}}',
    ]),
    noValue: 'No sensor of the device reports true or false in this range.',
    mappings: [words({ '0': ['false', 'text'], '1': ['true', 'green'] })],
  }),
];

/** A name is new where it is reported first beside an earlier one. */
const RENAMES: PromAnnotation = {
  name: 'Renames',
  iconColor: 'purple',
  expr: renamed(OF_DEVICE),
  titleFormat: '{{device_name}} (renamed)',
};

export const PROMQL_DEVICE: DashboardSpec = {
  uid: 'tidemark-vm-device',
  title: 'Tidemark / Device (PromQL)',
  description:
    'One device, or several side by side: open alerts, values, states, coverage, and its sensors elsewhere. For data in VictoriaMetrics.',
  source: 'victoriametrics',
  from: 'now-24h',
  refresh: '1m',
  variables: [WORKSPACE, DEVICE, SENSORS],
  annotations: [RENAMES],
  sections: [
    {
      title: 'Now',
      panels: [
        deviceTable(OF_DEVICE, {
          title: 'The device',
          description: `The chosen devices as the device list last showed them, and how far their copy is behind ("Lag"). "Last seen": the time of the newest reading, or that in the device list. ${GAP_SHOWN}`,
          h: 5,
        }),
        openAlertTable(OF_DEVICE, {
          title: 'Open alerts',
          description: `The alerts of the chosen devices that are not resolved. ${ALERT_COLUMNS_SHOWN}`,
          h: 5,
        }),
      ],
    },
    { title: 'Values', panels: VALUES },
    { title: 'States', panels: STATES },
    { title: 'Across devices', panels: ACROSS },
  ],
};
