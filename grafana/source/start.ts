/** The dashboard "Start": is all well, what needs attention, and where to look further. */
import { DEVICE_COLUMNS, TARGET } from './both.ts';
import { FLEET, fleetNumbers } from './fleet.ts';
import { HOURLY, newest, OF_FLEET, OF_WORKSPACE, tables } from './influxql.ts';
import { syncOf } from './lag.ts';
import { panelId } from './layout.ts';
import { any, join, LIFECYCLE, only, TO_DEVICE } from './looks.ts';
import type { DashboardSpec, DataLink, PanelOf, PanelSpec } from './model.ts';
import { grid } from './panels.ts';
import { HUB, MODEL, WORKSPACE } from './variables.ts';

const HOUR_S = 3600;

const TO_TABLE: DataLink = {
  title: 'List the devices',
  url: `/d/${FLEET.uid}?viewPanel=${panelId(FLEET, 'Devices')}&\${datasource:queryparam}&\${__url_time_range}`,
};

const ATTENTION: PanelSpec = grid({
  title: 'What needs attention',
  description:
    'Devices that are silent or not online, that have a lag of more than an hour, or that Tidemark no longer reports: the first twenty, active ones first. Click a name to open the device.',
  w: 16,
  h: 12,
  targets: tables(
    newest(
      ['device_name', 'online', 'lifecycle_status', 'presence', 'last_seen_ms'],
      `device WHERE ${HOURLY} AND ${OF_FLEET}`,
      'device_id',
    ),
    syncOf(OF_WORKSPACE),
  ),
  noValue: 'Nothing needs attention, if the numbers above are green.',
  transformations: [
    join('device_id'),
    only('device_name', 'isNotNull'),
    // Devices that are gone or excluded are not expected to report.
    any('exclude', ['state', 'equal', 'unreachable'], ['state', 'equal', 'excluded']),
    any(
      'include',
      ['online', 'equal', 0],
      ['state', 'equal', 'silent'],
      ['lag', 'greater', HOUR_S],
      ['lag', 'lower', 0],
    ),
    { id: 'sortBy', options: { sort: [{ field: 'online' }] } },
    // The order of Grafana keeps that of equals; "active" comes first.
    { id: 'sortBy', options: { sort: [{ field: 'lifecycle_status' }] } },
    { id: 'limit', options: { limitField: 20 } },
  ],
  columns: {
    device_name: { title: 'Name', links: [TO_DEVICE], width: 180 },
    online: DEVICE_COLUMNS.online,
    state: DEVICE_COLUMNS.sync,
    lag: DEVICE_COLUMNS.lag,
    last_seen_ms: DEVICE_COLUMNS.lastSeen,
    lifecycle_status: { title: 'Lifecycle', mappings: [LIFECYCLE], colored: true },
    presence: DEVICE_COLUMNS.presence,
    device_id: DEVICE_COLUMNS.id,
    gap_seconds: { title: 'Missing', hidden: true },
    known: { title: 'Known', hidden: true },
    'Time device': { title: 'Listed', hidden: true },
    'Time coverage': { title: 'Reported', hidden: true },
  },
});

const FIRING: PanelOf<'alertlist'> = {
  type: 'alertlist',
  title: 'Firing alert rules',
  description:
    'Rules of Grafana and Prometheus about Tidemark itself that fire now, without the watchdog. "Open alerts" above are those of the workspace about its devices.',
  w: 8,
  h: 12,
  targets: [],
  options: {
    viewMode: 'list',
    groupMode: 'default',
    groupBy: [],
    maxItems: 20,
    sortOrder: 3,
    dashboardAlerts: false,
    alertName: 'Tidemark',
    alertInstanceLabelFilter: '{severity!="none"}',
    stateFilter: { firing: true, pending: false, noData: true, normal: false, error: true },
  },
};

/** A line for each dashboard. */
function directory(dashboards: readonly DashboardSpec[]): PanelOf<'text'> {
  const lines = dashboards.map(
    ({ uid, title, description }) =>
      `- **[${title.replace('Tidemark / ', '')}](/d/${uid}?$\{datasource:queryparam}&$\{__url_time_range})** – ${description}`,
  );
  return {
    type: 'text',
    title: 'Dashboards',
    description: 'The other dashboards, with what each of them answers.',
    w: 24,
    h: 8,
    targets: [],
    options: { mode: 'markdown', content: lines.join('\n') } as PanelOf<'text'>['options'],
  };
}

/** @param dashboards the others. */
export function startBoard(dashboards: readonly DashboardSpec[]): DashboardSpec {
  return {
    uid: 'tidemark-start',
    title: 'Tidemark / Start',
    description: 'Is all well, what needs attention, and which dashboard says more?',
    source: 'influxdb',
    from: 'now-24h',
    refresh: '1m',
    variables: [WORKSPACE, HUB, MODEL, TARGET],
    sections: [
      { title: 'Now', panels: fleetNumbers(TO_TABLE) },
      { title: 'Attention', panels: [ATTENTION, FIRING] },
      { title: 'Where to look', panels: [directory(dashboards)] },
    ],
  };
}
