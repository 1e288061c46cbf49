/** The dashboard "Start": is all well, what needs attention, and where to look further. */
import { DEVICE_COLUMNS, TARGET } from './both.ts';
import { devicesToLookAt, FLEET, fleetNumbers } from './fleet.ts';
import { SYNC_GAP, SYNC_LAG } from './lag.ts';
import { panelId } from './layout.ts';
import { hidden, ONLINE_NOW, RESTING } from './looks.ts';
import type { DashboardSpec, DataLink, PanelOf, PanelSpec } from './model.ts';
import { HUB, MODEL, WORKSPACE } from './variables.ts';

const HOUR_S = 3600;

const TO_TABLE: DataLink = {
  title: 'List the devices',
  url: `/d/${FLEET.uid}?viewPanel=${panelId(FLEET, 'Devices')}&\${datasource:queryparam}&\${__url_time_range}`,
};

const ATTENTION: PanelSpec = devicesToLookAt(
  {
    title: 'Devices that need attention',
    description:
      'Active devices that are silent or not online, that have a lag of more than an hour, or that Tidemark no longer reports. Devices that were paused, shelved or retired are left out: the dashboard "Fleet" lists them. "Last seen (device list)" is recorded at least hourly. At most twenty. Click a name to open the device. Open alerts are not listed here: the dashboard "Alerts" lists them.',
    ...{ w: 16, h: 12, noValue: 'No device needs attention, if the numbers above are green.' },
  },
  {
    or: [
      [SYNC_LAG, 'greater', HOUR_S],
      // Those that Tidemark no longer reports.
      [SYNC_LAG, 'isNull'],
    ],
    // Somebody took these out of service.
    without: RESTING.map((status) => ['lifecycle_status', 'equal', status] as const),
    sortBy: 'online',
    limit: 20,
    columns: {
      [ONLINE_NOW]: DEVICE_COLUMNS.online,
      state: DEVICE_COLUMNS.sync,
      [SYNC_LAG]: DEVICE_COLUMNS.lag,
      last_seen_ms: DEVICE_COLUMNS.listedSeen,
      lifecycle_status: DEVICE_COLUMNS.lifecycle,
      presence: DEVICE_COLUMNS.presence,
      device_id: DEVICE_COLUMNS.id,
      ...hidden(SYNC_GAP),
    },
  },
);

const FIRING: PanelOf<'alertlist'> = {
  type: 'alertlist',
  title: 'Firing alert rules',
  description:
    'Alert rules of Grafana and Prometheus about Tidemark itself that fire now, without the watchdog. "Open alerts" above counts the alerts of the workspace about its devices.',
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

/** A line for each dashboard. The links are relative: Grafana puts its sub-path before those of panels only. */
function directory(dashboards: readonly DashboardSpec[]): PanelOf<'text'> {
  const lines = dashboards.map(
    ({ uid, title, description }) =>
      `- **[${title.replace('Tidemark / ', '')}](d/${uid}?$\{datasource:queryparam}&$\{__url_time_range})** – ${description}`,
  );
  return {
    type: 'text',
    title: 'Dashboards',
    description: 'Links to the other dashboards, with the question that each answers.',
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
    description: 'Is everything in sync, what needs attention, and which dashboard has the details?',
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
