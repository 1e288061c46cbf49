/**
 * Builds the program that is installed: `npm run build`.
 *
 *   node config/build.mjs [FOLDER]      default: `dist/`
 *
 * Finding and reading five hundred small files takes a third of the start-up time, so they are bundled: one file for
 * what every mode needs, separate files for what only some modes need. `outside.mjs` lists the libraries that are not
 * bundled.
 *
 * V8 keeps the text of a program in memory as long as it runs, with two bytes for each character where one of them is
 * beyond Latin-1. Minified and in ASCII it takes 4 MB less.
 */
import { cpSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'rolldown';
import { OUTSIDE } from './outside.mjs';

const root = join(import.meta.dirname, '..');
const dist = resolve(process.argv[2] ?? join(root, 'dist'));

/** Writes each character beyond ASCII as an escape: without comments they are in strings, templates and patterns only. */
const inAscii = {
  name: 'ascii',
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== 'chunk') continue;
      chunk.code = chunk.code.replace(/[\u0080-\uffff]/g, (unit) => {
        return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
      });
    }
  },
};

const NO_TASKS = '\0no-tasks';
/**
 * Gives node-cron a count for the random ids of its tasks, and nothing that starts processes: its tasks are never run.
 * Node's modules for these take a tenth of the time of a start.
 */
const withoutTasks = {
  name: 'without-tasks',
  resolveId: (source, importer) =>
    importer?.includes('/node-cron/') && /^(?:node:)?(?:crypto|child_process)$/.test(source) ? NO_TASKS : null,
  load: (id) =>
    id === NO_TASKS
      ? 'let ids = 0; export const randomUUID = () => String((ids += 1)); export const fork = null;'
      : null,
};

rmSync(dist, { recursive: true, force: true });
await build({
  cwd: root,
  input: 'src/main.ts',
  platform: 'node',
  external: OUTSIDE,
  logLevel: 'warn',
  plugins: [withoutTasks, inAscii],
  output: { dir: dist, format: 'esm', chunkFileNames: '[name].js', minify: true },
});
// What browsers load goes beside the module that serves it.
cpSync(join(root, 'src', 'page', 'client'), join(dist, 'client'), { recursive: true });
