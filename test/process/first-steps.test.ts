/**
 * The first commands of a new user, unchanged and in the order of the pages, in a separate checkout and network: the
 * simulated API, `init` on a terminal, the daemon, a configuration to try, and the demo with a state that stays.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Dialogue, talk } from '../support/dialogue.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { openNetwork } from '../support/own-network.ts';
import { environment, needed } from '../support/run-command.ts';
import { commandsBy, FIRST_STEPS, INIT_WORDS, TRIED } from '../support/tried-commands.ts';
import { ROOT, until } from './support.ts';

/** The commands in the order of the pages, each once. */
const STEPS = [...new Set(documentedCommands().map(({ key }) => key))].filter((key) => TRIED[key] === FIRST_STEPS);
const KEY = 'sim_0123456789abcdef0123456789abcdef';

interface Place {
  readonly cwd: string;
  readonly prefix: readonly string[];
}

/** A command in the background: in a group of its own, as a terminal starts it. */
interface Background extends AsyncDisposable {
  readonly child: ChildProcess;
  text(): string;
  /** Ctrl-C. */
  interrupt(): Promise<void>;
}

function begin(command: string, { cwd, prefix }: Place): Background {
  const [program = '', ...args] = [...prefix, '/bin/sh', '-c', command];
  const child = spawn(program, args, { cwd, env: environment(), stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  }
  const ended = new Promise((resolve) => void child.once('close', resolve));
  const kill = (signal: NodeJS.Signals): void => {
    try {
      process.kill(-(child.pid ?? 0), signal);
    } catch {
      // No part of it is left.
    }
  };
  const onExit = (): void => kill('SIGKILL');
  process.once('exit', onExit);
  return {
    child,
    text: () => text,
    interrupt: async () => {
      kill('SIGINT');
      await ended;
    },
    [Symbol.asyncDispose]: async () => {
      process.off('exit', onExit);
      kill('SIGKILL');
      await ended;
    },
  };
}

/** Runs a command to its end, and expects exit code 0. */
async function run(command: string, place: Place): Promise<string> {
  await using started = begin(command, place);
  await until(`it ends: ${command}`, () => started.child.exitCode !== null);
  await started.interrupt();
  expect(started.child.exitCode, `${command}\n${started.text()}`).toBe(0);
  return started.text();
}

/** Starts a command, waits for words in its output, runs `act`, and interrupts the command by Ctrl-C. */
async function during(command: string, words: RegExp, place: Place, act = async () => {}): Promise<string> {
  await using started = begin(command, place);
  await until(`${command}: ${words}`, () => words.test(started.text()) || started.child.exitCode !== null);
  expect(started.text()).toMatch(words);
  await act();
  await started.interrupt();
  // The signal ends npm and the shell; the program stops by itself.
  expect(started.text()).toMatch(/Tidemark stopped"\}\s*$/);
  return started.text();
}

test('npm start before npm ci names npm ci', () => {
  const { start }: { start: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts;
  const cwd = mkdtempSync(join(tmpdir(), 'tidemark-first-'));
  try {
    const { status, stderr } = spawnSync('sh', ['-c', start], { cwd, encoding: 'utf8' });
    expect([status, stderr]).toEqual([1, 'Run npm ci first.\n']);
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});

test.runIf(needed('script', 'curl'))('the first steps on the pages work as they stand', async () => {
  using network = await openNetwork();
  const parent = mkdtempSync(join(tmpdir(), 'tidemark-first-'));
  const cwd = join(parent, 'tidemark');
  mkdirSync(cwd);
  const place: Place = { cwd, prefix: network.prefix };
  const left = new Set(STEPS);
  /** The next command, from the page. */
  const step = (beginning: string): string => {
    const found = left.has(beginning) ? beginning : STEPS.find((each) => left.has(each) && each.startsWith(beginning));
    if (found === undefined) throw new Error(`no page shows ${beginning}`);
    left.delete(found);
    return found;
  };
  const answered = async (command: string, dialogue: Dialogue): Promise<string> => {
    const { code, screen } = await talk(command, dialogue, { ...place, env: environment() });
    expect(code, screen).toBe(0);
    expect(screen).not.toContain(KEY);
    return screen;
  };
  try {
    for (const name of ['package.json', 'src', 'node_modules']) symlinkSync(join(ROOT, name), join(cwd, name));
    await using api = begin(step('npm start -- --demo --api-only'), place);
    await until('it serves', () => api.text().includes('API key: ') || api.child.exitCode !== null);
    const url = /^Simulated API: (\S+)$/m.exec(api.text())?.[1] ?? '';
    expect(api.text()).toContain(`API key: ${KEY}\n`);

    const workspace: Dialogue = [
      ['Address of the API', url],
      ['Workspace API key', KEY],
    ];
    const screen = await answered(step('npm start -- init'), [
      ...workspace,
      ['Address of InfluxDB or VictoriaMetrics', ''],
      ['History', '2h'],
    ]);
    expect(screen).toMatch(/The key is valid for workspace .* \(32 devices\)\./);
    expect(screen).toMatch(/Start it: {2}npm start/);
    const config = join(cwd, 'config/tidemark.yaml');
    expect(statSync(config).mode & 0o777).toBe(0o600);
    expect(readFileSync(config, 'utf8')).toContain(url);
    expect(readFileSync(config, 'utf8')).not.toContain(KEY);
    expect(await run(step('npm start -- --check'), place)).toContain('checks passed');
    await during(step('npm start'), /"status_page":"http:\/\/127\.0\.0\.1:9464\/"/, place, async () => {
      // curl exits with 0 when the daemon is ready, else with 22.
      const asked = begin(step('curl'), place);
      await until('curl ends', () => asked.child.exitCode !== null);
      expect([0, 22]).toContain(asked.child.exitCode);
    });
    expect(existsSync(join(cwd, 'data/tidemark.db'))).toBe(true);
    const logged = begin(step('npm start 2> tidemark.log'), place);
    const log = (): string => readFileSync(join(cwd, 'tidemark.log'), 'utf8');
    await until('the log is written', () => existsSync(join(cwd, 'tidemark.log')) && log().includes('"status_page"'));
    await logged.interrupt();
    expect(log()).toMatch(/Tidemark stopped"\}\s*$/);
    // Those in a block, in their order.
    const byHand = [' init --config try/tidemark.yaml --data-dir', ' -- --config try/'];
    const tried: string[] = [];
    for (const next of [...left].filter((each) => each.includes('try/') && !byHand.some((text) => each.includes(text))))
      tried.push(await run(step(next), place));
    expect(tried.at(-1)).toMatch(/All 3\d devices are complete\./);
    await during(step('npm start -- --config try/'), /"status_page":"http:\/\/127\.0\.0\.1:9464\/"/, place);
    await answered(step('npm start -- init --config try/tidemark.yaml --data-dir try/data'), [
      ['Replace?', 'y'],
      ...workspace,
      ['Address of InfluxDB or VictoriaMetrics', ''],
      ['History', '1d'],
    ]);

    // A second workspace: beside compose.yaml, in the list of the checkout, and in one of the owner.
    cpSync(join(ROOT, 'compose.yaml'), join(cwd, 'compose.yaml'));
    cpSync(join(ROOT, 'config'), join(cwd, 'config'), { recursive: true });
    await answered(step('npm start -- init --workspace office'), [...workspace, ['History', '']]);
    expect(readFileSync(join(cwd, 'compose.workspace-office.yaml'), 'utf8')).toContain(url);
    const pod: Dialogue = [
      ...workspace,
      ['Address of InfluxDB or VictoriaMetrics', ''],
      ['Token', ''],
      ['History', ''],
    ];
    await answered(step('npm start -- init --workspace office --for kubernetes'), pod);
    expect(readFileSync(join(cwd, 'config/kubernetes/workspaces/office/kustomization.yaml'), 'utf8')).toContain(url);
    const fleet = join(cwd, '../fleet/workspaces');
    mkdirSync(join(cwd, '../fleet'));
    cpSync(join(ROOT, 'config/kubernetes/workspaces'), fleet, { recursive: true });
    for (const words of commandsBy(INIT_WORDS)) {
      await answered(`npm start -- ${words.replace('NAME', 'barn')}`, pod);
      const [, name = ''] = /--workspace (\w+)/.exec(words.replace('NAME', 'barn')) ?? [];
      expect(readFileSync(join(fleet, name, 'kustomization.yaml'), 'utf8')).toContain(url);
    }
    await api.interrupt();
    expect(api.text()).toContain('Tidemark stopped');

    writeFileSync(join(cwd, 'token'), 'a token');
    await during(step('TIDEMARK_DATA_DIR=./demo-data '), /^Status page: http:/m, place);
    expect(existsSync(join(cwd, 'demo-data/tidemark.db'))).toBe(true);
    expect([...left]).toEqual([]);
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
});
