/** The dashboard "Fleet": which devices report, which do not, and how up to date is the copy? */
import {
  badCount,
  DEVICE_COLUMNS,
  GAP_SHOWN,
  lagOverTime,
  lagStat,
  onlineOverTime,
  openAlerts,
  STOPPED,
  TARGET,
} from './both.ts';
import { AT_END, DAILY, HOURLY, IN_RANGE, newest, OF_FLEET, OF_WORKSPACE, tables } from './influxql.ts';
import {
  byState,
  COUNTS,
  countsOf,
  LAG_LOOKS,
  lagLines,
  lagNow,
  lateNow,
  NOT_COUNTED,
  ONLINE_FACTS,
  openWhileReporting,
  REPORTED,
  REPORTS,
  reportsOf,
  STATE_LOOKS,
  SYNC,
  SYNC_FACTS,
  SYNC_GAP,
  SYNC_LAG,
  silentNow,
  syncOf,
} from './lag.ts';
import {
  any,
  BAD_IF_ANY,
  BAD_OR_UNKNOWN,
  type Column,
  type Condition,
  grouped,
  hidden,
  initialSync,
  join,
  later,
  NEUTRAL,
  ONLINE_CELL,
  ONLINE_NOW,
  onlineNow,
  only,
  PLAIN,
  RESTING,
  steps,
  TO_ALERTS,
  TO_DEVICE,
  toDevice,
  toPanel,
  UNKNOWN,
  UNKNOWN_COUNT,
} from './looks.ts';
import type { DashboardSpec, DataLink, PanelOf, PanelSpec, Transformation } from './model.ts';
import { bars, binary, grid, NO_DEVICES, rowFigure, stat } from './panels.ts';
import { HUB, MODEL, WORKSPACE } from './variables.ts';

/** Whole steps, also where the range is shorter than one. */
const STEPS = `time >= \${__from}ms - 4h AND time < \${__to}ms`;

const STEP = `time($__interval, \${__to}ms)`;

const TO_TABLE = toPanel('tidemark-fleet', 'Devices', 'List the devices');

const NEUTRAL_COLOR = { id: 'color', value: { mode: 'fixed', fixedColor: 'text' } };

/** What stands on top of the fleet, and of the start page. @param toTable leads to the devices. */
export function fleetNumbers(toTable: DataLink): readonly PanelSpec[] {
  return [
    stat({
      title: 'Devices by state',
      description:
        'All devices of the workspace, whichever hub or model is chosen, by the state of their sync; the states add up to "all". live: covered up to the present. catching up: some data is still missing. silent: covered and active, but the device sends nothing. out of service: it sends nothing, because it was paused, shelved or retired. The table "Devices" lists each of them.',
      ...{ w: 8, h: 4, noValue: STOPPED, unit: 'none', decimals: 0, thresholds: BAD_OR_UNKNOWN },
      targets: byState(OF_WORKSPACE),
      overrides: [{ matcher: { id: 'byFrameRefID', options: 'A' }, properties: [NEUTRAL_COLOR] }, ...STATE_LOOKS],
      links: [toTable],
    }),
    badCount(
      'Silent',
      'Active devices of the workspace that send nothing. They are not late, because nothing newer exists. The table "Silent or out of service" of the dashboard "Tidemark / Fleet" lists them.',
      { targets: silentNow(OF_WORKSPACE), links: [toTable], w: 3 },
    ),
    badCount('Late', 'Devices of the workspace with a lag above the target chosen at the top.', {
      w: 3,
      targets: lateNow(OF_WORKSPACE),
      overrides: initialSync('B'),
      links: [toTable],
    }),
    openAlerts('All alerts of the workspace that are not resolved. The dashboard "Tidemark / Alerts" lists them.', {
      ...openWhileReporting(
        `SELECT sum(open) AS alerts FROM (SELECT last(open) AS open FROM alert_state WHERE ${DAILY} AND ${OF_WORKSPACE} GROUP BY alert_id)`,
        OF_WORKSPACE,
      ),
      links: [TO_ALERTS],
      w: 3,
    }),
    lagStat({ targets: lagNow(OF_WORKSPACE), overrides: LAG_LOOKS, links: [toTable] }, 7),
  ];
}

