/** The dashboard "Fleet": which devices report, which do not, and how up to date is the copy? */
import { badCount, DEVICE_COLUMNS, lagOverTime, lagStat, onlineOverTime, openAlerts, STOPPED, TARGET } from './both.ts';
import { AT_END, DAILY, HOURLY, IN_RANGE, lines, newest, OF_FLEET, OF_WORKSPACE, tables } from './influxql.ts';
import { byState, LAG_LOOKS, lagLines, lagNow, lateNow, STATE_LOOKS, syncOf } from './lag.ts';
import {
  any,
  BAD_OR_UNKNOWN,
  join,
  LIFECYCLE,
  ONLINE,
  only,
  PLAIN,
  steps,
  TO_ALERTS,
  TO_DEVICE,
  toDevice,
  toPanel,
} from './looks.ts';
import type { DashboardSpec, DataLink, PanelOf, PanelSpec, Transformation } from './model.ts';
import { bars, grid, NO_DEVICES, share, stat } from './panels.ts';
import { HUB, MODEL, WORKSPACE } from './variables.ts';

/** Whole steps, also where the range is shorter than one. */
const STEPS = `time >= \${__from}ms - 4h AND time < \${__to}ms`;

const TO_TABLE = toPanel('tidemark-fleet', 'Devices', 'List the devices');

const NEUTRAL_COLOR = { id: 'color', value: { mode: 'fixed', fixedColor: 'text' } };

/** What stands on top of the fleet, and of the start page. @param toTable leads to the devices. */
export function fleetNumbers(toTable: DataLink): readonly PanelSpec[] {
  return [
    stat({
      title: 'Devices by state',
      description:
        'All devices of the workspace, whichever hub or model is chosen, by the state of their sync; the states add up to "all". live: covered up to the present. catching up: some wanted data is missing yet. silent: covered, but the device sends nothing, because it is offline, paused or retired. The table "Devices" lists each of them.',
      ...{ w: 8, h: 4, noValue: STOPPED, unit: 'none', decimals: 0, thresholds: BAD_OR_UNKNOWN },
      targets: byState(OF_WORKSPACE),
      overrides: [{ matcher: { id: 'byFrameRefID', options: 'A' }, properties: [NEUTRAL_COLOR] }, ...STATE_LOOKS],
      links: [toTable],
    }),
    badCount('Late', 'Devices of the workspace with a lag above the target that is chosen above.', {
      targets: lateNow(OF_WORKSPACE),
      links: [toTable],
    }),
    openAlerts('Alerts of the whole workspace that are not resolved. The dashboard "Tidemark / Alerts" lists them.', {
      targets: lines([
        `SELECT sum(open) AS alerts FROM (SELECT last(open) AS open FROM alert_state WHERE ${DAILY} AND ${OF_WORKSPACE} GROUP BY alert_id)`,
        'Open',
      ]),
      links: [TO_ALERTS],
    }),
    lagStat({ targets: lagNow(OF_WORKSPACE), overrides: LAG_LOOKS }, 8),
  ];
}

const MAP: PanelOf<'geomap'> = {
  type: 'geomap',
  title: 'Map of the hubs',
  description: 'Hubs that have a place, green while they are online. Empty where sync.location is off.',
  w: 12,
  h: 14,
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
  lagOverTime(lagLines(OF_WORKSPACE)),
];

/** The hubs of the workspace: name, state and firmware, by the id that devices give as their parent. */
const HUBS = `SELECT hub, parent_device_id, hub_online, firmware FROM (SELECT last(is_addon) AS is_addon, device_name AS hub, device_id AS parent_device_id, online AS hub_online, firmware_version AS firmware FROM device WHERE ${HOURLY} AND ${OF_WORKSPACE} AND is_addon = 0 GROUP BY device_id)`;

/** Puts the facts of devices together with the name of their hub. */
const WITH_HUB: readonly Transformation[] = [
  join('parent_device_id', 'outerTabular'),
  only('device_name', 'isNotNull'),
];

