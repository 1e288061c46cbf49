/**
 * InfluxQL of the dashboards: only what InfluxDB 1.8, 2 and 3 all understand, always bounded in time, and grouped as
 * finely as the panel can show.
 *
 * Values that a viewer chooses go into regular expressions with `:regex`: there Grafana escapes whatever a name
 * contains, which it does nowhere else.
 */
import type { InfluxTarget } from './model.ts';

/** The range that the dashboard shows. */
export const IN_RANGE = '$timeFilter';

/**
 * The range that the dashboard shows, and some time before it: states are written when they change and hourly (open
 * alerts daily), so that a short range alone might hold none. It grows with the range, never with the age of the data.
 */
export function since(before: string): string {
  return `time >= \${__from}ms - ${before} AND time <= \${__to}ms`;
}

/** For states that are written hourly. */
export const HOURLY = since('3h');
/** For states of alerts, which are written daily while an alert is open. */
export const DAILY = since('26h');
/** For the facts of alerts, which are written once, when one opens. */
export const FACTS = since('366d');
/** The same up to the next midnight, so that a fact that is carried on day by day reaches the end of the range. */
export const FACTS_BY_DAY = `time >= \${__from}ms - 366d AND time <= \${__to}ms + 1d`;

/** That a tag is one of the values which a variable of the dashboard chooses. */
export function chosen(tag: string, variable = tag): string {
  return `${tag} =~ /^\${${variable}:regex}$/`;
}

export const OF_WORKSPACE = chosen('workspace_id', 'workspace');
export const OF_DEVICE = chosen('device_id', 'device');
/** The same of a dashboard that looks at many of them; see `deviceVariable`. */
export const OF_DEVICES = chosen('device_id', 'devices');
export const OF_SENSOR = chosen('sensor');

/** The devices of the chosen hubs and models, in the measurement `device`. A hub belongs to itself. */
export const OF_FLEET = [
  OF_WORKSPACE,
  chosen('model_id', 'model'),
  `(${chosen('parent_device_id', 'hub')} OR ${chosen('device_id', 'hub')})`,
].join(' AND ');

/** The end of the range: long enough for states that are written hourly, so that what is gone by then no longer counts. */
export const AT_END = `time > \${__to}ms - 3h AND time <= \${__to}ms`;

/** Of coverage: a device that is gone or left out is not read any more, so its lag means nothing. */
export const IS_READ = "state != 'excluded' AND state != 'unreachable'";

/** The newest point of each group with all its fields: a field that it lacks is not filled from an older point. */
export function newest(columns: readonly string[], from: string, group: string): string {
  return `SELECT ${columns.join(', ')} FROM ${from} GROUP BY ${group} ORDER BY time DESC LIMIT 1`;
}

/**
 * The same by a field that every point has. InfluxDB 3 cannot order groups by a tag of which the query wants one value
 * only; a selector needs no order.
 */
export function newestBy(field: string, columns: readonly string[], from: string, group: string): string {
  return `SELECT ${[`last(${field}) AS ${field}`, ...columns].join(', ')} FROM ${from} GROUP BY ${group}`;
}

/** Names the queries of a panel A, B, C, …, unless they are named. */
function named(at: number): string {
  return String.fromCharCode('A'.charCodeAt(0) + at);
}

/** Queries whose answers are lines: one for each group and column. */
export function lines(...queries: readonly (readonly [query: string, alias: string])[]): InfluxTarget[] {
  return queries.map(([query, alias], at) => ({
    refId: named(at),
    query,
    rawQuery: true,
    resultFormat: 'time_series',
    alias,
  }));
}

/** Queries whose answers are tables, with the tags of a group as columns. */
export function tables(...queries: readonly string[]): InfluxTarget[] {
  return queries.map((query, at) => ({ refId: named(at), query, rawQuery: true, resultFormat: 'table' }));
}