const MAP: PanelOf<'geomap'> = {
  type: 'geomap',
  title: 'Map of the hubs',
  description:
    'Hubs with a position: green while online, otherwise red, also when Tidemark has stopped. Empty where sync.location is off.',
  w: 12,
  h: 14,
  targets: tables(
    newest(
      ['latitude', 'longitude', 'online', 'presence', 'firmware_version', 'location_updated_at', 'device_name'],
      `device WHERE ${HOURLY} AND ${OF_FLEET} AND is_addon = 0`,
      'device_id',
    ),
    reportsOf(OF_WORKSPACE),
  ),
  transformations: [
    join('device_id'),
    only('device_name', 'isNotNull'),
    ...REPORTS,
    onlineNow(),
    {
      id: 'organize',
      options: {
        excludeByName: Object.fromEntries(
          ['Time device', 'Time coverage', ...ONLINE_FACTS].map((name) => [name, true]),
        ),
        indexByName: {},
        renameByName: {},
        includeByName: {},
      },
    },
  ],
  defaults: {
    noValue: NO_DEVICES,
    unit: 'none',
    mappings: [ONLINE_CELL],
    thresholds: steps('red', [1, 'green'], [UNKNOWN, 'red']),
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
            color: { field: ONLINE_NOW, fixed: 'gray' },
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
    // States are written hourly, so each complete step of two hours has all devices. Steps are counted from the end;
    // the first one, which may be incomplete, lies before the shown range. Grafana adds them up (A), because InfluxDB 3
    // rejects a sum over the last states of steps; B has the steps without any, where the line breaks.
    tables(
      `SELECT last(online) AS online FROM device WHERE ${STEPS} AND ${OF_FLEET} GROUP BY ${STEP}, device_id fill(none)`,
      `SELECT count(online) AS states FROM device WHERE ${STEPS} AND ${OF_FLEET} GROUP BY ${STEP} fill(null)`,
    ),
    {
      description: 'Devices online, in steps of two hours or more back from the end of the range.',
      interval: '2h',
      maxDataPoints: 120,
      transformations: [
        {
          id: 'groupBy',
          filter: { id: 'byRefId', options: 'A' },
          options: { fields: { ...grouped('Time'), online: { operation: 'aggregate', aggregations: ['sum'] } } },
        },
        join('Time'),
        {
          id: 'organize',
          options: { excludeByName: { states: true }, indexByName: {}, renameByName: {}, includeByName: {} },
        },
      ],
    },
  ),
  lagOverTime(lagLines(OF_WORKSPACE)),
];

/**
 * The hubs of the workspace: name, state, firmware and place (to a hundredth of a degree, about a kilometre), by the id
 * that devices give as their parent.
 */
export const HUBS = hubs(
  'hub_online, firmware, round(100 * latitude) / 100 AS lat, round(100 * longitude) / 100 AS lon',
  'online AS hub_online, firmware_version AS firmware, latitude, longitude',
);

/** The same with the name alone: a query reads each field once for every device, and tags never. */
export const HUB_NAMES = hubs('is_addon');

/** @param inner further columns of `device`. The condition is outside, so that only the last point of each device is read. */
function hubs(columns: string, inner = ''): string {
  const of = ['last(is_addon) AS is_addon, device_name AS hub, device_id AS parent_device_id', inner];
  const last = `SELECT ${of.filter((one) => one !== '').join(', ')} FROM device WHERE ${HOURLY} AND ${OF_WORKSPACE} GROUP BY device_id`;
  return `SELECT hub, parent_device_id, ${columns} FROM (${last}) WHERE is_addon = 0`;
}

/** What else `HUBS` is answered. */
export const HUB_FACTS = ['hub_online', 'firmware', 'lat', 'lon'] as const;

/** When a device was seen last: by the newest reading or by the list of devices. */
export const SEEN = 'seen_ms';
export const LAST_SEEN = later('Time telemetry', 'last_seen_ms', SEEN);
/** What it is made from. */
export const SEEN_FACTS = ['Time telemetry', 'reading', 'last_seen_ms'] as const;

/** Puts the facts of devices together with the name of their hub. */
export const WITH_HUB: readonly Transformation[] = [
  join('parent_device_id', 'outerTabular'),
  only('device_name', 'isNotNull'),
];

