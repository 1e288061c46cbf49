/**
 * `config/prometheus`: promtool's own judgement of the rules and their unit tests, and that they speak of metrics and
 * pages that there are.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { METRICS, type MetricRow } from '../../src/observe/metrics-table.ts';
import { anchorOf, headings } from '../support/metrics-page.ts';
import { amtool, inhibitedAlerts, prometheusAvailable, promtool } from '../support/prometheus.ts';

const DIR = 'config/prometheus';
const ROWS: Readonly<Record<string, MetricRow>> = METRICS;
/** It always fires. */
const WATCHDOG = 'TidemarkWatchdog';
const RULES = ['tidemark-alerts.yml', 'tidemark-recording.yml'];

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

function rulesOf(file: string): Rule[] {
  const { groups } = parse(readFileSync(`${DIR}/${file}`, 'utf8')) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

/** A metric and its required labels. */
function usesOf(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/(?<![\w:])(tidemark_\w+)(?:\{([^}]*)\})?/g)].map(([, name = '', matchers = '']) => ({
    name,
    labels: [...matchers.matchAll(/(\w+)\s*[=!]~?/g)].map(([, label = '']) => label),
  }));
}

/** The row behind a series: a histogram has several. */
function rowOf(name: string): MetricRow | undefined {
  return ROWS[name] ?? ROWS[name.replace(/_(?:bucket|sum|count)$/, '')];
}

const rules = RULES.flatMap(rulesOf);
const alerts = rules.filter(({ alert }) => alert !== undefined);

