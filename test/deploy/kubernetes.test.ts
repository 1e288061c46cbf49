/**
 * The manifests and the chart, rendered by the real kustomize and helm with the arguments of the commands in
 * docs/kubernetes.md, and validated against the schemas of the oldest and the newest supported Kubernetes.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { CONFIG_KEYS } from '../../src/config/schema.ts';
import { openStore } from '../../src/store/store.ts';
import { until } from '../process/support.ts';
import { programFile } from '../support/built-program.ts';
import { blocksOf } from '../support/documented-commands.ts';
import { KUSTOMIZE, MANIFESTS, TRIED } from '../support/tried-commands.ts';
import { runTool, toolsAvailable } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SCHEMAS = join(import.meta.dirname, 'schemas');
/** `ReadWriteOncePod` is there for good from 1.29 on. */
const KUBERNETES = ['v1.29.0', 'v1.37.0'];

interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [member: string]: unknown };
  // The rendered tree has no types.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly [member: string]: any;
}

const AVAILABLE = toolsAvailable();

/** The dashboards for InfluxDB, and those that query VictoriaMetrics with PromQL. */
const DASHBOARDS = ['dashboards', 'dashboards-victoriametrics'] as const;

const page = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');

/** Commands of docs/kubernetes.md, a list a block: all but those that begin outside of the checkout. */
function recipes(): { readonly blocks: readonly (readonly string[])[]; readonly values: string } {
  const section = page('kubernetes.md').split('\n## Removing')[0] ?? '';
  const [, values = ''] = /```yaml\n([\s\S]*?)```/.exec(section) ?? [];
  const blocks = blocksOf(section).map(({ commands }) => commands.map(({ text }) => text));
  const isInside = (commands: readonly string[]): boolean =>
    commands.length > 0 && !commands.some((each) => each.includes(' fleet/'));
  return { blocks: blocks.filter(isInside), values };
}

/** Runs commands of a page in a directory. Those that need a cluster are rendered by kustomize or helm. */
function follow(commands: readonly string[], cwd: string): string {
  const env = { KEY: 'the key of home', TOKEN: 'the token', OFFICE_KEY: 'the key of office', OFFICE_TOKEN: 'x' };
  let applied = '';
  for (const command of commands) {
    const tried =
      TRIED[command.includes('<<') ? (command.split('\n')[0] ?? '') : command.replaceAll(/ *\\\n\s*/g, ' ')];
    if (tried !== MANIFESTS) applied += rendering(command.replaceAll(/ *\\\n\s*/g, ' '), cwd);
    else {
      const { status, stderr } = spawnSync('/bin/sh', ['-ec', command], {
        cwd,
        env: { ...env, PATH: '/usr/bin:/bin' },
        encoding: 'utf8',
      });
      expect([command, status, stderr]).toEqual([command, 0, '']);
    }
  }
  return applied;
}

/** @returns the output of kustomize or helm for the arguments of a command that needs a cluster (Kubernetes 1.29) */
function rendering(command: string, cwd: string): string {
  const [, folder] = /^kubectl apply -k (\S+)$/.exec(command) ?? [];
  const [, chart] = /^helm (?:upgrade --install|template) ([^|]*?)(?: \| kubectl apply -f -)?$/.exec(command) ?? [];
  const [, namespace, secret, files = ''] =
    /^kubectl -n (\S+) create secret generic (\S+)((?: --from-file=\S+)+)$/.exec(command) ?? [];
  if (secret !== undefined) {
    const names = [...files.matchAll(/=(\S+)/g)].map(([, name]) => name);
    const options = { disableNameSuffixHash: true };
    const made = { namespace, generatorOptions: options, secretGenerator: [{ name: secret, files: names }] };
    writeFileSync(join(cwd, 'kustomization.yaml'), stringify(made));
    created = runTool('kustomize', ['build', '.'], { cwd }).stdout;
    rmSync(join(cwd, 'kustomization.yaml'));
    return '';
  }
  // The manifests contain the namespace; the chart needs it.
  if (command === 'kubectl create namespace tidemark') return '';
  if (folder === undefined && chart === undefined) throw new Error(`nothing renders ${command}`);
  const { code, stdout, stderr } =
    folder === undefined
      ? runTool('helm', ['template', '--kube-version', '1.29.0', ...(chart ?? '').trim().split(/\s+/)], { cwd })
      : runTool('kustomize', ['build', folder], { cwd });
  // Helm names each symbolic link that it follows.
  const said = stderr.split('\n').filter((line) => line !== '' && !line.includes('found symbolic link'));
  expect([command, code, said]).toEqual([command, 0, []]);
  return stdout;
}

