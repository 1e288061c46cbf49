/** The dashboard "Workspace and quota": what the plan gives, what of it is used, and the lag that results. */
import { HOUR_MS } from '../../src/core/time.ts';
import { lagOverTime, lagStat, TARGET } from './both.ts';
import { HOURLY, IN_RANGE, lines, newestBy, OF_WORKSPACE, tables } from './influxql.ts';
import { byState, LAG_LOOKS, lagLines, lagNow, STATE_LOOKS } from './lag.ts';
import { PLAIN, SPENT, steps, toPanel } from './looks.ts';
import type { DashboardSpec, PanelSpec } from './model.ts';
import { bars, grid, lineChart, stat } from './panels.ts';
import { WORKSPACE } from './variables.ts';

const ACCOUNT = `workspace WHERE ${HOURLY} AND ${OF_WORKSPACE}`;
const NO_ACCOUNT = 'The account was not read in this range: it is read hourly, with the scope account:read.';

/** The devices, by their lag. */
const TO_TABLE = {
  title: 'List the devices',
  url: `/d/tidemark-fleet?\${datasource:queryparam}&\${__url_time_range}`,
};

const TO_USE = toPanel('tidemark-workspace', 'Requests in 24 hours', 'Show the use over time');

const NUMBERS: readonly PanelSpec[] = [
  stat({
    title: "Day's quota used",
    description: 'Requests of Tidemark in the last 24 hours, as a percentage of the daily quota of the workspace.',
    w: 5,
    h: 4,
    targets: lines([
      `SELECT last(requests_spent_day) / last(external_requests_per_day) * 100 FROM ${ACCOUNT} GROUP BY workspace_id`,
      '$tag_workspace_id',
    ]),
    noValue: NO_ACCOUNT,
    unit: 'percent',
    decimals: 1,
    thresholds: SPENT,
    links: [TO_USE],
  }),
  stat({
    title: 'Left of the daily quota',
    description:
      'Requests left in the daily quota, for all clients of the workspace, when the account was last read. The API does not report when the quota is renewed.',
    w: 5,
    h: 4,
    targets: lines([`SELECT last(requests_left_day) FROM ${ACCOUNT} GROUP BY workspace_id`, '$tag_workspace_id']),
    noValue: NO_ACCOUNT,
    unit: 'locale',
    decimals: 0,
    thresholds: PLAIN,
    links: [TO_USE],
  }),
  stat({
    title: 'Devices',
    description: 'Devices in the workspace, as the API counts them.',
    w: 5,
    h: 4,
    targets: lines([`SELECT last(devices) FROM ${ACCOUNT} GROUP BY workspace_id`, '$tag_workspace_id']),
    noValue: NO_ACCOUNT,
    unit: 'none',
    decimals: 0,
    thresholds: PLAIN,
    links: [TO_TABLE],
  }),
  lagStat({ targets: lagNow(OF_WORKSPACE), overrides: LAG_LOOKS, links: [TO_TABLE] }, 9),
];

const PLAN: PanelSpec = grid({
  title: 'Plan',
  description:
    'The workspace, how many devices it has ("Devices in use"), and the limits of its plan ("limit"), as the API last returned them. The API does not report how many API keys exist.',
  w: 24,
  h: 5,
  targets: tables(
    newestBy(
      '"name"',
      [
        'plan_name',
        'plan_id',
        'external_requests_per_minute',
        'external_requests_per_day',
        'history_max_days',
        'max_devices_per_page',
        'max_api_keys',
        'devices',
      ],
      ACCOUNT,
      'workspace_id',
    ),
  ),
  noValue: NO_ACCOUNT,
  columns: {
    name: { title: 'Workspace', width: 140 },
    plan_name: { title: 'Plan' },
    external_requests_per_minute: { title: 'Requests a minute (limit)', unit: 'locale', width: 205 },
    external_requests_per_day: { title: 'Requests a day (limit)', unit: 'locale', width: 185 },
    history_max_days: { title: 'History (days, limit)', decimals: 0, width: 165 },
    max_devices_per_page: { title: 'Largest page (limit)', width: 165 },
    max_api_keys: { title: 'API keys (limit)', width: 125 },
    devices: { title: 'Devices in use', width: 120 },
    plan_id: { title: 'Plan id' },
    workspace_id: { title: 'Workspace id', width: 220 },
    Time: { title: 'Read', unit: 'dateTimeFromNow', width: 130 },
  },
});

