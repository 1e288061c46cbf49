/**
 * The manifests, rendered by the real kustomize as the commands of docs/kubernetes.md do, and validated against the
 * schemas of the oldest and the newest supported Kubernetes.
 */
import { spawn } from 'node:child_process';
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
import { stringify } from 'yaml';
import { openStore } from '../../src/store/store.ts';
import { until } from '../process/support.ts';
import { programFile } from '../support/built-program.ts';
import { blocksOf } from '../support/documented-commands.ts';
import { KUSTOMIZE, TRIED } from '../support/tried-commands.ts';
import {
  complaints,
  copyManifests,
  follow,
  page,
  parsed,
  type Recipes,
  type Rendered,
  recipes,
  renderRecipes,
  selects,
} from './rendered.ts';
import { runTool, toolsAvailable } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** `ReadWriteOncePod` is there for good from 1.29 on. */
const KUBERNETES = ['v1.29.0', 'v1.37.0'];
const AVAILABLE = toolsAvailable();

let copy: string;
let rendered: Recipes['rendered'];
beforeAll(() => {
  if (!AVAILABLE) return;
  copy = copyManifests();
  ({ rendered } = renderRecipes(copy));
});
afterAll(() => {
  if (AVAILABLE) rmSync(join(copy, '..', '..'), { recursive: true, force: true });
});

function render(folder: string): string {
  const { code, stdout, stderr } = runTool('kustomize', ['build', folder], { cwd: copy });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
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
