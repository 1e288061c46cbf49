/**
 * `tidemark init --workspace NAME --for kubernetes`: kustomize reads what it writes, beside the workspace that is there
 * already.
 */
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import type { SimServer } from '../../src/sim/server.ts';
import { runTool, toolsAvailable } from './tools.ts';
import { checkout, KEY, read, run, serve, shown, startApi } from './workspace-support.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const TOOLS = toolsAvailable();

let api: SimServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(async () => await api.close());

/** Runs `init` with the address of the API. */
const init = async (folder: string, ...args: readonly string[]) => await run(folder, ['--api-url', api.url, ...args]);

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