const DEVICES: PanelSpec = grid({
  title: 'Devices',
  description: `Every device of the range, as the device list last showed it. Order: active devices first, among these the devices that are not online, then by lag. "Lag": how far the copy is behind. "Last seen": the time of the newest reading, or that in the device list. A silent device has no lag, because nothing newer exists. "Sync" and "Lag" are "unknown" where Tidemark has not reported for 17 minutes; a device that has left the workspace is "unreachable". ${GAP_SHOWN} Click a name to open it.`,
  w: 24,
  h: 14,
  targets: tables(
    newest(
      [
        ...['device_name', 'online', 'lifecycle_status', 'last_seen_ms', 'parent_device_id', 'model_id'],
        ...['firmware_version', 'tags'],
      ],
      `device WHERE ${HOURLY} AND ${OF_FLEET}`,
      'device_id',
    ),
    ...syncOf(OF_WORKSPACE),
    `SELECT last(value) AS reading FROM telemetry WHERE ${IN_RANGE} AND ${OF_WORKSPACE} GROUP BY device_id`,
    HUB_NAMES,
  ),
  noValue: NO_DEVICES,
  transformations: [
    { ...join('device_id'), filter: { id: 'byRefId', options: '/^[A-E]$/' } },
    // Of devices that the choice of hubs and models leaves out, coverage alone would remain.
    ...WITH_HUB,
    ...LAST_SEEN,
    ...SYNC,
    onlineNow(),
  ],
  columns: {
    device_name: { title: 'Name', links: [TO_DEVICE], width: 180 },
    [ONLINE_NOW]: DEVICE_COLUMNS.online,
    state: DEVICE_COLUMNS.sync,
    [SYNC_LAG]: DEVICE_COLUMNS.lag,
    [SEEN]: DEVICE_COLUMNS.lastSeen,
    lifecycle_status: DEVICE_COLUMNS.lifecycle,
    [SYNC_GAP]: DEVICE_COLUMNS.gap,
    hub: { title: 'Hub', width: 160 },
    model_id: DEVICE_COLUMNS.model,
    firmware_version: { title: 'Firmware', width: 90 },
    device_id: { ...DEVICE_COLUMNS.id, width: 110 },
    tags: { title: 'Tags' },
    ...hidden('Time device', 'Time coverage', 'parent_device_id', ...SYNC_FACTS, 'is_addon', ...SEEN_FACTS),
  },
  // "active" comes first by its name.
  sortBy: [{ displayName: 'Lifecycle' }, { displayName: 'Online' }, { displayName: 'Lag', desc: true }],
});

/** What a list of such devices adds to those that are silent or not online. */
interface LookAt {
  /** Devices for which one of these holds are listed too. */
  readonly or?: readonly Condition[];
  /** Devices for which one of these holds are left out. */
  readonly without?: readonly Condition[];
  /** What decides among active devices, and among the others: the least first. */
  readonly sortBy: string;
  readonly limit: number;
  readonly columns: Readonly<Record<string, Column>>;
}

/** Devices that are silent or not online, active ones first; those that are gone or excluded are not expected to report. */
export function devicesToLookAt(
  panel: Pick<PanelSpec, 'title' | 'description' | 'w' | 'h'> & { readonly noValue: string },
  { or = [], without = [], sortBy, limit, columns }: LookAt,
): PanelSpec {
  return grid({
    ...panel,
    targets: tables(
      newest(
        ['device_name', 'online', 'lifecycle_status', 'presence', 'last_seen_ms'],
        `device WHERE ${HOURLY} AND ${OF_FLEET}`,
        'device_id',
      ),
      ...syncOf(OF_WORKSPACE),
    ),
    transformations: [
      join('device_id'),
      only('device_name', 'isNotNull'),
      ...SYNC,
      any('exclude', ['state', 'equal', 'unreachable'], ['state', 'equal', 'excluded'], ...without),
      any('include', ['online', 'equal', 0], ['state', 'equal', 'silent'], ...or),
      onlineNow(),
      { id: 'sortBy', options: { sort: [{ field: sortBy }] } },
      // Grafana's sort is stable; "active" comes first.
      { id: 'sortBy', options: { sort: [{ field: 'lifecycle_status' }] } },
      { id: 'limit', options: { limitField: limit } },
    ],
    columns: {
      device_name: { title: 'Name', links: [TO_DEVICE] },
      ...columns,
      ...hidden('Time device', 'Time coverage', ...SYNC_FACTS),
    },
  });
}

