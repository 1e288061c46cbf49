/**
 * `docs/metrics.md`, made from the table of metrics and the alert rules: what is written there cannot differ from what
 * is served.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { MOST_DEVICE_SERIES } from '../../src/core/fleet.ts';
import { REQUEST_LANES, STREAMS } from '../../src/core/ports.ts';
import { METRICS, type MetricRow, PER_DEVICE } from '../../src/observe/metrics-table.ts';

const names = (all: readonly string[]): string => all.map((each) => `\`${each}\``).join(', ');

const HEAD = `# Prometheus metrics, health checks and alert rules of Tidemark

\`/metrics\` at \`listen\` serves metrics in the Prometheus format. \`config/prometheus\` has a scrape configuration,
recording rules and alert rules with unit tests. This page is generated from the program's table of metrics.

- **A scrape is cheap**: a few milliseconds, also with thousands of devices. Figures that scan every
  device (devices, freshness, coverage) are computed on a scrape if that is quick, else in the background with 5 % of a
  CPU; \`tidemark_fleet_snapshot_age_seconds\` is their age (about a minute with 10,000 devices).
- **Counters begin at 0 with each start** of the program. Those of failures are there from the start, with the value 0, even if none has happened yet. A series of \`tidemark_api_requests_total\`, \`tidemark_api_response_bytes_total\`, \`tidemark_readings_received_total\`, \`tidemark_readings_new_total\` and \`tidemark_points_archived_total\` begins with its first request. A gauge whose value is unknown has no series.
- **Points and readings**: a reading is what a device reports at one time, a point one value of it.
- **Labels**: \`stream\` is ${names(STREAMS)}; \`lane\` is ${names(REQUEST_LANES)} ([purposes](status.md#for-programs)); \`loop\` is
  \`main\`, \`requests\`, \`rate limiter\`, \`figures\`, \`maintenance\`, \`jobs\` or \`delivery NAME\`.
- **No metric has a label for devices** unless \`metrics.per_device\` is set.

## Is Tidemark healthy?

| address | answers |
| --- | --- |
| \`/healthz\` | 200 while all loops of the daemon make progress; 503 with \`reasons\` and the code \`loop_stalled\` if the heartbeat of one is overdue by a minute. Only problems that a restart repairs count: waiting for quota, an outage of the API or a database and a full disk are healthy |
| \`/readyz\` | 200 once the last 24 hours of every device are synced, and while nothing prevents the sync (older history may still be missing); else 503 with three lists in the same order: \`reasons\` for people, \`codes\` for programs (below), and \`names\` (the stream or destination concerned, or \`null\`). Waiting for quota alone is ready. A request waits for a new scan of the devices, for a second at most |
| \`tidemark --health\` | requests \`/healthz\` from the daemon on this machine, at the configured \`listen\`: exit code 0 or 1. For the health check of a container; needs no key and no curl |

The codes of \`/readyz\` ([what to do](troubleshooting.md#it-runs-but-is-unhealthy-or-not-ready)):

- \`key_refused\`, \`api_unreachable\`, \`scope_missing\` (\`telemetry:read\`), \`stream_failing\` (for ten minutes)
- \`devices_not_listed\`, \`last_day_missing\`
- \`clock_unconfirmed\`: the API's clock agrees neither with this machine's clock nor with the newest readings; or the API sends no
  \`Date\`, and its readings are newer than this machine's clock
- \`state_full\`, \`destination_blocked\`

## Scraping

The alert rules select the targets by the job \`tidemark\`: the scrape job must have this name. With another
name, \`TidemarkDown\`, \`TidemarkTargetVanished\` and the three \`TidemarkMany…\` can never fire, and \`TidemarkAbsent\` fires although all is well. Give each target the label \`workspace\`: the summary of
each alert begins with it. If the address of a target can change, also give it a fixed label \`instance\`, so that an alert does not end when
the address changes; \`install.sh\`, the PodMonitor and the ServiceMonitor do so. **Give each workspace a name that no other machine or cluster of the same Prometheus uses**: the
file of a target is called after its workspace, and \`TidemarkTargetVanished\` and \`TidemarkManyDown\` tell workspaces apart by their names (and by the label \`namespace\`, if there is one), so one of two with
the same name could disappear without an alert. \`tidemark_workspace_info\` has the id and the name of the workspace in the vendor's
account; this adds them to any query:

\`\`\`promql
tidemark_ready * on (job, instance) group_left (workspace_id, workspace_name) tidemark_workspace_info
\`\`\`

| where | how |
| --- | --- |
| Compose | \`config/prometheus/workspaces\` has a file for each workspace; \`init --workspace\` adds one |
| Kubernetes with the Prometheus operator | the PodMonitor of \`config/kubernetes/podmonitor\`, or the ServiceMonitor of the chart ([how](kubernetes.md#monitoring)). They set \`job\`, \`workspace\`, and \`instance\` to NAMESPACE/WORKSPACE, so a pod that moves stays the same target |
| Kubernetes without it | the first job below |
| daemons that you start by hand | give each its own \`listen\` and \`data_dir\`; the second job below. In the directory \`tidemark\` beside your \`prometheus.yml\`, write a file \`NAME.yaml\` for each, with its address (\`listen\`) and a fixed \`instance\`: \`- {targets: ['127.0.0.1:9464'], labels: {workspace: NAME, instance: HOST/NAME}}\` |
| systemd | \`install.sh\` writes \`/etc/prometheus/tidemark/NAME.yaml\`, a target of a Prometheus on the same machine: the second job below. For a Prometheus on another machine: [below](#prometheus-on-another-machine) |

\`\`\`yaml
scrape_configs:
  - job_name: tidemark
    kubernetes_sd_configs: [{role: pod}]
    relabel_configs:
      - source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name, __meta_kubernetes_pod_container_port_name]
        regex: tidemark;http
        action: keep
      - source_labels: [__meta_kubernetes_pod_label_tidemark_workspace]
        target_label: workspace
      - source_labels: [__meta_kubernetes_namespace]
        target_label: namespace
      - source_labels: [__meta_kubernetes_namespace, __meta_kubernetes_pod_label_tidemark_workspace]
        separator: /
        target_label: instance
\`\`\`

\`\`\`yaml
scrape_configs:
  - job_name: tidemark
    file_sd_configs: [{files: ['tidemark/*.yaml']}]
    # Only with listen_password_file: one password for all targets of this job; the user may be any.
    # basic_auth: {username: prometheus, password_file: tidemark_listen_password}
\`\`\`

**The rules in your own Prometheus.** Copy \`config/prometheus/tidemark-recording.yml\` and \`tidemark-alerts.yml\` beside its
\`prometheus.yml\`, and merge these lines into it. Do not append them: \`global\`, \`rule_files\` and \`alerting\` are in the file of Debian's package already and may
occur only once, so add each line below its own. \`tidemark_docs\` is the address of the folder \`docs\` of this documentation, for the links in the alerts:

\`\`\`yaml
global:
  external_labels:
    tidemark_docs: https://git.example/tidemark/blob/main/docs
rule_files: [tidemark-recording.yml, tidemark-alerts.yml]
alerting: {alertmanagers: [{static_configs: [{targets: ['127.0.0.1:9093']}]}]}
\`\`\`

The last line is the address of your Alertmanager: without one, nobody is notified. [Who is notified](#alerts).

### Prometheus on another machine

With systemd:

1. Restrict the ports by a firewall, or set a password ([next section](#a-password-with-systemd)).
2. Let the pages listen on all addresses: set \`TIDEMARK_LISTEN=0.0.0.0:PORT\` in \`tidemark.env\` and run \`install.sh NAME\` again. For all workspaces at once:
   \`sudo sed -i 's/^TIDEMARK_LISTEN=127.0.0.1:/TIDEMARK_LISTEN=0.0.0.0:/' /etc/tidemark/*/tidemark.env\`, then \`install.sh --all\`.
3. Copy \`/etc/prometheus/tidemark/NAME.yaml\` into the directory \`tidemark\` beside the \`prometheus.yml\` of that machine.
4. The target in it is the host name of this machine. If Prometheus cannot resolve it, write the IP address in its place in the copy.

### A password with systemd

The same for all workspaces, from the file \`password\`; afterwards restart the daemons (\`sudo systemctl restart 'tidemark@*'\`), and give Prometheus the same file:

\`\`\`sh
for each in $(find /opt/tidemark/workspaces -type l ! -name '*.before' -printf '%f\\n'); do \\
  sudo install -m 0640 -g "tidemark-$each" password "/etc/tidemark/$each/tidemark_listen_password"; \\
  echo "TIDEMARK_LISTEN_PASSWORD_FILE=/etc/tidemark/$each/tidemark_listen_password" | sudo tee -a "/etc/tidemark/$each/tidemark.env" > /dev/null; \\
done
\`\`\`

### Other rules of the scrape

With a password, \`/metrics\` requires it, and a target without \`basic_auth\` is down with \`401 Unauthorized\`. Prometheus reads
\`password_file\` only at a scrape: if it is missing, \`promtool check config\` succeeds and every target is down. Relative paths begin at the
directory of \`prometheus.yml\`. \`/healthz\` requires no password. Without the password, \`/readyz\` answers only 200 or 503, without the reasons, which
is enough for the probes of an orchestrator. \`/metrics\` and \`/healthz\` answer to every host name, whatever \`listen_names\` has.

## What is served

| name | kind | unit | labels | meaning |
| --- | --- | --- | --- | --- |
`;

