/**
 * Alert rules for the owner, as Grafana provisions them. Whom they tell is the owner's: no contact point is given, so they
 * go where the notification policy of that Grafana sends everything.
 *
 * Only `$timeFilter` stands in their queries: rules have no variables. In what they say no dollar stands: in such files Grafana
 * takes it for a variable of its environment.
 */
import { stringify } from 'yaml';
import { IS_READ } from './influxql.ts';
import { SOURCES } from './layout.ts';

interface Rule {
  readonly uid: string;
  readonly title: string;
  /** A line for each thing that is watched; its newest value is compared. */
  readonly query: string;
  readonly lookBackS: number;
  readonly fires: { readonly when: 'lt' | 'gt'; readonly than: number };
  /** How long it has to be so. */
  readonly for: string;
  readonly noData: 'OK' | 'Alerting';
  readonly summary: string;
  readonly description: string;
  readonly dashboard: string;
}

const HOUR_S = 3600;

export const RULES: readonly Rule[] = [
  {
    uid: 'tidemark-device-silent',
    title: 'Device silent',
    query:
      // The outer query looks at the last state only: a device that was paused meanwhile is not silent.
      "SELECT last(online) FROM (SELECT last(online) AS online, lifecycle_status FROM device WHERE $timeFilter GROUP BY device_id, device_name, workspace_id) WHERE $timeFilter AND lifecycle_status = 'active' GROUP BY device_id, device_name, workspace_id",
    lookBackS: 3 * HOUR_S,
    fires: { when: 'lt', than: 1 },
    for: '1h',
    noData: 'OK',
    summary: '{{ .Labels.device_name }} does not report',
    description:
      'The workspace has said for an hour that this active device is not online. Is its hub online, has it power? If it was taken out of service, pause it.',
    dashboard: 'tidemark-device',
  },
  {
    uid: 'tidemark-alert-open-long',
    title: 'Alert open for long',
    query:
      'SELECT last(open) FROM alert_state WHERE $timeFilter GROUP BY alert_id, device_id, device_name, kind, sensor, workspace_id',
    lookBackS: 26 * HOUR_S,
    fires: { when: 'gt', than: 0 },
    for: '12h',
    noData: 'OK',
    summary: 'An alert about {{ .Labels.device_name }} has been open for half a day',
    description: 'Alert {{ .Labels.alert_id }} ({{ .Labels.kind }}, {{ .Labels.sensor }}) is not resolved.',
    dashboard: 'tidemark-alerts',
  },
  {
    uid: 'tidemark-sync-stale',
    title: 'Sync stale',
    // Each device once, by its last state: of one that is gone or left out nothing is read, and its lag grows for ever.
    // A device in its initial sync has no watermark, and is not late yet.
    query: `SELECT percentile(lag, 90) FROM (SELECT last(lag_seconds) AS lag, last(watermark_ms) AS watermark, last(state) AS state FROM coverage WHERE $timeFilter GROUP BY device_id, workspace_id) WHERE $timeFilter AND watermark > 0 AND ${IS_READ} GROUP BY workspace_id`,
    lookBackS: HOUR_S / 2,
    fires: { when: 'gt', than: 2 * HOUR_S },
    for: '30m',
    noData: 'Alerting',
    summary: 'The copy of the workspace is out of date',
    description:
      'One device in ten is more than two hours behind, or Tidemark has written nothing for three hours. Its status page (port 9464) and `tidemark --status` say why.',
    dashboard: 'tidemark-workspace',
  },
  {
    // Of several workspaces in one database, the line of one that stands still only vanishes: to Grafana that is an end.
    uid: 'tidemark-nothing-written',
    title: 'Nothing written',
    query:
      'SELECT moving_average(count(lag_seconds), 4) FROM coverage WHERE $timeFilter GROUP BY time(1h), workspace_id fill(0)',
    lookBackS: 7 * 24 * HOUR_S,
    fires: { when: 'lt', than: 0.01 },
    for: '5m',
    noData: 'OK',
    summary: 'Nothing of the workspace {{ .Labels.workspace_id }} is written any more',
    description:
      'Its Tidemark has written nothing for three hours, and did within the last week. Its status page (port 9464) and `tidemark --status` say why.',
    dashboard: 'tidemark-workspace',
  },
];

const EXPRESSION = { type: '__expr__', uid: '__expr__' };

/** A rule as Grafana reads it: the query (A), the newest value of each line (B), the comparison (C). */
function renderRule(rule: Rule) {
  const { type, uid } = SOURCES.influxdb;
  const range = { from: rule.lookBackS, to: 0 };
  return {
    uid: rule.uid,
    title: rule.title,
    condition: 'C',
    data: [
      {
        refId: 'A',
        relativeTimeRange: range,
        datasourceUid: uid,
        model: {
          refId: 'A',
          datasource: { type, uid },
          query: rule.query,
          rawQuery: true,
          resultFormat: 'time_series',
          intervalMs: 60_000,
          maxDataPoints: 1000,
        },
      },
      {
        refId: 'B',
        relativeTimeRange: range,
        datasourceUid: EXPRESSION.uid,
        model: {
          refId: 'B',
          datasource: EXPRESSION,
          type: 'reduce',
          expression: 'A',
          reducer: 'last',
          settings: { mode: 'dropNN' },
        },
      },
      {
        refId: 'C',
        relativeTimeRange: range,
        datasourceUid: EXPRESSION.uid,
        model: {
          refId: 'C',
          datasource: EXPRESSION,
          type: 'threshold',
          expression: 'B',
          conditions: [{ evaluator: { type: rule.fires.when, params: [rule.fires.than] } }],
        },
      },
    ],
    dashboardUid: rule.dashboard,
    noDataState: rule.noData,
    execErrState: 'Error',
    for: rule.for,
    annotations: { summary: rule.summary, description: rule.description },
    labels: { source: 'tidemark' },
    isPaused: false,
  };
}

/** The file of the rules. */
export function rulesFile(): string {
  const groups = [{ orgId: 1, name: 'Tidemark', folder: 'Tidemark', interval: '5m', rules: RULES.map(renderRule) }];
  return `# Made by \`npm run dashboards\` from grafana/source/rules.ts.\n${stringify({ apiVersion: 1, groups }, { aliasDuplicateObjects: false, lineWidth: 110 })}`;
}
