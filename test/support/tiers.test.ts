/**
 * Which tests run without servers and processes: each file is in one tier, by what it imports, over any number of
 * helpers.
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SECONDS } from './mixed-sequence.ts';
import { importsOf, testTiers } from './tiers.ts';

const ROOT = join(import.meta.dirname, '..', '..');

describe('the tiers', () => {
  const { pure, real } = testTiers();

  test('have every file whose length the order of the files goes by', () => {
    expect(Object.keys(SECONDS).filter((file) => ![...pure, ...real].includes(file))).toEqual([]);
  });

  test('have every file of tests, each once', () => {
    expect([...pure, ...real].sort()).toEqual(globSync('test/**/*.test.ts', { cwd: ROOT }).sort());
    expect(pure.length).toBeGreaterThan(80);
  });

  test.each([
    ['test/core/time.test.ts', 'pure'],
    // A server of its own; a program; a database, by the helpers of a helper.
    ['test/observe/server.test.ts', 'real'],
    ['test/process/once.test.ts', 'real'],
    ['test/safety/safety.test.ts', 'real'],
    ['test/page/browser.test.ts', 'real'],
  ])('%s is %s', (file, tier) => {
    expect(pure.includes(file) ? 'pure' : 'real').toBe(tier);
    expect(real.includes(file)).toBe(tier === 'real');
  });
});

test.each([
  ["import { spawn } from 'node:child_process';", ['node:child_process']],
  ["import {\n  type Bench,\n  startBench,\n} from './bench.ts';", ['/test/core/bench.ts']],
  ["import './no-world.ts';", ['/test/core/no-world.ts']],
  ["export { a } from '../../src/core/time.ts';", ['/src/core/time.ts']],
  ["const { a } = await import('node:http');", ['node:http']],
  // A type alone starts nothing.
  ["import type { ChildProcess } from 'node:child_process';", []],
  ['const text = "import the rest";', []],
])('%j imports the files and modules that it names', (text, names) => {
  expect(importsOf(text, join(ROOT, 'test', 'core', 'x.test.ts'))).toEqual(names);
});
