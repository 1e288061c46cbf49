/**
 * `tidemark init --workspace NAME`: what it writes for Compose and Kubernetes is read there by Compose's own loader and
 * by kustomize, beside the workspace that is there already; for systemd it is an environment file as install.sh keeps
 * it.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { realClock } from '../../src/app/real-clock.ts';
import { parseArguments } from '../../src/cli/argv.ts';
import { runCommand } from '../../src/commands/run.ts';
import { UserError } from '../../src/core/faults.ts';
import { type SimServer, serveSimulator } from '../../src/sim/server.ts';
import { createSimulator } from '../../src/sim/simulator.ts';
import { createWorld } from '../../src/sim/world.ts';
import { inputOf } from '../commands/init/support.ts';
import { runTool, toolsAvailable } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const KEY = 'tmk_office_4242';
const TOOLS = toolsAvailable();

let api: SimServer;
beforeAll(async () => {
  const world = createWorld({ seed: 1, originMs: Date.now(), historyMs: 600_000, devices: [] });
  api = await serveSimulator(createSimulator({ world, clock: realClock, settings: { key: { secret: KEY } } }));
});
afterAll(async () => await api.close());

/** A checkout as far as it matters here. */
function checkout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-workspace-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['compose.yaml', 'config']) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  return folder;
}

/** The other output of the last run. */
let shown = '';

/** @returns what is printed, or the words of the error and its exit code. */
async function init(folder: string, ...args: readonly string[]): Promise<{ code: number; text: string }> {
  return await run(folder, ['--api-url', api.url, ...args]);
}

/** @param answers what a person types; `null`: no terminal. */
async function run(
  folder: string,
  args: readonly string[],
  answers: readonly string[] | null = null,
): Promise<{ code: number; text: string }> {
  let text = '';
  shown = '';
  const typed = inputOf(answers ?? [], true, () => {});
  const command = parseArguments(['init', '--config', folder, ...args]);
  if (command.mode !== 'init') throw new Error('no init');
  const print = (more: string): void => {
    text += more;
  };
  const ports = {
    environment: { TIDEMARK_API_KEY: KEY },
    forget: () => {},
    readFile: (path: string) => readFileSync(path, 'utf8'),
    print,
    stdin: answers === null ? Readable.from([]) : typed.stream,
    stdout: { isTTY: false, write: async () => true },
    stderr: {
      write: (more: string) => {
        shown += more;
        if (/[:\]] $/.test(more)) typed.next();
      },
    },
    signal: new AbortController().signal,
  };
  // The mask of the program (src/main.ts): files that others read get their rights nevertheless.
  const mask = process.umask(0o077);
  const running = runCommand(command, ports).finally(() => process.umask(mask));
  const code = await running.catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    text += error.message;
    return error.exitCode;
  });
  return { code, text };
}

/** Serves a database that gives every request this answer. */
async function serve(headers: Readonly<Record<string, string>>, status = 204): Promise<string> {
  const database = createServer((_request, response) => void response.writeHead(status, headers).end());
  await new Promise<void>((resolve) => void database.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void database.close());
  return `http://127.0.0.1:${(database.address() as AddressInfo).port}`;
}

const read = (...path: readonly string[]): string => readFileSync(join(...path), 'utf8');
const modeOf = (...path: readonly string[]): number => statSync(join(...path)).mode & 0o777;

