/** The dashboard "Fleet (PromQL)": which devices report, and which do not? For those who have a VictoriaMetrics. */
import {
  ALERT_COLUMNS,
  ALERT_COLUMNS_SHOWN,
  badCount,
  DEVICE_COLUMNS,
  GAP_SHOWN,
  lagOverTime,
  lagStat,
  NOT_KNOWN,
  onlineNow,
  onlineOverTime,
  openAlerts,
  TARGET,
} from './both.ts';
import { LAG_LOOKS } from './lag.ts';
import { hidden, initialSync, join, LAG_WORDS, ONLINE, only, PLAIN, steps, toDevice, toPanel, words } from './looks.ts';
import type { DashboardSpec, PanelSpec } from './model.ts';
import { grid, NO_DEVICES, stat } from './panels.ts';
import { held, newest, newestAlert, OF_WORKSPACE, of, thresholds, WORKSPACE, withUnit, writtenAt } from './points.ts';
import { present, presentTable, series } from './promql.ts';
import { UNIT_COLUMN } from './sensor-units.ts';

/** The alerts that are open: 1 for each. */
function openAlertsOf(where: string): string {
  return `(${newestAlert('alert_state_open', where)} == 1)`;
}

/** Coverage points come every 15 minutes at least: without one for 17 minutes the daemon has stopped. */
const REPORTED = `count(last_over_time(${of('coverage_gap_seconds', OF_WORKSPACE)}[17m]))`;

/** The age of the watermark of each device. @param window how far back it is looked for. */
function lag(where: string, window: string): string {
  return `(time() - max by (device_id) (last_over_time(${of('coverage_watermark_ms', where)}[${window}])) / 1000)`;
}

/** The devices that are reported. */
function reportedOf(where: string): string {
  return `max by (device_id) (last_over_time(${of('coverage_gap_seconds', where)}[17m]))`;
}

/** Devices that are not online: 0 for each. */
function offline(where: string): string {
  return `(max by (device_id) (${newest('device_online', where)}) == 0)`;
}

/** The lag of each device that sends nothing although it is covered up to the present. */
function nothingNewer(where: string): string {
  return `((${lag(where, '17m')} <= 900) and on (device_id) ${offline(where)})`;
}

/** The lag of each device, or the number that stands for a word. */
function lagOrWord(where: string): string {
  const { silent, outOfService, initialSync: initial, notReported } = LAG_WORDS;
  const out = `(0 * ${nothingNewer(where)} + ${outOfService} and on (device_id) ${resting(where)})`;
  const others = `(0 * ${nothingNewer(where)} + ${silent})`;
  const listed = `max by (device_id) (${newest('device_online', where)})`;
  const covered = `(${lag(where, '26h')} and on (device_id) ${reportedOf(where)})`;
  return `(${out} or ${others} or ${covered} or 0 * ${reportedOf(where)} + ${initial} or 0 * ${listed} + ${notReported})`;
}

const LAG_NOW = lag(OF_WORKSPACE, '17m');
const TARGET_S = `\${target:date:seconds}`;
const P95 = `quantile(0.95, ${LAG_NOW})`;
const RANGE = `|\${__url_time_range}`;

/** A number of the present; none where the daemon has stopped. */
function whileReporting(expr: string): string {
  return `(${expr}) and on () (${REPORTED} > 0)`;
}

const TO_TABLE = toPanel('tidemark-vm-fleet', 'Devices', 'List the devices', 'victoria_datasource');

/** A state of each device over time, under whatever name. */
function byDevice(metric: string): string {
  return `max by (device_id) (${held(metric, OF_WORKSPACE)})`;
}

/** The largest value of each device in each step, so that no step hides a peak; the last state where it has none. */
function peakByDevice(metric: string): string {
  const ofStep = `max_over_time(${of(metric, OF_WORKSPACE)}[$__interval] offset -$__interval)`;
  return `max by (device_id) (${ofStep} or ${held(metric, OF_WORKSPACE)})`;
}

/** Devices that were paused, shelved or retired: 0 for each. */
function resting(where: string): string {
  return `(max by (device_id) (${newest('coverage_active', where)}) == 0)`;
}

const reporting = ['telemetry_value', 'telemetry_flag'].map(
  (metric) => `count by (device_id) (count_over_time(${of(metric, OF_WORKSPACE)}[1h]))`,
);

