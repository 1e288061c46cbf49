/**
 * The deployment files, read by the programs that will read them: what kustomize renders is held against the schemas of the
 * oldest and the newest Kubernetes that they are for, workflows are linted. (The compose files: compose.test.ts.)
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { runTool, toolsAvailable } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SCHEMAS = join(import.meta.dirname, 'schemas');
/** `ReadWriteOncePod` is there for good from 1.29 on. */
const KUBERNETES = ['v1.29.0', 'v1.37.0'];

interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // What is rendered is a tree of a foreign kind.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly [member: string]: any;
}

const AVAILABLE = toolsAvailable();

let copy: string;
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'tidemark-deploy-'));
  cpSync(join(ROOT, 'config', 'kubernetes'), copy, { recursive: true });
  for (const entry of readdirSync(join(copy, 'workspaces'), { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    for (const name of ['api_key', 'influx_token']) {
      writeFileSync(join(copy, 'workspaces', entry.name, name), `${name} of ${entry.name}`);
    }
  }
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

function render(folder: string): string {
  const { code, stdout, stderr } = runTool('kustomize', ['build', folder], { cwd: copy });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

const parsed = (text: string): Rendered[] => parseAllDocuments(text).map((document) => document.toJS());

/** @returns what kubeconform says of manifests; empty where it has nothing to say. */
function complaints(text: string, version: string): string {
  const schemas = [version, '.'].flatMap((folder) => [
    '-schema-location',
    join(SCHEMAS, folder, '{{.ResourceKind}}.json'),
  ]);
  const { code, stdout, stderr } = runTool('kubeconform', ['-strict', ...schemas, '-'], { input: text });
  const words = stdout + stderr;
  expect(code === 0, words).toBe(words === '');
  return words;
}

describe.runIf(AVAILABLE)('the manifests of Kubernetes, rendered', () => {
  test.each(KUBERNETES)('are what Kubernetes %s takes: the base, the workspaces, the monitor', (version) => {
    for (const folder of ['base', 'workspaces', 'podmonitor']) expect(complaints(render(folder), version)).toBe('');
  });

  test.each(KUBERNETES)('a mistake is noticed (%s)', (version) => {
    const base = render('base');
    const broken = [
      ['serviceName:', 'servceName:'],
      ['replicas: 1', 'replicas: one'],
      ['protocol: UDP', 'protocol: 53'],
      ['containerPort: 9464', 'containerPort: true'],
    ] as const;
    for (const [right, wrong] of broken) expect(complaints(base.replace(right, wrong), version)).toMatch(/invalid/);
    expect(complaints(render('podmonitor').replace('port: http', 'prt: http'), version)).toMatch(/invalid/);
  });

  test('are, for each workspace, a pod that uses what is rendered beside it, and nobody else', () => {
    const all = parsed(render('workspaces'));
    const named = (kind: string, name: string): Rendered | undefined =>
      all.find((each) => each.kind === kind && each.metadata.name === name);
    const sets = all.filter(({ kind }) => kind === 'StatefulSet');
    expect(sets.map(({ metadata }) => metadata.name).sort()).toEqual(['home-tidemark', 'office-tidemark']);
    for (const { spec } of sets) {
      const { metadata, spec: pod } = spec.template;
      const workspace = metadata.labels['tidemark/workspace'];
      expect(named('ConfigMap', pod.containers[0].envFrom[0].configMapRef.name)?.['data']).toHaveProperty(
        'TIDEMARK_API_URL',
      );
      const { data } = named('Secret', pod.volumes[0].secret.secretName) ?? { data: {} };
      expect(Buffer.from(data.api_key ?? '', 'base64').toString()).toBe(`api_key of ${workspace}`);
      expect(metadata.labels).toMatchObject(spec.selector.matchLabels);
      const service = named('Service', spec.serviceName)?.['spec'];
      for (const { selector } of [
        service,
        { selector: named('NetworkPolicy', spec.serviceName)?.['spec'].podSelector.matchLabels },
      ]) {
        const chosen = sets.filter((set) => selects(selector, set['spec'].template.metadata.labels));
        expect(chosen.map((set) => set['spec'].template.metadata.labels['tidemark/workspace'])).toEqual([workspace]);
      }
      expect(pod.containers[0].image).toMatch(/\/tidemark:\d+\.\d+\.\d+$/);
      expect(spec.volumeClaimTemplates[0].metadata.name).toBe(pod.containers[0].volumeMounts[0].name);
    }
    const outside = all.filter(({ kind, metadata }) => kind !== 'Namespace' && metadata.namespace !== 'tidemark');
    expect(outside).toEqual([]);
  });

  test('with the monitor, each pod is scraped once', () => {
    const file = join(copy, 'workspaces', 'kustomization.yaml');
    const before = readFileSync(file, 'utf8');
    writeFileSync(file, before.replace('  - home\n', '  - home\n  - ../podmonitor\n'));
    const all = parsed(render('workspaces'));
    writeFileSync(file, before);
    const monitors = all.filter(({ kind }) => kind === 'PodMonitor');
    expect(monitors.map(({ metadata }) => metadata.namespace)).toEqual(['tidemark']);
    const pods = all.filter(({ kind }) => kind === 'StatefulSet').map(({ spec }) => spec.template.metadata.labels);
    const scraped = pods.filter((labels) => selects(monitors[0]?.['spec'].selector.matchLabels, labels));
    expect(scraped).toHaveLength(2);
  });

  test('a workspace without its two files is refused', () => {
    rmSync(join(copy, 'workspaces', 'home', 'api_key'));
    const { code, stderr } = runTool('kustomize', ['build', 'workspaces/home'], { cwd: copy });
    writeFileSync(join(copy, 'workspaces', 'home', 'api_key'), 'api_key of home');
    expect(code).toBe(1);
    expect(stderr).toMatch(/api_key/);
  });
});

function selects(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

describe.runIf(AVAILABLE)('the workflows', () => {
  const folder = join(ROOT, '.github', 'workflows');
  const files = readdirSync(folder).map((name) => join(folder, name));

  test('have nothing that actionlint dislikes', () => {
    const { code, stdout, stderr } = runTool('actionlint', files);
    expect([code, stdout + stderr]).toEqual([0, '']);
  });

  test('a mistake is noticed', () => {
    const text = readFileSync(join(folder, 'release.yml'), 'utf8');
    for (const [right, wrong] of [
      ['needs: test', 'needs: tests'],
      ['steps.build.outputs', 'steps.bild.outputs'],
      ['runs-on: ubuntu-24.04', 'runs-on: ubuntu-04.24'],
      ['platforms:', 'platform:'],
    ] as const) {
      const { code } = runTool('actionlint', ['-'], { input: text.replace(right, wrong) });
      expect(code, wrong).toBe(1);
    }
  });
});