const DEVICES: PanelSpec = grid({
  title: 'Devices',
  description:
    'Every device of the range, as the workspace listed it last: active ones first, of these the ones that are not online, then by lag. "Sync" is red where Tidemark has not reported for 17 minutes; a device that has left the workspace is "unreachable". Click a name to open it.',
  w: 24,
  h: 14,
  targets: tables(
    newest(
      [
        ...['device_name', 'online', 'presence', 'lifecycle_status', 'last_seen_ms', 'parent_device_id', 'model_id'],
        ...['firmware_version', 'tags'],
      ],
      `device WHERE ${HOURLY} AND ${OF_FLEET}`,
      'device_id',
    ),
    syncOf(OF_WORKSPACE),
    `SELECT last(value) AS reading FROM telemetry WHERE ${IN_RANGE} AND ${OF_WORKSPACE} GROUP BY device_id`,
    HUBS,
  ),
  noValue: NO_DEVICES,
  transformations: [
    { ...join('device_id'), filter: { id: 'byRefId', options: '/^(?:A|B|C)$/' } },
    // Of devices that the choice of hubs and models leaves out, coverage alone would remain.
    ...WITH_HUB,
  ],
  columns: {
    device_name: { title: 'Name', links: [TO_DEVICE], width: 220 },
    online: DEVICE_COLUMNS.online,
    state: DEVICE_COLUMNS.sync,
    lag: DEVICE_COLUMNS.lag,
    'Time telemetry': DEVICE_COLUMNS.newest,
    last_seen_ms: DEVICE_COLUMNS.lastSeen,
    presence: DEVICE_COLUMNS.presence,
    lifecycle_status: { title: 'Lifecycle', mappings: [LIFECYCLE], colored: true },
    gap_seconds: DEVICE_COLUMNS.gap,
    hub: { title: 'Hub', width: 160 },
    model_id: DEVICE_COLUMNS.model,
    firmware_version: { title: 'Firmware' },
    tags: { title: 'Tags' },
    device_id: DEVICE_COLUMNS.id,
    parent_device_id: { title: 'Hub id' },
    'Time device': { title: 'Listed', hidden: true },
    'Time coverage': { title: 'Reported', hidden: true },
    known: { title: 'Known', hidden: true },
    reading: { title: 'Reading', hidden: true },
    hub_online: { title: 'Hub online', hidden: true },
    firmware: { title: 'Firmware of the hub', hidden: true },
  },
  // "active" comes first by its name.
  sortBy: [{ displayName: 'Lifecycle' }, { displayName: 'Online' }, { displayName: 'Lag', desc: true }],
});

const SILENT_LONGEST: PanelSpec = grid({
  title: 'Silent longest',
  description:
    'The devices that are silent or not online, active ones first, of these the ones seen the longest ago; the first fifty.',
  w: 12,
  h: 9,
  targets: tables(
    newest(
      ['device_name', 'online', 'lifecycle_status', 'last_seen_ms', 'presence'],
      `device WHERE ${AT_END} AND ${OF_FLEET}`,
      'device_id',
    ),
    syncOf(OF_WORKSPACE),
  ),
  noValue: 'No device is silent.',
  transformations: [
    join('device_id'),
    only('device_name', 'isNotNull'),
    any('include', ['online', 'equal', 0], ['state', 'equal', 'silent']),
    { id: 'sortBy', options: { sort: [{ field: 'last_seen_ms' }] } },
    // Grafana's sort is stable.
    { id: 'sortBy', options: { sort: [{ field: 'lifecycle_status' }] } },
    { id: 'limit', options: { limitField: 50 } },
  ],
  columns: {
    device_name: { title: 'Name', links: [TO_DEVICE], width: 220 },
    last_seen_ms: { title: 'Silent since', unit: 'dateTimeFromNow' },
    lifecycle_status: { title: 'Lifecycle', mappings: [LIFECYCLE], colored: true },
    presence: DEVICE_COLUMNS.presence,
    device_id: DEVICE_COLUMNS.id,
    online: { title: 'Online', hidden: true },
    state: { title: 'Sync', hidden: true },
    lag: { title: 'Lag', hidden: true },
    gap_seconds: { title: 'Missing', hidden: true },
    known: { title: 'Known', hidden: true },
    'Time device': { title: 'Listed', hidden: true },
    'Time coverage': { title: 'Reported', hidden: true },
  },
});

