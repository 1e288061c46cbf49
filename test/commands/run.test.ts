/**
 * How a command ends that fails: in the log where that is JSON, else left to the process; never with a secret.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openTerminalOutput, type ProcessPorts } from '../../src/app/terminal.ts';
import { parseArguments } from '../../src/cli/argv.ts';
import { runCommand } from '../../src/commands/run.ts';

type RunnableCommand = Parameters<typeof runCommand>[0];

const MODES: readonly (readonly string[])[] = [['--status'], ['--export', 'lp'], ['--backup', 'copy.db'], ['--verify']];

/** Runs a command on a data directory without a state, whose name holds the token. */
async function runWithoutState(args: readonly string[], format: 'json' | 'pretty') {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-run-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const token = 'CANARYtoken4242';
  let stderr = '';
  const write = (text: string): void => {
    stderr += text;
  };
  const ports: ProcessPorts = {
    environment: {
      TIDEMARK_DATA_DIR: join(directory, token),
      TIDEMARK_INFLUX_URL: 'http://127.0.0.1:1',
      TIDEMARK_INFLUX_BUCKET: 'b',
      TIDEMARK_INFLUX_TOKEN: token,
      TIDEMARK_LOG_FORMAT: format,
    },
    forget: () => {},
    readFile: () => {
      throw Object.assign(new Error('none'), { code: 'ENOENT' });
    },
    print: () => {},
    stdout: { isTTY: false, write: () => Promise.resolve(true) },
    stderr: { write },
    signal: new AbortController().signal,
  };
  const ended = await runCommand(parseArguments(args) as RunnableCommand, ports).catch((error: unknown) => error);
  return { ended, token, stderr };
}

test.each(MODES)('%s logs the reason of a failure where the log is JSON', async (...args) => {
  const { ended, token, stderr } = await runWithoutState(args, 'json');
  expect(ended).toBe(1);
  const last = JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '');
  expect(last).toMatchObject({ level: 'error', event: 'failed', exit_code: 1 });
  expect(stderr).not.toContain(token);
});

test.each(MODES)('%s fails without a secret in its words', async (...args) => {
  const { ended, token } = await runWithoutState(args, 'pretty');
  expect(ended).toMatchObject({ exitCode: 1, message: expect.not.stringContaining(token) });
});

test.each([
  ['on a terminal', true, {}, true],
  ['not on a terminal with NO_COLOR', true, { NO_COLOR: '1' }, false],
  ['on a terminal where NO_COLOR is empty', true, { NO_COLOR: '' }, true],
  ['not in a file, whatever the environment requests', false, { FORCE_COLOR: '1' }, false],
])('the log has colours only where they are useful: %s', (_where, isTTY, environment, isColoured) => {
  let stderr = '';
  const ports = {
    environment,
    stderr: { write: (text: string) => (stderr += text), isTTY },
  } as unknown as ProcessPorts;
  const { logger } = openTerminalOutput({ ports, log: { level: 'info', format: 'pretty' }, level: null, secrets: [] });
  logger.write({ type: 'stopped' });
  expect(stderr).toContain('Tidemark stopped');
  expect(stderr.includes('\u001b[3')).toBe(isColoured);
});

test('no other part of the program writes colours', () => {
  const root = join(import.meta.dirname, '../../src');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const coloured = files.filter((file) =>
    /\\(?:u001b|x1b|033|u\{1b\})|styleText/i.test(readFileSync(join(root, file), 'utf8')),
  );
  // The progress line only goes back to its beginning and erases itself.
  expect(coloured.toSorted()).toEqual(['observe/log.ts', 'observe/progress.ts']);
});
