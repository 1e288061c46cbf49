/**
 * The documented commands for systemd: each runs as it stands in a root that install.sh has filled, with the tools of
 * Debian and, where it needs them, an API and a database.
 */
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { realClock } from '../../src/app/real-clock.ts';
import { type SimServer, serveSimulator } from '../../src/sim/server.ts';
import { createSimulator } from '../../src/sim/simulator.ts';
import { createWorld } from '../../src/sim/world.ts';
import { openStore } from '../../src/store/store.ts';
import { PAGES_CERTIFICATE, PAGES_KEY } from '../api/support/certificate.ts';
import { type Dialogue, talk } from '../support/dialogue.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { type OwnNetwork, openNetwork } from '../support/own-network.ts';
import { addPrograms, runInside } from '../support/own-root.ts';
import { shell } from '../support/run-command.ts';
import { commandsBy, MACHINE, SYSTEMCTL, TRIED, WORKSPACE, WORKSPACE_INIT } from '../support/tried-commands.ts';
import { ANALYZE, available, fillRoot } from './systemd-root.ts';

const ROOT = join(import.meta.dirname, '..', '..');

const page = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');
/** The tests run as root. */
const withoutSudo = (command: string): string => command.replaceAll(/\bsudo (?=\S)/g, '');

describe.runIf(available())('the installation for systemd, in a root with the tools of Debian', () => {
  let place: string;
  let root: string;
  const settings = (name: string, file: string): string => join(root, 'etc', 'tidemark', name, file);

  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), 'tidemark-systemd-'));
    root = fillRoot(place);
    addPrograms(
      root,
      `cat chgrp chmod chown cp date env find grep head id install journalctl ls mkdir mv paste rm sed setpriv sort
      systemctl tail tee xargs`.split(/\s+/),
    );
    mkdirSync(join(root, 'dev'), { recursive: true });
    // The pages use two more units: that of Debian's package, and one of docs/databases.md.
    const [, unit = ''] =
      /victoria-metrics-tidemark\.service`[\s\S]*?```ini\n([\s\S]*?)```/.exec(page('databases.md')) ?? [];
    const package_ = '[Service]\nExecStart=/bin/sh\n[Install]\nWantedBy=multi-user.target\n';
    const folder = join(root, 'etc', 'systemd', 'system');
    writeFileSync(join(folder, 'victoria-metrics-tidemark.service'), unit);
    writeFileSync(join(folder, 'victoria-metrics.service'), package_);
  });
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  test.each(commandsBy(SYSTEMCTL))('systemctl accepts %s', (command) => {
    const { status, stderr } = runInside(root, withoutSudo(command), { env: { SYSTEMD_OFFLINE: '1' } });
    expect(stderr).not.toMatch(/unknown|unrecognized|invalid|not found|does not exist|No such file/i);
    // The start that `--now` adds needs a running systemd.
    const enabled = / enable --now (\S+)$/.exec(command)?.[1];
    expect(status, stderr).toBe(enabled === undefined ? 0 : 1);
    if (enabled === undefined) return;
    const unit = /\.\w+$/.test(enabled) ? enabled : `${enabled}.service`;
    expect(stderr).toMatch(/not been booted with systemd/);
    const folder = join(
      root,
      'etc/systemd/system',
      `${unit.endsWith('.timer') ? 'timers' : 'multi-user'}.target.wants`,
    );
    expect(readdirSync(folder)).toContain(unit);
  });

  test('systemctl rejects a missing unit and an unknown command', () => {
    for (const command of ['systemctl enable --now tidemrak@home', 'systemctl strat tidemark@home'])
      expect(runInside(root, command, { env: { SYSTEMD_OFFLINE: '1' } }).status).not.toBe(0);
  });

  test('systemd-analyze accepts each unit of the commands', () => {
    const named = commandsBy(SYSTEMCTL).flatMap((command) => command.match(/tidemark(?:-backup)?@[\w.*]*/g) ?? []);
    const units = named.map((name) =>
      name
        .replace('*', 'home')
        .replace(/@(?=$|\.)/, '@home')
        .replace(/^[^.]*$/, '$&.service'),
    );
    expect(new Set(units).size).toBeGreaterThan(3);
    const args = [
      `--root=${root}`,
      'verify',
      '--recursive-errors=no',
      '--man=no',
      ...new Set(units.map((unit) => unit.replace('backup@home.service', 'backup@home.timer'))),
    ];
    const { status, stderr } = spawnSync(ANALYZE, args, { encoding: 'utf8' });
    expect([status, stderr.match(/tidemark.*/g) ?? []]).toEqual([0, []]);
  });

  /** The three commands of docs/upgrades.md as one script; each other command alone. */
  const scripts = (): string[] => {
    const all = [...new Set(documentedCommands().map(({ key }) => key))].filter((key) => TRIED[key] === MACHINE);
    const back = all.filter((key) => /^(?:cd \/var|mkdir newer|cp -p newer)/.test(key));
    return [back.join('\n'), ...all.filter((key) => !back.includes(key))];
  };

  const state = (name = ''): string => join(root, 'var/lib/tidemark/home', name);
  const read = (name: string): string => readFileSync(state(name), 'utf8');
  const uid = (): number =>
    Number(/^tidemark-home:[^:]*:(\d+):/m.exec(readFileSync(join(root, 'etc', 'passwd'), 'utf8'))?.[1]);
  const FILES = ['tidemark.db', 'tidemark.db-wal', 'tidemark.db.version-4', 'tidemark.lock'];
  const movedTo = (folder: RegExp): string[] => {
    const [found = ''] = readdirSync(state()).filter((name) => folder.test(name));
    return readdirSync(state(found));
  };
  /** The effect of each command, by a word in it; the first match counts. */
  const EFFECTS: readonly (readonly [word: string, effect: (stdout: string) => void])[] = [
    ['/tidemark_api_key', () => expect(readFileSync(settings('home', 'tidemark_api_key'), 'utf8')).toBe('the-key')],
    [
      '/tidemark_influx_token',
      () => expect(readFileSync(settings('home', 'tidemark_influx_token'), 'utf8')).toBe('the-token'),
    ],
    ['mkdir newer', () => expect([movedTo(/^newer$/), read('tidemark.db')]).toEqual([FILES, 'tidemark.db.version-4'])],
    [
      'before-',
      () => {
        expect(movedTo(/^before-\d+$/)).toEqual(FILES);
        // The page removes them later: `sudo rm -r`.
        const { status, stderr } = runInside(root, 'rm -r /var/lib/tidemark/home/before-*');
        expect([status, stderr, readdirSync(state())]).toEqual([0, '', []]);
      },
    ],
    [
      'chgrp -R',
      () => {
        const group = Number(/^tidemark-home:[^:]*:(\d+):/m.exec(readFileSync(join(root, 'etc/group'), 'utf8'))?.[1]);
        expect(statSync(settings('home', 'tidemark_api_key')).gid).toBe(group);
      },
    ],
    [
      'chown -R',
      () => expect([state(), state('tidemark.db')].map((path) => statSync(path).uid)).toEqual([uid(), uid()]),
    ],
    [
      '2026-11-22',
      () => expect([read('tidemark.db'), statSync(state('tidemark.db')).uid]).toEqual(['the backup', uid()]),
    ],
    ['cp data', () => expect(read('tidemark.db')).toBe('of the checkout')],
    [
      'install -d -o',
      () => {
        const { mode, uid: owner } = statSync(state());
        expect([mode & 0o777, owner]).toEqual([0o700, uid()]);
      },
    ],
    ['install -d', () => expect(statSync(state()).mode & 0o777).toBe(0o700)],
    [
      'tidemark_listen_password',
      () => {
        for (const name of ['home', 'office']) {
          const file = settings(name, 'tidemark.env');
          const line = `TIDEMARK_LISTEN_PASSWORD_FILE=/etc/tidemark/${name}/tidemark_listen_password\n`;
          const text = readFileSync(file, 'utf8');
          expect(text.endsWith(line)).toBe(true);
          writeFileSync(file, text.replace(line, ''));
          const { mode, gid } = statSync(settings(name, 'tidemark_listen_password'));
          expect([mode & 0o777, gid]).toEqual([0o640, statSync(settings(name, 'tidemark_api_key')).gid]);
        }
      },
    ],
    [
      'TIDEMARK_LISTEN',
      () => {
        for (const name of ['home', 'office']) {
          const file = settings(name, 'tidemark.env');
          const text = readFileSync(file, 'utf8');
          expect(text).toMatch(/^TIDEMARK_LISTEN=0\.0\.0\.0:\d+$/m);
          writeFileSync(file, text.replace('TIDEMARK_LISTEN=0.0.0.0:', 'TIDEMARK_LISTEN=127.0.0.1:'));
        }
      },
    ],
    [
      'TIDEMARK_ARCHIVE_MAX_SIZE',
      () => {
        for (const name of ['home', 'office']) {
          const file = settings(name, 'tidemark.env');
          const text = readFileSync(file, 'utf8');
          expect(text).toMatch(/\nTIDEMARK_ARCHIVE_MAX_SIZE=1GiB\n$/);
          writeFileSync(file, text.replace('TIDEMARK_ARCHIVE_MAX_SIZE=1GiB\n', ''));
        }
      },
    ],
    ['for each', (stdout) => expect(stdout).toMatch(/^== home\n[\s\S]*== office\n/)],
  ];

  test.each(scripts())('%s', (script) => {
    const backups = join(root, 'var/backups/tidemark/home');
    for (const folder of [state(), backups, join(root, 'data')]) {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { recursive: true });
    }
    for (const name of FILES) writeFileSync(state(name), name);
    writeFileSync(join(root, 'data', 'tidemark.db'), 'of the checkout');
    writeFileSync(join(root, 'password'), 'the-password');
    writeFileSync(join(backups, '2026-11-22T0315.db'), 'the backup');
    const { status, stdout, stderr } = runInside(root, withoutSudo(script), {
      env: { KEY: 'the-key', TOKEN: 'the-token' },
    });
    expect([status, stderr]).toEqual([0, expect.stringMatching(script.includes('--status') ? /damaged|state/ : /^$/)]);
    const [, effect] = EFFECTS.find(([word]) => script.includes(word)) ?? [];
    if (effect === undefined) throw new Error('the command has no entry in EFFECTS');
    effect(stdout);
  });

  /** A state of home as a daemon has made it, and its owner. */
  const makeState = (): readonly [uid: number, gid: number] => {
    rmSync(state(), { recursive: true, force: true });
    openStore(state()).close();
    expect(runInside(root, 'chown -R tidemark-home:tidemark-home /var/lib/tidemark/home').status).toBe(0);
    const { uid, gid } = statSync(state());
    return [uid, gid];
  };

  test('a backup a day: the copy belongs to the workspace, and the newest ones are kept', () => {
    const service = readFileSync(join(root, 'etc/systemd/system/tidemark-backup@.service'), 'utf8');
    const [, script = ''] = /^ExecStart=\/bin\/sh -euc '(.*)'$/m.exec(service.replaceAll('\\\n', '')) ?? [];
    const owner = makeState();
    const folder = '/var/my backups';
    const backups = join(root, folder, 'home');
    mkdirSync(backups, { recursive: true });
    for (const day of ['01', '02', '03']) writeFileSync(join(backups, `2026-01-${day}T0000.db`), '');
    writeFileSync(join(backups, 'monday.db'), 'named by hand');
    const here = script.replaceAll('$$', '$').replaceAll('%%', '%').replaceAll('%i', 'home');
    const { status, stderr } = runInside(root, `set -u; ${here}`, { env: { KEEP: '3', DIRECTORY: folder } });
    expect([status, stderr]).toEqual([0, '']);
    const [first, second, newest = '', byHand] = readdirSync(backups).sort();
    expect(byHand).toBe('monday.db');
    expect([first, second]).toEqual(['2026-01-02T0000.db', '2026-01-03T0000.db']);
    expect(readFileSync(join(backups, newest), 'latin1')).toMatch(/^SQLite format 3\0/);
    const { uid, gid, mode } = statSync(join(backups, newest));
    expect([uid, gid, mode & 0o777]).toEqual([...owner, 0o600]);
  });

  test('tidemark-workspace runs a command as that user, with each setting as it stands', () => {
    const file = settings('office', 'tidemark.env');
    const before = readFileSync(file);
    // A command reads these values like systemd does for the daemon (systemd.exec, "EnvironmentFile=").
    appendFileSync(
      file,
      [
        'TIDEMARK_SYNC_ALERTS=*/5 * * * *',
        'HTTPS_PROXY=http://proxy.example:3128',
        'TIDEMARK_INFLUX_ORG="My org" \r',
        "TIDEMARK_INFLUX_BUCKET= 'a=b'",
        ';TIDEMARK_API_SHARE=0.1',
        '',
      ].join('\n'),
    );
    // This program prints what it is given.
    const link = join(root, 'opt', 'tidemark', 'workspaces', 'office');
    const main = join(link, 'dist', 'main.js');
    const program = readFileSync(main);
    writeFileSync(
      main,
      `const { argv, env } = process;
      const user = [process.getuid(), process.getgid(), ...process.getgroups()];
      process.stdout.write(JSON.stringify({ argv, env, user }));`,
    );
    const run = (...args: readonly string[]) =>
      spawnSync('/usr/sbin/chroot', [root, '/usr/local/bin/tidemark-workspace', ...args], {
        encoding: 'utf8',
        env: { PATH: '/usr/bin:/bin', OTHER: 'of the shell' },
      });
    const given = (...args: readonly string[]) => {
      const { status, stdout, stderr } = run('office', ...args);
      expect([status, stderr]).toEqual([0, '']);
      return JSON.parse(stdout);
    };
    const { argv, env, user } = given('--status', '--device', 'a b');
    const [, uid, gid] =
      /^tidemark-office:[^:]*:(\d+):(\d+):/m.exec(readFileSync(join(root, 'etc', 'passwd'), 'utf8')) ?? [];
    // Of groups, its own alone.
    expect(user).toEqual([Number(uid), Number(gid), Number(gid)]);
    expect(env).toMatchObject({
      TIDEMARK_SYNC_ALERTS: '*/5 * * * *',
      HTTPS_PROXY: 'http://proxy.example:3128',
      TIDEMARK_INFLUX_ORG: 'My org',
      TIDEMARK_INFLUX_BUCKET: 'a=b',
      TIDEMARK_DATA_DIR: '/var/lib/tidemark/office',
    });
    expect([env.TIDEMARK_API_SHARE, env.OTHER]).toEqual([undefined, undefined]);
    const installed = '/opt/tidemark/workspaces/office';
    expect(argv).toEqual([`${installed}/bin/node`, `${installed}/dist/main.js`, '--status', '--device', 'a b']);
    // Settings without a variable are in a file, which the demo and a file of one's own leave out.
    const second = settings('office', 'tidemark.yaml');
    writeFileSync(second, '');
    const last = (...args: readonly string[]) => given(...args).argv.slice(-2);
    expect(last('status', '--device', 'demo')).toEqual(['--config', '/etc/tidemark/office/tidemark.yaml']);
    expect(last('help', 'check')).toEqual(['help', 'check']);
    expect(last('--log-level=warn', '--demo')).toEqual(['--log-level=warn', '--demo']);
    expect(last('--check', '--config', 'mine.yaml')).toEqual(['--config', 'mine.yaml']);
    rmSync(second);
    writeFileSync(main, program);
    writeFileSync(file, before);
    const unknown = run('nowhere', '--status');
    expect([unknown.status, unknown.stderr]).toEqual([
      2,
      'tidemark-workspace: there is no workspace "nowhere" (workspaces: home office)\n',
    ]);
    // The settings of a removed workspace stay.
    const target = readlinkSync(link);
    rmSync(link);
    const removed = run('office', '--status');
    symlinkSync(target, link);
    expect([removed.status, removed.stdout, removed.stderr]).toEqual([
      2,
      '',
      'tidemark-workspace: workspace "office" is not installed; install it: config/systemd/install.sh office (installed: home)\n',
    ]);
  });

  describe('in a network with the API and the database of the pages', () => {
    const url = 'https://monitoring.example/external/v1';
    const own = { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', NODE_EXTRA_CA_CERTS: '/ca.pem' };
    let api: SimServer;
    let database: Server;
    let network: OwnNetwork;
    beforeAll(async () => {
      const world = createWorld({ seed: 1, originMs: Date.now(), historyMs: 600_000, devices: [] });
      api = await serveSimulator(createSimulator({ world, clock: realClock, settings: { key: { secret: 'a-key' } } }));
      database = createServer((_, answer) => void answer.writeHead(204).end());
      await new Promise<void>((resolve) => void database.listen(0, '127.0.0.1', resolve));
      network = await openNetwork({
        doors: {
          443: { to: api.url, tls: { cert: PAGES_CERTIFICATE, key: PAGES_KEY } },
          8086: { to: `http://127.0.0.1:${(database.address() as AddressInfo).port}` },
        },
      });
      writeFileSync(join(root, 'etc', 'hosts'), '127.0.0.1 localhost monitoring.example influxdb\n');
      mkdirSync(join(root, 'tmp'));
      for (const [name, text] of [
        ['ca.pem', PAGES_CERTIFICATE],
        ['key', 'a-key'],
        ['token', 'a-token'],
      ] as const)
        writeFileSync(join(root, name), text);
    });
    afterAll(async () => {
      network[Symbol.dispose]();
      database.closeAllConnections();
      database.close();
      await api.close();
    });

    test.each(commandsBy(WORKSPACE))('%s: runs as the user of the workspace, with its settings', async (command) => {
      if (!network.isOwn) return;
      const [, , name = ''] = command.split(' ');
      const owner = makeState();
      // The first command of a workspace makes the directory of its state.
      rmSync(join(root, 'var', 'lib', 'tidemark', 'office'), { recursive: true, force: true });
      const file = settings(name, 'tidemark.env');
      const before = readFileSync(file, 'utf8');
      writeFileSync(
        file,
        `${before.replace(/^TIDEMARK_API_URL=.*$/m, `TIDEMARK_API_URL=${url}`)}\nNODE_EXTRA_CA_CERTS=/ca.pem\n`,
      );
      writeFileSync(settings(name, 'tidemark_api_key'), 'a-key');
      const prefix = [...network.prefix, 'chroot', root];
      const { code, stdout, stderr } = await shell(withoutSudo(command), { cwd: '/', env: own, prefix });
      writeFileSync(file, before);
      expect(code, stdout + stderr).toBe(0);
      const [, written] = / (\/var\S+)$/.exec(command) ?? [];
      const said = command.endsWith('--status') ? 'No daemon is running.' : 'checks passed';
      if (written === undefined) return expect(stdout).toContain(said);
      const { uid, gid, mode, size } = statSync(join(root, written));
      expect([uid, gid, mode & 0o777, size > 1000]).toEqual([...owner, 0o600, true]);
    });

    /** Runs `init` for a workspace that has no settings yet, and returns those that it writes. */
    const init = async (command: string, name: string, dialogue: Dialogue) => {
      const folder = join(root, 'etc', 'tidemark', name);
      renameSync(folder, `${folder}.before`);
      try {
        // `script` gives the terminal; it is not in the root.
        const { code, screen } = await talk('chroot "$ROOT" /bin/sh -c "$COMMAND"', dialogue, {
          cwd: '/',
          env: { ...own, ROOT: root, COMMAND: withoutSudo(command) },
          prefix: network.prefix,
        });
        expect(code, screen).toBe(0);
        expect(screen).not.toContain('a-key');
        const [text = '', key] = ['tidemark.env', 'tidemark_api_key'].map((file) =>
          readFileSync(join(folder, file), 'utf8'),
        );
        return { text, key };
      } finally {
        rmSync(folder, { recursive: true, force: true });
        renameSync(`${folder}.before`, folder);
      }
    };

    test.each(commandsBy(WORKSPACE_INIT))('%s: writes the settings', async (command) => {
      if (!network.isOwn) return;
      const [, name = ''] = /tidemark-workspace (\w+) /.exec(command) ?? [];
      const isAsked = !command.includes('--api-url');
      const dialogue: Dialogue = [
        ['Address of the API', url],
        ['Workspace API key', 'a-key'],
        ['Address of InfluxDB or VictoriaMetrics', ''],
        ['History', '30d'],
      ];
      const { text, key } = await init(command, name, isAsked ? dialogue : []);
      expect([text, key]).toEqual([expect.stringContaining(`TIDEMARK_API_URL=${url}\n`), 'a-key\n']);
      expect(text.includes('TIDEMARK_INFLUX_URL=http://127.0.0.1:8086\n')).toBe(!isAsked);
    });
  });
});
