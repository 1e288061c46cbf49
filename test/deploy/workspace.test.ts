/**
 * `tidemark init --workspace NAME`: Compose's own loader reads what it writes for Compose, beside the workspace that is
 * there already; for systemd it is an environment file as install.sh keeps it.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parse } from 'yaml';
import { parseArguments } from '../../src/cli/argv.ts';
import type { SimServer } from '../../src/sim/server.ts';
import { runTool, toolsAvailable } from './tools.ts';
import { checkout, KEY, modeOf, read, run, serve, shown, startApi } from './workspace-support.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const TOOLS = toolsAvailable();

let api: SimServer;
beforeAll(async () => {
  api = await startApi();
});
afterAll(async () => await api.close());

/** Runs `init` with the address of the API. */
const init = async (folder: string, ...args: readonly string[]) => await run(folder, ['--api-url', api.url, ...args]);

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
