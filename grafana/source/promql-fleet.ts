/** The dashboard "Fleet (PromQL)": is everything there, and where is what is not? For those who have a VictoriaMetrics. */
import { badCount, behindNow, behindOverTime, DEVICE_COLUMNS, onlineNow, onlineOverTime } from './both.ts';
import { join, PLAIN, toDevice } from './looks.ts';
import type { DashboardSpec, PanelSpec } from './model.ts';
import { grid, NO_DEVICES, stat } from './panels.ts';
import { held, newest, newestAlert, OF_WORKSPACE, of, WORKSPACE } from './points.ts';
import { present, presentTable, series } from './promql.ts';

/** As on the other dashboards: a quarter of an hour is usual, an hour is not. */
const LATE_S = 3600;

/** The alerts that are open: 1 for each. */
const OPEN = `(${newestAlert('alert_state_open', OF_WORKSPACE)} == 1)`;
const LAG_NOW = newest('coverage_lag_seconds', OF_WORKSPACE);

/** A state of each device over time, under whatever name. */
function byDevice(metric: string): string {
  return `max by (device_id) (${held(metric, OF_WORKSPACE)})`;
}

const reporting = ['telemetry_value', 'telemetry_flag'].map(
  (metric) => `count by (device_id) (count_over_time(${of(metric, OF_WORKSPACE)}[1h]))`,
);

const NUMBERS: readonly PanelSpec[] = [
  onlineNow(present([`sum(${newest('device_online', OF_WORKSPACE)})`, 'Online'])),
  badCount(
    'Not online',
    'Devices that do not report, those among them that were taken out of service. The table below shows which, and since when.',
    present([`count(${newest('device_online', OF_WORKSPACE)} == 0)`, 'Not online']),
  ),
  stat({
    title: 'Reporting',
    description: 'Devices of which this database holds a reading of the last hour.',
    ...{ w: 4, h: 4, noValue: '0', unit: 'none', thresholds: PLAIN },
    targets: present([`count(${reporting.join(' or ')})`, 'Reporting']),
  }),
  badCount(
    'Behind',
    'Devices whose copy is more than an hour old. The table below shows them in red.',
    present([`count(${LAG_NOW} > ${LATE_S})`, 'Behind']),
  ),
  badCount(
    'Open alerts',
    'Alerts that are not resolved. The table below lists them.',
    present([`count(${OPEN})`, 'Open']),
  ),
  behindNow(present([`quantile(0.5, ${LAG_NOW})`, 'middle'], [`quantile(0.95, ${LAG_NOW})`, 'most']), 4),
];

const OVER_TIME: readonly PanelSpec[] = [
  onlineOverTime(
    series(
      [`sum(${byDevice('device_online')})`, 'Online'],
      [`count(count by (device_id) (${held('device_online', OF_WORKSPACE)}))`, 'Listed'],
    ),
    {
      description: 'Devices online, and all that the workspace lists, with those that left it for three hours.',
      interval: '5m',
    },
  ),
  behindOverTime(
    series(
      [`quantile(0.5, ${byDevice('coverage_lag_seconds')})`, 'middle'],
      [`quantile(0.95, ${byDevice('coverage_lag_seconds')})`, 'most'],
      [`max(${byDevice('coverage_lag_seconds')})`, 'worst'],
    ),
  ),
];

/** Every device once, with what numbers tell of it. @param where which devices. */
export function deviceTable(where: string, look: { title: string; description: string; h: number }): PanelSpec {
  const figure = (metric: string): string => `max by (device_id) (${newest(metric, where)})`;
  return grid({
    ...look,
    w: 24,
    targets: presentTable(
      `max by (device_id, device_name, model_id) (${newest('device_online', where)})`,
      figure('device_last_seen_ms'),
      figure('coverage_lag_seconds'),
      figure('coverage_gap_seconds'),
    ),
    noValue: NO_DEVICES,
    transformations: [join('device_id')],
    columns: {
      device_name: { title: 'Name', links: [TO_DEVICE], width: 260 },
      'Value #A': DEVICE_COLUMNS.online,
      'Value #B': DEVICE_COLUMNS.lastSeen,
      'Value #C': DEVICE_COLUMNS.lag,
      'Value #D': DEVICE_COLUMNS.gap,
      model_id: DEVICE_COLUMNS.model,
      device_id: DEVICE_COLUMNS.id,
      'Time 1': { title: 'Listed', hidden: true },
      'Time 2': { title: 'Seen', hidden: true },
      'Time 3': { title: 'Noted', hidden: true },
      'Time 4': { title: 'Counted', hidden: true },
    },
    sortBy: [{ displayName: 'Name' }],
  });
}

const TO_DEVICE = toDevice('tidemark-vm-device', 'victoria_datasource');

const TABLES: readonly PanelSpec[] = [
  deviceTable(OF_WORKSPACE, {
    title: 'Devices',
    description: 'Every device once, as listed last, with how far it is synced. Click a name to open the device.',
    h: 14,
  }),
  grid({
    title: 'Alerts that are open',
    description:
      'The alerts that are not resolved, how often each has fired, and the value that it saw last. Click a name to open the device.',
    w: 24,
    h: 8,
    targets: presentTable(
      `max by (alert_id, device_id, device_name, kind, sensor) (${OPEN})`,
      ...['alert_state_fire_count', 'alert_state_value'].map(
        (metric) => `max by (alert_id) (${newestAlert(metric, OF_WORKSPACE)} and on (alert_id) ${OPEN})`,
      ),
    ),
    noValue: 'No alert is open.',
    transformations: [join('alert_id')],
    columns: {
      device_name: { title: 'Device', links: [TO_DEVICE], width: 260 },
      sensor: { title: 'Sensor' },
      kind: { title: 'Kind' },
      'Value #B': { title: 'Fired', decimals: 0 },
      'Value #C': { title: 'Value', decimals: 2 },
      alert_id: { title: 'Alert' },
      device_id: DEVICE_COLUMNS.id,
      'Value #A': { title: 'Open', hidden: true },
      'Time 1': { title: 'Opened', hidden: true },
      'Time 2': { title: 'Counted', hidden: true },
      'Time 3': { title: 'Measured', hidden: true },
    },
    sortBy: [{ displayName: 'Device' }],
  }),
];

export const PROMQL_FLEET: DashboardSpec = {
  uid: 'tidemark-vm-fleet',
  title: 'Tidemark / Fleet (PromQL)',
  description: 'Is every device there, where is what is not, and how fresh is this copy? For data in VictoriaMetrics.',
  source: 'victoriametrics',
  from: 'now-24h',
  refresh: '1m',
  variables: [WORKSPACE],
  sections: [
    { title: 'Now', panels: NUMBERS },
    { title: 'Over time', panels: OVER_TIME },
    { title: 'Devices', panels: TABLES },
  ],
};
