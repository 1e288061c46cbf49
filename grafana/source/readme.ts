/**
 * The page that tells what each dashboard answers and what each panel means: made from what the dashboards say of
 * themselves, so that it is never behind them.
 */
import type { DashboardSpec, PanelSpec, Variable } from './model.ts';
import { RULES } from './rules.ts';

const INTRODUCTION = `# Dashboards

<!-- Made by \`npm run dashboards\` from grafana/source: change it there. -->

Seven dashboards for Grafana 11 and later, with the data sources and alert rules that go with them. \`docker compose -f
compose.demo.yaml up\` shows them with a simulated workspace; [docs/databases.md](../docs/databases.md) tells how to use them with the
InfluxDB and the Grafana that you have.

- \`dashboards/\`: the dashboards, as Grafana provisions or imports them. All are generated from \`source/\`.
- \`provisioning/\`: data sources with the uids \`tidemark-influxdb\` and \`tidemark-prometheus\`, the provider of the
  dashboards, and ${RULES.length} alert rules. Whom they tell is yours to say: they go where your notification policy sends everything.
- \`dashboards-victoriametrics/\` and \`provisioning-victoriametrics/\`: the two dashboards for data in VictoriaMetrics, and what
  Grafana needs for them. Nothing reads them unless you have it do so.

Six of them ask the database that Tidemark fills, in InfluxQL, so that one set serves InfluxDB 1.8, 2 (the bucket is the
database) and 3. The seventh asks a Prometheus that reads Tidemark's own metrics. Data in VictoriaMetrics can be looked at in
PromQL: two more dashboards do, [for those who have one](#for-victoriametrics).

The pictures show the demo's workspace, drawn with Grafana's own components; timelines, maps and the list of firing alerts are left out of them.

**Choosing.** Devices are chosen by name and looked for by id, so a device that was renamed stays one device; its lines carry
the name that held when they were measured. Hubs and models narrow the list of devices;
"All" devices of the dashboard "Alerts" stays all of the workspace, with those that are gone. The lists hold what was seen in the
range that is shown. A device whose id contains a bracket after a space cannot be told from its name and is not found.

**Ranges.** All begin with the last day or less, in the time zone of the browser. States are written when they change and
hourly, so panels of states look up to three hours before the range (alerts: 26 hours; their rules: a year).

**Nothing to see?** Each panel says what to do where it has nothing to show.

**To change one,** import its file under a name and a uid of your own, with \`"editable": true\` in it. As they come they are
read-only: an update replaces them, and nothing of yours.
`;

/** The page as a whole. */
export function readmeFile(dashboards: readonly DashboardSpec[], promql: readonly DashboardSpec[]): string {
  return [INTRODUCTION, ...dashboards.map(section), rulesSection(), PROMQL_SECTION, ...promql.map(section)].join('\n');
}

/** The rules, from their own words. */
function rulesSection(): string {
  const rows = RULES.map(({ title, severity, summary, for: forLong }) => {
    const words = summary.replace(/\{\{ \.Labels\.(\w+) \}\}/g, '*$1*');
    return `| ${title} | ${severity} | ${words} | ${forLong} |`;
  });
  return `## Alert rules

Grafana evaluates them each minute. "Device silent" is about add-ons and does not fire while a hub of their workspace is silent:
then "Hub silent" does. Each leads to a panel and, by \`TIDEMARK_DOCS_URL\` in the environment of Grafana, to the documentation.
The rules of Prometheus, about the daemon itself, are in [docs/metrics.md](../docs/metrics.md#alerts).

| rule | severity | fires when | for |
| --- | --- | --- | --- |
${rows.join('\n')}
`;
}

const PROMQL_SECTION = `## For VictoriaMetrics

Two dashboards in PromQL, of the numbers that Tidemark writes to a VictoriaMetrics
([what is there](../docs/schema.md#victoriametrics)). They are not among those that \`compose.yaml\` brings: there they would
have nothing to ask. [docs/databases.md](../docs/databases.md#victoriametrics) tells how to have your Grafana read them, or
import both files of \`dashboards-victoriametrics/\` by hand and choose the data source on top of each. Import
\`dashboards/tidemark-sync.json\` too if a Prometheus reads Tidemark's own metrics.

What is a text is not in that database, and so not here: presence, lifecycle, firmware, tags, words that sensors report, names
of alert rules. A device that was taken out of service counts as one that is
not online, and one that is left out of the sync (\`sync.exclude\`) as one that is behind. After a renaming, lines of states go on
under the old name for three hours; tables, numbers and the coverage band go by the newest name at once. The queries are plain
PromQL, which a Prometheus that holds the same points understands as well. A device or sensor whose id contains a backtick,
and a device whose id contains \`",device_name="\`, is not found.
`;

/** The dashboards of which there is a picture (`npm run dashboard-pictures`). */
const PICTURES = [
  ...['start', 'fleet', 'device', 'sensors', 'alerts', 'workspace', 'sync', 'vm-fleet', 'vm-device'],
].map((name) => `tidemark-${name}`);

function section({ uid, title, description, variables, sections }: DashboardSpec): string {
  const choices = variables.filter(isShown).map(({ label, name }) => label ?? name);
  const rows = sections.flatMap(({ title: heading, panels }) => panels.map((panel) => row(heading, panel)));
  const picture = PICTURES.includes(uid)
    ? `\n![${title}](../docs/images/${uid.replace('tidemark', 'dashboard')}.png)\n`
    : '';
  return `## ${title.replace('Tidemark / ', '')}
${picture}
${description} To choose: ${choices.join(', ').toLowerCase()}.

| part | panel | what it tells |
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
