/**
 * The files around the dashboards: what Grafana reads. It is not available here, so each key is compared with the ones
 * in its documentation.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SOURCES } from '../../grafana/source/layout.ts';
import { boardFiles, readBoards } from './support/boards.ts';
import { SCRAPE } from './support/promql-text.ts';
import { typeFaults } from './support/sdk-types.ts';

type Tree = Readonly<Record<string, unknown>>;

function readYaml(path: string): Tree {
  return parse(readFileSync(path, 'utf8'), { merge: true }) as Tree;
}

function strangers(tree: unknown, known: readonly string[]): string[] {
  return Object.keys(tree as object).filter((key) => !known.includes(key));
}

describe('data sources', () => {
  interface File {
    readonly apiVersion: number;
    readonly datasources: (Tree & { uid: string; type: string; url: string; jsonData: Tree; secureJsonData?: Tree })[];
  }
  const { apiVersion, datasources } = readYaml('grafana/provisioning/datasources/tidemark.yaml') as unknown as File;
  const victoria = readYaml(
    'grafana/provisioning-victoriametrics/datasources/tidemark-victoriametrics.yaml',
  ) as unknown as File;

  test('have the uids that dashboards and rules use, and keys that Grafana accepts', () => {
    expect(apiVersion).toBe(1);
    expect(victoria.apiVersion).toBe(1);
    const named = [...datasources, ...victoria.datasources].map(({ name, uid, type }) => ({ name, uid, type }));
    expect(named).toEqual(Object.values(SOURCES));
    for (const source of [...datasources, ...victoria.datasources]) {
      expect(strangers(source, SOURCE_KEYS)).toEqual([]);
      expect(strangers(source.jsonData, SOURCE_OPTIONS[source.type] ?? [])).toEqual([]);
    }
  });

  test('query the database in InfluxQL, with the token of a file, and in the body', () => {
    expect(datasources[0]).toMatchObject({
      access: 'proxy',
      isDefault: true,
      jsonData: { version: 'InfluxQL', httpMode: 'POST', httpHeaderName1: 'Authorization' },
      secureJsonData: { httpHeaderValue1: 'Token $__file{/run/tidemark/grafana-token}' },
    });
  });

  test('query VictoriaMetrics only where it is installed, and never choose it by default', () => {
    expect(datasources.map(({ uid }) => uid)).not.toContain(SOURCES.victoriametrics.uid);
    const [source] = victoria.datasources;
    expect(source).toMatchObject({ access: 'proxy', editable: false, jsonData: { httpMethod: 'POST' } });
    expect(source?.['isDefault'] ?? false).toBe(false);
    // The steps that the tests of the queries reckon with.
    expect(source?.jsonData['timeInterval']).toBe(SCRAPE);
  });

  const SOURCE_KEYS = [
    ...['name', 'uid', 'type', 'access', 'orgId', 'url', 'isDefault', 'editable', 'jsonData', 'secureJsonData'],
    ...['user', 'database', 'basicAuth', 'basicAuthUser', 'withCredentials', 'version'],
  ];
  const SOURCE_OPTIONS: Readonly<Record<string, readonly string[]>> = {
    influxdb: ['version', 'dbName', 'httpMode', 'timeInterval', 'httpHeaderName1', 'maxSeries', 'tlsSkipVerify'],
    prometheus: ['httpMethod', 'timeInterval', 'queryTimeout', 'manageAlerts', 'prometheusType'],
  };
});

test.each([
  ['grafana/provisioning/dashboards/tidemark.yaml', '/etc/grafana/dashboards'],
  [
    'grafana/provisioning-victoriametrics/dashboards/tidemark-victoriametrics.yaml',
    '/etc/grafana/dashboards-victoriametrics',
  ],
])('the provider of %s reads the folder that is mounted', (path, folder) => {
  const { apiVersion, providers } = readYaml(path) as {
    apiVersion: number;
    providers: (Tree & { options: Tree })[];
  };
  expect(apiVersion).toBe(1);
  const known = [
    ...['name', 'orgId', 'folder', 'folderUid', 'type', 'disableDeletion', 'updateIntervalSeconds', 'allowUiUpdates'],
    'options',
  ];
  for (const provider of providers) expect(strangers(provider, known)).toEqual([]);
  expect(providers[0]).toMatchObject({ type: 'file', options: { path: folder } });
});

test.each(['datasources', 'plugins', 'dashboards', 'alerting'])('Grafana finds its folder %s, with files', (folder) => {
  // At each start it looks into these, and logs an error where one is missing.
  const files = readdirSync(`grafana/provisioning/${folder}`);
  expect(files).toEqual(['tidemark.yaml']);
  expect(readYaml(`grafana/provisioning/${folder}/tidemark.yaml`)['apiVersion']).toBe(1);
});

test('no plugin is installed', () => {
  expect(readYaml('grafana/provisioning/plugins/tidemark.yaml')).toEqual({ apiVersion: 1, apps: [] });
});

test('two providers have names and folders of their own, and Compose brings nothing of VictoriaMetrics', () => {
  const paths = [
    'provisioning/dashboards/tidemark',
    'provisioning-victoriametrics/dashboards/tidemark-victoriametrics',
  ];
  const providers = paths.flatMap((path) => readYaml(`grafana/${path}.yaml`)['providers'] as Tree[]);
  for (const key of ['name', 'folder', 'folderUid']) expect(new Set(providers.map((one) => one[key])).size).toBe(2);
  expect(existsSync('grafana/provisioning/dashboards/tidemark-victoriametrics.yaml')).toBe(false);
  expect(readFileSync('config/compose/around.yaml', 'utf8')).not.toContain('victoria');
});

test('the page on databases names the files and folders of VictoriaMetrics as they are', () => {
  const page = readFileSync('docs/databases.md', 'utf8');
  const named = [...page.matchAll(/grafana\/[\w/.-]*victoriametrics[\w/.-]*/g)].map(([path]) => path);
  expect(named.length).toBeGreaterThan(2);
  for (const path of named.filter((one) => !one.startsWith('grafana/provisioning/'))) {
    if (!path.startsWith('grafana/dashboards-victoriametrics:')) expect(existsSync(path), path).toBe(true);
  }
  expect(page).toContain('./grafana/dashboards-victoriametrics:/etc/grafana/dashboards-victoriametrics:ro');
});

