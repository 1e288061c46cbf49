/** The dashboard "Device": everything about one device, or several side by side. */
import { HOUR_MS } from '../../src/core/time.ts';
import {
  ALERT_COLUMNS,
  ALERT_COLUMNS_SHOWN,
  coverageBand,
  DEVICE_COLUMNS,
  GAP_SHOWN,
  sensorChart,
  THRESHOLD_LINE,
  VALUE_COLUMNS,
  VALUES_SHOWN,
} from './both.ts';
import { HUB_NAMES, LAST_SEEN, SEEN, SEEN_FACTS, WITH_HUB } from './fleet.ts';
import {
  chosen,
  DAILY,
  FACTS,
  FACTS_BY_DAY,
  HOURLY,
  IN_RANGE,
  lines,
  newest,
  newestBy,
  OF_DEVICE,
  OF_SENSOR,
  OF_WORKSPACE,
  since,
  tables,
} from './influxql.ts';
import { ONLINE_FACTS, REPORTS, reportsOf, SYNC, SYNC_FACTS, SYNC_GAP, SYNC_LAG, syncOf } from './lag.ts';
import {
  ALERT_STATUS,
  COVERAGE_STATE,
  hidden,
  join,
  ONLINE,
  ONLINE_CELL,
  ONLINE_NOW,
  onlineNow,
  only,
  TO_DEVICE,
  words,
} from './looks.ts';
import type { Annotation, DashboardSpec, Override, PanelSpec, Transformation } from './model.ts';
import { grid, NO_DEVICES, NO_READINGS, timeline } from './panels.ts';
import { UNIT_COLUMN } from './sensor-units.ts';
import { deviceVariable, HUB, MODEL, PARENT, SENSORS, WORKSPACE } from './variables.ts';

const EACH = 'device_id, device_name';

const FACTS_NOW: PanelSpec = grid({
  title: 'The device',
  description: `The chosen devices as the device list last showed them, and how far their copy is behind ("Lag"). "Last seen": the time of the newest reading, or that in the device list. "Sync" and "Lag" are "unknown" where Tidemark has not reported for 17 minutes. ${GAP_SHOWN}`,
  w: 24,
  h: 5,
  targets: tables(
    newestBy(
      'label',
      [
        ...['device_name', 'online', 'presence', 'lifecycle_status', 'last_seen_ms', 'parent_device_id', 'model_id'],
        ...['firmware_version', 'tags'],
      ],
      `device WHERE ${HOURLY} AND ${OF_DEVICE}`,
      'device_id',
    ),
    ...syncOf(OF_DEVICE),
    `SELECT last(value) AS reading FROM telemetry WHERE ${IN_RANGE} AND ${OF_DEVICE} GROUP BY device_id`,
    HUB_NAMES,
  ),
  noValue: NO_DEVICES,
  transformations: [
    { ...join('device_id'), filter: { id: 'byRefId', options: '/^[A-E]$/' } },
    ...WITH_HUB,
    ...LAST_SEEN,
    ...SYNC,
    onlineNow(),
  ],
  columns: {
    device_name: { title: 'Name', width: 150 },
    [ONLINE_NOW]: DEVICE_COLUMNS.online,
    state: DEVICE_COLUMNS.sync,
    [SYNC_LAG]: DEVICE_COLUMNS.lag,
    [SEEN]: DEVICE_COLUMNS.lastSeen,
    presence: DEVICE_COLUMNS.presence,
    [SYNC_GAP]: DEVICE_COLUMNS.gap,
    lifecycle_status: DEVICE_COLUMNS.lifecycle,
    hub: { title: 'Hub', width: 160 },
    model_id: DEVICE_COLUMNS.model,
    firmware_version: { title: 'Firmware', width: 90 },
    device_id: { ...DEVICE_COLUMNS.id, width: 110 },
    tags: { title: 'Tags' },
    ...hidden(
      'Time device',
      'Time coverage',
      'label',
      'parent_device_id',
      'online',
      ...SYNC_FACTS,
      'is_addon',
      ...SEEN_FACTS,
    ),
  },
});

/** The alerts of the device with their last state, the newest first. */
function alertsOfDevice(
  panel: Pick<PanelSpec, 'title' | 'description' | 'w' | 'h'> & { readonly noValue: string },
  { states, which }: { readonly states: string; readonly which: readonly Transformation[] },
): PanelSpec {
  return grid({
    ...panel,
    targets: tables(
      newest(
        ['device_name', 'sensor', 'sensor AS unit', 'kind', 'status', 'open', 'value', 'fire_count'],
        `alert_state WHERE ${states} AND ${OF_DEVICE}`,
        'alert_id',
      ),
      newest(['rule_name', 'condition', 'threshold'], `alert WHERE ${FACTS} AND ${OF_DEVICE}`, 'alert_id'),
    ),
    transformations: [join('alert_id'), only('rule_name', 'isNotNull'), ...which],
    columns: {
      'Time alert': { title: 'Opened', unit: 'dateTimeAsIso', width: 170 },
      rule_name: { title: 'Rule' },
      status: { title: 'Status', mappings: [ALERT_STATUS], colored: true },
      device_name: { title: 'Device' },
      sensor: { title: 'Sensor' },
      unit: UNIT_COLUMN,
      value: ALERT_COLUMNS.value,
      threshold: ALERT_COLUMNS.threshold,
      condition: { title: 'Condition', width: 200 },
      fire_count: ALERT_COLUMNS.fireCount,
      kind: { title: 'Kind' },
      ...hidden('Time alert_state', 'alert_id', 'open'),
    },
    sortBy: [{ displayName: 'Opened', desc: true }],
  });
}

