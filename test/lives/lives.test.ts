/**
 * Random histories of the complete program, drawn from seeds, in virtual time: the real scheduler, ingest, state and
 * delivery, killed between any two effects, judged by the truth of the simulated workspace against the contents of the
 * database. The commands of docs/reliability.md run the script that a developer runs; a failure prints the smallest
 * story that shows it.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { shell } from '../support/run-command.ts';
import { commandsBy, LIVES } from '../support/tried-commands.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** The output of each command. */
const EXPECTED: Readonly<Record<string, (stdout: string) => void>> = {
  'npm run lives -- --seeds 1-200': (stdout) => {
    process.stdout.write(`${stdout.trimEnd().split('\n').at(-1)}\n`);
    const good = [...stdout.matchAll(/^seed (\d+): ok /gm)].map(([, seed]) => Number(seed));
    expect(good.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
  },
  'npm run lives -- --seed 40': (stdout) => expect(stdout).toMatch(/^seed 40: ok /m),
  'npm run lives -- --seed 40 --describe --trace': (stdout) => {
    expect(stdout).toMatch(/^seed 40: ok /m);
    expect(stdout.match(/^\d{4}-\S+Z life \d+ \{"type":"/gm)?.length ?? 0).toBeGreaterThan(100);
  },
};

test('each command has an entry in EXPECTED', () => {
  expect(Object.keys(EXPECTED).toSorted()).toEqual(commandsBy(LIVES));
});

test.each(commandsBy(LIVES))(
  'stories lose nothing, double nothing and cover nothing that was not read: %s',
  async (command) => {
    const { code, stdout, stderr } = await shell(command, { cwd: ROOT });
    expect(code, stdout + stderr).toBe(0);
    EXPECTED[command]?.(stdout);
  },
);
