/** The workflows of the repository, linted. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
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

  test('the release tests the image and the roots, with the packages that these need', () => {
    const { steps } = parse(readFileSync(join(folder, 'release.yml'), 'utf8')).jobs.roots as {
      steps: { run?: string }[];
    };
    const runs = steps.map(({ run = '' }) => run).join('\n');
    expect([...runs.matchAll(/test:\w+/g)].flat()).toEqual(['test:image', 'test:roots']);
    const [roots, image] = ['roots.ts', 'run.ts'].map((name) =>
      readFileSync(join(ROOT, 'test', 'image', name), 'utf8'),
    );
    const asked = [...(/PACKAGES = \{\n(.*?)\}/s.exec(roots ?? '')?.[1] ?? '').matchAll(/^ {2}'?([\w-]+)/gm)].map(
      ([, name]) => name,
    );
    asked.push(...(/\(apt-get install ([\w -]+)\)/.exec(image ?? '')?.[1] ?? '').split(' '));
    expect(asked.length).toBeGreaterThan(9);
    const installed = /apt-get install -y -qq (.*)/.exec(runs)?.[1]?.split(' ');
    expect(asked.filter((name) => !installed?.includes(name ?? ''))).toEqual([]);
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