describe('for Compose', () => {
  test.each(['"', "'"])('values of .env may be in quotes (%s)', async (quote) => {
    const folder = checkout();
    const list = `${quote}compose.yaml:compose.mine.yaml${quote}`;
    writeFileSync(join(folder, '.env'), `TIDEMARK_PORT=${quote}9465${quote}\nCOMPOSE_FILE=${list}\n`);
    expect(await init(folder, '--workspace', 'office')).toMatchObject({ code: 0 });
    expect(read(folder, '.env').split('\n')[1]).toBe(
      'COMPOSE_FILE=compose.yaml:compose.mine.yaml:compose.workspace-office.yaml',
    );
    expect(read(folder, 'compose.workspace-office.yaml')).toContain('"127.0.0.1:9466:9464"');
  });

  test.runIf(TOOLS)('a second service gets its own key, port and volume, and the same database', async () => {
    const folder = checkout();
    writeFileSync(join(folder, '.env'), 'TIDEMARK_API_URL=https://first/external/v1');
    for (const name of ['office', 'barn']) {
      const { code, text } = await init(folder, '--workspace', name);
      expect([code, text]).toEqual([
        0,
        expect.stringContaining(
          `Database:  the one of compose.yaml\nFirst:     in a container, 127.0.0.1 (TIDEMARK_API_URL) is the container itself. Give an address that containers reach in compose.workspace-${name}.yaml.\nStart it:  docker compose up -d\n`,
        ),
      ]);
    }
    const files = (read(folder, '.env').match(/^COMPOSE_FILE=(.*)$/m)?.[1] ?? '').split(':');
    expect(files).toEqual(['compose.yaml', 'compose.workspace-office.yaml', 'compose.workspace-barn.yaml']);
    const { code, stdout, stderr } = runTool('compose-load', files, { cwd: folder });
    expect([code, stderr]).toEqual([0, '']);
    const { services } = JSON.parse(stdout);
    const { build: _, ...first } = services.tidemark;
    for (const [name, port] of [
      ['office', '9465'],
      ['barn', '9466'],
    ] as const) {
      const own = services[`tidemark-${name}`];
      expect(own).toMatchObject({
        environment: { ...first.environment, TIDEMARK_API_URL: api.url },
        secrets: [{ source: `${name}_tidemark_api_key`, target: 'tidemark_api_key' }],
        read_only: true,
        cap_drop: ['ALL'],
        mem_limit: first.mem_limit,
      });
      expect(own.ports.map(({ published }: { published: string }) => published)).toEqual([port]);
      const sources = own.volumes.map(({ source }: { source: string }) => source);
      expect(sources).toEqual([`data-${name}`, 'generated']);
      expect(read(folder, 'secrets', name, 'tidemark_api_key')).toBe(`${KEY}\n`);
      expect([modeOf(folder, 'secrets', name), modeOf(folder, 'secrets', name, 'tidemark_api_key')]).toEqual([
        0o700, 0o644,
      ]);
      const target = parse(read(folder, 'config', 'prometheus', 'workspaces', `${name}.yaml`));
      expect(target).toEqual([{ targets: [`tidemark-${name}:9464`], labels: { workspace: name } }]);
    }
    const [job] = parse(read(folder, 'config', 'prometheus', 'prometheus.yml')).scrape_configs;
    expect(job.file_sd_configs).toEqual([{ files: ['workspaces/*.yaml'] }]);
  });

  test('the port and the name of the first workspace are left to it', async () => {
    const folder = checkout();
    writeFileSync(join(folder, '.env'), 'TIDEMARK_PORT=9465\n');
    expect((await init(folder, '--workspace', 'office')).code).toBe(0);
    expect(read(folder, 'compose.workspace-office.yaml')).toContain('127.0.0.1:9466:9464');
    const target = join(folder, 'config', 'prometheus', 'workspaces', 'home.yaml');
    const before = read(target);
    expect(await init(folder, '--workspace', 'home', '--overwrite')).toEqual({
      code: 2,
      text: '"home" is the workspace of compose.yaml. Choose another name.',
    });
    expect(read(target)).toBe(before);
  });

  test('elsewhere than in the directory of compose.yaml nothing is written', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-workspace-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const { code, text } = await init(folder, '--workspace', 'office');
    expect([code, text]).toEqual([1, expect.stringContaining('no compose.yaml in this directory')]);
    expect(existsSync(join(folder, 'secrets'))).toBe(false);
    const kubernetes = ['--workspace', 'office', '--for', 'kubernetes'];
    const away = await init(folder, ...kubernetes);
    expect([away.code, away.text]).toEqual([
      1,
      expect.stringContaining('or name the directory of your list of workspaces by --config'),
    ]);
    // In the directory that has it, or with the list named.
    expect((await init(checkout(), '--workspace', 'office')).code).toBe(0);
    const list = join(checkout(), 'config', 'kubernetes', 'workspaces');
    expect((await init(list, ...kubernetes)).code).toBe(0);
  });

  test('a workspace that is there is kept, or replaced with the port that it has', async () => {
    const folder = checkout();
    expect((await init(folder, '--workspace', 'office')).code).toBe(0);
    const file = join(folder, 'compose.workspace-office.yaml');
    const before = read(file);
    expect((await init(folder, '--workspace', 'office', '--history', '9d')).code).toBe(1);
    expect(read(file)).toBe(before);
    expect((await init(folder, '--workspace', 'office', '--history', '9d', '--overwrite')).code).toBe(0);
    expect(read(file)).toBe(before.replace('"30d"', '"9d"'));
    expect(read(folder, '.env').match(/office/g)).toHaveLength(1);
    expect(shown).not.toContain('Warning');
    // Another port is written into this file.
    writeFileSync(file, read(file).replace(/127\.0\.0\.1:\d+:/, '127.0.0.1:9477:'));
    expect((await init(folder, '--workspace', 'office', '--overwrite')).code).toBe(0);
    expect(read(file)).toContain('"127.0.0.1:9477:9464"');
    expect(read(file)).toContain('"9d"');
    expect(shown).not.toContain('Warning');
    // A setting of its own is named, without its value, and stays in a copy.
    const own = read(file).replace('    secrets: [', '      TIDEMARK_LISTEN_PASSWORD: hunter2hunter2\n    secrets: [');
    writeFileSync(file, own);
    expect((await init(folder, '--workspace', 'office', '--overwrite')).code).toBe(0);
    expect(shown).toContain(
      `Warning: ${file} no longer has these settings: services.tidemark-office.environment.TIDEMARK_LISTEN_PASSWORD. Copy those that you need from ${file}.before, which is the earlier file.\n`,
    );
    expect([shown.includes('hunter2'), read(`${file}.before`)]).toEqual([false, own]);
  });
});

const OFFICE = ['--workspace', 'office', '--for', 'kubernetes'] as const;

