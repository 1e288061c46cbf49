/**
 * PromQL over the points that Tidemark writes to a VictoriaMetrics: plain PromQL, that a Prometheus understands as
 * well.
 *
 * Values that a viewer chooses stand between backticks, as regular expressions that Grafana escapes with `:regex`:
 * between these marks nothing is escaped a second time, so that quotes and backslashes of a name arrive as they are.
 */
import type { Variable } from './model.ts';
import { choice } from './variables.ts';

/** States are written when they change and hourly (open alerts daily): looked for so long before each instant. */
const HOURLY = '3h';
const DAILY = '26h';

/** That a label is one of the values which a variable of the dashboard chooses. */
function chosen(label: string, variable = label): string {
  return `${label}=~\`\${${variable}:regex}\``;
}

export const OF_WORKSPACE = chosen('workspace_id', 'workspace');
export const OF_DEVICE = `${OF_WORKSPACE}, ${chosen('device_id', 'device')}`;
export const OF_SENSOR = chosen('sensor');

export function of(metric: string, where: string): string {
  return `${metric}{${where}}`;
}

/** The state at each instant: the last one written, of each name that a device had. */
export function held(metric: string, where: string): string {
  return `last_over_time(${of(metric, where)}[${HOURLY}])`;
}

/**
 * When the newest sample of each series was written. A sample of the last five minutes is seen at once, an older one at
 * one of the steps: no sample escapes, and no function is needed that only one of the two languages has.
 */
export function writtenAt(series: string, window: string, at = ''): string {
  return `(timestamp(${series}${at}) or max_over_time(timestamp(${series})[${window}:5m]${at}))`;
}

/**
 * The newest state of each device, once: name and model are labels, so a device that was renamed has two series for a
 * while, and only the one that was written last is current. For queries of the present.
 */
export function newest(metric: string, where: string): string {
  return newestBy('device_id', HOURLY, of(metric, where));
}

/** The newest state of each alert. */
export function newestAlert(metric: string, where: string): string {
  return newestBy('alert_id', DAILY, of(metric, where));
}

/** The thresholds of the alerts of a year: each is written once, when the alert opens. */
export function thresholds(where: string): string {
  return `last_over_time(${of('alert_threshold', where)}[366d])`;
}

/** The thresholds of the alerts that are open at each step. */
export function openThresholds(where: string): string {
  const open = `last_over_time(${of('alert_state_open', where)}[${DAILY}]) == 1`;
  return `max by (sensor, alert_id, device_id, device_name) (${thresholds(where)} and on (alert_id) (${open}))`;
}

function newestBy(id: string, window: string, series: string): string {
  return `(last_over_time(${series}[${window}]) and topk by (${id}) (1, ${writtenAt(series, window)}))`;
}

/** As of the end of the range. `end()` would be the last step before it, which is up to an hour earlier. */
export const AT_THE_END = ` @ \${__to:date:seconds}`;

const NAMED = 'group by (device_id, device_name)';

/**
 * The devices of the range that is shown, or of the three hours before its end, each once and by its newest name: 1 for
 * each.
 *
 * @param at for a query of lines, which would otherwise repeat it at each of its points: `AT_THE_END`.
 */
export function names(where: string, at = ''): string {
  const series = of('device_online', where);
  const last = `topk by (device_id) (1, ${writtenAt(series, HOURLY, at)})`;
  const earlier = `topk by (device_id) (1, last_over_time(${series}[$__range]${at}))`;
  return `(${NAMED} (${last}) or on (device_id) ${NAMED} (${earlier}))`;
}

/** The devices whose name is another one than a step of the query before: 1 for each, once. */
export function renamed(where: string): string {
  const named = (offset: string): string =>
    `count by (device_id, device_name) (last_over_time(${of('device_online', where)}[${HOURLY}]${offset}))`;
  const before = named(' offset $__interval');
  return `${named('')} unless ${before} and on (device_id) ${before}`;
}

/**
 * The mean of the readings of each interval, by device and sensor, at its beginning: Grafana's last step is before the
 * end of the range, and the newest reading may be after it.
 */
export function ofInterval(where: string): string {
  const readings = `${of('telemetry_value', where)}[$__interval] offset -$__interval`;
  return `avg by (sensor, device_id, device_name) (avg_over_time(${readings}))`;
}

/** The same with the sensor a second time, for the column of units. */
export function withUnit(expr: string): string {
  return `label_join(${expr}, "unit", "", "sensor")`;
}

/** A figure of all readings of the range, by device and sensor. */
export function ofRange(figure: 'last' | 'min' | 'avg' | 'max' | 'count', where: string): string {
  const together = figure === 'count' ? 'sum' : figure === 'last' ? 'max' : figure;
  return `${together} by (sensor, device_id, device_name) (${figure}_over_time(${of('telemetry_value', where)}[$__range]))`;
}

export const WORKSPACE: Variable = choice({
  name: 'workspace',
  label: 'Workspace',
  query: { qryType: 1, query: 'label_values(device_online, workspace_id)' },
  all: 'any',
});

/** Splits the labels of a result, as Grafana writes them. */
const ID_AND_NAME = '/^\\{device_id="(?<value>[\\s\\S]*)",device_name="(?<text>[\\s\\S]*)"\\} \\S+ \\S+$/';

/** Devices by name, looked for by id. */
export const DEVICE: Variable = choice({
  name: 'device',
  label: 'Device',
  query: { qryType: 3, query: `query_result(${names(OF_WORKSPACE)})` },
  regex: ID_AND_NAME,
  all: 'none',
});

/** The sensors of the chosen devices, each to be shown. */
export const SENSORS: Variable = choice({
  name: 'sensor',
  label: 'Sensor',
  query: { qryType: 1, query: `label_values(telemetry_value{${OF_DEVICE}}, sensor)` },
  all: 'listed',
});
