/**
 * config/systemd: the script installs into a root that has nothing but the C library, as a plain Debian without Node;
 * systemd's own reader finds the unit right there, and what the unit starts runs as its user, with its environment.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { hostname, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { documentedCommands } from '../support/documented-commands.ts';
import { ANALYZE, available, fillRoot, installFrom } from './systemd-root.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Runs the real systemctl, which contacts no systemd and changes nothing with this variable. */
const systemctl = (line: string) =>
  spawnSync('/usr/bin/systemctl', line.split(' '), { encoding: 'utf8', env: { SYSTEMD_OFFLINE: '1' } });

describe.runIf(available())('the installation for systemd', () => {
  let place: string;
  let root: string;
  const install = (...args: readonly string[]) => installFrom(place, ...args);
  const settings = (name: string, file: string): string => join(root, 'etc', 'tidemark', name, file);
  const unit = (): string => readFileSync(join(root, 'etc', 'systemd', 'system', 'tidemark@.service'), 'utf8');

  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), 'tidemark-systemd-'));
    root = fillRoot(place);
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
