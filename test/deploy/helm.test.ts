/** The chart, rendered by the real helm: the same as by kustomize, with the values of each workspace. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_KEYS } from '../../src/config/schema.ts';
import { TRIED } from '../support/tried-commands.ts';
import {
  complaints,
  copyManifests,
  DASHBOARDS,
  parsed,
  type Recipes,
  type Rendered,
  recipes,
  renderRecipes,
  selects,
} from './rendered.ts';
import { runTool, toolsAvailable } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const AVAILABLE = toolsAvailable();

let copy: string;
let created: Recipes['created'];
let rendered: Recipes['rendered'];
beforeAll(() => {
  if (!AVAILABLE) return;
  copy = copyManifests();
  ({ rendered, created } = renderRecipes(copy));
});
afterAll(() => {
  if (AVAILABLE) rmSync(join(copy, '..', '..'), { recursive: true, force: true });
});

/** The common output of both ways: names by content, the owner of an object, the restart by a checksum. */
function common(text: string): Readonly<Record<string, unknown>> {
  const owner = [
    'annotations',
    'app.kubernetes.io/managed-by',
    'app.kubernetes.io/version',
    'helm.sh/chart',
    'checksum/config',
  ];
  const plain = text
    .split('\n')
    .filter((line) => !owner.some((key) => line.trim().startsWith(`${key}:`)))
    .join('\n')
    .replaceAll(/(-tidemark)-[a-z0-9]{10}\b/g, '$1');
  const shared = parsed(plain).filter((each) =>
    ['ConfigMap', 'Service', 'NetworkPolicy', 'StatefulSet'].includes(each?.kind),
  );
  return Object.fromEntries(
    shared
      .filter(({ metadata }) => metadata.name.endsWith('-tidemark'))
      .map((each) => [`${each.kind} ${each.metadata.name}`, each])
      .sort(),
  );
}

