/** The dashboard "Alerts": alerts that are open, that were, and that recur. */
import { ALERT_COLUMNS, ALERT_COLUMNS_SHOWN, NOT_KNOWN } from './both.ts';
import { chosen, DAILY, FACTS, IN_RANGE, lines, newest, OF_DEVICES, OF_WORKSPACE, tables } from './influxql.ts';
import { openWhileReporting } from './lag.ts';
import { ALERT_STATUS, BAD_OR_UNKNOWN, type Column, join, only, PLAIN, TO_DEVICE, toPanel, words } from './looks.ts';
import type { DashboardSpec, PanelSpec, Variable } from './model.ts';
import { bars, grid, lineChart, stat, timeline } from './panels.ts';
import { UNIT_COLUMN } from './sensor-units.ts';
import { choice, deviceVariable, HUB, KIND, MODEL, WORKSPACE } from './variables.ts';

const OF_KIND = chosen('kind');
const CHOSEN = `${OF_WORKSPACE} AND ${OF_DEVICES} AND ${OF_KIND}`;
const STATES = `alert_state WHERE ${DAILY} AND ${CHOSEN}`;
const OPENED = `alert WHERE ${IN_RANGE} AND ${CHOSEN}`;
const NONE =
  'No alerts were reported in this range. If you expected some, check that Tidemark ran and that the key has the scope alerts:read.';

const EACH = 'alert_id, device_name, sensor';

const OPEN = `SELECT last(open) AS open FROM ${STATES} GROUP BY alert_id, device_id`;

const TO_OPEN = toPanel('tidemark-alerts', 'Open now', 'List them');

const NUMBERS: readonly PanelSpec[] = [
  stat({
    title: 'Open',
    description: 'Alerts that are not resolved at the end of the range.',
    w: 6,
    h: 4,
    ...openWhileReporting(`SELECT sum(open) FROM (${OPEN})`, OF_WORKSPACE),
    noValue: NOT_KNOWN,
    unit: 'none',
    thresholds: BAD_OR_UNKNOWN,
    links: [TO_OPEN],
  }),
  stat({
    title: 'Devices with open alerts',
    description: 'Devices with at least one open alert.',
    w: 6,
    h: 4,
    ...openWhileReporting(
      `SELECT count(open) FROM (SELECT max(open) AS open FROM (${OPEN}) GROUP BY device_id) WHERE open = 1`,
      OF_WORKSPACE,
    ),
    noValue: NOT_KNOWN,
    unit: 'none',
    thresholds: BAD_OR_UNKNOWN,
    links: [TO_OPEN],
  }),
  stat({
    title: 'Opened in this range',
    description: 'Alerts that were opened within the range, whether they are still open or not.',
    w: 6,
    h: 4,
    targets: lines([`SELECT count(rule_name) FROM ${OPENED}`, 'Opened']),
    noValue: 'none reported',
    unit: 'none',
    thresholds: PLAIN,
    links: [toPanel('tidemark-alerts', 'History', 'List them')],
  }),
  stat({
    title: 'Highest fire count (alerts seen in this range)',
    description:
      'The highest fire count of one alert, including alerts that were opened before the range and reported within it. A rule can fire again on an open alert.',
    w: 6,
    h: 4,
    targets: lines([`SELECT max(fire_count) FROM ${STATES}`, 'Fire count']),
    noValue: 'none reported',
    unit: 'none',
    thresholds: PLAIN,
    links: [TO_OPEN],
  }),
];

const COLUMNS: Readonly<Record<string, Column>> = {
  device_name: { title: 'Device', links: [TO_DEVICE], width: 170 },
  rule_name: { title: 'Rule' },
  status: { title: 'Status', mappings: [ALERT_STATUS], colored: true, width: 115 },
  kind: { title: 'Kind', width: 95 },
  sensor: { title: 'Sensor', width: 130 },
  unit: UNIT_COLUMN,
  value: ALERT_COLUMNS.value,
  threshold: ALERT_COLUMNS.threshold,
  condition: { title: 'Condition', width: 230 },
  fire_count: ALERT_COLUMNS.fireCount,
  alert_id: { title: 'Alert id', width: 80 },
  device_id: { title: 'Device id', width: 110 },
  open: { title: 'Is open', hidden: true },
};

const LAST_STATES = newest(
  ['device_id', 'device_name', 'kind', 'sensor', 'sensor AS unit', 'status', 'open', 'value', 'fire_count'],
  STATES,
  'alert_id',
);

const TABLES: readonly PanelSpec[] = [
  grid({
    title: 'Open now',
    description: `Every alert that is not resolved, the newest first, with how long it has been open. ${ALERT_COLUMNS_SHOWN}`,
    w: 24,
    h: 10,
    targets: tables(
      LAST_STATES,
      newest(['rule_name', 'condition', 'threshold'], `alert WHERE ${FACTS} AND ${CHOSEN}`, 'alert_id'),
    ),
    noValue: 'No open alert is reported.',
    transformations: [join('alert_id'), only('open', 'equal', 1)],
    columns: {
      'Time alert': { title: 'Opened', unit: 'dateTimeFromNow', width: 140 },
      ...COLUMNS,
      'Time alert_state': { title: 'Seen', hidden: true },
    },
    sortBy: [{ displayName: 'Opened', desc: true }],
  }),
];