const OPEN_ALERTS = alertsOfDevice(
  {
    title: 'Open alerts',
    description: `The alerts of the chosen devices that are not resolved, the newest first. ${ALERT_COLUMNS_SHOWN}`,
    ...{ w: 24, h: 5, noValue: 'No open alert is reported.' },
  },
  { states: DAILY, which: [only('open', 'equal', 1)] },
);

const TELEMETRY = `telemetry WHERE ${IN_RANGE} AND ${OF_DEVICE} AND ${OF_SENSOR}`;

const ABOVE = 'above|over|exceed|greater|higher|more|>';
const BELOW = 'below|under|less|lower|<';

/**
 * Thresholds by the side on which they are crossed, as far as the condition, a text for people, has a word for it: the
 * second query of a sensor's chart and the next ones.
 */
const THRESHOLDS = [
  { side: 'upper threshold', where: `condition =~ /(?i)${ABOVE}/` },
  { side: 'lower threshold', where: `condition =~ /(?i)${BELOW}/ AND condition !~ /(?i)${ABOVE}/` },
  { side: 'threshold', where: `condition !~ /(?i)${ABOVE}|${BELOW}/` },
] as const;

const THRESHOLD_LOOKS: readonly Override[] = THRESHOLDS.map(({ side }, at) => ({
  matcher: { id: 'byFrameRefID', options: String.fromCharCode('B'.charCodeAt(0) + at) },
  properties: [{ id: 'displayName', value: `${side}: \${__field.labels.device_name}` }, ...THRESHOLD_LINE],
}));

/** Draws the thresholds of alerts into the chart of a sensor. */
function withThresholds(panel: PanelSpec): PanelSpec {
  return {
    ...panel,
    description: `${panel.description} Dashed: the thresholds of the newest alerts of the last year.`,
    overrides: [...(panel.overrides ?? []), ...THRESHOLD_LOOKS],
  };
}

const VALUES: readonly PanelSpec[] = [
  grid({
    title: 'Values in this range',
    description: VALUES_SHOWN,
    w: 24,
    h: 7,
    targets: tables(
      `SELECT sensor, device_name, device_id, newest, least, mean, greatest, count, sensor AS unit FROM (SELECT last(value) AS newest, min(value) AS least, mean(value) AS mean, max(value) AS greatest, count(value) AS count FROM ${TELEMETRY} GROUP BY sensor, ${EACH})`,
    ),
    noValue: NO_READINGS,
    columns: {
      sensor: { title: 'Sensor' },
      device_name: { title: 'Device' },
      unit: UNIT_COLUMN,
      ...VALUE_COLUMNS,
      device_id: { title: 'Id', hidden: true },
      Time: { title: 'Time', hidden: true },
    },
    sortBy: [{ displayName: 'Sensor' }],
  }),
  withThresholds(
    sensorChart(
      lines(
        [`SELECT mean(value) FROM ${TELEMETRY} GROUP BY time($__interval), sensor, ${EACH} fill(null)`, '$tag_sensor'],
        ...THRESHOLDS.map(
          // An alert has its threshold once: it is carried on day by day.
          ({ where }) =>
            [
              `SELECT last(threshold) FROM alert WHERE ${FACTS_BY_DAY} AND ${OF_DEVICE} AND ${OF_SENSOR} AND ${where} GROUP BY time(1d), sensor, ${EACH} fill(previous)`,
              '$tag_sensor threshold',
            ] as const,
        ),
      ),
      '1s',
    ),
  ),
];

