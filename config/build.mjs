/**
 * Makes the program that is installed: `npm run build`.
 *
 *   node config/build.mjs [FOLDER]      `dist/` where none is named
 *
 * Five hundred small files take a third of a start to be found and read, so they are put together: what a mode needs at
 * once in one file, what only another mode needs in files of their own. `outside.mjs` tells what stays outside.
 */
import { cpSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'rolldown';
import { OUTSIDE } from './outside.mjs';

const root = join(import.meta.dirname, '..');
const dist = resolve(process.argv[2] ?? join(root, 'dist'));

rmSync(dist, { recursive: true, force: true });
await build({
  cwd: root,
  input: 'src/main.ts',
  platform: 'node',
  external: OUTSIDE,
  logLevel: 'warn',
  output: { dir: dist, format: 'esm', chunkFileNames: '[name].js' },
});
// What browsers load goes beside the module that serves it.
cpSync(join(root, 'src', 'page', 'client'), join(dist, 'client'), { recursive: true });