describe('for Kubernetes', () => {
  test.runIf(TOOLS)('a directory and a line in the list, which kustomize renders', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const database = ['--influx-url', 'http://influxdb.monitoring:8086', '--influx-bucket', 'my telemetry'];
    for (const overwrite of [[], ['--overwrite']]) {
      const { code, text } = await init(folder, ...OFFICE, ...database, ...overwrite);
      expect([code, text]).toEqual([0, expect.stringContaining(`kubectl apply -k ${folder}`)]);
    }
    for (const name of ['tidemark_api_key', 'tidemark_influx_token']) writeFileSync(join(folder, 'home', name), 'x');
    const { code, stdout, stderr } = runTool('kustomize', ['build', folder]);
    expect([code, stderr]).toEqual([0, '']);
    const all = parseAllDocuments(stdout).map((document) => document.toJS());
    const named = (kind: string) => all.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name);
    expect(named('StatefulSet').sort()).toEqual(['home-tidemark', 'office-tidemark']);
    const config = all.find((each) => each.kind === 'ConfigMap' && each.metadata.name.startsWith('office-'));
    expect(config.data).toMatchObject({ TIDEMARK_API_URL: api.url, TIDEMARK_INFLUX_BUCKET: 'my telemetry' });
    const secret = all.find((each) => each.kind === 'Secret' && each.metadata.name.startsWith('office-'));
    expect(Buffer.from(secret.data.tidemark_api_key, 'base64').toString()).toBe(KEY);
  });

  test.runIf(TOOLS)('a name that YAML reads as another value stays a name', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    for (const overwrite of [[], ['--overwrite']]) {
      const { code, text } = await init(folder, '--workspace', 'no', '--for', 'kubernetes', ...overwrite);
      expect([code, text]).toEqual([0, expect.stringMatching(/have no key: home\. .*\nStart it: .*\n$/)]);
    }
    expect(read(folder, 'kustomization.yaml').match(/- "no"/g)).toHaveLength(1);
    expect((await init(folder, '--workspace', 'barn', '--for', 'kubernetes')).text).toMatch(/have no key: home\. /);
    rmSync(join(folder, 'no', 'tidemark_api_key'));
    expect((await init(folder, '--workspace', 'shop', '--for', 'kubernetes')).text).toMatch(/have no key: home, no\. /);
    writeFileSync(join(folder, 'no', 'tidemark_api_key'), 'x');
    for (const name of ['tidemark_api_key', 'tidemark_influx_token']) writeFileSync(join(folder, 'home', name), 'x');
    const { code, stdout, stderr } = runTool('kustomize', ['build', folder]);
    expect([code, stderr]).toEqual([0, '']);
    const all = parseAllDocuments(stdout).map((document) => document.toJS());
    const [set] = all.filter(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === 'no-tidemark');
    // As Kubernetes reads it.
    expect(set.spec.template.metadata.labels['tidemark/workspace']).toBe('no');
    expect(stdout).not.toMatch(/tidemark\/workspace: no$/m);
  });

  test('the workspaces of the list that have no key yet are named: with them it cannot be applied', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const add = async (name: string): Promise<string> =>
      (await init(folder, '--workspace', name, '--for', 'kubernetes')).text;
    for (const name of ['office', 'barn']) {
      expect(await add(name)).toMatch(
        /\n {11}\d\. these workspaces of the list have no key: home\. Write tidemark_api_key .* or remove its line from .*kustomization\.yaml\.\nStart it: .*\n$/,
      );
    }
    writeFileSync(join(folder, 'home', 'tidemark_api_key'), 'x');
    expect(await add('shop')).not.toContain('have no key');
    // Or its line is removed.
    rmSync(join(folder, 'home', 'tidemark_api_key'));
    const listFile = join(folder, 'kustomization.yaml');
    writeFileSync(listFile, read(listFile).replace(/^ *- home\n/m, ''));
    expect(await add('loft')).not.toContain('have no key');
  });

  test('without a word about a database, that of the base stays, and the output names it', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const values = (name: string) =>
      parse(read(folder, name, 'kustomization.yaml'))
        .configMapGenerator[0].literals.map(String)
        .sort();
    const { code, text } = await init(folder, '--workspace', 'office', '--for', 'kubernetes');
    expect([code, text]).toEqual([
      0,
      expect.stringMatching(
        /^Database: {2}that of the Kustomize base \(http:\/\/influxdb\.monitoring:8086, bucket telemetry\); to change it: --influx-url URL, or --influx-url none$/m,
      ),
    ]);
    expect(values('office')).toEqual([`TIDEMARK_API_URL=${api.url}`]);
    expect(read(folder, 'office', 'kustomization.yaml')).toContain('Keep them out of repositories.');
    // A bucket of its own there.
    await init(folder, '--workspace', 'shop', '--for', 'kubernetes', '--influx-bucket', 'shop');
    expect(values('shop')).toEqual([`TIDEMARK_API_URL=${api.url}`, 'TIDEMARK_INFLUX_BUCKET=shop']);
    // So does its history, unless another is given.
    await init(folder, '--workspace', 'barn', '--for', 'kubernetes', '--history', '90d');
    expect(values('barn')).toEqual([`TIDEMARK_API_URL=${api.url}`, 'TIDEMARK_SYNC_HISTORY=90d']);
  });

  test('with no database on purpose, and with one that has no token, each value of the base is replaced', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const values = (name: string) =>
      parse(read(folder, name, 'kustomization.yaml')).configMapGenerator[0].literals.map(String);
    const without = await init(folder, ...OFFICE, '--influx-url', 'none');
    expect(without).toMatchObject({ code: 0, text: expect.stringMatching(/^Database: {2}none; readings/m) });
    const none = ['URL', 'ORG', 'BUCKET', 'KIND'].map((each) => `TIDEMARK_INFLUX_${each}=`);
    expect(values('office')).toEqual(expect.arrayContaining(none));
    const victoria = ['--influx-url', 'http://127.0.0.1:1', '--influx-kind', 'victoriametrics'];
    expect((await init(folder, '--workspace', 'barn', '--for', 'kubernetes', ...victoria)).code).toBe(0);
    expect(values('barn')).toEqual(
      expect.arrayContaining([
        'TIDEMARK_INFLUX_URL=http://127.0.0.1:1',
        'TIDEMARK_INFLUX_KIND=victoriametrics',
        'TIDEMARK_INFLUX_BUCKET=',
      ]),
    );
    // The daemon treats the empty token file as no token.
    expect(read(folder, 'barn', 'tidemark_influx_token')).toBe('');
  });

  test('has a step for an address of the pod itself, and for a port that the network policy blocks, with the line to change', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const add = async (...flags: readonly string[]): Promise<string[]> => {
      const given = ['--workspace', 'office', '--for', 'kubernetes', '--overwrite', ...flags];
      const { code, text } = await init(folder, ...given);
      expect(code).toBe(0);
      // Each stands once in the output: as a step before the start, numbered with the others.
      expect(shown).not.toContain('Warning: ');
      const [, first = ''] = /^First: {5}([\s\S]*)\nStart it: {2}/m.exec(text) ?? [];
      const steps = first.split('\n').map((line) => line.trim());
      const advised = steps.filter((step) => /^\d+\. (?:in a pod|the network policy)/.test(step));
      // The last step is the missing key of "home"; `--influx-url` without a token has one more.
      expect(steps.slice(0, advised.length)).toEqual(advised);
      expect(steps.at(-1)).toMatch(new RegExp(`^${steps.length}\\. these workspaces of the list have no key: home`));
      return advised.map((step, index) => step.replace(`${index + 1}. `, ''));
    };
    const own = join(folder, 'office', 'kustomization.yaml');
    const policy = join(folder, '..', 'base', 'networkpolicy.yaml');
    const base = join(folder, '..', 'base', 'kustomization.yaml');
    const lineIn = (file: string, text: string): number =>
      read(file)
        .split('\n')
        .findLastIndex((line) => line.includes(text)) + 1;
    const { port } = new URL(api.url);
    const blocked = (number: string, variable: string): string =>
      `the network policy blocks port ${number} (${variable}). Add the port to the list in ${policy}, line ${lineIn(policy, 'port:')}.`;
    const itself = await add('--influx-url', 'none');
    expect(itself).toEqual([
      `in a pod, 127.0.0.1 (TIDEMARK_API_URL) is the pod itself, in which only Tidemark runs. Give an address that the pods reach in ${own}, line ${lineIn(own, 'TIDEMARK_API_URL')}.`,
      blocked(port, 'TIDEMARK_API_URL'),
    ]);
    // As advised.
    const before = read(policy);
    const allow = (number: string): void =>
      writeFileSync(policy, `${read(policy).trimEnd()}\n        - { port: ${number}, protocol: TCP }\n`);
    allow(port);
    expect(await add('--influx-url', 'none')).toEqual(itself.slice(0, 1));
    expect((await add('--influx-url', 'http://localhost:1', '--influx-bucket', 'b')).slice(1)).toEqual([
      expect.stringMatching(
        /^in a pod, localhost \(TIDEMARK_INFLUX_URL\) is .* reach in .*kustomization\.yaml, line \d+\.$/,
      ),
      blocked('1', 'TIDEMARK_INFLUX_URL'),
    ]);
    // Each port of the policy, and the database of the base.
    for (const [, number] of before.matchAll(/- port: (\d+)\n +protocol: TCP/g)) {
      const warned = await add('--influx-url', `http://db.invalid:${number}`, '--influx-bucket', 'b');
      expect(warned.slice(1), number).toEqual(number === '9464' ? [blocked(number, 'TIDEMARK_INFLUX_URL')] : []);
    }
    expect(await add()).toHaveLength(1);
    writeFileSync(base, read(base).replace(/(TIDEMARK_INFLUX_URL=)[^"\s]+/, '$1http://localhost:9999'));
    expect((await add()).slice(1)).toEqual([
      expect.stringContaining(
        `Give an address that the pods reach in ${base}, line ${lineIn(base, 'TIDEMARK_INFLUX_URL')}.`,
      ),
      blocked('9999', 'TIDEMARK_INFLUX_URL'),
    ]);
  });

  test('with a base outside of the checkout, a blocked port is for a patch there, as docs/kubernetes.md shows', async () => {
    const fleet = join(checkout(), 'fleet');
    cpSync(join(ROOT, 'config', 'kubernetes', 'workspaces'), join(fleet, 'workspaces'), { recursive: true });
    mkdirSync(join(fleet, 'base'));
    const base = join(fleet, 'base', 'kustomization.yaml');
    writeFileSync(base, 'resources: [../../tidemark/config/kubernetes/base]\n');
    const blocked = async (): Promise<string[]> => {
      const given = ['--workspace', 'office', '--for', 'kubernetes', '--overwrite', '--influx-url', 'none'];
      const { code, text } = await init(join(fleet, 'workspaces'), ...given);
      expect(code).toBe(0);
      return text.split('\n').filter((line) => line.includes('network policy'));
    };
    const { port } = new URL(api.url);
    expect(await blocked()).toEqual([
      expect.stringContaining(
        `the network policy blocks port ${port} (TIDEMARK_API_URL). Add the port by a patch of the policy in ${base}, as docs/kubernetes.md (Network) shows.`,
      ),
    ]);
    const [, patch = ''] = /```yaml\n(patches:\n[\s\S]*?)```/.exec(read(ROOT, 'docs', 'kubernetes.md')) ?? [];
    writeFileSync(base, `${read(base)}${patch.replace('9999', port)}`);
    expect(await blocked()).toEqual([]);
  });

  test('names the file for the token of a database that may require one, before the command that starts it', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const base = join(folder, '..', 'base', 'kustomization.yaml');
    const file = join(folder, 'office', 'tidemark_influx_token');
    const own = join(folder, 'token');
    writeFileSync(own, 'the-token');
    const isAsked = async (...flags: readonly string[]): Promise<boolean> => {
      const { code, text } = await init(folder, ...OFFICE, '--overwrite', ...flags);
      expect(code, shown).toBe(0);
      const words = `. write the token of the database into ${file} (empty: no token). InfluxDB 2 and 3 require one.\nStart it: `;
      expect(text.includes('write the token')).toBe(text.includes(words));
      return text.includes(words);
    };
    const away = ['--influx-url', 'http://127.0.0.1:1', '--influx-bucket', 'b'];
    writeFileSync(join(folder, 'home', 'tidemark_api_key'), 'x');
    expect(await isAsked()).toBe(true);
    expect(await isAsked(...away)).toBe(true);
    expect(await isAsked('--influx-token-file', own)).toBe(false);
    expect(await isAsked(...away, '--influx-token-file', own)).toBe(false);
    expect(await isAsked('--influx-url', 'none')).toBe(false);
    expect(await isAsked('--influx-url', 'http://127.0.0.1:1', '--influx-kind', 'victoriametrics')).toBe(false);
    // One that has accepted a write needs none.
    const influx = await serve({ 'x-influxdb-build': 'OSS' });
    expect(await isAsked('--influx-url', influx, '--influx-bucket', 'b')).toBe(false);
    const text = read(base);
    for (const victoria of ['http://vm:8428', 'http://vm:9999 - TIDEMARK_INFLUX_KIND=victoriametrics']) {
      writeFileSync(base, text.replace('http://influxdb.monitoring:8086', victoria.replace(' - ', '\n      - ')));
      expect(await isAsked(), victoria).toBe(false);
    }
  });

  test('guesses no kind of a database that does not answer, except from a port of VictoriaMetrics', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const add = async (...flags: readonly string[]) =>
      await init(folder, ...OFFICE, '--overwrite', '--influx-url', ...flags);
    expect(await add('http://127.0.0.1:1')).toEqual({
      code: 2,
      text: 'The kind of the database is unknown: it does not answer. Give --influx-bucket NAME for InfluxDB (1.8 or later), or --influx-kind victoriametrics.',
    });
    expect(existsSync(join(folder, 'office'))).toBe(false);
    const kind = () => /TIDEMARK_INFLUX_KIND=(\w*)/.exec(read(folder, 'office', 'kustomization.yaml'))?.[1];
    expect(await add('http://vm.invalid:8428')).toMatchObject({
      code: 0,
      text: expect.stringContaining('Database:  http://vm.invalid:8428, VictoriaMetrics\n'),
    });
    expect([kind(), shown]).toEqual([
      'victoriametrics',
      expect.stringContaining('for InfluxDB, give --influx-bucket.'),
    ]);
    // The kind of the base is not that of another database.
    expect((await add('http://127.0.0.1:1', '--influx-bucket', 'b')).code).toBe(0);
    expect(kind()).toBe('');
    expect((await add('http://127.0.0.1:1', '--influx-bucket', 'b', '--influx-kind', 'influxdb')).code).toBe(0);
    expect(kind()).toBe('influxdb');
  });

  test('settings added to the file of a workspace stay, and those that cannot stay are named', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const file = join(folder, 'office', 'kustomization.yaml');
    const given = [...OFFICE, '--influx-url', 'http://db.invalid:8086', '--influx-bucket'];
    expect((await init(folder, ...given, 'my telemetry', '--history', '9d')).code).toBe(0);
    const images = 'images: [{ name: registry.example/tidemark, newTag: 2.0.0 }]\n';
    const password = '      - TIDEMARK_LISTEN_PASSWORD_FILE=/run/secrets/tidemark/tidemark_listen_password\n';
    const changed = read(file)
      .replace('secretGenerator:', `${password}      - HTTPS_PROXY=http://u:hunter2@proxy:3128\nsecretGenerator:`)
      .replace(/$/, `      - tidemark_listen_password\n${images}`);
    writeFileSync(file, changed);
    writeFileSync(join(folder, 'office', 'tidemark_influx_token'), 'hunter3hunter3');
    expect((await init(folder, ...given, 'other', '--overwrite')).code).toBe(0);
    expect(shown).not.toContain('no longer has');
    // The history and the token were not answered again.
    expect(read(file)).toBe(changed.replace('"TIDEMARK_INFLUX_BUCKET=my telemetry"', 'TIDEMARK_INFLUX_BUCKET=other'));
    expect(read(folder, 'office', 'tidemark_influx_token')).toBe('hunter3hunter3');
    const elsewhere = [...OFFICE, '--influx-url', 'http://other.invalid:8086', '--influx-bucket', 'b', '--overwrite'];
    expect((await init(folder, ...elsewhere)).code).toBe(0);
    expect(read(folder, 'office', 'tidemark_influx_token'), 'that of another database').toBe('');
    expect((await init(folder, ...given, 'other', '--overwrite')).code).toBe(0);
    // The file of another workspace, or one in another form.
    const other = read(file).replace('namePrefix: office-', 'namePrefix: home-');
    writeFileSync(file, other);
    expect((await init(folder, ...given, 'other', '--overwrite')).code).toBe(0);
    expect(read(file)).toMatch(/^namePrefix: office-$/m);
    expect(read(file)).toContain(`${password}      - HTTPS_PROXY=`);
    expect(shown).toContain(
      `Warning: ${file} no longer has these settings: secretGenerator.files tidemark_listen_password, images.name, images.newTag. Copy those that you need from ${file}.before, which is the earlier file.\n`,
    );
    expect([shown.includes('hunter2'), read(`${file}.before`)]).toEqual([false, other]);
  });

  test('a token that the database refuses is no matter of where the daemon runs: nothing is written', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    const own = join(folder, 'token');
    writeFileSync(own, 'user:wrong-password');
    const victoria = await serve({ 'x-server-hostname': 'vm' }, 401);
    const given = ['--influx-url', victoria, '--influx-token-file', own];
    const { code, text } = await init(folder, ...OFFICE, ...given);
    expect([code, text]).toEqual([1, expect.stringMatching(/^The database does not accept points: .*401/)]);
    expect(existsSync(join(folder, 'office'))).toBe(false);
  });

  test('differs from a copy of home, as in docs/kubernetes.md, only in its values', async () => {
    const folder = join(checkout(), 'config', 'kubernetes', 'workspaces');
    expect((await init(folder, '--workspace', 'office', '--for', 'kubernetes')).code).toBe(0);
    const copied = read(folder, 'home', 'kustomization.yaml').replaceAll('home', 'office');
    const plain = (text: string) => text.split('\n').filter((line) => !line.includes('- TIDEMARK_'));
    expect(plain(read(folder, 'office', 'kustomization.yaml'))).toEqual(plain(copied));
    expect(read(folder, 'kustomization.yaml')).toMatch(/ {2}- home\n {2}- office\n/);
  });
});