const STATES: readonly PanelSpec[] = [
  timeline({
    title: 'Online and presence',
    description:
      'Whether each device was online, the reason that the workspace gave, and the state of its sync; "silent or out of service": it sends nothing. A line ends an hour or three after the last report.',
    w: 24,
    h: 7,
    targets: lines(
      [
        `SELECT min(online) FROM device WHERE ${HOURLY} AND ${OF_DEVICE} GROUP BY time($__interval), ${EACH} fill(none)`,
        '$tag_device_name: online',
      ],
      [
        `SELECT last(presence) FROM device WHERE ${HOURLY} AND ${OF_DEVICE} GROUP BY time($__interval), ${EACH} fill(none)`,
        '$tag_device_name: presence',
      ],
      [
        `SELECT last(state) FROM coverage WHERE ${HOURLY} AND ${OF_DEVICE} GROUP BY time($__interval), ${EACH} fill(none)`,
        '$tag_device_name: sync',
      ],
    ),
    noValue: NO_DEVICES,
    mappings: [ONLINE, COVERAGE_STATE],
    endMs: 3 * HOUR_MS,
    // What is written every 15 minutes.
    overrides: [
      {
        matcher: { id: 'byFrameRefID', options: 'C' },
        properties: [{ id: 'custom.insertNulls', value: HOUR_MS }],
      },
    ],
  }),
  coverageBand(
    lines([
      `SELECT sum(readings) FROM coverage_hour WHERE ${since('2h')} AND ${OF_DEVICE} GROUP BY time($__interval), ${EACH} fill(-1)`,
      '$tag_device_name',
    ]),
  ),
  timeline({
    title: 'Switches and texts',
    description: 'Sensors that report true, false or texts.',
    w: 24,
    h: 5,
    targets: lines(
      [
        `SELECT last(flag) FROM ${TELEMETRY} GROUP BY time($__interval), sensor, ${EACH} fill(none)`,
        '$tag_device_name: $tag_sensor',
      ],
      [
        `SELECT last(text) FROM ${TELEMETRY} GROUP BY time($__interval), sensor, ${EACH} fill(none)`,
        '$tag_device_name: $tag_sensor (text)',
      ],
    ),
    noValue: 'No sensor of the device reports true, false or texts in this range.',
    mappings: [words({ true: ['true', 'green'], false: ['false', 'text'] })],
  }),
];

const OF_HUB = `(${chosen('parent_device_id', 'parent')} OR ${chosen('device_id', 'parent')} OR ${chosen('parent_device_id', 'device')})`;

const AROUND: readonly PanelSpec[] = [
  alertsOfDevice(
    {
      title: 'Alerts of the device',
      description: 'Alerts that were opened in this range or the year before it, with their last state.',
      ...{ w: 24, h: 8, noValue: 'No alerts were reported in this range and the year before it.' },
    },
    { states: FACTS, which: [] },
  ),
  grid({
    title: 'Neighbours',
    description:
      'The hub of the device and the other devices of that hub: are they silent together? "Last seen (device list)" is recorded at least hourly.',
    w: 24,
    h: 8,
    targets: tables(
      newest(
        ['device_name', 'online', 'presence', 'last_seen_ms', 'model_id'],
        `device WHERE ${HOURLY} AND ${OF_HUB}`,
        'device_id',
      ),
      reportsOf(OF_WORKSPACE),
    ),
    noValue: 'The device has no neighbours.',
    transformations: [join('device_id'), only('device_name', 'isNotNull'), ...REPORTS, onlineNow()],
    columns: {
      device_name: { title: 'Name', links: [TO_DEVICE] },
      [ONLINE_NOW]: { title: 'Online', mappings: [ONLINE_CELL], colored: true },
      presence: DEVICE_COLUMNS.presence,
      last_seen_ms: DEVICE_COLUMNS.listedSeen,
      model_id: { title: 'Model' },
      device_id: { title: 'Id' },
      ...hidden('Time device', 'Time coverage', ...ONLINE_FACTS),
    },
    sortBy: [{ displayName: 'Name' }],
  }),
];

const ALERTS: Annotation = {
  name: 'Alerts',
  iconColor: 'red',
  query: `SELECT rule_name, device_name, sensor FROM alert WHERE ${IN_RANGE} AND ${OF_DEVICE}`,
  textColumn: 'rule_name',
  tagsColumn: 'device_name,sensor',
};

/** A name is new where it is first reported; names from before the last week are not queried. */
const RENAMES: Annotation = {
  name: 'Renames',
  iconColor: 'purple',
  query: `SELECT label FROM (SELECT first(label) AS label FROM device WHERE ${since('7d')} AND ${OF_DEVICE} GROUP BY device_id, device_name)`,
  textColumn: 'label',
  tagsColumn: '',
};

export const DEVICE: DashboardSpec = {
  uid: 'tidemark-device',
  title: 'Tidemark / Device',
  description: 'One device, or several side by side: values, states, coverage, alerts, neighbours.',
  source: 'influxdb',
  from: 'now-24h',
  refresh: '1m',
  variables: [WORKSPACE, HUB, MODEL, deviceVariable('device', 'none'), SENSORS, PARENT],
  annotations: [ALERTS, RENAMES],
  sections: [
    { title: 'Now', panels: [FACTS_NOW, OPEN_ALERTS] },
    { title: 'Values', panels: VALUES },
    { title: 'States', panels: STATES },
    { title: 'Around it', panels: AROUND },
  ],
};
