/**
 * The program as it is installed, built once for all tests of a run: what starts it fifty times does not read and strip
 * hundreds of source files each time. Beside it lies no more than the image has.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { outsideLibraries } from '../../config/outside.mjs';

const ROOT = join(import.meta.dirname, '..', '..');

/** The variable with the path of the program for the tests of a run. */
const PLACE = 'TIDEMARK_TEST_PROGRAM';

/** The file to start: what was built for this run, and the source where nothing was. */
export function programFile(): string {
  return process.env[PLACE] ?? join(ROOT, 'src', 'main.ts');
}

/**
 * Builds it into a folder of its own; as vitest's global setup.
 *
 * @returns what removes it.
 */
export function setup(): () => void {
  const place = mkdtempSync(join(tmpdir(), 'tidemark-program-'));
  // Some tests start it as another user.
  chmodSync(place, 0o755);
  const folder = join(place, 'dist');
  execFileSync(process.execPath, [join(ROOT, 'config', 'build.mjs'), folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  // As the image and npm link it.
  chmodSync(join(folder, 'main.js'), 0o755);
  for (const name of outsideLibraries(join(ROOT, 'node_modules'))) {
    const link = join(place, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), link);
  }
  // Without it Node reads each file twice to find out that it is a module.
  copyFileSync(join(ROOT, 'package.json'), join(place, 'package.json'));
  process.env[PLACE] = join(folder, 'main.js');
  // Half of a short run is compiling the program: what one start has compiled, the next one reads.
  process.env['NODE_COMPILE_CACHE'] = join(place, 'compiled');
  return () => {
    delete process.env[PLACE];
    delete process.env['NODE_COMPILE_CACHE'];
    // A process that ends now may still write what it has compiled.
    rmSync(place, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
}