describe('for systemd', () => {
  test('the tries leave nothing where the command was started, nor elsewhere', async () => {
    const folder = checkout();
    const hadState = existsSync('data/tidemark.db');
    // A folder of its own: other tests make temporary folders meanwhile.
    const temporary = mkdtempSync(join(tmpdir(), 'tidemark-tries-'));
    vi.stubEnv('TMPDIR', temporary);
    try {
      expect((await init(folder, '--workspace', 'office', '--for', 'systemd')).code).toBe(0);
      expect(readdirSync(temporary)).toEqual([]);
      expect(existsSync('data/tidemark.db')).toBe(hadState);
    } finally {
      vi.unstubAllEnvs();
      rmSync(temporary, { recursive: true, force: true });
    }
  });

  test('only their owner can read the environment file and the secrets', async () => {
    const folder = checkout();
    const { code, text } = await init(folder, '--workspace', 'office', '--for', 'systemd', '--history', '7d');
    expect([code, text]).toEqual([
      0,
      expect.stringContaining('sudo config/systemd/install.sh office && sudo systemctl enable --now tidemark@office'),
    ]);
    expect(read(folder, 'office', 'tidemark.env').split('\n').slice(1)).toEqual([
      `TIDEMARK_API_URL=${api.url}`,
      'TIDEMARK_SYNC_HISTORY=7d',
      'TIDEMARK_API_KEY_FILE=/etc/tidemark/office/tidemark_api_key',
      'TIDEMARK_INFLUX_TOKEN_FILE=/etc/tidemark/office/tidemark_influx_token',
      '',
    ]);
    // A token that is written into it later counts.
    expect(read(folder, 'office', 'tidemark_influx_token')).toBe('');
    expect(read(folder, 'office', 'tidemark_api_key')).toBe(`${KEY}\n`);
    expect(modeOf(folder, 'office', 'tidemark_api_key')).toBe(0o600);
  });

  test('files of install.sh are filled in without a question, and keep their owner, group, mode and port', async () => {
    const folder = checkout();
    const script = read(ROOT, 'config', 'systemd', 'install.sh');
    const [, example = ''] = /^ {2}(sed .* config\/tidemark\.env\.example) >/m.exec(script) ?? [];
    const environment = { name: 'home', PATH: '/usr/bin:/bin' };
    const text = execFileSync('/bin/sh', ['-c', example], { cwd: ROOT, encoding: 'utf8', env: environment });
    const settings = join(folder, 'home');
    const files = ['tidemark.env', 'tidemark_api_key', 'tidemark_influx_token'].map((name) => join(settings, name));
    const [file = ''] = files;
    const install = (env: string): void => {
      mkdirSync(settings, { recursive: true });
      for (const path of files) {
        writeFileSync(path, path === file ? `${env}\nTIDEMARK_LISTEN=127.0.0.1:9466\n` : '');
        chmodSync(path, 0o640);
        if (process.getuid?.() === 0) chownSync(path, 0, 4242);
      }
    };
    const rights = () => files.map((path) => statSync(path)).map(({ uid, gid, mode }) => [uid, gid, mode]);
    install(text);
    const before = rights();
    const given = ['--workspace', 'home', '--for', 'systemd'];
    expect((await init(folder, ...given)).code).toBe(0);
    expect(rights()).toEqual(before);
    expect(read(file)).toContain(`TIDEMARK_API_URL=${api.url}\n`);
    expect(read(file)).toContain('TIDEMARK_LISTEN=127.0.0.1:9466\n');
    expect(read(settings, 'tidemark_api_key')).toBe(`${KEY}\n`);
    // The key goes into no file that everyone can read.
    install(text);
    for (const path of files) chmodSync(path, 0o644);
    expect((await init(folder, ...given)).code).toBe(0);
    expect(rights()).toEqual(before);
    // A value that somebody has changed, or added, is not lost.
    for (const changed of [text.replace('my-org', 'our-org'), `${text}HTTPS_PROXY=http://proxy.example:3128\n`]) {
      install(changed);
      expect(await init(folder, ...given)).toEqual({
        code: 1,
        text: `Already there: ${file}. Nothing was written; --overwrite replaces existing files.`,
      });
      expect(read(file)).toContain(changed);
    }
  });

  test('the files that init has written for the first workspace are replaced only on request', async () => {
    const folder = checkout();
    const given = ['--workspace', 'home', '--for', 'systemd'];
    expect((await init(folder, ...given)).code).toBe(0);
    expect((await init(folder, ...given, '--history', '7d')).code).toBe(1);
    expect(read(folder, 'home', 'tidemark.env')).not.toContain('HISTORY=7d');
    expect((await init(folder, ...given, '--history', '7d', '--overwrite')).code).toBe(0);
    expect(read(folder, 'home', 'tidemark.env')).toContain('TIDEMARK_SYNC_HISTORY=7d\n');
    const page = ['--listen', '127.0.0.1:9470', '--overwrite'];
    for (const flags of [page, ['--overwrite']]) expect((await init(folder, ...given, ...flags)).code).toBe(0);
    expect(read(folder, 'home', 'tidemark.env').match(/^TIDEMARK_LISTEN=.*$/gm)).toEqual([
      'TIDEMARK_LISTEN=127.0.0.1:9470',
    ]);
  });
});