/** Figures of the account over time. */
function figures(
  panel: Pick<PanelSpec, 'title' | 'description'>,
  ...fields: readonly (readonly [field: string, name: string])[]
): PanelSpec {
  const selected = fields.map(([field, name]) => `last(${field}) AS "${name}"`).join(', ');
  return lineChart({
    ...panel,
    w: 12,
    h: 8,
    interval: '10m',
    targets: lines([
      `SELECT ${selected} FROM ${ACCOUNT} GROUP BY time($__interval), workspace_id fill(null)`,
      '$col ($tag_workspace_id)',
    ]),
    noValue: NO_ACCOUNT,
    unit: 'locale',
    decimals: 0,
    breakMs: 3 * HOUR_MS,
    min: 0,
  });
}

const USE: readonly PanelSpec[] = [
  figures(
    {
      title: 'Requests in 24 hours',
      description:
        'Requests of Tidemark in the last 24 hours, requests left in the daily quota for all clients, and the daily quota of the plan.',
    },
    ['requests_spent_day', 'spent'],
    ['requests_left_day', 'left'],
    ['external_requests_per_day', 'limit'],
  ),
  figures(
    {
      title: 'Requests in a minute',
      description: 'The same for the minute quota, at the time when the account was read.',
    },
    ['requests_spent_minute', 'spent'],
    ['requests_left_minute', 'left'],
    ['external_requests_per_minute', 'limit'],
  ),
  figures(
    { title: 'Devices and open alerts', description: 'As the API counts them (GET /account).' },
    ['devices', 'devices'],
    ['open_alerts', 'open alerts'],
  ),
];

const BOUGHT: readonly PanelSpec[] = [
  lagOverTime(lagLines(OF_WORKSPACE)),
  bars({
    title: 'Devices by state of sync',
    description:
      'live: covered up to the present. catching up: some data is still missing. silent: covered and active, but the device sends nothing. out of service: it sends nothing, because it was paused, shelved or retired. unreachable: no longer in the workspace. excluded: left out by the configuration. Empty where Tidemark has reported nothing for 17 minutes.',
    w: 12,
    h: 7,
    targets: byState(OF_WORKSPACE),
    noValue: 'Tidemark has reported nothing for 17 minutes: is it running?',
    unit: 'none',
    decimals: 0,
    min: 0,
    thresholds: steps('red', [0, 'blue']),
    overrides: STATE_LOOKS,
  }),
  lineChart({
    title: 'Readings covered',
    description:
      'Readings of all devices in the hours that are covered. The newest hours fill up within the grace period.',
    w: 12,
    h: 8,
    interval: '1h',
    targets: lines([
      `SELECT sum(readings) FROM coverage_hour WHERE ${IN_RANGE} AND ${OF_WORKSPACE} GROUP BY time($__interval) fill(none)`,
      'Readings',
    ]),
    noValue: 'No hour of this range is covered yet.',
    unit: 'short',
    breakMs: 0,
    draw: 'bars',
    legend: 'none',
    min: 0,
  }),
];

export const WORKSPACE_BOARD: DashboardSpec = {
  uid: 'tidemark-workspace',
  title: 'Tidemark / Workspace and quota',
  description: 'The quota of the plan, how much of it is used and left, and the lag that results.',
  source: 'influxdb',
  from: 'now-24h',
  refresh: '5m',
  variables: [WORKSPACE, TARGET],
  sections: [
    { title: 'Now', panels: [...NUMBERS, PLAN] },
    { title: 'Use', panels: [...USE.slice(0, 2)] },
    { title: 'Lag and coverage', panels: [...BOUGHT.slice(0, 2), ...BOUGHT.slice(2), ...USE.slice(2)] },
  ],
};