const NUMBERS: readonly PanelSpec[] = [
  onlineNow({
    w: 3,
    targets: present([whileReporting(`sum(${newest('device_online', OF_WORKSPACE)})`), 'Online']),
    links: [TO_TABLE],
  }),
  badCount(
    'Silent',
    'Active devices that are not online although their copy is up to date: they send nothing. The table below lists them first, and those that were paused, shelved or retired last.',
    {
      targets: present([
        whileReporting(
          `count(${nothingNewer(OF_WORKSPACE)} unless on (device_id) ${resting(OF_WORKSPACE)}) or 0 * count(${newest('device_online', OF_WORKSPACE)})`,
        ),
        'Silent',
      ]),
      links: [TO_TABLE],
      w: 3,
    },
  ),
  stat({
    title: 'Out of service',
    description:
      'Devices that are not online because they were paused, shelved or retired: no readings are expected of them. "Online", "Silent" and this number add up to the devices in the list, unless a device is not online and late, or the workspace does not report whether it is online.',
    ...{ w: 3, h: 4, noValue: NOT_KNOWN, unit: 'none', thresholds: steps('red', [0, 'text']) },
    targets: present([
      whileReporting(
        `count(${offline(OF_WORKSPACE)} and on (device_id) ${resting(OF_WORKSPACE)}) or 0 * count(${newest('device_online', OF_WORKSPACE)})`,
      ),
      'Out of service',
    ]),
    links: [TO_TABLE],
  }),
  stat({
    title: 'Reported in the last hour',
    description: 'Devices with a reading of the last hour in this database.',
    ...{ w: 4, h: 4, noValue: '0', unit: 'none', thresholds: PLAIN },
    targets: present([`count(${reporting.join(' or ')})`, 'Reporting']),
    links: [TO_TABLE],
  }),
  badCount('Late', 'Devices with a lag above the target chosen at the top.', {
    w: 3,
    targets: present(
      [`count(${LAG_NOW} > ${TARGET_S}) or 0 * count(${LAG_NOW})`, 'Late'],
      [`0 * ${REPORTED} unless on () ${P95}`, 'Late'],
    ),
    overrides: initialSync('B'),
    links: [TO_TABLE],
  }),
  openAlerts('Alerts that are not resolved. The table below lists them.', {
    w: 3,
    targets: present([whileReporting(`count(${openAlertsOf(OF_WORKSPACE)}) or 0 * ${REPORTED}`), 'Open']),
    links: [toPanel('tidemark-vm-fleet', 'Alerts that are open', 'List the alerts', 'victoria_datasource')],
  }),
  lagStat(
    {
      targets: present(
        [`${P95} <= ${TARGET_S}`, `p95${RANGE}`],
        [`${P95} > ${TARGET_S} <= 4 * ${TARGET_S}`, `p95${RANGE}`],
        [`${P95} > 4 * ${TARGET_S}`, `p95${RANGE}`],
        [`-1 * min(${lag(OF_WORKSPACE, '26h')}) unless on () (${REPORTED} > 0)`, `stopped${RANGE}`],
        [`0 * ${REPORTED} unless on () ${P95}`, 'lag'],
      ),
      links: [TO_TABLE],
      overrides: [...LAG_LOOKS, ...initialSync('E')],
    },
    5,
  ),
];

const OVER_TIME: readonly PanelSpec[] = [
  onlineOverTime(
    series(
      [`sum(${byDevice('device_online')})`, 'Online'],
      [`count(count by (device_id) (${held('device_online', OF_WORKSPACE)}))`, 'In the device list'],
    ),
    {
      description:
        'Devices online, and all devices of the workspace. A device that has left the workspace is counted for three more hours.',
      interval: '5m',
    },
  ),
  lagOverTime(
    series(
      [`quantile(0.5, ${peakByDevice('coverage_lag_seconds')})`, 'median'],
      [`quantile(0.95, ${peakByDevice('coverage_lag_seconds')})`, 'p95'],
      [`max(${peakByDevice('coverage_lag_seconds')})`, 'largest'],
    ),
  ),
];

/** Not online, of a device that was taken out of service: no alarm; and of one that is not reported any more. */
const OTHERWISE = words({ '2': ['Not online', 'text'], '4': ['unknown', 'red'] });
/** This database stores no text, so it cannot show which of the three it is. */
const ACTIVE = words({ '0': ['paused, shelved or retired', 'text'], '1': ['active', 'green'] });