test('for systemd, other settings stay, and the password of the page with its address', async () => {
  const folder = checkout();
  const file = join(folder, 'office', 'tidemark.env');
  const given = ['--workspace', 'office', '--for', 'systemd'];
  expect((await init(folder, ...given, '--listen', '0.0.0.0:9470')).code).toBe(0);
  const own = [
    'TIDEMARK_LISTEN=0.0.0.0:9470',
    'TIDEMARK_LISTEN_PASSWORD_FILE=/etc/tidemark/office/tidemark_listen_password',
    'HTTPS_PROXY=http://proxy.example:3128',
    'TIDEMARK_INFLUX_CA_FILE=/etc/tidemark/ca.pem',
    'TIDEMARK_SYNC_EXCLUDE=a,\\',
    '  b',
    'TIDEMARK_ARCHIVE_MAX_SIZE=1GiB',
  ];
  const answers = ['TIDEMARK_API_KEY=tmk_old_4242', 'TIDEMARK_INFLUX_ORG=old', 'TIDEMARK_INFLUX_TOKEN=old:token'];
  writeFileSync(file, [...read(file).split('\n').slice(0, 3), ...answers, ...own].join('\n'));
  const lines = (): string[] => read(file).split('\n').slice(5);
  expect(await init(folder, ...given, '--history', '7d', '--overwrite')).toMatchObject({
    code: 0,
    text: expect.stringContaining('sudo systemctl restart tidemark@office'),
  });
  expect(lines()).toEqual([...own, '']);
  expect(read(file)).toContain('TIDEMARK_SYNC_HISTORY=7d\n');
  expect(read(file)).not.toMatch(/old/);
  expect((await init(folder, ...given, '--listen', '127.0.0.1:9470', '--overwrite')).code).toBe(0);
  expect(lines().sort()).toEqual(['TIDEMARK_LISTEN=127.0.0.1:9470', ...own.slice(1), ''].sort());
});