/** Who is silent, and for how long. */
export const SILENT_LONGEST: PanelSpec = devicesToLookAt(
  {
    title: 'Silent or out of service',
    description:
      'The devices that are silent or not online, and those among them that were paused, shelved or retired: active devices first, then by the time since they were last seen. "Lag" is "unknown" where Tidemark has not reported for 17 minutes. At most fifty.',
    ...{ w: 12, h: 9, noValue: 'No device is reported as silent.' },
  },
  {
    sortBy: 'last_seen_ms',
    limit: 50,
    columns: {
      [SYNC_LAG]: DEVICE_COLUMNS.lag,
      last_seen_ms: DEVICE_COLUMNS.listedSeen,
      lifecycle_status: DEVICE_COLUMNS.lifecycle,
      presence: DEVICE_COLUMNS.presence,
      device_id: DEVICE_COLUMNS.id,
      ...hidden(ONLINE_NOW, 'state', SYNC_GAP),
    },
  },
);

/**
 * 1 for each device that is read, as it was reported last: `online` leaves out devices for which the workspace does not
 * report it.
 */
const REPORTING = `SELECT 1 + 0 * gap AS reporting FROM (SELECT last(gap_seconds) AS gap, state FROM coverage WHERE ${REPORTED} AND ${OF_WORKSPACE} GROUP BY device_id) WHERE state = 'live' OR state = 'catching-up' GROUP BY device_id`;

/** A count of the add-ons of a hub, unknown where the hub is not reported any more. */
function counted(count: string, alias: string): Transformation {
  return rowFigure('sum', [count, NOT_COUNTED], alias);
}

const HUB_TABLE: PanelSpec = grid({
  title: 'Hubs',
  description:
    'Each hub with its active add-ons: how many there are, how many report (their sync is live or catching up) and how many do not. Both, and whether the hub is online, are unknown once Tidemark has stopped. While a hub is not online, its add-ons cannot report.',
  w: 12,
  h: 9,
  targets: tables(
    newest(
      ['parent_device_id', 'is_addon', 'lifecycle_status'],
      `device WHERE ${HOURLY} AND ${OF_FLEET} AND is_addon = 1`,
      'device_id',
    ),
    REPORTING,
    HUBS,
    countsOf(OF_WORKSPACE),
  ),
  noValue: NO_DEVICES,
  transformations: [
    {
      id: 'organize',
      filter: { id: 'byRefId', options: 'D' },
      options: {
        excludeByName: {},
        indexByName: {},
        renameByName: { device_id: 'parent_device_id' },
        includeByName: {},
      },
    },
    { ...join('device_id'), filter: { id: 'byRefId', options: '/^(?:A|B)$/' } },
    any('exclude', ...RESTING.map((status) => ['lifecycle_status', 'equal', status] as const)),
    join('parent_device_id', 'outerTabular'),
    only('hub', 'isNotNull'),
    ...REPORTS,
    ...COUNTS,
    onlineNow('hub_online'),
    {
      id: 'groupBy',
      options: {
        fields: {
          ...grouped('hub', ONLINE_NOW, 'firmware', 'parent_device_id', NOT_COUNTED),
          is_addon: { operation: 'aggregate', aggregations: ['sum'] },
          reporting: { operation: 'aggregate', aggregations: ['sum'] },
        },
      },
    },
    binary('is_addon (sum)', '-', 'reporting (sum)', 'silent'),
    counted('reporting (sum)', 'reporting'),
    counted('silent', 'missing'),
  ],
  columns: {
    hub: { title: 'Hub', links: [toDevice('tidemark-device', 'datasource', 'parent_device_id')] },
    [ONLINE_NOW]: { ...DEVICE_COLUMNS.online, title: 'Hub online' },
    'is_addon (sum)': { title: 'Add-ons', width: 75 },
    reporting: {
      title: 'Add-ons reporting',
      mappings: [UNKNOWN_COUNT],
      thresholds: NEUTRAL,
      colored: true,
      width: 155,
    },
    missing: {
      title: 'Not reporting',
      mappings: [UNKNOWN_COUNT],
      thresholds: BAD_IF_ANY,
      colored: true,
      width: 110,
    },
    firmware: { title: 'Firmware', width: 85 },
    parent_device_id: { ...DEVICE_COLUMNS.id, width: 100 },
    ...hidden('reporting (sum)', 'silent', NOT_COUNTED),
  },
  sortBy: [{ displayName: 'Hub online' }, { displayName: 'Not reporting', desc: true }],
});

