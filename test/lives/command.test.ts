/** Runs the command of docs/reliability.md for one story, unchanged. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LIVES, TRIED } from '../support/tried-commands.ts';

const ROOT = join(import.meta.dirname, '..', '..');

test.each(Object.keys(TRIED).filter((command) => TRIED[command] === LIVES))('%s', (command) => {
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', command], { cwd: ROOT, encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
  const seed = /--seed (\d+)/.exec(command)?.[1];
  // The story, the events of its lives, its end, and the sums.
  expect(stdout).toContain(`seed ${seed}: ok {`);
  expect(stdout).toMatch(/^\d{4}-\d\d-\d\dT\S+ life \S+ \{"type":/m);
  expect(stdout).toMatch(/; 0 seeds with something wrong; \d+ s\n$/);
});