/** Every device once, with its numeric facts. @param where which devices. */
export function deviceTable(where: string, look: { title: string; description: string; h: number }): PanelSpec {
  const figure = (metric: string): string => `max by (device_id) (${newest(metric, where)})`;
  const readAt = `1000 * max by (device_id) (${writtenAt(of('telemetry_value', where), '3h')})`;
  const seen = [figure('device_last_seen_ms'), readAt].map(
    (at, index) => `label_replace(${at}, "by", "${index}", "", "")`,
  );
  const online = `max by (device_id, device_name, model_id) (${newest('device_online', where)})`;
  return grid({
    ...look,
    w: 24,
    targets: presentTable(
      `(4 + 0 * ${online} unless on (device_id) ${reportedOf(where)}) or ${online} + 2 * (${online} < bool 1) * on (device_id) group_left () (${resting(where)} + 1) or ${online}`,
      `max by (device_id) (${seen.join(' or ')})`,
      lagOrWord(where),
      figure('coverage_gap_seconds'),
      // A device for which the API does not report it counts as active.
      `${figure('coverage_active')} or max by (device_id) (1 + 0 * ${newest('device_online', where)})`,
    ),
    noValue: NO_DEVICES,
    transformations: [join('device_id'), only('device_name', 'isNotNull')],
    columns: {
      device_name: { title: 'Name', links: [TO_DEVICE] },
      'Value #A': { ...DEVICE_COLUMNS.online, mappings: [ONLINE, OTHERWISE] },
      'Value #C': DEVICE_COLUMNS.lag,
      'Value #B': DEVICE_COLUMNS.lastSeen,
      'Value #E': { ...DEVICE_COLUMNS.lifecycle, mappings: [ACTIVE], width: 190 },
      'Value #D': DEVICE_COLUMNS.gap,
      model_id: { title: 'Model', width: 160 },
      device_id: { title: 'Id', width: 180 },
      ...hidden('Time 1', 'Time 2', 'Time 3', 'Time 4', 'Time 5'),
    },
    sortBy: [{ displayName: 'Lifecycle', desc: true }, { displayName: 'Online' }, { displayName: 'Lag', desc: true }],
  });
}

const TO_DEVICE = toDevice('tidemark-vm-device', 'victoria_datasource');

const TABLES: readonly PanelSpec[] = [
  deviceTable(OF_WORKSPACE, {
    title: 'Devices',
    description: `Every device once, as the device list last showed it, and how far its copy is behind ("Lag"). "Last seen": the time of the newest reading, or that in the device list. ${GAP_SHOWN} Active devices first. Click a name to open the device.`,
    h: 14,
  }),
  openAlertTable(OF_WORKSPACE, {
    title: 'Alerts that are open',
    description: `The alerts that are not resolved. ${ALERT_COLUMNS_SHOWN} Click a name to open the device.`,
    h: 8,
  }),
];

/** The alerts that are not resolved. @param where of which devices. */
export function openAlertTable(where: string, look: { title: string; description: string; h: number }): PanelSpec {
  const open = openAlertsOf(where);
  return grid({
    ...look,
    w: 24,
    targets: presentTable(
      withUnit(`max by (alert_id, device_id, device_name, kind, sensor) (${open})`),
      ...['alert_state_fire_count', 'alert_state_value'].map(
        (metric) => `max by (alert_id) (${newestAlert(metric, where)} and on (alert_id) ${open})`,
      ),
      `max by (alert_id) (${thresholds(where)} and on (alert_id) ${open})`,
    ),
    noValue: 'No open alert is reported.',
    transformations: [join('alert_id')],
    columns: {
      device_name: { title: 'Device', links: [TO_DEVICE], width: 260 },
      sensor: { title: 'Sensor' },
      unit: UNIT_COLUMN,
      kind: { title: 'Kind' },
      'Value #C': ALERT_COLUMNS.value,
      'Value #D': ALERT_COLUMNS.threshold,
      'Value #B': ALERT_COLUMNS.fireCount,
      alert_id: { title: 'Alert id' },
      device_id: DEVICE_COLUMNS.id,
      'Value #A': { title: 'Open', hidden: true },
      ...hidden('Time 1', 'Time 2', 'Time 3', 'Time 4'),
    },
    sortBy: [{ displayName: 'Device' }],
  });
}

export const PROMQL_FLEET: DashboardSpec = {
  uid: 'tidemark-vm-fleet',
  title: 'Tidemark / Fleet (PromQL)',
  description: 'Which devices report, which do not, and how up to date is the copy? For data in VictoriaMetrics.',
  source: 'victoriametrics',
  from: 'now-24h',
  refresh: '1m',
  variables: [WORKSPACE, TARGET],
  sections: [
    { title: 'Now', panels: NUMBERS },
    { title: 'Over time', panels: OVER_TIME },
    { title: 'Devices', panels: TABLES },
  ],
};