const HUB_TABLE: PanelSpec = grid({
  title: 'Hubs',
  description:
    'Each hub with the number of its add-ons and how many of them are online: a hub that is not online silences all below it.',
  w: 12,
  h: 9,
  targets: tables(
    newest(['parent_device_id', 'online'], `device WHERE ${HOURLY} AND ${OF_FLEET} AND is_addon = 1`, 'device_id'),
    HUBS,
  ),
  noValue: NO_DEVICES,
  transformations: [
    {
      id: 'groupBy',
      filter: { id: 'byRefId', options: 'A' },
      options: {
        fields: {
          parent_device_id: { operation: 'groupby', aggregations: [] },
          device_id: { operation: 'aggregate', aggregations: ['count'] },
          online: { operation: 'aggregate', aggregations: ['sum'] },
        },
      },
    },
    join('parent_device_id', 'outerTabular'),
    only('hub', 'isNotNull'),
  ],
  columns: {
    hub: { title: 'Hub', links: [toDevice('tidemark-device', 'datasource', 'parent_device_id')], width: 220 },
    hub_online: { ...DEVICE_COLUMNS.online, title: 'Hub online' },
    'device_id (count)': { title: 'Add-ons' },
    'online (sum)': { title: 'Add-ons online', width: 130 },
    firmware: { title: 'Firmware' },
    parent_device_id: DEVICE_COLUMNS.id,
  },
  sortBy: [{ displayName: 'Hub online' }, { displayName: 'Add-ons online' }],
});

/** Hours of the range that are over for an hour at least: the running one is covered a little after it ends. */
const HOURS_DONE = `time >= \${__from}ms AND time < \${__to}ms - 2h`;

const COMPLETENESS: PanelSpec = grid({
  title: 'Completeness and availability',
  description:
    'Completeness: hours of the range that are covered. Availability: covered hours in which the device sent a reading. The worst first; the last two hours do not count yet.',
  w: 24,
  h: 12,
  targets: tables(
    // Steps back from the end of the range: each of them has the beginning of one hour in it.
    `SELECT mean(covered) AS complete FROM (SELECT count(readings) AS covered FROM coverage_hour WHERE ${HOURS_DONE} AND ${OF_WORKSPACE} GROUP BY time(1h, \${__to}ms), device_id fill(0)) GROUP BY device_id`,
    `SELECT count(readings) AS covered FROM coverage_hour WHERE ${HOURS_DONE} AND ${OF_WORKSPACE} GROUP BY device_id`,
    `SELECT count(readings) AS heard FROM coverage_hour WHERE ${HOURS_DONE} AND ${OF_WORKSPACE} AND readings > 0 GROUP BY device_id`,
    newest(['device_name', 'parent_device_id', 'tags'], `device WHERE ${HOURLY} AND ${OF_FLEET}`, 'device_id'),
    HUBS,
  ),
  noValue: 'No hour of this range is covered yet.',
  transformations: [
    { ...join('device_id'), filter: { id: 'byRefId', options: '/^(?:A|B|C|D)$/' } },
    ...WITH_HUB,
    share('heard', 'covered', 'available'),
  ],
  columns: {
    device_name: { title: 'Name', links: [TO_DEVICE], width: 200 },
    complete: { title: 'Completeness', unit: 'percentunit', decimals: 1 },
    available: { title: 'Availability', unit: 'percentunit', decimals: 1 },
    hub: { title: 'Hub' },
    covered: { title: 'Hours covered' },
    heard: { title: 'Hours with readings' },
    device_id: DEVICE_COLUMNS.id,
    'Time coverage_hour': { title: 'From', hidden: true },
    'Time device': { title: 'Listed', hidden: true },
    parent_device_id: { title: 'Hub id', hidden: true },
    hub_online: { title: 'Hub online', hidden: true },
    firmware: { title: 'Firmware of the hub', hidden: true },
    tags: { title: 'Tags' },
  },
  sortBy: [{ displayName: 'Completeness' }, { displayName: 'Availability' }],
});

