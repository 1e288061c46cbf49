/** Everything that is generated: the dashboards, in the order in which an owner meets them, alert rules, the README. */
import { ALERTS } from './alerts.ts';
import { DEVICE } from './device.ts';
import { FLEET } from './fleet.ts';
import { renderDashboard } from './layout.ts';
import type { DashboardSpec } from './model.ts';
import { readmeFile } from './readme.ts';
import { rulesFile } from './rules.ts';
import { SENSORS_BOARD } from './sensors.ts';
import { SYNC } from './sync.ts';
import { WORKSPACE_BOARD } from './workspace.ts';

export const DASHBOARDS: readonly DashboardSpec[] = [FLEET, DEVICE, SENSORS_BOARD, ALERTS, WORKSPACE_BOARD, SYNC];

/** The files, by their path below `grafana`, and their content. */
export function generatedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ...DASHBOARDS.map(
      (spec) => [`dashboards/${spec.uid}.json`, `${JSON.stringify(renderDashboard(spec), null, 2)}\n`] as const,
    ),
    ['README.md', readmeFile(DASHBOARDS)] as const,
    ['provisioning/alerting/tidemark.yaml', rulesFile()] as const,
  ]);
}
