import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { influxdAvailable } from '../support/influxd.ts';
import { openBench, type Program } from '../support/rig.ts';
import { SCENARIOS } from '../support/scenarios.ts';
import { sharedBench } from '../support/shared-bench.ts';
import { MUTANTS, type Mutant } from './mutants.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** Inside the project, so that the variants find its packages. */
const NURSERY = join(ROOT, '.mutants', String(process.pid));

const bench = sharedBench(openBench);
beforeAll(() => void mkdirSync(NURSERY, { recursive: true }));
afterAll(() => rmSync(NURSERY, { recursive: true, force: true }));

/** The program with its lines exchanged. @throws Error where the source has changed and the mutant with it must. */
async function breed({ name, edits }: Mutant): Promise<Program> {
  const folder = join(NURSERY, name.replaceAll(' ', '-'), 'src');
  cpSync(join(ROOT, 'src'), folder, { recursive: true });
  for (const { file, find, replace } of edits) {
    const path = join(folder, file);
    const source = readFileSync(path, 'utf8');
    if (source.split(find).length !== 2)
      throw new Error(`mutant "${name}": ${file} does not hold exactly once: ${find}`);
    writeFileSync(
      path,
      source.replace(find, () => replace),
    );
  }
  const load = async (file: string) => await import(/* @vite-ignore */ pathToFileURL(join(folder, file)).href);
  const [app, once] = [await load('app/open-sync.ts'), await load('commands/once/once.ts')];
  return { openSync: app.openSync, runOnce: once.runOnce };
}

describe.runIf(influxdAvailable()).each(MUTANTS)('a program with $name', (mutant) => {
  test('passes without faults, and is caught', async () => {
    const program = await breed(mutant);
    expect(await SCENARIOS.undisturbed(bench, program), 'it has to pass where nothing goes wrong').toEqual([]);
    for (const scenario of mutant.caughtBy) {
      expect(await SCENARIOS[scenario](bench, program), `${scenario} must find it`).not.toEqual([]);
    }
  });
});
