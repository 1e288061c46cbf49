/**
 * Runs the documented commands of other programs unchanged: those that change files in a separate directory, those that
 * need a server in a network with that server. tried-commands.ts lists how each command is tested; a command that is
 * missing there fails here.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { HOUR_MS } from '../../src/core/time.ts';
import { ATTACKS } from '../attacks/attackers.ts';
import { commandsOf, documentedKeys, isCommand, isUnknown, PAGES, spansOf } from '../support/documented-commands.ts';
import { openNetwork } from '../support/own-network.ts';
import { background, needed, shell } from '../support/run-command.ts';
import {
  BY_HAND,
  CHCON,
  CI,
  COMPOSE_PODMAN,
  commandsBy,
  JOURNAL,
  PACKAGES,
  PODMAN,
  RELEASE,
  ROOTS,
  SERVER,
  SERVERS,
  SHELL,
  TRIED,
} from '../support/tried-commands.ts';
import { KEY, ROOT } from './support.ts';

const text = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

describe('the list', () => {
  test('contains exactly the commands of the pages', () => {
    expect(Object.keys(TRIED).toSorted()).toEqual(documentedKeys());
  });

  test('misses no span that looks like a command', () => {
    const unknown = PAGES.flatMap((page) =>
      spansOf(text(page)).map(({ key, line }) => ({ key, where: `${page}:${line}` })),
    );
    expect(unknown.filter(({ key }) => isUnknown(key))).toEqual([]);
  });

  test('names the test of each command', () => {
    for (const [command, tried] of Object.entries(TRIED)) {
      const words = Object.values(tried).join();
      const paths = words.match(/\.ci\/run|(?:\.github|config|test)\/[\w./-]*\w/g) ?? [];
      expect([command, paths.filter((path) => !existsSync(join(ROOT, path)))]).toEqual([command, []]);
      expect([command, paths.length > 0 || words.includes('not at hand')]).toEqual([command, true]);
    }
  });

  test('names only tests that take their commands from the pages', () => {
    const files = Object.values(TRIED).flatMap((tried) => ('runs' in tried ? [tried.runs.split(/[, ]/)[0] ?? ''] : []));
    const takes = /documentedKeys|tried-commands\.ts|readFileSync\(join\(ROOT, 'docs', page\)/;
    const without = [...new Set(files)].filter((file) => file.endsWith('.ts') && !takes.test(text(file)));
    expect(without).toEqual([]);
  });

  test('names a test with the same flags where a command is not run unchanged', () => {
    const rows = Object.entries(TRIED).flatMap(([command, tried]) => {
      const words = Object.values(tried).join();
      const isOfProgram = /^(?:npm start|tidemark) .*--/.test(command) && !('runs' in tried);
      const files = words.match(/test\/[\w./-]+\.test\.ts/g) ?? [];
      return isOfProgram && !words.includes('test/docs.test.ts') ? [{ command, files }] : [];
    });
    expect(rows.length).toBeGreaterThan(2);
    const missing = rows.flatMap(({ command, files }) => {
      const own = (command.split(' | ')[0] ?? '').replace(/^npm start(?: --silent)? --/, '');
      const source = files.map(text).join('');
      return (own.match(/ --[\w-]+/g) ?? [])
        .filter((flag) => !source.includes(`${flag.trim()}'`))
        .map((flag) => command + flag);
    });
    expect(missing).toEqual([]);
  });

  test('assigns to CI and test:roots only commands that they run', () => {
    const workflows = [
      '.ci/run',
      '.github/workflows/check.yml',
      '.github/workflows/pins.yml',
      '.github/workflows/release.yml',
    ];
    const scripts = workflows.map(text).join('\n').replaceAll('--silent ', '');
    const parts = [...commandsBy(CI), ...commandsBy(RELEASE)].flatMap((command) => command.split(' && '));
    expect(parts.length).toBeGreaterThan(4);
    expect(parts.filter((part) => !scripts.includes(part))).toEqual([]);
    // roots.ts runs the complete block that contains a word.
    const words = [...text('test/image/roots.ts').matchAll(/commands\(\s*'([\w.]+)',\s*'([^']+)'/g)];
    const blocks = words.map(([, page = '', word = '']) => [text(`docs/${page}`), word.replace('\\n', '\n')] as const);
    const ran = blocks.flatMap(([page, word]) =>
      (page.split('```').find((block) => block.includes(word)) ?? '').split('\n').map((line) => line.trim()),
    );
    expect(words).toHaveLength(5);
    expect([...commandsBy(ROOTS), ...commandsBy(COMPOSE_PODMAN)].filter((command) => !ran.includes(command))).toEqual(
      [],
    );
  });
});

describe('commands are found', () => {
  test('in blocks without a language, as one where they are continued, loop or embed a file', () => {
    const page = [
      '```',
      'npm start -- --plan \\',
      '  --json   # why',
      "anything 'a  b'",
      '# a remark',
      'cat > x <<END',
      'y # no remark',
      'END',
      'for each in 1 2; do',
      '  echo "$each"   # or: this',
      'done',
      '```',
      '```console',
      '$ tidemark --status',
      'Tidemark',
      '```',
      '```text',
      'npm',
      '```',
      '```yaml',
      'npm: x',
      '```',
    ].join('\n');
    expect(commandsOf(page)).toEqual([
      'npm start -- --plan --json',
      "anything 'a  b'",
      'cat > x <<END',
      'for each in 1 2; do echo "$each" done',
      'this',
      'tidemark --status',
    ]);
  });

  test('in the text, by their program', () => {
    const spans = (page: string) => spansOf(page).map(({ key, line }) => [line, key, isCommand(key), isUnknown(key)]);
    expect(spans('Run `npm\nstart` or `sudo -x`, see `npm`.\n| `A=1 curl -s x \\| jq .` |')).toEqual([
      [1, 'npm start', true, false],
      [2, 'sudo -x', true, false],
      [2, 'npm', false, false],
      [3, 'A=1 curl -s x | jq .', true, false],
    ]);
    const unknown = ['rsync a b', 'nameless --flag', './some/script x', 'sudo wget x', 'one && two', 'one | two'];
    expect(unknown.filter((each) => !isUnknown(each))).toEqual([]);
    const none = ['sum by (x) (y) > 0', 'a - b', 'in use', 'Polling stopped: …', 'restart: on-failure:5'];
    expect(none.filter((each) => isUnknown(each) || isCommand(each))).toEqual([]);
  });
});

async function inDirectory(run: (cwd: string) => Promise<void>): Promise<void> {
  const cwd = mkdtempSync(join(tmpdir(), 'tidemark-commands-'));
  try {
    await run(cwd);
  } finally {
    chmodSync(cwd, 0o700);
    rmSync(cwd, { recursive: true, force: true });
  }
}

test('a missing program is an error in CI, and leaves tests out elsewhere', () => {
  try {
    vi.stubEnv('CI', 'true');
    expect(needed('sh')).toBe(true);
    expect(() => needed('sh', 'no-such-program')).toThrow('no-such-program: not installed');
    vi.stubEnv('CI', '');
    expect(needed('sh', 'no-such-program')).toBe(false);
  } finally {
    vi.unstubAllEnvs();
  }
});

test.runIf(needed('jq'))('commands that read a journal find the lines that the page promises', async () => {
  await inDirectory(async (cwd) => {
    const lines = [
      { level: 'info', event: 'poll-summary', msg: 'telemetry: 1 new reading' },
      { time: 'T', level: 'warn', event: 'delivery-blocked', destination: 'influx', msg: 'Delivery blocked' },
    ];
    const input = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const found = commandsBy(JOURNAL);
    expect(found).toHaveLength(2);
    const outputs = await Promise.all(
      found.map(async (command) => {
        const jq = command.slice(command.indexOf('| ') + 2);
        // journald has the lines of systemd as well.
        const others = command.startsWith('journalctl ') ? 'Started tidemark@home.service\n' : '';
        return (await shell(jq, { cwd, input: others + input })).stdout;
      }),
    );
    expect(outputs).toEqual(['T\tinflux\tDelivery blocked\n', `${JSON.stringify(lines[1])}\n`]);
  });
});

test.runIf(needed('jq'))('commands that change files change them', async () => {
  await inDirectory(async (place) => {
    const git = (cwd: string, ...args: string[]): void => {
      const who = ['-c', 'user.name=a', '-c', 'user.email=a@b'];
      expect(spawnSync('git', [...who, ...args], { cwd, encoding: 'utf8' })).toMatchObject({ status: 0 });
    };
    const [cwd, origin] = [join(place, 'checkout'), join(place, 'origin')];
    mkdirSync(origin);
    git(origin, 'init', '-q');
    git(origin, 'commit', '-q', '--allow-empty', '-m', 'One');
    git(place, 'clone', '-q', origin, cwd);
    writeFileSync(join(origin, 'newer'), '');
    git(origin, 'add', 'newer');
    git(origin, 'commit', '-q', '-m', 'Two');
    cpSync(join(ROOT, 'config'), join(cwd, 'config'), { recursive: true });
    mkdirSync(join(cwd, 'grafana'), { mode: 0o700 });
    const log = { level: 'info', event: 'poll-summary', stream: 'telemetry', new_points: 2 };
    const input = `${JSON.stringify(log)}\n${JSON.stringify(log)}\n`;
    writeFileSync(join(cwd, 'tidemark.log'), input);
    const env = { KEY, TOKEN: 'token' };
    // Directories first, then what is written into them, and last what is done with that.
    const order = /^mkdir|^printf/;
    const rank = (command: string): number => ['mkdir', 'printf', ''].indexOf(order.exec(command)?.[0] ?? '');
    for (const command of commandsBy(SHELL).toSorted((a, b) => rank(a) - rank(b))) {
      const { code, stderr } = await shell(command, { cwd, env, input });
      expect(code, `${command}: ${stderr}`).toBe(0);
    }
    expect(readFileSync(join(cwd, 'secrets/tidemark_api_key'), 'utf8')).toBe(KEY);
    expect(readFileSync(join(cwd, 'key'), 'utf8')).toBe(input);
    const modes = ['secrets', 'secrets/tidemark_api_key', 'grafana', 'key'].map(
      (name) => statSync(join(cwd, name)).mode & 0o777,
    );
    expect(modes).toEqual([0o700, 0o644, 0o755, 0o600]);
    expect(readFileSync(join(cwd, '.env'), 'utf8')).toContain('TIDEMARK_API_URL=https://');
    expect(existsSync(join(cwd, 'newer'))).toBe(true);
    // As the page puts it: of the earlier commit.
    git(cwd, 'checkout', '-q', 'HEAD~1');
    expect(existsSync(join(cwd, 'newer'))).toBe(false);
  });
});

test.runIf(needed('victoria-metrics', 'vmbackup', 'prometheus-alertmanager', 'amtool', 'curl'))(
  'commands that need a server find it at the address of the page',
  async () => {
    await inDirectory(async (cwd) => {
      using network = await openNetwork({ empty: ['/var/lib/victoria-metrics', '/mnt'] });
      if (!network.isOwn) return;
      const { prefix } = network;
      const run = async (command: string): Promise<string> => {
        let ended = await shell(command, { cwd, prefix });
        // A vmbackup that has as little to copy as here may end before its own server has started, and panics
        // then, after the backup (lib/httpserver of VictoriaMetrics 1.79).
        for (
          let tries = 1;
          tries < 20 && /BUG: there is no http server/.test(ended.stdout + ended.stderr);
          tries += 1
        ) {
          ended = await shell(command, { cwd, prefix });
        }
        const { code, stdout, stderr } = ended;
        expect(code, `${command}\n${stdout}${stderr}`).toBe(0);
        return stdout;
      };
      writeFileSync(join(cwd, 'alerts.yml'), 'route: { receiver: nobody }\nreceivers: [{ name: nobody }]\n');
      const alertmanager =
        'prometheus-alertmanager --config.file=alerts.yml --storage.path=. --cluster.listen-address=';
      const isServer = (command: string): boolean => command.endsWith(' &');
      const servers = [...commandsBy(SERVERS).filter(isServer), alertmanager];
      expect(servers).toHaveLength(2);
      const started = servers.map((command) => background(command, { cwd, prefix }));
      try {
        await run(
          'for url in 8428/health 9093/-/ready; do curl -s --retry 300 --retry-all-errors --retry-delay 0 --retry-max-time 60 -f http://127.0.0.1:$url; done',
        );
        for (const command of commandsBy(SERVERS).filter((each) => !isServer(each))) await run(command);
        const [silence] = JSON.parse(await run('curl -fs http://127.0.0.1:9093/api/v2/silences'));
        const matchers = silence.matchers.map(({ name, value }: { name: string; value: string }) => `${name}=${value}`);
        expect(matchers.toSorted()).toEqual(['alertname=TidemarkTargetVanished', 'workspace=home']);
        // amtool reads the clock twice.
        expect((Date.parse(silence.endsAt) - Date.parse(silence.startsAt)) / HOUR_MS).toBeCloseTo(25, 1);
        expect(await run('ls /mnt/metrics')).toContain('backup_complete.ignore');
      } finally {
        for (const stop of started) stop();
      }
    });
  },
);

test.runIf(needed('victoria-metrics', 'curl')).each(commandsBy(SERVER))(
  '%s answers with its settings',
  async (command) => {
    await inDirectory(async (cwd) => {
      using network = await openNetwork();
      if (!network.isOwn) return;
      const { prefix } = network;
      const stop = background(command, { cwd, prefix, env: { HOME: cwd } });
      try {
        const flags =
          'curl -fs --retry 300 --retry-all-errors --retry-delay 0 --retry-max-time 60 http://127.0.0.1:8428/flags';
        const { code, stdout, stderr } = await shell(flags, { cwd, prefix });
        expect(code, stderr).toBe(0);
        expect(stdout).toContain('dedup.minScrapeInterval="1ms"');
        expect(stdout).toContain('retentionPeriod="100y"');
        expect(existsSync(join(cwd, 'tidemark-vm'))).toBe(true);
      } finally {
        stop();
      }
    });
  },
);

test('chcon knows the options of the pages, and fails only because nothing here has a label', async () => {
  await inDirectory(async (cwd) => {
    for (const name of ['secrets', 'config/prometheus', 'grafana']) mkdirSync(join(cwd, name), { recursive: true });
    const found = commandsBy(CHCON);
    expect(found).toHaveLength(2);
    for (const command of found) {
      const { code, stderr } = await shell(command, { cwd });
      expect([command, code]).toEqual([command, 1]);
      expect(stderr).toMatch(/partial context|not supported/i);
      expect(stderr).not.toMatch(/unrecognized|invalid|usage|Try /i);
    }
  });
});

test.runIf(needed('podman'))('podman accepts the arguments of the Docker commands', async () => {
  await inDirectory(async (cwd) => {
    for (const name of ['tidemark.db', 'Dockerfile']) writeFileSync(join(cwd, name), 'FROM scratch\n');
    mkdirSync(join(cwd, 'config'));
    writeFileSync(join(cwd, 'config/tidemark.env'), 'A=1\n');
    const isName = (command: string): boolean => command.split(' ').length === 2;
    const help = spawnSync('podman', ['--help'], { encoding: 'utf8' }).stdout;
    const names = commandsBy(PODMAN).filter(isName);
    expect(names.length).toBeGreaterThan(3);
    // podman hides buildx, which is its build.
    const missing = names.filter(
      (name) => !help.includes(`\n  ${name.slice('docker '.length).replace('buildx', 'build')} `),
    );
    expect(missing).toEqual([]);
    for (const command of [...commandsBy(PODMAN).filter((each) => !isName(each)), 'docker run --nonsense x']) {
      // podman parses a command before it connects to an engine, and there is none.
      const asked = command
        .replaceAll(' && ', '; ')
        .replace(/ 2> \S+$/, '')
        .replaceAll(/\bdocker (?=\w)/g, 'podman --remote --url unix:///nowhere ');
      const { stderr } = await shell(asked, { cwd });
      const isWrong = command.includes('--nonsense');
      const found = [/unable to connect to Podman socket/, /unknown|unrecognized/i].map((words) => words.test(stderr));
      expect([command, ...found], stderr).toEqual([command, !isWrong, isWrong]);
    }
  });
});

test.each(commandsBy(BY_HAND))('the script has the options and names of %s', (command) => {
  const words = (command.split(' && ').at(-1) ?? '').split(' ');
  // `npm run NAME` starts the script at the end of its line in package.json.
  const line = JSON.parse(text('package.json')).scripts[words[2] ?? ''] as string | undefined;
  const script = words.find((word) => word.endsWith('.ts')) ?? line?.split(' ').at(-1) ?? '';
  const source = text(script);
  const options = words.filter((word) => /^--\w/.test(word)).map((word) => word.slice(2));
  expect(options.filter((name) => !new RegExp(`\\b${name}: \\{ type`).test(source))).toEqual([]);
  const figures = words.filter((word, at) => words[at - 1] === '--only' && word !== 'NAME');
  expect(figures.filter((name) => !source.includes(`'${name}'`))).toEqual([]);
});

test('the attacks on the pages exist', () => {
  const names = commandsBy(BY_HAND).flatMap((command) => /attacks\/run\.ts ([\w-]+) /.exec(command)?.[1] ?? []);
  expect(names.length).toBeGreaterThan(0);
  expect(Object.keys(ATTACKS)).toEqual(expect.arrayContaining(names));
});

test('the tests install the packages on the pages', () => {
  const installed = `${text('.ci/run')}${text('test/image/roots.ts')}${text('.github/workflows/release.yml')}`;
  const named = commandsBy(PACKAGES).flatMap((command) => command.split(' ').slice(2));
  expect(named.length).toBeGreaterThan(6);
  expect(named.filter((name) => !new RegExp(`[\\s']${name}[\\s':]`).test(installed))).toEqual([]);
});

const TUNNELS = Object.keys(TRIED).filter((command) => command.startsWith('ssh -L'));

test.runIf(needed('ssh')).each(TUNNELS)('ssh understands %s', async (command) => {
  const { code, stdout } = await shell(command.replace('ssh ', 'ssh -G '), { cwd: tmpdir() });
  const port = /-L (\d+)/.exec(command)?.[1];
  expect([code, stdout]).toEqual([0, expect.stringMatching(`localforward .*${port}.*127\\.0\\.0\\.1.*${port}`)]);
});
