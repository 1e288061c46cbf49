/**
 * `--init` on a terminal, a real one (`script` gives it): it prompts, shows no secret, tries each answer, and writes a
 * configuration that `--check` accepts.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KEY, MAIN, openStage, until } from './support.ts';

/** The prompts, in order, and their answers. */
type Dialogue = readonly (readonly [question: string, answer: string])[];

test.runIf(existsSync('/usr/bin/script'))(
  'prompts on a terminal, and writes a configuration that --check accepts',
  async () => {
    await using stage = await openStage();
    const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
    const command = `'${process.execPath}' '${MAIN}' init --config t.yaml`;
    const child = spawn('/usr/bin/script', ['-qec', command, '/dev/null'], {
      cwd: stage.directory,
      env: { PATH, NODE_COMPILE_CACHE, TERM: 'xterm', TIDEMARK_LISTEN: '127.0.0.1:0' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let screen = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      screen += text;
    });
    const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
    try {
      const dialogue: Dialogue = [
        ['Address of the API', stage.server.url],
        ['Workspace API key', KEY],
        ['Address of InfluxDB or VictoriaMetrics', ''],
        ['History', '2h'],
      ];
      for (const [question, answer] of dialogue) {
        await until(`it asks: ${question}`, () => screen.includes(question) || child.exitCode !== null);
        child.stdin.write(`${answer}\r`);
      }
      expect(await ended, screen).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
    expect(screen).toMatch(/The key is valid for workspace .* \(3 devices\)\./);
    expect(screen).toMatch(/Start it: {2}tidemark --config t\.yaml/);
    expect(screen).not.toContain(KEY);
    const file = join(stage.directory, 't.yaml');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).not.toContain(KEY);
    const env = Object.fromEntries(Object.keys(stage.env).map((name) => [name, undefined]));
    const check = await stage.run(['--check', '--config', file], { env: { ...env, TIDEMARK_LISTEN: '127.0.0.1:0' } });
    expect(check.code, check.stdout + check.stderr).toBe(0);
  },
);
