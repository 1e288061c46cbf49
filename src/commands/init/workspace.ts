/**
 * Composes one more workspace for Compose, systemd or Kubernetes: its files, changes of shared ones, and the steps to
 * its start.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type InitTarget, OF_INIT } from '../../cli/command.ts';
import { yaml } from '../../config/sources.ts';
import { isLoopback, isVictoriaPort } from '../../config/values.ts';
import { UserError } from '../../core/faults.ts';
import { DESTINATION_NAMES, type DestinationKind } from '../../core/lines/dialect.ts';
import { PAGE_PORT } from '../../core/page-facts.ts';
import type { WrittenFile } from '../../store/open/new-file.ts';

/** A file that `--init` writes. */
export interface NewFile extends WrittenFile {
  /** Whether it has settings in YAML: other settings in a file that it replaces are reported. */
  readonly isYaml?: boolean;
}

/** The names of the files of secrets, the same for every target. */
export const [KEY_FILE, TOKEN_FILE] = ['tidemark_api_key', 'tidemark_influx_token'] as const;

/** The section `influx` that `--init` writes. */
export interface InitDatabase {
  /** Empty: the database of the base (Kubernetes). */
  readonly url: string;
  readonly tokenFile: string | null;
  readonly org: string;
  /** Empty for VictoriaMetrics, and for the database of the base. */
  readonly bucket: string;
  /** `null` if the daemon detects it, and for the database of the base. */
  readonly kind: DestinationKind | null;
}

/** The address of the page, which install.sh chooses; init keeps it. */
export const LISTEN = /^TIDEMARK_LISTEN=.*$/m;

/** The answers for a further workspace. Its files are made from them. */
export interface NewWorkspace {
  readonly name: string;
  readonly target: InitTarget;
  /** The directory of compose.yaml, the directory above all workspaces, or the directory of their list. */
  readonly folder: string;
  readonly apiUrl: string;
  readonly key: string;
  readonly database: Omit<InitDatabase, 'tokenFile'> | null;
  /** Whether the database in the file that is replaced stays (systemd). */
  readonly keepsDatabase: boolean;
  readonly token: string | null;
  /** Whether the database has accepted a write with this token, or without one. */
  readonly isTried: boolean;
  readonly history: string;
  /** The address of the page (systemd); `null` if install.sh chooses it. */
  readonly listen: string | null;
}

/** The files of a workspace: its own, changed shared ones, and the command that starts it. */
export interface WorkspaceFiles {
  readonly own: readonly NewFile[];
  readonly shared: readonly NewFile[];
  readonly start: string;
  /** The steps for a person before the start command. */
  readonly first: readonly string[];
  /** The database that the workspace will write to, in words. */
  readonly database: string;
}

/** Where the files of workspaces are unless `--config` names a directory. */
export const WORKSPACE_FOLDERS: Readonly<Record<InitTarget, string>> = {
  compose: '.',
  systemd: '/etc/tidemark',
  kubernetes: 'config/kubernetes/workspaces',
};

/**
 * Composes the files of a workspace.
 *
 * @throws UserError (exit 1) if the folder is not one of such workspaces, (exit 2) if a value cannot be written there
 */
export function workspaceFiles(workspace: NewWorkspace): WorkspaceFiles {
  return { compose: composeFiles, systemd: systemdFiles, kubernetes: kubernetesFiles }[workspace.target](workspace);
}

function requireFile(file: string, fault: UserError): void {
  if (!existsSync(file)) throw fault;
}