/** Hours of the range that are over for an hour at least: the running one is covered a little after it ends. */
const HOURS_DONE = `time >= \${__from}ms AND time < \${__to}ms - 2h`;

const NO_HOUR = 'No hour of this range is covered yet.';

/** Puts the hours of each device together with its name and its hub. */
const COMPLETE: readonly Transformation[] = [
  { ...join('device_id'), filter: { id: 'byRefId', options: '/^(?:A|B|C|D)$/' } },
  ...WITH_HUB,
  binary('heard', '/', 'covered', 'available'),
];

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
  noValue: NO_HOUR,
  transformations: COMPLETE,
  columns: {
    device_name: { title: 'Name', links: [TO_DEVICE], width: 180 },
    complete: { title: 'Completeness', unit: 'percentunit', decimals: 1 },
    available: { title: 'Availability', unit: 'percentunit', decimals: 1 },
    hub: { title: 'Hub' },
    covered: { title: 'Hours covered' },
    heard: { title: 'Hours with readings' },
    device_id: DEVICE_COLUMNS.id,
    tags: { title: 'Tags' },
    ...hidden('Time coverage_hour', 'Time device', 'parent_device_id', ...HUB_FACTS),
  },
  sortBy: [{ displayName: 'Completeness' }, { displayName: 'Availability' }],
});

/** What devices have in common whose figures are put together. */
interface Together {
  readonly title: string;
  readonly description: string;
  readonly noValue: string;
  /** By the values of these fields; devices without any of the first one are left out. */
  readonly by: readonly [string, ...string[]];
  readonly columns: Readonly<Record<string, Column>>;
}

/** The same as a mean of devices that have something in common. */
function completenessBy({ title, description, noValue, by, columns }: Together): PanelSpec {
  return grid({
    ...{ title: `Completeness and availability by ${title}`, description, noValue, w: 8, h: 12 },
    targets: COMPLETENESS.targets,
    transformations: [
      ...COMPLETE,
      only(by[0], 'isNotNull'),
      {
        id: 'groupBy',
        options: {
          fields: {
            hub: { operation: 'aggregate', aggregations: ['lastNotNull'] },
            ...grouped(...by),
            complete: { operation: 'aggregate', aggregations: ['mean'] },
            available: { operation: 'aggregate', aggregations: ['mean'] },
            device_id: { operation: 'aggregate', aggregations: ['count'] },
          },
        },
      },
    ],
    columns: {
      ...columns,
      'complete (mean)': { title: 'Completeness', unit: 'percentunit', decimals: 1 },
      'available (mean)': { title: 'Availability', unit: 'percentunit', decimals: 1 },
      'device_id (count)': { title: 'Devices', width: 80 },
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
            ...grouped(field),
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
    { title: 'Silent devices and hubs', panels: [SILENT_LONGEST, HUB_TABLE] },
    { title: 'All devices', panels: [DEVICES] },
    { title: 'Where and when', panels: [MAP, ...OVER_TIME] },
    {
      title: 'Over the range',
      panels: [
        COMPLETENESS,
        completenessBy({
          title: 'hub',
          description: 'The mean of the devices below each hub, the worst first.',
          noValue: NO_HOUR,
          by: ['hub'],
          columns: { hub: { title: 'Hub' } },
        }),
        completenessBy({
          title: 'site',
          description:
            'The mean of the devices of hubs within about a kilometre of each other, the worst first. Each site is named after one of its hubs. Empty where sync.location is off.',
          noValue: 'No hub has a position, or no hour of this range is covered yet.',
          by: ['lat', 'lon'],
          columns: { 'hub (lastNotNull)': { title: 'Site' }, ...hidden('lat', 'lon') },
        }),
        completenessBy({
          title: 'tags',
          description: 'The mean of the devices with the same tags, the worst first.',
          noValue: NO_HOUR,
          by: ['tags'],
          columns: { tags: { title: 'Tags' }, ...hidden('hub (lastNotNull)') },
        }),
      ],
    },
    {
      title: 'Models, firmware, lifecycle',
      panels: [
        distribution('Models', 'model_id', 'Devices by model, the most frequent first.'),
        distribution('Firmware', 'firmware_version', 'Devices by firmware version, the most frequent first.'),
        distribution(
          'Lifecycle',
          'lifecycle_status',
          'Devices by lifecycle state. Only active devices are expected to report.',
        ),
      ],
    },
  ],
};
