/**
 * Lag in InfluxQL: the end of the range minus the watermark of each device, so that it grows by itself once nothing is
 * written any more. Coverage points come every 15 minutes at least: without one for 17 minutes the daemon has stopped.
 */
import { HOURLY, IS_READ, lines } from './influxql.ts';
import { LAG_WORDS, OUT_OF_SERVICE, STATE_COLORS, UNKNOWN, UNKNOWN_N, UP_TO_DATE } from './looks.ts';
import type { InfluxTarget, Override, Transformation } from './model.ts';
import { binary, plus, rowFigure } from './panels.ts';

/** The last 17 minutes of the range: a device of a daemon that runs has a coverage point in them. */
export const REPORTED = `time > \${__to}ms - 17m AND time <= \${__to}ms`;

/** The target of the dashboard in seconds. As a date, whatever stands in an address becomes a number. */
const TARGET_S = `\${target:date:seconds}`;

/** The lag of a device in seconds; none where it was never covered up to the present. */
const LAG_S = `(\${__to} - last(watermark_ms)) / 1000`;

/** The lag and the state of each device that was reported. */
function reported(where: string): string {
  return `SELECT ${LAG_S} AS lag, last(state) AS state FROM coverage WHERE ${REPORTED} AND ${where} GROUP BY device_id`;
}

/** What `REPORTS` makes a column of: `-1 - UNKNOWN` for each device that is reported. */
const KNOWN = `${-1 - UNKNOWN} + 0 * last(gap_seconds) AS known`;

/** The devices that are reported: the device list is as old as the last report. */
export function reportsOf(where: string): string {
  return `SELECT ${KNOWN} FROM coverage WHERE ${REPORTED} AND ${where} GROUP BY device_id`;
}

/** What `ONLINE_NOW` puts before whether a device is online: `UNKNOWN` where it is not reported any more, else below 0. */
export const REPORTS: readonly Transformation[] = unlessReported('known', UNKNOWN, 'unreported');

/** What it is made from whether a device is online now. */
export const ONLINE_FACTS = ['online', 'known', 'unreported_sum', 'unreported'] as const;

/** What is added to counts: `UNKNOWN_N` where a device is not reported any more, else 0. */
export const NOT_COUNTED = 'not_counted';
export const COUNTS: readonly Transformation[] = unlessReported('counted', UNKNOWN_N, NOT_COUNTED);

/** The same as `reportsOf` for `COUNTS` as well. */
export function countsOf(where: string): string {
  const counted = `${-UNKNOWN_N} + 0 * last(gap_seconds) AS counted`;
  return `SELECT ${KNOWN}, ${counted} FROM coverage WHERE ${REPORTED} AND ${where} GROUP BY device_id`;
}

/** A column with a number to which another column is added; what is not there adds nothing. */
function unlessReported(column: string, number: number, alias: string): Transformation[] {
  const sum = `${alias}_sum`;
  return [rowFigure('sum', [column], sum), plus(sum, number, alias)];
}

/** The columns of `SYNC`: the lag, or the number that stands for a word, and the missing time. */
export const SYNC_LAG = 'sync_lag';
export const SYNC_GAP = 'sync_gap';

/**
 * The state of each device, which is missing where it is not reported any more; the figures of those that are reported;
 * what makes words of a lag. Three tables, which `SYNC` puts together: in InfluxDB, one query for all of it takes four
 * times as long.
 */
export function syncOf(where: string): readonly string[] {
  const { silent, outOfService, initialSync } = LAG_WORDS;
  const now = `FROM coverage WHERE ${REPORTED} AND ${where} GROUP BY device_id`;
  const known = `SELECT last(gap_seconds) AS known_gap FROM coverage WHERE ${HOURLY} AND ${where} GROUP BY device_id`;
  const initial = `${initialSync} + 0 * last(gap_seconds) AS initial`;
  // The API need not report whether a device is active.
  const words = `${silent} + 0 * gap AS silent, ${outOfService} * (1 - active) AS resting`;
  return [
    `SELECT last(state) AS state, last(known_gap) AS known_gap FROM (SELECT last(state) AS state ${now}), (${known}) GROUP BY device_id`,
    `SELECT last(gap_seconds) AS gap, ${LAG_S} AS lag, ${initial}, ${KNOWN} ${now}`,
    `SELECT ${words} FROM (SELECT last(gap_seconds) AS gap, state, active ${now}) WHERE state = 'silent' GROUP BY device_id`,
  ];
}

