/**
 * `docs/metrics.md`, made from the table of metrics and the alert rules: what is written there cannot differ from what is
 * served.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { METRICS, type MetricRow, MOST_DEVICES, PER_DEVICE } from '../../src/observe/metrics-table.ts';

const HEAD = `# Metrics, health and alerts

\`/metrics\` at \`listen\` serves metrics in the Prometheus format. \`config/prometheus\` has a scrape configuration,
recording rules and alert rules with unit tests. This page is generated from the program's table of metrics.

- **A scrape is cheap**: a few milliseconds, also with thousands of devices. Figures that scan every
  device (devices, freshness, coverage) are computed on a scrape if that is quick, else in the background with 5 % of a
  CPU; \`tidemark_fleet_snapshot_age_seconds\` is their age (about a minute with 10,000 devices).
- **Counters begin at 0 with each start** of the program. A gauge whose value is unknown has no series.
- **Points and readings**: a reading is what a device reports at one time, a point one value of it.
- **No metric has a label for devices** unless \`metrics.per_device\` is set.

## Is Tidemark healthy?

| address | answers |
| --- | --- |
| \`/healthz\` | 200 while all loops of the daemon move; 503 with \`reasons\` and the code \`loop_stalled\` if one has stood still for a minute longer than it announced. Only problems that a restart repairs count: waiting for quota, an outage of the API or a database and a full disk are healthy |
| \`/readyz\` | 200 while the copy is complete and current enough to rely on; else 503 with \`reasons\` for people, and \`codes\` and \`names\` (the stream or destination, or \`null\`) for programs, in the same order: \`key_refused\`, \`api_unreachable\`, \`stream_failing\` (for ten minutes), \`scope_missing\` (\`telemetry:read\`), \`clock_unconfirmed\` (the API's clock agrees with no other one), \`state_full\`, \`destination_blocked\`, \`devices_not_listed\`, \`last_day_missing\`. Waiting for quota alone is ready |
| \`tidemark --health\` | asks \`/healthz\` of the daemon on this machine, at the configured \`listen\`: exit code 0 or 1. For the health check of a container; needs no key and no curl |

## What is served

| name | kind | unit | labels | meaning |
| --- | --- | --- | --- | --- |
`;

const DEVICES = `
## With \`metrics.per_device\`

For at most ${MOST_DEVICES.toLocaleString('en-US')} devices (in order of their ids); names are shortened.

| name | kind | unit | labels | meaning |
| --- | --- | --- | --- | --- |
`;

const ALERTS = `
## Alerts

From \`config/prometheus/tidemark-alerts.yml\`; the annotations of each say what to do and link to the documentation.

| alert | severity | fires when |
| --- | --- | --- |
`;

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
}

/** The page as it has to stand in `docs`. */
export function metricsPage(): string {
  const { groups } = parse(readFileSync('config/prometheus/tidemark-alerts.yml', 'utf8')) as {
    groups: { rules: Rule[] }[];
  };
  const alerts = groups
    .flatMap(({ rules }) => rules)
    .map(({ alert, expr, for: holds, labels }) => {
      const text = expr.replace(/\s+/g, ' ').trim().replaceAll('|', '\\|');
      return `| \`${alert}\` | ${labels.severity} | \`${text}\`${holds === undefined ? '' : ` for ${holds}`} |`;
    });
  return `${HEAD}${rows(METRICS)}\n${DEVICES}${rows(PER_DEVICE)}\n${ALERTS}${alerts.join('\n')}\n`;
}

function rows(table: Readonly<Record<string, MetricRow>>): string {
  return Object.entries(table)
    .map(
      ([name, { kind, unit, labels, help }]) => `| \`${name}\` | ${kind} | ${unit} | ${labels.join(', ')} | ${help} |`,
    )
    .join('\n');
}