/** The same as a mean of devices that have a fact in common. */
function completenessBy(field: string, { title, description }: { title: string; description: string }): PanelSpec {
  return grid({
    title: `Completeness and availability by ${title.toLowerCase()}`,
    description,
    w: 12,
    h: 12,
    targets: COMPLETENESS.targets,
    noValue: 'No hour of this range is covered yet.',
    transformations: [
      { ...join('device_id'), filter: { id: 'byRefId', options: '/^(?:A|B|C|D)$/' } },
      ...WITH_HUB,
      share('heard', 'covered', 'available'),
      {
        id: 'groupBy',
        options: {
          fields: {
            [field]: { operation: 'groupby', aggregations: [] },
            complete: { operation: 'aggregate', aggregations: ['mean'] },
            available: { operation: 'aggregate', aggregations: ['mean'] },
            device_id: { operation: 'aggregate', aggregations: ['count'] },
          },
        },
      },
    ],
    columns: {
      [field]: { title },
      'complete (mean)': { title: 'Completeness', unit: 'percentunit', decimals: 1 },
      'available (mean)': { title: 'Availability', unit: 'percentunit', decimals: 1 },
      'device_id (count)': { title: 'Devices' },
    },
    sortBy: [{ displayName: 'Completeness' }, { displayName: 'Availability' }],
  });
}

/** Devices counted by one of their facts. */
function distribution(title: string, field: string, description: string): PanelSpec {
  return bars({
    ...{ title, description, w: 8, h: 8, unit: 'none', decimals: 0, min: 0, noValue: NO_DEVICES, thresholds: PLAIN },
    targets: tables(newest([field, 'is_addon'], `device WHERE ${AT_END} AND ${OF_FLEET}`, 'device_id')),
    transformations: [
      {
        id: 'groupBy',
        options: {
          fields: {
            [field]: { operation: 'groupby', aggregations: [] },
            device_id: { operation: 'aggregate', aggregations: ['count'] },
          },
        },
      },
      { id: 'sortBy', options: { sort: [{ field: 'device_id (count)', desc: true }] } },
    ],
  });
}

export const FLEET: DashboardSpec = {
  uid: 'tidemark-fleet',
  title: 'Tidemark / Fleet',
  description: 'Which devices report, which do not, and how up to date is the copy?',
  source: 'influxdb',
  from: 'now-24h',
  refresh: '1m',
  variables: [WORKSPACE, HUB, MODEL, TARGET],
  sections: [
    { title: 'Now', panels: fleetNumbers(TO_TABLE) },
    { title: 'What needs attention', panels: [DEVICES, SILENT_LONGEST, HUB_TABLE] },
    { title: 'Where and when', panels: [MAP, ...OVER_TIME] },
    {
      title: 'Over the range',
      panels: [
        COMPLETENESS,
        completenessBy('hub', {
          title: 'Hub',
          description: 'The mean of the devices below each hub, the worst first.',
        }),
        completenessBy('tags', {
          title: 'Tags',
          description:
            'The mean of the devices with the same tags, the worst first. To compare sites, give the devices of a site a tag.',
        }),
      ],
    },
    {
      title: 'What there is',
      panels: [
        distribution('Models', 'model_id', 'Devices by model, the most frequent first.'),
        distribution('Firmware', 'firmware_version', 'Devices by version of their firmware, the most frequent first.'),
        distribution('Lifecycle', 'lifecycle_status', 'Devices by lifecycle: only active ones are expected to report.'),
      ],
    },
  ],
};
