/** Everything that is generated: the dashboards, in the order in which an owner meets them, alert rules, the README. */
import { ALERTS } from './alerts.ts';
import { DEVICE } from './device.ts';
import { FLEET } from './fleet.ts';
import { panelId, renderDashboard } from './layout.ts';
import type { DashboardSpec } from './model.ts';
import { PROMQL_DEVICE } from './promql-device.ts';
import { PROMQL_FLEET } from './promql-fleet.ts';
import { readmeFile } from './readme.ts';
import { rulesFile } from './rules.ts';
import { SENSORS_BOARD } from './sensors.ts';
import { startBoard } from './start.ts';
import { SYNC } from './sync.ts';
import { WORKSPACE_BOARD } from './workspace.ts';

const SUBJECTS: readonly DashboardSpec[] = [FLEET, DEVICE, SENSORS_BOARD, ALERTS, WORKSPACE_BOARD, SYNC];

export const DASHBOARDS: readonly DashboardSpec[] = [startBoard(SUBJECTS), ...SUBJECTS];

/** The small set for those whose data is in a VictoriaMetrics: in a folder that only they have Grafana read. */
export const PROMQL_DASHBOARDS: readonly DashboardSpec[] = [PROMQL_FLEET, PROMQL_DEVICE];

/** The files, by their path below `grafana`, and their content. */
export function generatedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ...DASHBOARDS.map((spec) => dashboardFile('dashboards', spec)),
    ...PROMQL_DASHBOARDS.map((spec) => dashboardFile('dashboards-victoriametrics', spec)),
    ['README.md', readmeFile(DASHBOARDS, PROMQL_DASHBOARDS)] as const,
    ['provisioning/alerting/tidemark.yaml', rulesFile(idOf)] as const,
  ]);
}

function idOf(uid: string, panel: string): number {
  const spec = DASHBOARDS.find((one) => one.uid === uid);
  if (spec === undefined) throw new Error(`a rule leads to a dashboard that is not there: ${uid}`);
  return panelId(spec, panel);
}

function dashboardFile(folder: string, spec: DashboardSpec): readonly [path: string, text: string] {
  return [`${folder}/${spec.uid}.json`, `${JSON.stringify(renderDashboard(spec), null, 2)}\n`];
}