test('for systemd, the database of a replaced file stays with its token unless a flag names another', async () => {
  const folder = checkout();
  const given = ['--workspace', 'office', '--for', 'systemd'];
  const token = join(folder, 'token');
  writeFileSync(token, 'a-long-token-4242');
  const database = ['--influx-url', await serve({ 'x-influxdb-build': 'OSS' }), '--influx-bucket', 'b'];
  expect((await init(folder, ...given, ...database, '--influx-token-file', token)).code).toBe(0);
  const before = read(folder, 'office', 'tidemark.env');
  const lines = (text: string): string[] => text.split('\n').sort();
  expect(await init(folder, ...given, '--overwrite')).toMatchObject({
    code: 0,
    text: expect.stringContaining('Database:  that of the earlier file; to remove it: --influx-url none\n'),
  });
  expect(lines(read(folder, 'office', 'tidemark.env'))).toEqual(lines(before));
  expect(read(folder, 'office', 'tidemark_influx_token')).toBe('a-long-token-4242\n');
  expect((await run(folder, given, ['y', '', '', ''])).text).toContain('Database:  that of the earlier file; ');
  expect(shown).toContain(`/external/v1 [${api.url}]: `);
  expect(shown).toContain(`(none: no database, only the archive) [${database[1]}]: `);
  expect(lines(read(folder, 'office', 'tidemark.env'))).toEqual(lines(before));
  expect(await init(folder, ...given, '--overwrite', '--influx-url', 'none')).toMatchObject({
    code: 0,
    text: expect.stringContaining('Database:  none; '),
  });
  expect(read(folder, 'office', 'tidemark.env')).not.toContain('TIDEMARK_INFLUX_URL');
  expect(read(folder, 'office', 'tidemark_influx_token')).toBe('');
});

