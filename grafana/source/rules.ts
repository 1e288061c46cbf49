/**
 * Alert rules for the owner, as Grafana provisions them. They name no contact point, so the notification policy of that
 * Grafana decides who is notified.
 *
 * Only `$timeFilter` stands in their queries: rules have no variables. In annotations and labels a dollar is a variable
 * of Grafana's environment: only the address of the documentation is one.
 */
import { stringify } from 'yaml';
import { IS_READ } from './influxql.ts';
import { SOURCES } from './layout.ts';

interface Rule {
  readonly uid: string;
  readonly title: string;
  readonly severity: 'critical' | 'warning';
  /** A line for each thing that is watched; its newest value is compared. */
  readonly query: string;
  readonly lookBackS: number;
  readonly fires: { readonly when: 'lt' | 'gt'; readonly than: number };
  /** A line for each workspace: where its newest value is 0, the rule is silent. */
  readonly unlessZero?: string;
  /** How long it has to be so. */
  readonly for: string;
  readonly noData: 'OK' | 'Alerting';
  readonly summary: string;
  readonly description: string;
  /** The heading of docs/troubleshooting.md. */
  readonly page: string;
  /** Where it can be seen. */
  readonly dashboard: string;
  readonly panel: string;
}

const HOUR_S = 3600;
const MINUTE_S = 60;

/** The last state of each device; the outer query looks at it alone: a device that was paused meanwhile is not silent. */
function lastStates(figure: string, where: string, by: string): string {
  return `SELECT ${figure} FROM (SELECT last(online) AS online, lifecycle_status FROM device WHERE $timeFilter${where} GROUP BY device_id, device_name, workspace_id) WHERE $timeFilter AND lifecycle_status = 'active' GROUP BY ${by}`;
}

const DEVICE = 'device_id, device_name, workspace_id';

export const RULES: readonly Rule[] = [
  {
    uid: 'tidemark-stopped',
    title: 'Tidemark stopped',
    severity: 'critical',
    query: 'SELECT count(gap_seconds) FROM coverage WHERE $timeFilter',
    lookBackS: 17 * MINUTE_S,
    fires: { when: 'lt', than: 1 },
    for: '1m',
    noData: 'Alerting',
    summary: 'Tidemark has written nothing for 17 minutes',
    description:
      'Tidemark writes the coverage of every device at least every 15 minutes. Check that it runs and that the database accepts its points: its status page (port 9464) and `tidemark --status` show both.',
    page: 'where-to-look',
    dashboard: 'tidemark-fleet',
    panel: 'Lag',
  },
  {
    // Of several workspaces in one database, the line of one that stands still only vanishes: to Grafana that is an
    // end.
    uid: 'tidemark-nothing-written',
    title: 'Nothing written',
    severity: 'critical',
    query:
      'SELECT moving_average(count(gap_seconds), 2) FROM coverage WHERE $timeFilter GROUP BY time(20m), workspace_id fill(0)',
    lookBackS: 7 * 24 * HOUR_S,
    fires: { when: 'lt', than: 0.01 },
    for: '1m',
    noData: 'OK',
    summary: 'No points of the workspace {{ .Labels.workspace_id }} are written any more',
    description:
      'Tidemark has written nothing for 20 minutes, but did within the last week. Its status page (port 9464) and `tidemark --status` show why.',
    page: 'where-to-look',
    dashboard: 'tidemark-workspace',
    panel: 'Lag',
  },
  {
    uid: 'tidemark-sync-stale',
    title: 'Sync stale',
    severity: 'warning',
    // Each device once, by its last state: of one that is gone or left out nothing is read, and one in its initial sync
    // has no watermark, and is not late yet.
    query: `SELECT percentile(lag, 90) FROM (SELECT last(lag_seconds) AS lag, last(watermark_ms) AS watermark, last(state) AS state FROM coverage WHERE $timeFilter GROUP BY device_id, workspace_id) WHERE $timeFilter AND watermark > 0 AND ${IS_READ} GROUP BY workspace_id`,
    lookBackS: 30 * MINUTE_S,
    fires: { when: 'gt', than: 2 * HOUR_S },
    for: '30m',
    noData: 'OK',
    summary: 'The copy of the workspace is out of date',
    description:
      'One device in ten has a lag of more than two hours. The status page (port 9464) and `tidemark --status` show why.',
    page: 'the-quota',
    dashboard: 'tidemark-workspace',
    panel: 'Lag over time',
  },
  {
    uid: 'tidemark-fleet-silent',
    title: 'Fleet silent',
    severity: 'critical',
    query: lastStates('mean(online)', '', 'workspace_id'),
    lookBackS: 3 * HOUR_S,
    fires: { when: 'lt', than: 0.7 },
    for: '15m',
    noData: 'OK',
    summary: 'More than 30 % of the active devices of {{ .Labels.workspace_id }} are not online',
    description:
      'Check the hubs, the network and the power of the sites. The table of the dashboard lists the devices.',
    page: 'devices',
    dashboard: 'tidemark-fleet',
    panel: 'Hubs',
  },
  {
    uid: 'tidemark-hub-silent',
    title: 'Hub silent',
    severity: 'critical',
    query: lastStates('last(online)', ' AND is_addon = 0', DEVICE),
    lookBackS: 3 * HOUR_S,
    fires: { when: 'lt', than: 1 },
    for: '15m',
    noData: 'OK',
    summary: '{{ .Labels.device_name }} does not report',
    description:
      'The device list has shown this hub (or device without a hub) as not online for 15 minutes. Its add-ons cannot report either. Check its power and network. If it was taken out of service, pause it in the workspace.',
    page: 'devices',
    dashboard: 'tidemark-fleet',
    panel: 'Hubs',
  },
  {
    uid: 'tidemark-device-silent',
    title: 'Device silent',
    severity: 'warning',
    query: lastStates('last(online)', ' AND is_addon = 1', DEVICE),
    lookBackS: 3 * HOUR_S,
    fires: { when: 'lt', than: 1 },
    // While a hub is silent, "Hub silent" fires; its add-ons would only repeat it.
    unlessZero: lastStates('min(online)', ' AND is_addon = 0', 'workspace_id'),
    for: '1h',
    noData: 'OK',
    summary: '{{ .Labels.device_name }} does not report',
    description:
      'The device list has shown this active device as not online for an hour, while all hubs are online. Check its power. If it was taken out of service, pause it in the workspace.',
    page: 'devices',
    dashboard: 'tidemark-fleet',
    panel: 'Silent or out of service',
  },
  {
    uid: 'tidemark-alert-open-long',
    title: 'Alert open for long',
    severity: 'warning',
    // One that somebody has acknowledged is known already.
    query:
      "SELECT last(open) FROM (SELECT last(open) AS open, status FROM alert_state WHERE $timeFilter GROUP BY alert_id, device_id, device_name, kind, sensor, workspace_id) WHERE $timeFilter AND status = 'open' GROUP BY alert_id, device_id, device_name, kind, sensor, workspace_id",
    lookBackS: 26 * HOUR_S,
    fires: { when: 'gt', than: 0 },
    for: '12h',
    noData: 'OK',
    summary: 'An alert about {{ .Labels.device_name }} has been open for half a day',
    description:
      'Alert {{ .Labels.alert_id }} ({{ .Labels.kind }}, {{ .Labels.sensor }}) is neither resolved nor acknowledged.',
    page: 'devices',
    dashboard: 'tidemark-alerts',
    panel: 'Open now',
  },
];

