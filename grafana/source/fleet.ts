/** The dashboard "Fleet": is everything there, and where is what is not? */
import { badCount, behindNow, behindOverTime, DEVICE_COLUMNS, onlineNow, onlineOverTime } from './both.ts';
import { AT_END, behindBy, DAILY, HOURLY, IS_READ, lines, newest, OF_FLEET, OF_WORKSPACE, tables } from './influxql.ts';
import { COVERAGE_STATE, join, LIFECYCLE, ONLINE, PLAIN, steps, TO_DEVICE } from './looks.ts';
import type { DashboardSpec, PanelOf, PanelSpec } from './model.ts';
import { grid, NO_DEVICES, stat } from './panels.ts';
import { HUB, MODEL, WORKSPACE } from './variables.ts';

const STATES = `SELECT last(online) AS online, last(lifecycle_status) AS lifecycle FROM device WHERE ${AT_END} AND ${OF_FLEET} GROUP BY device_id`;

/** How many devices there are of which the last state is such. */
function counted(condition: string): string {
  return `SELECT count(online) AS devices FROM (${STATES}) WHERE ${condition}`;
}

const COVERED = `coverage WHERE ${HOURLY} AND ${OF_WORKSPACE}`;

/** Whole steps, also where the range is shorter than one. */
const STEPS = `time >= \${__from}ms - 4h AND time < \${__to}ms`;

const NUMBERS: readonly PanelSpec[] = [
  // A sum is 0 where devices are there and none is online; nothing at all where no state is.
  onlineNow(lines([`SELECT sum(online) AS devices FROM (${STATES})`, 'Online'])),
  badCount(
    'Silent',
    'Active devices that do not report. The table below shows which, and since when.',
    lines([counted("online = 0 AND lifecycle = 'active'"), 'Silent']),
  ),
  stat({
    title: 'Paused, shelved, retired',
    description: 'Devices that were taken out of service, and are not expected to report.',
    w: 4,
    h: 4,
    targets: lines([counted('lifecycle =~ /^(paused|shelved|retired)$/'), 'Out of service']),
    noValue: '0',
    unit: 'none',
    thresholds: PLAIN,
  }),
  badCount(
    'Open alerts',
    'Alerts of the whole workspace that are not resolved. The dashboard "Tidemark / Alerts" lists them.',
    lines([
      `SELECT sum(open) AS alerts FROM (SELECT last(open) AS open FROM alert_state WHERE ${DAILY} AND ${OF_WORKSPACE} GROUP BY alert_id)`,
      'Open',
    ]),
  ),
  behindNow(lines([behindBy(COVERED), '$col']), 8),
];

const MAP: PanelOf<'geomap'> = {
  type: 'geomap',
  title: 'Hubs',
  description: 'Hubs that have a place, green while they are online. Empty where sync.location is off.',
  w: 12,
  h: 12,
  targets: tables(
    newest(
      ['latitude', 'longitude', 'online', 'presence', 'firmware_version', 'device_name'],
      `device WHERE ${HOURLY} AND ${OF_FLEET} AND is_addon = 0`,
      'device_id',
    ),
  ),
  defaults: {
    noValue: NO_DEVICES,
    unit: 'none',
    mappings: [ONLINE],
    thresholds: steps('red', [1, 'green']),
    color: { mode: 'thresholds' },
  },
  overrides: [{ matcher: { id: 'byName', options: 'device_name' }, properties: [{ id: 'links', value: [TO_DEVICE] }] }],
  options: {
    view: { id: 'fit', allLayers: true, padding: 20, maxZoom: 15, lat: 0, lon: 0, zoom: 4 },
    controls: { showZoom: true, mouseWheelZoom: false, showAttribution: true, showScale: false, showMeasure: false },
    basemap: { type: 'default', name: 'Map', config: {} },
    layers: [
      {
        type: 'markers',
        name: 'Hubs',
        location: { mode: 'coords', latitude: 'latitude', longitude: 'longitude' },
        tooltip: true,
        config: {
          showLegend: true,
          style: {
            color: { field: 'online', fixed: 'gray' },
            opacity: 0.8,
            size: { fixed: 8, min: 4, max: 12 },
            symbol: { mode: 'fixed', fixed: 'img/icons/marker/circle.svg' },
            text: { mode: 'field', field: 'device_name', fixed: '' },
            textConfig: { fontSize: 12, offsetX: 0, offsetY: 14, textAlign: 'center', textBaseline: 'middle' },
          },
        },
      },
    ],
    tooltip: { mode: 'details' },
  },
};

