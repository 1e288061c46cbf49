/**
 * The reporter of this very suite, tried on small suites of its own, run by the real runner: its last line is what CI
 * reads, and what it objects to must fail the run.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ciObjection, summaryLine } from './summary-reporter.ts';

const ROOT = join(import.meta.dirname, '..', '..');
mkdirSync(join(ROOT, '.test-output'), { recursive: true });
const folder = mkdtempSync(join(ROOT, '.test-output', 'reporter-'));

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a suite of the given files. */
function run(name: string, files: Record<string, string>, ci: boolean): { lastLine: string; status: number | null } {
  const root = join(folder, name);
  mkdirSync(root, { recursive: true });
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(join(root, file), `import { describe, expect, test } from 'vitest';\n${text}`);
  }
  writeFileSync(join(root, 'vitest.config.ts'), 'export default {};\n');
  const reporter = join(ROOT, 'test/support/summary-reporter.ts');
  const args = ['run', '--root', root, '--reporter=default', `--reporter=${reporter}`];
  const { CI: _, ...environment } = process.env;
  const { stdout, status } = spawnSync(process.execPath, [join(ROOT, 'node_modules/vitest/vitest.mjs'), ...args], {
    encoding: 'utf8',
    env: { ...environment, NO_COLOR: '1', ...(ci ? { CI: 'true' } : {}) },
  });
  return { lastLine: stdout.trimEnd().split('\n').at(-1) ?? '', status };
}

const PASSING = "test('a', () => {}); describe('group', () => { test.each([1, 2])('b', () => {}); });\n";

describe('the last line and the exit code', () => {
  test.each<[string, Record<string, string>, boolean, string, number]>([
    ['passing', { 'a.test.ts': PASSING }, true, '3 passed, 0 failed', 0],
    ['failing', { 'a.test.ts': `${PASSING}test('c', () => { expect(1).toBe(2); });` }, true, '3 passed, 1 failed', 1],
    ['skipping', { 'a.test.ts': `${PASSING}test.skip('c', () => {});` }, false, '3 passed, 0 failed, 1 skipped', 0],
    ['skipping-ci', { 'a.test.ts': `${PASSING}test.skip('c', () => {});` }, true, '3 passed, 0 failed, 1 skipped', 1],
    ['todo-ci', { 'a.test.ts': `${PASSING}test.todo('c');` }, true, '3 passed, 0 failed, 1 skipped', 1],
    ['broken', { 'a.test.ts': PASSING, 'b.test.ts': "import './none.ts';" }, true, '3 passed, 1 failed', 1],
    ['stray', { 'a.test.ts': `${PASSING}void Promise.reject(new Error('stray'));` }, true, '3 passed, 1 failed', 1],
    ['empty-ci', {}, true, '0 passed, 0 failed', 1],
  ])('%s', (name, files, ci, lastLine, status) => {
    expect(run(name, files, ci)).toEqual({ lastLine, status });
  });
});

test('the objections are those of CI, and the line counts skipped tests only where there are some', () => {
  expect(ciObjection({ passed: 5, failed: 0, skipped: 0 })).toBeNull();
  expect(ciObjection({ passed: 5, failed: 0, skipped: 1 })).toContain('nothing may be skipped');
  expect(ciObjection({ passed: 0, failed: 0, skipped: 0 })).toContain('No test ran');
  expect(summaryLine({ passed: 1, failed: 2, skipped: 0 })).toBe('1 passed, 2 failed');
});