describe('the rules', () => {
  test('speak of metrics and labels that are in the table', () => {
    const uses = rules.flatMap(({ expr }) => usesOf(expr));
    expect(uses.length).toBeGreaterThan(30);
    for (const { name, labels } of uses) {
      expect(rowOf(name), name).toBeDefined();
      const known = [...(rowOf(name)?.labels ?? []), 'le'];
      expect([name, labels.filter((label) => !known.includes(label))]).toEqual([name, []]);
    }
  });

  test('each alert has a severity, a problem, a remedy, and a section that names it', () => {
    const sections = new Map(
      ['troubleshooting.md', 'status.md'].flatMap((page) =>
        readFileSync(`docs/${page}`, 'utf8')
          .split(/^(?=#{2,3} )/m)
          .map((section): [string, string] => [`${page}#${anchorOf(headings(section)[0] ?? '')}`, section]),
      ),
    );
    for (const { alert, labels, annotations } of alerts) {
      const severities = alert === WATCHDOG ? ['none'] : ['critical', 'warning', 'info'];
      expect(severities, alert).toContain(labels?.['severity']);
      const [, address, anchor] = /^(.*)\/(\w+\.md#.*)$/.exec(annotations?.['runbook_url'] ?? '') ?? [];
      expect(address, alert).toBe('{{ $externalLabels.tidemark_docs }}');
      expect(sections.get(anchor ?? ''), alert).toContain(`\`${alert}\``);
      expect(annotations?.['summary']?.length, alert).toBeGreaterThan(20);
      expect(annotations?.['description']?.length, alert).toBeGreaterThan(40);
    }
  });

  test('each alert has a unit test in which it fires and one in which it is silent', () => {
    const { tests } = parse(readFileSync(`${DIR}/tidemark.test.yml`, 'utf8')) as {
      tests: { alert_rule_test?: { alertname: string; exp_alerts: unknown[] }[] }[];
    };
    const cases = tests.flatMap(({ alert_rule_test: each = [] }) => each);
    for (const { alert } of alerts) {
      const reported = cases.filter(({ alertname }) => alertname === alert).map(({ exp_alerts }) => exp_alerts.length);
      expect([alert, reported.includes(0), reported.includes(1)]).toEqual([alert, alert !== WATCHDOG, true]);
    }
  });

  test('the query of docs/scaling.md for workspaces without a database is one that promtool tries', () => {
    const [, query = ''] =
      /^\| Which have no database, .*\| `(.*)` \|$/m.exec(readFileSync('docs/scaling.md', 'utf8')) ?? [];
    const { tests } = parse(readFileSync(`${DIR}/tidemark.test.yml`, 'utf8')) as {
      tests: { promql_expr_test?: { expr: string }[] }[];
    };
    const tried = tests.flatMap(({ promql_expr_test: each = [] }) => each.map(({ expr }) => expr));
    expect(query).toMatch(/^up\{job="tidemark"\}/);
    expect(tried).toContain(query);
  });

  test('the address of the documentation is one setting, absolute; every file of rules is read', () => {
    const { global, rule_files: files } = parse(readFileSync(`${DIR}/prometheus.yml`, 'utf8'));
    expect(global.external_labels.tidemark_docs).toBe('$' + '{TIDEMARK_DOCS_URL}');
    const { services } = parse(readFileSync('config/compose/around.yaml', 'utf8'), { merge: true });
    const [own, grafanas] = [services.prometheus, services.grafana].map(
      ({ environment }) => environment.TIDEMARK_DOCS_URL,
    );
    // Nobody can own a name below "example": until the address is set, a link leads to no stranger.
    expect(own).toMatch(/^\$\{TIDEMARK_DOCS_URL:-https:\/\/[\w-]+\.example\}$/);
    expect(parse(readFileSync('config/helm/tidemark/values.yaml', 'utf8')).docsUrl).toMatch(
      /^https:\/\/[\w-]+\.example$/,
    );
    expect(own).toBe(grafanas);
    expect(files.toSorted()).toEqual(RULES);
  });

  test('the page about metrics names every alert', () => {
    const page = readFileSync('docs/metrics.md', 'utf8');
    expect(alerts.map(({ alert }) => alert).filter((alert) => !page.includes(`\`${alert}\``))).toEqual([]);
  });
});

describe.runIf(prometheusAvailable())('promtool', () => {
  test('finds the rules and the example right', () => {
    const checked = promtool(['check', 'rules', ...RULES], '', DIR);
    expect(checked).toMatchObject({ code: 0 });
    expect(checked.said).not.toMatch(/FAILED|lint/i);
    const config = promtool(['check', 'config', 'prometheus.yml'], '', DIR);
    expect(config).toMatchObject({ code: 0, said: expect.not.stringMatching(/WARNING/) });
  });

  test("amtool accepts the Alertmanager's file, and lists the parts that only the owner can fill in", () => {
    const checked = amtool(['check-config', `${DIR}/alertmanager.yml`]);
    expect(checked).toMatchObject({ code: 0, said: expect.stringContaining('2 receivers') });
    const routed = (severity: string) =>
      amtool(['config', 'routes', 'test', `--config.file=${DIR}/alertmanager.yml`, `severity=${severity}`]).said.split(
        '\n',
      )[0];
    expect(['critical', 'warning', 'info', 'none'].map(routed)).toEqual(['owner', 'owner', 'nobody', 'nobody']);
  });

  test('the route of docs/metrics.md, for an own Alertmanager, takes only alerts of Tidemark', () => {
    const [, block = ''] = /```yaml\n(route:[\s\S]*?)```/.exec(readFileSync('docs/metrics.md', 'utf8')) ?? [];
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-route-'));
    const file = join(folder, 'alertmanager.yml');
    writeFileSync(file, block.replace('  # your receivers', '  - name: owner\n  - name: default'));
    expect(amtool(['check-config', file])).toMatchObject({ code: 0, said: expect.stringContaining('3 receivers') });
    const routed = (...labels: string[]) =>
      amtool(['config', 'routes', 'test', `--config.file=${file}`, ...labels]).said.split('\n')[0];
    expect(routed('alertname=TidemarkDown', 'severity=critical')).toBe('owner');
    expect(routed('alertname=TidemarkWatchdog', 'severity=none')).toBe('nobody');
    expect(routed('alertname=Other', 'severity=info')).toBe('default');
    rmSync(folder, { recursive: true });
  });

  test('one alert for many workspaces inhibits those of the single ones, and a cause inhibits its effects', async () => {
    const of = (alertname: string, name: string) => ({
      alertname,
      job: 'tidemark',
      instance: `n/${name}`,
      workspace: name,
      severity: 'critical',
    });
    const { active, heldBack } = await inhibitedAlerts(`${DIR}/alertmanager.yml`, [
      { alertname: 'TidemarkManyNotDelivering', job: 'tidemark', severity: 'critical' },
      ...['a', 'b', 'c'].flatMap((name) => [of('TidemarkDestinationDown', name), of('TidemarkNotReady', name)]),
      of('TidemarkKeyRefused', 'd'),
      of('TidemarkNothingSynced', 'd'),
      // Of another workspace: its own news.
      of('TidemarkNothingSynced', 'e'),
      of('TidemarkPointsMissing', 'a'),
    ]);
    expect(active).toEqual([
      'TidemarkKeyRefused',
      'TidemarkManyNotDelivering',
      'TidemarkNothingSynced',
      'TidemarkPointsMissing',
    ]);
    expect(heldBack).toHaveLength(7);
  });

  test('an alert inhibits none of another cluster', async () => {
    const of = (alertname: string, cluster: string) => ({ alertname, job: 'tidemark', cluster, severity: 'critical' });
    const { active, heldBack } = await inhibitedAlerts(`${DIR}/alertmanager.yml`, [
      of('TidemarkManyDown', 'a'),
      of('TidemarkDown', 'a'),
      of('TidemarkDown', 'b'),
      of('TidemarkAbsent', 'c'),
      of('TidemarkTargetVanished', 'b'),
      of('TidemarkTargetVanished', 'c'),
    ]);
    expect(active).toEqual(['TidemarkAbsent', 'TidemarkDown', 'TidemarkManyDown', 'TidemarkTargetVanished']);
    expect(heldBack).toHaveLength(2);
  });

  test('finds the scrape jobs of docs/metrics.md right, by the name that the rules select', () => {
    const page = readFileSync('docs/metrics.md', 'utf8');
    const jobs = [...page.matchAll(/```yaml\n(scrape_configs:[\s\S]*?)```/g)].map(([, text = '']) => text);
    expect(jobs).toHaveLength(2);
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-jobs-'));
    mkdirSync(join(folder, 'tidemark'));
    writeFileSync(join(folder, 'tidemark', 'home.yaml'), "- targets: ['127.0.0.1:9464']\n");
    // As it stands a job needs no file; with a password it has the line that is commented out.
    expect(jobs.filter((job) => parse(job).scrape_configs[0].basic_auth !== undefined)).toEqual([]);
    const withPassword = jobs
      .map((job) => job.replace('# basic_auth:', 'basic_auth:'))
      .filter((job) => !jobs.includes(job));
    expect(withPassword.map((job) => Object.keys(parse(job).scrape_configs[0].basic_auth))).toEqual([
      ['username', 'password_file'],
    ]);
    writeFileSync(join(folder, 'tidemark_listen_password'), 'secret');
    for (const job of [...jobs, ...withPassword]) {
      expect(parse(job).scrape_configs[0].job_name).toBe('tidemark');
      // Debian's promtool is built without the discovery of Kubernetes; the rest of the job it judges.
      const known = job.replace('kubernetes_sd_configs: [{role: pod}]', "static_configs: [{targets: ['a:1']}]");
      writeFileSync(join(folder, 'prometheus.yml'), known);
      expect(promtool(['check', 'config', 'prometheus.yml'], '', folder)).toMatchObject({ code: 0 });
    }
    rmSync(folder, { recursive: true });
  });

  test('passes their unit tests', () => {
    expect(promtool(['test', 'rules', 'tidemark.test.yml'], '', DIR)).toMatchObject({
      code: 0,
      said: expect.stringContaining('SUCCESS'),
    });
  });
});