test.each(['compose', 'systemd', 'kubernetes'] as const)(
  'for %s, another workspace with the same key is named, and the key is not',
  async (target) => {
    const folder = target === 'kubernetes' ? join(checkout(), 'config', 'kubernetes', 'workspaces') : checkout();
    const keys = target === 'compose' ? join(folder, 'secrets') : folder;
    const add = async (name: string): Promise<string[]> => {
      const { code, text } = await init(folder, '--workspace', name, '--for', target, '--overwrite');
      expect(code, text).toBe(0);
      expect(text + shown).not.toContain(KEY);
      return shown.split('\n').filter((line) => line.includes('API key'));
    };
    expect(await add('office')).toEqual([]);
    expect(await add('barn')).toEqual([
      `Warning: the workspace "office" has the same API key (${join(keys, 'office', 'tidemark_api_key')}). Two daemons would sync the same devices and share one quota. Give each one the key of its own workspace.`,
    ]);
    writeFileSync(join(keys, 'office', 'tidemark_api_key'), 'another\n');
    expect(await add('barn')).toEqual([]);
    if (target !== 'compose') return;
    // The first one.
    writeFileSync(join(keys, 'tidemark_api_key'), KEY);
    expect(await add('barn')).toEqual([expect.stringContaining('the workspace "home" has the same API key (')]);
  },
);