describe.runIf(AVAILABLE)('the chart', () => {
  const CHART = join(ROOT, 'config', 'helm', 'tidemark');
  const SECRETS = Object.entries(CONFIG_KEYS).flatMap(([path, { kind }]) =>
    kind === 'secret' ? [`TIDEMARK_${path.toUpperCase().replaceAll('.', '_')}`] : [],
  );
  const { values } = recipes();
  const chart = (args: readonly string[], input = values) => runTool('helm', args, { input });
  /** The parts of the recipe's monitoring. */
  const ofKind = (kind: string): Rendered[] => parsed(rendered[2] ?? '').filter((each) => each?.kind === kind);

  test('is used by commands of helm', () => {
    const names = Object.keys(TRIED).filter((command) => /^helm \w+$/.test(command));
    expect(names.length).toBeGreaterThan(1);
    const { stdout } = runTool('helm', ['--help']);
    expect(names.filter((name) => !stdout.includes(`\n  ${name.slice('helm '.length)} `))).toEqual([]);
  });

  test('has nothing that helm lint dislikes, with and without values', () => {
    for (const how of [[], ['-f', '-']]) {
      const { code, stdout } = chart(['lint', '--strict', CHART, ...how]);
      expect([code, stdout]).toEqual([0, expect.stringContaining('1 chart(s) linted, 0 chart(s) failed')]);
    }
  });

  test('gives both files of rules the label by which an operator selects them', () => {
    const label = 'prometheusRule.enabled=true,prometheusRule.labels.release=monitoring';
    const args = ['template', 'tidemark', CHART, '--kube-version', '1.29.0', '-s', 'templates/monitoring.yaml'];
    const { stdout } = runTool('helm', [...args, '--set', label]);
    const labels = parsed(stdout).map(({ kind, metadata }) => [
      kind,
      (metadata['labels'] as Record<string, string>)['release'],
    ]);
    expect(labels).toEqual([
      ['PrometheusRule', 'monitoring'],
      ['PrometheusRule', 'monitoring'],
    ]);
  });

  test('renders the same as kustomize, where they overlap', () => {
    const values = `workspaces:
  home: { config: { TIDEMARK_API_URL: https://home.example.com/external/v1 } }
  office: { config: { TIDEMARK_API_URL: https://home.example.com/external/v1 } }
`;
    const args = ['template', 'tidemark', CHART, '-n', 'tidemark', '--kube-version', '1.29.0', '-f', '-'];
    const { code, stdout } = chart(args, values);
    expect(code).toBe(0);
    const own = common(stdout);
    expect(Object.keys(own)).toHaveLength(8);
    expect(own).toEqual(common(rendered[1] ?? ''));
  });

  test('gives a workspace its own configuration over that of all, and the secret that exists', () => {
    const [set] = ofKind('StatefulSet').filter(({ metadata }) => metadata.name === 'office-tidemark');
    expect(set?.['spec'].template.spec.volumes[0].secret.secretName).toBe('office-secrets');
    const [home] = ofKind('StatefulSet').filter(({ metadata }) => metadata.name === 'home-tidemark');
    expect(home?.['spec'].template.spec.volumes[0].secret.secretName).toBe('home-tidemark');
    const [config] = ofKind('ConfigMap').filter(({ metadata }) => metadata.name === 'office-tidemark');
    expect(config?.['data']).toMatchObject({ TIDEMARK_API_SHARE: '0.5', TIDEMARK_INFLUX_BUCKET: 'telemetry' });
    const [secret] = parsed(created);
    expect([secret?.kind, secret?.metadata]).toMatchObject([
      'Secret',
      { name: 'home-tidemark', namespace: 'tidemark' },
    ]);
    expect(Object.keys(secret?.['data'] ?? {})).toEqual(['tidemark_api_key', 'tidemark_influx_token']);
    expect(ofKind('Secret')).toEqual([]);
  });

  test('contains every rule with the address of its documentation, and a monitor of the same job', () => {
    const rules = (file: string) => parse(readFileSync(join(ROOT, 'config/prometheus', file), 'utf8')).groups;
    const asRendered = (text: string) =>
      JSON.parse(text.replaceAll('{{ $externalLabels.tidemark_docs }}', parse(values).docsUrl));
    for (const name of ['alerts', 'recording']) {
      const [rule] = ofKind('PrometheusRule').filter(({ metadata }) => metadata.name === `tidemark-${name}`);
      expect(rule?.['spec'].groups).toEqual(asRendered(JSON.stringify(rules(`tidemark-${name}.yml`))));
    }
    const [monitor] = ofKind('ServiceMonitor');
    for (const { metadata, spec } of ofKind('Service')) {
      const labels = metadata['labels'] as Readonly<Record<string, string>>;
      expect(labels[monitor?.['spec'].jobLabel]).toBe('tidemark');
      expect(selects(monitor?.['spec'].selector.matchLabels, labels)).toBe(true);
      expect(spec.ports.map(({ name }: { name: string }) => name)).toContain(monitor?.['spec'].endpoints[0].port);
    }
  });

  test('gives a workspace its own image, resources, volumes and nodes, over those of all', () => {
    const own = `workspaces:
  home: { config: { TIDEMARK_API_URL: https://a.example/external/v1 } }
  office:
    config: { TIDEMARK_API_URL: https://a.example/external/v1 }
    imageTag: "9.9.9"
    resources: { limits: { memory: 512Mi } }
    storage: { size: 20Gi, accessMode: ReadWriteOncePod }
    backup: { enabled: true, keep: 7 }
    nodeSelector: { disk: ssd }
`;
    const args = ['template', 'tidemark', CHART, '-n', 'tidemark', '--kube-version', '1.29.0', '-f', '-'];
    const { code, stdout } = chart(args, own);
    expect(code).toBe(0);
    expect(complaints(stdout, 'v1.29.0')).toBe('');
    const sets = parsed(stdout).filter((each) => each?.kind === 'StatefulSet');
    const [home, office] = sets.map(({ spec }) => ({ ...spec.template.spec, claims: spec.volumeClaimTemplates }));
    expect([home.containers.length, home.claims.length, home.nodeSelector]).toEqual([1, 1, undefined]);
    const [daemon, backup] = office.containers;
    expect(daemon.image).toBe('registry.example/tidemark:9.9.9');
    expect(daemon.resources).toMatchObject({ limits: { memory: '512Mi' }, requests: { memory: '160Mi' } });
    expect(office.nodeSelector).toEqual({ disk: 'ssd' });
    expect(office.claims[0].spec).toMatchObject({
      accessModes: ['ReadWriteOncePod'],
      resources: { requests: { storage: '20Gi' } },
    });
    // The container of kustomize, with the values of the chart.
    const patch = parse(readFileSync(join(copy, 'backup', 'container.yaml'), 'utf8'));
    const env = [
      { name: 'EVERY_HOURS', value: '24' },
      { name: 'KEEP', value: '7' },
    ];
    expect(backup).toEqual({ ...patch[0].value, image: daemon.image, env });
  });

  test('values of a workspace count also where they are empty or false, and a large number stays one', () => {
    const own = `config: { TIDEMARK_METRICS_PER_DEVICE: true, HTTPS_PROXY: "http://proxy.example:3128" }
backup: { enabled: true }
tolerations: [{ operator: Exists }]
workspaces:
  home: { config: { TIDEMARK_API_URL: https://a.example/external/v1 } }
  office:
    config: { TIDEMARK_API_URL: https://a.example/external/v1, TIDEMARK_INFLUX_URL: "", TIDEMARK_METRICS_PER_DEVICE: false, TIDEMARK_WORKSPACE_ID: 12345678 }
    resources: { limits: { memory: 1Gi } }
    backup: { enabled: false }
    tolerations: []
  shop: { config: { TIDEMARK_API_URL: https://a.example/external/v1 } }
`;
    const { code, stdout } = chart(['template', CHART, '--kube-version', '1.29.0', '-f', '-'], own);
    expect(code).toBe(0);
    const all = parsed(stdout);
    const [config] = all.filter((each) => each?.kind === 'ConfigMap' && each.metadata.name === 'office-tidemark');
    expect(config?.['data']).toMatchObject({
      TIDEMARK_INFLUX_URL: '',
      TIDEMARK_METRICS_PER_DEVICE: 'false',
      TIDEMARK_WORKSPACE_ID: '12345678',
      TIDEMARK_INFLUX_BUCKET: 'telemetry',
      HTTPS_PROXY: 'http://proxy.example:3128',
    });
    const pods = all.filter((each) => each?.kind === 'StatefulSet').map(({ spec }) => spec.template.spec);
    expect(pods.map(({ containers, tolerations }) => [containers.length, tolerations?.length])).toEqual([
      [2, 1],
      [1, undefined],
      [2, 1],
    ]);
    // Nothing of one workspace is in the next.
    const limits = pods.map(({ containers }) => containers[0].resources.limits.memory);
    expect(limits).toEqual(['256Mi', '1Gi', '256Mi']);
  });

  test('accepts a name that YAML reads as another value, and no label for the dashboards', () => {
    const own = `workspaces: { "no": { config: { TIDEMARK_API_URL: x } } }
dashboards: { enabled: true, labels: { grafana_dashboard: null } }
`;
    const { code, stdout } = chart(['template', CHART, '--kube-version', '1.29.0', '-f', '-'], own);
    expect(code).toBe(0);
    expect(complaints(stdout, 'v1.29.0')).toBe('');
    expect(stdout).not.toMatch(/tidemark\/workspace: no$/m);
  });

  test('gives a first start the time to copy a state of archive.max_size, by 5 MB a second', () => {
    const [set] = ofKind('StatefulSet');
    const { periodSeconds, failureThreshold } = set?.['spec'].template.spec.containers[0].startupProbe ?? {};
    expect(periodSeconds * failureThreshold).toBeGreaterThan((2 * 2 ** 31) / 5e6);
  });

  /** The text of each file in a folder of dashboards, by its name. */
  const dashboardsIn = (folder: string): Record<string, string> =>
    Object.fromEntries(
      readdirSync(join(ROOT, 'grafana', folder)).map((name) => [
        name,
        readFileSync(join(ROOT, 'grafana', folder, name), 'utf8'),
      ]),
    );

  test('brings every dashboard as it is', () => {
    const maps = ofKind('ConfigMap').filter(({ metadata }) => metadata.name.endsWith('-dashboard'));
    expect(Object.assign({}, ...maps.map(({ data }) => data))).toEqual(dashboardsIn(DASHBOARDS[0]));
  });

  test('adds those for VictoriaMetrics on request', () => {
    const own = `workspaces: { home: { config: { TIDEMARK_API_URL: x } } }
dashboards: { enabled: true, victoriametrics: true }
`;
    const { code, stdout } = chart(['template', CHART, '--kube-version', '1.29.0', '-f', '-'], own);
    expect(code).toBe(0);
    expect(complaints(stdout, 'v1.29.0')).toBe('');
    const maps = parsed(stdout).filter((each) => each?.kind === 'ConfigMap');
    const brought = Object.assign({}, ...maps.map(({ data }) => data));
    expect(brought).toMatchObject({ ...dashboardsIn(DASHBOARDS[0]), ...dashboardsIn(DASHBOARDS[1]) });
  });

  test.each([
    ['workspaces: {Home: {config: {TIDEMARK_API_URL: x}}}', /workspaces/],
    ['workspaces: {2nd: {config: {TIDEMARK_API_URL: x}}}', /workspaces/],
    ['workspaces: {home: {config: {}}}', /TIDEMARK_API_URL is required/],
    ['workspaces: {home: {config: {TIDEMARK_API_URL: x}, apiKey: k}}', /apiKey/],
    ['imgae: {}', /imgae/],
    ['config: {TIDEMRAK_API_SHARE: 1}', /TIDEMRAK/],
    ['networkPolicy: {egressPorts: [http]}', /egressPorts/],
    // Without a port, a rule of a network policy opens every port.
    ['networkPolicy: {egressPorts: []}', /egressPorts/],
    ['networkPolicy: {egressPorts: null}', /egressPorts is required/],
    ['workspaces: {home: {config: {TIDEMARK_API_URL: ""}}}', /TIDEMARK_API_URL/],
    ['storage: {size: ""}', /storage.size/],
    ['backup: {size: ""}', /backup.size/],
    ['serviceMonitor: {enabled: true, interval: ""}', /serviceMonitor.interval/],
    // A ConfigMap is readable by more people than a secret.
    ...SECRETS.flatMap((name): [string, RegExp][] => [
      [`config: {${name}: x}`, /config/],
      [`workspaces: {home: {config: {TIDEMARK_API_URL: x, ${name}: x}}}`, /config/],
    ]),
  ])('refuses wrong values: %s', (wrong, words) => {
    const { code, stderr } = chart(['template', CHART, '--kube-version', '1.29.0', '-f', '-'], wrong);
    expect(code).toBe(1);
    expect(stderr).toMatch(words);
  });
});
