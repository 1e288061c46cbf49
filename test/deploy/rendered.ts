/**
 * The manifests and the chart, rendered by the real kustomize and helm with the arguments of the commands in
 * docs/kubernetes.md, and what kubeconform finds wrong with them.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { blocksOf } from '../support/documented-commands.ts';
import { MANIFESTS, TRIED } from '../support/tried-commands.ts';
import { runTool } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SCHEMAS = join(import.meta.dirname, 'schemas');

export interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [member: string]: unknown };
  // The rendered tree has no types.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly [member: string]: any;
}

/** The dashboards for InfluxDB, and those that query VictoriaMetrics with PromQL. */
export const DASHBOARDS = ['dashboards', 'dashboards-victoriametrics'] as const;

export const page = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');

/** Commands of docs/kubernetes.md, a list a block: all but those that begin outside of the checkout. */
export function recipes(): { readonly blocks: readonly (readonly string[])[]; readonly values: string } {
  const section = page('kubernetes.md').split('\n## Removing')[0] ?? '';
  const [, values = ''] = /```yaml\n([\s\S]*?)```/.exec(section) ?? [];
  const blocks = blocksOf(section).map(({ commands }) => commands.map(({ text }) => text));
  const isInside = (commands: readonly string[]): boolean =>
    commands.length > 0 && !commands.some((each) => each.includes(' fleet/'));
  return { blocks: blocks.filter(isInside), values };
}

/** Runs commands of a page in a directory. Those that need a cluster are rendered by kustomize or helm. */
export function follow(commands: readonly string[], cwd: string): string {
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

/** The secret that the documented command creates. */
let created: string;

/** @returns a copy of the manifests, beside all that the recipes need */
export function copyManifests(): string {
  const place = mkdtempSync(join(tmpdir(), 'tidemark-deploy-'));
  cpSync(join(ROOT, 'config'), join(place, 'config'), { recursive: true });
  for (const name of DASHBOARDS) cpSync(join(ROOT, 'grafana', name), join(place, 'grafana', name), { recursive: true });
  const copy = join(place, 'config', 'kubernetes');
  // An address may have the name of a workspace in it.
  const home = join(copy, 'workspaces', 'home', 'kustomization.yaml');
  writeFileSync(home, readFileSync(home, 'utf8').replace('https://api.', 'https://home.'));
  mkdirSync(join(place, 'secrets'));
  for (const name of ['tidemark_api_key', 'tidemark_influx_token']) writeFileSync(join(place, 'secrets', name), name);
  return copy;
}

export interface Recipes {
  /**
   * The output of each recipe, in their order: kustomize with one workspace, with two, helm, and its monitoring alone.
   */
  readonly rendered: readonly string[];
  /** The secret that the documented command creates. */
  readonly created: string;
}

/** Follows the recipes of docs/kubernetes.md beside a copy of the manifests. */
export function renderRecipes(copy: string): Recipes {
  const place = join(copy, '..', '..');
  const { blocks, values } = recipes();
  writeFileSync(join(place, 'tidemark-values.yaml'), values);
  const rendered = blocks.map((commands) => follow(commands, place));
  return { rendered, created };
}

export const parsed = (text: string): Rendered[] => parseAllDocuments(text).map((document) => document.toJS());

/** @returns the errors of kubeconform about manifests; empty where there are none */
export function complaints(text: string, version: string): string {
  const schemas = [version, '.'].flatMap((folder) => [
    '-schema-location',
    join(SCHEMAS, folder, '{{.ResourceKind}}.json'),
  ]);
  const { code, stdout, stderr } = runTool('kubeconform', ['-strict', ...schemas, '-'], { input: text });
  const words = stdout + stderr;
  expect(code === 0, words).toBe(words === '');
  return words;
}

/** Whether a selector of Kubernetes selects an object with these labels. */
export function selects(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}