let copy: string;
/** The secret that the documented command creates. */
let created: string;
/**
 * The output of each recipe, in their order: kustomize with one workspace, with two, helm, and its monitoring alone.
 */
let rendered: readonly string[];
beforeAll(() => {
  if (!AVAILABLE) return;
  const place = mkdtempSync(join(tmpdir(), 'tidemark-deploy-'));
  cpSync(join(ROOT, 'config'), join(place, 'config'), { recursive: true });
  for (const name of DASHBOARDS) cpSync(join(ROOT, 'grafana', name), join(place, 'grafana', name), { recursive: true });
  copy = join(place, 'config', 'kubernetes');
  // An address may have the name of a workspace in it.
  const home = join(copy, 'workspaces', 'home', 'kustomization.yaml');
  writeFileSync(home, readFileSync(home, 'utf8').replace('https://api.', 'https://home.'));
  mkdirSync(join(place, 'secrets'));
  for (const name of ['tidemark_api_key', 'tidemark_influx_token']) writeFileSync(join(place, 'secrets', name), name);
  const { blocks, values } = recipes();
  writeFileSync(join(place, 'tidemark-values.yaml'), values);
  rendered = blocks.map((commands) => follow(commands, place));
});
afterAll(() => {
  if (AVAILABLE) rmSync(join(copy, '..', '..'), { recursive: true, force: true });
});

