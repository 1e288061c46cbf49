/**
 * `docs/metrics.md`, made from the table of metrics and the alert rules: what is written there cannot differ from what is
 * served.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { METRICS, type MetricRow, MOST_DEVICES, PER_DEVICE } from '../../src/observe/metrics-table.ts';

const HEAD = `# Metrics, health and alerts

\`/metrics\` at \`listen\` is for Prometheus, and whatever reads its format. \`config/prometheus\` has a scrape example,
recording rules and alert rules with their unit tests. This page is made from the program's own table.

- **A scrape is cheap**: a few milliseconds, also with thousands of devices. What takes a look at every device (devices,
  freshness, coverage) is made when you scrape where that is quick, and otherwise in the background with a twentieth of a
  processor; \`tidemark_fleet_look_age_seconds\` tells how old it is (about a minute with 10,000 devices).
- **Counters begin at 0 with each start** of the program. Gauges that are not known have no series.
- **Points and readings**: a reading is what a device reports at one time, a point one value of it.
- **No metric has a label for devices** unless \`metrics.per_device\` is set.

## Is it well?

| address | answers |
| --- | --- |
| \`/healthz\` | 200 while all loops move; 503 with \`reasons\` and the code \`loop_stands_still\` where one has not moved for a minute longer than it said: what a restart mends, and nothing else. Waiting for allowance, an API or a database that is down, a full disk are healthy |
| \`/readyz\` | 200 while what is held can be relied on; else 503 with \`reasons\` for people and \`codes\` for programs, in the same order: \`key_refused\`, \`api_unreachable\`, \`stream_failing\` (for ten minutes), \`scope_missing\` (\`telemetry:read\`), \`clock_doubted\` (the API's clock agrees with no other one), \`state_full\`, \`destination_held\`, \`devices_not_listed\`, \`last_day_missing\`. Waiting for allowance alone is ready |
| \`tidemark --health\` | asks \`/healthz\` of the daemon on this machine, at the configured \`listen\`: exit code 0 or 1. For the health check of a container; needs no key and no curl |

## What is served

| name | kind | unit | labels | what it is |
| --- | --- | --- | --- | --- |
`;

const DEVICES = `
## With \`metrics.per_device\`

Of ${MOST_DEVICES.toLocaleString('en-US')} devices at most, those with the first ids; names are shortened.

| name | kind | unit | labels | what it is |
| --- | --- | --- | --- | --- |
`;

const ALERTS = `
## Alerts

From \`config/prometheus/tidemark-alerts.yml\`; each says in its annotations what to do and where that is told.

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