describe('alert rules', () => {
  const { apiVersion, groups } = readYaml('grafana/provisioning/alerting/tidemark.yaml') as {
    apiVersion: number;
    groups: { rules: (Tree & { uid: string; data: { refId: string; datasourceUid: string; model: Tree }[] })[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  test('have keys that Grafana accepts, and lead to a dashboard', () => {
    expect(apiVersion).toBe(1);
    for (const group of groups) expect(strangers(group, ['orgId', 'name', 'folder', 'interval', 'rules'])).toEqual([]);
    const known = [
      ...['uid', 'title', 'condition', 'data', 'dashboardUid', 'panelId', 'noDataState', 'execErrState', 'for'],
      ...['keep_firing_for', 'annotations', 'labels', 'isPaused', 'notification_settings'],
    ];
    for (const rule of rules) {
      expect(strangers(rule, known)).toEqual([]);
      expect(boardFiles()).toContain(`${rule['dashboardUid']}.json`);
      // Notifications take the link to the panel from annotations.
      const annotations = rule['annotations'] as Record<string, string>;
      expect(annotations['__dashboardUid__']).toBe(rule['dashboardUid']);
      expect(annotations['__panelId__']).toBe(String(rule['panelId']));
      const shown = readBoards().find(({ uid }) => uid === rule['dashboardUid']);
      expect(shown?.panels.filter(({ type }) => type !== 'row').map(({ id }) => id)).toContain(rule['panelId']);
      expect(['critical', 'warning']).toContain((rule['labels'] as Record<string, string>)['severity']);
    }
    expect(new Set(rules.map(({ uid }) => uid)).size).toBe(7);
  });

  test('query the provisioned database, and compare by the expressions after it', () => {
    for (const { data, condition } of rules) {
      expect(condition).toBe('C');
      const asked = data.filter(({ model }) => model['query'] !== undefined);
      expect(asked.map(({ datasourceUid }) => datasourceUid)).toEqual(asked.map(() => SOURCES.influxdb.uid));
      const computed = data.filter(({ model }) => model['query'] === undefined);
      expect(new Set(computed.map(({ datasourceUid }) => datasourceUid))).toEqual(new Set(['__expr__']));
      const expressions = computed.map(({ refId, model }) => [refId, model['type'], model['expression']]);
      expect([
        [
          ['B', 'reduce', 'A'],
          ['C', 'threshold', 'B'],
        ],
        [
          ['B', 'reduce', 'A'],
          ['E', 'reduce', 'D'],
          ['C', 'math', '$B < 1 && $E > 0'],
        ],
      ]).toContainEqual(expressions);
    }
  });

  test('take nothing from the environment of Grafana but the address of the documentation', () => {
    const page = readFileSync('docs/troubleshooting.md', 'utf8').toLowerCase();
    for (const { annotations, labels } of rules) {
      const { runbook_url: runbook = '', ...rest } = annotations as Record<string, string>;
      expect(JSON.stringify([rest, labels])).not.toContain('$');
      const [, anchor = ''] = /^\$\{TIDEMARK_DOCS_URL\}\/troubleshooting\.md#([\w-]+)$/.exec(runbook) ?? [];
      expect(page).toMatch(new RegExp(`^##+ ${anchor.replaceAll('-', ' ')}$`, 'm'));
    }
    const { environment } = parse(readFileSync('config/compose/around.yaml', 'utf8'), { merge: true }).services.grafana;
    expect(environment.TIDEMARK_DOCS_URL).toMatch(/^\$\{TIDEMARK_DOCS_URL:-https:\/\/\S+[^/]\}$/);
  });

  test("hold against Grafana's type of a rule", () => {
    // Settings of the group in a file belong to the rule where it is alone; times are durations as words in a file.
    const claims = rules.map(({ dashboardUid: _, panelId: __, ...rule }) => ({
      type: 'alerting.Rule',
      value: { ...rule, folderUID: 'f', orgID: 1, ruleGroup: 'g' },
    }));
    expect(typeFaults(claims)).toEqual(claims.map(() => []));
  });
});
