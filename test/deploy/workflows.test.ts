/** The workflows of the repository, linted. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runTool, toolsAvailable } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const AVAILABLE = toolsAvailable();

describe.runIf(AVAILABLE)('the workflows', () => {
  const folder = join(ROOT, '.github', 'workflows');
  const files = readdirSync(folder).map((name) => join(folder, name));

  test('have nothing that actionlint dislikes', () => {
    const { code, stdout, stderr } = runTool('actionlint', files);
    expect([code, stdout + stderr]).toEqual([0, '']);
  });

  test('a mistake is noticed', () => {
    const text = readFileSync(join(folder, 'release.yml'), 'utf8');
    for (const [right, wrong] of [
      ['needs: [test, roots]', 'needs: [tests, roots]'],
      ['steps.build.outputs', 'steps.bild.outputs'],
      ['runs-on: ubuntu-24.04', 'runs-on: ubuntu-04.24'],
      ['platforms:', 'platform:'],
    ] as const) {
      const { code } = runTool('actionlint', ['-'], { input: text.replace(right, wrong) });
      expect(code, wrong).toBe(1);
    }
  });
});
