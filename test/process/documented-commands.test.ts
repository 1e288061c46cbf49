/**
 * Runs the documented commands unchanged: those of this program in a checkout, against a simulated API; those that
 * change files in a separate directory; those that need a server until they fail to connect. tried-commands.ts lists
 * how each command is tested; a command that is missing there fails here.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../src/core/time.ts';
import { ATTACKS } from '../attacks/attackers.ts';
import { commandsOf, documentedKeys, isCommand, isUnknown, PAGES, spansOf } from '../support/documented-commands.ts';
import { openNetwork } from '../support/own-network.ts';
import {
  BY_HAND,
  CHECKOUT,
  CI,
  COMPOSE_PODMAN,
  INSTALLED,
  JOURNAL,
  LIVES,
  NO_SERVER,
  PACKAGES,
  PODMAN,
  RELEASE,
  ROOTS,
  SHELL,
  TRIED,
  type Tried,
} from '../support/tried-commands.ts';
import { type Ended, KEY, MAIN, openStage, ROOT, type Stage } from './support.ts';

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
    expect(rows.length).toBeGreaterThan(15);
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
      (page.split('```').find((block) => block.includes(word)) ?? '').split('\n'),
    );
    expect(words).toHaveLength(4);
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

/** The commands that are tested in one way. */
const commandsBy = (how: Tried): string[] => Object.keys(TRIED).filter((command) => TRIED[command] === how);
const has = (program: string): boolean => existsSync(join('/usr/bin', program));
/** Whether a program is installed. CI installs it; another machine may not have it. */
const needed = (program: string): boolean => {
  if (!has(program) && process.env['CI']) throw new Error(`${program} is missing`);
  return has(program);
};

interface Where {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly prefix?: readonly string[];
}

/** Runs a command by the shell to its end. */
async function shell(command: string, { cwd, env = {}, input = '', prefix = [] }: Where): Promise<Ended> {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env;
  const [program = '', ...args] = [...prefix, '/bin/sh', '-c', command];
  const child = spawn(program, args, {
    cwd,
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => {}).end(input);
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  }
  return await new Promise(
    (resolve) => void child.once('close', (code, signal) => resolve({ code, signal, ...texts })),
  );
}

async function inDirectory(run: (cwd: string) => Promise<void>): Promise<void> {
  const cwd = mkdtempSync(join(tmpdir(), 'tidemark-commands-'));
  try {
    await run(cwd);
  } finally {
    chmodSync(cwd, 0o700);
    rmSync(cwd, { recursive: true, force: true });
  }
}

test.runIf(needed('jq'))('commands that read a journal find the lines that the page promises', async () => {
  await inDirectory(async (cwd) => {
    const lines = [
      { level: 'info', event: 'poll-summary', msg: 'telemetry: 1 new reading' },
      { time: 'T', level: 'warn', event: 'delivery-blocked', destination: 'influx', msg: 'Delivery blocked' },
    ];
    const input = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const found = commandsBy(JOURNAL).map((command) => command.slice(command.indexOf('| ') + 2));
    expect(found).toHaveLength(2);
    const outputs = await Promise.all(found.map(async (jq) => (await shell(jq, { cwd, input })).stdout));
    expect(outputs).toEqual(['T\tinflux\tDelivery blocked\n', `${JSON.stringify(lines[1])}\n`]);
  });
});