/** Alerts of the range, counted by a tag. */
function counted(tag: string, title: string, description: string): PanelSpec {
  return bars({
    title,
    description,
    w: 8,
    h: 9,
    targets: tables(`SELECT count(rule_name) AS alerts FROM ${OPENED} GROUP BY ${tag}`),
    noValue: NONE,
    unit: 'none',
    decimals: 0,
    min: 0,
    thresholds: PLAIN,
    transformations: [
      {
        id: 'organize',
        options: { excludeByName: { Time: true }, indexByName: {}, renameByName: {}, includeByName: {} },
      },
      { id: 'sortBy', options: { sort: [{ field: 'alerts', desc: true }] } },
    ],
  });
}

const COUNTS: readonly PanelSpec[] = [
  bars({
    title: 'Opened in this range, by rule',
    description: 'How many alerts each rule opened in this range.',
    w: 8,
    h: 9,
    targets: tables(`SELECT rule_name, threshold FROM ${OPENED}`),
    noValue: NONE,
    unit: 'none',
    decimals: 0,
    min: 0,
    thresholds: PLAIN,
    transformations: [
      {
        id: 'groupBy',
        options: {
          fields: {
            rule_name: { operation: 'groupby', aggregations: [] },
            Time: { operation: 'aggregate', aggregations: ['count'] },
          },
        },
      },
      { id: 'sortBy', options: { sort: [{ field: 'Time (count)', desc: true }] } },
    ],
  }),
  counted(
    'device_name',
    'Opened in this range, by device',
    'How many alerts about each device were opened in this range.',
  ),
  counted('kind', 'Opened in this range, by kind', 'How many alerts of each kind were opened in this range.'),
];

const HISTORY: readonly PanelSpec[] = [
  lineChart({
    title: 'Opened over time',
    description: 'Alerts opened, by kind.',
    w: 24,
    h: 7,
    interval: '10m',
    // With every step: a bar is as wide as the shortest way to the next one.
    targets: lines([`SELECT count(rule_name) FROM ${OPENED} GROUP BY time($__interval), kind fill(0)`, '$tag_kind']),
    noValue: NONE,
    unit: 'none',
    decimals: 0,
    breakMs: 0,
    draw: 'bars',
    stack: true,
    min: 0,
  }),
  timeline({
    title: 'Timeline',
    description:
      'The last fifty alerts that were open in this range. Red from the time at which Tidemark first read the alert as open until it was resolved.',
    w: 24,
    h: 10,
    interval: '10m',
    maxDataPoints: 200,
    // The outer query leaves out those that were never open: at the first sync all of the past are seen, once.
    targets: lines([
      `SELECT max(open) FROM (SELECT last(open) AS open FROM ${STATES} AND ${chosen('alert_id', 'newest')} GROUP BY time($__interval), ${EACH} fill(previous)) WHERE open = 1 AND ${DAILY} GROUP BY time($__interval), ${EACH} fill(0)`,
      '$tag_device_name: $tag_sensor ($tag_alert_id)',
    ]),
    noValue: NONE,
    mappings: [words({ '0': ['not open', 'text'], '1': ['open', 'red'] })],
  }),
  grid({
    title: 'History',
    description: 'Every alert that was opened in this range, the newest first, with its last state in this range.',
    w: 24,
    h: 12,
    targets: tables(newest(['rule_name', 'condition', 'threshold'], OPENED, 'alert_id'), LAST_STATES),
    noValue: NONE,
    transformations: [join('alert_id'), only('rule_name', 'isNotNull')],
    columns: {
      'Time alert': { title: 'Opened', unit: 'dateTimeAsIso' },
      ...COLUMNS,
      'Time alert_state': { title: 'Last change', unit: 'dateTimeAsIso' },
    },
    sortBy: [{ displayName: 'Opened', desc: true }],
  }),
];

/** The alerts that were reported as open last: more lines than these nobody can read. */
const NEWEST: Variable = choice({
  name: 'newest',
  label: 'newest',
  query: `SELECT id FROM (SELECT open, alert_id AS id FROM ${STATES} AND open = 1 ORDER BY time DESC LIMIT 50) ORDER BY time DESC`,
  all: 'listed',
  hide: 2,
});

export const ALERTS: DashboardSpec = {
  uid: 'tidemark-alerts',
  title: 'Tidemark / Alerts',
  description: 'Which alerts are open and for how long, which were, and which recur?',
  source: 'influxdb',
  from: 'now-24h',
  refresh: '1m',
  variables: [WORKSPACE, HUB, MODEL, deviceVariable('devices', 'any'), KIND, NEWEST],
  sections: [
    { title: 'Overview', panels: [...NUMBERS, ...TABLES] },
    { title: 'By rule, device and kind', panels: COUNTS },
    { title: 'History', panels: HISTORY },
  ],
};
