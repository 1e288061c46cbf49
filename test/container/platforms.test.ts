/**
 * The image for each platform contains SQLite's binding of that platform, and no program of another. The test needs no
 * machine of that kind: it reads the output of `assemble.mjs` and the headers of the files.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { outsideLibraries } from '../../config/outside.mjs';

const ROOT = join(import.meta.dirname, '..', '..');

/** The processor in the header of an ELF file. */
const MACHINES: Readonly<Record<number, string>> = { 62: 'amd64', 183: 'arm64' };

function machineOf(file: string): string {
  const bytes = readFileSync(file);
  expect(bytes.subarray(0, 4).toString('latin1'), file).toBe('\x7fELF');
  return MACHINES[bytes.readUInt16LE(18)] ?? 'another';
}

let place: string;
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'tidemark-platforms-'));
  mkdirSync(join(place, 'dist'));
  writeFileSync(join(place, 'dist', 'main.js'), '');
  const libraries = [...outsideLibraries(join(ROOT, 'node_modules')), 'undici'].map((name) =>
    join('node_modules', name),
  );
  for (const name of ['package.json', 'package-lock.json', 'README.md', 'CHANGELOG.md', ...libraries]) {
    cpSync(join(ROOT, name), join(place, name), { recursive: true });
  }
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

/**
 * Runs it as the Dockerfile does, for the native library alone.
 *
 * @returns the files of the image's application.
 */
function assemble(architecture: string): string[] {
  const script = join(ROOT, 'config', 'image', 'assemble.mjs');
  const out = join(place, architecture);
  rmSync(out, { recursive: true, force: true });
  const { status, stderr } = spawnSync(process.execPath, [script, out, architecture], { cwd: place });
  expect(status, stderr.toString()).toBe(0);
  const entries = readdirSync(join(out, 'app'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

test.each(['amd64', 'arm64'])('for %s', (architecture) => {
  const natives = assemble(architecture).filter((file) =>
    readFileSync(file).subarray(0, 4).equals(Buffer.from('\x7fELF', 'latin1')),
  );
  expect(natives.map(machineOf)).toEqual([architecture]);
});

test('can be read by every user, whatever the checkout allows', () => {
  chmodSync(join(place, 'dist', 'main.js'), 0o600);
  chmodSync(join(place, 'package.json'), 0o600);
  chmodSync(join(place, 'dist'), 0o700);
  assemble('amd64');
  const modeOf = (...path: string[]): number => statSync(join(place, 'amd64', ...path)).mode & 0o777;
  expect([
    modeOf('app'),
    modeOf('app', 'dist'),
    modeOf('app', 'package.json'),
    modeOf('app', 'dist', 'main.js'),
  ]).toEqual([0o755, 0o755, 0o644, 0o755]);
  expect(modeOf('root', 'data')).toBe(0o770);
});

test('holds the libraries that the program does not hold itself, and the licences of those too', () => {
  assemble('amd64');
  const app = join(place, 'amd64', 'app');
  const libraries = outsideLibraries(join(ROOT, 'node_modules'));
  expect(libraries).toContain('better-sqlite3');
  const tops = new Set(libraries.map((name) => name.split('/')[0]));
  expect(readdirSync(join(app, 'node_modules')).sort()).toEqual([...tops].sort());
  expect(readFileSync(join(app, 'LICENCES.txt'), 'utf8')).toMatch(/^undici [\d.]+ \(MIT\)$/m);
});

test('nothing else that runs is native', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const shipped = Object.entries<{ dev?: true; optional?: true }>(packages)
    .filter(([path, { dev, optional }]) => path !== '' && dev === undefined && optional === undefined)
    .map(([path]) => path);
  expect(shipped.length).toBeGreaterThan(10);
  const native = shipped.filter((path) =>
    readdirSync(join(ROOT, path), { recursive: true, encoding: 'utf8' }).some((file) => /\.node$/.test(file)),
  );
  expect(native).toEqual(['node_modules/better-sqlite3']);
});