const EXPRESSION = { type: '__expr__', uid: '__expr__' };

/** One step of a rule. */
function step(refId: string, lookBackS: number, datasourceUid: string, model: object) {
  return { refId, relativeTimeRange: { from: lookBackS, to: 0 }, datasourceUid, model: { refId, ...model } };
}

/** A query, and the newest value of each of its lines. */
function asked({ lookBackS }: Rule, query: string, [lines, newest]: readonly [lines: string, newest: string]) {
  const { type, uid } = SOURCES.influxdb;
  const source = { datasource: { type, uid }, query, rawQuery: true, resultFormat: 'time_series' };
  const reduce = { type: 'reduce', expression: lines, reducer: 'last', settings: { mode: 'dropNN' } };
  return [
    step(lines, lookBackS, uid, { ...source, intervalMs: 60_000, maxDataPoints: 1000 }),
    step(newest, lookBackS, EXPRESSION.uid, { datasource: EXPRESSION, ...reduce }),
  ];
}

/** The last step: 1 for each line that fires. */
function condition({ lookBackS, fires, unlessZero }: Rule) {
  const evaluator = { type: fires.when, params: [fires.than] };
  const model =
    unlessZero === undefined
      ? { type: 'threshold', expression: 'B', conditions: [{ evaluator }] }
      : { type: 'math', expression: `$B ${fires.when === 'lt' ? '<' : '>'} ${fires.than} && $E > 0` };
  return step('C', lookBackS, EXPRESSION.uid, { datasource: EXPRESSION, ...model });
}

/** Finds the number of a panel. */
export type PanelId = (dashboard: string, panel: string) => number;

/** A rule as Grafana reads it: a query (A) and its newest values (B), what silences it (D, E), the condition (C). */
function renderRule(rule: Rule, panelId: PanelId) {
  const id = panelId(rule.dashboard, rule.panel);
  return {
    uid: rule.uid,
    title: rule.title,
    condition: 'C',
    data: [
      ...asked(rule, rule.query, ['A', 'B']),
      ...(rule.unlessZero === undefined ? [] : asked(rule, rule.unlessZero, ['D', 'E'])),
      condition(rule),
    ],
    dashboardUid: rule.dashboard,
    panelId: id,
    noDataState: rule.noData,
    execErrState: 'Error',
    for: rule.for,
    annotations: {
      summary: rule.summary,
      description: rule.description,
      // The one variable of the environment: the address of the documentation.
      runbook_url: `$\{TIDEMARK_DOCS_URL}/troubleshooting.md#${rule.page}`,
      __dashboardUid__: rule.dashboard,
      __panelId__: String(id),
    },
    labels: { source: 'tidemark', severity: rule.severity },
    isPaused: false,
  };
}

/** The file of the rules. */
export function rulesFile(panelId: PanelId): string {
  const rules = RULES.map((rule) => renderRule(rule, panelId));
  const groups = [{ orgId: 1, name: 'Tidemark', folder: 'Tidemark', interval: '1m', rules }];
  return `# Made by \`npm run dashboards\` from grafana/source/rules.ts.\n${stringify({ apiVersion: 1, groups }, { aliasDuplicateObjects: false, lineWidth: 110 })}`;
}