/** Puts the answers of `syncOf` together, once they are joined: a word has the larger number. */
export const SYNC: readonly Transformation[] = [
  rowFigure('max', ['lag', 'initial', 'silent', 'resting'], SYNC_LAG),
  rowFigure('max', ['gap'], SYNC_GAP),
  ...REPORTS,
];
/** What `SYNC` is made from, and whether a device is online now. */
export const SYNC_FACTS = ['known_gap', 'gap', 'lag', 'initial', 'silent', 'resting', ...ONLINE_FACTS] as const;

/**
 * The lag of the median device and the 95th percentile, by how it compares with the target: A within it, B up to four
 * times as large, C larger. D instead of them where the daemon has stopped: up to when
 * the copy is covered, below 0, so that Grafana writes "28 minutes ago". E: devices that
 * are catching up. The names carry the range, because only the address shows whether it ends now.
 */
export function lagNow(where: string): InfluxTarget[] {
  const figures = `SELECT percentile(lag, 50) AS median, percentile(lag, 95) AS p95 FROM (${reported(where)}) WHERE ${IS_READ}`;
  const such = (condition: string): string => `SELECT median, p95 FROM (${figures}) WHERE ${condition}`;
  // 1 where something was reported, and 0 beside the newest watermark of the range: only `last` does not read all of
  // it.
  const reports = `SELECT 0 * count(gap_seconds) + 1 AS r FROM coverage WHERE ${REPORTED} AND ${where}`;
  const newest = `SELECT 0 * last(watermark_ms) AS r, last(watermark_ms) AS w FROM coverage WHERE ${HOURLY} AND ${where}`;
  const named = `$col|\${__url_time_range}`;
  return lines(
    [such(`p95 <= ${TARGET_S}`), named],
    [such(`p95 > ${TARGET_S} AND p95 / 4 <= ${TARGET_S}`), named],
    [such(`p95 / 4 > ${TARGET_S}`), named],
    [
      `SELECT (w - \${__to}) / 1000 AS stopped FROM (SELECT sum(r) AS r, max(w) AS w FROM (${reports}), (${newest})) WHERE r = 0`,
      named,
    ],
    [`SELECT count(state) AS syncing FROM (${reported(where)}) WHERE state = 'catching-up'`, named],
  );
}

function colored(refId: string, color: string): Override {
  return { matcher: { id: 'byFrameRefID', options: refId }, properties: [fixed(color)] };
}

function fixed(fixedColor: string) {
  return { id: 'color', value: { mode: 'fixed', fixedColor } };
}

function named(column: string, name: string): Override {
  return { matcher: { id: 'byRegexp', options: `/^${column}\\|/` }, properties: [{ id: 'displayName', value: name }] };
}

/** Colours of what `lagNow` is answered; no colour of alarm where the range ends in the past. By names that carry it. */
const COLORS: readonly Override[] = [
  ...[colored('A', 'green'), colored('B', 'yellow'), colored('C', 'red'), colored('D', 'red'), colored('E', 'blue')],
  { matcher: { id: 'byFrameRefID', options: 'E' }, properties: [{ id: 'unit', value: 'none' }] },
  { matcher: { id: 'byRegexp', options: '/[|&?]to=(?!now(&|$))/' }, properties: [fixed('text')] },
  // As in tables, which round down.
  { matcher: { id: 'byRegexp', options: '/^stopped\\|/' }, properties: [{ id: 'unit', value: 'dtdurations' }] },
];

/** What they are called. @param source where the lag is from, if the reader has to know. */
function names(source = ''): Override[] {
  return [
    ...[named('median', `median${source}`), named('p95', `p95${source}`)],
    named('stopped', 'no report from Tidemark; complete up to'),
    named('syncing', 'devices catching up'),
  ];
}

export const LAG_COLORS: readonly Override[] = [...COLORS, ...names()];

/** The same for a lag by the newest coverage point, which may be 15 minutes old; metrics give the lag of the last scrape. */
export const LAG_LOOKS: readonly Override[] = [
  ...['A', 'B', 'C'].map((refId): Override => {
    return { matcher: { id: 'byFrameRefID', options: refId }, properties: [{ id: 'mappings', value: [UP_TO_DATE] }] };
  }),
  ...COLORS,
  // Why it is no less than 15 minutes, where the daemon's own target may be less.
  ...names(' (written every 15 min)'),
];

/**
 * The lag of the devices over time: median, 95th percentile, largest. A query each, as several figures of one query
 * wait for each other; `max` would keep a step of its own for each device.
 */
export function lagLines(where: string): InfluxTarget[] {
  const percentile = (part: number): string =>
    `SELECT percentile(lag_seconds, ${part}) FROM coverage WHERE ${HOURLY} AND ${where} AND ${IS_READ} GROUP BY time($__interval) fill(null)`;
  return lines([percentile(50), 'median'], [percentile(95), 'p95'], [percentile(100), 'largest']);
}