const DEVICES = `
## With \`metrics.per_device\`

For at most ${MOST_DEVICE_SERIES.toLocaleString('en-US')} devices (in order of their ids); names are shortened.

| name | kind | unit | labels | meaning |
| --- | --- | --- | --- | --- |
`;

const ALERTS = `
## Alerts

First [scrape](#scraping) and load the rules, as above. They are in \`config/prometheus/tidemark-alerts.yml\`; the annotations of each alert have the first step; for more, follow the link in the column *what to do* and search that section for the alert's name. \`runbook_url\` links to the documentation;
set the address of its folder \`docs\` as the external label \`tidemark_docs\` of your Prometheus (\`global.external_labels\`; \`TIDEMARK_DOCS_URL\` in Compose,
\`docsUrl\` in the chart), or the link leads nowhere. \`TidemarkNotFresh\` can fire in a first sync that takes longer than 20 minutes; a
backfill of history does not cause it. The limit of this alert, \`tidemark_freshness_target_seconds\`, is
\`sync.grace_period\` plus the longer of five minutes and twice the poll interval that the quota allows: 420 s by default.

**Many workspaces.** If one cause (such as a shared database) affects at least 5 workspaces and more than 20 % of all (of 40: at least 9), one of the three
\`TidemarkMany…\` alerts fires, earlier than the alerts of the single workspaces. \`config/prometheus/alertmanager.yml\` then suppresses
these. It also suppresses alerts that another alert of the same workspace explains, and sends one notification per alert for all
workspaces. If you have your own Alertmanager, copy \`inhibit_rules\` and add this route before your others, and the receiver \`nobody\`
(without this route, \`TidemarkWatchdog\`, which always fires, and alerts of severity \`info\` would notify your default receiver):

\`\`\`yaml
route:
  receiver: default       # yours
  routes:
    - matchers: ['alertname =~ "Tidemark.*"']
      receiver: owner     # yours, for Tidemark
      group_by: [alertname]
      routes:
        - matchers: ['severity =~ "none|info"']
          receiver: nobody
    # your other routes
receivers:
  - name: nobody
  # your receivers
\`\`\`

**Several Prometheus, one Alertmanager** (as with several clusters). Give each Prometheus an external label \`cluster\`: with it, an alert suppresses only
alerts of its own cluster. Route \`TidemarkWatchdog\` with \`group_by: [alertname, cluster]\`, or one Prometheus that stops goes unnoticed beside the others.

**Does the alerting itself work?** \`TidemarkWatchdog\` always fires. Send it to a service that calls you when it stops arriving: \`alertmanager.yml\` has the
route as a comment.

| alert | severity | meaning | what to do | fires when |
| --- | --- | --- | --- | --- |
`;

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