/** A service in addition to the one in compose.yaml, with the same database, and a target for Prometheus. */
function composeFiles({ name, folder, apiUrl, key, history }: NewWorkspace): WorkspaceFiles {
  const remedy = 'Run the command in the directory that has it.';
  requireFile(join(folder, 'compose.yaml'), new UserError('There is no compose.yaml in this directory', remedy, 1));
  if (name === 'home') throw new UserError('"home" is the workspace of compose.yaml', 'Choose another name.', 2);
  const others = readdirSync(folder).filter((file) => /^compose\..+\.yaml$/.test(file));
  const taken = others.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n');
  const own = `compose.workspace-${name}.yaml`;
  const kept = new RegExp(`127\\.0\\.0\\.1:(\\d+):${PAGE_PORT}`).exec(readIfThere(join(folder, own)))?.[1];
  // The page of the first workspace has the port itself.
  let port = PAGE_PORT + 1;
  const ofFirst = /^TIDEMARK_PORT=["']?(\d+)/m.exec(readIfThere(join(folder, '.env')))?.[1];
  while (taken.includes(`:${port}:${PAGE_PORT}`) || `${port}` === ofFirst) port += 1;
  const service = `# Workspace "${name}": runs next to the one in compose.yaml and writes to the same database. Written by tidemark init.
services:
  tidemark-${name}:
    extends: { file: config/compose/tidemark.yaml, service: tidemark }
    environment:
      TIDEMARK_API_URL: ${JSON.stringify(apiUrl).replaceAll('$', '$$$$')}
      TIDEMARK_API_KEY_FILE: /run/secrets/${KEY_FILE}
      TIDEMARK_SYNC_HISTORY: ${JSON.stringify(history)}
    secrets: [{ source: ${name}_${KEY_FILE}, target: ${KEY_FILE} }]
    ports: !override ["127.0.0.1:${kept ?? port}:${PAGE_PORT}"]
    volumes: !override ["data-${name}:/data", "generated:/run/tidemark:ro"]
volumes:
  data-${name}:
secrets:
  ${name}_${KEY_FILE}: { file: ./secrets/${name}/${KEY_FILE} }
`;
  const target = `# Prometheus reads this file whenever it changes; no restart is needed.\n- targets: ['tidemark-${name}:${PAGE_PORT}']\n  labels: {workspace: ${yamlName(name)}}\n`;
  return {
    own: [
      { path: join(folder, own), text: service, mode: 0o644, isYaml: true },
      // The user of the container reads it; the directory protects it on this machine.
      { path: join(folder, 'secrets', name, KEY_FILE), text: `${key}\n`, mode: 0o644 },
      {
        path: join(folder, 'config', 'prometheus', 'workspaces', `${name}.yaml`),
        text: target,
        mode: 0o644,
        isYaml: true,
      },
    ],
    shared: [withComposeFile(folder, own)],
    start: 'docker compose up -d',
    first: isLoopback(apiUrl)
      ? [
          `in a container, ${new URL(apiUrl).hostname} (TIDEMARK_API_URL) is the container itself. Give an address that containers reach in ${own}.`,
        ]
      : [],
    database: 'the one of compose.yaml',
  };
}

/** `.env` with another file in COMPOSE_FILE, so that every command of Compose includes all workspaces. */
function withComposeFile(folder: string, file: string): NewFile {
  const path = join(folder, '.env');
  const before = readIfThere(path);
  const [line, , list] = /^COMPOSE_FILE=(["']?)(.*)\1$/m.exec(before) ?? [];
  const override = existsSync(join(folder, 'compose.override.yaml')) ? ':compose.override.yaml' : '';
  const files = (list ?? `compose.yaml${override}`).split(':');
  const now = `COMPOSE_FILE=${[...files.filter((each) => each !== file), file].join(':')}`;
  if (line !== undefined) return { path, text: before.replace(line, () => now) };
  return { path, text: `${before}${before === '' || before.endsWith('\n') ? '' : '\n'}${now}\n` };
}

/** The settings of the unit tidemark@NAME; `install.sh` creates its user and gives it a port. */
function systemdFiles(workspace: NewWorkspace): WorkspaceFiles {
  const { name, folder, key, database, token, listen } = workspace;
  const settings = join(folder, name);
  const file = join(settings, 'tidemark.env');
  const before = readIfThere(file);
  const keeps = workspace.keepsDatabase && /^TIDEMARK_INFLUX_URL=\S/m.test(before);
  const variables = {
    ...workspaceVariables(workspace),
    TIDEMARK_API_KEY_FILE: `/etc/tidemark/${name}/${KEY_FILE}`,
    // An empty file means no token. A token that is written into it later is used.
    ...(keeps ? {} : { TIDEMARK_INFLUX_TOKEN_FILE: `/etc/tidemark/${name}/${TOKEN_FILE}` }),
  };
  const lines = Object.entries(variables).map(([variable, value]) => `${variable}=${plainValue(variable, value)}\n`);
  const isKept = (variable: string): boolean =>
    OF_INIT.test(variable)
      ? keeps && variable.startsWith('TIDEMARK_INFLUX_')
      : listen === null || variable !== 'TIDEMARK_LISTEN';
  // A line may go on after a backslash.
  lines.push(...ownLines(before, /^[^\S\n]*(\w+)=(?:.*\\\n)*.*\n?/gm, isKept));
  if (listen !== null) lines.push(`TIDEMARK_LISTEN=${listen}\n`);
  const installed = LISTEN.exec(before)?.[0];
  const tokenFile = { path: join(settings, TOKEN_FILE), text: token === null ? '' : `${token}\n`, keepsOwner: true };
  const isInstalled = installed !== undefined && (listen === null || installed === `TIDEMARK_LISTEN=${listen}`);
  return {
    own: [
      { path: file, text: `# Written by tidemark init. No quotes.\n${lines.join('')}`, keepsOwner: true },
      { path: join(settings, KEY_FILE), text: `${key}\n`, keepsOwner: true },
      ...(keeps ? [] : [tokenFile]),
    ],
    shared: [],
    // install.sh writes the port, and the target of Prometheus from it.
    start: isInstalled
      ? `sudo systemctl enable tidemark@${name} && sudo systemctl restart tidemark@${name}`
      : `sudo config/systemd/install.sh ${name} && sudo systemctl enable --now tidemark@${name}`,
    first: [],
    database: keeps ? 'that of the earlier file; to remove it: --influx-url none' : databaseText(database),
  };
}

/** A directory next to those of the other workspaces, and a line in their list. */
function kubernetesFiles(workspace: NewWorkspace): WorkspaceFiles {
  const { name, folder, key, database, token, isTried } = workspace;
  const list = join(folder, 'kustomization.yaml');
  const remedy =
    'Run the command in the directory that has config/kubernetes, or name the directory of your list of workspaces by --config.';
  requireFile(list, new UserError(`There is no ${list}`, remedy, 1));
  // The values of the base stay if no database was named. Otherwise each is replaced, by an empty value for none.
  const isOfBase = database?.url === '';
  const ofBase = databaseOfBase(folder, database?.bucket ?? '');
  const own = join(folder, name);
  const file = join(own, 'kustomization.yaml');
  const variables = { ...(isOfBase ? {} : NO_DATABASE), ...workspaceVariables(workspace) };
  const earlier = readIfThere(file);
  const text = withAdditions(earlier, kustomization(name, variables));
  // A token that was filled in stays, but is never sent to another database.
  const [was, is] = [earlier, text].map((settings) => /TIDEMARK_INFLUX_URL=.*/.exec(settings)?.[0]);
  const kept = was === is ? readIfThere(join(own, TOKEN_FILE)) : '';
  const before = read(list);
  const entry = `  - ${yamlName(name)}`;
  const after = before.split('\n').includes(entry)
    ? before
    : before.replace(/^resources:\n(?: {2}.*\n)*/m, (all) => `${all}${entry}\n`);
  return {
    own: [
      { path: file, text, mode: 0o644, isYaml: true },
      { path: join(own, KEY_FILE), text: key },
      { path: join(own, TOKEN_FILE), text: token ?? kept },
    ],
    shared: [{ path: list, text: after, mode: 0o644 }],
    start: `kubectl apply -k ${folder}`,
    first: [
      ...podSteps(folder, [
        { variable: 'TIDEMARK_API_URL', file, text },
        { variable: 'TIDEMARK_INFLUX_URL', ...(isOfBase ? baseOf(folder) : { file, text }) },
      ]),
      ...(token === null && kept === '' && !isTried && database !== null
        ? tokenStep(join(own, TOKEN_FILE), isOfBase ? ofBase : database)
        : []),
      ...keyStep(folder, after, name),
    ],
    database: isOfBase
      ? `that of the Kustomize base${ofBase.url === '' ? '' : ` (${databaseText(ofBase)})`}; to change it: --influx-url URL, or --influx-url none`
      : databaseText(database),
  };
}

/** The directory of one workspace, for kustomize. */
function kustomization(name: string, variables: Readonly<Record<string, string>>): string {
  const literals = Object.entries(variables).map(([variable, value]) => `      - ${literal(`${variable}=${value}`)}\n`);
  return `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../../base
namePrefix: ${name}-
labels:
  - pairs:
      tidemark/workspace: ${yamlName(name)}
    includeSelectors: true
    includeTemplates: true
configMapGenerator:
  - name: tidemark
    behavior: merge
    literals:
${literals.join('')}secretGenerator:
  # Two files: one with only the key, one with only the token (empty if the database needs none). Keep them out of repositories.
  - name: tidemark
    files:
      - ${KEY_FILE}
      - ${TOKEN_FILE}
`;
}

/** The list of variables in the file of a workspace. */
const LITERALS = /(?<=- name: tidemark\n {4}behavior: merge\n {4}literals:\n)(?: {6}\S.*\n)+(?! {6})/;

/** The new text with what was added to the earlier one, if that is the file of the same workspace. */
function withAdditions(before: string, text: string): string {
  const variables = LITERALS.exec(text)?.[0] ?? '';
  const own = ownLines(LITERALS.exec(before)?.[0] ?? '', /^ {6}- ["']?(\w+)=.*\n/gm).join('');
  const frame = text.replace(variables, '').split('\n');
  const lines = before.split('\n');
  const isSame = LITERALS.test(before) && frame.every((line) => lines.includes(line));
  return (isSame ? before : text).replace(LITERALS, () => `${variables}${own}`);
}

/** The lines of variables that stay. The pattern finds a line and its name. */
function ownLines(text: string, pattern: RegExp, isKept = (name: string): boolean => !OF_INIT.test(name)): string[] {
  return [...text.matchAll(pattern)].flatMap(([line, name = '']) => (isKept(name) ? [line.replace(/\n?$/, '\n')] : []));
}

/** A file that sets a variable of the pods. */
interface SettingFile {
  readonly variable: string;
  readonly file: string;
  readonly text: string;
}

/** The steps for addresses that lead to the pod itself, or to a port that the network policy of the base blocks. */
function podSteps(folder: string, settings: readonly SettingFile[]): string[] {
  const policy = policyOf(folder);
  return settings.flatMap(({ variable, file, text }) => {
    const line = findLine(text, (each) => each.includes(`${variable}=`));
    const url = new RegExp(`${variable}=([^"'\\s]+)`).exec(text)?.[1] ?? '';
    if (!URL.canParse(url)) return [];
    const { hostname, port: given, protocol } = new URL(url);
    const port = given === '' ? (protocol === 'https:' ? 443 : 80) : Number(given);
    const own = `in a pod, ${hostname} (${variable}) is the pod itself, in which only Tidemark runs. Give an address that the pods reach in ${file}, line ${line}.`;
    const blocked = `the network policy blocks port ${port} (${variable}). ${policy?.remedy ?? ''}`;
    return [...(isLoopback(url) ? [own] : []), ...(policy === null || policy.lets(port) ? [] : [blocked])];
  });
}

/**
 * The policy in the base of this list: whether it lets a port out, and how to add one. If the list has its own base:
 * the policy of this checkout with its patches.
 */
function policyOf(folder: string): { readonly lets: (port: number) => boolean; readonly remedy: string } | null {
  const base = join(folder, '..', 'base');
  const own = join(base, 'networkpolicy.yaml');
  if (existsSync(own)) {
    const text = read(own);
    const line = findLine(text, (each) => /\bport:/.test(each));
    return { lets: (port) => isLetOut(text, port), remedy: `Add the port to the list in ${own}, line ${line}.` };
  }
  const text = readIfThere(join(WORKSPACE_FOLDERS.kubernetes, '..', 'base', 'networkpolicy.yaml'));
  if (text === '') return null;
  const patches = namesIn(base).map((name) => readOrEmpty(join(base, name)));
  const isPatched = (port: number): boolean =>
    patches.some((each) => new RegExp(`\\bport["']?: *${port}\\b`).test(each));
  return {
    lets: (port) => isLetOut(text, port) || isPatched(port),
    remedy: `Add the port by a patch of the policy in ${join(base, 'kustomization.yaml')}, as docs/kubernetes.md (Network) shows.`,
  };
}

/** The number of the last matching line, from 1. */
function findLine(text: string, isIt: (line: string) => boolean): number {
  return text.split('\n').findLastIndex(isIt) + 1;
}

/** A rule of a network policy. Without ports it allows all connections to the outside. */
interface EgressRule {
  readonly ports?: readonly { readonly port?: number; readonly endPort?: number; readonly protocol?: string }[];
}

function isLetOut(policy: string, port: number): boolean {
  const { spec } = yaml().parse(policy) as { readonly spec?: { readonly egress?: readonly EgressRule[] } };
  if (spec?.egress === undefined) return true;
  return spec.egress.some(
    ({ ports }) =>
      ports === undefined ||
      ports.some(
        ({ port: first = 0, endPort = first, protocol = 'TCP' }) =>
          protocol === 'TCP' && (first === 0 || (first <= port && port <= endPort)),
      ),
  );
}

function databaseText(database: NewWorkspace['database']): string {
  if (database === null) return 'none; readings are stored only in the archive';
  const { url, kind, bucket } = database;
  return `${url}${kind === null ? '' : `, ${DESTINATION_NAMES[kind]}`}${bucket === '' ? '' : `, bucket ${bucket}`}`;
}

/** The database of the base, as far as its file shows it, with the bucket of the workspace if it has one. */
function databaseOfBase(folder: string, bucket: string): Omit<InitDatabase, 'tokenFile'> {
  const { text } = baseOf(folder);
  const inBase = (variable: string): string => new RegExp(`${variable}=([^"'\\s]*)`).exec(text)?.[1] ?? '';
  const url = inBase('TIDEMARK_INFLUX_URL');
  const isVictoria = inBase('TIDEMARK_INFLUX_KIND') === 'victoriametrics' || isVictoriaPort(url);
  return isVictoria
    ? { url, org: '', bucket: '', kind: 'victoriametrics' }
    : { url, org: '', bucket: bucket || inBase('TIDEMARK_INFLUX_BUCKET'), kind: null };
}

function baseOf(folder: string): Pick<SettingFile, 'file' | 'text'> {
  const file = join(folder, '..', 'base', 'kustomization.yaml');
  return { file, text: readIfThere(file) };
}

/** The step for a database that may require a token, if none is given. */
function tokenStep(file: string, { kind }: Pick<InitDatabase, 'kind'>): string[] {
  if (kind === 'victoriametrics') return [];
  return [`write the token of the database into ${file} (empty: no token). InfluxDB 2 and 3 require one.`];
}

/** The step for the other workspaces in the list that have no key, because with them the list cannot be applied. */
function keyStep(folder: string, list: string, name: string): string[] {
  const listed = [...list.matchAll(/^ {2}- "?([\w-]+)"?$/gm)].flatMap(([, each]) => each ?? []);
  const keyless = listed.filter((each) => each !== name && !existsSync(join(folder, each, KEY_FILE)));
  if (keyless.length === 0) return [];
  return [
    `these workspaces of the list have no key: ${keyless.join(', ')}. Write ${KEY_FILE} and ${TOKEN_FILE} into the directory of each, or remove its line from ${join(folder, 'kustomization.yaml')}.`,
  ];
}

/** The database of the base, unset. */
const NO_DATABASE = Object.fromEntries(['URL', 'ORG', 'BUCKET', 'KIND'].map((key) => [`TIDEMARK_INFLUX_${key}`, '']));

/** The variables of a workspace that have a value. */
function workspaceVariables({ apiUrl, database, history }: NewWorkspace): Record<string, string> {
  const all = {
    TIDEMARK_API_URL: apiUrl,
    TIDEMARK_INFLUX_URL: database?.url,
    TIDEMARK_INFLUX_ORG: database?.org,
    TIDEMARK_INFLUX_BUCKET: database?.bucket,
    TIDEMARK_INFLUX_KIND: database?.kind,
    TIDEMARK_SYNC_HISTORY: history,
  };
  return Object.fromEntries(Object.entries(all).flatMap(([name, value]) => (value ? [[name, value]] : [])));
}

/** A value for environment files: systemd and Docker understand no common form of quotes. */
function plainValue(variable: string, value: string): string {
  if (/^[^\s"'\\#$]+(?: [^\s"'\\#$]+)*$/.test(value)) return value;
  throw new UserError(`${variable}: quotes, "\\", "#" and "$" cannot be written into an environment file.`, null, 2);
}

/** The name of a workspace in YAML, quoted if YAML would not read it as text ("no"). */
function yamlName(name: string): string {
  return /^(?:y|n|yes|no|on|off|true|false|null)$/.test(name) ? JSON.stringify(name) : name;
}

/** A text of YAML, quoted if needed. */
function literal(text: string): string {
  return /^[\w=:/.@%+-]+$/.test(text) ? text : JSON.stringify(text);
}

function read(path: string): string {
  return readFileSync(path, 'utf8');
}

function readIfThere(path: string): string {
  return existsSync(path) ? read(path) : '';
}

/** The names in a directory; none if it cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The text of a file; empty if it cannot be read. */
export function readOrEmpty(path: string): string {
  try {
    return read(path);
  } catch {
    return '';
  }
}
