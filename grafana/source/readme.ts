/** grafana/README.md: the question of each dashboard and the meaning of each panel, from the descriptions in the dashboards. */
import type { DashboardSpec, PanelSpec, Variable } from './model.ts';
import { RULES } from './rules.ts';

const INTRODUCTION = `# Grafana dashboards of Tidemark for InfluxDB and VictoriaMetrics

<!-- Made by \`npm run dashboards\` from grafana/source: change it there. -->

Seven dashboards for Grafana 11 and later, with their data sources and alert rules. \`docker compose -f compose.demo.yaml up\` shows
them with a simulated workspace. To use them with your own InfluxDB and Grafana, see [docs/databases.md](../docs/databases.md).

- \`dashboards/\`: the dashboards, for provisioning or import. All are generated from \`source/\`.
- \`provisioning/\`: data sources with the uids \`tidemark-influxdb\` and \`tidemark-prometheus\`, the provider of the
  dashboards, and ${RULES.length} alert rules. They notify nobody by themselves: Grafana's notification policy decides who is notified.
- \`dashboards-victoriametrics/\` and \`provisioning-victoriametrics/\`: two dashboards for data in VictoriaMetrics, and their
  provisioning. \`compose.yaml\` does not load them.

Six dashboards query the database that Tidemark writes to. They use InfluxQL, which InfluxDB 1.8, 2 (the bucket is the database)
and 3 understand. The seventh, "Sync health", queries a Prometheus that scrapes Tidemark's metrics. For data in VictoriaMetrics
there are [two more dashboards](#for-victoriametrics), in PromQL.

The pictures show the demo's workspace, drawn with Grafana's own components, without timelines, maps and lists of firing alerts.

**Choosing devices.** You choose a device by name; the queries use its id. So a renamed device stays one device, and each line has
the name that the device had at the time. Hubs and models narrow the list of devices; on the dashboard "Alerts", "All" devices
always means every device of the workspace, also those that have left it. The lists contain the devices of the range that is shown.
A device whose id contains a space followed by a bracket is not found.

**Ranges.** The default range of each dashboard is a day or less, in the time zone of the browser. States are written when they
change and hourly, so panels of states also read the three hours before the range, panels of alerts 26 hours, and the names of alert rules a year.

**An empty panel** shows what to check.

**To change a dashboard,** import its file under another name and uid, with \`"editable": true\`. The shipped dashboards are
read-only, and an update replaces them; your copies stay.
`;

/** The complete page. */
export function readmeFile(dashboards: readonly DashboardSpec[], promql: readonly DashboardSpec[]): string {
  return [INTRODUCTION, ...dashboards.map(section), rulesSection(), PROMQL_SECTION, ...promql.map(section)].join('\n');
}

/** The table of the alert rules. */
function rulesSection(): string {
  const rows = RULES.map(({ title, severity, summary, for: forLong }) => {
    const words = summary.replace(/\{\{ \.Labels\.(\w+) \}\}/g, '*$1*');
    return `| ${title} | ${severity} | ${words} | ${forLong} |`;
  });
  return `## Alert rules

Grafana evaluates them every minute. "Device silent" is about add-ons; it does not fire while a hub of the workspace is silent,
because "Hub silent" fires then. Each alert links to a panel and to the documentation (set \`TIDEMARK_DOCS_URL\`, the address of the
folder \`docs\`, in the environment of Grafana). The Prometheus rules, about the daemon itself, are in [docs/metrics.md](../docs/metrics.md#alerts).

| rule | severity | fires when | for |
| --- | --- | --- | --- |
${rows.join('\n')}
`;
}

const PROMQL_SECTION = `## For VictoriaMetrics

Two dashboards in PromQL, for the numeric fields that Tidemark writes to VictoriaMetrics
([which fields](../docs/schema.md#victoriametrics)). \`compose.yaml\` does not load them, because its database is InfluxDB. To
provision them in your Grafana, see [docs/databases.md](../docs/databases.md#grafana-with-victoriametrics). To import them by hand, import both
files of \`dashboards-victoriametrics/\` and choose the data source at the top of each dashboard. If a Prometheus scrapes Tidemark's
metrics, import \`dashboards/tidemark-sync.json\` too.

VictoriaMetrics stores no texts, so these dashboards lack presence, firmware, tags, text readings and names of alert
rules, and do not distinguish paused, shelved and retired devices. An active device that is not online and covered up to
the present counts as silent, an excluded device (\`sync.exclude\`) as late. After a
device is renamed, lines of states continue under the old name for three hours; tables, numbers and the coverage band use the new
name at once. The queries are plain PromQL and also work on a Prometheus with the same points. A device or sensor whose id contains
a backtick, and a device whose id contains \`",device_name="\`, is not found.
`;

/** The dashboards of which there is a picture (`npm run dashboard-pictures`). */
const PICTURES = [
  ...['start', 'fleet', 'device', 'sensors', 'alerts', 'workspace', 'sync', 'vm-fleet', 'vm-device'],
].map((name) => `tidemark-${name}`);

/** States of which there is a picture too, by the dashboard that shows them. */
const STATES: Readonly<Record<string, readonly (readonly [file: string, caption: string])[]>> = {
  'tidemark-fleet': [
    ['dashboard-fleet-stopped', '25 minutes after the daemon was stopped'],
    ['dashboard-fleet-silent-hub', 'A hub is silent, and its add-ons with it'],
  ],
};

function section({ uid, title, description, variables, sections }: DashboardSpec): string {
  const choices = variables.filter(isShown).map(({ label, name }) => label ?? name);
  const rows = sections.flatMap(({ title: heading, panels }) => panels.map((panel) => row(heading, panel)));
  const picture = PICTURES.includes(uid)
    ? `\n![${title}](../docs/images/${uid.replace('tidemark', 'dashboard')}.png)\n`
    : '';
  const states = (STATES[uid] ?? []).map(
    ([file, caption]) => `\n${caption}:\n\n![${title}: ${caption}](../docs/images/${file}.png)\n`,
  );
  return `## ${title.replace('Tidemark / ', '')}
${picture}${states.join('')}
${description} To choose: ${choices.join(', ').toLowerCase()}.

| part | panel | what it shows |
| --- | --- | --- |
${rows.join('\n')}
`;
}

function isShown({ hide }: Variable): boolean {
  return hide !== 2;
}

function row(heading: string, { title, description }: PanelSpec): string {
  return `| ${heading} | ${title.replace(/\$(one_)?sensor/, '*the sensor*')} | ${description} |`;
}