/**
 * How many are open, 0 where there is none; nothing where the daemon has stopped, as it is not known then.
 * Grafana puts both answers together: InfluxDB would not, as they are of two measurements.
 *
 * @param query reads the number from another measurement
 */
export function openWhileReporting(
  query: string,
  where: string,
): {
  readonly targets: readonly InfluxTarget[];
  readonly transformations: readonly Transformation[];
  readonly fields: string;
} {
  const [count, reported, shown] = ['count', 'reported', 'Open'];
  return {
    targets: lines(
      [query, count],
      [`SELECT 0 * count(gap_seconds) FROM coverage WHERE ${REPORTED} AND ${where}`, reported],
    ),
    transformations: [
      { id: 'concatenate', options: {} },
      rowFigure('sum', [count, reported], 'sum'),
      // Nothing is added to what is not there.
      binary('sum', '+', reported, shown),
    ],
    fields: `/^${shown}$/`,
  };
}

/**
 * Devices with a lag above the target; 0 where there is none, nothing where the daemon has stopped. B is answered 0
 * instead while no device that is reported has a lag: in an initial sync none is late, and none up to date.
 */
export function lateNow(where: string): InfluxTarget[] {
  const late = `SELECT count(lag) AS late FROM (${reported(where)}) WHERE ${IS_READ} AND lag > ${TARGET_S}`;
  const of = (figure: string): string => `SELECT ${figure} FROM coverage WHERE ${REPORTED} AND ${where}`;
  const none = of('0 * count(watermark_ms) AS late');
  const both = ['gap_seconds', 'watermark_ms'].map((field) => `(${of(`1 + 0 * count(${field}) AS n`)})`);
  return lines(
    [`SELECT sum(late) FROM (${late}), (${none})`, 'Late'],
    [`SELECT 0 * n FROM (SELECT sum(n) AS n FROM ${both.join(', ')}) WHERE n = 1`, 'Late'],
  );
}

/**
 * How many devices are in each state of sync, and how many these are together: the states add up to all, with the
 * silent ones that were taken out of service apart. Nothing where the daemon has stopped. Only `coverage` gives the state: `online` leaves out what is paused or not known.
 */
export function byState(where: string): InfluxTarget[] {
  const now = statesOf(where);
  const count = (condition: string): string => `SELECT count(gap) FROM (${now}) WHERE ${condition}`;
  const both = silentOrResting(where);
  const asked: Readonly<Record<string, string>> = {
    silent: `SELECT count(n) FROM (${both}) WHERE n = 2`,
    [OUT_OF_SERVICE]: `SELECT count(n) FROM (${both}) WHERE n = 3`,
  };
  return lines(
    [count('gap >= 0'), 'all'],
    ...STATES.map(([state]) => [asked[state] ?? count(`state = '${state}'`), state.replace('-', ' ')] as const),
  );
}

/** How many active devices are silent; 0 where none is, nothing where the daemon has stopped. */
export function silentNow(where: string): InfluxTarget[] {
  const silent = `SELECT count(n) AS silent FROM (${silentOrResting(where)}) WHERE n = 2`;
  const none = `SELECT 0 * count(gap_seconds) AS silent FROM coverage WHERE ${REPORTED} AND ${where}`;
  return lines([`SELECT sum(silent) FROM (${silent}), (${none})`, 'Silent']);
}

/** The state of each device that was reported. */
function statesOf(where: string): string {
  return `SELECT last(gap_seconds) AS gap, last(state) AS state FROM coverage WHERE ${REPORTED} AND ${where} GROUP BY device_id`;
}

/** 2 for a silent device, 1 for one that was taken out of service, 3 for both. */
function silentOrResting(where: string): string {
  const now = statesOf(where);
  const silent = `SELECT 2 + 0 * gap AS n FROM (${now}) WHERE state = 'silent' GROUP BY device_id`;
  const active = `SELECT last(active) AS active FROM coverage WHERE ${REPORTED} AND ${where} GROUP BY device_id`;
  const resting = `SELECT 1 + active AS n FROM (${active}) WHERE active = 0 GROUP BY device_id`;
  return `SELECT sum(n) AS n FROM (${silent}), (${resting}) GROUP BY device_id`;
}

/** The states in the order of the queries B, C, … of `byState`, in the colours that tables have. */
const STATES: readonly (readonly [state: string, color: string])[] = [
  ...Object.entries(STATE_COLORS).map(([state, [, color]]) => [state, color] as const),
  [OUT_OF_SERVICE, 'text'],
];

export const STATE_LOOKS: readonly Override[] = STATES.map(([, color], at) =>
  colored(String.fromCharCode('B'.charCodeAt(0) + at), color),
);