/** The page as it has to stand in `docs`. */
export function metricsPage(): string {
  const { groups } = parse(readFileSync('config/prometheus/tidemark-alerts.yml', 'utf8')) as {
    groups: { rules: Rule[] }[];
  };
  const alerts = groups
    .flatMap(({ rules }) => rules)
    .map(({ alert, expr, for: holds, labels, annotations }) => {
      const text = expr.replace(/\s+/g, ' ').trim().replaceAll('|', '\\|');
      const when = `\`${text}\`${holds === undefined ? '' : ` for ${holds}`}`;
      return `| \`${alert}\` | ${labels.severity} | ${meaningOf(annotations.summary)} | ${runbookOf(annotations.runbook_url)} | ${when} |`;
    });
  return `${HEAD}${rows(METRICS)}\n${DEVICES}${rows(PER_DEVICE)}\n${ALERTS}${alerts.join('\n')}\n`;
}

/** The replacement of a label in the meaning of an alert. */
const LABELS: Readonly<Record<string, string>> = {
  destination: 'a database',
  stream: 'a stream',
  of: 'schedules or readings',
  reason: 'with the reason',
};

/** A summary without the name of the workspace, with … for each value. */
function meaningOf(summary: string): string {
  const text = summary
    .replace(/^\{\{ or [^}]+\}\}: /, '')
    .replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => LABELS[label] ?? '…')
    .replace(/\{\{[^}]+\}\}/g, '…')
    .trim();
  return text.replace(/^./, (first) => first.toUpperCase());
}

/** The link to a runbook, named like the section that it leads to. */
function runbookOf(url: string): string {
  const [, page = '', anchor = ''] = /([^/]+)#(.+)$/.exec(url) ?? [];
  const heading = headings(readFileSync(`docs/${page}`, 'utf8')).find((each) => anchorOf(each) === anchor);
  return `[${heading}](${page}#${anchor})`;
}

/** The headings of a page below its title. */
export function headings(page: string): string[] {
  return [...page.matchAll(/^#{2,3} (.+)$/gm)].map(([, heading = '']) => heading);
}

/** The anchor of a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}

function rows(table: Readonly<Record<string, MetricRow>>): string {
  return Object.entries(table)
    .map(
      ([name, { kind, unit, labels, help }]) => `| \`${name}\` | ${kind} | ${unit} | ${labels.join(', ')} | ${help} |`,
    )
    .join('\n');
}
