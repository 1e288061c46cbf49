/**
 * Puts together what the image holds: the built program, the libraries that are not in it, the licences of all of them
 * and the bill of materials. Run by the Dockerfile, after `npm ci --omit=dev`.
 *
 *   node assemble.mjs OUT ARCHITECTURE      ARCHITECTURE as Docker names it: amd64 or arm64
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { outsideLibraries } from '../outside.mjs';
import { writeBill } from './sbom.mjs';

const [out, architecture] = process.argv.slice(2);
const native = { amd64: 'linux-x64.node', arm64: 'linux-arm64.node' }[architecture];
if (out === undefined || native === undefined) throw new Error('usage: assemble.mjs OUT amd64|arm64');
const app = join(out, 'app');
mkdirSync(join(app, 'bin'), { recursive: true });
// A directory in a directory: what is copied keeps its mode, what is copied into does not.
mkdirSync(join(out, 'root', 'data'), { recursive: true });
chmodSync(join(out, 'root', 'data'), 0o770);
for (const name of ['dist', 'node_modules', 'package.json', 'README.md', 'CHANGELOG.md']) {
  cpSync(name, join(app, name), { recursive: true });
}

// Of SQLite: the binding of this platform alone, without what it was built from.
const sqlite = join(app, 'node_modules', 'better-sqlite3');
for (const name of ['deps', 'src', 'binding.gyp']) rmSync(join(sqlite, name), { recursive: true, force: true });
for (const name of readdirSync(join(sqlite, 'prebuilds'))) {
  if (name !== native) rmSync(join(sqlite, 'prebuilds', name));
}
if (!existsSync(join(sqlite, 'prebuilds', native))) throw new Error(`better-sqlite3 brings no ${native}`);

// What no program reads while it runs.
for (const path of packagesIn(join(app, 'node_modules'))) {
  for (const name of [
    'test',
    'tests',
    'docs',
    'doc',
    'example',
    'examples',
    'bench',
    'benchmark',
    'benchmarks',
    '.github',
  ]) {
    rmSync(join(path, name), { recursive: true, force: true });
  }
}
for (const path of readdirSync(join(app, 'node_modules'), { recursive: true })) {
  if (/\.(?:md|markdown|map|d\.[cm]?ts|ts|flow)$/i.test(path) && !/licen[cs]e|notice/i.test(path)) {
    rmSync(join(app, 'node_modules', path), { force: true });
  }
}
rmSync(join(app, 'node_modules', '.package-lock.json'), { force: true });
rmSync(join(app, 'node_modules', '.bin'), { recursive: true, force: true });

writeBill(join(app, 'sbom.cdx.json'));
writeFileSync(join(app, 'LICENCES.txt'), licences(join(app, 'node_modules')));

// The program holds the other libraries itself.
const libraries = join(app, 'node_modules');
const outside = outsideLibraries(libraries);
for (const path of packagesIn(libraries)) {
  const isNeeded = outside.some((name) => `${relative(libraries, path)}/`.startsWith(`${name}/`));
  if (!isNeeded) rmSync(path, { recursive: true, force: true });
}
// Scopes of which nothing is left.
for (const name of readdirSync(libraries).filter((each) => each.startsWith('@'))) {
  if (readdirSync(join(libraries, name)).length === 0) rmdirSync(join(libraries, name));
}

// Every user reads it, whatever the checkout lets others read; so two checkouts of one commit make the same image.
for (const entry of readdirSync(app, { recursive: true, withFileTypes: true })) {
  chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
}
symlinkSync('../dist/main.js', join(app, 'bin', 'tidemark'));
chmodSync(join(app, 'dist', 'main.js'), 0o755);

/** The words of every licence, under the name and version of its package. */
function licences(folder) {
  return packagesIn(folder)
    .map((path) => {
      const { name, version, license } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
      const texts = readdirSync(path)
        .filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file))
        .map((file) => readFileSync(join(path, file), 'utf8').trim());
      return `${name} ${version} (${license ?? 'see below'})\n\n${texts.join('\n\n')}\n`;
    })
    .join(`\n${'-'.repeat(78)}\n\n`);
}

/** Every package, those inside scopes and inside other packages too. */
function packagesIn(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .flatMap(({ name }) => {
      const path = join(folder, name);
      if (name.startsWith('@')) return packagesIn(path);
      const own = existsSync(join(path, 'package.json')) ? [path] : [];
      return [...own, ...packagesIn(join(path, 'node_modules'))];
    });
}