const OVER_TIME: readonly PanelSpec[] = [
  onlineOverTime(
    // States are written hourly, so each step of two hours has all devices: a whole one, so they are counted from the
    // end; the first one, which may not be whole, lies before what is shown.
    lines([
      `SELECT sum(online) AS online FROM (SELECT last(online) AS online FROM device WHERE ${STEPS} AND ${OF_FLEET} GROUP BY time($__interval, \${__to}ms), device_id fill(none)) WHERE ${STEPS} GROUP BY time($__interval, \${__to}ms) fill(null)`,
      'Online',
    ]),
    { description: 'Devices online, in steps of two hours or more back from the end of the range.', interval: '2h' },
  ),
  behindOverTime(
    lines([
      `SELECT percentile(lag_seconds, 50) AS middle, percentile(lag_seconds, 95) AS most, max(lag_seconds) AS worst FROM ${COVERED} AND ${IS_READ} GROUP BY time($__interval) fill(null)`,
      '$col',
    ]),
  ),
];

const TABLES: readonly PanelSpec[] = [
  grid({
    title: 'Devices',
    description:
      'Every device of the range once, as listed last, with how far it is synced; one that has left the workspace is "unreachable". Click a name to open it.',
    w: 24,
    h: 14,
    targets: tables(
      newest(
        [
          'device_name',
          'online',
          'presence',
          'lifecycle_status',
          'last_seen_ms',
          'parent_device_id',
          'model_id',
          'firmware_version',
          'tags',
        ],
        `device WHERE ${HOURLY} AND ${OF_FLEET}`,
        'device_id',
      ),
      newest(['state', 'lag_seconds', 'gap_seconds'], COVERED, 'device_id'),
    ),
    noValue: NO_DEVICES,
    transformations: [
      join('device_id'),
      // Of devices that the choice of hubs and models leaves out, coverage alone would remain.
      {
        id: 'filterByValue',
        options: {
          type: 'include',
          match: 'all',
          filters: [{ fieldName: 'device_name', config: { id: 'isNotNull', options: {} } }],
        },
      },
    ],
    columns: {
      device_name: { title: 'Name', links: [TO_DEVICE], width: 220 },
      online: DEVICE_COLUMNS.online,
      presence: { title: 'Presence' },
      last_seen_ms: DEVICE_COLUMNS.lastSeen,
      state: { title: 'Sync', mappings: [COVERAGE_STATE], colored: true, width: 110 },
      lag_seconds: DEVICE_COLUMNS.lag,
      gap_seconds: DEVICE_COLUMNS.gap,
      lifecycle_status: { title: 'Lifecycle', mappings: [LIFECYCLE], colored: true },
      parent_device_id: { title: 'Hub' },
      model_id: { title: 'Model' },
      firmware_version: { title: 'Firmware' },
      tags: { title: 'Tags' },
      device_id: { title: 'Id' },
      'Time 1': { title: 'Listed', hidden: true },
      'Time 2': { title: 'Noted', hidden: true },
    },
    sortBy: [{ displayName: 'Name' }],
  }),
  grid({
    title: 'Add-ons under their hubs',
    description:
      'The add-ons of each hub by name, and whether the hub itself is online: a hub that is not silences all below it.',
    w: 24,
    h: 12,
    targets: tables(
      newest(
        ['parent_device_id', 'device_name', 'online', 'presence', 'last_seen_ms'],
        `device WHERE ${HOURLY} AND ${OF_FLEET} AND is_addon = 1`,
        'device_id',
      ),
      newest(
        ['device_id AS parent_device_id', 'device_name AS hub', 'online AS hub_online'],
        `device WHERE ${HOURLY} AND ${OF_WORKSPACE} AND is_addon = 0`,
        'device_id',
      ),
    ),
    noValue: NO_DEVICES,
    transformations: [join('parent_device_id', 'inner')],
    columns: {
      hub: { title: 'Hub' },
      hub_online: { title: 'Hub online', mappings: [ONLINE], colored: true, width: 110 },
      device_name: { title: 'Add-on', links: [TO_DEVICE] },
      online: { title: 'Online', mappings: [ONLINE], colored: true, width: 110 },
      presence: { title: 'Presence' },
      last_seen_ms: { title: 'Last seen', unit: 'dateTimeFromNow' },
      parent_device_id: { title: 'Hub id', hidden: true },
      // Of the add-on (the link takes the first of that name) and of the hub.
      'device_id 1': { title: 'Id' },
      'device_id 2': { title: 'Id of the hub', hidden: true },
      'Time 1': { title: 'Listed', hidden: true },
      'Time 2': { title: 'Hub listed', hidden: true },
    },
    sortBy: [{ displayName: 'Hub' }],
  }),
];

export const FLEET: DashboardSpec = {
  uid: 'tidemark-fleet',
  title: 'Tidemark / Fleet',
  description: 'Is every device there, where is what is not, and how fresh is this copy?',
  source: 'influxdb',
  from: 'now-24h',
  refresh: '1m',
  variables: [WORKSPACE, HUB, MODEL],
  sections: [
    { title: 'Now', panels: NUMBERS },
    { title: 'Where and when', panels: [MAP, ...OVER_TIME] },
    { title: 'Devices', panels: TABLES },
  ],
};