test.each([
  [['--workspace', 'Office'], /a-z, 0-9/],
  [['--workspace', '../x'], /a-z, 0-9/],
  // Names that Kubernetes does not accept for a service or a label.
  [['--workspace', '2nd'], /beginning with a letter/],
  [['--workspace', 'office-'], /"-" not at its end/],
  [['--workspace', 'a'.repeat(21)], /at most 20 characters/],
  [['--workspace', 'a', '--for', 'nomad'], /--for takes compose, systemd or kubernetes/],
  [['--for', 'compose'], /--for needs a workspace/],
  [
    ['--workspace', 'a', '--listen', '127.0.0.1:1'],
    /--listen cannot be used .*the port in the file compose\.workspace-NAME/,
  ],
  [['--workspace', 'a', '--for', 'kubernetes', '--listen', 'x'], /--listen cannot be used .*the port of its service/],
  [['--workspace', 'a', '--data-dir', 'x'], /--data-dir cannot be used with --workspace/],
  [
    ['--workspace', 'a', '--influx-url', 'http://x:8086'],
    /--influx-url cannot be used .*the database of compose\.yaml/,
  ],
  [['--influx-kind', 'victoriametrics'], /--influx-kind needs a database: give --influx-url URL/],
  [['--influx-url', 'none', '--influx-kind', 'influxdb'], /--influx-kind needs a database/],
  [['--influx-url', 'none', '--influx-token-file', 'token'], /--influx-token-file needs a database/],
  [['--influx-bucket', 'b'], /--influx-bucket needs a database: give --influx-url URL/],
  [['--workspace', 'a', '--for', 'systemd', '--influx-org', 'o'], /--influx-org needs a database/],
  [['--workspace', 'a', '--for', 'kubernetes', '--influx-kind', 'influxdb'], /--influx-kind needs a database/],
  [['--influx-url', 'http://x', '--influx-kind', 'auto'], /--influx-kind takes influxdb or victoriametrics/],
  [
    ['--influx-url', 'http://x', '--influx-kind', 'victoriametrics', '--influx-bucket', 'b'],
    /--influx-bucket cannot be used with --influx-kind victoriametrics/,
  ],
  [['--workspace', 'a', '--for', 'compose', '--influx-bucket', 'x'], /--influx-bucket cannot be used/],
] as const)('refuses %j', (args, words) => {
  expect(() => parseArguments(['init', ...args])).toThrow(words);
});