function render(folder: string): string {
  const { code, stdout, stderr } = runTool('kustomize', ['build', folder], { cwd: copy });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

const parsed = (text: string): Rendered[] => parseAllDocuments(text).map((document) => document.toJS());

/** @returns the errors of kubeconform about manifests; empty where there are none */
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
  test.each(KUBERNETES)('are valid for Kubernetes %s: by the recipes, the base, the monitor', (version) => {
    expect(rendered).toHaveLength(4);
    for (const text of rendered) expect(complaints(text, version)).toBe('');
    for (const folder of ['base', 'podmonitor']) expect(complaints(render(folder), version)).toBe('');
  });

  test.each(KUBERNETES)('a mistake is noticed (%s)', (version) => {
    const base = render('base');
    const broken = [
      ['serviceName:', 'servceName:'],
      ['replicas: 1', 'replicas: one'],
      ['protocol: UDP', 'protocol: 53'],
      ['containerPort: 9464', 'containerPort: true'],
      ['podManagementPolicy: Parallel', 'podManagementPolicy: 7'],
    ] as const;
    for (const [right, wrong] of broken) expect(complaints(base.replace(right, wrong), version)).toMatch(/invalid/);
    expect(complaints(render('podmonitor').replace('port: http', 'prt: http'), version)).toMatch(/invalid/);
  });

  test('have, for each workspace, a pod that uses the objects rendered with it, and no other does', () => {
    const all = parsed(rendered[1] ?? '');
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
      expect(Buffer.from(data.tidemark_api_key ?? '', 'base64').toString()).toBe(`the key of ${workspace}`);
      expect(metadata.labels).toMatchObject(spec.selector.matchLabels);
      const service = named('Service', spec.serviceName)?.['spec'];
      for (const { selector } of [
        service,
        { selector: named('NetworkPolicy', spec.serviceName)?.['spec'].podSelector.matchLabels },
      ]) {
        const chosen = sets.filter((set) => selects(selector, set['spec'].template.metadata.labels));
        expect(chosen.map((set) => set['spec'].template.metadata.labels['tidemark/workspace'])).toEqual([workspace]);
      }
      expect(pod.containers[0].image).toMatch(/^registry\.example\/tidemark:\d+\.\d+\.\d+/);
      expect(spec.volumeClaimTemplates[0].metadata.name).toBe(pod.containers[0].volumeMounts[0].name);
    }
    const outside = all.filter(({ kind, metadata }) => kind !== 'Namespace' && metadata.namespace !== 'tidemark');
    expect(outside).toEqual([]);
  });

  test('the commands that remove a workspace name all that belongs to it', () => {
    const text = page('kubernetes.md');
    const [, kinds = '', label] = /delete (statefulset\S*) -l tidemark\/workspace=(\w+)$/m.exec(text) ?? [];
    expect([label, text]).toEqual(['office', expect.stringContaining('delete pvc -l tidemark/workspace=office')]);
    const all = parsed(rendered[1] ?? '').filter(({ metadata }) => metadata.name.startsWith('office-tidemark'));
    expect(new Set(all.map(({ kind }) => kind.toLowerCase()))).toEqual(new Set(kinds.split(',')));
    for (const { metadata } of all) expect(metadata['labels']).toMatchObject({ 'tidemark/workspace': 'office' });
    // The controller gives the labels of the selector to the claims of volumes.
    const selectors = all.flatMap(({ kind, spec }) => (kind === 'StatefulSet' ? [spec.selector.matchLabels] : []));
    expect(selectors).toMatchObject([{ 'tidemark/workspace': 'office' }]);
    const edit = Object.keys(TRIED).find((command) => command.startsWith("sed -i '/^  - office$/d' ")) ?? '';
    expect(edit).toContain('workspaces/kustomization.yaml');
    const list = join(copy, 'workspaces', 'kustomization.yaml');
    const before = readFileSync(list, 'utf8');
    writeFileSync(list, `${before.trimEnd()}\n  - office\n`);
    cpSync(join(copy, 'workspaces', 'office'), join(copy, 'office'), { recursive: true });
    follow([edit], join(copy, '..', '..'));
    const after = readFileSync(list, 'utf8');
    writeFileSync(list, before);
    expect(existsSync(join(copy, 'workspaces', 'office'))).toBe(false);
    renameSync(join(copy, 'office'), join(copy, 'workspaces', 'office'));
    expect(after).toBe(before.replace('  - office\n', ''));
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
    expect(pods.map((labels) => labels[monitors[0]?.['spec'].jobLabel])).toEqual(['tidemark', 'tidemark']);
    // No annotation makes another job scrape them.
    expect(rendered.join('')).not.toContain('prometheus.io/');
  });

  test('the rules and dashboards of the chart alone are those of the complete chart', () => {
    const kinds = ['PrometheusRule', 'ConfigMap'];
    const monitoring = (text = ''): Rendered[] =>
      parsed(text).filter((each) => kinds.includes(each?.kind) && !each.metadata.name.endsWith('-tidemark'));
    const alone = parsed(rendered[3] ?? '').filter((each) => each !== null);
    expect(new Set(alone.map(({ kind }) => kind))).toEqual(new Set(kinds));
    expect(alone).toEqual(monitoring(rendered[2]));
  });

  test('by the monitors, the instance is the workspace, wherever its pod runs', () => {
    const { relabelings: own } = parsed(render('podmonitor'))[0]?.['spec'].podMetricsEndpoints[0] ?? {};
    const chart = parsed(rendered[2] ?? '').find(({ kind }) => kind === 'ServiceMonitor');
    expect(chart?.['spec'].endpoints[0].relabelings).toEqual(own);
    const pod = { __meta_kubernetes_namespace: 'n', __meta_kubernetes_pod_label_tidemark_workspace: 'office' };
    const relabeled = own.map(
      ({
        sourceLabels,
        separator = ';',
        targetLabel,
      }: {
        sourceLabels: (keyof typeof pod)[];
        separator?: string;
        targetLabel: string;
      }) => [targetLabel, sourceLabels.map((label) => pod[label]).join(separator)],
    );
    expect(Object.fromEntries(relabeled)).toEqual({ workspace: 'office', instance: 'n/office' });
  });

  test('with the settings outside of the checkout, as docs/kubernetes.md shows, the base stays as it is', () => {
    const commands = blocksOf(page('kubernetes.md')).map((block) => block.commands.map(({ text }) => text));
    const script = commands.find(([first]) => first?.startsWith('mkdir -p fleet')) ?? [];
    const apply = commands.flat().find((command) => command === 'kubectl apply -k fleet/workspaces') ?? '';
    const place = mkdtempSync(join(tmpdir(), 'tidemark-fleet-'));
    mkdirSync(join(place, 'tidemark'));
    cpSync(join(copy, '..'), join(place, 'tidemark', 'config'), { recursive: true, verbatimSymlinks: true });
    follow(script, place);
    // With the patch of the network policy.
    const [, patch = ''] = /```yaml\n(patches:\n[\s\S]*?)```/.exec(page('kubernetes.md')) ?? [];
    appendFileSync(join(place, 'fleet', 'base', 'kustomization.yaml'), patch);
    const stdout = follow([apply], place);
    const values = parsed(stdout).find(({ kind, metadata }) => kind === 'ConfigMap' && /^home-/.test(metadata.name));
    expect(values?.['data']).toMatchObject({ TIDEMARK_API_URL: 'https://monitoring.example/external/v1' });
    // Without the workspace of the example, as the page shows.
    const remove = Object.keys(TRIED).find((command) => command.startsWith("sed -i '/^  - home$/d' ")) ?? '';
    follow([remove], place);
    expect(existsSync(join(place, 'fleet', 'workspaces', 'home'))).toBe(false);
    const left = parsed(follow([apply], place)).filter(({ metadata }) => metadata.name.startsWith('home-'));
    expect(left).toEqual([]);
    // With VictoriaMetrics, nothing of the other database is left.
    const base = join(place, 'fleet', 'base', 'kustomization.yaml');
    const [, victoria = ''] = /`(literals: \[.*victoriametrics"\])`/.exec(page('kubernetes.md')) ?? [];
    const text = readFileSync(base, 'utf8').replace('behavior: merge', 'behavior: replace');
    writeFileSync(base, text.replace(/literals: .*/, victoria));
    const workspace = join(place, 'fleet', 'workspaces', 'office');
    const databases = parsed(follow([apply], place)).flatMap((each) =>
      each.kind === 'ConfigMap' ? [Object.keys(each['data']).toSorted()] : [],
    );
    expect([existsSync(workspace), databases]).toEqual([
      true,
      databases.map(() => ['TIDEMARK_API_URL', 'TIDEMARK_INFLUX_KIND', 'TIDEMARK_INFLUX_URL']),
    ]);
    expect(databases.length).toBeGreaterThan(0);
    rmSync(place, { recursive: true });
    expect(complaints(stdout, 'v1.29.0')).toBe('');
    const policies = parsed(stdout).filter(({ kind }) => kind === 'NetworkPolicy');
    expect(policies.map(({ spec }) => spec.egress.at(-1).ports)).toEqual(
      policies.map(() => [{ port: 9999, protocol: 'TCP' }]),
    );
    expect(policies.length).toBeGreaterThan(0);
    const sets = parsed(stdout).filter(({ kind }) => kind === 'StatefulSet');
    const images = sets.flatMap(({ spec }) =>
      spec.template.spec.containers.map(({ image }: { image: string }) => image),
    );
    expect(new Set(images)).toEqual(new Set(['registry.mine/tidemark:1.0.0-rc.1']));
    expect(images).toHaveLength(2 * sets.length);
  });

  test('with backups, the container of each workspace writes copies and keeps the newest', async () => {
    const base = join(copy, 'base', 'kustomization.yaml');
    const before = readFileSync(base, 'utf8');
    writeFileSync(base, `${before}components:\n  - ../backup\n`);
    const text = render('workspaces');
    writeFileSync(base, before);
    for (const version of KUBERNETES) expect(complaints(text, version)).toBe('');
    const sets = parsed(text).filter(({ kind }) => kind === 'StatefulSet');
    expect(sets).toHaveLength(2);
    for (const { spec } of sets) {
      const [daemon, backup] = spec.template.spec.containers;
      expect([backup.name, backup.image]).toEqual(['backup', daemon.image]);
      const claims = spec.volumeClaimTemplates.map(({ metadata }: Rendered) => metadata.name);
      expect(backup.volumeMounts.map(({ name }: { name: string }) => name)).toEqual(claims);
    }
    const [{ spec } = { spec: null }] = sets;
    const place = mkdtempSync(join(tmpdir(), 'tidemark-backup-'));
    const backups = join(place, 'backups');
    for (const folder of [backups, join(place, 'bin')]) mkdirSync(folder);
    openStore(join(place, 'data')).close();
    // As the image has it.
    symlinkSync(programFile(), join(place, 'bin', 'tidemark'));
    const old = ['2026-01-01T0000.db', '2026-01-02T0000.db', '2026-01-03T0000.db'];
    for (const name of old) {
      writeFileSync(join(backups, name), '');
      utimesSync(join(backups, name), 0, 0);
    }
    // A recent copy that somebody named is neither a reason to write none, nor one of the newest.
    writeFileSync(join(backups, 'monday.db'), 'named by hand');
    const { command, args, env } = spec.template.spec.containers[1];
    const variables = Object.fromEntries(env.map(({ name, value }: { name: string; value: string }) => [name, value]));
    /** Runs the container until it waits for the next time, and ends it as Kubernetes does. */
    const run = async (): Promise<void> => {
      const script = args[0].replaceAll(/\/(data|backups)\b/g, `${place}/$1`);
      const path = [join(place, 'bin'), dirname(process.execPath), '/usr/bin:/bin'].join(':');
      const child = spawn(command[0], [...command.slice(1), script], {
        env: { ...variables, PATH: path, TIDEMARK_DATA_DIR: join(place, 'data') },
        stdio: ['ignore', 'ignore', 'pipe'],
        detached: true,
      });
      let said = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
      const { pid = 0 } = child;
      const sleeps = (): boolean =>
        readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
          .trim()
          .split(' ')
          .some((id) => id !== '' && readFileSync(`/proc/${id}/comm`, 'utf8') === 'sleep\n');
      const ended = once(child, 'exit');
      try {
        await until('it waits', () => child.exitCode !== null || sleeps());
        child.kill('SIGTERM');
        expect([await ended, said]).toEqual([[0, null], expect.not.stringMatching(/error/i)]);
      } finally {
        // The `sleep` that was waited for.
        process.kill(-pid, 'SIGKILL');
      }
    };
    const found: string[][] = [];
    for (const _ of ['it is due', 'it is not due']) {
      await run();
      found.push(readdirSync(backups).sort());
    }
    const [kept = []] = found;
    expect(found[1]).toEqual(kept);
    expect(kept.pop()).toBe('monday.db');
    expect([kept.length, ...kept.slice(0, 2)]).toEqual([3, ...old.slice(1)]);
    expect(readFileSync(join(backups, kept[2] ?? ''), 'latin1')).toMatch(/^SQLite format 3\0/);
    rmSync(place, { recursive: true });
  });

  test('contain the objects, labels, containers and volumes of the other documented commands', () => {
    const base = join(copy, 'base', 'kustomization.yaml');
    const before = readFileSync(base, 'utf8');
    writeFileSync(base, `${before}components:\n  - ../backup\n`);
    const all = parsed(render('workspaces'));
    writeFileSync(base, before);
    // The pod of docs/maintenance.md, which a command applies as state.yaml.
    const [, state = ''] = /```yaml\n(apiVersion: v1\nkind: Pod\n[\s\S]*?)```/.exec(page('maintenance.md')) ?? [];
    const [pod] = parsed(state);
    const sets = all.filter(({ kind }) => kind === 'StatefulSet');
    // As the pod of a StatefulSet, whose schema has that of pods in it.
    const asSet = { ...sets[0], spec: { ...sets[0]?.['spec'], template: { metadata: {}, spec: pod?.['spec'] } } };
    for (const version of KUBERNETES) expect(complaints(stringify(asSet), version)).toBe('');
    const claims = sets.flatMap(({ metadata, spec }) =>
      spec.volumeClaimTemplates.map((claim: Rendered) => `${claim.metadata.name}-${metadata.name}-0`),
    );
    for (const { persistentVolumeClaim: claim } of pod?.['spec'].volumes ?? [])
      expect(claims).toContain(claim.claimName);
    const pods = [...sets.map(({ metadata }) => `${metadata.name}-0`), 'state', 'POD', '"$pod"'];
    const containers = sets[0]?.['spec'].template.spec.containers.map(({ name }: { name: string }) => name);
    const labels = sets.map(({ spec }) => spec.template.metadata.labels);
    const commands = Object.keys(TRIED).filter((command) => TRIED[command] === KUSTOMIZE);
    expect(commands.length).toBeGreaterThan(20);
    for (const command of commands.filter(
      (each) => !recipes().blocks.flat().includes(each) && !each.includes(' -k '),
    )) {
      const named = (pattern: RegExp): string[] => [...command.matchAll(pattern)].map(([, name = '']) => name);
      const spaces = [...named(/kubectl -n (\S+) /g), ...named(/ (\w+)\/[\w-]+:\//g)];
      const targets = [
        ...named(/ (?:exec|logs)(?: -c \w+| --previous)? (\S+)/g),
        ...named(/ delete pod (\S+)/g),
        ...named(/[ /]([\w-]+):\//g),
        ...named(/ scale statefulset (\S+) /g).map((name) => `${name}-0`),
      ];
      const selectors = named(/ -l (\S+=[^\s)]+)/g).map((text) => text.split('='));
      const mentions = [...spaces, ...targets, ...selectors.flat(), ...named(/ apply -f (state\.yaml)$/g)];
      expect([command, mentions.length > 0]).toEqual([command, true]);
      expect([command, spaces.filter((name) => name !== pod?.metadata.namespace)]).toEqual([command, []]);
      expect([command, targets.filter((name) => !pods.includes(name))]).toEqual([command, []]);
      expect([command, named(/ -c (\w+) /g).filter((name) => !containers.includes(name))]).toEqual([command, []]);
      for (const [key = '', value] of selectors)
        expect([command, labels.map((each) => each[key])]).toEqual([command, expect.arrayContaining([value])]);
    }
  });

  test('with backups for one workspace alone, the container has the image of the daemon', () => {
    const file = join(copy, 'workspaces', 'office', 'kustomization.yaml');
    const before = readFileSync(file, 'utf8');
    writeFileSync(file, `${before}components:\n  - ../../backup\n`);
    const text = render('workspaces');
    writeFileSync(file, before);
    const sets = parsed(text).filter(({ kind }) => kind === 'StatefulSet');
    const images = sets.map(({ spec }) => spec.template.spec.containers.map(({ image }: { image: string }) => image));
    const [[daemon] = []] = images;
    expect(daemon).toMatch(/^registry\.example\/tidemark:\d/);
    expect(images).toEqual([[daemon], [daemon, daemon]]);
  });

  test('let out to the port of every database that the documentation names', () => {
    const pages = ['databases.md', 'schema.md', 'scaling.md'].map((name) =>
      readFileSync(join(ROOT, 'docs', name), 'utf8'),
    );
    const named = pages.flatMap((page) =>
      [...page.matchAll(/https?:\/\/(?:host|victoria[\w.]*|influxdb[\w.]*|vminsert):(\d{4})/g)].map(([, port]) =>
        Number(port),
      ),
    );
    expect(new Set(named)).toEqual(new Set([8086, 8181, 8428, 8480]));
    for (const text of rendered) {
      for (const { spec } of parsed(text).filter(({ kind }) => kind === 'NetworkPolicy')) {
        const open = spec.egress.flatMap(({ ports }: { ports: { port: number }[] }) => ports.map(({ port }) => port));
        expect([443, ...named].filter((port) => !open.includes(port))).toEqual([]);
      }
    }
  });

  test('a workspace without its two files is refused', () => {
    const key = join(copy, 'workspaces', 'home', 'tidemark_api_key');
    const text = readFileSync(key);
    rmSync(key);
    const { code, stderr } = runTool('kustomize', ['build', 'workspaces/home'], { cwd: copy });
    writeFileSync(key, text);
    expect(code).toBe(1);
    expect(stderr).toMatch(/tidemark_api_key/);
  });
});

function selects(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

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
