/**
 * The commands of README and `docs/` as they stand there: those of this program in the checkout, against a simulated
 * API; those that change files in a directory of their own. What cannot run here is listed with the tool that checks
 * it.
 */
import { spawn } from 'node:child_process';
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
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../src/core/time.ts';
import { commandsOf, documentedCommands, TRIED } from '../support/documented-commands.ts';
import { type Ended, KEY, openStage, ROOT, type Stage } from './support.ts';

test('every command of the pages is in the list, and none that no page shows', () => {
  expect(Object.keys(TRIED).toSorted()).toEqual(documentedCommands());
});

test('each checker that is named is there', () => {
  const named = Object.values(TRIED).flatMap((tried) =>
    typeof tried === 'string' ? [] : [...tried.by.matchAll(/\.ci\/run|test\/[\w./-]*\w/g)].map(([path]) => path),
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('commands that read a journal find the lines that the page promises', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'tidemark-journal-'));
  try {
    const lines = [
      { level: 'info', event: 'poll-summary', msg: 'telemetry: 1 new reading' },
      { time: 'T', level: 'warn', event: 'delivery-blocked', destination: 'influx', msg: 'Delivery blocked' },
    ];
    writeFileSync(join(cwd, 'log'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const readers = Object.keys(TRIED).filter((command) => command.includes(' | jq '));
    const found = readers.map((command) => command.slice(command.indexOf('| ') + 2));
    expect(found).toHaveLength(2);
    const outputs = await Promise.all(found.map(async (jq) => (await shell(`${jq} < log`, cwd, {})).stdout));
    expect(outputs).toEqual(['T\tinflux\tDelivery blocked\n', `${JSON.stringify(lines[1])}\n`]);
  } finally {
    rmSync(cwd, { recursive: true });
  }
});

test('commands are found in blocks without a language, as one where they are continued', () => {
  expect(commandsOf('```\nnpm start -- --plan \\\n  --json   # why\n$ no\n```\n```yaml\nnpm: x\n```\n')).toEqual([
    'npm start -- --plan --json',
  ]);
});

async function shell(command: string, cwd: string, env: Readonly<Record<string, string>>): Promise<Ended> {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env;
  const child = spawn('/bin/sh', ['-c', command], {
    cwd,
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
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

const commands = (how: string): string[] => Object.keys(TRIED).filter((command) => TRIED[command] === how);

describe('in the checkout, with a state that a run has left', () => {
  let stage: Stage;
  beforeAll(async () => {
    const devices = ['hub-1', 'hub-2', 'hub-17'].map((deviceId) => ({ deviceId, intervalMs: HOUR_MS }));
    const settings = { plan: { historyMaxDays: null } };
    stage = await openStage({ devices, historyMs: 3 * DAY_MS, settings });
    const { code, stderr } = await stage.run(['--once']);
    expect(code, stderr).toBe(0);
    cpSync(stage.dataDir, join(stage.directory, 'left'), { recursive: true });
  });
  afterAll(async () => await stage[Symbol.asyncDispose]());

  test.each(commands('checkout'))('%s', async (command) => {
    rmSync(stage.dataDir, { recursive: true });
    cpSync(join(stage.directory, 'left'), stage.dataDir, { recursive: true });
    const { code, stdout, stderr } = await shell(command, ROOT, { ...stage.env, TIDEMARK_LISTEN: '127.0.0.1:0' });
    expect(code, stdout + stderr).toBe(0);
    expect(stderr).not.toContain('This is a bug');
  });
});

test('commands that change files work, in the order of the pages', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'tidemark-commands-'));
  try {
    cpSync(join(ROOT, 'config'), join(cwd, 'config'), { recursive: true });
    mkdirSync(join(cwd, 'config/kubernetes/workspaces/home'), { recursive: true });
    for (const name of ['tidemark.db', 'tidemark.lock', 'tidemark.db.version-4']) writeFileSync(join(cwd, name), name);
    const log = { level: 'info', event: 'poll-summary', stream: 'telemetry', new_points: 2 };
    writeFileSync(join(cwd, 'tidemark.log'), `${JSON.stringify(log)}\n${JSON.stringify(log)}\n`);
    const env = { KEY, OFFICE_KEY: 'office', TOKEN: 'token' };
    // Directories first, then what is written into them, and last what is done with that.
    const order = /^mkdir|^cp -r|^printf|/;
    const rank = (command: string): number => ['mkdir', 'cp -r', 'printf', ''].indexOf(order.exec(command)?.[0] ?? '');
    for (const command of commands('shell').toSorted((a, b) => rank(a) - rank(b))) {
      const { code, stderr } = await shell(command, cwd, env);
      expect(code, `${command}: ${stderr}`).toBe(0);
    }
    expect(readFileSync(join(cwd, 'secrets/tidemark_api_key'), 'utf8')).toBe(KEY);
    expect(statSync(join(cwd, 'secrets')).mode & 0o777).toBe(0o700);
    expect(statSync(join(cwd, 'secrets/tidemark_api_key')).mode & 0o777).toBe(0o644);
    expect(readFileSync(join(cwd, '.env'), 'utf8')).toContain('TIDEMARK_API_URL=https://');
    expect(readFileSync(join(cwd, 'tidemark.db'), 'utf8')).toBe('tidemark.db.version-4');
    expect(existsSync(join(cwd, 'newer/tidemark.lock'))).toBe(true);
  } finally {
    chmodSync(cwd, 0o700);
    rmSync(cwd, { recursive: true, force: true });
  }
});

test.runIf(existsSync('/usr/bin/ssh'))('the tunnel is one that ssh understands', async () => {
  const tunnel = Object.keys(TRIED).find((command) => command.startsWith('ssh ')) ?? '';
  const { code, stdout } = await shell(tunnel.replace('ssh ', 'ssh -G '), tmpdir(), {});
  expect([code, stdout]).toEqual([0, expect.stringMatching(/localforward .*9464.*127\.0\.0\.1.*9464/)]);
});