describe('in a checkout, with a state that a run has left', () => {
  let stage: Stage;
  let env: Readonly<Record<string, string>>;
  beforeAll(async () => {
    const devices = ['hub-1', 'hub-2', 'hub-17'].map((deviceId) => ({ deviceId, intervalMs: HOUR_MS }));
    const settings = { plan: { historyMaxDays: null } };
    stage = await openStage({ devices, historyMs: 3 * DAY_MS, settings });
    const { code, stderr } = await stage.run(['--once']);
    expect(code, stderr).toBe(0);
    cpSync(stage.dataDir, join(stage.directory, 'left'), { recursive: true });
    for (const name of ['tidemark', 'bin']) mkdirSync(join(stage.directory, name));
    for (const name of ['package.json', 'src', 'node_modules'])
      symlinkSync(join(ROOT, name), join(stage.directory, 'tidemark', name));
    // As the image has it.
    symlinkSync(MAIN, join(stage.directory, 'bin', 'tidemark'));
    const path = [join(stage.directory, 'bin'), dirname(process.execPath), process.env['PATH']].join(':');
    env = { ...stage.env, HOME: stage.directory, PATH: path, TIDEMARK_LISTEN: '127.0.0.1:0' };
  });
  afterAll(async () => await stage[Symbol.asyncDispose]());

  const run = async (command: string): Promise<string> => {
    rmSync(stage.dataDir, { recursive: true });
    cpSync(join(stage.directory, 'left'), stage.dataDir, { recursive: true });
    const cwd = join(stage.directory, 'tidemark');
    const { code, stdout, stderr } = await shell(command, { cwd, env });
    expect(code, stdout + stderr).toBe(0);
    expect(stderr).not.toContain('This is a bug');
    return stdout;
  };
  /** The file that a command redirects its output to. */
  const writes = (command: string): string => / > (\w[\w.]*)$/.exec(command)?.[1] ?? '';

  test.each(commandsBy(CHECKOUT))('%s', async (command) => {
    // cron reads five fields, and `\%` as `%`.
    const isCron = command.startsWith('0 3 * * * ');
    const stdout = await run(isCron ? command.slice('0 3 * * * '.length).replaceAll('\\%', '%') : command);
    const place = join(stage.directory, 'tidemark');
    if (isCron) expect(readdirSync(join(place, 'backups'))).toEqual([`${new Date().toISOString().slice(0, 10)}.db`]);
    else
      expect(
        (writes(command) === '' ? stdout : readFileSync(join(place, writes(command)), 'utf8')).length,
      ).toBeGreaterThan(50);
  });

  test('the installed program prints the documented output', async () => {
    const place = join(stage.directory, 'tidemark');
    const lines: Record<string, number> = {};
    for (const command of commandsBy(INSTALLED)) lines[command] = (await run(command)).trimEnd().split('\n').length;
    expect(lines).toMatchObject({
      'tidemark --export csv --from 1d | head -4': 4,
      'tidemark --export ndjson --from 1d | head -1': 1,
      'tidemark --export lp | grep ^telemetry | head -1': 1,
      'tidemark --export csv --from 1d --json > day.csv': 1,
    });
    expect(statSync(join(place, 'monday.db')).size).toBeGreaterThan(4096);
    expect(readFileSync(join(place, 'day.csv'), 'utf8')).toMatch(/^time,device_id,device_name,sensor,value,type\r?\n/);
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
  });
});

test('commands that need a server fail only to connect', async () => {
  await inDirectory(async (cwd) => {
    using network = await openNetwork();
    for (const name of ['secrets', 'config/prometheus', 'grafana']) mkdirSync(join(cwd, name), { recursive: true });
    const found = commandsBy(NO_SERVER).filter((command) => needed(command.split(' ')[0] ?? ''));
    for (const command of found) {
      const { code, stderr } = await shell(command, { cwd, prefix: network.prefix });
      expect([command, code === 0]).toEqual([command, false]);
      expect(stderr, command).toMatch(/connection refused|cannot create snapshot|partial context|not supported/i);
      expect(stderr, command).not.toMatch(/unknown|unrecognized|not defined|usage/i);
    }
    const [started = ''] = Object.keys(TRIED).filter((command) => command.startsWith('victoria-metrics '));
    if (!needed('victoria-metrics')) return;
    const flags = (
      spawnSync('victoria-metrics', ['-help'], { encoding: 'utf8' }).stdout.match(/^ {2}-[\w.]+/gm) ?? []
    ).map((flag) => flag.trim());
    const used = (text: string): string[] => text.match(/-[\w.]+(?==)/g) ?? [];
    expect(used(started)).toHaveLength(4);
    expect(used(started).filter((flag) => !flags.includes(flag))).toEqual([]);
  });
});

test.runIf(has('podman'))('podman accepts the arguments of the Docker commands', async () => {
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

test.each([...commandsBy(BY_HAND), ...commandsBy(LIVES)])('the script has the options and names of %s', (command) => {
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

test.runIf(has('ssh'))('the tunnel is one that ssh understands', async () => {
  const tunnel = Object.keys(TRIED).find((command) => command.startsWith('ssh ')) ?? '';
  const { code, stdout } = await shell(tunnel.replace('ssh ', 'ssh -G '), { cwd: tmpdir() });
  expect([code, stdout]).toEqual([0, expect.stringMatching(/localforward .*9464.*127\.0\.0\.1.*9464/)]);
});
